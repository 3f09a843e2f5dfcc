"""What readers of files share: blocks of rows, and errors that name the file."""

import difflib
import os
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from taxarbor._errors import FileFormatError, NamelessError, some

BLOCK_BYTES = 1 << 24
"""Bytes of a block that is read from a file."""
MAX_NAMED = 10
"""Columns that a message names."""
DAMAGED = (
    *(EOFError, LookupError, OSError, OverflowError, RuntimeError, SystemError, TypeError),
    *(ValueError, MemoryError, SyntaxError, tokenize.TokenError),
)
"""What libraries raise that read a damaged file; npy has a Python literal in its header."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows that follow one another, read when ``load`` is called, in any thread.

    What it returns is valid until the same thread loads another block.
    """

    title: str | None
    rows: slice
    load: Callable[[], Any]


@final
@dataclass(frozen=True, slots=True)
class File:
    """A file, and its size and time when it was opened.

    A fit reads it twice; rows that change between the two would make a tree of no rows.
    """

    path: str
    name: str
    size: int
    time: int

    @classmethod
    def open(cls, path: str | os.PathLike[str], name: str | None = None) -> "File":
        """Return the file of a path; messages call it by the name."""
        found = os.stat(path)
        whole = os.path.abspath(path)
        return cls(whole, name or base_name(whole), found.st_size, found.st_mtime_ns)

    def error(self, text: str) -> FileFormatError:
        """Return an error that names the file."""
        return FileFormatError(f"{self.name} {text}")

    def check(self) -> None:
        """Raise FileFormatError if the file is not what it was."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise self.error("was removed while it was read") from None
        if found.st_size < self.size:
            told = f"it had {self.size:,} bytes and has {found.st_size:,}"
            raise self.error(f"shrank while it was read: {told}")
        if (found.st_size, found.st_mtime_ns) != (self.size, self.time):
            raise self.error("changed while it was read; read it when it is complete")

    @contextmanager
    def reading(self, kind: str, what: str = "it") -> Iterator[None]:
        """Turn what another library raises into one line about this file."""
        self.check()
        try:
            yield
        except FileFormatError:
            raise
        except DAMAGED as error:
            self.check()  # a change is the better explanation
            raise damaged(self.name, kind, what, error) from error


def damaged(name: str, kind: str, what: str, error: BaseException) -> FileFormatError:
    """Return the error of a file that a library cannot read."""
    cause = " ".join(str(error).split())[:300] or type(error).__name__
    return FileFormatError(
        f"{name} is no {kind} file, or a damaged one: {what} cannot be read: {cause}"
    )


def base_name(path: str | os.PathLike[str]) -> str:
    """Return the last part of a path, in one line."""
    return " ".join(Path(path).name.split()) or os.fspath(path)


def row_range(first: int, last: int) -> str:
    """Return ``rows 0 to 65535``, counted from 0; ``last`` is the one behind them."""
    return f"rows {first} to {last - 1}"


def columns_at(title: str, wanted: Sequence[str], names: Sequence[str] | None) -> list[int]:
    """Return the places of columns by their names, or raise FileFormatError."""
    if names is None:
        told = f"has no column names, so {_listed(wanted)} cannot be looked up in it"
        raise NamelessError(f"{title} {told}")
    place = {name: j for j, name in enumerate(names)}
    absent = [name for name in wanted if name not in place]
    if absent:
        close = difflib.get_close_matches(absent[0], names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        told = f"has no column called {_listed(absent)}: it has {_listed(names)}{hint}"
        raise FileFormatError(f"{title} {told}")
    return [place[name] for name in wanted]


def check_unique(title: str, names: Sequence[str]) -> None:
    """Raise FileFormatError if two columns have the same name."""
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        told = f"has more than one column called {_listed(duplicates)}"
        raise FileFormatError(f"{title} {told}; make the names different")


def _listed(names: Sequence[str]) -> str:
    return some([repr(name) for name in names], MAX_NAMED)
