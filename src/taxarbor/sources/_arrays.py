"""Matrices in files that are read in blocks of rows: npy files and memory maps."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, ClassVar, final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._types import IndexArray
from taxarbor.sources._h5ad import H5adMatrix
from taxarbor.sources._reader import (
    BLOCK_BYTES,
    Block,
    File,
    base_name,
    check_matrix,
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
    """Blocks of a matrix, and of its columns those chosen."""

    stored: "NpyArray | MappedArray | H5adMatrix"
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
            title = f"{self.stored.name}, {row_range(first, last)}"
            load = partial(self._choose, partial(self.stored.read, first, last))
            yield Block(title, slice(first, last), load)

    def take(self, rows: IndexArray) -> Any:
        """Return some rows."""
        if len(rows) == self.n_rows:
            return self._choose(self.stored.read_all)
        parts = []
        for block in self.blocks(use_threads=False):
            first, last = block.rows.start, block.rows.stop
            inside = rows[slice(*np.searchsorted(rows, (first, last)))] - first
            if len(inside):
                parts.append(self._choose(partial(self.stored.take, first, last, inside)))
        if sparse.issparse(parts[0]):
            return sparse.vstack(parts, format="csr")
        return np.concatenate(parts)

    def _choose(self, load: Callable[[], Any]) -> Any:
        return load() if self.chosen is None else load()[:, self.chosen]


@final
@dataclass(frozen=True, slots=True, eq=False)
class NpyArray:
    """The array of an npy file."""

    file: File
    offset: int
    """Where the first cell is."""
    shape: tuple[int, int]
    is_fortran: bool
    dtype: np.dtype[Any]

    @property
    def name(self) -> str:
        """How messages name it."""
        return self.file.name

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.shape[1] * self.dtype.itemsize

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return rows in C order and the byte order of this machine, until the next read."""
        self.file.check()
        with open(self.file.path, "rb") as stream:
            return _as_native(self._read(stream, first, last))

    def read_all(self) -> NDArray[Any]:
        """Return all rows, in memory of their own."""
        self.file.check()
        X = np.empty(self.shape[::-1] if self.is_fortran else self.shape, self.dtype)
        with open(self.file.path, "rb") as stream:
            self._fill(stream, self.offset, X)
        return _as_native(X.T if self.is_fortran else X)

    def take(self, first: int, last: int, rows: IndexArray) -> NDArray[Any]:
        """Return some of the rows; those between are read where that is as fast."""
        if self.is_fortran:
            return self.read(first, last)[rows]
        self.file.check()
        gaps = np.flatnonzero(np.diff(rows) * self.row_bytes > GAP_BYTES) + 1
        X = np.empty((len(rows), self.shape[1]), self.dtype)
        begin = 0
        with open(self.file.path, "rb") as stream:
            for end in (*gaps.tolist(), len(rows)):
                run = rows[begin:end]
                start = int(run[0])
                cells = self._read(stream, first + start, first + int(run[-1]) + 1)
                X[begin:end] = cells[run - start]
                begin = end
        return _as_native(X)

    def _read(self, stream: IO[bytes], first: int, last: int) -> NDArray[Any]:
        """Return rows as they are stored, in memory that this thread's next read uses again.

        New memory for each block would take as long as the reading.
        """
        (n_rows, n_columns), size, n = self.shape, self.dtype.itemsize, last - first
        n_bytes = n * self.row_bytes
        if len(getattr(_scratch, "cells", ())) < n_bytes:
            _scratch.cells = np.empty(n_bytes, np.uint8)
        cells: NDArray[Any] = _scratch.cells[:n_bytes].view(self.dtype)
        if not self.is_fortran:
            self._fill(stream, self.offset + first * self.row_bytes, cells)
            return cells.reshape(n, n_columns)
        cells = cells.reshape(n_columns, n)
        for j, column in enumerate(cells):
            self._fill(stream, self.offset + (j * n_rows + first) * size, column)
        return cells.T

    def _fill(self, stream: IO[bytes], offset: int, cells: NDArray[Any]) -> None:
        stream.seek(offset)
        n_read = stream.readinto(memoryview(cells.reshape(-1).view(np.uint8)))  # type: ignore[attr-defined]
        if n_read < cells.nbytes:
            self.file.check()
            raise self.file.error("ends too early: it is truncated")


@final
@dataclass(frozen=True, slots=True, eq=False)
class MappedArray:
    """A memory map or a view of one."""

    name: str
    array: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.array.shape[0], self.array.shape[1]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.array.shape[1] * self.array.itemsize

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return rows in C order and the byte order of this machine, copied if they differ."""
        return _as_native(self.array[first:last])

    def read_all(self) -> NDArray[Any]:
        """Return all rows, in memory of their own."""
        return _as_native(np.array(self.array, order="C"))

    def take(self, first: int, last: int, rows: IndexArray) -> NDArray[Any]:
        """Return some of the rows."""
        return _as_native(self.array[first:last][rows])


def _as_native(X: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(X, X.dtype.newbyteorder("="))


def open_npy(path: str | os.PathLike[str], name: str | None = None) -> NpyArray:
    """Return the array in an npy file, in C or Fortran order."""
    file = File.open(path, name)
    with file.reading("npy"), open(file.path, "rb") as stream:
        is_old = npy.read_magic(stream) == (1, 0)
        start = stream.tell()
        if int.from_bytes(stream.read(2 if is_old else 4), "little") > MAX_HEADER:
            raise ValueError("its header is too long")
        stream.seek(start)
        read = npy.read_array_header_1_0 if is_old else npy.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
        offset = stream.tell()
        if any(length < 0 for length in shape):
            raise ValueError(f"it declares the shape {shape}")
        if dtype.hasobject:
            raise file.error(
                "holds Python objects, which are not loaded, for safety; save it as plain "
                "numbers, with .astype(float)"
            )
        check_matrix(file.name, dtype, shape)
        n_bytes, n_present = shape[0] * shape[1] * dtype.itemsize, file.size - offset
        if n_bytes > n_present:
            raise ValueError(f"it declares {n_bytes:,} bytes of numbers and has {n_present:,}")
    return NpyArray(file, offset, shape, is_fortran, dtype)


def open_memmap(X: Any) -> MappedArray:
    """Return a memory map, to be read in blocks."""
    name = base_name(X.filename) if X.filename else "X"
    check_matrix(name, X.dtype, X.shape)
    return MappedArray(name, X)


def choose_columns(
    stored: NpyArray | MappedArray | H5adMatrix,
    names: list[str] | None,
    columns: Sequence[str] | None,
) -> ArrayReader:
    """Return a reader of some columns of a matrix, of all if None."""
    if columns is None:
        return ArrayReader(stored, names)
    chosen = np.array(columns_at(stored.name, columns, names), dtype=np.intp)
    return ArrayReader(stored, [*columns], chosen)
