"""Limits BLAS to one thread, so that sums are always taken in the same order."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock = Lock()
_users: list[object] = []
_limits = ExitStack()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within the block.

    The limit is of the whole process: of fits that overlap in several threads, the first sets
    it and the last removes it.
    """
    user = object()
    with _lock:
        if not _users:
            _limits.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _users.append(user)
    try:
        yield
    finally:
        with _lock:
            _users.remove(user)
            if not _users:
                _limits.close()


@cache
def _libraries() -> ThreadpoolController:
    """Return the loaded libraries; finding them takes milliseconds."""
    return ThreadpoolController()
