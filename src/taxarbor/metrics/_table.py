"""How many rows of each class are in each leaf: all that the measures look at."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor.hierarchy import Hierarchy, expect_hierarchy
from taxarbor.metrics._labels import encode_labels

Counts = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafTable:
    """Counts of rows; no leaf and no class is empty.

    Attributes
    ----------
    hierarchy : Hierarchy
        The learned tree.
    counts : int array of shape (n_leaves, n_classes)
        Rows by leaf, from left to right, and class. Their sums of squares are exact in
        int64, and in float64 up to 9e7 rows.
    classes : tuple
        The label of each class, as the user gave it.
    """

    hierarchy: Hierarchy
    counts: Counts
    classes: tuple[Any, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.hierarchy.order)

    @property
    def n_pairs(self) -> int:
        """Number of unordered pairs of distinct rows."""
        return self.n_rows * (self.n_rows - 1) // 2

    @property
    def leaf_sizes(self) -> Counts:
        """Number of rows in each leaf."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def class_sizes(self) -> Counts:
        """Number of rows of each class."""
        return np.asarray(self.counts.sum(axis=0))

    def node_counts(self) -> Counts:
        """Count rows by node and class: the leaves below a node are a slice of all."""
        tree = self.hierarchy
        running = np.zeros((tree.n_leaves + 1, len(self.classes)), dtype=np.int64)
        np.cumsum(self.counts, axis=0, out=running[1:])
        bounds = np.append(tree.start[tree.leaves], self.n_rows)
        first, last = np.searchsorted(bounds, tree.start), np.searchsorted(bounds, tree.stop)
        return running[last] - running[first]


def tabulate(hierarchy: Hierarchy, y: ArrayLike) -> LeafTable:
    """Count the rows by leaf and class.

    Parameters
    ----------
    hierarchy : Hierarchy
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row.

    Raises
    ------
    TypeError
        If it is no hierarchy.
    ValueError
        If there is not one class per row, or there are fewer than two rows.
    """
    expect_hierarchy(hierarchy)
    n_rows = len(hierarchy.order)
    if n_rows < 2:
        raise ValueError(
            f"all measures compare pairs of rows: needs two at least, got {n_rows}"
        )
    codes, classes = encode_labels(y, n_rows)
    shape = hierarchy.n_leaves, len(classes)
    # Leaves own consecutive rows of `order`, so only the classes have to be looked up.
    offsets = np.arange(shape[0]) * shape[1]
    cells = np.repeat(offsets, hierarchy.n_rows[hierarchy.leaves]) + codes[hierarchy.order]
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).astype(np.int64)
    return LeafTable(hierarchy, counts.reshape(shape), classes)


def pairs(counts: Counts) -> Counts:
    """Return the number of unordered pairs of each of so many."""
    return counts * (counts - 1) // 2
