"""The means of a tree's nodes."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor.hierarchy._placement import deciding_rule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy
    from taxarbor.rows import Rows


def with_means(
    hierarchy: "Hierarchy",
    rows: "Rows",
    run_all: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]] = map,
) -> "Hierarchy":
    """Return the tree with the mean of each node's rows: one sweep, over the leaves.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    rows : Rows
        All rows that it divides.
    run_all : callable
        Like the builtin ``map``: runs independent tasks.
    """
    leaves, sizes = hierarchy.leaves.tolist(), hierarchy.n_rows
    sums = np.zeros((hierarchy.n_nodes, rows.n_features))
    found = run_all(lambda leaf: rows.take(hierarchy.rows(leaf)).center, leaves)
    # From the centre of all, so that data far from the origin lose no digits.
    for leaf, mean in zip(leaves, found, strict=True):
        sums[leaf] = sizes[leaf] * (mean - rows.center)
    for node in range(hierarchy.n_nodes - 1, 0, -1):
        sums[hierarchy.parents[node]] += sums[node]
    means = rows.center + sums / sizes[:, None]
    means[np.abs(means) <= 1e-12 * np.abs(rows.center)] = 0.0  # what rounding leaves of zero
    rule = deciding_rule(hierarchy)
    dtype = rows.dtype if rule is None else rule.dtype
    return replace(hierarchy, means=means.astype(dtype))
