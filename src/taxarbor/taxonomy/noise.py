"""Rows that are far from every cluster: how far, and from where on they are noise.

The score of a row is its least distance from the mean of a cluster, in units of how far that
cluster's own rows are from it on average: a score of 1 is typical. Units of small clusters are
shrunk towards that of all rows; the smallest may be noise themselves, and are left out.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray, Matrix, set_frozen
from taxarbor.rows import CELLS_PER_BLOCK, as_rows
from taxarbor.tree.route_rows import sum_by_label

PRIOR_ROWS = 5
"""Rows of the usual distance that each cluster has beside its own."""

MIN_SHARE = 0.1
"""A leaf with a smaller part of an average leaf's rows is left out."""

MAX_OWN_SCORE = 3.0
"""A row is compared with other clusters than its own if its score there is above this. Other
clusters are rarely nearer."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoiseModel:
    """Cluster means, typical distances to them, and the noise threshold.

    Attributes
    ----------
    centers : float64 array of shape (n_centers, n_features)
        The means of the clusters of the fit, also once a tree is pruned.
    units : float64 array of shape (n_centers,)
        How far their rows are from there on average.
    limit : float
        Rows with a higher score are noise.
    scale : float64 array of shape (n_features,) or None
        What differences are divided by before distances are taken, None for nothing.
    """

    centers: Array
    units: Array
    limit: float = np.inf
    scale: Array | None = None

    def __post_init__(self) -> None:
        for name in ("centers", "units", "scale"):
            if (given := getattr(self, name)) is not None:
                set_frozen(self, **{name: np.array(given, dtype=np.float64)})
        shape, scale = self.centers.shape, self.scale
        is_whole = len(shape) == 2 and self.units.shape == shape[:1] and shape[0] > 0
        if not is_whole or (scale is not None and scale.shape != shape[1:]):
            raise ValueError("centers, units and scale of a NoiseModel do not fit together")
        least = np.finfo(np.float64).tiny  # the inverse of smaller numbers is infinite
        for values in (self.units, self.limit, 1.0 if scale is None else scale):
            if not np.all(np.asarray(values) >= least):
                raise ValueError("units, limit and scale of a NoiseModel must be positive")
        parts = (self.centers, self.units, 1.0 if scale is None else scale)
        if not all(np.isfinite(part).all() for part in parts):
            raise ValueError("centers, units and scale of a NoiseModel must be finite")

    def score_rows(
        self, X: Matrix, fill: Array | None, nearest: NDArray[np.int32], *, n_threads: int = 1
    ) -> Array:
        """Return the score of each row, by its own cluster up to ``MAX_OWN_SCORE``.

        ``nearest`` is the cluster of each row, by its position in ``centers``, -1 for none.
        """
        scores = self._distances(X, fill, nearest, n_threads)
        scores /= np.append(self.units, 1.0)[nearest]
        (far,) = np.nonzero(scores > min(MAX_OWN_SCORE, self.limit))
        scores[far] = np.minimum(scores[far], self._least_scores(X, fill, far, n_threads))
        return scores

    def find_noise(
        self, X: Matrix, fill: Array | None, *, n_threads: int = 1
    ) -> NDArray[np.bool_]:
        """Return which rows are farther from every cluster than the limit."""
        scores = self._least_scores(X, fill, np.arange(X.shape[0]), n_threads)
        return np.asarray(scores > self.limit)

    def _least_scores(
        self, X: Matrix, fill: Array | None, some: IndexArray, n_threads: int
    ) -> Array:
        """Return the least score of some rows over all clusters."""
        least = np.full(len(some), np.inf)
        step = max(CELLS_PER_BLOCK // max(X.shape[1], 1), 256)
        for first in range(0, len(some), step):
            own = some[first : first + step]
            rows, scores = X[own], least[first : first + step]
            for center, unit in enumerate(self.units):
                label = np.full(len(own), center, dtype=np.int32)
                distances = self._distances(rows, fill, label, n_threads)
                np.minimum(scores, distances / unit, out=scores)
        return least

    def _distances(
        self, X: Matrix, fill: Array | None, labels: NDArray[np.int32], n_threads: int
    ) -> Array:
        width = X.shape[1]
        factors = np.ones(width) if self.scale is None else 1.0 / self.scale
        rows = as_rows(X, center=np.zeros(width), n_threads=n_threads)
        filling = np.zeros(width) if fill is None else fill
        return rows.distances(labels, self.centers, factors, filling)


@final
@dataclass(frozen=True, slots=True, eq=False)
class OutlierScorer:
    """The noise model of a fit, with the center of each leaf of its tree, -1 for none."""

    model: NoiseModel
    center_of: NDArray[np.int32]

    def score_rows(
        self, X: Matrix, fill: Array | None, labels: IndexArray, *, n_threads: int = 1
    ) -> Array:
        """Return the outlier scores of rows, given the positions of their leaves."""
        nearest = np.append(self.center_of, np.int32(-1))[labels]  # noise, -1, has none
        return self.model.score_rows(X, fill, nearest, n_threads=n_threads)


def fit_noise_model(
    X: Matrix,
    labels: IndexArray,
    n_leaves: int,
    *,
    counts: IndexArray | None = None,
    counts_for_noise: IndexArray | None = None,
    scale: Array | None = None,
    noise: float = 0.0,
) -> OutlierScorer:
    """Return how far the rows of a sample usually are from the means of their leaves.

    The rows have no missing values; ``labels`` are the positions of their leaves, ``counts``
    how often each counts, and ``counts_for_noise`` the same in the share of noise, where
    outliers count, too. Differences are divided by ``scale``. The share ``noise`` of the rows
    is beyond the limit; duplicates all are or none is.
    """
    counts = np.ones(len(labels), dtype=np.intp) if counts is None else counts
    sizes = np.bincount(labels, counts, minlength=n_leaves)
    counts = np.where((sizes == 0)[labels], 1, counts)  # a leaf of no rows counts whole
    sizes = np.bincount(labels, counts, minlength=n_leaves)
    groups = np.flatnonzero(sizes >= MIN_SHARE * sizes.mean())
    center_of = np.full(n_leaves, -1, dtype=np.int32)
    center_of[groups] = np.arange(len(groups))
    centers = (sum_by_label(X, labels, n_leaves, counts) / sizes[:, None])[groups]
    model = NoiseModel(centers, np.ones(len(groups)), scale=scale)
    nearest = center_of[labels]
    away = model._distances(X, None, nearest, 1)
    own = nearest >= 0
    sums = np.bincount(nearest[own], away[own] * counts[own], minlength=len(groups))
    usual = float(sums.sum() / sizes[groups].sum())
    if usual > 0.0:
        units = (sums + PRIOR_ROWS * usual) / (sizes[groups] + PRIOR_ROWS)
        model = replace(model, units=units)
    if noise:
        scores = model._least_scores(X, None, np.arange(len(labels)), 1)
        rows = np.ones(len(labels)) if counts_for_noise is None else counts_for_noise
        model = replace(model, limit=_limit(scores, rows.astype(np.float64), noise))
    return OutlierScorer(model, center_of)


def _limit(scores: Array, weights: Array, noise: float) -> float:
    """Return the score that this share of the rows exceeds at most, halfway to the next one."""
    order = np.argsort(scores, kind="stable")
    ranked, above = scores[order], weights.sum() - np.cumsum(weights[order])
    fits = np.flatnonzero(above <= noise * weights.sum())
    last = ranked[fits[0]]  # rows with higher scores may be noise
    higher = ranked[ranked > last]
    return float((last + higher[0]) / 2.0) if len(higher) and last + higher[0] > 0 else np.inf
