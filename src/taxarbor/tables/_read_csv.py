"""Tables in csv, tsv and other texts, as data frames of pandas.

A column of plain numbers becomes numbers, one of true and false booleans; all others are texts,
as they are in the file. Text is parsed by pandas: it measured ten times as fast as the csv
module, and no slower than pyarrow, which says less of what is wrong with a line.
"""

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._errors import counted
from taxarbor.sources.file_checks import as_texts
from taxarbor.tables._header import HEADER_ROWS, MISSING, Content, Header, Request, find_header

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {"\t": "a tab", ";": "a semicolon", "|": "a bar", ",": "a comma"}
ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")
"""Tried in this order; the last one fits all bytes."""
CELLS_AT_ONCE = 1 << 20
"""Cells that are parsed together; text takes a multiple of its size while it is parsed."""
MIN_ROWS_AT_ONCE = 1000
MIN_ROWS_PER_TEXT = 4
"""Rows per text from which on rows share texts."""
SAMPLE_CHARACTERS = 1 << 20
QUOTED = re.compile(r'"(?:[^"]|"")*"?')


def read_csv(stream: IO[bytes], request: Request, separator: str | None = None) -> Content:
    """Return the table in a text whose cells are separated by a comma, semicolon, bar or tab.

    ``separator`` is the one that the name of the file promises.
    """
    is_utf16 = stream.read(2) in (b"\xff\xfe", b"\xfe\xff")
    encodings = ("utf-16",) if is_utf16 else ENCODINGS
    for encoding in encodings:
        stream.seek(0)
        text = io.TextIOWrapper(stream, encoding=encoding, newline="")
        try:
            content = _read_text(text, request, separator)
            break
        except UnicodeDecodeError:
            if encoding == encodings[-1]:
                raise
        finally:
            text.detach()
    if encoding == encodings[0]:
        return content
    note = f"the text is not in UTF-8 and was read as {encoding}"
    return content._replace(notes=(note, *content.notes))


def _read_text(text: io.TextIOWrapper, request: Request, separator: str | None) -> Content:
    lines = _read_lines(text)
    found = _find_separator(lines, separator)
    rows = list(csv.reader(lines, delimiter=found))
    header = find_header(rows, request)
    names = header.names
    frame, mixed = _parse(text, header, found)
    is_cut = len(frame) > 0 and frame[names[-1]].isna().any()
    as_text = {*request.text_columns, *([header.index_name] if header.index_name else [])}
    if as_text or mixed:
        cells, _ = _parse(text, header, found, as_text | mixed)
        frame[[*mixed]] = cells[[*mixed]].mask(cells[[*mixed]].isin(MISSING))
    texts = {name: as_texts(cells[name].tolist()) for name in as_text}
    frame = frame.drop(columns=[*as_text]) if as_text else frame
    notes = [*header.notes, *(_describe_short_lines(text, header, found) if is_cut else ())]
    if separator not in (None, found):
        notes.append(f"its cells are separated by {SEPARATORS[found]}")
    return header._replace(notes=tuple(notes)).drop_empty(frame, texts)


def _read_lines(text: io.TextIOWrapper) -> list[str]:
    """Return the first lines, of which at least three are not blank."""
    text.seek(0)
    lines: list[str] = []
    n_filled = n_characters = 0
    for line in text:
        lines.append(line)
        n_filled += bool(line.strip())
        n_characters += len(line)
        if n_filled >= HEADER_ROWS or (n_filled > 2 and n_characters > SAMPLE_CHARACTERS):
            break
    return lines


def _find_separator(lines: Sequence[str], expected: str | None) -> str:
    """Return the separator that occurs equally often in most lines.

    In doubt it is one that is no decimal comma.
    """
    best, found = 0, expected or ","
    bare = [QUOTED.sub("", line) for line in lines if line.strip()]
    for separator in SEPARATORS:
        numbers = [line.count(separator) for line in bare]
        n_alike = max((numbers.count(n) for n in {*numbers} - {0}), default=0)
        if n_alike > best:
            best, found = n_alike, separator
    return found


def _parse(
    text: io.TextIOWrapper, header: Header, separator: str, as_text: Collection[str] = ()
) -> tuple["pd.DataFrame", set[str]]:
    """Return all columns, and those that hold numbers or booleans beside texts.

    If some are to be read as text, return these, to the letter.
    """
    import pandas as pd

    options: dict[str, Any] = {"na_values": MISSING}
    if as_text:  # usecols would hide that a line is too long
        options = {"usecols": [*as_text], "dtype": str, "na_filter": False}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # later it always is, and deprecated
    text.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        reader = pd.read_csv(
            text,
            sep=separator,
            header=None,
            names=header.names,
            skiprows=header.n_skipped,
            index_col=False,
            keep_default_na=False,
            chunksize=max(CELLS_AT_ONCE // len(header.names), MIN_ROWS_AT_ONCE),
            low_memory=False,  # else a column may get several types, part by part
            **options,
        )
        first = next(reader, pd.DataFrame(columns=header.names))
        second = next(reader, None)
        return (first, set()) if second is None else _join(chain([first, second], reader))


def _join(chunks: Iterable["pd.DataFrame"]) -> tuple["pd.DataFrame", set[str]]:
    """Return the rows of all chunks, and columns that hold numbers or booleans beside texts."""
    import pandas as pd

    columns: dict[str, _Column] = {}
    for chunk in chunks:
        for name in chunk.columns:
            columns.setdefault(name, _Column()).append(chunk[name])
    mixed = {name for name, column in columns.items() if len(column.types - {"empty"}) > 1}
    arrays = {name: columns.pop(name).join() for name in [*columns]}
    return pd.DataFrame(arrays, copy=False), mixed


@final
class _Column:
    """A column that grows; arrays do in place, as to join them would take twice the memory."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.types: set[str] = set()
        self.dtype: Any = None
        """The data type, if it is one of texts."""
        self.texts: dict[str, str] | None = None
        """Texts that several rows share, if they are few."""

    def append(self, cells: "pd.Series[Any]") -> None:
        """Add the cells of a chunk."""
        type_ = _find_type(cells)
        if type_ == "text" and self.dtype is None:
            self.dtype = cells.dtype
            self.texts = {} if cells.nunique() * MIN_ROWS_PER_TEXT < len(cells) else None
        self.types.add(type_)
        if type_ == "text" and self.texts is not None:
            codes, values = cells.factorize()
            texts = [self.texts.setdefault(value, value) for value in values]
            part: Any = np.array([*texts, np.nan], dtype=object)[codes]
        else:
            part = cells.to_numpy() if isinstance(cells.dtype, np.dtype) else cells.array
        last = self.parts[-1] if self.parts else None
        if isinstance(last, np.ndarray) and last.dtype == part.dtype:
            last.resize(len(last) + len(part), refcheck=False)
            last[-len(part) :] = part
        else:
            self.parts.append(part.copy())

    def join(self) -> Any:
        """Return the whole column."""
        import pandas as pd

        if "boolean" in self.types and len(self.parts) > 1:
            self.parts = [part.astype(object) for part in self.parts]  # beside missing values
        if any(not isinstance(part, np.ndarray) for part in self.parts):
            return pd.concat([pd.Series(part, dtype=self.dtype) for part in self.parts]).array
        cells = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)
        if cells.dtype != object or self.dtype in (None, object):
            return cells
        return pd.array(cells, dtype=pd.StringDtype("python", na_value=np.nan), copy=False)


def _find_type(cells: "pd.Series[Any]") -> str:
    """Return boolean, number, text, or empty."""
    from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype

    if is_bool_dtype(cells.dtype):
        return "boolean"
    if is_numeric_dtype(cells.dtype):
        return "empty" if cells.isna().all() else "number"
    is_boolean = cells.dtype == object and infer_dtype(cells, skipna=True) == "boolean"
    return "boolean" if is_boolean else "text"


def _describe_short_lines(text: io.TextIOWrapper, header: Header, separator: str) -> list[str]:
    """Return a note on lines with too few cells, which pandas fills."""
    n_short = first = 0
    text.seek(0)
    lines = csv.reader(text, delimiter=separator)
    with suppress(csv.Error):  # a cell of more than 128 kB
        for at, cells in enumerate(lines):
            if at >= header.n_skipped and 0 < len(cells) < len(header.names):
                n_short, first = n_short + 1, first or lines.line_num
    if not n_short or header.unnamed[-1:] == header.names[-1:]:
        return []
    lines_are = counted(n_short, "line has", "lines have")
    return [f"{lines_are} too few cells, first line {first}; the others were taken as missing"]
