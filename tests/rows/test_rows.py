"""One contract over every kind of rows, with plain NumPy as the oracle."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from taxarbor.rows import DenseRows, PairProblem, SparseRows, as_rows

DTYPES = ("float32", "float64")
KINDS = ("dense", "sparse")


def draw(n_rows, n_features, dtype, seed=0):
    """Return data with a good share of zeros, off centre, of mixed scales."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.5, 1.0, (n_rows, n_features)) * rng.uniform(0.3, 3.0, n_features)
    X[rng.random(X.shape) < 0.5] = 0.0
    return X.astype(dtype)


def rows_of(X, kind, n_threads=1):
    return as_rows(sparse.csr_array(X) if kind == "sparse" else X, n_threads=n_threads)


def plain(X, center):
    return X.astype(np.float64) - center


@pytest.fixture(params=[1, 2], ids=lambda n: f"threads{n}")
def n_threads(request):
    return request.param


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@cache
def make_sample(part, kind, dtype, n_threads):
    X = draw(5000, 19, dtype)
    rows = rows_of(X, kind, n_threads)
    rng = np.random.default_rng(1)
    for _ in range(part.count("part")):
        positions = rng.permutation(len(X))[: 2 * len(X) // 3]
        X, rows = X[positions], rows.take(positions)
    return rows, plain(X, rows.center), 3e-5 if dtype == "float32" else 1e-12


@pytest.fixture(params=["whole", "part", "part-of-part"])
def sample(request, kind, dtype, n_threads):
    """Return rows, the same in NumPy about the same centre, and a tolerance."""
    return make_sample(request.param, kind, dtype, n_threads)


def close(actual, expected, tolerance):
    expected = np.asarray(expected, dtype=np.float64)
    scale = np.abs(expected).max(initial=1e-300)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale)


def test_kind(kind, dtype):
    rows = rows_of(draw(10, 3, dtype), kind)
    assert type(rows) is {"dense": DenseRows, "sparse": SparseRows}[kind]
    assert rows.dtype == dtype


def test_shape_and_center(sample):
    rows, Z, tolerance = sample
    assert (rows.n_rows, rows.n_features) == Z.shape
    assert rows.center.dtype == np.float64
    close(rows.center, rows.center - Z.mean(axis=0), tolerance)
    np.testing.assert_array_equal(rows.center, rows.center.astype(rows.dtype))


@pytest.mark.parametrize("n_models", [1, 2, 3, 4, 7])
def test_scores(sample, n_models):
    rows, Z, tolerance = sample
    W = np.random.default_rng(2).normal(size=(n_models, rows.n_features))
    W = W.astype(rows.dtype).astype(np.float64)
    S = rows.scores(W)
    assert S.dtype == rows.dtype
    assert S.shape == (rows.n_rows, n_models)
    close(S, Z @ W.T, tolerance)


@pytest.mark.parametrize("n_models", [1, 3])
def test_adjoint(sample, n_models):
    rows, Z, tolerance = sample
    rng = np.random.default_rng(3)
    R = rng.normal(size=(rows.n_rows, n_models)).astype(rows.dtype)
    R[rng.random(R.shape) < 0.4] = 0.0
    A = rows.adjoint(R)
    assert A.dtype == np.float64
    close(A, R.T.astype(np.float64) @ Z, tolerance)


@pytest.mark.parametrize("features", [[0], [1, 5, 6, 18], list(range(19))])
def test_gram(sample, features):
    rows, Z, tolerance = sample
    rng = np.random.default_rng(4)
    positions = np.sort(rng.choice(rows.n_rows, rows.n_rows // 2, replace=False))
    G = rows.gram(positions, np.array(features))
    chosen = Z[positions][:, features]
    assert G.dtype == np.float64
    np.testing.assert_array_equal(G, G.T)
    close(G, chosen.T @ chosen, tolerance)


def test_gram_of_nothing(sample):
    rows, _, _ = sample
    nothing = np.empty(0, dtype=np.intp)
    np.testing.assert_array_equal(rows.gram(nothing, np.array([2, 7])), np.zeros((2, 2)))
    assert rows.gram(np.array([1, 3]), nothing).shape == (0, 0)


@pytest.mark.parametrize("n_centers", [2, 3, 6])
def test_one_step_of_lloyd(sample, n_centers):
    rows, Z, tolerance = sample
    start = np.random.default_rng(5).normal(size=(n_centers, rows.n_features))
    labels, centers = rows.lloyd(start, 1)
    distances = ((Z[:, None, :] - start) ** 2).sum(axis=2)
    own = np.take_along_axis(distances, labels[:, None].astype(np.intp), axis=1)[:, 0]
    # The nearest one, but for rows that lie half-way within the precision of the data.
    assert (own - distances.min(axis=1)).max() <= 10 * tolerance * distances.max()
    assert labels.dtype == np.int32
    close(centers, [Z[labels == k].mean(axis=0) for k in range(n_centers)], tolerance)


def test_steps_of_lloyd_follow_each_other(sample):
    rows, _, _ = sample
    centers = np.random.default_rng(5).normal(size=(4, rows.n_features))
    together = rows.lloyd(centers, 3)
    for _ in range(3):
        labels, centers = rows.lloyd(centers, 1)
    np.testing.assert_array_equal(together[0], labels)
    np.testing.assert_array_equal(together[1], centers)


def test_a_center_without_rows_stays(kind, dtype):
    rows = rows_of(draw(80, 5, dtype), kind)
    start = np.array([np.zeros(5), np.full(5, 1e3)])
    labels, centers = rows.lloyd(start, 2)
    assert not labels.any()
    np.testing.assert_array_equal(centers[1], start[1])


def test_principal_direction(sample):
    rows, Z, tolerance = sample
    start = np.random.default_rng(11).normal(size=rows.n_features)
    expected = start / np.linalg.norm(start)
    for _ in range(3):
        expected = Z.T @ (Z @ expected)
        expected = expected / np.sqrt((expected * expected).sum())
    close(rows.principal(start, 3), expected, tolerance)
    close(rows.principal(start, 0), start / np.linalg.norm(start), 1e-15)
    np.testing.assert_array_equal(rows.principal(np.zeros(rows.n_features), 2), 0.0)


def test_principal_direction_has_the_greatest_variance(kind, dtype):
    X = draw(300, 4, dtype)
    X[:, 2] *= 5
    rows = rows_of(X, kind)
    found = rows.principal(np.ones(4), 60)
    largest = np.linalg.eigh(np.cov(X.T.astype(float)))[1][:, -1]
    np.testing.assert_allclose(abs(found @ largest), 1.0, rtol=1e-6)


def test_norms(sample):
    rows, Z, tolerance = sample
    norms = rows.norms()
    assert norms.dtype == np.float64
    assert norms.min() >= 0.0
    close(norms, (Z * Z).sum(axis=1), tolerance)


def test_spread(sample):
    rows, Z, tolerance = sample
    close(rows.spread(), np.abs(Z).mean(axis=0), tolerance)


def test_take_about_a_given_center(kind, dtype):
    X = draw(60, 7, dtype)
    rows = rows_of(X, kind)
    positions, center = np.array([5, 3, 40, 41]), rows.center
    some = rows.take(positions, center)
    Z = plain(X[positions], center)
    np.testing.assert_array_equal(some.center, center)
    np.testing.assert_array_equal(some.scores(np.eye(7)), rows.scores(np.eye(7))[positions])
    close(some.spread(), np.abs(Z).mean(axis=0), 1e-5)
    again = some.take(np.array([2, 0]), center)
    np.testing.assert_array_equal(
        again.scores(np.eye(7)), rows.scores(np.eye(7))[positions[[2, 0]]]
    )


def test_take_forgets_the_center_of_the_whole(kind, dtype):
    X = draw(60, 7, dtype)
    far = np.zeros(7)
    some = rows_of(X, kind).take(np.arange(50), far).take(np.arange(10, 20))
    close(some.center, X[10:20].mean(axis=0, dtype=np.longdouble), 1e-6)


@pytest.mark.parametrize("n_rows", [5, 7, 99, 3000])
def test_equal_rows_hardly_spread(kind, dtype, n_rows):
    """Taken about their own mean once more, whatever company they came from."""
    X = draw(2 * n_rows, 3, dtype)
    X[::2] = np.array([0.1, 0.0, -1e6 / 3])
    rows = rows_of(X, kind).take(np.arange(n_rows) * 2).take(np.arange(n_rows))
    noise = 4 * np.finfo(dtype).eps * np.abs(X).max(axis=0)
    assert (np.abs(rows.center - X[0]) <= noise).all()
    assert (rows.spread() <= noise).all()


@pytest.mark.parametrize("n_features", [1, 3, 7, 8, 16, 37])
@pytest.mark.parametrize("n_models", [1, 2, 3, 5])
def test_a_score_depends_on_its_row_alone(kind, dtype, n_features, n_models):
    rows = rows_of(draw(90, n_features, dtype), kind)
    W = np.random.default_rng(6).normal(size=(n_models, n_features))
    together = rows.scores(W)
    for i in (0, 1, 44, 89):
        alone = rows.take(np.array([i]), rows.center).scores(W)
        assert alone.tobytes() == together[i].tobytes()
    backwards = rows.take(np.arange(90)[::-1].copy(), rows.center).scores(W)
    np.testing.assert_array_equal(backwards[::-1], together)


def everything(rows):
    """Return the bytes of all that rows can say."""
    rng = np.random.default_rng(7)
    n, p = rows.n_rows, rows.n_features
    W = rng.normal(size=(3, p))
    R = rng.normal(size=(n, 2)).astype(rows.dtype)
    problem = PairProblem(
        start=np.zeros(p),
        labels=(rows.scores(W[:1])[:, 0] < 0).astype(np.int8),
        hold=0,
        bounds=(n // 4, 3 * n // 4),
        l1=np.full(p, 1e-3),
        ridge=0.0,
        tol=1e-8,
        violation=1e-8,
        max_alternations=20,
        max_working=100,
    )
    pair = rows.solve_pair(problem)
    arrays = [rows.center, rows.scores(W), rows.adjoint(R), rows.norms(), rows.spread()]
    arrays += [rows.gram(np.flatnonzero(R[:, 0] > 0), np.arange(p)), *rows.lloyd(W, 2)]
    arrays += [
        rows.principal(W[0], 2),
        pair.weights,
        pair.labels,
        pair.scores,
        np.array(pair.trace),
    ]
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
def test_nothing_depends_on_the_number_of_threads(kind, dtype, part):
    X = draw(45_000, 3, dtype)
    positions = np.random.default_rng(8).permutation(len(X))[:40_000]
    said = []
    for n_threads in (1, 2, 3):
        rows = rows_of(X, kind, n_threads)
        said.append(everything(rows.take(positions) if part else rows))
    assert said[0] == said[1] == said[2]


def test_large_offsets_cost_no_accuracy(n_threads):
    X = draw(5000, 6, "float64") + 1e6
    rows = DenseRows.of(X, n_threads)
    exact = X.astype(np.longdouble).mean(axis=0)
    np.testing.assert_allclose(rows.center, exact.astype(np.float64), rtol=2.3e-16)
    Z = X.astype(np.longdouble) - rows.center
    rng = np.random.default_rng(9)
    W, R = rng.normal(size=(2, 6)), rng.normal(size=(5000, 2))
    close(rows.scores(W), Z @ W.T, 1e-13)
    close(rows.adjoint(R), R.T @ Z, 1e-13)
    close(rows.gram(np.arange(5000), np.arange(6)), Z.T @ Z, 1e-13)
    close(rows.norms(), (Z * Z).sum(axis=1), 1e-13)
    close(rows.spread(), np.abs(Z).mean(axis=0), 1e-13)
    child = rows.take(np.arange(100))
    np.testing.assert_allclose(
        child.center, X[:100].astype(np.longdouble).mean(axis=0).astype(float), rtol=2.3e-16
    )


def test_rows_of_no_residual_are_not_touched(kind, dtype):
    X = draw(50, 4, dtype)
    R = np.ones((50, 2), dtype=dtype)
    R[::3] = 0.0
    expected = rows_of(X, kind).take(np.arange(50), np.zeros(4)).adjoint(R)
    X[::3] = np.nan
    spoilt = rows_of(X, kind).take(np.arange(50), np.zeros(4)).adjoint(R)
    np.testing.assert_array_equal(spoilt, expected)


def test_dense_and_sparse_solve_a_pair_alike(dtype):
    X = draw(400, 6, dtype)
    labels = (X[:, 0] > np.median(X[:, 0])).astype(np.int8)
    found = []
    for kind in KINDS:
        problem = PairProblem(
            np.zeros(6), labels, 0, (150, 250), np.full(6, 0.02), 0.0, 1e-9, 1e-9, 100, 100
        )
        found.append(rows_of(X, kind).solve_pair(problem))
    dense, sparse_ = found
    np.testing.assert_array_equal(dense.labels, sparse_.labels)
    np.testing.assert_allclose(dense.trace[-1], sparse_.trace[-1], rtol=1e-5)
    assert dense.scores.shape == sparse_.scores.shape == (400, 1)
