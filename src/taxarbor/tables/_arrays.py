"""Tables that are arrays already: npy, npz and Matrix Market files, and memory maps.

Nothing is ever unpickled. Of npy files and memory maps there are parts, too: a memory map is
read by plain reads of its file, as what is read through a mapping counts as memory of the
process until the system takes it back.
"""

import io
import math
import mmap
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import InputError, counted
from taxarbor.hierarchy._checks import check_structure
from taxarbor.tables._scan import File, Stream, edges, one_line, told_rows
from taxarbor.tables._table import (
    Request,
    Table,
    as_floats,
    as_labels,
    as_texts,
    listed,
    refuse_absent,
    refuse_excess,
    refuse_infinite,
    refuse_lies,
    refuse_no_table,
    refuse_size,
    selected,
)

SPARSE_KEYS = {"format", "shape", "data"}
"""What :func:`scipy.sparse.save_npz` writes, whatever the layout."""
SPARSE_PARTS = SPARSE_KEYS | {"indices", "indptr", "row", "col", "_is_array"}
LAYOUTS = ("csr", "csc", "coo")
LABELS = ("y", "labels")
NAMES = ("feature_names", "row_names", "class_names")
LONGEST = 10_000
"""Bytes of the header of an npy file, as NumPy has it; but it reads the header first."""


def read_npy(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an npy file: one array with two axes."""
    with request.reading("npy"):
        n_bytes = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        shape, _, dtype = npy_header(request, stream, n_bytes)
        refuse_excess(request, f"an array of shape {shape}", _taken(shape, dtype))
        stream.seek(0)
        values = npy.read_array(stream, allow_pickle=False)
    return _unnamed(request, values)


def npy_header(
    request: Request, stream: IO[bytes], n_bytes: int
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an npy array, whether it is in Fortran's order, and its type.

    The stream has ``n_bytes``; they must be enough for the array.
    """
    is_old = npy.read_magic(stream) == (1, 0)
    start = stream.tell()
    if int.from_bytes(stream.read(2 if is_old else 4), "little") > LONGEST:
        raise ValueError("its header is too long")
    stream.seek(start)
    found = (npy.read_array_header_1_0 if is_old else npy.read_array_header_2_0)(stream)
    shape, _, dtype = found
    n_there, n_declared = n_bytes - stream.tell(), _size(shape, dtype)
    if n_declared > n_there and not dtype.hasobject:
        told = f"{n_declared:,} bytes of numbers are declared, and {n_there:,} are there"
        raise request.error(f"is truncated: {told}")
    if any(length < 0 for length in shape):
        raise ValueError(f"it declares the shape {shape}")
    return found


def _size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return math.prod(shape) * dtype.itemsize


def _taken(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return how many bytes an array takes once its numbers are floats."""
    return math.prod(shape) * max(dtype.itemsize, 8 if dtype.kind in "biu" else 4)


def read_mtx(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a Matrix Market file, whose rows are rows.

    SciPy's reader ends the process on some damaged files that it reads in pieces, and where a
    line break is missing at the end; it gets whole texts only, once their sizes are checked.
    """
    from scipy.io import mmread

    with request.reading("mtx"):
        text = stream.read()
        if b"\0" in text:
            raise ValueError("there is a zero byte in it")
        _refuse_lies(request, text)
        whole = io.BytesIO(text if text.endswith(b"\n") else text + b"\n")
        values: Any = mmread(whole, spmatrix=False)
    return _unnamed(request, values)


def _refuse_lies(request: Request, text: bytes) -> None:
    """Refuse a Matrix Market file that declares more than its bytes can hold."""
    lines = io.BytesIO(text)
    banner = lines.readline().lower().split()
    if banner[:2] != [b"%%matrixmarket", b"matrix"] or len(banner) != 5:
        raise ValueError("the first line is not '%%MatrixMarket matrix ...'")
    size = next((line for line in lines if line.strip() and not line.startswith(b"%")), b"")
    n_rows, n_columns, *rest = (int(part) for part in size.split())
    is_dense, is_general = banner[2] == b"array", banner[4] == b"general"
    half = n_rows * (n_rows - 1) // 2  # of a symmetric matrix, its diagonal aside
    n_cells = rest[0] if not is_dense else n_rows * n_columns if is_general else half
    if 2 * n_cells > len(text):
        told = f"declares {counted(n_cells, 'number')}, more than its {len(text):,} bytes"
        raise request.error(f"{told} can hold")
    if not is_dense:
        refuse_size(request, (n_rows, n_columns), n_cells)


def read_npz(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an npz file: ``X``, the only array with two axes, or a sparse one.

    ``feature_names``, ``row_names``, ``y`` or ``labels`` and ``class_names`` say more, where
    there are such arrays.
    """
    with request.reading("npz"), zipfile.ZipFile(stream) as file:
        shapes = _shapes_in(request, stream, file)
        is_sparse = "X" not in shapes and shapes.keys() >= SPARSE_KEYS
        key = "data" if is_sparse else _main_array(request, shapes)
        values = _sparse(request, stream, file) if is_sparse else _load(request, file, key)
        X = as_floats(request, values)
        parts = SPARSE_PARTS if is_sparse else {key}
        beside = {name: shape for name, shape in shapes.items() if name not in parts}
        refuse_absent(request, request.text_columns, tuple(beside), "array")
        fitting = (name for name in LABELS if beside.get(name) == (X.shape[0],))
        label = request.label_column or next(fitting, None)
        used = beside.keys() & {*NAMES, *request.text_columns, label}
        arrays = {name: _load(request, file, name) for name in used}
    names = _names(request, arrays, "feature_names", X.shape[1])
    X, names = selected(request, X, names)
    refuse_infinite(request, X, names)
    return Table(
        X,
        names,
        _names(request, arrays, request.id_column or "row_names", X.shape[0]),
        None if label is None else as_labels(_labels(request, arrays, label, X.shape[0])),
        tuple((name, "an array beside the table") for name in beside if name not in used),
        id_column=request.id_column,
    )


def _unnamed(request: Request, values: Any) -> Table:
    if request.text_columns:
        asked = listed(request.text_columns)
        raise request.error(f"holds numbers only, so {asked} cannot be looked up in it")
    X, _ = selected(request, as_floats(request, values), None)
    refuse_infinite(request, X, None)
    return Table(X, None)


def _shapes_in(
    request: Request, stream: IO[bytes], file: zipfile.ZipFile
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an npz file's arrays, which can be as they say."""
    shapes, n_bytes = {}, stream.seek(0, io.SEEK_END)
    for name in file.namelist():
        if name.endswith(".npy"):
            info = file.getinfo(name)
            refuse_lies(request, repr(name), info.file_size, min(info.compress_size, n_bytes))
            with file.open(name) as array:
                shapes[name.removesuffix(".npy")] = npy_header(request, array, info.file_size)[
                    0
                ]
    return shapes


def _main_array(request: Request, shapes: Mapping[str, tuple[int, ...]]) -> str:
    if "X" in shapes:
        return "X"
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(tables) == 1:
        return tables[0]
    told = f"its arrays: {listed(shapes) or 'none'}"
    raise request.error(f"has neither an array X nor a single one with two axes; {told}")


def _load(request: Request, file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    member = f"{name}.npy"
    with file.open(member) as array:
        shape, _, dtype = npy_header(request, array, file.getinfo(member).file_size)
    refuse_excess(request, repr(member), _taken(shape, dtype))
    with file.open(member) as array:
        try:
            return npy.read_array(array, allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise request.error(
                f"holds {name!r} as Python objects, which are not loaded, for safety; save it "
                "as plain text or numbers, with .astype(str) or .astype(float)"
            ) from error


def _sparse(request: Request, stream: IO[bytes], file: zipfile.ZipFile) -> Any:
    layout = _load(request, file, "format").item()
    layout = layout.decode() if isinstance(layout, bytes) else layout
    if layout not in LAYOUTS:
        told = f"holds a sparse matrix in layout {layout!r}; expected {', '.join(LAYOUTS)}"
        raise request.error(told)
    stream.seek(0)
    sizes = (one.file_size for one in file.infolist() if one.filename[:-4] in SPARSE_PARTS)
    refuse_excess(request, "a sparse matrix", sum(sizes))
    values: Any = sparse.load_npz(stream)
    check_structure(values)  # a wrong index would crash later
    return values


def _names(
    request: Request, arrays: Mapping[str, NDArray[Any]], name: str, length: int
) -> tuple[str, ...] | None:
    """Return an array of names, one for each row or column, where there is one."""
    found = arrays.get(name)
    if found is None:
        return None
    if found.shape != (length,):
        raise request.error(f"holds {name!r} of shape {found.shape}; expected ({length},)")
    return as_texts(found.astype(str) if found.dtype.kind == "S" else found.tolist())


def _labels(
    request: Request, arrays: Mapping[str, NDArray[Any]], name: str, n_rows: int
) -> tuple[str, ...] | None:
    """Return the label of each row; ``class_names`` are for ``y`` or ``labels``."""
    classes = arrays.get("class_names") if name in LABELS else None
    if classes is None:
        return _names(request, arrays, name, n_rows)
    y = arrays[name]
    is_index = y.shape == (n_rows,) and y.dtype.kind in "iu" and classes.ndim == 1
    if not is_index or not ((y >= 0) & (y < len(classes))).all():
        told = f"so {name!r} must number them from 0 to {classes.size - 1}"
        raise request.error(f"holds class_names, {told}")
    return as_texts(classes.astype(str)[y].tolist())


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
        self.file.check()
        with open(self.file.path, "rb", buffering=0) as stream:
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

    def rows(self, first: int, n_rows: int) -> "ArrayPart":
        """Return some of the rows."""
        place, shape = self.place + first * self.strides[0], (n_rows, self.shape[1])
        return replace(self, first=self.first + first, place=place, shape=shape)


@final
@dataclass(frozen=True, slots=True, eq=False)
class MappedPart:
    """Some rows of an array that only its mapping knows."""

    cells: NDArray[Any]

    def load(self) -> NDArray[Any]:
        """Return a copy of the rows, in C order."""
        return np.array(self.cells, dtype=self.cells.dtype.newbyteorder("="), order="C")

    def rows(self, first: int, n_rows: int) -> "MappedPart":
        """Return some of the rows."""
        return MappedPart(self.cells[first : first + n_rows])


def scan_npy(path: str | os.PathLike[str]) -> Stream:
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
    refuse_no_table(request, dtype, shape)
    size, (n_rows, n_columns) = dtype.itemsize, shape
    strides = (size, size * n_rows) if is_fortran else (size * n_columns, size)
    whole = ArrayPart(file, 0, place, (n_rows, n_columns), strides, dtype)
    return Stream.of(file.name, edges(n_rows, n_columns), whole.rows, None, dtype)


def scan_memmap(X: Any) -> Stream:
    """Return the parts of a memory map, or of a view of one."""
    title = "the memory map" if X.filename is None else one_line(Path(X.filename).name)
    refuse_no_table(Request(title), X.dtype, X.shape)
    whole = _in_file(X) or MappedPart(X.view(np.ndarray))
    return Stream.of(title, edges(*X.shape), whole.rows, None, X.dtype)


def _in_file(X: Any) -> ArrayPart | None:
    """Return the rows that a memory map shows of a file, None if it may show something else."""
    if X.filename is None or X.mode == "c" or min(X.strides) <= 0:
        return None
    if X.mode in ("r+", "w+"):
        X.flush()
    # Views keep no offset.
    start = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    base = np.frombuffer(X._mmap, np.uint8).__array_interface__["data"][0]
    place = int(start + X.__array_interface__["data"][0] - base)
    try:
        whole = ArrayPart(File.of(X.filename), 0, place, X.shape, X.strides, X.dtype)
        for row in (0, X.shape[0] - 1):  # another file may be there by now
            shown = MappedPart(X[row : row + 1]).load().tobytes()
            if whole.rows(row, 1).load().tobytes() != shown:
                return None
    except (OSError, InputError):  # removed, too short, or not from this folder any more
        return None
    return whole
