"""Rows from a file of any format that is supported, or from standard input."""

import gzip
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, BinaryIO, TypeAlias, cast

from taxarbor._errors import InputError, InputTypeError
from taxarbor.tables._arrays import read_h5ad, read_mtx, read_npy, read_npz
from taxarbor.tables._frames import read_csv, read_parquet
from taxarbor.tables._table import Request, Table

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

READERS: dict[str, Callable[[Any, Request], Table]] = {
    "csv": read_csv,
    "tsv": partial(read_csv, separator="\t"),
    "parquet": read_parquet,
    "npy": read_npy,
    "npz": read_npz,
    "mtx": read_mtx,
    "h5ad": read_h5ad,
}
BY_PATH = ("npy", "parquet", "h5ad")
"""The formats that are read from a path; a stream of one is written to a temporary file."""
TEXT_FORMATS = ("csv", "tsv", "mtx")
"""The formats that may be gzipped; the others have compression of their own."""
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
    :class:`~taxarbor.TableEncoder` decides which of them are used and how. If exactly one
    column identifies the rows, its values become the row names: text that is different in
    every row, or numbers that look like an identifier.

    Parameters
    ----------
    source : path, binary stream or "-"
        What to read; ``"-"`` is standard input.
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
    names = None if columns is None else _names(columns, id_column, label_column)
    request = Request(_name(source), names, id_column, label_column)
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


def _names(columns: Sequence[str], *roles: str | None) -> tuple[str, ...]:
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


def _name(source: Source) -> str:
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
    message = f"has no extension of a supported format, one of {', '.join(READERS)}"
    raise request.error(message, ("; choose one with", "format"))


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
