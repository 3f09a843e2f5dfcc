"""Trees from labels and merges, against SciPy's and scikit-learn's own answers."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy as sch
from sklearn import cluster
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from taxarbor.exchange import from_labels, from_linkage, to_linkage

# Labels

NUMBERS, WORDS = [3, 1, 1, -1, 3], ["b", "aa", "aa", "", "b"]


def test_labels_become_leaves_in_sorted_order():
    kinds = [str, "S", object]
    if hasattr(np.dtypes, "StringDType"):  # NumPy 2
        kinds.append(np.dtypes.StringDType())
    for labels in [
        *(NUMBERS, np.array(NUMBERS, dtype="int8"), [3.5, 1.0, 1.0, -np.inf, 3.5]),
        *([2**70, 1, 1, 0, 2**70], np.array([2**63, 1, 1, 0, 2**63], dtype="uint64")),
        *(WORDS, *(np.array(WORDS, dtype=kind) for kind in kinds)),
        pd.Series(WORDS, index=[7, 7, 1, 0, 2]),
        pd.Categorical(WORDS, categories=["b", "aa", ""]),
        pd.array(NUMBERS, dtype="Int64"),
        pl.Series(WORDS),
        pd.Series([(2, 1), (1, 2), (1, 2), (0, 5), (2, 1)]),  # a list of them is a matrix
        (np.int64(3), 1, 1.0, True - 2, 3),
    ]:
        tree = from_labels(labels).tree
        assert tree.labels.tolist() == [2, 1, 1, 0, 2]
        assert tree.parents.tolist() == [-1, 0, 0, 0]
        assert tree.birth.tolist() == [0, 1, 1, 1]
        assert tree.rules == (None,) * 4
        assert np.isnan(tree.score).all()
    assert from_labels([True, False, True]).tree.labels.tolist() == [1, 0, 1]
    for labels in (["a", "a"], np.zeros(2), [-1, -1], [True, True]):
        taxonomy = from_labels(labels)
        assert (taxonomy.tree.n_nodes, taxonomy.tree.labels.tolist()) == (1, [0, 0])
        assert taxonomy.predict(np.ones((1, 3))).tolist() == [0]
    many = np.random.default_rng(0).permutation(np.arange(200_000) % 50_000)
    np.testing.assert_array_equal(from_labels(many).tree.labels, many)


@given(labels=st.lists(st.integers(-3, 5), min_size=1) | st.lists(st.text(), min_size=1))
def test_labels_are_numbered_in_order(labels):
    expected = [sorted(set(labels)).index(label) for label in labels]
    assert from_labels(labels).tree.labels.tolist() == expected
    assert from_labels(np.array(labels, dtype=object)).tree.labels.tolist() == expected


def test_what_are_no_labels():
    wrong_shapes = [[], np.zeros((3, 1)), [[1, 2], [3, 4]], 3, None, "text"]
    missing = [
        *([1.0, np.nan], np.array([1.0, np.nan]), [1, None], ["a", None], ["a", np.nan]),
        *(np.array(["a", float("nan")], dtype=object), pd.Series(["a", None])),
        *(pd.array([1, None], dtype="Int64"), pd.Series(["a", pd.NA], dtype=object)),
    ]
    unsorted = [[1, "a"], [[1], [2, 3]], np.array([{}, {}]), np.arange(3) * 1j]
    for labels in (*wrong_shapes, *missing, *unsorted):
        with pytest.raises(ValueError, match=r"^labels must"):
            from_labels(labels)


# Linkages


def normal(seed, n_rows=60, n_features=3):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def test_linkages_are_cut_as_scipy_does():
    for method in ("single", "complete", "average", "weighted", "ward"):
        for seed in range(2):
            Z = sch.linkage(normal(seed), method)
            taxonomy = from_linkage(Z)
            assert taxonomy.tree.n_leaves == 60
            assert taxonomy.tree.order.tolist() == sch.leaves_list(Z).tolist()
            for n in (1, 2, 7, 30, 60):
                assert adjusted_rand_score(taxonomy.cut(n), sch.fcluster(Z, n, "maxclust")) == 1
                fewer, pruned = from_linkage(Z, n).tree, taxonomy.prune(n).tree
                for name in ("order", "start", "stop", "parents", "birth", "leaves"):
                    np.testing.assert_array_equal(getattr(fewer, name), getattr(pruned, name))


@given(points=st.data())
def test_linkages_come_back(points):
    """A linkage gives the same merges again, whatever the heights: inversions, too."""
    n_rows = points.draw(st.integers(2, 12))
    clusters, Z = list(range(n_rows)), []
    for step in range(n_rows - 1):
        pair = [clusters.pop(points.draw(st.integers(0, len(clusters) - 1))) for _ in "ab"]
        clusters.append(n_rows + step)
        Z.append([*pair, points.draw(st.floats(0, 1e9)), 2])
    Z = np.array(Z)
    taxonomy = from_linkage(Z)
    tree = taxonomy.tree
    np.testing.assert_array_equal(tree.score[tree.parents[1::2]], Z[::-1, 2])
    # Observation j of the new linkage is the leaf of row order[j].
    ids = np.concatenate([tree.order, np.arange(n_rows, 2 * n_rows - 1)])
    np.testing.assert_array_equal(ids[to_linkage(taxonomy)[:, :2].astype(int)], Z[:, :2])


def test_what_is_no_linkage():
    Z = np.array([[0, 1, 0.5, 2], [3, 2, 1.0, 3]])
    wrong = [Z[:, :3], Z.ravel(), [], Z.astype(str), Z.astype(complex), np.zeros((0, 4))]
    for row, column, value in [
        *((0, 2, np.nan), (0, 3, np.inf), (0, 2, -1.0), (0, 0, 0.5), (0, 0, 1e300)),
        *((0, 0, -1), (0, 0, 3), (1, 0, 4), (1, 0, 1), (0, 1, 0)),
    ]:
        wrong.append(Z.copy())
        wrong[-1][row, column] = value
    for matrix in wrong:
        with pytest.raises(ValueError, match=r"Z|[Ll]inkage"):
            from_linkage(matrix)
    for n_clusters in (0, -1, 4):
        with pytest.raises(ValueError, match=f"n_clusters .* got {n_clusters}"):
            from_linkage(Z, n_clusters)
    with pytest.raises(TypeError):
        from_linkage(Z, 2.0)
    assert from_linkage(Z, 1).tree.n_nodes == 1


def test_large_linkages():
    n = 30_475
    steps = np.arange(n - 1)
    chain = np.stack([np.maximum(n + steps - 1, 0), steps + 1], axis=1)  # as deep as can be
    chain[0, 0] = 0
    oldest = np.stack([2 * steps, 2 * steps + 1], axis=1)  # the two oldest each time
    for pairs, height in ((chain, n - 1), (oldest, 15)):
        Z = np.column_stack([pairs, steps, steps]).astype(float)
        fewer, full = from_linkage(Z, n_clusters=50).tree, from_linkage(Z).tree
        assert (fewer.n_leaves, full.n_leaves, full.height) == (50, n, height)
        np.testing.assert_array_equal(fewer.labels, full.cut(50))


def test_agglomerative_clustering():
    X, _ = make_blobs(300, 4, centers=6, cluster_std=2.5, random_state=0)
    far = np.where(np.arange(300) < 150, 0, 1000)[:, None]
    # Of several components scikit-learn makes one, so that the tree is whole.
    graph = kneighbors_graph(X + far, 12)
    for linkage in ("ward", "complete", "average", "single"):
        for options, data in (({}, X), ({"connectivity": graph}, X + far)):
            settings = {"linkage": linkage, "compute_full_tree": True, **options}
            model = cluster.AgglomerativeClustering(**settings)
            with warnings.catch_warnings(action="ignore"):
                merges = model.fit(data).children_
                for n_clusters in (1, 2, 7, 299):
                    labels = model.set_params(n_clusters=n_clusters).fit_predict(data)
                    tree = from_linkage(merges, n_clusters).tree
                    assert tree.n_leaves == n_clusters
                    assert adjusted_rand_score(tree.labels, labels) == 1
                    assert np.isnan(tree.score).all()
    graph = kneighbors_graph(X, 40)
    model = cluster.AgglomerativeClustering(120, connectivity=graph, compute_full_tree=False)
    with pytest.raises(ValueError, match=r"[Ll]inkage"):  # the last merges are not there
        from_linkage(model.fit(X).children_)
