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
from collections.abc import Collection, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from taxarbor._errors import FileFormatError, counted, missing_extra
from taxarbor._frames import find_dtype
from taxarbor._types import Array
from taxarbor.sources._file_checks import as_texts, check_present, check_unique, reading

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
MAX_ODD_TEXTS = 3
"""Distinct texts among numbers that are taken for mistakes, however often they occur."""


class CsvTable(NamedTuple):
    """The columns of a csv file; those that are names and labels are apart, as text."""

    frame: "pd.DataFrame"
    texts: dict[str, tuple[str, ...]]
    index_name: str | None
    """The first column if it has no name."""
    has_names: bool


class _Header(NamedTuple):
    separator: str
    names: list[str]
    n_skipped: int
    """Lines before the first row; 0 where the columns have no names."""


def read_csv(
    stream: IO[bytes],
    title: str,
    separator: str | None,
    text_columns: Sequence[str],
    columns: Sequence[str] | None,
) -> CsvTable:
    """Return the table in a text with commas, semicolons or tabs, whichever its header has.

    ``text_columns`` are read to the letter. If ``columns`` are given, others may hold anything.
    """
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise missing_extra("reading csv", "pandas") from error
    with (
        reading(title, "csv"),
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
    ):
        header = _read_header(text, title, separator)
        names, requested = header.names, [*text_columns, *(columns or ())]
        if requested and not header.n_skipped:
            message = "has numbers in its first line, so no column has a name"
            raise FileFormatError(f"{title} {message}")
        check_unique(title, names)
        check_present(title, requested, names)
        has_index = names[0] == UNNAMED.format(0) and names[0] not in requested
        as_text = [*text_columns, *names[:has_index]]
        text.seek(0)
        frame = _parse(text, header, as_text)
    texts = {name: as_texts(frame.pop(name).tolist()) for name in dict.fromkeys(as_text)}
    for name in frame.columns if columns is None else columns:
        numbers = _parse_numbers(title, name, frame[name], header.separator)
        if numbers is not None:
            frame[name] = numbers
    return CsvTable(frame, texts, names[0] if has_index else None, header.n_skipped > 0)


def _read_header(text: io.TextIOWrapper, title: str, separator: str | None) -> _Header:
    """Detect the separator and the header of a text from its first two lines."""
    line = next((line for line in text if line.strip()), None)
    if line is None:
        raise FileFormatError(f"{title} is empty")
    bare = QUOTED.sub("", line)
    separator = separator or max(SEPARATORS, key=bare.count)
    text.seek(0)
    lines = enumerate(csv.reader(text, delimiter=separator), 1)
    filled = ((n, cells) for n, cells in lines if len(cells) > 1 or "".join(cells).strip())
    n_skipped, first = next(filled, (1, [""]))
    _, second = next(filled, (0, first))
    if all(_parse_number(cell) is not None for cell in first):
        n_skipped, first = 0, [f"column {j}" for j in range(1, len(first) + 1)]
    elif len(second) == len(first) + 1:  # R names no row names; others end in a separator
        first = ["", *first] if second[-1] else [*first, ""]
    if len(second) > len(first):  # which pandas would cut
        n_cells, n_columns = counted(len(second), "cell"), counted(len(first), "column")
        raise FileFormatError(f"{title} has {n_cells} in its first row, and {n_columns}")
    names = [name or UNNAMED.format(j) for j, name in enumerate(first)]
    return _Header(separator, names, n_skipped)


def _parse(text: io.TextIOWrapper, header: _Header, as_text: Collection[str]) -> "pd.DataFrame":
    """Return all cells; those of some columns as text, to the letter."""
    import pandas as pd

    missing = {name: MISSING for name in header.names if name not in as_text}
    options: dict[str, Any] = {"keep_default_na": False, "na_values": missing}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # later it always is, and deprecated
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            text,
            sep=header.separator,
            header=None,
            names=header.names,
            skiprows=header.n_skipped,
            index_col=False,
            dtype=dict.fromkeys(as_text, str),
            low_memory=False,  # else a column may get several types, part by part
            **options,
        )


def _parse_numbers(title: str, name: str, cells: "pd.Series", separator: str) -> Array | None:
    """Return the numbers that a column spells, NaN for missing values; None if it does not.

    A few other texts among many numbers raise FileFormatError.
    """
    if find_dtype(nw.from_native(cells, series_only=True)) != "text":
        return None
    codes, values = cells.factorize()
    texts = [value.strip() for value in values]
    if any(re.fullmatch(r"0\d+", one) for one in texts):  # codes, such as of places
        return None
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    comma = "," if separator == ";" else "."
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
        raise FileFormatError(
            f"{title} has numbers in the column {name!r} except {str(cells.iloc[row])[:60]!r} "
            f"in row {row}, counted from 0; fix it, leave it empty, or choose other columns"
        )
    return None


def _parse_number(cell: str) -> float | None:
    """Return the number that a text spells, if it does; pandas rounds, or knows no 1e999."""
    try:
        return None if "_" in cell else float(cell)  # Python takes 1_000 for a number
    except ValueError:
        return None
