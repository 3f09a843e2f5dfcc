"""Tables whose cells are objects: sheets of Excel and OpenDocument, and json."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from taxarbor._errors import FileFormatError, missing_extra
from taxarbor.sources.file_checks import check_present, list_names
from taxarbor.tables._header import (
    HEADER_ROWS,
    MISSING,
    Content,
    Request,
    find_header,
)

if TYPE_CHECKING:
    import pandas as pd


def read_sheet(stream: IO[bytes], request: Request) -> Content:
    """Return the table in a sheet: the one requested, or the first that is not empty."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise missing_extra(f"reading {request.name}", "python-calamine") from error
    try:
        book = CalamineWorkbook.from_filelike(stream)
        for sheet in _select_sheets(book.sheet_names, request):
            cells = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
            if cells:
                break
    except CalamineError as error:
        raise FileFormatError(f"{request.name} is damaged, or no workbook: {error}") from error
    header = find_header(
        [[_as_text(_as_integer(cell)) for cell in row] for row in cells[:HEADER_ROWS]], request
    )
    rows = [row for row in cells[header.n_skipped :] if any(cell != "" for cell in row)]
    columns = zip(*rows, strict=True) if rows else [()] * len(header.names)
    frame = {
        name: [*map(_as_integer, column)]
        for name, column in zip(header.names, columns, strict=True)
    }
    as_text = [*request.text_columns, *([header.index_name] if header.index_name else [])]
    content = header.drop_empty(*_split(frame, len(rows), as_text))
    if len(book.sheet_names) == 1 or request.sheet is not None:
        return content
    note = f"sheet {sheet!r} was read, of {list_names(book.sheet_names)}"
    return content._replace(notes=(note, *content.notes))


def _select_sheets(names: Sequence[str], request: Request) -> Sequence[str]:
    """Return the sheet that is requested, or all."""
    sheet = request.sheet
    if sheet is None:
        return names
    if isinstance(sheet, int) and 0 <= sheet < len(names):
        return [names[sheet]]
    if sheet not in names:
        problem = f"is {sheet!r}, and {request.name} has {list_names(names)}"
        raise FileFormatError(problem, "sheet")
    return [str(sheet)]


def read_json(stream: IO[bytes], request: Request) -> Content:
    """Return the table in a list of records, alone in an object or not, or of columns."""
    content = json.loads(stream.read())
    if isinstance(content, dict) and len(content) == 1:
        (only,) = content.values()
        is_list = isinstance(only, list) and all(isinstance(one, dict) for one in only)
        content = only if is_list else content
    return _read_records(content, request)


def read_json_lines(stream: IO[bytes], request: Request) -> Content:
    """Return the table in lines of which each is a record."""
    return _read_records([json.loads(line) for line in stream if line.strip()], request)


def _read_records(content: Any, request: Request) -> Content:
    import pandas as pd

    cells = content.values() if isinstance(content, dict) else ()
    if isinstance(content, list) and all(isinstance(one, dict) for one in content):
        frame = pd.json_normalize(content)
    elif cells and all(isinstance(one, list | dict) for one in cells):
        frame = pd.DataFrame(content, dtype=object)
    else:
        expected = "expected a list of records or an object of equally long columns"
        raise FileFormatError(f"{request.name} holds no table: {expected}")
    frame.columns = frame.columns.map(str)
    as_text = request.text_columns
    check_present(request.name, request.requested, [*frame.columns])
    columns = {str(name): frame[name].astype(object).tolist() for name in frame}
    return Content(*_split(columns, len(frame), as_text))


def _split(
    cells: Mapping[str, Sequence[Any]], n_rows: int, as_text: Sequence[str]
) -> tuple["pd.DataFrame", dict[str, tuple[str, ...]]]:
    """Return the columns by their types, and some as text."""
    import pandas as pd

    texts = {name: tuple(map(_as_text, cells[name])) for name in as_text}
    columns = {name: _infer(column) for name, column in cells.items() if name not in texts}
    return pd.DataFrame(columns, index=range(n_rows)), texts


def _infer(cells: Sequence[Any]) -> Any:
    """Return numbers, booleans, dates or texts; texts where types are mixed."""
    import pandas as pd

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
    if isinstance(cell, str):
        return cell in MISSING
    return cell is None or bool(cell != cell)  # noqa: PLR0124


def _as_integer(cell: Any) -> Any:
    """Return a number of a sheet, where all are floats, as an integer if it is one."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _as_text(cell: Any) -> str:
    """Return what a cell says; a day without a time as a date."""
    if isinstance(cell, datetime) and cell == datetime.combine(cell.date(), time()):
        cell = cell.date()
    return str(cell) if isinstance(cell, str) or not _is_missing(cell) else ""
