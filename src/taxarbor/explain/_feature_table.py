"""The rows that are explained: their features, their names and their known classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, InputTypeError, printable
from taxarbor._types import Array, IndexArray
from taxarbor.metrics._classes import NO_LABEL, encode_labels
from taxarbor.rows import Rows, as_rows
from taxarbor.tables._encoding import FeatureRows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._reasons import Category

BLOCK_SIZE = 1 << 20
"""Numbers held at once."""


# Features


@final
@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Rows as features of a taxonomy, and the missing cells of the table they come from.

    ``data`` is an array or CSR matrix, which ``rows`` scores, if there are any; ``missing`` a
    mask of the same rows with the columns of the user's table, or None. ``column_of`` is the
    column of each feature.
    """

    data: Any
    rows: Rows | None
    missing: Any
    column_of: IndexArray

    @classmethod
    def of(cls, taxonomy: Taxonomy, rows: FeatureRows) -> Self:
        """Return expanded rows of a taxonomy."""
        data, gaps = rows
        gaps = gaps if gaps is None or isinstance(gaps, np.ndarray) else gaps.tocsr()
        encoding = taxonomy.encoding
        column_of = np.arange(data.shape[1]) if encoding is None else encoding.owner
        return cls(data, as_rows(data) if data.shape[0] else None, gaps, column_of)

    def values(self, positions: Any, features: Any) -> NDArray[Any]:
        """Return some features of some rows as an array."""
        return _dense_part(self.data, positions, features)

    def is_missing(self, positions: Any, features: Any) -> NDArray[np.bool_] | None:
        """Return which rows have no value in some features; None where all values are known."""
        if self.missing is None:
            return None
        return _dense_part(self.missing, positions, self.column_of[features])

    def cells(
        self, positions: IndexArray, feature: int, category: Category | None
    ) -> list[float | int | None]:
        """Return the value of each row in a feature, or the code of its category.

        None where the value is missing.
        """
        if category is None:
            values = self.values(positions, [feature])[:, 0]
        elif len(category.values) == 2:
            values = (self.values(positions, [category.first])[:, 0] > 0).astype(int)
        else:
            features = category.first + np.arange(len(category.values))
            values = self.values(positions, features).argmax(axis=1)
        missing = self.is_missing(positions, [feature if category is None else category.first])
        if missing is None:
            return list(values.tolist())
        pairs = zip(missing[:, 0], values.tolist(), strict=True)
        return [None if is_missing else value for is_missing, value in pairs]


def _dense_part(matrix: Any, positions: Any, columns: Any) -> NDArray[Any]:
    if isinstance(matrix, np.ndarray):
        part: NDArray[Any] = matrix[positions][:, columns]
        return part
    rows = np.arange(matrix.shape[0])[positions]
    # Whole rows are copied first: a block at a time.
    parts = [matrix[rows[some]][:, columns] for some in blocks(len(rows), row_width(matrix))]
    parts = parts or [matrix[rows][:, columns]]
    return np.concatenate([part.toarray() for part in parts])


def row_width(matrix: Any) -> float:
    """Return how many numbers a row holds on average: of a sparse matrix, those stored."""
    n_values = matrix.size if isinstance(matrix, np.ndarray) else matrix.nnz
    return float(n_values / max(matrix.shape[0], 1))


def blocks(n_rows: int, width: float) -> Iterator[slice]:
    """Return slices of rows of about a million numbers each, given the numbers of a row."""
    step = max(int(BLOCK_SIZE / max(width, 1.0)), 1)
    return (slice(first, first + step) for first in range(0, n_rows, step))


def weighted_quantiles(values: Array, weights: Array, q: float | Sequence[float]) -> Array:
    """Return quantiles of values that count by weights; if all weights are 0, all count alike.

    Where a quantile lies between two values, their mean, as of repeated values.
    """
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0.0] if weights.any() else order
    sums = np.cumsum(weights[order]) if weights.any() else np.arange(1.0, len(order) + 1.0)
    at = np.multiply(q, sums[-1])
    low, high = (np.searchsorted(sums, at, side=side) for side in ("left", "right"))
    mean: Array = (values[order[low]] + values[order[np.minimum(high, len(order) - 1)]]) / 2.0
    return mean


# Names


def check_names(
    kind: str, given: Sequence[str] | None, default: Sequence[str] | None, n_expected: int
) -> tuple[str, ...] | None:
    """Return the names of rows or features that were given, or else the default ones."""
    if isinstance(given, str):
        raise InputTypeError(f"{kind}_names must be a list of names, got the text {given!r}")
    names = default if given is None else given
    if names is None:
        return None
    if len(names) != n_expected:
        raise InputError(f"got {len(names)} {kind} names for {n_expected} {kind}s")
    return tuple(str(name) for name in names)


def column_labels(X: object) -> tuple[str, ...] | None:
    """Return the names of a frame's columns."""
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(name) for name in columns)


def index_labels(X: object) -> list[str] | None:
    """Return the index of a pandas frame if it holds names, not just numbers."""
    index = getattr(X, "index", None)
    is_named = getattr(getattr(index, "dtype", None), "kind", "i") in "OUT"
    return [str(name) for name in index] if index is not None and is_named else None


# Classes


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Known classes: their names, the largest first, and the code of each row's, or -1."""

    names: tuple[str, ...]
    codes: IndexArray

    @classmethod
    def of(cls, labels: ArrayLike, n_rows: int) -> Self:
        """Return the classes that these labels name, or raise ValueError."""
        codes, classes = encode_labels(labels, n_rows)
        order = np.argsort(-np.bincount(codes + 1)[1:], kind="stable")
        rank = np.full(len(order) + 1, -1)
        rank[order] = np.arange(len(order))
        return cls(tuple(printable(classes[code]) for code in order), rank[codes])

    def count(self, rows: IndexArray, weights: Array) -> list[tuple[int, int]]:
        """Return the classes of some rows and how many are of each, the largest first.

        Rows without a class come last, as class -1.
        """
        sums = np.bincount(self.codes[rows] + 1, weights[rows], minlength=len(self.names) + 1)
        counts = count_rows(sums)
        largest = [*np.argsort(-counts[1:], kind="stable").tolist(), -1]
        return [(code, int(counts[code + 1])) for code in largest if counts[code + 1]]

    def name(self, code: int) -> str:
        """Return the name of a class; for -1, that of rows without one."""
        return NO_LABEL if code < 0 else self.names[code]


def count_rows(weights: NDArray[Any]) -> IndexArray:
    """Round sums of weights to numbers of rows: a positive one is at least 1."""
    counts: IndexArray = np.maximum(np.rint(weights), weights > 0.0).astype(np.intp)
    return counts
