"""Explanations and pages of rows that are not in memory: a sample stands for all of them."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from taxarbor import TableWarning, Taxarbor
from taxarbor._errors import InputError
from taxarbor.explain import _explain, explain
from taxarbor.report import report
from taxarbor.taxonomy._edit_taxonomy import drop_rows

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


@pytest.fixture
def save(tmp_path):
    """Save rows to a file, and return its path."""

    def save_rows(X):
        np.save(tmp_path / "rows.npy", X)
        return tmp_path / "rows.npy"

    return save_rows


def read_context(path):
    text = path.read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    return json.loads(data[1]), text


def test_few_rows_are_all_read(planted, model, save):
    X, groups = planted
    whole, path, counts = explain(model, X, classes=groups), save(X), drop_rows(model.taxonomy_)
    for given, rows in (
        (model, path),
        (model.taxonomy_, np.load(path, mmap_mode="r")),
        (counts, str(path)),
        (counts, X),
    ):
        why = explain(given, rows, classes=groups)
        assert why.notes == ()
        assert len(why.row_numbers) == N
        assert (why.weights == 1.0).all()
        assert why.to_dict() == whole.to_dict()
    with pytest.raises(InputError, match="X has 10 rows"):
        explain(counts, X[:10])


def test_a_sample_stands_for_all_rows(planted, model, few, save):
    X, groups = planted
    whole, path = explain(model, X, classes=groups), save(X)
    sizes = whole.taxonomy.tree.sizes
    for given in (model, drop_rows(model.taxonomy_)):
        why = explain(given, path, classes=groups)
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
            for name, count in its["classes"].items():
                assert abs(mine["classes"].get(name, 0) - count) < 0.05 * its["n_rows"] + 60
            both = zip(mine["distinctive_features"], its["distinctive_features"], strict=True)
            for feature, same in both:
                assert abs(feature["effect"]) == pytest.approx(abs(same["effect"]), abs=0.15)
                assert sum(feature["counts"]) == pytest.approx(its["n_rows"], rel=0.01, abs=9)
                assert feature["all_mean"] == pytest.approx(same["all_mean"], abs=0.3)


def test_rows_of_a_sample_keep_their_numbers(planted, model, few, save):
    X, _ = planted
    tree, path = model.taxonomy_.tree, save(X)
    why, whole = explain(model, path), explain(model, X)
    for node in range(tree.n_nodes):
        for kind, examples in why.examples(node, 3).items():
            rows = np.array([example["row"] for example in examples], dtype=int)
            assert np.isin(rows, why.row_numbers).all(), kind
            assert np.isin(rows, tree.rows(node)).all()
            assert [example["name"] for example in examples] == [f"row {row}" for row in rows]
            assert why.format_cells(rows, 0) == whole.format_cells(rows, 0)
    row = int(why.row_numbers[-1])
    values = why.row(row)
    assert (values["row"], values["cluster"]) == (row, tree.labels[row])
    assert [step["child"] for step in values["steps"]] == [*tree.path(values["leaf"])[1:]]
    assert why.rows([row])["row"].unique().tolist() == [row]
    assert len(why.rows()["row"].unique()) == len(why.row_numbers)
    absent = int(np.setdiff1d(np.arange(N), why.row_numbers)[0])
    for wrong in (absent, N):
        with pytest.raises(IndexError, match=f"row {wrong}"):
            why.row(wrong)
    last = why.place(X[[absent]])["child"].tolist()[-1]
    assert last == tree.leaves[tree.labels[absent]]
    named = explain(model, path, row_names=[f"n{row}" for row in range(N)])
    assert named.row(f"n{row}")["row"] == row
    assert named.examples(1, 1)["typical"][0]["name"].startswith("n")


def test_what_does_not_fit_is_refused(planted, model, few, save):
    X, _ = planted
    taxonomy = drop_rows(model.taxonomy_)
    gaps = np.where(np.arange(N)[:, None] > 5000, np.nan, X)
    for given in (X[:-1], X + 3.0, X[:, :2], gaps, np.zeros_like(X)):
        with pytest.raises(InputError, match=r"\bX\b"):
            explain(taxonomy, save(given))
    with pytest.raises(InputError, match="5 row names"):
        explain(taxonomy, save(X), row_names=["a"] * 5)


def test_weights_and_noise(planted, few, save, tmp_path):
    X, groups = planted
    path, weights = save(X), np.where(np.arange(N) % 2, 3.0, 1.0)
    for rows in (X, path):
        model = Taxarbor(4, noise=0.05, random_state=0).fit(rows, sample_weight=weights)
        tree, why = model.taxonomy_.tree, explain(model, path)
        np.testing.assert_allclose(why.taxonomy.tree.node_weights, tree.node_weights)
        is_noise = why.taxonomy.tree.labels < 0
        assert is_noise.any()
        assert (why.weights[is_noise] == 0.0).all()
    in_memory = Taxarbor(4, noise=0.05, random_state=0).fit(X, sample_weight=weights)
    why = explain(in_memory, path)
    drawn = why.weights * np.where(why.row_numbers % 2, 1 / 3, 1.0)
    n_factors = len(np.unique(drawn[drawn > 0.0].round(6)))
    assert n_factors == in_memory.taxonomy_.tree.n_leaves
    report(model, path, tmp_path / "page.html", classes=groups)
    context, text = read_context(tmp_path / "page.html")
    assert context["n_rows"] + context["n_noise"] == N
    assert f"{tree.n_noise} rows set apart as noise" in text


def test_a_table_in_files(few, tmp_path):
    """Numbers, a category and missing values."""
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    age = rng.normal(40.0, 5.0, N) + 30.0 * (np.arange(N) % 3 == 0)
    towns = np.array(["a", "b", "c"])[np.arange(N) % 3]
    frame = pd.DataFrame({"age": age.round(2), "town": towns})
    frame.loc[rng.random(N) < 0.1, "town"] = None
    for n in range(4):
        frame[n * 1500 : (n + 1) * 1500].to_parquet(tmp_path / f"part-{n}.parquet")
    with pytest.warns(TableWarning):
        model = Taxarbor(3, random_state=0).fit(frame)
    with pytest.warns(TableWarning):
        from_files = Taxarbor(3, random_state=0).fit(tmp_path)
    whole, why = explain(model, frame), explain(from_files, tmp_path)
    assert why.names == whole.names
    assert len(why.row_numbers) == N_DRAWN
    for node in range(why.taxonomy.tree.n_nodes):
        mine, its = why.node(node), whole.node(node)
        assert (mine["missing"], mine["features"]) == (its["missing"], its["features"])
        assert all(0.0 <= f["missing"] < 0.3 for f in mine["distinctive_features"])
    rows = why.row_numbers[:1]
    assert why.format_cells(rows, 0) == whole.format_cells(rows, 0)


def test_a_page_of_a_sample(planted, model, few, save, tmp_path):
    X, groups = planted
    options = {"images": (np.arange(N) % 256).astype(np.uint8)[:, None, None].repeat(4, axis=2)}
    options |= {"classes": groups, "title": "Many rows"}
    paths = tmp_path / "whole.html", tmp_path / "sample.html"
    report(model, X, paths[0], **options)
    report(drop_rows(model.taxonomy_), save(X), paths[1], **options)
    (its, _), (mine, text) = map(read_context, paths)
    assert its["notes"] == []
    assert len(mine["notes"]) == 1
    assert text.count("from a sample of") == 2  # on the page, and without scripts
    for name in ("n_rows", "n_noise", "n_clusters", "height", "has_rules", "classes"):
        assert mine[name] == its[name]
    for name in ("order", "names", "least_margins", "probabilities"):
        assert mine[name] is None
    for node, same in zip(mine["nodes"], its["nodes"], strict=True):
        for name in ("start", "stop", "name", "deciding", "parent"):
            assert node[name] == same[name]
        for side, counts in zip(node["margins"], same["margins"], strict=True):
            assert sum(side) == pytest.approx(sum(counts), abs=9)
        n_rows = node["stop"] - node["start"]
        assert sum(count for _, count in node["classes"]) == pytest.approx(n_rows, abs=4)
    for row, (_, code) in mine["rows"].items():
        assert mine["classes"][code] == str(groups[int(row)])
    for name, value in mine["scores"].items():
        assert value == pytest.approx(its["scores"][name], abs=0.08)
    assert mine["pictures"]
    for row in mine["pictures"].keys() & its["pictures"].keys():
        assert mine["pictures"][row] == its["pictures"][row]


def test_rows_of_dask(planted, model, few, save, tmp_path):
    """Arrays, of chunks of unknown size as well, and frames."""
    array, frames = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, groups = planted
    taxonomy = drop_rows(model.taxonomy_)
    here = explain(taxonomy, save(X), classes=groups)
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
    assert read_context(tmp_path / "page.html")[0]["n_rows"] == N
    with pytest.raises(InputError, match="X has 2 features"):
        explain(taxonomy, lazy[:, :2])
