"""Nearest other rows, with all distances in NumPy as the oracle."""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from taxarbor.rows import as_rows

DTYPES = ("float32", "float64")
KINDS = ("dense", "sparse")


def draw(n_rows, n_features=6, seed=0):
    """Return rows with a good share of zeros, no two of them equally far apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * rng.uniform(0.3, 3.0, n_features)
    X[:, 1:][rng.random((n_rows, n_features - 1)) < 0.5] = 0.0
    return X


def rows_of(X, kind, n_threads=1):
    return as_rows(sparse.csr_array(X) if kind == "sparse" else X, n_threads=n_threads)


def squares(X):
    """Return the squared distances of all pairs, a row's own infinite."""
    exact = X.astype(np.longdouble)
    D = np.square(exact[:, None] - exact).sum(axis=2).astype(np.float64)
    np.fill_diagonal(D, np.inf)
    return D


def assert_nearest(X, distances, positions, n_neighbors, slack):
    """Check distances, and that each position has its; which of equally near ones is free."""
    D = squares(X)
    assert distances.shape == positions.shape == (len(X), n_neighbors)
    assert (distances.dtype, positions.dtype) == (np.float64, np.intp)
    assert (np.diff(distances, axis=1) >= 0.0).all()
    assert all(len(set(row)) == n_neighbors for row in positions)
    found = np.take_along_axis(D, positions, axis=1)
    assert np.isfinite(found).all()  # nobody is a neighbour of itself
    atol = slack * float(D[np.isfinite(D)].max())
    nearest = np.sort(D, axis=1)[:, :n_neighbors]
    np.testing.assert_allclose(np.square(distances), nearest, rtol=0.0, atol=atol)
    np.testing.assert_allclose(found, nearest, rtol=0.0, atol=atol)


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n_neighbors", [1, 5, 119])
def test_all_distances_agree(kind, dtype, n_neighbors, n_threads):
    X = draw(120).astype(dtype)
    found = rows_of(X, kind, n_threads).neighbors(n_neighbors)
    assert_nearest(X, *found, n_neighbors, 1e-6 if dtype == "float32" else 1e-13)


def test_positions_agree_where_there_are_no_ties(kind, dtype):
    X = draw(300).astype(dtype)
    expected = np.argsort(squares(X), axis=1)[:, :4]
    np.testing.assert_array_equal(rows_of(X, kind).neighbors(4)[1], expected)


def test_of_some_rows(kind, dtype):
    """Positions count within the node; rows outside of it are nobody's neighbours."""
    X = draw(200).astype(dtype)
    first = np.random.default_rng(1).permutation(200)[:120]
    second = np.arange(0, 120, 2)
    rows = rows_of(X, kind).take(first)
    assert_nearest(X[first], *rows.neighbors(5), 5, 1e-6)
    assert_nearest(X[first][second], *rows.take(second).neighbors(5), 5, 1e-6)


@pytest.mark.parametrize("copies", [2, 4, 9])
def test_a_row_is_no_neighbor_of_itself_but_its_copies_are(kind, dtype, copies):
    X = np.repeat(draw(25), copies, axis=0).astype(dtype)
    distances, positions = rows_of(X, kind).neighbors(5)
    assert_nearest(X, distances, positions, 5, 1e-6)
    same = positions // copies == np.arange(len(X))[:, None] // copies
    assert (same.sum(axis=1) == min(copies - 1, 5)).all()
    assert distances[same].max() < 1e-5


def test_equal_rows(kind, dtype):
    X = np.full((40, 3), 0.1, dtype=dtype)
    distances, positions = rows_of(X, kind).neighbors(5)
    assert distances.max() < 1e-6
    assert (positions != np.arange(40)[:, None]).all()


def test_an_offset_costs_no_digits(kind, dtype):
    X = (draw(150) + 1e4).astype(dtype)
    assert_nearest(X, *rows_of(X, kind).neighbors(5), 5, 1e-6)


def grid(n):
    """Return points with many neighbours that are equally far."""
    return np.argwhere(np.ones((n, n))).astype(np.float64, order="C")


# scikit-learn shares out the work in another way where there are few rows per thread.
@pytest.mark.parametrize("side", [25, 40, 50, 60])
def test_the_number_of_threads_does_not_matter(kind, dtype, side):
    X = grid(side).astype(dtype)
    one, *others = (rows_of(X, kind, n).neighbors(5) for n in (1, 1, 2, 3, 7))
    for other in others:
        assert [part.tobytes() for part in one] == [part.tobytes() for part in other]


def test_limits_on_threads_are_taken_back(kind):
    rows = rows_of(draw(60), kind, n_threads=1)
    rows.neighbors(2)  # loads scikit-learn's libraries
    before = threadpool_info()
    rows.neighbors(2)
    assert threadpool_info() == before
