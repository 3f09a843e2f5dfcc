"""Trees from labels, merges and clusterers, against SciPy's and scikit-learn's own answers."""

import itertools
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.cluster import hierarchy as sch
from sklearn import cluster
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, Taxarbor
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
    times = np.array(["2024-01-01"], dtype="datetime64[D]")
    unsorted = [[1, "a"], [[1], [2, 3]], np.array([{}, {}]), times, np.zeros(3, complex)]
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

LINKAGES = ("ward", "complete", "average", "single")
DTYPES = ("float32", "float64")
STRATEGIES = ("biggest_inertia", "largest_cluster")


def blobs(seed=0, dtype="float64", n_rows=300):
    X, _ = make_blobs(n_rows, 4, centers=6, cluster_std=2.5, random_state=seed)
    return X.astype(dtype)


def assert_same_predictions(taxonomy, model, shift=0):
    """Compare predictions, but for rows between two centers, where rounding decides."""
    dtype = taxonomy.tree.rules[0].dtype
    X = np.random.default_rng(99).uniform(-15, 15, (2000, 4)).astype(dtype) + dtype.type(shift)
    ours, theirs = taxonomy.predict(X), model.predict(X)
    assert (ours != theirs).mean() <= (0.001 if dtype == np.float32 else 0)
    assert len(np.unique(theirs)) == model.n_clusters


def have_same_clusters(taxonomy, model):
    return adjusted_rand_score(taxonomy.tree.labels, model.labels_) == 1


def test_estimators_of_taxarbor():
    for model in (Taxarbor(5, random_state=0), HMMC(3, random_state=0)):
        assert from_sklearn(model.fit(blobs())) is model.taxonomy_


def test_agglomerative_clustering():
    X = blobs()
    for linkage in LINKAGES:
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
    for linkage in LINKAGES:
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


def test_bisecting_k_means():
    for strategy, dtype, seed in itertools.product(STRATEGIES, DTYPES, range(2)):
        X = blobs(seed, dtype) + np.float32(100)
        model = cluster.BisectingKMeans(9, bisecting_strategy=strategy, random_state=seed)
        taxonomy = from_sklearn(model.fit(X))
        np.testing.assert_array_equal(taxonomy.tree.labels, model.labels_)
        assert taxonomy.tree.n_splits == 8
        assert taxonomy.tree.rules[0].dtype == dtype
        assert_same_predictions(taxonomy, model, shift=100)
    X = sparse.random_array((200, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    model = cluster.BisectingKMeans(5, random_state=0).fit(X)
    taxonomy = from_sklearn(model)
    np.testing.assert_array_equal(taxonomy.tree.labels, model.labels_)
    np.testing.assert_array_equal(taxonomy.predict(X), model.predict(X))


def test_bisections_are_in_the_order_they_were_made():
    """A fit with fewer clusters stops earlier, with the same numbers drawn until then."""
    equal_scores = np.concatenate([np.arange(8.0), 100 + np.arange(8.0)])[:, None]
    for X, strategy in itertools.product((blobs(n_rows=120), equal_scores), STRATEGIES):
        model = cluster.BisectingKMeans(7, bisecting_strategy=strategy, random_state=3)
        taxonomy = from_sklearn(model.fit(X))
        for n_clusters in range(1, 8):
            smaller = model.set_params(n_clusters=n_clusters).fit(X)
            np.testing.assert_array_equal(taxonomy.cut(n_clusters), smaller.labels_)
            pruned, other = taxonomy.prune(n_clusters), from_sklearn(smaller)
            np.testing.assert_array_equal(pruned.tree.parents, other.tree.parents)
            np.testing.assert_array_equal(pruned.tree.score, other.tree.score)
            np.testing.assert_array_equal(pruned.predict(X), other.predict(X))
        if strategy == "largest_cluster":
            np.testing.assert_array_equal(taxonomy.tree.score[1:], taxonomy.tree.sizes[1:])


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_bisections_of_duplicates():
    """Then k-means leaves a side empty, and there is no node for it."""
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    model = cluster.BisectingKMeans(4, bisecting_strategy="largest_cluster", random_state=0)
    taxonomy = from_sklearn(model.fit(X))
    assert taxonomy.tree.n_leaves == len(np.unique(model.labels_)) == 2
    assert have_same_clusters(taxonomy, model)
    np.testing.assert_array_equal(taxonomy.predict(X), taxonomy.tree.labels)
    alone = cluster.BisectingKMeans(2, random_state=0).fit(np.ones((5, 2)))
    assert from_sklearn(alone).tree.n_nodes == 1


def test_bisecting_k_means_of_another_version():
    model = cluster.BisectingKMeans(3, random_state=0).fit(blobs())
    for holder, name in ((model._bisecting_tree, "right"), (model, "_bisecting_tree")):
        delattr(holder, name)
        with pytest.raises(ValueError, match="from_labels"):
            from_sklearn(model)


def test_k_means():
    kinds = cluster.KMeans, cluster.MiniBatchKMeans
    for kind, dtype in itertools.product(kinds, DTYPES):
        model = kind(7, n_init=2, random_state=0).fit(blobs(dtype=dtype))
        taxonomy = from_sklearn(model)
        np.testing.assert_array_equal(taxonomy.tree.labels, model.labels_)
        assert taxonomy.tree.parents.tolist() == [-1] + [0] * 7
        assert taxonomy.tree.rules[0].dtype == dtype
        assert_same_predictions(taxonomy, model)
    taxonomy = from_sklearn(cluster.KMeans(1, n_init=1).fit(blobs()))
    assert taxonomy.tree.n_nodes == 1
    assert taxonomy.predict(blobs()).tolist() == [0] * 300
    # Clusters without rows are excluded.
    centers = np.array([[0.0], [50.0], [10.0]])
    fitted = SimpleNamespace(cluster_centers_=centers, labels_=np.array([0, 2, 2, 0]))
    taxonomy = from_sklearn(fitted)
    assert taxonomy.tree.labels.tolist() == [0, 1, 1, 0]
    assert taxonomy.predict([[1.0], [9.0], [60.0]]).tolist() == [0, 1, 1]


def test_other_clusterers_with_centers():
    X = blobs(n_rows=100)
    whole = np.round(X).astype(int)
    affinity = cluster.AffinityPropagation(random_state=0)
    for model, data in [
        *((cluster.MeanShift(bandwidth=6), X), (affinity, X), (affinity, whole)),
        (affinity, sparse.csr_array(whole.astype(float))),
    ]:
        taxonomy = from_sklearn(model.fit(data))
        assert taxonomy.tree.n_leaves > 1
        assert taxonomy.tree.rules[0].dtype == np.float64
        np.testing.assert_array_equal(taxonomy.tree.labels, model.labels_)
        np.testing.assert_array_equal(taxonomy.predict(data), model.predict(data))


def test_centers_that_are_no_rule():
    no_labels = [np.array(labels) for labels in ([0, 1, -1], [0, 1, 2], ["a", "b", "b"])]
    no_centers = [np.zeros((0, 2)), np.zeros(2), None, [["a"], ["b"]]]
    for changes in [
        {"metric": "manhattan"},
        *({"labels_": labels} for labels in no_labels),
        *({"cluster_centers_": centers} for centers in no_centers),
    ]:
        values = {"labels_": np.array([0, 1, 1]), "cluster_centers_": np.eye(2)} | changes
        tree = from_sklearn(SimpleNamespace(**values)).tree
        assert tree.rules == (None,) * tree.n_nodes
        codes = np.unique(values["labels_"], return_inverse=True)[1]
        np.testing.assert_array_equal(tree.labels, codes)


def test_labels_are_enough():
    X = blobs()
    for model in (
        *(cluster.DBSCAN(eps=2), cluster.HDBSCAN(copy=True), cluster.OPTICS()),
        *(cluster.SpectralClustering(4, random_state=0), cluster.Birch(n_clusters=4)),
        cluster.MeanShift(bandwidth=3, cluster_all=False),
    ):
        taxonomy = from_sklearn(model.fit(X))
        distinct, codes = np.unique(model.labels_, return_inverse=True)
        assert len(distinct) > 1
        np.testing.assert_array_equal(taxonomy.tree.labels, codes)
        with pytest.raises(ValueError, match="no rules"):
            taxonomy.predict(X)


def test_names_of_columns():
    frame = pd.DataFrame(blobs(), columns=["a", "b", "c", "d"])
    for model in (
        *(cluster.KMeans(3, n_init=1), cluster.BisectingKMeans(3)),
        *(cluster.AgglomerativeClustering(3), cluster.HDBSCAN(copy=True)),
    ):
        taxonomy = from_sklearn(model.fit(frame))
        assert (taxonomy.feature_names, taxonomy.n_features) == (("a", "b", "c", "d"), 4)
        if taxonomy.tree.rules[0]:
            with pytest.raises(ValueError, match="order"):
                taxonomy.predict(frame[["b", "a", "c", "d"]])


def test_what_is_not_fitted_and_what_is_no_clusterer():
    X = blobs()
    for kind in (
        cluster.KMeans,
        cluster.AgglomerativeClustering,
        cluster.BisectingKMeans,
        HMMC,
    ):
        with pytest.raises(NotFittedError):
            from_sklearn(kind())
    pipeline = make_pipeline(StandardScaler(), cluster.KMeans(3, n_init=1)).fit(X)
    for model in (PCA().fit(X), GaussianMixture(2).fit(X), pipeline):
        with pytest.raises(ValueError, match=rf"{type(model).__name__} has no labels_"):
            from_sklearn(model)
    assert from_sklearn(pipeline[-1]).tree.n_leaves == 3
    with pytest.raises(ValueError, match="columns, not rows"):
        from_sklearn(cluster.FeatureAgglomeration(2).fit(X))
    for nothing in (None, 3, X, cluster.KMeans):
        with pytest.raises(TypeError, match=r"estimator|class"):
            from_sklearn(nothing)


def test_sklearn_cluster_is_not_loaded(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sklearn.cluster")]:
        monkeypatch.setitem(sys.modules, name, None)
    assert from_sklearn(SimpleNamespace(labels_=[1, 0])).tree.n_leaves == 2
