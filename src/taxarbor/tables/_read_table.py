"""Tables from files of all formats, or from standard input. Nothing is unpickled."""

import gzip
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import FileFormatError, InputError, InputTypeError, counted
from taxarbor.rows._structure import check_structure
from taxarbor.sources._file_checks import as_texts, check_matrix, check_present, list_names
from taxarbor.sources._matrices import get_frame, open_group, open_h5ad, open_npy, read_column
from taxarbor.sources._parquet import open_parquet, to_pandas
from taxarbor.tables._read_csv import read_csv
from taxarbor.tables._request import (
    Request,
    Table,
    as_labels,
    by_position,
    check_finite,
    make_frame_table,
    make_table,
)

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

INDEX = re.compile(r"__index_level_\d+__")
"""Name that pandas gives an index without a name in a parquet file."""
SPARSE_KEYS = {"format", "shape", "data"}
"""Arrays that :func:`scipy.sparse.save_npz` writes in every layout."""
SPARSE_PARTS = SPARSE_KEYS | {"indices", "indptr", "row", "col", "_is_array"}
LABELS = ("y", "labels")
NAMES = ("feature_names", "row_names", "class_names")

BY_PATH = ("npy", "parquet", "h5ad")
"""The formats that are read from a path; a stream of one is written to a temporary file."""
TEXT_FORMATS = ("csv", "tsv", "mtx")
"""The formats that may be gzipped; the others are compressed already."""
MAGIC = {
    **{b"PAR1": "parquet", b"\x93NUMPY": "npy", b"PK": "npz", b"\x89HDF": "h5ad"},
    b"%%MatrixMarket": "mtx",
}
SPREADSHEETS = ("xlsx", "xlsm", "xlsb", "xls", "ods")
GZIP = b"\x1f\x8b"
STDIN = "-"


def read_table(
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    format: str | None = None,
) -> Table:
    r"""Return the rows in a file.

    For csv, tsv and parquet, all columns are returned as a data frame, with missing values; a
    :class:`~taxarbor.TableEncoder` decides their types, and which are used. If exactly one
    column identifies the rows, its values become the row names: text that is different in
    every row, or numbers that look like an identifier.

    Parameters
    ----------
    source : path, binary stream or "-"
        The file; ``"-"`` is standard input.
    columns : sequence of str, optional
        Use these columns, in this order, and no others, even if one looks like an identifier.
    id_column, label_column : str, optional
        The columns with the names and the labels of the rows. In an h5ad file they are in
        ``obs``, in an npz file they are arrays.
    format : {"csv", "tsv", "parquet", "npy", "npz", "mtx", "h5ad"}, optional
        By default the extension of the file name, where csv, tsv and mtx may be followed by
        gz; without a name, the format is detected from the first bytes.

    Returns
    -------
    Table
        The columns, names, labels, and which columns were left out.

    Raises
    ------
    FileFormatError
        If the file is damaged or of an unknown format, lacks a requested column, or has
        infinite cells or a few words in a column of numbers.
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
    names = None if columns is None else _check_names(columns, id_column, label_column)
    request = Request(_describe(source), names, id_column, label_column)
    if format is not None and format not in READERS:
        raise InputError(f"must be one of {', '.join(READERS)}; got {format!r}", "format")
    with _open(source, request) as stream:
        with request.reading("gz"):
            format = format or _format_by_name(source, request) or _format_by_content(stream)
            plain = _decompress(stream, format, request)
        if format not in BY_PATH:
            return READERS[format](plain, request)
        if isinstance(source, str | os.PathLike) and Path(source).is_file():
            return READERS[format](source, request)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            with path.open("wb") as file:
                shutil.copyfileobj(stream, file)
            return READERS[format](path, request)


def _check_names(columns: Sequence[str], *roles: str | None) -> tuple[str, ...]:
    """Return the requested columns, none of which may be the id or label column."""
    if isinstance(columns, str):
        raise InputTypeError(
            f"must be a sequence of names, got the text {columns!r}", "columns"
        )
    names = tuple(columns)
    taken = {*roles} & {*names}
    if taken:
        raise InputError(f"has {taken.pop()!r}, which is the id or label column", "columns")
    if not names or len({*names}) < len(names):
        raise InputError(f"must be names, each once; got {list(names)}", "columns")
    return names


def _describe(source: Source) -> str:
    """Return a name of the source that fits in a line."""
    if isinstance(source, str | os.PathLike):
        path = Path(source).name or str(source)  # which a dot has no last part of
        return "standard input" if source == STDIN else " ".join(path.split())
    given = getattr(source, "name", None)  # which an open file has
    return Path(given).name if isinstance(given, str) else "the stream"


@contextmanager
def _open(source: Source, request: Request) -> Iterator[IO[bytes]]:
    """Open a path, or take a stream as it is; the result is seekable."""
    if source == STDIN:
        yield _seekable(sys.stdin.buffer)
    elif isinstance(source, str | os.PathLike):
        if Path(source).is_dir():
            raise request.error("is a folder; give a file in it")
        with Path(source).open("rb") as stream:
            yield _seekable(stream)
    else:
        if not isinstance(source.read(0), bytes):
            raise InputTypeError("the stream must be open in binary mode")
        yield _seekable(source)


def _seekable(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream; the rest of it in memory if it is a pipe, or has been read from."""
    if stream.seekable() and stream.tell() == 0:
        return stream
    return io.BytesIO(stream.read())


def _format_by_name(source: Source, request: Request) -> str | None:
    """Return the format of a file name's extension; None for pipes, which may lack one."""
    if not isinstance(source, str | os.PathLike) or source == STDIN:
        return None
    extension = Path(source).name.lower().removesuffix(".gz").rpartition(".")[2]
    if extension in READERS:
        return extension
    if not Path(source).is_file():
        return None
    if extension in SPREADSHEETS:
        raise request.error("is a spreadsheet, which is not supported; save the sheet as csv")
    problem = f"must be given for {request.name}, whose extension is none of these"
    raise FileFormatError(f"{problem}: {', '.join(READERS)}", "format")


def _format_by_content(stream: IO[bytes]) -> str:
    """Detect the format from the first bytes; text is csv, whatever the separator."""
    head = stream.read(16)
    stream.seek(0)
    if head.startswith(GZIP):
        with gzip.GzipFile(fileobj=stream) as unpacked:
            head = unpacked.read(16)
        stream.seek(0)
    return next((MAGIC[start] for start in MAGIC if head.startswith(start)), "csv")


def _decompress(stream: IO[bytes], format: str, request: Request) -> IO[bytes]:
    is_gzipped = stream.read(2) == GZIP
    stream.seek(0)
    if not is_gzipped:
        return stream
    if format not in TEXT_FORMATS:
        raise request.error("is gzipped; decompress it first")
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))


# Formats


def read_parquet(path: str | os.PathLike[str], request: Request) -> Table:
    """Return the table in a parquet file."""
    reader = open_parquet(path, name=request.name)
    names = reader.files[0].schema.names
    check_present(request.name, request.text_columns, names)
    index = next((name for name in names if INDEX.fullmatch(name)), None)
    table = replace(reader, names=names).read_all()
    as_text = {*request.text_columns} | ({index} if index is not None else set())
    texts = {name: as_texts(table.column(name).to_pylist()) for name in as_text}
    with request.reading("parquet"):
        frame = to_pandas(table.drop_columns([*request.text_columns]))
    for name in frame.columns:
        check_finite(request, name, frame[name].to_numpy(), by_position)
    return make_frame_table(request, frame, texts, index)


def read_npy(path: str | os.PathLike[str], request: Request) -> Table:
    """Return the table in an npy file: one array with two axes."""
    reader = open_npy(path, request.name)
    return _make_unnamed(request, reader.read(0, reader.n_rows))


def read_h5ad(path: str | os.PathLike[str], request: Request) -> Table:
    """Return the table in an h5ad file: ``X``, with the names in ``obs`` and ``var``."""
    matrix = open_h5ad(path, name=request.name, in_blocks=False)
    n_rows = matrix.n_rows
    with open_group(matrix.file) as group:
        obs = get_frame(matrix.file, group, "obs")
        index = obs.attrs["_index"]
        columns = [name for name in obs if name != index]
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
        make_table(request, matrix.read(0, n_rows), matrix.names),
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
    with request.reading("npz"), np.load(stream, allow_pickle=False) as file:
        if "X" not in file and SPARSE_KEYS.issubset(file.files):
            stream.seek(0)
            X, parts = sparse.load_npz(stream), SPARSE_PARTS
            check_structure(X)  # compiled code that follows a wrong index ends the process
        else:
            main = "X" if "X" in file else _find_matrix(request, file)
            X, parts = _load(request, file, main), {main}
        check_matrix(request.name, X.dtype, X.shape)
        others = [name for name in file.files if name not in parts]
        check_present(request.name, request.text_columns, others, "array")
        wanted = {*NAMES, *LABELS, *request.text_columns}
        arrays = {name: _load(request, file, name) for name in others if name in wanted}
    n_rows, n_columns = X.shape
    fitting = (name for name in LABELS if name in arrays and arrays[name].shape == (n_rows,))
    label = request.label_column or next(fitting, None)
    used = {*NAMES, *request.text_columns, label}
    return replace(
        make_table(request, X, _read_names(request, arrays, "feature_names", n_columns)),
        row_names=_read_names(request, arrays, request.id_column or "row_names", n_rows),
        labels=None
        if label is None
        else as_labels(_read_labels(request, arrays, label, n_rows)),
        dropped=tuple(
            (name, "an array beside the table") for name in others if name not in used
        ),
        id_column=request.id_column,
    )


def _find_matrix(request: Request, file: Any) -> str:
    """Return the name of the only array with two axes."""
    matrices = [name for name in file.files if _load(request, file, name).ndim == 2]
    if len(matrices) != 1:
        arrays = f"its arrays: {list_names(file.files) or 'none'}"
        raise request.error(f"has neither an array X nor a single one with two axes; {arrays}")
    return str(matrices[0])


def _load(request: Request, file: Any, name: str) -> NDArray[Any]:
    try:
        array: NDArray[Any] = file[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise request.error(
            f"holds {name!r} as Python objects, which are not loaded, for safety; save it "
            "as plain text or numbers, with .astype(str) or .astype(float)"
        ) from error
    return array


def _read_names(
    request: Request, arrays: Mapping[str, NDArray[Any]], name: str, length: int
) -> tuple[str, ...] | None:
    """Return an array of names, one for each row or column, where there is one."""
    names = arrays.get(name)
    if names is None:
        return None
    if names.shape != (length,):
        raise request.error(f"holds {name!r} of shape {names.shape}; expected ({length},)")
    return as_texts(names.astype(str) if names.dtype.kind == "S" else names.tolist())


def _read_labels(
    request: Request, arrays: Mapping[str, NDArray[Any]], name: str, n_rows: int
) -> tuple[str, ...] | None:
    """Return the label of each row; ``class_names`` are for ``y`` or ``labels``."""
    classes = arrays.get("class_names") if name in LABELS else None
    if classes is None:
        return _read_names(request, arrays, name, n_rows)
    y = arrays[name]
    is_index = y.shape == (n_rows,) and y.dtype.kind in "iu" and classes.ndim == 1
    if not is_index or not ((y >= 0) & (y < len(classes))).all():
        expected = f"so {name!r} must number them from 0 to {classes.size - 1}"
        raise request.error(f"holds class_names, {expected}")
    return as_texts(classes.astype(str)[y].tolist())


READERS: dict[str, Callable[[Any, Request], Table]] = {
    "csv": read_csv,
    "tsv": partial(read_csv, separator="\t"),
    "parquet": read_parquet,
    "npy": read_npy,
    "npz": read_npz,
    "mtx": read_mtx,
    "h5ad": read_h5ad,
}
