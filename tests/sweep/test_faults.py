"""What happens to a fit when workers die, come late, are slow or small, or the rest is gone.

The same result comes, or one clear error, soon; nothing is left.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from taxarbor import Taxarbor
from taxarbor._errors import ClusterError
from taxarbor._run import Run
from taxarbor.sweep import DaskEngine, LocalEngine, _dask
from taxarbor.tables._stream import dask_stream
from tests.sweep.small_fit import fit, same

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

SOON = 30.0


@pytest.fixture(scope="module", name="X")
def make_rows():
    rng = np.random.default_rng(1)
    return (rng.integers(0, 3, (900, 1)) * 4 + rng.normal(size=(900, 4))).astype(np.float32)


@pytest.fixture(scope="module")
def expected(X):
    return fit(LocalEngine(Run()), [X])[0]


@contextmanager
def workers(place, n_workers=2, **how):
    """Start processes, and look that they leave nothing.

    A local cluster gives up those that need more than a while to start again, as on a busy
    machine, unless told otherwise.
    """
    how = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50} | how
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        distributed.LocalCluster(n_workers, local_directory=place, **how) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster
    left = [path for path in place.rglob("*") if path.is_file() and "lock" not in path.suffix]
    assert not left, left


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory):
    with workers(tmp_path_factory.mktemp("workers")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """Two workers in processes of their own, which Dask starts again when they die."""
    wait_until(lambda: is_whole(shared_cluster), SOON)
    return shared_cluster


def is_whole(cluster):
    """Say whether all workers run, also in the eyes of those that start them again."""
    nannies, there = cluster.workers.values(), cluster.scheduler.workers
    running = [nanny for nanny in nannies if nanny.process and nanny.worker_address in there]
    return len(running) == 2 and all(
        nanny.process.status is distributed.Status.running for nanny in running
    )


@contextmanager
def soon(seconds, act, *arguments):
    timer = threading.Timer(seconds, act, arguments)
    timer.start()
    try:
        yield
    finally:
        timer.join(SOON)
        assert not timer.is_alive()


def wait_until(holds, seconds=15.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def parts_of(X, n=100):
    return dask_stream(da.from_array(X, chunks=(n, X.shape[1]))).parts


def kill(cluster, name):
    """Kill a worker, and wait until the scheduler has noticed."""
    nanny = cluster.workers[name]
    address = nanny.worker_address
    os.kill(nanny.pid, signal.SIGKILL)
    wait_until(lambda: address not in cluster.scheduler.workers)


@pytest.mark.long
@pytest.mark.parametrize("n_kills", [1, 10])
def test_killed_workers_change_nothing(cluster, X, expected, n_kills):
    """Kill a worker at a random moment of each of some fits."""
    rng, n_same, parts = np.random.default_rng(n_kills), 0, parts_of(X)
    begin = time.monotonic()
    fit(DaskEngine(), parts, pause=0.02)
    lasts = time.monotonic() - begin
    for _ in range(n_kills):
        wait_until(lambda: is_whole(cluster), SOON)
        engine, begin = DaskEngine(), time.monotonic()
        name = list(cluster.workers)[rng.integers(2)]
        with soon(rng.uniform(0.0, lasts), kill, cluster, name):
            try:
                assert same(fit(engine, parts, pause=0.02)[0], expected)
                n_same += 1
            except ClusterError:
                assert time.monotonic() - begin < SOON
        engine.close()
    assert n_same >= 0.9 * n_kills  # the same task is seldom hit three times


@pytest.mark.long
def test_what_died_with_workers_is_made_anew(cluster, X):
    """Lose all that was kept, after a fit."""
    engine, local = DaskEngine(), LocalEngine(Run())
    _, nodes = fit(engine, parts_of(X))
    for name in cluster.workers:
        kill(cluster, name)
    there = local.gather(fit(local, [X])[1])
    assert np.array_equal(np.concatenate(engine.gather(nodes)), np.concatenate(there))
    engine.close()


def tree_of(model):
    return str(model.hierarchy_), model.hierarchy_.means.tobytes()


@pytest.mark.long
def test_killed_workers_do_not_change_the_tree(cluster):
    """Kill a worker at ten random moments of fits."""
    rng = np.random.default_rng(0)
    X = (4 * rng.integers(0, 5, (6000, 1)) + rng.normal(size=(6000, 8))).astype(np.float32)
    expected = Taxarbor(8, random_state=0).fit(X)
    rows = da.from_array(X, chunks=(700, 8))
    begin = time.monotonic()
    Taxarbor(8, random_state=0).fit(rows)
    lasts, n_same = time.monotonic() - begin, 0
    for _ in range(10):
        wait_until(lambda: is_whole(cluster), SOON)
        name = list(cluster.workers)[rng.integers(2)]
        model = Taxarbor(8, random_state=0)
        with soon(rng.uniform(0.0, lasts), kill, cluster, name):
            try:
                assert tree_of(model.fit(rows)) == tree_of(expected)
                n_same += 1
            except ClusterError:
                assert not hasattr(model, "hierarchy_")
    assert n_same >= 9
    wait_until(lambda: is_whole(cluster), SOON)
    model = Taxarbor(8, random_state=0).fit(rows)
    assert np.array_equal(model.labels_.compute(), expected.labels_)
    for name in cluster.workers:  # the labels are made anew
        kill(cluster, name)
    assert np.array_equal(model.labels_.compute(), expected.labels_)


@pytest.mark.long
def test_a_worker_may_come_late(tmp_path, X, expected):
    with workers(tmp_path, 1) as cluster, soon(0.3, cluster.scale, 2):
        found, _ = fit(DaskEngine(), parts_of(X), pause=0.05)
        assert same(found, expected)
        wait_until(lambda: len(cluster.scheduler.workers) == 2, SOON)
        assert same(fit(DaskEngine(), parts_of(X))[0], expected)


def test_a_worker_may_be_ten_times_slower(cluster, X, expected):
    slow = next(iter(cluster.workers))
    found, _ = fit(DaskEngine(), parts_of(X), pause=0.01, slow=slow)
    assert same(found, expected)


@pytest.mark.long
def test_workers_may_be_short_of_memory(tmp_path):
    """What is kept is several times what a worker may hold: Dask puts it on disk."""
    rng = da.random.default_rng(2)
    lazy = rng.integers(-9, 9, (1_200_000, 40), chunks=(50_000, 40)).astype(np.float32)
    X = lazy.compute(scheduler="threads")
    expected = fit(LocalEngine(Run()), [X])[0]
    with workers(tmp_path, 1, memory_limit="350MB"):
        assert same(fit(DaskEngine(), dask_stream(lazy).parts)[0], expected)


def fill(dask_worker):
    """Take memory that cannot go to disk: enough to pause, too little to be killed."""
    limit = dask_worker.memory_manager.memory_limit
    used = dask_worker.monitor.get_process_memory()
    dask_worker.filled = np.ones(int(0.87 * limit - used), dtype=np.uint8)


@pytest.mark.long
def test_a_worker_that_pauses_for_good_does_not_hold_up_others(tmp_path, X, expected):
    """Its tasks, of which it has not begun all, are done by the other one."""
    with workers(tmp_path, memory_limit="500MB") as cluster:
        client, address = distributed.get_client(), cluster.workers[0].worker_address
        with soon(0.5, lambda: client.run(fill, workers=[address])):
            found, _ = fit(DaskEngine(), parts_of(X), pause=0.1)
        assert same(found, expected)
        assert cluster.scheduler.workers[address].status is distributed.Status.paused


@pytest.mark.long
def test_workers_that_all_pause_for_good_end_the_fit(tmp_path, X):
    filled = []
    with workers(tmp_path, memory_limit="500MB") as cluster:
        client, engine = distributed.get_client(), DaskEngine()
        with (
            soon(0.5, lambda: filled.append((client.run(fill), time.monotonic()))),
            pytest.raises(ClusterError, match="short of memory, and wait; use smaller chunks"),
        ):
            fit(engine, parts_of(X), pause=0.1)
        assert time.monotonic() - filled[0][1] < SOON
        engine.close()
        wait_until(lambda: not cluster.scheduler.tasks)


KEPT = []


def keep_few(block):
    """Die when this process has kept five blocks, as a worker does that runs out of memory."""
    KEPT.append(block)
    if len(KEPT) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return block, len(block)


@pytest.mark.long
def test_workers_that_never_hold_all_blocks_end_the_fit(tmp_path, X, monkeypatch):
    """Dask alone ends it when the same block has failed often, which may take long."""
    with workers(tmp_path) as cluster:
        monkeypatch.setattr(cluster.scheduler, "allowed_failures", 1000)
        with pytest.raises(ClusterError, match=r"died again .* smaller chunks"):
            DaskEngine().keep(keep_few, parts_of(X, 30))
        wait_until(lambda: not cluster.scheduler.tasks)


def too_much(block):
    """Die as from want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_block_that_kills_every_worker_ends_the_fit(cluster, X, expected, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 1)
    with pytest.raises(ClusterError, match=r"died again .* smaller chunks"):
        DaskEngine().sweep(too_much, parts_of(X))
    assert same(fit(DaskEngine(), parts_of(X))[0], expected)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_ends_what_runs(cluster, X, expected):
    engine, before = DaskEngine(), set(cluster.scheduler.tasks)
    for wait in (0.2, 0.7):
        with soon(wait, os.kill, os.getpid(), signal.SIGINT):
            with pytest.raises(KeyboardInterrupt) as raised:  # which holds on to frames
                fit(engine, parts_of(X), pause=0.1)
            engine.close()
        wait_until(lambda: cluster.scheduler.tasks.keys() <= before)
        assert raised.value is not None
    assert same(fit(DaskEngine(), parts_of(X))[0], expected)


@pytest.fixture
def lone_cluster(tmp_path):
    """A scheduler and a worker without a nurse, each in a process of its own."""
    file = tmp_path / "scheduler.json"
    told = ["--scheduler-file", str(file), "--no-dashboard"]
    place = ["--local-directory", str(tmp_path), "--nthreads", "1"]
    commands = [
        ["scheduler", "--port", "0", "--host", "127.0.0.1", *told],
        ["worker", *told, "--no-nanny", *place],
    ]
    path = os.pathsep.join(filter(None, sys.path))
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
        )
        for what, *options in commands
    ]
    wait_until(file.exists)
    with distributed.Client(scheduler_file=str(file), timeout="5s") as client:
        client.wait_for_workers(1, timeout=SOON)
        yield started
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_cluster_that_is_gone_ends_the_fit(lone_cluster, X, expected, monkeypatch):
    """The scheduler hangs, then the only worker dies, then the scheduler does."""
    scheduler, worker = lone_cluster
    parts = parts_of(X)

    def fails(wait, act, told):
        engine, begin = DaskEngine(), time.monotonic()
        with soon(wait, act), pytest.raises(ClusterError, match=told):
            fit(engine, parts, pause=0.1)
        engine.close()
        assert time.monotonic() - begin < SOON

    assert same(fit(DaskEngine(), parts)[0], expected)
    monkeypatch.setattr(_dask, "PATIENCE", 3.0)
    fails(0.5, lambda: scheduler.send_signal(signal.SIGSTOP), "does not answer")
    scheduler.send_signal(signal.SIGCONT)
    assert same(fit(DaskEngine(), parts)[0], expected)
    fails(0.5, worker.kill, "no workers for 3 s; start some")
    fails(0.5, scheduler.kill, "connect a new Client")
    fails(0.0, scheduler.kill, "connect a new Client")  # it is gone when the fit begins
