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

PRIOR_ROWS = 5  # rows of the usual distance that each cluster has beside its own
MIN_SHARE = 0.1  # a leaf with a smaller part of an average leaf's rows is left out

MAX_OWN_SCORE = 3.0
"""A row is compared with other clusters than its own if its score there is above this. Other
clusters are rarely nearer."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoiseModel:
    """Cluster means, typical distances to them, and the noise threshold."""

    centers: Array  # (n_centers, n_features), means of the fit, also once a tree is pruned
    units: Array  # (n_centers,), how far their rows are from there on average
    scale: Array  # (n_features,), what differences are divided by
    limit: float = np.inf  # rows with a higher score are noise

    def __post_init__(self) -> None:
        for name in ("centers", "units", "scale"):
            set_frozen(self, **{name: np.array(getattr(self, name), dtype=np.float64)})
        shape, divisors = self.centers.shape, (self.units, self.scale)
        is_right = len(shape) == 2 and shape[0] > 0
        is_right = is_right and (self.units.shape, self.scale.shape) == (shape[:1], shape[1:])
        if not (is_right and all(np.isfinite(one).all() for one in (self.centers, *divisors))):
            raise ValueError("centers, units and scale must be finite, and fit together")
        least = np.finfo(np.float64).tiny  # the inverse of smaller numbers is infinite
        if not all(np.all(one >= least) for one in (*divisors, self.limit)):
            raise ValueError("units, scale and limit of a NoiseModel must be positive")

    def find_least_scores(self, X: Matrix, fill: Array | None, n_threads: int = 1) -> Array:
        """Return the least score of each row over all clusters."""
        least = np.full(X.shape[0], np.inf)
        step = max(CELLS_PER_BLOCK // max(X.shape[1], 1), 256)
        for first in range(0, X.shape[0], step):
            rows, scores = X[first : first + step], least[first : first + step]
            for center, unit in enumerate(self.units):
                label = np.full(len(scores), center, dtype=np.int32)
                distances = self.distances(rows, fill, label, n_threads)
                np.minimum(scores, distances / unit, out=scores)
        return least

    def distances(
        self, X: Matrix, fill: Array | None, labels: NDArray[np.int32], n_threads: int
    ) -> Array:
        """Return how far rows are from the centers of these numbers, infinity for -1."""
        origin = np.zeros(X.shape[1])
        rows = as_rows(X, center=origin, n_threads=n_threads)
        filling = origin if fill is None else fill
        return rows.distances(labels, self.centers, 1.0 / self.scale, filling)


@final
@dataclass(frozen=True, slots=True, eq=False)
class OutlierScorer:
    """The noise model of a fit, with the center of each leaf of its tree, -1 for none."""

    model: NoiseModel
    center_of: NDArray[np.int32]

    def score_rows(
        self, X: Matrix, fill: Array | None, labels: IndexArray, *, n_threads: int = 1
    ) -> Array:
        """Return the scores of rows, by their own leaves up to ``MAX_OWN_SCORE``."""
        nearest = np.append(self.center_of, np.int32(-1))[labels]  # noise, -1, has none
        scores = self.model.distances(X, fill, nearest, n_threads)
        scores /= np.append(self.model.units, 1.0)[nearest]
        (far,) = np.nonzero(scores > min(MAX_OWN_SCORE, self.model.limit))
        least = self.model.find_least_scores(X[far], fill, n_threads)
        scores[far] = np.minimum(scores[far], least)
        return scores


def fit_noise_model(
    X: Matrix,
    labels: IndexArray,
    n_leaves: int,
    *,
    scale: Array,
    counts: IndexArray | None = None,
    counts_for_noise: IndexArray | None = None,
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
    model = NoiseModel(centers, np.ones(len(groups)), scale)
    nearest = center_of[labels]
    away = model.distances(X, None, nearest, 1)
    own = nearest >= 0
    sums = np.bincount(nearest[own], away[own] * counts[own], minlength=len(groups))
    usual = float(sums.sum() / sizes[groups].sum())
    if usual > 0.0:
        units = (sums + PRIOR_ROWS * usual) / (sizes[groups] + PRIOR_ROWS)
        model = replace(model, units=units)
    if noise:
        scores = model.find_least_scores(X, None)
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
