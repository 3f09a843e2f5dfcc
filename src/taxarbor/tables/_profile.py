"""The types and statistics of a table's columns, and the encoding that follows from them.

Columns are typed here and nowhere else, whether they come from a file or from a frame.
The table is in memory: the sample that a fit sees. All other rows are only encoded, by the
finished :class:`~taxarbor.tables._encoding.Encoding`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, final

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._frames import (
    Cells,
    Factor,
    Frame,
    as_days,
    as_factor,
    as_matrix,
    as_numbers,
    as_table,
    as_vector,
    column_names,
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
from taxarbor.tables._encoding import (
    MIN_FEATURES_PER_SPARSE_COLUMN,
    WEEKDAYS,
    Column,
    Encoding,
    date_parts,
)

if TYPE_CHECKING:
    from taxarbor.tables._table_encoder import TableEncoder

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


class ColumnStats(NamedTuple):
    """A column that is used, and statistics of its numbers without outliers."""

    column: Column
    std: float = 0.0
    """Standard deviation; zero for categories."""
    n_rare: int = 0
    """Values that are too rare to be categories."""


def make_encoding(table: Any, encoder: "TableEncoder", counts: IndexArray | None) -> Encoding:
    """Return the encoding of a table: the types of its columns, and their scales.

    ``counts`` are how often each row counts; once if None. Raises InputError if no column can
    be used, or one not in the way that was asked for.
    """
    table = as_table(table)
    given_names = column_names(table)
    names = given_names or [f"x{at}" for at in range(table.shape[1])]
    used: list[ColumnStats] = []
    dropped: list[tuple[str, str]] = []
    if issparse(table):
        used += _profile_sparse(table, names, counts)
    else:
        reader = _ColumnReader(
            _select("categorical_features", encoder.categorical_features, names),
            _select("date_features", encoder.date_features, names),
            counts,
            table.shape[0] if counts is None else int(counts.sum()),
            may_have_identifiers=given_names is not None,
            needs_variance=encoder.scale is not None and encoder.metric != "cosine",
        )
        for name, result in zip(names, reader.read_all(table, names), strict=True):
            if isinstance(result, str):
                dropped.append((name, result))
            else:
                used += result
    if not used:
        reasons = some([f"{name!r} ({reason})" for name, reason in dropped], 5)
        raise InputError(f"has no column to use: {reasons}", "X")
    columns = tuple(one.column for one in used)
    if encoder.metric == "cosine":
        _check_cosine(columns, encoder.scale)
    reason_to_scale = _find_reason_to_scale(used, encoder)
    n_features = sum(one.n_features for one in columns)
    shift, scale = np.zeros(n_features), np.ones(n_features)
    if reason_to_scale is not None:
        becomes_sparse = n_features > MIN_FEATURES_PER_SPARSE_COLUMN * len(columns)
        scales = (_scale_column(one, issparse(table), becomes_sparse) for one in used)
        shift, scale = np.array([*chain(*scales)]).T
    return Encoding(
        columns,
        n_columns_in=len(names),
        has_names=given_names is not None,
        shift=shift,
        scale=scale,
        unit_length=encoder.metric == "cosine",
        dropped=tuple(dropped),
        notes=tuple(_describe_encoding(used, reason_to_scale, encoder.metric)),
    )


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
    """Reads columns: each becomes a list of statistics, or the reason why it is not used."""

    categorical: Selection
    dates: Selection
    counts: IndexArray | None
    n_rows: int
    may_have_identifiers: bool
    needs_variance: bool

    def read_all(
        self, table: Any, names: Sequence[str]
    ) -> Iterator[Sequence[ColumnStats] | str]:
        """Yield the statistics of each column, or why it is not used."""
        cells = as_matrix(table)
        if is_plain(cells) and not (self.categorical or self.dates):
            for first in range(0, len(names), COLUMNS_AT_ONCE):
                block = cells[:, first : first + COLUMNS_AT_ONCE].T
                for at, values in enumerate(np.array(block, dtype=np.float64, order="C")):
                    yield self._read_numbers(first + at, names[first + at], values)
            return
        for position, cells in enumerate(iterate_columns(table)):
            yield self._read(position, names[position], cells)

    def _read(self, position: int, name: str, cells: Cells) -> Sequence[ColumnStats] | str:
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
            return self._read_numbers(position, name, cells)
        if kind == "date" and self.dates is None:
            return self._read_dates(position, name, cells)
        reasons = {
            "vector": f"vectors: pass embedding={name!r}, or np.stack of the column as X",
            "date": "dates, which TableEncoder(date_features=...) uses",
            **dict.fromkeys(["text", "category"], "text, which is not declared categorical"),
        }
        return reasons.get(kind, kind)

    def _read_numbers(
        self, position: int, name: str, cells: Cells, kind: str = "number"
    ) -> Sequence[ColumnStats] | str:
        values = as_numbers(cells, name).astype(np.float64, copy=False)
        is_known = ~np.isnan(values)
        values = values[is_known]
        repeated = values if self.counts is None else np.repeat(values, self.counts[is_known])
        if not len(repeated):
            return "empty"
        may_be_identifier = kind == "number" and self.may_have_identifiers
        if may_be_identifier and is_identifier(name, values):
            return "looks like an identifier; rename the column to use it"
        mean, std, largest = _summarize(repeated)
        if self.needs_variance and largest > MAX_ABSOLUTE:
            problem = f"holds numbers beyond {MAX_ABSOLUTE:.0e} in column {name!r}"
            raise InputError(f"{problem}; divide them", "X")
        missing = self._missing(len(repeated))
        number = Column(
            name, position, kind, (mean,), values=_find_pair(values), missing=missing
        )
        return [ColumnStats(number, std)]

    def _read_dates(
        self, position: int, name: str, cells: Cells
    ) -> Sequence[ColumnStats] | str:
        parts = date_parts(as_days(cells, name))
        stats: list[ColumnStats] = []
        for kind in ("year", "month"):
            result = self._read_numbers(position, name, parts[kind], kind)
            if isinstance(result, str):
                return result
            stats += result
        days = parts["weekday"]
        known = days >= 0
        weights = None if self.counts is None else self.counts[known]
        totals = np.bincount(days[known], weights, minlength=7)
        present = np.flatnonzero(totals)
        texts = dict(zip(np.array(WEEKDAYS)[present].tolist(), totals[present], strict=True))
        return [*stats, self._make_categories(position, name, "weekday", texts)]

    def _read_categories(
        self, position: int, name: str, factor: Factor, kind: str
    ) -> Sequence[ColumnStats] | str:
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
        n_rare = len(texts) - len(common)
        if is_declared or len(common) < 2:
            common, n_rare = texts, 0
        stats = self._make_categories(position, name, "category", common)
        return [stats._replace(n_rare=n_rare)]

    def _make_categories(
        self, position: int, name: str, kind: str, texts: dict[str, Any]
    ) -> ColumnStats:
        totals = np.array([*texts.values()], dtype=np.float64)
        shares = tuple((totals / totals.sum()).tolist())
        missing = self._missing(int(totals.sum()))
        return ColumnStats(Column(name, position, kind, shares, tuple(texts), missing=missing))

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


def _find_pair(values: Array) -> tuple[float, ...]:
    """Return the two values of numbers that have no others, else ()."""
    pair = low, high = float(values.min()), float(values.max())
    first = values[:64]  # which rule out most columns
    has_two = all(((one == low) | (one == high)).all() for one in (first, values))
    return pair if has_two and low < high else ()


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


def _profile_sparse(
    table: Any, names: Sequence[str], counts: IndexArray | None
) -> Iterator[ColumnStats]:
    """Yield the statistics of the columns of a sparse matrix."""
    matrix = table.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
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
    stats = zip(names, means.tolist(), stds.tolist(), (n_missing / n).tolist(), strict=True)
    for position, (name, mean, std, missing) in enumerate(stats):
        yield ColumnStats(Column(name, position, "number", (mean,), missing=missing), std)


# Scales and notes


def _check_cosine(columns: Sequence[Column], scale: str | None) -> None:
    """Raise InputError for categories, and for scales that unit length would undo."""
    named = [repr(one.label) for one in columns if one.categories]
    if named:
        problem = f"is for numbers, and X has categories: {some(named, 5)}"
        raise InputError(f"{problem}; drop them, or choose euclidean", "metric")
    if scale not in ("auto", None):
        problem = "has no effect where rows are normalized by the metric cosine; leave it out"
        raise InputError(problem, "scale")


def _find_reason_to_scale(used: Sequence[ColumnStats], encoder: "TableEncoder") -> str | None:
    """Return why columns are scaled, None if they are not."""
    if encoder.metric == "cosine" or encoder.scale is None:
        return None
    if encoder.scale != "auto":
        return f"numbers are scaled ({encoder.scale})"
    numbers = [one for one in used if not one.column.categories]
    if len(numbers) < len(used):
        reason = "numbers are scaled to variance 1, beside categories"
        return reason if numbers else "categories are scaled by their frequency"
    variances = np.array([one.std**2 for one in used])
    variances = variances[variances > 0.0]
    if not len(variances):
        return None
    percent = 100.0 * variances.max() / variances.sum()
    is_dominant = len(variances) > 2 and percent > DOMINANT_PERCENT
    low_share = np.mean(variances < LOW_VARIANCE * variances.mean())
    if not is_dominant and low_share < LOW_VARIANCE_SHARE:
        return None
    largest = max(used, key=lambda one: one.std).column.label
    share = f"{largest} alone holds {format_number(percent, 3)} % of the variance"
    return f"numbers are scaled to variance 1, as they differ in unit: {share}"


def _scale_column(
    stats: ColumnStats, is_from_sparse: bool, becomes_sparse: bool
) -> Iterator[tuple[float, float]]:
    """Yield the shift and the scale of each feature of a column.

    Zeros stay what they are where rows are sparse, or become so.
    """
    fill, n_categories = stats.column.fill, len(stats.column.categories)
    if n_categories > 2:
        for share in fill:
            yield 0.0 if becomes_sparse else share, float(np.sqrt(max(share, 1e-12)))
    elif n_categories:
        yield fill[-1], float(np.sqrt(fill[-1] * (1.0 - fill[-1]))) or 1.0
    else:
        yield 0.0 if is_from_sparse else fill[0], stats.std or 1.0


def _describe_encoding(
    used: Sequence[ColumnStats], reason_to_scale: str | None, metric: str
) -> Iterator[str]:
    """Yield a line for each thing that was done to the table."""
    columns = [one.column for one in used]
    incomplete = [one for one in columns if one.missing]
    if incomplete:
        worst = max(incomplete, key=lambda one: one.missing)
        share = 100.0 * sum(one.missing for one in columns) / len(columns)
        yield (
            f"missing values in {len(incomplete)} of {counted(len(columns), 'column')} are "
            f"imputed by the column's mean: {format_number(share, 2)} % of the cells, most in "
            f"{worst.label}, {format_number(100.0 * worst.missing, 2)} %"
        )
    rare = [
        f"{counted(one.n_rare, 'value')} of {one.column.name}" for one in used if one.n_rare
    ]
    if rare:
        yield f"rare values count as missing: {some(rare, 5)}"
    if reason_to_scale is not None:
        yield reason_to_scale
    if metric == "cosine":
        yield "rows are normalized to length 1, and values are parts of it"
