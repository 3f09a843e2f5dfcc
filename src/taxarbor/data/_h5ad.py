"""Tables in h5ad files, as single-cell tools write them.

The layout on disk is documented, and read here by hand: anndata 0.12 would hold pandas below
version 3 and bring zarr along, for what takes a few lines of h5py.
https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

from collections import Counter
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor.data._table import (
    Request,
    Table,
    as_floats,
    as_labels,
    as_texts,
    refuse_absent,
    refuse_gaps,
    selected,
)

LAYOUTS = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}


def read_h5ad(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an h5ad file: ``X``, with the names in ``obs`` and ``var``.

    Raises
    ------
    ImportError
        If h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError("reading h5ad needs h5py: pip install 'taxarbor[io]'") from error
    damage = (TypeError, SystemError)  # the latter where h5py stumbles while it visits links
    with request.reading("h5ad", *damage), h5py.File(stream, "r") as file:
        _refuse_foreign(request, file)
        obs, var = _data_frame(request, file, "obs"), _data_frame(request, file, "var")
        columns = [name for name in obs if name not in ("__categories", obs.attrs["_index"])]
        refuse_absent(request, request.text_columns, columns, "column of obs")
        texts = {name: _column(request, obs, name) for name in request.text_columns}
        row_names = _column(request, obs, obs.attrs["_index"])
        feature_names = _made_unique(_column(request, var, var.attrs["_index"]))
        X = as_floats(request, _matrix(request, file))
        for told, values in (("obs", row_names), *texts.items()):
            if len(values) != X.shape[0]:
                raise request.error(f"has {X.shape[0]} rows, and {len(values)} in {told!r}")
    X, names = selected(request, X, feature_names)
    refuse_gaps(request, X, names)
    ids = row_names if request.id_column is None else texts[request.id_column]
    labels = None if request.label_column is None else texts[request.label_column]
    return Table(X, names, ids, as_labels(labels))


def _refuse_foreign(request: Request, file: Any) -> None:
    """Refuse links to other files: they could bring in whatever the reader may read.

    This does not follow links. Without such ones, soft links stay within the file.
    """
    import h5py

    def foreign(name: str, link: Any) -> str | None:
        return name if isinstance(link, h5py.ExternalLink) else None

    found = file.visititems_links(foreign)  # which ends with the first that is not None
    if found is not None:
        raise request.error(f"links {found!r} to another file; that is not read, for safety")


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


def _matrix(request: Request, file: Any) -> Any:
    """Return ``X`` as it is stored."""
    found = file.get("X")
    if found is None:
        raise request.error("is an h5ad file without X")
    if not _is_group(found):
        return _values(request, file, "X")
    kind = str(found.attrs.get("encoding-type"))
    if kind not in LAYOUTS:
        raise request.error(f"holds X as {kind!r}; expected an array, {' or '.join(LAYOUTS)}")
    parts = tuple(_values(request, found, part) for part in ("data", "indices", "indptr"))
    shape = tuple(int(length) for length in found.attrs["shape"])
    matrix: Any = LAYOUTS[kind](parts, shape=shape)
    matrix.check_format(full_check=True)  # a wrong index would crash later
    return matrix


def _column(request: Request, frame: Any, name: str) -> tuple[str, ...]:
    """Return a column of ``obs`` or ``var`` as text, empty where there is no value."""
    found = frame[name]
    if not _is_group(found):
        values = _values(request, frame, name)
        older = frame.get("__categories", {})  # anndata 0.7 kept the texts of codes there
        return (
            _decoded(_values(request, older, name), values) if name in older else _texts(values)
        )
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

    found = group[name]
    if not isinstance(found, h5py.Dataset):
        raise request.error(f"is no h5ad file, or a damaged one: {found.name!r} is no array")
    if found.external or found.is_virtual:
        raise request.error(
            f"keeps {found.name!r} in another file; that is not read, for safety"
        )
    is_text = h5py.check_string_dtype(found.dtype) is not None
    values: NDArray[Any] = found.asstr()[()] if is_text else found[()]
    return values


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
