"""Matrices in files that are read in blocks of rows: npy files and memory maps."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from taxarbor._types import IndexArray
from taxarbor.sources._h5ad import H5adMatrix
from taxarbor.sources._reader import (
    Block,
    File,
    base_name,
    block_ranges,
    check_matrix,
    columns_at,
    row_range,
)

MAPPED_BYTES = 1 << 28
"""Bytes of a file over which sampled rows are taken through one map."""
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
        return self.stored.shape[0]

    @property
    def n_columns(self) -> int:
        return self.stored.shape[1] if self.chosen is None else len(self.chosen)

    def blocks(self, *, use_threads: bool) -> Iterator[Block]:
        for first, last in block_ranges(self.n_rows, self.stored.row_bytes):
            title = f"{self.stored.name}, {row_range(first, last)}"
            load = partial(self._choose, partial(self.stored.read, first, last))
            yield Block(title, slice(first, last), load)

    def take(self, rows: IndexArray) -> Any:
        if len(rows) == self.n_rows:
            return self._choose(self.stored.read_all)
        return self._choose(partial(self.stored.take, rows))

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
    order: Literal["C", "F"]
    dtype: np.dtype[Any]

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def row_bytes(self) -> int:
        return self.shape[1] * self.dtype.itemsize

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return rows in C order and the byte order of this machine, until the next read.

        The memory is that of the thread's last read: new memory for each block would take as
        long as the reading.
        """
        if self.order == "F":
            return _as_native(self._map()[first:last])
        self.file.check()
        n_bytes = (last - first) * self.row_bytes
        if len(getattr(_scratch, "cells", ())) < n_bytes:
            _scratch.cells = np.empty(n_bytes, np.uint8)
        cells: NDArray[Any] = _scratch.cells[:n_bytes]
        with open(self.file.path, "rb") as stream:
            stream.seek(self.offset + first * self.row_bytes)
            if stream.readinto(cells.data) < n_bytes:
                raise self.file.error("ends too early: it is truncated")
        return _as_native(cells.view(self.dtype).reshape(-1, self.shape[1]))

    def read_all(self) -> NDArray[Any]:
        """Return all rows, in memory of their own."""
        n_cells = self.shape[0] * self.shape[1]
        with self.file.reading("npy"):
            cells = np.fromfile(self.file.path, self.dtype, n_cells, offset=self.offset)
            return _as_native(cells.reshape(self.shape, order=self.order))

    def take(self, rows: IndexArray) -> NDArray[Any]:
        """Return some of the rows, by maps of which few pages stay in memory at a time."""
        parts = np.array_split(rows, 1 + self.shape[0] * self.row_bytes // MAPPED_BYTES)
        return _as_native(np.concatenate([self._map()[part] for part in parts if len(part)]))

    def _map(self) -> NDArray[Any]:
        self.file.check()
        return np.memmap(self.file.path, self.dtype, "r", self.offset, self.shape, self.order)


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
        return self.shape[1] * self.array.dtype.itemsize

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return rows in C order and the byte order of this machine, copied if they differ."""
        return _as_native(self.array[first:last])

    def read_all(self) -> NDArray[Any]:
        """Return all rows, in memory of their own."""
        return _as_native(np.array(self.array, order="C"))

    def take(self, rows: IndexArray) -> NDArray[Any]:
        return _as_native(np.array(self.array[rows]))


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
    return NpyArray(file, offset, (shape[0], shape[1]), "F" if is_fortran else "C", dtype)


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
