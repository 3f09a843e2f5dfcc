"""The columns of a table, and the features that they become: the only way in for rows.

Columns are always known, those of arrays, too. Numbers are held as arrays, so a million of them
cost nothing; only columns that are read in another way, such as categories, have a value of
their own. Features are in the units of the table: a number is a feature, categories are one-hot
encoded. Missing values are imputed by the column's mean: the mean of the numbers, the share of
each category. Only a fit sees features scaled, as factor analysis of mixed data does; its rules
are then brought back to the units of the table.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from taxarbor._errors import InputError, some
from taxarbor._frames import (
    Cells,
    Factor,
    as_factor,
    as_matrix,
    as_numbers,
    as_table,
    as_times,
    column_names,
    find_dtype,
    float_type,
    is_missing,
    is_plain,
    iterate_columns,
    list_cells,
    text_of,
)
from taxarbor._types import Array, IndexArray, set_frozen
from taxarbor.rows import all_finite, check_structure
from taxarbor.tables._spelled_dates import (
    DATE_PARTS,
    DATES,
    TIME_OF_DAY,
    DateFormat,
    parse_dates,
    split_date,
)
from taxarbor.tables._spelled_numbers import NumberFormat, parse_numbers
from taxarbor.tables.notes import Note

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
KINDS = ("number", "category", "ordered", "text", *DATE_PARTS)
MIN_FEATURES_PER_SPARSE_COLUMN = 4
"""Features per column beyond which the features are kept sparse."""

Parsed: TypeAlias = Any
"""Cells of a table as numbers: a matrix, or a list with the cells of each column: floats, NaN
where a value is missing; codes of more than two categories, -1 where it is missing; CSR, 1 for
each word of a text."""


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """How the cells of a column are read that are not plain numbers.

    Attributes
    ----------
    kind : {"number", "category", "ordered", "text", "year", "month", "weekday", "hour"}
        The type of its cells; "number" if they are written in a format.
    categories : tuple of str
        The values of a category; of two, the second is the feature. The levels of an ordered
        one, from the lowest, and the words of texts.
    rare : tuple of str
        Values that are known, and count as missing: too rare, or no numbers.
    format : tuple
        The values of a ``NumberFormat`` or a ``DateFormat``; () where cells have a type.
    """

    kind: str
    categories: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()
    format: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        has_values = self.is_nominal or self.kind in ("ordered", "text")
        is_right = self.kind in KINDS and bool(self.categories) == has_values
        is_right = is_right and len({*self.categories}) == len(self.categories)
        if self.kind == "weekday":
            is_right = is_right and {*self.categories} <= {*WEEKDAYS}
        if self.kind == "number":
            is_right = is_right and NumberFormat(*self.format).decimal in (".", ",")
        elif self.format:
            is_right = is_right and DateFormat(*self.format).order in (*DATES, TIME_OF_DAY)
        if not is_right:
            raise ValueError(f"{self} is not how a column is read")

    @property
    def n_features(self) -> int:
        """Number of features."""
        if self.kind == "text":
            return len(self.categories)
        return len(self.categories) if self.is_nominal and len(self.categories) > 2 else 1

    @property
    def is_nominal(self) -> bool:
        """Whether the values have no order, and more than two have a feature each."""
        return self.kind in ("category", "weekday")


class Column(NamedTuple):
    """A column of a table, or a part of a date, and what it becomes.

    Attributes
    ----------
    name, position : str, int
        Its name, ``x3`` where the table has none, and its position in the table.
    kind : str
        The type of its cells: "number", "boolean", or that of a ``Reading``.
    fill : tuple of float
        Imputes missing values: the mean, or the share of each category.
    categories : tuple of str
        The values of a category; of two, the second is the feature. The levels of an ordered
        one, and the words of texts.
    missing : float
        The share of missing values, in the fit.
    unit : str
        How a value is shown: ``{} %``.
    """

    name: str
    position: int
    kind: str
    fill: tuple[float, ...]
    categories: tuple[str, ...] = ()
    missing: float = 0.0
    unit: str = ""

    @property
    def label(self) -> str:
        """The name, and which part of a date it is."""
        return f"{self.name} {self.kind}" if self.kind in DATE_PARTS else self.name

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name of each feature: ``age``, ``origin = Japan``, ``has "late" in comment``."""
        if self.kind == "text":
            return tuple(f'has "{word}" in {self.name}' for word in self.categories)
        shown = self.categories[1:] if len(self.categories) == 2 else self.categories
        shown = () if self.kind == "ordered" else shown
        return tuple(f"{self.label} = {value}" for value in shown) or (self.label,)


class FoundColumn(NamedTuple):
    """A column that is used, or a part of one: how it is read, its cells and statistics."""

    position: int
    cells: Any
    """As in :data:`Parsed`; None for those of a matrix."""
    reading: Reading | None
    fill: tuple[float, ...]
    """The mean, or the share of each category or word."""
    missing: float
    std: float = 0.0
    """Standard deviation of numbers without outliers; zero for categories."""
    is_boolean: bool = False

    @property
    def fills(self) -> tuple[float, ...]:
        """The means of its features: of two categories the second is the feature."""
        is_pair = len(self.fill) == 2 and self.reading is not None and self.reading.is_nominal
        return self.fill[1:] if is_pair else self.fill


class FeatureRows(NamedTuple):
    """Rows as features, and which cells of the table are missing.

    ``data`` is an array or a CSR matrix; of plain numbers it may still hold NaN, and
    :meth:`Columns.impute` fills them. ``missing`` has the shape (n_rows, n_columns), an array
    or CSC; None if there are none. ``unseen`` counts the values of each column that the fit did
    not see, which count as missing.
    """

    data: Any
    missing: Any = None
    unseen: Mapping[tuple[str, str], int] = MappingProxyType({})


class Match(NamedTuple):
    """Where each column stands in a table, and the names of those absent that are needed."""

    positions: IndexArray  # -1 if it is absent, -2 if it is not needed, either
    absent: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a table that are used, and how they become features.

    Attributes
    ----------
    n_columns_in : int
        Number of columns of the table, with those that are left out.
    positions : int array of shape (n_columns,)
        The column of the table that each is read from, in the order of the features.
    fills : array of shape (n_features,)
        The values that impute missing ones.
    names : tuple of str or None
        Names of all columns of the table; None where it has none.
    readings : mapping from int to Reading
        How columns are read that are no plain numbers, by their place among those used.
    missing : array of shape (n_columns,)
        The share of missing values of each in the fit.
    is_boolean : bool array of shape (n_features,)
        Which features hold 0 and 1 only.
    shift, scale : arrays of shape (n_features,)
        Subtracted from each feature in the fit, and the divisor after that.
    unit_length : bool
        Whether each row is normalized to length 1 first.
    imputes : bool
        Whether missing values are imputed; else they are refused.
    missing_values : tuple of str
        Texts and numbers that count as missing.
    layer : str
        The layer of AnnData that is read, ``raw/X`` for its ``raw``; "" for ``X``.
    dropped : tuple of (str, str)
        Each column that is left out, and why.
    notes : tuple of Note
        What was noticed or changed, the most important first.
    owner : int array of shape (n_features,)
        The column of each feature.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> columns = Taxarbor(4, random_state=0).fit(load_animals().X).taxonomy_.columns
    >>> len(columns), columns.feature_names[:2], columns[0].kind
    (85, ('x0', 'x1'), 'number')
    """

    n_columns_in: int
    positions: IndexArray
    fills: Array
    names: tuple[str, ...] | None = None
    readings: Mapping[int, Reading] = field(default_factory=dict)
    missing: Array = field(default_factory=lambda: np.zeros(0))
    is_boolean: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    shift: Array = field(default_factory=lambda: np.zeros(0))
    scale: Array = field(default_factory=lambda: np.ones(0))
    unit_length: bool = False
    imputes: bool = True
    missing_values: tuple[str, ...] = ()
    layer: str = ""
    dropped: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()
    owner: IndexArray = field(init=False)

    def __post_init__(self) -> None:
        positions = np.array(self.positions, dtype=np.intp)
        counts = np.ones(len(positions), dtype=np.intp)
        for place, reading in self.readings.items():
            if not 0 <= place < len(counts):
                raise ValueError(f"a reading is of none of {len(counts)} columns")
            counts[place] = reading.n_features
        owner = np.repeat(np.arange(len(counts)), counts)
        kinds: dict[str, tuple[Any, float, int]] = {
            "fills": (np.float64, 0.0, len(owner)),
            "missing": (np.float64, 0.0, len(counts)),
            "is_boolean": (np.bool_, 0.0, len(owner)),
            "shift": (np.float64, 0.0, len(owner)),
            "scale": (np.float64, 1.0, len(owner)),
        }
        for name, (dtype, usual, length) in kinds.items():
            kept = np.array(getattr(self, name), dtype=dtype)
            kept = kept if kept.size else np.full(length, usual, dtype=dtype)
            if kept.shape != (length,) or not np.isfinite(kept).all():
                raise ValueError(f"{name} must hold {length} finite values, one of each")
            set_frozen(self, **{name: kept})
        set_frozen(self, positions=positions, owner=owner)
        set_frozen(self, readings=MappingProxyType(dict(self.readings)))
        if not (self.scale > 0.0).all():
            raise ValueError("every scale must be positive")
        if len(positions) and not 0 <= positions.min() <= positions.max() < self.n_columns_in:
            raise ValueError(f"a column has a position beyond the {self.n_columns_in}")
        if self.names is not None and len(self.names) != self.n_columns_in:
            raise ValueError(
                f"there are {len(self.names)} names of {self.n_columns_in} columns"
            )

    @classmethod
    def plain(cls, width: int, names: Sequence[str] | None = None, **more: Any) -> "Columns":
        """Return columns of plain numbers."""
        given = None if names is None else tuple(map(str, names))
        fills = more.pop("fills", np.zeros(width))
        return cls(width, np.arange(width), fills, given, **more)

    def __repr__(self) -> str:
        return f"Columns(n_columns={len(self)}, n_features={self.n_features})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Columns.unpack, self.pack()

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, place: int) -> Column:
        """Return a column by its place among those used."""
        reading, position = self.readings.get(place), int(self.positions[place])
        name = f"x{position}" if self.names is None else self.names[position]
        begin, end = np.searchsorted(self.owner, [place, place + 1])
        fill, missing = tuple(self.fills[begin:end].tolist()), float(self.missing[place])
        if reading is None:
            kind = "boolean" if self.is_boolean[begin] else "number"
            return Column(name, position, kind, fill, missing=missing)
        if reading.is_nominal and len(reading.categories) == 2:
            fill = (1.0 - fill[0], fill[0])
        unit = NumberFormat(*reading.format).pattern if reading.kind == "number" else ""
        return Column(name, position, reading.kind, fill, reading.categories, missing, unit)

    def __iter__(self) -> Iterator[Column]:
        return (self[place] for place in range(len(self)))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.owner)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name of each feature."""
        if self.readings:
            return tuple(name for column in self for name in column.feature_names)
        if self.names is None:
            return tuple(f"x{position}" for position in self.positions.tolist())
        return tuple(self.names[position] for position in self.positions.tolist())

    def feature_name(self, feature: int) -> str:
        """Return the name of one feature."""
        place = int(self.owner[feature])
        return self[place].feature_names[feature - int(np.searchsorted(self.owner, place))]

    @property
    def is_plain(self) -> bool:
        """Whether the features are all columns of the table, as they are."""
        return (
            not self.readings
            and not self.unit_length
            and len(self) == self.n_columns_in
            and bool((self.positions == np.arange(len(self))).all())
        )

    @property
    def is_scaled(self) -> bool:
        """Whether a fit sees other numbers than the table has."""
        return bool(self.shift.any() or (self.scale != 1.0).any())

    @property
    def is_sparse(self) -> bool:
        """Whether features are sparse: most are of categories."""
        return self.n_features > MIN_FEATURES_PER_SPARSE_COLUMN * len(self)

    @property
    def fill(self) -> Array | None:
        """The values that impute missing ones, None where these are refused."""
        return self.fills if self.imputes else None

    @property
    def _gap(self) -> float:
        """What stands in columns that are absent and not needed."""
        return np.nan if self.imputes else 0.0

    def rename(self, names: Sequence[str]) -> "Columns":
        """Return the same columns with other names, one for each that is used."""
        every = [f"x{at}" for at in range(self.n_columns_in)]
        every = every if self.names is None else [*self.names]
        for position, name in zip(self.positions.tolist(), names, strict=True):
            every[position] = str(name)
        return replace(self, names=tuple(every))

    def equalize(self) -> "Columns":
        """Return the same with categorical columns that weigh as much as numbers.

        A category of k values has variance k - 1, which is divided out. Otherwise the column
        with the most categories would dominate the distances.
        """
        if not self.is_scaled:
            return self
        n_categories = np.ones(len(self))
        for place, reading in self.readings.items():
            n_categories[place] = max(len(reading.categories) - 1, 1) ** reading.is_nominal
        return replace(self, scale=self.scale * np.sqrt(n_categories[self.owner]))

    # Rows

    def match(
        self,
        names: Sequence[str] | None,
        width: int,
        needed: NDArray[np.bool_] | None = None,
    ) -> Match:
        """Return where the columns stand in a table: by name, or where they stood.

        Of those that are not needed, any may be absent, and of the others all but one. Raises
        InputError for an array of another width, and where no needed column is there.
        """
        if names is None or self.names is None:
            if width != self.n_columns_in:
                raise InputError(
                    f"X has {width} features, but Taxonomy is expecting {self.n_columns_in} "
                    "features as input"
                )
            return Match(self.positions)
        if self.names == tuple(names):
            return Match(self.positions)
        position_of = {name: position for position, name in enumerate(names)}
        own = [self.names[position] for position in self.positions.tolist()]
        found = np.array([position_of.get(name, -1) for name in own], dtype=np.intp)
        is_needed = np.ones(len(own), dtype=bool) if needed is None else needed
        absent = [own[place] for place in np.flatnonzero(is_needed & (found < 0)).tolist()]
        absent = [*dict.fromkeys(absent)]
        if absent and not (self.imputes and (found[is_needed] >= 0).any()):
            listing = some([repr(name) for name in absent], 5)
            raise InputError(f"X lacks columns that the tree was grown on: {listing}")
        found[~is_needed & (found < 0)] = -2
        return Match(found, tuple(absent))

    def read(self, X: Any, dtype: Any = np.float64, match: Match | None = None) -> FeatureRows:
        """Return the rows of a table as features in the user's units.

        Cells of plain numbers are not looked at, and may hold NaN.
        """
        table = as_table(X)
        if match is None:
            match = self.match(column_names(table), table.shape[1])
        unseen: Counter[tuple[str, str]] = Counter()
        cells = self._parse(table, match.positions, np.dtype(dtype), unseen)
        if isinstance(cells, list) or self.unit_length:
            rows = self.join(cells, table.shape[0], dtype)
        else:
            rows = FeatureRows(cells)
        return rows._replace(unseen=unseen)

    def encode(self, X: Any, match: Match | None = None) -> FeatureRows:
        """Return the rows of a table as a fit sees them: imputed, and scaled."""
        table = as_table(X)
        rows = self.impute(self.read(table, self.dtype_of(table), match))
        return rows._replace(data=self.scale_rows(rows.data))

    def dtype_of(self, table: Any) -> type[np.floating[Any]]:
        """Return the type of the features of a table: many sparse ones need all digits."""
        return np.float64 if self.is_sparse else float_type(table)

    def impute(self, rows: FeatureRows) -> FeatureRows:
        """Return rows without NaN, and where values were missing; the given stay as they are.

        Raises InputError for infinities.
        """
        cells = rows.data if isinstance(rows.data, np.ndarray) else rows.data.data
        if rows.missing is not None or (not self.unit_length and all_finite(cells)):
            return rows
        filled = impute(rows.data.copy(), self.fills)
        return filled._replace(unseen=rows.unseen)

    def scale_rows(self, data: Any) -> Any:
        """Return features as a fit sees them. Only stored entries of sparse ones are scaled."""
        if not self.is_scaled:
            return data
        if not isinstance(data, np.ndarray):
            dtype = np.float32 if self.is_sparse else data.dtype  # which is precise enough
            matrix: Any = data.astype(dtype)
            matrix.data /= self.scale[matrix.indices].astype(dtype)
            return matrix
        scaled = data - self.shift.astype(data.dtype)
        scaled /= self.scale.astype(data.dtype)
        return scaled

    def join(self, cells: Parsed, n_rows: int, dtype: Any) -> FeatureRows:
        """Return parsed cells as features in the user's units, imputed."""
        if isinstance(cells, list):
            rows = self._join_columns(cells, n_rows, dtype)
        else:
            data = _as_float(cells, np.dtype(dtype))
            data = data if sparse.issparse(data) else np.ascontiguousarray(data)
            rows = self.impute(FeatureRows(data))
        return rows._replace(data=normalize(rows.data)) if self.unit_length else rows

    def _join_columns(self, cells: Sequence[Any], n_rows: int, dtype: Any) -> FeatureRows:
        missing = np.zeros((n_rows, len(self)), dtype=bool, order="F")
        data = np.empty((n_rows, 0 if self.is_sparse else self.n_features), dtype)
        blocks: list[Any] = []
        begins = np.searchsorted(self.owner, np.arange(len(self) + 1))
        for place, values in enumerate(cells):
            features = slice(begins[place], begins[place + 1])
            fills = self.fills[features]
            block: Any = values
            if not sparse.issparse(values) and len(fills) == 1:
                missing[:, place] = np.isnan(values)
                known = np.where(missing[:, place], values.dtype.type(fills[0]), values)
                block = known[:, None]
            elif not sparse.issparse(values):
                missing[:, place] = values < 0
                lines = np.vstack([np.eye(len(fills)), fills])
                block = (sparse.csr_array(lines) if self.is_sparse else lines)[values]
            if self.is_sparse:
                blocks.append(sparse.csr_array(block, dtype=dtype))
            else:
                data[:, features] = block if isinstance(block, np.ndarray) else block.toarray()
        joined = sparse.hstack(blocks, "csr") if self.is_sparse else data
        return FeatureRows(joined, missing if missing.any() else None)

    def _parse(
        self,
        table: Any,
        positions: IndexArray,
        dtype: np.dtype[np.floating[Any]],
        unseen: Counter[tuple[str, str]],
    ) -> Parsed:
        """Return the cells as a matrix of floats if all are plain numbers, else by column."""
        if sparse.issparse(table):
            return self._select_sparse(table, positions, dtype)
        if not self.readings:
            matrix = _select_matrix(table, positions, self._gap)
            if matrix is not None:
                data = mark_missing(_as_float(matrix, dtype), self.missing_values)
                return np.ascontiguousarray(data)
        columns = iterate_columns(table, positions[positions >= 0])
        cells = [
            self._read_cells(place, next(columns), unseen)
            if position >= 0
            else self._fill_gap(place, table.shape[0])
            for place, position in enumerate(positions.tolist())
        ]
        return cells if self.readings else np.column_stack(cells).astype(dtype)

    def _select_sparse(self, table: Any, positions: IndexArray, dtype: Any) -> Any:
        check_structure(table)
        if any(reading.categories for reading in self.readings.values()):
            raise InputError("X is a sparse matrix, and the table had categories: give a frame")
        matrix = table.tocsr()
        check_structure(matrix)  # what other formats were made into
        data = _as_float(matrix, dtype)
        if not data.has_canonical_format:
            data = data.copy() if data is table else data  # the user's stays as it is
            data.sum_duplicates()
        n_rows, width = data.shape
        if np.array_equal(positions, np.arange(width)):
            return data
        if (positions < 0).any():
            gaps = sparse.csr_array(np.tile([0.0, self._gap], (n_rows, 1)).astype(dtype))
            data = sparse.hstack([data, gaps], "csr")
        return data[:, np.where(positions < 0, width + 2 + positions, positions)]

    def _read_cells(self, place: int, cells: Cells, unseen: Counter[tuple[str, str]]) -> Any:
        """Return the cells of a column, as in :data:`Parsed`."""
        reading = self.readings.get(place, Reading("number"))
        name = self[place].name
        kind = find_dtype(cells)
        if kind == "object" and any(isinstance(cell, str) for cell in list_cells(cells)):
            kind = "text"
        if reading.kind == "number" and kind not in ("text", "category"):
            return mark_missing(as_numbers(cells, name), self.missing_values)
        if reading.kind in DATE_PARTS and kind == "date":
            return encode_times(reading, as_times(cells, name))
        factor = drop_missing(as_factor(cells), self.missing_values)
        encoded = encode_factor(reading, factor, name, unseen)
        is_number = reading.kind == "number"
        return mark_missing(encoded, self.missing_values) if is_number else encoded

    def _fill_gap(self, place: int, n_rows: int) -> Any:
        """Return the cells of an absent column."""
        reading = self.readings.get(place)
        if reading is not None and reading.kind == "text":
            return sparse.csr_array((n_rows, reading.n_features))
        is_coded = reading is not None and reading.n_features > 1
        return np.full(n_rows, -1 if is_coded else self._gap)

    # Files

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all of it as values for JSON and as arrays."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        arrays = {name: values.pop(name) for name in ARRAYS}
        readings = {str(place): asdict(one) for place, one in self.readings.items()}
        return values | {"readings": readings}, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Columns":
        """Return the columns that :meth:`pack` took apart, or raise ValueError."""
        names, readings = values["names"], {}
        for place, one in values["readings"].items():
            categories, rare = (tuple(map(str, one[name])) for name in ("categories", "rare"))
            readings[int(place)] = Reading(one["kind"], categories, rare, tuple(one["format"]))
        return cls(
            int(values["n_columns_in"]),
            names=None if names is None else tuple(map(str, names)),
            readings=readings,
            unit_length=bool(values["unit_length"]),
            imputes=bool(values["imputes"]),
            layer=str(values["layer"]),
            dropped=tuple((str(name), str(why)) for name, why in values["dropped"]),
            missing_values=tuple(map(str, values["missing_values"])),
            notes=tuple(Note(*map(str, note)) for note in values["notes"]),
            **{name: arrays[name] for name in ARRAYS},
        )


ARRAYS = ("positions", "fills", "missing", "is_boolean", "shift", "scale")


def _select_matrix(table: Any, positions: IndexArray, gap: float) -> NDArray[Any] | None:
    """Return columns of a table as a matrix; None unless all are plain numbers."""
    is_there = positions >= 0
    if isinstance(table, nw.DataFrame):
        chosen = [table.columns[position] for position in positions[is_there].tolist()]
        if len({*chosen}) < len(chosen):
            return None
        places = positions[is_there].tolist()  # names may be numbers
        table = table if chosen == table.columns else table[:, places]
    elif is_plain(table) and not np.array_equal(positions, np.arange(table.shape[1])):
        table = table[:, positions[is_there]]
    matrix = as_matrix(table)
    if not is_plain(matrix) or is_there.all():
        return matrix if is_plain(matrix) else None
    whole = np.full((matrix.shape[0], len(positions)), gap, np.result_type(matrix, "f4"))
    whole[:, is_there] = matrix
    return whole


def _as_float(data: Any, dtype: np.dtype[np.floating]) -> Any:
    """Cast integers to float64, floats to the given dtype; text and the like are refused."""
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):  # an overflow is infinite and refused for it
            return data.astype(dtype, copy=False)
    if data.dtype.kind not in "biu":
        raise InputError(f"must hold numbers, got {data.dtype}", "X")
    return data.astype(np.float64)


def mark_missing(numbers: Any, missing_values: Sequence[str]) -> Any:
    """Return numbers with NaN for those that count as missing."""
    values = [one for one in map(_as_number, missing_values) if one is not None]
    if not values or not (is_missing := np.isin(numbers, values)).any():
        return numbers
    return np.where(is_missing, np.asarray(np.nan, dtype=float_type(numbers)), numbers)


def drop_missing(factor: Factor, missing_values: Sequence[str]) -> Factor:
    """Return a factor with None for the values that count as missing."""
    if not missing_values:
        return factor
    texts = {*missing_values}
    values = [None if text_of(value) in texts else value for value in factor.values]
    return factor._replace(values=values)


def encode_factor(
    reading: Reading, factor: Factor, name: str, unseen: Counter[tuple[str, str]] | None = None
) -> Any:
    """Return the cells of a factor as in :data:`Parsed`.

    Values that the fit did not see are counted, and count as missing.
    """
    texts = ["" if is_missing(value) else text_of(value) for value in factor.values]
    if reading.kind == "text":
        return find_words(texts, reading.categories)[factor.codes]
    of_values: Any
    if reading.kind in DATE_PARTS:
        order = DateFormat(*reading.format) if reading.format else DateFormat("year-month-day")
        times = parse_dates(texts, order)
        others = parse_dates(texts, DateFormat("year-month-day"))  # dates that became text
        times = np.where(np.isnat(times), others, times)
        of_values, is_known = encode_times(reading, times), ~np.isnat(times)
    elif reading.kind == "number":
        of_values = parse_numbers(texts, NumberFormat(*reading.format))
        is_known = ~np.isnan(of_values)
        present = [text for text in texts if text]
        if present and not is_known.any() and unseen is not None:
            problem = f"column {name!r} of X holds {present[0]!r}"
            raise InputError(f"{problem}, where a number is expected")
    else:
        code_of = {text: code for code, text in enumerate(reading.categories)}
        codes = np.array([code_of.get(text, -1) for text in texts], dtype=np.int64)
        of_values, is_known = _as_cells(reading, codes), codes >= 0
    if unseen is not None:
        is_named = [bool(text) and text not in reading.rare for text in texts]
        is_new = np.array(is_named, dtype=bool) & ~is_known
        if is_new.any():
            totals = np.bincount(factor.codes[factor.codes >= 0], minlength=len(texts))
            new = np.flatnonzero(is_new & (totals > 0)).tolist()
            unseen.update({(name, texts[at]): int(totals[at]) for at in new})
    gap = -1 if of_values.dtype.kind == "i" else np.nan
    return np.append(of_values, gap)[factor.codes]


def _as_cells(reading: Reading, codes: NDArray[np.int64]) -> NDArray[Any]:
    """Return the codes of categories, -1 if missing; of one feature as floats with NaN."""
    if reading.n_features > 1:
        return codes
    if len(reading.categories) == 1 and reading.is_nominal:
        return np.where(codes < 0, np.nan, 1.0)
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def encode_times(reading: Reading, times: NDArray[np.datetime64]) -> NDArray[Any]:
    """Return a part of each time as a number, or weekdays as codes of the categories."""
    parts = split_date(times, reading.kind)
    if reading.kind != "weekday":
        return parts
    codes = np.full(8, -1)
    codes[[WEEKDAYS.index(day) for day in reading.categories]] = range(len(reading.categories))
    return _as_cells(reading, codes[np.where(np.isnan(parts), 7, parts).astype(np.intp)])


def find_words(texts: Sequence[str], words: Sequence[str]) -> Any:
    """Return CSR with 1 where a text has a word, and a last row of zeros."""
    counter = CountVectorizer(vocabulary=[*words], binary=True, dtype=np.float64)
    return sparse.csr_array(counter.transform([*texts, ""]))


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


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
    if all_finite(data):
        return FeatureRows(data)
    _refuse_infinity(data)
    missing = np.asfortranarray(np.isnan(data))
    np.copyto(data, fills, where=missing)
    return FeatureRows(data, missing)


def _refuse_infinity(values: Array) -> None:
    if np.isinf(values).any():
        raise InputError("X holds infinity, or a value too large for its type")
