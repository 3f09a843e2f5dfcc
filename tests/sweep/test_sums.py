"""Exact sums that leave out digits which none of them has."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from taxarbor.rows import as_rows
from taxarbor.sweep import _sums
from taxarbor.sweep._sums import sums_of_labels


def exactly(X, labels, counts, n_labels):
    """Return the nearest doubles of the sums of each label."""
    found = [[Fraction(0)] * X.shape[1] for _ in range(n_labels)]
    for row, label, count in zip(X.tolist(), labels.tolist(), counts.tolist(), strict=True):
        for j, x in enumerate(row if label >= 0 else ()):
            found[label][j] += Fraction(x) * count
    return np.array([[float(x) for x in row] for row in found])


def rows_of(X):
    return as_rows(X, center=np.zeros(X.shape[1]))


def data(kind, dtype):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    if kind == "wide":
        X *= 10.0 ** rng.integers(-30, 30, X.shape)
    if kind == "powers":  # whose digits above are all ones
        X = -(2.0 ** rng.integers(-100, 100, X.shape))
    if kind == "zero":
        X[:] = 0.0
    if kind == "least":
        X = np.full(X.shape, -float(np.finfo(dtype).smallest_subnormal))
    if kind == "greatest":
        X = rng.choice([-1.0, 1.0], X.shape) * float(np.finfo(dtype).max) / 64.0
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["usual", "wide", "powers", "zero", "least", "greatest"])
@pytest.mark.parametrize("cells", [1, 400, 1 << 22])
def test_sums_are_exact_whatever_is_left_out(kind, dtype, cells, monkeypatch):
    monkeypatch.setattr(_sums, "CELLS", max(cells, 67))
    X, rng = data(kind, dtype), np.random.default_rng(0)
    labels = rng.integers(-1, 7, 60).astype(np.int32)
    labels[labels == 5] = 0  # a label of no rows
    counts = rng.integers(0, 4, 60).astype(np.int32)
    expected = exactly(X, labels, counts, 7)
    for table in (X, sparse.csr_array(X)):
        found = sums_of_labels(rows_of(table), labels, counts, 7)
        np.testing.assert_array_equal(found.values(), expected)


@pytest.mark.parametrize("kind", ["usual", "wide", "powers", "least"])
def test_sums_of_blocks_are_those_of_all_rows(kind):
    X, rng = data(kind, "float64"), np.random.default_rng(1)
    X = np.concatenate([X, 1e200 * X[:20], 1e-250 * X[:7]])
    labels, counts = rng.integers(0, 3, len(X)).astype(np.int32), np.ones(len(X), np.int32)
    expected = exactly(X, labels, counts, 3)
    for edges in ([0, 87], [0, 60, 80, 87], [0, 1, 2, 70, 71, 87]):
        parts = [
            sums_of_labels(rows_of(X[first:last].copy()), labels[first:last], None, 3)
            for first, last in pairwise(edges)
        ]
        for order in (parts, parts[::-1]):
            found = order[0]
            for part in order[1:]:
                found = found.merge(part)
            np.testing.assert_array_equal(found.values(), expected)


def test_sums_of_a_tree():
    X = data("usual", "float64")
    labels = (np.arange(60) % 3).astype(np.int32)
    leaves = sums_of_labels(rows_of(X), labels, None, 3)
    nodes = leaves.below([1, 3, 4], [-1, 0, 0, 2, 2]).values()
    expected = exactly(X, np.array([0, 1, 1])[labels], np.ones(60, int), 2)
    np.testing.assert_array_equal(nodes[[1, 2]], expected)
    np.testing.assert_array_equal(nodes[0], exactly(X, 0 * labels, 1 + 0 * labels, 1)[0])


def test_wide_rows_take_little_memory():
    X = sparse.random_array((500, 40_000), density=1e-3, format="csr", rng=0)
    labels = (np.arange(500) % 50).astype(np.int32)
    found = sums_of_labels(rows_of(X), labels, None, 50)
    assert found.limbs.nbytes < 10 * 8 * 50 * 40_000  # all digits would take a gigabyte
    expected = np.zeros((50, 40_000))
    np.add.at(expected, labels, X.toarray())
    np.testing.assert_allclose(found.values(), expected, rtol=1e-12)
