"""Tables in parts, and the files that parts are read from, again and again."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, final

import numpy as np

from taxarbor._errors import FileFormatError
from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.sweep import Column, Engine, LocalEngine
from taxarbor.sweep._blocks import rows_per_block
from taxarbor.sweep._engine import loaded
from taxarbor.tables._profile import ASKED
from taxarbor.tables._table import DAMAGED, Request


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A table in parts that need not fit into memory together.

    Attributes
    ----------
    parts : Column
        The rows of each part, in the user's units: an array, a CSR array or a frame of
        pandas, or what has a method ``load`` that returns them.
    titles : sequence of str
        How messages name each part.
    sizes : int array of shape (n_parts,) or None
        The rows of each part, none of them 0; None where nobody knows yet.
    names : list of str or None
        The columns, where they have names.
    make_engine : callable
        Returns who sweeps over the parts, for a run and the bytes of rows that may be kept.
    dtype : dtype or None
        Of an array; None for a frame.
    asked : tuple of str
        Columns that were asked for by name, and are used even if they look like identifiers.
    """

    parts: Column
    titles: Sequence[str]
    sizes: IndexArray | None
    names: list[str] | None
    make_engine: Callable[[Run, int | None], Engine] = LocalEngine
    dtype: np.dtype[Any] | None = None
    asked: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        bounds: IndexArray,
        part: Callable[[int, int], Any],
        names: list[str] | None,
        dtype: np.dtype[Any],
    ) -> "Stream":
        """Return the parts of one array; ``part`` makes one of its first row and its length."""
        found = [*spans(bounds.tolist())]
        titles = [f"{name}, {told_rows(*one)}" for one in found]
        parts, native = [part(*one) for one in found], dtype.newbyteorder("=")
        return cls(parts, titles, np.diff(bounds), names, dtype=native)

    def marked(self, asked: Sequence[str], categories: Sequence[str] = ()) -> "Stream":
        """Return a stream of frames with columns that are asked for, some as categories."""
        if not (asked or categories):
            return self
        mine = (*self.asked, *asked, *categories)
        parts = [_Marked(part, mine, tuple(categories)) for part in self.parts]
        return replace(self, parts=parts, asked=mine)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Marked:
    """A frame that says which of its columns were asked for."""

    part: Any
    asked: tuple[str, ...]
    categories: tuple[str, ...]

    def load(self) -> Any:
        frame = loaded(self.part)
        for name in self.categories:
            frame[name] = frame[name].astype("category")
        frame.attrs[ASKED] = self.asked
        return frame


@final
@dataclass(frozen=True, slots=True)
class File:
    """A file, and how it was when it was first seen.

    A fit reads it several times; rows that change between would make a tree of no rows at all.
    """

    path: str
    name: str
    size: int
    time: int

    @classmethod
    def of(cls, path: str | os.PathLike[str], name: str | None = None) -> "File":
        """Return the file of a path; messages call it by the name."""
        whole = os.path.abspath(path)  # other processes may be in another folder
        found = os.stat(whole)
        return cls(whole, name or one_line(Path(whole).name), found.st_size, found.st_mtime_ns)

    @property
    def request(self) -> Request:
        """What names the file in errors."""
        return Request(self.name)

    def check(self) -> None:
        """Refuse a file that is not what it was."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise self.request.error("was removed while it was read") from None
        if found.st_size < self.size:
            told = f"it had {self.size:,} bytes and has {found.st_size:,}"
            raise self.request.error(f"shrank while it was read: {told}")
        if (found.st_size, found.st_mtime_ns) != (self.size, self.time):
            raise self.request.error("changed while it was read; read it when it is whole")

    @contextmanager
    def reading(self, kind: str, rows: str, *also: type[Exception]) -> Iterator[None]:
        """Turn what another library raises into one line about some rows of this file."""
        self.check()
        try:
            yield
        except FileFormatError:
            raise
        except DAMAGED + also as error:
            self.check()  # the change is the better reason
            cause = " ".join(str(error).split())[:300] or type(error).__name__
            told = f"is a damaged {kind} file: {rows} cannot be read: {cause}"
            raise self.request.error(told) from error


def one_line(name: str) -> str:
    """Return a name that fits in a line."""
    return " ".join(name.split())


def told_rows(first: int, n_rows: int) -> str:
    """Return ``rows 0 to 65535``, counted from 0."""
    return f"rows {first} to {first + n_rows - 1}"


def edges(n_rows: int, n_cells: float, unit: int = 1) -> IndexArray:
    """Return where parts begin, and the end; parts hold whole units of rows where they can."""
    step = rows_per_block(n_cells)
    if unit < step:
        step -= step % unit
    return np.append(np.arange(0, n_rows, step), n_rows)


def spans(bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where each part begins, and its number of rows."""
    for first, last in pairwise(bounds):
        yield first, last - first
