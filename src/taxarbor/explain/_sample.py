"""A sample of rows that are not in memory, and how many rows each of them stands for."""

from typing import Any, NamedTuple

import numpy as np

from taxarbor._errors import InputError, counted
from taxarbor._types import Array, IndexArray
from taxarbor.sources import open_source
from taxarbor.tables._encoding import Expanded
from taxarbor.taxonomy import Taxonomy

MIN_SAMPLE, ROWS_PER_LEAF = 100_000, 500
"""Rows that are drawn: at least so many, and so many for each leaf."""


class DrawnRows(NamedTuple):
    """Rows in memory: all of them, or a sample with row numbers, leaves and weights."""

    table: Any
    rows: IndexArray | None = None
    labels: IndexArray | None = None
    weights: Array | None = None


def draw_rows(taxonomy: Taxonomy, X: Any) -> DrawnRows:
    """Return the rows of X: those in memory as they are, of others a sample if there are many.

    The row numbers of a sample ascend; its weights say how many rows each row stands for.
    """
    source = None if isinstance(X, Expanded) else open_source(X)
    if source is None or source.in_memory:
        return DrawnRows(X)
    sample = source.sample(max(MIN_SAMPLE, ROWS_PER_LEAF * taxonomy.tree.n_leaves), seed=0)
    check_n_rows(taxonomy, sample.n_rows)
    if len(sample.rows) == sample.n_rows:
        return DrawnRows(sample.table)
    labels = (
        taxonomy.tree.labels[sample.rows]
        if taxonomy.tree.has_rows
        else taxonomy.predict(sample.table)
    )
    n_drawn = np.bincount(labels[labels >= 0], minlength=taxonomy.tree.n_leaves)
    if not n_drawn.all():
        raise InputError(
            f"none of {counted(len(labels), 'row')} drawn from X is in cluster "
            f"c{int(n_drawn.argmin())} of the tree: pass the rows that the tree was grown on, "
            "or a smaller tree, as tree.prune returns it"
        )
    return DrawnRows(sample.table, sample.rows, labels, _weights(taxonomy, sample.rows, labels))


def check_n_rows(taxonomy: Taxonomy, n_rows: int) -> None:
    """Raise ValueError if X does not have as many rows as the tree was grown on."""
    if n_rows != taxonomy.tree.n_rows:
        raise InputError(
            f"X has {n_rows:,} rows, but the tree was grown on {taxonomy.tree.n_rows:,}: pass the same "
            "rows, in the same order"
        )


def _weights(taxonomy: Taxonomy, rows: IndexArray, labels: IndexArray) -> Array:
    """Return how many rows each stands for: those of a leaf together for all of its rows."""
    own = np.ones(len(rows)) if taxonomy.tree.weights is None else taxonomy.tree.weights[rows]
    sums = np.bincount(labels + 1, own, minlength=taxonomy.tree.n_leaves + 1)[1:]
    factors = taxonomy.tree.node_weights[taxonomy.tree.leaves] / np.where(sums > 0.0, sums, 1.0)
    weights: Array = own * np.append(factors, 0.0)[labels]  # noise, -1, counts for nothing
    return weights
