"""The table read from a file, what was requested of it, and the checks all formats share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from taxarbor._errors import FileFormatError, counted
from taxarbor.rows._structure import all_finite
from taxarbor.sources._file_checks import (
    REQUESTED,
    as_texts,
    check_matrix,
    check_present,
    check_unique,
    find_columns,
    reading,
)
from taxarbor.tables._profile import find_row_names

if TYPE_CHECKING:
    import pandas as pd

AS_INDEX = "the index: used as row names"


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
        Remarks on the reading of the file.
    id_column : str or None
        The column with the names of the rows: the requested one, or the one detected.

    Examples
    --------
    >>> import io
    >>> from taxarbor.tables import read_table
    >>> read_table(io.BytesIO(b"a,b\n1,2\n3,")).X["b"].tolist()
    [2.0, nan]
    """

    X: Any
    feature_names: tuple[str, ...] | None
    row_names: tuple[str, ...] | None = None
    labels: NDArray[np.str_] | None = None
    dropped: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    id_column: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Request:
    """The columns to read from a file, and the name of the file in messages."""

    name: str
    columns: tuple[str, ...] | None = None
    id_column: str | None = None
    label_column: str | None = None

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The id and the label column, where requested."""
        requested = (self.id_column, self.label_column)
        return tuple(dict.fromkeys(name for name in requested if name is not None))

    def error(self, text: str) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(f"{self.name} {text}")

    def reading(self, format: str) -> AbstractContextManager[None]:
        """Turn the errors of other libraries into a FileFormatError about this file."""
        return reading(self.name, format)


def make_frame_table(
    request: Request,
    frame: "pd.DataFrame",
    texts: Mapping[str, tuple[str, ...]],
    index: str | None,
    *,
    has_names: bool = True,
) -> Table:
    """Return the requested columns of a frame as a table; one column may name the rows.

    Parameters
    ----------
    request : Request
        The columns to use, and those with names and labels.
    frame : data frame
        All other columns of the file.
    texts : mapping
        The columns with names and labels, and the index if it may have names, as text.
    index : str or None
        The column that may be an index.
    has_names : bool
        Whether the columns of the file have names.
    """
    if frame.empty:
        raise request.error("has no column to use" if len(frame) else "has no rows")
    requested, dropped = request.columns or (), dict[str, str]()
    ids = request.id_column
    is_index = index in frame and len({*texts.get(index or "", ())}) == len(frame)
    if index is not None and is_index:
        dropped[index] = AS_INDEX if ids is None else "the index"
        frame, ids = frame.drop(columns=index), ids or index
    if ids is None and has_names and frame.shape[1] > 1:
        candidates = [name for name in frame.columns if name not in requested]
        ids = find_row_names(nw.from_native(frame, eager_only=True), candidates)
        if ids is not None:
            texts = {**texts, ids: as_texts(frame[ids].tolist())}
            frame = frame.drop(columns=ids)
    check_present(request.name, requested, list(frame.columns))
    if requested:
        others = [name for name in frame.columns if name not in requested]
        dropped |= dict.fromkeys(others, "not among the requested columns")
        frame = frame[list(requested)]
    if frame.empty:
        raise request.error("has no column to use")
    if not has_names:
        frame.columns = range(frame.shape[1])
    frame.attrs[REQUESTED] = requested
    return Table(
        frame,
        tuple(map(str, frame.columns)) if has_names else None,
        None if ids is None else texts[ids],
        as_labels(texts.get(request.label_column or "")),
        tuple(dropped.items()),
        id_column=None if ids == index else ids,
    )


def make_table(request: Request, X: Any, names: Sequence[str] | None) -> Table:
    """Return the requested columns of a matrix as a table of floats, or raise FileFormatError.

    Numbers become float32 if they are float32 or smaller, else float64.
    """
    is_sparse: bool = issparse(X)
    check_matrix(request.name, X.dtype, X.shape)
    if names is not None:
        check_unique(request.name, names)
    if request.columns is not None:
        chosen = find_columns(request.name, request.columns, names)
        if chosen != list(range(X.shape[1])):
            X = X.tocsr()[:, chosen] if is_sparse else X[:, chosen]
        names = request.columns
    dtype = np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore"):  # an overflow is infinite, which is refused
        if is_sparse:
            X = csr_array(X.tocsr().astype(dtype))
            X.sum_duplicates()
        else:
            X = np.ascontiguousarray(X, dtype=dtype)
    if not all_finite(X.data if is_sparse else X):
        rows, columns = (abs(X) == np.inf).nonzero()
        for position in columns[:1].tolist():
            column = f"column {position}, counted from 0"
            name = column if names is None else repr(names[position])
            raise _infinite_cells(request, name, len(rows), by_position(int(rows.min())))
    return Table(X, None if names is None else tuple(names))


def check_finite(
    request: Request, name: str, cells: NDArray[Any], where: Callable[[int], str]
) -> None:
    """Raise FileFormatError for infinite cells of a column."""
    is_infinite = np.isinf(cells) if cells.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if is_infinite.any():
        first = where(int(is_infinite.argmax()))
        raise _infinite_cells(request, repr(name), int(is_infinite.sum()), first)


def by_position(row: int) -> str:
    """Return where a row is in a file without lines."""
    return f"row {row}, counted from 0"


def _infinite_cells(request: Request, column: str, n_cells: int, where: str) -> FileFormatError:
    n = counted(n_cells, "infinite cell")
    return request.error(f"has {n} in {column}, first in {where}; fix or remove them")


def as_labels(values: Iterable[str] | None) -> NDArray[np.str_] | None:
    """Return labels as an array."""
    return None if values is None else np.array(tuple(values), dtype=np.str_)
