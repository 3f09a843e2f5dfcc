r"""Measures that look at every node of the learned tree, not at its leaves alone.

Both are sums over pairs of rows of something about the pair's lowest common ancestor. Let
:math:`Q_v` be the weight of all pairs below node :math:`v`, which are those that meet at
:math:`v` or below it. The pairs that meet at :math:`v` then weigh :math:`Q_v` less those of
its children, and a sum of :math:`f_v` over pairs, sorted by nodes, becomes
:math:`\sum_v Q_v (f_v - f_{parent(v)})` with nothing above the root.
"""

from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics._class_tree import ClassTree, TreeSource
from taxarbor.metrics._similarity import LeafPairs, Measure
from taxarbor.metrics._table import Counts, LeafTable, pairs, tabulate
from taxarbor.metrics._tree_scores import true_pairs


def dendrogram_purity(hierarchy: Hierarchy, y: ArrayLike) -> float:
    """Return how pure the smallest cluster is that holds two rows of a class.

    Over all pairs of distinct rows of one class, the mean share of that class among the
    rows of the pair's lowest common ancestor. Two rows of one leaf meet in that leaf.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row.

    Returns
    -------
    float
        Between 0 and 1; 1 if for every class there is a node that holds its rows and no
        others. NaN if no class has two rows, as there is no pair to look at.

    Raises
    ------
    ValueError
        If there is not one class per row, or there are fewer than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(5)
    >>> _ = builder.add_split(0, [0, 0, 0, 1, 1], LinearRule(np.eye(2), np.zeros(2)))
    >>> round(dendrogram_purity(builder.freeze(), ["a", "a", "b", "c", "c"]), 6)
    0.833333
    """
    return purity(tabulate(hierarchy, y))


def dasgupta_cost(
    hierarchy: Hierarchy,
    y: ArrayLike,
    truth: TreeSource | None = None,
    *,
    normalize: bool = True,
) -> float:
    """Return Dasgupta's cost: how large the clusters are in which similar rows meet.

    The sum over all pairs of distinct rows of their similarity times the number of rows of
    their lowest common ancestor [1]_. Two rows of one leaf meet in that leaf. Lower is
    better.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row.
    truth : ClassTree, or what :meth:`ClassTree.read` takes, optional
        A tree of the classes, by which the similarity of two rows is the shortest-path
        similarity of their classes. Without it, rows of one class have a similarity of 1,
        all others of 0.
    normalize : bool
        Divide by the cost of a tree that is a single leaf.

    Returns
    -------
    float
        If normalized, above 0 and at most 1; NaN if no two rows are similar at all.

    Raises
    ------
    ValueError
        If there is not one class per row, there are fewer than two rows, the true tree is
        none, or a class is not a leaf of it.

    References
    ----------
    .. [1] Dasgupta, "A cost function for similarity-based hierarchical clustering",
       STOC 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(4)
    >>> _ = builder.add_split(0, [0, 0, 1, 1], LinearRule(np.eye(2), np.zeros(2)))
    >>> dasgupta_cost(builder.freeze(), ["a", "a", "b", "b"], normalize=False)
    4.0
    >>> dasgupta_cost(builder.freeze(), ["a", "a", "b", "b"])
    0.5
    """
    table = tabulate(hierarchy, y)
    classes = None if truth is None else true_pairs(table, ClassTree.read(truth))
    return cost(table, classes, normalize=normalize)


def purity(table: LeafTable) -> float:
    """Return the dendrogram purity."""
    counts, parents = table.node_counts(), table.hierarchy.parents
    weights = pairs(counts).astype(np.float64)
    if not weights[0].any():
        return nan
    share = counts / table.hierarchy.n_rows[:, None]
    gain = share.copy()
    gain[1:] -= share[parents[1:]]
    return float(np.vdot(weights, gain) / weights[0].sum())


def cost(table: LeafTable, classes: LeafPairs | None, *, normalize: bool) -> float:
    """Return Dasgupta's cost; the classes are related by their pairs in a tree, if given."""
    sizes = table.hierarchy.n_rows.astype(np.float64)
    weights = (_similarity_below(table.node_counts(), classes) - sizes) / 2.0
    gain = sizes.copy()
    gain[1:] -= sizes[table.hierarchy.parents[1:]]
    total = float(weights @ gain)
    if not normalize:
        return total
    return total / float(weights[0] * sizes[0]) if weights[0] > 0.0 else nan


def _similarity_below(counts: Counts, classes: LeafPairs | None) -> NDArray[np.float64]:
    """Sum the similarities of all ordered pairs of rows of each node."""
    n = counts.astype(np.float64)
    if classes is None:
        return np.asarray(np.square(n).sum(axis=1))
    n = n[:, classes.order]
    result = np.zeros(len(n))
    for columns, B in classes.blocks(Measure.SHORTEST_PATH):
        result += np.sum((n @ B.T) * n[:, columns], axis=1)
    return result
