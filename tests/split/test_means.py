"""Means of children, the rule of the nearest, and the two scores, against plain NumPy."""

import numpy as np
import pytest
from taxarbor.split._means import Division, child_means, conclude, follow, nearest_rule

from taxarbor._types import SolveInfo, Status
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.split import CRITERIA

PRECISION = {"float32": 1e-5, "float64": 1e-12}


@pytest.fixture(params=["dense", "sparse"])
def kind(request):
    return request.param


@pytest.fixture(params=list(PRECISION))
def dtype(request):
    return request.param


def random_labels(n_rows, K):
    labels = np.random.default_rng(4).integers(0, K, n_rows).astype(np.int32)
    labels[:K] = np.arange(K)
    return labels


def exact_means(X, labels, K):
    return np.array([X[labels == k].mean(axis=0, dtype=np.float64) for k in range(K)])


@pytest.mark.parametrize("K", [2, 3, 7])
def test_means(draw, rows_of, kind, dtype, K):
    X = draw(K, dtype=dtype)
    rows, labels = rows_of(X, kind), random_labels(len(X), K)
    means = child_means(rows, labels, K)
    assert means.dtype == np.float64
    expected = exact_means(X, labels, K)
    np.testing.assert_allclose(means + rows.center, expected, rtol=PRECISION[dtype])


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("K", [2, 3, 7])
def test_the_rule_is_the_nearest_mean(draw, rows_of, kind, dtype, K, offset):
    X = (draw(K) + offset).astype(dtype)
    rows, labels = rows_of(X, kind), random_labels(len(X), K)
    means = child_means(rows, labels, K)
    rule = nearest_rule(rows, means)
    assert rule.dtype == dtype
    distances = np.square((X - rows.center)[:, None] - means).sum(axis=2)
    chosen = follow(rows, rule)
    assert chosen.dtype == np.int32
    own = distances[np.arange(len(X)), chosen]
    # Half-way rows, within the precision of the scores, may go either way.
    assert (own - distances.min(axis=1)).max() <= PRECISION[dtype] * distances.max()


def test_a_tree_follows_the_rule_to_the_last_bit(draw, rows_of, kind, dtype):
    X = np.round(draw(3, n_rows=400)).astype(dtype)  # many ties
    rows = rows_of(X, kind)
    rule = nearest_rule(rows, child_means(rows, random_labels(400, 3), 3))
    labels = follow(rows, rule)
    builder = HierarchyBuilder(400)
    builder.add_split(0, labels, rule)
    tree = builder.freeze()
    np.testing.assert_array_equal(tree.predict(X), labels)


def test_of_equally_near_means_the_first(rows_of):
    X = np.array([[-1.0], [0.0], [1.0], [0.0]])
    rows = rows_of(X)
    assert follow(rows, nearest_rule(rows, np.array([[1.0], [-1.0]]))).tolist() == [1, 0, 0, 0]


def brute_score(X, labels, K, criterion):
    """Total distance from the centre, or minus the average distance from the child's mean."""
    exact = X.astype(np.float64)
    if criterion == "scatter":
        return np.linalg.norm(exact - exact.mean(axis=0), axis=1).sum()
    means = exact_means(X, labels, K)
    return -np.linalg.norm(exact - means[labels], axis=1).mean()


@pytest.mark.parametrize("offset", [0.0, 300.0])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("K", [2, 5])
def test_scores(draw, rows_of, kind, dtype, K, criterion, offset):
    X = (draw(K) + offset).astype(dtype)
    rows, labels = rows_of(X, kind), random_labels(len(X), K)
    found = Division(labels, 0.5, SolveInfo(Status.CONVERGED, 0, 1.0, (0.5,)))
    rule = nearest_rule(rows, child_means(rows, labels, K))
    split = conclude(rows, found, rule, criterion)
    expected = brute_score(X, labels, K, criterion)
    # Sparse rows are centred implicitly, which costs the square of the offset.
    precision = PRECISION[dtype] * (1e3 if offset else 1.0)
    np.testing.assert_allclose(split.score, expected, rtol=precision)
    assert split.labels is labels
    assert split.rule is rule
    assert (split.objective, split.info) == (found.objective, found.info)


def test_children_without_extent(rows_of, kind, dtype):
    X = np.repeat([[0.1, 3.0], [7.0, 0.0]], 30, axis=0).astype(dtype)
    rows, labels = rows_of(X, kind), np.repeat([0, 1], 30).astype(np.int32)
    found = Division(labels, 0.0, SolveInfo(Status.CONVERGED, 0, 1.0, (0.0,)))
    rule = nearest_rule(rows, child_means(rows, labels, 2))
    noise = 10 * np.sqrt(np.finfo(dtype).eps)
    assert -noise <= conclude(rows, found, rule, "compact").score <= 0.0
