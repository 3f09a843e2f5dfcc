"""A few coordinates in which little of the data is lost."""

import numpy as np
import pytest
from scipy import sparse

from taxarbor.clusters import count_coordinates, draw_positions, find_coordinates
from taxarbor.clusters._coordinates import (
    DIRECTION_ROWS,
    LIFT,
    MAX_COORDINATES,
    MAX_GRAM,
    N_COORDINATES,
)

KINDS = [np.asarray, sparse.csr_array]


def with_decay(n_rows, n_features, seed=0):
    """Return rows whose variance falls off over random directions."""
    rng = np.random.default_rng(seed)
    size = min(n_rows, n_features)
    left = np.linalg.qr(rng.standard_normal((n_rows, size)))[0]
    right = np.linalg.qr(rng.standard_normal((n_features, size)))[0]
    return (left * 0.9 ** np.arange(size)) @ right.T * 50.0 + rng.uniform(-5, 5, n_features)


def kinds_of(n_rows, n_features):
    """Yield, for each kind of data, its dtype, its coordinates, itself and its spread."""
    for dtype in ("float32", "float64"):
        X = with_decay(n_rows, n_features).astype(dtype)
        Z = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
        for kind in KINDS:
            yield dtype, find_coordinates(kind(X), 0), Z, np.sqrt((Z**2).sum(axis=1).mean())


def plain(coordinates):
    """Return the coordinates without the constant one, in float64."""
    return coordinates.values[:, :-1].astype(np.float64)


def test_few_features_are_their_own_coordinates():
    for n_features in (1, 5, N_COORDINATES - 1, N_COORDINATES):
        for dtype, found, Z, spread in kinds_of(90, n_features):
            close = 1e-12 if dtype == "float64" else 1e-5
            directions = np.eye(n_features) / spread
            np.testing.assert_allclose(found.directions, directions, rtol=close)
            np.testing.assert_allclose(plain(found), Z / spread, atol=found.unit + close)
            assert found.values.shape == (90, n_features + 1)
            assert (found.values[:, -1] == LIFT).all()
            assert found.values.dtype == np.float32


def test_many_features_keep_the_greatest_variance():
    for n_features in (N_COORDINATES + 1, 200, MAX_GRAM, MAX_GRAM + 1, 900):
        for _, found, Z, spread in kinds_of(150, n_features):
            assert plain(found).shape == (150, N_COORDINATES)
            assert found.directions.shape == (N_COORDINATES, n_features)
            gram = found.directions @ found.directions.T * spread**2
            np.testing.assert_allclose(gram, np.eye(N_COORDINATES), atol=1e-5)
            best = np.linalg.svd(Z, compute_uv=False)[:N_COORDINATES] ** 2
            kept = (plain(found) ** 2).sum(axis=0) * spread**2
            np.testing.assert_allclose(kept.sum(), best.sum(), rtol=1e-5)
            np.testing.assert_allclose(kept[:5], best[:5], rtol=1e-3)
            assert (np.diff(kept) <= 1e-4 * kept[0]).all()  # the greatest first


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_depends_on_threads(kind, dtype):
    for n_rows, n_features in ((DIRECTION_ROWS + 300, 6), (2000, 80), (400, 600)):
        X = kind(with_decay(n_rows, n_features).astype(dtype))
        one, other = (find_coordinates(X, 0, n_threads=n) for n in (1, 3))
        for name in ("values", "directions", "center", "scatter", "unit"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_some_of_the_rows(data):
    found = find_coordinates(data["middle"], 0)
    some = np.arange(3, 200, 7)
    few = found.take(some)
    np.testing.assert_array_equal(few.values, found.values[some])
    Z = plain(few)
    np.testing.assert_allclose(few.scatter, Z.T @ Z / len(some), rtol=1e-9, atol=1e-12)
    assert (few.n_rows, few.unit) == (len(some), found.unit)


def test_of_many_clusters_more_coordinates_are_kept():
    numbers = [count_coordinates(n) for n in range(1, 2000)]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (N_COORDINATES, MAX_COORDINATES)
    assert count_coordinates(None) == N_COORDINATES
    X = with_decay(300, 200)
    for size in (5, N_COORDINATES, 127, 255):
        found = find_coordinates(X, 0, size=size)
        assert found.directions.shape == (min(size, 200), 200)
        best = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:size] ** 2
        kept = plain(found) / np.linalg.norm(found.directions, axis=1).mean()
        np.testing.assert_allclose((kept**2).sum(), best.sum(), rtol=1e-5)


def test_of_many_rows_a_sample_gives_the_directions():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((DIRECTION_ROWS + 500, 70)) * np.linspace(5.0, 0.1, 70)
    one, same, other = (find_coordinates(X, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.directions, same.directions)
    assert not np.allclose(one.directions, other.directions)
    assert one.n_rows == len(X)
    assert 0.99 < (plain(one) ** 2).sum(axis=1).mean() <= 1.01


def test_wide_rows_may_be_few_or_equal():
    for kind in KINDS:
        for n_rows in (2, 3, 40):
            X = np.random.default_rng(4).standard_normal((n_rows, 700))
            kept = (plain(find_coordinates(kind(X), 0)) ** 2).sum(axis=1).mean()
            np.testing.assert_allclose(kept, 1.0, rtol=1e-5)
        for n_features in (3, 100, 700):
            assert not plain(find_coordinates(kind(np.full((9, n_features), 0.25)), 0)).any()


def test_rows_are_drawn_by_hash():
    for n, size in ((1, 1), (50, 7), (50, 50), (50, 99), (30_000, 1000)):
        drawn = draw_positions(n, size, 5)
        assert len(set(drawn.tolist())) == len(drawn) == min(n, size)
        np.testing.assert_array_equal(drawn, draw_positions(n, n, 5)[:size])  # by hash
    assert draw_positions(50, 7, 5).tolist() != draw_positions(50, 7, 6).tolist()
    assert np.mean(drawn) == pytest.approx(15_000, rel=0.1)
