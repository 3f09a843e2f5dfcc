"""Exact balanced assignment.

    min over labels y   sum_i C[i, y_i]   subject to   lower <= #{i : y_i = k} <= upper

This is a transportation problem, so its linear relaxation is integral and a min-cost flow
solves it (the paper calls this step NP-hard; it is not). ASSIGNMENT.md derives it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array
from taxarbor.native import assign_flow, assign_pair

ROUNDING = 1e-9  # relative: 1.1 * 30 / 3 is 11.000000000000002, and eleven rows are meant


def assign_balanced(
    costs: Array, lower: int, upper: int, warm: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """Return the labels of least total cost whose counts lie within the bounds.

    Costs, of shape (n_rows, n_clusters), are finite; they are added and compared in float64.
    ``warm`` holds the labels of the previous round: if still optimal, they are returned.
    ValueError if no labels satisfy the bounds, costs are not finite, or a shape is wrong.
    """
    return assign_flow(costs, lower, min(upper, len(costs)), warm)


def assign_two(margins: Array, lower: int, upper: int) -> NDArray[np.int8]:
    """Return the labels of least total cost for two clusters, without any cost matrix.

    ``margins`` are scores of cluster 0 minus those of cluster 1. Where the difference of costs,
    ``costs[i, 1] - costs[i, 0]``, grows with them and has their sign, as for the squared hinge,
    the optimum is a threshold: label 0 for the rows of largest margin, those not below zero, or
    as many as the bounds allow or demand. Of equal margins the first rows come first.
    """
    n = len(margins)
    lower, upper = max(lower, n - upper, 0), min(upper, n - lower, n)
    return assign_pair(np.ascontiguousarray(margins), lower, upper)


def size_bounds(n: int, k: int, low: float, high: float) -> tuple[int, int]:
    """Return the least and the largest number of rows that each of k children may have.

    The bounds are ``ceil(low * n / k)`` and ``floor(high * n / k)``, kept to what leaves no
    child empty, then widened by the least amount that makes ``k * lower <= n <= k * upper``.

    ``low`` and ``high`` are multiples of ``n / k``, ``0 <= low <= 1 <= high``. Of 30 rows and 3
    children, 0.9 and 1.1 are 9 and 11 rows.
    """
    lower = math.ceil(low * n / k * (1 - ROUNDING))
    upper = math.floor(min(high, k) * n / k * (1 + ROUNDING))
    lower = min(max(lower, 1), n // k)
    upper = max(min(upper, n - (k - 1)), -(-n // k))
    return lower, upper
