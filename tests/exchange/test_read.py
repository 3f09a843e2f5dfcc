"""Trees from labels, merges and clusterers, against SciPy's and scikit-learn's own answers."""

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
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import Taxarbor
from taxarbor.exchange import from_labels, from_linkage, from_sklearn, to_linkage

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
            X = normal(seed)
            Z = sch.linkage(X, method)
            taxonomy = from_linkage(Z)
            assert taxonomy.tree.n_leaves == 60
            assert taxonomy.tree.order.tolist() == sch.leaves_list(Z).tolist()
            for n in (1, 2, 7, 30, 60):
                expected = sch.fcluster(Z, n, "maxclust")
                assert adjusted_rand_score(taxonomy.cut(n), expected) == 1
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


# Clusterers


def blobs(n_rows=300):
    return make_blobs(n_rows, 4, centers=6, cluster_std=2.5, random_state=0)[0]


def have_same_clusters(taxonomy, model):
    return adjusted_rand_score(taxonomy.tree.labels, model.labels_) == 1


def test_agglomerative_clustering():
    X = blobs()
    for linkage in ("ward", "complete", "average", "single"):
        for n_clusters in (1, 2, 7, 299, 300):
            model = cluster.AgglomerativeClustering(n_clusters, linkage=linkage).fit(X)
            taxonomy = from_sklearn(model)
            assert taxonomy.tree.n_leaves == n_clusters
            assert have_same_clusters(taxonomy, model)
            assert np.isnan(taxonomy.tree.score).all()
            for fewer in (1, max(n_clusters // 2, 1)):
                other = cluster.AgglomerativeClustering(fewer, linkage=linkage).fit(X)
                assert have_same_clusters(taxonomy.prune(fewer), other)


def test_agglomerative_clustering_with_distances():
    model = cluster.AgglomerativeClustering(None, distance_threshold=20.0).fit(blobs())
    taxonomy = from_sklearn(model)
    tree = taxonomy.tree
    assert tree.n_leaves == model.n_clusters_ > 2
    assert have_same_clusters(taxonomy, model)
    heights = tree.score[tree.parents[1::2]]
    np.testing.assert_array_equal(heights, model.distances_[::-1][: tree.n_splits])
    model.set_params(n_clusters=4, distance_threshold=None).fit(blobs(n_rows=100))
    assert len(model.distances_) == 299  # scikit-learn does not clear them
    assert np.isnan(from_sklearn(model).tree.score).all()


def test_agglomerative_clustering_of_a_graph():
    """Of several components scikit-learn makes one, so that the tree is whole."""
    X = blobs()
    X[150:] += 1000
    for linkage in ("ward", "complete", "average", "single"):
        graph = kneighbors_graph(X, 12)
        model = cluster.AgglomerativeClustering(5, linkage=linkage, connectivity=graph)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        assert model.n_connected_components_ > 1
        assert have_same_clusters(from_sklearn(model), model)
    graph = kneighbors_graph(blobs(), 40)
    model = cluster.AgglomerativeClustering(120, connectivity=graph, compute_full_tree=False)
    with pytest.raises(ValueError, match="compute_full_tree=True"):
        from_sklearn(model.fit(blobs()))
    model.set_params(compute_full_tree=True).fit(blobs())
    assert have_same_clusters(from_sklearn(model), model)


def test_labels_are_enough():
    X = blobs()
    for model in (
        *(cluster.DBSCAN(eps=2), cluster.HDBSCAN(copy=True), cluster.KMeans(4, n_init=1)),
        *(cluster.SpectralClustering(4, random_state=0), Taxarbor(4, random_state=0)),
    ):
        taxonomy = from_sklearn(model.fit(X))
        distinct, codes = np.unique(model.labels_, return_inverse=True)
        assert len(distinct) > 1
        np.testing.assert_array_equal(taxonomy.tree.labels, codes)
        with pytest.raises(ValueError, match="no rules"):
            taxonomy.predict(X)


def test_what_is_not_fitted_and_what_is_no_clusterer():
    X = blobs()
    for kind in (cluster.KMeans, cluster.AgglomerativeClustering):
        with pytest.raises(NotFittedError):
            from_sklearn(kind())
    pipeline = make_pipeline(StandardScaler(), cluster.KMeans(3, n_init=1)).fit(X)
    for model in (PCA().fit(X), pipeline):
        with pytest.raises(ValueError, match=rf"{type(model).__name__} has no labels_"):
            from_sklearn(model)
    assert from_sklearn(pipeline[-1]).tree.n_leaves == 3
    for nothing in (None, 3, X, cluster.KMeans):
        with pytest.raises(TypeError, match=r"estimator|class"):
            from_sklearn(nothing)
