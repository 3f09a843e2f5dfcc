"""What the rows of a node are like: distinctive features, and distances from the mean.

The effect of a feature in a node is the difference of its means in the node and in all other
rows, in standard deviations of a mix of as many rows of one as of the other, halved: the
correlation of the feature with membership of the node, if half of the rows were in it. It is
between -1 and 1, and is one of these where the feature alone separates the rows. Both sides
have the same weight, so a word of one row in ten does not become distinctive of a small node
only because it is rare elsewhere.
"""

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._types import Array, IndexArray
from taxarbor.explain._input import (
    FeatureTable,
    blocks,
    count_rows,
    row_width,
    weighted_median,
)
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._reasons import category_of
from taxarbor.taxonomy._text import phrase

N_BINS = 16
"""Bins of a histogram."""
MAX_WHOLE_NUMBERS = 20
"""Whole numbers that have a bin each, at most."""
BIN_QUANTILES = (0.01, 0.99)
"""Bins lie between these quantiles; the outer ones include the values beyond."""
DIGITS = 6
"""To which effects and distances are compared: rounding must not decide."""
CONSTANT = 1e-12
"""Standard deviations, in units of the mean, up to which a column does not vary."""


class Bins(NamedTuple):
    """Equal bins of a column, and how many of all rows are in each."""

    edges: list[float]
    counts: list[int]


@final
class ColumnSummary:
    """Counts, means and spreads of the features of all rows, with which nodes are compared.

    Missing values are left out. Rows count by their weights, and noise does not count. Bins
    are made when a feature is first asked for, and kept, as nodes share most of them.
    """

    def __init__(self, taxonomy: Taxonomy, table: FeatureTable) -> None:
        tree, data = taxonomy.tree, table.data
        assert table.rows is not None
        self.taxonomy, self.table = taxonomy, table
        self._width = row_width(data) if table.missing is None else data.shape[1]
        self.weights: Array = np.ones(tree.n_rows)
        self.center: Array = table.rows.center  # imputed values included
        if tree.n_noise or tree.weights is not None:
            weights = self.weights if tree.weights is None else tree.weights
            self.weights = np.where(tree.labels >= 0, weights, 0.0)
            parts = blocks(tree.n_rows, self._width)
            sums = sum(self.weights[part] @ data[part] for part in parts)
            self.center = np.asarray(sums / self.weights.sum())
        self.counts, self.excess, self.squares = self._sums(np.arange(tree.n_rows))
        n_known = np.maximum(self.counts, np.finfo(float).tiny)
        variance = self.squares / n_known - np.square(self.excess / n_known)
        self.mean: Array = self.center + self.excess / n_known
        self.spread: Array = np.sqrt(np.maximum(variance, 0.0))
        self.varies: NDArray[np.bool_] = self.spread > CONSTANT * np.abs(self.mean)
        self._bins: dict[int, Bins] = {}

    def distances(self, rows: IndexArray, mean: Array) -> Array:
        """Return how far some rows are from their mean, in units of their median distance.

        Columns are measured in standard deviations over all rows.
        """
        data, scale = self.table.data, np.where(self.varies, self.spread, 1.0)
        squares, inverse = np.empty(len(rows)), scale**-2.0
        products = inverse * mean
        for block in blocks(len(rows), self._width):
            part = data[rows[block]]
            if sparse.issparse(data):
                across = part.multiply(part) @ inverse - 2.0 * (part @ products)
                squares[block] = np.maximum(across + mean @ products, 0.0)
            else:
                squares[block] = np.square((part - mean) / scale).sum(axis=1)
        distances = np.sqrt(squares)
        unit = weighted_median(distances, self.weights[rows]) or 1.0
        return (distances / unit).round(DIGITS)

    def distinctive_features(self, rows: IndexArray, n_top: int) -> list[dict[str, Any]]:
        """Return the most distinctive features; see Explanation.distinctive_features."""
        effects, means, n_known = self._effects(rows)
        total = float(self.weights[rows].sum())
        ranked = np.argsort(-np.abs(effects), kind="stable")
        ranked = ranked[effects[ranked] != 0.0]
        # Of the features of a column, the one with the largest effect.
        firsts = np.unique(self.table.column_of[ranked], return_index=True)[1]
        features = ranked[np.sort(firsts)][: max(n_top, 0)]
        for feature in set(features.tolist()) - self._bins.keys():
            self._bins[feature] = make_bins(*self._column(feature))
        bins = [self._bins[feature] for feature in features.tolist()]
        counts = self._count(rows, features, bins)
        lines = []
        for feature, every, here in zip(features.tolist(), bins, counts, strict=True):
            effect, mean = float(effects[feature]), float(means[feature])
            n_missing = max(total - float(n_known[feature]), 0.0)
            line = self._describe(feature, effect, mean, here, [*every.counts])
            lines.append(line | {"missing": n_missing / total, "edges": [*every.edges]})
        return lines

    def _describe(
        self, feature: int, effect: float, mean: float, counts: list[int], every: list[int]
    ) -> dict[str, Any]:
        """Return the line of one feature; of a category, that of its value."""
        taxonomy, all_mean = self.taxonomy, float(self.mean[feature])
        name = names[feature] if (names := taxonomy.feature_names) else f"x{feature}"
        category, is_boolean = category_of(taxonomy, feature), taxonomy.is_boolean
        column, values = name, tuple[str, ...]()
        if category is not None:
            code = feature - category.first
            if len(category.values) == 2:
                code = int(effect > 0.0)
                if not code:  # it is the other value that is distinctive
                    counts, every = counts[::-1], every[::-1]
                    mean, all_mean, effect = 1.0 - mean, 1.0 - all_mean, -effect
            column, values = category.name, category.values[code : code + 1]
            name = f"{column} = {category.values[code]}"
        share = all_share = None
        if is_boolean is not None and is_boolean[feature]:
            share, all_share = counts[-1] / sum(counts), every[-1] / sum(every)
        reason = Reason(feature, column, effect, effect, have=share, categories=values)
        return {
            "feature": name,
            "column": feature,
            "words": phrase(reason),
            "effect": effect,
            "mean": mean,
            "all_mean": all_mean,
            "share": share,
            "all_share": all_share,
            "counts": counts,
            "all_counts": every,
        }

    def _effects(self, rows: IndexArray) -> tuple[Array, Array, Array]:
        """Return the effect of each feature, its mean in these rows and how many have one."""
        n_here, excess, squares = self._sums(rows)
        n_rest = self.counts - n_here
        # Sums of weights that are not zero by rounding only are no rows.
        tiny = 1e-9 * float(self.counts.max())
        is_split = (n_here > tiny) & (n_rest > tiny)
        n_here = np.where(n_here > tiny, n_here, 1.0)
        n_rest = np.where(n_rest > tiny, n_rest, 1.0)
        here, rest = excess / n_here, (self.excess - excess) / n_rest
        difference = here - rest
        within = squares / n_here - here**2 + (self.squares - squares) / n_rest - rest**2
        mixed = np.sqrt(np.maximum(within, 0.0) / 2.0 + difference**2 / 4.0)
        is_known = self.varies & (mixed > 0.0) & is_split
        effects = np.zeros(len(mixed))
        np.divide(difference / 2.0, mixed, out=effects, where=is_known)
        return effects.round(DIGITS), self.center + here, n_here

    def _sums(self, rows: IndexArray) -> tuple[Array, Array, Array]:
        """Return by feature the number of known values, their sum and their sum of squares.

        Sums are about the center.
        """
        center, data = self.center, self.table.data
        sums, squares = np.zeros((2, len(center)))
        counts = np.full(len(center), float(self.weights[rows].sum()))
        for block in blocks(len(rows), self._width):
            part, weights = data[rows[block]], self.weights[rows[block]]
            missing = self.table.is_missing(rows[block], slice(None))
            if missing is not None:
                counts -= weights @ missing
            if sparse.issparse(data):
                values, n_stored = part.data.astype(np.float64), np.diff(part.indptr)
                if missing is not None:
                    lines = np.repeat(np.arange(part.shape[0]), n_stored)
                    values[missing[lines, part.indices]] = 0.0
                scaled = values * np.repeat(weights, n_stored)
                sums += np.bincount(part.indices, scaled, minlength=len(center))
                squares += np.bincount(part.indices, values * scaled, minlength=len(center))
            else:
                part = part - center
                if missing is not None:
                    part[missing] = 0.0
                scaled = part * weights[:, None]
                sums += scaled.sum(axis=0)
                squares += np.einsum("ij,ij->j", part, scaled)
        if sparse.issparse(data):  # about zero until here
            squares += center * (counts * center - 2.0 * sums)
            sums -= counts * center
        return counts, sums, np.maximum(squares, 0.0)

    def _column(self, feature: int) -> tuple[Array, float, Array]:
        """Return the nonzero values of a feature, the weight of zeros, and their weights."""
        values = self.table.values(slice(None), [feature])[:, 0].astype(np.float64)
        missing = self.table.is_missing(slice(None), [feature])
        weights = self.weights if missing is None else np.where(missing[:, 0], 0, self.weights)
        is_kept = (values != 0.0) & (weights > 0.0)
        return values[is_kept], float(weights[values == 0.0].sum()), weights[is_kept]

    def _count(
        self, rows: IndexArray, features: IndexArray, bins: list[Bins]
    ) -> list[list[int]]:
        """Return how many of some rows are in each bin of some features."""
        values = self.table.values(rows, features).astype(np.float64)
        low, high = np.array([(b.edges[0], b.edges[-1]) for b in bins]).reshape(-1, 2).T
        n_bins = np.array([len(b.counts) for b in bins], dtype=np.intp)
        ends = np.cumsum(n_bins)
        places = _find_bins(values, low, high, n_bins) + (ends - n_bins)
        missing = self.table.is_missing(rows, features)
        known = np.ones(places.shape, dtype=bool) if missing is None else ~missing
        weights = np.broadcast_to(self.weights[rows, None], places.shape)[known]
        counts = count_rows(np.bincount(places[known], weights, minlength=n_bins.sum()))
        return [part.tolist() for part in np.split(counts, ends)[: len(bins)]]


def make_bins(values: Array, n_zeros: float, weights: Array) -> Bins:
    """Return equal bins for a column, given its nonzero values and the number of zeros.

    They span the values of most rows. In a column that is mostly zero, as of words, zeros do
    not count for that. Whole numbers have a bin each, if they are few.
    """
    is_sparse = n_zeros > float(weights.sum())
    zero = [0.0] if n_zeros else []
    ends = np.array([*zero, *([values.min(), values.max()] if len(values) else [])])
    low, high = float(ends.min()), float(ends.max())
    n_bins = N_BINS
    if high - low < MAX_WHOLE_NUMBERS and (values == np.round(values)).all():
        n_bins, low, high = int(high - low) + 1, low - 0.5, high + 0.5
    else:
        inner = _quantiles(values, 0.0 if is_sparse else n_zeros, weights)
        inner = np.append(inner, zero if is_sparse else [])
        if inner.min() < inner.max():
            low, high = float(inner.min()), float(inner.max())
    shape = np.array([low]), np.array([high]), np.array([n_bins])
    places = _find_bins(values[:, None], *shape).ravel()
    counts = np.bincount(places, weights, minlength=n_bins)
    counts[_find_bins(np.zeros((1, 1)), *shape)[0, 0]] += n_zeros
    return Bins(np.linspace(low, high, n_bins + 1).tolist(), count_rows(counts).tolist())


def _quantiles(values: Array, n_zeros: float, weights: Array) -> Array:
    """Return the quantiles that bins lie between, of values and zeros.

    For integer weights, np.quantile of the repeated values.
    """
    values, weights = np.append(values, 0.0), np.append(weights, n_zeros)
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    at = np.array(BIN_QUANTILES) * max(sums[-1] - 1.0, 0.0)
    places = np.searchsorted(sums, [np.floor(at), np.ceil(at)], side="right")
    low, high = values[order[np.minimum(places, len(order) - 1)]]
    quantiles: Array = low + (at - np.floor(at)) * (high - low)
    return quantiles


def _find_bins(values: Array, low: Array, high: Array, n_bins: IndexArray) -> IndexArray:
    """Return the bin of each value, column by column; values beyond are in the outer ones."""
    within = (np.clip(values, low, high) - low) / (high - low)
    places: IndexArray = np.minimum((within * n_bins).astype(np.intp), n_bins - 1)
    return places
