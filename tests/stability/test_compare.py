"""A gap is where two peaks are, whatever the shape of a single one."""

import numpy as np
import pytest

from taxarbor.stability._compare import find_separated, has_gap

SHAPES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "flat": lambda rng, n: rng.random(n),
    "heavy": lambda rng, n: rng.standard_t(1.5, n),
    "skewed": lambda rng, n: rng.exponential(size=n),
    "one value": lambda rng, n: np.zeros(n),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_one_peak_has_no_gap(shape):
    """Wherever it is cut; the level of the test is 0.05."""
    results = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        seen, unseen = SHAPES[shape](rng, 100), SHAPES[shape](rng, 100)
        cut = np.quantile(seen, rng.uniform(0.1, 0.9))
        left, right = seen[seen <= cut], seen[seen > cut]
        if len(left) and len(right):
            results.append(has_gap(left, right, unseen))
    assert sum(results) <= 0.1 * 300


def test_two_peaks_have_one():
    n_gaps = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        left, right = rng.standard_normal(40), 6.0 + rng.standard_normal(15)
        unseen = np.concatenate([rng.standard_normal(40), 6.0 + rng.standard_normal(15)])
        n_gaps += has_gap(left, right, unseen)
        assert not has_gap(right, left, unseen)  # they must be laid out from left to right
        assert not has_gap(left, right, unseen[:40])  # no unseen row is there
    assert n_gaps >= 18


def test_a_cut_into_one_cluster_separates_nothing():
    Z, labels, is_seen = np.arange(8.0)[:, None], np.zeros(8, dtype=int), np.arange(8) < 4
    assert not find_separated(Z, labels, is_seen, np.ones(1, dtype=bool)).any()
