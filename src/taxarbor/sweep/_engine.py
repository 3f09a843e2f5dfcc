"""Who runs the sweeps of a fit: threads of this machine, over blocks in memory or on disk.

A fit that sweeps never asks where rows are. It has columns, with an entry per block: the data,
and what earlier sweeps left there, such as the leaf of each row. A sweep calls a pure function
with the entries of each block. What it finds is small, and added up; what it leaves stays where
the block is. All sums are exact, so that no result depends on how the rows lie in blocks.
"""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import Run

Column = Sequence[Any]
"""An entry per block: a value, or what has a method ``load`` that returns it."""

Work = Callable[..., Any]
"""A function of a module, which other processes can import, of a block's entries."""

Then = Callable[[Any, Run], Any]
"""What is made of all that was found, where that is: samples need not travel any further.

It may take out what lists hold, which nobody else has.
"""


class Engine(Protocol):
    """Runs sweeps."""

    def sweep(
        self, work: Work, *columns: Column, then: Then | None = None, **shared: Any
    ) -> Any:
        """Return what ``work(*entries, **shared)`` finds in all blocks, added up.

        Or what ``then(found, run)`` makes of it.
        """
        ...

    def keep(self, work: Work, *columns: Column, **shared: Any) -> tuple[Column, Any]:
        """Return a new column, and what was found: ``work`` returns a pair of both."""
        ...

    def lazy(self, work: Work, *columns: Column, **shared: Any) -> Column:
        """Return a column of what the work makes, made anew each time that it is read."""
        ...

    def gather(self, column: Column) -> list[Any]:
        """Return the entries of a column, one after the other, in this process."""
        ...

    def close(self) -> None:
        """Remove what was left anywhere."""
        ...


def merged(found: Any, other: Any) -> Any:
    """Add up what two neighbouring blocks found, the left one first.

    Numbers and arrays are added, and what has a method ``merge`` knows how; so do the parts of
    tuples, lists and dicts.
    """
    if found is None or other is None:
        return other if found is None else found
    if hasattr(found, "merge"):
        return found.merge(other)
    if isinstance(found, dict):
        return {key: merged(found[key], other[key]) for key in found}
    if isinstance(found, tuple | list):
        return type(found)(merged(*pair) for pair in zip(found, other, strict=True))
    return found + other


def loaded(entry: Any) -> Any:
    """Return an entry of a column, read from where it is."""
    return entry.load() if hasattr(entry, "load") else entry


@final
class LocalEngine:
    """Sweeps by the threads of a run.

    Parameters
    ----------
    run : Run
        Whose pool takes blocks side by side.
    room : int or None
        Bytes of rows that may be kept in memory; what is more goes to a temporary file, which
        has no name and is gone with the process, whatever ends it.
    """

    def __init__(self, run: Run, room: int | None = None) -> None:
        self._run, self._room = run, room
        self._file: Any = None
        self._lock = Lock()

    def sweep(
        self, work: Work, *columns: Column, then: Then | None = None, **shared: Any
    ) -> Any:
        """Return what the work finds in all blocks, added up."""
        found = None
        for one in self._each(lambda *entries: work(*entries, **shared), columns):
            found = merged(found, one)
        return found if then is None else then(found, self._run)

    def keep(self, work: Work, *columns: Column, **shared: Any) -> tuple[Column, Any]:
        """Return a new column, and what was found."""

        def one_block(*entries: Any) -> Any:
            kept, found = work(*entries, **shared)
            return self._shelved(kept), found

        column, found = [], None
        for kept, one in self._each(one_block, columns):
            column.append(kept)
            found = merged(found, one)
        return column, found

    def lazy(self, work: Work, *columns: Column, **shared: Any) -> Column:
        """Return a column of what the work makes, made anew each time that it is read."""
        return [_Lazy(work, entries, shared) for entries in zip(*columns, strict=True)]

    def gather(self, column: Column) -> list[Any]:
        """Return the entries of a column."""
        return [loaded(entry) for entry in column]

    def close(self) -> None:
        """Remove what was left on disk."""
        if self._file is not None:
            with suppress(OSError):  # of a full disk, which was told of
                self._file.close()
            self._file = None

    def _each(self, work: Work, columns: Sequence[Column]) -> Iterable[Any]:
        def one_block(block: int) -> Any:
            return work(*(loaded(column[block]) for column in columns))

        return self._run.each(one_block, range(len(columns[0])))

    def _shelved(self, kept: Any) -> Any:
        """Put rows on disk, if there are too many of them."""
        if self._room is None or not isinstance(kept, np.ndarray) or kept.ndim != 2:
            return kept
        with self._lock:
            self._room -= kept.nbytes
            if self._room >= 0:
                return kept
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the engine
            place = self._file.seek(0, 2)
            try:
                self._file.write(np.ascontiguousarray(kept).data)
                self._file.flush()
            except OSError as error:
                told = f"cannot keep rows in {tempfile.gettempdir()} ({error.strerror})"
                told = f"{told}: make room, set TMPDIR, or raise memory_limit"
                raise OSError(error.errno, told) from error
        return _Shelved(self._file, self._lock, place, kept.shape, kept.dtype)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Lazy:
    """What a function makes of some entries."""

    work: Work
    entries: tuple[Any, ...]
    shared: dict[str, Any]

    def load(self) -> Any:
        return self.work(*map(loaded, self.entries), **self.shared)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Shelved:
    """An array in a file."""

    file: Any
    lock: Lock
    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def load(self) -> NDArray[Any]:
        found = np.empty(self.shape, dtype=self.dtype)
        with self.lock:
            self.file.seek(self.place)
            n_read = self.file.readinto(found.data.cast("B"))
        if n_read != found.nbytes:
            raise OSError("a temporary file has become shorter: somebody else wrote to it")
        return found
