"""What the columns of a table are: kinds, statistics, scales.

Kinds are decided here and nowhere else, whether columns come from a file or from a frame.
The table is in memory: the sample that a fit sees. All other rows are only read, by the
finished :class:`~taxarbor.tables.columns.Columns`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from typing import Any, NamedTuple, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._frames import (
    Cells,
    Factor,
    Frame,
    as_days,
    as_factor,
    as_matrix,
    as_numbers,
    as_vector,
    find_dtype,
    is_missing,
    is_number,
    is_plain,
    iterate_columns,
    list_cells,
    text_of,
)
from taxarbor._number_text import format_number
from taxarbor._types import Array, IndexArray
from taxarbor.tables.columns import (
    WEEKDAYS,
    Columns,
    Parsed,
    Reading,
    date_parts,
    encode_factor,
)

FROM_DTYPE = "from_dtype"

MAX_TEXT_VALUES = 50
"""Distinct values up to which a text column is categorical."""
MAX_CATEGORIES = 255
"""Distinct values up to which a column may be declared categorical."""
MIN_ROWS_PER_CATEGORY = 5
"""Rows that a category needs; in large tables one in a thousand, in small ones one in fifty. A
rare value would be as far from all others as it is rare."""
MIN_ROWS_OF_COUNT = 100
"""Rows from which on consecutive integers are an identifier wherever they begin."""
OUTLIER_RANGES = 100.0
"""Interquartile ranges from the median beyond which a value is no part of mean and variance."""
MAX_ABSOLUTE = 1e150
"""Largest absolute value whose square can be summed."""
LOW_VARIANCE, LOW_VARIANCE_SHARE, DOMINANT_PERCENT = 0.01, 1 / 3, 90.0
"""Columns differ in unit if this share of them have less than a hundredth of the mean variance,
or if one of three or more has 90 % of the total. In tables of measurements more than half are
below, in embeddings and images less than a sixth, and none has more than 15 %."""
COLUMNS_AT_ONCE = 64
"""Columns of an array that are copied together, so that memory is read in order."""

DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
IDENTIFIER = re.compile(r"(?i:id|index|.*[ _.-]id)|.*[a-z]I[dD]", re.DOTALL)
MAX_ROW_NAME = 100
"""Characters of a text that may be the name of a row."""
LIKE_VALUE = re.compile(r"[\d\W]*[^\w\s][\d\W]*")
"""Dates such as 1/2/2024, and numbers such as $1,200, which are no names."""

Selection = frozenset[int] | None
"""Positions of the columns that a parameter of the encoder selects; None: by their types."""


class FoundColumn(NamedTuple):
    """A column that is used, or a part of one: how it is read, its cells and statistics."""

    position: int
    cells: NDArray[Any] | None
    """As in :data:`~taxarbor.tables.columns.Parsed`; None for those of a matrix."""
    reading: Reading | None
    fill: tuple[float, ...]
    """The mean, or the share of each category."""
    missing: float
    std: float = 0.0
    """Standard deviation of numbers without outliers; zero for categories."""
    is_boolean: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableSettings:
    """The parameters of a ``TableEncoder``."""

    categorical_features: Any = FROM_DTYPE
    date_features: Any = None
    scale: str | None = "auto"
    metric: str = "euclidean"


def find_columns(
    table: Any,
    names: Sequence[str] | None,
    settings: TableSettings,
    counts: IndexArray | None,
    *,
    has_identifiers: bool,
) -> tuple[Columns, Parsed]:
    """Return the columns of a table, with their scales, and its cells as numbers.

    ``counts`` are how often each row counts; once if None. Columns that identify rows are left
    out where there may be any. Raises InputError if no column can be used, or one not in the
    way that was asked for.
    """
    called = names or [f"x{at}" for at in range(table.shape[1])]
    used: list[FoundColumn] = []
    dropped: list[tuple[str, str]] = []
    results: Iterable[Sequence[FoundColumn] | str]
    cells: Parsed = None
    if issparse(table):
        cells = _as_canonical(table)
        used += _describe_sparse(cells, called, counts)
    else:
        reader = _ColumnReader(
            _select("categorical_features", settings.categorical_features, called),
            _select("date_features", settings.date_features, called),
            counts,
            table.shape[0] if counts is None else int(counts.sum()),
            has_identifiers=has_identifiers,
            needs_variance=settings.scale is not None and settings.metric != "cosine",
        )
        matrix = as_matrix(table)
        if is_plain(matrix) and not (reader.categorical or reader.dates):
            cells, results = matrix, reader.read_matrix(matrix, called)
        else:
            results = reader.read_table(table, called)
        for name, result in zip(called, results, strict=True):
            if isinstance(result, str):
                dropped.append((name, result))
            else:
                used += result
    if not used:
        reasons = some([f"{name!r} ({reason})" for name, reason in dropped], 5)
        raise InputError(f"has no column to use: {reasons}", "X")
    columns = _make_columns(
        used, names, len(called), settings, tuple(dropped), is_sparse=issparse(table)
    )
    if cells is None:
        cells = [one.cells for one in used]
    elif dropped:
        cells = cells[:, columns.positions]
    return columns, cells


def _make_columns(
    used: Sequence[FoundColumn],
    names: Sequence[str] | None,
    width: int,
    settings: TableSettings,
    dropped: tuple[tuple[str, str], ...],
    *,
    is_sparse: bool,
) -> Columns:
    """Return columns with their scales and notes."""
    fills = (one.fill[1:] if len(one.fill) == 2 else one.fill for one in used)
    columns = Columns(
        width,
        np.array([one.position for one in used]),
        np.array([*chain(*fills)]),
        None if names is None else tuple(names),
        {at: one.reading for at, one in enumerate(used) if one.reading is not None},
        missing=np.array([one.missing for one in used]),
        unit_length=settings.metric == "cosine",
        dropped=dropped,
    )
    of_columns = [one.is_boolean or len(one.fill) > 1 for one in used]
    # The lengths of rows make other values of them.
    is_boolean = np.array(of_columns)[columns.owner] & (not columns.unit_length)
    if settings.metric == "cosine":
        _check_cosine(columns, settings.scale)
    reason_to_scale = _find_reason_to_scale(used, columns, settings)
    shift, scale = columns.shift, columns.scale
    if reason_to_scale is not None:
        scales = (_scale_column(one, is_sparse, columns.is_sparse) for one in used)
        shift, scale = np.array([*chain(*scales)]).T
    notes = tuple(_describe_columns(used, columns, reason_to_scale))
    return replace(columns, is_boolean=is_boolean, shift=shift, scale=scale, notes=notes)


# Which columns


def _select(parameter: str, given: Any, names: Sequence[str]) -> Selection:
    """Return the positions of the columns that a parameter names."""
    if given is None:
        return frozenset()
    if isinstance(given, str):
        if given == FROM_DTYPE:
            return None
        problem = f'must be "{FROM_DTYPE}", None, or names of columns in a list; got {given!r}'
        raise InputError(problem, parameter)
    chosen = np.asarray(given)
    if chosen.ndim != 1 or (chosen.dtype.kind not in "iuUO" and chosen.size):
        problem = f"must be names or positions of columns; got {given!r}"
        raise InputTypeError(problem, parameter)
    position_of = {name: position for position, name in enumerate(names)}
    positions = []
    for one in chosen.tolist():
        position = one if isinstance(one, int) else position_of.get(str(one), -1)
        if not 0 <= position < len(names):
            present = some([repr(name) for name in names], 10)
            raise InputError(f"names {one!r}, which X does not have: {present}", parameter)
        positions.append(position)
    return frozenset(positions)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _ColumnReader:
    """Reads columns: each becomes a list of parts, or the reason why it is not used."""

    categorical: Selection
    dates: Selection
    counts: IndexArray | None
    n_rows: int
    has_identifiers: bool
    needs_variance: bool

    def read_matrix(
        self, matrix: NDArray[Any], names: Sequence[str]
    ) -> Iterator[Sequence[FoundColumn] | str]:
        """Yield what each column of a matrix is, or why it is not used."""
        for first in range(0, len(names), COLUMNS_AT_ONCE):
            block = matrix[:, first : first + COLUMNS_AT_ONCE].T
            for at, values in enumerate(np.array(block, dtype=np.float64, order="C"), first):
                found = self._describe_numbers(at, names[at], values)
                yield found if isinstance(found, str) else [found]

    def read_table(
        self, table: Any, names: Sequence[str]
    ) -> Iterator[Sequence[FoundColumn] | str]:
        """Yield what each column of a table is, or why it is not used."""
        for position, cells in enumerate(iterate_columns(table)):
            yield self._read(position, names[position], cells)

    def _read(self, position: int, name: str, cells: Cells) -> Sequence[FoundColumn] | str:
        is_declared = position in (self.categorical or ())
        if position in (self.dates or ()) and not is_declared:
            return self._read_dates(position, name, cells)
        kind, factor = find_kind(cells)
        if is_declared or (kind in ("category", "text") and self.categorical is None):
            factor = as_factor(cells) if factor is None else factor
            return self._read_categories(
                position, name, factor, "declared" if is_declared else kind
            )
        if kind == "number":
            found = self._describe_numbers(position, name, as_numbers(cells, name))
            return found if isinstance(found, str) else [found]
        if kind == "date" and self.dates is None:
            return self._read_dates(position, name, cells)
        reasons = {
            "vector": f"vectors: pass embedding={name!r}, or np.stack of the column as X",
            "date": "dates, which TableEncoder(date_features=...) uses",
            **dict.fromkeys(["text", "category"], "text, which is not declared categorical"),
        }
        return reasons.get(kind, kind)

    def _describe_numbers(
        self, position: int, name: str, cells: Array, reading: Reading | None = None
    ) -> FoundColumn | str:
        is_known = ~np.isnan(cells)
        values = cells[is_known].astype(np.float64, copy=False)
        repeated = values if self.counts is None else np.repeat(values, self.counts[is_known])
        if not len(repeated):
            return "empty"
        if reading is None and self.has_identifiers and is_identifier(name, values):
            return "looks like an identifier; rename the column to use it"
        if np.isinf(values).any():
            row = int(np.isinf(cells).argmax())
            problem = f"column {name!r} of X holds infinity, first in row {row}"
            raise InputError(f"{problem}, counted from 0; replace it")
        mean, std, largest = _summarize(repeated)
        if self.needs_variance and largest > MAX_ABSOLUTE:
            problem = f"holds numbers beyond {MAX_ABSOLUTE:.0e} in column {name!r}"
            raise InputError(f"{problem}; divide them", "X")
        missing, is_boolean = self._missing(len(repeated)), _holds_booleans(values)
        return FoundColumn(position, cells, reading, (mean,), missing, std, is_boolean)

    def _read_dates(
        self, position: int, name: str, cells: Cells
    ) -> Sequence[FoundColumn] | str:
        parts = date_parts(as_days(cells, name))
        found: list[FoundColumn] = []
        for kind in ("year", "month"):
            result = self._describe_numbers(position, name, parts[kind], Reading(kind))
            if isinstance(result, str):
                return result
            found.append(result)
        days = parts["weekday"]
        known = days >= 0
        weights = None if self.counts is None else self.counts[known]
        totals = np.bincount(days[known], weights, minlength=7)
        present = np.flatnonzero(totals)
        reading = Reading("weekday", tuple(np.array(WEEKDAYS)[present].tolist()))
        factor = Factor(days, list(WEEKDAYS))
        return [*found, self._describe_categories(position, reading, factor, totals[present])]

    def _read_categories(
        self, position: int, name: str, factor: Factor, kind: str
    ) -> Sequence[FoundColumn] | str:
        is_declared = kind == "declared"
        texts, n_known = _count_texts(factor, self.counts)
        reason = _find_reason_to_drop(texts, n_known, kind)
        if reason is not None and is_declared and texts:
            problem = f"names {name!r}, which has {len(texts):,} different values"
            more = f"more than {MAX_CATEGORIES}; leave it out, or put values together"
            raise InputError(f"{problem}, {more}", "categorical_features")
        if reason is not None:
            return reason
        texts, n = dict(sorted(texts.items())), self.n_rows
        least = min(n / 50, max(MIN_ROWS_PER_CATEGORY, n / 1000))
        common = {text: total for text, total in texts.items() if total >= least}
        if is_declared or len(common) < 2:
            common = texts
        reading = Reading("category", tuple(common), tuple(texts.keys() - common.keys()))
        totals = np.array([*common.values()])
        return [self._describe_categories(position, reading, factor, totals)]

    def _describe_categories(
        self, position: int, reading: Reading, factor: Factor, totals: NDArray[Any]
    ) -> FoundColumn:
        totals = totals.astype(np.float64)
        shares = tuple((totals / totals.sum()).tolist())
        missing = self._missing(int(totals.sum()))
        cells = encode_factor(reading, factor, "")
        return FoundColumn(position, cells, reading, shares, missing)

    def _missing(self, n_known: int) -> float:
        """Return the share of rows without a value."""
        return (self.n_rows - n_known) / self.n_rows


def find_kind(cells: Cells) -> tuple[str, Factor | None]:
    """Return the type of a column, and its values where they were read as text.

    The type is number, category, text, date or vector, or else why it is not used.
    """
    kind = find_dtype(cells)
    if kind in ("object", "list"):
        if isinstance(cells, nw.Series) and kind == "list":
            cells = cells.drop_nulls().head(1)
        kind = _find_kind_of_objects([one for one in list_cells(cells) if not is_missing(one)])
    if kind != "text":
        return kind, None
    factor = as_factor(cells)
    texts = (str(value).strip() for value in factor.values if not is_missing(value))
    first = next(texts, "")
    are_dates = DATE.fullmatch(first) and all(map(DATE.fullmatch, texts))
    return "date" if are_dates else "text", factor


def _find_kind_of_objects(cells: Sequence[Any]) -> str:
    """Return the type of Python objects, none of them missing."""
    if not cells:
        return "empty"
    if all(isinstance(cell, str) for cell in cells):
        return "text"
    if all(is_number(cell) for cell in cells):
        return "number"
    is_list = all(isinstance(cell, list | tuple | np.ndarray) for cell in cells)
    if is_list and as_vector(cells[0]) is not None:
        return "vector"
    is_date = all(isinstance(cell, date) for cell in cells)
    return "date" if is_date else "neither numbers nor text"


def _count_texts(factor: Factor, counts: IndexArray | None) -> tuple[dict[str, int], int]:
    """Return the number of rows of each text, by their counts, and of all rows with a text."""
    texts = [
        one.strip() if isinstance(one, str) else "" if is_missing(one) else text_of(one)
        for one in factor.values
    ]
    code_of = {text: code for code, text in enumerate(dict.fromkeys(["", *texts]))}
    codes = np.array([*map(code_of.__getitem__, texts), 0])[factor.codes]
    totals = np.bincount(codes, counts, minlength=len(code_of)).astype(np.int64).tolist()
    is_there = codes > 0 if counts is None else (codes > 0) & (counts > 0)
    pairs = zip(code_of, totals, strict=True)
    return {text: total for text, total in pairs if text and total}, int(is_there.sum())


def _find_reason_to_drop(texts: dict[str, int], n_known: int, kind: str) -> str | None:
    """Return why a column of texts, "text", "category" or "declared", is not categorical."""
    n_values = len(texts)
    if not n_values:
        return "empty"
    if n_values == 1 and kind != "declared":
        return "always the same"
    if kind == "text" and n_values == n_known:
        return "different in every row"
    if kind == "text" and (n_values > MAX_TEXT_VALUES or 2 * n_values > n_known):
        rows = f" in {n_known:,} rows" if n_values <= MAX_TEXT_VALUES else ""
        return f"text, {n_values:,} different values{rows}"
    return f"text, {n_values:,} different values" if n_values > MAX_CATEGORIES else None


def find_row_names(frame: Frame, names: Sequence[str]) -> str | None:
    """Return the only column that identifies rows, of text or else of integers.

    Of several, the only one that is named like an identifier.
    """
    columns = {name: frame.get_column(name) for name in names}
    named = [name for name, cells in columns.items() if _are_row_names(cells)] or [
        name
        for name, cells in columns.items()
        if cells.dtype.is_integer() and not cells.null_count()
        if is_identifier(name, cells.to_numpy())
    ]
    if len(named) > 1:  # such as a comment, beside an identifier
        named = [name for name in named if IDENTIFIER.fullmatch(name)]
    return named[0] if len(named) == 1 else None


def _are_row_names(cells: "nw.Series[Any]") -> bool:
    if find_dtype(cells) != "text" or cells.null_count() or cells.n_unique() < len(cells):
        return False
    texts = cells.to_list()
    is_short = max(map(len, texts)) <= MAX_ROW_NAME
    return is_short and not all(map(LIKE_VALUE.fullmatch, texts))


def is_identifier(name: str, values: Array) -> bool:
    """Return whether distinct integers identify rows: by the name, or if consecutive."""
    n = len(values)
    if n < 3:
        return False
    low, high = float(values.min()), float(values.max())
    # Consecutive numbers: years may be so, but not very many of them.
    is_count = high - low + 1.0 == n and (n >= MIN_ROWS_OF_COUNT or low in (0.0, 1.0))
    if not (is_count or IDENTIFIER.fullmatch(name)):
        return False
    return bool((values == np.floor(values)).all()) and len(np.unique(values)) == n


def _holds_booleans(values: Array) -> bool:
    """Return whether numbers are 0 and 1, both of them."""
    first = values[:64]  # which rule out most columns
    if not all(((one == 0.0) | (one == 1.0)).all() for one in (first, values)):
        return False
    return bool(values.min() < values.max())


def _summarize(values: Array) -> tuple[float, float, float]:
    """Return mean, standard deviation and largest absolute value, without outliers."""
    ranks = [-(-part * len(values) // 4) - 1 for part in (1, 2, 3)]  # as "inverted_cdf"
    first, median, third = np.partition(values, ranks)[ranks].tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        away = values - median
        distances = np.abs(away)
        reach = OUTLIER_RANGES * (third - first)
        if reach == 0.0 and (others := distances[distances > 0.0]).size:
            reach = OUTLIER_RANGES * float(np.median(others))  # mostly one value
        if distances.max() > reach > 0.0:
            away, values = away[distances <= reach], values[distances <= reach]
        mean, std = median + float(away.mean()), float(away.std())
    if not np.isfinite(mean):  # a sum of numbers beyond 1e300
        mean = median
    if std <= 1e-12 * abs(mean):  # what rounding leaves of a constant
        std = 0.0
    return mean, std, float(np.abs(values).max())


def _as_canonical(table: Any) -> Any:
    """Return a sparse matrix as CSR with at most one entry per cell."""
    matrix: Any = csr_array(table)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _describe_sparse(
    matrix: Any, names: Sequence[str], counts: IndexArray | None
) -> Iterator[FoundColumn]:
    """Yield the statistics of the columns of a canonical CSR matrix."""
    n, p = matrix.shape
    where, values = matrix.indices, matrix.data.astype(np.float64)
    for at in where[np.isinf(values)][:1].tolist():
        raise InputError(f"column {names[at]!r} of X holds infinity")
    weights = np.ones(len(values))
    if counts is not None:
        n, weights = int(counts.sum()), np.repeat(counts, np.diff(matrix.indptr)).astype(float)
    is_missing = np.isnan(values)
    n_missing = np.bincount(where[is_missing], weights[is_missing], minlength=p)
    where, values, weights = (one[~is_missing] for one in (where, values, weights))
    n_known = n - n_missing
    divisor = np.maximum(n_known, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.bincount(where, weights * values, minlength=p) / divisor
        n_zeros = n_known - np.bincount(where, weights, minlength=p)
        squares = np.bincount(where, weights * np.square(values - means[where]), minlength=p)
        stds = np.sqrt((squares + n_zeros * np.square(means)) / divisor)
    stats = zip(means.tolist(), stds.tolist(), (n_missing / n).tolist(), strict=True)
    for position, (mean, std, missing) in enumerate(stats):
        yield FoundColumn(position, None, None, (mean,), missing, std)


# Scales and notes


def _check_cosine(columns: Columns, scale: str | None) -> None:
    """Raise InputError for categories, and for scales that unit length would undo."""
    named = [repr(one.label) for one in columns if one.categories]
    if named:
        problem = f"is for numbers, and X has categories: {some(named, 5)}"
        raise InputError(f"{problem}; drop them, or choose euclidean", "metric")
    if scale not in ("auto", None):
        problem = "has no effect where rows are normalized by the metric cosine; leave it out"
        raise InputError(problem, "scale")


def _find_reason_to_scale(
    used: Sequence[FoundColumn], columns: Columns, settings: TableSettings
) -> str | None:
    """Return why columns are scaled, None if they are not."""
    if settings.metric == "cosine" or settings.scale is None:
        return None
    if settings.scale != "auto":
        return f"numbers are scaled ({settings.scale})"
    n_numbers = sum(len(one.fill) == 1 for one in used)
    if n_numbers < len(used):
        reason = "numbers are scaled to variance 1, beside categories"
        return reason if n_numbers else "categories are scaled by their frequency"
    variances = np.array([one.std**2 for one in used])
    variances = variances[variances > 0.0]
    if not len(variances):
        return None
    percent = 100.0 * variances.max() / variances.sum()
    is_dominant = len(variances) > 2 and percent > DOMINANT_PERCENT
    low_share = np.mean(variances < LOW_VARIANCE * variances.mean())
    if not is_dominant and low_share < LOW_VARIANCE_SHARE:
        return None
    largest = columns[int(np.argmax([one.std for one in used]))].label
    share = f"{largest} alone holds {format_number(percent, 3)} % of the variance"
    return f"numbers are scaled to variance 1, as they differ in unit: {share}"


def _scale_column(
    found: FoundColumn, is_from_sparse: bool, becomes_sparse: bool
) -> Iterator[tuple[float, float]]:
    """Yield the shift and the scale of each feature of a column.

    Zeros stay what they are where rows are sparse, or become so.
    """
    fill = found.fill
    if len(fill) > 2:
        for share in fill:
            yield 0.0 if becomes_sparse else share, float(np.sqrt(max(share, 1e-12)))
    elif len(fill) == 2:
        yield fill[-1], float(np.sqrt(fill[-1] * (1.0 - fill[-1]))) or 1.0
    else:
        yield 0.0 if is_from_sparse else fill[0], found.std or 1.0


def _describe_columns(
    used: Sequence[FoundColumn], columns: Columns, reason_to_scale: str | None
) -> Iterator[str]:
    """Yield a line for each thing that was done to the table."""
    missing = columns.missing
    if missing.any():
        worst, share = int(missing.argmax()), 100.0 * float(missing.mean())
        yield (
            f"missing values in {np.count_nonzero(missing)} of "
            f"{counted(len(columns), 'column')} are "
            f"imputed by the column's mean: {format_number(share, 2)} % of the cells, most in "
            f"{columns[worst].label}, {format_number(100.0 * float(missing[worst]), 2)} %"
        )
    rare = [
        f"{counted(len(reading.rare), 'value')} of {columns[place].name}"
        for place, reading in columns.readings.items()
        if reading.rare
    ]
    if rare:
        yield f"rare values count as missing: {some(rare, 5)}"
    if reason_to_scale is not None:
        yield reason_to_scale
    if columns.unit_length:
        yield "rows are normalized to length 1, and values are parts of it"
