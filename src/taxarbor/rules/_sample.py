"""The rows and features that rules are found on."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from taxarbor import native
from taxarbor._run import node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.clusters import Clusters, find_density
from taxarbor.rows._rows import Features
from taxarbor.rules._discriminant import SHRINKAGE, sort_falling
from taxarbor.tree._route_rows import sum_by_label

RULE_ROWS, MIN_LEAF_ROWS = 10_000, 50
"""Rows of the sample, the same number of each leaf; and the least number of each leaf."""

CHOICE_ROWS = 4000
"""Of these, the rows by which rules are compared."""

MAX_CANDIDATES = 1500
"""Features that are considered together; of more, those that separate most by themselves."""

PRICE = 0.0002
"""The share of left-out rows that a column must sort. Of rules within a standard error of the
best the one of fewest columns is chosen. With five times the price a row of the shared sets
meets 37 features instead of 54, and 0.7 of the adjusted mutual information is lost. In rows of
many columns, most of them zero, such as texts, a row meets only the words that it has."""

ROUNDING = 64.0
"""Roundings of a value up to which a feature counts as constant."""

SAMPLE_STREAM = 7
"""Distinguishes the hashes that draw the sample from others."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """How few features a rule should use."""

    novelty: float = 1.0  # how strongly columns of rules above a node are avoided
    max_features: int | None = None  # the most columns that a rule may use
    owner: IndexArray | None = None  # the column of each feature; None: each is one
    is_free: bool = False  # whether rules use all features, as none is readable
    # Whether features are divided by their deviations, as clusters were found elsewhere; not
    # those of texts and the like, in which rare words would count most.
    is_scaled: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class RuleSample:
    """Some rows of each leaf, in those features that may be used, about their mean."""

    values: Array  # (n_rows, n_candidates)
    labels: IndexArray  # the leaf of each row, from left to right; rows are sorted by it
    halves: IndexArray  # 0 or 1: rules of one half are tested on the other
    is_choosing: NDArray[np.bool_]  # the rows by which rules are compared
    weights: Array  # rows of its leaf per choosing row
    center: Array  # (n_features,)
    scale: Array  # (n_candidates,), by which values were divided
    features: IndexArray  # (n_candidates,), of all features
    columns: IndexArray  # (n_candidates,), the column of each, from 0 on
    rounding: Array  # (n_candidates,), the variance that rounding alone may add
    price: float  # of a column

    @property
    def n_columns(self) -> int:
        return int(self.columns[-1]) + 1 if len(self.columns) else 0

    def share(self, rows: IndexArray, is_right: NDArray[np.bool_]) -> float:
        """Return the weighted share of rows that are right."""
        weights = self.weights[rows]
        return float(weights @ is_right / weights.sum())


def draw_rule_sample(
    clusters: Clusters, X: Features, sparsity: Sparsity, seed: int
) -> RuleSample:
    """Draw the rows of lowest hash of each leaf, and choose the features that may be used."""
    labels, n_leaves = clusters.labels, clusters.tree.n_leaves
    hashes = native.hashes(node_seed(seed, (SAMPLE_STREAM,)), np.arange(len(labels)))
    order = np.lexsort((hashes, labels))
    rank = np.arange(len(order)) - np.searchsorted(labels[order], labels[order])
    is_drawn = rank < max(RULE_ROWS // n_leaves, MIN_LEAF_ROWS)
    drawn, rank = order[is_drawn], rank[is_drawn]
    drawn_labels = labels[drawn].astype(np.intp)
    counts = np.bincount(drawn_labels)
    # Of every two rows of a leaf one is in each half, and so of those that choose.
    is_choosing = rank // 2 % (1 + len(drawn) // CHOICE_ROWS) == 0
    rows_per_choosing = np.bincount(labels) / np.bincount(drawn_labels[is_choosing])
    rows = X[drawn]
    if issparse(rows):
        center, variances = (each.astype(float) for each in mean_variance_axis(rows, axis=0))
    else:
        center, variances = (each(rows, axis=0, dtype=float) for each in (np.mean, np.var))
    means = sum_by_label(rows, drawn_labels, n_leaves) / counts[:, None]
    between = counts @ (means - center) ** 2 / len(drawn)
    eps = float(np.finfo(X.dtype).eps)
    widest = 0.0 if sparsity.is_scaled else float(np.sqrt(variances.max()))
    features = _choose_candidates(variances, between, eps * (np.abs(center) + widest))
    density, scale = find_density(X), np.ones(len(features))
    if sparsity.is_scaled and density == 1.0:
        scale = np.sqrt(np.where(variances > 0.0, variances, 1.0))[features]
    if issparse(rows):
        values = rows[:, features].toarray()
    else:
        values = rows if len(features) == X.shape[1] else rows[:, features]
    values = (values - center[features].astype(X.dtype)) / scale.astype(X.dtype)
    rounding = (ROUNDING * np.abs(values).max(axis=0)) ** 2
    rounding *= eps**2
    owner = np.arange(X.shape[1]) if sparsity.owner is None else sparsity.owner
    return RuleSample(
        np.ascontiguousarray(values),
        drawn_labels,
        rank % 2,
        is_choosing,
        rows_per_choosing[drawn_labels],
        center,
        scale,
        features,
        np.unique(owner[features], return_inverse=True)[1],
        rounding,
        PRICE * density,
    )


def _choose_candidates(total: Array, between: Array, rounding: Array) -> IndexArray:
    """Return the features that vary, of many those that separate most by themselves."""
    varies = np.sqrt(total) > ROUNDING * rounding  # a constant varies by rounding
    features = np.flatnonzero(varies)
    if len(features) > MAX_CANDIDATES:
        within = np.maximum(total - between, 0.0)
        worth = between / (within + SHRINKAGE * within.mean() + 1e-300) * varies
        features = np.sort(sort_falling(worth)[:MAX_CANDIDATES])
    return features if len(features) else np.arange(1)
