"""What BLAS needs: some room, and to be held to one thread, for sums of one order."""

import mmap
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

ROOM = 1 << 27
"""Bytes of address space that BLAS, once loaded, and the threads of a fit take at first."""

_lock = Lock()
_users: list[object] = []
_limits = ExitStack()


def check_room() -> None:
    """Raise MemoryError where hardly any address space is left, as ``ulimit -v`` may do.

    OpenBLAS would ask for its buffers again and again, for minutes, and OpenMP would end the
    process for want of a thread.
    """
    if sys.platform == "win32":
        return
    try:
        mmap.mmap(-1, ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, ValueError) as error:
        told = f"less than {ROOM >> 20} MB of memory are left, with which a fit could begin"
        raise MemoryError(told) from error


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
