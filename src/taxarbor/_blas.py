"""Holding BLAS to one thread: the order of a threaded one's sums depends on their number."""

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
    """Hold BLAS to one thread for as long as anyone wants it.

    The limit is the whole process's: of fits that overlap in several threads, the first sets it
    and the last lifts it.
    """
    me = object()
    with _lock:
        if not _users:
            _limits.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _users.append(me)
    try:
        yield
    finally:
        with _lock:
            _users.remove(me)
            if not _users:
                _limits.close()


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that are loaded; looking for them takes milliseconds."""
    return ThreadpoolController()
