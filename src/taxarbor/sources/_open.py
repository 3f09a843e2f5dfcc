"""One way to open whatever holds rows."""

import errno
import os
import sys
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from taxarbor._errors import FileFormatError, InputError, InputTypeError, counted
from taxarbor._frames import as_frame, as_vectors, is_anndata, is_dask
from taxarbor.sources._dask_source import DaskSource
from taxarbor.sources._file_checks import File, base_name, list_names
from taxarbor.sources._local_source import LocalSource, Memory, Reader, open_memory
from taxarbor.sources._matrices import (
    ArrayReader,
    H5adMatrix,
    list_obsm,
    make_unique,
    open_h5ad,
    open_memmap,
    open_npy,
    open_obsm,
)
from taxarbor.sources._parquet import SUFFIXES, ParquetReader, open_dataset, open_parquet

FORMATS = {".npy": "npy", ".h5ad": "h5ad", **dict.fromkeys(SUFFIXES, "parquet")}


Source: TypeAlias = LocalSource | DaskSource


def open_source(
    X: Any,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    embedding: Any = None,
) -> Source:
    """Return the rows of a table as a source. Cells are not read.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, memory map, path, dataset or Dask collection
        Any text is a path: of a ``.npy``, ``.parquet`` or ``.h5ad`` file, or of a folder of
        Parquet files. Of AnnData the matrix ``X`` is used. A source is returned as it is.
    columns : sequence of str, optional
        The columns of a file to use, by name; all by default.
    format : {"npy", "parquet", "h5ad"}, optional
        Of a file whose name does not say it.
    embedding : array-like, path of a .npy file, str or reader, optional
        Vectors of the rows. A str names a column of X or an entry of ``obsm``, or is a path.

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
    if isinstance(X, str | os.PathLike):
        source: Source = LocalSource(_open_path(X, columns, format))
    else:
        source = X if isinstance(X, LocalSource | DaskSource) else _open(X)
    if embedding is None:
        return source
    try:
        vectors = _open_embedding(embedding, X, source)
    except (FileFormatError, OSError) as error:
        raise InputError(f"cannot be read: {error}", "embedding") from error
    if not isinstance(vectors, str) and vectors.n_rows != source.n_rows:
        sizes = f"has {counted(vectors.n_rows, 'row')}, and X has {source.n_rows:,}"
        raise InputError(f"{sizes}; give a vector for each row of X", "embedding")
    if isinstance(source, LocalSource):
        return replace(source, embedding=vectors)
    source = copy(source)
    source.embedding = vectors
    return source


def _open(X: Any) -> Source:
    if is_dask(X):
        return DaskSource.open(X)
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size and X.filename is not None:
        return LocalSource(ArrayReader(open_memmap(X)))
    ds = sys.modules.get("pyarrow.dataset")
    if ds is not None and isinstance(X, ds.Dataset):
        return LocalSource(open_dataset(X))
    if is_anndata(X):
        if X.isbacked:
            raise InputTypeError("is backed by a file; pass the path of the file", "X")
        names = make_unique([*map(str, X.var_names)])
        return LocalSource(Memory(X.X, X.n_obs, X.n_vars, names))
    return open_memory(as_frame(X))


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
        return ArrayReader.open(open_npy(path), None, columns)
    return ArrayReader.open(*open_h5ad(path), columns)


def _open_embedding(embedding: Any, X: Any, source: Source) -> str | Reader:
    """Return the column that holds the vectors of a source's rows, or a reader of them."""
    if isinstance(embedding, str):
        file, known = _find_h5ad(source), source.names or []
        if file is not None or is_anndata(X):
            known = [*X.obsm] if file is None else list_obsm(file)
        if embedding in known and is_anndata(X):
            return _open_vectors(X.obsm[embedding])
        if embedding in known:
            return embedding if file is None else ArrayReader(open_obsm(file, embedding))
        if not (embedding.endswith(".npy") and Path(embedding).is_file()):
            problem = f"is {embedding!r}, which is neither in X nor a .npy file"
            remedy = f"name one of {list_names(known)}" if known else "pass an array"
            raise InputError(f"{problem}; {remedy}", "embedding")
    if isinstance(embedding, str | os.PathLike):
        return ArrayReader(open_npy(embedding))
    if isinstance(embedding, Memory | ArrayReader | ParquetReader):
        return embedding
    return _open_vectors(embedding)


def _find_h5ad(source: Source) -> File | None:
    """Return the h5ad file that a source reads, None for all others."""
    reader = source.reader if isinstance(source, LocalSource) else None
    stored = reader.stored if isinstance(reader, ArrayReader) else None
    return stored.file if isinstance(stored, H5adMatrix) else None


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
        expected = "must have the shape (n_rows, n_dimensions)"
        raise InputError(f"{expected}, got {array.shape}", "embedding")
    return Memory(array, len(array), array.shape[1], None)
