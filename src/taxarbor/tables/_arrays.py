"""Tables that are a matrix: npy, npz, h5ad and Matrix Market files. Nothing is unpickled."""

import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any

from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import FileFormatError, counted
from taxarbor.rows._checks import check_structure
from taxarbor.sources._arrays import open_npy
from taxarbor.sources._h5ad import get_frame, open_group, open_h5ad, read_column
from taxarbor.sources._reader import as_texts, check_matrix, check_present, list_names
from taxarbor.tables._table import Request, Table, as_labels, make_table

SPARSE_KEYS = {"format", "shape", "data"}
"""What :func:`scipy.sparse.save_npz` writes, whatever the layout."""
SPARSE_PARTS = SPARSE_KEYS | {"indices", "indptr", "row", "col", "_is_array"}
LAYOUTS = ("csr", "csc", "coo")
LABELS = ("y", "labels")
NAMES = ("feature_names", "row_names", "class_names")


def read_npy(path: str | os.PathLike[str], request: Request) -> Table:
    """Return the table in an npy file: one array with two axes."""
    return _make_unnamed(request, open_npy(path, request.name).read_all())


def read_h5ad(path: str | os.PathLike[str], request: Request) -> Table:
    """Return the table in an h5ad file: ``X``, with the names in ``obs`` and ``var``."""
    matrix, names = open_h5ad(path, request.name, in_blocks=False)
    n_rows = matrix.shape[0]
    with open_group(matrix.file) as group:
        obs = get_frame(matrix.file, group, "obs")
        index = obs.attrs["_index"]
        columns = [name for name in obs if name not in ("__categories", index)]
        check_present(request.name, request.text_columns, columns, "column of obs")
        texts = {
            name: read_column(matrix.file, obs, name) for name in (index, *request.text_columns)
        }
    for name, values in texts.items():
        if len(values) != n_rows:
            where = "obs" if name == index else name
            raise request.error(
                f"has {counted(n_rows, 'row')}, and {len(values):,} in {where!r}"
            )
    return replace(
        make_table(request, matrix.read_all(), names),
        row_names=texts[request.id_column or index],
        labels=as_labels(texts.get(request.label_column or "")),
        id_column=request.id_column,
    )


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
    return _make_unnamed(request, values)


def _make_unnamed(request: Request, values: Any) -> Table:
    if request.text_columns:
        names = list_names(request.text_columns)
        raise request.error(f"holds numbers only, so {names} cannot be looked up in it")
    return make_table(request, values, None)


def read_npz(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an npz file: ``X``, the only array with two axes, or a sparse one.

    ``feature_names``, ``row_names``, ``y`` or ``labels`` and ``class_names`` are used where
    there are such arrays.
    """
    with request.reading("npz"), zipfile.ZipFile(stream) as file:
        members = [name[:-4] for name in file.namelist() if name.endswith(".npy")]
        if "X" not in members and SPARSE_KEYS.issubset(members):
            X, parts = _load_sparse(request, stream, file), SPARSE_PARTS
        else:
            main, X = _load_main(request, file, members)
            parts = {main}
        check_matrix(request.name, X.dtype, X.shape)
        others = [name for name in members if name not in parts]
        check_present(request.name, request.text_columns, others, "array")
        wanted = {*NAMES, *LABELS, *request.text_columns}
        arrays = {name: _load(request, file, name) for name in others if name in wanted}
    n_rows, n_columns = X.shape
    fitting = (name for name in LABELS if name in arrays and arrays[name].shape == (n_rows,))
    label = request.label_column or next(fitting, None)
    used = {*NAMES, *request.text_columns, label}
    return replace(
        make_table(request, X, _names(request, arrays, "feature_names", n_columns)),
        row_names=_names(request, arrays, request.id_column or "row_names", n_rows),
        labels=None if label is None else as_labels(_labels(request, arrays, label, n_rows)),
        dropped=tuple(
            (name, "an array beside the table") for name in others if name not in used
        ),
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
    arrays = f"its arrays: {list_names(members) or 'none'}"
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
