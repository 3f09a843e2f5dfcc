"""Matrices that are read in blocks of rows: npy and h5ad files.

h5ad files are read with h5py by their documented layout: anndata would bring pandas and zarr
along. https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import FileFormatError, require
from taxarbor._frames import make_unique
from taxarbor._types import IndexArray, Matrix
from taxarbor.rows import check_structure
from taxarbor.sources.file_checks import (
    Block,
    File,
    as_texts,
    check_matrix,
    count_block_rows,
    list_names,
)

if TYPE_CHECKING:
    import h5py

AnyArray: TypeAlias = NDArray[Any]
Node: TypeAlias = "h5py.Group | h5py.Dataset"

RAW = "raw/X"  # the layer that is the matrix of ``raw``, in AnnData and in h5ad files

MAPPED_BYTES = 1 << 28  # bytes of a file over which sampled rows are taken through one map


@final
@dataclass(frozen=True, slots=True, eq=False)
class MatrixReader:
    """The array in an npy file, or an array or a CSR or CSC matrix in an h5ad file."""

    file: File
    shape: tuple[int, int]
    row_bytes: float
    key: str = ""  # the matrix in an h5ad file, empty for npy
    layout: str | None = None  # ``encoding-type`` of a sparse matrix
    names: list[str] | None = None
    chosen: Sequence[int] | None = None  # the columns to read

    def blocks(self) -> Iterator[Block]:
        step = count_block_rows(self.row_bytes)
        for first in range(0, self.shape[0], step):
            last = min(first + step, self.shape[0])
            title = f"{self.file.name}, rows {first} to {last - 1}"
            yield Block(title, slice(first, last), self.read(first, last))

    def read(self, first: int, last: int) -> Matrix:
        """Return the rows before the last as an array in C order or a CSR array."""
        if self.key:
            with open_group(self.file) as group:
                return self._finish(_read_rows(group[self.key], self.layout, first, last))
        with self.file.reading("npy"):  # by a map of its own, which leaves no page in memory
            return self._finish(np.array(_map_npy(self.file)[first:last]))

    def take(self, rows: IndexArray) -> Matrix:
        """Return some of the rows; of npy by maps of which few pages stay in memory."""
        if len(rows) == self.shape[0]:
            return self.read(0, len(rows))
        parts: list[Any] = []
        if not self.key:
            n_maps = 1 + int(self.shape[0] * self.row_bytes) // MAPPED_BYTES
            with self.file.reading("npy"):
                parts = [_map_npy(self.file)[part] for part in np.array_split(rows, n_maps)]
                return self._finish(np.concatenate(parts))
        for _, block, table in self.blocks():
            inside = rows[slice(*np.searchsorted(rows, (block.start, block.stop)))]
            if len(inside):
                parts.append(table[inside - block.start])
        return np.concatenate(parts) if self.layout is None else sparse.vstack(parts, "csr")

    def keep(self, columns: Sequence[int]) -> "MatrixReader":
        before = range(self.shape[1]) if self.chosen is None else self.chosen
        chosen = [before[j] for j in columns]
        return replace(self, shape=(self.shape[0], len(chosen)), chosen=chosen)

    def _finish(self, rows: Matrix) -> Matrix:
        rows = rows if self.chosen is None else rows[:, self.chosen]
        return as_native(rows) if isinstance(rows, np.ndarray) else rows


def as_native(X: AnyArray) -> AnyArray:
    """Return an array in C order and the byte order of this machine."""
    return np.ascontiguousarray(X, X.dtype.newbyteorder("="))


def open_npy(path: str | os.PathLike[str]) -> MatrixReader:
    """Return a reader of the array in an npy file, in C or Fortran order."""
    file = File.open(path)
    with file.reading("npy"):
        mapped = _map_npy(file)
        if not isinstance(mapped, np.memmap):
            raise ValueError("it holds more than one array")
        check_matrix(file.name, mapped.dtype, mapped.shape)
    return MatrixReader(file, mapped.shape, float(mapped[:1].nbytes))


def _map_npy(file: File) -> AnyArray:
    mapped: AnyArray = np.load(file.path, mmap_mode="r", allow_pickle=False)
    return mapped


# h5ad


def _read_rows(X: "Node", layout: str | None, first: int, last: int) -> Any:
    if layout is None:
        return X[first:last]
    if layout == "csc_matrix":  # is read whole
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


def open_h5ad(
    path: str | os.PathLike[str], *, in_blocks: bool = True, layer: str = ""
) -> MatrixReader:
    """Return a reader of ``X`` of an h5ad file, or of a layer, with the names in ``var``."""
    file = File.open(path)
    key = "X" if not layer else layer if layer == RAW else f"layers/{layer}"
    with open_group(file) as group:
        if layer and key not in group:
            raise FileFormatError(*no_layer(file.name, layer, group.get("layers", ())))
        var = get_frame(file, group, "raw/var" if layer == RAW else "var")
        names = read_column(file, var, var.attrs["_index"])
        X = group[key]
        layout = str(X.attrs.get("encoding-type")) if _is_group(X) else None
        if layout is None:
            dtype, shape = X.dtype, X.shape
            row_bytes = float(np.prod(shape[1:]) * dtype.itemsize)
        else:
            if layout not in ("csr_matrix", *(() if in_blocks else ("csc_matrix",))):
                hint = "adata.X = adata.X.tocsr(), then adata.write_h5ad(...)"
                problem = f"which cannot be read{' by rows' * in_blocks}; write it as CSR"
                raise file.error(f"holds {key} as {layout!r}, {problem}: {hint}")
            shape, dtype = tuple(int(length) for length in X.attrs["shape"]), X["data"].dtype
            if len(X["indptr"]) != shape[layout == "csc_matrix"] + 1:
                raise ValueError(f"{key} of shape {shape} has {len(X['indptr']):,} pointers")
            row_bytes = len(X["data"]) * (dtype.itemsize + 8.0) / max(shape[0], 1) + 8.0
    check_matrix(file.name, dtype, shape)
    if len(names) != shape[1]:
        raise file.error(f"names {len(names):,} columns and has {shape[1]:,}")
    return MatrixReader(file, shape, row_bytes, key, layout, name_genes(names))


def name_genes(names: Iterable[Any]) -> list[str]:
    """Return names as texts, with a number behind duplicates, as in anndata."""
    return make_unique(map(str, names), "-", 1)


def no_layer(title: str, layer: str, layers: Collection[str]) -> tuple[str, str]:
    """Return what is wrong where AnnData, or a file of it, lacks a layer, and the parameter."""
    present = f"name one of {list_names(layers)}" if layers else "it has none"
    return f"is {layer!r}, which {title} lacks; {present}", "layer"


def open_obsm(file: File) -> dict[str, MatrixReader]:
    """Return readers of the matrices of numbers in ``obsm``, by name."""
    with open_group(file) as group:
        return {
            name: MatrixReader(file, array.shape, float(array[:1].nbytes), f"obsm/{name}")
            for name, array in group.get("obsm", {}).items()
            if not _is_group(array) and array.ndim == 2 and array.dtype.kind in "fiub"
        }


@contextmanager
def open_group(file: File) -> Iterator["h5py.Group"]:
    """Open an h5ad file, and name it in the errors of h5py."""
    with require("reading h5ad", "h5py"):
        import h5py
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
