r"""The rows that rules are sought on, and linear discriminants of some of their features.

With the means m_k of the clusters and S, the scatter within them plus a ridge, both in the
features of the rule, the scores are

    s_k(x) = m_k' S^-1 x - m_k' S^-1 m_k / 2.

The loss where clusters are near each other is measured by

    sum_kl n_k n_l / D_kl^2,    D_kl^2 = (m_k - m_l)' S^-1 (m_k - m_l).

Without column j each squared distance is less by (b_jk - b_jl)^2 / A_jj, with A = S^-1 and
b = A M', so to first order the sum grows by that over D_kl^4. Columns are removed from all of
them, those that are worth least first, so weak features that only work together are not missed.
The features of one column of a table, such as the values of a category, stay or go together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from taxarbor import native
from taxarbor._fit_context import node_seed
from taxarbor._types import Array, IndexArray, Mask, Matrix
from taxarbor.clusters import Clusters, find_density
from taxarbor.tree.route_rows import sum_by_label

RULE_ROWS, MIN_LEAF_ROWS = 10_000, 50
"""Rows of the sample, the same number of each leaf; and the least number of each leaf."""

CHOICE_ROWS = 4000  # of these, the rows by which rules are compared

MAX_CANDIDATES = 1500  # features considered together; of more, those that separate most alone

PRICE = 0.0002
"""The share of left-out rows that a column must sort. Of rules within a standard error of the
best the one of fewest columns is chosen. With five times the price a row of the shared sets
meets 37 features instead of 54, and 0.7 of the adjusted mutual information is lost. In rows of
many columns, most of them zero, such as texts, a row meets only the words that it has."""

ROUNDING = 64.0  # roundings of a value up to which a feature counts as constant
SAMPLE_STREAM = 7  # distinguishes the hashes that draw the sample from others


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """How few features a rule should use."""

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
    is_choosing: Mask  # the rows by which rules are compared
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

    def share(self, rows: IndexArray, is_right: Mask) -> float:
        """Return the weighted share of rows that are right."""
        weights = self.weights[rows]
        return float(weights @ is_right / weights.sum())


def draw_rule_sample(
    clusters: Clusters, X: Matrix, sparsity: Sparsity, seed: int
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
    chosen: Any = rows if len(features) == X.shape[1] else rows[:, features]
    values = chosen.toarray() if issparse(rows) else chosen
    values = (values - center[features].astype(X.dtype)) / scale.astype(X.dtype)
    rounding = (ROUNDING * np.abs(values).max(axis=0)) ** 2 * eps**2
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


SHRINKAGE = 1.0  # the ridge, as a share of the mean variance within clusters

MAX_SURPRISE = 0.02
"""The cost of removing columns beyond twice what these are worth, as a share of the sum so far;
if it is more, fewer are removed."""

DIGITS = 5  # to which values are compared: rounding must not decide


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """Numbers, sums and products of the rows of each leaf, from which rules are made."""

    counts: Array  # (n_leaves,)
    sums: Array  # (n_leaves, n_features)
    products: Array  # (n_features, n_features), of all leaves

    @classmethod
    def of(cls, values: Array, labels: IndexArray, n_leaves: int) -> "Moments":
        sums = native.label_sums(values, labels.astype(np.int32), n_leaves)
        counts = np.bincount(labels, minlength=n_leaves).astype(np.float64)
        return cls(counts, sums, (values.T @ values).astype(np.float64))

    def __add__(self, other: "Moments") -> "Moments":
        sums = self.counts + other.counts, self.sums + other.sums
        return Moments(*sums, self.products + other.products)

    @cached_property
    def means(self) -> Array:
        return self.sums / np.maximum(self.counts, 1.0)[:, None]

    @cached_property
    def scatter(self) -> Array:
        """The mean product within leaves, and a ridge."""
        scatter: Array = (self.products - self.sums.T @ self.means) / self.counts.sum()
        size = len(scatter)
        total = np.trace(self.products) / self.counts.sum()
        ridge = max(SHRINKAGE * np.trace(scatter), 1e-6 * total, 1e-300) / size
        scatter[np.diag_indices(size)] += ridge
        return scatter

    @cached_property
    def inverse(self) -> Array:
        return np.linalg.inv(self.scatter)

    def merge(self, parts: Sequence[range]) -> "Moments":
        """Return the moments of some unions of leaves, with the scatter within all leaves."""
        span = slice(parts[0].start, parts[-1].stop)
        first = [part.start - span.start for part in parts]
        counts = np.add.reduceat(self.counts[span], first)
        sums = np.add.reduceat(self.sums[span], first)
        within = (self.products - self.sums.T @ self.means) * (counts.sum() / self.counts.sum())
        return Moments(counts, sums, within + self.sums[span].T @ self.means[span])

    def discriminate(self, leaves: slice, features: IndexArray) -> tuple[Array, Array]:
        """Return weights and offsets of some leaves' scores; -inf for a leaf of no row."""
        means = self.means[leaves][:, features]
        if len(features) < len(self.scatter):
            scatter = self.scatter[np.ix_(features, features)]
            weights = np.linalg.solve(scatter, means.T).T
        else:
            weights = means @ self.inverse
        offsets = -0.5 * np.einsum("kj,kj->k", weights, means)
        return weights, np.where(self.counts[leaves] > 0, offsets, -np.inf)


def remove_columns(
    moments: Moments, leaves: slice, columns: IndexArray, sizes: Sequence[int]
) -> dict[int, IndexArray]:
    """Return the features of the best columns, for each number of columns, in falling order.

    Columns are removed in turn, from all, those that are worth least.
    """
    means, counts = moments.means[leaves], moments.counts[leaves]
    features, A = np.arange(len(columns)), moments.inverse
    B: Array = A @ means.T
    near, loss = _weigh_pairs(means @ B, counts)
    kept = {}
    for size in sizes:
        left, column_of = np.unique(columns[features], return_inverse=True)
        while size < len(left):
            worth = _measure_worth(A, B, near, column_of)
            order, n_removed = sort_falling(worth)[::-1], len(left) - size
            while True:
                removed = np.flatnonzero(np.isin(column_of, order[:n_removed]))
                A_left, B_left, others = _remove_features(A, B, removed)
                new_near, new_loss = _weigh_pairs(means[:, features[others]] @ B_left, counts)
                # Of redundant columns each is worth little, and all together much.
                expected = 2.0 * worth[order[:n_removed]].sum() + MAX_SURPRISE * loss
                if n_removed == 1 or new_loss - loss <= expected:
                    break
                n_removed //= 2
            A, B, near, loss, features = A_left, B_left, new_near, new_loss, features[others]
            left, column_of = np.unique(columns[features], return_inverse=True)
        kept[size] = features
    return kept


def sort_falling(values: Array) -> IndexArray:
    """Return positions, the largest value first; of those that differ by rounding, in order."""
    mantissas, exponents = np.frexp(values)
    rounded = np.ldexp(np.round(mantissas, DIGITS), exponents)
    return np.argsort(-rounded, kind="stable")


def _remove_features(
    A: Array, B: Array, removed: IndexArray
) -> tuple[Array, Array, IndexArray]:
    """Return S^-1 and S^-1 M' without some features, and the positions of the others."""
    others = np.setdiff1d(np.arange(len(A)), removed, assume_unique=True)
    both = np.hstack([A[np.ix_(removed, others)], B[removed]])
    update = np.linalg.solve(A[np.ix_(removed, removed)], both)
    across = A[np.ix_(others, removed)]
    A_left = A[np.ix_(others, others)] - across @ update[:, : len(others)]
    return A_left, B[others] - across @ update[:, len(others) :], others


def _weigh_pairs(products: Array, counts: Array) -> tuple[Array, float]:
    """Return the weight of each two leaves, given the products of their means, and the loss."""
    squares = np.diag(products)
    distances = np.maximum(squares[:, None] + squares - products - products.T, 0.0)
    distances = np.maximum(distances, 1e-3 * distances.max() or 1.0)
    pairs = np.outer(counts, counts)
    np.fill_diagonal(pairs, 0.0)
    return pairs / distances**2, float((pairs / distances).sum())


def _measure_worth(A: Array, B: Array, near: Array, columns: IndexArray) -> Array:
    """Return how much less is separated without each column."""

    def add_pairs(left: Array, right: Array) -> Array:
        sums: Array = (left * right) @ near.sum(axis=1) - ((left @ near) * right).sum(axis=1)
        return np.maximum(sums, 0.0)

    worth: Array = add_pairs(B, B) / np.diag(A)
    if len(columns) == columns[-1] + 1:
        return worth
    by_column = worth[np.flatnonzero(np.diff(columns, prepend=-1))]
    for column in np.flatnonzero(np.bincount(columns) > 1).tolist():
        features = np.flatnonzero(columns == column)
        parts = np.linalg.solve(A[np.ix_(features, features)], B[features])
        by_column[column] = add_pairs(B[features], parts).sum()
    return by_column
