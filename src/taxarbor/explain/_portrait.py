"""What the rows of a node are like: how far each is from their middle, and what stands out.

A feature stands out in a node by the difference of its means in the node and in all other rows,
in standard deviations of a mix of as many rows of one as of the other, halved: the correlation
of the feature with being in the node, if half of the rows were. It lies between -1 and 1, and
is that where the feature alone tells the rows apart. Both sides count alike, so that a word of
one row in ten does not stand out in a small node only because it is rare elsewhere.
"""

from dataclasses import replace
from typing import Any, NamedTuple, SupportsIndex, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._types import Array, IndexArray
from taxarbor.explain._names import whole_numbers
from taxarbor.explain._steps import Source, blocks, dense_part, median, row_width
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._reasons import category_of, columns_of
from taxarbor.taxonomy._text import phrase

BINS = 16  # of a histogram
VALUES = 20  # whole numbers that have a bin each, at most
TAILS = (0.01, 0.99)  # quantiles that bins lie between; the outer ones have what is beyond
DIGITS = 6  # to which effects and distances are compared: rounding must not choose
STEADY = 1e-12  # standard deviations, in units of the mean, of a column that does not vary


class Bins(NamedTuple):
    """Equal bins of a column, and how many of all rows are in each."""

    edges: list[float]
    counts: list[int]


@final
class Portraits:
    """The columns of all rows, against which those of a node are compared.

    Missing values are left out: only rows that have a value count in a column. Rows count by
    their weights, and noise does not. Bins are made when a column is first asked for, and kept:
    nodes share most of them.
    """

    def __init__(self, taxonomy: Taxonomy, source: Source) -> None:
        self.source, self.data = source, source.data
        self._width = row_width(self.data) if source.gaps is None else self.data.shape[1]
        self.weights: Array | None = None
        self.center: Array = source.rows.center  # of all values, those in place of gaps, too
        if taxonomy.tree.n_noise or taxonomy.tree.weights is not None:
            weights = (
                np.ones(taxonomy.tree.n_rows)
                if taxonomy.tree.weights is None
                else taxonomy.tree.weights
            )
            self.weights = weights = np.where(taxonomy.tree.labels >= 0, weights, 0.0)
            parts = blocks(len(weights), self._width)
            sums = sum(weights[some] @ self.data[some] for some in parts)
            self.center = np.asarray(sums / weights.sum())
        self.counts, self.excess, self.squares = self._sums(np.arange(taxonomy.tree.n_rows))
        n_known = np.maximum(self.counts, np.finfo(float).tiny)
        variance = self.squares / n_known - np.square(self.excess / n_known)
        self.mean: Array = self.center + self.excess / n_known
        self.spread: Array = np.sqrt(np.maximum(variance, 0.0))
        self.varies: NDArray[np.bool_] = self.spread > STEADY * np.abs(self.mean)
        self._bins: dict[int, Bins] = {}

    def distances(self, rows: IndexArray, mean: Array) -> Array:
        """Return how far some rows are from their mean; 1 is their median.

        Columns are measured in standard deviations over all rows.
        """
        data, scale = self.data, np.where(self.varies, self.spread, 1.0)
        squares, inverse = np.empty(len(rows)), scale**-2.0
        products = inverse * mean
        for some in blocks(len(rows), self._width):
            part = data[rows[some]]
            if sparse.issparse(data):
                across = part.multiply(part) @ inverse - 2.0 * (part @ products)
                squares[some] = np.maximum(across + mean @ products, 0.0)
            else:
                squares[some] = np.square((part - mean) / scale).sum(axis=1)
        distances = np.sqrt(squares)
        return (distances / (median(distances, self._weights_of(rows)) or 1.0)).round(DIGITS)

    def _weights_of(self, rows: IndexArray) -> Array | None:
        return None if self.weights is None else self.weights[rows]

    def standout(
        self, taxonomy: Taxonomy, node: SupportsIndex, n_top: int
    ) -> list[dict[str, Any]]:
        """Return the features that stand out most in a node; see Explanation.standout."""
        rows = taxonomy.tree.rows(node)
        names, is_yes_no = taxonomy.feature_names, taxonomy.is_boolean
        effects, means, n_known = self._effects(rows)
        own_weights = self._weights_of(rows)
        total = len(rows) if own_weights is None else float(own_weights.sum())
        ranked = np.argsort(-np.abs(effects), kind="stable")
        ranked = ranked[effects[ranked] != 0.0]
        if taxonomy.encoding is not None:  # of the features of a column, the one that does most
            ranked = ranked[
                np.sort(np.unique(columns_of(taxonomy)[ranked], return_index=True)[1])
            ]
        features = ranked[: max(n_top, 0)]
        for feature in set(features.tolist()) - self._bins.keys():
            self._bins[feature] = make_bins(*self._column(feature))
        bins = [self._bins[feature] for feature in features.tolist()]
        own_counts = self._counts(rows, features, bins)
        found = []
        for feature, whole, here in zip(features.tolist(), bins, own_counts, strict=True):
            name, effect = names[feature] if names else f"x{feature}", float(effects[feature])
            every, mean = float(self.mean[feature]), float(means[feature])
            own, other = here, [*whole.counts]
            share = all_share = None
            said = Reason(feature, name, effect, effect)
            if (category := category_of(taxonomy, feature)) is not None:
                code = feature - category.first
                if len(category.values) == 2:
                    code = int(effect > 0.0)
                    if not code:  # it is the other value that stands out
                        own, other = own[::-1], other[::-1]
                        mean, every, effect = 1.0 - mean, 1.0 - every, -effect
                value = category.values[code]
                name = f"{category.name} = {value}"
                said = Reason(feature, category.name, effect, effect, categories=(value,))
            if is_yes_no is not None and is_yes_no[feature]:
                share, all_share = own[-1] / sum(own), other[-1] / sum(other)
            found.append(
                {
                    "feature": name,
                    "column": feature,
                    "words": phrase(replace(said, have=share)),
                    "effect": effect,
                    "mean": mean,
                    "all_mean": every,
                    "share": share,
                    "all_share": all_share,
                    "missing": max(total - float(n_known[feature]), 0.0) / total,
                    "edges": [*whole.edges],
                    "counts": own,
                    "all_counts": other,
                }
            )
        return found

    def _effects(self, rows: IndexArray) -> tuple[Array, Array, Array]:
        """Return the effect of each feature, its mean in these rows and how many have one."""
        n_own, excess, squares = self._sums(rows)
        n_rest = self.counts - n_own
        # What rounding leaves of a sum of weights is no row.
        none = 0.0 if self.weights is None else 1e-9 * float(self.counts.max())
        is_split = (n_own > none) & (n_rest > none)
        n_own = np.where(n_own > none, n_own, 1.0)
        n_rest = np.where(n_rest > none, n_rest, 1.0)
        own = excess / n_own
        rest = (self.excess - excess) / n_rest
        gap = own - rest
        within = (squares / n_own - own**2) + ((self.squares - squares) / n_rest - rest**2)
        mixed = np.sqrt(np.maximum(within, 0.0) / 2.0 + gap**2 / 4.0)
        is_sure = self.varies & (mixed > 0.0) & is_split
        effects = np.divide(gap / 2.0, mixed, out=np.zeros(len(gap)), where=is_sure)
        return effects.round(DIGITS), self.center + own, n_own

    def _sums(self, rows: IndexArray) -> tuple[Array, Array, Array]:
        """Return how many rows have a value, their sums and those of their squares, by column.

        About the centre of all.
        """
        center, is_sparse = self.center, sparse.issparse(self.data)
        sums, squares = np.zeros((2, len(center)))
        weights = self._weights_of(rows)
        total = float(len(rows)) if weights is None else float(weights.sum())
        counts = np.full(len(center), total)
        for some in blocks(len(rows), self._width):
            part, gaps = self.data[rows[some]], self.source.gaps_in(rows[some], slice(None))
            own = None if weights is None else weights[some]
            if gaps is not None:
                counts -= gaps.sum(axis=0) if own is None else own @ gaps
            if is_sparse:
                values = part.data.astype(np.float64)
                if gaps is not None:
                    lines = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
                    values[gaps[lines, part.indices]] = 0.0
                each = 1.0 if own is None else np.repeat(own, np.diff(part.indptr))
                sums += np.bincount(part.indices, values * each, minlength=len(center))
                squares += np.bincount(part.indices, values**2 * each, minlength=len(center))
            else:
                part = part - center
                if gaps is not None:
                    part[gaps] = 0.0
                scaled = part if own is None else part * own[:, None]
                sums += scaled.sum(axis=0)
                squares += np.einsum("ij,ij->j", part, scaled)
        if is_sparse:  # seen from zero until here
            squares += center * (counts * center - 2.0 * sums)
            sums -= counts * center
        return counts, sums, np.maximum(squares, 0.0)

    def _column(self, feature: int) -> tuple[Array, float, Array]:
        """Return the values of a column that are not zero, the weight of zeros, and weights."""
        column = self.data[:, [feature]]
        dense = column if isinstance(column, np.ndarray) else column.toarray()
        values = dense[:, 0].astype(np.float64)
        each = np.ones(len(values)) if self.weights is None else self.weights
        gaps = self.source.gaps_in(slice(None), [feature])
        if gaps is not None:
            each = np.where(gaps[:, 0], 0.0, each)
        is_some = (values != 0.0) & (each > 0.0)
        return values[is_some], float(each[values == 0.0].sum()), each[is_some]

    def _counts(self, rows: IndexArray, features: IndexArray, bins: list[Bins]) -> list[Any]:
        """Return how many of some rows are in each bin of some columns."""
        values = dense_part(self.data, rows, features).astype(np.float64)
        low, high = np.array([(one.edges[0], one.edges[-1]) for one in bins]).reshape(-1, 2).T
        n_bins = np.array([len(one.counts) for one in bins], dtype=np.intp)
        ends = np.cumsum(n_bins)
        places = _places(values, low, high, n_bins) + (ends - n_bins)
        own, gaps = self._weights_of(rows), self.source.gaps_in(rows, features)
        known = np.ones(places.shape, dtype=bool) if gaps is None else ~gaps
        each = None if own is None else np.broadcast_to(own[:, None], places.shape)[known]
        counts = whole_numbers(np.bincount(places[known], each, minlength=n_bins.sum()))
        return [part.tolist() for part in np.split(counts, ends)[: len(bins)]]


def make_bins(values: Array, n_zeros: float, weights: Array | None = None) -> Bins:
    """Return equal bins for a column, given what is not zero in it and the number of zeros.

    They span what most rows have. The zeros of a column that is mostly zero, as words are, do
    not say how far that is. Whole numbers have a bin each, if they are few. Values may have
    weights.
    """
    weights = np.ones(len(values)) if weights is None else weights
    n_values = float(weights.sum())
    zero = [0.0] if n_zeros else []
    ends = np.array([*zero, *([values.min(), values.max()] if len(values) else [])])
    low, high = float(ends.min()), float(ends.max())
    n_bins = BINS
    if high - low < VALUES and (values == np.round(values)).all():
        n_bins, low, high = int(high - low) + 1, low - 0.5, high + 0.5
    else:
        tails = _tails(values, 0 if n_zeros > n_values else n_zeros, weights)
        inner = np.append(tails, zero if n_zeros > n_values else [])
        if inner.min() < inner.max():
            low, high = float(inner.min()), float(inner.max())
    shape = np.array([low]), np.array([high]), np.array([n_bins])
    places = _places(values[:, None], *shape).ravel()
    counts = np.bincount(places, weights, minlength=n_bins)
    counts[_places(np.zeros((1, 1)), *shape)[0, 0]] += n_zeros
    edges = np.linspace(low, high, n_bins + 1)
    return Bins(edges.tolist(), whole_numbers(counts).tolist())


def _tails(values: Array, n_zeros: float, weights: Array) -> Array:
    """Return the quantiles that bins lie between, of values and zeros.

    Weights are repeats: np.quantile of the repeated values, where they are whole numbers.
    """
    values, weights = np.append(values, 0.0), np.append(weights, n_zeros)
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    at = np.array(TAILS) * max(sums[-1] - 1.0, 0.0)
    places = np.searchsorted(sums, [np.floor(at), np.ceil(at)], side="right")
    low, high = values[order[np.minimum(places, len(order) - 1)]]
    tails: Array = low + (at - np.floor(at)) * (high - low)
    return tails


def _places(values: Array, low: Array, high: Array, n_bins: IndexArray) -> IndexArray:
    """Return the bin that each value is in, a column each; those beyond are in the outer."""
    within = (np.clip(values, low, high) - low) / (high - low)
    places: IndexArray = np.minimum((within * n_bins).astype(np.intp), n_bins - 1)
    return places
