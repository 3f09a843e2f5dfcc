"""Exact balanced assignment.

    min over labels y   sum_i C[i, y_i]   subject to   lower <= #{i : y_i = k} <= upper

This is a transportation problem, so its linear relaxation is integral and a min-cost flow
solves it (the paper calls this step NP-hard; it is not).
"""

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array
from taxarbor.native import assign_flow, assign_pair


def assign_balanced(
    costs: Array, lower: int, upper: int, warm: NDArray[np.integer] | None = None
) -> NDArray[np.int32]:
    """Return the labels of least total cost whose counts lie within the bounds.

    Parameters
    ----------
    costs : array of shape (n_rows, n_clusters), float32 or float64
        Finite; sums and comparisons are made in float64.
    lower, upper : int
        Bounds on the number of rows of every cluster.
    warm : array of shape (n_rows,), optional
        Labels of the previous round. If they are still optimal they come back unchanged,
        after a single look at the costs; otherwise they do not matter.

    Returns
    -------
    labels : array of shape (n_rows,), int32
        The same for the same input. Optimal up to the rounding of sums of costs.

    Raises
    ------
    ValueError
        If no labels satisfy the bounds, the costs are not finite, or a shape is wrong.
    """
    costs = _floats(costs)
    if costs.ndim != 2:
        raise ValueError(f"costs must have shape (n_rows, n_clusters); got {costs.shape}")
    _check_feasible(costs.shape[0], costs.shape[1], lower, upper)
    known = None if warm is None else np.ascontiguousarray(warm, dtype=np.int32)
    if known is not None and known.shape != costs.shape[:1]:
        raise ValueError(
            f"warm must hold one label for each of {len(costs)} rows; got {known.shape}"
        )
    return assign_flow(costs, lower, upper, known)


def assign_two(margins: Array, lower: int, upper: int) -> NDArray[np.int8]:
    """Return the labels of least total cost for two clusters, without any cost matrix.

    Where ``costs[i, 1] - costs[i, 0]`` grows with ``margins[i]`` and has its sign, as it is
    for the squared hinge, the optimum is a threshold on the margins.

    Parameters
    ----------
    margins : array of shape (n_rows,), float32 or float64
        Score of cluster 0 minus score of cluster 1; finite.
    lower, upper : int
        Bounds on the number of rows of either cluster.

    Returns
    -------
    labels : array of shape (n_rows,), int8
        0 for the rows of largest margin: those not below zero, or as many as the bounds
        allow or demand. Among equal margins the first rows come first.

    Raises
    ------
    ValueError
        If no labels satisfy the bounds, or the margins are not finite or not a vector.
    """
    margins = _floats(margins)
    if margins.ndim != 1:
        raise ValueError(f"margins must have shape (n_rows,); got {margins.shape}")
    n = len(margins)
    _check_feasible(n, 2, lower, upper)
    return assign_pair(margins, max(lower, n - upper, 0), min(upper, n - lower, n))


def _floats(values: Array) -> Array:
    """Return the values, contiguous, in float32 if they were, else in float64."""
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    return np.ascontiguousarray(values, dtype=dtype)


def _check_feasible(n: int, k: int, lower: int, upper: int) -> None:
    if k < 1 or lower < 0 or k * lower > n or k * upper < n:
        raise ValueError(
            f"{n} rows cannot make {k} clusters of {lower} to {upper} rows each; "
            "size_bounds gives bounds that can be met"
        )
