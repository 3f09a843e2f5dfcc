"""Rows that would spoil a tree: far from all others, and alone.

Nine rows in ten lie within the *usual distance* of the middle. A row is an outlier if it lies
several times as far away, with fewer than a handful of neighbours. Small distant groups are
kept; of a long tail only the last rows are outliers. In return, noise so dense that its rows
have neighbours passes for a tail: many far values in one and the same column.
Whether a row is an outlier depends on its own values and on samples of the others, so that
duplicates are treated alike.
"""

import numpy as np
from scipy.sparse import issparse

from taxarbor._fit_context import node_seed
from taxarbor._types import Array, IndexArray, Mask, Matrix
from taxarbor.clusters._coordinates import draw_positions
from taxarbor.rows import as_rows

MIDDLE_ROWS, MAX_MOVES = 250, 50  # rows that the middle is found from, and most moves to it
USUAL_SHARE = 0.9  # of the rows: within the usual distance, and never outliers

MIN_FAR = 4.0
"""Usual distances beyond which a row may be an outlier. With 3, a few long texts and rare
categories are lost; with 6, outliers at 10 times the spread cost 7 points of ARI, here one."""

RADIUS_SHARE, MAX_RADIUS = 0.5, 10.0
"""The radius within which others count as neighbours: a share of a row's distance, but at most
MAX_RADIUS usual distances. With 5 small groups lose rows if they are looser than large ones."""

MIN_NEIGHBORS, ROWS_PER_NEIGHBOR = 5, 10_000
"""With this many neighbours a row is not alone; of many rows, one per ROWS_PER_NEIGHBOR."""

REFERENCE_ROWS = 1000  # far rows that all far rows are compared with; of more, a sample
ROUNDING = 1e-6  # share of a row's distance below which others count as equal to it

ROWS_AT_ONCE, CELLS_AT_ONCE = 4000, 1 << 22  # far rows at a time, and cells of the reference


def find_outliers(X: Matrix, seed: int, copies_per_row: float = 1.0) -> Mask | None:
    """Return which rows are far and alone, one in ten at most; None if none is.

    ``copies_per_row`` is the average number of copies of a row: they are not its neighbours.
    """
    n = X.shape[0]
    middle = _robust_mean(X[draw_positions(n, MIDDLE_ROWS, node_seed(seed, ()))])
    distances = np.sqrt(as_rows(X, center=middle).norms())
    usual = np.quantile(distances, USUAL_SHARE, method="inverted_cdf")
    if distances.min() == usual < distances.max():  # most are equal: the quantile of others
        farther = distances[distances > usual]
        usual = np.quantile(farther, USUAL_SHARE, method="inverted_cdf")
    (candidates,) = np.nonzero(distances > MIN_FAR * usual)
    if not len(candidates):
        return None
    # A neighbour of a far row is not much closer to the middle.
    (pool,) = np.nonzero(distances > (1.0 - RADIUS_SHARE) * MIN_FAR * usual)
    reference = pool[draw_positions(len(pool), REFERENCE_ROWS, node_seed(seed, (1,)))]
    others = X[reference]
    n_needed = max(MIN_NEIGHBORS * copies_per_row, n // ROWS_PER_NEIGHBOR)
    n_needed = max(round(n_needed * len(reference) / len(pool)), 1)
    is_outlier = np.zeros(n, dtype=bool)
    for begin in range(0, len(candidates), ROWS_AT_ONCE):
        some = candidates[begin : begin + ROWS_AT_ONCE]
        away = distances[some]
        around = np.clip(MAX_RADIUS * usual, ROUNDING * away, RADIUS_SHARE * away)
        n_around, n_equal = _count_within(X[some], others, middle, around, ROUNDING * away)
        # If the reference holds an equal row, one of these is the row itself.
        is_outlier[some] = n_around - (n_equal > 0) < n_needed
    return is_outlier if is_outlier.any() else None


def _robust_mean(X: Matrix) -> Array:
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


def _count_within(
    X: Matrix, others: Matrix, middle: Array, *within: Array
) -> tuple[IndexArray, ...]:
    """Count, for each row, the others that are no farther from it than each distance."""
    rows = as_rows(X.astype(np.float64), center=middle)
    norms = rows.norms()[:, None]
    counts = np.zeros((len(within), rows.n_rows), dtype=np.intp)
    step = max(CELLS_AT_ONCE // rows.n_features, 1)
    for first in range(0, others.shape[0], step):
        part = others[first : first + step]
        dense = (part.toarray() if issparse(part) else part) - middle
        with np.errstate(over="ignore", invalid="ignore"):  # the infinitely far are alone
            squares = norms - 2.0 * rows.scores(dense) + np.einsum("ij,ij->i", dense, dense)
            for turn, distance in enumerate(within):
                counts[turn] += np.count_nonzero(squares <= distance[:, None] ** 2, axis=1)
    return tuple(counts)
