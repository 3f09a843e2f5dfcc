"""Data frames of any library, and the cells of their columns as numbers, categories or dates.

Frames are read through narwhals: those of pandas, polars, pyarrow, Modin and cuDF. None of
these libraries has to be installed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from datetime import date, time
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol, SupportsFloat, TypeAlias, runtime_checkable

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from taxarbor._errors import (
    InputError,
    InputTypeError,
    TableWarning,
    require,
    some,
    warn_caller,
)
from taxarbor._types import Array, IndexArray, Matrix, TableLike

Frame: TypeAlias = nw.DataFrame[Any]
Table: TypeAlias = "Frame | Matrix"  # what :func:`as_table` returns
Cells: TypeAlias = nw.Series[Any] | NDArray[Any]  # a column of a frame or of an array

DTYPES = {
    **{"String": "text", "Object": "object", "Categorical": "category", "Enum": "category"},
    **{"Date": "date", "Datetime": "date", "Duration": "durations", "Time": "times"},
    **{"List": "list", "Array": "list"},
}
NUMPY_DTYPES = {
    **dict.fromkeys("fiub", "number"),
    **dict.fromkeys("US", "text"),
    **{"M": "date", "m": "durations", "O": "object"},
}
"""What columns hold, by data types of narwhals and by kinds of those of NumPy."""


class Factor(NamedTuple):
    """The different texts of a column, and the position of each row's, -1 if it is missing."""

    codes: IndexArray
    texts: list[str]


@runtime_checkable
class ArrowStream(Protocol):
    """Tables of Arrow, such as record batches of pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def wrap_frame(X: TableLike) -> Frame | None:
    """Return a frame of any library as one of narwhals; None for all else.

    Lazy frames and streams of Arrow are read into memory, but for those of Dask. Of columns of
    one name all but the first get another, with a warning.
    """
    try:
        with require("a table of Arrow", "pyarrow"):
            known = nw.from_native(X, pass_through=True, allow_series=True)
            if isinstance(known, nw.LazyFrame) and not is_dask(known.to_native()):
                return known.collect()
            if known is X and isinstance(X, ArrowStream) and not isinstance(X, nw.DataFrame):
                import pyarrow as pa

                X = pa.table(X)
                known = nw.from_native(X)
    except DuplicateError as error:
        frame: Any = X
        is_pandas = nw.dependencies.is_pandas_dataframe(frame)
        if not (is_pandas or nw.dependencies.is_pyarrow_table(frame)):
            raise InputError("has several columns of one name; rename them", "X") from error
        names = [*map(str, frame.columns if is_pandas else frame.column_names)]
        unique = make_unique(names)
        repeated = [new for new, name in zip(unique, names, strict=True) if new != name]
        warn_caller(f"names of columns are repeated: now {some(repeated, 5)}", TableWarning)
        rename = partial(frame.set_axis, axis=1) if is_pandas else frame.rename_columns
        return wrap_frame(rename(unique))
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"is no table of Arrow: {error}", "X") from error
    return _simplify(known) if isinstance(known, nw.DataFrame) else None


def make_unique(names: Iterable[str], separator: str = "_", first: int = 2) -> list[str]:
    """Return names, each once: of several ``a``, the second becomes ``a_2``."""
    given = [*names]
    taken, seen, unique = {*given}, set(), []
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(first))
    for name in given:
        new = name
        while name in seen and new in taken:
            new = f"{name}{separator}{next(numbers[name])}"
        seen.add(name)
        taken.add(new)
        unique.append(new)
    return unique


def _simplify(frame: Frame) -> Frame:
    """Return a frame without big-endian or sparse columns of pandas, unknown to narwhals."""
    if not frame.implementation.is_pandas():
        return frame
    native = frame.to_native()
    plain = {}
    for name, kind in native.dtypes.items():
        if type(kind).__name__ == "SparseDtype":
            plain[name] = kind.subtype
        elif isinstance(kind, np.dtype) and not kind.isnative:
            plain[name] = kind.newbyteorder("=")
    return nw.from_native(native.astype(plain)) if plain else frame


def is_anndata(X: TableLike) -> bool:
    """Return whether something is an AnnData object; anndata need not be installed."""
    return type(X).__name__ == "AnnData" and type(X).__module__.partition(".")[0] == "anndata"


def is_dask(X: TableLike) -> bool:
    """Return whether something is a collection of Dask, which need not be installed."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def is_plain(X: TableLike) -> bool:
    """Return whether a table is an array of numbers, or a sparse matrix, and nothing else."""
    if issparse(X):
        return True
    return isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and not np.ma.isMaskedArray(X)


def fill_masked(X: TableLike) -> TableLike:
    """Return a masked array as floats with NaN, and all else as it is."""
    X = _join_masked(X)
    return _as_floats(X) if np.ma.isMaskedArray(X) else X


def _join_masked(X: TableLike) -> TableLike:
    """Return masked rows in a list as one array: NumPy would forget their masks."""
    has_masks = isinstance(X, list | tuple) and any(map(np.ma.isMaskedArray, X))
    return np.ma.array(X) if has_masks else X


def column_names(table: Table) -> list[str] | None:
    """Return the names of a frame's columns; None where it has none, or they are numbers."""
    names = table.columns if isinstance(table, nw.DataFrame) else []
    return [*map(str, names)] if any(isinstance(name, str) for name in names) else None


def as_table(X: TableLike) -> Table:
    """Return a frame as one of narwhals, a sparse matrix as it is, all else as a 2-D array."""
    if (frame := wrap_frame(X)) is not None:
        return frame
    X = _join_masked(X)
    try:
        array: Any = X if issparse(X) or isinstance(X, np.ndarray) else np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"is no table: {error}", "X") from error
    if array.dtype.kind in "US" and array is not X:
        array = np.asarray(X, dtype=object)  # NumPy has made text of all numbers in a list
    if array.ndim == 0:
        raise InputTypeError(f"must be an array, frame or path, got a {type(X).__name__}", "X")
    if array.ndim != 2:
        problem = f"must have two dimensions, got shape {array.shape}. Reshape your data"
        raise InputError(f"{problem}: X.reshape(1, -1) if it is one row", "X")
    table: Matrix = array
    return table


def as_matrix(table: Any) -> Any:
    """Return a frame whose columns are all numbers as an array, and all else as it is."""
    if not isinstance(table, nw.DataFrame):
        return table
    kinds = table.schema.values()
    are_numbers = all(kind.is_numeric() or kind == nw.Boolean for kind in kinds)
    return matrix if are_numbers and is_plain(matrix := table.to_numpy()) else table


def as_numeric(table: Table) -> Any:
    """Return a table as an array or a sparse matrix, where only numbers are expected."""
    table = as_matrix(table)
    if isinstance(table, nw.DataFrame):
        columns = map(as_numbers, iterate_columns(table), map(str, table.columns))
        return np.column_stack([*columns]).astype(float_type(table))
    if table.dtype.kind in "mM":
        raise InputTypeError(f"holds dates or times ({table.dtype}), and no numbers", "X")
    return fill_masked(table)


def as_canonical(X: Any) -> Any:
    """Return a sparse matrix as CSR with one entry per cell at most; the given one stays."""
    matrix: Any = csr_array(X)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def float_type(X: Table | Cells) -> type[np.floating[Any]]:
    """Return float32 for a table whose numbers all are, else float64."""
    if isinstance(X, nw.DataFrame):
        kinds = {kind for kind in X.schema.values() if kind.is_numeric()}
        are_single = all(str(kind) in ("Float32", "Float16") for kind in kinds)
        return np.float32 if kinds and are_single else np.float64
    dtype: Any = X.dtype
    is_float = isinstance(dtype, np.dtype) and dtype.kind == "f"
    return np.float32 if is_float and dtype.itemsize <= 4 else np.float64


def iterate_columns(table: Any, positions: Iterable[int] | None = None) -> Iterator[Cells]:
    """Yield columns of a frame of narwhals, or of an array, all by default."""
    names = table.columns if isinstance(table, nw.DataFrame) else ()
    for position in range(table.shape[1]) if positions is None else positions:
        yield table.get_column(names[position]) if names else table[:, position]


def find_dtype(cells: Cells) -> str:
    """Return number, category, text, date, times, durations, list, object, or another type."""
    if not isinstance(cells, nw.Series):
        return NUMPY_DTYPES.get(cells.dtype.kind, f"of type {cells.dtype}")
    kind = cells.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        return "number"
    name = type(kind).__name__
    if name in DTYPES:
        return DTYPES[name]
    if cells.implementation.is_pandas_like() and cells.to_native().dtype == np.float16:
        return "number"  # which early versions of narwhals do not know
    return "empty" if cells.null_count() == len(cells) else f"of type {kind}"


def find_kind(cells: Cells) -> str:
    """Return the type of a column: number, category, text, date, vector, or why none."""
    kind = find_dtype(cells)
    if kind not in ("object", "list"):
        return "text" if kind == "times" else kind
    if isinstance(cells, nw.Series) and kind == "list":
        cells = cells.drop_nulls().head(1)
    present = [cell for cell in list_cells(cells) if not is_missing(cell)]
    if not present:
        return "empty"
    if all(map(is_number, present)):
        return "number"
    if all(isinstance(cell, str | date | time) or is_number(cell) for cell in present):
        return "text"
    are_lists = all(isinstance(cell, list | tuple | np.ndarray) for cell in present)
    is_vector = are_lists and as_vector(present[0]) is not None
    return "vector" if is_vector else "neither numbers nor text"


def list_levels(cells: Cells) -> list[str] | None:
    """Return the categories of a column in their order; None if they have none."""
    if not isinstance(cells, nw.Series):
        return None
    if isinstance(cells.dtype, nw.Enum):
        return [*map(text_of, cells.dtype.categories)]
    if find_dtype(cells) == "category" and cells.implementation.is_pandas():
        categories = cells.to_native().cat
        return [*map(text_of, categories.categories)] if categories.ordered else None
    return None  # of polars and Arrow: in the order in which they came


def mark_missing(numbers: Any, missing_values: Sequence[str]) -> Any:
    """Return numbers with NaN for those that count as missing."""
    values = []
    for text in missing_values:
        with suppress(ValueError):
            values.append(float(text))
    if not values or not (is_missing := np.isin(numbers, values)).any():
        return numbers
    return np.where(is_missing, np.asarray(np.nan, dtype=float_type(numbers)), numbers)


def as_numbers(cells: Cells, name: str, missing_values: Sequence[str] = ()) -> Array:
    """Return a column as floats, NaN where a value is missing, or raise InputError."""
    if find_dtype(cells) in ("date", "times", "durations"):
        raise InputTypeError(f"column {name!r} of X holds dates or times, and no numbers")
    try:
        numbers: Array = mark_missing(_as_floats(cells), missing_values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"column {name!r} of X {error}, where a number is expected") from error
    with np.errstate(all="ignore"):
        has_total = np.isfinite(numbers.sum())
    if not has_total and (is_infinite := np.isinf(numbers)).any():
        problem = f"infinity, first in row {is_infinite.argmax()}, counted from 0"
        remedy = "replace it, or let it be a missing value: inf and -inf in missing_values"
        raise InputError(f"column {name!r} of X holds {problem}; {remedy} (--missing inf,-inf)")
    return numbers


def _as_floats(cells: Cells) -> Array:
    dtype: Any = cells.dtype
    if isinstance(cells, nw.Series):
        is_listed = dtype in (nw.Categorical, nw.Enum)  # pyarrow fills missing codes
        values = np.array(cells.to_list(), dtype=object) if is_listed else cells.to_numpy()
        kind = np.float64 if dtype.is_integer() else float_type(values)
    elif np.ma.isMaskedArray(cells):  # behind a mask may be anything
        kind = float_type(cells)
        values = np.ma.filled(cells.astype(object if dtype.kind == "O" else kind), np.nan)
    else:
        values, kind = cells, float_type(cells)
    if values.dtype.kind in "OSU":
        floats = [_as_float(cell) for cell in values.ravel().tolist()]
        values = np.array(floats).reshape(values.shape)
    if values.dtype.kind not in "fiub" or values.ndim > getattr(cells, "ndim", 1):
        raise TypeError(f"has {dtype} cells")
    return np.asarray(values, dtype=kind)


def _as_float(cell: Any) -> float:
    if is_missing(cell):
        return np.nan
    if not is_number(cell):
        raise TypeError(f"holds {cell!r}")
    return float(cell)


def as_vectors(cells: Any, name: str | None = None, *, rows: IndexArray | None = None) -> Array:
    """Return an embedding, a matrix or a column of equally long lists, as finite floats.

    float64 and integers of 32 bits and more become float64, all else float32. InputError names
    the column, and the row by its number in ``rows``.
    """
    matrix = cells.to_numpy() if isinstance(cells, nw.Series) else np.asarray(cells)
    is_right = np.zeros(len(matrix), dtype=bool)
    if matrix.ndim == 1 and len(matrix):
        vectors = [as_vector(cell) for cell in matrix]
        lengths = np.array([0 if vector is None else len(vector) for vector in vectors])
        is_right = lengths == max(lengths[np.argmax(lengths > 0)], 1)
        if is_right.all():
            matrix = np.stack([vector for vector in vectors if vector is not None])
    if matrix.ndim == 2:
        is_double = matrix.dtype.itemsize >= 4 and matrix.dtype != np.float32
        matrix = np.ascontiguousarray(matrix, np.float64 if is_double else np.float32)
        is_right = np.isfinite(matrix).all(axis=1)
    if not is_right.all():
        row = int(is_right.argmin())
        cell = " ".join(repr(matrix[row]).split())[:40]
        where = f"row {row if rows is None else rows[row]}, counted from 0"
        where += "" if name is None else f", of column {name!r}"
        expected = "where a vector of finite numbers, as long as all others, is expected"
        raise InputError(f"holds {cell} in {where}, {expected}; fix or remove it", "embedding")
    return matrix


def as_vector(cell: Any) -> NDArray[Any] | None:
    """Return a list of numbers as an array, None for all else."""
    try:
        vector = np.asarray(cell)
    except ValueError:  # lists of different lengths in a list
        return None
    is_vector = vector.ndim == 1 and vector.size and vector.dtype.kind in "fiub"
    return vector if is_vector else None


def as_factor(cells: Cells, missing_values: Sequence[str]) -> Factor:
    """Return the texts of a column of any type, but for those that count as missing."""
    codes: Any
    try:
        if not isinstance(cells, nw.Series) or not cells.implementation.is_pandas():
            listed = list_cells(cells)
            code_of = {value: code for code, value in enumerate(dict.fromkeys(listed))}
            codes, values = [code_of[cell] for cell in listed], [*code_of]
        elif find_dtype(cells) == "category":
            native = cells.to_native().cat
            codes, values = native.codes, native.categories.tolist()
        else:
            codes, found = cells.to_native().factorize()
            values = found.tolist()
    except TypeError as error:
        raise InputError("has lists in its cells; make one value of each", "X") from error
    texts = ["" if is_missing(value) else text_of(value) for value in values]
    missing = {"", *missing_values}
    present = [*dict.fromkeys(text for text in texts if text not in missing)]
    place_of = {text: place for place, text in enumerate(present)}
    places = np.array([place_of.get(text, -1) for text in (*texts, "")], dtype=np.intp)
    return Factor(places[np.asarray(codes, dtype=np.intp)], present)


def as_times(cells: Cells) -> NDArray[np.datetime64]:
    """Return a column of dates as times to the minute, NaT where a value is missing."""
    if isinstance(cells, nw.Series):
        if isinstance(cells.dtype, nw.Datetime) and cells.dtype.time_zone:
            cells = cells.dt.replace_time_zone(None)
        cells = cells.to_numpy()
    if cells.dtype.kind == "O":  # of Arrow in pandas
        texts = ["NaT" if is_missing(one) else str(one)[:16] for one in cells]
        cells = np.array(texts, dtype="datetime64[m]")
    return np.ma.filled(cells.astype("datetime64[m]"), np.datetime64("NaT"))


def text_of(value: Any) -> str:
    """Return a category as text: 3.0 is ``3``, as NaN makes floats of integers."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def is_number(cell: Any) -> bool:
    """Return whether a cell holds a number, of whatever type, and not text that spells one."""
    if isinstance(cell, str | bytes | complex):
        return False
    return isinstance(cell, SupportsFloat) and not isinstance(cell, Sized)


def is_missing(cell: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT, NA, a masked cell or empty text."""
    if cell is None or cell is np.ma.masked:
        return True
    if isinstance(cell, str):
        return not cell.strip()
    try:
        return bool(cell != cell)  # noqa: PLR0124
    except (TypeError, ValueError):  # pandas' NA is neither equal nor unequal; vectors are both
        return not isinstance(cell, Sized)


def list_cells(cells: Cells) -> list[Any]:
    """Return the cells of a column as Python objects."""
    listed: list[Any] = cells.to_list() if isinstance(cells, nw.Series) else cells.tolist()
    return listed


def take_rows(table: Table, rows: IndexArray | slice) -> Table:
    """Return rows of a table; of a sparse matrix as CSR."""
    if isinstance(table, nw.DataFrame | np.ndarray):
        return table[rows]
    taken: Matrix = table.tocsr()[rows]
    return taken


def make_frame(what: str, data: Any) -> Any:
    """Return a data frame of pandas, or raise ImportError that says what needs it."""
    with require(what, "pandas"):
        import pandas as pd
    try:
        return pd.DataFrame(data)
    except UnicodeEncodeError:  # texts of Arrow cannot hold half a character
        frame = pd.DataFrame(data, dtype=object)
        for name in frame:
            with suppress(UnicodeEncodeError):
                frame[name] = frame[name].infer_objects()
        return frame
