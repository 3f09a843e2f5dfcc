import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.tables._weights import COPIES, EXACT, repeats_of


@given(st.lists(st.just(0.0) | st.floats(1e-6, 1e6), min_size=2, max_size=50).filter(any))
def test_each_row_is_within_one_of_its_due(values):
    weights = np.array(values)
    repeats = repeats_of(weights)
    assert (repeats[weights == 0] == 0).all()
    due = weights * (repeats.sum() / weights.sum())
    assert np.abs(repeats - due).max() < 1 + 1e-6


def test_integers_are_exact_until_they_are_many():
    few = np.array([3.0, 0.0, EXACT[1] - 4, 1.0])
    np.testing.assert_array_equal(repeats_of(few), few)
    assert repeats_of(few + few[::-1]).sum() == 4 * COPIES[0]
    large = np.random.default_rng(0).uniform(size=20_000)
    assert repeats_of(large).sum() == 20_000


def test_rows_in_turns_are_drawn_alike():
    weights = np.tile([0.5, 0.5, 1.9], 8000)
    repeats = repeats_of(weights).reshape(-1, 3).mean(axis=0)
    np.testing.assert_allclose(repeats, weights[:3] / weights.mean(), rtol=0.05)
