"""The cells of a table of any library, as numbers with NaN or as categories.

Frames of pandas and polars are recognized without an import, so neither has to be installed.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from taxarbor._errors import InputError, InputTypeError, missing_extra
from taxarbor._types import Array, IndexArray

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("date", "time", "period", "duration")
"""What the names of types of dates and times begin with, in NumPy, pandas, polars and Arrow."""


class Factor(NamedTuple):
    """A column of categories: the position of each row's value, -1 where there is none."""

    codes: IndexArray
    values: list[Any]


def as_frame(X: Any) -> Any:
    """Return tables of Arrow and narwhals as frames of pandas or polars, all else as it is.

    Tables of Arrow are all objects with ``__arrow_c_stream__``, such as pyarrow's; they are
    read into memory. Of AnnData the matrix ``X`` is returned.
    """
    if is_frame(X):
        return X
    if is_anndata(X):
        return X.X
    if library_of(X) == "narwhals":
        return as_frame(X.to_native())
    if not hasattr(X, "__arrow_c_stream__") or hasattr(X, "dtype"):  # a series has both
        return X
    try:
        import pyarrow as pa

        return pa.table(X).to_pandas()
    except ImportError as error:
        raise missing_extra("a table of Arrow", "pandas", "pyarrow") from error
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"is no table of Arrow: {error}", "X") from error


def library_of(X: Any) -> str:
    """Return the name of the library that something is of, which need not be imported."""
    return type(X).__module__.partition(".")[0]


def is_anndata(X: Any) -> bool:
    """Say whether something is an AnnData object."""
    return library_of(X) == "anndata" and hasattr(X, "obsm")


def is_polars(X: Any) -> bool:
    """Say whether a frame or a column is one of polars."""
    return library_of(X) == "polars"


def is_frame(X: Any) -> bool:
    """Say whether a table is a frame of pandas or polars, or raise InputError if it is lazy."""
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise InputTypeError("is a lazy frame; pass X.collect()", "X")
    return hasattr(X, "columns") and (hasattr(X, "iloc") or is_polars(X))


def is_plain(X: Any) -> bool:
    """Say whether a table is an array of numbers, or a sparse matrix, and nothing else."""
    if issparse(X):
        return True
    return isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and not np.ma.isMaskedArray(X)


def unmasked(X: Any) -> Any:
    """Return a masked array as floats with NaN, and all else as it is."""
    X = _joined(X)
    return _floats(X) if np.ma.isMaskedArray(X) else X


def _joined(X: Any) -> Any:
    """Return masked rows in a list as one array: NumPy would forget their masks."""
    has_masks = isinstance(X, list | tuple) and any(map(np.ma.isMaskedArray, X))
    return np.ma.array(X) if has_masks else X


def refuse_times(X: Any) -> None:
    """Refuse dates and durations for numbers: NumPy and polars make some of them in silence."""
    names = list(X.columns) if is_frame(X) else ()
    for name, kind in zip(names, X.dtypes if names else (), strict=True):
        if str(kind).lower().startswith(TIMES):
            problem = f"column {name!r} of X holds dates or times"
            raise InputTypeError(f"{problem} ({kind}), where numbers are expected")
    dtype = np.asarray(X).dtype if isinstance(X, list | tuple) else getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        raise InputTypeError(f"X holds dates or times ({dtype}), where numbers are expected")


def column_names(X: Any) -> list[str] | None:
    """Return the names of a frame's columns; None where it has none, or they are numbers."""
    if not is_frame(X):
        return None
    names = list(X.columns)
    return [str(name) for name in names] if any(isinstance(n, str) for n in names) else None


def as_table(X: Any) -> Any:
    """Return a frame as it is, and all else as an array with two axes."""
    X = as_frame(X)
    if is_frame(X) or issparse(X):
        return X
    X = _joined(X)
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)  # NumPy has made text of all numbers in a list
    if array.ndim != 2:
        raise InputError(
            f"X must have two dimensions, (n_rows, n_features), got shape {array.shape}"
        )
    return array


def as_cells(table: Any) -> Any:
    """Return a frame of plain numbers as an array, and all else as it is."""
    if hasattr(table, "iloc") and all(
        isinstance(kind, np.dtype) and kind.kind in "fiub" for kind in table.dtypes
    ):
        return table.to_numpy()
    return table


def float_type(X: Any) -> type[np.floating[Any]]:
    """Return float32 for a table whose numbers all are, else float64."""
    if is_frame(X):
        kinds = {str(kind).lower() for kind in X.dtypes}
        numbers = {kind for kind in kinds if kind.startswith(("int", "uint", "float", "dec"))}
        return np.float32 if numbers and numbers <= {"float32", "float16"} else np.float64
    dtype = getattr(X, "dtype", None)
    kind = dtype.newbyteorder("=") if isinstance(dtype, np.dtype) else None
    return np.float32 if kind in (np.float16, np.float32) else np.float64


def column(table: Any, place: int) -> Any:
    """Return a column of a frame or an array by its place."""
    if not is_frame(table):
        return table[:, place]
    return table.iloc[:, place] if hasattr(table, "iloc") else table[:, place]


def as_numbers(cells: Any, name: str) -> Array:
    """Return a column as floats, NaN where there is no value; float32 stays float32.

    Raises InputError for text, and for infinities.
    """
    try:
        numbers = _floats(cells)
    except (TypeError, ValueError, OverflowError) as error:
        cells_left = (cell for cell in list_cells(cells) if not is_gap(cell))
        odd = next((cell for cell in cells_left if not is_number(cell)), None)
        problem = f"holds {odd!r}" if odd is not None else str(error)
        raise InputError(
            f"column {name!r} of X {problem}, where a number is expected"
        ) from error
    with np.errstate(all="ignore"):
        is_bad = None if np.isfinite(numbers.sum()) else np.isinf(numbers)
    if is_bad is not None and is_bad.any():
        problem = f"infinity, first in row {is_bad.argmax()}, counted from 0"
        raise InputError(f"column {name!r} of X holds {problem}; replace it")
    return numbers


def as_vectors(
    cells: Any,
    name: str | None = None,
    *,
    parameter: str = "X",
    rows: IndexArray | None = None,
    width: int | None = None,
) -> Array:
    """Return a matrix, or a column of equally long lists of numbers, as finite floats.

    float64 and integers of 32 bits and more become float64, all else float32. Raises InputError
    that names the column, and the row by its number in ``rows``, if a vector is missing, has
    another length than the first, or is not of finite numbers.
    """
    matrix = cells.to_numpy() if hasattr(cells, "to_numpy") else np.asarray(cells)
    is_right = np.zeros(len(matrix), dtype=bool)
    if matrix.ndim == 1 and len(matrix):
        vectors = [as_vector(cell) for cell in matrix]
        lengths = np.array([0 if vector is None else len(vector) for vector in vectors])
        is_right = lengths == (width or max(lengths[np.argmax(lengths > 0)], 1))
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
        raise InputError(
            f"holds {cell} in {where}, {expected}; fix it or leave the row out", parameter
        )
    return matrix


def as_vector(cell: Any) -> NDArray[Any] | None:
    """Return a list of numbers as an array, None for all else."""
    try:
        vector = np.asarray(cell)
    except ValueError:  # lists of different lengths in a list
        return None
    is_vector = vector.ndim == 1 and vector.size and vector.dtype.kind in "fiub"
    return vector if is_vector else None


def as_factor(cells: Any) -> Factor:
    """Return a column as codes and the values that they stand for, of whatever type."""
    if hasattr(cells, "cat") and hasattr(cells.cat, "codes"):  # of pandas
        codes = np.asarray(cells.cat.codes, dtype=np.intp)
        return Factor(codes, list(cells.cat.categories))
    if hasattr(cells, "factorize"):
        codes, values = cells.factorize()
        return Factor(np.asarray(codes, dtype=np.intp), values.tolist())
    listed = list_cells(cells)
    try:
        present = [cell for cell in dict.fromkeys(listed) if not is_gap(cell)]
    except TypeError as error:
        raise InputError("has lists in its cells; make one value of each", "X") from error
    code_of = {cell: code for code, cell in enumerate(present)}
    codes = np.array([code_of.get(cell, -1) for cell in listed], dtype=np.intp)
    return Factor(codes, present)


def as_days(cells: Any, name: str) -> NDArray[np.datetime64]:
    """Return a column of dates by their days, NaT where there is none."""
    try:
        if getattr(getattr(cells, "dtype", None), "time_zone", None):  # of polars
            cells = cells.dt.replace_time_zone(None)
        days = cells.to_numpy() if hasattr(cells, "to_numpy") else np.asarray(cells)
        if days.dtype.kind != "M":
            texts = ["NaT" if is_gap(cell) else str(cell).strip() for cell in list_cells(cells)]
            days = np.array([text[:10] for text in texts], dtype="datetime64[D]")
        return np.asarray(days, dtype="datetime64[D]")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"column {name!r} of X holds no dates such as 2026-01-31: {error}"
        ) from error


def text_of(value: Any) -> str:
    """Return a category as text: 3.0 is ``3``, as NaN makes floats of integers."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def is_number(cell: Any) -> bool:
    """Say whether a cell holds a number, of whatever type, and not text that spells one."""
    is_text = isinstance(cell, str | bytes | complex)
    return not is_text and hasattr(cell, "__float__") and not hasattr(cell, "__len__")


def is_gap(cell: Any) -> bool:
    """Say whether a value is missing: None, NaN, NaT, NA, a masked cell or empty text."""
    if cell is None or cell is np.ma.masked:
        return True
    if isinstance(cell, str):
        return not cell.strip()
    try:
        return bool(cell != cell)  # noqa: PLR0124
    except (TypeError, ValueError):  # pandas' NA is neither equal nor unequal; vectors are both
        return not hasattr(cell, "__len__")


def _floats(cells: Any) -> Array:
    kind = str(getattr(cells, "dtype", ""))
    if kind.lower().startswith(TIMES):
        raise TypeError(f"has {kind} cells")
    if np.ma.isMaskedArray(cells):  # behind a mask may be anything
        kept = object if kind == "object" else float_type(cells)
        cells = np.ma.filled(cells.astype(kept), np.nan)
    wanted = np.float32 if kind.lower() in ("float32", "float16") else np.float64
    if is_polars(cells):
        import polars

        if not (cells.dtype.is_numeric() or cells.dtype in (polars.Boolean, polars.Null)):
            raise TypeError(f"has {kind} cells")
        single = wanted is np.float32
        return np.array(cells.cast(polars.Float32 if single else polars.Float64).to_numpy())
    if hasattr(cells, "to_numpy"):
        if kind in ("category", "bool"):
            cells = cells.astype(object)
        if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "fiu":
            return np.asarray(cells.to_numpy(), dtype=wanted)
        floats = cells.to_numpy(dtype=wanted, na_value=np.nan)
        return np.asarray(floats)
    array = np.asarray(cells)
    if array.dtype.kind == "O":
        array = np.array([np.nan if is_gap(cell) else cell for cell in array.tolist()])
    if array.dtype.kind not in "fiub":
        raise TypeError(f"has {array.dtype} cells")
    return array.astype(float_type(array))


def list_cells(cells: Any) -> list[Any]:
    """Return the cells of a column as Python objects."""
    for method in ("tolist", "to_list"):  # of NumPy and pandas, and of polars
        if hasattr(cells, method):
            listed: list[Any] = getattr(cells, method)()
            return listed
    return list(cells)


def make_frame(what: str, data: Any, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """Return a data frame, or say what to install for whatever makes one."""
    try:
        import pandas as pd
    except ImportError as error:
        raise missing_extra(what, "pandas") from error
    try:
        return pd.DataFrame(data, columns=columns)
    except UnicodeEncodeError:  # texts of Arrow cannot hold half a character
        frame = pd.DataFrame(data, columns=columns, dtype=object)
        for name in frame:
            with suppress(UnicodeEncodeError):
                frame[name] = frame[name].infer_objects()
        return frame
