"""Files of h5ad, whole or part by part.

They are read by hand, as their layout is documented: anndata 0.12 would hold pandas below
version 3 and bring zarr along, for a few lines of h5py.
https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import InputError, counted, missing_extra
from taxarbor.hierarchy._checks import check_structure
from taxarbor.tables._h5ad_walk import TEXTS, kept_unpacked, trouble_with
from taxarbor.tables._scan import File, Stream, edges, told_rows
from taxarbor.tables._table import (
    SMALL,
    Request,
    Table,
    as_floats,
    as_labels,
    as_texts,
    refuse_absent,
    refuse_excess,
    refuse_infinite,
    refuse_lies,
    refuse_no_table,
    refuse_repeated,
    refuse_size,
    selected,
)

LAYOUTS = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}
PARTS = ("data", "indices", "indptr")
DAMAGE = (TypeError, SystemError)
"""What h5py raises, beside the usual, when it stumbles over damage."""


def read_h5ad(stream: IO[bytes], request: Request) -> Table:
    """Return the table in an h5ad file: ``X``, with the names in ``obs`` and ``var``."""
    with _opened(request, stream, request.text_columns) as file:
        obs = _data_frame(request, file, "obs")
        columns = [name for name in obs if name not in ("__categories", obs.attrs["_index"])]
        refuse_absent(request, request.text_columns, columns, "column of obs")
        texts = {name: _column(request, obs, name) for name in request.text_columns}
        row_names = _column(request, obs, obs.attrs["_index"])
        feature_names = _feature_names(request, file)
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


@contextmanager
def _opened(
    request: Request, stream: IO[bytes], columns: Sequence[str] | None
) -> Iterator[Any]:
    """Open an h5ad file, of whose ``obs`` these columns will be read; nothing if None.

    One is refused that HDF5 would hang or crash on, or that has links to other files: they
    could bring in whatever we may read. Looking for these follows none and ends with the first
    such one; without them, soft links stay within the file.
    """
    try:
        import h5py
    except ImportError as error:
        raise missing_extra("reading h5ad", "h5py") from error
    told = trouble_with(stream, columns)
    if told is not None:
        raise request.error(f"is a damaged h5ad file: {told}")
    with request.reading("h5ad", *DAMAGE), h5py.File(stream, "r") as file:
        foreign = file.visititems_links(
            lambda name, link: name if isinstance(link, h5py.ExternalLink) else None
        )
        if foreign is not None:
            told = f"links {foreign!r} to another file; that is not read, for safety"
            raise request.error(told)
        yield file


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


def _feature_names(request: Request, file: Any) -> tuple[str, ...]:
    """Return the names of the columns of ``X``, by a number more where they are the same.

    So does anndata.
    """
    var = _data_frame(request, file, "var")
    names = _column(request, var, var.attrs["_index"])
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


def _where_matrix(request: Request, file: Any) -> tuple[Any, str | None]:
    """Return where ``X`` is, an array or a group, and how it is sparse if it is a group."""
    found = file.get("X")
    if found is None:
        raise request.error("is an h5ad file without X")
    return found, str(found.attrs.get("encoding-type")) if _is_group(found) else None


def _matrix(request: Request, file: Any) -> Any:
    """Return ``X`` as it is stored."""
    found, kind = _where_matrix(request, file)
    if kind is None:
        return _values(request, file, "X")
    if kind not in LAYOUTS:
        told = f"holds X as {kind!r}; expected an array, {' or '.join(LAYOUTS)}"
        raise request.error(told)
    parts = tuple(_values(request, found, part) for part in PARTS)
    shape = tuple(int(length) for length in found.attrs["shape"])
    matrix: Any = LAYOUTS[kind](parts, shape=shape)
    check_structure(matrix)
    return matrix


def _column(request: Request, frame: Any, name: str) -> tuple[str, ...]:
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


def _values(request: Request, group: Any, name: str) -> NDArray[Any]:
    """Return an array, with text decoded."""
    import h5py

    found = _array(request, group, name)
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


def _array(request: Request, group: Any, name: str) -> Any:
    """Return an array that is in the file, not read yet."""
    import h5py

    found = group[name]
    if not isinstance(found, h5py.Dataset):
        raise request.error(f"is no h5ad file, or a damaged one: {found.name!r} is no array")
    if found.external or found.is_virtual:
        told = f"keeps {found.name!r} in another file; that is not read, for safety"
        raise request.error(told)
    if found.dtype.hasobject and h5py.check_string_dtype(found.dtype) is None:
        # Arrays of any length, which HDF5 may come to no end with, or references.
        raise request.error(f"has no numbers or texts in {found.name!r}, but other objects")
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
            self.file.reading("h5ad", rows, *DAMAGE, InputError),
            h5py.File(self.file.path, "r") as file,
        ):
            X = file["X"]
            if not self.is_sparse:
                return np.ascontiguousarray(X[first:last])
            ends = X["indptr"][first : last + 1]
            begin, end = int(ends[0]), int(ends[-1])
            cells = X["data"][begin:end], X["indices"][begin:end], ends - begin
            found: Any = sparse.csr_array(cells, shape=self.shape)
            check_structure(found)
        return found

    def rows(self, first: int, n_rows: int) -> "H5adPart":
        """Return some of the rows."""
        return replace(self, first=self.first + first, shape=(n_rows, self.shape[1]))


def scan_h5ad(path: str | os.PathLike[str]) -> Stream:
    """Return the parts of an h5ad file whose ``X`` is an array or a CSR matrix."""
    source = File.of(path)
    request = source.request
    with open(source.path, "rb") as stream, _opened(request, stream, None) as file:
        names = _feature_names(request, file)
        X, kind = _where_matrix(request, file)
        if kind is not None and kind != "csr_matrix":
            raise request.error(
                f"holds X as {kind!r}, which cannot be read by rows; write it as CSR: "
                "adata.X = adata.X.tocsr(), then adata.write_h5ad(...)"
            )
        unit = 1
        if kind is None:
            cells = _array(request, file, "X")
            shape, n_cells = cells.shape, cells.shape[-1]
            unit = 1 if cells.chunks is None else cells.chunks[0]
        else:
            shape = tuple(int(length) for length in X.attrs["shape"])
            cells, _, ends = (_array(request, X, part) for part in PARTS)
            if len(shape) == 2:
                refuse_size(request, shape, len(cells))
                if len(ends) != shape[0] + 1:
                    told = f"{len(ends):,} ends of rows for {shape[0]:,} rows"
                    raise request.error(f"is a damaged h5ad file: X has {told}")
            n_cells = len(cells) / max(shape[0], 1)
        dtype = cells.dtype
    refuse_no_table(request, dtype, shape)
    if len(names) != shape[1]:
        raise request.error(f"names {len(names):,} columns and has {shape[1]:,}")
    refuse_repeated(request, names)
    whole = H5adPart(source, 0, shape, kind is not None)
    bounds = edges(shape[0], n_cells, unit)
    return Stream.of(source.name, bounds, whole.rows, [*names], dtype)
