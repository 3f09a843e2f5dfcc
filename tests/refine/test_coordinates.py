"""A few coordinates in which little of the data is lost."""

import numpy as np
import pytest

from taxarbor.refine import Coordinates
from taxarbor.refine._coordinates import (
    BITS,
    LIFT,
    MAX_GRAM,
    N_COORDINATES,
    SAMPLE,
    WIDE,
    _gram,
    _scatter,
)

KINDS = ["dense", "csr"]


def with_decay(n_rows, n_features, seed=0):
    """Return rows whose variance falls off over random directions."""
    rng = np.random.default_rng(seed)
    size = min(n_rows, n_features)
    left = np.linalg.qr(rng.standard_normal((n_rows, size)))[0]
    right = np.linalg.qr(rng.standard_normal((n_features, size)))[0]
    return (left * 0.9 ** np.arange(size)) @ right.T * 50.0 + rng.uniform(-5, 5, n_features)


def kinds_of(coordinates_of, n_rows, n_features):
    """Yield, for each kind of data, its dtype, its coordinates, itself and its spread."""
    for dtype in ("float32", "float64"):
        X = with_decay(n_rows, n_features).astype(dtype)
        Z = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
        for kind in KINDS:
            yield dtype, coordinates_of(X, kind), Z, np.sqrt((Z**2).sum(axis=1).mean())


def test_few_features_are_their_own_coordinates(coordinates_of, values_of):
    for n_features in (1, 5, N_COORDINATES - 1, N_COORDINATES):
        for dtype, found, Z, spread in kinds_of(coordinates_of, 90, n_features):
            close = 1e-12 if dtype == "float64" else 1e-5
            directions = np.eye(n_features) / spread
            np.testing.assert_allclose(found.directions, directions, rtol=close)
            np.testing.assert_allclose(found.array, Z / spread, atol=found.unit + close)
            values = values_of(found.values, found)
            assert values.shape == (90, n_features + 1)
            assert (values[:, -1] == LIFT).all()
            assert values.dtype == np.float32


def test_many_features_keep_the_greatest_variance(coordinates_of):
    for n_features in (N_COORDINATES + 1, 200, MAX_GRAM, MAX_GRAM + 1, 900):
        for _, found, Z, spread in kinds_of(coordinates_of, 150, n_features):
            assert found.array.shape == (150, N_COORDINATES)
            assert found.directions.shape == (N_COORDINATES, n_features)
            gram = found.directions @ found.directions.T * spread**2
            np.testing.assert_allclose(gram, np.eye(N_COORDINATES), atol=1e-5)
            best = np.linalg.svd(Z, compute_uv=False)[:N_COORDINATES] ** 2
            kept = (found.array.astype(np.float64) ** 2).sum(axis=0) * spread**2
            np.testing.assert_allclose(kept.sum(), best.sum(), rtol=1e-5)
            np.testing.assert_allclose(kept[:5], best[:5], rtol=1e-3)
            assert (np.diff(kept) <= 1e-4 * kept[0]).all()  # the greatest first


def test_coordinates_are_projections(coordinates_of, data):
    X = data["middle"]
    found = coordinates_of(X)
    expected = (X - X.mean(axis=0)) @ found.directions.T
    np.testing.assert_allclose(found.array, expected, atol=0.501 * found.unit)
    np.testing.assert_allclose(found.center, X.mean(axis=0), atol=1e-12)


def test_coordinates_are_whole_multiples_of_a_unit(coordinates_of, data, values_of):
    """And so small ones that their sums, and those of their products, are exact."""
    for X in (*data.values(), with_decay(500, 20) * np.logspace(0, 4, 500)[:, None]):
        found = coordinates_of(X)
        values = values_of(found.values, found).astype(np.float64)
        assert np.log2(found.unit) == round(np.log2(found.unit))
        whole = values / found.unit
        np.testing.assert_array_equal(whole, np.rint(whole))
        assert np.abs(whole).max() <= 2**BITS
        Z = whole[:, :-1].astype(np.int64).astype(object)  # Python's own, of any length
        scatter = (Z.T @ Z).astype(np.float64) * (found.unit**2 / len(X))
        np.testing.assert_allclose(found.scatter, scatter, rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_repeated_rows(coordinates_of, values_of, kind):
    rng = np.random.default_rng(0)
    for n_rows, n_features in ((90, 5), (3000, 80), (200, 600)):
        X = with_decay(n_rows, n_features).astype(np.float32)
        counts = rng.integers(0, 5, n_rows)
        index = np.repeat(np.arange(n_rows), counts)
        one, other = coordinates_of(X, kind, counts=counts), coordinates_of(X[index], kind)
        for name in ("directions", "center", "scatter"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert (one.copies.n, one.unit) == (other.copies.n, other.unit)
        values = values_of(one.values, one)
        np.testing.assert_array_equal(values[index], values_of(other.values, other))
        assert not values[counts == 0].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_depends_on_how_rows_lie_in_blocks(coordinates_of, kind, dtype):
    rng = np.random.default_rng(0)
    for n_rows, n_features in ((SAMPLE + 300, 6), (2000, 80), (400, 600)):
        X = with_decay(n_rows, n_features).astype(dtype)
        one = coordinates_of(X, kind)
        for n_blocks in (2, 9, 50):
            edges = np.unique([0, *rng.choice(n_rows, n_blocks), n_rows])
            other = coordinates_of(X, kind, sizes=np.diff(edges))
            for name in ("directions", "center", "scatter", "array"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert one.unit == other.unit


def test_some_of_the_rows(coordinates_of, data):
    found = coordinates_of(data["middle"], sizes=[50, 100, 50])
    some = np.arange(3, 200, 7)
    few = found.take(some)
    np.testing.assert_array_equal(few.array, found.array[some])
    Z = few.array.astype(np.float64)
    np.testing.assert_allclose(few.scatter, Z.T @ Z / len(some), rtol=1e-9, atol=1e-12)
    assert (few.copies.n, few.unit) == (len(some), found.unit)


def test_a_rule_on_coordinates_is_one_on_features(coordinates_of, data):
    for X in (data["cloud"], data["middle"], data["wide"]):
        for kind in KINDS:
            found = coordinates_of(X, kind)
            rng = np.random.default_rng(1)
            weights = rng.normal(size=(4, found.array.shape[1]))
            rule = found.rule(weights, offsets := rng.normal(size=4))
            there = found.array @ weights.T + offsets
            here = (X - rule.center) @ rule.weights.T + rule.offsets
            np.testing.assert_allclose(here, there, atol=40 * found.unit)
            exact = (X - rule.center) @ found.directions.T @ weights.T + offsets
            np.testing.assert_allclose(here, exact, atol=1e-9)


def test_the_two_kinds_of_rows_see_the_same(coordinates_of, data):
    dense, csr = (coordinates_of(data["wide"], kind) for kind in KINDS)
    np.testing.assert_allclose(as_seen(dense.array), as_seen(csr.array), atol=2.0 * dense.unit)


def as_seen(values):
    """Turn each direction so that its first coordinate is positive: either way is one."""
    return values * np.where(values[0] < 0.0, -1.0, 1.0)


def test_neither_scale_nor_shift_is_seen(coordinates_of, data):
    for X in (data["cloud"], data["wide"]):
        one = coordinates_of(X)
        for factor in (1e-6, 1000.0):
            other = coordinates_of(X * factor + factor)
            close = 2.0 * one.unit
            np.testing.assert_allclose(as_seen(other.array), as_seen(one.array), atol=close)


def test_the_mean_is_the_origin(coordinates_of, data):
    for X in data.values():
        found = coordinates_of(X)
        mean = found.array.mean(axis=0, dtype=np.float64)
        np.testing.assert_allclose(mean, 0.0, atol=found.unit)


def test_of_many_rows_a_sample_gives_the_directions():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((SAMPLE + 500, 70)) * np.linspace(5.0, 0.1, 70)
    one, same, other = (Coordinates.in_memory(X, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.directions, same.directions)
    assert not np.allclose(one.directions, other.directions)
    assert len(one.array) == len(X)
    kept = (one.array.astype(np.float64) ** 2).sum(axis=1).mean()
    assert 0.99 < kept <= 1.01  # the spread is that of the sample


def test_wide_rows_may_be_few_or_equal(coordinates_of):
    for kind in KINDS:
        for n_rows in (2, 3, 40):
            X = np.random.default_rng(4).standard_normal((n_rows, 700))
            found = coordinates_of(X, kind)
            assert np.isfinite(found.array).all()
            kept = (found.array.astype(np.float64) ** 2).sum(axis=1).mean()
            np.testing.assert_allclose(kept, 1.0, rtol=1e-5)
        for n_features in (3, 100, 700):
            equal = coordinates_of(np.full((9, n_features), 0.25), kind)
            assert not equal.array.any()


def test_rows_that_count_very_often_are_added_up_exactly():
    unit = 2.0**-10
    Z = unit * np.array([[1234567.0, -3.0], [4194304.0, 5.0], [-17.0, 2.0]])
    for counts in ([2**30, 2**31 - 1, 3], [1, 0, 8], [2**23, 2**24 + 1, 2**29]):
        gram = _gram(Z.astype(np.float32), np.array(counts, dtype=np.int32), unit)
        whole = [[int(z / unit) for z in row] for row in Z]
        for i, j in np.ndindex(2, 2):
            pairs = zip(whole, counts, strict=True)
            assert (int(gram[0, i, j]) << WIDE) + int(gram[1, i, j]) == sum(
                n * row[i] * row[j] for row, n in pairs
            )
            assert 0 <= gram[1, i, j] < 2**WIDE


def test_the_scatter_does_not_depend_on_how_many_blocks_there_were():
    rng = np.random.default_rng(0)
    gram = rng.integers(0, 2**40, (2, 3, 3))
    gram[0] += 2**30
    n_blocks = 2**20  # each of which left something in the low part
    split = gram + np.array([-n_blocks, n_blocks * 2**40])[:, None, None]
    assert (_scatter(split, 0.25, 7) == _scatter(gram, 0.25, 7)).all()
