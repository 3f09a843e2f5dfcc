"""Tables in csv and other texts, sheets and json, as data frames of pandas.

Of a text, a column of plain numbers becomes numbers, one of true and false booleans; all others
are texts, as they are in the file. Text is parsed by pandas: it measured ten times as fast as
the csv module, and no slower than pyarrow, which says less of what is wrong with a line.
"""

import csv
import io
import json
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from functools import partial
from itertools import islice
from statistics import mode
from typing import IO, TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from taxarbor._errors import FileFormatError, counted, require
from taxarbor._frames import is_missing, make_unique
from taxarbor.sources.file_checks import check_present, list_names

if TYPE_CHECKING:
    import pandas as pd

MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Stand for a missing value, as in pandas; not in names and labels: NA may be Namibia."""
SEPARATORS = {"\t": "a tab", ";": "a semicolon", "|": "a bar", ",": "a comma"}
ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")  # in this order; the last fits all bytes
HEADER_ROWS = 20  # among which the header is sought
SAMPLE_CHARACTERS = 1 << 20
CELLS_AT_ONCE, MIN_ROWS_AT_ONCE = 1 << 23, 1 << 14
"""Cells that are parsed together, and rows: smaller parts would leave holes in memory."""
QUOTED = re.compile(r'"(?:[^"]|"")*"?')
MARK = re.compile(r'"?sep=([\t;|,])"?\s*', re.IGNORECASE)
"""The first line of texts that Excel writes for itself."""
COMMA, THOUSANDS = r"-?\d{1,3}(?:\.?\d{3})*,\d+", r"-?[1-9]\d{0,2}(?:\.\d{3})+"
N_TRIED = 1000  # rows in which decimal commas are sought
YEAR = re.compile(r"(19|20)\d\d")
NO_HEADER = "the first line holds values, and was used as a row: the columns have no names"


@final
@dataclass(frozen=True, slots=True)
class Request:
    """The columns to read from a file, and the name of the file in messages."""

    name: str
    columns: tuple[str, ...] | None
    id_column: str | None
    label_column: str | None
    features: Collection[str] = ()  # columns that do not name the rows
    sheet: str | int | None = None
    layer: str = ""
    likely_ids: Collection[str] | None = None  # the first there names the rows; None: find one

    @property
    def text_columns(self) -> list[str]:
        """The id and the label column, where requested."""
        requested = (self.id_column, self.label_column)
        return [*dict.fromkeys(name for name in requested if name is not None)]

    @property
    def requested(self) -> list[str]:
        """The columns that must be there."""
        return [*self.text_columns, *(self.columns or ())]


class Content(NamedTuple):
    """The columns of a file, by position if without names; names and labels are texts."""

    frame: "pd.DataFrame"
    index_name: str | None = None  # names the rows, unless another column is requested
    notes: tuple[str, ...] = ()


def read_csv(stream: IO[bytes], request: Request, separator: str | None = None) -> Content:
    """Return the table in a text; the name of its file may promise a separator."""
    encodings = ("utf-16",) if stream.read(2) in (b"\xff\xfe", b"\xfe\xff") else ENCODINGS
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
    from pandas.api.types import infer_dtype
    from pandas.errors import ParserError, ParserWarning

    lines = _read_lines(text)
    mark = MARK.fullmatch(lines[0]) if lines else None
    found = mark[1] if mark else _find_separator(lines, separator)
    rows = list(csv.reader(lines, delimiter=found))
    header = find_header([[], *rows[1:]] if mark else rows, request)
    as_text = header.list_texts(request)
    parse, has_surplus = partial(_parse, text, header, found, as_text), False
    try:
        frame = parse()
    except (ParserError, ParserWarning):  # lines with too many cells
        parse, has_surplus = partial(parse, trims=True), True
        frame = parse()
    mixed = [name for name, cells in frame.items() if infer_dtype(cells).startswith("mixed")]
    if mixed:  # pandas finds the types of a long column part by part
        frame = parse(mixed)
    last = header.names[-1]
    may_be_odd = has_surplus or (last not in header.unnamed and _are_empty(frame[last]).any())
    notes = _describe_odd_lines(text, header, found) if may_be_odd else []
    if found != "," and (thousands := _read_thousands(frame, parse)):
        notes.append(f"dots are thousands in {list_names(thousands)}, beside decimal commas")
    if separator not in (None, found):
        notes.append(f"its cells are separated by {SEPARATORS[found]}")
    return header.finish(frame, request, notes)


def _read_thousands(frame: "pd.DataFrame", parse: Callable[..., "pd.DataFrame"]) -> list[str]:
    """Read 12.400 as thousands in columns that allow it, which are returned, beside commas."""
    import pandas as pd

    names = [name for name, cells in frame.items() if cells.dtype.kind == "f"]
    texts = frame.head(N_TRIED).select_dtypes(exclude=["number", "bool"])
    spelled = [texts[name].dropna().astype(str).str.fullmatch(COMMA) for name in texts]
    if not names or not any(len(one) and one.mean() > 0.9 for one in spelled):
        return []
    read = []
    for name, cells in parse(names)[names].items():
        dotted = cells[cells.str.contains(".", regex=False, na=False)]
        if len(dotted) and dotted.str.fullmatch(THOUSANDS).all():
            frame[name] = pd.to_numeric(cells.str.replace(".", "", regex=False))
            read.append(name)
    return read


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
    """Return the separator that occurs equally often in most lines, in doubt no comma."""
    best, found = 0, expected or ","
    bare = [QUOTED.sub("", line) for line in lines if line.strip()]
    for separator in SEPARATORS:
        numbers = [line.count(separator) for line in bare]
        n_alike = max((numbers.count(n) for n in {*numbers} - {0}), default=0)
        if n_alike > best:
            best, found = n_alike, separator
    return found


def _parse(
    text: io.TextIOWrapper,
    header: "Header",
    separator: str,
    as_text: Collection[str],
    mixed: Collection[str] = (),
    *,
    trims: bool = False,  # lines with too many cells, which are errors of pandas
) -> "pd.DataFrame":
    """Return all columns; some as text to the letter, others as text with missing values."""
    import pandas as pd

    options: dict[str, Any] = {"na_values": MISSING}
    if as_text:
        options["na_values"] = {name: MISSING for name in header.names if name not in as_text}
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # later it always is, and deprecated
    if as_text or mixed:
        options["dtype"] = dict.fromkeys([*as_text, *mixed], str)
    text.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        parts = pd.read_csv(
            text,
            sep=separator,
            header=None,
            names=header.names,
            usecols=range(len(header.names)) if trims else None,
            skiprows=header.n_skipped,
            index_col=False,
            keep_default_na=False,
            low_memory=False,
            chunksize=max(CELLS_AT_ONCE // len(header.names), MIN_ROWS_AT_ONCE),
            **options,
        )
        with parts:
            return pd.concat(parts, ignore_index=True)


def _describe_odd_lines(text: io.TextIOWrapper, header: "Header", separator: str) -> list[str]:
    """Return notes on lines with too few or too many cells, which pandas fills or cuts."""
    few = "too few cells, first line {}; the others were taken as missing"
    many = "too many cells, first line {}; the surplus was ignored"
    odd: dict[str, list[int]] = {few: [], many: []}
    text.seek(0)
    lines = csv.reader(text, delimiter=separator)
    with suppress(csv.Error):  # a cell of more than 128 kB
        for cells in islice(lines, header.n_skipped, None):
            if cells and len(cells) != len(header.names):
                odd[many if len(cells) > len(header.names) else few].append(lines.line_num)
    found = {how: counted(len(at), "line has", "lines have") for how, at in odd.items() if at}
    return [f"{n_lines} {how.format(*odd[how])}" for how, n_lines in found.items()]


# Cells that are objects: sheets of Excel and OpenDocument, and json


def read_sheet(stream: IO[bytes], request: Request) -> Content:
    """Return the table in a sheet: the one requested, or the first of several columns."""
    with require(f"reading {request.name}", "python-calamine"):
        from python_calamine import CalamineError, CalamineWorkbook
    try:
        book = CalamineWorkbook.from_filelike(stream)
        sheet, cells = "", list[Any]()
        for name in _select_sheets(book.sheet_names, request):
            found = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            if found and (not cells or len(found[0]) > 1):
                sheet, cells = name, found
            if cells and len(cells[0]) > 1:
                break
    except CalamineError as error:
        raise FileFormatError(f"{request.name} is damaged, or no workbook: {error}") from error
    start = [[_as_text(_as_integer(cell)) for cell in row] for row in cells[:HEADER_ROWS]]
    header = find_header(start, request)
    rows = [row for row in cells[header.n_skipped :] if any(cell != "" for cell in row)]
    columns = zip(*rows, strict=True) if rows else [()] * len(header.names)
    integers = ([*map(_as_integer, column)] for column in columns)
    named = dict(zip(header.names, integers, strict=True))
    frame = _make_frame(named, header.list_texts(request))
    has_others = len(book.sheet_names) > 1 and request.sheet is None
    note = f"sheet {sheet!r} was read, of {list_names(book.sheet_names)}"
    content = header.finish(frame, request)
    return content._replace(notes=(note, *content.notes)) if has_others else content


def _select_sheets(names: Sequence[str], request: Request) -> Sequence[str]:
    sheet = request.sheet
    if sheet is None:
        return names
    chosen = [name for place, name in enumerate(names) if sheet in (place, name)]
    if not chosen:
        raise FileFormatError(f"is {sheet!r}, which is none of {list_names(names)}", "sheet")
    return chosen


def read_json(stream: IO[bytes], request: Request) -> Content:
    """Return the table in records, a list alone in an object or not or lines, or in columns."""
    try:
        return _read_records(json.loads(stream.read()), request)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise
    stream.seek(0)
    return read_json_lines(stream, request)


def read_json_lines(stream: IO[bytes], request: Request) -> Content:
    """Return the table in lines of which each is a record."""
    return _read_records([json.loads(line) for line in stream if line.strip()], request)


def _read_records(content: Any, request: Request) -> Content:
    import pandas as pd

    cells = [*content.values()] if isinstance(content, dict) else [content]
    lists = [one for one in cells if isinstance(one, list) and one]
    tables = [one for one in lists if all(isinstance(row, dict) for row in one)]
    if len(tables) == 1:
        frame = pd.json_normalize(tables[0])
    elif isinstance(content, dict) and all(isinstance(one, list | dict) for one in cells):
        frame = pd.DataFrame(content, dtype=object)
    else:
        raise FileFormatError(f"{request.name} holds neither records nor columns of one length")
    frame.columns = frame.columns.map(str)
    check_present(request.name, request.requested, [*frame.columns])
    columns = {str(name): frame[name].astype(object).tolist() for name in frame}
    return Content(_make_frame(columns, request.text_columns))


def _make_frame(cells: Mapping[Any, Sequence[Any]], as_text: Sequence[str]) -> "pd.DataFrame":
    """Return the columns by their types, and some as text."""
    import pandas as pd

    columns = cells.items()
    return pd.DataFrame({name: _infer(one, is_text=name in as_text) for name, one in columns})


def _infer(cells: Sequence[Any], *, is_text: bool) -> Any:
    """Return numbers, booleans, dates or texts; texts where asked for or types are mixed."""
    import pandas as pd

    if is_text:
        return pd.Series([*map(_as_text, cells)], dtype=object)
    cells = [None if _is_missing(cell) else cell for cell in cells]
    present = [cell for cell in cells if cell is not None]
    type_ = pd.api.types.infer_dtype(present, skipna=False)
    if type_ == "boolean":
        return np.array(cells, dtype=bool if len(present) == len(cells) else object)
    if type_ in ("integer", "floating", "mixed-integer-float", "empty"):
        is_whole = type_ == "integer" and len(present) == len(cells)
        return pd.Series(cells) if is_whole else np.array(cells, dtype=np.float64)
    if type_ in ("datetime", "date"):
        return np.array(cells, dtype="datetime64[us]")
    if any(isinstance(cell, list | dict) for cell in present):
        return np.array([*cells, None], dtype=object)[:-1]  # None: rows, and no matrix
    return pd.Series([None if cell is None else _as_text(cell) for cell in cells])


def _is_missing(cell: Any) -> bool:
    return cell in MISSING if isinstance(cell, str) else is_missing(cell)


def _as_integer(cell: Any) -> Any:
    """Return a number of a sheet, where all are floats, as an integer if it is one."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _as_text(cell: Any) -> str:
    """Return what a cell says; a day without a time as a date."""
    if isinstance(cell, datetime) and cell == datetime.combine(cell.date(), time()):
        cell = cell.date()
    return str(cell) if isinstance(cell, str) or not _is_missing(cell) else ""


# Headers


class Header(NamedTuple):
    """The names of the columns; their positions where they have none."""

    names: list[Any]
    n_skipped: int = 0  # rows of the file before the first row of the table
    unnamed: Sequence[str] = ()  # columns that have no name beside others that have one
    notes: Sequence[str] = ()

    def list_texts(self, request: Request) -> list[str]:
        """Return the columns that name or label the rows, or may do so."""
        first = self.names[:1] if self.names[0] in self.unnamed else []
        likely = [name for name in request.likely_ids or () if name in self.names]
        return [*request.text_columns, *first, *likely]

    def finish(
        self, frame: "pd.DataFrame", request: Request, notes: Sequence[str] = ()
    ) -> Content:
        """Return the columns, without those that have neither a name nor a value."""
        others = [name for name in self.unnamed if name not in request.text_columns]
        empty = [name for name in others if _are_empty(frame[name]).all()]
        frame = frame.drop(columns=empty) if empty else frame
        first = self.names[0]
        index = first if first in self.unnamed and first not in empty else None
        return Content(frame, index, (*self.notes, *notes))


def _are_empty(cells: "pd.Series[Any]") -> "pd.Series[bool]":
    return cells.isna() | (cells == "")


def find_header(rows: Sequence[Sequence[str]], request: Request) -> Header:
    """Return the header, below rows that are blank, or titles: with fewer cells than others."""
    stripped = [[*map(str.strip, cells)] for cells in rows]
    filled = [(at, cells) for at, cells in enumerate(stripped) if any(cells)]
    if not filled:
        raise FileFormatError(f"{request.name} is empty")
    n_titles = _count_titles([cells for _, cells in filled])
    notes = []
    if n_titles:
        lines = f"{counted(n_titles, 'line')} above the header"
        title = ", ".join(filter(None, filled[0][1]))
        notes.append(f"{lines} skipped; the first is {title[:60]!r}")
    at, first = filled[n_titles]
    body = [cells for _, cells in filled[n_titles + 1 :]]
    width = _find_width(body)
    below = zip(*(cells for cells in body if len(cells) == len(first)), strict=True)
    recurs = any(cell in column for cell, column in zip(first, below, strict=False) if cell)
    has_names = not (all(map(_is_number, first)) or (recurs and any(map(_is_number, first))))
    if has_names and width == len(first) + 1:  # R names no row names; others end in a comma
        ends_filled = any(cells[-1] for cells in body if len(cells) == width)
        first = ["", *first] if ends_filled else [*first, ""]
    if width > len(first):  # pandas would cut it
        cells, columns = counted(width, "cell"), counted(len(first), "column")
        raise FileFormatError(f"{request.name} has {cells} in most rows, and {columns}")
    if not has_names:
        if request.requested:
            message = "has numbers in its first line, so no column has a name"
            raise FileFormatError(f"{request.name} {message}")
        return Header([*range(len(first))], at, notes=[NO_HEADER])
    names = make_unique([name or f"Unnamed: {j}" for j, name in enumerate(first)])  # as pandas
    pairs = [*zip(names, first, strict=True)]
    if repeated := [name for name, given in pairs if given not in ("", name)]:
        notes.append(f"names of columns are repeated: now {list_names(repeated)}")
    check_present(request.name, request.requested, names)
    unnamed = [name for name, given in pairs if not given and name not in request.features]
    return Header(names, at + 1, unnamed, notes)


def _count_titles(filled: Sequence[Sequence[str]]) -> int:
    """Return how many rows are titles above a header, whose cells are texts."""
    n_titles = longest = 0
    for cells in filled:
        n_filled = sum(map(bool, cells))
        if n_filled > 1 and (n_filled >= _find_width(filled) or not all(cells[:n_filled])):
            break
        if not cells[0]:  # an index without a name
            return 0
        n_titles, longest = n_titles + 1, max(longest, n_filled)
    header, *body = filled[n_titles:] or [[]]
    if not (n_titles and body) or any(len(cells) != len(header) for cells in body[:3]):
        return 0
    odd = [one for one in header if _is_number(one)]
    if len(odd) == len(header) or not all(map(YEAR.fullmatch, odd)):
        return 0
    if longest > 1:  # or it may be the header, and the next line a row of texts
        columns = zip(header, *(row for row in body if len(row) == len(header)), strict=True)
        named = [{*cells}.difference(MISSING) for name, *cells in columns if name[:1].isalpha()]
        is_clear = any(cells and all(map(_is_number, cells)) for cells in named)
        return n_titles if is_clear and {*header}.isdisjoint(MISSING) else 0
    has_numbers = any(_is_number(cell) for cells in body for cell in cells)
    return n_titles if len(header) > 2 or has_numbers else 0


def _find_width(rows: Sequence[Sequence[str]]) -> int:
    """Return how many cells most rows have."""
    return mode(map(len, rows)) if rows else 0


def _is_number(cell: str) -> bool:
    """Return whether a text spells a number, with a decimal point or comma."""
    try:
        float(cell.replace(",", ".", 1))
    except ValueError:
        return False
    return "_" not in cell  # Python takes 1_000 for a number
