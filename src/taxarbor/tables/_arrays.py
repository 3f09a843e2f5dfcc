"""Tables that are arrays already: npy, npz, Matrix Market and h5ad files.

Nothing is ever unpickled. Files of h5ad are read by hand, as their layout is documented:
anndata 0.12 would hold pandas below version 3 and bring zarr along, for a few lines of h5py.
https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

import io
import math
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import counted, missing_extra
from taxarbor.hierarchy._checks import check_structure
from taxarbor.tables._h5ad_walk import TEXTS, kept_unpacked, trouble_with
from taxarbor.tables._table import (
    SMALL,
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
H5AD_LAYOUTS = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}


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


def read_h5ad(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an h5ad file: ``X``, with the names in ``obs`` and ``var``."""
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading h5ad", "h5py") from error
    damage = (TypeError, SystemError)  # the latter where h5py stumbles while it visits links
    refuse_endless(request, stream, request.text_columns)
    with request.reading("h5ad", *damage), h5py.File(stream, "r") as file:
        refuse_links(request, file)
        obs = _data_frame(request, file, "obs")
        columns = [name for name in obs if name not in ("__categories", obs.attrs["_index"])]
        refuse_absent(request, request.text_columns, columns, "column of obs")
        texts = {name: _h5ad_column(request, obs, name) for name in request.text_columns}
        row_names = _h5ad_column(request, obs, obs.attrs["_index"])
        feature_names = h5ad_features(request, file)
        X = as_floats(request, _matrix(request, file))
        for told, values in (("obs", row_names), *texts.items()):
            if len(values) != X.shape[0]:
                raise request.error(
                    f"has {counted(X.shape[0], 'row')}, and {len(values):,} in {told!r}"
                )
    X, names = selected(request, X, feature_names)
    refuse_infinite(request, X, names)
    ids = row_names if request.id_column is None else texts[request.id_column]
    labels = None if request.label_column is None else texts[request.label_column]
    return Table(X, names, ids, as_labels(labels), id_column=request.id_column)


def refuse_endless(request: Request, stream: IO[bytes], columns: Sequence[str] | None) -> None:
    """Refuse an h5ad file that HDF5 would hang or crash on."""
    told = trouble_with(stream, columns)
    if told is not None:
        raise request.error(f"is a damaged h5ad file: {told}")


def refuse_links(request: Request, file: Any) -> None:
    """Refuse an h5ad file with links to other files: they could bring in whatever we may read.

    This follows none and ends with the first such one; without these, soft links stay within
    the file.
    """
    import h5py

    foreign = file.visititems_links(
        lambda name, link: name if isinstance(link, h5py.ExternalLink) else None
    )
    if foreign is not None:
        told = f"links {foreign!r} to another file; that is not read, for safety"
        raise request.error(told)


def _data_frame(request: Request, file: Any, name: str) -> Any:
    """Return the group of ``obs`` or ``var``."""
    found = file.get(name)
    if found is None:
        raise request.error(f"is no h5ad file: it has no {name}")
    if "_index" not in found.attrs or not _is_group(found):
        raise request.error(
            f"was written by anndata before 0.7: {name} has no index of its own. Read it with "
            "a newer anndata and write it again"
        )
    return found


def h5ad_features(request: Request, file: Any) -> tuple[str, ...]:
    """Return the names of the columns of ``X``."""
    var = _data_frame(request, file, "var")
    return _made_unique(_h5ad_column(request, var, var.attrs["_index"]))


def h5ad_matrix(request: Request, file: Any) -> tuple[Any, str | None]:
    """Return where ``X`` is, an array or a group, and how it is sparse if it is a group."""
    found = file.get("X")
    if found is None:
        raise request.error("is an h5ad file without X")
    if not _is_group(found):
        return found, None
    return found, str(found.attrs.get("encoding-type"))


def _matrix(request: Request, file: Any) -> Any:
    """Return ``X`` as it is stored."""
    found, kind = h5ad_matrix(request, file)
    if kind is None:
        return _values(request, file, "X")
    if kind not in H5AD_LAYOUTS:
        told = f"holds X as {kind!r}; expected an array, {' or '.join(H5AD_LAYOUTS)}"
        raise request.error(told)
    parts = tuple(_values(request, found, part) for part in ("data", "indices", "indptr"))
    shape = tuple(int(length) for length in found.attrs["shape"])
    matrix: Any = H5AD_LAYOUTS[kind](parts, shape=shape)
    check_structure(matrix)
    return matrix


def _h5ad_column(request: Request, frame: Any, name: str) -> tuple[str, ...]:
    """Return a column of ``obs`` or ``var`` as text, empty where there is no value."""
    found = frame[name]
    if not _is_group(found):
        del found  # as it must be closed where its chunks are to be kept
        values = _values(request, frame, name)
        older = frame.get("__categories", {})  # anndata 0.7 kept the texts of codes there
        if name in older:
            return _decoded(_values(request, older, name), values)
        return _texts(values)
    if "codes" in found:
        codes = _values(request, found, "codes")
        return _decoded(_values(request, found, "categories"), codes)
    if "mask" in found:  # integers, booleans and text that may be missing
        texts = np.array(_texts(_values(request, found, "values")), dtype=object)
        texts[_values(request, found, "mask").astype(bool)] = ""
        return tuple(texts.tolist())
    raise request.error(f"holds {name!r} as {found.attrs.get('encoding-type')!r}: no text")


def _made_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that differ, by a number where they did not, as anndata makes them."""
    taken, found = set(names), []
    seen: Counter[str] = Counter()
    for name in names:
        unique = name
        while seen[name] and unique in taken:
            unique = f"{name}-{seen[name]}"
            seen[name] += 1
        seen[name] += not seen[name]
        taken.add(unique)
        found.append(unique)
    return tuple(found)


def _values(request: Request, group: Any, name: str) -> NDArray[Any]:
    """Return an array, with text decoded."""
    import h5py

    found = h5ad_array(request, group, name)
    refuse_excess(request, f"{found.name!r} of shape {found.shape}", found.nbytes)
    if h5py.check_string_dtype(found.dtype) is not None:
        return _read_texts(request, found)
    values: NDArray[Any] = found[()]
    return values


def _read_texts(request: Request, array: Any) -> NDArray[Any]:
    """Return an array of text; if lengths differ, many could be one text in the file."""
    import h5py

    if array.ndim != 1:
        raise ValueError(f"{array.name!r} has shape {array.shape}")
    array = kept_unpacked(array)
    texts, is_fixed = array.asstr(), h5py.check_string_dtype(array.dtype).length is not None
    most = math.inf if is_fixed else max(array.file.id.get_filesize(), SMALL)
    found, n_read = np.empty(len(array), dtype=object), 0
    for first in range(0, len(array), TEXTS):
        block = texts[first : first + TEXTS]
        n_read += sum(map(len, block))
        if n_read > most:
            told = f"texts in {array.name!r} that are longer than all of the file"
            raise request.error(f"is a damaged h5ad file: it has {told}")
        found[first : first + TEXTS] = block
    return found


def h5ad_array(request: Request, group: Any, name: str) -> Any:
    """Return an array that is in the file, not read yet."""
    import h5py

    found = group[name]
    if not isinstance(found, h5py.Dataset):
        raise request.error(f"is no h5ad file, or a damaged one: {found.name!r} is no array")
    if found.external or found.is_virtual:
        told = f"keeps {found.name!r} in another file; that is not read, for safety"
        raise request.error(told)
    told = f"{found.name!r} of shape {found.shape}"
    refuse_lies(request, told, found.nbytes, found.id.get_storage_size())
    return found


def _decoded(categories: NDArray[Any], codes: NDArray[Any]) -> tuple[str, ...]:
    """Return the category of each code; -1 stands for none."""
    texts = np.array([*_texts(categories), ""], dtype=object)
    if codes.dtype.kind not in "iu" or ((codes < -1) | (codes >= len(categories))).any():
        raise ValueError("a code stands for no category")
    return tuple(texts[codes].tolist())


def _texts(values: NDArray[Any]) -> tuple[str, ...]:
    if values.ndim != 1:
        raise ValueError(f"a column has shape {values.shape}")
    return as_texts(values.tolist())


def _is_group(node: Any) -> bool:
    import h5py

    return isinstance(node, h5py.Group)
