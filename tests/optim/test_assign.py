"""Exact balanced assignment, against min-cost flow and brute force; bounds that can be met."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from taxarbor.optim import assign_balanced, assign_two, size_bounds


def total(costs, labels):
    """Return the exact total of integer costs."""
    return int(costs[np.arange(len(labels)), labels].astype(np.int64).sum())


def check_counts(labels, k, lower, upper):
    counts = np.bincount(labels, minlength=k)
    assert len(counts) == k
    assert lower <= counts.min()
    assert counts.max() <= upper


def least_total_by_ortools(costs, lower, upper):
    """Return the optimum; a lower bound becomes a demand of the cluster itself."""
    n, k = costs.shape
    rows, clusters = np.arange(n), n + np.arange(k)
    solver = SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([np.repeat(rows, k), clusters]),
        np.concatenate([np.tile(clusters, n), np.full(k, n + k)]),
        np.concatenate([np.ones(n * k, dtype=int), np.full(k, upper - lower)]),
        np.concatenate([costs.ravel().astype(np.int64), np.zeros(k, dtype=np.int64)]),
    )
    supplies = np.concatenate([np.ones(n, dtype=int), np.full(k, -lower), [k * lower - n]])
    solver.set_nodes_supplies(np.arange(n + k + 1), supplies)
    assert solver.solve() == solver.OPTIMAL
    return solver.optimal_cost()


def uniform(rng, n, k):
    return rng.integers(0, 10**6, (n, k))


def skewed(rng, n, k):
    return uniform(rng, n, k) + 300_000 * np.arange(k)


def huge(rng, n, k):
    """Most clusters are all but forbidden: prices are huge, differences small."""
    return rng.integers(0, 50, (n, k)) + 10**11 * (rng.random((n, k)) < 0.7)


def crowded(rng, n, k):
    """Rows in order of their cheapest cluster, many of them the same."""
    cheapest = np.sort((k * rng.random(n) ** 3).astype(int))
    return rng.integers(0, 1000, (n, k)) + 1000 * (np.arange(k) != cheapest[:, None])


KINDS = {
    "uniform": uniform,
    "skewed": skewed,
    "tied": lambda rng, n, k: rng.integers(-1, 2, (n, k)),
    "negative": lambda rng, n, k: -skewed(rng, n, k),
    "huge": huge,
    "crowded": crowded,
}


@pytest.mark.parametrize("kind", KINDS)
def test_equals_min_cost_flow(kind):
    for seed in range(34):
        rng = np.random.default_rng([seed, list(KINDS).index(kind)])
        k = int(rng.integers(2, 13))
        n = int(rng.integers(k, 2001 if seed % 2 else 200))
        low, high = [(0.9, 1.1), (1, 1), (0.3, 1), (1, 2.5), (0, k), (0.5, 1.5)][seed % 6]
        lower, upper = size_bounds(n, k, low, high)
        costs = KINDS[kind](rng, n, k).astype(np.float64)
        labels = assign_balanced(costs, lower, upper)
        check_counts(labels, k, lower, upper)
        assert total(costs, labels) == least_total_by_ortools(costs, lower, upper)


def test_equals_brute_force():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, 4))
        n = int(rng.integers(k, 8))
        costs = rng.integers(-5, 6, (n, k)).astype(np.float32)
        possible = [np.array(labels) for labels in itertools.product(range(k), repeat=n)]
        rated = [(np.bincount(y, minlength=k), total(costs, y)) for y in possible]
        for lower, upper in itertools.product(range(n // k + 1), range(-(-n // k), n + 1)):
            best = min(t for c, t in rated if c.min() >= lower and c.max() <= upper)
            labels = assign_balanced(costs, lower, upper)
            check_counts(labels, k, lower, upper)
            assert total(costs, labels) == best


def test_warm_labels_change_no_total():
    lower, upper = size_bounds(3000, 6, 0.9, 1.1)
    for kind in KINDS.values():
        costs = kind(np.random.default_rng(1), 3000, 6).astype(np.float64)
        cold = assign_balanced(costs, lower, upper)
        np.testing.assert_array_equal(assign_balanced(costs, lower, upper, cold), cold)
        near = cold.copy()
        near[:2] = near[1::-1]
        for warm in (near, np.roll(cold, 1), np.zeros_like(cold), np.full_like(cold, -1)):
            labels = assign_balanced(costs, lower, upper, warm)
            check_counts(labels, 6, lower, upper)
            assert total(costs, labels) == total(costs, cold)
    costs = np.zeros((1000, 4))  # optimal ones come back, though others are as good
    warm = np.arange(1000, dtype=np.int32)[::-1] % 4
    np.testing.assert_array_equal(assign_balanced(costs, 250, 250, warm), warm)


def test_precision_of_the_input_does_not_matter():
    for n in (0, 1, 30, 20_000):
        costs = np.random.default_rng(n).random((n, 5)).astype(np.float32)
        lower, upper = n // 5, -(-n // 5)
        single = assign_balanced(costs, lower, upper)
        assert single.dtype == np.int32
        double = assign_balanced(costs.astype(np.float64), lower, upper)
        np.testing.assert_array_equal(double, single)
        np.testing.assert_array_equal(assign_balanced(costs, 0, n), costs.argmin(axis=1))
    for span in (0, 30, 600):  # many magnitudes at once
        rng = np.random.default_rng(span)
        size = 10.0 ** rng.uniform(-span / 2, span / 2, (3000, 8))
        labels = assign_balanced(size * rng.choice([-1, 1], (3000, 8)), 350, 400)
        check_counts(labels, 8, 350, 400)


@st.composite
def problems(draw):
    k = draw(st.integers(1, 5))
    n = draw(st.integers(k, 40))
    odd = [0.0, -0.0, 5e-324, 1e-310, 1.0, 1e15, 1e300, -1e300, 1.7e308, -1.7e308]
    values = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(odd)
    costs = draw(arrays(np.float64, (n, k), elements=values))
    lower = draw(st.integers(0, n // k))
    return costs, lower, draw(st.integers(-(-n // k), n))


@settings(deadline=None)
@given(problems())
def test_any_finite_costs_give_labels_within_the_bounds(problem):
    costs, lower, upper = problem
    labels = assign_balanced(costs, lower, upper)
    check_counts(labels, costs.shape[1], lower, upper)
    np.testing.assert_array_equal(assign_balanced(costs, lower, upper, labels), labels)


@settings(deadline=None)
@given(
    f=arrays(
        np.float64,
        st.integers(2, 60),
        elements=st.one_of(st.floats(-3, 3, width=32), st.sampled_from([-0.5, -0.0, 0.0, 0.5])),
    ),
    data=st.data(),
)
def test_two_clusters_equal_the_flow(f, data):
    n = len(f)
    lower = data.draw(st.integers(0, n // 2))
    upper = data.draw(st.integers(-(-n // 2), n))
    costs = np.maximum(0, 1 + np.outer(f, [-1, 1])) ** 2
    labels = assign_two(f, lower, upper)
    assert labels.dtype == np.int8
    check_counts(labels, 2, lower, upper)
    rows = np.arange(n)
    best = costs[rows, assign_balanced(costs, lower, upper)].sum()
    assert costs[rows, labels].sum() == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_two_clusters_break_ties_by_position():
    for dtype in (np.float32, np.float64):
        f = np.array([1, -1, 1, -1, 1, -1, 1, 1], dtype=dtype)
        assert assign_two(f, 4, 4).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
        assert assign_two(-f, 4, 4).tolist() == [0, 0, 1, 0, 1, 0, 1, 1]
        assert assign_two(f, 0, 8).tolist() == [0, 1, 0, 1, 0, 1, 0, 0]
        assert assign_two(np.zeros(4, dtype=dtype), 1, 3).tolist() == [0, 0, 0, 1]


def test_what_cannot_be_met_is_refused():
    costs, f = np.zeros((10, 3)), np.zeros(10)
    for name, use in [
        ("upper must hold", lambda: assign_balanced(costs, 4, 10)),
        ("upper must hold", lambda: assign_balanced(costs, 0, 3)),
        ("upper must hold", lambda: assign_balanced(costs, -1, 10)),
        ("bounds must satisfy", lambda: assign_two(f, 6, 10)),
        ("shape", lambda: assign_balanced(costs[0], 0, 3)),
        ("shape", lambda: assign_two(costs, 0, 10)),
        ("warm", lambda: assign_balanced(costs, 0, 10, np.zeros(9, "int32"))),
    ]:
        with pytest.raises(ValueError, match=name):
            use()
    for huge in (2**62, 2**70):  # K times as much would not fit
        assert assign_balanced(costs, 0, huge).tolist() == [0] * 10
        assert assign_two(f, 0, huge).tolist() == [0] * 10
    kinds = (np.nan, np.inf, -np.inf), (np.float32, np.float64), (0, 13, 19)
    for bad, dtype, position in itertools.product(*kinds):
        costs = np.zeros(20, dtype=dtype)
        costs[position] = bad
        with pytest.raises(ValueError, match="finite"):
            assign_balanced(costs.reshape(10, 2), 0, 10)
        with pytest.raises(ValueError, match="finite"):
            assign_two(costs, 0, 20)


def test_known_bounds():
    for n, k, low, high, expected in [
        (30, 3, 0.9, 1.1, (9, 11)),  # 1.1 * 30 / 3 is a little more than 11
        (7, 3, 1, 1, (2, 3)),  # widened by the least amount
        (6, 3, 1, 1, (2, 2)),
        (7, 3, 0, math.inf, (1, 5)),  # unconstrained, but never empty
        (5, 1, 0.5, 2, (3, 5)),
        (30_475, 2, 0.9, 1.1, (13_714, 16_761)),
    ]:
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
