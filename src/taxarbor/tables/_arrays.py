"""Tables that are arrays already: npy, npz and Matrix Market files, and memory maps.

Nothing is ever unpickled. npy files and memory maps can be read in parts, too: a memory map is
read by plain reads of its file, as what is read through a mapping counts as memory of the
process until the system takes it back.
"""

import io
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

from taxarbor._errors import FileFormatError, InputError
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
    refuse_infinite,
    refuse_no_table,
    selected,
)

SPARSE_KEYS = {"format", "shape", "data"}
"""What :func:`scipy.sparse.save_npz` writes, whatever the layout."""
SPARSE_PARTS = SPARSE_KEYS | {"indices", "indptr", "row", "col", "_is_array"}
LAYOUTS = ("csr", "csc", "coo")
LABELS = ("y", "labels")
NAMES = ("feature_names", "row_names", "class_names")


def read_npy(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an npy file: one array with two axes."""
    with request.reading("npy"):
        values = npy.read_array(stream, allow_pickle=False)
    return _unnamed(request, values)


def read_mtx(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a Matrix Market file.

    SciPy's reader ends the process on some damaged files that it reads in pieces, and on zero
    bytes or a missing line break at the end; so it gets the whole text.
    """
    from scipy.io import mmread

    with request.reading("mtx"):
        text = stream.read()
        if b"\0" in text:
            raise ValueError("it contains a zero byte")
        text = text if text.endswith(b"\n") else text + b"\n"
        values: Any = mmread(io.BytesIO(text), spmatrix=False)
    return _unnamed(request, values)


def _unnamed(request: Request, values: Any) -> Table:
    if request.text_columns:
        names = listed(request.text_columns)
        raise request.error(f"holds numbers only, so {names} cannot be looked up in it")
    X, _ = selected(request, as_floats(request, values), None)
    refuse_infinite(request, X, None)
    return Table(X, None)


def read_npz(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an npz file: ``X``, the only array with two axes, or a sparse one.

    ``feature_names``, ``row_names``, ``y`` or ``labels`` and ``class_names`` are used where
    there are such arrays.
    """
    with request.reading("npz"), zipfile.ZipFile(stream) as file:
        members = [name[:-4] for name in file.namelist() if name.endswith(".npy")]
        if "X" not in members and SPARSE_KEYS.issubset(members):
            X, parts = as_floats(request, _load_sparse(request, stream, file)), SPARSE_PARTS
        else:
            main, values = _load_main(request, file, members)
            X, parts = as_floats(request, values), {main}
        others = [name for name in members if name not in parts]
        refuse_absent(request, request.text_columns, others, "array")
        wanted = {*NAMES, *LABELS, *request.text_columns}
        arrays = {name: _load(request, file, name) for name in others if name in wanted}
    fitting = (name for name in LABELS if name in arrays and arrays[name].shape == X.shape[:1])
    label = request.label_column or next(fitting, None)
    used = {*NAMES, *request.text_columns, label}
    names = _names(request, arrays, "feature_names", X.shape[1])
    X, names = selected(request, X, names)
    refuse_infinite(request, X, names)
    return Table(
        X,
        names,
        _names(request, arrays, request.id_column or "row_names", X.shape[0]),
        None if label is None else as_labels(_labels(request, arrays, label, X.shape[0])),
        tuple((name, "an array beside the table") for name in others if name not in used),
        id_column=request.id_column,
    )


def _load_main(
    request: Request, file: zipfile.ZipFile, members: list[str]
) -> tuple[str, NDArray[Any]]:
    """Return ``X``, or the only array with two axes, and its name."""
    if "X" in members:
        return "X", _load(request, file, "X")
    tables = {}
    for name in members:
        try:
            values = _load(request, file, name)
        except FileFormatError:  # Python objects
            continue
        if values.ndim == 2:
            tables[name] = values
    if len(tables) == 1:
        return tables.popitem()
    arrays = f"its arrays: {listed(members) or 'none'}"
    raise request.error(f"has neither an array X nor a single one with two axes; {arrays}")


def _load(request: Request, file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with file.open(f"{name}.npy") as member:
        try:
            return npy.read_array(member, allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise request.error(
                f"holds {name!r} as Python objects, which are not loaded, for safety; save it "
                "as plain text or numbers, with .astype(str) or .astype(float)"
            ) from error


def _load_sparse(request: Request, stream: IO[bytes], file: zipfile.ZipFile) -> Any:
    layout = _load(request, file, "format").item()
    layout = layout.decode() if isinstance(layout, bytes) else layout
    if layout not in LAYOUTS:
        expected = ", ".join(LAYOUTS)
        raise request.error(f"holds a sparse matrix in layout {layout!r}; expected {expected}")
    stream.seek(0)
    values: Any = sparse.load_npz(stream)
    check_structure(values)  # compiled code that follows a wrong index ends the process
    return values


def _names(
    request: Request, arrays: Mapping[str, NDArray[Any]], name: str, length: int
) -> tuple[str, ...] | None:
    """Return an array of names, one for each row or column, where there is one."""
    names = arrays.get(name)
    if names is None:
        return None
    if names.shape != (length,):
        raise request.error(f"holds {name!r} of shape {names.shape}; expected ({length},)")
    return as_texts(names.astype(str) if names.dtype.kind == "S" else names.tolist())


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
        expected = f"so {name!r} must number them from 0 to {classes.size - 1}"
        raise request.error(f"holds class_names, {expected}")
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
        version = npy.read_magic(stream)
        read_header = (
            npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        )
        shape, is_fortran, dtype = read_header(stream)
        place = stream.tell()
    if dtype.hasobject:
        raise request.error("holds Python objects, which are not loaded; save plain numbers")
    refuse_no_table(request, dtype, shape)
    size, (n_rows, n_columns) = dtype.itemsize, shape
    if file.size < place + n_rows * n_columns * size:
        raise request.error(f"is truncated: it is too short for an array of shape {shape}")
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
