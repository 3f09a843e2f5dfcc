"""Arrays in files: npy, memory maps, and the matrix X of h5ad."""

import mmap
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, ClassVar, final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import FileFormatError, InputError, missing_extra
from taxarbor._types import IndexArray
from taxarbor.hierarchy._checks import check_structure
from taxarbor.sources._reader import (
    BLOCK_BYTES,
    Block,
    File,
    columns_at,
    row_range,
)

GAP_BYTES = 1 << 17
"""Bytes between two rows that are read as well: a seek takes about as long."""
MAX_HEADER = 10_000
"""Bytes of the header of an npy file, as in NumPy."""
_scratch = threading.local()


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArrayReader:
    """Blocks of a matrix in a file, and of its columns those chosen."""

    stored: "RawArray | H5adMatrix"
    names: list[str] | None = None
    chosen: IndexArray | None = None
    in_memory: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stored.shape[0]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.stored.shape[1] if self.chosen is None else len(self.chosen)

    def blocks(self, *, use_threads: bool) -> Iterator[Block]:
        """Yield all rows in their order."""
        step = max(int(BLOCK_BYTES / max(self.stored.row_bytes, 1.0)), 1)
        for first in range(0, self.n_rows, step):
            last = min(first + step, self.n_rows)
            title = f"{self.stored.file.name}, {row_range(first, last)}"
            load = partial(self._chosen, partial(self.stored.read, first, last))
            yield Block(title, slice(first, last), load)

    def take(self, rows: IndexArray) -> Any:
        """Return some rows."""
        parts = []
        for block in self.blocks(use_threads=False):
            first, last = block.rows.start, block.rows.stop
            own = rows[slice(*np.searchsorted(rows, (first, last)))] - first
            if len(own):
                parts.append(self._chosen(partial(self.stored.take, first, last, own)))
        if len(parts) == 1:
            return parts[0]
        if sparse.issparse(parts[0]):
            return sparse.vstack(parts, format="csr")
        return np.concatenate(parts)

    def _chosen(self, load: Callable[[], Any]) -> Any:
        return load() if self.chosen is None else load()[:, self.chosen]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RawArray:
    """An array as it lies in a file, in any order of its axes."""

    file: File
    place: int
    """Where the first cell is."""
    shape: tuple[int, int]
    strides: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> float:
        """Bytes of a row."""
        return self.shape[1] * self.dtype.itemsize

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return rows in C order and the byte order of this machine, until the next read."""
        self.file.check()
        with open(self.file.path, "rb", buffering=0) as stream:
            return np.ascontiguousarray(self._read(stream, first, last), self._native)

    def take(self, first: int, last: int, rows: IndexArray) -> NDArray[Any]:
        """Return some of the rows; those between are read where that is as fast."""
        down, right = self.strides
        if down < right:
            return self.read(first, last)[rows]
        self.file.check()
        found = np.empty((len(rows), self.shape[1]), self._native)
        ends = np.flatnonzero(np.diff(rows) * down > GAP_BYTES) + 1
        begin = 0
        with open(self.file.path, "rb", buffering=0) as stream:
            for end in (*ends.tolist(), len(rows)):
                own = rows[begin:end]
                run = self._read(stream, first + int(own[0]), first + int(own[-1]) + 1)
                found[begin:end] = run[own - own[0]]
                begin = end
        return found

    @property
    def _native(self) -> np.dtype[Any]:
        return self.dtype.newbyteorder("=")

    def _read(self, stream: IO[bytes], first: int, last: int) -> NDArray[Any]:
        """Return rows as they are stored."""
        (down, right), n_columns, n = self.strides, self.shape[1], last - first
        start = self.place + first * down
        if down >= right:
            n_bytes = (n - 1) * down + (n_columns - 1) * right + self.dtype.itemsize
            cells = self._bytes(stream, start, n_bytes)
            return np.ndarray((n, n_columns), self.dtype, cells.data, strides=self.strides)
        found = np.empty((n, n_columns), self.dtype)
        for j in range(n_columns):  # a column after the other
            n_bytes = (n - 1) * down + self.dtype.itemsize
            cells = self._bytes(stream, start + j * right, n_bytes)
            found[:, j] = np.ndarray(n, self.dtype, cells.data, strides=(down,))
        return found

    def _bytes(self, stream: IO[bytes], place: int, n_bytes: int) -> NDArray[np.uint8]:
        """Return bytes that stay what they are until this thread reads others.

        New memory for each block would take as long as the reading.
        """
        if len(getattr(_scratch, "cells", ())) < n_bytes:
            _scratch.cells = np.empty(n_bytes, np.uint8)
        found: NDArray[np.uint8] = _scratch.cells[:n_bytes]
        view, done = memoryview(found.data), 0
        stream.seek(place)
        while done < n_bytes:
            n_more = stream.readinto(view[done:])  # type: ignore[attr-defined]
            if not n_more:
                self.file.check()
                raise self.file.error("ends too early: it is truncated")
            done += n_more
        return found


def open_npy(path: str | os.PathLike[str]) -> RawArray:
    """Return the array in an npy file, in C or Fortran order."""
    file = File.open(path)
    with file.reading("npy", "its header"), open(file.path, "rb") as stream:
        is_old = npy.read_magic(stream) == (1, 0)
        start = stream.tell()
        if int.from_bytes(stream.read(2 if is_old else 4), "little") > MAX_HEADER:
            raise ValueError("it is too long")
        stream.seek(start)
        read = npy.read_array_header_1_0 if is_old else npy.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
        place = stream.tell()
        if any(length < 0 for length in shape):
            raise ValueError(f"it declares the shape {shape}")
    if dtype.hasobject:
        raise file.error(
            "holds Python objects, which are not loaded, for safety; save it as plain numbers, "
            "with .astype(float)"
        )
    check_matrix(file.name, dtype, shape)
    size, (n_rows, n_columns) = dtype.itemsize, shape
    n_declared, n_there = n_rows * n_columns * size, file.size - place
    if n_declared > n_there:
        told = f"{n_declared:,} bytes of numbers are declared, and {n_there:,} are there"
        raise file.error(f"is truncated: {told}")
    strides = (size, size * n_rows) if is_fortran else (size * n_columns, size)
    return RawArray(file, place, (n_rows, n_columns), strides, dtype)


def open_memmap(X: Any) -> RawArray | None:
    """Return what a memory map shows of its file, None if it may show something else."""
    if X.filename is None or X.mode == "c" or X.ndim != 2 or not X.size or min(X.strides) <= 0:
        return None
    check_matrix(os.path.basename(X.filename), X.dtype, X.shape)
    if X.mode in ("r+", "w+"):
        X.flush()
    # A view of a memory map keeps the offset of the map.
    start = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    base = np.frombuffer(X._mmap, np.uint8).__array_interface__["data"][0]
    place = int(start + X.__array_interface__["data"][0] - base)
    try:
        whole = RawArray(File.open(X.filename), place, X.shape, X.strides, X.dtype)
        for row in (0, X.shape[0] - 1):  # there may be another file by now
            shown = np.array(X[row : row + 1], dtype=X.dtype.newbyteorder("="))
            if whole.read(row, row + 1).tobytes() != shown.tobytes():
                return None
    except (OSError, InputError):  # removed, too short, or relative to another folder
        return None
    return whole


@final
@dataclass(frozen=True, slots=True, eq=False)
class H5adMatrix:
    """``X`` of an h5ad file: an array or a CSR matrix."""

    file: File
    shape: tuple[int, int]
    row_bytes: float
    is_sparse: bool

    def read(self, first: int, last: int) -> Any:
        """Return rows as an array in C order, or a CSR array."""
        import h5py

        what = row_range(first, last)
        with self.file.reading("h5ad", what), h5py.File(self.file.path, "r") as file:
            X = file["X"]
            if not self.is_sparse:
                return np.ascontiguousarray(X[first:last])
            ends = X["indptr"][first : last + 1]
            begin, end = int(ends[0]), int(ends[-1])
            cells = X["data"][begin:end], X["indices"][begin:end], ends - begin
            found: Any = sparse.csr_array(cells, shape=(last - first, self.shape[1]))
            check_structure(found)
        return found

    def take(self, first: int, last: int, rows: IndexArray) -> Any:
        """Return some of the rows."""
        return self.read(first, last)[rows]


def open_h5ad(path: str | os.PathLike[str]) -> tuple[H5adMatrix, list[str]]:
    """Return ``X`` of an h5ad file, and the names of its columns, in the index of ``var``.

    Of the layout only this much is read, by hand: anndata would bring pandas and zarr along.
    https://anndata.readthedocs.io/en/stable/fileformat-prose.html
    """
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading h5ad", "h5py") from error
    file = File.open(path)
    with file.reading("h5ad"), h5py.File(file.path, "r") as h5:
        for name in ("X", "var"):
            if isinstance(h5.get(name, getlink=True), h5py.ExternalLink):
                raise file.error(f"links {name!r} to another file, which is not read")
            if name not in h5:
                raise file.error(f"is no h5ad file: it has no {name}")
        X, var = h5["X"], h5["var"]
        if not isinstance(var, h5py.Group) or "_index" not in var.attrs:
            raise file.error("was written by anndata before 0.7; write it with a newer one")
        names = _unique(_array(file, var, var.attrs["_index"]).asstr()[:].tolist())
        if isinstance(X, h5py.Group):
            matrix, dtype = _csr(file, X)
        else:
            X = _array(file, h5, "X")
            dtype, row_bytes = X.dtype, float(np.prod(X.shape[1:]) * X.dtype.itemsize)
            matrix = H5adMatrix(file, X.shape, row_bytes, False)
    check_matrix(file.name, dtype, matrix.shape)
    if len(names) != matrix.shape[1]:
        raise file.error(f"names {len(names):,} columns and has {matrix.shape[1]:,}")
    return matrix, names


def _unique(names: list[str]) -> list[str]:
    """Return names, with a number behind those that were there before, as in anndata."""
    taken, found = set(names), []
    seen: Counter[str] = Counter()
    for name in names:
        unique = name
        while seen[name] and unique in taken:
            unique = f"{name}-{seen[name]}"
            seen[name] += 1
        seen[name] += not seen[name]
        taken.add(unique)
        found.append(unique)
    return found


def _csr(file: File, X: Any) -> tuple[H5adMatrix, np.dtype[Any]]:
    kind = X.attrs.get("encoding-type")
    if kind != "csr_matrix":
        raise file.error(
            f"holds X as {kind!r}, which cannot be read by rows; write it as CSR: "
            "adata.X = adata.X.tocsr(), then adata.write_h5ad(...)"
        )
    data, indices, ends = (_array(file, X, name) for name in ("data", "indices", "indptr"))
    shape = tuple(int(length) for length in X.attrs["shape"])
    if len(shape) != 2 or len(ends) != shape[0] + 1 or len(indices) != len(data):
        told = f"X of shape {shape} has {len(data):,} entries and {len(ends):,} ends of rows"
        raise file.error(f"is a damaged h5ad file: {told}")
    entry_bytes = data.dtype.itemsize + indices.dtype.itemsize
    row_bytes = len(data) * entry_bytes / max(shape[0], 1) + ends.dtype.itemsize
    return H5adMatrix(file, shape, row_bytes, True), data.dtype


def _array(file: File, group: Any, name: str) -> Any:
    """Return an array of an h5ad file that is in this file."""
    import h5py

    found = group[name]
    if not isinstance(found, h5py.Dataset):
        raise file.error(f"is no h5ad file, or a damaged one: {found.name!r} is no array")
    if found.external or found.is_virtual:
        raise file.error(f"keeps {found.name!r} in another file, which is not read")
    return found


def check_matrix(title: str, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Raise FileFormatError for what is not a matrix of real numbers with rows and columns."""
    if dtype.kind not in "fiub":
        raise FileFormatError(f"{title} holds {dtype}, not real numbers")
    if len(shape) != 2:
        told = f"has shape {tuple(shape)}, not (n_rows, n_features)"
        hint = ": reshape it to (n, 1) for one column or (1, n) for one row"
        raise FileFormatError(f"{title} {told}{hint * (len(shape) == 1)}")
    if 0 in shape:
        raise FileFormatError(f"{title} has no {'columns' if shape[0] else 'rows'}")


def choose_columns(
    stored: RawArray | H5adMatrix, names: list[str] | None, columns: Sequence[str] | None
) -> ArrayReader:
    """Return a reader of some columns of a matrix, of all if None."""
    if columns is None:
        return ArrayReader(stored, names)
    chosen = np.array(columns_at(stored.file.name, columns, names), dtype=np.intp)
    return ArrayReader(stored, [*columns], chosen)
