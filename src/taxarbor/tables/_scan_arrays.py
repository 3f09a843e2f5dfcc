"""Arrays in files, part by part: npy files, memory maps, and ``X`` of h5ad files.

A memory map is read by plain reads of its file: what is read through a mapping counts as
memory of the process until the system takes it back.
"""

import mmap
import os
from dataclasses import dataclass
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from taxarbor._errors import InputError, missing_extra
from taxarbor.hierarchy._checks import check_structure
from taxarbor.tables._arrays import (
    h5ad_array,
    h5ad_features,
    h5ad_matrix,
    npy_header,
    refuse_endless,
    refuse_links,
)
from taxarbor.tables._scan import File, Scan, edges, spans, told_rows
from taxarbor.tables._table import Request, refuse_no_numbers, refuse_repeated, refuse_size

H5AD_DAMAGE = (TypeError, SystemError)
"""What h5py raises, beside the usual, when it stumbles over damage."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArrayPart:
    """Some rows of an array that lies in a file, in any order of its axes."""

    file: File
    first: int
    place: int
    """Where the first cell is."""
    shape: tuple[int, int]
    strides: tuple[int, int]
    dtype: np.dtype[Any]

    def load(self) -> NDArray[Any]:
        """Return the rows, in C order."""
        (n_rows, n_columns), (down, right) = self.shape, self.strides
        size, native = self.dtype.itemsize, self.dtype.newbyteorder("=")
        with self.file.opened() as stream:
            if down < right:  # a column after the other
                found = np.empty(self.shape, native)
                for j in range(n_columns):
                    span = self._read(
                        stream, self.place + j * right, (n_rows - 1) * down + size
                    )
                    found[:, j] = np.ndarray(n_rows, self.dtype, span.data, strides=down)
                return found
            span = self._read(
                stream, self.place, (n_rows - 1) * down + (n_columns - 1) * right + size
            )
        found = np.ndarray(self.shape, self.dtype, span.data, strides=self.strides)
        return np.ascontiguousarray(found, native)

    def _read(self, stream: IO[bytes], place: int, n_bytes: int) -> NDArray[np.uint8]:
        found = np.empty(n_bytes, np.uint8)
        stream.seek(place)
        view, done = memoryview(found.data), 0
        while done < n_bytes:
            n_more = stream.readinto(view[done:])  # type: ignore[attr-defined]
            if not n_more:
                self.file.check()
                rows = told_rows(self.first, self.shape[0])
                raise self.file.request.error(f"ends before {rows}: it is truncated")
            done += n_more
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class MappedPart:
    """Some rows of an array that only its mapping knows."""

    rows: NDArray[Any]

    def load(self) -> NDArray[Any]:
        """Return a copy of the rows, in C order."""
        return np.array(self.rows, dtype=self.rows.dtype.newbyteorder("="), order="C")


def scan_npy(path: str | os.PathLike[str]) -> Scan:
    """Return the parts of an npy file: one array with two axes, in C or Fortran order."""
    file = File.of(path)
    request = file.request
    with request.reading("npy"), open(file.path, "rb") as stream:
        shape, is_fortran, dtype = npy_header(request, stream, file.size)
        place = stream.tell()
    if dtype.hasobject:
        raise request.error(
            "holds Python objects, which are not loaded, for safety; save it as plain numbers, "
            "with .astype(float)"
        )
    _refuse(request, dtype, shape)
    size = dtype.itemsize
    strides = (size, size * shape[0]) if is_fortran else (size * shape[1], size)
    return _parts(file, place, shape, strides, dtype)


def scan_memmap(X: Any) -> Scan:
    """Return the parts of a memory map, or of a view of one."""
    name = None if X.filename is None else os.path.basename(os.fspath(X.filename))
    _refuse(Request(name or "the memory map"), X.dtype, X.shape)
    file = _file_of(X)
    if file is not None:
        if X.mode in ("r+", "w+"):
            X.flush()
            file = File.of(file.path)
        return _parts(file, _place(X), X.shape, X.strides, X.dtype)
    plain = X.view(np.ndarray)
    found = [*spans(edges(X.shape[0], X.shape[1]).tolist())]
    return Scan(
        [MappedPart(plain[first : first + n]) for first, n in found],
        [_title(name or "the memory map", *one) for one in found],
        [n for _, n in found],
        None,
        X.dtype.newbyteorder("="),
    )


def _file_of(X: Any) -> File | None:
    """Return the file that a memory map shows, None if it may show something else."""
    if X.filename is None or X.mode == "c" or min(X.strides) <= 0:
        return None
    try:
        file = File.of(X.filename)
    except OSError:  # removed, or in a folder that is not the current one any more
        return None
    # Another file may be there by now: compare the ends.
    whole = ArrayPart(file, 0, _place(X), X.shape, X.strides, X.dtype)
    for row in (0, X.shape[0] - 1):
        place = whole.place + row * X.strides[0]
        part = ArrayPart(file, row, place, (1, X.shape[1]), X.strides, X.dtype)
        try:
            is_same = part.load().tobytes() == MappedPart(X[row : row + 1]).load().tobytes()
        except InputError:
            return None
        if not is_same:
            return None
    return file


def _place(X: Any) -> int:
    """Return where in its file the first cell of a memory map is; views keep no offset."""
    start = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    base = np.frombuffer(X._mmap, np.uint8).__array_interface__["data"][0]
    return int(start + X.__array_interface__["data"][0] - base)


def _parts(file: File, place: int, shape: Any, strides: Any, dtype: np.dtype[Any]) -> Scan:
    n_columns, found = shape[1], [*spans(edges(*shape).tolist())]
    return Scan(
        [
            ArrayPart(file, first, place + first * strides[0], (n, n_columns), strides, dtype)
            for first, n in found
        ],
        [_title(file.name, *one) for one in found],
        [n for _, n in found],
        None,
        dtype.newbyteorder("="),
    )


def _title(name: str, first: int, n_rows: int) -> str:
    return f"{name}, {told_rows(first, n_rows)}"


def _refuse(request: Request, dtype: np.dtype[Any], shape: Any) -> None:
    refuse_no_numbers(request, dtype, shape)
    if 0 in shape:
        raise request.error(f"has no {'columns' if shape[0] else 'rows'}")


@final
@dataclass(frozen=True, slots=True, eq=False)
class H5adPart:
    """Some rows of ``X`` in an h5ad file."""

    file: File
    first: int
    shape: tuple[int, int]
    is_sparse: bool

    def load(self) -> Any:
        """Return the rows: an array in C order, or a CSR array."""
        import h5py

        first, last = self.first, self.first + self.shape[0]
        rows = told_rows(first, self.shape[0])
        with (
            self.file.reading("h5ad", rows, *H5AD_DAMAGE, InputError),
            h5py.File(self.file.path, "r") as file,
        ):
            X = file["X"]
            if not self.is_sparse:
                return np.ascontiguousarray(X[first:last])
            ends = X["indptr"][first : last + 1]
            begin, end = int(ends[0]), int(ends[-1])
            cells = X["data"][begin:end], X["indices"][begin:end], ends - begin
            found: Any = csr_array(cells, shape=self.shape)
            check_structure(found)
        return found


def scan_h5ad(path: str | os.PathLike[str]) -> Scan:
    """Return the parts of an h5ad file whose ``X`` is an array or a CSR matrix."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading h5ad", "h5py") from error
    source = File.of(path)
    request = source.request
    with source.opened() as stream:
        refuse_endless(request, stream, None)
    with request.reading("h5ad", *H5AD_DAMAGE), h5py.File(source.path, "r") as file:
        refuse_links(request, file)
        names = h5ad_features(request, file)
        X, kind = h5ad_matrix(request, file)
        if kind is not None and kind != "csr_matrix":
            raise request.error(
                f"holds X as {kind!r}, which cannot be read by rows; write it as CSR: "
                "adata.X = adata.X.tocsr(), then adata.write_h5ad(...)"
            )
        unit = 1
        if kind is None:
            cells = h5ad_array(request, file, "X")
            shape, n_cells = cells.shape, cells.shape[-1]
            unit = 1 if cells.chunks is None else cells.chunks[0]
        else:
            shape = tuple(int(length) for length in X.attrs["shape"])
            cells, _, ends = (
                h5ad_array(request, X, part) for part in ("data", "indices", "indptr")
            )
            if len(shape) == 2:
                refuse_size(request, shape, len(cells))
                if len(ends) != shape[0] + 1:
                    told = f"{len(ends):,} ends of rows for {shape[0]:,} rows"
                    raise request.error(f"is a damaged h5ad file: X has {told}")
            n_cells = len(cells) / max(shape[0], 1)
        dtype = cells.dtype
    _refuse(request, dtype, shape)
    if len(names) != shape[1]:
        raise request.error(f"names {len(names):,} columns and has {shape[1]:,}")
    refuse_repeated(request, names)
    found = [*spans(edges(shape[0], n_cells, unit).tolist())]
    is_sparse = kind is not None
    return Scan(
        [H5adPart(source, first, (n, shape[1]), is_sparse) for first, n in found],
        [_title(source.name, *one) for one in found],
        [n for _, n in found],
        [*names],
        dtype.newbyteorder("="),
    )
