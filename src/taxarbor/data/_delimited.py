"""Tables in text: values between commas, semicolons or tabs."""

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, final

from taxarbor.data._frames import UNNAMED, FrameColumns, as_number, table_of
from taxarbor.data._table import Request, Table, as_texts, refuse_absent, refuse_repeated

if TYPE_CHECKING:
    import pandas as pd

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


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """How a text is to be read."""

    separator: str
    names: tuple[str, ...]
    has_header: bool
    notes: tuple[str, ...] = ()


def read_csv(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a text with commas, semicolons or tabs, whichever its header has.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    return _read(stream, request, None)


def read_tsv(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a text with tabs.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    return _read(stream, request, "\t")


def _read(stream: IO[bytes], request: Request, separator: str | None) -> Table:
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise ImportError("reading csv needs pandas: pip install 'taxarbor[io]'") from error
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
                    f"has {len(cells)} cells in line {line}, and {n_columns} columns"
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
