"""Matrices that are read in blocks of rows: npy and h5ad files.

h5ad files are read with h5py by their documented layout: anndata would bring pandas and zarr
along. https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import FileFormatError, missing_extra
from taxarbor._types import IndexArray, Matrix
from taxarbor.rows import check_structure
from taxarbor.sources.file_checks import (
    Block,
    File,
    as_texts,
    check_matrix,
    list_names,
    read_blocks,
)

if TYPE_CHECKING:
    import h5py

AnyArray: TypeAlias = NDArray[Any]
Node: TypeAlias = "h5py.Group | h5py.Dataset"

RAW = "raw/X"
"""The layer that is the matrix of ``raw``, in AnnData and in h5ad files."""

MAPPED_BYTES = 1 << 28
"""Bytes of a file over which sampled rows are taken through one map."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NpyReader:
    """An npy file, and a map of it through which no page is read."""

    file: File
    array: "np.memmap[tuple[int, int], np.dtype[Any]]"
    chosen: Sequence[int] | None = None
    """The columns to return."""

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, width = self.array.shape
        return n_rows, width if self.chosen is None else len(self.chosen)

    def blocks(self) -> Iterator[Block]:
        return read_blocks(self.file.name, self.shape[0], self.array[:1].nbytes, self.read)

    def read(self, first: int, last: int) -> AnyArray:
        """Return rows in C order and the byte order of this machine."""
        with self.file.reading("npy"):
            if not self.array.flags.c_contiguous:
                return self._finish(self._map()[first:last])
            width = self.array.shape[1]
            begin = self.array.offset + first * self.array[:1].nbytes
            n_cells = (last - first) * width
            cells = np.fromfile(self.file.path, self.array.dtype, n_cells, offset=begin)
            return self._finish(cells.reshape(-1, width))

    def take(self, rows: IndexArray) -> AnyArray:
        """Return some of the rows, by maps of which few pages stay in memory at a time."""
        if len(rows) == self.shape[0]:
            return self.read(0, len(rows))
        parts = np.array_split(rows, 1 + self.array.nbytes // MAPPED_BYTES)
        with self.file.reading("npy"):
            return self._finish(np.concatenate([self._map()[p] for p in parts if len(p)]))

    def keep(self, columns: Sequence[int]) -> "NpyReader":
        before = range(self.shape[1]) if self.chosen is None else self.chosen
        return replace(self, chosen=[before[j] for j in columns])

    def _map(self) -> AnyArray:
        mapped: AnyArray = np.load(self.file.path, mmap_mode="r")
        return mapped

    def _finish(self, rows: AnyArray) -> AnyArray:
        return as_native(rows if self.chosen is None else rows[:, self.chosen])


def as_native(X: AnyArray) -> AnyArray:
    """Return an array in C order and the byte order of this machine."""
    return np.ascontiguousarray(X, X.dtype.newbyteorder("="))


def open_npy(path: str | os.PathLike[str]) -> NpyReader:
    """Return a reader of the array in an npy file, in C or Fortran order."""
    file = File.open(path)
    with file.reading("npy"):
        mapped = np.load(file.path, mmap_mode="r", allow_pickle=False)
        if not isinstance(mapped, np.memmap):
            raise ValueError("it holds more than one array")
        check_matrix(file.name, mapped.dtype, mapped.shape)
    return NpyReader(file, mapped)


# h5ad


@final
@dataclass(frozen=True, slots=True, eq=False)
class H5adReader:
    """``X`` of an h5ad file, an array or a CSR or CSC matrix, or another matrix in it."""

    file: File
    shape: tuple[int, int]
    row_bytes: float
    layout: str | None
    """``encoding-type`` of a sparse matrix."""
    key: str = "X"
    names: list[str] | None = None
    chosen: Sequence[int] | None = None
    """The columns to read."""

    def blocks(self) -> Iterator[Block]:
        return read_blocks(self.file.name, self.shape[0], self.row_bytes, self.read)

    def read(self, first: int, last: int) -> Matrix:
        """Return rows as an array in C order or a CSR array."""
        with open_group(self.file) as group:
            X: Matrix = self._read(group[self.key], first, last)
        return X if self.chosen is None else X[:, self.chosen]

    def _read(self, X: "Node", first: int, last: int) -> Any:
        if self.layout is None:
            return np.ascontiguousarray(X[first:last])
        if self.layout == "csc_matrix":  # is read whole
            parts = (X["data"][()], X["indices"][()], X["indptr"][()])
            columns: Any = sparse.csc_array(parts, shape=X.attrs["shape"])
            check_structure(columns)
            return columns.tocsr()[first:last]
        ends = X["indptr"][first : last + 1]
        begin, end = int(ends[0]), int(ends[-1])
        parts = (X["data"][begin:end], X["indices"][begin:end], ends - begin)
        rows: Any = sparse.csr_array(parts, shape=(last - first, X.attrs["shape"][1]))
        check_structure(rows)
        return rows

    def keep(self, columns: Sequence[int]) -> "H5adReader":
        before = range(self.shape[1]) if self.chosen is None else self.chosen
        chosen = [before[j] for j in columns]
        return replace(self, shape=(self.shape[0], len(chosen)), chosen=chosen)

    def take(self, rows: IndexArray) -> Matrix:
        if len(rows) == self.shape[0]:
            return self.read(0, len(rows))
        parts: list[Any] = []
        for _, block, table in self.blocks():
            inside = rows[slice(*np.searchsorted(rows, (block.start, block.stop)))]
            if len(inside):
                parts.append(table[inside - block.start])
        return np.concatenate(parts) if self.layout is None else sparse.vstack(parts, "csr")


def open_h5ad(
    path: str | os.PathLike[str], *, in_blocks: bool = True, layer: str = ""
) -> H5adReader:
    """Return a reader of ``X`` of an h5ad file, or of a layer, with the names in ``var``."""
    file = File.open(path)
    key = "X" if not layer else layer if layer == RAW else f"layers/{layer}"
    with open_group(file) as group:
        if layer and key not in group:
            raise FileFormatError(*no_layer(file.name, layer, group.get("layers", ())))
        var = get_frame(file, group, "raw/var" if layer == RAW else "var")
        names = make_unique(read_column(file, var, var.attrs["_index"]))
        X = group[key]
        layout = str(X.attrs.get("encoding-type")) if _is_group(X) else None
        if layout is None:
            dtype, shape = X.dtype, X.shape
            row_bytes = float(np.prod(shape[1:]) * dtype.itemsize)
        else:
            if layout not in ("csr_matrix", *(() if in_blocks else ("csc_matrix",))):
                hint = "adata.X = adata.X.tocsr(), then adata.write_h5ad(...)"
                problem = (
                    f"holds {key} as {layout!r}, which cannot be read{' by rows' * in_blocks}"
                )
                raise file.error(f"{problem}; write it as CSR: {hint}")
            shape, dtype = tuple(int(length) for length in X.attrs["shape"]), X["data"].dtype
            if len(X["indptr"]) != shape[layout == "csc_matrix"] + 1:
                raise ValueError(f"{key} of shape {shape} has {len(X['indptr']):,} pointers")
            row_bytes = len(X["data"]) * (dtype.itemsize + 8.0) / max(shape[0], 1) + 8.0
    check_matrix(file.name, dtype, shape)
    if len(names) != shape[1]:
        raise file.error(f"names {len(names):,} columns and has {shape[1]:,}")
    return H5adReader(file, shape, row_bytes, layout, key, names)


def no_layer(title: str, layer: str, layers: Collection[str]) -> tuple[str, str]:
    """Return what is wrong where AnnData, or a file of it, lacks a layer, and the parameter."""
    present = f"name one of {list_names(layers)}" if layers else "it has none"
    return f"is {layer!r}, which {title} lacks; {present}", "layer"


def open_obsm(file: File) -> dict[str, H5adReader]:
    """Return readers of the matrices of numbers in ``obsm``, by name."""
    with open_group(file) as group:
        return {
            name: H5adReader(file, array.shape, float(array[:1].nbytes), None, f"obsm/{name}")
            for name, array in group.get("obsm", {}).items()
            if not _is_group(array) and array.ndim == 2 and array.dtype.kind in "fiub"
        }


@contextmanager
def open_group(file: File) -> Iterator["h5py.Group"]:
    """Open an h5ad file, and name it in the errors of h5py."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading h5ad", "h5py") from error
    with file.reading("h5ad"), h5py.File(file.path, "r") as group:
        yield group


def get_frame(file: File, group: "h5py.Group", name: str) -> "h5py.Group":
    """Return the group of ``obs`` or ``var``."""
    frame = group[name]
    if not _is_group(frame) or "_index" not in frame.attrs:
        raise file.error(f"has no index in {name}; write it again with anndata 0.7 or newer")
    return frame


def read_column(file: File, frame: "h5py.Group", name: str) -> tuple[str, ...]:
    """Return a column of ``obs`` or ``var`` as text, empty where a value is missing."""
    column = frame[name]
    if not _is_group(column):
        return as_texts(_read_values(column))
    if "codes" in column:
        text_of = dict(enumerate(as_texts(_read_values(column["categories"])))) | {-1: ""}
        return tuple(text_of[code] for code in _read_values(column["codes"]).tolist())
    if "mask" in column:  # nullable integers, booleans and text
        texts, mask = as_texts(_read_values(column["values"])), _read_values(column["mask"])
        return tuple("" if gap else text for text, gap in zip(texts, mask, strict=True))
    raise file.error(f"holds {name!r} as {column.attrs.get('encoding-type')!r}: no text")


def _is_group(node: "Node") -> bool:
    import h5py

    return isinstance(node, h5py.Group)


def _read_values(array: "h5py.Dataset") -> AnyArray:
    """Return an array with one dimension, with text decoded."""
    import h5py

    is_text = h5py.check_string_dtype(array.dtype) is not None
    values: AnyArray = array.asstr()[()] if is_text else array[()]
    if values.ndim != 1:
        raise ValueError(f"{array.name!r} has shape {values.shape}")
    return values


def make_unique(names: Sequence[str]) -> list[str]:
    """Return names, with a number behind duplicates, as in anndata."""
    taken, result = set(names), []
    seen: Counter[str] = Counter()
    for name in names:
        unique = name
        while seen[name] and unique in taken:
            unique = f"{name}-{seen[name]}"
            seen[name] += 1
        seen[name] += not seen[name]
        taken.add(unique)
        result.append(unique)
    return result
