"""Sweeps by Dask, on whatever scheduler is the current one: threads, processes, a cluster.

Each block of a sweep is one task, a pure function of what it is given, so that a lost worker
is Dask's to mend: what was kept there is made anew, from the blocks it was made of. What tasks
find is added up on the workers, many at a time, and only the sum comes here.

What a block is made of on the way, such as features of a raw part, is made within the task that
reads it. It need not travel, and the task goes to the worker that keeps most of what it needs.
"""

import asyncio
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from math import inf
from operator import itemgetter
from time import monotonic
from typing import Any, final
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
from scipy.sparse import csr_array, issparse

from taxarbor._errors import ClusterError, missing_extra
from taxarbor._run import Run
from taxarbor.sweep._engine import Column, Then, Work, loaded, merged

FAN_IN = 64
"""How many findings one task adds up. Samples become no smaller by it, and travel each time."""
SMALL = 4_000
"""Bytes that are sent along with each task; more are put into the graph once."""
PATIENCE = 25.0
"""Seconds that end a fit: without a worker, a word from the scheduler, or memory to go on."""
PAUSE = 5.0
"""Seconds after which other workers do what one that has paused did not begin."""
DIED = (
    "Dask workers died again and again, most often for want of memory; use smaller chunks, or "
    "workers with more memory, and fit again"
)


@final
class DaskEngine:
    """Sweeps by the current scheduler of Dask.

    Entries of its columns are plain values, what loads them, or ``Delayed``. On a cluster a
    kept column stays on the workers until nobody holds it.

    Raises
    ------
    ImportError
        If Dask is not installed.
    ClusterError
        In a sweep, if the scheduler is gone, if there are no workers, or if they die.
    """

    def __init__(self, run: Run | None = None) -> None:
        try:
            import dask.delayed  # noqa: F401
        except ImportError as error:
            raise missing_extra("a Dask array", "dask", "distributed") from error
        self._kept: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def sweep(
        self, work: Work, *columns: Column, then: Then | None = None, **shared: Any
    ) -> Any:
        """Return what the work finds in all blocks, added up."""
        tasks = self.tasks(work, *columns, **shared)
        if not tasks:
            return None
        return _computed([], [_made_of(_added_up(tasks), then)])[1][0]

    def keep(self, work: Work, *columns: Column, **shared: Any) -> tuple[Column, Any]:
        """Return a new column, and what was found."""
        name, token = _name(work), uuid4().hex
        pairs = [
            _task(_Made(_kept_apart, (made,), {}), f"{name}-{token}-{block}")
            for block, made in enumerate(self.lazy(work, *columns, **shared))
        ]
        if not pairs:
            return [], None
        kept, finds = (
            [
                _delayed(itemgetter(part), f"{name}-{what}-{token}-{block}", pair)
                for block, pair in enumerate(pairs)
            ]
            for part, what in enumerate(("kept", "found"))
        )
        column, (found,) = _computed(kept, [_added_up(finds)])
        self._kept.update({entry.key: entry for entry in column if is_delayed(entry)})
        return column, found

    def lazy(self, work: Work, *columns: Column, **shared: Any) -> Column:
        """Return a column of what the work makes, made anew by each task that reads it."""
        same = _embedded(shared)
        return [_Made(work, entries, same) for entries in zip(*columns, strict=True)]

    def gather(self, column: Column) -> list[Any]:
        """Return the entries of a column, in this process."""
        remote = [k for k, entry in enumerate(column) if _is_remote(entry)]
        _, found = _computed([], self.delayed([column[k] for k in remote]))
        there = dict(zip(remote, found, strict=True))
        return [there[k] if k in there else loaded(entry) for k, entry in enumerate(column)]

    def close(self) -> None:
        """Let go of all columns that were kept, but for those of :meth:`delayed`."""
        left = list(self._kept.values())
        self._kept.clear()
        for future in futures_in(left):
            future.release()

    def tasks(self, work: Work, *columns: Column, **shared: Any) -> list[Any]:
        """Return a task for each block, which does the work and seals what it finds."""
        token = f"{_name(work)}-{uuid4().hex}"
        return [
            _task(_Made(Sealed, (made,), {}), f"{token}-{block}")
            for block, made in enumerate(self.lazy(work, *columns, **shared))
        ]

    def delayed(self, column: Column) -> list[Any]:
        """Return the entries of a column as ``Delayed``, which outlive the engine."""
        token = uuid4().hex
        found = []
        for block, entry in enumerate(column):
            if is_delayed(entry):
                self._kept.pop(entry.key, None)
            found.append(_task(entry, f"taxarbor-block-{token}-{block}"))
        return found


def is_delayed(entry: Any) -> bool:
    """Say whether an entry is a task of Dask's."""
    return type(entry).__module__ == "dask.delayed"


@final
class Sealed:
    """Holds a value that Dask shall not look into, search for tasks, or take for one.

    It travels as a copy of its own. What Dask sends otherwise are views of what came in, which
    cannot be written to, and whose numbers begin anywhere.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def load(self) -> Any:
        """Return the value."""
        return self.value

    def __reduce__(self) -> Any:
        # As one piece: of pieces that Dask sends apart, some arrays would not be aligned.
        import cloudpickle

        return _unpacked, (cloudpickle.dumps(self.value, protocol=5),)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + _size(self.value)


def _unpacked(data: bytes) -> Sealed:
    return Sealed(pickle.loads(data))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """What a work makes of entries, within the task that needs it."""

    work: Work
    entries: tuple[Any, ...]
    shared: Any


@final
@dataclass(frozen=True, slots=True)
class _Argument:
    """Stands for an argument of a task."""

    position: int


def _is_remote(entry: Any) -> bool:
    return is_delayed(entry) or isinstance(entry, _Made)


def _task(entry: Any, key: str) -> Any:
    """Return a task that makes an entry, whose arguments are the tasks that it needs."""
    needed: dict[str, Any] = {}
    spelled = _spelled(entry, needed)
    return _delayed(_make, key, Sealed(spelled), *needed.values())


# These two call themselves, so they are not closures: as such they would hold blocks in a
# cycle until Python looks for those, and a worker short of memory would pause until then.


def _spelled(part: Any, needed: dict[str, Any]) -> Any:
    if is_delayed(part):
        needed[part.key] = part
        return _Argument(list(needed).index(part.key))
    if isinstance(part, _Made):
        entries = tuple(_spelled(entry, needed) for entry in part.entries)
        return _Made(part.work, entries, _spelled(part.shared, needed))
    return part


def _made(part: Any, arguments: tuple[Any, ...]) -> Any:
    if isinstance(part, _Argument):
        part = arguments[part.position]
    if isinstance(part, _Made):
        entries = [_made(entry, arguments) for entry in part.entries]
        return _aligned(part.work(*entries, **_made(part.shared, arguments)))
    return _aligned(loaded(part))


def _make(sealed: Sealed, *arguments: Any) -> Any:
    return _made(sealed.value, arguments)


def _aligned(value: Any) -> Any:
    """Return an array or a CSR matrix whose numbers begin where kernels want them."""
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if isinstance(value, csr_array):
        parts = value.data, value.indices, value.indptr
        is_aligned = all(part.flags.aligned for part in parts)
        return value if is_aligned else csr_array(tuple(map(_aligned, parts)), value.shape)
    return value


def _kept_apart(pair: Any) -> Any:
    """Return what is kept so that Dask takes it as it is, and what was found."""
    kept, found = pair
    is_plain = isinstance(kept, np.ndarray) or issparse(kept)
    return kept if is_plain else Sealed(kept), Sealed(found)


def _added_up(tasks: Sequence[Any]) -> Any:
    """Return a task that adds up what others find, neighbours first, in their order."""
    token, n_made = uuid4().hex, 0
    while True:
        few = []
        for start in range(0, len(tasks), FAN_IN):
            key, some = f"taxarbor-add-{token}-{n_made}", tasks[start : start + FAN_IN]
            few.append(_delayed(_sum, key, *some))
            n_made += 1
        if len(few) == 1:
            return few[0]
        tasks = few


def _made_of(found: Any, then: Then | None) -> Any:
    """Return a task that makes something of all that was found, on the worker that has it."""
    if then is None:
        return found
    return _delayed(_finished, f"{_name(then)}-{uuid4().hex}", found, Sealed(then))


def _finished(found: Sealed, then: Sealed) -> Sealed:
    # A copy, as the worker keeps what was found until all is done, and may begin anew.
    return Sealed(then.load()(copy(_aligned(found.load())), Run()))


def _sum(*found: Sealed) -> Sealed:
    return Sealed(reduce(merged, [one.load() for one in found]))


def _embedded(shared: dict[str, Any]) -> Any:
    """Return what tasks share, as a task if it is too large to go along with each."""
    try:
        is_small = len(pickle.dumps(shared, protocol=5)) <= SMALL
    except Exception:  # Dask can pickle more than Python can
        is_small = True
    return shared if is_small else once(shared)


def once(value: Any) -> Any:
    """Return a task for a value that others need, which then is in a graph only once."""
    return _delayed(_same, f"taxarbor-shared-{uuid4().hex}", Sealed(value))


def _same(value: Any) -> Any:
    return value


def _delayed(work: Callable[..., Any], key: str, *arguments: Any) -> Any:
    from dask.delayed import delayed

    return delayed(work, pure=False)(*arguments, dask_key_name=key)


def _name(work: Work) -> str:
    """Return the name of tasks; Dask's dashboard shows its words up to the first digit."""
    name = getattr(work, "__name__", type(work).__name__).strip("_<>").lower()
    return f"taxarbor-{name.replace('_', '-')}"


def _size(value: Any) -> int:
    """Return about how many bytes a value holds, for Dask to know when to spill it."""
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    if isinstance(value, csr_array):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if is_dataclass(value) and not isinstance(value, type):
        return sum(_size(getattr(value, part.name)) for part in fields(value))
    return int(getattr(value, "nbytes", 0)) or sys.getsizeof(value)


def _computed(kept: list[Any], found: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return a column that stays where its blocks are, and what was found, in this process.

    An error or Ctrl-C ends the tasks that run.
    """
    import dask

    tasks, n_kept = kept + found, len(kept)
    with _cluster_errors():
        client = _client()
        if client is None:
            made = dask.compute(*tasks)
            return list(made[:n_kept]), [loaded(value) for value in made[n_kept:]]
        held: list[Any] = []
        try:
            held = list(dask.persist(*tasks))
            return held[:n_kept], _fetched(client, held[n_kept:])
        except BaseException:
            _cancel(client, held or tasks)
            raise


def _client() -> Any:
    """Return the client of the cluster that is the current scheduler, None without one."""
    if "distributed" not in sys.modules:
        return None
    from dask.base import get_scheduler
    from distributed import Client

    client = getattr(get_scheduler(), "__self__", None)
    return client if isinstance(client, Client) else None


def _fetched(client: Any, held: Sequence[Any]) -> list[Any]:
    """Return what tasks on a cluster make; wait as long as it comes nearer to them."""
    found, futures = [], futures_in(held)
    watch = _Watch(client, [future.key for future in futures])
    for future in futures:
        coming = _begun(client, client.gather(future, asynchronous=True))
        while True:
            try:
                found.append(_aligned(loaded(coming.result(1.0))))
                break
            except TimeoutError as error:
                if not coming.done():
                    watch.look()
                elif coming.exception() is error:  # the work's own
                    raise
    return found


def _begun(client: Any, coroutine: Any) -> Any:
    return asyncio.run_coroutine_threadsafe(coroutine, client.loop.asyncio_loop)


def futures_in(held: Iterable[Any]) -> list[Any]:
    """Return the futures that persisted tasks stand for, in their order."""
    if "distributed" not in sys.modules:
        return []
    from distributed import futures_of

    return [future for one in held for future in futures_of([one])]


@final
class _Watch:
    """Ends the wait for tasks of a cluster that can no longer finish them.

    That is so if for a while

    - no task ran or was finished: there was no worker, or some paused for want of memory, and
      the others had nothing to do without them, or
    - workers died and came back to die again, on average more than once each.

    A task that runs may take its time, as may what is made anew after a worker was lost.
    """

    def __init__(self, client: Any, keys: list[str]) -> None:
        self._client, self._keys = client, keys
        self._left, self._moved = inf, monotonic()
        self._workers, self._most, self._deaths = frozenset[str](), 0, list[float]()

    def look(self) -> None:
        """Raise if the cluster is stuck."""
        is_stuck = monotonic() - self._moved > PAUSE
        asked = self._client.run_on_scheduler(
            _make_pulse(), self._keys, is_stuck=is_stuck, asynchronous=True
        )
        left, workers, is_idle = _answer(self._client, asked, PATIENCE)
        now, died = monotonic(), self._workers - workers
        if left != self._left or not is_idle:
            self._moved = now
        self._deaths += [now] * len(died)
        self._left, self._workers, self._most = left, workers, max(self._most, len(workers))
        if now - self._moved > PATIENCE:
            told = f"the Dask cluster has had no workers for {PATIENCE:.0f} s; start some,"
            if workers:
                told = (
                    "Dask workers are short of memory, and wait; use smaller chunks, or workers"
                )
            raise ClusterError(f"{told} of 500 MB or more each, and fit again")
        n_recent = sum(now - then < PATIENCE for then in self._deaths)
        if died and n_recent > self._most and now - self._deaths[0] > PATIENCE:
            raise ClusterError(DIED)


def _make_pulse() -> Callable[..., Any]:
    """Return what the scheduler runs; it is sent whole, as taxarbor may not be there."""

    def pulse(keys: list[str], *, is_stuck: bool, dask_scheduler: Any) -> Any:
        states, tasks = dask_scheduler.workers.values(), dask_scheduler.tasks
        paused = [state for state in states if state.status.name == "paused"]
        is_idle = not states or bool(paused and not any(state.executing for state in states))
        left, to_see = set(), [tasks[key] for key in keys if key in tasks]
        n_left = 0 if len(to_see) == len(keys) else float("inf")  # some are on their way
        while to_see:
            task = to_see.pop()
            if task.state != "memory" and task not in left:
                left.add(task)
                to_see += task.waiting_on or ()
        if is_stuck and is_idle and len(paused) < len(states):
            # What a worker had not begun when it paused stays there: dask/distributed#5235.
            for task in left:
                if task.processing_on in paused:
                    dask_scheduler._reschedule(task.key, stimulus_id="taxarbor-paused")
        return n_left + len(left), frozenset(dask_scheduler.workers), is_idle

    return pulse


def _answer(client: Any, coroutine: Any, seconds: float) -> Any:
    coming = _begun(client, coroutine)
    try:
        return coming.result(seconds)
    finally:
        coming.cancel()


def _cancel(client: Any, tasks: Iterable[Any]) -> None:
    """Let a cluster forget tasks, whether they run, are done or are on their way to it."""
    from distributed import Future

    if client.status == "running":
        with suppress(Exception):  # it is gone, and all that it knew
            futures = [Future(task.key, client) for task in tasks]
            _answer(client, client.cancel(futures, asynchronous=True), 2.0)


@contextmanager
def _cluster_errors() -> Iterator[None]:
    """Say what to do where a cluster fails; what a work raises of the data stays as it is."""
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        told = _advice(error)
        if told is None:
            raise
        raise ClusterError(told) from error


def _advice(error: Exception) -> str | None:
    from concurrent.futures import BrokenExecutor, CancelledError

    if isinstance(error, BrokenExecutor):
        return "a process of Dask's died, perhaps for want of memory; use smaller chunks"
    if "distributed" not in sys.modules:
        return None
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker):
        return DIED
    if isinstance(error, CancelledError):
        return (
            "the Dask cluster dropped what the fit needs: the scheduler is gone, or was "
            f"restarted, or data without a source were lost ({_first_line(error)}); check the "
            "cluster, connect a new Client, load the data again, and fit again"
        )
    if isinstance(error, CommClosedError | TimeoutError):
        return (
            f"the Dask cluster does not answer ({_first_line(error)}); check that its "
            "scheduler and workers run, connect a new Client, and fit again"
        )
    return None


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return text[:200] or type(error).__name__
