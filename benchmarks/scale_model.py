"""What a fit costs beyond this machine: a model of sweeps, rounds, bytes and tasks.

A fit is a list of steps. A step sweeps over the data, over the coordinates, or over numbers of
rows such as labels; it has a task per block, whose findings are added up, many at a time. So
the time of a step on ``W`` workers with ``B`` blocks is

    latency + B * task + ceil(B / W) * seconds of a block + bytes / bandwidth

and the fit adds what the client does by itself, which does not grow with the rows. Seconds per
row are slopes, of runs on this machine; latency and task are those of sweeps that do nothing.
"""

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import ceil, log
from threading import Lock
from typing import Any

import numpy as np
from scipy.sparse import issparse

from taxarbor.sweep._dask import FAN_IN

SMALL = 100_000
"""Bytes of arguments up to which they go along with each task."""
Q = 64
"""Coordinates of a row, at most."""


# What was measured


@dataclass(frozen=True)
class Step:
    """One sweep of a fit."""

    name: str
    reads: str
    """"data", "coordinates" or "rows": the widest of what is read."""
    keeps: bool
    """Whether a column is kept; then a block has three tasks, not one."""
    makes: bool
    """Whether that column is the coordinates."""
    n_rows: int
    n_blocks: int
    width: int
    """Numbers per row of what is read."""
    seconds: float
    busy: float
    """Seconds of all blocks together, by the threads that had them."""
    found: int
    """Bytes of what is found in all blocks together."""
    total: int
    """Bytes of the findings added up."""
    shared: int
    """Bytes that all tasks are given."""
    merged: int = 0
    """Bytes of the findings added up, where a worker makes something else of them."""

    @property
    def is_sample(self) -> bool:
        """Whether all that is found stays, and is but put together."""
        return self.found < 2 * max(self.merged, self.total)

    def bytes_found(self, n_blocks: int, n_features: int) -> float:
        """Return what would be found in so many blocks of rows of so many features.

        Samples have as many rows however many blocks there are; sums are found in each block.
        """
        found = self.found if self.is_sample else self.found * n_blocks / self.n_blocks
        return found * self.wider(n_features)

    def wider(self, n_features: int) -> float:
        """Return how much more is found with more features."""
        if self.reads == "rows":
            return 1.0
        if self.makes:  # a matrix of the coordinates
            return (Q_of(n_features) / Q_of(self.width)) ** 2
        there = n_features if self.reads == "data" else Q_of(n_features)
        return max(1.0, there / self.width)


def size_of(value: Any) -> int:
    """Return how many bytes are sent of a value; arrays are not copied for it."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        rest = len(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))
    except Exception:  # what cannot be sent costs nothing to send
        return 0
    return rest + sum(buffer.raw().nbytes for buffer in buffers)


@contextmanager
def traced(engine: type, X: np.ndarray | None) -> Iterator[list[Step]]:
    """List the sweeps that an engine makes; ``X`` are the rows, where they are in memory.

    Without them, only the time of a sweep as a whole is told, as the work is done elsewhere.
    """
    steps: list[Step] = []
    sweep, keep = engine.sweep, engine.keep
    engine.sweep = _watched(sweep, steps, X, keeps=False)
    engine.keep = _watched(keep, steps, X, keeps=True)
    try:
        yield steps
    finally:
        engine.sweep, engine.keep = sweep, keep


def _watched(method: Any, steps: list[Step], X: np.ndarray | None, *, keeps: bool) -> Any:
    def call(self: Any, work: Any, *columns: Any, then: Any = None, **shared: Any) -> Any:
        watch, merged, after = _Watch(work, X, keeps=keeps), [0], [0.0]

        def noted(found: Any, run: Any) -> Any:
            merged.append(size_of(found))
            begun = time.perf_counter()
            made = then(found, run)
            after.append(time.perf_counter() - begun)  # which no other block's work hides
            return made

        with_then = {} if then is None else {"then": then if X is None else noted}
        begun = time.perf_counter()
        result = method(self, work if X is None else watch, *columns, **shared, **with_then)
        seconds = time.perf_counter() - begun - after[-1]
        total = result[1] if keeps else result
        steps.append(
            Step(
                name=getattr(work, "__name__", type(work).__name__).strip("_"),
                reads=watch.reads,
                keeps=keeps,
                makes=watch.makes,
                n_rows=watch.n_rows,
                n_blocks=len(columns[0]),
                width=watch.width,
                seconds=seconds,
                busy=watch.busy,
                found=watch.found,
                total=size_of(total),
                shared=size_of(shared),
                merged=merged[-1],
            )
        )
        return result

    return call


class _Watch:
    """Does a work, and notes what it takes."""

    def __init__(self, work: Any, X: np.ndarray | None, *, keeps: bool) -> None:
        self._work, self._X, self._keeps, self._lock = work, X, keeps, Lock()
        self.reads, self.width, self.makes = "rows", 1, False
        self.n_rows, self.busy, self.found, self._seen = 0, 0.0, 0, 0

    def __call__(self, *entries: Any, **shared: Any) -> Any:
        begun = time.thread_time()
        result = self._work(*entries, **shared)
        busy = time.thread_time() - begun
        n_bytes = size_of(result[1] if self._keeps else result)
        with self._lock:
            self.busy += busy
            self.n_rows += max((len_of(entry) for entry in entries), default=0)
            self._seen += 1
            self.found += n_bytes
            if self._seen == 1:
                self._look(entries, result)
        return result

    def _look(self, entries: Sequence[Any], result: Any) -> None:
        for entry in entries:
            if getattr(entry, "ndim", 0) == 2:
                is_data = issparse(entry) or np.may_share_memory(entry, self._X)
                if self.reads != "data":
                    self.reads, self.width = (
                        "data" if is_data else "coordinates",
                        entry.shape[1],
                    )
        self.makes = self._keeps and getattr(result[0], "ndim", 0) == 2


def len_of(entry: Any) -> int:
    shape = getattr(entry, "shape", ())
    return int(shape[0]) if shape else 0


# The model


@dataclass(frozen=True)
class Costs:
    """The parameters of the model, as fitted."""

    data: float
    """Seconds per row and feature of all sweeps over the data together, but the next."""
    project: float
    """Seconds per row, feature and coordinate of making the coordinates."""
    coordinates: float
    """Seconds per row and coordinate of all sweeps over them together."""
    rows: float
    """Seconds per row of all sweeps over columns of one number."""
    client: float
    """Seconds of the client alone."""
    latency: float
    """Seconds of a sweep that does nothing."""
    task: float
    """Seconds that each task more takes of the scheduler."""
    read: float
    """Seconds per cell of reading it anew in a sweep over the data."""

    def of(self, step: Step, n_features: int, n_like: dict[str, int]) -> float:
        """Return the seconds per row of a step; steps of a kind share its cost evenly."""
        if step.makes:
            return n_features * (Q_of(n_features) * self.project + self.read)
        if step.reads == "data":
            return n_features * (self.data / n_like["data"] + self.read)
        if step.reads == "coordinates":
            return Q_of(n_features) * self.coordinates / n_like["coordinates"]
        return self.rows / n_like["rows"]


def Q_of(n_features: int) -> int:  # noqa: N802
    """Return the number of coordinates of rows with so many features."""
    return min(Q, n_features + 1)


@dataclass(frozen=True)
class Cluster:
    """Workers of one thread each."""

    n_workers: int
    bandwidth: float = 1.25e9
    """Bytes a second of a worker, and of the client."""
    storage: float = 0.5e9
    """Bytes a second that a worker reads."""
    memory: float = 16e9
    """Bytes of a worker."""


def counts_of(steps: Sequence[Step]) -> dict[str, int]:
    """Return how many steps there are of each kind."""
    kinds = [step.reads for step in steps if not step.makes]
    return {kind: max(1, kinds.count(kind)) for kind in ("data", "coordinates", "rows")}


def slopes(traces: Sequence[Sequence[Step]], totals: Sequence[float]) -> dict[str, float]:
    """Return seconds per row and number of each kind of step, and the client's seconds.

    Of runs with different numbers of rows: slopes through zero, by least squares.
    """
    sums: dict[str, list[float]] = {"data": [], "project": [], "coordinates": [], "rows": []}
    n_rows, alone = [], []
    for steps, total in zip(traces, totals, strict=True):
        n_rows.append(max(step.n_rows for step in steps))
        alone.append(total - sum(step.seconds for step in steps))
        for kind, found in sums.items():
            mine = [step for step in steps if _kind(step) == kind]
            found.append(sum(step.busy / _numbers(step) for step in mine))
    n = np.array(n_rows, dtype=float)
    told = {kind: float(n @ np.array(found) / (n @ n)) for kind, found in sums.items()}
    return told | {"client": float(np.median(alone))}


def _kind(step: Step) -> str:
    return "project" if step.makes else step.reads


def _numbers(step: Step) -> float:
    """Return how many numbers of a row a step goes through."""
    if step.makes:
        return float(step.width * Q_of(step.width))
    return 1.0 if step.reads == "rows" else float(step.width)


def n_tasks(step: Step, n_blocks: int) -> int:
    """Return how many tasks a step has with so many blocks."""
    adding, left = 0, n_blocks
    while left > 1 or not adding:
        left = ceil(left / FAN_IN)
        adding += left
    return n_blocks * (3 if step.keeps else 1) + adding


@dataclass(frozen=True)
class Prediction:
    """What the model says of a fit."""

    seconds: float
    working: float
    """Seconds of the workers."""
    scheduling: float
    """Seconds of the scheduler, as if no worker worked meanwhile."""
    sending: float
    client: float
    n_tasks: int
    n_sent: float
    """Bytes sent between workers, and to and from the client."""
    n_to_client: float
    n_per_worker: float
    """Bytes of coordinates and labels that a worker keeps."""


def predict(
    costs: Costs,
    steps: Sequence[Step],
    n_rows: int,
    n_features: int,
    *,
    cluster: Cluster,
    block_rows: int,
) -> Prediction:
    """Return what a fit of so many rows takes, if its steps are those of a smaller one."""
    n_blocks, kinds = ceil(n_rows / block_rows), counts_of(steps)
    waves = ceil(n_blocks / cluster.n_workers)
    working = scheduling = sending = sent = to_client = 0.0
    tasks = 0
    for step in steps:
        here = block_rows * costs.of(step, n_features, kinds)
        if step.reads == "data" and costs.read:
            here = max(here, 4.0 * n_features * block_rows / cluster.storage)
        count = n_tasks(step, n_blocks)
        working += waves * here
        scheduling += costs.latency + count * costs.task
        tasks += count
        wide = step.wider(n_features)
        found, total = step.bytes_found(n_blocks, n_features), step.total * wide
        given = step.shared * wide
        given *= n_blocks if given <= SMALL else cluster.n_workers
        # Workers send side by side; the last sums, and what tasks are given, pass one by one.
        levels = ceil(log(max(n_blocks, 2)) / log(FAN_IN))
        alone = given + total * (1 + FAN_IN * levels)
        sending += (found / cluster.n_workers + alone) / cluster.bandwidth
        # What the client gets is sent twice: the scheduler passes it on.
        travels = levels if step.is_sample else 1  # sums become few at once
        sent += travels * found * (1 - 1 / cluster.n_workers) + given + 2 * total
        to_client += total
    kept = 4.0 * Q_of(n_features) + 12.0
    return Prediction(
        seconds=working + scheduling + sending + costs.client,
        working=working,
        scheduling=scheduling,
        sending=sending,
        client=costs.client,
        n_tasks=tasks,
        n_sent=sent,
        n_to_client=to_client,
        n_per_worker=kept * n_rows / cluster.n_workers,
    )


# Measuring what tasks cost, and workers that only wait


def nothing(entry: Any, n_bytes: int = 0, seconds: float = 0.0) -> np.ndarray:
    """Wait as long as a work would take, and find as many bytes."""
    if seconds:
        time.sleep(seconds)
    return np.zeros(max(1, n_bytes // 8))


def keep_nothing(entry: Any, n_bytes: int = 0, seconds: float = 0.0) -> tuple[np.ndarray, Any]:
    return np.zeros(1), nothing(entry, n_bytes, seconds)


def overheads(
    engine: Any, sizes: Sequence[int] = (8, 64, 256), n_runs: int = 5
) -> dict[str, float]:
    """Return the latency of a sweep and what each task adds, in seconds, of empty sweeps."""
    empty = Step("nothing", "rows", False, False, 0, 0, 1, 0.0, 0.0, 0, 0, 0)
    counts, times = [], []
    engine.sweep(nothing, list(range(8)))
    for n_blocks in sizes:
        for work, method in ((nothing, engine.sweep), (keep_nothing, engine.keep)):
            taken = []
            for _ in range(n_runs):
                begun = time.perf_counter()
                method(work, list(range(n_blocks)))
                taken.append(time.perf_counter() - begun)
            keeps = work is keep_nothing
            counts.append(n_tasks(replace(empty, keeps=keeps), n_blocks))
            times.append(float(np.median(taken)))
    design = np.stack([np.ones(len(counts)), np.array(counts, dtype=float)], axis=1)
    weights = 1.0 / np.array(times)  # relative errors count
    latency, task = np.linalg.lstsq(design * weights[:, None], np.ones(len(times)), rcond=None)[
        0
    ]
    return {"latency": max(0.0, float(latency)), "task": max(0.0, float(task))}


def replay(
    engine: Any, steps: Sequence[Step], n_blocks: int, seconds: Sequence[float]
) -> float:
    """Run the steps of a fit with works that only wait; return the seconds of all."""
    begun = time.perf_counter()
    for step, wait in zip(steps, seconds, strict=True):
        n_bytes = round(step.bytes_found(n_blocks, step.width) / n_blocks)
        given = {"n_bytes": n_bytes, "seconds": wait}
        if step.keeps:
            engine.keep(keep_nothing, list(range(n_blocks)), **given)
        else:
            engine.sweep(nothing, list(range(n_blocks)), **given)
    return time.perf_counter() - begun


def simulate(
    steps: Sequence[Step], costs: Costs, n_features: int, cases: Sequence[tuple[int, int, int]]
) -> list[dict[str, float]]:
    """Compare the model with workers that wait: (workers, blocks, rows of a block) each.

    The scheduler, the graphs and the findings are real; the workers share this process.
    """
    from distributed import Client, LocalCluster

    from taxarbor.sweep import DaskEngine

    told, kinds = [], counts_of(steps)
    for n_workers, n_blocks, block_rows in cases:
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=False,
                dashboard_address=None,
                memory_limit=0,
            ) as workers,
            Client(workers),
        ):
            engine = DaskEngine()
            before = overheads(engine, n_runs=3)
            bare = replace(costs, client=0.0, read=0.0)
            waits = [block_rows * bare.of(step, n_features, kinds) for step in steps]
            took = replay(engine, steps, n_blocks, waits)
            after = overheads(engine, n_runs=3)
            engine.close()
        found = {name: 0.5 * (before[name] + after[name]) for name in before}
        here = replace(bare, **found)
        flat = [replace(step, shared=0, total=0) for step in steps]
        said = predict(
            here,
            flat,
            n_blocks * block_rows,
            n_features,
            cluster=Cluster(n_workers),
            block_rows=block_rows,
        )
        told.append(
            {"workers": n_workers, "blocks": n_blocks, "rows of a block": block_rows}
            | {"measured": took, "predicted": said.working + said.scheduling}
            | {"least": sum(waits) * n_blocks / n_workers, "load": os.getloadavg()[0]}
            | found
        )
    return told


def completed(steps: Sequence[Step], on_cluster: Sequence[Step]) -> list[Step]:
    """Add the steps that only a cluster has: rows that a client in memory need not fetch."""
    names = {step.name for step in steps}
    width = max(step.width for step in steps)
    more = [
        replace(step, reads="data", width=width, found=step.total, busy=0.0)
        for step in on_cluster
        if step.name not in names
    ]
    return [*steps, *more]


def to_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [asdict(step) for step in steps]


def from_json(told: Sequence[dict[str, Any]]) -> list[Step]:
    return [Step(**one) for one in told]
