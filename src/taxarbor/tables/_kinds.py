"""What the columns of a table are: their kinds and statistics.

Kinds are decided here and nowhere else, whether columns come from a file or from a frame.
The table is in memory: the sample that a fit sees. All other rows are only read, by the
finished :class:`~taxarbor.tables.columns.Columns`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from itertools import chain
from typing import Any, NamedTuple, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.feature_extraction.text import CountVectorizer

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._frames import (
    Cells,
    Factor,
    as_factor,
    as_matrix,
    as_numbers,
    as_times,
    as_vector,
    find_dtype,
    is_missing,
    is_number,
    is_plain,
    iterate_columns,
    list_cells,
    list_levels,
    text_of,
)
from taxarbor._number_text import format_number
from taxarbor._types import Array, IndexArray
from taxarbor.tables._column_checks import (
    find_copies,
    find_sentinels,
    is_identifier,
    is_named_like_codes,
    looks_like_codes,
    looks_like_days,
)
from taxarbor.tables._ordered import find_order
from taxarbor.tables._scales import check_cosine, find_reason_to_scale, scale_columns
from taxarbor.tables._spelled_dates import (
    find_date_format,
    find_date_parts,
    parse_dates,
    split_date,
)
from taxarbor.tables._spelled_numbers import find_number_format, find_odd, parse_numbers
from taxarbor.tables.columns import (
    WEEKDAYS,
    Columns,
    FoundColumn,
    Parsed,
    Reading,
    drop_missing,
    encode_factor,
    encode_times,
    mark_missing,
)
from taxarbor.tables.notes import (
    IDENTIFIER,
    IS_EMBEDDING,
    MAX_CATEGORIES,
    Remark,
    Remarks,
    write_notes,
)

FROM_DTYPE = "from_dtype"

MAX_TEXT_VALUES = 50
"""Distinct values up to which a text column is categorical."""
N_SHOWN = 20
"""Values of which the longest is shown, as an example of how numbers are read."""
MAX_VALUES_WITH_ODD = 12
"""Distinct values up to which numbers with odd values among them are categories."""
MIN_ROWS_PER_CATEGORY = 5
"""Rows that a category needs; in large tables one in a thousand, in small ones one in fifty. A
rare value would be as far from all others as it is rare."""
MAX_MISSING = 0.99
"""Share of missing values from which on a column of a frame is left out."""
MIN_ROWS_PER_WORD, MAX_WORD_SHARE = 2, 0.5
"""Texts that a word is in, at least, or one in a thousand; and the largest share of them."""
OUTLIER_RANGES = 100.0
"""Interquartile ranges from the median beyond which a value is no part of mean and variance."""
MAX_ABSOLUTE = 1e150
"""Largest absolute value whose square can be summed."""
COLUMNS_AT_ONCE = 64
"""Columns of an array that are copied together, so that memory is read in order."""
MAX_COLUMNS_CHECKED, MAX_ROWS_COMPARED = 1000, 2000
"""Columns up to which numbers are checked for codes and copies, and the rows compared."""

MISSING_TEXTS = {
    "?", "-", "--", "---", ".", "..", "x", "na", "n/a", "n.a.", "n.a", "nan", "nil", "null",
    "none", "missing", "unknown", "undefined", "unspecified", "n.d.", "nd", "tbd", "no data",
    "not available", "not reported", "not applicable",
}  # fmt: skip
"""Texts, in small letters, that stand for a missing value in a column of numbers."""
MIN_WORDS_OF_TEXT = 3
"""Average number of words from which on values are texts, not names."""
NO_WORDS = "text without words that several rows have"
ALWAYS_THE_SAME = "always the same, or missing"
UNUSED_DATES = "dates, which date_features uses"

Selection = frozenset[int] | None
"""Positions of the columns that a parameter of the encoder selects; None: by their types."""


@final
@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of texts, for ``TableEncoder(text_features=...)``.

    Parameters
    ----------
    name : str or int
        Its name or position.
    max_words : int, default=5000
        The most frequent words are features, so many at most.
    stop_words : tuple of str, default=()
        Words that are none.

    Examples
    --------
    >>> import pandas as pd
    >>> from taxarbor import TableEncoder, TextColumn
    >>> mails = pd.DataFrame({"text": ["late again", "late", "broken", "broken again", "ok"]})
    >>> encoder = TableEncoder(text_features=[TextColumn("text", stop_words=("again",))])
    >>> encoder.fit(mails).get_feature_names_out().tolist()
    ['has "broken" in text', 'has "late" in text']
    """

    name: str | int
    max_words: int = 5000
    stop_words: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableSettings:
    """The parameters of a ``TableEncoder``."""

    categorical_features: Any = FROM_DTYPE
    date_features: Any = FROM_DTYPE
    text_features: Any = None
    missing_values: Any = ()
    scale: str | None = "auto"
    metric: str = "euclidean"


class Origin(NamedTuple):
    """Where the rows of a table are from: their numbers in a longer one, and its length."""

    rows: IndexArray
    n_rows: int
    embedding: str | None = None
    """The column with the vectors of rows, which is no feature."""


def find_columns(
    table: Any,
    names: Sequence[str] | None,
    settings: TableSettings,
    counts: IndexArray | None,
    origin: Origin | None = None,
) -> tuple[Columns, Parsed]:
    """Return the columns of a table, with their scales, and its cells as numbers.

    ``counts`` are how often each row counts; once if None. Columns of frames that identify rows
    or never vary are left out. Raises InputError if no column can be used, or one not in the
    way that was asked for.
    """
    called = names or [f"x{at}" for at in range(table.shape[1])]
    reader = _ColumnReader.of(table, called, settings, counts, origin)
    matrix: Any = None
    results: Iterable[Sequence[FoundColumn] | str]
    if issparse(table):
        matrix = _as_canonical(table)
        results = ([one] for one in _describe_sparse(matrix, called, counts))
    elif is_plain(plain := as_matrix(table)) and not reader.selects:
        matrix = mark_missing(plain, reader.missing_values)
        results = reader.read_matrix(matrix, called)
    else:
        results = reader.read_table(table, called)
    used: list[FoundColumn] = []
    dropped: list[tuple[str, str]] = []
    for name, result in zip(called, results, strict=True):
        if isinstance(result, str):
            dropped.append((name, result))
        else:
            used += result
    if not used:
        reasons = some([f"{name!r} ({reason})" for name, reason in dropped], 5)
        has_vectors = any(reason == IS_EMBEDDING for _, reason in dropped)
        more = "; rules need columns to read beside an embedding" if has_vectors else ""
        raise InputError(f"has no column to use: {reasons}{more}", "X")
    columns = Columns(
        len(called),
        np.array([one.position for one in used]),
        np.array([*chain(*(one.fills for one in used))]),
        None if names is None else tuple(names),
        {at: one.reading for at, one in enumerate(used) if one.reading is not None},
        missing=np.array([one.missing for one in used]),
        unit_length=settings.metric == "cosine",
        missing_values=reader.missing_values,
        dropped=tuple(dropped),
    )
    if matrix is None:
        cells: Parsed = [one.cells for one in used]
    else:
        cells = matrix[:, columns.positions] if dropped else matrix
    if reader.is_checked and not issparse(cells):
        _remark_copies(cells, columns, reader.remarks)
    return _scale(used, columns, settings, reader.remarks, is_sparse=issparse(table)), cells


def _scale(
    used: Sequence[FoundColumn],
    columns: Columns,
    settings: TableSettings,
    remarks: Remarks,
    *,
    is_sparse: bool,
) -> Columns:
    """Return columns with their scales and notes."""
    of_columns = [one.is_boolean or len(one.fill) > 1 for one in used]
    # The lengths of rows make other values of them.
    is_boolean = np.array(of_columns)[columns.owner] & (not columns.unit_length)
    reason, shift, scale = None, columns.shift, columns.scale
    if columns.unit_length:
        check_cosine(columns, settings.scale)
    else:
        reason = find_reason_to_scale(used, columns, settings.scale)
    if reason is not None:
        shift, scale = scale_columns(used, is_sparse=is_sparse or columns.is_sparse)
    notes = tuple(write_notes(remarks, columns, reason))
    return replace(columns, is_boolean=is_boolean, shift=shift, scale=scale, notes=notes)


def _remark_copies(cells: Parsed, columns: Columns, remarks: Remarks) -> None:
    """Remark which columns are equal but for unit, sign and rounding."""
    if isinstance(cells, list):
        are_numbers = [not issparse(one) and one.dtype.kind != "i" for one in cells]
        places = np.flatnonzero(are_numbers).tolist()
        step = -(-len(cells[places[0]]) // MAX_ROWS_COMPARED) if places else 1
        matrix = np.array([cells[at][::step] for at in places], dtype=np.float64).T
    else:
        places = [*range(cells.shape[1])]
        matrix = cells[:: -(-len(cells) // MAX_ROWS_COMPARED)].astype(np.float64)
    for group in find_copies(matrix) if len(places) > 1 else ():
        first, *others = (columns[places[at]].label for at in group)
        remarks["copy"] += [Remark(first, f"= {other}", other) for other in others]


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
    texts: Mapping[int, TextColumn]
    missing_values: tuple[str, ...]
    counts: IndexArray | None
    n_rows: int
    origin: Origin
    is_frame: bool
    is_checked: bool
    needs_variance: bool
    integers: frozenset[str]
    """Columns of integers, which may identify rows."""
    remarks: Remarks = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(
        cls,
        table: Any,
        names: Sequence[str],
        settings: TableSettings,
        counts: IndexArray | None,
        origin: Origin | None,
    ) -> "_ColumnReader":
        """Return a reader of a table, or raise InputError for a parameter."""
        given = settings.text_features or ()
        texts = [one if isinstance(one, TextColumn) else TextColumn(one) for one in given]
        places = [_select("text_features", [one.name], names) or () for one in texts]
        is_frame = isinstance(table, nw.DataFrame)
        schema = zip(names, table.schema.values(), strict=True) if is_frame else ()
        return cls(
            _select("categorical_features", settings.categorical_features, names),
            _select("date_features", settings.date_features, names),
            {at: one for one, chosen in zip(texts, places, strict=True) for at in chosen},
            tuple(text_of(one) for one in np.ravel(settings.missing_values).tolist()),
            counts,
            table.shape[0] if counts is None else int(counts.sum()),
            origin or Origin(np.arange(table.shape[0]), table.shape[0]),
            is_frame,
            is_checked=is_frame and len(names) <= MAX_COLUMNS_CHECKED,
            needs_variance=settings.scale is not None and settings.metric != "cosine",
            integers=frozenset(name for name, kind in schema if kind.is_integer()),
        )

    @property
    def selects(self) -> bool:
        """Whether columns are to be read in another way than by their types."""
        return bool(self.categorical or self.dates or self.texts)

    def remark(self, kind: str, name: str, seen: str, value: str | float | None = None) -> None:
        """Keep a remark on a column."""
        self.remarks[kind].append(Remark(name, seen, name if value is None else value))

    def read_matrix(
        self, matrix: NDArray[Any], names: Sequence[str]
    ) -> Iterator[Sequence[FoundColumn] | str]:
        """Yield what each column of a matrix is, or why it is not used."""
        for first in range(0, len(names), COLUMNS_AT_ONCE):
            block = matrix[:, first : first + COLUMNS_AT_ONCE].T
            for at, values in enumerate(np.array(block, dtype=np.float64, order="C"), first):
                yield self._describe_numbers(at, names[at], values)

    def read_table(
        self, table: Any, names: Sequence[str]
    ) -> Iterator[Sequence[FoundColumn] | str]:
        """Yield what each column of a table is, or why it is not used."""
        for position, cells in enumerate(iterate_columns(table)):
            yield self._read(position, names[position], cells)

    def _read(self, position: int, name: str, cells: Cells) -> Sequence[FoundColumn] | str:
        if name == self.origin.embedding:
            return IS_EMBEDDING
        is_declared = position in (self.categorical or ())
        kind = find_kind(cells)
        if name in self.integers and looks_like_days(as_numbers(cells, name)):
            kind = "text"
        if kind == "date" and not is_declared and self._uses_dates(position):
            times = as_times(cells, name)
            return self._read_dates(position, name, times, None)
        if is_declared or position in self.texts or kind in ("category", "text"):
            factor = drop_missing(as_factor(cells), self.missing_values)
            texts, n_known = _count_texts(factor, self.counts)
            of = _Values(position, name, factor, texts, n_known)
            levels = None if is_declared else list_levels(cells)
            return self._read_values(of, "declared" if is_declared else kind, levels)
        if kind == "number":
            numbers = mark_missing(as_numbers(cells, name), self.missing_values)
            return self._describe_numbers(position, name, numbers)
        reasons = {
            "vector": f"vectors: pass embedding={name!r}, or np.stack of the column as X",
            "date": UNUSED_DATES,
        }
        return reasons.get(kind, kind)

    def _uses_dates(self, position: int) -> bool:
        return self.dates is None or position in self.dates

    def _read_values(
        self, of: "_Values", kind: str, levels: Sequence[str] | None
    ) -> Sequence[FoundColumn] | str:
        """Return what a column of values is: texts, dates, numbers or categories."""
        if of.position in self.texts:
            return self._read_words(of)
        if reason := self._find_reason_of_gaps(of.n_known):
            return reason
        if kind == "text":
            result = self._read_dates_or_numbers(of)
            if result is None and self.categorical is not None:
                result = "text, which is not declared categorical"
            if result is not None:
                return result
        if levels is None and kind != "declared" and len(of.texts) <= MAX_TEXT_VALUES:
            levels = self._find_levels(of)
        levels = [one for one in levels or () if one in of.texts]
        if len(levels) > 2:
            return self._read_levels(of, levels)
        return self._read_categories(of, kind)

    def _find_levels(self, of: "_Values") -> Sequence[str] | None:
        """Return the values in their natural order, None if they have none.

        Rare values, and those that stand for a missing one, have no place in it.
        """
        least = self._least_rows()
        values = [
            text
            for text, total in of.texts.items()
            if total >= least and text.casefold() not in MISSING_TEXTS - {"none"}
        ]
        return find_order(values, is_numbered=not is_named_like_codes(of.name))

    def _least_rows(self) -> float:
        """Return the rows that a category needs."""
        return min(self.n_rows / 50, max(MIN_ROWS_PER_CATEGORY, self.n_rows / 1000))

    def _read_dates_or_numbers(self, of: "_Values") -> Sequence[FoundColumn] | str | None:
        """Return what a column is whose texts spell dates or numbers, None if they do not."""
        values = [*of.texts]
        plain = [value for value in values if value.casefold() not in MISSING_TEXTS]
        totals = [of.texts[value] for value in plain]
        dates = find_date_format(plain, totals)
        if dates is not None and not self._uses_dates(of.position):
            return UNUSED_DATES
        if dates is not None:
            texts = [text_of(value) for value in of.factor.values]
            times = np.append(parse_dates(texts, dates), np.datetime64("NaT"))
            return self._read_dates(of.position, of.name, times[of.factor.codes], dates)
        if of.position in (self.dates or ()):
            problem = f"names {of.name!r}, which holds {values[0]!r}, where a date is expected"
            raise InputError(problem, "date_features")
        numbers = find_number_format(plain, totals)
        if numbers is None:
            return None
        odd = find_odd(values, numbers)
        shown, has_words = some([repr(one) for one in odd], 2), {*odd} & {*plain}
        if has_words and len(values) <= MAX_VALUES_WITH_ODD:
            if find_order(values) is None:
                self.remark("read", of.name, f"categories, with {shown}")
            return None
        reading = Reading("number", rare=tuple(odd), format=tuple(numbers))
        cells = encode_factor(reading, of.factor, of.name)
        cells = mark_missing(cells, self.missing_values)
        result = self._describe_numbers(of.position, of.name, cells, reading)
        if odd and not isinstance(result, str):
            n_odd = sum(of.texts[one] for one in odd)
            self.remark("odd value", of.name, f"{shown}: {counted(n_odd, 'row')}")
        elif not isinstance(result, str):
            longest = max(plain[:N_SHOWN], key=len)
            number = format_number(float(parse_numbers([longest], numbers)[0]))
            self.remark("read", of.name, f"numbers: {longest} is {number}")
        return result

    def _describe_numbers(
        self, position: int, name: str, cells: Array, reading: Reading | None = None
    ) -> Sequence[FoundColumn] | str:
        is_known = ~np.isnan(cells)
        values = cells[is_known].astype(np.float64, copy=False)
        counts = None if self.counts is None else self.counts[is_known]
        repeated = values if counts is None else np.repeat(values, counts)
        missing = self._missing(len(repeated))
        if reason := self._find_reason_of_gaps(len(repeated)):
            return reason
        if np.isinf(values).any():
            row = int(np.isinf(cells).argmax())
            problem = f"column {name!r} of X holds infinity, first in row {row}, counted from 0"
            raise InputError(f"{problem}; replace it, or let inf and -inf count as missing")
        if self.is_frame and (reading is None or reading.kind == "number"):
            if values.min() == values.max():
                return ALWAYS_THE_SAME
            rows, n_all = self.origin.rows, self.origin.n_rows
            is_whole = is_known.all() and (reading is not None or name in self.integers)
            if is_whole and is_identifier(name, values, rows, n_all):
                return IDENTIFIER
            if self.is_checked:
                self._remark_numbers(name, values, counts)
        mean, std, largest = _summarize(repeated)
        if self.needs_variance and largest > MAX_ABSOLUTE:
            problem = f"holds numbers beyond {MAX_ABSOLUTE:.0e} in column {name!r}"
            raise InputError(f"{problem}; divide them", "X")
        is_boolean = reading is None and _holds_booleans(values)
        return [FoundColumn(position, cells, reading, (mean,), missing, std, is_boolean)]

    def _remark_numbers(self, name: str, values: Array, counts: IndexArray | None) -> None:
        """Remark numbers that may stand for missing values, or be codes of classes."""
        for one in find_sentinels(values, counts):
            share = format_number(100.0 * float(np.average(values == one, weights=counts)), 2)
            number = int(one) if one.is_integer() else one
            self.remark("sentinel", name, f"{number}, {share} % of the rows", number)
        if looks_like_codes(name, values):
            self.remark("code", name, f"{values.min():.0f} to {values.max():.0f}")

    def _read_dates(
        self, position: int, name: str, times: NDArray[np.datetime64], dates: Any
    ) -> Sequence[FoundColumn] | str:
        """Return the parts of a date that vary."""
        ones = np.ones(len(times), dtype=np.intp) if self.counts is None else self.counts
        is_known = ~np.isnat(times)
        if not is_known.any():
            return "empty"
        parts, found = find_date_parts(times, ones), []
        format = () if dates is None else tuple(dates)
        for part in parts:
            if part == "weekday":
                days = split_date(times[is_known], part).astype(np.intp)
                totals = np.bincount(days, ones[is_known], minlength=7)
                present = np.flatnonzero(totals)
                reading = Reading(part, tuple(WEEKDAYS[at] for at in present), format=format)
                cells = encode_times(reading, times)
                found.append(self._describe_shares(position, reading, cells, totals[present]))
                continue
            reading = Reading(part, format=format)
            result = self._describe_numbers(
                position, name, encode_times(reading, times), reading
            )
            if isinstance(result, str):
                return result
            found += result
        if not parts:
            return "always the same date"
        self.remark("read", name, ", ".join(parts))
        return found

    def _read_words(self, of: "_Values") -> Sequence[FoundColumn] | str:
        """Return the words of a column of texts as features."""
        factor, options = of.factor, self.texts[of.position]
        totals = np.bincount(factor.codes + 1, self.counts, len(factor.values) + 1)[1:]
        n = float(totals.sum())
        counter = CountVectorizer(binary=True, stop_words=[*options.stop_words] or None)
        try:
            texts = ["" if is_missing(one) else text_of(one) for one in factor.values]
            found = counter.fit_transform(texts)
        except ValueError:  # no words
            return NO_WORDS
        rows_of = dict(zip(counter.get_feature_names_out(), totals @ found, strict=True))
        least = max(MIN_ROWS_PER_WORD, n / 1000)
        common = {w: rows for w, rows in rows_of.items() if least <= rows <= MAX_WORD_SHARE * n}
        words = sorted(sorted(common, key=lambda w: -common[w])[: options.max_words])
        if not words:
            return NO_WORDS
        reading = Reading("text", tuple(words))
        shares = tuple(float(common[word] / n) for word in words)
        cells, missing = encode_factor(reading, factor, of.name), self._missing(int(n))
        return [FoundColumn(of.position, cells, reading, shares, missing, 0.0, True)]

    def _read_categories(self, of: "_Values", kind: str) -> Sequence[FoundColumn] | str:
        is_declared, name = kind == "declared", of.name
        reason = _find_reason_to_drop(of.texts, of.n_known, kind)
        if reason is not None and is_declared and of.texts:
            problem = f"names {name!r}, which has {len(of.texts):,} different values"
            more = f"more than {MAX_CATEGORIES}; leave it out, or put values together"
            raise InputError(f"{problem}, {more}", "categorical_features")
        if reason is not None:
            return reason
        texts, least = dict(sorted(of.texts.items())), self._least_rows()
        common = {text: total for text, total in texts.items() if total >= least}
        if is_declared or len(common) < 2:
            common = texts
        others = tuple(text for text in texts if text not in common)
        reading = Reading("category", tuple(common), others)
        folded: defaultdict[str, list[str]] = defaultdict(list)
        for text in common:
            folded[text.casefold()].append(text)
        alike = [" = ".join(group) for group in folded.values() if len(group) > 1]
        if alike:
            self.remark("case", name, some(alike, 2))
        totals = np.array([*common.values()])
        cells = encode_factor(reading, of.factor, name)
        return [self._describe_shares(of.position, reading, cells, totals)]

    def _read_levels(self, of: "_Values", levels: Sequence[str]) -> Sequence[FoundColumn] | str:
        """Return ordered categories as one feature, whose values are their positions."""
        others = tuple(text for text in of.texts if text not in levels)
        reading = Reading("ordered", tuple(levels), others)
        shown = " < ".join(levels[:3]) + " < …" * (len(levels) > 3)
        self.remark("read", of.name, f"ordered: {shown}")
        cells = encode_factor(reading, of.factor, of.name)
        return self._describe_numbers(of.position, of.name, cells, reading)

    def _describe_shares(
        self, position: int, reading: Reading, cells: NDArray[Any], totals: NDArray[Any]
    ) -> FoundColumn:
        totals = totals.astype(np.float64)
        shares = tuple((totals / totals.sum()).tolist())
        return FoundColumn(position, cells, reading, shares, self._missing(int(totals.sum())))

    def _find_reason_of_gaps(self, n_known: int) -> str | None:
        """Return why a column is left out that has so few values, None if it is not."""
        missing = self._missing(n_known)
        if not n_known:
            return "empty"
        is_gap = self.is_frame and missing >= MAX_MISSING
        return f"{format_number(100.0 * missing, 3)} % missing" if is_gap else None

    def _missing(self, n_known: int) -> float:
        """Return the share of rows without a value."""
        return (self.n_rows - n_known) / self.n_rows


class _Values(NamedTuple):
    """A column of values, the rows of each text, and the rows that have one."""

    position: int
    name: str
    factor: Factor
    texts: Mapping[str, int]
    n_known: int


def find_kind(cells: Cells) -> str:
    """Return the type of a column: number, category, text, date, vector, or why none."""
    kind = find_dtype(cells)
    if kind not in ("object", "list"):
        return kind
    if isinstance(cells, nw.Series) and kind == "list":
        cells = cells.drop_nulls().head(1)
    return _find_kind_of_objects([one for one in list_cells(cells) if not is_missing(one)])


def _find_kind_of_objects(cells: Sequence[Any]) -> str:
    """Return the type of Python objects, none of them missing."""
    if not cells:
        return "empty"
    if all(is_number(cell) for cell in cells):
        return "number"
    if all(isinstance(cell, str | date | time) or is_number(cell) for cell in cells):
        return "text"
    is_list = all(isinstance(cell, list | tuple | np.ndarray) for cell in cells)
    return (
        "vector" if is_list and as_vector(cells[0]) is not None else "neither numbers nor text"
    )


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


def _find_reason_to_drop(texts: Mapping[str, int], n_known: int, kind: str) -> str | None:
    """Return why a column of texts, "text", "category" or "declared", is not categorical."""
    n_values = len(texts)
    if not n_values:
        return "empty"
    if n_values == 1 and kind != "declared":
        return ALWAYS_THE_SAME
    mean_words = np.mean([len(text.split()) for text in texts])
    what = "text, " if mean_words >= MIN_WORDS_OF_TEXT else ""
    if kind == "text" and n_values == n_known and not what:
        return "different in every row"
    if kind == "text" and (n_values > MAX_TEXT_VALUES or 2 * n_values > n_known):
        rows = f" in {n_known:,} rows" if n_values <= MAX_TEXT_VALUES else ""
        return f"{what}{n_values:,} different values{rows}"
    return f"{what}{n_values:,} different values" if n_values > MAX_CATEGORIES else None


def _holds_booleans(values: Array) -> bool:
    """Return whether numbers are 0 and 1, both of them."""
    first = values[:64]  # which rule out most columns
    if not all(((one == 0.0) | (one == 1.0)).all() for one in (first, values)):
        return False
    return bool(values.min() < values.max())


def _summarize(values: Array) -> tuple[float, float, float]:
    """Return mean, standard deviation and largest absolute value, without outliers."""
    with np.errstate(over="ignore", invalid="ignore"):
        quartiles = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")
        first, median, third = quartiles.tolist()
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
