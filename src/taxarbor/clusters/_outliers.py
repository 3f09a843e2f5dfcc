"""Rows that would spoil a tree: far from all others, and alone.

Nine rows in ten lie within the *usual distance* of the middle. A row is an outlier if it lies
several times as far away, with fewer than a handful of others around it. So a group stays,
however far and small, and a tail, however long, loses but its last rows. In return, noise so
dense that its rows have company passes for a tail: many far values in one and the same column.
Whether a row is an outlier depends on its own values and on samples of the others, so that
duplicates are treated alike.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.clusters._coordinates import draw_rows
from taxarbor.rows import as_rows

MIDDLE_ROWS, MAX_MOVES = 250, 50
"""Rows from which the middle is found, and the most moves that it takes."""

USUAL = 0.9
"""The share of the rows that lie within the usual distance, and are never outliers."""

FAR = 4.0
"""Usual distances beyond which a row may be an outlier. With 3, a few long texts and rare
categories are lost; with 6, outliers at 10 times the spread cost 7 points of ARI, here one."""

AROUND, WIDEST = 0.5, 10.0
"""How far around a row others are sought: a share of its distance, but at most so many usual
distances. With 5 of them small groups lose rows if they are looser than the large ones."""

MIN_COMPANY, ONE_IN = 5, 10_000
"""With so many others around it a row is not alone; of many rows, with one in so many."""

REFERENCE_ROWS = 1000
"""Far rows that all far rows are compared with; of more, a sample."""

ROUNDING = 1e-6
"""Share of a row's distance below which others count as equal to it."""

ROWS_AT_ONCE, CELLS_AT_ONCE = 4000, 1 << 22
"""Rows that are compared with the reference at a time, and cells of those they are."""


def find_outliers(X: Any, seed: int, copies_per_row: float = 1.0) -> NDArray[np.bool_] | None:
    """Return which rows are far and alone, one in ten at most; None if none is.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows.
    seed : int
        Of the samples.
    copies_per_row : float
        How many of the rows stand for one on average: they are no company for each other.
    """
    n = X.shape[0]
    middle = _robust_mean(X[draw_rows(n, MIDDLE_ROWS, node_seed(seed, ()))])
    distances = np.sqrt(as_rows(X, center=middle).norms())
    usual = _quantile(distances, USUAL)
    if distances.min() == usual < distances.max():  # most are equal: what is usual of others
        usual = _quantile(distances[distances > usual], USUAL)
    (candidates,) = np.nonzero(distances > FAR * usual)
    if not len(candidates):
        return None
    # Whatever is around a far row is not much closer to the middle than that row.
    (pool,) = np.nonzero(distances > (1.0 - AROUND) * FAR * usual)
    reference = pool[draw_rows(len(pool), REFERENCE_ROWS, node_seed(seed, (1,)))]
    company = max(MIN_COMPANY * copies_per_row, n // ONE_IN) * len(reference) / len(pool)
    found = np.zeros(n, dtype=bool)
    for begin in range(0, len(candidates), ROWS_AT_ONCE):
        some = candidates[begin : begin + ROWS_AT_ONCE]
        away = distances[some]
        around = np.clip(WIDEST * usual, ROUNDING * away, AROUND * away)
        n_around, n_equal = _count_within(
            X[some], X[reference], middle, around, ROUNDING * away
        )
        # If the reference holds an equal row, one of these is the row itself.
        found[some] = n_around - (n_equal > 0) < max(round(company), 1)
    return found if found.any() else None


def _quantile(values: Array, share: float) -> float:
    """Return the lowest value that at least this share of the values does not exceed."""
    at = max(int(np.ceil(share * len(values))) - 1, 0)
    return float(np.partition(values, at)[at])


def _robust_mean(X: Any) -> Array:
    """Return Huber's robust mean of some rows, to a fraction of their distances from it."""
    rows = as_rows(X)
    for _ in range(MAX_MOVES):
        distances = np.sqrt(rows.norms())
        typical = np.median(distances)
        if typical == 0.0:
            break
        weights = typical / np.maximum(distances, typical)
        move = rows.adjoint(weights[:, None].astype(rows.dtype))[0] / weights.sum()
        rows = as_rows(X, center=rows.center + move)
        if np.linalg.norm(move) < 0.1 * typical:
            break
    return rows.center


def _count_within(X: Any, others: Any, middle: Array, *within: Array) -> tuple[IndexArray, ...]:
    """Count, for each row, the others that are no farther from it than each distance."""
    rows = as_rows(X.astype(np.float64), center=middle)
    norms = rows.norms()[:, None]
    counts = np.zeros((len(within), rows.n_rows), dtype=np.intp)
    step = max(CELLS_AT_ONCE // rows.n_features, 1)
    for first in range(0, others.shape[0], step):
        part: Any = others[first : first + step]
        dense = (part if isinstance(part, np.ndarray) else part.toarray()) - middle
        with np.errstate(over="ignore", invalid="ignore"):  # the infinitely far are alone
            squares = norms - 2.0 * rows.scores(dense) + np.einsum("ij,ij->i", dense, dense)
            for turn, distance in enumerate(within):
                counts[turn] += np.count_nonzero(squares <= distance[:, None] ** 2, axis=1)
    return tuple(counts)
