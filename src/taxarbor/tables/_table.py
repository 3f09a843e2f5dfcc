"""The table read from a file, what was requested of it, and the checks all formats share."""

import csv
import difflib
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from taxarbor._errors import FileFormatError, NamelessError, counted, some
from taxarbor._types import Array
from taxarbor.hierarchy._checks import all_finite

if TYPE_CHECKING:
    import pandas as pd

    Matrix: TypeAlias = Array | csr_array[Any, tuple[int, int]]

Where: TypeAlias = Callable[[int], str]
"""Returns where in the file a row is, for messages."""

MAX_NAMED = 10
"""Columns that a message names before it only counts them."""
DAMAGED = (
    *(EOFError, LookupError, OSError, OverflowError, RuntimeError, ValueError),
    MemoryError,  # of a wrong size in a header
    *(SyntaxError, tokenize.TokenError),  # of the literal that heads an npy file
    *(csv.Error, lzma.LZMAError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""What libraries raise when a file that they read is damaged."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    r"""The rows of a file.

    Attributes
    ----------
    X : data frame, array or CSR array of shape (n_rows, n_columns)
        Of csv, tsv and parquet a pandas data frame: numbers, booleans, dates, categories and
        text, with missing values; of the other formats float32 or float64, NaN where a value
        is missing, in C order where dense.
    feature_names : tuple of str or None
        Names of the columns of ``X``, where the file has any.
    row_names : tuple of str or None
        The id column, or the index of the file, where there is one.
    labels : array of str of shape (n_rows,) or None
        The label column; empty where a label is missing.
    dropped : tuple of (str, str)
        Each column that is not in ``X``, and why. A ``TableEncoder`` may leave out more.
    notes : tuple of str
        Remarks on how the file was read.
    id_column : str or None
        The column with the names of the rows: the requested one, or the one detected.

    Examples
    --------
    >>> import io
    >>> from taxarbor.tables import read_table
    >>> read_table(io.BytesIO(b"a,b\n1,2\n3,")).X["b"].tolist()
    [2.0, nan]
    """

    X: "Matrix | pd.DataFrame"
    feature_names: tuple[str, ...] | None
    row_names: tuple[str, ...] | None = None
    labels: NDArray[np.str_] | None = None
    dropped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    id_column: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Request:
    """What to read from a file, and the name of the file in messages."""

    name: str
    columns: tuple[str, ...] | None = None
    id_column: str | None = None
    label_column: str | None = None

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The id and the label column, where requested."""
        requested = (self.id_column, self.label_column)
        return tuple(dict.fromkeys(name for name in requested if name is not None))

    def error(self, text: str, remedy: tuple[str, str] | None = None) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(f"{self.name} {text}", remedy=remedy)

    @contextmanager
    def reading(self, kind: str, *also: type[Exception]) -> Iterator[None]:
        """Turn the errors of other libraries into a FileFormatError about this file."""
        try:
            yield
        except FileFormatError:
            raise
        except UnicodeDecodeError as error:
            raise self.error(
                f"is not text in UTF-8 ({error.reason}: 0x{error.object[error.start]:02x}); "
                "save it as UTF-8"
            ) from error
        except DAMAGED + also as error:
            cause = " ".join(str(error).split())[:300] or type(error).__name__
            raise self.error(f"is no {kind} file, or a damaged one: {cause}") from error


def by_position(row: int) -> str:
    """Return where a row is in a file without lines."""
    return f"row {row}, counted from 0"


def listed(values: Iterable[Any]) -> str:
    """Return ``'a', 'b', ... and 7 more``."""
    return some([repr(value) for value in values], MAX_NAMED)


def refuse_repeated(request: Request, names: Iterable[str]) -> None:
    """Raise if column names are not unique."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise request.error(
            f"has more than one column called {listed(repeated)}; make the names different"
        )


def refuse_absent(
    request: Request, wanted: Iterable[str], present: Sequence[str], what: str = "column"
) -> None:
    """Raise if something that was requested by name is not there."""
    known = set(present)
    absent = [name for name in wanted if name not in known]
    if not absent:
        return
    close = difflib.get_close_matches(absent[0], present, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    there = f"it has {listed(present)}" if present else "it has none"
    raise request.error(f"has no {what} called {listed(absent)}: {there}{hint}")


def selected(
    request: Request, X: "Matrix", names: tuple[str, ...] | None
) -> tuple["Matrix", tuple[str, ...] | None]:
    """Return the requested columns of a matrix, and their names."""
    if names is not None:
        if len(names) != X.shape[1]:
            raise request.error(f"names {counted(len(names), 'column')} and has {X.shape[1]:,}")
        refuse_repeated(request, names)
    if request.columns is None:
        return X, names
    chosen = columns_at(request, request.columns, names)
    return X if chosen == list(range(X.shape[1])) else X[:, chosen], request.columns


def columns_at(
    request: Request, wanted: Sequence[str], names: Sequence[str] | None
) -> list[int]:
    """Return the positions of columns requested by name."""
    if names is None:
        message = f"has no column names, so {listed(wanted)} cannot be looked up in it"
        raise NamelessError(f"{request.name} {message}")
    refuse_absent(request, wanted, names)
    position = {name: j for j, name in enumerate(names)}
    return [position[name] for name in wanted]


def refuse_no_numbers(request: Request, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Raise if an array is not a table of real numbers."""
    if dtype.names is not None:
        raise request.error("holds records; save the numbers as one array with two axes")
    if dtype.kind not in "fiub":
        what = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "dates"}
        raise request.error(f"holds {what.get(dtype.kind, str(dtype))}, not real numbers")
    if len(shape) != 2:
        hint = ": reshape it to (n, 1) for one column or (1, n) for one row"
        message = f"has shape {tuple(shape)}, not (n_rows, n_features)"
        raise request.error(message + hint * (len(shape) == 1))


def refuse_no_table(request: Request, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Raise if an array is not a table of real numbers, or has no rows or columns."""
    refuse_no_numbers(request, dtype, shape)
    _refuse_empty(request, shape)


def _refuse_empty(request: Request, shape: Sequence[int]) -> None:
    if 0 in shape:
        raise request.error(f"has no {'columns' if shape[0] else 'rows'}")


def as_floats(request: Request, values: Any) -> "Matrix":
    """Return numbers as float32 if they are float32 or smaller, else as float64."""
    refuse_no_numbers(request, values.dtype, values.shape)
    kind, size = values.dtype.kind, values.dtype.itemsize
    dtype = np.float32 if kind == "f" and size <= 4 else np.float64
    with np.errstate(over="ignore"):  # what overflows is infinite, which is refused
        if not issparse(values):
            return np.ascontiguousarray(values, dtype=dtype)
        sparse: Any = values
        matrix: csr_array[Any, tuple[int, int]] = csr_array(sparse, dtype=dtype)
        matrix.sum_duplicates()
    return matrix


def refuse_infinite(request: Request, X: "Matrix", names: Sequence[str] | None) -> None:
    """Raise if there are no rows or columns, or infinite cells."""
    _refuse_empty(request, X.shape)
    cells: Any = X.data if issparse(X) else X
    if all_finite(cells) or not np.isinf(cells).any():
        return
    if issparse(X):
        sparse: Any = X.tocoo()
        is_infinite = np.isinf(sparse.data)
        rows, columns = sparse.row[is_infinite], sparse.col[is_infinite]
    else:
        rows, columns = np.nonzero(np.isinf(cells))
    columns = np.unique(columns).tolist()
    listing = f"{listed(columns)} (counted from 0)"
    listing = listing if names is None else listed(names[j] for j in columns)
    raise infinite_cells(request, listing, len(rows), by_position(int(rows.min())))


def infinite_cells(request: Request, columns: str, n_cells: int, where: str) -> FileFormatError:
    """Return the error for infinite cells."""
    n = counted(n_cells, "infinite cell")
    return request.error(f"has {n} in {columns}, first in {where}; fix or remove them")


def as_texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return values as text, empty where a value is missing."""
    return tuple(
        "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
        for value in values
    )


def as_labels(values: Iterable[str] | None) -> NDArray[np.str_] | None:
    """Return labels as an array."""
    return None if values is None else np.array(tuple(values), dtype=np.str_)
