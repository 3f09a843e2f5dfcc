"""Running jobs: what is missing is run, in worker processes, and kept on disk.

Each job is a line of a file, appended as it ends; what a crash cuts off is dropped when the
file is next opened. Results carry a digest of the code: those of other code are made anew.

A worker is a fresh process with one thread, so that times compare. It does one job at a time;
a worker that takes too long, or dies, is replaced.
"""

import hashlib
import json
import math
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, final

import pandas as pd
from threadpoolctl import threadpool_limits

import taxarbor
from experiments.data import open_dataset
from experiments.methods import DONE, Job, Outcome, find_method, run_job
from taxarbor import FileFormatError

HERE = Path(__file__).parent
MATTERS = ("data.py", "methods.py", "variants.py")
"""Of what runs the experiments, what their results depend on."""
SHOWS = {"cli", "plot", "report", "explain"}
"""Of the package, what they do not depend on."""

RESULTS, CONTENTS = "results.jsonl", "data.json"
COLUMNS = (*Job._fields, *Outcome._fields[:-1], "code", "commit", "machine")
TIMED_OUT = "timed out"
DIED = "failed: the process died"

Work = Callable[[Job, Path | None], Outcome]


class Progress(NamedTuple):
    """Jobs that have ended, all that had to be run, the share of the work, and the last job."""

    n_done: int
    n_jobs: int
    share: float
    job: Job | None = None
    status: str = ""


def run_jobs(
    jobs: Iterable[Job],
    folder: Path | None,
    out: Path,
    *,
    n_workers: int = 1,
    time_limit: float = 600.0,
    observer: Callable[[Progress], None] = lambda _: None,
) -> "Store":
    """Run the jobs that have no result yet, and return all results.

    Results are on the disk, in the folder ``out``, as soon as a job ends. After an interrupt,
    or a crash, the same call goes on where it stopped. Raises a ValueError if the folder has
    results of other data of the same name.
    """
    jobs = list(dict.fromkeys(jobs))
    contents = _compare_contents({job.dataset for job in jobs}, folder, out)
    store = Store(out / RESULTS)
    text = json.dumps(contents, indent=1, sort_keys=True)
    (out / CONTENTS).write_text(text, encoding="utf-8")
    known = store.known()
    costs = {job: _cost(job, folder) for job in jobs if job not in known}
    # The longest first: no worker is left with one when all others are done.
    missing = sorted(costs, key=lambda job: -costs[job])
    total = sum(costs.values())
    done = 0.0
    observer(Progress(0, len(missing), 0.0))
    pool = Pool(run_job, folder, min(n_workers, max(len(missing), 1)), time_limit)
    with closing(pool.run(missing)) as outcomes:
        for n_done, (job, outcome) in enumerate(outcomes, 1):
            store.add(job, outcome)
            done += costs[job]
            observer(Progress(n_done, len(missing), done / total, job, outcome.status))
    return store


def _compare_contents(names: Iterable[str], folder: Path | None, out: Path) -> dict[str, str]:
    """Return digests of all data that the folder has results of, with these."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{str(out)!r} is a file; results need a folder")
    path = out / CONTENTS
    known: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name in sorted(names):
        digest = open_dataset(name, "none", 0, folder).digest()
        if known.setdefault(name, digest) != digest:
            raise ValueError(
                f"{str(out)!r} has results of other data called {name!r}; choose another "
                "folder for the results, or remove that one"
            )
    return known


def _cost(job: Job, folder: Path | None) -> float:
    """Return rough seconds, of which only the ratios matter."""
    n_rows = len(open_dataset(job.dataset, job.scaling, job.max_rows, folder).X)
    method = find_method(job.method)
    power = 2.0 if method.is_slow else 1.0
    children = math.sqrt(job.branching - 1)
    seconds = method.cost * children * (n_rows / 3e4) ** power * job.n_clusters / 50.0
    return float(seconds) + 0.02


@cache
def code_digest() -> str:
    """Return a short digest of the code that results depend on.

    All of the package but what only shows a tree, and the files here that make one: results
    stay valid when a caption changes, and go stale when a solver or a method's settings do.
    """
    root = Path(taxarbor.__file__).parent
    own = [path for path in root.rglob("*") if path.relative_to(root).parts[0] not in SHOWS]
    digest = hashlib.sha256()
    for path in [*sorted(own), *(HERE / name for name in MATTERS)]:
        if path.suffix in {".py", ".cpp", ".hpp"}:
            base = root if path.is_relative_to(root) else HERE
            digest.update(path.relative_to(base).as_posix().encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def commit() -> str:
    """Return the commit of the source, marked if there are changes; else the version."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return taxarbor.__version__
    return done.stdout.strip()


@cache
def machine() -> str:
    """Return what the machine is, in a few words, without its name."""
    return f"{_processor()}, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else platform.machine()


@final
class Store:
    """The results in one file of JSON lines, made if there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.exists() else b""
        end = content.rfind(b"\n") + 1
        try:
            rows = [json.loads(line) for line in content[:end].splitlines()]
            is_ours = all(set(Job._fields) <= set(row) for row in rows)
        except (ValueError, TypeError):
            is_ours = False
        if not is_ours or (content and not end and not content.startswith(b"{")):
            raise FileFormatError(
                f"{str(path)!r} is not a results file of this version; "
                "move it away or choose another folder"
            )
        path.touch()
        os.truncate(path, end)  # what a crash cut off

    def known(self) -> set[Job]:
        """Return the jobs that this code has results for; those that failed are tried again."""
        results = self.read()
        is_valid = (results["code"] == code_digest()) & (results["status"] == DONE)
        jobs = results.loc[is_valid, [*Job._fields]]
        return {Job(*values) for values in jobs.itertuples(index=False)}

    def add(self, job: Job, outcome: Outcome) -> None:
        """Append the outcome of a job and see that it is on the disk."""
        outcome = outcome._replace(status=" ".join(outcome.status.split()))
        origin = {"code": code_digest(), "commit": commit(), "machine": machine()}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(job._asdict() | outcome._asdict() | origin) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> pd.DataFrame:
        """Return a line per job, the last if it was run again, with a column per measure."""
        rows = [json.loads(line) for line in self._path.read_bytes().splitlines()]
        measures = dict.fromkeys(name for row in rows for name in row["measures"])
        results = pd.DataFrame(
            [row | row["measures"] for row in rows], columns=[*COLUMNS, *measures]
        )
        return results.drop_duplicates([*Job._fields, "code"], keep="last", ignore_index=True)


@final
@dataclass(slots=True, eq=False)
class _Worker:
    """A process that does one job at a time; it is started when there is one."""

    pool: "Pool"
    process: BaseProcess | None = None
    pipe: Connection | None = None

    def run(self, job: Job) -> Outcome:
        """Return the outcome of a job; a process that gives none is ended."""
        pool = self.pool
        try:
            pipe = self.pipe or self._start()
            pipe.send(job)
            if pipe.poll(pool.time_limit + pool.patience):
                outcome: Outcome = pipe.recv()
                return outcome
            status, seconds = TIMED_OUT, pool.time_limit
        except (EOFError, OSError):
            status, seconds = DIED, math.nan
        self.stop()
        return Outcome(status, seconds, math.nan, {})

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = theirs, self.pool.folder, self.pool.work
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        return self.pipe

    def stop(self) -> None:
        process, self.process, self.pipe = self.process, None, None
        if process is not None and process.pid is not None:
            process.kill()
            process.join()


@final
@dataclass(frozen=True, slots=True)
class Pool:
    """Where jobs run: a thread for each worker process."""

    work: Work  # a function of a module, as it travels by name
    folder: Path | None  # where the data is
    n_workers: int = 1
    time_limit: float = 600.0  # seconds that one fit may take
    patience: float = 20.0  # seconds beyond that, to start, load data and measure

    def run(self, jobs: Iterable[Job]) -> Generator[tuple[Job, Outcome], None, None]:
        """Yield each job with its outcome, as they end; begun in the order given."""
        jobs = list(jobs)
        if sys.platform != "win32":
            resource_tracker.ensure_running()  # when it is first started, it unblocks signals
        workers = [_Worker(self) for _ in range(self.n_workers)]
        idle = SimpleQueue[_Worker]()
        for worker in workers:
            idle.put(worker)

        def run_job(job: Job) -> tuple[Job, Outcome]:
            worker = idle.get()
            try:
                return job, worker.run(job)
            finally:
                idle.put(worker)

        threads = ThreadPoolExecutor(self.n_workers, initializer=_block_interrupts)
        futures = [threads.submit(run_job, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            while any(future.running() for future in futures):
                for worker in workers:
                    worker.stop()
                time.sleep(0.02)
            for worker in workers:
                worker.stop()


def _block_interrupts() -> None:
    """Block Ctrl-C in this thread and the processes that it starts: it ends the parent."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _serve(pipe: Connection, folder: Path | None, work: Work) -> None:
    """Do jobs until the parent hangs up."""
    with threadpool_limits(1):
        while True:
            try:
                job = pipe.recv()
            except EOFError:
                return
            pipe.send(work(job, folder))
