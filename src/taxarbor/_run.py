"""What a fit is told beside its data: a seed, where to run, and whom to tell of its progress.

The library never prints. Whoever wants to show progress passes an observer.
"""

import sys
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol, Self, TypeVar, final

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


@final
@dataclass(frozen=True, slots=True)
class GrowthEvent:
    """The state of the tree after a leaf was tried or split.

    Attributes
    ----------
    n_leaves, max_leaves : int
        Leaves there are, and how many there may be (0 when no number was asked for).
    n_tried : int
        Leaves for which a split was sought so far.
    """

    n_leaves: int
    max_leaves: int
    n_tried: int


class Observer(Protocol):
    """Receives an event after each step; returning True stops the growth there."""

    def __call__(self, event: GrowthEvent, /) -> bool:
        """Take note of the event."""
        ...


def ignore(event: GrowthEvent, /) -> bool:
    """Observe nothing, stop nothing."""
    return False


class Watcher(Protocol):
    """Is told of sweeps over all rows: how many have begun, and the share that is done."""

    def __call__(self, n_sweeps: int, share: float, /) -> None:
        """Take note."""
        ...


def look_away(n_sweeps: int, share: float, /) -> None:
    """Watch nothing."""


class Pool(Protocol):
    """Runs tasks side by side: a :class:`Crew`, or an executor of ``concurrent.futures``."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterable[Result]:
        """Return the results for all items, in their order."""
        ...


@final
class Crew:
    """Threads that Ctrl-C cannot leave waiting for each other.

    A ``ThreadPoolExecutor`` takes its locks in Python. An interrupt between taking one and
    knowing of it leaves it taken for ever: a thread then waits for it, and whoever ends the
    pool for that thread. Here each wait is for one lock of the interpreter, which only the
    worker lets go, also where no memory is left to say more. Where no thread can be started,
    tasks run in the thread that asks for their results.

    Examples
    --------
    >>> from taxarbor._run import Crew
    >>> with Crew(2) as crew:
    ...     list(crew.map(abs, [-1, 2]))
    [1, 2]
    """

    def __init__(self, n_threads: int) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._n_threads = 0
        self._ends = [allocate_lock() for _ in range(n_threads)]  # each held by a thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterable[Result]:
        """Return the results for all items, in their order; the work begins at once."""
        tasks = [_Task(work, item) for item in items]
        self._start(len(tasks))
        if not self._n_threads:
            return map(work, [task.item for task in tasks])
        for task in tasks:
            self._tasks.put(task)
        return self._results(tasks)

    def _start(self, n_tasks: int) -> None:
        """Let there be a thread per task, up to the limit.

        After an interrupt, a thread may be started that is there already: it ends at once.
        """
        while self._n_threads < min(n_tasks, len(self._ends)):
            try:
                start_new_thread(_serve, (self._tasks, self._ends[self._n_threads]))
            except RuntimeError:  # no room for another one
                return
            self._n_threads += 1

    def _results(self, tasks: "list[_Task]") -> Iterator[Any]:
        try:
            tasks.reverse()
            while tasks:
                yield tasks.pop().result()  # and nobody keeps it here
        finally:
            for task in tasks:
                task.is_off = True

    def close(self) -> None:
        """Forget what nobody has begun, wait for the rest, and let the threads go."""
        with suppress(Empty):
            while True:
                if (task := self._tasks.get_nowait()) is not None:
                    task.error = RuntimeError("the crew was closed before this was begun")
                    task.done.release()
        self._n_threads = 0
        for _ in self._ends:  # also for a thread that an interrupt kept from being counted
            self._tasks.put(None)
        while self._ends:
            self._ends.pop().acquire()


class _Task:
    """Something to do, and what came of it."""

    __slots__ = ("done", "error", "found", "is_off", "item", "work")

    def __init__(self, work: Callable[[Any], Any], item: Any) -> None:
        self.work, self.item, self.is_off = work, item, False
        self.done = allocate_lock()  # the worker lets it go
        self.done.acquire()
        self.found: Any = None
        self.error: BaseException | None = None

    def result(self) -> Any:
        self.done.acquire()
        if self.error is None:
            return self.found
        try:
            raise self.error
        finally:
            del self  # or the error, by its traceback, would hold itself


def _serve(tasks: "SimpleQueue[_Task | None]", end: Any) -> None:
    """Do what there is to do. No call stands between a task and the end of its wait."""
    if not end.acquire(False):
        return  # the crew was closed, or another thread is in this one's place
    try:
        if (trace := threading.gettrace()) is not None:  # coverage and debuggers look on
            sys.settrace(trace)
        if (profile := threading.getprofile()) is not None:
            sys.setprofile(profile)
        while (task := tasks.get()) is not None:
            try:
                if not task.is_off:
                    task.found = task.work(task.item)
            except BaseException as error:  # it is raised where it is waited for
                task.error = error
            finally:
                task.done.release()
            task = None
    finally:
        end.release()


@final
@dataclass(frozen=True, slots=True)
class Run:
    """What all steps of one fit share.

    Attributes
    ----------
    seed : int
        Each node draws its random numbers from this seed and its path from the root.
    observer : callable
        Receives a :class:`GrowthEvent` after each step of the growth.
    pool : Pool or None
        Runs independent tasks side by side; None runs them one after the other. The tree is
        the same.
    watcher : callable
        Is told how far sweeps over the rows are.
    width : int
        How many tasks the pool runs side by side.

    Examples
    --------
    >>> from taxarbor.grow import Run
    >>> list(Run(seed=0).each(abs, [-1, 2]))
    [1, 2]
    """

    seed: int = 0
    observer: Observer = ignore
    pool: Pool | None = None
    watcher: Watcher = look_away
    width: int = 1

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterable[Result]:
        """Return the results for all items, in their order.

        An item on its own, as the root is, stays in this thread, where Ctrl-C is heard.
        """
        if self.pool is None or len(items) < 2:
            return map(work, items)
        return self.pool.map(work, items)


def node_seed(seed: int, path: tuple[int, ...]) -> int:
    """Return 64 bits of a node's own, for generators that mix them well themselves."""
    bits = seed
    for step in path:
        bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9 + step + 1 & 0xFFFFFFFFFFFFFFFF
    return bits


def node_rng(seed: int, path: tuple[int, ...], stream: int = 0) -> np.random.Generator:
    """Return a node's own random numbers, whatever happens elsewhere in the tree."""
    entropy = (seed, stream) if stream else seed
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=path))
