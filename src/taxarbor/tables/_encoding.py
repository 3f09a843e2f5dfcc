"""From the columns of a table to the features of a tree.

A tree is in the units of the table: a number is a feature, categories are one-hot encoded.
Missing values are imputed by the column's mean: the mean of the numbers, the share of each
category. Only a fit sees features scaled, as factor analysis of mixed data does; its rules are
then brought back to the units of the table.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import InputError, some
from taxarbor._frames import (
    Factor,
    as_cells,
    as_days,
    as_factor,
    as_numbers,
    as_table,
    as_vectors,
    column,
    column_names,
    float_type,
    is_plain,
    text_of,
)
from taxarbor._types import Array, IndexArray, set_frozen
from taxarbor.rows._checks import check_structure

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
KINDS = ("number", "category", "year", "month", "weekday", "vector")
WIDE = 4
"""Times as many features as columns from which on the features are kept sparse."""
BLOCK = 1 << 20
"""Cells that are processed at once."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a part of a date or of a vector, and what it becomes.

    Attributes
    ----------
    name, place : str, int
        Its name, ``x3`` where the table has none, and its position.
    kind : {"number", "category", "year", "month", "weekday", "vector"}
        What it is read as.
    fill : tuple of float
        What missing values are imputed by: the mean, or the share of each category.
    categories : tuple of str
        The values of a category; of two, the second is the feature.
    values : tuple of float
        The two values of a number that has no others, else ().
    missing : float
        The share of missing values, in the fit.
    part : int
        Which number of a vector it is.
    """

    name: str
    place: int
    kind: str
    fill: tuple[float, ...]
    categories: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    missing: float = 0.0
    part: int = 0

    @property
    def label(self) -> str:
        """The name, and which part of a date or a vector it is."""
        if self.kind == "vector":
            return f"{self.name}_{self.part}"
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
        """What missing values are imputed by, in each feature."""
        return self.fill[1:] if len(self.categories) == 2 else self.fill


class Expanded(NamedTuple):
    """Rows as features, an array or a CSR matrix, and which cells of the table are missing."""

    data: Any
    gaps: Any  # (n_rows, n_columns) of bool, an array or CSC; None if there are none


@final
@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """What a table's columns become, and how a fit saw them; made by a ``TableEncoder``.

    Attributes
    ----------
    columns : tuple of Column
        The columns that are used, in the order of their features.
    n_columns_in : int
        Number of columns of the table, with those that are left out.
    has_names : bool
        Whether columns have names, by which they are found in other tables.
    shift, scale : arrays of shape (n_features,)
        What the fit subtracted from each feature, and then divided it by.
    unit_length : bool
        Whether each row is normalized to length 1 first.
    refuses_gaps : bool
        Whether missing values raise an error.
    dropped : tuple of (str, str)
        Each column that is left out, and why.
    notes : tuple of str
        What was done to the table, a line each.
    owner : int array of shape (n_features,)
        The column of each feature.
    """

    columns: tuple[Column, ...]
    n_columns_in: int
    has_names: bool
    shift: Array
    scale: Array
    unit_length: bool = False
    refuses_gaps: bool = False
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
    def is_readable(self) -> bool:
        """Whether the features say something to people: numbers of vectors do not."""
        return all(column.kind != "vector" for column in self.columns)

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
        return self.n_features > WIDE * len(self.columns)

    @property
    def fills(self) -> Array:
        """What missing values are imputed by, in each feature."""
        return np.array([value for column in self.columns for value in column.fills])

    @property
    def two_values(self) -> Array:
        """The two values of each feature that has no others; NaN for all other features."""
        pairs = np.full((self.n_features, 2), np.nan)
        if self.unit_length:  # of which the lengths of rows make others
            return pairs
        first = 0
        for one in self.columns:
            pairs[first : first + one.n_features] = 0.0, 1.0
            if not one.categories:
                pairs[first] = one.values or (np.nan, np.nan)
            first += one.n_features
        return pairs

    def expand(self, X: Any, dtype: Any = np.float64) -> Expanded:
        """Return the rows of a table as features in the user's units."""
        return self._build(X, dtype, scaled=False)

    def encode(self, X: Any, dtype: Any = None) -> Expanded:
        """Return the rows of a table as features, as a fit sees them.

        They are of the type of its numbers, or of a given one, if the table is part of another.
        """
        # What is scaled and has many features loses nothing in half of the memory.
        kept = np.float32 if self.is_sparse else dtype or float_type(X)
        return self._build(X, kept, scaled=True)

    def equalize_columns(self) -> "Encoding":
        """Return the same encoding with categorical columns that weigh as much as numbers.

        A category of k values has variance k - 1, which is divided out: clusters, which see
        all directions at once, would else be those of whatever column has most values.
        """
        if (self.scale == 1.0).all():
            return self
        factors = np.ones(self.n_features)
        for at, one in enumerate(self.columns):
            if len(one.categories) > 2:
                first = int(np.searchsorted(self.owner, at))
                factors[first : first + one.n_features] = np.sqrt(len(one.categories) - 1.0)
        return replace(self, scale=self.scale * factors)

    @property
    def _has_words(self) -> bool:
        return any(one.kind != "number" for one in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as values for JSON."""
        columns = [
            {each.name: getattr(one, each.name) for each in fields(one)} for one in self.columns
        ]
        rest = {name: getattr(self, name) for name in _PLAIN}
        arrays = {"shift": self.shift.tolist(), "scale": self.scale.tolist()}
        return {"columns": columns, **rest, **arrays}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Encoding":
        """Return the encoding that :meth:`to_dict` took apart, or raise ValueError."""
        columns = tuple(_column(one) for one in values["columns"])
        width = values["n_columns_in"]
        if type(width) is not int or any(one.place >= width for one in columns):
            raise ValueError("a column stands outside of its table")
        rest: dict[str, Any] = {name: bool(values[name]) for name in _FLAGS}
        rest |= {"shift": values["shift"], "scale": values["scale"]}
        rest["dropped"] = tuple((str(name), str(why)) for name, why in values["dropped"])
        return cls(columns, width, notes=tuple(map(str, values["notes"])), **rest)

    def _build(self, X: Any, dtype: Any, *, scaled: bool) -> Expanded:
        table = as_table(X)
        if sparse.issparse(table):
            expanded = self._from_sparse(table, dtype)
        elif self._are_features(table, cells := as_cells(table)):
            expanded = fill_gaps(np.array(cells, dtype=dtype, order="C"), self.fills)
        else:
            is_scaled = scaled and not self.unit_length
            expanded = self._from_columns(table, dtype, scaled=is_scaled)
            scaled = scaled and not is_scaled
        if expanded.gaps is not None and self.refuses_gaps:
            raise InputError("has gaps, which are refused; fill them", "X")
        if self.unit_length:
            to_unit_length(expanded.data)
        if scaled:
            self._scale(expanded.data)
        return expanded

    def _are_features(self, table: Any, cells: Any) -> bool:
        """Say whether cells are the features already, by name and place, but for gaps."""
        names = column_names(table) if self.has_names else None
        if not is_plain(cells) or names not in (None, [one.name for one in self.columns]):
            return False
        if self._has_words:
            return False
        return [one.place for one in self.columns] == list(range(cells.shape[1]))

    def _from_sparse(self, table: Any, dtype: Any) -> Expanded:
        check_structure(table)
        if table.shape[1] != self.n_columns_in:
            raise _other_width(table.shape[1], self.n_columns_in)
        chosen = [one.place for one in self.columns]
        if any(one.categories for one in self.columns):
            raise InputError("X is a sparse matrix, and the table had categories: give a frame")
        data = sparse.csr_array(table, dtype=dtype, copy=True)
        data.sum_duplicates()
        if chosen != list(range(table.shape[1])):
            data = data[:, chosen]
        return fill_gaps(data, self.fills)

    def _from_columns(self, table: Any, dtype: Any, *, scaled: bool) -> Expanded:
        """Build features column by column; scaled in double, before digits are lost."""
        pairs, n = [*zip(self.columns, self._places(table), strict=True)], table.shape[0]
        by_part = sorted(pairs, key=lambda pair: pair[0].part)
        last_parts = {place: one for one, place in by_part if one.kind == "vector"}
        vectors = {
            place: as_vectors(column(table, place), one.name, width=one.part + 1)
            for place, one in last_parts.items()
        }
        plain = np.zeros(self.n_features), np.ones(self.n_features)
        shift, scale = (self.shift, self.scale) if scaled else plain
        starts = np.cumsum([0, *(one.n_features for one in self.columns)], dtype=np.int32)
        gaps = np.zeros((n, len(self.columns)), dtype=bool, order="F")
        data = np.zeros((n, len(self.columns) if self.is_sparse else self.n_features), dtype)
        features = np.tile(starts[:-1], (n if self.is_sparse else 0, 1))
        for at, (one, place) in enumerate(pairs):
            if one.kind == "vector":
                cells = _read(one, vectors[place][:, one.part])
            else:
                cells = _read(one, column(table, place))
            own = slice(starts[at], starts[at + 1])
            if cells.dtype.kind == "f":
                gaps[:, at] = np.isnan(cells)
                cells[gaps[:, at]] = one.fills[0]
                to = at if self.is_sparse else own.start
                data[:, to] = (cells - shift[own.start]) / scale[own.start]
                continue
            gaps[:, at] = cells < 0
            values = np.concatenate([np.eye(len(one.fill)), [one.fill]])  # the last: of gaps
            values = (values - shift[own]) / scale[own]
            if self.is_sparse:
                data[:, at] = np.append(values.diagonal(), 0.0)[cells]
                features[:, at] += np.maximum(cells, 0)
            else:
                data[:, own] = values[cells]
        rows = self._as_csr(data, features, gaps, scale) if self.is_sparse else data
        return Expanded(rows, gaps if gaps.any() else None)

    def _as_csr(self, data: Array, features: Any, gaps: Any, scale: Array) -> Any:
        """Return CSR with an entry per row and column, and more for missing categories."""
        kind = np.int32 if data.size < 2**31 else np.int64
        pointers = np.arange(len(data) + 1, dtype=kind) * data.shape[1]
        parts = data.ravel(), features.ravel().astype(kind, copy=False), pointers
        matrix = sparse.csr_array(parts, shape=(len(data), self.n_features))
        has_codes = np.array([len(one.categories) not in (0, 2) for one in self.columns])
        if gaps[:, has_codes].any():
            coded = np.flatnonzero(has_codes[self.owner])
            shares = (self.fills / scale)[coded].astype(data.dtype)
            shape = len(self.columns), self.n_features
            fills = sparse.csr_array((shares, (self.owner[coded], coded)), shape=shape)
            more: Any = sparse.csr_array(gaps, dtype=data.dtype) @ fills
            more.sort_indices()
            matrix = matrix + more
        return matrix

    def _places(self, table: Any) -> list[int]:
        """Return where each column stands in this table: by name, or where it stood."""
        names, width = column_names(table), table.shape[1]
        if names is None or not self.has_names:
            if width != self.n_columns_in:
                raise _other_width(width, self.n_columns_in)
            return [one.place for one in self.columns]
        place_of = {name: place for place, name in enumerate(names)}
        absent = [repr(one.name) for one in self.columns if one.name not in place_of]
        if absent:
            listing = some(list(dict.fromkeys(absent)), 5)
            raise InputError(f"X lacks columns that the tree was grown on: {listing}")
        return [place_of[one.name] for one in self.columns]

    def _scale(self, data: Any) -> None:
        """Subtract and divide, in place; what is sparse has entries wherever that is seen."""
        if not self.shift.any() and (self.scale == 1.0).all():
            return
        shift, scale = self.shift.astype(data.dtype), self.scale.astype(data.dtype)
        if not sparse.issparse(data):
            data -= shift
            data /= scale
            return
        matrix: Any = data
        for first in range(0, len(matrix.data), BLOCK):
            entries = slice(first, first + BLOCK)
            features = matrix.indices[entries]
            matrix.data[entries] -= shift[features]
            matrix.data[entries] /= scale[features]


_FLAGS = ("has_names", "unit_length", "refuses_gaps")
_PLAIN = ("n_columns_in", *_FLAGS, "dropped", "notes")


def _column(values: dict[str, Any]) -> Column:
    parts = {name: values[name] for name in ("fill", "categories", "values")}
    if not all(isinstance(part, list | tuple) for part in parts.values()):
        raise ValueError("the values of a column must be lists")
    tuples = {name: tuple(part) for name, part in parts.items()}
    parsed = Column(**{**values, **tuples})
    numbers = (*parsed.fill, *parsed.values, parsed.missing)
    is_right = (
        isinstance(parsed.name, str)
        and parsed.kind in KINDS
        and type(parsed.place) is int
        and parsed.place >= 0
        and all(isinstance(one, str) for one in parsed.categories)
        and len({*parsed.categories}) == len(parsed.categories)
        and bool(parsed.categories) == (parsed.kind in ("category", "weekday"))
        and len(parsed.fill) == max(len(parsed.categories), 1)
        and len(parsed.values) in (0, 2)
        and all(type(one) in (int, float) and np.isfinite(one) for one in numbers)
        and 0.0 <= parsed.missing <= 1.0
        and type(parsed.part) is int
        and parsed.part >= 0
    )
    if not is_right:
        raise ValueError(f"the column {parsed.name!r} is not one of a table")
    return parsed


def _other_width(came: int, expected: int) -> InputError:
    return InputError(
        f"X has {came} features, but the table that the tree was grown on had {expected}"
    )


def _read(one: Column, cells: Any) -> NDArray[Any]:
    """Return the cells of a column: floats, or the codes of categories, of more than two."""
    if one.kind in ("year", "month", "weekday"):
        parts = date_parts(as_days(cells, one.name))
        if one.kind != "weekday":
            return parts[one.kind]
        factor = Factor(parts["weekday"], list(WEEKDAYS))
    elif one.kind in ("number", "vector"):
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
    is_gap = np.isnat(days)
    filled = np.where(is_gap, np.datetime64(0, "D"), days)
    years = filled.astype("datetime64[Y]").astype(np.int64)
    months = filled.astype("datetime64[M]").astype(np.int64) - 12 * years + 1
    return {
        "year": np.where(is_gap, np.nan, years + 1970.0),
        "month": np.where(is_gap, np.nan, months.astype(np.float64)),
        "weekday": np.where(is_gap, -1, (filled.astype(np.int64) + 3) % 7),
    }


def empty_rows(gaps: Any) -> NDArray[np.bool_] | None:
    """Return which rows have no value at all, None if all have one."""
    is_empty = None if gaps is None or sparse.issparse(gaps) else gaps.all(axis=1)
    return None if is_empty is None or not is_empty.any() else is_empty


def fill_gaps(data: Any, fills: Array) -> Expanded:
    """Impute missing values of an array or a CSR matrix, in place; return where they were.

    Raises InputError for infinities.
    """
    fills = fills.astype(data.dtype)
    if sparse.issparse(data):
        matrix: Any = data
        _refuse_infinity(matrix.data)
        is_gap = np.isnan(matrix.data)
        if not is_gap.any():
            return Expanded(matrix, None)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))[is_gap]
        cells = np.ones(len(rows), dtype=bool), (rows, matrix.indices[is_gap])
        matrix.data[is_gap] = fills[matrix.indices[is_gap]]
        return Expanded(matrix, sparse.csc_array(cells, shape=matrix.shape))
    gaps = None
    step = max(BLOCK // max(data.shape[1], 1), 1)
    for first in range(0, len(data), step):
        block = data[first : first + step]
        with np.errstate(all="ignore"):
            if np.isfinite(block.sum()):
                continue
        _refuse_infinity(block)
        rows, places = np.nonzero(np.isnan(block))
        block[rows, places] = fills[places]
        if gaps is None:
            gaps = np.zeros(data.shape, dtype=bool, order="F")
        gaps[rows + first, places] = True
    return Expanded(data, gaps)


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
