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

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from taxarbor import native
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine._coordinates import Coordinates
from taxarbor.rows import as_rows
from taxarbor.rows._base import best_scores
from taxarbor.sweep import Column
from taxarbor.sweep._copies import count_copies

STEPS = 2
"""Rounds of moves. Most rows that ever move do so in the first; a third adds nothing."""

SHRINKAGE = 1.0
"""The ridge, as a share of the mean variance within leaves: halfway from the metric of the data
to that of the plain distance."""

LEAST = 1e3
"""The least ridge, in roundings of the variance of all rows, beside one in double precision per
row: where leaves are single points, what is left of it within them is rounding."""

Labels = NDArray[np.int32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leafing:
    """A tree and the rows of its leaves, in blocks.

    Attributes
    ----------
    tree : HierarchyBuilder
        The tree; it knows how many rows its nodes have, by copies, not which.
    labels : Column
        The position of each row's leaf among the leaves, -1 for rows without part.
    counts : int array of shape (n_leaves,)
        Copies in each leaf.
    sums : float array of shape (n_leaves, n_coordinates + 1)
        The sum of their coordinates, exact.
    """

    tree: HierarchyBuilder
    labels: Column
    counts: IndexArray
    sums: Array

    @classmethod
    def of(cls, tree: HierarchyBuilder, labels: Column, coordinates: Coordinates) -> "Leafing":
        """Count the rows of each leaf, and add them up."""
        engine, copies = coordinates.blocks.engine, coordinates.copies
        columns = coordinates.values, labels, copies.counts
        counts, sums = engine.sweep(add_up, *columns, n_leaves=tree.n_leaves)
        return cls(tree, labels, counts, sums)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.counts)

    @property
    def means(self) -> Array:
        """The mean of each leaf's coordinates."""
        found: Array = self.sums[:, :-1] / self.counts[:, None]
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafModel:
    """Linear scores: a row goes to the leaf of the highest ``weights @ z + offsets``."""

    weights: Array  # (n_leaves, n_coordinates)
    offsets: Array  # (n_leaves,)
    trace: list[float]  # log det S before each round of moves; the last is yet to come

    @property
    def lifted(self) -> Array:
        """The weights, with a zero for the constant coordinate."""
        return np.pad(self.weights, ((0, 0), (0, 1)))


def compete(
    grown: Leafing,
    coordinates: Coordinates,
    min_leaf_size: int = 1,
    max_leaf_size: int | None = None,
) -> tuple[Leafing, LeafModel]:
    """Let the leaves of a tree compete for the rows, and give each row to its leaf.

    Parameters
    ----------
    grown : Leafing
        A tree, of two leaves or more, and its rows.
    coordinates : Coordinates
        The rows, as the tree was grown on them.
    min_leaf_size, max_leaf_size : int
        Sizes that leaves keep to: a move that would break them is not made. A leaf that was
        larger when it was grown may stay as large.

    Returns
    -------
    Leafing, LeafModel
        The tree with other rows in its leaves, and what gave them the rows.
    """
    model = fit_leaves(grown, coordinates)
    moved = _moved(grown, coordinates, model)
    most = np.maximum(
        grown.counts, coordinates.copies.n if max_leaf_size is None else max_leaf_size
    )
    least = np.minimum(grown.counts, min_leaf_size)
    moved = _send_back(grown, moved, coordinates, model, (least, most))
    grown.tree.resize(moved.counts, _have_moved(grown, moved, coordinates))
    return moved, model


def fit_leaves(grown: Leafing, coordinates: Coordinates) -> LeafModel:
    """Return the model of the last round, or of the one before a leaf would become empty."""
    total, n = coordinates.scatter, coordinates.copies.n
    size, ridge, now = len(total), 0.0, grown
    eps = float(np.finfo(np.float32).eps)
    trace: list[float] = []
    while True:
        means = now.means
        within = total - (means.T * (now.counts / n)) @ means
        if not trace:
            least = (LEAST * eps + n * float(np.finfo(float).eps)) * float(np.trace(total))
            least = max(least, coordinates.unit**2)
            ridge = max(SHRINKAGE * float(np.trace(within)) / size, least)
        within[np.diag_indices(size)] += ridge
        factor = cho_factor(within)
        trace.append(2.0 * float(np.log(np.diag(factor[0])).sum()))
        weights = cho_solve(factor, means.T).T
        offsets = -0.5 * np.einsum("kq,kq->k", weights, means)
        model = LeafModel(weights, offsets, trace)
        if len(trace) == STEPS:
            return model  # the moves by this model are the caller's
        now = _moved(now, coordinates, model)
        if not now.counts.all():
            return model


def _moved(leaves: Leafing, coordinates: Coordinates, model: LeafModel) -> Leafing:
    """Return the leaves with the rows that fit them best."""
    engine, copies = coordinates.blocks.engine, coordinates.copies
    labels, (counts, sums) = engine.keep(
        _best_leaf,
        *(coordinates.values, copies.counts),
        weights=model.lifted,
        offsets=model.offsets,
    )
    return replace(leaves, labels=labels, counts=counts, sums=sums)


def _have_moved(grown: Leafing, moved: Leafing, coordinates: Coordinates) -> list[bool]:
    """Say of each leaf whether its rows are others; where nobody asks, that they are."""
    if not any(grown.tree.note(leaf) for leaf in grown.tree.leaves):
        return [True] * grown.n_leaves
    engine, copies = coordinates.blocks.engine, coordinates.copies
    columns = grown.labels, moved.labels, copies.counts
    stayed = engine.sweep(count_stayed, *columns, n_leaves=grown.n_leaves)
    found = (stayed != grown.counts) | (stayed != moved.counts)
    return [bool(one) for one in found]


def _send_back(
    grown: Leafing,
    moved: Leafing,
    coordinates: Coordinates,
    model: LeafModel,
    bounds: tuple[IndexArray, IndexArray],
) -> Leafing:
    """Return the leaves that rows want, but for those that must stay for the leaves' sizes.

    Of these the ones that gain least from their move go back to the leaf they came from, and
    all that gain as little. The leaves as they were grown keep to the sizes, so in the end all
    do.
    """
    engine, copies = coordinates.blocks.engine, coordinates.copies
    columns = coordinates.values, grown.labels
    now, (least, most) = moved, bounds
    told: Any = {"weights": model.lifted, "offsets": model.offsets}
    while True:
        over, under = np.maximum(now.counts - most, 0), np.maximum(least - now.counts, 0)
        if not (over.any() or under.any()):
            return now
        found = engine.sweep(
            _gains, *columns, now.labels, copies.counts, over=over > 0, under=under > 0, **told
        )
        limits: Any = {
            "above": _quota(found.gains, found.to, found.counts, over),
            "below": _quota(found.gains, found.came_from, found.counts, under),
        }
        labels, (counts, sums) = engine.keep(
            _sent_back, *columns, now.labels, copies.counts, **limits, **told
        )
        now = replace(now, labels=labels, counts=counts, sums=sums)


def _quota(gains: Array, part: IndexArray, counts: IndexArray, quota: IndexArray) -> Array:
    """Return up to which gain rows of each part make up its quota; less than any for none."""
    limits = np.full(len(quota), -np.inf)
    for one in np.flatnonzero(quota):
        (own,) = np.nonzero(part == one)
        order = own[np.argsort(gains[own], kind="stable")]
        reached = np.searchsorted(np.cumsum(counts[order]), quota[one])
        if len(order):
            limits[one] = gains[order[min(reached, len(order) - 1)]]
    return limits


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """Rows that moved: how much better they fit, where from, where to, how often they count."""

    gains: Array
    came_from: IndexArray
    to: IndexArray
    counts: IndexArray

    def merge(self, other: "_Moves") -> "_Moves":
        names = self.__slots__
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        return _Moves(*map(np.concatenate, pairs))


# ---- what is done in each block --------------------------------------------------------------


def add_up(
    Z: Array, labels: Labels, counts: Labels | None, *, n_leaves: int
) -> tuple[IndexArray, Array]:
    """Return the copies in each leaf, and their sums."""
    sizes = count_copies(labels, counts, n_labels=n_leaves)
    return sizes, native.label_sums(Z, labels, n_leaves, counts)


def _best_leaf(
    Z: Array, counts: Labels | None, *, weights: Array, offsets: Array
) -> tuple[Labels, tuple[IndexArray, Array]]:
    rows = as_rows(Z, center=np.zeros(Z.shape[1]))
    labels = best_scores(rows, weights, offsets).astype(np.int32)
    if counts is not None:
        labels[counts == 0] = -1
    return labels, add_up(Z, labels, counts, n_leaves=len(weights))


def relabel(labels: Labels, *, place: Labels) -> tuple[Labels, None]:
    """Give labels other numbers; those below zero stay."""
    return np.where(labels < 0, labels, place[labels]).astype(np.int32), None


def count_stayed(
    before: Labels, after: Labels, counts: Labels | None, *, n_leaves: int
) -> IndexArray:
    """Count the copies of each leaf that were in the leaf of the same position before."""
    return count_copies(np.where(before == after, after, -1), counts, n_labels=n_leaves)


def _gain(Z: Array, at: IndexArray, to: Labels, came_from: Labels, model: Any) -> Array:
    """Return how much better some rows fit a leaf than another."""
    if not len(at):
        return np.zeros(0)
    rows = as_rows(np.ascontiguousarray(Z[at]), center=np.zeros(Z.shape[1]))
    scores = rows.scores(model["weights"]) + model["offsets"]
    place = np.arange(len(at))
    found: Array = (scores[place, to[at]] - scores[place, came_from[at]]).astype(np.float64)
    return found


def _gains(
    Z: Array,
    grown: Labels,
    labels: Labels,
    counts: Labels | None,
    *,
    over: NDArray[np.bool_],
    under: NDArray[np.bool_],
    **model: Any,
) -> _Moves:
    """Return the rows that moved to a leaf that is too large, or from one too small."""
    concerned = (labels != grown) & (labels >= 0)
    at = np.flatnonzero(concerned & (over[labels] | under[grown]))
    own = np.ones(len(at), dtype=np.int64) if counts is None else counts[at].astype(np.int64)
    gains = _gain(Z, at, labels, grown, model)
    return _Moves(gains, grown[at].astype(np.intp), labels[at].astype(np.intp), own)


def _sent_back(
    Z: Array,
    grown: Labels,
    labels: Labels,
    counts: Labels | None,
    *,
    above: Array,
    below: Array,
    **model: Any,
) -> tuple[Labels, tuple[IndexArray, Array]]:
    limit = np.maximum(above[labels], below[grown])
    at = np.flatnonzero((labels != grown) & (labels >= 0) & (limit > -np.inf))
    back = at[_gain(Z, at, labels, grown, model) <= limit[at]]
    labels = labels.copy()
    labels[back] = grown[back]
    return labels, add_up(Z, labels, counts, n_leaves=len(above))
