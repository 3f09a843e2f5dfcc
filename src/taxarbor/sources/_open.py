"""Rows in the memory or the files of this machine, and one way to open all that holds rows."""

import errno
import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, final

import narwhals as nw
import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse

from taxarbor._errors import FileFormatError, InputError, InputTypeError, counted, named_by
from taxarbor._frames import (
    Table,
    as_table,
    as_vectors,
    column_names,
    is_anndata,
    is_dask,
    take_rows,
)
from taxarbor._types import Array, IndexArray, TableLike
from taxarbor.sources._dask_source import DaskSource, open_dask
from taxarbor.sources._matrices import (
    RAW,
    MatrixReader,
    as_native,
    name_genes,
    no_layer,
    open_h5ad,
    open_npy,
    open_obsm,
)
from taxarbor.sources._parquet import SUFFIXES, open_parquet
from taxarbor.sources._sample import Sample, add_vectors, draw_rows
from taxarbor.sources.file_checks import (
    Block,
    Reader,
    base_name,
    count_block_rows,
    find_columns,
    list_names,
)

FORMATS = {".npy": "npy", ".h5ad": "h5ad", **dict.fromkeys(SUFFIXES, "parquet")}
FRAME_ROWS = 100_000  # that are encoded at a time


@final
@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A table in memory: one block, the object itself; frames are encoded by parts."""

    table: Table
    is_mapped: bool = False  # whether it is a memory map, which is read by parts

    @property
    def shape(self) -> tuple[int, int]:
        return self.table.shape

    def blocks(self) -> Iterator[Block]:
        n_rows = step = max(self.shape[0], 1)
        if isinstance(self.table, nw.DataFrame):
            step = FRAME_ROWS
        elif isinstance(self.table, np.ndarray) and self.is_mapped:
            step = count_block_rows(self.table[:1].nbytes)
        for first in range(0, n_rows, step):
            rows = slice(first, min(first + step, self.shape[0]))
            yield Block(None, rows, self._read(rows, step >= n_rows))

    def take(self, rows: IndexArray) -> Table:
        return self._read(rows, len(rows) == self.shape[0])

    def keep(self, columns: Sequence[int]) -> "Memory":
        return replace(self, table=self.table[:, [*columns]])

    def _read(self, rows: IndexArray | slice, is_whole: bool) -> Table:
        part = self.table if is_whole else take_rows(self.table, rows)
        return as_native(part) if isinstance(part, np.ndarray) and self.is_mapped else part


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalSource:
    """Rows in the memory or in the files of this machine, in a fixed order."""

    reader: Reader
    names: list[str] | None = None  # names of the columns, where they have any
    embedding: str | Reader | None = None  # the column with vectors of the rows, or a reader
    layer: str = ""  # what was read of AnnData; see ``open_source``
    n_threads: int = 1  # blocks of a file that are worked on at a time

    @property
    def n_rows(self) -> int:
        return self.reader.shape[0]

    @property
    def n_columns(self) -> int:
        return self.reader.shape[1]

    @property
    def in_memory(self) -> bool:
        return isinstance(self.reader, Memory) and not self.reader.is_mapped

    def sample(self, n: int, seed: int, weights: Array | None = None) -> Sample:
        """Return the n rows with the lowest hash of (seed, row number); all if no more.

        With weights, rows are drawn in proportion to them and rows of weight 0 never. Integer
        weights equal repeated rows where nothing is left out, and in expectation beyond.
        """
        rows, counts = draw_rows(self.n_rows, n, seed, weights)
        sample = Sample(self.reader.take(rows), rows, counts, self.n_rows, self.layer)
        return add_vectors(sample, self.embedding)

    def keep(self, names: Collection[str]) -> "LocalSource":
        """Return the source with the named columns only; as it is if there are none."""
        kept = [name for name in self.names or () if name in names]
        return _select("X", self, kept) if kept and kept != self.names else self

    def route(
        self, work: Callable[[Table, slice], Any], dtypes: Sequence[DTypeLike]
    ) -> tuple[list[NDArray[Any]], Any]:
        """Return arrays over all rows, and a total, from one pass over the blocks.

        ``work(table, rows)`` gets the rows of a block and their numbers as a slice. It returns
        a tuple of arrays with one entry for each, and a value that is added up with ``+`` over
        all blocks, in their order; for Dask it must be picklable. The dtypes are those of the
        arrays.
        """
        arrays: list[NDArray[Any]] = []
        total: Any = None
        for rows, (parts, small) in self._map(work):
            typed = [np.asarray(part, t) for part, t in zip(parts, dtypes, strict=True)]
            if rows == slice(0, self.n_rows):
                return typed, small
            arrays = arrays or [np.empty((self.n_rows, *p.shape[1:]), p.dtype) for p in typed]
            for array, part in zip(arrays, typed, strict=True):
                array[rows] = part
            total = small if total is None else total + small
        return arrays, total

    def _map(self, work: Callable[[Table, slice], Any]) -> Iterator[tuple[slice, Any]]:
        """Yield the rows of each block with the result, in order; few wait in memory."""

        def run(block: Block) -> Any:
            with named_by(block.title):
                return work(block.table, block.rows)

        if self.n_threads == 1 or self.in_memory:
            yield from ((block.rows, run(block)) for block in self.reader.blocks())
            return
        waiting: deque[tuple[slice, Future[Any]]] = deque()
        with ThreadPoolExecutor(self.n_threads) as pool:
            for block in self.reader.blocks():
                waiting.append((block.rows, pool.submit(run, block)))
                if len(waiting) > self.n_threads:
                    rows, future = waiting.popleft()
                    yield rows, future.result()
            yield from ((rows, future.result()) for rows, future in waiting)


Source: TypeAlias = LocalSource | DaskSource


def open_source(
    X: TableLike,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    embedding: TableLike = None,
    feature_names: Sequence[str] | None = None,
    *,
    layer: str = "",
    n_threads: int = 1,
) -> Source:
    """Return the rows of a table as a source, or raise InputError. Files are not read yet.

    Any text is a path: of a ``.npy``, ``.parquet`` or ``.h5ad`` file, or of a folder of Parquet
    files, of which some columns may be chosen by name. The format is needed where the name of
    a file does not say it. Lazy frames and streams are read into memory, and a source is
    returned as it is. Of AnnData and ``.h5ad`` the matrix ``X`` is read, or the named layer;
    ``raw/X`` is the matrix of ``raw``.

    The embedding has vectors of the rows: an array, the path of a ``.npy`` file, a reader, or
    the name of a column of X or of an entry of ``obsm``.
    """
    if layer and not has_layers(X, format):
        raise InputError("is for AnnData and .h5ad files", "layer")
    if isinstance(X, LocalSource | DaskSource):
        source: Source = X
    elif is_dask(X):
        source = open_dask(X)
    elif isinstance(X, str | os.PathLike):
        source = LocalSource(*_open_path(X, format, layer), None, layer, n_threads)
        if columns is not None:
            source = _select(base_name(X), source, columns)
    else:
        source = LocalSource(*_open_table(X, layer), None, layer, n_threads)
    if feature_names is not None:
        source = replace(source, names=_check_names(feature_names, source))
    if embedding is None:
        return source
    try:
        vectors = _open_embedding(embedding, X, source)
    except (FileFormatError, OSError) as error:
        raise InputError(f"cannot be read: {error}", "embedding") from error
    if not isinstance(vectors, str) and vectors.shape[0] != source.n_rows:
        sizes = f"has {counted(vectors.shape[0], 'row')}, and X has {source.n_rows:,}"
        raise InputError(f"{sizes}; give a vector for each row of X", "embedding")
    return replace(source, embedding=vectors)


def _select(title: str, source: LocalSource, names: Sequence[str]) -> LocalSource:
    """Return a source with these columns, or raise FileFormatError that has the title."""
    positions = find_columns(title, names, source.names)
    return replace(source, reader=source.reader.keep(positions), names=[*names])


def has_layers(X: TableLike, format: str | None = None) -> bool:
    """Return whether a table is AnnData, in memory or in a file."""
    is_path = isinstance(X, str | os.PathLike)
    return (format or stored_format(X)) == "h5ad" if is_path else is_anndata(X)


def stored_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a file or folder that is read in blocks, None for all others."""
    return "parquet" if Path(path).is_dir() else FORMATS.get(Path(path).suffix.lower())


def _open_table(X: TableLike, layer: str) -> tuple[Memory, list[str] | None]:
    if isinstance(X, np.memmap) and X.ndim == 2 and X.size and X.filename is not None:
        return Memory(X, is_mapped=True), None
    if not is_anndata(X):
        table = as_table(X)
        return Memory(table), column_names(table)
    if X.isbacked:
        raise InputTypeError("is backed by a file; pass the path of the file", "X")
    if not layer:
        matrix, names = X.X, X.var_names
    elif layer == RAW and X.raw is not None:
        matrix, names = X.raw.X, X.raw.var_names
    elif layer in X.layers:
        matrix, names = X.layers[layer], X.var_names
    else:
        raise InputError(*no_layer("X", layer, X.layers))
    return Memory(as_table(matrix)), name_genes(names)


def _open_path(
    path: str | os.PathLike[str], format: str | None, layer: str
) -> tuple[Reader, list[str] | None]:
    format, name = format or stored_format(path), base_name(path)
    if not Path(path).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    if format == "parquet":
        frames = open_parquet(path)
        return frames, frames.names
    if Path(path).is_dir():
        raise InputError(f"{name} is a folder; give a file in it")
    if format == "npy":
        return open_npy(path), None
    if format == "h5ad":
        matrix = open_h5ad(path, layer=layer)
        return matrix, matrix.names
    remedy = "read it into memory: taxarbor.tables.read_table(path).X"
    raise InputError(f"{name} is neither .npy nor .parquet nor .h5ad; {remedy}")


def _check_names(given: Sequence[str], source: Source) -> list[str]:
    """Return names of the columns of an array, or raise InputError."""
    names = [] if isinstance(given, str) else [str(name) for name in given]
    if len(names) != source.n_columns or len({*names}) < len(names):
        expected = f"must hold {source.n_columns:,} different names, one for each column of X"
        raise InputError(f"{expected}; got {list_names(names) or repr(given)}", "feature_names")
    if source.names is not None and source.names != names:
        raise InputError("differs from the names in X; rename them there", "feature_names")
    return names


def _open_embedding(embedding: TableLike, X: TableLike, source: Source) -> str | Reader:
    """Return the column that holds the vectors of a source's rows, or a reader of them."""
    if isinstance(embedding, str):
        reader = source.reader if isinstance(source, LocalSource) else None
        if is_anndata(X):
            known: Mapping[str, Any] = X.obsm
        elif isinstance(reader, MatrixReader) and reader.key:
            known = open_obsm(reader.file)
        else:
            known = {name: name for name in source.names or ()}
        if embedding in known:
            found = known[embedding]
            return found if isinstance(found, str) else _open_vectors(found)
        if not (embedding.endswith(".npy") and Path(embedding).is_file()):
            remedy = f"name one of {list_names(known)}" if known else "pass an array"
            raise InputError(f"is {embedding!r}, not in X nor .npy; {remedy}", "embedding")
    if isinstance(embedding, str | os.PathLike):
        return open_npy(embedding)
    return _open_vectors(embedding)


def _open_vectors(embedding: TableLike) -> Reader:
    """Return a reader of vectors, or raise InputError unless they are a matrix of numbers."""
    if isinstance(embedding, Reader):
        return embedding
    if is_dask(embedding) or issparse(embedding):
        raise InputTypeError("is sparse, or of Dask; pass a dense NumPy array", "embedding")
    try:
        array = np.asarray(embedding)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"is no matrix of numbers: {error}", "embedding") from error
    if array.ndim == 1 and array.dtype == object and len(array):
        array = as_vectors(array)
    if array.dtype.kind not in "fiub" and not array.dtype.name.startswith("bfloat"):
        raise InputTypeError(f"must hold numbers, got {array.dtype}", "embedding")
    if array.ndim != 2 or not array.shape[1]:
        raise InputError(f"must have rows and columns, got shape {array.shape}", "embedding")
    return Memory(array)
