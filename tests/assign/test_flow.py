import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from taxarbor.assign import assign_balanced, assign_two, size_bounds


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


def tied(rng, n, k):
    return rng.integers(-1, 2, (n, k))


def negative(rng, n, k):
    return -skewed(rng, n, k)


def huge(rng, n, k):
    """Most clusters are all but forbidden: prices are huge, differences small."""
    return rng.integers(0, 50, (n, k)) + 10**11 * (rng.random((n, k)) < 0.7)


def crowded(rng, n, k):
    """Rows in order of the cluster that they want, many of them the same."""
    wanted = np.sort((k * rng.random(n) ** 3).astype(int))
    return rng.integers(0, 1000, (n, k)) + 1000 * (np.arange(k) != wanted[:, None])


KINDS = [uniform, skewed, tied, negative, huge, crowded]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(34))
def test_equals_min_cost_flow(kind, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    k = int(rng.integers(2, 13))
    n = int(rng.integers(k, 2001 if seed % 2 else 200))
    low, high = [(0.9, 1.1), (1, 1), (0.3, 1), (1, 2.5), (0, k), (0.5, 1.5)][seed % 6]
    lower, upper = size_bounds(n, k, low, high)
    costs = kind(rng, n, k).astype(np.float64)
    labels = assign_balanced(costs, lower, upper)
    check_counts(labels, k, lower, upper)
    assert total(costs, labels) == least_total_by_ortools(costs, lower, upper)


@pytest.mark.parametrize("seed", range(60))
def test_equals_brute_force(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 4))
    n = int(rng.integers(k, 8))
    costs = rng.integers(-5, 6, (n, k)).astype(np.float32)
    for lower in range(n // k + 1):
        for upper in range(-(-n // k), n + 1):
            best = min(
                total(costs, np.array(labels))
                for labels in itertools.product(range(k), repeat=n)
                if np.bincount(labels, minlength=k).min() >= lower
                and np.bincount(labels, minlength=k).max() <= upper
            )
            labels = assign_balanced(costs, lower, upper)
            check_counts(labels, k, lower, upper)
            assert total(costs, labels) == best


@pytest.mark.parametrize("kind", KINDS)
def test_warm_labels_change_no_total(kind):
    rng = np.random.default_rng(1)
    costs = kind(rng, 3000, 6).astype(np.float64)
    lower, upper = size_bounds(3000, 6, 0.9, 1.1)
    cold = assign_balanced(costs, lower, upper)
    np.testing.assert_array_equal(assign_balanced(costs, lower, upper, cold), cold)
    near = cold.copy()
    near[:2] = near[1::-1]
    for warm in (near, np.roll(cold, 1), np.zeros_like(cold), np.full_like(cold, -1)):
        labels = assign_balanced(costs, lower, upper, warm)
        check_counts(labels, 6, lower, upper)
        assert total(costs, labels) == total(costs, cold)


def test_optimal_warm_labels_come_back_though_others_are_as_good():
    costs = np.zeros((1000, 4))
    warm = np.arange(1000, dtype=np.int32)[::-1] % 4
    np.testing.assert_array_equal(assign_balanced(costs, 250, 250, warm), warm)


def test_unbounded_is_the_cheapest_cluster_of_each_row():
    costs = np.random.default_rng(0).random((500, 7))
    np.testing.assert_array_equal(assign_balanced(costs, 0, 500), costs.argmin(axis=1))


@pytest.mark.parametrize("n", [0, 1, 30, 20_000])
def test_precision_of_the_input_does_not_matter(n):
    costs = np.random.default_rng(n).random((n, 5)).astype(np.float32)
    lower, upper = n // 5, -(-n // 5)
    single = assign_balanced(costs, lower, upper)
    assert single.dtype == np.int32
    np.testing.assert_array_equal(
        assign_balanced(costs.astype(np.float64), lower, upper), single
    )
    np.testing.assert_array_equal(
        assign_balanced(np.asfortranarray(costs), lower, upper), single
    )


@st.composite
def problems(draw):
    k = draw(st.integers(1, 5))
    n = draw(st.integers(k, 40))
    values = st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(
            [0.0, -0.0, 5e-324, 1e-310, 1.0, 1e15, 1e300, -1e300, 1.7e308, -1.7e308]
        ),
    )
    costs = draw(arrays(np.float64, (n, k), elements=values))
    lower = draw(st.integers(0, n // k))
    upper = draw(st.integers(-(-n // k), n))
    return costs, lower, upper


@settings(deadline=None)
@given(problems())
def test_any_finite_costs_give_labels_within_the_bounds(problem):
    costs, lower, upper = problem
    labels = assign_balanced(costs, lower, upper)
    check_counts(labels, costs.shape[1], lower, upper)
    again = assign_balanced(costs, lower, upper, labels)
    np.testing.assert_array_equal(again, labels)


@pytest.mark.parametrize("span", [0, 30, 600])
def test_many_magnitudes_at_once(span):
    rng = np.random.default_rng(span)
    costs = 10.0 ** rng.uniform(-span / 2, span / 2, (3000, 8)) * rng.choice([-1, 1], (3000, 8))
    labels = assign_balanced(costs, 350, 400)
    check_counts(labels, 8, 350, 400)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_clusters_break_ties_by_position(dtype):
    f = np.array([1, -1, 1, -1, 1, -1, 1, 1], dtype=dtype)
    assert assign_two(f, 4, 4).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert assign_two(-f, 4, 4).tolist() == [0, 0, 1, 0, 1, 0, 1, 1]
    assert assign_two(f, 0, 8).tolist() == [0, 1, 0, 1, 0, 1, 0, 0]
    assert assign_two(np.zeros(4, dtype=dtype), 1, 3).tolist() == [0, 0, 0, 1]


def test_what_cannot_be_met_is_refused():
    costs = np.zeros((10, 3))
    with pytest.raises(ValueError, match="10 rows cannot make 3 clusters of 4"):
        assign_balanced(costs, 4, 10)
    with pytest.raises(ValueError, match="of 0 to 3 rows"):
        assign_balanced(costs, 0, 3)
    with pytest.raises(ValueError, match="10 rows cannot make 2"):
        assign_two(costs[:, 0], 6, 10)
    with pytest.raises(ValueError, match="shape"):
        assign_balanced(costs[0], 0, 3)
    with pytest.raises(ValueError, match="shape"):
        assign_two(costs, 0, 10)
    with pytest.raises(ValueError, match="one label for each of 10 rows"):
        assign_balanced(costs, 0, 10, np.zeros(9, dtype=np.int32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("position", [0, 13, 19])
def test_costs_that_are_not_finite_are_refused(bad, dtype, position):
    costs = np.zeros(20, dtype=dtype)
    costs[position] = bad
    with pytest.raises(ValueError, match="finite"):
        assign_balanced(costs.reshape(10, 2), 0, 10)
    with pytest.raises(ValueError, match="finite"):
        assign_two(costs, 0, 20)
