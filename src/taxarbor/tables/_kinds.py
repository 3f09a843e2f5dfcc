"""What the columns of a table are: their kinds and statistics.

Kinds are decided here and nowhere else, whether columns come from a file or from a frame.
The table is in memory: the sample that a fit sees. All other rows are only read, by the
finished :class:`~taxarbor.tables.columns.Columns`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.sparsefuncs import mean_variance_axis

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._frames import (
    Cells,
    Factor,
    as_canonical,
    as_factor,
    as_matrix,
    as_numbers,
    as_times,
    find_kind,
    is_plain,
    iterate_columns,
    list_levels,
    mark_missing,
    text_of,
)
from taxarbor._number_text import LARGEST_IN_WORDS, format_number
from taxarbor._types import Array, IndexArray
from taxarbor.sources import Sample
from taxarbor.tables._column_checks import (
    find_copies,
    find_sentinels,
    is_identifier,
    is_named_like_codes,
    is_named_like_id,
    is_named_like_identifier,
    looks_like_codes,
    looks_like_days,
)
from taxarbor.tables._ordered import find_order
from taxarbor.tables._scales import find_quantiles, scale_columns, straighten, weigh_columns
from taxarbor.tables._spelled_dates import find_date_format, find_date_parts, split_date
from taxarbor.tables._spelled_numbers import NumberFormat, find_number_format, parse_numbers
from taxarbor.tables.columns import (
    WEEKDAYS,
    Columns,
    FeatureRows,
    FoundColumn,
    Parsed,
    Reading,
    encode_texts,
    encode_times,
)
from taxarbor.tables.notes import (
    IDENTIFIER,
    IS_EMBEDDING,
    MAX_CATEGORIES,
    Remarks,
    cut,
    quote,
    write_notes,
)

if TYPE_CHECKING:
    from taxarbor.tables.encoder import TableEncoder

FROM_DTYPE = "from_dtype"

MAX_TEXT_VALUES = 50  # distinct values up to which a text column is categorical
N_SHOWN, N_DIGITS_SHOWN = 20, 12
"""Values of which the longest is shown, as an example of how numbers are read; its digits."""
MAX_VALUES_WITH_ODD = 12  # distinct values up to which numbers with odd ones are categories
MIN_ROWS_PER_CATEGORY = 5
"""Rows that a category needs; in large tables one in a thousand, in small ones one in fifty. A
rare value would be as far from all others as it is rare."""
MAX_MISSING = 0.99  # share of missing values from which on a column of a frame is left out
MIN_ROWS_PER_WORD, MAX_WORD_SHARE = 2, 0.5
"""Texts that a word is in, at least, or one in a thousand; and the largest share of them."""
OUTLIER_RANGES = 100.0  # interquartile ranges from the median; values beyond are left out
MAX_ABSOLUTE = 1e150  # largest absolute value whose square can be summed
COLUMNS_AT_ONCE = 64  # columns of an array copied together, so that memory is read in order
MAX_COLUMNS_CHECKED, MAX_ROWS_COMPARED = 1000, 2000
"""Columns up to which numbers are checked for codes and copies, and the rows compared."""

MISSING_TEXTS = {
    "?", "-", "--", "---", ".", "..", "na", "n/a", "n.a.", "n.a", "nan", "nil", "null",
    "none", "missing", "unknown", "undefined", "unspecified", "n.d.", "nd", "tbd", "no data",
    "not available", "not reported", "not applicable", "don't know", "dont know", "do not know",
    "refused", "no answer", "no response", "prefer not to say", "prefer not to answer",
}  # fmt: skip
"""Texts, in small letters, that stand for a missing value among numbers and ordered values."""
MIN_WORDS_OF_TEXT = 3  # average number of words from which on values are texts, not names
NO_WORDS = "no words that several rows have"
ALWAYS_THE_SAME, ALWAYS_BUT = "always the same, or missing", "always the same, but in"
UNUSED_DATES = "dates, which date_features uses"


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


class _UnusedError(Exception):
    """A column is left out; the message says why."""


def find_columns(
    sample: Sample,
    names: Sequence[str] | None,
    encoder: "TableEncoder",
    counts: IndexArray | None,
    *,
    weighs: bool,
) -> tuple[Columns, Parsed, FeatureRows]:
    """Return the columns of a table, its cells as numbers, and these as features.

    ``counts`` are how often each row counts; once if None. Columns have functions and weights
    if ``weighs`` and they differ in unit. Raises InputError if no column can be used, or one
    not in the way that was asked for.
    """
    table: Any = sample.table
    called = names or [f"x{at}" for at in range(table.shape[1])]
    reader = _ColumnReader(sample, called, encoder, counts)
    read: Callable[[str, Any], list[FoundColumn]] = reader.read
    given: Iterator[Any] = iterate_columns(table)
    matrix: Any = None
    if issparse(table):
        matrix = as_canonical(table)
        given, read = _describe_sparse(matrix, called, counts), lambda _, found: [found]
    elif not reader.selects and not reader.days and is_plain(plain := as_matrix(table)):
        matrix = mark_missing(plain, reader.missing_values)
        given = _split_matrix(matrix)
    used: list[FoundColumn] = []
    positions: list[int] = []
    dropped: list[tuple[str, str]] = []
    for position, (name, content) in enumerate(zip(called, given, strict=True)):
        try:
            found = read(name, content)
        except _UnusedError as error:
            dropped.append((name, str(error)))
            continue
        used += found
        positions += [position] * len(found)
    if not used:
        reasons = some([f"{name!r} ({reason})" for name, reason in dropped], 5)
        has_vectors = sample.embedding is not None or sample.embedding_column is not None
        more = "; rules need columns to read beside an embedding" if has_vectors else ""
        if any(reason.startswith("text") for _, reason in dropped):
            more += "; texts are read if named: TableEncoder(text_features=...), --text"
        raise InputError(f"has no column to use: {reasons}{more}", "X")
    is_cosine = np.bool_(encoder.metric == "cosine")  # then all values become others
    columns = Columns(
        len(called),
        np.array(positions),
        np.array([*chain(*(one.fills for one in used))]),
        None if names is None else tuple(names),
        {at: one.reading for at, one in enumerate(used) if one.reading is not None},
        missing=(reader.n_rows - np.array([one.n_known for one in used])) / reader.n_rows,
        is_boolean=np.array([one.is_boolean for one in used for _ in one.fills]) & ~is_cosine,
        unit_length=bool(is_cosine),
        missing_values=reader.missing_values,
        dropped=tuple(dropped),
    )
    cells: Parsed = [one.cells for one in used]
    if matrix is not None:
        cells = matrix[:, columns.positions] if dropped else matrix
    columns, rows = _prepare(columns, used, cells, reader, encoder, weighs=weighs)
    return columns, cells, rows


def _prepare(
    columns: Columns,
    used: Sequence[FoundColumn],
    cells: Parsed,
    reader: "_ColumnReader",
    encoder: "TableEncoder",
    *,
    weighs: bool,
) -> tuple[Columns, FeatureRows]:
    """Return columns with functions, scales, weights and notes, and their cells as features."""
    is_sparse, copies = issparse(cells), list[list[int]]()
    if reader.is_checked and not is_sparse:
        copies = _remark_copies(cells, columns, reader.remarks)
    columns, reason = scale_columns(columns, used, encoder.scale, is_sparse=is_sparse)
    is_sparse |= columns.is_sparse
    is_mixed = weighs and not is_sparse and reason is not None and encoder.scale == "auto"
    if is_mixed:
        columns = straighten(columns, used)
    table = reader.sample.table
    rows = columns.join(cells, table.shape[0], columns.dtype_of(table))
    chosen, told = _check_weights_of(columns, encoder.column_weights), None
    if is_mixed or chosen:
        data = columns.scale_rows(rows.data)
        columns, found = weigh_columns(
            columns, data, reader.counts, chosen, copies, is_auto=is_mixed
        )
        told = found if is_mixed else None
    notes = write_notes(reader.remarks, columns, reason, told, chosen)
    return replace(columns, notes=tuple(notes)), rows


def _check_weights_of(columns: Columns, given: Any) -> dict[str, float]:
    """Return the weights of columns that a user chose, by name, or raise InputError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        problem = 'must be a mapping from names to numbers, such as {"age": 1}'
        raise InputTypeError(f"{problem}; got {given!r}", "column_weights")
    names = [*dict.fromkeys(column.name for column in columns)]
    for name, weight in given.items():
        if str(name) not in names:
            reason = dict(columns.dropped).get(str(name))
            used = some([repr(one) for one in names], 10)
            why = f"is left out ({reason})" if reason else f"X does not have; it has {used}"
            raise InputError(f"names {name!r}, which {why}", "column_weights")
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not 0.0 < float(weight) < np.inf:
            problem = f"must be positive numbers, got {weight!r} for {name!r}"
            raise InputError(f"{problem}; leave a column out instead", "column_weights")
    return {str(name): float(weight) for name, weight in given.items()}


def _split_matrix(matrix: NDArray[Any]) -> Iterator[Array]:
    for first in range(0, matrix.shape[1], COLUMNS_AT_ONCE):
        block = matrix[:, first : first + COLUMNS_AT_ONCE].T
        yield from np.array(block, dtype=np.float64, order="C")


def _remark_copies(cells: Parsed, columns: Columns, remarks: Remarks) -> list[list[int]]:
    """Remark which columns are equal but for unit, sign and rounding, or names of values.

    Returns groups of them.
    """
    listed = cells if isinstance(cells, list) else cells.T
    is_single = np.bincount(columns.owner) == 1
    is_single &= np.bincount(columns.positions)[columns.positions] == 1  # no part of a date
    places = [at for at in np.flatnonzero(is_single).tolist() if not issparse(listed[at])]
    step = -(-listed[0].shape[0] // MAX_ROWS_COMPARED)
    matrix = np.array([listed[at][::step] for at in places], dtype=np.float64).T
    found = find_copies(matrix) if len(places) > 1 else ()
    groups = [[places[at] for at in group] for group in found]
    renamed: defaultdict[bytes, list[int]] = defaultdict(list)  # by where values are first
    for place, reading in columns.readings.items():
        if reading.kind == "category" and reading.n_features > 1:
            _, begins, codes = np.unique(listed[place], return_index=True, return_inverse=True)
            renamed[begins[codes].tobytes()].append(place)
    groups += [group for group in renamed.values() if len(group) > 1]
    for group in groups:
        first, *others = (columns[place] for place in group)
        remarks["copy", False] += [
            ([cut(first.label)], f"= {cut(other.label)}", [other.name]) for other in others
        ]
    return groups


# Which columns


def _select(parameter: str, given: Any, names: Sequence[str]) -> frozenset[str] | None:
    """Return the columns that a parameter selects; None: by their types."""
    if isinstance(given, str) and given == FROM_DTYPE:
        return None
    chosen = np.asarray(() if given is None else given)
    if chosen.ndim != 1 or (chosen.dtype.kind not in "iuUO" and chosen.size):
        raise InputTypeError(f"must be a list of names or positions; got {given!r}", parameter)
    name_of: dict[int | str, str] = {**dict(enumerate(names)), **{name: name for name in names}}
    selected = []
    for one in chosen.tolist():
        name = name_of.get(one if isinstance(one, int) else str(one))
        if name is None:
            present = some([repr(name) for name in names], 10)
            raise InputError(f"names {one!r}, which X does not have: {present}", parameter)
        selected.append(name)
    return frozenset(selected)


class _Texts(NamedTuple):
    """A column of texts: the rows of each, by their counts, and the rows that have one."""

    name: str
    factor: Factor
    totals: Mapping[str, int]
    n_known: int


@final
class _ColumnReader:
    """Reads columns: each becomes some parts, or raises the reason why it is not used."""

    def __init__(
        self,
        sample: Sample,
        names: Sequence[str],
        encoder: "TableEncoder",
        counts: IndexArray | None,
    ) -> None:
        table, given = sample.table, encoder.text_features or ()
        texts = [one if isinstance(one, TextColumn) else TextColumn(one) for one in given]
        self.texts = {
            name: one
            for one in texts
            for name in _select("text_features", [one.name], names) or ()
        }
        self.categorical = _select("categorical_features", encoder.categorical_features, names)
        self.dates = _select("date_features", encoder.date_features, names)
        self.numbers = _select("numeric_features", encoder.numeric_features, names) or ()
        self.selects = bool(self.categorical or self.dates or self.texts)
        self.missing_values = tuple(map(text_of, np.ravel(encoder.missing_values).tolist()))
        self.needs_variance = encoder.scale is not None and encoder.metric != "cosine"
        self.sample, self.counts = sample, counts
        self.n_rows = table.shape[0] if counts is None else int(counts.sum())
        self.least_rows = min(self.n_rows / 50, max(MIN_ROWS_PER_CATEGORY, self.n_rows / 1000))
        self.is_frame = isinstance(table, nw.DataFrame)
        self.is_checked = self.is_frame and len(names) <= MAX_COLUMNS_CHECKED
        columns: Any = zip(names, iterate_columns(table), strict=True) if self.is_frame else ()
        self.integers = {name: cells for name, cells in columns if cells.dtype.is_integer()}
        self.days = {
            name
            for name, cells in self.integers.items()
            if name not in self.numbers and looks_like_days(as_numbers(cells, name))
        }
        self.remarks: Remarks = defaultdict(list)

    def read(self, name: str, cells: Cells) -> list[FoundColumn]:
        """Return what a column becomes."""
        if name == self.sample.embedding_column:
            raise _UnusedError(IS_EMBEDDING)
        kind = find_kind(cells)
        if name in (self.categorical or ()):
            kind = "declared"
        elif name in self.days or (name in self.numbers and kind != "number"):
            kind = "text"
        if kind == "date" and self._uses_dates(name):
            return self._read_dates(name, as_times(cells))
        if name in self.texts or kind in ("declared", "category", "text"):
            return self._read_texts(name, cells, kind)
        if kind == "number":
            return self.describe_numbers(name, as_numbers(cells, name, self.missing_values))
        vector = f"vectors: pass embedding={name!r}, or np.stack of the column as X"
        raise _UnusedError({"vector": vector, "date": UNUSED_DATES}.get(kind, kind))

    def describe_numbers(
        self, name: str, cells: Array, reading: Reading | None = None
    ) -> list[FoundColumn]:
        """Return a column of numbers with its statistics."""
        is_known = ~np.isnan(cells)
        values = cells[is_known].astype(np.float64, copy=False)
        counts = None if self.counts is None else self.counts[is_known]
        repeated = values if counts is None else np.repeat(values, counts)
        self._check_known(len(repeated))
        if self.is_frame and (reading is None or reading.kind == "number"):
            self._check_varies(name, repeated)
            is_whole = is_known.all() and (reading is not None or name in self.integers)
            is_open = name not in self.numbers and (is_whole or is_named_like_identifier(name))
            if is_open and is_identifier(name, values, self.sample.rows, self.sample.n_rows):
                raise _UnusedError(IDENTIFIER)
            if self.is_checked:
                self._remark_numbers(name, repeated)
        mean, std, largest = _summarize(repeated)
        if self.needs_variance and largest > MAX_ABSOLUTE:
            raise InputError(f"exceeds {MAX_ABSOLUTE:.0e} in column {name!r}; divide it", "X")
        quantiles = None
        if self.needs_variance and (reading is None or reading.kind == "number"):
            quantiles = find_quantiles(repeated, mean, std)
        is_boolean = reading is None and values.min() < values.max()
        is_boolean = is_boolean and bool(((values == 0.0) | (values == 1.0)).all())
        found = cells, reading, (mean,), len(repeated), std, is_boolean, quantiles
        return [FoundColumn(*found)]

    def _remark(self, kind: str, name: str, seen: str, *values: Any, n: int = 0) -> None:
        self.remarks[kind, n > MAX_CATEGORIES].append(([cut(name)], seen, values or [name]))

    def _uses_dates(self, name: str) -> bool:
        return self.dates is None or name in self.dates

    def _check_known(self, n_known: int) -> None:
        if not n_known:
            raise _UnusedError("empty")
        missing = (self.n_rows - n_known) / self.n_rows
        if self.is_frame and missing >= MAX_MISSING:
            raise _UnusedError(f"{format_number(100.0 * missing, 3)} % missing")

    def _check_varies(self, name: str, values: Array) -> None:
        rows = [int((values == one).sum()) for one in (values.min(), values.max())]
        if rows[0] == len(values):
            raise _UnusedError(ALWAYS_THE_SAME)
        least = self.least_rows
        if values.min() == 0.0 and values.max() == 1.0:  # with or without, as of a word
            least = min(least, max(MIN_ROWS_PER_WORD, self.n_rows / 1000))
        if sum(rows) == len(values) and min(rows) < least and name not in self.numbers:
            raise _UnusedError(f"{ALWAYS_BUT} {counted(min(rows), 'row')}")

    def _remark_numbers(self, name: str, values: Array) -> None:
        """Remark numbers that may stand for missing values, or be codes of classes."""
        for one in find_sentinels(values):
            share = format_number(100.0 * float(np.mean(values == one)), 2)
            number = int(one) if one.is_integer() and abs(one) < LARGEST_IN_WORDS else one
            self._remark("sentinel", name, f"{number}, {share} % of the rows", number)
        if looks_like_codes(name, values):
            seen = f"{values.min():.0f} to {values.max():.0f}"
            self._remark("code", name, seen, n=len(np.unique(values)))

    def _read_dates(
        self, name: str, times: NDArray[np.datetime64], like: Reading | None = None
    ) -> list[FoundColumn]:
        """Return the parts of a date that vary."""
        ones = np.ones(len(times), dtype=np.intp) if self.counts is None else self.counts
        is_known = ~np.isnat(times)
        self._check_known(int(ones[is_known].sum()))
        parts, found, like = find_date_parts(times, ones), [], like or Reading("year")
        if not parts:
            raise _UnusedError("always the same date")
        for part in parts:
            if part != "weekday":
                reading = replace(like, kind=part)
                found += self.describe_numbers(name, encode_times(reading, times), reading)
                continue
            days = np.repeat(split_date(times[is_known], part).astype(np.intp), ones[is_known])
            present, totals = np.unique(days, return_counts=True)
            reading = replace(like, kind=part, categories=tuple(WEEKDAYS[at] for at in present))
            found += _describe_shares(reading, encode_times(reading, times), totals)
        order = [f"as {one}" for one in like.format if "/" in one]
        self._remark("date", name, ", ".join([*parts, *order]))
        return found

    def _read_texts(self, name: str, cells: Cells, kind: str) -> list[FoundColumn]:
        """Return what a column of texts is: words, dates, numbers or categories."""
        factor = as_factor(cells, self.missing_values)
        codes, counts = factor.codes, self.counts
        totals = np.bincount(codes + 1, counts, len(factor.texts) + 1)[1:].astype(np.int64)
        if name in self.texts:
            return self._read_words(name, factor, totals)
        n_known = int(((codes >= 0) if counts is None else (codes >= 0) & (counts > 0)).sum())
        pairs = zip(factor.texts, totals.tolist(), strict=True)
        of = _Texts(name, factor, {text: n for text, n in pairs if n}, n_known)
        self._check_known(int(totals.sum()))
        if kind == "text":
            found = self._read_spelled(of)
            if found is not None:
                return found
            if self.categorical == frozenset():
                raise _UnusedError("text, and categorical_features is None")
        if kind != "declared":
            levels: Any = list_levels(cells)
            if levels is None and len(of.totals) <= MAX_TEXT_VALUES:
                levels = self._find_levels(of)
            levels = [one for one in levels or () if one in of.totals]
            if len(levels) > 2:
                return self._read_levels(of, levels)
        return self._read_categories(of, kind)

    def _find_levels(self, of: _Texts) -> Sequence[str] | None:
        """Return the values in their order; missing ones, and rare odd ones, have no place."""
        find = partial(find_order, is_numbered=not is_named_like_codes(of.name))
        values = [one for one in of.totals if one.casefold() not in MISSING_TEXTS - {"none"}]
        common = [one for one in values if of.totals[one] >= self.least_rows]
        return find(values) or find(common)

    def _read_spelled(self, of: _Texts) -> list[FoundColumn] | None:
        """Return what a column is whose texts spell dates or numbers, None if they do not."""
        name, (codes, texts), is_asked = of.name, of.factor, of.name in self.numbers
        is_few = len(of.totals) <= MAX_VALUES_WITH_ODD and not is_asked
        unknown = MISSING_TEXTS - {"none"} if is_few else MISSING_TEXTS
        plain = [text for text in of.totals if text.casefold() not in unknown]
        totals = [of.totals[text] for text in plain]
        dates = None if is_asked else find_date_format(plain, totals)
        if dates is not None and not self._uses_dates(name):
            raise _UnusedError(UNUSED_DATES)
        if dates is not None:
            like = Reading("year", format=(dates,))
            times = encode_texts(like, texts)
            like = replace(like, rare=(*compress(texts, np.isnat(times)),))
            self._remark_odd(of, like.rare)
            return self._read_dates(name, times[codes], like)
        numbers = find_number_format(plain, totals)
        parsed = parse_numbers([*of.totals], numbers or NumberFormat())
        odd = [*compress(of.totals, np.isnan(parsed))]
        if name in (self.dates or ()) or (is_asked and numbers is None):
            parameter, what = ("numeric", "number") if is_asked else ("date", "date")
            problem = f"names {name!r}, which holds {(odd or plain)[0]!r}, no {what}"
            raise InputError(problem, f"{parameter}_features")
        words = [one for one in odd if one in plain] if is_few else []
        if numbers is None or (words and find_order([*of.totals]) is not None):
            return None
        if sum(of.totals[one] for one in words) >= self.least_rows:
            self._remark("word", name, f"categories, with {quote(words)}", *words)
            return None
        reading = Reading("number", rare=tuple(odd), format=tuple(numbers))
        cells = mark_missing(encode_texts(reading, texts), self.missing_values)[codes]
        found = self.describe_numbers(name, cells, reading)
        longest = max(plain[:N_SHOWN], key=len)
        number = float(parse_numbers([longest], numbers)[0])
        self._remark_odd(of, odd)
        if not odd and longest not in (str(number), text_of(number)):
            seen = f"numbers: {cut(longest)} is {format_number(number, N_DIGITS_SHOWN)}"
            self._remark("read", name, seen, n=len(of.totals))
        return found

    def _remark_odd(self, of: _Texts, odd: Sequence[str]) -> None:
        if n_odd := sum(of.totals.get(one, 0) for one in odd):
            seen = f"{quote(odd)}: {counted(n_odd, 'row')}"
            self._remark("odd value", of.name, seen, n=len(of.totals))

    def _read_words(
        self, name: str, factor: Factor, totals: NDArray[np.int64]
    ) -> list[FoundColumn]:
        """Return the words of a column of texts as features."""
        options, n = self.texts[name], float(totals.sum())
        counter = CountVectorizer(binary=True, stop_words=[*options.stop_words] or None)
        try:
            found = counter.fit_transform(factor.texts)
        except ValueError as error:  # no words
            raise _UnusedError(NO_WORDS) from error
        rows_of = dict(zip(counter.get_feature_names_out(), totals @ found, strict=True))
        least = max(MIN_ROWS_PER_WORD, n / 1000)
        common = {w: rows for w, rows in rows_of.items() if least <= rows <= MAX_WORD_SHARE * n}
        words = sorted(sorted(common, key=lambda w: -common[w])[: options.max_words])
        if not words:
            raise _UnusedError(NO_WORDS)
        reading = Reading("text", tuple(words))
        shares = tuple(float(common[word] / n) for word in words)
        cells = encode_texts(reading, factor.texts)[factor.codes]
        return [FoundColumn(cells, reading, shares, n, is_boolean=True)]

    def _read_levels(self, of: _Texts, levels: Sequence[str]) -> list[FoundColumn]:
        """Return ordered categories as one feature, whose values are their positions."""
        others = tuple(text for text in of.totals if text not in levels)
        reading = Reading("ordered", tuple(levels), others)
        shown = " < ".join(map(cut, levels[:3])) + " < …" * (len(levels) > 3)
        self._remark("read", of.name, f"ordered: {shown}")
        cells = encode_texts(reading, of.factor.texts)[of.factor.codes]
        return self.describe_numbers(of.name, cells, reading)

    def _read_categories(self, of: _Texts, kind: str) -> list[FoundColumn]:
        texts = common = dict(sorted(of.totals.items()))
        if kind != "declared":
            _check_values(of, kind)
            common = {text: n for text, n in texts.items() if n >= self.least_rows} or texts
            if len(common) == 1:
                rows = counted(sum(texts.values()) - sum(common.values()), "row")
                raise _UnusedError(f"{ALWAYS_BUT} {rows}")
        elif len(texts) > MAX_CATEGORIES:
            problem = f"names {of.name!r}, which has {len(texts):,} different values"
            raise InputError(f"{problem}; at most {MAX_CATEGORIES} fit", "categorical_features")
        others = tuple(text for text in texts if text not in common)
        reading = Reading("category", tuple(common), others)
        folded: defaultdict[str, list[str]] = defaultdict(list)
        for text in common:
            folded[text.casefold()].append(text)
        if alike := [" = ".join(group) for group in folded.values() if len(group) > 1]:
            self._remark("case", of.name, some([*map(cut, alike)], 2))
        cells = encode_texts(reading, of.factor.texts)[of.factor.codes]
        return _describe_shares(reading, cells, np.array([*common.values()]))


def _check_values(of: _Texts, kind: str) -> None:
    """Check that a column of type "text" or "category" is one of categories."""
    n_values, n_known = len(of.totals), of.n_known
    if n_values == 1:
        raise _UnusedError(ALWAYS_THE_SAME)
    mean_words = np.mean([len(text.split()) for text in of.totals])
    what = "text, " if mean_words >= MIN_WORDS_OF_TEXT else ""
    if kind == "text" and n_values == n_known > MAX_CATEGORIES and not what:
        raise _UnusedError("different in every row")
    if kind == "text" and n_values > MAX_VALUES_WITH_ODD and is_named_like_id(of.name):
        raise _UnusedError(f"{n_values:,} different values, named like an identifier")
    is_sparse = kind == "text" and 2 * n_values > n_known
    if n_values > (MAX_TEXT_VALUES if kind == "text" else MAX_CATEGORIES) or is_sparse:
        rows = f" in {n_known:,} rows" if n_values <= MAX_TEXT_VALUES else ""
        raise _UnusedError(f"{what}{n_values:,} different values{rows}")


def _describe_shares(
    reading: Reading, cells: NDArray[Any], totals: NDArray[Any]
) -> list[FoundColumn]:
    """Return categories with their shares; of two, the second is the feature."""
    n = float(totals.sum())
    shares = tuple((totals.astype(np.float64) / n).tolist())
    if len(shares) != 2:
        return [FoundColumn(cells, reading, shares, n, is_boolean=len(shares) > 1)]
    std = float(np.sqrt(shares[1] * (1.0 - shares[1])))
    return [FoundColumn(cells, reading, shares[1:], n, std, is_boolean=True)]


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


def _describe_sparse(
    matrix: Any, names: Sequence[str], counts: IndexArray | None
) -> Iterator[FoundColumn]:
    """Yield the statistics of the columns of a canonical CSR matrix."""
    for at in matrix.indices[np.isinf(matrix.data)][:1].tolist():
        raise InputError(f"column {names[at]!r} of X holds infinity")
    weights = None if counts is None else counts.astype(np.float64)
    means, variances, n_known = mean_variance_axis(
        matrix.astype(np.float64), 0, weights, return_sum_weights=True
    )
    statistics = np.nan_to_num([means, np.sqrt(variances), n_known])  # of an empty column NaN
    for mean, std, known in statistics.T.tolist():
        yield FoundColumn(None, None, (mean,), known, std)
