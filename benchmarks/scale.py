"""Ten million rows: ours beside Spark, dask-ml and scikit-learn, and what more would cost.

    python benchmarks/scale.py --cache FILE [--write docs/scale.md] [--rows N] [--only NAME ...]
    python benchmarks/scale.py --quick

Each contestant has a process of its own, one at a time. What was measured is a line of the
cache file, and is not measured again: a run can be done in pieces, and the page is written from
all of them. A contestant that does not end in time is reported to take longer than that.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scale_contest
import scale_model
import scale_page
from scale_data import Table

from taxarbor import Taxarbor

HERE = Path(__file__).resolve().parent
MIN_BYTES = 1_000_000_000
"""Bytes that a process needs for packages and samples, whatever the rows."""


@dataclass(frozen=True)
class Job:
    """One measurement, in a process of its own."""

    name: str
    kind: str
    n_rows: int
    n_threads: int = 2
    parquet: bool = False

    @property
    def key(self) -> str:
        """What the cache knows it by."""
        return f"{self.name}/{self.kind}/{self.n_rows}"


def jobs_of(n_rows: int) -> Iterator[Job]:
    """Yield all measurements, the short ones first."""
    growth = sorted({n_rows // 10, n_rows // 5, n_rows // 2, n_rows})
    for n in growth:
        yield Job("ours-2", "planted", n)
    for n in growth:
        yield Job("ours-1", "planted", n, 1)
    for n in growth:
        yield Job("ours-dask", "planted", n, parquet=True)
    yield Job("overheads", "planted", 0, 1)
    yield Job("threads", "planted", min(n_rows, 1_000_000))
    yield Job("disk", "planted", 2 * n_rows)
    yield Job("ours-2", "planted", 2 * n_rows)
    with_files = {"ours-parquet", "ours-dask", "spark", "dask-ml"}
    for kind in ("planted", "shared"):
        for name in scale_contest.CONTESTANTS:
            threads = 1 if name == "ours-1" else 2
            yield Job(name, kind, n_rows, threads, parquet=name in with_files)


# In the process of a job


def run_job(job: Job, folder: Path) -> dict[str, Any]:
    """Measure, in this process."""
    table = Table(folder, job.kind, job.n_rows)
    if job.name in scale_contest.CONTESTANTS:
        return scale_contest.contest(job.name, table)
    others: dict[str, Callable[[], dict[str, Any]]] = {
        "disk": lambda: fit_from_disk(table),
        "threads": lambda: alternate_threads(job.n_rows),
        "overheads": measure_overheads,
    }
    return others[job.name]()


def disk_limit(table: Table) -> int:
    """Return the bytes that a process may have: half of what the data take."""
    return max(MIN_BYTES, table.n_bytes // 2)


def fit_from_disk(table: Table) -> dict[str, Any]:
    """Fit an array in a file under a limit on the process's own data."""
    limit = disk_limit(table)
    outcome = scale_contest.ours_from_array(table, limit)
    return scale_contest.describe(table, outcome) | {"limit": limit, "data": table.n_bytes}


def alternate_threads(n_rows: int) -> dict[str, Any]:
    """Time one thread and two in turn, five times each after one that does not count."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((64, 40), dtype=np.float32)
    X = rng.standard_normal((n_rows, 40), dtype=np.float32)
    X += centers[rng.integers(0, 64, n_rows)]
    taken: dict[int, list[float]] = {1: [], 2: []}
    labels = {}
    for run in range(6):
        for n_jobs, times in taken.items():
            begun = time.perf_counter()
            model = Taxarbor(64, random_state=0, n_jobs=n_jobs).fit(X)
            if run:
                times.append(time.perf_counter() - begun)
            labels[n_jobs] = np.asarray(model.labels_)
    is_same = bool(np.array_equal(labels[1], labels[2]))
    return {str(n): float(np.median(times)) for n, times in taken.items()} | {"same": is_same}


def measure_overheads() -> dict[str, Any]:
    """Time tasks that do nothing, and the hashes of rows."""
    with scale_contest.cluster() as client:
        overheads = scale_model.measure_overheads(client)
    return overheads | {"draw": scale_model.measure_draw()}


# In the process that starts them


def read_cache(path: Path) -> dict[str, Any]:
    """Return what was measured, by key; of several lines the last counts."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line["key"]: line for line in map(json.loads, lines)}


def measure(job: Job, arguments: argparse.Namespace) -> dict[str, Any]:
    """Make the data and measure, in a process of its own."""
    if job.n_rows and job.name != "threads":
        why = Table(arguments.data, job.kind, job.n_rows).write(parquet=job.parquet)
        if why:
            return {"missing": why}
    call = [sys.executable, __file__, "--job", json.dumps(job.__dict__)]
    call += ["--data", str(arguments.data)]
    threads = {"OMP_NUM_THREADS": str(job.n_threads), "PYTHONWARNINGS": "ignore"}
    child = subprocess.Popen(
        call,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | threads,
    )
    try:
        out, problem = child.communicate(timeout=arguments.limit)
    except subprocess.TimeoutExpired:
        for pid in reversed(scale_contest.family(child.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        child.communicate()
        return {"over": arguments.limit}
    if child.returncode:
        last = problem.strip().splitlines()[-1:] or ["no message"]
        return {"failed": f"{last[0]} (exit {child.returncode})"}
    return dict(json.loads(out.strip().splitlines()[-1]))


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path("build/scale/measured.jsonl"))
    parser.add_argument("--data", type=Path, default=Path("build/scale"), help="where data go")
    parser.add_argument("--write", type=Path, help="write the page to this Markdown file")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", nargs="*", help="jobs, by name or key; none: only the page")
    parser.add_argument("--limit", type=float, help="seconds that a job may take")
    parser.add_argument("--quick", action="store_true", help="200,000 rows, 25 s a job")
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows = 200_000
    if arguments.limit is None:
        arguments.limit = 25.0 if arguments.quick else 5400.0
    return arguments


def main() -> None:
    arguments = arguments_of()
    if arguments.job:
        job = Job(**json.loads(arguments.job))
        print(json.dumps(run_job(job, arguments.data)))
        return
    arguments.cache.parent.mkdir(parents=True, exist_ok=True)
    known = read_cache(arguments.cache)
    for job in jobs_of(arguments.rows):
        is_asked = arguments.only is None or {job.name, job.key} & set(arguments.only)
        if not is_asked or (job.key in known and not arguments.again):
            continue
        result = measure(job, arguments)
        stamp = {"key": job.key, "commit": scale_page.commit(), "machine": scale_page.machine()}
        known[job.key] = stamp | result
        with arguments.cache.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[job.key]) + "\n")
        print(job.key, json.dumps(result), flush=True)
    page = scale_page.page(known, arguments.rows)
    if arguments.write:
        arguments.write.write_text(page, encoding="utf-8")
    elif arguments.only is None:
        print(page)


if __name__ == "__main__":
    main()
