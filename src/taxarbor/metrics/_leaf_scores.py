"""Agreement of the leaves, taken as a flat clustering, with the classes.

The values are those of scikit-learn. Its adjusted mutual information is too slow for large
data, so the expectation is worked out anew: see :mod:`taxarbor.metrics._information`.
"""

import numpy as np
from numpy.typing import ArrayLike

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics._information import adjusted_information
from taxarbor.metrics._table import LeafTable, pairs, tabulate


def rand_score(hierarchy: Hierarchy, y: ArrayLike) -> float:
    """Return the Rand index: the share of pairs of rows on which leaves and classes agree.

    They agree on a pair that is together in both or apart in both.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row.

    Returns
    -------
    float
        Between 0 and 1. High for any two clusterings with many clusters.

    Raises
    ------
    ValueError
        If there is not one class per row, or there are fewer than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(4)
    >>> _ = builder.add_split(0, [0, 0, 1, 1], LinearRule(np.eye(2), np.zeros(2)))
    >>> rand_score(builder.freeze(), ["a", "a", "b", "c"])
    0.8333333333333334
    """
    return rand(tabulate(hierarchy, y))


def adjusted_rand_score(hierarchy: Hierarchy, y: ArrayLike) -> float:
    """Return the Rand index, corrected for chance: 0 as expected of shuffled rows, 1 at best.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ValueError
        If there is not one class per row, or there are fewer than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(4)
    >>> _ = builder.add_split(0, [0, 0, 1, 1], LinearRule(np.eye(2), np.zeros(2)))
    >>> adjusted_rand_score(builder.freeze(), ["a", "a", "b", "c"])
    0.5714285714285714
    """
    return adjusted_rand(tabulate(hierarchy, y))


def adjusted_mutual_info_score(hierarchy: Hierarchy, y: ArrayLike) -> float:
    """Return what leaves and classes tell of each other, corrected for chance.

    The mutual information, less what is expected of shuffled rows, over the mean of the two
    entropies, less the same.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ValueError
        If there is not one class per row, or there are fewer than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(4)
    >>> _ = builder.add_split(0, [0, 0, 1, 1], LinearRule(np.eye(2), np.zeros(2)))
    >>> round(adjusted_mutual_info_score(builder.freeze(), ["a", "a", "b", "c"]), 6)
    0.571429
    """
    return adjusted_information(tabulate(hierarchy, y).counts)


def rand(table: LeafTable) -> float:
    """Return the Rand index."""
    together, in_leaf, in_class = _pair_counts(table)
    apart = table.n_pairs - in_leaf - in_class + together
    return (together + apart) / table.n_pairs


def adjusted_rand(table: LeafTable) -> float:
    """Return the Rand index, corrected for chance."""
    together, in_leaf, in_class = _pair_counts(table)
    if together == in_leaf == in_class:
        return 1.0  # also where both put all rows together, or all apart: 0 / 0
    # Over a common denominator, which Python's integers hold: products reach 1e24.
    chance = in_leaf * in_class
    most = (in_leaf + in_class) * table.n_pairs
    return 2 * (together * table.n_pairs - chance) / (most - 2 * chance)


def _pair_counts(table: LeafTable) -> tuple[int, int, int]:
    """Count the pairs of rows with one leaf and class, with one leaf, with one class."""
    together, in_leaf, in_class = (
        int(np.sum(pairs(counts)))
        for counts in (table.counts, table.leaf_sizes, table.class_sizes)
    )
    return together, in_leaf, in_class
