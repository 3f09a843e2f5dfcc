"""The rows that are explained: their features, their names and their known classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError, InputTypeError
from taxarbor._number_text import format_number
from taxarbor._types import IndexArray
from taxarbor.rows import Rows, as_rows
from taxarbor.tables.columns import FeatureRows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._reasons import category_of

BLOCK_SIZE = 1 << 20
"""Numbers held at once."""
UNKNOWN = "unknown"
"""Stands for missing values."""


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
        data, gaps, _ = rows
        gaps = gaps if gaps is None or isinstance(gaps, np.ndarray) else gaps.tocsr()
        column_of = taxonomy.columns.owner
        return cls(data, as_rows(data) if data.shape[0] else None, gaps, column_of)

    def values(self, positions: Any, features: Any) -> NDArray[Any]:
        """Return some features of some rows as an array."""
        return _dense_part(self.data, positions, features)

    def is_missing(self, positions: Any, features: Any) -> NDArray[np.bool_] | None:
        """Return which rows have no value in some features; None where all values are known."""
        if self.missing is None:
            return None
        return _dense_part(self.missing, positions, self.column_of[features])

    def format_cells(
        self, taxonomy: Taxonomy, positions: IndexArray, feature: int
    ) -> list[str]:
        """Return a feature of some rows, or the column of its category, as text."""
        category = category_of(taxonomy, feature)
        if category is None:
            values = self.values(positions, [feature])[:, 0].tolist()
            if taxonomy.columns.is_boolean[feature]:
                texts = ["yes" if value else "no" for value in values]
            else:
                texts = [format_number(value) for value in values]
        elif len(category.values) == 2:
            values = self.values(positions, [category.first])[:, 0]
            texts = [category.values[int(value > 0)] for value in values.tolist()]
        else:
            features = category.first + np.arange(len(category.values))
            codes = self.values(positions, features).argmax(axis=1)
            texts = [category.values[code] for code in codes.tolist()]
        missing = self.is_missing(positions, [feature])
        if missing is None:
            return texts
        pairs = zip(missing[:, 0], texts, strict=True)
        return [UNKNOWN if is_missing else text for is_missing, text in pairs]


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


# Names and classes


def name_rows(given: Sequence[str] | None, X: object, n_rows: int) -> tuple[str, ...] | None:
    """Return the names that were given, or else the index of a pandas frame if it has names."""
    if isinstance(given, str):
        raise InputTypeError(f"must be a list of names, got the text {given!r}", "row_names")
    if given is None:
        index: Any = getattr(X, "index", None)
        if getattr(getattr(index, "dtype", None), "kind", "i") not in "OUT":  # just numbers
            return None
        given = index
    if len(given) != n_rows:
        raise InputError(f"got {len(given)} row names for {n_rows} rows")
    return tuple(str(name) for name in given)
