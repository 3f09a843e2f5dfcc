"""Labels, the table of leaves by classes, and the flat scores read off it."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics as sk

from taxarbor.exchange import from_labels
from taxarbor.metrics import score_hierarchy
from taxarbor.metrics._table import encode_labels, pairs, tabulate
from taxarbor.tree import TreeBuilder

SCORES = ["rand", "adjusted_rand", "adjusted_mutual_info"]


# Labels


def decoded(y):
    codes, classes = encode_labels(y, len(y))
    assert codes.dtype == np.intp
    assert sorted(set(codes)) == list(range(len(classes)))
    return [classes[code] for code in codes]


def test_labels_of_every_kind():
    rows = ["b", "a", "b", "c", "a"]
    for y in (
        rows, tuple(rows), np.array(rows), np.array(rows, dtype=object), np.ma.array(rows),
        pd.Series(rows, index=[5, 4, 3, 2, 1]), pd.Series(rows, dtype=object), pd.Index(rows),
        pd.Series(rows, dtype="category"),
        pd.Categorical(rows, categories=["z", "c", "b", "a"]),
        pl.Series(rows), pl.Series(rows, dtype=pl.Categorical),
    ):  # fmt: skip
        assert decoded(y) == rows
    numbers = [3, -2, 3, 100, -2]
    for dtype in ("int8", "int16", "int32", "int64", "float32", "float64", "object"):
        assert decoded(np.array(numbers, dtype=dtype)) == numbers
        assert decoded(pd.Series(numbers, dtype=dtype)) == numbers
    for dtype in ("int64", "uint64", "int8", "uint8"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        for values in ([low, high, low], [high, high - 1, high], [low, low + 1, low + 5]):
            assert decoded(np.array(values, dtype=dtype)) == values
    dates = np.array(["2020-01-01", "2021-01-01", "2020-01-01"], dtype="datetime64[D]")
    assert encode_labels(dates, 3)[0].tolist() == [0, 1, 0]


def test_labels_read_as_python_would():
    assert decoded(np.array([True, False])) == [True, False]
    for values, kind in (([True, False], bool), ([1, 0], int), (["a", "b"], str)):
        assert {type(label) for label in encode_labels(np.array(values), 2)[1]} == {kind}
    assert decoded(np.array([(1, 2), "x", None], dtype=object)[:2]) == [(1, 2), "x"]
    codes, classes = encode_labels([1, "1", 2, b"1", "2"], 5)
    assert (codes.tolist(), classes) == ([0, 0, 1, 0, 1], (1, 2))


def test_rows_without_a_class():
    for y in (
        ["a", None, "b", None],
        ["a", math.nan, "b", math.nan],
        [1, math.nan, 2, math.nan],
        np.array([1.0, math.nan, 2.0, math.nan]),
        np.array(["a", np.float32("nan"), "b", None], dtype=object),
        np.array(["a", pd.NA, "b", pd.NaT], dtype=object),
        np.array(["2020-01-01", "NaT", "2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 1]),
        pd.Series(["a", None, "b", None]),
        pd.Series([1, None, 2, None], dtype="Int64"),
        pd.Categorical(["a", None, "b", None]),
        pl.Series(["a", None, "b", None]),
        pl.Series([1, None, 2, None]),
        ["a", "", "b", " "],
        np.array([b"a", b"", b"b", b""]),
        pd.Series(["a", "", "b", None], dtype="category"),
        np.array([1, math.nan, 1j, math.nan]),
    ):
        codes, classes = encode_labels(y, 4)
        assert codes[[1, 3]].tolist() == [-1, -1]
        found = {classes[code] for code in codes[[0, 2]]}
        assert len(found) == len(classes) == len({*np.asarray(y)[[0, 2]].tolist()})
    assert encode_labels([1, None, "1", ""], 4)[0].tolist() == [0, -1, 0, -1]
    for y in ([None] * 3, [math.nan] * 3, ["", None, " "], pd.Series([None] * 3)):
        with pytest.raises(ValueError, match=r"^none of the 3 rows has a label"):
            encode_labels(y, 3)


def test_what_cannot_be_classes_is_refused():
    square, frame = np.zeros((3, 1), dtype=int), pd.DataFrame({"y": [1, 2, 3]})
    for y in ("abc", ["a", "b"], square, frame, 7, []):
        with pytest.raises(ValueError, match=r"each of the 3 rows.*shape \(3,\); got shape \("):
            encode_labels(y, 3)
    with pytest.raises(ValueError, match=r"one class per row.*unhashable"):
        encode_labels(np.array([["a"], {"b": 1}, None], dtype=object), 3)


# The table


def test_counts(trees):
    for seed in range(5):
        taxonomy = trees.grow(seed, n_rows=30, n_leaves=5 + seed)
        y = np.random.default_rng(seed).choice(list("abcd"), 30)
        table = tabulate(taxonomy, y)
        for leaf in range(taxonomy.tree.n_leaves):
            for column, name in enumerate(table.classes):
                expected = np.sum((taxonomy.tree.labels == leaf) & (y == name))
                assert table.counts[leaf, column] == expected
        for node, counts in enumerate(table.node_counts()):
            assert counts.tolist() == [
                sum(y[taxonomy.tree.rows(node)] == c) for c in table.classes
            ]
        assert table.counts.dtype == np.int64
        assert table.n_pairs == 435
    assert pairs(np.array([0, 1, 2, 5, 10**6])).tolist() == [0, 0, 1, 10, 499_999_500_000]
    with pytest.raises(ValueError, match="at least two are needed, got 1"):
        tabulate(TreeBuilder(1).freeze(), ["a"])


def test_wrong_weights_are_refused(trees):
    taxonomy, y = trees.grow(0), np.arange(14) % 3
    for weights, told in (
        (np.ones(13), r"one number for each of 14 rows; got shape \(13,\)"),
        (np.ones((14, 1)), r"got shape \(14, 1\)"),
        (2.0, r"got shape \(\)"),
        (-np.eye(14)[3], "finite and not negative; row 3 has -1"),
        ([1.0, math.nan] * 7, "finite and not negative; row 1 has nan"),
        (pd.Series([1, None] * 7), "row 1 has nan"),
        ([1.0, math.inf] * 7, "row 1 has inf"),
        (["a"] * 14, "must hold numbers"),
        (np.zeros(14), "is zero for all rows"),
    ):
        with pytest.raises(ValueError, match=f"^sample_weight .*{told}"):
            tabulate(taxonomy, y, weights)
    for weights, told in (
        (np.full(14, 0.1), "got 1.4$"),
        (np.full(14, 1e9), "got 1.4e.10; di"),
    ):
        with pytest.raises(ValueError, match=told):
            tabulate(taxonomy, y, weights)
    with pytest.raises(ValueError, match="with a label: at least two are needed, got 0"):
        tabulate(taxonomy, ["a"] * 2 + [""] * 12, [0] * 2 + [1] * 12)


# Flat scores


@pytest.mark.parametrize("score", SCORES)
def test_scores_as_in_sklearn(trees, score):
    expected = getattr(sk, f"{score}_score")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n_rows = int(rng.integers(8, 200))
        taxonomy = trees.grow(seed, n_rows, n_leaves=1 + seed % 7)
        noise = rng.random(n_rows) < rng.random()
        y = np.where(noise, rng.integers(0, 1 + seed % 5, n_rows), taxonomy.tree.labels)
        found = score_hierarchy(taxonomy, y)[score]
        assert type(found) is float
        assert found == pytest.approx(expected(y, taxonomy.tree.labels), abs=1e-10)
        known, weights = rng.random(n_rows) < 0.7, rng.integers(0, 4, n_rows)
        known[:8] = weights[:8] = True
        some = pd.Series(y).where(known)
        with pytest.warns(
            UserWarning, match=r"^\d+ rows? without a label (is|are) left out of"
        ):
            found = score_hierarchy(taxonomy, some, sample_weight=weights)[score]
        repeated = np.repeat(np.arange(n_rows), weights * known)
        again = expected(y[repeated], taxonomy.tree.labels[repeated])
        assert found == pytest.approx(again, abs=1e-10)


@pytest.mark.parametrize("score", SCORES)
def test_perfect_agreement_is_exactly_one_and_order_does_not_matter(trees, score):
    def function(taxonomy, y):
        return score_hierarchy(taxonomy, y)[score]

    taxonomy = trees.grow(0)
    assert function(taxonomy, taxonomy.tree.labels) == 1.0
    assert function(taxonomy, [f"name {label}" for label in taxonomy.tree.labels]) == 1.0
    assert function(from_labels(np.arange(9)), np.arange(9)) == 1.0
    assert function(trees.grow(0, n_leaves=1), np.zeros(14)) == 1.0
    rng = np.random.default_rng(1)
    taxonomy, y = trees.grow(1), rng.integers(0, 4, 14)
    found, order = function(taxonomy, y), rng.permutation(14)
    assert function(from_labels(taxonomy.tree.labels[order]), y[order]) == pytest.approx(found)
    assert function(taxonomy, rng.permutation(4)[y]) == pytest.approx(found, abs=1e-14)


def test_fractions_lie_between_whole_weights(trees):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        taxonomy, y = trees.grow(seed, n_rows=300), rng.integers(0, 4, 300)
        whole, step = rng.integers(1, 4, 300), 1e-7 * rng.random(300)
        exact = score_hierarchy(taxonomy, y, sample_weight=whole)
        assert score_hierarchy(taxonomy, y, sample_weight=whole / 1.0) == exact
        for near in (whole + step, whole - step):
            found = score_hierarchy(taxonomy, y, sample_weight=near)
            for score in SCORES[:2]:
                assert found[score] == pytest.approx(exact[score], abs=1e-4)
            assert math.isnan(found["adjusted_mutual_info"])  # of whole rows only
        same = score_hierarchy(taxonomy, taxonomy.tree.labels, sample_weight=whole / 3)
        assert [same[score] for score in SCORES[:2]] == pytest.approx([1.0, 1.0])


def test_rand_pair_by_pair(trees, literal):
    taxonomy = trees.grow(3)
    y, labels = np.random.default_rng(3).integers(0, 3, 14), taxonomy.tree.labels
    agree = [(y[i] == y[j]) == (labels[i] == labels[j]) for i, j in literal.pairs(14)]
    assert score_hierarchy(taxonomy, y)["rand"] == pytest.approx(np.mean(agree), abs=1e-15)


def test_large_counts_do_not_overflow():
    # Products of the numbers of pairs are near 1e23, far beyond 64 bits.
    n_rows = 1_000_000
    labels = np.arange(n_rows) % 2
    y = np.where(np.arange(n_rows) < n_rows // 10, 1 - labels, labels)
    found = score_hierarchy(from_labels(labels), y)
    assert found["rand"] == pytest.approx(0.82, abs=1e-6)
    assert found["adjusted_rand"] == pytest.approx(0.64, abs=1e-6)
