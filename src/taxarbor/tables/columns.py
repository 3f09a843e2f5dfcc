"""The columns of a table, and the features that they become: the only way in for rows.

What is known of them is held as arrays, so a million cost nothing; only columns that are read
in another way than numbers have a :class:`Reading`. Features are in the units of the table: a
number is one, categories are one-hot encoded. Missing values are imputed by means, or shares of
categories. Only a fit sees features scaled, and its rules are then brought back to the units.
Rules read the logarithms of skewed columns: :meth:`Columns.take_logs`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from taxarbor._errors import InputError, some
from taxarbor._frames import (
    Cells,
    as_canonical,
    as_factor,
    as_matrix,
    as_numbers,
    as_table,
    as_times,
    column_names,
    find_dtype,
    find_kind,
    float_type,
    is_plain,
    iterate_columns,
    mark_missing,
)
from taxarbor._types import Array, IndexArray, set_frozen
from taxarbor.rows import all_finite, check_structure
from taxarbor.tables._spelled_dates import (
    DATE_PARTS,
    DATES,
    TIME_OF_DAY,
    parse_dates,
    split_date,
)
from taxarbor.tables._spelled_numbers import NumberFormat, parse_numbers
from taxarbor.tables.notes import Note

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
KINDS = ("number", "category", "ordered", "text", *DATE_PARTS)
MIN_FEATURES_PER_SPARSE_COLUMN = 4  # features per column beyond which they are kept sparse

Parsed: TypeAlias = Any
"""Cells of a table as numbers: a matrix, or a list with the cells of each column: floats, NaN
where a value is missing; codes of more than two categories, -1 where it is missing; CSR, 1 for
each word of a text."""


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """How the cells of a column are read that are not plain numbers.

    ``categories`` are the values of a category; of two, the second is the feature. Or the
    levels of an ordered one, from the lowest, or the words of texts.
    """

    kind: str  # one of KINDS: the type of its cells; "number" if they are written in a format
    categories: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()  # known, and missing: too rare, or no numbers or dates
    format: tuple[Any, ...] = ()  # of a NumberFormat or of dates; () where cells have a type

    def __post_init__(self) -> None:
        has_values = self.is_nominal or self.kind in ("ordered", "text")
        is_right = self.kind in KINDS and bool(self.categories) == has_values
        is_right = is_right and len({*self.categories}) == len(self.categories)
        if self.kind == "weekday":
            is_right = is_right and {*self.categories} <= {*WEEKDAYS}
        if self.kind == "number":
            is_right = is_right and NumberFormat(*self.format).decimal in (".", ",")
        elif self.format:
            is_right = is_right and self.format in [(one,) for one in (*DATES, TIME_OF_DAY)]
        if not is_right:
            raise ValueError(f"{self} is not how a column is read")

    @property
    def n_features(self) -> int:
        """Number of features."""
        n_values = len(self.categories)
        return n_values if self.kind == "text" or (self.is_nominal and n_values > 2) else 1

    @property
    def is_nominal(self) -> bool:
        """Whether the values have no order, and more than two have a feature each."""
        return self.kind in ("category", "weekday")


class Column(NamedTuple):
    """A column of a table, or a part of a date, and what it becomes."""

    name: str  # ``x3`` where the table has none
    kind: str  # the type of its cells: "number", "boolean", or that of a Reading
    fill: tuple[float, ...]  # imputes missing values: the mean, or the share of each category
    categories: tuple[str, ...] = ()  # as in a Reading
    missing: float = 0.0  # the share of missing values, in the fit
    unit: str = ""  # how a value is shown: ``{} %``

    @property
    def label(self) -> str:
        """The name, and which part of a date it is, unless that is the name."""
        is_part = self.kind in DATE_PARTS and self.name.casefold() != self.kind
        return f"{self.name} {self.kind}" if is_part else self.name

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

    cells: Any  # as in :data:`Parsed`; None for those of a matrix
    reading: Reading | None
    fills: tuple[float, ...]  # the mean of each feature: of a category or word, its share
    n_known: float  # rows with a value
    std: float = 0.0  # standard deviation of one feature, without outliers
    is_boolean: bool = False
    quantiles: Array | None = None  # of a skewed number: evenly spaced quantiles


class FeatureRows(NamedTuple):
    """Rows as features, and which cells of the table are missing.

    ``data`` is an array or a CSR matrix; of plain numbers it may still hold NaN, and
    :meth:`Columns.impute` fills them. ``missing`` has the shape (n_rows, n_columns), an array
    or CSC; None if there are none. ``unseen`` counts values that the fit did not see.
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
    log_origin, log_unit : arrays of shape (n_features,)
        Of a skewed column: rules read ``log(1 + (x - log_origin) / log_unit)``, or a straight
        line where x is below the origin. If the unit is negative, the column is skewed to the
        left: x is above it, and the value negative. 0 where rules read x itself.
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
    log_origin: Array = field(default_factory=lambda: np.zeros(0))
    log_unit: Array = field(default_factory=lambda: np.zeros(0))
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
        for name in ARRAYS[1:]:
            length = len(counts) if name == "missing" else len(owner)
            kept = np.array(getattr(self, name), bool if name == "is_boolean" else np.float64)
            kept = kept if kept.size else np.full(length, name == "scale", kept.dtype)
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
            raise ValueError(f"there are {len(self.names)} names, not {self.n_columns_in}")

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
            return Column(name, kind, fill, missing=missing)
        if reading.is_nominal and len(reading.categories) == 2:
            fill = (1.0 - fill[0], fill[0])
        unit = NumberFormat(*reading.format).pattern if reading.kind == "number" else ""
        return Column(name, reading.kind, fill, reading.categories, missing, unit)

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
        positions = self.positions.tolist()
        return tuple(f"x{at}" if self.names is None else self.names[at] for at in positions)

    def feature_name(self, feature: int) -> str:
        """Return the name of one feature."""
        place = int(self.owner[feature])
        return self[place].feature_names[feature - int(np.searchsorted(self.owner, place))]

    @property
    def is_scaled(self) -> bool:
        """Whether a fit sees other numbers than the table has."""
        return bool(self.shift.any() or (self.scale != 1.0).any() or self.log_unit.any())

    @property
    def is_sparse(self) -> bool:
        """Whether features are sparse: most are of categories."""
        return self.n_features > MIN_FEATURES_PER_SPARSE_COLUMN * len(self)

    @property
    def fill(self) -> Array | None:
        """What imputes missing values in the features that rules read; None: refused."""
        return self.take_logs(self.fills[None])[0] if self.imputes else None

    @property
    def _gap(self) -> float:
        """What stands in columns that are absent and not needed."""
        return np.nan if self.imputes else 0.0

    def rename(self, names: Sequence[str]) -> "Columns":
        """Return the same columns with other names, one for each that is used."""
        every = [*(self.names or (f"x{at}" for at in range(self.n_columns_in)))]
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
        self, names: Sequence[str] | None, width: int, needed: NDArray[np.bool_] | None = None
    ) -> Match:
        """Return where the columns stand in a table: by name, or where they stood.

        Of those that are not needed, any may be absent, and of the others all but one. Raises
        InputError for an array of another width, and where no needed column is there.
        """
        if names is None or self.names is None or self.names == tuple(names):
            if width != self.n_columns_in:
                expected = f"Taxonomy is expecting {self.n_columns_in} features as input"
                raise InputError(f"X has {width} features, but {expected}")
            return Match(self.positions)
        position_of = {name: position for position, name in enumerate(names)}
        own = [self.names[position] for position in self.positions.tolist()]
        found = np.array([position_of.get(name, -1) for name in own], dtype=np.intp)
        is_needed = np.ones(len(own), dtype=bool) if needed is None else needed
        places = np.flatnonzero(is_needed & (found < 0)).tolist()
        absent = [*dict.fromkeys(own[place] for place in places)]
        if absent and not (self.imputes and (found[is_needed] >= 0).any()):
            listing = some([repr(name) for name in absent], 5)
            raise InputError(f"X lacks columns that the tree was grown on: {listing}")
        found[~is_needed & (found < 0)] = -2
        return Match(found, tuple(absent))

    def read(self, X: Any, dtype: Any = np.float64, match: Match | None = None) -> FeatureRows:
        """Return the rows of a table in the user's units; plain numbers may hold NaN."""
        table = as_table(X)
        match = match or self.match(column_names(table), table.shape[1])
        unseen: Counter[tuple[str, str]] = Counter()
        cells = self._parse(table, match.positions, np.dtype(dtype), unseen)
        is_joined = isinstance(cells, list) or self.unit_length
        rows = self.join(cells, table.shape[0], dtype) if is_joined else FeatureRows(cells)
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
        """Return rows without NaN, and where values were missing; infinities are refused."""
        data = rows.data
        values = data if isinstance(data, np.ndarray) else data.data
        if rows.missing is not None or all_finite(values):
            return rows
        if np.isinf(values).any():
            raise InputError("X holds infinity, or a value too large for its type")
        missing: Any = np.isnan(values)
        fills = self.fills.astype(data.dtype)
        if isinstance(data, np.ndarray):
            filled = np.where(missing, fills, data)
            return rows._replace(data=filled, missing=np.asfortranarray(missing))
        where = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))[missing]
        cells = missing[missing], (where, data.indices[missing])
        data = data.copy()
        data.data[missing] = fills[data.indices[missing]]
        return rows._replace(data=data, missing=sparse.csc_array(cells, shape=data.shape))

    def take_logs(self, data: Any, features: Any = slice(None)) -> Any:
        """Return some features, all by default, as rules read them: logarithms where skewed."""
        origin, unit = self.log_origin[features], self.log_unit[features]
        curved = np.flatnonzero(unit)
        if not len(curved):
            return data
        result = data.copy()
        for at in curved.tolist():
            steps = (data[..., at] - origin[at]) / unit[at]
            logs = np.where(steps > 0.0, np.log1p(np.maximum(steps, 0.0)), steps)
            result[..., at] = logs if unit[at] > 0.0 else -logs
        return result

    def undo_log(self, feature: int, value: np.floating) -> float:
        """Return the number of fewest digits that rules read as a value, if there is one."""
        unit, origin = float(self.log_unit[feature]), float(self.log_origin[feature])
        if not unit:
            return float(str(value))
        steps = float(value) * np.sign(unit)
        with np.errstate(over="ignore"):
            number = origin + unit * (np.expm1(steps) if steps > 0.0 else steps)
        for digits in range(1, 18):
            shown = float(f"{number:.{digits}g}")
            if self.take_logs(np.array([shown], dtype=value.dtype), [feature])[0] == value:
                return shown
        return float(number)

    def scale_rows(self, data: Any) -> Any:
        """Return features as a fit sees them. Only stored entries of sparse ones are scaled."""
        if not self.is_scaled:
            return data
        if not isinstance(data, np.ndarray):
            dtype = np.float32 if self.is_sparse else data.dtype  # which is precise enough
            matrix: Any = data.astype(dtype)
            matrix.data /= self.scale[matrix.indices].astype(dtype)
            return matrix
        scaled = self.take_logs(data) - self.shift.astype(data.dtype)
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
        data: Any = np.empty((n_rows, 0 if self.is_sparse else self.n_features), dtype)
        blocks: list[Any] = []
        begins = np.searchsorted(self.owner, np.arange(len(self) + 1))
        for place, values in enumerate(cells):
            features = slice(begins[place], begins[place + 1])
            fills, block = self.fills[features], values
            if not sparse.issparse(values) and len(fills) > 1:
                missing[:, place] = values < 0
                lines = np.vstack([np.eye(len(fills)), fills])
                block = (sparse.csr_array(lines) if self.is_sparse else lines)[values]
            elif not sparse.issparse(values):
                missing[:, place] = np.isnan(values)
                fill = values.dtype.type(fills[0])
                block = np.where(missing[:, [place]], fill, values[:, None])
            if self.is_sparse:
                blocks.append(sparse.csr_array(block, dtype=dtype))
            else:
                data[:, features] = block if isinstance(block, np.ndarray) else block.toarray()
        data = sparse.hstack(blocks, "csr") if self.is_sparse else data
        return FeatureRows(data, missing if missing.any() else None)

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
        is_there = positions >= 0
        if not self.readings:
            has_all = np.array_equal(positions[is_there], np.arange(table.shape[1]))
            matrix = as_matrix(table if has_all else table[:, positions[is_there].tolist()])
            if is_plain(matrix):
                data = mark_missing(_as_float(matrix, dtype), self.missing_values)
                if is_there.all():
                    return np.ascontiguousarray(data)
                whole = np.full((table.shape[0], len(positions)), self._gap, data.dtype)
                whole[:, is_there] = data
                return whole
        columns = iterate_columns(table, positions[is_there])
        dates: dict[int, Any] = {}
        cells = [
            self._read_cells(place, next(columns), unseen, dates)
            if position >= 0
            else self._fill_gap(place, table.shape[0])
            for place, position in enumerate(positions.tolist())
        ]
        return cells if self.readings else np.column_stack(cells).astype(dtype)

    def _select_sparse(self, table: Any, positions: IndexArray, dtype: Any) -> Any:
        check_structure(table)
        if any(reading.categories for reading in self.readings.values()):
            raise InputError("X is a sparse matrix, and the table had categories: give a frame")
        data = _as_float(as_canonical(table), dtype)
        check_structure(data)  # what other formats were made into
        n_rows, width = data.shape
        if np.array_equal(positions, np.arange(width)):
            return data
        if (positions < 0).any():
            gaps = sparse.csr_array(np.tile([0.0, self._gap], (n_rows, 1)).astype(dtype))
            data = sparse.hstack([data, gaps], "csr")
        return data[:, np.where(positions < 0, width + 2 + positions, positions)]

    def _read_cells(
        self, place: int, cells: Cells, unseen: Counter[tuple[str, str]], dates: dict[int, Any]
    ) -> Any:
        """Return the cells of a column, as in :data:`Parsed`; ``dates`` keeps what was read."""
        reading, position = self.readings.get(place, Reading("number")), self.positions[place]
        if position in dates:
            return encode_times(reading, dates[position])
        name, kind, is_date = self[place].name, find_kind(cells), reading.kind in DATE_PARTS
        if is_date and kind == "date":
            dates[position] = as_times(cells)
            return encode_times(reading, dates[position])
        is_text = kind in ("text", "category") and find_dtype(cells) != "times"
        if reading.kind == "number" and not is_text:
            return as_numbers(cells, name, self.missing_values)
        codes, texts = as_factor(cells, self.missing_values)
        of_texts = encode_texts(reading, texts)
        if reading.kind == "text":
            return of_texts[codes]
        is_new = of_texts[:-1] < 0 if of_texts.dtype.kind == "i" else np.isnan(of_texts[:-1])
        if reading.kind == "number":
            if texts and place not in self.readings and is_new.all():
                problem = f"column {name!r} of X holds {texts[0]!r}"
                raise InputError(f"{problem}, where a number is expected")
            of_texts = mark_missing(of_texts, self.missing_values)
        totals = np.bincount(codes + 1, minlength=len(texts) + 1)[1:].tolist()
        for at in np.flatnonzero(is_new).tolist():
            if totals[at] and texts[at] not in reading.rare:
                unseen[name, texts[at]] = totals[at]
        if not is_date:
            return of_texts[codes]
        dates[position] = of_texts[codes]
        return encode_times(reading, dates[position])

    def _fill_gap(self, place: int, n_rows: int) -> Any:
        """Return the cells of an absent column."""
        if place not in self.readings:
            return np.full(n_rows, self._gap)
        return self._read_cells(place, np.full(n_rows, None), Counter(), {})

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


LOGS = ("log_origin", "log_unit")
ARRAYS = ("positions", "fills", "missing", "is_boolean", "shift", "scale", *LOGS)


def _as_float(data: Any, dtype: np.dtype[np.floating]) -> Any:
    """Cast integers to float64, floats to the given dtype; text and the like are refused."""
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):  # an overflow is infinite and refused for it
            return data.astype(dtype, copy=False)
    if data.dtype.kind not in "biu":
        raise InputError(f"must hold numbers, got {data.dtype}", "X")
    return data.astype(np.float64)


def encode_texts(reading: Reading, texts: Sequence[str]) -> Any:
    """Return what texts stand for, as in :data:`Parsed`, or times, and a missing one."""
    if reading.kind == "text":
        counter = CountVectorizer(vocabulary=reading.categories, binary=True, dtype=np.float64)
        return sparse.csr_array(counter.transform([*texts, ""]))
    if reading.kind in DATE_PARTS:
        return np.append(parse_times(texts, reading.format), np.datetime64("NaT"))
    if reading.kind == "number":
        cells = parse_numbers(texts, NumberFormat(*reading.format))
    else:
        code_of = {text: code for code, text in enumerate(reading.categories)}
        codes = np.array([code_of.get(text, -1) for text in texts], dtype=np.int64)
        cells = _as_cells(reading, codes)
    return np.append(cells, -1 if cells.dtype.kind == "i" else np.nan)


def parse_times(texts: Sequence[str], format: tuple[Any, ...]) -> NDArray[np.datetime64]:
    """Return texts as times, NaT where one is none; dates of a type may have become text."""
    times = parse_dates(texts, format[0] if format else "year-month-day")
    others = parse_dates(texts, "year-month-day")
    return np.where(np.isnat(times), others, times)


def _as_cells(reading: Reading, codes: NDArray[np.int64]) -> NDArray[Any]:
    """Return the codes of categories, -1 if missing; of one feature as floats with NaN."""
    if reading.n_features > 1:
        return codes
    return np.where(codes < 0, np.nan, codes + float(len(reading.categories) == 1))


def encode_times(reading: Reading, times: NDArray[np.datetime64]) -> NDArray[Any]:
    """Return a part of each time as a number, or weekdays as codes of the categories."""
    parts = split_date(times, reading.kind)
    if reading.kind != "weekday":
        return parts
    is_day = parts[:, None] == [WEEKDAYS.index(day) for day in reading.categories]
    return _as_cells(reading, np.where(is_day.any(axis=1), is_day.argmax(axis=1), -1))


def find_empty_rows(missing: Any) -> NDArray[np.bool_] | None:
    """Return which rows have missing values only; None if there are none."""
    if missing is None or sparse.issparse(missing):
        return None
    is_empty: NDArray[np.bool_] = missing.all(axis=1)
    return is_empty if is_empty.any() else None
