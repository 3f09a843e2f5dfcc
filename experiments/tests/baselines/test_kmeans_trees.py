"""Trees of k-means predict as scikit-learn does, and are grown in its order."""

import numpy as np
import pytest
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.datasets import make_blobs

from experiments.baselines import read_bisecting_kmeans, read_kmeans


@pytest.fixture(name="X")
def blobs():
    return make_blobs(300, 4, centers=6, cluster_std=2.5, random_state=0)[0]


def test_k_means(X):
    model = KMeans(7, n_init=2, random_state=0).fit(X)
    taxonomy = read_kmeans(model)
    np.testing.assert_array_equal(taxonomy.tree.labels, model.labels_)
    np.testing.assert_array_equal(taxonomy.predict(X[::-1] + 0.5), model.predict(X[::-1] + 0.5))
    assert taxonomy.tree.parents.tolist() == [-1] + [0] * 7
    assert read_kmeans(KMeans(1, n_init=1).fit(X)).tree.n_nodes == 1


@pytest.mark.parametrize("strategy", ["biggest_inertia", "largest_cluster"])
def test_bisecting_k_means(X, strategy):
    """A fit with fewer clusters stops earlier, with the same numbers drawn until then."""
    model = BisectingKMeans(7, bisecting_strategy=strategy, random_state=3).fit(X + 100)
    taxonomy = read_bisecting_kmeans(model)
    np.testing.assert_array_equal(taxonomy.tree.labels, model.labels_)
    np.testing.assert_array_equal(
        taxonomy.predict(X[::-1] + 100.5), model.predict(X[::-1] + 100.5)
    )
    for n_clusters in range(1, 8):
        smaller = model.set_params(n_clusters=n_clusters).fit(X + 100)
        np.testing.assert_array_equal(taxonomy.cut(n_clusters), smaller.labels_)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_bisections_of_duplicates():
    """Then k-means leaves a side empty, and there is no node for it."""
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    model = BisectingKMeans(4, bisecting_strategy="largest_cluster", random_state=0).fit(X)
    taxonomy = read_bisecting_kmeans(model)
    assert taxonomy.tree.n_leaves == 2
    np.testing.assert_array_equal(taxonomy.predict(X), taxonomy.tree.labels)
