"""K-means against scikit-learn's from the same centres, and against itself: a fixed point."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from taxarbor.split._kmeans import cluster_rows

from taxarbor._types import Status
from taxarbor.split import KMeansSplitter, Refusal
from taxarbor.split._starts import far_rows

KINDS = ("dense", "sparse")
DTYPES = ("float32", "float64")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


def inertia(X, labels):
    """Mean squared distance from the means of the labels."""
    Z = X.astype(np.float64)
    clusters = [Z[labels == k] for k in np.unique(labels)]
    return sum(np.square(C - C.mean(axis=0)).sum() for C in clusters) / len(Z)


def is_fixed_point(X, labels, K):
    """Say whether each row is nearest to the mean of its own cluster."""
    Z = X.astype(np.float64)
    means = np.array([Z[labels == k].mean(axis=0) for k in range(K)])
    distances = np.square(Z[:, None] - means).sum(axis=2)
    own = distances[np.arange(len(Z)), labels]
    return bool((own - distances.min(axis=1)).max() <= 1e-5 * distances.max())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("distance", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("K", [2, 3, 6])
def test_scikit_learn_from_the_same_centers(draw, rows_of, kind, dtype, K, distance, seed):
    X = draw(K, distance=distance, dtype=dtype, seed=seed)
    rows = rows_of(X, kind)
    start = far_rows(rows, K, np.random.default_rng(seed)) + rows.center
    found = cluster_rows(rows, K, 1, np.random.default_rng(seed))
    oracle = KMeans(K, init=start, n_init=1, tol=0.0).fit(X.astype(np.float64))
    assert found.info.status is Status.CONVERGED
    precision = 1e-6 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(found.objective, oracle.inertia_ / len(X), rtol=precision)
    np.testing.assert_array_equal(found.labels, oracle.labels_)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("K", [2, 5])
def test_a_fixed_point(draw, rows_of, task_of, kind, dtype, K, seed, offset):
    X = (draw(K, distance=1.0, seed=seed) + offset).astype(dtype)
    found = KMeansSplitter().split(task_of(rows_of(X, kind), K, seed=seed))
    assert found.info.status is Status.CONVERGED
    assert is_fixed_point(X, found.labels, K)
    precision = 1e-12 if (dtype, offset) == ("float64", 0.0) else 1e-5
    np.testing.assert_allclose(found.objective, inertia(X, found.labels), rtol=precision)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("K", [2, 4, 9])
def test_the_objective_never_rises(draw, rows_of, kind, dtype, K, seed):
    X = draw(3, n_rows=700, distance=0.5, dtype=dtype, seed=seed)
    trace = cluster_rows(rows_of(X, kind), K, 1, np.random.default_rng(seed)).info.trace
    assert len(trace) > 3
    assert (np.diff(trace) <= 0.0).all()
    assert trace[0] > trace[-1] > 0.0


def test_the_best_of_the_starts_is_kept(draw, rows_of, kind):
    rows = rows_of(draw(6, distance=2.0), kind)
    rng = np.random.default_rng(3)
    objectives = [cluster_rows(rows, 6, 1, rng).objective for _ in range(8)]
    assert len(set(objectives)) > 1
    best = cluster_rows(rows, 6, 8, np.random.default_rng(3))
    assert best.objective == min(objectives)
    assert np.argmin(objectives) > 0


def test_more_starts_are_never_worse(draw, rows_of, task_of):
    task = task_of(rows_of(draw(6, distance=2.0)), 6)
    found = [KMeansSplitter(n_init=n).split(task).objective for n in (1, 2, 5, 10)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("seed", range(4))
def test_many_starts_come_as_low_as_scikit_learns(draw, rows_of, task_of, seed):
    X = draw(4, n_rows=60, distance=2.0, seed=seed)
    found = KMeansSplitter(n_init=30).split(task_of(rows_of(X), 4, seed=seed))
    oracle = KMeans(4, n_init=30, random_state=seed).fit(X)
    np.testing.assert_allclose(found.objective, oracle.inertia_ / len(X), rtol=0.01)


@pytest.mark.parametrize("constant", ["TOLERANCE", "MAX_STEPS"])
@pytest.mark.parametrize("K", [2, 3])
def test_stopped_early(monkeypatch, draw, rows_of, task_of, kind, dtype, K, constant):
    """Labels follow the rule all the same, and the objective is not far from theirs."""
    limit, status = {
        "TOLERANCE": (0.02, Status.SETTLED),
        "MAX_STEPS": (4, Status.ITERATION_LIMIT),
    }[constant]
    monkeypatch.setattr(f"taxarbor.split._kmeans.{constant}", limit)
    X = draw(K, n_rows=3000, distance=0.0, dtype=dtype)
    found = KMeansSplitter().split(task_of(rows_of(X, kind), K))
    assert found.info.status is status
    W, center, offsets = found.rule.weights, found.rule.center, found.rule.offsets
    choice = ((X - center) @ W.T + offsets).argmax(axis=1)
    assert (choice != found.labels).mean() < 1e-3  # but for the rounding of half-way rows
    assert inertia(X, found.labels) <= found.objective * (1.0 + 1e-6)
    np.testing.assert_allclose(inertia(X, found.labels), found.objective, rtol=0.02)
    if constant == "MAX_STEPS":
        assert len(found.info.trace) == 4


def test_seeds_and_paths_lead_to_other_starts(draw, rows_of, task_of):
    rows = rows_of(draw(6, distance=1.0))
    found = {
        KMeansSplitter().split(task_of(rows, 6, seed=seed, deep=deep)).objective
        for seed in range(3)
        for deep in (False, True)
    }
    assert len(found) > 3


def test_an_outlier_is_a_child(draw, rows_of, task_of, kind, dtype):
    X = draw(1, dtype=dtype)
    X[17] += 1e5
    found = KMeansSplitter().split(task_of(rows_of(X, kind), 2))
    assert np.flatnonzero(found.labels == found.labels[17]).tolist() == [17]


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("K", [2, 3])
def test_the_scale_does_not_matter(draw, rows_of, task_of, K, scale):
    X = draw(K)
    one, other = (KMeansSplitter().split(task_of(rows_of(Z), K)) for Z in (X, X * scale))
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(other.score, one.score * scale, rtol=1e-9)
    np.testing.assert_allclose(other.objective, one.objective * scale**2, rtol=1e-9)


def test_one_feature(rows_of, task_of, kind, dtype):
    X = np.arange(12, dtype=dtype)[:, None]
    found = KMeansSplitter().split(task_of(rows_of(X, kind), 2))
    assert np.count_nonzero(np.diff(found.labels)) == 1


@pytest.mark.parametrize("n_init", [1, 5])
def test_a_child_that_would_be_empty(rows_of, task_of, kind, n_init):
    X = np.repeat([[0.0, 1.0], [3.0, 1.0]], 20, axis=0)
    refused = KMeansSplitter(n_init=n_init).split(task_of(rows_of(X, kind), 3))
    assert refused == Refusal("its 40 rows are in fewer than 3 places")
