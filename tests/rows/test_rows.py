"""One contract over every kind of rows, with plain NumPy and SciPy as oracles."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage

from taxarbor import native
from taxarbor.rows import HalveProblem, SplitProblem, as_rows

DTYPES = ("float32", "float64")
KINDS = ("dense", "sparse")


def draw(n_rows, n_features, dtype="float64", seed=0):
    """Return data with a good share of zeros, off centre, of mixed scales."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.5, 1.0, (n_rows, n_features)) * rng.uniform(0.3, 3.0, n_features)
    X[rng.random(X.shape) < 0.5] = 0.0
    return X.astype(dtype)


def rows_of(X, kind, n_threads=1, center=None):
    X = sparse.csr_array(X) if kind == "sparse" else X
    return as_rows(X, center=center, n_threads=n_threads)


def plain(X, center):
    return X.astype(np.float64) - center


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@cache
def make_samples(kind, dtype):
    samples = []
    for n_threads, depth in product((1, 2), range(3)):
        X = draw(5000, 19, dtype)
        rows = rows_of(X, kind, n_threads)
        rng = np.random.default_rng(1)
        for _ in range(depth):
            positions = rng.permutation(len(X))[: 2 * len(X) // 3]
            X, rows = X[positions], rows.take(positions)
        samples.append((rows, plain(X, rows.center), 3e-5 if dtype == "float32" else 1e-12))
    return samples


@pytest.fixture
def samples(kind, dtype):
    """Return rows, the same in NumPy about the same centre, and a tolerance; parts of parts."""
    return make_samples(kind, dtype)


def close(actual, expected, tolerance):
    expected = np.asarray(expected, dtype=np.float64)
    scale = np.abs(expected).max(initial=1e-300)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale)


def test_center_scores_and_adjoint(samples, dtype):
    rng = np.random.default_rng(2)
    for rows, Z, tolerance in samples:
        assert (rows.n_rows, rows.n_features) == Z.shape
        assert rows.dtype == dtype
        assert not rows.center.flags.writeable
        close(rows.center, rows.center - Z.mean(axis=0), tolerance)
        np.testing.assert_array_equal(rows.center, rows.center.astype(rows.dtype))
        for n_models in (1, 2, 3, 4, 7):
            W = rng.normal(size=(n_models, rows.n_features)).astype(dtype).astype(float)
            scores = rows.scores(W)
            assert scores.dtype == dtype
            close(scores, Z @ W.T, tolerance)
            R = rng.normal(size=(rows.n_rows, n_models)).astype(dtype)
            R[rng.random(R.shape) < 0.4] = 0.0
            close(rows.adjoint(R), R.T.astype(np.float64) @ Z, tolerance)


def test_gram(samples):
    for rows, Z, tolerance in samples:
        rng = np.random.default_rng(4)
        positions = np.sort(rng.choice(rows.n_rows, rows.n_rows // 2, replace=False))
        for features in ([0], [1, 5, 6, 18], list(range(19))):
            G = rows.gram(positions, np.array(features))
            chosen = Z[positions][:, features]
            np.testing.assert_array_equal(G, G.T)
            close(G, chosen.T @ chosen, tolerance)


def test_steps_of_lloyd(samples):
    for (rows, Z, tolerance), n_centers in product(samples, (2, 3, 6)):
        start = np.random.default_rng(5).normal(size=(n_centers, rows.n_features))
        labels, centers = rows.lloyd(start, 1)
        distances = ((Z[:, None, :] - start) ** 2).sum(axis=2)
        reached = np.take_along_axis(distances, labels[:, None].astype(np.intp), axis=1)[:, 0]
        # The nearest one, but for rows that lie half-way within the precision of the data.
        assert (reached - distances.min(axis=1)).max() <= 10 * tolerance * distances.max()
        assert labels.dtype == np.int32
        close(centers, [Z[labels == k].mean(axis=0) for k in range(n_centers)], tolerance)
        together = rows.lloyd(start, 3)
        for _ in range(2):
            labels, centers = rows.lloyd(centers, 1)
        np.testing.assert_array_equal(together[0], labels)
        np.testing.assert_array_equal(together[1], centers)
        start[1] = 1e3  # a center without rows stays
        np.testing.assert_array_equal(rows.lloyd(start, 2)[1][1], start[1])


def test_principal_direction_norms_and_spread(samples):
    for rows, Z, tolerance in samples:
        start = np.random.default_rng(11).normal(size=rows.n_features)
        expected = start / np.linalg.norm(start)
        for _ in range(3):
            expected = Z.T @ (Z @ expected)
            expected = expected / np.linalg.norm(expected)
        close(rows.principal(start, 3), expected, tolerance)
        np.testing.assert_array_equal(rows.principal(np.zeros(rows.n_features), 2), 0.0)
        close(rows.norms(), (Z * Z).sum(axis=1), tolerance)
        close(rows.spread(), np.abs(Z).mean(axis=0), tolerance)


def test_columns_of_zeros_and_ones(kind, dtype):
    """Those that come late, go late, are constant, negative, without zeros, nearly so."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 70, 5000):
        X = rng.integers(0, 2, size=(n, 12)).astype(dtype)
        X[:, 0] = rng.normal(size=n)
        X[:, 1], X[:, 2], X[:, 3] = 0.0, 1.0, 2.0 - X[:, 3]
        X[:, 4], X[:, 5], X[:, 6] = -X[:, 4], X[:, 5] * 0.1 - 2.5, X[:, 6] * (1.0 + 2e-7)
        X[-1, 7], X[:-1, 8], X[-1, 8] = 2.0, 0.0, 1.0
        X[:, 9] = rng.integers(-1, 2, size=n)
        X[:, 10] = np.where(X[:, 10], 1.0, 1e-6)
        rows = rows_of(X, kind)
        expected = [set(np.unique(column.round(5))) == {0.0, 1.0} for column in X.T]
        assert n < 70 or np.flatnonzero(expected).tolist() == [6, 8, 10, 11]
        np.testing.assert_array_equal(rows.find_booleans(), expected)
        if n > 2:
            own = rng.permutation(n)[: n // 2]
            alone = rows_of(np.ascontiguousarray(X[own]), kind).find_booleans()
            np.testing.assert_array_equal(rows.take(own).find_booleans(), alone)


def test_equal_rows_hardly_spread(kind, dtype):
    """Taken about their own mean once more, whatever company they came from."""
    for n_rows in (5, 7, 99, 3000):
        X = draw(2 * n_rows, 3, dtype)
        X[::2] = np.array([0.1, 0.0, -1e6 / 3])
        rows = rows_of(X, kind).take(np.arange(n_rows) * 2).take(np.arange(n_rows))
        noise = 4 * np.finfo(dtype).eps * np.abs(X).max(axis=0)
        assert (np.abs(rows.center - X[0]) <= noise).all()
        assert (rows.spread() <= noise).all()


def test_a_score_depends_on_its_row_alone(kind, dtype):
    for n_features, n_models in product((1, 3, 8, 37, 300), (1, 2, 5, 16, 41)):
        rows = rows_of(draw(90, n_features, dtype), kind)
        W = np.random.default_rng(6).normal(size=(n_models, n_features))
        together = rows.scores(W)
        for i in (0, 1, 44, 89):
            alone = rows.take(np.array([i]), rows.center).scores(W)
            assert alone.tobytes() == together[i].tobytes()
        backwards = rows.take(np.arange(90)[::-1], rows.center).scores(W)
        np.testing.assert_array_equal(backwards[::-1], together)


def test_the_best_score_is_the_first_of_the_highest(kind, dtype):
    rng = np.random.default_rng(3)
    for n_models in (1, 2, 5, 16, 41, 100):
        rows = rows_of(draw(70, 300, dtype), kind, n_threads=2)
        W, offsets = rng.normal(size=(n_models, 300)), rng.normal(size=n_models).astype(dtype)
        W[::3], offsets[::3] = W[0], offsets[0]  # ties
        scores = rows.scores(W)
        exact = (rows.scores(np.eye(300)).astype(float)) @ W.T
        np.testing.assert_allclose(scores, exact, atol=1e3 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(rows.best(W, offsets), (scores + offsets).argmax(axis=1))
        np.testing.assert_array_equal(rows.best(W), scores.argmax(axis=1))


def everything(rows):
    """Return the bytes of all that rows can say."""
    rng = np.random.default_rng(7)
    n, p = rows.n_rows, rows.n_features
    W = rng.normal(size=(3, p))
    R = rng.normal(size=(n, 2)).astype(rows.dtype)
    labels = (rows.scores(W[:1])[:, 0] < 0).astype(np.int8)
    weights, limits = (0.0, np.full(p, 1e-3), 0.0), (1e-9, 1e-9, 20, 100)
    bounds = n // 4, 3 * n // 4
    pair = rows.solve_pair(SplitProblem(np.zeros(p), labels, bounds, *weights, *limits))
    arrays = [rows.center, rows.scores(W), rows.adjoint(R), rows.norms(), rows.spread()]
    arrays += [rows.gram(np.flatnonzero(R[:, 0] > 0), np.arange(p)), *rows.lloyd(W, 2)]
    arrays += [rows.principal(W[0], 2), *pair[:3]]
    return [array.tobytes() for array in [*arrays, np.array(pair[3])]]


def test_nothing_depends_on_the_number_of_threads(kind, dtype):
    X = draw(45_000, 3, dtype)
    positions = np.random.default_rng(8).permutation(len(X))[:40_000]
    said = []
    for n_threads in (1, 2, 3):
        rows = rows_of(X, kind, n_threads)
        said.append(everything(rows) + everything(rows.take(positions)))
    assert said[0] == said[1] == said[2]


def test_large_offsets_cost_no_accuracy():
    X = draw(5000, 6, "float64") + 1e6
    exact = X.astype(np.longdouble).mean(axis=0)
    rng = np.random.default_rng(9)
    W, R = rng.normal(size=(2, 6)), rng.normal(size=(5000, 2))
    rows = as_rows(X, n_threads=2)
    np.testing.assert_allclose(rows.center, exact.astype(np.float64), rtol=2.3e-16)
    Z = X.astype(np.longdouble) - rows.center
    close(rows.scores(W), Z @ W.T, 1e-13)
    close(rows.adjoint(R), R.T @ Z, 1e-13)
    close(rows.gram(np.arange(5000), np.arange(6)), Z.T @ Z, 1e-13)
    close(rows.norms(), (Z * Z).sum(axis=1), 1e-13)
    close(rows.spread(), np.abs(Z).mean(axis=0), 1e-13)
    few = X[:100].astype(np.longdouble).mean(axis=0).astype(float)
    np.testing.assert_allclose(rows.take(np.arange(100)).center, few, rtol=2.3e-16)


def test_what_is_no_matrix_of_numbers_is_refused():
    """What the kernels check of a matrix is tested with them."""
    X = draw(6, 4)
    S = sparse.csr_array(X)
    for bad in ([[1.0, 2.0]], X.astype(">f8")):
        with pytest.raises(TypeError):
            as_rows(bad)
    wide, short = S.copy(), S.copy()
    wide.indices = S.indices.astype(np.int64) + 2**32  # the upper half counts
    short.indices = S.indices[:-1]
    wrong_shapes = X[0], X[None], X[:0], X[:, :0], sparse.csr_array((0, 4))
    wrong_layouts = X[:, ::2], np.asfortranarray(X), S.tocsc(), S.tocoo(), wide, short
    for bad in (*wrong_shapes, *wrong_layouts, X.astype(int), S.astype(int)):
        with pytest.raises(ValueError, match=r"X|values|starts|columns"):
            as_rows(bad)
    for name, value in (("center", np.zeros(3)), ("n_threads", 0)):
        with pytest.raises(ValueError, match=name):
            as_rows(X, **{name: value})


def test_matrices_of_other_layouts_are_taken():
    """Of wide indices, with room to spare, of the older class; not aligned, as by Dask."""
    X = draw(30, 6)
    S, wide, spare = (sparse.csr_array(X) for _ in range(3))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    spare.data, spare.indices = np.append(S.data, 9.0), np.append(S.indices, 99).astype("i4")
    for other in (wide, spare, sparse.csr_matrix(X)):
        np.testing.assert_array_equal(as_rows(other).norms(), as_rows(S).norms())
    odd = np.frombuffer(bytearray(b" " + X.tobytes()), X.dtype, X.size, 1).reshape(X.shape)
    assert not odd.flags.aligned
    np.testing.assert_array_equal(as_rows(odd).norms(), as_rows(X).norms())


def test_positions_are_checked(kind):
    rows = rows_of(draw(6, 4), kind)
    for bad in ([0, -1], [6], []):
        with pytest.raises(ValueError, match=r"positions|no rows"):
            rows.take(bad)
    for bad in (np.ones(6, dtype=bool), np.array([0.0, 1.0])):
        with pytest.raises(TypeError, match="positions"):
            rows.take(bad)
    np.testing.assert_array_equal(rows.take([2, 1], rows.center).norms(), rows.norms()[[2, 1]])


# ---- Ward's clusters ----------------------------------------------------------------------


def within(X, labels):
    """Return the squared distances of all rows from the means of their clusters."""
    X = X.astype(np.float64)
    parts = (X[labels == k] for k in np.unique(labels))
    return sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)


def scipys(X, n_clusters):
    """Return SciPy's clusters, numbered by their first rows."""
    found = fcluster(linkage(X.astype(np.float64), "ward"), n_clusters, "maxclust")
    first = {}
    return np.array([first.setdefault(label, len(first)) for label in found])


def test_ward_as_scipy_does(dtype):
    for n_features, seed in product((1, 3, 8, 37), range(3)):
        X = np.random.default_rng(seed).standard_normal((120, n_features)).astype(dtype)
        total = within(X, np.zeros(120))
        for n_clusters in (2, 3, 7, 50, 119):
            found, expected = native.ward(X, n_clusters), scipys(X, n_clusters)
            assert found.dtype == np.int32
            if dtype == "float64" or n_clusters < 50:
                np.testing.assert_array_equal(found, expected)
            # Rows that are nearly equal have distances within the rounding of float32.
            excess = within(X, found) - within(X, expected)
            assert abs(excess) <= 4 * np.finfo(dtype).eps * total


def test_ward_keeps_duplicates_together(dtype):
    distinct = np.random.default_rng(8).standard_normal((6, 5))
    X = np.repeat(distinct, 9, axis=0)[np.random.default_rng(9).permutation(54)].astype(dtype)
    for n_clusters in (2, 3, 4, 6):
        labels = native.ward(X, n_clusters)
        assert len(np.unique(labels)) == n_clusters
        assert len({(row.tobytes(), label) for row, label in zip(X, labels, strict=True)}) == 6
        expected = within(X, scipys(X, n_clusters))
        np.testing.assert_allclose(within(X, labels), expected, rtol=1e-5)
    X = np.repeat(np.eye(3), 4, axis=0)  # more clusters than distinct rows
    labels = native.ward(X, 7)
    assert sorted(set(labels.tolist())) == list(range(7))
    assert within(X, labels) < 1e-12


def test_halves_are_found_and_scored_by_their_weights(kind, dtype):
    """Two clouds and a constant: weights are about the centre, but for the constant's."""
    X = np.random.default_rng(0).normal(size=(90, 4)).astype(dtype)
    X[:30, 1] += 8.0
    X[:, 3] = 2.0
    rows = rows_of(X, kind)
    starts = ["principal", "ward", "far_rows"]
    limits = {"max_rounds": 30, "start_rows": 64, "ward_rows": 50}
    limits |= {"lloyd_steps": 3, "power_steps": 3}
    problem = HalveProblem(5, starts, (20, 70), 1e-3, 0.02, 1e-5, **limits)
    half = rows.halve(problem)
    assert len(set(half.labels[:30])) == len(set(half.labels[30:])) == 1
    assert half.labels[0] != half.labels[30]
    np.testing.assert_array_equal(half.labels, half.scores < 0.0)
    about = np.append(rows.center[:-1], 0.0)
    assert half.weights.dtype == np.float64
    np.testing.assert_allclose(half.scores, (X - about) @ half.weights, atol=1e-4)
    assert as_rows(np.ones((9, 3))).halve(replace(problem, bounds=(2, 7))) is None
