"""A few coordinates in which little of the data is lost."""

import numpy as np

from taxarbor.refine import Coordinates
from taxarbor.refine._coordinates import LIFT, MAX_GRAM, N_COORDINATES, SAMPLE

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


def test_few_features_are_their_own_coordinates(coordinates_of):
    for n_features in (1, 5, N_COORDINATES - 1, N_COORDINATES):
        for dtype, found, Z, spread in kinds_of(coordinates_of, 90, n_features):
            close = 1e-12 if dtype == "float64" else 1e-5
            directions = np.eye(n_features) / spread
            np.testing.assert_allclose(found.directions, directions, rtol=close)
            np.testing.assert_allclose(found.values[:, :-1], Z / spread, atol=close)
            assert (found.values[:, -1] == LIFT).all()
            assert found.values.dtype == dtype


def test_many_features_keep_the_greatest_variance(coordinates_of):
    for n_features in (N_COORDINATES + 1, 200, MAX_GRAM, MAX_GRAM + 1, 900):
        for _, found, Z, spread in kinds_of(coordinates_of, 150, n_features):
            assert found.values.shape == (150, N_COORDINATES + 1)
            assert found.directions.shape == (N_COORDINATES, n_features)
            gram = found.directions @ found.directions.T * spread**2
            np.testing.assert_allclose(gram, np.eye(N_COORDINATES), atol=1e-5)
            best = np.linalg.svd(Z, compute_uv=False)[:N_COORDINATES] ** 2
            kept = (found.values[:, :-1].astype(np.float64) ** 2).sum(axis=0) * spread**2
            np.testing.assert_allclose(kept.sum(), best.sum(), rtol=1e-5)
            np.testing.assert_allclose(kept[:5], best[:5], rtol=1e-3)
            assert (np.diff(kept) <= 1e-4 * kept[0]).all()  # the greatest first


def test_coordinates_are_projections(coordinates_of, data):
    X = data["middle"]
    found = coordinates_of(X)
    expected = (X - X.mean(axis=0)) @ found.directions.T
    np.testing.assert_allclose(found.values[:, :-1], expected, atol=1e-10)
    np.testing.assert_allclose(found.center, X.mean(axis=0), atol=1e-12)


def test_a_rule_on_coordinates_is_one_on_features(coordinates_of, data):
    for X in (data["cloud"], data["middle"], data["wide"]):
        for kind in KINDS:
            found = coordinates_of(X, kind)
            rng = np.random.default_rng(1)
            weights = rng.normal(size=(4, found.values.shape[1] - 1))
            rule = found.rule(weights, offsets := rng.normal(size=4))
            there = found.values[:, :-1] @ weights.T + offsets
            here = (X - rule.center) @ rule.weights.T + rule.offsets
            np.testing.assert_allclose(here, there, atol=1e-9)


def test_the_two_kinds_of_rows_see_the_same(coordinates_of, data):
    dense, csr = (coordinates_of(data["wide"], kind).values for kind in KINDS)
    np.testing.assert_allclose(as_seen(dense), as_seen(csr), atol=1e-8)


def as_seen(values):
    """Turn each direction so that its first coordinate is positive: either way is one."""
    return values * np.where(values[0] < 0.0, -1.0, 1.0)


def test_neither_scale_nor_shift_is_seen(coordinates_of, data):
    for X in (data["cloud"], data["wide"]):
        one = coordinates_of(X)
        for factor in (1e-6, 1000.0):
            other = coordinates_of(X * factor + factor)
            np.testing.assert_allclose(as_seen(other.values), as_seen(one.values), atol=1e-8)


def test_the_rows_are_lifted(coordinates_of, data):
    found = coordinates_of(data["cloud"])
    assert found.rows.center[-1] == LIFT
    np.testing.assert_allclose(found.rows.center[:-1], 0.0, atol=1e-12)
    about = found.about_origin
    assert not about.center.any()
    last = np.zeros((1, found.values.shape[1]))
    last[0, -1] = 1.0
    assert (about.scores(last) == LIFT).all()


def test_of_many_rows_a_sample_gives_the_directions(rows_of):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((SAMPLE + 500, 70)) * np.linspace(5.0, 0.1, 70)
    one, same, other = (Coordinates.of(rows_of(X), seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.directions, same.directions)
    assert not np.allclose(one.directions, other.directions)
    assert len(one.values) == len(X)
    kept = (one.values[:, :-1] ** 2).sum(axis=1).mean()
    assert 0.998 < kept <= 1.0 + 1e-9


def test_wide_rows_may_be_few_or_equal(coordinates_of):
    for kind in KINDS:
        for n_rows in (2, 3, 40):
            X = np.random.default_rng(4).standard_normal((n_rows, 700))
            found = coordinates_of(X, kind)
            assert np.isfinite(found.values).all()
            kept = (found.values[:, :-1] ** 2).sum(axis=1).mean()
            np.testing.assert_allclose(kept, 1.0, rtol=1e-6)
        for n_features in (3, 100, 700):
            equal = coordinates_of(np.full((9, n_features), 0.25), kind)
            assert not equal.values[:, :-1].any()
