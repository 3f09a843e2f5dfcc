"""Order statistics against sorting, however the numbers lie in blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor._run import Run
from taxarbor.rows._order import float_of, key_of
from taxarbor.sweep import LocalEngine, _select
from taxarbor.sweep._select import Extremes, extremes, share_of, top_of, total


def in_blocks(values, rng, most=7):
    """Return an array in parts, some of them without a number."""
    cuts = np.sort(rng.integers(0, len(values) + 1, rng.integers(0, most)))
    return np.split(values, cuts)


def numbers(kind, n, rng, dtype):
    """Return numbers of every size, with ties, zeros of both signs and infinity."""
    if kind == "equal":
        return np.full(n, 0.3, dtype=dtype)
    found = rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n)
    if kind == "near":
        found = 1.0 + 1e-6 * rng.random(n)
    found[rng.random(n) < 0.2] = found[0]
    found[rng.random(n) < 0.05] = -0.0
    found[rng.random(n) < 0.05] = 0.0
    found[rng.random(n) < 0.02] = np.inf
    return found.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["wide", "near", "equal"])
@pytest.mark.parametrize("few", [1, 40, 1 << 14])
def test_ranks_are_those_of_sorted_copies(monkeypatch, dtype, kind, few):
    monkeypatch.setattr(_select, "FEW", few)
    engine = LocalEngine(Run())
    for seed in range(4):
        rng = np.random.default_rng(seed)
        values = numbers(kind, 300, rng, dtype)
        each = rng.integers(0, 4, 300).astype(np.int32)
        for counts in (None, each):
            copies = values if counts is None else np.repeat(values, counts)
            ordered = np.sort(copies)
            state = rng.bit_generator.state
            parts = in_blocks(values, rng)
            rng.bit_generator.state = state
            own = None if counts is None else in_blocks(counts, rng)
            assert total(engine, parts, own) == len(copies)
            for k in {0, 1, len(copies) // 2, len(copies) - 1}:
                assert share_of(engine, parts, own, (k + 0.5) / len(copies)) == ordered[k]
            beyond = ordered[ordered > ordered[len(copies) // 3]]
            if len(beyond):
                bound = float(ordered[len(copies) // 3])
                assert total(engine, parts, own, bound) == len(beyond)
                half = share_of(engine, parts, own, 0.5, bound)
                assert half == beyond[len(beyond) // 2]
                low = extremes(engine, parts, own, bound)
                assert (low.low, low.high) == (beyond[0], beyond[-1])
            assert share_of(engine, parts, own, 0.9) == ordered[int(0.9 * len(copies))]
            assert share_of(engine, parts, own, 1.0) == ordered[-1]


def test_large_counts_are_exact(monkeypatch):
    monkeypatch.setattr(_select, "FEW", 1)
    values, counts = np.array([3.0, 1.0, 2.0]), np.full(3, 2**31 - 1, dtype=np.int32)
    engine = LocalEngine(Run())
    n, parts = 2**31 - 1, ([values[:1], values[1:]], [counts[:1], counts[1:]])
    for k, expected in ((n - 1, 1.0), (n, 2.0), (3 * n - 1, 3.0)):
        assert share_of(engine, *parts, (k + 0.5) / (3 * n)) == expected


def test_what_is_above_the_top_counts_for_no_more_than_asked():
    engine = LocalEngine(Run())
    values, counts = np.array([5.0, 1.0, 4.0, 4.0, 2.0]), np.array([2, 1, 1, 1, 3])
    expected = {0: 5.0, 1: 5.0, 2: 4.0, 3: 4.0, 4: 2.0, 6: 2.0, 7: 1.0, 8: 1.0}
    parts = [values[:2], values[2:]], [counts[:2], counts[2:]]
    for most, limit in expected.items():
        assert top_of(engine, *parts, most / 8) == limit
        assert top_of(engine, *parts, (most + 0.9) / 8) == limit
        assert counts[values > limit].sum() <= most


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_keys_are_ordered_as_numbers_are(values):
    array = np.array(values)
    keys = key_of(array)
    assert keys.dtype == np.uint64
    np.testing.assert_array_equal(float_of(keys), array)
    np.testing.assert_array_equal(keys[:, None] < keys, array[:, None] < array)
    np.testing.assert_array_equal(keys[:, None] == keys, array[:, None] == array)


def test_extremes_are_merged():
    none, some = Extremes.of(np.zeros(0)), Extremes.of(np.array([2.0, -1.0]))
    assert (none.low, none.high) == (np.inf, -np.inf)
    both = none.merge(some)
    assert (both.low, both.high) == (-1.0, 2.0)
    lists = Extremes(np.array([1.0, 5.0]), np.array([2.0, 6.0])).merge(
        Extremes(np.array([0.0, 7.0]), np.array([1.0, 8.0]))
    )
    assert (lists.low.tolist(), lists.high.tolist()) == ([0.0, 5.0], [2.0, 8.0])
