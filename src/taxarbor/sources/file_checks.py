"""What readers are, and what those of files share: blocks, names, errors that name the file."""

import difflib
import errno
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, final, runtime_checkable

import numpy as np

from taxarbor._errors import FileFormatError, some
from taxarbor._frames import Table
from taxarbor._types import IndexArray

BLOCK_BYTES = 1 << 24
MAX_NAMED = 10  # columns, in a message


class Block(NamedTuple):
    """Consecutive rows, their numbers, and a title for messages if they are of a file."""

    title: str | None
    rows: slice
    table: Table


@runtime_checkable
class Reader(Protocol):
    """The rows of a table, from memory or a file, in a fixed order."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in blocks."""

    def take(self, rows: IndexArray) -> Table:
        """Return the rows of these numbers, which ascend."""

    def keep(self, columns: Sequence[int]) -> Self:
        """Return a reader of these columns, by their positions."""


@final
@dataclass(frozen=True, slots=True)
class File:
    """A file, and its size and time when it was opened; a fit reads it twice, unchanged."""

    path: str
    name: str
    state: tuple[int, int]

    @classmethod
    def open(cls, path: str | os.PathLike[str], name: str | None = None) -> "File":
        """Return the file of a path; messages call it by the name."""
        return cls(os.path.abspath(path), name or base_name(path), _find_state(path))

    def error(self, text: str) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(f"{self.name} {text}")

    @contextmanager
    def reading(self, format: str) -> Iterator[None]:
        """Name the file in the errors of other libraries; refuse it if it has changed."""
        self._check()
        try:
            with reading(self.name, format):
                yield
        finally:
            self._check()  # a change is a better explanation of an error

    def _check(self) -> None:
        try:
            has_changed = _find_state(self.path) != self.state
        except FileNotFoundError:
            raise self.error("was removed while it was read") from None
        if has_changed:
            raise self.error("changed while it was read; read it when it is complete")


def _find_state(path: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


@contextmanager
def reading(name: str, format: str) -> Iterator[None]:
    """Turn errors of other libraries, of all types but MemoryError, into FileFormatError."""
    try:
        yield
    except (FileFormatError, ImportError, MemoryError):
        raise
    except UnicodeDecodeError as error:
        byte = f"{error.reason}: 0x{error.object[error.start]:02x}"
        raise FileFormatError(f"{name} is not UTF-8 ({byte}); save it as UTF-8") from error
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENOMEM:
            raise MemoryError(f"not enough memory for {name}") from error
        cause = " ".join(str(error).split())[:300] or type(error).__name__
        problem = f"is no {format} file, or a damaged one: {cause}"
        if "Object arrays" in cause:
            problem = "holds Python objects; arrays of names must be np.array(names, dtype=str)"
        raise FileFormatError(f"{name} {problem}") from error


def base_name(path: str | os.PathLike[str]) -> str:
    """Return the last part of a path, in one line."""
    return " ".join(Path(path).name.split()) or os.fspath(path)


def count_block_rows(row_bytes: float) -> int:
    """Return how many rows of so many bytes make a block."""
    return max(int(BLOCK_BYTES / max(row_bytes, 1.0)), 1)


def find_columns(title: str, wanted: Sequence[str], names: Sequence[str] | None) -> list[int]:
    """Return the positions of columns by their names, or raise FileFormatError."""
    if names is None:
        raise FileFormatError(f"{title} has no column names, so no {list_names(wanted)}")
    check_present(title, wanted, names)
    position_of = {name: position for position, name in enumerate(names)}
    return [position_of[name] for name in wanted]


def check_present(
    title: str, wanted: Iterable[str], names: Sequence[str], what: str = "column"
) -> None:
    """Raise FileFormatError if a requested name is absent."""
    known = set(names)
    if absent := [name for name in wanted if name not in known]:
        close = difflib.get_close_matches(absent[0], names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        problem = f"has no {what} called {list_names(absent)}"
        raise FileFormatError(f"{title} {problem}: it has {list_names(names) or 'none'}{hint}")


def check_unique(title: str, names: Iterable[str]) -> None:
    """Raise FileFormatError if two columns have the same name."""
    if duplicates := [name for name, number in Counter(names).items() if number > 1]:
        raise FileFormatError(f"{title} has several columns called {list_names(duplicates)}")


def check_matrix(title: str, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    """Raise FileFormatError unless it is a matrix of real numbers with rows and columns."""
    if dtype.kind not in "fiub":
        content = {"c": "complex numbers", "U": "text", "S": "text"}.get(dtype.kind, str(dtype))
        raise FileFormatError(f"{title} holds {content}; save it as plain numbers")
    if len(shape) != 2:
        raise FileFormatError(f"{title} has shape {tuple(shape)}, not (n_rows, n_features)")
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
