import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy as sch
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from taxarbor.hierarchy import Hierarchy


@pytest.mark.parametrize(
    "labels",
    [
        [3, 1, 1, -1, 3],
        np.array([3, 1, 1, -1, 3], dtype="int8"),
        np.array([2**63, 1, 1, 0, 2**63], dtype="uint64"),
        [2**70, 1, 1, 0, 2**70],
        [3.5, 1.0, 1.0, -np.inf, 3.5],
        ["b", "aa", "aa", "", "b"],
        np.array(["b", "aa", "aa", "", "b"]),
        np.array([b"b", b"aa", b"aa", b"", b"b"]),
        np.array(["b", "aa", "aa", "", "b"], dtype=object),
        np.array(["b", "aa", "aa", "", "b"], dtype=np.dtypes.StringDType()),
        pd.Series(["b", "aa", "aa", "", "b"], index=[7, 7, 1, 0, 2]),
        pd.Categorical(["b", "aa", "aa", "", "b"], categories=["b", "aa", ""]),
        pd.array([3, 1, 1, -1, 3], dtype="Int64"),
        pl.Series(["b", "aa", "aa", "", "b"]),
        [(2, 1), (1, 2), (1, 2), (0, 5), (2, 1)],
        (np.int64(3), 1, 1.0, True - 2, 3),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_become_leaves_in_sorted_order(labels):
    if isinstance(labels, list) and isinstance(labels[0], tuple):
        labels = pd.Series(labels)  # a list of tuples is a matrix
    tree = Hierarchy.from_labels(labels)
    assert tree.labels.tolist() == [2, 1, 1, 0, 2]
    assert tree.parents.tolist() == [-1, 0, 0, 0]
    assert tree.birth.tolist() == [0, 1, 1, 1]
    assert tree.rules == (None,) * 4
    assert np.isnan(tree.score).all()


def test_bools_and_equal_labels():
    assert Hierarchy.from_labels([True, False, True]).labels.tolist() == [1, 0, 1]
    assert Hierarchy.from_labels(np.array([True, False])).labels.tolist() == [1, 0]
    for labels in (["a", "a"], np.zeros(2), [-1, -1], [True, True]):
        tree = Hierarchy.from_labels(labels)
        assert (tree.n_nodes, tree.labels.tolist()) == (1, [0, 0])
        assert tree.predict(np.ones((1, 3))).tolist() == [0]


@settings(deadline=None)
@given(labels=st.lists(st.integers(-3, 5), min_size=1) | st.lists(st.text(), min_size=1))
def test_labels_are_counted_as_numpy_does(labels):
    expected = [sorted(set(labels)).index(label) for label in labels]
    assert Hierarchy.from_labels(labels).labels.tolist() == expected
    assert Hierarchy.from_labels(np.array(labels, dtype=object)).labels.tolist() == expected


class Unlike:
    """Neither sorted nor hashed."""

    __hash__ = None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], r"one entry at least, got shape \(0,\)"),
        (np.zeros((3, 1)), r"one dimension .* got shape \(3, 1\)"),
        ([[1, 2], [3, 4]], "one dimension"),
        (3, "one dimension"),
        (None, "one dimension"),
        ("text", "one dimension"),
        ([1.0, np.nan], "missing"),
        (np.array([1.0, np.nan]), "missing"),
        ([1, None], "missing"),
        (["a", None], "missing"),
        (["a", np.nan], "missing"),
        (np.array(["a", float("nan")], dtype=object), "missing"),
        (np.array(["a", None], dtype=object), "missing"),
        (pd.Series(["a", None]), "missing"),
        (pd.array([1, None], dtype="Int64"), "missing"),
        (pd.Series(["a", pd.NA], dtype=object), "none missing"),
        ([1, "a"], "one kind that can be hashed and sorted"),
        ([[1], [2, 3]], "one kind"),
        (np.array([Unlike(), Unlike()]), "one kind"),
        ([{}, {}], "one kind"),
        (np.array(["2024-01-01"], dtype="datetime64[D]"), r"not datetime64\[D\]"),
        (np.zeros(3, complex), "not complex128"),
    ],
)
def test_what_are_no_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        Hierarchy.from_labels(labels)


@pytest.mark.parametrize("kind", ["int", "str", "object"])
def test_many_rows_and_labels(kind):
    labels = np.random.default_rng(0).integers(0, 50_000, 1_000_000)
    labels[:50_000] = np.arange(50_000)
    started = time.perf_counter()
    tree = Hierarchy.from_labels(labels if kind == "int" else labels.astype(kind))
    assert time.perf_counter() - started < 20  # far above what it takes: 0.2 to 1 second
    assert tree.n_leaves == 50_000
    if kind != "str":
        np.testing.assert_array_equal(tree.labels, labels)


def data(seed, n_rows=60, n_features=3):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


@pytest.mark.parametrize("method", ["single", "complete", "average", "weighted", "ward"])
@pytest.mark.parametrize("seed", range(3))
def test_linkages_are_cut_as_scipy_does(method, seed):
    Z = sch.linkage(data(seed), method)
    assert len(np.unique(Z[:, 2])) == len(Z)
    tree = Hierarchy.from_linkage(Z)
    assert tree.n_leaves == 60
    for n in range(1, 61):
        expected = sch.fcluster(Z, n, "maxclust")
        assert adjusted_rand_score(tree.cut(n), expected) == 1
        assert adjusted_rand_score(Hierarchy.from_linkage(Z, n).labels, expected) == 1


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "ward"])
def test_linkages_are_cut_as_sklearn_does(linkage):
    X = data(5)
    Z = sch.linkage(X, linkage)
    for n in (1, 2, 7, 60):
        expected = AgglomerativeClustering(n, linkage=linkage).fit(X).labels_
        assert adjusted_rand_score(Hierarchy.from_linkage(Z, n).labels, expected) == 1


def test_a_known_linkage():
    Z = [[2, 0, 0.5, 2], [3, 1, 1.0, 2], [5, 4, 7.0, 4]]
    tree = Hierarchy.from_linkage(Z)
    assert tree.order.tolist() == [3, 1, 2, 0]
    assert tree.parents.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert tree.birth.tolist() == [0, 1, 1, 2, 2, 3, 3]
    assert [tree.rows(node).tolist() for node in range(3)] == [[3, 1, 2, 0], [3, 1], [2, 0]]
    np.testing.assert_array_equal(tree.score, [7, 1, 0.5, *[np.nan] * 4])
    assert np.isnan(tree.objective).all()
    two = Hierarchy.from_linkage(Z, n_clusters=np.int64(2))
    np.testing.assert_array_equal(two.score, [7, np.nan, np.nan])
    assert two.order.tolist() == [3, 1, 2, 0]
    whole = Hierarchy.from_linkage(np.array([[1, 0, 3, 2]], dtype="uint8"))
    assert (whole.labels.tolist(), whole.score[0]) == ([1, 0], 3)


def test_the_order_is_that_of_the_dendrogram():
    Z = sch.linkage(data(2), "average")
    assert Hierarchy.from_linkage(Z).order.tolist() == sch.leaves_list(Z).tolist()


@settings(deadline=None)
@given(points=st.data())
def test_merges_come_back(points):
    """What a linkage made gives the same merges again, whatever the heights."""
    n_rows = points.draw(st.integers(1, 12))
    alive, Z = list(range(n_rows)), []
    for step in range(n_rows - 1):
        pair = [alive.pop(points.draw(st.integers(0, len(alive) - 1))) for _ in "ab"]
        alive.append(n_rows + step)
        Z.append([*pair, points.draw(st.floats(-1e9, 1e9)), 2])
    Z = np.array(Z).reshape(-1, 4)
    tree = Hierarchy.from_linkage(Z)
    split_nodes = tree.parents[1::2]
    np.testing.assert_array_equal(tree.score[split_nodes], Z[::-1, 2])
    if n_rows == 1:
        assert tree.n_nodes == 1
        return
    again = tree.to_linkage()
    rows = tree.order  # observation j of the new linkage is the leaf of this row
    ids = np.concatenate([rows, np.arange(n_rows, 2 * n_rows - 1)])
    np.testing.assert_array_equal(
        np.sort(ids[again[:, :2].astype(int)], axis=1), np.sort(Z[:, :2], axis=1)
    )


@pytest.mark.parametrize("method", ["centroid", "median"])
def test_inversions_are_taken_in_the_order_of_merges(method):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9], [8.0, 8.0], [9.0, 8.0], [8.5, 8.9]])
    Z = sch.linkage(X, method)
    assert not sch.is_monotonic(Z)
    tree = Hierarchy.from_linkage(Z)
    assert (np.diff(tree.score[tree.parents[1::2]]) > 0).any()
    assert tree.cut(2).tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    for n_clusters in range(1, 7):  # join the two clusters of each merge, and see
        joined = [{row} for row in range(6)]
        for left, right in Z[: 6 - n_clusters, :2].astype(int):
            joined.append(joined[left] | joined[right])
        labels = tree.cut(n_clusters)
        assert len(set(labels)) == n_clusters
        for label in range(n_clusters):
            assert set(np.flatnonzero(labels == label)) in joined


@settings(deadline=None)
@given(n_clusters=st.integers(1, 30), seed=st.integers(0, 5))
def test_fewer_merges_are_a_pruned_tree(same, n_clusters, seed):
    Z = sch.linkage(data(seed, n_rows=30), "average")
    tree = Hierarchy.from_linkage(Z, n_clusters)
    pruned = Hierarchy.from_linkage(Z).prune(n_clusters)
    for name in ("order", "start", "stop", "parents", "birth", "leaves"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(pruned, name))
    same(tree, Hierarchy.from_json(tree.to_json()))


GOOD = np.array([[0, 1, 0.5, 2], [3, 2, 1.0, 3]])


def put(row, column, value):
    Z = GOOD.copy()
    Z[row, column] = value
    return Z


@pytest.mark.parametrize(
    ("Z", "message"),
    [
        (GOOD[:, :3], r"shape \(n_rows - 1, 4\).*linkage, got float64 of shape \(2, 3\)"),
        (GOOD.ravel(), "shape"),
        ([], "shape"),
        (GOOD.astype(str), "numbers"),
        (GOOD.astype(complex), "numbers"),
        (put(0, 2, np.nan), "finite"),
        (put(0, 3, np.inf), "finite"),
        (put(0, 0, 0.5), "cluster numbers"),
        (put(0, 0, 1e300), "cluster numbers"),
        (put(0, 0, -1), r"merge 0 is of clusters \[-1, 1\].* 0 to 2 exist: 3 rows"),
        (put(0, 0, 3), r"merge 0 is of clusters \[3, 1\]"),
        (put(1, 0, 4), r"merge 1 is of clusters \[4, 2\], but then only clusters 0 to 3 exist"),
        (put(1, 0, 1), "cluster 1 is merged 2 times"),
        (put(0, 1, 0), "cluster 0 is merged 2 times"),
    ],
)
def test_what_is_no_linkage(Z, message):
    with pytest.raises(ValueError, match=message):
        Hierarchy.from_linkage(Z)


def test_numbers_of_clusters_that_cannot_be():
    for n_clusters in (0, -1, 4):
        with pytest.raises(ValueError, match=f"number of rows, 3, got {n_clusters}"):
            Hierarchy.from_linkage(GOOD, n_clusters)
    with pytest.raises(TypeError):
        Hierarchy.from_linkage(GOOD, 2.0)
    assert Hierarchy.from_linkage(np.zeros((0, 4))).n_leaves == 1
    assert Hierarchy.from_linkage(GOOD, 1).n_nodes == 1


@pytest.mark.parametrize("is_chain", [True, False])
def test_large_linkages(is_chain):
    n = 30_475
    steps = np.arange(n - 1)
    if is_chain:  # as deep as can be
        pairs = np.stack([np.maximum(n + steps - 1, 0), steps + 1], axis=1)
        pairs[0, 0] = 0
    else:  # the two oldest each time
        pairs = np.stack([2 * steps, 2 * steps + 1], axis=1)
    Z = np.column_stack([pairs, steps, steps]).astype(float)
    started = time.perf_counter()
    tree = Hierarchy.from_linkage(Z, n_clusters=50)
    full = Hierarchy.from_linkage(Z)
    assert time.perf_counter() - started < 10  # far above what it takes: 0.1 seconds
    assert (tree.n_leaves, full.n_leaves) == (50, n)
    np.testing.assert_array_equal(tree.labels, full.cut(50))
    assert full.height == (n - 1 if is_chain else 15)
