"""Rows that are far from every group: how far, and from where on they are noise.

The score of a row is its least distance from the mean of a leaf, in units of how far that
leaf's own rows are from it on average: one is usual. Leaves of few rows say little of what is
usual, so their unit is drawn towards that of all rows; the smallest may be noise themselves,
and are no groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.rows import Rows, as_rows
from taxarbor.rows._base import best_scores

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

FEW = 5
"""Rows of the usual distance that each leaf has beside its own."""

SMALL = 0.1
"""A leaf with a smaller part of an average leaf's rows is no group."""

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
                array.setflags(write=False)
                object.__setattr__(self, name, array)
        shape, width = self.centers.shape, self.centers.shape[-1:]
        is_whole = len(shape) == 2 and self.units.shape == shape[:1] and shape[0] > 0
        if not is_whole or (self.scale is not None and self.scale.shape != width):
            raise ValueError("centers, units and scale of what is usual do not fit together")
        if not (self.units > 0.0).all() or not self.limit > 0.0:
            raise ValueError("units and limit of what is usual must be positive")

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
    noise: float = 0.0,
) -> tuple[Array, Usual | None, NDArray[np.bool_]]:
    """Return the score of each row; what is usual, where there is noise; and which rows are.

    Parameters
    ----------
    tree : Hierarchy
        A tree of all rows, with means.
    rows : Rows
        The rows.
    run : Run
        Where to run.
    counts, weights : arrays, optional
        How often each row was seen in the fit, and what it counts for beside others as noise.
    noise : float
        Share of the rows, by weight, that may be noise; of equally far ones all or none are.
    """
    assert tree.means is not None
    own = [tree.rows(leaf) for leaf in tree.leaves]
    sizes = np.array([len(some) if counts is None else counts[some].sum() for some in own])
    groups = np.flatnonzero(sizes >= SMALL * sizes.mean()).tolist()
    own, centers = [own[group] for group in groups], tree.means[tree.leaves[groups]]
    places = list(range(len(own)))
    away = [*run.each(lambda group: _distances(rows, own[group], centers[group]), places)]
    units = _units(away, None if counts is None else [counts[some] for some in own])
    bound: Array = np.full(rows.n_rows, np.inf)
    for some, distances, unit in zip(own, away, units, strict=True):
        bound[some] = distances / unit
    share = np.ones(rows.n_rows) if weights is None else weights / weights.max()
    last, found = 0.0, bound
    for least in FAR:
        found = _least(bound, rows, centers, units, least)
        if not noise:
            return found, None, np.zeros(rows.n_rows, dtype=bool)
        ranked = np.argsort(-found, kind="stable")
        sums = np.cumsum(share[ranked])
        n_noise = int(np.searchsorted(sums, noise * sums[-1] * (1.0 + 1e-9), side="right"))
        last = float(found[ranked[n_noise]])
        if last > least:
            break
    is_noise = found > last
    if not is_noise.any():
        return found, None, is_noise
    # Halfway, so that rounding decides nothing.
    limit = (last + float(found[is_noise].min())) / 2
    return found, Usual(centers, units, limit), is_noise


def _divided(X: Any, scale: Array) -> Any:
    """Return rows with their columns divided, in float64."""
    if not sparse.issparse(X):
        return X / scale
    matrix: Any = X
    parts = matrix.data / scale[matrix.indices], matrix.indices, matrix.indptr
    return sparse.csr_array(parts, shape=matrix.shape)


def _units(away: Sequence[Array], counts: Sequence[IndexArray] | None) -> Array:
    """Return how far rows are from the mean of their leaf on average, see the module."""
    if counts is None:
        sums = np.array([distances.sum() for distances in away])
        sizes = np.array([len(distances) for distances in away])
    else:
        pairs = zip(away, counts, strict=True)
        sums = np.array([(distances * count).sum() for distances, count in pairs])
        sizes = np.array([count.sum() for count in counts])
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
