"""Which columns of a data frame are features, and why others are not; parquet files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, final

import numpy as np

from taxarbor._types import Array
from taxarbor.data._table import (
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
    "looks like an identifier; name it in columns= to use it, or as id_column= to show it"
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
NUMBERS = {"boolean", "decimal", "floating", "integer", "mixed-integer-float"}
DATES = ("date", "datetime", "datetime64", "period", "time", "timedelta", "timedelta64")
OTHERS = {"empty": "empty", **dict.fromkeys(DATES, "dates")}
"""What pandas infers of other columns, and what to call it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class FrameColumns:
    """A data frame, and what the file says of its columns.

    Attributes
    ----------
    frame : DataFrame
        All columns.
    texts : mapping of str to tuple of str
        The columns that are wanted as text.
    index : str or None
        The column that may be an index that came along.
    is_typed : bool
        Whether the file says what text is; in csv, all is.
    has_names : bool
        Whether the columns' names are the file's.
    has_decimal_comma : bool
        Whether 1,5 may be a number.
    notes : tuple of str
        What the table should say of the file.
    """

    frame: "pd.DataFrame"
    texts: Mapping[str, tuple[str, ...]]
    index: str | None
    is_typed: bool
    has_names: bool = True
    has_decimal_comma: bool = False
    notes: tuple[str, ...] = ()


def read_parquet(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a parquet file.

    Raises
    ------
    ImportError
        If pyarrow or pandas is not installed.
    """
    try:
        import pandas  # noqa: F401
        import pyarrow.parquet as pq
    except ImportError as error:
        message = "reading parquet needs pandas and pyarrow: pip install 'taxarbor[io]'"
        raise ImportError(message) from error
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


def table_of(columns: FrameColumns, request: Request, where: Where) -> Table:
    """Return the columns that are features, as numbers, and say why others are not.

    Raises
    ------
    FileFormatError
        If there is nothing to use, or something cannot be used that was asked for or
        looks as if it should be.
    """
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
            f"has numbers in the column {present.name!r} but for {present.iloc[at][:60]!r} in "
            f"{where(int(present.index[at]))}; mend it, or leave the column out with columns="
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
