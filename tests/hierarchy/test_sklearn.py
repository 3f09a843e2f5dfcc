import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import cluster
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, MMC
from taxarbor.hierarchy import Hierarchy


def blobs(seed=0, dtype="float64", n_rows=300):
    X, _ = make_blobs(n_rows, 4, centers=6, cluster_std=2.5, random_state=seed)
    return X.astype(dtype)


def new_rows(dtype="float64"):
    return np.random.default_rng(99).uniform(-15, 15, (2000, 4)).astype(dtype)


@pytest.mark.parametrize("model", [HMMC(5, random_state=0), MMC(3, random_state=0)])
def test_our_own_have_one(model):
    model = model.fit(blobs())
    assert Hierarchy.from_sklearn(model) is model.hierarchy_


@pytest.mark.parametrize("linkage", ["ward", "complete", "average", "single"])
@pytest.mark.parametrize("n_clusters", [1, 2, 7, 299, 300])
def test_agglomerative_clustering(linkage, n_clusters):
    model = cluster.AgglomerativeClustering(n_clusters, linkage=linkage).fit(blobs())
    tree = Hierarchy.from_sklearn(model)
    assert tree.n_leaves == n_clusters
    assert adjusted_rand_score(tree.labels, model.labels_) == 1
    assert np.isnan(tree.score).all()
    for fewer in (1, n_clusters // 2, n_clusters):
        other = cluster.AgglomerativeClustering(max(fewer, 1), linkage=linkage).fit(blobs())
        assert adjusted_rand_score(tree.cut(max(fewer, 1)), other.labels_) == 1


def test_agglomerative_clustering_with_distances():
    model = cluster.AgglomerativeClustering(None, distance_threshold=20.0).fit(blobs())
    tree = Hierarchy.from_sklearn(model)
    assert tree.n_leaves == model.n_clusters_ > 2
    assert adjusted_rand_score(tree.labels, model.labels_) == 1
    np.testing.assert_array_equal(
        tree.score[tree.parents[1::2]], model.distances_[::-1][: tree.n_splits]
    )
    assert (tree.score[tree.parents[1::2]] >= 20).all()
    model.set_params(n_clusters=4, distance_threshold=None).fit(blobs(n_rows=100))
    assert len(model.distances_) == 299  # scikit-learn does not clear them
    assert np.isnan(Hierarchy.from_sklearn(model).score).all()


@pytest.mark.parametrize("linkage", ["ward", "complete", "average", "single"])
@pytest.mark.parametrize("n_components", [1, 2])
def test_agglomerative_clustering_of_a_graph(linkage, n_components):
    """Of several components scikit-learn makes one, so that the tree is whole."""
    X = blobs()
    X[150:] += 1000 * (n_components - 1)
    graph = kneighbors_graph(X, 12)
    model = cluster.AgglomerativeClustering(5, linkage=linkage, connectivity=graph)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert (model.n_connected_components_ > 1) == (n_components > 1)
    tree = Hierarchy.from_sklearn(model)
    assert tree.n_leaves == 5
    assert adjusted_rand_score(tree.labels, model.labels_) == 1


@pytest.mark.parametrize("full", [False, "auto"])
def test_a_tree_that_stopped_early_is_refused(full):
    X = blobs()
    model = cluster.AgglomerativeClustering(
        120, connectivity=kneighbors_graph(X, 40), compute_full_tree=full
    ).fit(X)
    with pytest.raises(ValueError, match=r"180 of 299 merges.* compute_full_tree=True"):
        Hierarchy.from_sklearn(model)
    model.set_params(compute_full_tree=True).fit(X)
    assert adjusted_rand_score(Hierarchy.from_sklearn(model).labels, model.labels_) == 1


def agree(tree, model, X):
    """Compare predictions, but for rows between two centres, where rounding decides."""
    ours, theirs = tree.predict(X), model.predict(X)
    assert (ours != theirs).mean() <= (0.001 if X.dtype == np.float32 else 0)
    assert len(np.unique(theirs)) == model.n_clusters


@pytest.mark.parametrize("strategy", ["biggest_inertia", "largest_cluster"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(4))
def test_bisecting_k_means(strategy, dtype, seed):
    X = blobs(seed, dtype)
    X += 100
    model = cluster.BisectingKMeans(9, bisecting_strategy=strategy, random_state=seed).fit(X)
    tree = Hierarchy.from_sklearn(model)
    np.testing.assert_array_equal(tree.labels, model.labels_)
    assert tree.n_splits == 8
    assert tree.rules[0].dtype == dtype
    agree(tree, model, X)
    agree(tree, model, new_rows(dtype) + np.float32(100))


@pytest.mark.parametrize("strategy", ["biggest_inertia", "largest_cluster"])
def test_bisections_are_in_the_order_they_were_made(strategy):
    """A fit with fewer clusters stops earlier, with the same numbers drawn until then."""
    X = blobs(n_rows=120)
    model = cluster.BisectingKMeans(12, bisecting_strategy=strategy, random_state=3)
    tree = Hierarchy.from_sklearn(model.fit(X))
    for n_clusters in range(1, 13):
        smaller = model.set_params(n_clusters=n_clusters).fit(X)
        np.testing.assert_array_equal(tree.cut(n_clusters), smaller.labels_)
        pruned, other = tree.prune(n_clusters), Hierarchy.from_sklearn(smaller)
        np.testing.assert_array_equal(pruned.parents, other.parents)
        np.testing.assert_array_equal(pruned.score, other.score)
        np.testing.assert_array_equal(pruned.predict(X), other.predict(X))
    assert np.isnan(tree.score[0])
    if strategy == "largest_cluster":
        np.testing.assert_array_equal(tree.score[1:], tree.n_rows[1:])


def test_equal_scores_are_taken_from_the_left():
    X = np.concatenate([np.arange(8.0), 100 + np.arange(8.0)])[:, None]
    model = cluster.BisectingKMeans(7, bisecting_strategy="largest_cluster", random_state=0)
    tree = Hierarchy.from_sklearn(model.fit(X))
    for n_clusters in range(1, 8):
        smaller = model.set_params(n_clusters=n_clusters).fit(X)
        np.testing.assert_array_equal(tree.cut(n_clusters), smaller.labels_)


def test_bisecting_k_means_of_sparse_rows():
    X = sparse.random_array((200, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    model = cluster.BisectingKMeans(5, random_state=0).fit(X)
    tree = Hierarchy.from_sklearn(model)
    np.testing.assert_array_equal(tree.labels, model.labels_)
    np.testing.assert_array_equal(tree.predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_bisections_of_equal_rows():
    """Then k-means leaves a side empty, and there is no node for it."""
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    model = cluster.BisectingKMeans(
        4, bisecting_strategy="largest_cluster", random_state=0
    ).fit(X)
    assert len(np.unique(model.labels_)) == 2
    tree = Hierarchy.from_sklearn(model)
    assert tree.n_leaves == 2
    assert adjusted_rand_score(tree.labels, model.labels_) == 1
    np.testing.assert_array_equal(tree.predict(X), tree.labels)
    alone = cluster.BisectingKMeans(2, random_state=0).fit(np.ones((5, 2)))
    assert Hierarchy.from_sklearn(alone).n_nodes == 1


def test_bisecting_k_means_of_another_version():
    model = cluster.BisectingKMeans(3, random_state=0).fit(blobs())
    del model._bisecting_tree.right
    with pytest.raises(ValueError, match=r"BisectingKMeans of this version .*from_labels"):
        Hierarchy.from_sklearn(model)
    del model._bisecting_tree
    with pytest.raises(ValueError, match=r"BisectingKMeans of this version .*from_labels"):
        Hierarchy.from_sklearn(model)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["KMeans", "MiniBatchKMeans"])
@pytest.mark.parametrize("seed", range(3))
def test_k_means(name, dtype, seed):
    X = blobs(seed, dtype)
    model = getattr(cluster, name)(7, n_init=2, random_state=seed).fit(X)
    tree = Hierarchy.from_sklearn(model)
    np.testing.assert_array_equal(tree.labels, model.labels_)
    assert tree.parents.tolist() == [-1] + [0] * 7
    assert tree.rules[0].dtype == dtype
    agree(tree, model, X)
    agree(tree, model, new_rows(dtype))


def test_k_means_of_one_cluster():
    tree = Hierarchy.from_sklearn(cluster.KMeans(1, n_init=1).fit(blobs()))
    assert tree.n_nodes == 1
    assert tree.predict(blobs()).tolist() == [0] * 300


def test_clusters_without_rows_are_left_out():
    centers = np.array([[0.0], [50.0], [10.0]])
    fitted = SimpleNamespace(cluster_centers_=centers, labels_=np.array([0, 2, 2, 0]))
    tree = Hierarchy.from_sklearn(fitted)
    assert tree.labels.tolist() == [0, 1, 1, 0]
    assert tree.predict([[1.0], [9.0], [60.0]]).tolist() == [0, 1, 1]


def test_other_centres_that_rows_go_to():
    X = blobs(n_rows=100)
    for model in (
        cluster.MeanShift(bandwidth=6),
        cluster.AffinityPropagation(random_state=0),
    ):
        tree = Hierarchy.from_sklearn(model.fit(X))
        assert tree.n_leaves > 1
        np.testing.assert_array_equal(tree.labels, model.labels_)
        np.testing.assert_array_equal(tree.predict(X), model.predict(X))
    whole = np.round(X).astype(int)
    for data in (whole, sparse.csr_array(whole.astype(float))):
        model = cluster.AffinityPropagation(random_state=0).fit(data)
        tree = Hierarchy.from_sklearn(model)
        assert tree.rules[0].dtype == np.float64
        np.testing.assert_array_equal(tree.predict(whole), model.predict(data))


@pytest.mark.parametrize(
    "changes",
    [
        {"labels_": np.array([0, 1, -1])},
        {"labels_": np.array([0, 1, 2])},
        {"labels_": np.array(["a", "b", "b"])},
        {"metric": "manhattan"},
        {"cluster_centers_": np.zeros((0, 2))},
        {"cluster_centers_": np.zeros(2)},
        {"cluster_centers_": None},
        {"cluster_centers_": [["a"], ["b"]]},
    ],
)
def test_centres_that_are_no_rule(changes):
    values = {"labels_": np.array([0, 1, 1]), "cluster_centers_": np.eye(2)} | changes
    tree = Hierarchy.from_sklearn(SimpleNamespace(**values))
    assert tree.rules == (None,) * tree.n_nodes
    np.testing.assert_array_equal(
        tree.labels, np.unique(values["labels_"], return_inverse=True)[1]
    )


@pytest.mark.parametrize(
    "model",
    [
        cluster.DBSCAN(eps=2),
        cluster.HDBSCAN(copy=True),
        cluster.OPTICS(),
        cluster.SpectralClustering(4, random_state=0),
        cluster.Birch(n_clusters=4),
        cluster.MeanShift(bandwidth=3, cluster_all=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_labels_are_enough(model):
    model.fit(blobs())
    tree = Hierarchy.from_sklearn(model)
    distinct, codes = np.unique(model.labels_, return_inverse=True)
    assert len(distinct) > 1
    np.testing.assert_array_equal(tree.labels, codes)
    with pytest.raises(ValueError, match="no rules"):
        tree.predict(blobs())


@pytest.mark.parametrize(
    "model",
    [
        cluster.KMeans(3, n_init=1),
        cluster.BisectingKMeans(3),
        cluster.AgglomerativeClustering(3),
        cluster.HDBSCAN(copy=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_names_of_columns(model, same):
    frame = pd.DataFrame(blobs(), columns=["a", "b", "c", "d"])
    tree = Hierarchy.from_sklearn(model.fit(frame))
    assert tree.feature_names == ("a", "b", "c", "d")
    same(tree, Hierarchy.from_json(tree.to_json()))
    if tree.rules[0]:
        with pytest.raises(ValueError, match="in another order"):
            tree.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize(
    "model",
    [cluster.KMeans(), cluster.AgglomerativeClustering(), cluster.BisectingKMeans(), HMMC()],
    ids=lambda model: type(model).__name__,
)
def test_what_is_not_fitted(model):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Hierarchy.from_sklearn(model)


def test_what_is_no_clusterer():
    X = blobs()
    for model in (PCA().fit(X), GaussianMixture(2).fit(X)):
        with pytest.raises(ValueError, match=rf"{type(model).__name__} has no labels_"):
            Hierarchy.from_sklearn(model)
    pipeline = make_pipeline(StandardScaler(), cluster.KMeans(3, n_init=1)).fit(X)
    with pytest.raises(ValueError, match=r"Pipeline has no labels_.*last step"):
        Hierarchy.from_sklearn(pipeline)
    assert Hierarchy.from_sklearn(pipeline[-1]).n_leaves == 3
    with pytest.raises(ValueError, match="groups columns, not rows"):
        Hierarchy.from_sklearn(cluster.FeatureAgglomeration(2).fit(X))
    for nothing in (None, 3, X, cluster.KMeans):
        with pytest.raises(TypeError, match=r"estimator|class"):
            Hierarchy.from_sklearn(nothing)


def test_sklearn_cluster_is_not_loaded(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sklearn.cluster")]:
        monkeypatch.setitem(sys.modules, name, None)
    assert Hierarchy.from_sklearn(SimpleNamespace(labels_=[1, 0])).n_leaves == 2
