r"""All leaves at once: rows move to the leaf they fit best, wherever in the tree it is.

A split is final as the tree grows, so a row on the wrong side of an early one can never reach
the leaf it belongs to. When the tree is whole, the leaves compete for the rows directly. Each
is a mean, seen in the metric of the scatter within leaves:

    a row x goes to   argmin_k (x - m_k)' S^-1 (x - m_k),   S = S_within + ridge I.

Means and scatter follow the rows, in turn. Neither step raises ``log det S``, the total
objective: for a given S the moves lower ``trace(S^-1 S_within)``, and for given rows their own
scatter is the S that minimises ``log det S + trace(S^-1 (S_within + ridge I))``. The tree above
the leaves stays as it was.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from taxarbor import native
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import HierarchyBuilder, LinearRule, Placement
from taxarbor.refine._coordinates import LIFT, Coordinates
from taxarbor.rows import Rows
from taxarbor.rows._base import best_scores

STEPS = 2
"""Rounds of moves. Most rows that ever move do so in the first; a third adds nothing."""

SHRINKAGE = 1.0
"""The ridge, as a share of the mean variance within leaves: halfway from the metric of the data
to that of the plain distance."""

LEAST = 1e3
"""The least ridge, in roundings of the variance of all rows, beside one in double precision per
row: where leaves are single points, what is left of it within them is rounding."""


MAX_SCORES = 4_000_000
"""Scores, rows times leaves, that are held at a time: 32 MB in float64."""


def compete(
    tree: HierarchyBuilder,
    coordinates: Coordinates,
    rows: Rows | None = None,
    min_leaf_size: int = 1,
    max_leaf_size: int | None = None,
) -> Placement | None:
    """Let the leaves of a tree compete for the rows, and give each row to its leaf.

    Parameters
    ----------
    tree : HierarchyBuilder
        The tree as it was grown; its leaves have other rows afterwards.
    coordinates : Coordinates
        The rows, as the tree was grown on them.
    rows : Rows, optional
        The same rows, with all features. Without them the coordinates decide.
    min_leaf_size, max_leaf_size : int
        Sizes that leaves keep to: a move that would break them is not made. A leaf that was
        larger when it was grown may stay as large.

    Returns
    -------
    Placement or None
        What gave the rows to the leaves, and places new ones; None for a root on its own, or
        where the coordinates decided.
    """
    if tree.n_leaves == 1:
        return None
    grown = tree.labels
    model = fit_leaves(coordinates, grown, tree.n_leaves)
    if rows is None:
        seen = coordinates.about_origin
        weights = np.pad(model.weights, ((0, 0), (0, 1)))
        rule = LinearRule(weights, np.zeros(seen.n_features), model.offsets)
    else:
        rule = coordinates.rule(model.weights, model.offsets)
        seen = rows.take(np.arange(rows.n_rows), center=rule.center)
    sizes = np.bincount(grown, minlength=tree.n_leaves)
    most = np.maximum(sizes, seen.n_rows if max_leaf_size is None else max_leaf_size)
    least = np.minimum(sizes, min_leaf_size)
    tree.move_rows(_send_back(seen, rule, grown, least, most))
    return None if rows is None else Placement(rule, np.array(tree.leaves))


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafModel:
    """Linear scores: a row goes to the leaf of the highest ``weights @ x + offsets``."""

    weights: Array  # (n_leaves, n_coordinates)
    offsets: Array  # (n_leaves,)
    trace: list[float]  # log det S before each round of moves; the last is yet to come


def fit_leaves(coordinates: Coordinates, labels: IndexArray, n_leaves: int) -> LeafModel:
    """Return the model of the last round, or of the one before a leaf would become empty.

    ``labels`` are the leaves of the rows; none is empty.
    """
    rows, total = coordinates.about_origin, coordinates.scatter
    n, size = rows.n_rows, len(total)
    ridge = 0.0
    trace: list[float] = []
    for step in range(STEPS):
        counts = np.bincount(labels, minlength=n_leaves)
        means = leaf_means(coordinates.values[:, :-1], labels, counts)
        within = total - (means.T * (counts / n)) @ means
        if not trace:
            rounding = LEAST * float(np.finfo(rows.dtype).eps) + n * float(np.finfo(float).eps)
            least = rounding * float(np.trace(total))
            ridge = max(SHRINKAGE * float(np.trace(within)) / size, least)
        within[np.diag_indices(size)] += ridge
        factor = cho_factor(within)
        trace.append(2.0 * float(np.log(np.diag(factor[0])).sum()))
        weights = cho_solve(factor, means.T).T
        offsets = -0.5 * np.einsum("kq,kq->k", weights, means)
        if step == STEPS - 1:
            break  # the moves by this model are the caller's
        moved = best_scores(rows, np.column_stack([weights, offsets / LIFT]))
        if not np.bincount(moved, minlength=n_leaves).all() or (moved == labels).all():
            break
        labels = moved
    return LeafModel(weights, offsets, trace)


def leaf_means(Z: Array, labels: IndexArray, counts: IndexArray) -> Array:
    """Return the mean of each leaf's rows, summed in the order of the rows."""
    return native.label_sums(Z, labels, len(counts)) / counts[:, None]


def _send_back(
    rows: Rows, rule: LinearRule, grown: IndexArray, least: IndexArray, most: IndexArray
) -> IndexArray:
    """Return the leaves that rows want, but for those that must stay for the leaves' sizes.

    Of these the ones that gain least from their move go back to the leaf they came from. The
    leaves as they were grown keep to the sizes, so in the end all do.
    """
    wanted = best_scores(rows, rule.weights, rule.offsets)
    labels = wanted.copy()
    while True:
        counts = np.bincount(labels, minlength=len(least))
        over, under = np.maximum(counts - most, 0), np.maximum(least - counts, 0)
        if not (over.any() or under.any()):
            return labels
        concerned = (over[labels] > 0) | (under[grown] > 0)
        moved = np.flatnonzero(concerned & (labels != grown))
        gain = _gains(rows, rule, moved, wanted, grown)
        back = np.concatenate(
            [_lowest(gain, labels[moved], over), _lowest(gain, grown[moved], under)]
        )
        labels[moved[back]] = grown[moved[back]]


def _gains(
    rows: Rows, rule: LinearRule, moved: IndexArray, wanted: IndexArray, grown: IndexArray
) -> Array:
    """Return how much better each of these rows fits the leaf it wants than its own."""
    gain = np.empty(len(moved))
    step = max(MAX_SCORES // rule.n_children, 1)
    for first in range(0, len(moved), step):
        some = moved[first : first + step]
        scores = rows.take(some, center=rows.center).scores(rule.weights) + rule.offsets
        at = np.arange(len(some))
        gain[first : first + step] = scores[at, wanted[some]] - scores[at, grown[some]]
    return gain


def _lowest(values: Array, part: IndexArray, quota: IndexArray) -> IndexArray:
    """Return the positions of the lowest values of each part, as many as its quota."""
    order = np.lexsort((values, part))
    sorted_part = part[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_part, sorted_part)
    return order[rank < quota[sorted_part]]
