"""Results on disk; then real processes, with what they do in a module of its own."""

import getpass
import importlib
import itertools
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import taxarbor
from experiments import run
from experiments.data import open_dataset
from experiments.methods import METHODS, Job, Outcome
from experiments.plan import Setup, plan_results, plan_sparsity, plan_sweep, plan_table
from experiments.run import COLUMNS, Pool, Store, code_digest, commit, machine, run_jobs
from taxarbor import FileFormatError

TRICKY = ('{"alpha": 0.5, "balance": [0.9, 1.1]}', '{"note": "a \\"quote\\", a comma"}')
NAMES = ("animals", "löwen 🦁", 'a "b", c', "two\nlines", "123", "1e5", "nan", "", "True")
WORK = """
import os
import time

from threadpoolctl import threadpool_info

from experiments.methods import Outcome


def work(job, folder):
    if job.method == "sleep":
        time.sleep(600)
    if job.method == "die":
        os._exit(3)
    if job.method == "raise":
        raise RuntimeError("a bug")
    threads = max((one["num_threads"] for one in threadpool_info()), default=1)
    measures = {"seed": job.seed, "pid": os.getpid(), "threads": threads}
    return Outcome("done", 0.0, 0.0, measures)
"""
numbers = itertools.count()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.jsonl"


def measures_of(store, job):
    results = store.read()
    for field in Job._fields:
        results = results[results[field] == getattr(job, field)]
    (line,) = results.to_dict("records")
    return {name: value for name, value in line.items() if name not in COLUMNS}


def test_jobs_come_back(tmp_path, made):
    path = tmp_path / "a" / "b" / "results.jsonl"
    assert Store(path).known() == set()
    assert tuple(Store(path).read().columns) == COLUMNS
    jobs = [made.job(dataset=name, settings=text) for name in NAMES for text in TRICKY]
    kinds = {"height": np.float64(3.5), "n_leaves": 3}
    outcomes = [made.outcome(0.25 * n, rand=n / 7, **kinds) for n in range(len(jobs))]
    store = Store(path)
    for job, outcome in zip(jobs, outcomes, strict=True):
        store.add(job, outcome)
    for again in (store, Store(path)):
        assert again.known() == set(jobs)
        results = again.read()
        assert len(results) == len(jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            assert measures_of(again, job) == outcome.measures  # to the last bit
        assert results["seconds"].tolist() == [outcome.seconds for outcome in outcomes]
        assert set(results["status"]) == {"done"}
        assert set(results["machine"]) == {machine()}


def test_what_failed_is_told_and_tried_again(path, made):
    for status in ("timed out", "failed: the process died", 'failed: a,\n"b"'):
        path.unlink(missing_ok=True)
        store = Store(path)
        store.add(made.job(), made.outcome(status=status))
        store.add(made.job(seed=1), Outcome(status, math.nan, math.nan, {}))
        store.add(made.job(seed=2), made.outcome(2.5, rand=math.nan))
        store = Store(path)
        assert store.known() == {made.job(seed=2)}
        assert math.isnan(measures_of(store, made.job(seed=2))["rand"])
        results = store.read()
        assert results["status"].tolist()[:2] == [" ".join(status.split())] * 2
        assert results["seconds"].sum() == 3.5
        for rand in (0.25, 0.75):  # done at last, and again: the last counts
            store.add(made.job(), made.outcome(rand=rand))
        assert store.known() == {made.job(), made.job(seed=2)}
        assert measures_of(store, made.job())["rand"] == 0.75
        assert len(store.read()) == 3


def test_a_torn_record_loses_no_other(path, made):
    """Cut at every byte of the last record; the rest is there, and can be added to."""
    others = made.job(settings=TRICKY[0]), made.job(dataset=NAMES[3], seed=1)
    last = made.job(dataset="löwen 🦁\n", settings=TRICKY[1], seed=2)
    store = Store(path)
    for job in others:
        store.add(job, made.outcome())
    before = path.read_bytes()
    store.add(last, Outcome("done", 1.0, 1.0, {"height": 5.0, "rand": 0.375}))
    whole = path.read_bytes()
    for size in range(len(before), len(whole)):
        path.write_bytes(whole[:size])
        assert Store(path).known() == {*others}, size
        assert path.read_bytes() == before
    Store(path).add(last, made.outcome())
    assert Store(path).known() == {*others, last}
    for size in range(1, 40):  # the first record
        path.write_bytes(whole[:size])
        assert Store(path).known() == set()


def test_results_of_other_code_do_not_count(path, made, monkeypatch):
    store = Store(path)
    store.add(made.job(), made.outcome(rand=0.25))
    ours = code_digest()
    monkeypatch.setattr(run, "code_digest", lambda: "123456789012")
    assert store.known() == set()
    store.add(made.job(), made.outcome(rand=0.75))
    assert store.known() == {made.job()}
    results = store.read().set_index("code")["rand"]
    assert results.to_dict() == {ours: 0.25, "123456789012": 0.75}
    monkeypatch.undo()
    assert store.known() == {made.job()}


def test_a_foreign_file_is_refused_and_left_alone(path):
    for foreign in (b"a,b\n1,2\n", b"hello", b'{"a": 1}\n', b"\n", b"\xff\xfe", b"[1]\n"):
        path.write_bytes(foreign)
        with pytest.raises(FileFormatError, match="not a results file of this version"):
            Store(path)
        assert path.read_bytes() == foreign


def test_the_digest_is_of_the_code_that_matters(tmp_path, monkeypatch):
    """Of a package of a few files, and of experiments, in place of the real ones."""
    src, own = tmp_path / "src", tmp_path / "experiments"
    monkeypatch.setattr(taxarbor, "__file__", str(src / "__init__.py"))
    monkeypatch.setattr(run, "HERE", own)

    def write(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.name} {next(numbers)}", encoding="utf-8")

    matters = [src / name for name in ("grow.py", "optim/_loss.py", "native/src/pair.cpp")]
    matters += [own / name for name in ("data.py", "methods.py", "variants.py")]
    for path in matters:
        write(path)
    before = code_digest.__wrapped__()
    assert len(before) == 12
    others = [src / name for name in ("cli/_app.py", "plot/_mpl.py", "data/animals.csv")]
    for path in (*others, src / "x.pyc", own / "results.py"):
        write(path)
        assert code_digest.__wrapped__() == before
    for path in (*matters, src / "optim/_new.py"):
        write(path)
        assert code_digest.__wrapped__() != before
        before = code_digest.__wrapped__()
    (src / "optim/_new.py").rename(src / "optim/_newer.py")
    assert code_digest.__wrapped__() != before


def test_where_results_were_made(monkeypatch):
    text = machine()
    assert platform.python_version() in text
    for name in (platform.node(), getpass.getuser()):
        assert name not in text.split()
    for error in (OSError(), subprocess.CalledProcessError(128, "git")):
        monkeypatch.setattr(subprocess, "run", lambda *_, error=error, **__: raise_(error))
        assert commit.__wrapped__() == taxarbor.__version__


def raise_(error):
    raise error


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A function that a new process can import: it is given the path of this one."""
    name = f"some_work_{os.getpid()}_{next(numbers)}"
    (tmp_path / f"{name}.py").write_text(WORK, encoding="utf-8")
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
    return not state.startswith(" Z")  # which has ended, but was not waited for


def test_every_job_ends_once(work, made):
    jobs = [made.job(seed=seed) for seed in (5, 3, 4, 1, 2, 0)]
    results = dict(Pool(work, None, n_workers=2).run(jobs))
    assert set(results) == set(jobs)
    assert all(results[job].measures["seed"] == job.seed for job in jobs)
    pids = {outcome.measures["pid"] for outcome in results.values()}
    assert 1 <= len(pids) <= 2  # they are kept, not started for each job
    assert os.getpid() not in pids
    assert {outcome.measures["threads"] for outcome in results.values()} == {1}
    assert not any(map(is_running, pids))
    assert [job for job, _ in Pool(work, None).run(iter(jobs))] == jobs  # one keeps the order
    assert not list(Pool(work, None, n_workers=3).run([]))
    assert not multiprocessing.active_children()


@pytest.mark.long
def test_a_job_that_takes_too_long_is_given_up_and_others_go_on(work, made):
    jobs = [made.job(), made.job("sleep"), made.job(seed=1)]
    begun = time.monotonic()
    results = dict(Pool(work, None, time_limit=1.0, patience=6.0).run(jobs))
    assert 7.0 <= time.monotonic() - begun < 60.0
    assert [results[job].status for job in jobs] == ["done", "timed out", "done"]
    assert results[jobs[1]].seconds == 1.0
    assert not results[jobs[1]].measures
    assert results[jobs[0]].measures["pid"] != results[jobs[2]].measures["pid"]
    assert not is_running(results[jobs[0]].measures["pid"])
    assert not multiprocessing.active_children()


@pytest.mark.long
def test_a_process_that_dies_is_told_and_others_go_on(work, made, capfd):
    ways = ["die", "work", "raise", "die", "work"]
    jobs = [made.job(way, seed=seed) for seed, way in enumerate(ways)]
    results = dict(Pool(work, None, n_workers=2).run(jobs))
    for job in jobs:
        expected = "done" if job.method == "work" else "failed: the process died"
        assert results[job].status == expected
    assert "RuntimeError: a bug" in capfd.readouterr().err
    assert not multiprocessing.active_children()


def test_who_stops_listening_ends_the_processes(work, made):
    jobs = [made.job(), *(made.job("sleep", seed=seed) for seed in range(3))]
    outcomes = Pool(work, None, n_workers=2).run(jobs)
    _, first = next(outcomes)
    children = multiprocessing.active_children()
    assert len(children) == 2
    outcomes.close()
    pids = [first.measures["pid"], *(child.pid for child in children)]
    assert not any(is_running(pid) for pid in pids)

    def interrupted():
        yield made.job("sleep")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Pool(work, None, n_workers=2).run(interrupted()))
    assert not multiprocessing.active_children()


def values(store):
    """Return all that does not depend on the speed of the machine."""
    results = store.read().drop(columns=["seconds", "peak_mb"])
    return {tuple(line[:8]): line[8:] for line in results.fillna(-9.0).itertuples(index=False)}


@pytest.mark.long
@pytest.mark.usefixtures("small_registry")
def test_interrupted_or_not_the_results_are_the_same(tmp_path, animals):
    """One process, interrupted, then two; against two that are not; then nothing is left."""
    states = []

    def interrupt(state):
        states.append(state)
        if state.n_done == 4:
            raise KeyboardInterrupt

    wanted = list(plan_results(animals))
    parted, whole = tmp_path / "parted", tmp_path / "whole"
    with pytest.raises(KeyboardInterrupt):
        run_jobs(wanted, None, parted, observer=interrupt)
    assert not multiprocessing.active_children()
    kept = Store(parted / "results.jsonl").known()
    assert kept == {state.job for state in states[1:]}
    assert len(kept) == 4
    assert (states[0].n_done, states[0].n_jobs, states[0].job) == (0, len(wanted), None)

    rest = []
    parted_store = run_jobs(wanted, None, parted, n_workers=2, observer=rest.append)
    assert {state.job for state in rest[1:]} == set(wanted) - kept
    assert [state.n_done for state in rest] == list(range(len(wanted) - 4 + 1))
    assert {state.n_jobs for state in rest} == {len(wanted) - 4}
    shares = [state.share for state in rest]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert {state.status for state in rest[1:]} == {"done"}

    whole_store = run_jobs(wanted, None, whole, n_workers=2)
    assert values(parted_store) == values(whole_store)
    assert whole_store.known() == set(wanted)
    again = []
    run_jobs(wanted, None, whole, observer=again.append)
    assert [(state.n_done, state.n_jobs) for state in again] == [(0, 0)]


@pytest.mark.long
@pytest.mark.usefixtures("small_registry")
def test_long_jobs_go_first_and_failures_are_kept(tmp_path, made):
    """Four rows: k-means cannot make six clusters of them, or eight."""
    X, y = made.blobs()
    made.data(tmp_path, "some", X=X[:4], y=y[:4])
    setup = Setup(tmp_path, n_seeds=1, strengths=(1.0,))
    states = []
    store = run_jobs(plan_sweep(setup), tmp_path, tmp_path / "out", observer=states.append)
    costs = {shape: [] for shape in ((4, 2), (6, 2), (8, 2))}
    for state in states[1:]:
        if (shape := (state.job.n_clusters, state.job.branching)) in costs:
            costs[shape].append(METHODS[state.job.method].cost)
    assert all(costs.values())
    assert all(results == sorted(results, reverse=True) for results in costs.values())
    assert len(store.read()) == len(states) - 1
    failed = {state.job for state in states[1:] if state.status != "done"}
    assert {job.n_clusters for job in failed if job.method == "KM"} == {6, 8}
    assert store.known() == set(plan_sweep(setup)) - failed
    again = []
    run_jobs(plan_sweep(setup), tmp_path, tmp_path / "out", observer=again.append)
    assert {state.job for state in again[1:]} == failed  # they are tried again


def test_results_of_other_data_are_not_mixed(tmp_path, made):
    folder, out = tmp_path / "data", tmp_path / "out"
    folder.mkdir()
    made.data(folder, "some")
    setup = Setup(folder, n_seeds=1, strengths=(1.0,))
    run_jobs(plan_sparsity(setup), folder, out)
    before = (out / "results.jsonl").read_bytes()
    made.data(folder, "some", X=made.blobs()[0] + 1.0)
    open_dataset.cache_clear()
    with pytest.raises(ValueError, match="other data called 'some'"):
        run_jobs(plan_sparsity(setup), folder, out)
    assert (out / "results.jsonl").read_bytes() == before


def test_bad_places_are_refused_before_anything_is_written(tmp_path, made, animals):
    out = tmp_path / "out"
    made.data(tmp_path, "other", of_tree=("ape", "bat", "cod", "dog"))
    with pytest.raises(FileFormatError, match=r"other\.hierarchy\.json"):
        run_jobs(plan_table(Setup(tmp_path)), tmp_path, out)
    assert not out.exists()
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match="is a file; results need a folder"):
        run_jobs(plan_sparsity(animals), None, out)
    assert out.read_text(encoding="utf-8") == "mine"
