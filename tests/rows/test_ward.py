"""Ward's clusters, with SciPy as the oracle."""

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage

from taxarbor.rows import as_rows

KINDS = ["dense", "sparse"]
DTYPES = ["float32", "float64"]


def rows_of(X, kind, n_threads=1):
    return as_rows(sparse.csr_array(X) if kind == "sparse" else X, n_threads=n_threads)


def within(X, labels):
    """Return the squared distances of all rows from the means of their clusters."""
    X = X.astype(np.float64)
    return sum(
        ((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum() for k in np.unique(labels)
    )


def scipys(X, n_clusters):
    """Return SciPy's clusters, numbered by their first rows."""
    found = fcluster(linkage(X.astype(np.float64), "ward"), n_clusters, "maxclust")
    first = {}
    return np.array([first.setdefault(label, len(first)) for label in found])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_features", [1, 3, 8, 37])
@pytest.mark.parametrize("seed", range(3))
def test_as_scipy_does(kind, dtype, n_features, seed):
    X = np.random.default_rng(seed).standard_normal((120, n_features)).astype(dtype)
    everything = within(X, np.zeros(120))
    for n_clusters in (2, 3, 7, 50, 119):
        found, expected = rows_of(X, kind).ward(n_clusters), scipys(X, n_clusters)
        assert found.dtype == np.int32
        if dtype == "float64" or n_clusters < 50:
            np.testing.assert_array_equal(found, expected)
        # Rows that are nearly equal have distances within the rounding of float32.
        excess = within(X, found) - within(X, expected)
        assert abs(excess) <= 4 * np.finfo(dtype).eps * everything


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_about_any_center_and_of_any_rows(kind, dtype):
    X = np.random.default_rng(5).standard_normal((90, 4)).astype(dtype) + 3
    positions = np.random.default_rng(6).permutation(90)[:40]
    rows = rows_of(X, kind)
    for some in (rows.take(positions), rows.take(positions, rows.center)):
        np.testing.assert_array_equal(some.ward(4), scipys(X[positions], 4))


@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_costs_no_digits(kind):
    X = np.random.default_rng(7).standard_normal((80, 3))
    np.testing.assert_array_equal(rows_of(X + 1e6, kind).ward(5), rows_of(X, kind).ward(5))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_clusters", [2, 3, 4, 6])
def test_duplicates_stay_together(kind, dtype, n_clusters):
    rows = np.random.default_rng(8).standard_normal((6, 5))
    X = np.repeat(rows, 9, axis=0)[np.random.default_rng(9).permutation(54)].astype(dtype)
    found = rows_of(X, kind).ward(n_clusters)
    assert len(np.unique(found)) == n_clusters
    assert len({(row.tobytes(), label) for row, label in zip(X, found, strict=True)}) == 6
    np.testing.assert_allclose(within(X, found), within(X, scipys(X, n_clusters)), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_more_clusters_than_distinct_rows(kind):
    X = np.repeat(np.eye(3), 4, axis=0)
    found = rows_of(X, kind).ward(7)
    assert sorted(set(found.tolist())) == list(range(7))
    assert within(X, found) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_ties_cost_no_more(kind, seed):
    """On a grid merges tie: which is first may differ, its cost may not by much."""
    X = np.random.default_rng(seed).integers(0, 3, (60, 4)).astype(float)
    for n_clusters in (2, 3, 5):
        found = rows_of(X, kind).ward(n_clusters)
        assert len(np.unique(found)) == n_clusters
        assert within(X, found) <= 1.1 * within(X, scipys(X, n_clusters))


@pytest.mark.parametrize("kind", KINDS)
def test_clusters_are_nested_and_numbered_by_first_rows(kind):
    rows = rows_of(np.random.default_rng(1).standard_normal((70, 3)), kind)
    before = np.zeros(70, dtype=int)
    for n_clusters in range(2, 12):
        found = rows.ward(n_clusters)
        assert len(set(zip(before.tolist(), found.tolist(), strict=True))) == n_clusters
        first = [int(np.argmax(found == k)) for k in range(n_clusters)]
        assert first == sorted(first)
        before = found


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_ends(kind):
    rows = rows_of(np.random.default_rng(1).standard_normal((9, 2)), kind)
    assert not rows.ward(1).any()
    assert rows.ward(9).tolist() == list(range(9))
    for n_clusters in (0, -1, 10):
        with pytest.raises(ValueError, match="one per row"):
            rows.ward(n_clusters)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_scales(scale):
    X = np.random.default_rng(2).standard_normal((60, 3))
    np.testing.assert_array_equal(as_rows(X * scale).ward(4), as_rows(X).ward(4))
