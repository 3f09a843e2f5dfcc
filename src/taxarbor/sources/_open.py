"""One way to open whatever holds rows."""

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from taxarbor._errors import FileFormatError, InputError, InputTypeError, counted
from taxarbor._frames import as_frame, as_table, as_vectors, column_names, is_anndata, is_dask
from taxarbor.sources._dask_source import DaskSource, open_dask
from taxarbor.sources._local_source import LocalSource, Memory, Reader
from taxarbor.sources._matrices import (
    H5adReader,
    NpyReader,
    make_unique,
    open_h5ad,
    open_npy,
    open_obsm,
)
from taxarbor.sources._parquet import SUFFIXES, ParquetReader, open_parquet
from taxarbor.sources.file_checks import base_name, find_columns, list_names

FORMATS = {".npy": "npy", ".h5ad": "h5ad", **dict.fromkeys(SUFFIXES, "parquet")}

Source: TypeAlias = LocalSource | DaskSource


def open_source(
    X: Any,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    embedding: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Source:
    """Return the rows of a table as a source, or raise InputError. Cells are not read.

    Any text is a path: of a ``.npy``, ``.parquet`` or ``.h5ad`` file, or of a folder of Parquet
    files, of which some columns may be chosen by name. The format is needed where the name of
    a file does not say it. Of AnnData the matrix ``X`` is used. A source is returned as it is.

    The embedding has vectors of the rows: an array, the path of a ``.npy`` file, a reader, or
    the name of a column of X or of an entry of ``obsm``.

    Examples
    --------
    >>> source = open_source([[0.0, 1.0], [2.0, 3.0]])
    >>> source.n_rows, source.names, source.sample(10, seed=0).rows
    (2, None, array([0, 1]))
    """
    if isinstance(X, str | os.PathLike):
        source: Source = LocalSource(_open_path(X, columns, format))
    else:
        source = X if isinstance(X, LocalSource | DaskSource) else _open(X)
    if feature_names is not None and isinstance(source, LocalSource):
        reader: Any = source.reader
        names = [*map(str, feature_names)]
        source = replace(source, reader=replace(reader, names=names))
    if embedding is None:
        return source
    try:
        vectors = _open_embedding(embedding, X, source)
    except (FileFormatError, OSError) as error:
        raise InputError(f"cannot be read: {error}", "embedding") from error
    if not isinstance(vectors, str) and vectors.n_rows != source.n_rows:
        sizes = f"has {counted(vectors.n_rows, 'row')}, and X has {source.n_rows:,}"
        raise InputError(f"{sizes}; give a vector for each row of X", "embedding")
    return replace(source, embedding=vectors)


def _open(X: Any) -> Source:
    if is_dask(X):
        return open_dask(X)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size and X.filename is not None:
        return LocalSource(Memory(X, X.shape[0], X.shape[1], None, in_memory=False))
    if is_anndata(X):
        if X.isbacked:
            raise InputTypeError("is backed by a file; pass the path of the file", "X")
        names = make_unique([*map(str, X.var_names)])
        return LocalSource(Memory(X.X, X.n_obs, X.n_vars, names))
    table = as_frame(X)
    try:
        shape = getattr(table, "shape", None) or np.asarray(table).shape
        n_rows = int(shape[0])
    except (TypeError, IndexError):
        message = f"must be a table: an array, a frame or a path, got a {type(X).__name__}"
        raise InputTypeError(message, "X") from None
    except ValueError as error:  # rows of different lengths
        raise InputError(f"is no table: {error}", "X") from error
    if len(shape) != 2:
        table = as_table(table)  # which refuses it
    return LocalSource(Memory(table, n_rows, int(shape[1]), column_names(table)))


def stored_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a file or folder that is read in blocks, None for all others."""
    return "parquet" if Path(path).is_dir() else FORMATS.get(Path(path).suffix.lower())


def _open_path(
    path: str | os.PathLike[str], columns: Sequence[str] | None, format: str | None
) -> Reader:
    format, name = format or stored_format(path), base_name(path)
    if not Path(path).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    if format == "parquet":
        return open_parquet(path, columns)
    if Path(path).is_dir():
        raise InputError(f"{name} is a folder; give a file in it")
    if format == "npy":
        if columns is not None:
            find_columns(name, columns, None)
        return open_npy(path)
    if format == "h5ad":
        return open_h5ad(path, columns)
    expected = "expected .npy, .parquet or .h5ad, or a folder of Parquet files"
    raise InputError(f"{name} cannot be read in blocks; {expected}")


def _open_embedding(embedding: Any, X: Any, source: Source) -> str | Reader:
    """Return the column that holds the vectors of a source's rows, or a reader of them."""
    if isinstance(embedding, str):
        reader = source.reader if isinstance(source, LocalSource) else None
        known = source.names or []
        if is_anndata(X):
            known = [*X.obsm]
            if embedding in known:
                return _open_vectors(X.obsm[embedding])
        elif isinstance(reader, H5adReader):
            arrays = open_obsm(reader.file)
            known = [*arrays]
            if embedding in known:
                return arrays[embedding]
        elif embedding in known:
            return embedding
        if not (embedding.endswith(".npy") and Path(embedding).is_file()):
            problem = f"is {embedding!r}, which is neither in X nor a .npy file"
            remedy = f"name one of {list_names(known)}" if known else "pass an array"
            raise InputError(f"{problem}; {remedy}", "embedding")
    if isinstance(embedding, str | os.PathLike):
        return open_npy(embedding)
    if isinstance(embedding, Memory | NpyReader | H5adReader | ParquetReader):
        return embedding
    return _open_vectors(embedding)


def _open_vectors(embedding: Any) -> Memory:
    """Return vectors in memory, or raise InputError unless they are a matrix of numbers."""
    if is_dask(embedding) or issparse(embedding):
        kind = "sparse" if issparse(embedding) else "of Dask"
        remedy = "pass a dense NumPy array, or name a column of X that holds vectors"
        raise InputTypeError(f"is {kind}; {remedy}", "embedding")
    try:
        array = np.asarray(embedding)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"is no matrix of numbers: {error}", "embedding") from error
    if array.ndim == 1 and array.dtype == object and len(array):
        array = as_vectors(array)
    if array.dtype.kind not in "fiub" and not array.dtype.name.startswith("bfloat"):
        raise InputTypeError(f"must hold numbers, got {array.dtype}", "embedding")
    if array.ndim != 2 or not array.shape[1]:
        message = f"must have the shape (n_rows, n_dimensions), got {array.shape}"
        raise InputError(message, "embedding")
    return Memory(array, len(array), array.shape[1], None)
