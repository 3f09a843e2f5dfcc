import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.assign import size_bounds


@pytest.mark.parametrize(
    ("n", "k", "low", "high", "expected"),
    [
        (30, 3, 0.9, 1.1, (9, 11)),  # 1.1 * 30 / 3 is a little more than 11
        (10, 2, 0.6, 1.4, (3, 7)),
        (7, 3, 1, 1, (2, 3)),  # widened by the least amount
        (6, 3, 1, 1, (2, 2)),
        (7, 3, 0, 3, (1, 5)),  # unconstrained, but never empty
        (7, 3, 0, math.inf, (1, 5)),
        (3, 3, 0.9, 1.1, (1, 1)),
        (5, 1, 0.5, 2, (3, 5)),
        (30_475, 2, 0.9, 1.1, (13_714, 16_761)),
    ],
)
def test_known_bounds(n, k, low, high, expected):
    assert size_bounds(n, k, low, high) == expected


@given(
    k=st.integers(1, 50),
    extra=st.integers(0, 100_000),
    low=st.floats(0, 1),
    high=st.floats(1, 60),
)
def test_bounds_can_always_be_met(k, extra, low, high):
    n = k + extra
    lower, upper = size_bounds(n, k, low, high)
    assert 1 <= lower <= upper <= n - (k - 1)
    assert k * lower <= n <= k * upper
    # No wider than asked for, but for whole numbers and the least widening.
    assert lower >= min(math.floor(low * n / k), n // k)
    assert upper <= max(math.ceil(high * n / k), math.ceil(n / k))


@given(k=st.integers(1, 30), share=st.integers(1, 1000), percent=st.integers(0, 100))
def test_decimal_shares_are_taken_as_written(k, share, percent):
    lower, upper = size_bounds(100 * share * k, k, percent / 100, 1 + percent / 100)
    assert lower == max(percent * share, 1)
    assert upper == min((100 + percent) * share, 100 * share * k - (k - 1))


@pytest.mark.parametrize(
    ("n", "k", "low", "high", "message"),
    [
        (2, 3, 0.9, 1.1, "2 rows cannot make 3"),
        (2, 0, 0.9, 1.1, "1 <= k"),
        (9, 3, 1.1, 1.2, "low must"),
        (9, 3, -0.1, 1.2, "low must"),
        (9, 3, math.nan, 1.2, "low must"),
        (9, 3, 0.9, 0.99, "high must"),
        (9, 3, 0.9, math.nan, "high must"),
    ],
)
def test_senseless_bounds_are_refused(n, k, low, high, message):
    with pytest.raises(ValueError, match=message):
        size_bounds(n, k, low, high)
