"""Tables of columns: csv, tsv and parquet files, and what kind of cells they hold.

Which of the columns are used is for a ``TableEncoder`` to say.

Text is parsed by pandas: it measured ten times as fast as the csv module, and no slower than
pyarrow, which says less of what is wrong with a line.
"""

import csv
import io
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._errors import FileFormatError, NamelessError, counted, missing_extra, some
from taxarbor._types import Array
from taxarbor.sources._parquet import open_parquet
from taxarbor.sources._reader import MAX_NAMED, REQUESTED, as_texts, check_present, check_unique
from taxarbor.tables._profile import DATE, are_few, is_identifier
from taxarbor.tables._table import Request, Table, as_labels, by_position, infinite_cells

if TYPE_CHECKING:
    import pandas as pd

UNNAMED = "Unnamed: {}"
"""What pandas calls a column without a name."""
INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in a parquet file."""
AS_INDEX = "the index: used as row names"
FORMATTED = (
    "text that looks like numbers with signs such as %, $ or separators of thousands; write "
    "plain numbers to use it"
)
_MONEY = "[$\u20ac\u00a3\u00a5]|EUR|USD|GBP|CHF|JPY"
_DIGITS = r"\d{1,3}(?:([., '\u2019\u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?|\d+(?:[.,]\d+)?"
LIKE_NUMBER = re.compile(rf"\s*[+-]?\s?(?:{_MONEY})?\s?[+-]?(?:{_DIGITS})\s?(?:%|{_MONEY})?\s*")
MOSTLY = 0.9
"""Share of a column's cells that must look like formatted numbers for it to be said."""
SEPARATORS = (",", ";", "\t")
QUOTED = re.compile(r'"(?:[^"]|"")*"?')
MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Stand for a missing value, as in pandas; not in names and labels: NA may be Namibia."""
WHOLE = re.compile(r"\s*\d{1,9}\s*", re.ASCII)
COUNTED = "the first line counts, {}, {}, ..., and was taken for the names of the columns"
NO_NAMES = (
    "the first line holds numbers only and was taken for a row; give the columns names if it "
    "is a header"
)
NUMBERS = {"boolean", "decimal", "floating", "integer", "mixed-integer-float"}
"""What pandas infers of columns of Python's own numbers."""
MISSING_NUMBERS = {
    *("", "?", "-", "--", ".", ".."),
    *("na", "n/a", "n.a.", "nan", "null", "none", "missing"),
}
"""Stand for a missing value among numbers, in upper or lower case."""
ODD = 3
"""Different texts among numbers that are taken for mistakes, however often they come."""
MANY = 1_000
"""Different texts that are enough to tell that a column spells neither numbers nor dates."""
LONGEST_NAME = 100
"""Characters of a text that may be the name of a row."""
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
LIKE_DATE = re.compile(
    rf"\s*(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d|(?:\d{{1,2}}[. -]+)?(?:{_MONTHS})[a-z]*[. -]+\d)",
    re.IGNORECASE,
)
"""How texts begin that are dates in one of many ways, and no names."""
AT_ONCE = 1 << 20
"""Cells of a parquet file that are read in one go."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a file, and what was requested of them."""

    request: Request
    n_rows: int
    cells: Iterable[tuple[str, "pd.Series"]]
    """Each column that is not wanted as text; gone through once."""
    texts: Mapping[str, tuple[str, ...]]
    """The columns that are wanted as text."""
    index: str | None
    """The column that may be an index that came along."""
    coded: frozenset[str] = frozenset()
    """Columns of text that come as categories, of however many values."""
    text: "_Text | None" = None
    """The text of a csv file, in which text may be numbers."""

    def where(self, row: int) -> str:
        """Return where in the file a row is, for messages."""
        if self.text is None:
            return by_position(row)
        with self.request.reading("csv"):
            return f"line {self.text.line_of(row)}"


def read_parquet(path: str | os.PathLike[str], request: Request) -> Table:
    """Return the table in a parquet file; text is read by its different values."""
    reader = open_parquet(path, name=request.name)
    import pyarrow as pa

    types = {field.name: field.type for field in reader.schema}
    check_present(request.name, request.text_columns, [*types])
    index = next((name for name in types if INDEX.fullmatch(name)), None)
    as_text = [*request.text_columns, *([] if index is None else [index])]
    table = reader.read_columns(list(dict.fromkeys(as_text)))
    texts = {name: as_texts(table.column(name).to_pylist()) for name in as_text}
    rest = [name for name in types if name not in texts]
    coded = frozenset(name for name in rest if types[name] in (pa.string(), pa.large_string()))

    def read_cells() -> Iterator[tuple[str, "pd.Series"]]:
        # A few at once, copied: what is Arrow's own would be kept when it is freed.
        step = max(AT_ONCE // reader.n_rows, 1)
        for first in range(0, len(rest), step):
            table = reader.read_columns(rest[first : first + step])
            for name, column in zip(table.column_names, table.columns, strict=True):
                cells = column.dictionary_encode() if name in coded else column
                yield name, cells.to_pandas(date_as_object=False).copy()

    with request.reading("parquet"):
        result = _table(Columns(request, reader.n_rows, read_cells(), texts, index, coded))
    pa.default_memory_pool().release_unused()  # often as much as the table
    return result


def read_csv(stream: IO[bytes], request: Request, separator: str | None = None) -> Table:
    """Return the table in a text with commas, semicolons or tabs, whichever its header has."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise missing_extra("reading csv", "pandas") from error
    with request.reading("csv"):
        text = _open_text(stream, request, separator)
        if not text.has_header and (request.columns or request.text_columns):
            message = "has numbers in its first line, so no column has a name"
            raise NamelessError(f"{request.name} {message}")
        check_unique(request.name, text.names)
        check_present(request.name, request.text_columns, text.names)
        index = text.names[0] if text.names[0] == UNNAMED.format(0) else None
        texts = [*request.text_columns]
        if index is not None and index not in (request.columns or ()):
            texts.append(index)
        frame = text.parse(request, texts)
    cells = ((str(name), cells) for name, cells in frame.items() if name not in texts)
    as_text = {name: as_texts(frame[name].tolist()) for name in texts}
    return _table(Columns(request, len(frame), cells, as_text, index, text=text))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """A stream of delimited text, with its separator and header."""

    stream: IO[bytes]
    separator: str
    names: tuple[str, ...] = ()
    has_header: bool = True
    notes: tuple[str, ...] = ()

    @contextmanager
    def opened(self) -> Iterator[io.TextIOWrapper]:
        """Read the stream as text, from its start, and leave it open."""
        self.stream.seek(0)
        text = io.TextIOWrapper(self.stream, encoding="utf-8-sig", newline="")
        try:
            yield text
        finally:
            text.detach()

    def records(self, text: IO[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield the line each record begins in, and its cells; blank lines are none."""
        reader = csv.reader(text, delimiter=self.separator)
        line = 1
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield line, cells
            line = reader.line_num + 1

    def line_of(self, row: int) -> int:
        """Return the line a row begins in; quoted line breaks and blank lines count."""
        with self.opened() as text:
            lines = (line for line, _ in self.records(text))
            # There is none only if csv and pandas disagree on what a record is.
            return next(islice(lines, row + self.has_header, None), row + 1 + self.has_header)

    def parse(self, request: Request, texts: list[str]) -> "pd.DataFrame":
        """Return all cells; those of some columns as text, to the letter."""
        import pandas as pd

        missing: Any = MISSING
        if texts:
            missing = {name: MISSING for name in self.names if name not in texts}
        options: dict[str, Any] = {"keep_default_na": False, "na_values": missing}
        if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
            options["float_precision"] = "round_trip"  # later it always is, and deprecated
        try:
            with self.opened() as text, warnings.catch_warnings():
                # A first line that is too long is only warned of, and cut.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                if self.has_header:
                    next(self.records(text))
                return pd.read_csv(
                    text,
                    sep=self.separator,
                    header=None,
                    names=list(self.names),
                    index_col=False,
                    dtype=dict.fromkeys(texts, str),
                    low_memory=False,  # else a column may get several types, part by part
                    **options,
                )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            self._refuse_long(request)
            raise ValueError(str(error)) from error

    def _refuse_long(self, request: Request) -> None:
        n_columns = len(self.names)
        with self.opened() as text:
            for line, cells in self.records(text):
                if len(cells) > n_columns:
                    n_cells = counted(len(cells), "cell")
                    expected = counted(n_columns, "column")
                    raise request.error(f"has {n_cells} in line {line:,}, and {expected}")


def _open_text(stream: IO[bytes], request: Request, separator: str | None) -> _Text:
    """Detect the separator and the header of a text from its first two lines."""
    with _Text(stream, ",").opened() as text:
        line = next((line for line in text if line.strip()), None)
    if line is None:
        raise request.error("is empty")
    bare = QUOTED.sub("", line)
    result = _Text(stream, separator or max(SEPARATORS, key=bare.count))
    with result.opened() as text:
        records = result.records(text)
        _, first = next(records, (0, [""]))
        _, second = next(records, (0, first))
    notes: tuple[str, ...] = ()
    if _counts(first):
        notes = (COUNTED.format(*first),)
    elif all(as_number(cell) is not None for cell in first):
        names = tuple(f"column {j}" for j in range(1, len(first) + 1))
        return replace(result, names=names, has_header=False, notes=(NO_NAMES,))
    if len(second) == len(first) + 1:  # R names no row names; others end lines in a separator
        first = ["", *first] if second[-1] else [*first, ""]
    names = tuple(name or UNNAMED.format(j) for j, name in enumerate(first))
    return replace(result, names=names, notes=notes)


def _counts(cells: list[str]) -> bool:
    """Say whether a first line is 0, 1, 2, ... as pandas heads an array, or 2019, 2020, ...

    One number alone counts nothing: it may as well be a value.
    """
    if len(cells) < 2 or not all(WHOLE.fullmatch(cell) for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _table(columns: Columns) -> Table:
    """Return the columns, typed, and say why some are not among them."""
    import pandas as pd

    request, requested = columns.request, columns.request.columns
    has_names = columns.text is None or columns.text.has_header
    if not columns.n_rows:
        raise request.error("has no rows")
    kept, dropped = _typed_columns(columns)
    check_present(request.name, requested or (), [*kept, *dropped])
    texts, index = dict(columns.texts), columns.index
    index = index if index in dropped else None
    ids = request.id_column or index
    if ids is None and has_names and len(kept) > 1:
        ids = _names_of_rows({k: v for k, v in kept.items() if k not in (requested or ())})
        if ids is not None:
            texts[ids] = as_texts(kept.pop(ids).tolist())
    if requested is not None:
        refused = [name for name in requested if name in dropped]
        if refused:
            reason = dropped[refused[0]]
            raise request.error(f"has no use for the column {refused[0]!r}: {reason}")
        others = [name for name in kept if name not in requested]
        dropped |= dict.fromkeys(others, "not among the requested columns")
        kept = {name: kept[name] for name in requested}
    left_out = tuple(sorted(dropped.items(), key=lambda pair: pair[1] != FORMATTED))
    if not kept:
        reasons = some([f"{name!r} ({reason})" for name, reason in left_out], MAX_NAMED)
        raise request.error("has no column to use" + f": {reasons}" * bool(reasons))
    X = pd.DataFrame(kept, copy=False)
    if not has_names:
        X.columns = pd.RangeIndex(X.shape[1])
    X.attrs[REQUESTED] = requested or ()
    labels = request.label_column
    return Table(
        X,
        tuple(kept) if has_names else None,
        None if ids is None else texts[ids],
        None if labels is None else as_labels(texts[labels]),
        left_out,
        () if columns.text is None else columns.text.notes,
        None if ids == index else ids,
    )


def _typed_columns(columns: Columns) -> tuple[dict[str, "pd.Series"], dict[str, str]]:
    """Return the columns that can be features, and why others cannot."""
    import pandas as pd

    request, requested, index = columns.request, columns.request.columns, columns.index
    kept: dict[str, pd.Series] = {}
    dropped: dict[str, str] = {}
    cells_of = columns.cells
    if index is not None and index in columns.texts and index not in request.text_columns:
        texts = columns.texts[index]
        if len({*texts}) == len(texts) and index not in (requested or ()):
            dropped[index] = AS_INDEX if request.id_column is None else "the index"
        else:  # it does not tell rows apart
            cells = pd.Series([text or None for text in texts], dtype=object)
            cells_of = chain([(index, cells)], cells_of)
    for name, cells in cells_of:
        try:
            typed = _typed(columns, name, cells)
        except FileFormatError:
            if requested is None or name in requested:
                raise
            continue  # it was not requested
        if isinstance(typed, str):
            dropped[name] = typed
        else:
            kept[name] = typed
    return kept, dropped


def _typed(columns: Columns, name: str, cells: "pd.Series") -> "pd.Series | str":
    """Return a column with a type that tells what it holds, or why it is of no use."""
    import pandas as pd
    from pandas.api import types

    if name in columns.coded:
        return _from_text(columns, cells.rename(name), cells.cat.codes, cells.cat.categories)
    if types.is_numeric_dtype(cells):  # booleans are
        return _finite(columns, name, cells)
    is_typed = isinstance(cells.dtype, pd.CategoricalDtype) or cells.dtype.kind == "M"
    kind = "" if is_typed else types.infer_dtype(cells)
    if kind == "string":
        return _from_text(columns, cells.rename(name), *cells.factorize())
    if kind not in NUMBERS:
        return cells
    try:  # Python objects: decimals, large integers, booleans with missing values
        return _finite(columns, name, cells.where(cells.notna(), np.nan).astype(np.float64))
    except OverflowError as error:
        message = f"has numbers beyond float64 in the column {name!r}"
        raise columns.request.error(message) from error


def _finite(columns: Columns, name: str, cells: "pd.Series") -> "pd.Series":
    is_wrong = np.isinf(cells.to_numpy()) if cells.dtype.kind == "f" else np.zeros(1, bool)
    if is_wrong.any():
        first = columns.where(int(is_wrong.argmax()))
        raise infinite_cells(columns.request, repr(name), int(is_wrong.sum()), first)
    return cells


def _from_text(
    columns: Columns, cells: "pd.Series", codes: Any, values: Any
) -> "pd.Series | str":
    """Return text as the numbers, dates or categories that it spells, or as it is."""
    import pandas as pd

    if len(values) > MANY and not any(map(re.compile(r"\W*\d").match, values[:MANY])):
        return cells.astype(values.dtype)
    codes = np.asarray(codes, dtype=np.intp)
    counts = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
    texts = [value.strip() if n else "" for value, n in zip(values, counts, strict=True)]
    n_cells = int(counts[[bool(text) for text in texts]].sum())
    numbers = _parse_numbers(columns, cells, codes, counts, texts)
    if numbers is not None:
        return _finite(columns, str(cells.name), pd.Series(numbers[codes]))
    present = {text: code for code, text in enumerate(sorted({*texts} - {""}))}
    if present and all(DATE.fullmatch(text) for text in present):
        with suppress(ValueError):  # where there is no such day
            days = np.array([*(text[:10] or "NaT" for text in texts), "NaT"], "datetime64[D]")
            return pd.Series(days.astype("datetime64[s]")[codes])
    like = [LIKE_NUMBER.fullmatch(text) is not None for text in texts]
    is_plain = all(as_number(text) is not None for text in present)
    if present and not is_plain and counts[like].sum() >= MOSTLY * n_cells:
        return FORMATTED
    if are_few(len(present), n_cells):
        codes = np.array([*(present.get(text, -1) for text in texts), -1])[codes]
        return pd.Series(pd.Categorical.from_codes(codes, [*present]))
    return cells.astype(values.dtype)


def _parse_numbers(
    columns: Columns, cells: "pd.Series", codes: Any, counts: Any, texts: list[str]
) -> Array | None:
    """Return the numbers that texts spell, NaN for missing values; None if they spell none."""
    is_code = any(re.fullmatch(r"0\d+", text) for text in texts)  # such as of places
    if columns.text is None or is_code:
        return None
    comma = "," if columns.text.separator == ";" else "."
    read = [as_number(text.replace(comma, ".")) for text in texts]
    is_number = np.array([number is not None for number in read], dtype=bool)
    is_missing = np.array([text.casefold() in MISSING_NUMBERS for text in texts], dtype=bool)
    odd = np.flatnonzero(~(is_number | is_missing))
    n_numbers, n_odd = int(counts[is_number].sum()), int(counts[odd].sum())
    if n_numbers and not n_odd:
        return np.array([*(np.nan if one is None else one for one in read), np.nan])
    if n_numbers > n_odd and (len(odd) <= ODD or 10 * n_odd <= n_numbers):
        at = int(np.isin(codes, odd).argmax())
        raise columns.request.error(
            f"has numbers in the column {cells.name!r} except {str(cells.iloc[at])[:60]!r} in "
            f"{columns.where(at)}; fix it, or leave the cell empty",
            (", or choose other columns with", "columns"),
        )
    return None


def as_number(cell: str) -> float | None:
    """Return the number that a text spells, if it does; pandas rounds, or knows no 1e999."""
    try:
        return None if "_" in cell else float(cell)  # Python takes 1_000 for a number
    except ValueError:
        return None


def _names_of_rows(kept: Mapping[str, "pd.Series"]) -> str | None:
    """Return the one column that names each row: of text, or else of numbers."""
    from pandas.api import types

    texts = [
        name
        for name, cells in kept.items()
        if cells.dtype.kind == "O" and types.infer_dtype(cells, skipna=False) == "string"
        if cells.is_unique and cells.notna().all() and cells.str.len().max() <= LONGEST_NAME
        if not all(map(LIKE_DATE.match, cells))
    ]
    named = texts or [
        name
        for name, cells in kept.items()
        if cells.dtype.kind in "iu" and is_identifier(name, cells.to_numpy())
    ]
    return named[0] if len(named) == 1 else None
