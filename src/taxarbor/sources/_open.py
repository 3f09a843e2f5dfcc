"""One way to open whatever holds rows."""

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from taxarbor._errors import InputError, InputTypeError, missing_extra
from taxarbor.sources._arrays import choose_columns, open_memmap, open_npy
from taxarbor.sources._dask import DaskSource, is_dask
from taxarbor.sources._h5ad import open_h5ad
from taxarbor.sources._local import LocalSource, Reader, open_memory
from taxarbor.sources._parquet import SUFFIXES, open_dataset, open_parquet
from taxarbor.sources._reader import base_name

FORMATS = {".npy": "npy", ".h5ad": "h5ad", **dict.fromkeys(SUFFIXES, "parquet")}


Source: TypeAlias = LocalSource | DaskSource


def open_source(
    X: Any, columns: Sequence[str] | None = None, format: str | None = None
) -> Source:
    """Return the rows of a table as a source. Cells are not read.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, memory map, path, dataset or Dask collection
        Any text is a path: of a ``.npy``, ``.parquet`` or ``.h5ad`` file, or of a folder of
        Parquet files. Objects with ``__arrow_c_stream__`` are read into memory. A source is
        returned as it is.
    columns : sequence of str, optional
        The columns to use, by name; all by default.
    format : {"npy", "parquet", "h5ad"}, optional
        Of a file whose name does not say it.

    Raises
    ------
    FileFormatError, InputError
        If a file is damaged or of another format, or a column is absent.
    OSError
        If a file cannot be opened.
    ImportError
        If the format needs a library that is not installed.

    Examples
    --------
    >>> from taxarbor.sources import open_source
    >>> source = open_source([[0.0, 1.0], [2.0, 3.0]])
    >>> source.n_rows, source.names, source.in_memory
    (2, None, True)
    >>> source.sample(10, seed=0).rows
    array([0, 1])
    """
    if isinstance(X, LocalSource | DaskSource):
        return X
    if isinstance(X, str | os.PathLike):
        return LocalSource(_open_path(X, columns, format))
    if is_dask(X):
        return DaskSource.open(X, columns)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size and X._mmap is not None:  # type: ignore[attr-defined]
        return LocalSource(choose_columns(open_memmap(X), None, columns))
    ds = sys.modules.get("pyarrow.dataset")
    if ds is not None and isinstance(X, ds.Dataset):
        return LocalSource(open_dataset(X, columns))
    if type(X).__module__.partition(".")[0] == "narwhals":
        X = X.to_native()
    if hasattr(X, "__arrow_c_stream__") and not _is_frame(X):
        X = _materialize(X)
    return open_memory(X, columns)


def stored_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a file or folder that is read in blocks, None for all others."""
    return "parquet" if Path(path).is_dir() else FORMATS.get(Path(path).suffix.lower())


def _open_path(
    path: str | os.PathLike[str], columns: Sequence[str] | None, format: str | None
) -> Reader:
    format = format or stored_format(path)
    if not Path(path).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    name = base_name(path)
    if format not in FORMATS.values():
        expected = "expected .npy, .parquet or .h5ad, or a folder of Parquet files"
        raise InputError(f"{name} cannot be read in blocks; {expected}")
    if format == "parquet":
        return open_parquet(path, columns)
    if Path(path).is_dir():
        raise InputError(f"{name} is a folder; give a file in it")
    if format == "npy":
        return choose_columns(open_npy(path), None, columns)
    return choose_columns(*open_h5ad(path), columns)


def _is_frame(X: Any) -> bool:
    """Say whether something is a frame of pandas or like one, of polars or of pyarrow."""
    library = type(X).__module__.partition(".")[0]
    return hasattr(X, "iloc") or (library in ("polars", "pyarrow") and hasattr(X, "shape"))


def _materialize(X: Any) -> Any:
    """Return the rows of an object that exports a stream of Arrow, as a table of pyarrow."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra("reading a stream of Arrow", "pyarrow") from error
    try:
        return pa.table(X)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"is no table of Arrow: {error}", "X") from error
