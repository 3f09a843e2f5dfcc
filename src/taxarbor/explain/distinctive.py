"""What the rows of a node are like: distinctive features, and distances from the mean.

The effect of a feature in a node is the difference of its means in the node and in all other
rows, in standard deviations of a mix of as many rows of one as of the other, halved: the
correlation of the feature with membership of the node, if half of the rows were in it. It is
between -1 and 1, and is one of these where the feature alone separates the rows. Both sides
have the same weight, so a word of one row in ten does not become distinctive of a small node
only because it is rare elsewhere.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.explain._rows import FeatureTable, Places, blocks, row_width
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._reasons import category_of

N_BINS = 16  # of a histogram
MAX_WHOLE_NUMBERS = 20  # that have a bin each
BIN_QUANTILES = (0.01, 0.99)  # bins lie between these; the outer ones include the values beyond
DIGITS = 6  # of effects, distances and margins: rounding must not decide
CONSTANT = 1e-12  # spread, in units of the mean, up to which a column does not vary


@final
class ColumnSummary:
    """Counts, means and spreads of the features of all rows, with which nodes are compared.

    Missing values are left out. Rows count by their weights, and noise does not count.
    Histograms of all rows are made when a feature is first asked for, and kept, as nodes share
    most of them.
    """

    def __init__(self, taxonomy: Taxonomy, table: FeatureTable) -> None:
        tree, data = taxonomy.tree, table.data
        self.taxonomy, self.table = taxonomy, table
        self._width = row_width(data) if table.missing is None else data.shape[1]
        weights = np.ones(tree.n_rows) if tree.weights is None else tree.weights
        self.weights: Array = np.where(tree.labels >= 0, weights, 0.0)
        sums = sum(self.weights[b] @ data[b] for b in blocks(tree.n_rows, self._width))
        self.center: Array = np.asarray(sums / self.weights.sum())  # with imputed values
        self.counts, self.excess, self.squares = self._sums(np.arange(tree.n_rows))
        n_known = np.maximum(self.counts, np.finfo(float).tiny)
        variance = self.squares / n_known - np.square(self.excess / n_known)
        self.mean: Array = self.center + self.excess / n_known
        self.spread: Array = np.sqrt(np.maximum(variance, 0.0))
        self.varies: NDArray[np.bool_] = self.spread > CONSTANT * np.abs(self.mean)
        self._histograms: dict[int, tuple[Array, list[int]]] = {}  # edges and counts

    @np.errstate(over="ignore")  # rows of weight zero may hold any number
    def distances(self, rows: IndexArray, mean: Array) -> Array:
        """Return how far rows are from their mean, in units of their median distance."""
        # Columns are measured in standard deviations over all rows.
        data, scale = self.table.data, np.where(self.varies, self.spread, 1.0)
        squares, inverse = np.empty(len(rows)), scale**-2.0
        products = inverse * mean
        for block in blocks(len(rows), self._width):
            part = data[rows[block]]
            if isinstance(part, np.ndarray):
                squares[block] = np.square((part - mean) / scale).sum(axis=1)
            else:
                across = part.multiply(part) @ inverse - 2.0 * (part @ products)
                squares[block] = np.maximum(across + mean @ products, 0.0)
        distances = np.sqrt(squares)
        unit = weighted_quantiles(distances, self.weights[rows], 0.5) or 1.0
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
        values, weights = self._known(rows, features)
        lines = []
        for column, feature in enumerate(features.tolist()):
            effect, mean = float(effects[feature]), float(means[feature])
            missing = max(total - float(n_known[feature]), 0.0) / total
            edges, _ = self._histogram(feature)
            counts = count_in_bins(values[:, column], edges, weights[:, column])
            lines.append(self._describe(feature, effect, mean, missing, counts))
        return lines

    def _known(self, rows: Places, features: Places) -> tuple[Array, Array]:
        """Return some features of some rows, and what each value counts for."""
        values = self.table.values(rows, features).astype(np.float64)
        missing = self.table.is_missing(rows, features)
        weights = np.broadcast_to(self.weights[rows][:, None], values.shape)
        return values, weights if missing is None else np.where(missing, 0.0, weights)

    def _histogram(self, feature: int) -> tuple[Array, list[int]]:
        if feature not in self._histograms:
            values, weights = (part[:, 0] for part in self._known(slice(None), [feature]))
            edges = find_edges(values[weights > 0.0], weights[weights > 0.0])
            self._histograms[feature] = edges, count_in_bins(values, edges, weights)
        return self._histograms[feature]

    def _describe(
        self, feature: int, effect: float, mean: float, missing: float, counts: list[int]
    ) -> dict[str, Any]:
        """Return the line of one feature; of a category, that of its value."""
        taxonomy, all_mean = self.taxonomy, float(self.mean[feature])
        edges, every = self._histogram(feature)
        name = taxonomy.columns.feature_name(feature)
        category = category_of(taxonomy, feature)
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
        if taxonomy.columns.is_boolean[feature]:
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
            "all_counts": [*every],
            "missing": missing,
            "edges": edges.tolist(),
        }

    def _effects(self, rows: IndexArray) -> tuple[Array, Array, Array]:
        """Return the effect of each feature, its mean in these rows and how many have one."""
        n_here, excess, squares = self._sums(rows)
        n_rest = self.counts - n_here
        # Sums of weights that are not zero by rounding only are no rows.
        tiny = 1e-9 * float(self.counts.max())
        is_split = (n_here > tiny) & (n_rest > tiny)
        n_here, n_rest = np.where(is_split, [n_here, n_rest], 1.0)
        here, rest = excess / n_here, (self.excess - excess) / n_rest
        difference = here - rest
        within = squares / n_here - here**2 + (self.squares - squares) / n_rest - rest**2
        mixed = np.sqrt(np.maximum(within, 0.0) / 2.0 + difference**2 / 4.0)
        is_known = self.varies & (mixed > 0.0) & is_split
        effects = np.zeros(len(mixed))
        np.divide(difference / 2.0, mixed, out=effects, where=is_known)
        return effects.round(DIGITS), self.center + here, n_here

    def _sums(self, rows: IndexArray) -> tuple[Array, Array, Array]:
        """Return by feature how many values are known, and their sums about the center."""
        center, data = self.center, self.table.data
        sums, squares = np.zeros((2, len(center)))
        counts = np.full(len(center), float(self.weights[rows].sum()))
        for block in blocks(len(rows), self._width):
            part, weights = data[rows[block]], self.weights[rows[block]]
            missing = self.table.is_missing(rows[block], slice(None))
            if missing is not None:
                counts -= weights @ missing
            if isinstance(part, np.ndarray):
                values = part - center
                if missing is not None:
                    values[missing] = 0.0
                scaled = values * weights[:, None]
                sums += scaled.sum(axis=0)
                squares += np.einsum("ij,ij->j", values, scaled)
            else:
                stored = part.astype(np.float64)
                if missing is not None:
                    stored = stored.multiply(~missing).tocsr()
                weighted = stored.multiply(weights[:, None]).tocsr()
                sums += weighted.sum(axis=0)
                squares += stored.multiply(weighted).sum(axis=0)
        if not isinstance(data, np.ndarray):  # about zero until here
            squares += center * (counts * center - 2.0 * sums)
            sums -= counts * center
        return counts, sums, np.maximum(squares, 0.0)


def find_edges(values: Array, weights: Array) -> Array:
    """Return the edges of equal bins for a column.

    They span the values of most rows; in a column that is mostly zero, as of words, of most
    other rows. Whole numbers have a bin each, if they are few.
    """
    low, high = float(values.min()), float(values.max())
    if high - low < MAX_WHOLE_NUMBERS and (values == np.round(values)).all():
        return np.arange(low - 0.5, high + 1.0)
    is_zero = values == 0.0
    if 2.0 * weights[is_zero].sum() > weights.sum():
        ends = weighted_quantiles(values[~is_zero], weights[~is_zero], BIN_QUANTILES)
        ends = np.append(ends, 0.0)
    else:
        ends = weighted_quantiles(values, weights, BIN_QUANTILES)
    if ends.min() < ends.max():
        low, high = float(ends.min()), float(ends.max())
    return np.linspace(low, high, N_BINS + 1)


def count_in_bins(values: Array, edges: Array, weights: Array) -> list[int]:
    """Return the number of rows in each bin; the outer ones include the values beyond.

    Sums of weights are rounded: a positive one is at least 1.
    """
    low, high = float(edges[0]), float(edges[-1])
    clipped = np.clip(values, low, high)
    sums = np.histogram(clipped, len(edges) - 1, (low, high), weights=weights)[0]
    return [int(n) for n in np.maximum(np.rint(sums), sums > 0.0).tolist()]


def weighted_quantiles(values: Array, weights: Array, q: float | Sequence[float]) -> Array:
    """Return quantiles of values that count by weights; if all weights are 0, all count alike.

    Where a quantile lies between two values, their mean, as of repeated values.
    """
    weights = weights if weights.any() else np.ones(len(weights))
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0.0]
    sums = np.cumsum(weights[order])
    at = np.multiply(q, sums[-1])
    low, high = (np.searchsorted(sums, at, side=side) for side in ("left", "right"))
    mean: Array = (values[order[low]] + values[order[np.minimum(high, len(order) - 1)]]) / 2.0
    return mean
