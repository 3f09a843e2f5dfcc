"""The rows that are drawn, and what they count for."""

import numpy as np
import pytest

from taxarbor import native
from taxarbor._fit_context import node_seed
from taxarbor.sources import draw_rows


def test_the_lowest_hashes_are_drawn():
    n_rows = 2_200_000  # hashed in three pieces
    hashes = native.hashes(node_seed(5, ()), np.arange(n_rows))
    rows, weights = draw_rows(n_rows, 700, seed=5)
    assert weights is None
    np.testing.assert_array_equal(rows, np.sort(np.argsort(hashes)[:700]))
    own = 0.1 + np.arange(n_rows) % 7
    keys = -np.log1p(-(hashes + 0.5) / 2.0**64) / own
    rows, weights = draw_rows(n_rows, 700, seed=5, weights=own)
    np.testing.assert_array_equal(rows, np.sort(np.argsort(keys)[:700]))
    np.testing.assert_allclose(weights.sum(), own.sum())


def test_smaller_samples_are_part_of_larger_ones():
    large, small = (draw_rows(10_000, n, seed=1)[0] for n in (500, 100))
    assert np.isin(small, large).all()


def test_seeds_draw_other_rows():
    first, second = (draw_rows(10_000, 100, seed=seed)[0] for seed in (1, 2))
    assert len(np.intersect1d(first, second)) < 20


@pytest.mark.parametrize("n", [10, 11])
def test_all_rows_where_there_are_no_more(n):
    rows, weights = draw_rows(10, n, seed=0)
    assert rows.tolist() == list(range(10))
    assert weights is None


@pytest.mark.parametrize("weight", [1, 0.3, 1e-300, 1e300])
def test_equal_weights_change_nothing(weight):
    rows, weights = draw_rows(20_000, 500, seed=3, weights=np.full(20_000, weight))
    np.testing.assert_array_equal(rows, draw_rows(20_000, 500, seed=3)[0])
    np.testing.assert_allclose(weights, weight * 40, rtol=1e-9)


def test_rows_of_weight_zero_are_never_drawn():
    own = (np.arange(5000) % 5 == 0) * 2.0
    rows, weights = draw_rows(5000, 100, seed=0, weights=own)
    assert (rows % 5 == 0).all()
    assert len(rows) == 100
    np.testing.assert_allclose(weights, 20.0)
    rows, weights = draw_rows(5000, 1000, seed=0, weights=own)
    np.testing.assert_array_equal(rows, np.arange(0, 5000, 5))
    assert (weights == 2).all()


def test_heavy_rows_are_drawn_and_means_are_unbiased():
    own = np.ones(20_000)
    own[:20] = 5000.0
    values = np.arange(20_000) % 7 + (own > 1) * 3.0
    found = []
    for seed in range(20):
        rows, weights = draw_rows(20_000, 1000, seed, own)
        assert np.isin(np.arange(20), rows).all()
        found.append(np.average(values[rows], weights=weights))
    assert abs(np.mean(found) - np.average(values, weights=own)) < 0.02


def test_tiny_weights_stay_finite():
    own = np.ones(1000)
    own[::2] = 5e-324
    _, weights = draw_rows(1000, 700, seed=0, weights=own)
    assert np.isfinite(weights).all()
