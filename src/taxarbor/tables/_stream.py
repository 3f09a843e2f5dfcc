"""Tables that need not fit into memory: files, memory maps, datasets and what Dask has."""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from taxarbor._errors import InputError
from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.sweep import Column, Engine, LocalEngine
from taxarbor.sweep._engine import loaded
from taxarbor.sweep._lazy_results import is_dask
from taxarbor.tables._scan import Scan, one_line
from taxarbor.tables._scan_arrays import scan_h5ad, scan_memmap, scan_npy
from taxarbor.tables._scan_parquet import SUFFIXES, scan_dataset, scan_parquet
from taxarbor.tables._study import ASKED
from taxarbor.tables._table import NamelessError, Request, listed, refuse_absent

FORMATS = {".npy": "npy", ".h5ad": "h5ad", **dict.fromkeys(SUFFIXES, "parquet")}


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
    make_engine: Callable[[Run, int | None], Engine]
    dtype: np.dtype[Any] | None
    asked: tuple[str, ...] = ()

    def marked(self, asked: Sequence[str], categories: Sequence[str] = ()) -> "Stream":
        """Return a stream of frames with columns that are asked for, some as categories."""
        if not (asked or categories):
            return self
        mine = (*self.asked, *asked, *categories)
        parts = [_Marked(part, mine, tuple(categories)) for part in self.parts]
        return replace(self, parts=parts, asked=mine)


def as_stream(X: Any) -> Stream | None:
    """Return data that are read part by part as a stream; None for all others.

    These are memory maps of NumPy, datasets of pyarrow, arrays and frames of Dask, paths of
    ``.npy``, ``.parquet`` and ``.h5ad`` files and of folders of Parquet files.

    Raises
    ------
    FileFormatError, InputError
        If a file is damaged or cannot be read part by part: any text is a path.
    OSError
        If it cannot be opened.
    ImportError
        If the format needs a library that is not installed.

    Examples
    --------
    >>> as_stream([[0.0, 1.0]]) is None
    True
    """
    if isinstance(X, Stream):
        return X
    if isinstance(X, np.memmap):
        return None if X._mmap is None else _stream(scan_memmap(X))  # type: ignore[attr-defined]
    if isinstance(X, str | os.PathLike):
        return open_stream(X)
    if is_dask(X):
        from taxarbor.tables._dask import dask_stream

        found: Stream = dask_stream(X)
        return found
    ds = sys.modules.get("pyarrow.dataset")
    if ds is not None and isinstance(X, ds.Dataset):
        return _stream(scan_dataset(X))
    return None


def stored_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a file or folder that can be read part by part, if it is one."""
    if Path(path).is_dir():
        return "parquet"
    return FORMATS.get(Path(path).suffix.lower())


def open_stream(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    format: str | None = None,
) -> Stream:
    """Return the rows in a file or folder part by part; these columns only, if given."""
    format = format or stored_format(path)
    if format not in FORMATS.values():
        if not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        told = "one of .npy, .parquet and .h5ad, or a folder of Parquet files"
        name = one_line(Path(path).name)
        raise InputError(f"{name} cannot be read part by part; that needs {told}")
    if format == "parquet":
        return _stream(scan_parquet(path, columns))
    request = Request(one_line(Path(path).name))
    if Path(path).is_dir():
        raise request.error("is a folder; give a file in it")
    scan = scan_npy(path) if format == "npy" else scan_h5ad(path)
    return _stream(scan if columns is None else _selected(request, scan, columns))


def _stream(scan: Scan) -> Stream:
    sizes = np.array(scan.sizes, dtype=np.intp)
    make_engine = partial(_engine, reserve=scan.reserve)
    return Stream(scan.parts, scan.titles, sizes, scan.names, make_engine, scan.dtype)


def _engine(run: Run, room: int | None, *, reserve: int) -> Engine:
    """Return threads that keep less in memory by what reading takes."""
    return LocalEngine(run, None if room is None else max(room - reserve, 0))


def _selected(request: Request, scan: Scan, columns: Sequence[str]) -> Scan:
    if scan.names is None:
        told = f"has no column names, so {listed(columns)} cannot be looked up in it"
        raise NamelessError(f"{request.name} {told}")
    refuse_absent(request, columns, scan.names)
    place = {name: j for j, name in enumerate(scan.names)}
    chosen = np.array([place[name] for name in columns], dtype=np.intp)
    parts = [_Selected(part, chosen) for part in scan.parts]
    return scan._replace(parts=parts, names=[*columns])


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
@dataclass(frozen=True, slots=True, eq=False)
class _Selected:
    """Some columns of a part."""

    part: Any
    columns: IndexArray

    def load(self) -> Any:
        return self.part.load()[:, self.columns]
