"""h5ad files: the matrix X, by rows or whole, and columns of obs and var.

They are read by their documented layout with h5py: anndata would bring pandas and zarr along.
https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import missing_extra
from taxarbor._types import IndexArray
from taxarbor.rows._checks import check_structure
from taxarbor.sources._reader import File, as_texts, block_ranges, check_matrix, row_range

LAYOUTS = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}
PARTS = ("data", "indices", "indptr")


@final
@dataclass(frozen=True, slots=True, eq=False)
class H5adMatrix:
    """``X`` of an h5ad file, an array or a CSR or CSC matrix, or an array of ``obsm``."""

    file: File
    shape: tuple[int, int]
    row_bytes: float
    layout: str | None
    """``encoding-type`` of a sparse matrix."""
    key: str = "X"
    """Where it is in the file."""

    @property
    def name(self) -> str:
        return self.file.name

    def read(self, first: int, last: int) -> Any:
        """Return rows as an array in C order, or a CSR array."""
        with open_group(self.file, row_range(first, last)) as group:
            X = group[self.key]
            if self.layout is None:
                return np.ascontiguousarray(X[first:last])
            ends = X["indptr"][first : last + 1]
            begin, end = int(ends[0]), int(ends[-1])
            parts = X["data"][begin:end], X["indices"][begin:end], ends - begin
            rows: Any = sparse.csr_array(parts, shape=(last - first, self.shape[1]))
            check_structure(rows)
        return rows

    def read_all(self) -> Any:
        """Return all rows; this is how a CSC matrix can be read."""
        if self.layout != "csc_matrix":
            return self.read(0, self.shape[0])
        with open_group(self.file) as group:
            parts = tuple(group["X"][part][()] for part in PARTS)
            columns: Any = sparse.csc_array(parts, shape=self.shape)
            check_structure(columns)
        return columns.tocsr()

    def take(self, rows: IndexArray) -> Any:
        parts = []
        for first, last in block_ranges(self.shape[0], self.row_bytes):
            inside = rows[slice(*np.searchsorted(rows, (first, last)))] - first
            if len(inside):
                parts.append(self.read(first, last)[inside])
        return np.concatenate(parts) if self.layout is None else sparse.vstack(parts, "csr")


def open_h5ad(
    path: str | os.PathLike[str], name: str | None = None, *, in_blocks: bool = True
) -> tuple[H5adMatrix, list[str]]:
    """Return ``X`` of an h5ad file, and the names of its columns, in the index of ``var``."""
    file = File.open(path, name)
    with open_group(file) as group:
        var = get_frame(file, group, "var")
        names = make_unique(read_column(file, var, var.attrs["_index"]))
        X = _get(file, group, "X")
        layout = None if not _is_group(X) else str(X.attrs.get("encoding-type"))
        if layout is None:
            dtype, shape = get_array(file, group, "X").dtype, X.shape
            row_bytes = float(np.prod(shape[1:]) * dtype.itemsize)
        else:
            if layout not in LAYOUTS or (in_blocks and layout == "csc_matrix"):
                hint = "adata.X = adata.X.tocsr(), then adata.write_h5ad(...)"
                problem = f"holds X as {layout!r}, which cannot be read{' by rows' * in_blocks}"
                raise file.error(f"{problem}; write it as CSR: {hint}")
            data, indices, ends = (get_array(file, X, part) for part in PARTS)
            shape, dtype = tuple(int(length) for length in X.attrs["shape"]), data.dtype
            n_ends = shape[layout == "csc_matrix"] + 1
            if len(shape) != 2 or len(ends) != n_ends or len(indices) != len(data):
                sizes = f"{len(data):,} entries and {len(ends):,} ends of rows"
                raise ValueError(f"X of shape {shape} has {sizes}")
            entry_bytes = data.dtype.itemsize + indices.dtype.itemsize
            row_bytes = len(data) * entry_bytes / max(shape[0], 1) + ends.dtype.itemsize
    check_matrix(file.name, dtype, shape)
    if len(names) != shape[1]:
        raise file.error(f"names {len(names):,} columns and has {shape[1]:,}")
    return H5adMatrix(file, shape, row_bytes, layout), names


def list_obsm(file: File) -> list[str]:
    """Return the names of the arrays of rows beside ``X``."""
    with open_group(file) as group:
        return [*_get(file, group, "obsm")] if "obsm" in group else []


def open_obsm(file: File, name: str) -> H5adMatrix:
    """Return an array of ``obsm``."""
    with open_group(file) as group:
        array = get_array(file, _get(file, group, "obsm"), name)
        shape, dtype = array.shape, array.dtype
    check_matrix(f"{name!r} in obsm of {file.name}", dtype, shape)
    row_bytes = float(shape[1] * dtype.itemsize)
    return H5adMatrix(file, shape, row_bytes, None, f"obsm/{name}")


@contextmanager
def open_group(file: File, part: str = "") -> Iterator[Any]:
    """Open an h5ad file, and name it in the errors of h5py."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading h5ad", "h5py") from error
    with file.reading("h5ad", part), h5py.File(file.path, "r") as group:
        yield group


def get_frame(file: File, group: Any, name: str) -> Any:
    """Return the group of ``obs`` or ``var``."""
    frame = _get(file, group, name)
    if not _is_group(frame) or "_index" not in frame.attrs:
        raise file.error(
            f"was written by anndata before 0.7: {name} has no index of its own. Read it with "
            "a newer anndata and write it again"
        )
    return frame


def get_array(file: File, group: Any, name: str) -> Any:
    """Return an array that is in this file, not read yet."""
    import h5py

    array = group[name]
    if not isinstance(array, h5py.Dataset):
        raise file.error(f"is no h5ad file, or a damaged one: {array.name!r} is no array")
    if array.external or array.is_virtual:
        raise file.error(f"keeps {array.name!r} in another file, which is not read")
    return array


def read_column(file: File, frame: Any, name: str) -> tuple[str, ...]:
    """Return a column of ``obs`` or ``var`` as text, empty where a value is missing."""
    column = frame[name]
    if not _is_group(column):
        values = _read_values(file, frame, name)
        categories = frame.get("__categories", {})  # where anndata 0.7 kept them
        if name in categories:
            return _decode(_read_values(file, categories, name), values)
        return as_texts(values)
    if "codes" in column:
        codes = _read_values(file, column, "codes")
        return _decode(_read_values(file, column, "categories"), codes)
    if "mask" in column:  # nullable integers, booleans and text
        texts = as_texts(_read_values(file, column, "values"))
        mask = _read_values(file, column, "mask").astype(bool)
        pairs = zip(texts, mask, strict=True)
        return tuple("" if is_missing else text for text, is_missing in pairs)
    raise file.error(f"holds {name!r} as {column.attrs.get('encoding-type')!r}: no text")


def _get(file: File, group: Any, name: str) -> Any:
    import h5py

    if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
        raise file.error(f"links {name!r} to another file, which is not read")
    if name not in group:
        raise file.error(f"is no h5ad file: it has no {name}")
    return group[name]


def _is_group(node: Any) -> bool:
    import h5py

    return isinstance(node, h5py.Group)


def _read_values(file: File, group: Any, name: str) -> NDArray[Any]:
    """Return an array with one dimension, with text decoded."""
    import h5py

    array = get_array(file, group, name)
    is_text = h5py.check_string_dtype(array.dtype) is not None
    values: NDArray[Any] = array.asstr()[()] if is_text else array[()]
    if values.ndim != 1:
        raise ValueError(f"{array.name!r} has shape {values.shape}")
    return values


def _decode(categories: NDArray[Any], codes: NDArray[Any]) -> tuple[str, ...]:
    """Return the category of each code, empty for -1."""
    texts = np.array([*as_texts(categories), ""], dtype=object)
    if codes.dtype.kind not in "iu" or ((codes < -1) | (codes >= len(categories))).any():
        raise ValueError("a code stands for no category")
    return tuple(texts[codes].tolist())


def make_unique(names: Sequence[str]) -> list[str]:
    """Return names, with a number behind those that were there before, as in anndata."""
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
