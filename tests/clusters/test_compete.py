"""Leaves that compete for rows: the objective never rises, and no leaf is lost."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space

from taxarbor.clusters import find_coordinates
from taxarbor.clusters.leaves import (
    MAX_SHRINKAGE,
    MIN_MOVED,
    ROUNDS,
    SHRINKAGE,
    Leaves,
    compete,
    fit_leaves,
    measure_objective,
)


def divide(n_rows, n_leaves, rng):
    """Return random labels of which none is missing."""
    labels = rng.integers(0, n_leaves, n_rows)
    labels[rng.permutation(n_rows)[:n_leaves]] = np.arange(n_leaves)
    return labels.astype(np.int32)


def clouds(n_rows, n_features, rng):
    X = rng.standard_normal((n_rows, n_features)) * rng.uniform(0.1, 3.0, n_features)
    return X + rng.integers(0, 3, (n_rows, 1)) * rng.normal(0.0, 3.0, n_features)


def leaves_of(labels, coordinates):
    labels = np.asarray(labels, dtype=np.int32)
    return Leaves.of(labels, int(labels.max()) + 1, coordinates)


def place(model, coordinates):
    """Return where a model sends rows."""
    Z = coordinates.values[:, :-1].astype(np.float64)
    return (Z @ model.weights.T + model.offsets).argmax(axis=1).astype(np.int32)


def measure(leaves, coordinates, ridge):
    """Return log det S, which a round does not raise."""
    means, shares = leaves.means, leaves.counts / coordinates.n_rows
    within = coordinates.scatter - (means.T * shares) @ means
    return float(np.linalg.slogdet(within + ridge * np.eye(len(within)))[1])


def scatter_within(leaves, coordinates):
    """Return the mean product of the rows about the means of their leaves."""
    apart = coordinates.values[:, :-1].astype(np.float64) - leaves.means[leaves.labels]
    return apart.T @ apart / len(apart)


def shrink(S, n_rows):
    """Return the weight of the plain distance by Chen et al. (2010), equation 23."""
    p, square = len(S), np.trace(S) ** 2
    products = np.trace(S @ S)
    part = (1.0 - 2.0 / p) * products + square
    return min(part / ((n_rows + 1.0 - 2.0 / p) * (products - square / p)), 1.0)


def trace_of(leaves, coordinates, n_rounds, ridge=None):
    """Return the objective of each round, the ridge being that of the first."""
    trace = []
    for _ in range(n_rounds):
        model, ridge = fit_leaves(leaves, coordinates, ridge)
        trace.append(measure(leaves, coordinates, ridge))
        moved = Leaves.of(place(model, coordinates), leaves.n_leaves, coordinates)
        if not moved.counts.all():
            break
        leaves = moved
    return np.array(trace)


@given(
    n_rows=st.integers(6, 120),
    n_features=st.integers(1, 12),
    n_leaves=st.integers(2, 6),
    ridge=st.sampled_from([None, 1e-3, 10.0]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_the_objective_never_rises(n_rows, n_features, n_leaves, ridge, seed):
    rng = np.random.default_rng(seed)
    coordinates = find_coordinates(clouds(n_rows, n_features, rng), seed)
    leaves = leaves_of(divide(n_rows, n_leaves, rng), coordinates)
    trace = trace_of(leaves, coordinates, 12, ridge)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) <= 1e-6 * (1.0 + np.abs(trace[:-1]))).all()


def test_the_scores_are_distances_in_the_metric_of_the_leaves(data):
    coordinates = find_coordinates(data["cloud"], 0)
    labels = divide(300, 4, np.random.default_rng(0))
    leaves = leaves_of(labels, coordinates)
    model, ridge = fit_leaves(leaves, coordinates)
    Z = coordinates.values[:, :-1].astype(np.float64)
    means = np.stack([Z[labels == k].mean(axis=0) for k in range(4)])
    np.testing.assert_allclose(leaves.means, means, rtol=1e-5, atol=1e-7)
    within = scatter_within(leaves, coordinates)
    S = within + ridge * np.eye(Z.shape[1])
    apart = Z[:, None] - means
    distances = np.einsum("nkp,pq,nkq->nk", apart, np.linalg.inv(S), apart)
    np.testing.assert_array_equal(place(model, coordinates), distances.argmin(axis=1))


def share_of(X, n_leaves, seed=0):
    """Return the ridge of random leaves, as a share of the mean variance, and the expected.

    The variance along the differences of few means is no evidence.
    """
    coordinates = find_coordinates(X, 0)
    labels = divide(len(X), n_leaves, np.random.default_rng(seed))
    leaves = leaves_of(labels, coordinates)
    _, ridge = fit_leaves(leaves, coordinates)
    within = scatter_within(leaves, coordinates)
    across = null_space(leaves.means[1:] - leaves.means[0])
    weight = shrink(across.T @ within @ across, len(X))
    expected = np.clip(weight / max(1.0 - weight, 1e-9), SHRINKAGE, MAX_SHRINKAGE)
    return ridge * len(within) / np.trace(within), expected


def test_the_ridge_follows_the_evidence():
    """Little where variances differ and rows are many, nearly all where they are equal."""
    rng = np.random.default_rng(0)
    for n_rows, n_features, n_leaves in ((8000, 60, 2), (4000, 60, 5), (1000, 60, 30)):
        X = rng.standard_normal((n_rows, n_features))
        shares, expected = np.transpose([share_of(X, n_leaves, seed) for seed in range(5)])
        np.testing.assert_allclose(shares, expected, rtol=1e-3)
        assert (shares / (1.0 + shares)).min() >= (0.95 if n_leaves == 2 else 0.85)
        for spread in (2.0, 10.0):
            share, expected = share_of(X * np.geomspace(1.0, spread, n_features), n_leaves)
            assert np.isclose(share, expected, rtol=1e-3)
            assert np.isclose(share, SHRINKAGE)
    spread = np.geomspace(1.0, 3.0, 60)
    few, some, many = (
        share_of(rng.standard_normal((n, 60)) * spread, 2)[0] for n in (40, 80, 2000)
    )
    assert few > 1.3 * some > 1.3 * many
    assert np.isclose(many, SHRINKAGE)


def test_leaves_compete_until_few_rows_move():
    """With the ridge of the first round, and never for more rounds than allowed."""
    n_long = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((3000, 24)) + 0.5 * rng.integers(0, 2, (3000, 1))
        coordinates = find_coordinates(X, seed)
        first = leaves_of(X[:, 0] + X[:, 1] > 1.0, coordinates)
        _, ridge = fit_leaves(first, coordinates)
        each = [first, *(compete(first, coordinates, n)[0] for n in range(1, ROUNDS + 1))]
        moved = [np.mean(a.labels != b.labels) for a, b in pairwise(each)]
        n_rounds = next((n for n, share in enumerate(moved, 1) if share < MIN_MOVED), ROUNDS)
        assert max(moved[:n_rounds][:-1]) >= MIN_MOVED
        assert not any(moved[n_rounds:])
        found, model = compete(first, coordinates)
        np.testing.assert_array_equal(found.labels, each[n_rounds].labels)
        np.testing.assert_array_equal(found.labels, place(model, coordinates))
        objectives = [measure_objective(one, coordinates, ridge) for one in each]
        assert np.isclose(objectives[-1], measure(found, coordinates, ridge))
        assert (np.diff(objectives) <= 1e-9).all()
        n_long += n_rounds > 3
    assert n_long > 3


def test_a_leaf_is_never_lost():
    """Of two leaves with the same mean the first would get all rows of both."""
    coordinates = find_coordinates(np.repeat([[0.0, 0.0], [4.0, 1.0]], 10, axis=0), 0)
    leaves = leaves_of([0] * 5 + [1] * 5 + [2] * 10, coordinates)
    moved, model = compete(leaves, coordinates)
    np.testing.assert_array_equal(moved.labels, leaves.labels)
    assert model.weights.shape == (3, 2)


def test_leaves_without_scatter():
    """What is left within leaves is rounding, and grows with the number of rows."""
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for n_features, copies in ((4, 6), (10, 5000), (70, 500)):
            X = np.repeat(rng.standard_normal((5, n_features)), copies, axis=0).astype(dtype)
            labels = np.repeat(np.arange(5), copies)
            coordinates = find_coordinates(X, 0)
            model, _ = fit_leaves(leaves_of(labels, coordinates), coordinates)
            assert np.isfinite(model.weights).all()
            np.testing.assert_array_equal(place(model, coordinates), labels)
        X = 1e-3 * rng.standard_normal((8000, 80))
        X[0] = 1e6
        labels = np.arange(8000) % 3
        coordinates = find_coordinates(X.astype(dtype), 0)
        model, _ = fit_leaves(leaves_of(labels, coordinates), coordinates)
        assert np.isfinite(model.weights).all()
