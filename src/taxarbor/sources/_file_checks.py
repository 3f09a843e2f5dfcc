"""Shared by readers of files: blocks of rows, names of columns, errors that name the file."""

import difflib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from taxarbor._errors import FileFormatError, NamelessError, some

BLOCK_BYTES = 1 << 24
"""Bytes of a block that is read from a file."""
MAX_NAMED = 10
"""Columns that a message names."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive rows, read when ``load`` is called, in any thread.

    The result is valid until the same thread loads another block.
    """

    title: str | None
    rows: slice
    load: Callable[[], Any]


@final
@dataclass(frozen=True, slots=True)
class File:
    """A file, and its size and time when it was opened.

    A fit reads it twice; the rows must not change in between.
    """

    path: str
    name: str
    size: int
    time: int

    @classmethod
    def open(cls, path: str | os.PathLike[str], name: str | None = None) -> "File":
        """Return the file of a path; messages call it by the name."""
        status = os.stat(path)
        path = os.path.abspath(path)
        return cls(path, name or base_name(path), status.st_size, status.st_mtime_ns)

    def error(self, text: str) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(f"{self.name} {text}")

    def check(self) -> None:
        """Raise FileFormatError if the file has changed."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            raise self.error("was removed while it was read") from None
        if (status.st_size, status.st_mtime_ns) != (self.size, self.time):
            sizes = f"it had {self.size:,} bytes and has {status.st_size:,}"
            raise self.error(
                f"changed while it was read ({sizes}); read it when it is complete"
            )

    @contextmanager
    def reading(self, format: str, part: str = "") -> Iterator[None]:
        """Turn the errors of other libraries into a FileFormatError about this file."""
        self.check()
        with reading(self.name, format, part):
            try:
                yield
            except FileFormatError:
                raise
            except Exception:
                self.check()  # a change is the better explanation
                raise


@contextmanager
def reading(name: str, format: str, part: str = "") -> Iterator[None]:
    """Turn the errors of other libraries into a FileFormatError, in one line.

    Libraries raise errors of many types for a damaged file, from EOFError to MemoryError.
    """
    try:
        yield
    except (FileFormatError, ImportError):
        raise
    except UnicodeDecodeError as error:
        byte = f"{error.reason}: 0x{error.object[error.start]:02x}"
        message = f"{name} is not text in UTF-8 ({byte}); save it as UTF-8"
        raise FileFormatError(message) from error
    except Exception as error:
        cause = " ".join(str(error).split())[:300] or type(error).__name__
        cause = f"{part} cannot be read: {cause}" if part else cause
        message = f"{name} is no {format} file, or a damaged one: {cause}"
        raise FileFormatError(message) from error


def base_name(path: str | os.PathLike[str]) -> str:
    """Return the last part of a path, in one line."""
    return " ".join(Path(path).name.split()) or os.fspath(path)


def block_ranges(n_rows: int, row_bytes: float) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block, and the one behind its last."""
    step = max(int(BLOCK_BYTES / max(row_bytes, 1.0)), 1)
    for first in range(0, n_rows, step):
        yield first, min(first + step, n_rows)


def row_range(first: int, last: int) -> str:
    """Return ``rows 0 to 65535``, counted from 0; ``last`` is the one behind them."""
    return f"rows {first} to {last - 1}"


def find_columns(title: str, wanted: Sequence[str], names: Sequence[str] | None) -> list[int]:
    """Return the positions of columns by their names, or raise FileFormatError."""
    if names is None:
        message = f"has no column names, so {list_names(wanted)} cannot be looked up in it"
        raise NamelessError(f"{title} {message}")
    check_present(title, wanted, names)
    position = {name: j for j, name in enumerate(names)}
    return [position[name] for name in wanted]


def check_present(
    title: str, wanted: Iterable[str], names: Sequence[str], what: str = "column"
) -> None:
    """Raise FileFormatError if a requested name is absent."""
    known = set(names)
    absent = [name for name in wanted if name not in known]
    if absent:
        close = difflib.get_close_matches(absent[0], names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        present = f"it has {list_names(names) or 'none'}"
        message = f"has no {what} called {list_names(absent)}: {present}{hint}"
        raise FileFormatError(f"{title} {message}")


def check_unique(title: str, names: Iterable[str]) -> None:
    """Raise FileFormatError if two columns have the same name."""
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        message = f"has more than one column called {list_names(duplicates)}"
        raise FileFormatError(f"{title} {message}; make the names different")


def check_matrix(title: str, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Raise FileFormatError unless it is a matrix of real numbers with rows and columns."""
    if dtype.kind not in "fiub":
        words = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "dates"}
        words |= {"V": "records", "O": "Python objects, which are not loaded, for safety"}
        content = words.get(dtype.kind, str(dtype))
        raise FileFormatError(f"{title} holds {content}; save it as plain numbers")
    if len(shape) != 2:
        hint = ": reshape it to (n, 1) for one column or (1, n) for one row"
        message = f"has shape {tuple(shape)}, not (n_rows, n_features)"
        raise FileFormatError(f"{title} {message}{hint * (len(shape) == 1)}")
    if 0 in shape:
        raise FileFormatError(f"{title} has no {'columns' if shape[0] else 'rows'}")


def list_names(names: Iterable[Any]) -> str:
    """Return ``'a', 'b', ... and 7 more``."""
    return some([repr(name) for name in names], MAX_NAMED)


def as_texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return values as text, empty where a value is missing."""
    return tuple(
        "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
        for value in values
    )
