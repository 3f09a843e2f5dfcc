"""Tables of columns: csv, tsv and parquet files, and which columns are features.

Text is parsed by pandas: on 60,000 rows of 30 numbers it took a tenth of the time of the csv
module, and as long as pyarrow, which says less of what is wrong with a line.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._errors import counted, missing_extra
from taxarbor._types import Array
from taxarbor.tables._table import (
    MAX_NAMED,
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
COUNTED = (
    "the first line counts, {first}, {second}, ..., and was taken for the names of the columns"
)
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
class FrameColumns:
    """A data frame, and what the file says of its columns."""

    frame: "pd.DataFrame"
    texts: Mapping[str, tuple[str, ...]]
    """The columns that are wanted as text."""
    index: str | None
    """The column that may be an index that came along."""
    is_typed: bool
    """Whether the file says what is text; in csv, all is."""
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
    return table_of(FrameColumns(frame, texts, index, is_typed=True), request, by_position)


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """How a text is to be read."""

    separator: str
    names: tuple[str, ...]
    has_header: bool
    notes: tuple[str, ...] = ()


def read_csv(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a text with commas, semicolons or tabs, whichever its header has."""
    return _read_text(stream, request, None)


def read_tsv(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a text with tabs."""
    return _read_text(stream, request, "\t")


def _read_text(stream: IO[bytes], request: Request, separator: str | None) -> Table:
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise missing_extra("reading csv", "pandas") from error
    with request.reading("csv"):
        layout = _layout(stream, request, separator)
        names = layout.names
        if not layout.has_header and (request.columns or request.text_columns):
            raise request.error("has numbers in its first line, so no column has a name")
        refuse_repeated(request, names)
        refuse_absent(request, request.text_columns, names)
        index = names[0] if names[0] == UNNAMED.format(0) else None
        texts = [*request.text_columns]
        if index is not None and index not in (request.columns or ()):
            texts.append(index)
        frame = _frame(stream, request, layout, texts)

    def where(row: int) -> str:
        with request.reading("csv"):
            return f"line {_line(stream, layout, row)}"

    columns = FrameColumns(
        frame,
        {name: as_texts(frame[name].tolist()) for name in texts},
        index=index,
        is_typed=False,
        has_names=layout.has_header,
        has_decimal_comma=layout.separator == ";",
        notes=layout.notes,
    )
    return table_of(columns, request, where)


@contextmanager
def _text(stream: IO[bytes]) -> Iterator[io.TextIOWrapper]:
    """Read a stream as text, from its start, and leave it open."""
    stream.seek(0)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        yield text
    finally:
        text.detach()


def _records(text: IO[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line each record begins in, and its cells; blank lines are none."""
    reader = csv.reader(text, delimiter=separator)
    line = 1
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield line, cells
        line = reader.line_num + 1


def _layout(stream: IO[bytes], request: Request, separator: str | None) -> Layout:
    with _text(stream) as text:
        line = next((line for line in text if line.strip()), None)
    if line is None:
        raise request.error("is empty")
    separator = separator or _separator(line)
    with _text(stream) as text:
        records = _records(text, separator)
        _, first = next(records, (0, [""]))
        _, second = next(records, (0, first))
    notes: tuple[str, ...] = ()
    if _counts(first):
        notes = (COUNTED.format(first=first[0], second=first[1]),)
    elif all(as_number(cell) is not None for cell in first):
        names = [f"column {j}" for j in range(1, len(first) + 1)]
        return Layout(separator, tuple(names), has_header=False, notes=(NO_NAMES,))
    if len(second) == len(first) + 1:  # R names no row names; others end lines in a separator
        first = ["", *first] if second[-1] else [*first, ""]
    names = [name or UNNAMED.format(j) for j, name in enumerate(first)]
    return Layout(separator, tuple(names), has_header=True, notes=notes)


def _counts(cells: Sequence[str]) -> bool:
    """Say whether a first line is 0, 1, 2, ... as pandas heads an array, or 2019, 2020, ...

    One number alone counts nothing: it may as well be a value.
    """
    if len(cells) < 2 or not all(WHOLE.fullmatch(cell) for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _separator(line: str) -> str:
    """Return the most frequent separator outside quotes, of equally frequent the first."""
    bare = QUOTED.sub("", line)
    return max(SEPARATORS, key=bare.count)


def _frame(
    stream: IO[bytes], request: Request, layout: Layout, texts: Sequence[str]
) -> "pd.DataFrame":
    """Read all cells; those of some columns as text, to the letter."""
    import pandas as pd

    # A first line that is too long is only warned of, and cut.
    troubles = (pd.errors.ParserError, pd.errors.ParserWarning)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return _parsed(stream, layout, texts)
    except troubles as error:
        _refuse_long(stream, request, layout)
        raise ValueError(str(error)) from error


def _refuse_long(stream: IO[bytes], request: Request, layout: Layout) -> None:
    """Refuse the first line with more cells than there are columns, where there is one."""
    n_columns = len(layout.names)
    with _text(stream) as text:
        for line, cells in _records(text, layout.separator):
            if len(cells) > n_columns:
                raise request.error(
                    f"has {counted(len(cells), 'cell')} in line {line:,}, and "
                    f"{counted(n_columns, 'column')}"
                )


def _parsed(stream: IO[bytes], layout: Layout, texts: Sequence[str]) -> "pd.DataFrame":
    import pandas as pd

    missing: Any = MISSING
    if texts:
        missing = {name: MISSING for name in layout.names if name not in texts}
    options: dict[str, Any] = {}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # from then on it always is, and deprecated
    with _text(stream) as text:
        if layout.has_header:
            next(_records(text, layout.separator))
        return pd.read_csv(
            text,
            sep=layout.separator,
            header=None,
            names=list(layout.names),
            index_col=False,
            dtype=dict.fromkeys(texts, str),
            keep_default_na=False,
            na_values=missing,
            low_memory=False,  # else a column may get several types, part by part
            **options,
        )


def _line(stream: IO[bytes], layout: Layout, row: int) -> int:
    """Return the line a row begins in; quoted line breaks and blank lines count."""
    with _text(stream) as text:
        records = _records(text, layout.separator)
        if layout.has_header:
            next(records)
        for position, (line, _) in enumerate(records):
            if position == row:
                return line
    return row + 1 + layout.has_header  # only if csv and pandas disagree on what a record is


def table_of(columns: FrameColumns, request: Request, where: Where) -> Table:
    """Return the columns that are features, as numbers, and say why others are not."""
    if not len(columns.frame):
        raise request.error("has no rows")
    index = _index(columns, request)
    chosen, dropped = _chosen(columns, request, where, index)
    X = _filled(chosen, len(columns.frame))
    refuse_gaps(request, X, tuple(chosen), where)
    ids = request.id_column or index
    labels = None if request.label_column is None else columns.texts[request.label_column]
    return Table(
        X,
        tuple(chosen) if columns.has_names else None,
        None if ids is None else columns.texts[ids],
        as_labels(labels),
        dropped,
        columns.notes,
    )


def _index(columns: FrameColumns, request: Request) -> str | None:
    """Return the column that is an index: it has no name, and tells all rows apart."""
    index = columns.index
    if index is None or index in (*(request.columns or ()), *request.text_columns):
        return None
    values = columns.texts[index]
    return index if len(set(values)) == len(values) else None


def _chosen(
    columns: FrameColumns, request: Request, where: Where, index: str | None
) -> tuple[dict[str, "pd.Series"], tuple[tuple[str, str], ...]]:
    """Return the columns to use, and the others with the reasons.

    Those that were probably meant to be numbers come first, as lists are cut.
    """
    names = [str(name) for name in columns.frame.columns]
    chosen: dict[str, pd.Series] = {}
    reasons: dict[str, str] = dict.fromkeys(names, "not among the columns asked for")
    refuse_absent(request, request.columns or (), names)
    for name in names if request.columns is None else request.columns:
        if name == index or name in request.text_columns:
            continue
        found = _numbers(columns, name, request, where)
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
        told = ", ".join(f"{name!r} ({reason})" for name, reason in dropped[:MAX_NAMED])
        more = f" and {len(dropped) - MAX_NAMED} more" * (len(dropped) > MAX_NAMED)
        why = f": {told}{more}" if told else ""
        raise request.error(f"has no column of numbers to use{why}")
    return chosen, dropped


def _numbers(
    columns: FrameColumns, name: str, request: Request, where: Where
) -> "pd.Series | str":
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
    if kind in NUMBERS:
        return _unpacked(column, name, request)
    if kind == "string":
        return _from_text(columns, present[present != ""], request, where)
    return OTHERS.get(kind, "neither numbers nor text")


def _unpacked(column: "pd.Series", name: str, request: Request) -> "pd.Series":
    """Return Python's own numbers as floats: decimals, large integers, truths with gaps."""
    try:
        return column.where(column.notna(), np.nan).astype(np.float64)
    except OverflowError as error:
        raise request.error(f"has numbers beyond float64 in the column {name!r}") from error


def _from_text(
    columns: FrameColumns, present: "pd.Series", request: Request, where: Where
) -> "pd.Series | str":
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
        raise request.error(
            f"has numbers in the column {present.name!r} except {present.iloc[at][:60]!r} in "
            f"{where(int(present.index[at]))}; mend it",
            (", or choose other columns with", "columns"),
        )
    is_spelled = bool(is_number.all())
    if is_spelled and not columns.is_typed:
        return numbers.reindex(columns.frame.index)
    values = present.unique()
    count = "always the same" if len(values) == 1 else f"{len(values)} different values"
    if not is_spelled and all(DATE.fullmatch(value) for value in values):
        return "dates"
    if not is_spelled and _looks_formatted(present):
        return FORMATTED
    return f"text that reads as numbers, {count}" if is_spelled else f"text, {count}"


def _looks_formatted(cells: "pd.Series") -> bool:
    n_like = sum(LIKE_NUMBER.fullmatch(cell) is not None for cell in cells)
    return n_like >= MOSTLY * len(cells)


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


def _filled(chosen: dict[str, "pd.Series"], n_rows: int) -> Array:
    """Return columns as one array, float32 if they all are."""
    is_single = all(column.dtype in (np.float16, np.float32) for column in chosen.values())
    X = np.empty((n_rows, len(chosen)), dtype=np.float32 if is_single else np.float64)
    for j, column in enumerate(chosen.values()):
        X[:, j] = column.to_numpy()
    return X
