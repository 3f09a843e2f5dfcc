"""Counts and sums of the rows of each node, which add up: of leaves, cuts and merged nodes."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import sparse

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, set_frozen
from taxarbor.rows import all_finite
from taxarbor.tables.columns import Columns, FeatureRows
from taxarbor.tree import Tree
from taxarbor.tree.edit_tree import sum_below
from taxarbor.tree.route_rows import sum_by_label


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeStatistics:
    """Counts and sums of the rows of each node.

    They are of the rows of the sample as they are routed, outliers included and noise not,
    which count by their weights. Those of a node are the sums of those of its leaves.

    Attributes
    ----------
    counts : float array of shape (n_nodes,)
        The weight of the rows.
    sums : float array of shape (n_nodes, n_features)
        The weighted sums of the values that are known, in the units of the features.
    n_missing : float array of shape (n_nodes, n_columns) or None
        The weight of the rows without a value in each column; None where all are known.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> statistics = Taxarbor(4, random_state=0).fit(load_animals().X).taxonomy_.statistics
    >>> float(statistics.counts[0]), statistics.sums.shape
    (206.0, (7, 85))
    """

    counts: Array
    sums: Array
    n_missing: Array | None = None

    def __post_init__(self) -> None:
        for name in ("counts", "sums", "n_missing"):
            if (given := getattr(self, name)) is not None:
                set_frozen(self, **{name: np.array(given, dtype=np.float64)})
        n_nodes = len(self.counts)
        is_right = self.counts.ndim == 1 and self.sums.shape[:1] == (n_nodes,)
        if self.n_missing is not None:
            is_right = is_right and self.n_missing.shape[:1] == (n_nodes,)
            is_right = is_right and bool((self.n_missing >= 0.0).all())
        if not is_right or self.sums.ndim != 2 or not (self.counts > 0.0).all():
            raise ValueError("counts and sums of NodeStatistics do not fit together")

    @property
    def missing(self) -> Array | None:
        """The share of missing values of each node's rows in each column."""
        return None if self.n_missing is None else self.n_missing / self.counts[:, None]

    def mean(self, columns: Columns) -> Array:
        """Return the means of the rows of each node, in which missing values are imputed."""
        sums = self.sums
        with np.errstate(over="ignore", invalid="ignore"):
            if self.n_missing is not None and not columns.unit_length:
                sums = sums + self.n_missing[:, columns.owner] * columns.fills
            return sums / self.counts[:, None]

    def take(self, nodes: IndexArray) -> "NodeStatistics":
        """Return the statistics of some nodes."""
        n_missing = None if self.n_missing is None else self.n_missing[nodes]
        return NodeStatistics(self.counts[nodes], self.sums[nodes], n_missing)


def sum_leaves(
    tree: Tree, counts: Array, sums: Array, n_missing: Array | None = None
) -> NodeStatistics:
    """Return the statistics of all nodes of a tree, given those of its leaves."""
    parts = [part for part in (counts, sums, n_missing) if part is not None]
    return NodeStatistics(*(sum_below(part, tree.leaves, tree.parents) for part in parts))


def describe_rows(
    tree: Tree, columns: Columns, rows: FeatureRows, labels: IndexArray, weights: Array | None
) -> NodeStatistics:
    """Return the statistics of imputed rows, given the positions of their leaves, -1 for none.

    A leaf of rows that all have weight zero counts whole.
    """
    n_leaves, data = tree.n_leaves, rows.data
    if weights is not None:
        own = labels >= 0
        totals = np.bincount(labels[own], weights[own], minlength=n_leaves)
        is_whole = np.append(totals <= 0.0, False)[labels]  # noise, -1, is in no leaf
        weights = np.where(is_whole, 1.0, weights)
        labels = np.where(weights > 0.0, labels, -1)
        weights = None if (weights[labels >= 0] == 1.0).all() else weights
    with np.errstate(over="ignore", invalid="ignore"):
        sums = sum_by_label(data, labels, n_leaves, weights)
    ones = np.ones(len(labels)) if weights is None else weights
    counts: Array = np.bincount(labels + 1, ones, n_leaves + 1)[1:].astype(np.float64)
    if not all_finite(sums):
        raise InputError("holds values that are too large to take means of; scale them", "X")
    if rows.missing is None:
        return sum_leaves(tree, counts, sums)
    gaps: Any = sparse.csr_array(rows.missing, dtype=np.float64)
    n_missing = sum_by_label(gaps, labels, n_leaves, weights)
    if not columns.unit_length:  # where imputed values were normalized, they count as known
        sums = sums - n_missing[:, columns.owner] * columns.fills
    return sum_leaves(tree, counts, sums, n_missing)
