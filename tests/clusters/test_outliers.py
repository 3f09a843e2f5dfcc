"""Rows that are far and alone are found; groups, tails and clean data lose nothing."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.cluster import BisectingKMeans
from sklearn.metrics import adjusted_rand_score

from taxarbor import Taxarbor
from taxarbor.clusters import find_outliers
from taxarbor.clusters._outliers import MIN_NEIGHBORS, REFERENCE_ROWS


def blobs(n_rows, seed, n_features=8):
    """Return groups of unequal size and spread, far from the origin, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(4, n_rows, p=[0.5, 0.3, 0.15, 0.05]))
    centers = rng.uniform(-8.0, 8.0, (4, n_features)) + 40.0
    noise = rng.uniform(0.5, 1.5, 4)[labels, None] * rng.standard_normal((n_rows, n_features))
    return centers[labels] + noise, labels


def with_far(X, distances, seed):
    """Return data and, after it, rows in random directions, so many spreads away."""
    rng = np.random.default_rng(seed)
    spread = np.sqrt(X.var(axis=0).sum())
    away = rng.standard_normal((len(distances), X.shape[1]))
    away *= spread * np.asarray(distances)[:, None] / np.linalg.norm(away, axis=1)[:, None]
    return np.vstack([X, X.mean(axis=0) + away])


def positions(X, seed=0):
    """Return the positions of outliers."""
    is_outlier = find_outliers(X, seed)
    return [] if is_outlier is None else np.flatnonzero(is_outlier).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_exactly_the_far_rows_are_found(dtype, kind):
    for seed in range(3):
        X, _ = blobs(600, seed)
        assert positions(kind(X.astype(dtype)), seed) == []
        # The farthest neither hides the others nor overflows.
        for distances in ([30.0], [1e5], [1e15], [1e5, 30.0, 12.0], [1e30] * 9 + [1e5, 12.0]):
            planted = kind(with_far(X, distances, seed).astype(dtype))
            assert positions(planted, seed) == list(range(600, 600 + len(distances)))


def test_of_many_far_rows_a_sample_is_compared_with():
    X, _ = blobs(30_000, 0, n_features=3)
    rng = np.random.default_rng(1)
    group = X.mean(axis=0) + 5000.0 * np.eye(3)[0] + rng.standard_normal((300, 3))
    planted = with_far(np.vstack([X, group]), 1e5 * rng.uniform(0.01, 1.0, 1500), 2)
    assert len(planted) - len(X) > REFERENCE_ROWS
    assert set(positions(planted)) == set(range(30_300, 31_800))


def test_groups_are_no_outliers():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        cloud = rng.standard_normal((1980, 20))
        for far in (10.0, 50.0, 1e5):  # one row in a hundred
            group = far * np.sqrt(20.0) * np.eye(20)[0] + rng.standard_normal((20, 20))
            assert positions(np.vstack([cloud, group]), seed) == []
        small = [
            rng.uniform(-40.0, 40.0, 20) + spread * rng.standard_normal((30, 20))
            for spread in (0.5, 1.0, 2.0, 3.0, 4.0)
        ]
        assert positions(np.vstack([cloud, *small]), seed) == []
        # Nor are duplicates, if they are not just a few.
        for copies in (1, MIN_NEIGHBORS, MIN_NEIGHBORS + 1):
            row = np.full((copies, 20), 1e15)
            expected = list(range(1980, 1980 + copies)) if copies <= MIN_NEIGHBORS else []
            assert positions(np.vstack([cloud, row]), seed) == expected


def test_clean_data_lose_nothing(data):
    toys = [datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer]
    real = [
        np.ascontiguousarray(load().data)
        for load in [*toys, datasets.load_digits, datasets.load_diabetes]
    ]
    for X in [*real, *data.values()]:
        assert positions(X) == []
        assert positions(sparse.csr_array(X)) == []
    for X in real[:3]:
        assert positions((X - X.mean(axis=0)) / X.std(axis=0)) == []
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1.0, 41.0) ** 1.5
    rare = np.eye(40)[rng.choice(40, 2000, p=shares / shares.sum())]
    assert positions(np.hstack([rare, rng.standard_normal((2000, 2))])) == []
    mostly_equal = np.eye(40)[np.r_[np.zeros(950, int), rng.integers(1, 40, 50)]]
    assert positions(mostly_equal) == []
    assert positions(with_far(mostly_equal, [1e5], 0)) == [1000]


def test_tails_lose_next_to_nothing():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        for X in (
            rng.lognormal(sigma=1.0, size=(5000, 8)),
            rng.standard_t(3, (5000, 8)),
            rng.poisson(rng.gamma(0.1, 3.0, (5000, 8))).astype(float),
        ):
            assert len(positions(X, seed)) <= 15


def test_few_or_equal_rows_have_none():
    for n_rows in range(1, 11):
        assert positions(np.r_[np.zeros(n_rows - 1), 1e9][:, None]) == []
    assert positions(np.ones((50, 3))) == []
    assert positions(np.r_[np.arange(10.0), 1e9][:, None]) == [10]


def test_outliers_do_not_spoil_the_tree():
    X, labels = blobs(1000, 3)

    def score(model, planted):
        return adjusted_rand_score(labels, model.fit(planted).labels_[:1000])

    ours, other = Taxarbor(4, random_state=0), BisectingKMeans(4, random_state=0)
    for share in (0.001, 0.01, 0.05):
        for far in (100.0, 1e5):
            planted = with_far(X, np.full(int(share * 1000), far), 1)
            assert score(ours, planted) >= score(ours, X) - 0.02
    assert score(other, planted) < score(other, X) - 0.2
