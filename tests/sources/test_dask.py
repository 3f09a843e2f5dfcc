"""Dask arrays and frames: the same sample and routing, lazy results, lost workers."""

from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor._errors import InputError
from taxarbor.sources import open_source
from tests.sources.works import (
    DTYPES,
    NAMES,
    Mortal,
    as_array,
    check_sample,
    double,
    load_mortal,
    make_rows,
    pair,
    sums,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

X = make_rows()
FRAME = pd.DataFrame(X, columns=NAMES)
PLACES = ["array", "unequal", "unknown", "empty blocks", "csr", "frame", "empty partitions",
          "parquet", "one"]  # fmt: skip


@pytest.fixture(autouse=True)
def _scheduler():
    with dask.config.set(scheduler="synchronous"):
        yield


def make(place, folder):
    """Return the rows as a collection."""
    if place == "parquet":
        for k in range(3):
            FRAME.iloc[k * 1000 : (k + 1) * 1000].to_parquet(folder / f"{k}.parquet")
        return dd.read_parquet(folder)
    if place == "empty partitions":
        frame = dd.from_pandas(FRAME.assign(key=np.arange(len(X))), npartitions=6)
        none = frame[frame.key < 0]
        return dd.concat([none, frame, none], interleave_partitions=False)[NAMES]
    array = partial(da.from_array, X)
    return {
        "array": lambda: array(chunks=(500, 4)),
        "one": lambda: array(chunks=X.shape),
        "unequal": lambda: array(chunks=((1, 1700, 299, 1000), (4,))),
        "unknown": lambda: array(chunks=(700, 4))[da.ones(len(X), chunks=700, dtype=bool)],
        "empty blocks": lambda: array(chunks=((0, 1000, 0, 2000, 0), (4,))),
        "csr": lambda: array(chunks=(800, 4)).map_blocks(sparse.csr_array),
        "frame": lambda: dd.from_pandas(FRAME, npartitions=7),
    }[place]()


@pytest.fixture(params=PLACES)
def collection(request, tmp_path):
    return make(request.param, tmp_path)


@pytest.mark.parametrize("weights", [None, np.arange(len(X)) % 3.0], ids=["equal", "weights"])
def test_same_sample(collection, weights):
    source = open_source(collection)
    check_sample(source, open_source(X), weights)
    assert not source.in_memory


def test_same_routing(collection):
    (totals, cells), total = open_source(collection).route(sums, DTYPES)
    assert isinstance(totals, da.Array)
    assert totals.shape == (len(X),)
    assert cells.shape == (len(X),)
    assert cells.dtype == np.float32
    np.testing.assert_array_equal(totals.compute(), X.sum(axis=1))
    np.testing.assert_array_equal(cells.compute(), X[:, 1])
    np.testing.assert_allclose(total[:-1], X.sum(axis=0))


def test_apply_is_lazy(collection):
    with dask.config.set(scheduler=fail):
        source = open_source(collection)
        one = source.apply(double, np.float64)
        two = source.apply(pair, np.float32, 2)
    known = isinstance(collection, da.Array) and not np.isnan(collection.shape[0])
    assert one.shape[0] == len(X) if known else np.isnan(one.shape[0])
    np.testing.assert_array_equal(one.compute(), 2 * X[:, 0])
    np.testing.assert_array_equal(two.compute(), X[:, :2])


def fail(*args, **options):
    raise AssertionError("something was computed")


def test_partitions_are_read_twice(tmp_path):
    seen = []

    def load(k):
        seen.append(k)
        return X[k * 1000 : (k + 1) * 1000]

    parts = [da.from_delayed(dask.delayed(load)(k), (1000, 4), X.dtype) for k in range(3)]
    source = open_source(da.concatenate(parts))
    source.sample(100, 0)
    arrays, _ = source.route(sums, DTYPES)
    arrays[0].compute()
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]


def test_work_is_in_the_graph_once():
    source = open_source(da.from_array(X, chunks=(100, 4)))
    graph = source.apply(partial(pick, np.zeros(1000)), float).__dask_graph__()
    assert sum(str(key).startswith("bytes") for key in graph) == 1


def pick(values, table, rows):
    return (np.asarray(table)[:, 0],), 0


def test_categories_are_united():
    frame = FRAME[["c1"]].assign(kind=np.where(X[:, 0] > 20, "a", "b"))
    parts = [part.astype({"kind": "category"}) for part in (frame[:1500], frame[1500:])]
    parts[1]["kind"] = parts[1]["kind"].cat.rename_categories({"a": "z"})
    source = open_source(dd.concat([dd.from_pandas(part, npartitions=2) for part in parts]))
    assert source.names == ["c1", "kind"]
    assert set(source.sample(200, 0).table.get_column("kind")) == {"a", "b", "z"}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (da.zeros((10, 4), chunks=(5, 2)), "rechunk"),
        (da.zeros(10), "two dimensions"),
        (da.zeros((10, 4)).astype(str), "numbers"),
        (da.zeros((10, 4))[:, da.ones(4, dtype=bool)], "compute_chunk_sizes"),
        (dd.from_pandas(FRAME, npartitions=2).c0, "frame"),
        (dd.from_pandas(FRAME, npartitions=2)[[]], "columns"),
    ],
)
def test_collections_that_are_no_tables(bad, words):
    with pytest.raises(InputError, match=words) as caught:
        open_source(bad)
    assert caught.value.parameter == "X"


def test_no_rows():
    with pytest.raises(InputError, match="no rows"):
        open_source(dd.from_pandas(FRAME[:0], npartitions=1)).sample(5, 0)


def test_blocks_that_are_not_what_they_say():
    one = dask.delayed(X)
    wrong = da.from_delayed(one, (3000, 3), np.float32)
    with pytest.raises(InputError, match=r"block \d of X has 4 columns.*3"):
        open_source(wrong).sample(5, 0)
    wrong = da.from_delayed(one, (2999, 4), np.float32)
    with pytest.raises(InputError, match=r"block \d of X"):
        open_source(wrong).route(sums, DTYPES)
    frame = dd.from_map(lambda k: FRAME[["c0", "c1"]], [0], meta=FRAME, enforce_metadata=False)
    source = open_source(frame)
    lazy = source.keep(["c1", "c2"]).apply(sums, float)
    for use in (partial(source.sample, 5, 0), lazy.compute):
        with pytest.raises(InputError, match=r"partition 0 of X lacks 'c2'"):
            use()


def test_files_of_a_folder_that_differ(tmp_path):
    FRAME.to_parquet(tmp_path / "0.parquet")
    FRAME[["c1"]].to_parquet(tmp_path / "1.parquet")
    with pytest.raises(InputError, match="c0"):
        open_source(dd.read_parquet(tmp_path)).sample(5, 0)


def test_errors_of_the_work_name_the_block():
    source = open_source(da.from_array(X, chunks=(1000, 4)))
    for use in (source.apply(refuse, float).compute, lambda: source.route(refuse, DTYPES)):
        with pytest.raises(InputError, match=r"block \d of X"):
            use()


def refuse(table, rows=None):
    raise InputError("is bad")


@contextmanager
def workers(place, n_workers=2, **options):
    """Start workers in processes of their own."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50} | options
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        distributed.LocalCluster(n_workers, local_directory=place, **options) as cluster,
        distributed.Client(cluster) as client,
        dask.config.set(scheduler="distributed"),
    ):
        yield client


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory):
    with workers(tmp_path_factory.mktemp("workers")) as found:
        yield found


@pytest.fixture
def client(shared_client):
    """Two workers in processes of their own, which Dask starts again when they die."""
    shared_client.wait_for_workers(2, timeout=60)
    return shared_client


def test_workers_that_die_in_each_round(client, tmp_path):
    load = dask.delayed(load_mortal)
    blocks = [
        da.from_delayed(load(str(tmp_path / "load"), k), (300, 4), X.dtype)
        for k in range(0, 3000, 300)
    ]
    with dask.config.set(scheduler="distributed"):
        source = open_source(da.concatenate(blocks))
        found = source.sample(250, seed=7)
        assert (tmp_path / "load").exists()
        client.wait_for_workers(2, timeout=60)
        expected = open_source(X).sample(250, seed=7)
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_array_equal(found.table, expected.table)
        (totals, _), total = source.route(Mortal(str(tmp_path / "work")), DTYPES)
        assert (tmp_path / "work").exists()
        np.testing.assert_allclose(total[:-1], X.sum(axis=0))
        np.testing.assert_array_equal(totals.compute(), X.sum(axis=1))


@pytest.mark.long
def test_labels_are_made_anew_where_they_were_lost(client):
    with dask.config.set(scheduler="distributed"):
        (totals, _), _ = open_source(dd.from_pandas(FRAME, npartitions=6)).route(sums, DTYPES)
        client.restart_workers(list(client.scheduler_info()["workers"])[:1], timeout=60)
        np.testing.assert_array_equal(totals.compute(), X.sum(axis=1))


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_same_on_a_cluster(client, place, tmp_path):
    with dask.config.set(scheduler="distributed"):
        source = open_source(make(place, tmp_path))
        found = source.sample(250, seed=7)
        np.testing.assert_array_equal(as_array(found.table), X[found.rows])
        (totals, cells), _ = source.route(sums, DTYPES)
        lazy = source.apply(double, float)
        np.testing.assert_array_equal(totals.compute(), X.sum(axis=1))
        np.testing.assert_array_equal(cells.compute(), X[:, 1])
        np.testing.assert_array_equal(lazy.compute(), 2 * X[:, 0])


@pytest.mark.long
@pytest.mark.parametrize("place", ["array", "frame"])
def test_results_hold_persisted_data(client, place, tmp_path):
    with dask.config.set(scheduler="distributed"):
        source = open_source(make(place, tmp_path).persist())
        lazy = source.apply(double, float)
        (totals, _), _ = source.route(sums, DTYPES)
        del source
        np.testing.assert_array_equal(lazy.compute(), 2 * X[:, 0])
        np.testing.assert_array_equal(totals.compute(), X.sum(axis=1))
