"""Rows that would spoil a tree: far from all others, and alone.

Nine rows in ten lie within the *usual distance* of the middle. A row is an outlier if it lies
several times as far away, with fewer than a handful of others around it. So a group stays,
however far and small, and a tail, however long, loses but its last rows. In return, noise so
dense that its rows have company passes for a tail: many far values in one and the same column.
"""

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.rows import Rows

MIDDLE, MOVES = 250, 50
"""Rows from which the middle is found, and the most moves that it takes."""

USUAL = 0.9
"""The share of the rows that lie within the usual distance, and are never outliers."""

FAR = 4.0
"""Usual distances beyond which a row may be an outlier. With 3, a few long texts and rare
categories are lost; with 6, outliers at 10 times the spread cost 7 points of ARI, here one."""

AROUND, WIDEST = 0.5, 10.0
"""How far around a row others are sought: a share of its distance, but at most so many usual
distances. With 5 of them small groups lose rows if they are looser than the large ones."""

COMPANY, ONE_IN = 5, 10_000
"""With so many others around it a row is not alone; of many rows, with one in so many."""

AT_ONCE = 1000
"""Far rows that are compared with one another; of more, random parts of about this size."""

ROUNDING = 1e-6
"""Share of a row's distance below which others count as equal to it."""


def find_outliers(rows: Rows, seed: int) -> NDArray[np.bool_] | None:
    """Return which rows are far and alone, one in ten at most; None if there are none."""
    rng = np.random.default_rng(seed)
    seen = rows.take(np.arange(rows.n_rows), center=_middle(rows, rng))
    distances = np.sqrt(seen.norms())
    usual = _usual(distances)
    if distances.max() <= FAR * usual:
        return None
    # Whoever is around a far row is not much closer to the middle than that row.
    pool = np.flatnonzero(distances > (1.0 - AROUND) * FAR * usual)
    away = distances[pool]
    around = np.clip(WIDEST * usual, ROUNDING * away, AROUND * away)
    alone = _distance_of_company(seen, pool, rng) > around
    outliers = np.zeros(rows.n_rows, dtype=np.bool_)
    outliers[pool] = alone & (away > FAR * usual)
    return outliers if outliers.any() else None


def _middle(rows: Rows, rng: np.random.Generator) -> Array:
    """Return Huber's robust mean of some rows, to a fraction of their distances from it."""
    n = rows.n_rows
    some = (
        np.sort(rng.choice(n, MIDDLE, replace=False, shuffle=False))
        if n > MIDDLE
        else np.arange(n)
    )
    few = rows.take(some)
    for _ in range(MOVES):
        distances = np.sqrt(few.norms())
        typical = np.median(distances)
        if typical == 0.0:
            break
        weights = typical / np.maximum(distances, typical)
        move = few.adjoint(weights[:, None].astype(rows.dtype))[0] / weights.sum()
        few = rows.take(some, center=few.center + move)
        if np.linalg.norm(move) < 0.1 * typical:
            break
    return few.center


def _usual(distances: Array) -> float:
    """Return the distance within which most rows lie; or, if most are equal, most others."""
    usual = _quantile(distances)
    others = distances[distances > usual] if usual == distances.min() else distances
    return _quantile(others) if 0 < len(others) < len(distances) else usual


def _quantile(distances: Array) -> float:
    rank = int(USUAL * len(distances))
    return float(np.partition(distances, rank)[rank])


def _distance_of_company(rows: Rows, pool: IndexArray, rng: np.random.Generator) -> Array:
    """Return how far from each row of the pool the last one lies that makes it not alone."""
    company = max(COMPANY, rows.n_rows // ONE_IN)
    far = np.full(len(pool), np.inf)
    n_parts = -(-len(pool) // AT_ONCE)
    for part in np.array_split(rng.permutation(len(pool)), n_parts):
        share = max(round(company * len(part) / len(pool)), 1)
        if share < len(part):
            few = rows.take(pool[part], center=rows.center)
            with np.errstate(over="ignore"):  # what is infinitely far in float32 is alone
                far[part] = few.neighbors(share)[0][:, -1]
    return far
