"""Tables that need not fit into memory: files, memory maps, datasets and what Dask has."""

import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array

from taxarbor._errors import InputError, InputTypeError
from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.sweep import Column, DaskEngine
from taxarbor.sweep._lazy_results import (
    check_chunks,
    is_dask,
    is_dask_array,
    is_dask_frame,
    not_a_table,
)
from taxarbor.sweep._recipes import parts_of
from taxarbor.tables._arrays import scan_memmap, scan_npy
from taxarbor.tables._h5ad import scan_h5ad
from taxarbor.tables._scan import Stream, one_line
from taxarbor.tables._scan_parquet import SUFFIXES, scan_dataset, scan_parquet
from taxarbor.tables._table import Request, columns_at

__all__ = ["Stream", "as_stream", "dask_stream", "make_engine", "open_stream", "stored_format"]

FORMATS = {".npy": "npy", ".h5ad": "h5ad", **dict.fromkeys(SUFFIXES, "parquet")}


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
        return None if X._mmap is None else scan_memmap(X)  # type: ignore[attr-defined]
    if isinstance(X, str | os.PathLike):
        return open_stream(X)
    if is_dask(X):
        return dask_stream(X)
    ds = sys.modules.get("pyarrow.dataset")
    if ds is not None and isinstance(X, ds.Dataset):
        return scan_dataset(X)
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
        return scan_parquet(path, columns)
    request = Request(one_line(Path(path).name))
    if Path(path).is_dir():
        raise request.error("is a folder; give a file in it")
    found = scan_npy(path) if format == "npy" else scan_h5ad(path)
    if columns is None:
        return found
    chosen = np.array(columns_at(request, columns, found.names), dtype=np.intp)
    parts = [_Selected(part, chosen) for part in found.parts]
    return replace(found, parts=parts, names=[*columns])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Selected:
    """Some columns of a part."""

    part: Any
    columns: IndexArray

    def load(self) -> Any:
        return self.part.load()[:, self.columns]


def dask_stream(X: Any) -> Stream:
    """Return the blocks of a Dask array, or the partitions of a Dask frame, as a stream.

    Nothing is computed. Blocks without rows are left out; where nobody knows how many rows
    there are, as in frames, whoever sweeps first counts them.

    Raises
    ------
    InputError
        If rows lie across chunks, or if what is given is neither an array nor a frame. When
        a block is read: if it is not what the array says that it is.
    """
    engine = DaskEngine()
    if is_dask_array(X):
        parts, titles, sizes = _blocks(X, engine)
        names, dtype = None, X.dtype
    elif is_dask_frame(X):
        names, dtype = [str(name) for name in X.columns], None
        titles, sizes = [f"partition {k}" for k in range(X.npartitions)], None
        called = [f"{title} of X" for title in titles]
        parts = engine.lazy(checked_partition, parts_of(X, called), called, names=names)
    else:
        raise not_a_table(X)
    if sizes is not None:
        kept = np.flatnonzero(sizes).tolist()
        if not kept:
            raise InputError("holds no rows; all of its chunks are empty", "X")
        parts, titles = [parts[k] for k in kept], [titles[k] for k in kept]
        sizes = sizes[kept]
    return Stream(parts, titles, sizes, names, make_engine, dtype)


@final
@dataclass(frozen=True, slots=True)
class _Facts:
    """What a block should be; a number of rows that is None is not known."""

    title: str
    dtype: np.dtype[Any]
    n_rows: int | None
    n_columns: int


def _blocks(X: Any, engine: DaskEngine) -> tuple[Column, list[str], IndexArray | None]:
    """Return the blocks of an array, each checked when it is read."""
    check_chunks(X)
    titles, n_columns = [f"block {k}" for k in range(X.numblocks[0])], int(X.shape[1])
    called = [f"{title} of X" for title in titles]
    sizes = None if np.isnan(X.shape[0]) else np.array(X.chunks[0], dtype=np.intp)
    known = [None] * len(titles) if sizes is None else sizes.tolist()
    facts = [
        _Facts(title, X.dtype, n, n_columns) for title, n in zip(called, known, strict=True)
    ]
    return engine.lazy(checked_block, parts_of(X, called), facts), titles, sizes


def checked_block(block: Any, facts: _Facts) -> Any:
    """Return a block as an array or a CSR matrix, or raise InputError that names it."""
    title = facts.title
    block = csr_array(block.tocsr()) if hasattr(block, "tocsr") else np.asanyarray(block)
    if block.dtype.kind not in "biuf":
        told = f"{title} holds {block.dtype}, where numbers were expected"
        raise InputTypeError(f"{told}; X.astype(float)")
    if block.dtype != facts.dtype:
        told = f"{title} holds {block.dtype}, but X says that it holds {facts.dtype}"
        raise InputTypeError(f"{told}; make all blocks of one type")
    expected = facts.n_rows, facts.n_columns
    if (
        block.ndim != 2
        or block.shape[1] != expected[1]
        or expected[0] not in (None, block.shape[0])
    ):
        told = f"{title} has shape {block.shape}, but X says {expected}"
        raise InputError(f"{told}; X.compute_chunk_sizes() may help")
    return block


def checked_partition(frame: Any, title: str, *, names: list[str]) -> Any:
    """Return a partition as it is, or raise InputError that names it."""
    given = [str(name) for name in frame.columns]
    if given != names:
        wrong = [name for name in names if name not in given] or given
        told = f"{title} has other columns than the frame says"
        raise InputError(f"{told}: {', '.join(map(repr, wrong[:3]))}")
    return frame


def make_engine(run: Run, room: int | None) -> DaskEngine:
    """Return who sweeps; threads and memory are the scheduler's."""
    return DaskEngine(run)
