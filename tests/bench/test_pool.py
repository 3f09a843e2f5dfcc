"""Real processes; what they do is in a module that is written where they find it."""

import importlib
import itertools
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taxarbor.bench._pool import Pool

SOURCE = """
import os
import time

from threadpoolctl import threadpool_info

from taxarbor.bench._jobs import Outcome


def work(job, folder):
    if job.method == "sleep":
        time.sleep(600)
    if job.method == "die":
        os._exit(3)
    if job.method == "raise":
        raise RuntimeError("a bug")
    threads = max((one["num_threads"] for one in threadpool_info()), default=1)
    return Outcome(
        "done", 0.0, 0.0, {"seed": job.seed, "pid": os.getpid(), "threads": threads}
    )
"""
PARENT = """
from taxarbor.bench._jobs import Job
from taxarbor.bench._pool import Pool
from {module} import work

if __name__ == "__main__":
    jobs = [Job("", "none", 0, method, "", 2, 2, 0) for method in ("work", "sleep")]
    for _, outcome in Pool(work, None).run(jobs):
        print(outcome.measures["pid"], flush=True)
"""
numbers = itertools.count()


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A function that a new process can import: it is given the path of this one."""
    name = f"some_work_{os.getpid()}_{next(numbers)}"
    (tmp_path / f"{name}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module(name).work


def is_running(pid):
    try:
        os.kill(int(pid), 0)
        state = Path(f"/proc/{int(pid)}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return sys.platform != "linux"
    return not state.startswith(" Z")  # which has ended, but nobody asked how


def test_every_job_ends_once(work, made):
    jobs = [made.job(seed=seed) for seed in range(9)]
    found = dict(Pool(work, None, n_workers=2).run(jobs))
    assert set(found) == set(jobs)
    assert all(found[job].measures["seed"] == job.seed for job in jobs)
    pids = {outcome.measures["pid"] for outcome in found.values()}
    assert 1 <= len(pids) <= 2  # they are kept, not started for each job
    assert os.getpid() not in pids
    assert {outcome.measures["threads"] for outcome in found.values()} == {1}
    assert not any(map(is_running, pids))
    assert not multiprocessing.active_children()


def test_more_workers_than_jobs(work, made):
    found = list(Pool(work, None, n_workers=3).run([made.job()]))
    assert [job for job, _ in found] == [made.job()]
    assert found[0][1].status == "done"


def test_nothing_to_do(work):
    assert not list(Pool(work, None, n_workers=3).run([]))


def test_one_worker_keeps_the_order(work, made):
    jobs = [made.job(seed=seed) for seed in (5, 3, 4, 1)]
    assert [job for job, _ in Pool(work, None).run(iter(jobs))] == jobs


def test_a_job_that_takes_too_long_is_given_up_and_others_go_on(work, made):
    jobs = [made.job(), made.job("sleep"), made.job(seed=1)]
    begun = time.monotonic()
    found = dict(Pool(work, None, time_limit=1.0, patience=6.0).run(jobs))
    assert 7.0 <= time.monotonic() - begun < 60.0
    assert [found[job].status for job in jobs] == ["done", "timed out", "done"]
    assert found[jobs[1]].seconds == 1.0
    assert not found[jobs[1]].measures
    assert found[jobs[0]].measures["pid"] != found[jobs[2]].measures["pid"]
    assert not is_running(found[jobs[0]].measures["pid"])
    assert not multiprocessing.active_children()


def test_a_process_that_dies_is_told_and_others_go_on(work, made, capfd):
    ways = ["die", "work", "raise", "die", "work"]
    jobs = [made.job(way, seed=seed) for seed, way in enumerate(ways)]
    found = dict(Pool(work, None, n_workers=2).run(jobs))
    for job in jobs:
        expected = "done" if job.method == "work" else "failed: the process died"
        assert found[job].status == expected
    assert "RuntimeError: a bug" in capfd.readouterr().err
    assert not multiprocessing.active_children()


def test_who_stops_listening_ends_the_processes(work, made):
    jobs = [made.job(), *(made.job("sleep", seed=seed) for seed in range(3))]
    outcomes = Pool(work, None, n_workers=2).run(jobs)
    _, first = next(outcomes)
    children = multiprocessing.active_children()
    assert len(children) == 2
    outcomes.close()
    assert not multiprocessing.active_children()
    assert not any(
        is_running(pid) for pid in [first.measures["pid"], *(c.pid for c in children)]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they end when the fit does")
def test_processes_end_with_a_parent_that_is_killed(work, tmp_path):
    script = tmp_path / "main.py"
    script.write_text(PARENT.format(module=work.__module__), encoding="utf-8")
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.kill()
    parent.communicate()
    give_up = time.monotonic() + 20.0
    while is_running(child) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not is_running(child)


def test_an_error_while_planning_ends_the_processes(work, made):
    def jobs():
        yield made.job("sleep")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Pool(work, None, n_workers=2).run(jobs()))
    assert not multiprocessing.active_children()
