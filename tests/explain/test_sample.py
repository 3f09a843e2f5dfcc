"""Explanations and pages of rows that are not in memory: a sample stands for all of them."""

import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from taxarbor import TableWarning, Taxarbor
from taxarbor._errors import InputError
from taxarbor.explain import _explain, explain
from taxarbor.report import report
from taxarbor.taxonomy._edit import drop_rows

N, N_DRAWN = 6_000, 600


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
    monkeypatch.setattr(_explain, "MIN_SAMPLE_ROWS", N_DRAWN)
    monkeypatch.setattr(_explain, "SAMPLE_ROWS_PER_LEAF", 1)


def mapped(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    return tmp_path / "rows.npy"


def test_few_rows_are_all_read(planted, model, tmp_path):
    X, groups = planted
    whole = explain(model, X, classes=groups)
    path = mapped(X, tmp_path)
    for given, taxonomy in (
        (path, model),
        (np.load(path, mmap_mode="r"), model.taxonomy_),
        (str(path), drop_rows(model.taxonomy_)),
    ):
        why = explain(taxonomy, given, classes=groups)
        assert why.notes == ()
        assert len(why.row_numbers) == N
        assert why.to_dict() == whole.to_dict()


def test_a_tree_of_counts_is_explained_by_its_rows(planted, model):
    X, _ = planted
    assert explain(drop_rows(model.taxonomy_), X).to_dict() == explain(model, X).to_dict()
    with pytest.raises(InputError, match="X has 10 rows"):
        explain(drop_rows(model.taxonomy_), X[:10])


def test_a_sample_stands_for_all_rows(planted, model, few, tmp_path):
    X, groups = planted
    whole = explain(model, X, classes=groups)
    path, sizes = mapped(X, tmp_path), whole.taxonomy.tree.sizes
    for taxonomy in (model, drop_rows(model.taxonomy_)):
        why = explain(taxonomy, path, classes=groups)
        assert len(why.row_numbers) == N_DRAWN
        (note,) = why.notes
        assert f"a sample of {N_DRAWN} rows of 6,000" in note
        assert why.names == whole.names
        assert why.to_dict()["notes"] == [note]
        np.testing.assert_array_equal(why.whole.tree.sizes, sizes)
        np.testing.assert_allclose(why.taxonomy.tree.node_weights, sizes)
        np.testing.assert_allclose(why.units, whole.units, rtol=0.3)
        for node in range(why.taxonomy.tree.n_nodes):
            mine, its = why.node(node), whole.node(node)
            for name in ("n_rows", "features", "cluster", "name"):
                assert mine[name] == its[name]
            assert sum(mine["classes"].values()) == pytest.approx(its["n_rows"], abs=4)
            for one, count in its["classes"].items():
                assert abs(mine["classes"].get(one, 0) - count) < 0.05 * its["n_rows"] + 60
            for one, other in zip(
                mine["distinctive_features"], its["distinctive_features"], strict=True
            ):
                assert abs(one["effect"]) == pytest.approx(abs(other["effect"]), abs=0.15)
                assert sum(one["counts"]) == pytest.approx(its["n_rows"], rel=0.01, abs=9)
                assert one["all_mean"] == pytest.approx(other["all_mean"], abs=0.3)


def test_rows_of_a_sample_keep_their_numbers(planted, model, few, tmp_path):
    X, _ = planted
    tree, path = model.taxonomy_.tree, mapped(X, tmp_path)
    names = [f"n{row}" for row in range(N)]
    why, whole = explain(model, path), explain(model, X)
    for node in range(tree.n_nodes):
        for kind in ("typical", "extreme", "borderline"):
            for example in why.examples(node, 3)[kind]:
                row = example["row"]
                assert row in why.row_numbers
                assert row in tree.rows(node)
                assert example["name"] == f"row {row}"
                cells = [e.format_cells(np.array([row]), 0) for e in (why, whole)]
                assert cells[0] == cells[1]
    row = int(why.row_numbers[-1])
    values = why.row(row)
    assert (values["row"], values["cluster"]) == (row, tree.labels[row])
    assert [step["child"] for step in values["steps"]] == [*tree.path(values["leaf"])[1:]]
    frame = why.rows([row])
    assert frame["row"].unique().tolist() == [row]
    assert len(why.rows()["row"].unique()) == len(why.row_numbers)
    missing = int(np.setdiff1d(np.arange(N), why.row_numbers)[0])
    for wrong in (missing, N):
        with pytest.raises(IndexError, match=f"row {wrong}"):
            why.row(wrong)
    named = explain(model, path, row_names=names)
    assert named.row(f"n{row}")["row"] == row
    assert named.examples(1, 1)["typical"][0]["name"].startswith("n")
    last = why.place(X[[missing]])["child"].tolist()[-1]
    assert last == tree.leaves[tree.labels[missing]]


def test_what_does_not_fit_is_refused(planted, model, few, tmp_path):
    X, _ = planted
    taxonomy = drop_rows(model.taxonomy_)
    gaps = np.where(np.arange(N)[:, None] > 5000, np.nan, X)
    for given in (X[:-1], X + 3.0, X[:, :2], gaps, np.zeros_like(X)):
        with pytest.raises(InputError, match=r"\bX\b"):
            explain(taxonomy, mapped(given, tmp_path))
    path = mapped(X, tmp_path)
    with pytest.raises(InputError, match="5 row names"):
        explain(taxonomy, path, row_names=["a"] * 5)


def test_a_weighted_tree_with_noise(planted, few, tmp_path):
    X, _ = planted
    weights = np.where(np.arange(N) % 2, 3.0, 1.0)
    model = Taxarbor(4, noise=0.05, random_state=0).fit(X, sample_weight=weights)
    taxonomy = model.taxonomy_
    why = explain(taxonomy, mapped(X, tmp_path))
    np.testing.assert_allclose(why.taxonomy.tree.node_weights, taxonomy.tree.node_weights)
    is_noise = taxonomy.tree.labels[why.row_numbers] < 0
    assert is_noise.any()
    assert (why.weights[is_noise] == 0.0).all()
    drawn = why.weights * np.where(why.row_numbers % 2, 1 / 3, 1.0)
    assert len(np.unique(drawn[~is_noise].round(6))) == taxonomy.tree.n_leaves


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
    why = explain(drop_rows(model.taxonomy_), tmp_path)
    assert why.names == whole.names
    assert len(why.row_numbers) == N_DRAWN
    for node in range(why.taxonomy.tree.n_nodes):
        mine, its = why.node(node), whole.node(node)
        assert mine["missing"] == its["missing"]
        assert mine["features"] == its["features"]
        for one in mine["distinctive_features"]:
            assert 0.0 <= one["missing"] < 0.3
    row = int(why.row_numbers[0])
    assert why.format_cells(np.array([row]), 0) == whole.format_cells(np.array([row]), 0)


def context(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1)), text


def test_a_page_of_a_sample(planted, model, few, tmp_path):
    X, groups = planted
    write = partial(report, classes=groups, title="Many rows")
    write(model, X, tmp_path / "whole.html")
    write(drop_rows(model.taxonomy_), mapped(X, tmp_path), tmp_path / "sample.html")
    (mine, text), (its, _) = context(tmp_path / "sample.html"), context(tmp_path / "whole.html")
    assert mine["notes"] == [
        note for note in mine["notes"] if re.search("from a sample of .* rows of 6,000", note)
    ]
    assert len(mine["notes"]) == 1
    assert its["notes"] == []
    assert text.count("from a sample of") == 2  # on the page, and without scripts
    for name in ("n_rows", "n_noise", "n_clusters", "height", "has_rules", "classes"):
        assert mine[name] == its[name]
    for name in ("order", "names", "least_margins", "probabilities"):
        assert mine[name] is None
    for one, other in zip(mine["nodes"], its["nodes"], strict=True):
        for name in ("start", "stop", "name", "deciding", "parent"):
            assert one[name] == other[name]
        n_rows = one["stop"] - one["start"]
        for side, counts in zip(one["margins"], other["margins"], strict=True):
            assert sum(side) == pytest.approx(sum(counts), abs=9)
        assert sum(count for _, count in one["classes"]) == pytest.approx(n_rows, abs=4)
    for row, (_, code) in mine["rows"].items():
        assert mine["classes"][code] == str(groups[int(row)])
    assert mine["scores"].pop("adjusted_mutual_info") is None  # weights have fractions
    for name, value in mine["scores"].items():
        assert value == pytest.approx(its["scores"][name], abs=0.08)


def test_pictures_of_a_sample(planted, model, few, tmp_path):
    X, _ = planted
    images = (np.arange(N) % 256).astype(np.uint8)[:, None, None] * np.ones((1, 4, 4), np.uint8)
    paths = tmp_path / "whole.html", tmp_path / "sample.html"
    report(model, X, paths[0], images=images)
    report(model, mapped(X, tmp_path), paths[1], images=images)
    whole, mine = (context(path)[0]["pictures"] for path in paths)
    assert mine
    for row in mine.keys() & whole.keys():
        assert mine[row] == whole[row]


def test_rows_of_dask(planted, model, few, tmp_path):
    """Arrays, of chunks of unknown size as well, and frames."""
    array, frames = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, groups = planted
    taxonomy = drop_rows(model.taxonomy_)
    here = explain(taxonomy, mapped(X, tmp_path), classes=groups)
    lazy = array.from_array(X, chunks=(900, 3))
    for given in (lazy, lazy[lazy[:, 0] > -1e6]):
        why = explain(taxonomy, given, classes=groups)
        np.testing.assert_array_equal(why.row_numbers, here.row_numbers)
        assert why.to_dict() == here.to_dict()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    why = explain(taxonomy, frames.from_pandas(frame, npartitions=4))
    np.testing.assert_array_equal(why.row_numbers, here.row_numbers)
    assert why.taxonomy.feature_names == ("a", "b", "c")
    report(taxonomy, lazy, tmp_path / "page.html", classes=groups)
    assert context(tmp_path / "page.html")[0]["n_rows"] == N
    with pytest.raises(InputError, match="X has 2 features"):
        explain(taxonomy, lazy[:, :2])


def test_from_a_fit_of_a_file_to_a_page(planted, few, tmp_path):
    """Weights and noise are counted as in memory."""
    X, groups = planted
    path = mapped(X, tmp_path)
    weights = np.where(np.arange(N) % 2, 2.0, 1.0)
    model = Taxarbor(4, noise=0.01, random_state=0).fit(path, sample_weight=weights)
    taxonomy = model.taxonomy_
    assert taxonomy.tree.n_noise > 0
    why = explain(model, path, classes=groups)
    np.testing.assert_allclose(why.taxonomy.tree.node_weights, taxonomy.tree.node_weights)
    report(model, path, tmp_path / "page.html", classes=groups)
    found, text = context(tmp_path / "page.html")
    assert found["n_rows"] + found["n_noise"] == N
    assert f"{taxonomy.tree.n_noise} rows set apart as noise" in text


def test_from_a_fit_of_a_table_to_an_explanation(table, few, tmp_path):
    pytest.importorskip("pyarrow")
    frame, model = table
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(TableWarning):
        fitted = Taxarbor(3, random_state=0).fit(tmp_path / "rows.parquet")
    why = explain(fitted, tmp_path / "rows.parquet")
    assert why.names == explain(model, frame).names
