"""The table read from a file, what was requested of it, and the checks all formats share."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from taxarbor._errors import FileFormatError, counted
from taxarbor.rows._checks import all_finite
from taxarbor.sources._reader import check_matrix, check_unique, columns_at, list_names, reading


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

    def reading(self, format: str) -> AbstractContextManager[None]:
        """Turn the errors of other libraries into a FileFormatError about this file."""
        return reading(self.name, format)


def by_position(row: int) -> str:
    """Return where a row is in a file without lines."""
    return f"row {row}, counted from 0"


def make_table(request: Request, X: Any, names: Sequence[str] | None) -> Table:
    """Return the requested columns of a matrix as a table of floats, or raise FileFormatError.

    Numbers become float32 if they are float32 or smaller, else float64.
    """
    is_sparse: bool = issparse(X)
    check_matrix(request.name, X.dtype, X.shape)
    if names is not None:
        check_unique(request.name, names)
    if request.columns is not None:
        chosen = columns_at(request.name, request.columns, names)
        if chosen != list(range(X.shape[1])):
            X = X.tocsr()[:, chosen] if is_sparse else X[:, chosen]
        names = request.columns
    dtype = np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore"):  # what overflows is infinite, which is refused
        if is_sparse:
            X = csr_array(X.tocsr().astype(dtype))
            X.sum_duplicates()
        else:
            X = np.ascontiguousarray(X, dtype=dtype)
    _check_finite(request, X, names)
    return Table(X, None if names is None else tuple(names))


def _check_finite(request: Request, X: Any, names: Sequence[str] | None) -> None:
    is_sparse: bool = issparse(X)
    if all_finite(X.data if is_sparse else X):
        return
    rows, columns = (abs(X) == np.inf).nonzero()
    if not len(rows):  # some are missing
        return
    columns = np.unique(columns).tolist()
    listing = f"{list_names(columns)} (counted from 0)"
    listing = listing if names is None else list_names(names[j] for j in columns)
    raise infinite_cells(request, listing, len(rows), by_position(int(rows.min())))


def infinite_cells(request: Request, columns: str, n_cells: int, where: str) -> FileFormatError:
    """Return the error for infinite cells."""
    n = counted(n_cells, "infinite cell")
    return request.error(f"has {n} in {columns}, first in {where}; fix or remove them")


def as_labels(values: Iterable[str] | None) -> NDArray[np.str_] | None:
    """Return labels as an array."""
    return None if values is None else np.array(tuple(values), dtype=np.str_)
