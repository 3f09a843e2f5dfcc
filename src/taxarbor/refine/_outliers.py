"""Rows that would spoil a tree: far from all others, and alone.

Nine rows in ten lie within the *usual distance* of the middle. A row is an outlier if it lies
several times as far away, with fewer than a handful of others around it. So a group stays,
however far and small, and a tail, however long, loses but its last rows. In return, noise so
dense that its rows have company passes for a tail: many far values in one and the same column.

The middle is that of a sample, and of many far rows a sample stands for all. What is said of a
row depends on these samples and on its own values alone, so that equal rows share their lot.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.rows import as_rows
from taxarbor.rows._memory import seen_from
from taxarbor.sweep import Blocks, Column
from taxarbor.sweep._copies import Drawn, draw, limits
from taxarbor.sweep._select import Extremes, blocks_above, extremes, share_of, total

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

REFERENCE = 1000
"""Far rows that all far rows are compared with; of more, those with the lowest hashes."""

SPARE = 8
"""Roots of a number by which more are drawn, so that there are hardly ever fewer."""

ROUNDING = 1e-6
"""Share of a row's distance below which others count as equal to it."""

AT_ONCE, CELLS = 4000, 1 << 22
"""Rows that are compared with the reference at a time, and cells of those they are."""

Counts = NDArray[np.int32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outliers:
    """Which rows are outliers, and where the others are.

    Attributes
    ----------
    counts : Column or None
        How often each row counts now, int32: outliers do not. None if there are none.
    middle : array of shape (n_features,), float64
        A robust mean of the rows.
    reach : float
        The largest distance from there of a row that counts.
    """

    counts: Column | None
    middle: Array
    reach: float


def find_outliers(
    blocks: Blocks, counts: Column | None, first: Column, seed: int, some: Any
) -> Outliers:
    """Find rows that are far and alone, one in ten at most.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    counts : Column or None
        How often each counts, an int32 per row; None, or an entry of None, for once.
    first : Column
        The number of the first copy in each block.
    seed : int
        Of the samples.
    some : array or CSR matrix
        Rows that were drawn before, from which the middle is found.
    """
    engine, data = blocks.engine, blocks.data
    own: Column = [None] * len(data) if counts is None else counts
    middle = _middle(some)
    distances, found = engine.keep(_distances, data, own, middle=middle)
    reach = float(found["ends"].high)
    usual = share_of(engine, distances, own, USUAL)
    if found["ends"].low == usual < reach:  # most are equal: what is usual of the others
        usual = share_of(engine, distances, own, USUAL, above=usual)
    left = None
    if reach > FAR * usual:
        left = _left(blocks, distances, own, first, _Far(middle, usual, found["n"], seed))
    if left is not None:
        reach = float(extremes(engine, distances, left).high)
    return Outliers(left, middle, reach)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Far:
    """From where and in which units distances are seen, of how many copies; and a seed."""

    middle: Array
    usual: float
    n: int
    seed: int


def _left(
    blocks: Blocks, distances: Column, counts: Column, first: Column, far: _Far
) -> Column | None:
    """Return how often rows count, those that are far and alone not at all; None if none is."""
    engine, data = blocks.engine, blocks.data
    # Whoever is around a far row is not much closer to the middle than that row.
    bound = (1.0 - AROUND) * FAR * far.usual
    n_pool = total(engine, distances, counts, above=bound)
    pool = engine.lazy(_pooled, distances, bound=bound)
    keys = np.array([node_seed(far.seed, (1,))], dtype=np.uint64)
    bounds = limits(np.array([n_pool]), REFERENCE + SPARE * math.isqrt(REFERENCE))
    drawn: Drawn = engine.sweep(draw, data, pool, counts, first, keys=keys, bounds=bounds)
    others = drawn.stacked()[drawn.lowest(REFERENCE)[0]]
    company = max(COMPANY, far.n // ONE_IN) * others.shape[0] / n_pool
    how = {"others": others, "company": max(round(company), 1), "far": far}
    # Blocks where nobody is far are not read again.
    there = blocks_above(engine, distances, FAR * far.usual)
    told = ([column[block] for block in there] for column in (data, distances, counts))
    changed, n_lost = engine.keep(_without_lonely, *told, **how)
    if not n_lost:
        return None
    left = [*engine.keep(_as_counts, counts, blocks.sizes.tolist())[0]]
    for block, entry in zip(there, changed, strict=True):
        left[block] = entry
    return left


def _as_counts(counts: Counts | None, size: int) -> tuple[Counts, None]:
    return np.ones(size, dtype=np.int32) if counts is None else counts, None


def _middle(some: Any) -> Array:
    """Return Huber's robust mean of some rows, to a fraction of their distances from it."""
    few = as_rows(some)
    for _ in range(MOVES):
        distances = np.sqrt(few.norms())
        typical = np.median(distances)
        if typical == 0.0:
            break
        weights = typical / np.maximum(distances, typical)
        move = few.adjoint(weights[:, None].astype(few.dtype))[0] / weights.sum()
        few = as_rows(some, center=few.center + move)
        if np.linalg.norm(move) < 0.1 * typical:
            break
    return few.center


def _distances(X: Any, counts: Counts | None, middle: Array) -> tuple[Array, dict[str, Any]]:
    """Return how far each row is from the middle; of those that count, extremes and copies."""
    found = np.sqrt(seen_from(X, middle).norms())
    if counts is None:
        return found, {"ends": Extremes.of(found), "n": len(found)}
    n = int(counts.sum(dtype=np.int64))
    return found, {"ends": Extremes.of(found[counts > 0]), "n": n}


def _pooled(distances: Array, bound: float) -> NDArray[np.int32]:
    """Return 0 for rows beyond a distance, -1 for others."""
    return (distances > bound).astype(np.int32) - np.int32(1)


def _without_lonely(
    X: Any, distances: Array, counts: Counts | None, *, others: Any, company: int, far: _Far
) -> tuple[Counts, int]:
    """Return how often rows count, but for those that are far and alone; and how many are."""
    left = np.ones(len(distances), dtype=np.int32) if counts is None else counts.copy()
    (candidates,) = np.nonzero((distances > FAR * far.usual) & (left > 0))
    for begin in range(0, len(candidates), AT_ONCE):
        some = candidates[begin : begin + AT_ONCE]
        away = distances[some]
        around = np.clip(WIDEST * far.usual, ROUNDING * away, AROUND * away)
        n_around, n_equal = _counted(X[some], others, far.middle, (around, ROUNDING * away))
        # If others hold equal rows, one of these is the row itself.
        left[some[n_around - (n_equal > 0) < company]] = 0
    return left, int(np.count_nonzero(left[candidates] == 0))


def _counted(
    X: Any, others: Any, middle: Array, within: Sequence[Array]
) -> tuple[IndexArray, ...]:
    """Count, of some rows, the others that are no farther from them than this.

    In float64, and by sweeps in which what comes of a row depends on that row alone.
    """
    rows = as_rows(X.astype(np.float64), center=middle)
    norms, p = rows.norms()[:, None], rows.n_features
    found = np.zeros((len(within), rows.n_rows), dtype=np.intp)
    step = max(CELLS // p, 1)
    for first in range(0, others.shape[0], step):
        part: Any = others[first : first + step]
        seen = (part.toarray() if hasattr(part, "toarray") else part) - middle
        with np.errstate(over="ignore", invalid="ignore"):  # the infinitely far are alone
            squares = norms - 2.0 * rows.scores(seen) + np.einsum("ij,ij->i", seen, seen)
            for turn, distance in enumerate(within):
                found[turn] += np.count_nonzero(squares <= distance[:, None] ** 2, axis=1)
    return tuple(found)
