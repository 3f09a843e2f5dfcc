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
from scipy.sparse import csr_array

from taxarbor._types import Array, IndexArray
from taxarbor.refine._coordinates import LIFT, Coordinates
from taxarbor.rows._base import best_scores

STEPS = 2
"""Rounds of moves. Most rows that ever move do so in the first; a third adds nothing."""

SHRINKAGE = 1.0
"""The ridge, as a share of the mean variance within leaves: halfway from the metric of the data
to that of the plain distance."""

LEAST = 1e3
"""The least ridge, in roundings of the variance of all rows, beside one in double precision per
row: where leaves are single points, what is left of it within them is rounding."""

ROWS = 65536
"""Rows that are held in double precision at a time."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafModel:
    """Linear scores of the leaves, and how they were found.

    Attributes
    ----------
    weights, offsets : arrays of shape (n_leaves, n_coordinates) and (n_leaves,)
        A row goes to the leaf of the highest ``weights @ x + offsets``.
    trace : list of float
        ``log det S`` before each round of moves, of which the last is yet to come.
    """

    weights: Array
    offsets: Array
    trace: list[float]


def fit_leaves(
    coordinates: Coordinates,
    labels: IndexArray,
    n_leaves: int,
    *,
    n_steps: int = STEPS,
    shrinkage: float = SHRINKAGE,
) -> LeafModel:
    """Let the leaves compete for the rows.

    Parameters
    ----------
    coordinates : Coordinates
        The rows.
    labels : int array of shape (n_rows,)
        The leaf of each row; none is empty.
    n_leaves : int
        Number of leaves.
    n_steps : int
        Rounds of moves.
    shrinkage : float
        The ridge, as a share of the mean variance within leaves.

    Returns
    -------
    LeafModel
        Of the last round, or of the one before a leaf would have lost its last row.
    """
    rows = coordinates.about_origin
    n, size = rows.n_rows, rows.n_features - 1
    total = rows.gram(np.arange(n, dtype=np.intp), np.arange(size, dtype=np.intp)) / n
    ridge = 0.0
    trace: list[float] = []
    for step in range(n_steps):
        counts = np.bincount(labels, minlength=n_leaves)
        means = _means(coordinates.values[:, :-1], labels, counts)
        within = total - (means.T * (counts / n)) @ means
        if not trace:
            rounding = LEAST * float(np.finfo(rows.dtype).eps) + n * float(np.finfo(float).eps)
            least = rounding * float(np.trace(total))
            ridge = max(shrinkage * float(np.trace(within)) / size, least)
        within[np.diag_indices(size)] += ridge
        factor = cho_factor(within)
        trace.append(2.0 * float(np.log(np.diag(factor[0])).sum()))
        weights = cho_solve(factor, means.T).T
        offsets = -0.5 * np.einsum("kq,kq->k", weights, means)
        if step == n_steps - 1:
            break  # the moves by this model are the caller's
        moved = best_scores(rows, np.column_stack([weights, offsets / LIFT]))
        if not np.bincount(moved, minlength=n_leaves).all() or (moved == labels).all():
            break
        labels = moved
    return LeafModel(weights, offsets, trace)


def _means(Z: Array, labels: IndexArray, counts: IndexArray) -> Array:
    """Return the mean of each leaf's rows, summed in the order of the rows, some at a time."""
    sums = np.zeros((len(counts), Z.shape[1]))
    for first in range(0, len(Z), ROWS):
        own = labels[first : first + ROWS]
        starts = np.arange(len(own) + 1)
        member = csr_array((np.ones(len(own)), own, starts), shape=(len(own), len(counts)))
        sums += np.asarray(member.T @ Z[first : first + ROWS].astype(np.float64), np.float64)
    return sums / counts[:, None]
