r"""Agreement of the learned tree with a true tree of the classes.

Two rows are as similar as their leaves are in the learned tree, :math:`a`, and as their
classes are in the true one, :math:`b`. A score is one minus the mean of :math:`(a - b)^2`
over all pairs of distinct rows. With the table :math:`N` of rows by leaf and class, and
:math:`A`, :math:`B` the similarities of leaves and of classes, the sum of :math:`a b` over
all ordered pairs is that of :math:`(N^T A N) \circ B`; a row paired with itself adds 1.

When rows are shuffled, :math:`a` and :math:`b` of a pair are independent, so the mean to
expect is :math:`\overline{a^2} + \overline{b^2} - 2 \bar a \bar b`. It does not depend on how
leaves and classes go together, but does on the shape of both trees.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics._class_tree import ClassTree, TreeSource
from taxarbor.metrics._similarity import LeafPairs, Measure
from taxarbor.metrics._table import LeafTable, tabulate

_ROUNDING = 1e-13
"""Relative to the terms that it is a difference of, a chance error below this is 0."""


@final
@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two similarities are from each other.

    Attributes
    ----------
    error : float
        Mean squared difference over pairs of distinct rows.
    chance : float
        What it is expected to be when rows are shuffled.
    """

    error: float
    chance: float

    @property
    def score(self) -> float:
        """One minus the error."""
        return 1.0 - self.error

    @property
    def adjusted(self) -> float:
        """One minus the error over the expected one: 0 by chance, 1 at best.

        Where chance cannot err, as both similarities are one constant, it is 1.
        """
        return 1.0 - self.error / self.chance if self.chance > 0.0 else 1.0


def shortest_path_score(
    hierarchy: Hierarchy, y: ArrayLike, truth: TreeSource, *, adjusted: bool = False
) -> float:
    """Compare distances in the learned tree with those in the true one.

    The similarity of two rows is one minus the number of edges between their leaves, over
    the most there are between any two leaves of that tree. The score is one minus the mean
    squared difference of the two similarities over all pairs of distinct rows.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row. Converted to text, it is the name of a leaf of the true tree.
    truth : ClassTree, or what :meth:`ClassTree.read` takes
        The true tree. Leaves that no row belongs to count for its greatest distance.
    adjusted : bool
        Correct for chance: 0 as expected of shuffled rows, 1 at best. Without, the score
        mostly rewards trees of a shape like the true one's.

    Returns
    -------
    float
        Between 0 and 1; at most 1 if adjusted.

    Raises
    ------
    ValueError
        If there is not one class per row, there are fewer than two rows, the true tree is
        none, or a class is not a leaf of it.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(3)
    >>> _ = builder.add_split(0, [0, 0, 1], LinearRule(np.eye(2), np.zeros(2)))
    >>> score = shortest_path_score(builder.freeze(), ["cat", "dog", "owl"], "((cat,dog),owl);")
    >>> round(score, 6)  # cat and dog have a similarity of 1/3, and are in one leaf
    0.851852
    """
    table = tabulate(hierarchy, y)
    return _score(table, ClassTree.read(truth), Measure.SHORTEST_PATH, adjusted=adjusted)


def path_sharing_score(
    hierarchy: Hierarchy, y: ArrayLike, truth: TreeSource, *, adjusted: bool = False
) -> float:
    """Compare how long rows stay together in the learned tree and in the true one.

    The similarity of two rows is the number of nodes that the branches of their leaves
    share, the root not counted, over those of the longer branch. The score is one minus the
    mean squared difference of the two similarities over all pairs of distinct rows.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row. Converted to text, it is the name of a leaf of the true tree.
    truth : ClassTree, or what :meth:`ClassTree.read` takes
        The true tree.
    adjusted : bool
        Correct for chance: 0 as expected of shuffled rows, 1 at best.

    Returns
    -------
    float
        Between 0 and 1; at most 1 if adjusted.

    Raises
    ------
    ValueError
        If there is not one class per row, there are fewer than two rows, the true tree is
        none, or a class is not a leaf of it.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(3)
    >>> _ = builder.add_split(0, [0, 0, 1], LinearRule(np.eye(2), np.zeros(2)))
    >>> score = path_sharing_score(builder.freeze(), ["cat", "dog", "owl"], "((cat,dog),owl);")
    >>> round(score, 6)  # cat and dog share one node of two, and are in one leaf
    0.916667
    """
    table = tabulate(hierarchy, y)
    return _score(table, ClassTree.read(truth), Measure.PATH_SHARING, adjusted=adjusted)


def _score(table: LeafTable, truth: ClassTree, measure: Measure, *, adjusted: bool) -> float:
    found = agree(table, learned_pairs(table), true_pairs(table, truth), measure)
    return found.adjusted if adjusted else found.score


def learned_pairs(table: LeafTable) -> LeafPairs:
    """Return the pairs of leaves of the learned tree, in the order of the table."""
    return LeafPairs.of(table.hierarchy.parents, table.hierarchy.leaves)


def true_pairs(table: LeafTable, truth: ClassTree) -> LeafPairs:
    """Return the pairs of classes, in the order of the table, in the true tree."""
    return LeafPairs.of(truth.parents, truth.leaves_of(table.classes))


def agree(table: LeafTable, learned: LeafPairs, true: LeafPairs, measure: Measure) -> Agreement:
    """Compare the similarities of all pairs of distinct rows.

    Takes time in proportion to ``n_leaves * n_classes * (n_leaves + n_classes)``.
    """
    counts = table.counts[learned.order][:, true.order].astype(np.float64)
    joined = np.empty_like(counts)  # A @ N
    a = np.zeros(2)
    leaf_sizes, class_sizes = counts.sum(axis=1), counts.sum(axis=0)
    for rows, A in learned.blocks(measure):
        joined[rows] = A @ counts
        a += _moments(A, leaf_sizes[rows], leaf_sizes)
    b, both = np.zeros(2), 0.0
    for rows, B in true.blocks(measure):
        b += _moments(B, class_sizes[rows], class_sizes)
        both += float(np.vdot(counts[:, rows].T @ joined, B))
    # Ordered pairs, less each row paired with itself, where a = b = 1.
    n_rows, n_pairs = table.n_rows, 2 * table.n_pairs
    (mean_a, square_a), (mean_b, square_b) = (a - n_rows) / n_pairs, (b - n_rows) / n_pairs
    squares = square_a + square_b
    error = squares - 2.0 * (both - n_rows) / n_pairs
    chance = squares - 2.0 * mean_a * mean_b
    return Agreement(
        error=max(0.0, float(error)),  # by rounding, equal trees may differ by -1e-17
        chance=float(chance) if chance > _ROUNDING * squares else 0.0,
    )


def _moments(
    block: NDArray[np.float64], here: NDArray[np.float64], there: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum the values of a block and their squares, each as often as it occurs."""
    return np.array([here @ block @ there, here @ np.square(block) @ there])
