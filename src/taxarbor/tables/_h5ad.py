"""h5ad files, whole or part by part.

They are read with h5py, as their layout is documented: anndata 0.12 would hold pandas below
version 3 and bring zarr along, for a few lines of h5py.
https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import counted, missing_extra
from taxarbor.hierarchy._checks import check_structure
from taxarbor.tables._table import (
    Request,
    Table,
    as_floats,
    as_labels,
    as_texts,
    refuse_absent,
    refuse_infinite,
    selected,
)

LAYOUTS = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}
PARTS = ("data", "indices", "indptr")
DAMAGE = (TypeError, SystemError)
"""What h5py raises for damaged files, beside the usual errors."""


def read_h5ad(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an h5ad file: ``X``, with the names in ``obs`` and ``var``."""
    with _open(request, stream) as file:
        obs = _data_frame(request, file, "obs")
        columns = [name for name in obs if name not in ("__categories", obs.attrs["_index"])]
        refuse_absent(request, request.text_columns, columns, "column of obs")
        texts = {name: _column(request, obs, name) for name in request.text_columns}
        row_names = _column(request, obs, obs.attrs["_index"])
        feature_names = _feature_names(request, file)
        X = as_floats(request, _matrix(request, file))
        for name, values in (("obs", row_names), *texts.items()):
            if len(values) != X.shape[0]:
                n_rows = counted(X.shape[0], "row")
                raise request.error(f"has {n_rows}, and {len(values):,} in {name!r}")
    X, names = selected(request, X, feature_names)
    refuse_infinite(request, X, names)
    ids = row_names if request.id_column is None else texts[request.id_column]
    labels = None if request.label_column is None else texts[request.label_column]
    return Table(X, names, ids, as_labels(labels), id_column=request.id_column)


@contextmanager
def _open(request: Request, stream: IO[bytes]) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading h5ad", "h5py") from error
    with request.reading("h5ad", *DAMAGE), h5py.File(stream, "r") as file:
        yield file


def _data_frame(request: Request, file: Any, name: str) -> Any:
    """Return the group of ``obs`` or ``var``."""
    group = file.get(name)
    if group is None:
        raise request.error(f"is no h5ad file: it has no {name}")
    if "_index" not in group.attrs or not _is_group(group):
        raise request.error(
            f"was written by anndata before 0.7: {name} has no index of its own. Read it with "
            "a newer anndata and write it again"
        )
    return group


def _feature_names(request: Request, file: Any) -> tuple[str, ...]:
    """Return the names of the columns of ``X``, made unique by a number as anndata does."""
    var = _data_frame(request, file, "var")
    names = _column(request, var, var.attrs["_index"])
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
    return tuple(result)


def _locate_matrix(request: Request, file: Any) -> tuple[Any, str | None]:
    """Return the array or group ``X``, and the sparse layout if it is a group."""
    X = file.get("X")
    if X is None:
        raise request.error("is an h5ad file without X")
    return X, str(X.attrs.get("encoding-type")) if _is_group(X) else None


def _matrix(request: Request, file: Any) -> Any:
    """Return ``X`` as it is stored."""
    X, layout = _locate_matrix(request, file)
    if layout is None:
        return _values(request, file, "X")
    if layout not in LAYOUTS:
        expected = f"expected an array, {' or '.join(LAYOUTS)}"
        raise request.error(f"holds X as {layout!r}; {expected}")
    parts = tuple(_values(request, X, part) for part in PARTS)
    shape = tuple(int(length) for length in X.attrs["shape"])
    matrix: Any = LAYOUTS[layout](parts, shape=shape)
    check_structure(matrix)
    return matrix


def _column(request: Request, frame: Any, name: str) -> tuple[str, ...]:
    """Return a column of ``obs`` or ``var`` as text, empty where a value is missing."""
    column = frame[name]
    if not _is_group(column):
        values = _values(request, frame, name)
        categories = frame.get("__categories", {})  # where anndata 0.7 kept them
        if name in categories:
            return _decode(_values(request, categories, name), values)
        return _texts(values)
    if "codes" in column:
        codes = _values(request, column, "codes")
        return _decode(_values(request, column, "categories"), codes)
    if "mask" in column:  # nullable integers, booleans and text
        texts = np.array(_texts(_values(request, column, "values")), dtype=object)
        texts[_values(request, column, "mask").astype(bool)] = ""
        return tuple(texts.tolist())
    raise request.error(f"holds {name!r} as {column.attrs.get('encoding-type')!r}: no text")


def _values(request: Request, group: Any, name: str) -> NDArray[Any]:
    """Return an array, with text decoded."""
    import h5py

    array = _array(request, group, name)
    is_text = h5py.check_string_dtype(array.dtype) is not None
    values: NDArray[Any] = array.asstr()[()] if is_text else array[()]
    return values


def _array(request: Request, group: Any, name: str) -> Any:
    """Return an array that is in the file, not read yet."""
    import h5py

    array = group[name]
    if not isinstance(array, h5py.Dataset):
        raise request.error(f"is no h5ad file, or a damaged one: {array.name!r} is no array")
    return array


def _decode(categories: NDArray[Any], codes: NDArray[Any]) -> tuple[str, ...]:
    """Return the category of each code, empty for -1."""
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
