"""Tables of columns: csv, tsv and parquet files, and which columns are features.

Text is parsed by pandas: it measured ten times as fast as the csv module, and no slower than
pyarrow, which says less of what is wrong with a line.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._errors import counted, missing_extra, some
from taxarbor.tables._table import (
    MAX_NAMED,
    NamelessError,
    Request,
    Table,
    Where,
    as_labels,
    as_texts,
    by_position,
    refuse_absent,
    refuse_gaps,
    refuse_repeated,
)

if TYPE_CHECKING:
    import pandas as pd

UNNAMED = "Unnamed: {}"
"""What pandas calls a column without a name."""
INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls an index without a name in a parquet file."""
IDENTIFIER = re.compile(r"id|index|.*_id", re.IGNORECASE | re.DOTALL)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")

AS_INDEX = "the index: used as row names"
AS_IDENTIFIER = (
    "looks like an identifier; ask for the column to use it, or make it the id column"
)
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
"""Stand for no value, as in pandas, but in names and labels: there, NA may be Namibia."""
WHOLE = re.compile(r"\s*\d{1,9}\s*", re.ASCII)
COUNTED = "the first line counts, {}, {}, ..., and was taken for the names of the columns"
NO_NAMES = (
    "the first line holds numbers only and was taken for a row; give the columns names if it "
    "is a header"
)
NUMBERS = {"boolean", "decimal", "floating", "integer", "mixed-integer-float"}
DATES = ("date", "datetime", "datetime64", "period", "time", "timedelta", "timedelta64")
OTHERS = {"empty": "empty", **dict.fromkeys(DATES, "dates")}
"""What pandas infers of other columns, and what to call it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A data frame, what is asked of it, and what the file says of its columns."""

    request: Request
    frame: "pd.DataFrame"
    texts: Mapping[str, tuple[str, ...]]
    """The columns that are wanted as text."""
    index: str | None
    """The column that may be an index that came along."""
    is_typed: bool = True
    """Whether the file says what is text; in csv, all is."""
    where: Where = by_position
    has_names: bool = True
    has_decimal_comma: bool = False
    notes: tuple[str, ...] = ()


def read_parquet(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a parquet file."""
    try:
        import pandas  # noqa: F401
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing_extra("reading parquet", "pandas", "pyarrow") from error
    with request.reading("parquet"):
        table = pq.ParquetFile(stream).read()
        table.validate(full=True)  # text that is none, codes beyond their dictionary
        names = [str(name) for name in table.column_names]
        refuse_repeated(request, names)
        refuse_absent(request, request.text_columns, names)
        index = next((name for name in names if INDEX.fullmatch(name)), None)
        wanted = {*request.text_columns, *([] if index is None else [index])}
        texts = {name: as_texts(table.column(name).to_pylist()) for name in wanted}
        # The index is a column among others here, and each column goes as it is converted.
        frame = table.to_pandas(
            ignore_metadata=True, date_as_object=False, split_blocks=True, self_destruct=True
        )
        del table
    return _table(Columns(request, frame, texts, index))


def read_csv(stream: IO[bytes], request: Request, separator: str | None = None) -> Table:
    """Return the table in a text with commas, semicolons or tabs, whichever its header has."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise missing_extra("reading csv", "pandas") from error
    with request.reading("csv"):
        text = _open_text(stream, request, separator)
        if not text.has_header and (request.columns or request.text_columns):
            told = "has numbers in its first line, so no column has a name"
            raise NamelessError(f"{request.name} {told}")
        refuse_repeated(request, text.names)
        refuse_absent(request, request.text_columns, text.names)
        index = text.names[0] if text.names[0] == UNNAMED.format(0) else None
        texts = [*request.text_columns]
        if index is not None and index not in (request.columns or ()):
            texts.append(index)
        frame = text.parse(request, texts)

    def where(row: int) -> str:
        with request.reading("csv"):
            return f"line {text.line_of(row)}"

    columns = Columns(
        request,
        frame,
        {name: as_texts(frame[name].tolist()) for name in texts},
        index,
        is_typed=False,
        where=where,
        has_names=text.has_header,
        has_decimal_comma=text.separator == ";",
        notes=text.notes,
    )
    return _table(columns)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """A stream of delimited text, and how it is to be read."""

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
                    told = f"{counted(len(cells), 'cell')} in line {line:,}"
                    raise request.error(f"has {told}, and {counted(n_columns, 'column')}")


def _open_text(stream: IO[bytes], request: Request, separator: str | None) -> _Text:
    """Find out how a text is to be read, by its first two lines."""
    with _Text(stream, ",").opened() as text:
        line = next((line for line in text if line.strip()), None)
    if line is None:
        raise request.error("is empty")
    bare = QUOTED.sub("", line)
    found = _Text(stream, separator or max(SEPARATORS, key=bare.count))
    with found.opened() as text:
        records = found.records(text)
        _, first = next(records, (0, [""]))
        _, second = next(records, (0, first))
    notes: tuple[str, ...] = ()
    if _counts(first):
        notes = (COUNTED.format(*first),)
    elif all(as_number(cell) is not None for cell in first):
        names = tuple(f"column {j}" for j in range(1, len(first) + 1))
        return replace(found, names=names, has_header=False, notes=(NO_NAMES,))
    if len(second) == len(first) + 1:  # R names no row names; others end lines in a separator
        first = ["", *first] if second[-1] else [*first, ""]
    names = tuple(name or UNNAMED.format(j) for j, name in enumerate(first))
    return replace(found, names=names, notes=notes)


def _counts(cells: list[str]) -> bool:
    """Say whether a first line is 0, 1, 2, ... as pandas heads an array, or 2019, 2020, ...

    One number alone counts nothing: it may as well be a value.
    """
    if len(cells) < 2 or not all(WHOLE.fullmatch(cell) for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _table(columns: Columns) -> Table:
    """Return the columns that are features, as numbers, and say why others are not."""
    request = columns.request
    if not len(columns.frame):
        raise request.error("has no rows")
    index = columns.index
    if index is not None:  # which it is only where it tells all rows apart
        values = columns.texts.get(index, ())
        is_asked = index in (*(request.columns or ()), *request.text_columns)
        index = None if is_asked or len(set(values)) < len(values) else index
    chosen, dropped = _chosen(columns, index)
    singles = (np.float16, np.float32)
    is_single = all(column.dtype in singles for column in chosen.values())
    X = np.empty((len(columns.frame), len(chosen)), np.float32 if is_single else np.float64)
    for j, column in enumerate(chosen.values()):
        X[:, j] = column.to_numpy()
    refuse_gaps(request, X, tuple(chosen), columns.where)
    ids, labels = request.id_column or index, request.label_column
    return Table(
        X,
        tuple(chosen) if columns.has_names else None,
        None if ids is None else columns.texts[ids],
        None if labels is None else as_labels(columns.texts[labels]),
        dropped,
        columns.notes,
    )


def _chosen(
    columns: Columns, index: str | None
) -> tuple[dict[str, "pd.Series"], tuple[tuple[str, str], ...]]:
    """Return the columns to use, and the others with the reasons.

    Those that were probably meant to be numbers come first, as lists are cut.
    """
    request = columns.request
    names = [str(name) for name in columns.frame.columns]
    chosen: dict[str, pd.Series] = {}
    reasons: dict[str, str] = dict.fromkeys(names, "not among the columns asked for")
    refuse_absent(request, request.columns or (), names)
    for name in names if request.columns is None else request.columns:
        if name == index or name in request.text_columns:
            continue
        found = _numbers(columns, name)
        if request.columns is None and _is_identifier(name, found):
            found = AS_IDENTIFIER
        if not isinstance(found, str):
            chosen[name] = found
        elif request.columns is None:
            reasons[name] = found
        else:
            raise request.error(f"has no numbers in the column {name!r}: {found}")
    if index is not None:
        reasons[index] = AS_INDEX if request.id_column is None else "the index"
    used = {*chosen, *request.text_columns}
    unused = [(name, reason) for name, reason in reasons.items() if name not in used]
    dropped = tuple(sorted(unused, key=lambda pair: pair[1] != FORMATTED))
    if not chosen:
        told = some([f"{name!r} ({reason})" for name, reason in dropped], MAX_NAMED)
        raise request.error("has no column of numbers to use" + f": {told}" * bool(told))
    return chosen, dropped


def _numbers(columns: Columns, name: str) -> "pd.Series | str":
    """Return a column as numbers, or why it is none."""
    import pandas as pd
    from pandas.api import types

    column = columns.frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if types.is_numeric_dtype(column):  # booleans are
        return "empty" if column.isna().all() else column
    present = column.dropna()
    kind = "empty" if present.empty else types.infer_dtype(present)
    if kind == "string":
        return _from_text(columns, present[present != ""])
    if kind not in NUMBERS:
        return OTHERS.get(kind, "neither numbers nor text")
    try:  # Python's own: decimals, large integers, truths with gaps
        return column.where(column.notna(), np.nan).astype(np.float64)
    except OverflowError as error:
        told = f"has numbers beyond float64 in the column {name!r}"
        raise columns.request.error(told) from error


def _from_text(columns: Columns, present: "pd.Series") -> "pd.Series | str":
    """Return the numbers that a text spells, or why they are none."""
    import pandas as pd

    if present.empty:
        return "empty"
    comma = columns.has_decimal_comma
    cells = present.str.replace(",", ".", regex=False) if comma else present
    numbers = pd.Series([as_number(cell) for cell in cells], present.index, dtype=np.float64)
    is_number = numbers.notna().to_numpy()
    if 0.5 < is_number.mean() < 1.0:
        at = int((~is_number).argmax())
        raise columns.request.error(
            f"has numbers in the column {present.name!r} except {present.iloc[at][:60]!r} in "
            f"{columns.where(int(present.index[at]))}; mend it",
            (", or choose other columns with", "columns"),
        )
    is_spelled = bool(is_number.all())
    if is_spelled and not columns.is_typed:
        return numbers.reindex(columns.frame.index)
    values = present.unique()
    count = "always the same" if len(values) == 1 else f"{len(values)} different values"
    if is_spelled:
        return f"text that reads as numbers, {count}"
    if all(DATE.fullmatch(value) for value in values):
        return "dates"
    n_like = sum(LIKE_NUMBER.fullmatch(cell) is not None for cell in present)
    return FORMATTED if n_like >= MOSTLY * len(present) else f"text, {count}"


def as_number(cell: str) -> float | None:
    """Return the number that a text spells, if it does; pandas rounds, or knows no 1e999."""
    try:
        return None if "_" in cell else float(cell)  # Python takes 1_000 for a number
    except ValueError:
        return None


def _is_identifier(name: str, found: "pd.Series | str") -> bool:
    if isinstance(found, str) or IDENTIFIER.fullmatch(name) is None:
        return False
    return found.dtype.kind in "iu" and bool(found.is_unique)
