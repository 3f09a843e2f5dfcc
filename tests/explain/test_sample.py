"""Explanations and pages of rows that need not fit into memory: a sample for all of them."""

import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import TableWarning, Taxarbor
from taxarbor._errors import InputError
from taxarbor._run import Run
from taxarbor.explain import _sample, explain
from taxarbor.explain._sample import draw_rows
from taxarbor.hierarchy._remade import without_rows
from taxarbor.report import report
from taxarbor.sweep import LocalEngine
from taxarbor.tables._stream import Stream, as_stream

N, EACH = 6_000, 150


@pytest.fixture(scope="module")
def planted():
    """Rows of four groups, two of them small, and their groups."""
    rng = np.random.default_rng(3)
    groups = rng.choice(4, size=N, p=[0.6, 0.3, 0.07, 0.03])
    centers = np.array([[0, 0, 0], [9, 0, 1], [0, 9, 2], [9, 9, 40]], dtype=float)
    X = (centers[groups] + rng.normal(size=(N, 3))).astype("float32")
    return X, groups


@pytest.fixture(scope="module")
def model(planted):
    return Taxarbor(4, random_state=0).fit(planted[0])


@pytest.fixture
def few(monkeypatch):
    """Let few rows be many."""
    monkeypatch.setattr(_sample, "ROWS", 4 * EACH)


def stream_of(X, size, *, knows_sizes=True, make=lambda part: part):
    """Return a table in parts of this size."""
    cut = [X[first : first + size] for first in range(0, len(X), size)]
    sizes = np.array([len(part) for part in cut]) if knows_sizes else None
    titles = [f"block {n}" for n in range(len(cut))]
    names = [*map(str, X.columns)] if hasattr(X, "columns") else None
    return Stream([make(part) for part in cut], titles, sizes, names, LocalEngine, None)


def mapped(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    return tmp_path / "rows.npy"


def test_the_same_rows_are_drawn_however_they_lie(planted, model, few):
    X, _ = planted
    tree = model.hierarchy_
    first = draw_rows(tree, stream_of(X, 1000))
    assert len(first.numbers) == len(first.X) <= 4 * EACH
    assert (np.diff(first.numbers) > 0).all()
    np.testing.assert_array_equal(first.X, X[first.numbers])
    np.testing.assert_array_equal(first.labels, tree.labels[first.numbers])
    drawn = np.bincount(first.labels)
    np.testing.assert_array_equal(drawn, np.minimum(tree.sizes[tree.leaves], EACH))
    sums = np.bincount(first.labels, first.weights)
    np.testing.assert_allclose(sums, tree.sizes[tree.leaves])
    for size, other, options in (
        (77, tree, {}),
        (N, without_rows(tree), {}),
        (999, without_rows(tree), {"knows_sizes": False}),
        (1000, tree, {"make": sparse.csr_array}),
    ):
        again = draw_rows(other, stream_of(X, size, **options))
        np.testing.assert_array_equal(again.numbers, first.numbers)
        np.testing.assert_array_equal(again.labels, first.labels)
        np.testing.assert_array_equal(again.weights, first.weights)
        data = again.X.toarray() if sparse.issparse(again.X) else again.X
        np.testing.assert_array_equal(data, first.X)


def test_few_rows_are_all_read(planted, model, tmp_path):
    X, groups = planted
    whole = explain(model, X, classes=groups)
    path = mapped(X, tmp_path)
    for given, tree in (
        (path, model),
        (np.load(path, mmap_mode="r"), model.hierarchy_),
        (str(path), without_rows(model.hierarchy_)),
    ):
        why = explain(tree, given, classes=groups)
        assert why.notes == ()
        assert why.numbers is None
        assert why.to_dict() == whole.to_dict()


def test_a_tree_of_counts_is_explained_by_its_rows(planted, model):
    X, _ = planted
    assert explain(without_rows(model.hierarchy_), X).to_dict() == explain(model, X).to_dict()
    with pytest.raises(InputError, match="X has 10 rows, but the tree was grown on 6,000"):
        explain(without_rows(model.hierarchy_), X[:10])


def test_a_sample_stands_for_all_rows(planted, model, few, tmp_path):
    X, groups = planted
    whole = explain(model, X, classes=groups)
    path = mapped(X, tmp_path)
    for tree in (model, without_rows(model.hierarchy_)):
        why = explain(tree, path, classes=groups)
        n_drawn = len(why.numbers)
        assert n_drawn < N / 5
        (note,) = why.notes
        assert f"a sample of {n_drawn} rows of 6,000" in note
        assert why.names == whole.names
        assert why.to_dict()["notes"] == [note]
        np.testing.assert_array_equal(why.whole.sizes, whole.hierarchy.sizes)
        np.testing.assert_allclose(why.hierarchy.node_weights, whole.hierarchy.sizes)
        np.testing.assert_allclose(why.units, whole.units, rtol=0.2)
        for node in range(why.hierarchy.n_nodes):
            mine, its = why.node(node), whole.node(node)
            for name in ("n_rows", "follows", "fidelity", "features", "cluster", "name"):
                assert mine[name] == its[name]
            assert sum(mine["classes"].values()) == pytest.approx(its["n_rows"], abs=4)
            for one, count in its["classes"].items():
                assert abs(mine["classes"].get(one, 0) - count) < 0.05 * its["n_rows"] + 30
            for one, other in zip(mine["standout"], its["standout"], strict=True):
                assert abs(one["effect"]) == pytest.approx(abs(other["effect"]), abs=0.1)
                assert sum(one["counts"]) == pytest.approx(its["n_rows"], rel=0.01, abs=9)
                assert one["all_mean"] == pytest.approx(other["all_mean"], abs=0.3)


def test_rows_of_a_sample_keep_their_numbers(planted, model, few):
    X, _ = planted
    tree = model.hierarchy_
    names = [f"n{row}" for row in range(N)]
    why = explain(model, stream_of(X, 700))
    for node in range(tree.n_nodes):
        for kind in ("typical", "extreme", "borderline"):
            for one in getattr(why, kind)(node, 3):
                row = one["row"]
                assert row in why.numbers
                assert row in tree.rows(node)
                assert one["name"] == f"row {row}"
                assert why.cells(np.array([row]), 0) == explain(model, X).cells(
                    np.array([row]), 0
                )
                break
    row = int(why.numbers[-1])
    told = why.row(row)
    assert told["row"] == row
    assert told["cluster"] == tree.labels[row]
    assert [step["child"] for step in told["steps"]] == [*tree.path(told["leaf"])[1:]]
    frame = why.rows([row])
    assert frame["row"].unique().tolist() == [row]
    assert len(why.rows()["row"].unique()) == len(why.numbers)
    missing = int(np.setdiff1d(np.arange(N), why.numbers)[0])
    with pytest.raises(
        IndexError, match=rf"row {missing} is not among the .* rows of the sample"
    ):
        why.row(missing)
    with pytest.raises(IndexError, match="rows are numbered 0 to 5999"):
        why.row(N)
    named = explain(model, stream_of(X, 700), row_names=names)
    assert named.row(f"n{row}")["row"] == row
    assert named.typical(1, 1)[0]["name"].startswith("n")
    assert why.place(X[[missing]])["child"].tolist()[-1] == tree.leaves[tree.labels[missing]]


def test_what_does_not_fit_is_refused(planted, model, few):
    X, _ = planted
    tree = without_rows(model.hierarchy_)
    gaps = np.where(np.arange(N)[:, None] > 5000, np.nan, X)
    for given, message in (
        (X[:-1], "X has 5,999 rows, but the tree was grown on 6,000"),
        (X + 3.0, "does not hold the rows|no row of X goes to cluster"),
        (X[:, :2], "block 0: X has 2 features"),
        (gaps, "X holds NaN, and the rows that the tree was grown on had no gaps"),
        (np.zeros_like(X), "no row of X goes to cluster c"),
    ):
        with pytest.raises(InputError, match=message):
            explain(tree, stream_of(given, 1000))
    with pytest.raises(InputError, match="sample_weight cannot be given with rows that are"):
        explain(tree, stream_of(X, 1000), sample_weight=np.ones(N))
    with pytest.raises(InputError, match="5 row names for 6000 rows"):
        explain(tree, stream_of(X, 1000), row_names=["a"] * 5)


def test_a_weighted_tree(planted, few):
    X, _ = planted
    weights = np.where(np.arange(N) % 2, 3.0, 1.0)
    tree = Taxarbor(4, random_state=0).fit(X, sample_weight=weights).hierarchy_
    why = explain(tree, stream_of(X, 700))
    np.testing.assert_allclose(why.hierarchy.node_weights, tree.node_weights)
    drawn = why.weights * np.where(why.numbers % 2, 1 / 3, 1.0)
    assert len(np.unique(drawn.round(6))) == 4


@pytest.fixture(scope="module")
def table():
    """A table with a category and gaps, and the tree of it."""
    rng = np.random.default_rng(0)
    age = rng.normal(40.0, 5.0, N) + 30.0 * (np.arange(N) % 3 == 0)
    frame = pd.DataFrame(
        {"age": age.round(2), "town": np.array(["a", "b", "c"])[np.arange(N) % 3]}
    )
    frame.loc[rng.random(N) < 0.1, "town"] = None
    with pytest.warns(TableWarning):
        return frame, Taxarbor(3, random_state=0).fit(frame)


def test_a_table_in_files(table, few, tmp_path):
    pytest.importorskip("pyarrow")
    frame, model = table
    for n in range(4):
        frame[n * 1500 : (n + 1) * 1500].to_parquet(tmp_path / f"part-{n}.parquet")
    whole = explain(model, frame)
    why = explain(without_rows(model.hierarchy_), tmp_path)
    assert why.names == whole.names
    assert len(why.numbers) < N / 5
    for node in range(why.hierarchy.n_nodes):
        mine, its = why.node(node), whole.node(node)
        assert mine["missing"] == its["missing"]
        assert mine["features"] == its["features"]
        for one in mine["standout"]:
            assert 0.0 <= one["missing"] < 0.3
    row = int(why.numbers[0])
    assert why.cells(np.array([row]), 0) == whole.cells(np.array([row]), 0)


def context(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1)), text


def test_a_page_of_a_sample(planted, model, few, tmp_path):
    X, groups = planted
    write = partial(report, classes=groups, title="Many rows")
    write(model, X, tmp_path / "whole.html")
    write(without_rows(model.hierarchy_), mapped(X, tmp_path), tmp_path / "sample.html")
    (mine, text), (its, _) = context(tmp_path / "sample.html"), context(tmp_path / "whole.html")
    assert mine["notes"] == [
        note for note in mine["notes"] if re.search("from a sample of .* rows of 6,000", note)
    ]
    assert len(mine["notes"]) == 1
    assert its["notes"] == []
    assert text.count("from a sample of") == 2  # on the page, and without scripts
    for name in ("n_rows", "n_noise", "n_clusters", "height", "decides", "facts", "classes"):
        assert mine[name] == its[name]
    for name in ("order", "names", "true", "weakest", "probabilities"):
        assert mine[name] is None
    for one, other in zip(mine["nodes"], its["nodes"], strict=True):
        for name in ("start", "stop", "name", "leads", "holds", "parent"):
            assert one[name] == other[name]
        n_rows = one["stop"] - one["start"]
        for side, counts in zip(one["margins"], other["margins"], strict=True):
            assert sum(side) == pytest.approx(sum(counts), abs=9)
        assert sum(count for _, count in one["classes"]) == pytest.approx(n_rows, abs=4)
    for row, (_, code) in mine["rows"].items():
        assert mine["classes"][code] == str(groups[int(row)])
    for name, value in mine["scores"].items():
        assert value == pytest.approx(its["scores"][name], abs=0.05)


def test_pictures_of_a_sample(planted, model, few, tmp_path):
    X, _ = planted
    images = (np.arange(N) % 256).astype(np.uint8)[:, None, None] * np.ones((1, 4, 4), np.uint8)
    paths = tmp_path / "whole.html", tmp_path / "sample.html"
    report(model, X, paths[0], images=images)
    report(model, stream_of(X, 900), paths[1], images=images)
    whole, mine = (context(path)[0]["pictures"] for path in paths)
    assert mine
    for row in mine.keys() & whole.keys():
        assert mine[row] == whole[row]


def test_threads_draw_the_same(planted, model, few):
    from concurrent.futures import ThreadPoolExecutor

    X, _ = planted
    stream = stream_of(X, 500)
    with ThreadPoolExecutor(2) as pool:
        threads = Stream(
            stream.parts, stream.titles, stream.sizes, None,
            lambda run, room: LocalEngine(Run(run.seed, run.observer, pool), room), None,
        )  # fmt: skip
        again = draw_rows(model.hierarchy_, threads)
    np.testing.assert_array_equal(draw_rows(model.hierarchy_, stream).numbers, again.numbers)
    assert as_stream(stream) is stream


def test_rows_of_dask(planted, model, few, tmp_path):
    """Arrays, of chunks of unknown size as well, and frames."""
    array, frames = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, groups = planted
    tree = without_rows(model.hierarchy_)
    here = explain(tree, mapped(X, tmp_path), classes=groups)
    lazy = array.from_array(X, chunks=(900, 3))
    for given in (lazy, lazy[lazy[:, 0] > -1e6]):
        why = explain(tree, given, classes=groups)
        np.testing.assert_array_equal(why.numbers, here.numbers)
        assert why.to_dict() == here.to_dict()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    why = explain(tree, frames.from_pandas(frame, npartitions=4))
    np.testing.assert_array_equal(why.numbers, here.numbers)
    assert why.hierarchy.feature_names == ["a", "b", "c"]
    report(tree, lazy, tmp_path / "page.html", classes=groups)
    assert context(tmp_path / "page.html")[0]["n_rows"] == N
    with pytest.raises(InputError, match=r"block \d: X has 2 features"):
        explain(tree, lazy[:, :2])


def test_from_a_fit_of_a_file_to_a_page(planted, few, tmp_path):
    """The tree holds counts; weights, noise and gaps are told as in memory."""
    X, groups = planted
    path = mapped(X, tmp_path)
    weights = np.where(np.arange(N) % 2, 2.0, 1.0)
    model = Taxarbor(4, noise=0.01, random_state=0).fit(path, sample_weight=weights)
    tree = model.hierarchy_
    assert not tree.has_rows
    whole = Taxarbor(4, noise=0.01, random_state=0).fit(X, sample_weight=weights).hierarchy_
    assert str(tree) == str(whole)
    assert tree.n_noise == whole.n_noise > 0
    np.testing.assert_allclose(tree.node_weights, whole.node_weights)
    why = explain(model, path, classes=groups)
    np.testing.assert_allclose(why.hierarchy.node_weights, tree.node_weights)
    report(model, path, tmp_path / "page.html", classes=groups)
    found, text = context(tmp_path / "page.html")
    assert found["n_rows"] + found["n_noise"] == N
    assert f"{tree.n_noise} rows set apart as noise" in text
    again = tree.attach(X)
    np.testing.assert_array_equal(again.labels, model.labels_)
    np.testing.assert_array_equal(again.sizes, tree.sizes)


def test_from_a_fit_of_a_table_to_an_explanation(table, few, tmp_path):
    pytest.importorskip("pyarrow")
    frame, model = table
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(TableWarning):
        streamed = Taxarbor(3, random_state=0).fit(tmp_path / "rows.parquet")
    tree = streamed.hierarchy_
    assert not tree.has_rows
    assert str(tree) == str(model.hierarchy_)
    np.testing.assert_allclose(tree.missing, model.hierarchy_.missing)
    why = explain(streamed, tmp_path / "rows.parquet")
    assert why.names == explain(model, frame).names
    np.testing.assert_allclose(tree.attach(frame).missing, tree.missing)
