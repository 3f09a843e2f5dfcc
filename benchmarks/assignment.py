"""Exact balanced assignment against OR-Tools' min-cost flow, on the same instances.

Costs are uniform with a handicap per cluster, so that a third or more of the rows must
leave their cheapest cluster, and whole numbers, so that both solvers are exact.
"""

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from taxarbor._types import Array
from taxarbor.optim import assign_balanced, size_bounds

N_ROWS = 30_000
CLUSTERS = (3, 5, 20)
REPEATS = 5


def make_costs(n_clusters: int, seed: int = 0) -> Array:
    rng = np.random.default_rng([seed, n_clusters])
    handicap = np.arange(n_clusters) / n_clusters
    return np.round(1e6 * (rng.random((N_ROWS, n_clusters)) + handicap))


def time_ours(costs: Array, lower: int, upper: int) -> tuple[float, float]:
    """Return the optimum and the seconds it took."""
    start = perf_counter()
    labels = assign_balanced(costs, lower, upper)
    seconds = perf_counter() - start
    return float(costs[np.arange(len(labels)), labels].sum()), seconds


def time_ortools(costs: Array, lower: int, upper: int) -> tuple[float, float, float]:
    """Return the optimum and the seconds it took to solve, and to build and solve."""
    n, k = costs.shape
    rows, clusters = np.arange(n), n + np.arange(k)
    tails = np.concatenate([np.repeat(rows, k), clusters])
    heads = np.concatenate([np.tile(clusters, n), np.full(k, n + k)])
    room = np.concatenate([np.ones(n * k, dtype=int), np.full(k, upper - lower)])
    unit = np.concatenate([costs.ravel(), np.zeros(k)]).astype(np.int64)
    supplies = np.concatenate([np.ones(n, dtype=int), np.full(k, -lower), [k * lower - n]])
    start = perf_counter()
    solver = SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(tails, heads, room, unit)
    solver.set_nodes_supplies(np.arange(n + k + 1), supplies)
    built = perf_counter()
    if solver.solve() != solver.OPTIMAL:
        raise RuntimeError("OR-Tools found no optimum")
    end = perf_counter()
    return float(solver.optimal_cost()), end - built, end - start


def measure() -> list[dict[str, Any]]:
    """Return one row per number of clusters: medians over alternating runs, in ms."""
    rows = []
    for k in CLUSTERS:
        costs = make_costs(k)
        lower, upper = size_bounds(N_ROWS, k, 0.9, 1.1)
        runs = []
        for _ in range(REPEATS):
            ours, seconds = time_ours(costs, lower, upper)
            theirs, solve, whole = time_ortools(costs, lower, upper)
            if ours != theirs:
                raise RuntimeError(f"optima differ at K={k}: {ours} and {theirs}")
            runs.append((seconds, solve, whole))
        taxarbor_ms, solve_ms, whole_ms = (
            1e3 * median(times) for times in zip(*runs, strict=True)
        )
        rows.append(
            {
                "n_rows": N_ROWS,
                "n_clusters": k,
                "taxarbor_ms": taxarbor_ms,
                "ortools_solve_ms": solve_ms,
                "ortools_build_solve_ms": whole_ms,
                "solve_ratio": solve_ms / taxarbor_ms,
                "build_solve_ratio": whole_ms / taxarbor_ms,
            }
        )
    return rows


def main() -> None:
    print(f"{'K':>3} {'taxarbor':>10} {'solve':>10} {'build+solve':>12} {'ratios':>14}")
    for row in measure():
        print(
            f"{row['n_clusters']:3d} {row['taxarbor_ms']:7.2f} ms"
            f" {row['ortools_solve_ms']:7.1f} ms {row['ortools_build_solve_ms']:9.1f} ms"
            f" {row['solve_ratio']:6.1f} {row['build_solve_ratio']:7.1f}"
        )


if __name__ == "__main__":
    main()
