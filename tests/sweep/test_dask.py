"""Sweeps by Dask find what sweeps by threads find, whatever the scheduler."""

import gc
import subprocess
import sys
import time
import weakref
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix, random_array

from taxarbor import Taxarbor
from taxarbor._errors import InputError, InputTypeError
from taxarbor._run import Run
from taxarbor.sweep import DaskEngine, LocalEngine, _dask
from taxarbor.sweep._dask import once
from taxarbor.sweep._lazy_results import in_blocks, lazy_rows
from taxarbor.tables._stream import dask_stream
from tests.sweep.small_fit import fit, same

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

EDGES = [0, 130, 131, 400, 401, 600, 750, 751, 900, 901, 902, 1000]


@pytest.fixture(scope="module", name="X")
def make_rows():
    rng = np.random.default_rng(0)
    return (rng.integers(0, 3, (1000, 1)) * 4 + rng.normal(size=(1000, 5))).astype(np.float32)


@pytest.fixture(scope="module")
def expected(X):
    engine = LocalEngine(Run())
    said, nodes = fit(engine, [X])
    return said, np.concatenate(engine.gather(nodes))


@pytest.fixture(scope="module")
def cluster():
    """A scheduler here, and two workers in processes of their own."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


SCHEDULERS = ["synchronous", "threads", "distributed"]
PROCESSES = pytest.param("processes", marks=pytest.mark.long)  # starts them for each sweep


@pytest.fixture
def scheduler(request):
    if request.param == "distributed":
        request.getfixturevalue("cluster")
    with dask.config.set(scheduler=request.param, num_workers=2):
        yield request.param


def cut(X, edges=EDGES):
    return [X[a:b] for a, b in pairwise(edges)]


def chunked(X, edges=EDGES):
    return da.from_array(X, chunks=(tuple(np.diff(edges).tolist()), X.shape[1]))


def row_sum(model, rows):
    return np.asarray(rows).sum(axis=1) + model


def refuse(model, rows):
    if len(rows):
        raise InputError("holds what it should not")
    return rows


def pair_of(X):
    return (X, None), (len(X), None)


def is_pair(pair):
    return isinstance(pair, tuple) and pair[1] is None


def key_of(X, *, table):
    return len(X) + table.size * 0


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, PROCESSES], indirect=True)
def test_all_schedulers_find_the_same(scheduler, X, expected):
    engine = DaskEngine()
    said, nodes = fit(engine, dask_stream(chunked(X)).parts)
    assert same(said, expected[0])
    assert np.array_equal(np.concatenate(engine.gather(nodes)), expected[1])
    labels = lazy_rows(engine, nodes, np.diff(EDGES), np.int32)
    engine.close()
    assert isinstance(labels, da.Array)
    assert labels.chunks == (tuple(np.diff(EDGES).tolist()),)
    assert np.array_equal(labels.compute(), expected[1])


def test_entries_may_be_plain_values_and_anything_can_be_kept(X, expected):
    engine = DaskEngine()
    with dask.config.set(scheduler="synchronous"):
        assert same(fit(engine, cut(X))[0], expected[0])
        column, found = engine.keep(pair_of, cut(X))
        assert found == (1000, None)
        assert all(engine.gather(engine.lazy(is_pair, column)))
        assert np.array_equal(engine.gather(column)[1][0], X[130:131])
        assert engine.sweep(pair_of, []) is None
        assert engine.keep(pair_of, []) == ([], None)


def test_tuples_can_be_kept_on_a_cluster(cluster, X):
    engine = DaskEngine()
    column, found = engine.keep(pair_of, cut(X))
    assert found == (1000, None)
    assert all(engine.gather(engine.lazy(is_pair, column)))


@pytest.mark.parametrize("n_blocks", [1, 2, 8, 9, 64, 65, 100])
def test_findings_are_added_up_in_their_order(n_blocks):
    with dask.config.set(scheduler="synchronous"):
        found = DaskEngine().sweep(as_list, list(range(n_blocks)))
    assert found.blocks == list(range(n_blocks))


class Listed:
    def __init__(self, blocks):
        self.blocks = blocks

    def merge(self, other):
        return Listed(self.blocks + other.blocks)


def as_list(block):
    return Listed([block])


def test_tasks_have_readable_names(X):
    from dask.utils import key_split

    engine = DaskEngine()
    tasks = engine.tasks(pair_of, cut(X))
    assert len(tasks) == len(EDGES) - 1
    assert {key_split(task.key) for task in tasks} == {"taxarbor-pair-of"}


def test_what_is_large_is_in_the_graph_once(X):
    engine, table = DaskEngine(), np.zeros(100_000)
    for size, n_more in ((100, 0), (100_000, 1)):
        tasks = engine.tasks(key_of, cut(X), table=table[:size])
        keys = {key for task in tasks for key in task.dask}
        assert len(keys) == len(tasks) + n_more
    with dask.config.set(scheduler="synchronous"):
        assert engine.sweep(key_of, cut(X), table=table) == 1000


def test_columns_that_are_dropped_are_let_go(cluster, X):
    tasks = cluster.scheduler.tasks
    engine = DaskEngine()
    Z, _ = engine.keep(pair_of, cut(X))
    assert sum(ts.state == "memory" for ts in tasks.values()) >= len(Z)
    del Z
    wait_until(lambda: not tasks)
    nodes = fit(engine, cut(X))[1]
    labels = lazy_rows(engine, nodes, np.diff(EDGES), np.int32)
    other, _ = engine.keep(pair_of, cut(X))
    engine.close()  # the labels stay, also if someone still holds the rest
    wait_until(lambda: not [key for key in tasks if "pair-of" in str(key)])
    assert len(labels.compute()) == 1000
    assert len(other) == len(EDGES) - 1
    del nodes, labels
    wait_until(lambda: not tasks)


@pytest.fixture
def no_collection():
    """Let Python look for no cycles: what is part of one stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_tasks_let_go_of_blocks_at_once():
    """Workers that hold blocks until Python looks for cycles run out of memory."""
    block = np.ones((10, 2))
    alive = weakref.ref(block)
    with dask.config.set(scheduler="synchronous"):
        assert DaskEngine().sweep(len, [once(block)]) == 10
    del block
    assert alive() is None


@pytest.mark.usefixtures("no_collection")
def test_clusters_let_go_of_blocks_at_once(cluster, X):
    engine, tasks = DaskEngine(), cluster.scheduler.tasks
    column, _ = engine.keep(pair_of, cut(X))
    engine.sweep(len, column)
    del column
    end = time.monotonic() + 60.0
    while tasks and time.monotonic() < end:
        time.sleep(0.02)
    assert not tasks


def wait_until(holds, seconds=60.0):
    """Wait a minute at most: on a busy machine a collection stops the scheduler for seconds."""
    end = time.monotonic() + seconds
    while not holds():
        gc.collect()
        assert time.monotonic() < end
        time.sleep(0.1)  # in which the scheduler, a thread of this process, hears of it


def test_rows_that_are_kept_do_not_travel(cluster, X):
    """Blocks are read within the task that needs them, which goes to where the rest is."""
    big = da.random.default_rng(0).random((80_000, 20), chunks=(10_000, 20))
    engine = DaskEngine()
    parts = dask_stream(big).parts
    before = sent(cluster)
    fit(engine, parts)
    assert sent(cluster) - before < 0.02 * big.nbytes


def sent(cluster):
    client = distributed.get_client()
    return sum(
        client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values()
    )


@pytest.mark.parametrize("kind", ["array", "sum", "frame"])
def test_what_is_on_workers_is_held(cluster, X, kind):
    """Also when nobody else holds it any more."""
    there = chunked(X, [0, 400, 1000]).persist()
    if kind == "sum":
        there = there + np.float32(0)
    if kind == "frame":
        there = dd.from_pandas(pd.DataFrame(X), npartitions=3).persist()
    distributed.wait(there)
    stream, lazy = dask_stream(there), in_blocks(row_sum, 0.0, there, np.float64)
    del there
    gc.collect()
    time.sleep(0.2)
    assert np.array_equal(np.concatenate([np.asarray(part) for part in read(stream)]), X)
    assert np.allclose(lazy.compute(), X.sum(axis=1), atol=1e-5)


def test_without_dask_an_import_needs_none():
    code = "import sys, taxarbor, taxarbor.sweep, taxarbor.tables; print('dask' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"


def read(stream):
    return stream.make_engine(Run(), None).gather(stream.parts)


@pytest.fixture
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.usefixtures("here")
def test_blocks_of_an_array(X):
    stream = dask_stream(chunked(X, [0, 0, 400, 400, 1000, 1000]))
    assert stream.sizes.tolist() == [400, 600]
    assert list(stream.titles) == ["block 1", "block 3"]
    assert stream.dtype == np.float32
    assert stream.names is None
    assert np.array_equal(np.concatenate(read(stream)), X)


@pytest.mark.usefixtures("here")
def test_sizes_that_nobody_knows_are_counted_by_the_fit(X):
    is_high = X[:, 0] > 3
    rows = chunked(X, [0, 1, 2, 500, 1000])  # of which some are empty then
    unknown = rows[da.from_array(is_high, chunks=rows.chunks[:1])]
    assert np.isnan(unknown.shape[0])
    stream = dask_stream(unknown)
    assert stream.sizes is None
    assert sum(map(len, read(stream))) == is_high.sum()
    lazy = Taxarbor(3, random_state=0).fit(unknown)
    assert alike(lazy, Taxarbor(3, random_state=0).fit(X[is_high]))
    assert np.array_equal(lazy.predict(unknown).compute(), lazy.labels_.compute())


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_sparse_blocks(kind):
    S = csr_array(random_array((90, 7), density=0.3, rng=0))
    X = da.from_array(S.toarray(), chunks=(40, 7)).map_blocks(kind)
    stream = dask_stream(X)
    parts = read(stream)
    assert all(isinstance(part, csr_array) for part in parts)
    assert np.array_equal(np.concatenate([part.toarray() for part in parts]), S.toarray())
    lazy = in_blocks(sparse_sum, 0, X, np.float64)
    assert np.allclose(lazy.compute(), S.sum(axis=1))


def sparse_sum(model, rows):
    return np.asarray(rows.sum(axis=1)).ravel()


@pytest.mark.usefixtures("here")
def test_partitions_of_a_frame(make_cars):
    cars = make_cars()
    frame = dd.from_pandas(cars, npartitions=3)
    stream = dask_stream(frame)
    assert stream.names == list(cars.columns)
    assert stream.sizes is None
    assert stream.dtype is None
    assert pd.concat(read(stream))["weight"].tolist() == cars["weight"].tolist()


@pytest.mark.usefixtures("here")
def test_what_is_no_table_is_refused(X):
    with pytest.raises(InputError, match=r"2 chunks along its columns.*X.rechunk\(\{1: -1\}\)"):
        dask_stream(da.from_array(X, chunks=(100, 3)))
    with pytest.raises(InputError, match="two dimensions"):
        dask_stream(da.from_array(X[:, 0]))
    with pytest.raises(InputTypeError, match="must hold numbers, got object"):
        dask_stream(da.from_array(X.astype(object), chunks=(100, 5)))
    with pytest.raises(InputTypeError, match="must hold numbers, got complex"):
        dask_stream(da.from_array(X.astype(complex), chunks=(100, 5)))
    with pytest.raises(InputTypeError, match=r"got a Series; X\.to_frame"):
        dask_stream(dd.from_pandas(pd.Series([1.0, 2.0]), npartitions=1))
    with pytest.raises(InputError, match="holds no rows"):
        dask_stream(da.zeros((0, 3)))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda X: X.astype(object), "block 2 of X holds object, where numbers were expected"),
        (lambda X: X.astype(float), "block 2 of X holds float64, but X says .* float32"),
        (lambda X: X[1:], r"block 2 of X has shape \(268, 5\), but X says \(269, 5\)"),
        (lambda X: X[:, 1:], r"block 2 of X has shape \(269, 4\), but X says"),
        (lambda X: X[0], r"block 2 of X has shape \(5,\), but X says"),
    ],
)
def test_a_wrong_block_is_named(X, wrong, told):
    def spoil(block, block_id=None):
        return wrong(block) if block_id[0] == 2 else block

    stream = dask_stream(chunked(X).map_blocks(spoil, dtype=np.float32, meta=X[:0]))
    with pytest.raises(InputError, match=told):
        stream.make_engine(Run(), None).sweep(pair_of, stream.parts)


def test_a_wrong_block_is_named_by_a_cluster(cluster, X):
    def spoil(block, block_id=None):
        return block.astype(object) if block_id[0] == 2 else block

    stream = dask_stream(chunked(X).map_blocks(spoil, dtype=np.float32, meta=X[:0]))
    with pytest.raises(InputTypeError, match="block 2 of X holds object"):
        stream.make_engine(Run(), None).sweep(pair_of, stream.parts)


@pytest.mark.usefixtures("here")
def test_a_wrong_partition_is_named(make_cars):
    frame = dd.from_pandas(make_cars(), npartitions=3)
    parts = frame.to_delayed()
    parts[1] = dask.delayed(lambda part: part.rename(columns={"mpg": "x"}))(parts[1])
    wrong = dd.from_delayed(parts, meta=frame._meta, verify_meta=False)
    with pytest.raises(InputError, match=r"partition 1 of X has other columns .*'mpg'"):
        read(dask_stream(wrong))


@pytest.mark.usefixtures("here")
def test_a_part_that_cannot_be_read_is_named(X):
    def spoil(block, block_id=None, error=None):
        if block_id[0] == 2:
            raise error("the file ends early")
        return block

    for error, expected in ((ValueError, InputError), (OSError, OSError)):
        Y = chunked(X).map_blocks(spoil, error=error, dtype=np.float32, meta=X[:0])
        stream = dask_stream(Y)
        with pytest.raises(expected, match="the file ends early") as raised:
            stream.make_engine(Run(), None).sweep(pair_of, stream.parts)
        notes = getattr(raised.value, "__notes__", [])
        assert "block 2 of X" in " ".join([str(raised.value), *notes])


@pytest.mark.usefixtures("here")
@pytest.mark.usefixtures("here")
def test_blocks_that_share_steps_are_made_once(X):
    counted = []

    def load():
        counted.append(1)
        return X

    whole = da.from_delayed(dask.delayed(load)(), X.shape, X.dtype)
    stream = dask_stream(whole.rechunk((100, 5)))
    stream.make_engine(Run(), None).sweep(pair_of, stream.parts)
    assert len(counted) == 1


@pytest.mark.parametrize(
    "scheduler", [*SCHEDULERS, pytest.param("processes", marks=pytest.mark.long)], indirect=True
)
def test_a_function_of_rows_is_lazy(scheduler, X):
    rows = chunked(X)
    lazy = in_blocks(row_sum, 1.0, rows, np.float64)
    assert lazy.chunks == (rows.chunks[0],)
    assert lazy.dtype == np.float64
    assert np.allclose(lazy.compute(), X.sum(axis=1) + 1.0, atol=1e-5)


def test_results_of_different_rows_stay_apart(X):
    import dask
    import dask.array as da

    found = [
        in_blocks(_first_column, None, da.from_array(rows, chunks=(40, X.shape[1])), X.dtype)
        for rows in (X, -X)
    ]
    one, other = dask.compute(*found, scheduler="sync")
    np.testing.assert_array_equal(one, X[:, 0])
    np.testing.assert_array_equal(other, -X[:, 0])
    both = da.concatenate(found).compute(scheduler="sync")
    np.testing.assert_array_equal(both, np.concatenate([one, other]))


def _first_column(model, rows):
    return rows[:, 0]


@pytest.mark.usefixtures("here")
def test_a_function_of_rows_of_a_frame(X):
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    lazy = in_blocks(row_sum, 1.0, frame, np.float64)
    assert np.allclose(lazy.compute(), X.sum(axis=1) + 1.0, atol=1e-5)
    wide = in_blocks(twice, 2, frame, np.float32, n_columns=10)
    assert np.allclose(wide.compute(), np.hstack([X, X]))
    wide = in_blocks(twice, 2, chunked(X, [0, 0, 300, 1000]), np.float32, n_columns=10)
    assert wide.shape == (1000, 10)
    assert np.allclose(wide.compute(), np.hstack([X, X]))


def twice(model, rows):
    return np.hstack([np.asarray(rows)] * model)


@pytest.mark.usefixtures("here")
def test_a_function_of_rows_names_the_block_that_it_refuses(X):
    with pytest.raises(InputError, match=r"block \d+ of X: holds what it should not"):
        in_blocks(refuse, None, chunked(X), np.float64).compute()
    with pytest.raises(InputError, match="rechunk"):
        in_blocks(refuse, None, da.from_array(X, chunks=(100, 2)), np.float64)
    model = np.zeros(10**6)
    graph = in_blocks(refuse, model, chunked(X), np.float64).dask
    assert sum(str(key).startswith("taxarbor-shared") for key in graph) == 1


def test_arrays_are_given_to_kernels_as_they_want_them():
    raw = np.zeros(8 * 12 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(4, 3)
    assert not raw.flags.aligned
    S = csr_array(np.eye(3))
    S.data = raw.ravel()[:3]
    with dask.config.set(scheduler="synchronous"):
        assert DaskEngine().sweep(n_aligned, [raw, S]) == 2


def n_aligned(X):
    return int((X if isinstance(X, np.ndarray) else X.data).flags.aligned)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(3)
    centers = 4 * rng.normal(size=(9, 6))
    return (centers[rng.integers(0, 9, 3000)] + rng.normal(size=(3000, 6))).astype(np.float32)


def alike(lazy, model):
    assert isinstance(lazy.labels_, da.Array)
    assert np.array_equal(lazy.labels_.compute(), model.labels_)
    assert np.array_equal(lazy.outlier_score_.compute(), model.outlier_score_)
    tree, other = lazy.hierarchy_, model.hierarchy_
    assert str(tree) == str(other)
    assert np.array_equal(tree.means, other.means)
    for rule, twin in zip(tree.rules, other.rules, strict=True):
        if twin is not None:
            assert np.array_equal(rule.weights, twin.weights)
            assert np.array_equal(rule.offsets, twin.offsets)
    return True


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("n_rows", [170, 300, 1000, 3000])
def test_the_tree_is_that_of_the_array(blobs, n_rows):
    model = Taxarbor(6, random_state=0).fit(blobs)
    rows = da.from_array(blobs, chunks=(n_rows, 6))
    assert alike(Taxarbor(6, random_state=0).fit(rows), model)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "how", [{"rules": "describe"}, {"noise": 0.05}, {"max_leaf_size": 700}, {"branching": 3}]
)
def test_the_tree_is_that_of_the_array_whatever_is_asked_for(blobs, how):
    rows = da.from_array(blobs, chunks=(1100, 6))
    lazy = Taxarbor(6, random_state=0, **how).fit(rows)
    assert alike(lazy, Taxarbor(6, random_state=0, **how).fit(blobs))


@pytest.mark.usefixtures("here")
@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_the_tree_is_that_of_float64_sparse_gaps_and_weights(blobs):
    double = blobs.astype(float)
    rows = da.from_array(double, chunks=(1100, 6))
    assert alike(Taxarbor(5, random_state=0).fit(rows), Taxarbor(5, random_state=0).fit(double))
    thin = np.where(blobs > 2, blobs, 0)
    sparse = da.from_array(thin, chunks=(1100, 6)).map_blocks(csr_array)
    assert alike(
        Taxarbor(5, random_state=0).fit(sparse),
        Taxarbor(5, random_state=0).fit(csr_array(thin)),
    )
    gaps = blobs.copy()
    gaps[np.random.default_rng(0).random(blobs.shape) < 0.1] = np.nan
    weights = np.arange(3000) % 3
    given = da.from_array(weights, chunks=500)
    rows = da.from_array(gaps, chunks=(1100, 6))
    lazy = Taxarbor(5, random_state=0).fit(rows, sample_weight=given)
    assert alike(lazy, Taxarbor(5, random_state=0).fit(gaps, sample_weight=weights))


@pytest.mark.usefixtures("here")
@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_the_tree_is_that_of_the_frame(make_cars):
    cars = make_cars(n_rows=400)
    model = Taxarbor(4, random_state=0).fit(cars)
    rows = dd.from_pandas(cars, npartitions=3)
    lazy = Taxarbor(4, random_state=0).fit(rows)
    assert alike(lazy, model)
    assert np.array_equal(lazy.predict(rows).compute(), model.predict(cars))
    assert lazy.feature_names_in_.tolist() == model.feature_names_in_.tolist()


@pytest.mark.usefixtures("here")
def test_new_rows_are_placed_when_asked_for(blobs):
    model = Taxarbor(6, random_state=0).fit(blobs)
    rows = da.from_array(blobs, chunks=(1100, 6))
    labels, P = model.predict(rows), model.predict_proba(rows)
    assert (labels.chunks, labels.dtype) == ((rows.chunks[0],), np.intp)
    assert np.array_equal(labels.compute(), model.labels_)
    assert P.shape == (3000, 6)
    assert np.array_equal(P.compute(), model.predict_proba(blobs))
    assert np.array_equal(model.hierarchy_.predict(rows).compute(), model.labels_)
    with pytest.raises(InputError, match=r"X has 5 features.* 6"):
        model.predict(rows[:, :5].rechunk({1: -1}))
    with pytest.raises(InputTypeError, match="decision_path takes rows in memory"):
        model.decision_path(rows)
    with pytest.raises(InputError, match="chunks along its columns"):
        model.predict(rows.rechunk((100, 2)))
    rows = rows.map_blocks(lambda block: block * np.inf)
    with pytest.raises(InputError, match=r"block \d of X: X holds NaN, infinity"):
        model.predict(rows).compute()


@pytest.mark.usefixtures("here")
def test_a_fit_says_which_block_is_wrong(blobs):
    def spoil(block, block_id=None):
        return np.where(block_id[0] == 1, np.inf, block)

    rows = da.from_array(blobs, chunks=(1100, 6))
    with pytest.raises(InputError, match="block 1"):
        Taxarbor(6).fit(rows.map_blocks(spoil, dtype=np.float32))
    with pytest.raises(InputError, match="chunks along its columns"):
        Taxarbor(6).fit(rows.rechunk((100, 2)))
    with pytest.raises(InputError, match="n_clusters"):
        Taxarbor(4000).fit(rows)
    with pytest.raises(InputError, match="n_clusters"):
        Taxarbor("auto").fit(rows)


def test_a_cluster_grows_the_same_tree(cluster, blobs):
    rows = da.from_array(blobs, chunks=(1100, 6)).persist()
    model = Taxarbor(6, random_state=0).fit(rows)
    assert alike(model, Taxarbor(6, random_state=0).fit(blobs))
    assert np.array_equal(model.predict(rows).compute(), model.labels_.compute())
    del rows, model
    wait_until(lambda: not cluster.scheduler.tasks)


def test_what_comes_just_as_a_wait_ends_is_no_silence(monkeypatch):
    class Coming:
        n_asked = 0

        def result(self, seconds):
            self.n_asked += 1
            if self.n_asked == 1:
                raise TimeoutError
            return 7

        def done(self):
            return True

        def exception(self):
            return None

    monkeypatch.setattr(_dask, "_begun", lambda *_: Coming())
    monkeypatch.setattr(_dask, "futures_in", list)
    client = SimpleNamespace(gather=lambda *_, **__: None)
    assert _dask._fetched(client, [SimpleNamespace(key="some")]) == [7]
