"""Arrays and frames of Dask, as parts that an engine can sweep over."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array

from taxarbor._errors import InputError, InputTypeError
from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.sweep import Column, DaskEngine
from taxarbor.sweep._lazy_results import (
    check_chunks,
    is_dask_array,
    is_dask_frame,
    not_a_table,
)
from taxarbor.sweep._recipes import parts_of
from taxarbor.tables._stream import Stream


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
