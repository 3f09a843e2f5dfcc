"""What a file of rows comes to, what was asked of it, and the checks all formats share."""

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

from taxarbor._errors import FileFormatError, counted, some
from taxarbor._types import Array
from taxarbor.hierarchy._checks import all_finite
from taxarbor.sweep._room import UNLIMITED, available

if TYPE_CHECKING:
    import pandas as pd

    Matrix: TypeAlias = Array | csr_array[Any, tuple[int, int]]

Where: TypeAlias = Callable[[int], str]
"""Says where in the file a row is, for messages."""

MAX_NAMED = 10
"""Columns that a message names before it only counts them."""
EMPTY = 10_000_000
"""Rows, or columns, that a sparse table may have beyond the entries that it holds."""
RATIO = 1_100
"""Bytes that one byte in a file can stand for; zlib, at its best, comes to 1,032."""
SMALL = 1 << 26
"""Bytes that a file may declare however little is in it."""
DAMAGED = (
    *(EOFError, LookupError, OSError, OverflowError, RuntimeError, ValueError),
    MemoryError,  # as often a header that lies as a file that is too large
    *(SyntaxError, tokenize.TokenError),  # of the literal that heads an npy file
    *(csv.Error, lzma.LZMAError, struct.error, zipfile.BadZipFile, zlib.error),
)
"""What the libraries that read files raise when these are not what they should be."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    r"""The rows of a file.

    Attributes
    ----------
    X : data frame, array or CSR array of shape (n_rows, n_columns)
        Of csv, tsv and parquet a frame of pandas: numbers, truths, dates, categories and
        text, with gaps; of the other formats numbers, float32 or float64, NaN where there is
        none, in C order where dense.
    feature_names : tuple of str or None
        Names of the columns of ``X``, where the file has any.
    row_names : tuple of str or None
        The id column, or what names the rows of the file, where something does.
    labels : array of str of shape (n_rows,) or None
        The label column; empty where a label is missing.
    dropped : tuple of (str, str)
        Each column that is not in ``X``, and why. A ``TableEncoder`` may leave out more.
    notes : tuple of str
        What to know of how the file was read.
    id_column : str or None
        The column with the names of the rows: the one asked for, or the one that was found.

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


class NamelessError(FileFormatError):
    """Columns were asked for by name, and those of the file have none."""


@final
@dataclass(frozen=True, slots=True)
class Request:
    """What to take from a file, and what messages call it."""

    name: str
    columns: tuple[str, ...] | None = None
    id_column: str | None = None
    label_column: str | None = None

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The id and the label column, where asked for."""
        asked = (self.id_column, self.label_column)
        return tuple(dict.fromkeys(name for name in asked if name is not None))

    def error(self, text: str, remedy: tuple[str, str] | None = None) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(f"{self.name} {text}", remedy=remedy)

    @contextmanager
    def reading(self, kind: str, *also: type[Exception]) -> Iterator[None]:
        """Turn what another library raises into one line about this file."""
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
    """Say where a row is in a file without lines."""
    return f"row {row}, counted from 0"


def listed(values: Iterable[Any]) -> str:
    """Return ``'a', 'b', ... and 7 more``."""
    return some([repr(value) for value in values], MAX_NAMED)


def refuse_repeated(request: Request, names: Iterable[str]) -> None:
    """Refuse two columns of one name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise request.error(
            f"has more than one column called {listed(repeated)}; make the names different"
        )


def refuse_absent(
    request: Request, wanted: Iterable[str], present: Sequence[str], what: str = "column"
) -> None:
    """Refuse to go on without something that was asked for by name."""
    known = set(present)
    absent = [name for name in wanted if name not in known]
    if not absent:
        return
    close = difflib.get_close_matches(absent[0], present, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    there = f"it has {listed(present)}" if present else "it has none"
    raise request.error(f"has no {what} called {listed(absent)}: {there}{hint}")


def refuse_size(request: Request, shape: Sequence[int], n_entries: int) -> None:
    """Refuse a sparse table that declares far more rows or columns than it has entries.

    Some are empty in honest tables, but a few bytes must not make us reserve gigabytes.
    """
    for length, what in zip(shape, ("row", "column"), strict=True):
        if length > n_entries + EMPTY:
            told = counted(n_entries, "entry", "entries")
            raise request.error(f"declares {counted(length, what)} and holds {told}")


def refuse_lies(request: Request, what: str, n_bytes: int, n_stored: int) -> None:
    """Refuse what takes far more bytes than those that are stored for it can stand for.

    All that compression does to honest data is below: zeros come to about a thousandth.
    """
    if n_bytes > SMALL + RATIO * n_stored:
        stored = counted(n_stored, "byte is", "bytes are")
        told = f"declares {what}, {_megabytes(n_bytes)}, and {stored} stored for it"
        raise request.error(f"{told}; it is damaged, or made to exhaust memory")


def refuse_excess(request: Request, what: str, n_bytes: int, left: int | None = None) -> None:
    """Refuse what memory cannot hold, before it is reserved; ``left`` of it, if that is known.

    Nothing is refused where nobody knows how much there is.
    """
    left = available(UNLIMITED) if left is None else left
    if n_bytes > left:
        told = f"declares {what}, {_megabytes(n_bytes)}"
        raise request.error(
            f"{told}, and there are {_megabytes(left)} of memory left: write a file of fewer "
            "rows or columns",
            (", or fit it from disk, as a parquet, npy or h5ad file, with", "memory_limit"),
        )


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 10**8 else f"{n_bytes / 1e6:,.1f} MB"


def selected(
    request: Request, X: "Matrix", names: tuple[str, ...] | None
) -> tuple["Matrix", tuple[str, ...] | None]:
    """Return the columns of a matrix that were asked for, and their names."""
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
    """Return the places of columns that were asked for by name."""
    if names is None:
        told = f"has no column names, so {listed(wanted)} cannot be looked up in it"
        raise NamelessError(f"{request.name} {told}")
    refuse_absent(request, wanted, names)
    place = {name: j for j, name in enumerate(names)}
    return [place[name] for name in wanted]


def refuse_no_numbers(request: Request, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Refuse an array that is no table of real numbers."""
    if dtype.names is not None:
        raise request.error("holds records; save the numbers as one array with two axes")
    if dtype.kind not in "fiub":
        what = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "dates"}
        raise request.error(f"holds {what.get(dtype.kind, str(dtype))}, not real numbers")
    if len(shape) != 2:
        hint = ": reshape it to (n, 1) for one column or (1, n) for one row"
        told = f"has shape {tuple(shape)}, not (n_rows, n_features)"
        raise request.error(told + hint * (len(shape) == 1))


def refuse_no_table(request: Request, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Refuse an array that is no table of real numbers, or that has no rows or columns."""
    refuse_no_numbers(request, dtype, shape)
    _refuse_empty(request, shape)


def _refuse_empty(request: Request, shape: Sequence[int]) -> None:
    if 0 in shape:
        raise request.error(f"has no {'columns' if shape[0] else 'rows'}")


def as_floats(request: Request, values: Any) -> "Matrix":
    """Return numbers as float32 where they are, else as float64; copied only if they must."""
    refuse_no_numbers(request, values.dtype, values.shape)
    kind, size = values.dtype.kind, values.dtype.itemsize
    dtype = np.float32 if kind == "f" and size <= 4 else np.float64
    with np.errstate(over="ignore"):  # an overflow is infinite and refused for it
        if not issparse(values):
            return np.ascontiguousarray(values, dtype=dtype)
        sparse: Any = values
        refuse_size(request, sparse.shape, sparse.nnz)
        found: csr_array[Any, tuple[int, int]] = csr_array(sparse, dtype=dtype)
        found.sum_duplicates()
    return found


def refuse_infinite(request: Request, X: "Matrix", names: Sequence[str] | None) -> None:
    """Refuse data without rows or columns, or with infinite cells."""
    _refuse_empty(request, X.shape)
    cells: Any = X.data if issparse(X) else X
    if all_finite(cells) or not np.isinf(cells).any():
        return
    if issparse(X):
        sparse: Any = X.tocoo()
        at = np.flatnonzero(np.isinf(sparse.data))
        rows, columns = sparse.row[at], sparse.col[at]
    else:
        rows, columns = np.nonzero(np.isinf(cells))
    found = np.unique(columns).tolist()
    named = f"{listed(found)} (counted from 0)"
    named = named if names is None else listed(names[j] for j in found)
    raise infinite(request, named, len(rows), by_position(int(rows.min())))


def infinite(request: Request, named: str, n_cells: int, where: str) -> FileFormatError:
    """Return the error of infinite cells."""
    told = counted(n_cells, "infinite cell")
    return request.error(f"has {told} in {named}, first in {where}; mend or empty them")


def as_texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return values as text, empty where there is none."""
    return tuple(
        "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
        for value in values
    )


def as_labels(values: Iterable[str] | None) -> NDArray[np.str_] | None:
    """Return labels as an array."""
    return None if values is None else np.array(tuple(values), dtype=np.str_)
