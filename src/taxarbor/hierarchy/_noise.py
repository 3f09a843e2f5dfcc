"""Rows that are far from every group: how far, and from where on they are noise.

The score of a row is its least distance from the mean of a leaf, in units of how far that
leaf's own rows are from it on average: one is usual. Leaves of few rows say little of what is
usual, so their unit is drawn towards that of all rows; the smallest may be noise themselves,
and are no groups.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor import native
from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._checks import keep
from taxarbor.hierarchy._route import arranged
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.rows import Rows, as_rows
from taxarbor.rows._base import best_scores
from taxarbor.sweep import Column, Engine, LocalEngine
from taxarbor.sweep._copies import count_copies
from taxarbor.sweep._select import Extremes, blocks_above, extremes, top_of

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

FEW = 5
"""Rows of the usual distance that each leaf has beside its own."""

SMALL = 0.1
"""A leaf with a smaller part of an average leaf's rows is no group."""

GRID = 2.0**30
"""Weights that are not whole are rounded to this part of the greatest."""

FAR = (3.0, 1.0, 0.0)
"""A row is compared with other leaves than its own if its score there is above the first of
these, or a lower one, where noise begins below. Other leaves are rarely nearer."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """Where groups are, how far their rows usually are from there, and where noise begins.

    The groups are leaves of the fit, also once the tree is pruned. ``scale`` is what the
    columns are divided by before distances are taken, None for nothing.
    """

    centers: Array
    units: Array
    limit: float
    scale: Array | None = None

    def __post_init__(self) -> None:
        for name in ("centers", "units", "scale"):
            given = getattr(self, name)
            if given is not None:
                array = np.array(given)
                if array.dtype.kind != "f" or not np.isfinite(array).all():
                    raise ValueError(f"{name} of what is usual must be finite floats")
                keep(self, **{name: array})
        shape, width = self.centers.shape, self.centers.shape[-1:]
        is_whole = len(shape) == 2 and self.units.shape == shape[:1] and shape[0] > 0
        if not is_whole or (self.scale is not None and self.scale.shape != width):
            raise ValueError("centers, units and scale of what is usual do not fit together")
        if not (self.units > 0.0).all() or not 0.0 < self.limit < np.inf:
            raise ValueError("units and limit of what is usual must be positive and finite")

    def unscaled(self, shift: Array, factor: Array) -> "Usual":
        """Return the same of rows that are to be shifted and divided first."""
        centers = (self.centers * factor + shift).astype(self.centers.dtype)
        scale = factor if self.scale is None else self.scale * factor
        return replace(self, centers=centers, scale=np.asarray(scale, dtype=np.float64))

    def is_noise(self, X: Any, n_threads: int = 1) -> NDArray[np.bool_]:
        """Say of rows, an array or a CSR matrix, which are farther from all than the limit."""
        centers = self.centers
        if self.scale is not None:
            X, centers = _divided(X, self.scale), centers / self.scale
        if len(centers) == 1:
            rows = as_rows(X, center=centers[0], n_threads=n_threads)
            nearest = np.zeros(rows.n_rows, dtype=np.intp)
        else:
            rule = LinearRule.nearest(centers)
            rows = as_rows(X, center=rule.center, n_threads=n_threads)
            nearest = best_scores(rows, rule.weights, rule.offsets)
        own = [np.flatnonzero(nearest == group) for group in range(len(centers))]
        found = np.empty(rows.n_rows)
        for group, some in enumerate(own):
            found[some] = _distances(rows, some, centers[group]) / self.units[group]
        return _least(found, rows, centers, self.units, self.limit) > self.limit


def score_rows(
    tree: "Hierarchy",
    rows: Rows,
    run: Run,
    *,
    counts: IndexArray | None = None,
    weights: Array | None = None,
) -> Array:
    """Return how far rows in memory are from every group of their tree; see :func:`scored`."""
    engine, told = LocalEngine(run), ([rows], [tree.labels])
    own = None if counts is None else [counts.astype(np.int32)]
    given = None if weights is None else [weights]
    found = scored(tree, *told, engine, counts=own, weights=given)
    scores: Array = engine.gather(found.scores)[0]
    return scores


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """How far rows are from every group, and which are noise.

    Attributes
    ----------
    scores : Column
        The score of each row, float64.
    last : float
        Rows with a higher score are noise; infinite if none is.
    usual : Usual or None
        What is usual, if any row is noise.
    """

    scores: Column
    last: float = np.inf
    usual: Usual | None = None


def scored(
    tree: "Hierarchy",
    entries: Column,
    labels: Column,
    engine: Engine,
    *,
    counts: Column | None = None,
    weights: Column | None = None,
    noise: float = 0.0,
) -> Scored:
    """Return the score of each row; and what is usual, and which rows are noise, if any is.

    Two sweeps over the rows, of which the second spares blocks where none is far.

    Parameters
    ----------
    tree : Hierarchy
        A tree with means.
    entries : Column
        The rows: arrays, CSR matrices or Rows.
    labels : Column
        The position of each row's leaf among the leaves, -1 for none.
    engine : Engine
        Sweeps them.
    counts, weights : Column or None
        How often each row was seen in the fit, int32, and what it counts for beside others as
        noise; None for once, as is an entry of None, and for the same.
    noise : float
        Share of the rows, by weight, that may be noise; of equally far ones all or none are.
    """
    assert tree.means is not None
    own: Column = [None] * len(entries) if counts is None else counts
    sizes = engine.sweep(count_copies, labels, own, n_labels=tree.n_leaves)
    groups = np.flatnonzero(sizes >= SMALL * sizes.mean())
    group_of = np.full(tree.n_leaves, -1, dtype=np.int32)
    group_of[groups] = np.arange(len(groups))
    centers = tree.means[tree.leaves[groups]]
    how: Any = {"group_of": group_of, "centers": centers}
    away, limbs = engine.keep(_from_own, entries, labels, own, **how)
    units = _units(native.exact_values(limbs, False)[:, 0], sizes[groups])
    bounds, _ = engine.keep(_in_units, away, labels, group_of=group_of, units=units)
    shares = _shares(engine, weights) if noise else None
    last, found = 0.0, bounds
    for least in FAR:
        found = _nearest(engine, entries, bounds, centers=centers, units=units, least=least)
        if not noise:
            return Scored(found)
        last = top_of(engine, found, shares, noise)
        if last > least:
            break
    first = float(extremes(engine, found, None, above=last).low)
    if first == np.inf:
        return Scored(found)
    # Halfway, so that rounding decides nothing.
    return Scored(found, last, Usual(centers, units, (last + first) / 2))


def _from_own(
    entry: Any,
    labels: NDArray[np.integer[Any]],
    counts: NDArray[np.int32] | None,
    *,
    group_of: NDArray[np.int32],
    centers: Array,
) -> tuple[Array, NDArray[np.int64] | None]:
    """Return how far rows are from the mean of their group; and sums of that, which are exact.

    Rows of no group are infinitely far.
    """
    rows, own = rows_of(entry), np.where(labels < 0, np.int32(-1), group_of[labels])
    (there,) = np.nonzero(own >= 0)
    order = arranged(there, own[there], len(centers))
    stops = np.cumsum(np.bincount(own[there], minlength=len(centers)))
    away = np.full(len(own), np.inf)
    for group, some in enumerate(np.split(order, stops[:-1])):
        if len(some):
            away[some] = _distances(rows, some, centers[group])
    if not len(there):
        return away, None
    n_each = None if counts is None else counts[there]
    column = as_rows(away[there, None], center=np.zeros(1))
    return away, column.exact_sums(own[there], n_each, len(centers))


def _in_units(
    away: Array, labels: NDArray[np.integer[Any]], *, group_of: NDArray[np.int32], units: Array
) -> tuple[Array, None]:
    """Return distances in units of what is usual in the group."""
    own = np.where(labels < 0, -1, group_of[labels])
    return away / np.append(units, 1.0)[own], None


def _nearest(
    engine: Engine,
    entries: Column,
    bounds: Column,
    *,
    centers: Array,
    units: Array,
    least: float,
) -> Column:
    """Return scores, given those in the own groups; where all are low, nothing is read."""
    there = blocks_above(engine, bounds, least)
    found = [*bounds]
    if there:
        told = [[column[block] for block in there] for column in (entries, bounds)]
        how: Any = {"centers": centers, "units": units, "least": least}
        for block, entry in zip(there, engine.keep(_least_of, *told, **how)[0], strict=True):
            found[block] = entry
    return found


def _least_of(
    entry: Any, bounds: Array, *, centers: Array, units: Array, least: float
) -> tuple[Array, None]:
    return _least(bounds, rows_of(entry), centers, units, least), None


def _shares(engine: Engine, weights: Column | None) -> Column | None:
    """Return weights as whole numbers, whose sums are exact: as they are, or in small units."""
    if weights is None:
        return None
    most, n_broken = engine.sweep(_look_at, weights)
    unit = 1.0 if most.high <= GRID and not n_broken else float(most.high) / GRID
    return engine.keep(_in_whole, weights, unit=unit)[0]


def _look_at(weights: Array) -> tuple[Extremes, int]:
    """Return the extremes, and the number of weights that are not whole."""
    return Extremes.of(weights), int(np.count_nonzero(weights != np.floor(weights)))


def _in_whole(weights: Array, unit: float) -> tuple[NDArray[np.int64], None]:
    return np.rint(weights / unit).astype(np.int64), None


def _divided(X: Any, scale: Array) -> Any:
    """Return rows with their columns divided, in float64."""
    if not sparse.issparse(X):
        return X / scale
    matrix: Any = X
    parts = matrix.data / scale[matrix.indices], matrix.indices, matrix.indptr
    return sparse.csr_array(parts, shape=matrix.shape)


def _units(sums: Array, sizes: NDArray[np.int64]) -> Array:
    """Return how far rows are from the mean of their leaf on average, see the module."""
    usual = float(sums.sum() / sizes.sum())
    found: Array = (sums + FEW * usual) / (sizes + FEW)
    return found if usual > 0.0 else np.ones(len(sums))


def _distances(rows: Rows, some: IndexArray, center: Array) -> Array:
    found: Array = np.sqrt(np.maximum(rows.take(some, center=center).norms(), 0.0))
    return found


def _least(bound: Array, rows: Rows, centers: Array, units: Array, least: float) -> Array:
    """Return the least score of each row over all groups, of those whose own is higher."""
    found = bound.copy()
    (far,) = np.nonzero(bound > least)
    if len(far):
        for center, unit in zip(centers, units, strict=True):
            found[far] = np.minimum(found[far], _distances(rows, far, center) / unit)
    return found


def rows_of(entry: Any) -> Rows:
    """Return a block of a column, an array, a CSR matrix or rows, as rows about any centre."""
    rows: Rows = (
        as_rows(entry, center=np.zeros(entry.shape[1])) if hasattr(entry, "shape") else entry
    )
    return rows
