"""Tables in csv and tsv files, as data frames of pandas.

Text that spells numbers becomes numbers, with decimal commas and words for missing values; the
profiler decides the types of all other columns. Text is parsed by pandas: it measured ten times
as fast as the csv module, and no slower than pyarrow, which says less of what is wrong with a
line.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, final

import narwhals as nw
import numpy as np

from taxarbor._errors import FileFormatError, NamelessError, counted, missing_extra
from taxarbor._frames import find_dtype
from taxarbor._types import Array
from taxarbor.sources._file_checks import as_texts, check_present, check_unique
from taxarbor.tables._request import Request, Table, check_finite, make_frame_table

if TYPE_CHECKING:
    import pandas as pd

UNNAMED = "Unnamed: {}"
"""Name that pandas gives a column without a name."""
SEPARATORS = (",", ";", "\t")
QUOTED = re.compile(r'"(?:[^"]|"")*"?')
MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Stand for a missing value, as in pandas; not in names and labels: NA may be Namibia."""
MISSING_NUMBERS = {
    *("", "?", "-", "--", ".", ".."),
    *("na", "n/a", "n.a.", "nan", "null", "none", "missing"),
}
"""Stand for a missing value among numbers, in upper or lower case."""
WHOLE = re.compile(r"\s*\d{1,9}\s*", re.ASCII)
NUMBERED = (
    "the first line holds consecutive numbers, {}, {}, ..., which were used as the names of "
    "the columns"
)
NO_HEADER = (
    "the first line holds numbers only and was used as a row; give the columns names if it is "
    "a header"
)
MAX_ODD_TEXTS = 3
"""Distinct texts among numbers that are taken for mistakes, however often they occur."""
MAX_PARSED_TEXTS = 1_000
"""Distinct texts without a digit after which a column is known not to hold numbers."""


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
        as_text = [*request.text_columns]
        if index is not None and index not in (request.columns or ()):
            as_text.append(index)
        frame = text.parse(request, as_text)
    texts = {name: as_texts(frame[name].tolist()) for name in as_text}
    frame = frame.drop(columns=[*request.text_columns])
    for name in frame.columns:
        try:
            numbers = _parse_numbers(text, request, name, frame[name])
            if numbers is not None:
                frame[name] = numbers
            check_finite(request, name, frame[name].to_numpy(), text.find_line)
        except FileFormatError:
            if request.columns is None or name in request.columns:
                raise
            frame = frame.drop(columns=name)  # it was not requested
    table = make_frame_table(request, frame, texts, index, has_names=text.has_header)
    return replace(table, notes=text.notes)


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
        """Yield the line each record begins in, and its cells; blank lines are skipped."""
        reader = csv.reader(text, delimiter=self.separator)
        line = 1
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield line, cells
            line = reader.line_num + 1

    def find_line(self, row: int) -> str:
        """Return the line a row begins in, for messages."""
        with self.opened() as text:
            lines = (line for line, _ in self.records(text))
            # There is none only if csv and pandas disagree on what a record is.
            line = next(islice(lines, row + self.has_header, None), row + 1 + self.has_header)
        return f"line {line}"

    def parse(self, request: Request, as_text: list[str]) -> "pd.DataFrame":
        """Return all cells; those of some columns as text, to the letter."""
        import pandas as pd

        missing: Any = MISSING
        if as_text:
            missing = {name: MISSING for name in self.names if name not in as_text}
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
                    dtype=dict.fromkeys(as_text, str),
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
    if _are_consecutive(first):
        notes = (NUMBERED.format(*first),)
    elif all(_parse_number(cell) is not None for cell in first):
        names = tuple(f"column {j}" for j in range(1, len(first) + 1))
        return replace(result, names=names, has_header=False, notes=(NO_HEADER,))
    if len(second) == len(first) + 1:  # R names no row names; others end lines in a separator
        first = ["", *first] if second[-1] else [*first, ""]
    names = tuple(name or UNNAMED.format(j) for j, name in enumerate(first))
    return replace(result, names=names, notes=notes)


def _are_consecutive(cells: list[str]) -> bool:
    """Return whether a line is 0, 1, 2, ... as pandas heads an array, or 2019, 2020, ...

    One number alone may as well be a value.
    """
    if len(cells) < 2 or not all(WHOLE.fullmatch(cell) for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _parse_numbers(
    text: _Text, request: Request, name: str, cells: "pd.Series"
) -> Array | None:
    """Return the numbers that a column spells, NaN for missing values; None if it does not.

    A few other texts among many numbers raise FileFormatError.
    """
    if find_dtype(nw.from_native(cells, series_only=True)) != "text":
        return None
    codes, values = cells.factorize()
    first = values[:MAX_PARSED_TEXTS]
    if len(values) > MAX_PARSED_TEXTS and not any(map(re.compile(r"\W*\d").match, first)):
        return None
    texts = [value.strip() for value in values]
    if any(re.fullmatch(r"0\d+", one) for one in texts):  # codes, such as of places
        return None
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    comma = "," if text.separator == ";" else "."
    numbers = [_parse_number(one.replace(comma, ".")) for one in texts]
    is_number = np.array([number is not None for number in numbers], dtype=bool)
    is_missing = np.array([one.casefold() in MISSING_NUMBERS for one in texts], dtype=bool)
    odd = np.flatnonzero(~(is_number | is_missing))
    n_numbers, n_odd = int(counts[is_number].sum()), int(counts[odd].sum())
    if n_numbers and not n_odd:
        parsed = [np.nan if number is None else number for number in numbers]
        result: Array = np.array([*parsed, np.nan])[codes]
        return result
    if n_numbers > n_odd and (len(odd) <= MAX_ODD_TEXTS or 10 * n_odd <= n_numbers):
        row = int(np.isin(codes, odd).argmax())
        raise request.error(
            f"has numbers in the column {name!r} except {str(cells.iloc[row])[:60]!r} in "
            f"{text.find_line(row)}; fix it, leave the cell empty, or choose other columns"
        )
    return None


def _parse_number(cell: str) -> float | None:
    """Return the number that a text spells, if it does; pandas rounds, or knows no 1e999."""
    try:
        return None if "_" in cell else float(cell)  # Python takes 1_000 for a number
    except ValueError:
        return None
