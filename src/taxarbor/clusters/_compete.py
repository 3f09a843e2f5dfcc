r"""All leaves at once: rows move to the leaf they fit best, wherever in the tree it is.

A split is final as the tree grows, so a row on the wrong side of an early one can never reach
the leaf it belongs to. When the tree is whole, the leaves compete for the rows directly. Each
is a mean, seen in the metric of the scatter within leaves:

    a row x goes to   argmin_k (x - m_k)' S^-1 (x - m_k),   S = S_within + ridge I.

Means and scatter follow the rows, in turn. Neither step raises ``log det S``, the total
objective: for a given S the moves lower ``trace(S^-1 S_within)``, and for given rows their own
scatter is the S that minimises ``log det S + trace(S^-1 (S_within + ridge I))``.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from taxarbor import native
from taxarbor._run import node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.clusters._coordinates import Coordinates, draw_rows

ROUNDS = 2
"""Rounds of moves. Most rows that ever move do so in the first; a third adds nothing."""

SHRINKAGE = 1.0
"""The ridge, as a share of the mean variance within leaves: halfway from the metric of the data
to that of the plain distance."""

MIN_RIDGE = 1e3
"""The least ridge, in roundings of the variance of all rows, plus one in double precision per
row: where leaves are single points, the scatter within them is rounding."""

SEED_STREAM = 11
"""Distinguishes the hashes that draw seeds from others."""

Labels = NDArray[np.int32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """The rows of some leaves.

    Attributes
    ----------
    labels : int32 array of shape (n_rows,)
        The leaf of each row.
    counts : int array of shape (n_leaves,)
        Rows in each leaf.
    means : array of shape (n_leaves, n_coordinates)
        Their mean coordinates.
    """

    labels: Labels
    counts: IndexArray
    means: Array

    @classmethod
    def of(cls, labels: Labels, n_leaves: int, coordinates: Coordinates) -> Self:
        """Count the rows of each leaf, and take their means; NaN for a leaf of no rows."""
        counts = np.bincount(labels, minlength=n_leaves)
        sums = native.label_sums(coordinates.values, labels, n_leaves)
        with np.errstate(invalid="ignore"):
            return cls(labels, counts, sums[:, :-1] / counts[:, None])

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.counts)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafModel:
    """Linear scores: a row goes to the leaf of the highest ``weights @ z + offsets``."""

    weights: Array  # (n_leaves, n_coordinates)
    offsets: Array  # (n_leaves,)


def seed_leaves(coordinates: Coordinates, n_seeds: int, seed: int) -> Leaves:
    """Return leaves about rows drawn at random, after a few rounds of k-means."""
    positions = draw_rows(coordinates.n_rows, n_seeds, node_seed(seed, (SEED_STREAM,)))
    means = coordinates.values[positions, :-1].astype(np.float64)
    for _ in range(ROUNDS + 1):
        offsets = -0.5 * np.einsum("kq,kq->k", means, means)
        labels = _assign(LeafModel(means, offsets), coordinates)
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)  # none is empty
        leaves = Leaves.of(labels, int(labels.max()) + 1, coordinates)
        means = leaves.means.astype(np.float64)
    return leaves


def _assign(model: LeafModel, coordinates: Coordinates) -> Labels:
    lifted = np.pad(model.weights, ((0, 0), (0, 1)))
    return coordinates.rows.best(lifted, model.offsets).astype(np.int32)


def compete(leaves: Leaves, coordinates: Coordinates) -> tuple[Leaves, LeafModel]:
    """Move each row to the leaf, of two at least, that it fits best.

    Also returns the model of the last round. A round that would empty a leaf is not made.
    """
    ridge = None
    for _ in range(ROUNDS):
        model, ridge = fit_leaves(leaves, coordinates, ridge)
        moved = Leaves.of(_assign(model, coordinates), leaves.n_leaves, coordinates)
        if not moved.counts.all():
            break
        leaves = moved
    return leaves, model


def fit_leaves(
    leaves: Leaves, coordinates: Coordinates, ridge: float | None = None
) -> tuple[LeafModel, float]:
    """Return the scores of leaves for the rows that they have, and the ridge.

    A ridge may be given, to stay the same over rounds.
    """
    total, n = coordinates.scatter, coordinates.n_rows
    size = len(total)
    means = leaves.means
    within = total - (means.T * (leaves.counts / n)) @ means
    if ridge is None:
        eps = MIN_RIDGE * float(np.finfo(np.float32).eps) + n * float(np.finfo(float).eps)
        least = max(eps * float(np.trace(total)), coordinates.unit**2)
        ridge = max(SHRINKAGE * float(np.trace(within)) / size, least)
    within[np.diag_indices(size)] += ridge
    weights = cho_solve(cho_factor(within), means.T).T
    offsets = -0.5 * np.einsum("kq,kq->k", weights, means)
    return LeafModel(weights, offsets), ridge
