"""Tables from files of all formats, or from standard input. Nothing is unpickled."""

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, BinaryIO, TypeAlias, cast, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import FileFormatError, InputError, InputTypeError, require
from taxarbor._frames import as_canonical, float_type, make_unique
from taxarbor._types import TableLike
from taxarbor.rows import check_structure
from taxarbor.sources._matrices import get_frame, open_group, open_h5ad, open_npy, read_column
from taxarbor.sources._parquet import INDEX, open_parquet, to_pandas
from taxarbor.sources.file_checks import (
    as_texts,
    base_name,
    check_matrix,
    check_present,
    check_unique,
    find_columns,
    list_names,
    reading,
)
from taxarbor.tables._column_checks import find_row_names
from taxarbor.tables._read_cells import (
    Content,
    Request,
    read_csv,
    read_json,
    read_json_lines,
    read_sheet,
)

Texts: TypeAlias = Mapping[str, tuple[str, ...]]  # columns that name or label the rows
Source: TypeAlias = str | os.PathLike[str] | BinaryIO

STDIN = "-"
TEXT_FORMATS = frozenset({"csv", "tsv", "txt", "json", "jsonl"})
SIGNATURES = {
    b"%pdf": "a PDF document",
    **dict.fromkeys([b"\x89png", b"\xff\xd8\xff"], "an image"),
    b"pk\x03\x04": "a zip archive or an Excel file",
    b"\xd0\xcf\x11\xe0": "an Excel file of before 2007, or one with a password",
    b"\x1f\x8b": "a gzip archive",
    b"\x89hdf": "an HDF5 file",
    b"\x93numpy": "a npy file",
    **dict.fromkeys([b"<!doctype", b"<html", b"<?xml"], "a web page or XML"),
}
"""First bytes of files, in small letters."""
COMPRESSED: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    r"""The rows of a file.

    Attributes
    ----------
    X : data frame, array or CSR array of shape (n_rows, n_columns)
        Of npy, npz and h5ad float32 or float64, NaN where a value is missing, in C order where
        dense; of other formats a pandas data frame: numbers, booleans, dates, categories and
        text, with missing values.
    feature_names : tuple of str or None
        Names of the columns of ``X``, where the file has any.
    row_names : tuple of str or None
        The id column, or the index of the file, where there is one.
    labels : array of str of shape (n_rows,) or None
        The label column; empty where a label is missing.
    notes : tuple of str
        Remarks on the reading of the file.
    id_column : str or None
        The column with the names of the rows: the requested one, or the one detected.

    Examples
    --------
    >>> import io
    >>> from taxarbor.tables import read_table
    >>> read_table(io.BytesIO(b"a,b\n1,2\n3,")).X["b"].tolist()
    [2.0, nan]
    """

    X: TableLike
    feature_names: tuple[str, ...] | None
    row_names: tuple[str, ...] | None = None
    labels: NDArray[np.str_] | None = None
    notes: tuple[str, ...] = ()
    id_column: str | None = None


def read_table(
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | tuple[str, ...] | None = None,
    label_column: str | None = None,
    format: str | None = None,
    sheet: str | int | None = None,
    layer: str | None = None,
    features: Sequence[str] = (),
) -> Table:
    r"""Return the columns of a file, with the names and labels of the rows.

    Of all formats but npy, npz and h5ad, all columns are returned as a data frame, with missing
    values; a :class:`~taxarbor.TableEncoder` decides their types, and which are used. If
    exactly one column identifies the rows, its values become the row names: text that is
    different in every row, or numbers that look like an identifier.

    The encoding and the separator of a text, and titles above a header, are recognised; what
    was guessed is among the notes of the table.

    Parameters
    ----------
    source : path, binary stream or "-"
        The file; ``"-"`` is standard input. A stream cannot be parquet, npy, npz or h5ad.
    columns : sequence of str, optional
        Use these columns, in this order, and no others.
    id_column, label_column : str or, of ids, tuple of str, optional
        The columns with the names and the labels of the rows. In an h5ad file they are in
        ``obs``, in an npz file they are arrays. Of a tuple, the first that a data frame has
        names the rows, and none is detected.
    format : str, optional
        One of csv, tsv, txt, xlsx, ods, json, jsonl, feather, arrow, orc, parquet, npy, npz and
        h5ad; by default the extension of the file name, or csv for a stream. All but the last
        four may be compressed: as gz, bz2 or xz, or as the only table in a zip archive.
    sheet : str or int, optional
        The name of a sheet in xlsx or ods, or its position from 0; by default the first that
        has more than one column.
    layer : str, optional
        The layer of an h5ad file to read instead of ``X``; ``raw/X`` is the matrix of ``raw``.
    features : sequence of str, optional
        Columns that never become the names of the rows.

    Raises
    ------
    FileFormatError
        If the file is damaged or of another format, has no rows, or lacks a requested column.
    OSError
        If it cannot be opened.
    ImportError
        If the format needs a library that is not installed.

    Examples
    --------
    >>> import io
    >>> table = read_table(io.BytesIO(b"name,height,legs\nowl,0.3,2\nfox,0.4,4"))
    >>> table.feature_names, table.row_names
    (('height', 'legs'), ('owl', 'fox'))
    """
    likely, id_column = (id_column, None) if isinstance(id_column, tuple) else (None, id_column)
    names = None if columns is None else _check_names(columns, id_column, label_column)
    is_path = isinstance(source, str | os.PathLike) and source != STDIN
    path = cast("str | os.PathLike[str]", source)
    stream_name = "standard input" if source == STDIN else getattr(source, "name", "the stream")
    title = base_name(path) if is_path else str(stream_name)
    used = frozenset((*features, *(names or ())))
    request = Request(title, names, id_column, label_column, used, sheet, layer or "", likely)
    format = format or (_find_format(title) if is_path else "csv")
    if format not in FORMATS:
        expected = ", ".join(STREAM_READERS | PATH_READERS)
        raise InputError(f"must be one of {expected}; got {format!r}", "format")
    if sheet is not None and format not in {*SHEETS, "zip"}:
        raise InputError(f"is for {' and '.join(SHEETS)}; {title} is {format}", "sheet")
    if layer and format != "h5ad":
        raise InputError(f"is for h5ad; {title} is {format}", "layer")
    if format in PATH_READERS and is_path:
        return PATH_READERS[format](path, request)
    if format in PATH_READERS or (format == "zip" and not is_path):
        raise InputError(f"must not be {format} for {title}: give the path", "format")
    if is_path:
        with _open(path) as stream:
            return _read_stream(stream, format, request)
    content = cast("BinaryIO", sys.stdin.buffer if source == STDIN else source).read()
    if not isinstance(content, bytes):
        raise InputTypeError("must be a path, or a stream in binary mode", "source")
    return _read_stream(io.BytesIO(content), format, request)


def _read_stream(stream: IO[bytes], format: str, request: Request) -> Table:
    """Return the table in a stream, or in the only member of a zip archive that is one."""
    if format != "zip":
        with require(f"reading {format}", "pandas"):
            import pandas  # noqa: F401
        with reading(request.name, format):
            _check_content(request.name, stream.read(1 << 16), format)
            stream.seek(0)
            content = STREAM_READERS[format](stream, request)
        return _make_frame_table(request, content)
    with reading(request.name, "zip"), zipfile.ZipFile(stream) as archive:
        names = [name for name in archive.namelist() if not HIDDEN.search(name)]
        found = [name for name in names if _guess_format(name) in STREAM_READERS]
        found = [name for name in found if not name.lower().endswith(".txt")] or found
        if len(found) != 1:
            problem = "more than one table" if found else "no table"
            listing = list_names(found or names) or "nothing"
            raise FileFormatError(f"{request.name} has {problem} in it: {listing}; unpack it")
        with archive.open(found[0]) as member:
            return _read_stream(member, _guess_format(found[0]) or "", request)


def _check_names(columns: Sequence[str], *roles: str | None) -> tuple[str, ...]:
    """Return the requested columns, none of which may be the id or label column."""
    if isinstance(columns, str):
        raise InputTypeError(f"must be a sequence of names, got {columns!r}", "columns")
    names = tuple(columns)
    if taken := {*roles} & {*names}:
        raise InputError(f"has {taken.pop()!r}, which is the id or label column", "columns")
    if not names or len({*names}) < len(names):
        raise InputError(f"must be names, each once; got {list(names)}", "columns")
    return names


def _find_format(name: str) -> str:
    """Return the format of a file name's extension."""
    stem, extension = os.path.splitext(name.lower())
    format = _guess_format(stem if extension in COMPRESSED else name)
    if format in STREAM_READERS or (format and extension not in COMPRESSED):
        return format
    expected = ", ".join([*STREAM_READERS, "csv.gz", "zip", *PATH_READERS])
    raise InputError(f"must be given for {name}, which ends in none of {expected}", "format")


def _guess_format(name: str) -> str | None:
    extension = name.lower().rpartition(".")[2]
    format = ALIASES.get(extension, extension)
    return format if format in FORMATS else None


def _open(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file, compressed or not; a pipe is read into memory, to go back to its start."""
    extension = os.path.splitext(os.fspath(path).lower())[1]
    if extension in COMPRESSED:
        return cast("IO[bytes]", COMPRESSED[extension](path))
    stream = open(path, "rb")  # noqa: SIM115
    if stream.seekable():
        return stream
    with stream:
        return io.BytesIO(stream.read())


def _check_content(title: str, start: bytes, format: str) -> None:
    """Raise FileFormatError if the first bytes of a file show that it is of another format."""
    if not start:
        raise FileFormatError(f"{title} is empty")
    plain = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    found = next((what for mark, what in SIGNATURES.items() if plain.startswith(mark)), None)
    is_utf16 = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if found is None and format in TEXT_FORMATS and b"\0" in start and not is_utf16:
        found = "binary data"
    is_sheet = format in SHEETS and start.startswith((b"PK", b"\xd0\xcf"))
    if found is not None and not is_sheet:
        raise FileFormatError(f"{title} is {found}: save it as {format}, or give its format")


# Formats


def _read_parquet(path: str | os.PathLike[str], request: Request) -> Table:
    reader = open_parquet(path)
    names = reader.files[0].schema.names
    check_present(request.name, request.requested, names)
    with reading(request.name, "parquet"):
        content = _split_arrow(replace(reader, names=names).read_all(), request)
    return _make_frame_table(request, content)


def _read_arrow(stream: IO[bytes], request: Request) -> Content:
    with require(f"reading {request.name}", "pyarrow"):
        from pyarrow import feather, ipc, orc
    start = stream.read(6)
    stream.seek(0)
    if start.startswith(b"ORC"):
        table = orc.read_table(stream)
    elif start.startswith((b"ARROW1", b"FEA1")):
        table = feather.read_table(stream)
    else:
        table = ipc.open_stream(stream).read_all()
    table.validate(full=True)  # text that is not UTF-8, codes without values
    names = make_unique(table.column_names)
    check_present(request.name, request.requested, names)
    return _split_arrow(table.rename_columns(names), request)


def _split_arrow(table: Any, request: Request) -> Content:
    """Return the columns of a table of Arrow; those that are names and labels apart."""
    names, roles = table.column_names, request.text_columns
    index = next((name for name in names if INDEX.fullmatch(name) and name not in roles), None)
    as_text = [*roles, *([] if index is None else [index])]
    frame = to_pandas(table.drop_columns(as_text))
    for name in as_text:
        frame[name] = as_texts(table.column(name).to_pylist())
    return Content(frame, index)


def _read_npy(path: str | os.PathLike[str], request: Request) -> Table:
    if request.text_columns:
        names = list_names(request.text_columns)
        raise FileFormatError(f"{request.name} is an array, so it has no column {names}")
    reader = open_npy(path)
    return _make_matrix_table(request, reader.read(0, reader.shape[0]), None, {}, "")


def _read_npz(path: str | os.PathLike[str], request: Request) -> Table:
    """Return ``X``, the only array with two axes, or a sparse matrix.

    ``feature_names`` and ``row_names`` are used where there are such arrays; ``class_names``
    are the names of integer labels.
    """
    wanted = {"X", "feature_names", "row_names", "class_names", *request.text_columns}
    with (
        open(path, "rb") as stream,
        reading(request.name, "npz"),
        np.load(stream, allow_pickle=False) as file,
    ):
        if "X" not in file and {"format", "shape", "data"} <= {*file}:  # by save_npz
            stream.seek(0)
            X, arrays = sparse.load_npz(stream), {}
            check_structure(X)  # compiled code that follows a wrong index ends the process
        else:
            arrays = {key: file[key] for key in file if key in wanted or "X" not in file}
            matrices = [key for key, array in arrays.items() if array.ndim == 2]
            if "X" not in file and len(matrices) != 1:
                message = f"has no array X, nor one matrix among {list_names(file.files)}"
                raise FileFormatError(f"{request.name} {message}")
            X = arrays.pop("X" if "X" in file else matrices[0])
        check_present(request.name, request.text_columns, [*arrays], "array")
        label = request.label_column or ""
        if "class_names" in arrays and label in arrays and arrays[label].dtype.kind in "iu":
            arrays[label] = np.take(arrays["class_names"], arrays[label])
        texts = {
            key: as_texts(array.astype(str) if array.dtype.kind == "S" else array.tolist())
            for key, array in arrays.items()
            if key in wanted and array.ndim == 1
        }
    check_matrix(request.name, X.dtype, X.shape)
    names = texts.get("feature_names")
    roles = {key: texts[key] for key in ("row_names", *request.text_columns) if key in texts}
    return _make_matrix_table(request, X, names, roles, "row_names")


def _read_h5ad(path: str | os.PathLike[str], request: Request) -> Table:
    """Return ``X``, with the names in ``obs`` and ``var``."""
    matrix = open_h5ad(path, in_blocks=False, layer=request.layer)
    with open_group(matrix.file) as group:
        obs = get_frame(matrix.file, group, "obs")
        index = obs.attrs["_index"]
        columns = [name for name in obs if name != index]
        check_present(request.name, request.text_columns, columns, "column of obs")
        texts = {
            name: read_column(matrix.file, obs, name) for name in (index, *request.text_columns)
        }
    X = matrix.read(0, matrix.shape[0])
    return _make_matrix_table(request, X, matrix.names, texts, index)


SHEETS = ("xlsx", "ods")
STREAM_READERS: dict[str, Callable[[IO[bytes], Request], Content]] = {
    "csv": partial(read_csv, separator=","),
    "tsv": partial(read_csv, separator="\t"),
    "txt": read_csv,
    **dict.fromkeys(SHEETS, read_sheet),
    "json": read_json,
    "jsonl": read_json_lines,
    **dict.fromkeys(["feather", "arrow", "orc"], _read_arrow),
}
"""Formats that may be compressed, or come from a stream."""
PATH_READERS: dict[str, Callable[[str | os.PathLike[str], Request], Table]] = {
    "parquet": _read_parquet,
    "npy": _read_npy,
    "npz": _read_npz,
    "h5ad": _read_h5ad,
}
ALIASES = {
    **{"tab": "tsv", "ndjson": "jsonl", "xls": "xlsx", "xlsm": "xlsx", "ipc": "arrow"},
    **{"pq": "parquet", "parq": "parquet"},
}
FORMATS = {*STREAM_READERS, *PATH_READERS, "zip"}
HIDDEN = re.compile(r"(^|/)([._]|$)|/$|^__MACOSX/")


def _make_frame_table(request: Request, content: Content) -> Table:
    """Return the requested columns of a frame of pandas; one column may name the rows."""
    frame, index, notes = content
    if not len(frame):
        raise FileFormatError(f"{request.name} has no rows")
    has_names = all(isinstance(name, str) for name in frame)
    ids = request.id_column or index
    roles = {*request.text_columns, *([] if index is None else [index])}
    texts = {name: as_texts(frame.pop(name)) for name in roles}
    if ids is None and request.likely_ids is not None:
        ids = next((name for name in request.likely_ids if name in frame), None)
    elif ids is None and has_names and frame.shape[1] > 1:
        candidates = [
            name
            for name, dtype in frame.dtypes.items()
            if name not in request.features and dtype.kind not in "fb"
        ]
        ids = find_row_names(nw.from_native(frame, eager_only=True), candidates)
    if ids is not None and ids not in texts:
        texts[ids] = as_texts(frame.pop(ids))
    if request.columns is not None:
        frame = frame[[*request.columns]]
    if not frame.shape[1]:
        raise FileFormatError(f"{request.name} has no column to use")
    return Table(
        frame,
        tuple(frame.columns) if has_names else None,
        None if ids is None else texts[ids],
        _find_labels(request, texts),
        notes,
        id_column=None if ids == index else ids,
    )


def _find_labels(request: Request, texts: Texts) -> NDArray[np.str_] | None:
    labels = texts.get(request.label_column or "")
    return None if labels is None else np.array(labels, dtype=np.str_)


def _make_matrix_table(
    request: Request, X: Any, names: Sequence[str] | None, texts: Texts, index: str
) -> Table:
    """Return the requested columns of a matrix as floats, or raise FileFormatError."""
    is_sparse: bool = sparse.issparse(X)
    by_columns = {} if names is None else {"feature_names": names}
    for expected, named in zip(X.shape, (texts, by_columns), strict=True):
        for key, values in named.items():
            if len(values) != expected:
                message = f"has {len(values):,} values in {key!r}; expected {expected:,}"
                raise FileFormatError(f"{request.name} {message}")
    check_unique(request.name, names or ())
    if request.columns is not None:
        chosen = find_columns(request.name, request.columns, names)
        X, names = (X.tocsr() if is_sparse else X)[:, chosen], request.columns
    may_be_bits = X.dtype == np.uint8 and not is_sparse
    dtype = X.dtype if may_be_bits else float_type(X)
    with np.errstate(over="ignore"):  # an overflow is infinite, which a fit refuses
        X = as_canonical(X.astype(dtype)) if is_sparse else np.ascontiguousarray(X, dtype=dtype)
    return Table(
        X,
        None if names is None else tuple(names),
        texts.get(request.id_column or index),
        _find_labels(request, texts),
        id_column=request.id_column,
    )
