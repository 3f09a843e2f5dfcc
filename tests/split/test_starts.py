"""Where splits begin: deterministic, finite, whatever the rows."""

import numpy as np
import pytest

from taxarbor.split._alternate import STARTS

KINDS = ("dense", "sparse")


@pytest.fixture(params=STARTS, ids=lambda start: start.__name__)
def start(request):
    return request.param


def rng_of(seed=0):
    return np.random.default_rng(seed)


def test_centers(draw, rows_of, start):
    for kind in KINDS:
        for dtype in ("float32", "float64"):
            for n_children in (2, 3, 5):
                rows = rows_of(draw(n_children, dtype=dtype), kind)
                centers = start(rows, n_children, rng_of())
                assert centers.shape == (n_children, rows.n_features)
                assert centers.dtype == np.float64
                assert np.isfinite(centers).all()
                assert len(np.unique(centers, axis=0)) == n_children


def test_a_start_depends_on_the_seed_and_not_on_threads(draw, rows_of, start):
    X = draw(3, n_rows=9000, n_features=4)
    for kind in KINDS:
        one, again, two = (start(rows_of(X, kind, n), 3, rng_of()) for n in (1, 1, 2))
        np.testing.assert_array_equal(one, again)
        np.testing.assert_array_equal(one, two)
    rows = rows_of(draw(1, n_rows=400))
    found = {start(rows, 3, rng_of(seed)).tobytes() for seed in range(5)}
    assert len(found) > 1 or start is STARTS[0]  # which hardly varies


def test_duplicates_and_extreme_scales(draw, rows_of, start):
    """With more centres than distinct rows some are empty or equal, none is lost."""
    for kind in KINDS:
        for n_distinct in (1, 2, 3):
            X = np.repeat(np.arange(float(n_distinct * 4)).reshape(n_distinct, 4), 10, axis=0)
            centers = start(rows_of(X, kind), 5, rng_of())
            assert centers.shape == (5, 4)
            assert np.isfinite(centers).all()
    for scale in (1e-100, 1e100):
        centers = start(rows_of(draw(2) * scale), 2, rng_of())
        assert np.isfinite(centers).all()
        assert len(np.unique(centers, axis=0)) == 2
