"""What a fit costs beyond this machine: a model of two rounds over the data.

A fit draws row numbers and finds the tree on the client, which costs little and does not grow
with the features; its workers read the blocks that hold sampled rows, and then read and route
all blocks. So with ``B`` blocks on ``W`` workers it takes

    client + draw * rows + (sampled blocks + B) / W * reading + B / W * routing
    + 2 * latency + tasks * task + sample / bandwidth

Routing is a slope of fits in memory, the client what is left of them where there are no rows.
Latency and task are those of tasks that do nothing; reading is what fits of files take beyond.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp
from typing import Any

import numpy as np

from taxarbor import native
from taxarbor.estimators._taxarbor import SAMPLE_ROWS

SENT_PER_BLOCK = 2_000
"""Bytes of a task and of the size that it returns, about."""


@dataclass(frozen=True)
class Costs:
    """What was measured, in seconds."""

    client: float
    """Of a fit: all that is done on the sample."""
    draw: float
    """Of a row: its hash."""
    route: float
    """Of a row and feature."""
    latency: float
    """Of a round of tasks."""
    task: float
    """Of a task, by the scheduler."""
    read: float = 0.0
    """Of a cell that is read from a file."""


@dataclass(frozen=True)
class Cluster:
    """Workers of one core each."""

    n_workers: int
    bandwidth: float = 1.25e9
    """Bytes a second between two machines."""
    storage: float = 0.5e9
    """Bytes a second that a worker reads."""


@dataclass(frozen=True)
class Prediction:
    """The prediction of the model for a fit, in seconds, tasks and bytes."""

    reading: float
    routing: float
    scheduling: float
    sending: float
    client: float
    n_tasks: int
    n_sent: float

    @property
    def seconds(self) -> float:
        """All of it, nothing side by side."""
        return self.reading + self.routing + self.scheduling + self.sending + self.client


def n_sampled_blocks(n_blocks: int, n_sample: int) -> float:
    """Return the average number of equal blocks that have sampled rows."""
    return n_blocks * (1.0 - exp(-n_sample / n_blocks))


def n_tasks(n_blocks: int, n_sample: int) -> int:
    """Return the number of tasks that read blocks, take rows, route, and return the sizes."""
    return 2 * ceil(n_sampled_blocks(n_blocks, n_sample)) + 3 * n_blocks


def predict(
    costs: Costs,
    n_rows: int,
    n_features: int,
    *,
    cluster: Cluster,
    block_rows: int,
    n_sample: int = SAMPLE_ROWS,
) -> Prediction:
    """Return what a fit of so many rows takes."""
    n_blocks, workers = ceil(n_rows / block_rows), cluster.n_workers
    sampled = n_sampled_blocks(n_blocks, n_sample)
    cells = float(block_rows * n_features)
    reading = max(costs.read * cells, 4.0 * cells / cluster.storage)
    rounds = ceil(sampled / workers) + ceil(n_blocks / workers)
    tasks = n_tasks(n_blocks, n_sample)
    sample_bytes = 4.0 * min(n_sample, n_rows) * n_features
    return Prediction(
        reading=rounds * reading,
        routing=ceil(n_blocks / workers) * costs.route * cells,
        scheduling=2.0 * costs.latency + tasks * costs.task,
        sending=sample_bytes / cluster.bandwidth,
        client=costs.client + costs.draw * n_rows,
        n_tasks=tasks,
        n_sent=2.0 * sample_bytes + SENT_PER_BLOCK * n_blocks,  # the scheduler passes it on
    )


def fit_line(n_rows: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Return seconds without rows, and per row; relative errors count."""
    design = np.stack([np.ones(len(n_rows)), np.asarray(n_rows, dtype=float)], axis=1)
    weights = 1.0 / np.asarray(seconds, dtype=float)
    line = np.linalg.lstsq(design * weights[:, None], np.ones(len(n_rows)), rcond=None)[0]
    return max(0.0, float(line[0])), max(0.0, float(line[1]))


def measure_draw(n_rows: int = 20_000_000) -> float:
    """Return the seconds that the hash of a row takes."""
    numbers = np.arange(n_rows)
    begun = time.perf_counter()
    native.hashes(0, numbers)
    return (time.perf_counter() - begun) / n_rows


def measure_overheads(
    client: Any, sizes: Sequence[int] = (8, 64, 512), n_runs: int = 5
) -> dict[str, float]:
    """Return the latency of a round and what each task adds, in seconds, of empty tasks."""
    client.gather(client.map(_nothing, range(8), pure=False))
    times = []
    for n in sizes:
        taken = []
        for _ in range(n_runs):
            begun = time.perf_counter()
            client.gather(client.map(_nothing, range(n), pure=False))
            taken.append(time.perf_counter() - begun)
        times.append(float(np.median(taken)))
    latency, task = fit_line(sizes, times)
    return {"latency": latency, "task": task}


def _nothing(value: int) -> int:
    return value
