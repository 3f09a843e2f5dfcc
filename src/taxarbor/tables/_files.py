"""Rows from a file of any format that is supported, or from standard input."""

import gzip
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias, cast, final

from taxarbor._errors import InputError, InputTypeError
from taxarbor.sweep._room import UNLIMITED, available
from taxarbor.tables._arrays import read_mtx, read_npy, read_npz
from taxarbor.tables._frames import read_csv, read_parquet
from taxarbor.tables._h5ad import read_h5ad
from taxarbor.tables._table import SMALL, Request, Table, refuse_excess

Source: TypeAlias = str | os.PathLike[str] | BinaryIO

READERS: dict[str, Callable[[IO[bytes], Request], Table]] = {
    "csv": read_csv,
    "tsv": partial(read_csv, separator="\t"),
    "parquet": read_parquet,
    "npy": read_npy,
    "npz": read_npz,
    "mtx": read_mtx,
    "h5ad": read_h5ad,
}
TEXTS = {"csv": b",;\t", "tsv": b"\t", "mtx": b" "}
"""The formats that may be compressed as a whole, and what separates their cells.

The others are compressed within, if at all.
"""
MAGIC = {
    **{b"PAR1": "parquet", b"\x93NUMPY": "npy", b"PK": "npz", b"\x89HDF": "h5ad"},
    b"%%MatrixMarket": "mtx",
}
SPREADSHEETS = ("xlsx", "xlsm", "xlsb", "xls", "ods")
GZIP = b"\x1f\x8b"
BLOCK = 1 << 20
PACKED = 50
"""How many times as long as the file it is, beyond which a text is counted early."""
UNCOUNTED = 16
"""One part in so many of the memory is for compressed text whose cells are not counted."""
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

    Of csv, tsv and parquet all columns come as a frame, with gaps; which of them are used,
    and how, a :class:`~taxarbor.TableEncoder` decides. A column that names each row, if there
    is only one, gives the rows their names: text that is different in every row, or numbers
    that look like an identifier.

    Parameters
    ----------
    source : path, binary stream or "-"
        Where to read; ``"-"`` is standard input.
    columns : sequence of str, optional
        Use these columns, in this order, and no others, even if one looks like an identifier.
    id_column, label_column : str, optional
        The columns with the names and the labels of the rows. In an h5ad file they are in
        ``obs``, in an npz file they are arrays.
    format : {"csv", "tsv", "parquet", "npy", "npz", "mtx", "h5ad"}, optional
        By default, what the name ends in, where csv, tsv and mtx may be followed by gz;
        without a name, what the first bytes say.

    Returns
    -------
    Table
        The columns, names, labels, and what was left out.

    Raises
    ------
    FileFormatError
        If the file is damaged, of an unknown format, lacks a column that was asked for, or
        has cells that are infinite, or a few words in a column of numbers.
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
    with _opened(source, request) as stream:
        with request.reading("gz"):
            found = format or _format_by_name(source, request) or _format_by_content(stream)
            plain = _unpacked(stream, found, request)
            if found in TEXTS and plain is stream:
                _refuse_long(request, plain, TEXTS[found])
        return READERS[found](plain, request)


def _names(columns: Sequence[str], *roles: str | None) -> tuple[str, ...]:
    """Return the columns asked for, none of which may be an id or label column, too."""
    if isinstance(columns, str):
        told = f"must be a sequence of names, got the text {columns!r}"
        raise InputTypeError(told, "columns")
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
def _opened(source: Source, request: Request) -> Iterator[IO[bytes]]:
    """Open what is named, or take it as it is; all of it can be sought in."""
    if source == STDIN:
        yield _seekable(sys.stdin.buffer, request)
    elif isinstance(source, str | os.PathLike):
        if Path(source).is_dir():
            raise request.error("is a folder; give a file in it")
        with Path(source).open("rb") as stream:
            yield _seekable(stream, request)
    else:
        if not isinstance(source.read(0), bytes):
            raise InputTypeError("the stream must be open in binary mode")
        yield _seekable(source, request)


def _seekable(stream: IO[bytes], request: Request) -> IO[bytes]:
    """Return the stream; its rest in memory if it is a pipe, or has been read from."""
    if stream.seekable() and stream.tell() == 0 and not _is_device(stream):
        return stream
    return io.BytesIO(rest_of(stream, request))


def _is_device(stream: IO[bytes]) -> bool:
    """Say whether it is one such as /dev/zero, that need not have an end."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, AttributeError):
        return False


def rest_of(stream: IO[bytes], request: Request) -> bytes:
    """Return what is left in a stream, unless it is more than memory can hold."""
    blocks: list[bytes] = []
    n_bytes, most = 0, available(UNLIMITED) // 2  # as they are joined
    while block := stream.read(BLOCK):
        n_bytes += len(block)
        if n_bytes > most:
            raise request.error(f"goes on after {n_bytes:,} bytes; memory cannot hold more")
        blocks.append(block)
    return b"".join(blocks)


def _format_by_name(source: Source, request: Request) -> str | None:
    """Return the format a file's name ends in; pipes need not have such names."""
    if not isinstance(source, str | os.PathLike) or source == STDIN:
        return None
    found = Path(source).name.lower().removesuffix(".gz").rpartition(".")[2]
    if found in READERS:
        return found
    if not Path(source).is_file():
        return None
    if found in SPREADSHEETS:
        raise request.error("is a spreadsheet, which is not read; save the sheet as csv")
    told = f"has a name that does not tell its format, one of {', '.join(READERS)}"
    raise request.error(told, ("; say which it is with", "format"))


def _format_by_content(stream: IO[bytes]) -> str:
    """Return the format that the first bytes tell; text is csv, whatever the separator."""
    head = stream.read(16)
    stream.seek(0)
    if head.startswith(GZIP):
        with gzip.GzipFile(fileobj=stream) as unpacked:
            head = unpacked.read(16)
        stream.seek(0)
    return next((MAGIC[start] for start in MAGIC if head.startswith(start)), "csv")


def _unpacked(stream: IO[bytes], format: str, request: Request) -> IO[bytes]:
    is_packed = stream.read(2) == GZIP
    stream.seek(0)
    if not is_packed:
        return stream
    if format not in TEXTS:
        raise request.error("is compressed as a whole; unpack it first")
    unpacked = _Unpacked(gzip.GzipFile(fileobj=stream), request, TEXTS[format])
    return cast("IO[bytes]", io.BufferedReader(unpacked))


@final
class _Unpacked(io.RawIOBase):
    """A compressed text, whose cells are counted once it turns out to be long.

    What it says of its own length need not be so, and to unpack all of it first would take as
    long again for texts that are short.
    """

    def __init__(self, text: gzip.GzipFile, request: Request, marks: bytes) -> None:
        self._text, self._request, self._marks = text, request, marks
        self._file: Any = text.fileobj
        self._most, self._is_counted = available(UNLIMITED), False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._text.seek(offset, whence)

    def tell(self) -> int:
        return self._text.tell()

    def readinto(self, buffer: Any) -> int:
        n_read, place = self._text.readinto(buffer), self._text.tell()
        is_long = UNCOUNTED * place > self._most
        is_long |= place > SMALL // 4 and place > PACKED * self._file.tell()
        if is_long and not self._is_counted:
            self._is_counted = True
            self._text.seek(0)
            _refuse_cells(self._request, self._text, self._marks, self._most)
            self._text.seek(place)
        return n_read


def _refuse_long(request: Request, text: IO[bytes], marks: bytes) -> None:
    """Refuse a text whose cells memory cannot hold; it is looked at only where that may be.

    A cell has two bytes at least, and eight in memory.
    """
    n_bytes, most = text.seek(0, io.SEEK_END), available(UNLIMITED)
    text.seek(0)
    if 4 * n_bytes > most:
        _refuse_cells(request, text, marks, most)
        text.seek(0)


def _refuse_cells(
    request: Request, text: IO[bytes] | gzip.GzipFile, marks: bytes, most: int
) -> None:
    """Refuse a text, read from its start, if it or its cells take more than so many bytes."""
    n_bytes = n_cells = 0
    while max(n_bytes, 8 * n_cells) <= most and (block := text.read(BLOCK)):
        n_bytes += len(block)
        n_cells += block.count(b"\n") + max(block.count(mark) for mark in marks)
    told = f"{n_bytes:,} bytes of text and {n_cells:,} cells at least"
    refuse_excess(request, told, max(n_bytes, 8 * n_cells), most)
