"""Worker processes that can be stopped: jobs side by side, each within a time limit.

A worker is a fresh process with one thread, so that times compare. The parent hands it one
job at a time; a worker that takes too long, or dies, is replaced.
"""

import ctypes
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import final

from threadpoolctl import threadpool_limits

from taxarbor.bench._jobs import Job, Outcome

TIMED_OUT = "timed out"
DIED = "failed: the process died"
PATIENCE = 20.0
"""Seconds that a worker has beyond the limit, to start, load data and measure."""

PR_SET_PDEATHSIG = 1  # of linux/prctl.h

Work = Callable[[Job, Path | None], Outcome]


@final
@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job
    deadline: float

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


@final
@dataclass(frozen=True, slots=True)
class Pool:
    """Where jobs run.

    Attributes
    ----------
    work : callable
        What a worker does with a job; a function of a module, as it travels by name.
    folder : Path or None
        Where the data is.
    n_workers : int
        Processes side by side.
    time_limit : float
        Seconds that one fit may take.
    patience : float
        Seconds that a worker has beyond that, to start, load data and measure.
    """

    work: Work
    folder: Path | None
    n_workers: int = 1
    time_limit: float = 600.0
    patience: float = PATIENCE

    def run(self, jobs: Iterable[Job]) -> Generator[tuple[Job, Outcome], None, None]:
        """Yield each job with its outcome, as they end; begun in the order given."""
        waiting = iter(jobs)
        busy: list[_Worker] = []
        try:
            for _ in range(self.n_workers):
                self._employ(busy, next(waiting, None), None)
            while busy:
                for worker in _ready(busy):
                    busy.remove(worker)
                    job, outcome = worker.job, _collect(worker, self.time_limit)
                    idle = worker if worker.process.is_alive() else None
                    # The next job goes out first: a slow reader of outcomes idles nobody.
                    self._employ(busy, next(waiting, None), idle)
                    yield job, outcome
        finally:
            for worker in busy:
                worker.stop()

    def _employ(self, busy: list[_Worker], job: Job | None, idle: _Worker | None) -> None:
        """Give a job to an idle worker, or a new one; without a job, send the idle one home."""
        if job is None:
            if idle is not None:
                idle.stop()
            return
        worker = idle or self._hire(job)
        worker.job = job
        worker.deadline = time.monotonic() + self.time_limit + self.patience
        busy.append(worker)
        worker.pipe.send(job)

    def _hire(self, job: Job) -> _Worker:
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        arguments = theirs, self.folder, self.work
        process = context.Process(target=_serve, args=arguments, daemon=True)
        with _interrupts_held():
            process.start()
        theirs.close()
        return _Worker(process, pipe, job, 0.0)


def _ready(busy: list[_Worker]) -> list[_Worker]:
    """Wait for the next workers that have an answer, died, or ran out of time."""
    soonest = min(worker.deadline for worker in busy)
    patience = max(soonest - time.monotonic(), 0.0)
    answered = wait([worker.pipe for worker in busy], timeout=patience)
    now = time.monotonic()
    return [worker for worker in busy if worker.pipe in answered or worker.deadline <= now]


def _collect(worker: _Worker, time_limit: float) -> Outcome:
    """Return a worker's answer; one without an answer is dismissed."""
    try:
        if worker.pipe.poll():
            outcome: Outcome = worker.pipe.recv()
            return outcome
        status, seconds = TIMED_OUT, time_limit
    except (EOFError, OSError):
        status, seconds = DIED, float("nan")
    worker.stop()
    return Outcome(status, seconds, float("nan"), {})


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back: what is started meanwhile never hears it, not even while it imports."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # when it is first started, it lets signals through
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _end_with_parent() -> None:
    """Have the kernel, where it can, end this process with its parent, however that ends.

    Elsewhere a worker whose parent was killed notices when its fit is done.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _serve(pipe: Connection, folder: Path | None, work: Work) -> None:
    """Do jobs until the parent hangs up."""
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
    with threadpool_limits(1):
        while True:
            try:
                job = pipe.recv()
            except EOFError:
                return
            pipe.send(work(job, folder))
