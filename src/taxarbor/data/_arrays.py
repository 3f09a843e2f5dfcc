"""Tables in npy, npz and Matrix Market files. Nothing is ever unpickled."""

import io
import zipfile
from collections.abc import Mapping
from typing import IO, Any

from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from taxarbor.data._table import (
    Request,
    Table,
    as_floats,
    as_labels,
    as_texts,
    listed,
    refuse_absent,
    refuse_gaps,
    selected,
)

SPARSE_KEYS = {"format", "shape", "data"}
"""What :func:`scipy.sparse.save_npz` writes, whatever the layout."""
SPARSE_PARTS = SPARSE_KEYS | {"indices", "indptr", "row", "col", "_is_array"}
LAYOUTS = ("csr", "csc", "coo")
LABELS = ("y", "labels")
NAMES = ("feature_names", "row_names", "class_names")

BLOCK = 1 << 20
"""Cells that are looked at in one go."""


def read_npy(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an npy file: one array with two axes."""
    with request.reading("npy"):
        values = npy.read_array(stream, allow_pickle=False)
    return _unnamed(request, values)


def read_mtx(stream: IO[bytes], request: Request) -> Table:
    """Return the table in a Matrix Market file, whose rows are rows."""
    from scipy.io import mmread

    with request.reading("mtx"):
        values: Any = mmread(_ended(stream))
    return _unnamed(request, values)


def read_npz(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an npz file.

    It is the array ``X``, the only array with two axes, or what
    :func:`scipy.sparse.save_npz` wrote. ``feature_names``, ``row_names``, ``y`` or ``labels``
    and ``class_names`` say more, where there are such arrays.
    """
    with request.reading("npz"), zipfile.ZipFile(stream) as file:
        shapes = _shapes_in(file)
        is_sparse = "X" not in shapes and shapes.keys() >= SPARSE_KEYS
        key = "data" if is_sparse else _main_array(request, shapes)
        values = _sparse(request, stream, file) if is_sparse else _load(request, file, key)
        X = as_floats(request, values)
        parts = SPARSE_PARTS if is_sparse else {key}
        beside = {name: shape for name, shape in shapes.items() if name not in parts}
        refuse_absent(request, request.text_columns, tuple(beside), "array")
        label = request.label_column or _label_array(beside, X.shape[0])
        wanted = (*NAMES, *request.text_columns, *([] if label is None else [label]))
        used = beside.keys() & wanted
        arrays = {name: _load(request, file, name) for name in used}
    names = _names(request, arrays, "feature_names", X.shape[1])
    X, names = selected(request, X, names)
    refuse_gaps(request, X, names)
    return Table(
        X,
        names,
        _names(request, arrays, request.id_column or "row_names", X.shape[0]),
        None if label is None else as_labels(_labels(request, arrays, label, X.shape[0])),
        tuple((name, "an array beside the table") for name in beside if name not in used),
    )


def _ended(stream: IO[bytes]) -> IO[bytes]:
    """Return a text that ends in a line break and has no zero: both crash SciPy's reader."""
    last = b""
    while block := stream.read(BLOCK):
        if b"\0" in block:
            raise ValueError("there is a zero byte in it")
        last = block
    stream.seek(0)
    return stream if last.endswith(b"\n") else io.BytesIO(stream.read() + b"\n")


def _unnamed(request: Request, values: Any) -> Table:
    if request.text_columns:
        raise request.error(
            f"holds numbers only, so {listed(request.text_columns)} cannot be looked up in it"
        )
    X, _ = selected(request, as_floats(request, values), None)
    refuse_gaps(request, X, None)
    return Table(X, None)


def _shapes_in(file: zipfile.ZipFile) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an npz file's arrays, without reading these."""
    shapes = {}
    for name in file.namelist():
        if name.endswith(".npy"):
            with file.open(name) as array:
                is_old = npy.read_magic(array) == (1, 0)
                read = npy.read_array_header_1_0 if is_old else npy.read_array_header_2_0
                shapes[name.removesuffix(".npy")] = read(array)[0]
    return shapes


def _main_array(request: Request, shapes: Mapping[str, tuple[int, ...]]) -> str:
    if "X" in shapes:
        return "X"
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(tables) == 1:
        return tables[0]
    told = listed(shapes) if shapes else "none"
    raise request.error(
        f"has neither an array X nor a single one with two axes; its arrays: {told}"
    )


def _load(request: Request, file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with file.open(f"{name}.npy") as array:
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
        raise request.error(
            f"holds a sparse matrix in layout {layout!r}; expected {', '.join(LAYOUTS)}"
        )
    stream.seek(0)
    values: Any = sparse.load_npz(stream)
    if layout != "coo":  # coo is checked on its own; here a wrong index would crash later
        values.check_format(full_check=True)
    return values


def _label_array(shapes: Mapping[str, tuple[int, ...]], n_rows: int) -> str | None:
    return next((name for name in LABELS if shapes.get(name) == (n_rows,)), None)


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
        raise request.error(
            f"holds class_names, so {name!r} must number them from 0 to {classes.size - 1}"
        )
    return as_texts(classes.astype(str)[y].tolist())
