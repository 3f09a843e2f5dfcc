"""The context of a fit: a seed, a thread pool, one BLAS thread, an observer of progress.

The library never prints. To show progress, pass an observer.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TypeVar, final

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


Observer = Callable[[int, int], None]
"""Receives the number of leaves after each step of the growth, and the largest allowed: 0 if
there is no limit."""


def ignore(n_leaves: int, max_leaves: int) -> None:
    """Do nothing."""


@final
@dataclass(frozen=True, slots=True)
class Run:
    """The context of a fit, shared by all of its steps.

    Attributes
    ----------
    seed : int
        Each node draws its random numbers from this seed and its path from the root.
    observer : callable
        Receives the numbers of leaves, so far and at most, after each step of the growth.
    pool : concurrent.futures.Executor or None
        Runs independent tasks in parallel; None runs them one after the other. The tree is
        the same.
    width : int
        How many tasks the pool runs in parallel.

    Examples
    --------
    >>> from taxarbor.grow import Run
    >>> list(Run(seed=0).each(abs, [-1, 2]))
    [1, 2]
    """

    seed: int = 0
    observer: Observer = ignore
    pool: Executor | None = None
    width: int = 1

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterable[Result]:
        """Return the results for all items, in their order.

        A single item, such as the root, runs in the calling thread.
        """
        if self.pool is None or len(items) < 2:
            return map(work, items)
        return self.pool.map(work, items)


def node_seed(seed: int, path: tuple[int, ...]) -> int:
    """Return a 64-bit seed for a node, for generators that mix their seeds well."""
    bits = seed
    for step in path:
        bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9 + step + 1 & 0xFFFFFFFFFFFFFFFF
    return bits


_lock = Lock()
_users: list[object] = []
_limits = ExitStack()
_libraries = cache(ThreadpoolController)  # finding them takes milliseconds


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


BAR_WIDTH = 30
PATIENCE = 2.0  # seconds before anything is drawn: short fits draw nothing
PAUSE = 0.1  # seconds between two drawings


@contextmanager
def show_progress(title: str, verbose: int, unit: str = "leaves") -> Iterator[Observer]:
    """Yield an observer that draws a bar on a line of its own, if ``verbose`` is not 0."""
    if not verbose:
        yield ignore
        return
    stream, begun = sys.stderr, time.monotonic()
    drawn_at, width = begun + PATIENCE - PAUSE, 0

    def write(text: str) -> None:
        with suppress(OSError):  # the terminal may be closed; the fit goes on
            stream.write(text)
            stream.flush()

    def draw(n_leaves: int, max_leaves: int) -> None:
        nonlocal drawn_at, width
        now = time.monotonic()
        if now < drawn_at + PAUSE:
            return
        count = f"{n_leaves} {unit}"
        if max_leaves:
            bar = "#" * round(BAR_WIDTH * n_leaves / max_leaves)
            count = f"[{bar:<{BAR_WIDTH}}] {n_leaves} of {max_leaves} {unit}"
        line = f"{title}: {count}, {now - begun:.0f} s"
        write("\r" + line.ljust(width))
        drawn_at, width = now, len(line)

    try:
        yield draw
    finally:
        if width:
            write("\n")
