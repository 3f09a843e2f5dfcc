"""Against scikit-learn, and against rational arithmetic where that loses digits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.metrics.cluster import expected_mutual_information

from taxarbor.metrics._information import adjusted_information, expected_information


def rows_of(counts):
    """Return a leaf and a class for each row of a table."""
    counts = np.asarray(counts)
    leaves, classes = np.indices(counts.shape)
    return np.repeat(leaves.ravel(), counts.ravel()), np.repeat(classes.ravel(), counts.ravel())


def filled(counts):
    """Drop empty leaves and classes, which no table has."""
    return counts[counts.any(axis=1)][:, counts.any(axis=0)]


def exact_cell(a, b, n):
    """Return the mean of k log(n k / (a b)), with probabilities as fractions."""
    low, high = max(0, a + b - n), min(a, b)
    ways = math.comb(n, b)
    return math.fsum(
        float(Fraction(math.comb(a, k) * math.comb(n - a, b - k), ways))
        * k
        * math.log(n * k / (a * b))
        for k in range(max(low, 1), high + 1)
    )


@pytest.mark.parametrize("seed", range(60))
def test_random_tables(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 12, 2)
    scale = rng.choice([0.3, 1.0, 5.0, 50.0])
    skew = rng.gamma(rng.choice([0.3, 3.0]), size=shape)
    counts = filled(rng.poisson(scale * skew))
    if counts.sum() < 2:
        counts = np.array([[1, 1]])
    expected = adjusted_mutual_info_score(*rows_of(counts))
    assert adjusted_information(counts) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("n_rows", [10_000, 100_000])
@pytest.mark.parametrize("n_clusters", [2, 30])
def test_large_tables(n_rows, n_clusters):
    rng = np.random.default_rng(n_rows)
    shares = rng.dirichlet(np.full(n_clusters**2, 0.2))
    counts = filled(rng.multinomial(n_rows, shares).reshape(n_clusters, n_clusters))
    expected = adjusted_mutual_info_score(*rows_of(counts))
    assert adjusted_information(counts) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 1, 1, 1], [2, 2]),
        ([3, 4], [5, 2]),
        ([60, 1, 39], [50, 50]),
        ([997, 3], [500, 499, 1]),
        ([1500, 500], [1999, 1]),
        ([2, 2, 2, 2, 2], [9, 1]),
    ],
)
def test_expectation_by_fractions(a, b):
    n = sum(a)
    exact = math.fsum(exact_cell(i, j, n) for i in a for j in b) / n
    found = expected_information(np.array(a), np.array(b))
    assert found == pytest.approx(exact, rel=1e-12, abs=1e-15)


def test_expectation_at_a_million_rows():
    # Two halves on each side: by the central limit theorem, information is chi-squared with
    # one degree of freedom over twice the number of rows, and so expected to be 1 / (2 n).
    halves = np.array([500_000, 500_000])
    assert expected_information(halves, halves) == pytest.approx(0.5e-6, rel=1e-5)


def test_expectation_agrees_with_sklearn():
    counts = np.array([[50, 3, 8], [2, 40, 9], [7, 7, 20]])
    found = expected_information(counts.sum(axis=1), counts.sum(axis=0))
    assert found == pytest.approx(expected_mutual_information(counts, counts.sum()), rel=1e-9)


def test_expectation_by_shuffling():
    leaves, classes = rows_of([[8, 1, 3], [2, 9, 4]])
    rng = np.random.default_rng(0)
    drawn = [mutual_info_score(leaves, rng.permutation(classes)) for _ in range(600)]
    found = expected_information(np.bincount(leaves), np.bincount(classes))
    assert abs(found - np.mean(drawn)) < 4 * np.std(drawn) / math.sqrt(len(drawn))


@pytest.mark.parametrize(
    "counts",
    [np.eye(5, dtype=int), np.eye(3, dtype=int)[[2, 0, 1]] * 7, [[4]], [[0, 9], [1, 0]]],
    ids=["singletons", "relabelled", "one", "uneven"],
)
def test_perfect_agreement_is_exactly_one(counts):
    assert adjusted_information(np.array(counts)) == 1.0


def test_one_cluster_or_one_class_says_nothing():
    assert adjusted_information(np.array([[3, 4, 1]])) == 0.0
    assert adjusted_information(np.array([[3], [4], [1]])) == 0.0


def test_singletons_against_few_classes():
    counts = np.zeros((40, 3), dtype=int)
    counts[np.arange(40), np.arange(40) % 3] = 1
    assert adjusted_information(counts) == pytest.approx(0.0, abs=1e-12)
    assert adjusted_information(counts.T) == pytest.approx(0.0, abs=1e-12)


def test_order_does_not_matter():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, (6, 7)) + 1
    found = adjusted_information(counts)
    assert adjusted_information(counts.T) == pytest.approx(found, abs=1e-14)
    shuffled = counts[rng.permutation(6)][:, rng.permutation(7)]
    assert adjusted_information(shuffled) == pytest.approx(found, abs=1e-14)
