"""From the columns of a table to the features of a tree.

A tree is in the units of the table: a number is a feature, categories are one-hot encoded.
Missing values are imputed by the column's mean: the mean of the numbers, the share of each
category. Only a fit sees features scaled, as factor analysis of mixed data does; its rules are
then brought back to the units of the table.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import InputError, some
from taxarbor._frames import (
    Cells,
    Factor,
    as_days,
    as_factor,
    as_matrix,
    as_numbers,
    as_table,
    column_names,
    float_type,
    is_plain,
    iterate_columns,
    text_of,
)
from taxarbor._types import Array, IndexArray, set_frozen
from taxarbor.rows._rows import check_structure

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
KINDS = ("number", "category", "year", "month", "weekday")
MIN_FEATURES_PER_SPARSE_COLUMN = 4
"""Features per column beyond which the features are kept sparse."""
CELLS_AT_ONCE = 1 << 20
"""Cells that are imputed at once."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a part of a date, and what it becomes.

    Attributes
    ----------
    name, position : str, int
        Its name, ``x3`` where the table has none, and its position in the table.
    kind : {"number", "category", "year", "month", "weekday"}
        The type of its cells.
    fill : tuple of float
        Imputes missing values: the mean, or the share of each category.
    categories : tuple of str
        The values of a category; of two, the second is the feature.
    values : tuple of float
        The two values of a number that has no others, else ().
    missing : float
        The share of missing values, in the fit.
    """

    name: str
    position: int
    kind: str
    fill: tuple[float, ...]
    categories: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    missing: float = 0.0

    @property
    def label(self) -> str:
        """The name, and which part of a date it is."""
        return self.name if self.kind in KINDS[:2] else f"{self.name} {self.kind}"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.fills)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name of each feature: ``age``, ``origin = Japan``."""
        shown = self.categories[1:] if len(self.categories) == 2 else self.categories
        return tuple(f"{self.label} = {value}" for value in shown) or (self.label,)

    @property
    def fills(self) -> tuple[float, ...]:
        """The values that impute missing ones, for each feature."""
        return self.fill[1:] if len(self.categories) == 2 else self.fill


class FeatureRows(NamedTuple):
    """Rows as features, an array or a CSR matrix, and which cells of the table are missing."""

    data: Any
    missing: Any  # (n_rows, n_columns) of bool, an array or CSC; None if there are none


@final
@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """The features of a table's columns, and their scales in the fit, by a ``TableEncoder``.

    Attributes
    ----------
    columns : tuple of Column
        The columns that are used, in the order of their features.
    n_columns_in : int
        Number of columns of the table, with those that are left out.
    has_names : bool
        Whether columns have names, which identify them in other tables.
    shift, scale : arrays of shape (n_features,)
        Subtracted from each feature in the fit, and the divisor after that.
    unit_length : bool
        Whether each row is normalized to length 1 first.
    dropped : tuple of (str, str)
        Each column that is left out, and why.
    notes : tuple of str
        Changes of the table, a line each.
    owner : int array of shape (n_features,)
        The column of each feature.
    """

    columns: tuple[Column, ...]
    n_columns_in: int
    has_names: bool
    shift: Array
    scale: Array
    unit_length: bool = False
    dropped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    owner: IndexArray = field(init=False)

    def __post_init__(self) -> None:
        counts = [column.n_features for column in self.columns]
        owner = np.repeat(np.arange(len(counts)), counts)
        for name in ("shift", "scale"):
            kept = np.array(getattr(self, name), dtype=np.float64)
            if kept.shape != owner.shape:
                raise ValueError(f"{name} has shape {kept.shape}, not {owner.shape}")
            set_frozen(self, **{name: kept})
        set_frozen(self, owner=owner)
        if not (np.isfinite(self.shift).all() and np.isfinite(self.scale).all()):
            raise ValueError("shift and scale must be finite")
        if not (self.scale > 0.0).all():
            raise ValueError("every scale must be positive")

    def __repr__(self) -> str:
        return f"Encoding(n_columns={len(self.columns)}, n_features={self.n_features})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoding.from_dict, (self.to_dict(),)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.owner)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name of each feature."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def is_identity(self) -> bool:
        """Whether the features are the columns as they are."""
        return (
            not (self.unit_length or self.dropped or self._has_words)
            and len(self.columns) == self.n_columns_in
            and not any(one.missing for one in self.columns)
            and bool((self.shift == 0.0).all() and (self.scale == 1.0).all())
        )

    @property
    def names_features(self) -> bool:
        """Whether the features have other names than the fit saw."""
        return self.has_names or self._has_words or bool(self.dropped)

    @property
    def is_sparse(self) -> bool:
        """Whether features are sparse: most are of categories."""
        return self.n_features > MIN_FEATURES_PER_SPARSE_COLUMN * len(self.columns)

    @property
    def fills(self) -> Array:
        """The values that impute missing ones, for each feature."""
        return np.array([value for column in self.columns for value in column.fills])

    @property
    def is_boolean(self) -> NDArray[np.bool_]:
        """Which features hold 0 and 1 only."""
        of_columns = [bool(one.categories) or one.values == (0.0, 1.0) for one in self.columns]
        # The lengths of rows make other values of them.
        return np.array(of_columns, dtype=bool)[self.owner] & (not self.unit_length)

    def expand(self, X: Any, dtype: Any = np.float64) -> FeatureRows:
        """Return the rows of a table as features in the user's units."""
        return self._build(as_table(X), dtype, scaled=False)

    def encode(self, X: Any, dtype: Any = None) -> FeatureRows:
        """Return the rows of a table as features, as a fit sees them.

        They are of the type of its numbers, or of a given one, if the table is part of another.
        """
        table = as_table(X)
        # Scaled features of many columns lose nothing in half of the memory.
        kept = np.float32 if self.is_sparse else dtype or float_type(table)
        return self._build(table, kept, scaled=True)

    def equalize_columns(self) -> "Encoding":
        """Return the same encoding with categorical columns that weigh as much as numbers.

        A category of k values has variance k - 1, which is divided out: clusters, which see
        all directions at once, would else be those of whatever column has most values.
        """
        if (self.scale == 1.0).all():
            return self
        n_categories = np.array([len(one.categories) for one in self.columns])[self.owner]
        return replace(self, scale=self.scale * np.sqrt(np.maximum(n_categories - 1.0, 1.0)))

    @property
    def _has_words(self) -> bool:
        return any(one.kind != "number" for one in self.columns)

    def name_columns(self, names: Sequence[str]) -> "Encoding":
        """Return the same encoding with names for the columns of a matrix, by position."""
        name_of = {f"x{position}": name for position, name in enumerate(names)}
        columns = tuple(replace(one, name=names[one.position]) for one in self.columns)
        dropped = tuple((name_of.get(name, name), why) for name, why in self.dropped)
        return replace(self, columns=columns, dropped=dropped)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as values for JSON."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        arrays = {"shift": self.shift.tolist(), "scale": self.scale.tolist()}
        return {"columns": [asdict(one) for one in self.columns], **plain, **arrays}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Encoding":
        """Return the encoding that :meth:`to_dict` took apart, or raise ValueError."""
        columns = tuple(_make_column(one) for one in values["columns"])
        width = int(values["n_columns_in"])
        if any(one.position >= width for one in columns):
            raise ValueError(f"a column has a position beyond the {width} of its table")
        rest: dict[str, Any] = {name: bool(values[name]) for name in _FLAGS}
        rest |= {"shift": values["shift"], "scale": values["scale"]}
        rest["dropped"] = tuple((str(name), str(why)) for name, why in values["dropped"])
        return cls(columns, width, notes=tuple(map(str, values["notes"])), **rest)

    def _build(self, table: Any, dtype: Any, *, scaled: bool) -> FeatureRows:
        if sparse.issparse(table):
            rows = self._from_sparse(table, dtype)
        elif self._are_features(table, cells := as_matrix(table)):
            rows = impute(np.array(cells, dtype=dtype, order="C"), self.fills)
        else:
            is_scaled = scaled and not self.unit_length
            rows = self._from_columns(table, dtype, scaled=is_scaled)
            scaled = scaled and not is_scaled
        if self.unit_length:
            to_unit_length(rows.data)
        if scaled:
            self._scale(rows.data)
        return rows

    def _are_features(self, table: Any, cells: Any) -> bool:
        """Return whether cells are the features, by name and position; they may be missing."""
        names = column_names(table) if self.has_names else None
        if not is_plain(cells) or names not in (None, [one.name for one in self.columns]):
            return False
        positions = [one.position for one in self.columns]
        return not self._has_words and positions == list(range(cells.shape[1]))

    def _from_sparse(self, table: Any, dtype: Any) -> FeatureRows:
        check_structure(table)
        if table.shape[1] != self.n_columns_in:
            raise _other_width(table.shape[1], self.n_columns_in)
        chosen = [one.position for one in self.columns]
        if any(one.categories for one in self.columns):
            raise InputError("X is a sparse matrix, and the table had categories: give a frame")
        data = sparse.csr_array(table, dtype=dtype, copy=True)
        data.sum_duplicates()
        if chosen != list(range(table.shape[1])):
            data = data[:, chosen]
        return impute(data, self.fills)

    def _from_columns(self, table: Any, dtype: Any, *, scaled: bool) -> FeatureRows:
        """Build features column by column; scaled in double, before digits are lost."""
        positions, n = self._find_positions(table), table.shape[0]
        missing = np.zeros((n, len(self.columns)), dtype=bool, order="F")
        data = np.empty((n, 0 if self.is_sparse else self.n_features), dtype)
        blocks: list[Any] = []
        plain = np.zeros(self.n_features), np.ones(self.n_features)
        shifts, scales = (self.shift, self.scale) if scaled else plain
        stops = np.cumsum([one.n_features for one in self.columns])
        pairs = zip(self.columns, iterate_columns(table, positions), strict=True)
        for at, (one, given) in enumerate(pairs):
            features, cells = slice(stops[at] - one.n_features, stops[at]), _read(one, given)
            shift, scale = shifts[features], scales[features]
            block: Any
            if cells.dtype.kind == "f":
                missing[:, at] = np.isnan(cells)
                cells[missing[:, at]] = one.fills[0]
                block = (cells[:, None] - shift) / scale
            else:
                missing[:, at] = cells < 0
                values = (np.vstack([np.eye(len(one.fill)), one.fill]) - shift) / scale
                block = (sparse.csr_array(values) if self.is_sparse else values)[cells]
            if self.is_sparse:
                blocks.append(sparse.csr_array(block, dtype=dtype))
            else:
                data[:, features] = block
        joined = sparse.hstack(blocks, "csr") if self.is_sparse else data
        return FeatureRows(joined, missing if missing.any() else None)

    def _find_positions(self, table: Any) -> list[int]:
        """Return where each column stands in this table: by name, or where it stood."""
        names, width = column_names(table), table.shape[1]
        if names is None or not self.has_names:
            if width != self.n_columns_in:
                raise _other_width(width, self.n_columns_in)
            return [one.position for one in self.columns]
        position_of = {name: position for position, name in enumerate(names)}
        absent = [repr(one.name) for one in self.columns if one.name not in position_of]
        if absent:
            listing = some(list(dict.fromkeys(absent)), 5)
            raise InputError(f"X lacks columns that the tree was grown on: {listing}")
        return [position_of[one.name] for one in self.columns]

    def _scale(self, data: Any) -> None:
        """Subtract and divide, in place; only the stored entries of a sparse matrix."""
        if not self.shift.any() and (self.scale == 1.0).all():
            return
        shift, scale = self.shift.astype(data.dtype), self.scale.astype(data.dtype)
        if not sparse.issparse(data):
            data -= shift
            data /= scale
            return
        matrix: Any = data
        matrix.data -= shift[matrix.indices]
        matrix.data /= scale[matrix.indices]


_FLAGS = ("has_names", "unit_length")
_PLAIN = ("n_columns_in", *_FLAGS, "dropped", "notes")


def _make_column(values: dict[str, Any]) -> Column:
    """Return a column from values of JSON, or raise ValueError."""
    fill, pair = (tuple(map(float, values[name])) for name in ("fill", "values"))
    position, missing = int(values["position"]), float(values["missing"])
    kind, categories = str(values["kind"]), tuple(map(str, values["categories"]))
    column = Column(str(values["name"]), position, kind, fill, categories, pair, missing)
    is_right = (
        column.kind in KINDS
        and column.position >= 0
        and bool(categories) == (column.kind in ("category", "weekday"))
        and len(column.fill) == max(len(categories), 1)
        and len({*categories}) == len(categories)
        and len(column.values) in (0, 2)
        and bool(np.isfinite([*column.fill, *column.values, column.missing]).all())
    )
    if not is_right:
        raise ValueError(f"the column {column.name!r} is not one of a table")
    return column


def _other_width(came: int, expected: int) -> InputError:
    return InputError(
        f"X has {came} features, but the table that the tree was grown on had {expected}"
    )


def _read(one: Column, cells: Cells) -> NDArray[Any]:
    """Return the cells of a column: floats, or the codes of categories, of more than two."""
    if one.kind in ("year", "month", "weekday"):
        parts = date_parts(as_days(cells, one.name))
        if one.kind != "weekday":
            return parts[one.kind]
        factor = Factor(parts["weekday"], list(WEEKDAYS))
    elif one.kind == "number":
        numbers = as_numbers(cells, one.name)
        return numbers if numbers.flags.owndata and numbers.flags.writeable else numbers.copy()
    else:
        factor = as_factor(cells)
    code_of = {text: code for code, text in enumerate(one.categories)}
    known = [code_of.get(text_of(value), -1) for value in factor.values]
    codes = np.array([*known, -1], dtype=np.int64)[factor.codes]
    if len(one.categories) != 2:
        return codes
    return np.array([0.0, 1.0, np.nan])[codes]


def date_parts(days: NDArray[np.datetime64]) -> dict[str, NDArray[Any]]:
    """Return year and month, NaN if missing, and the weekday from Monday, 0; -1 if missing."""
    is_missing = np.isnat(days)
    filled = np.where(is_missing, np.datetime64(0, "D"), days)
    years = filled.astype("datetime64[Y]").astype(np.int64)
    months = filled.astype("datetime64[M]").astype(np.int64) - 12 * years + 1
    return {
        "year": np.where(is_missing, np.nan, years + 1970.0),
        "month": np.where(is_missing, np.nan, months.astype(np.float64)),
        "weekday": np.where(is_missing, -1, (filled.astype(np.int64) + 3) % 7),
    }


def find_empty_rows(missing: Any) -> NDArray[np.bool_] | None:
    """Return which rows have missing values only; None if there are none."""
    if missing is None or sparse.issparse(missing):
        return None
    is_empty: NDArray[np.bool_] = missing.all(axis=1)
    return is_empty if is_empty.any() else None


def impute(data: Any, fills: Array) -> FeatureRows:
    """Impute missing values of an array or a CSR matrix, in place; return where they were.

    Raises InputError for infinities.
    """
    fills = fills.astype(data.dtype)
    if sparse.issparse(data):
        matrix: Any = data
        _refuse_infinity(matrix.data)
        is_missing = np.isnan(matrix.data)
        if not is_missing.any():
            return FeatureRows(matrix, None)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))[is_missing]
        cells = np.ones(len(rows), dtype=bool), (rows, matrix.indices[is_missing])
        matrix.data[is_missing] = fills[matrix.indices[is_missing]]
        return FeatureRows(matrix, sparse.csc_array(cells, shape=matrix.shape))
    missing = None
    step = max(CELLS_AT_ONCE // max(data.shape[1], 1), 1)
    for first in range(0, len(data), step):
        block = data[first : first + step]
        with np.errstate(all="ignore"):
            if np.isfinite(block.sum()):
                continue
        _refuse_infinity(block)
        rows, columns = np.nonzero(np.isnan(block))
        block[rows, columns] = fills[columns]
        if missing is None:
            missing = np.zeros(data.shape, dtype=bool, order="F")
        missing[rows + first, columns] = True
    return FeatureRows(data, missing)


def _refuse_infinity(values: Array) -> None:
    if np.isinf(values).any():
        raise InputError("X holds infinity, or a value too large for its type")


def to_unit_length(data: Any) -> None:
    """Divide each row by its length, in place; rows of zeros stay."""
    if sparse.issparse(data):
        matrix: Any = data
        counts = np.diff(matrix.indptr)
        squares = np.square(matrix.data, dtype=np.float64)
        owners = np.repeat(np.arange(len(counts)), counts)
        lengths = np.sqrt(np.bincount(owners, squares, minlength=len(counts)))
        lengths[lengths == 0.0] = 1.0
        matrix.data /= lengths[owners].astype(matrix.dtype)
        return
    lengths = np.sqrt(np.einsum("ij,ij->i", data, data, dtype=np.float64))
    lengths[lengths == 0.0] = 1.0
    data /= lengths[:, None].astype(data.dtype)
