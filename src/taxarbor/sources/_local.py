"""Rows in the memory or in the files of this machine."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from taxarbor._errors import InputError, InputTypeError, named_by
from taxarbor._frames import as_vectors, column_names
from taxarbor._types import Array, IndexArray
from taxarbor.sources._arrays import ArrayReader
from taxarbor.sources._parquet import ParquetReader
from taxarbor.sources._reader import Block
from taxarbor.sources._sample import Sample, draw_rows

FRAME_ROWS = 100_000
"""Rows of a data frame that are encoded at a time."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A table in memory: one block, the object itself, but for frames, which are encoded."""

    table: Any
    n_rows: int
    n_columns: int
    names: list[str] | None
    in_memory: ClassVar[bool] = True

    def blocks(self, *, use_threads: bool) -> Iterator[Block]:
        """Yield the table, or rows of a frame."""
        step = FRAME_ROWS if hasattr(self.table, "iloc") else max(self.n_rows, 1)
        for first in range(0, max(self.n_rows, 1), step):
            rows = slice(first, min(first + step, self.n_rows))
            part = self.table if step >= self.n_rows else self.table.iloc[rows]
            yield Block(None, rows, lambda part=part: part)  # type: ignore[misc]

    def take(self, rows: IndexArray) -> Any:
        """Return some rows; the table itself for all."""
        return self.table if len(rows) == self.n_rows else take_rows(self.table, rows)


Reader: TypeAlias = Memory | ArrayReader | ParquetReader
"""Yields all rows in blocks, in their order, and takes some of them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalSource:
    """Rows in the memory or in the files of this machine, in a fixed order."""

    reader: Reader
    embedding: str | Reader | None = None
    """Where vectors of the rows are: in a column, or in rows of their own."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.reader.n_rows

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.reader.n_columns

    @property
    def names(self) -> list[str] | None:
        """Names of the columns, where they have any."""
        return self.reader.names

    @property
    def in_memory(self) -> bool:
        """Whether all rows are in memory: there is one block, which is the table itself."""
        return self.reader.in_memory

    def sample(self, n: int, seed: int, weights: Array | None = None) -> Sample:
        """Return the n rows with the lowest hash of (seed, row number); all if no more.

        With weights, rows are drawn in proportion to them and rows of weight 0 never. Integer
        weights equal repeated rows where nothing is left out, and in expectation beyond.
        """
        rows, counts = draw_rows(self.n_rows, n, seed, weights)
        sample = Sample(self.reader.take(rows), rows, counts, self.n_rows)
        return add_vectors(sample, self.embedding)

    def keep(self, names: Collection[str]) -> "LocalSource":
        """Return the source with only the named columns, where the others need not be read."""
        kept = [name for name in self.names or () if name in names]
        if not kept or not isinstance(self.reader, ParquetReader):
            return self
        return replace(self, reader=self.reader.choose(kept))

    def route(
        self,
        work: Callable[[Any, slice], Any],
        dtypes: Sequence[DTypeLike],
        *,
        n_threads: int = 1,
    ) -> tuple[list[NDArray[Any]], Any]:
        """Return arrays over all rows, and a total, from one pass over the blocks.

        Parameters
        ----------
        work : callable
            ``work(table, rows)`` gets the rows of a block and their numbers as a slice. It
            returns a tuple of arrays with one entry for each, and a value that is added up with
            ``+`` over all blocks, in a fixed order. The table is only valid during the call.
            For Dask the work must be picklable.
        dtypes : sequence of dtype
            Of the arrays.
        n_threads : int
            Blocks of a file that are worked on at the same time; a table in memory is one
            block, and Dask has its own workers.
        """
        arrays: list[NDArray[Any]] = []
        total: Any = None
        for block, (parts, small) in self._map(partial(_route, work), n_threads):
            same = [part.astype(t, copy=False) for part, t in zip(parts, dtypes, strict=True)]
            if block.rows == slice(0, self.n_rows):
                arrays = same
            elif not arrays:
                arrays = [np.empty((self.n_rows, *p.shape[1:]), p.dtype) for p in same]
            for array, part in zip(arrays, same, strict=True):
                if array is not part:
                    array[block.rows] = part
            total = small if total is None else total + small
        return arrays, total

    def apply(
        self,
        work: Callable[[Any], Any],
        dtype: DTypeLike,
        n_columns: int | None = None,
        *,
        n_threads: int = 1,
    ) -> NDArray[Any]:
        """Return the arrays ``work(table)`` of all blocks as one; see :meth:`route`.

        It has one dimension, or ``n_columns`` columns if given: Dask needs to know.
        """

        def route(table: Any, rows: slice) -> Any:
            return (np.asarray(work(table)),), 0

        return self.route(route, (dtype,), n_threads=n_threads)[0][0]

    def _map(self, call: Callable[[Block], Any], n_threads: int) -> Iterator[tuple[Block, Any]]:
        """Yield each block and what is called makes of it, in order; few wait in memory."""
        blocks = self.reader.blocks(use_threads=n_threads > 1)
        if n_threads == 1 or self.in_memory:
            for block in blocks:
                yield block, call(block)
            return
        waiting: deque[tuple[Block, Future[Any]]] = deque()
        pool = ThreadPoolExecutor(n_threads)
        try:
            for block in blocks:
                waiting.append((block, pool.submit(call, block)))
                if len(waiting) > n_threads + 1:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _route(work: Callable[[Any, slice], Any], block: Block) -> Any:
    table = block.load()
    with named_by(block.title):
        arrays, small = work(table, block.rows)
    return [_own(array, table) for array in arrays], small


def _own(array: NDArray[Any], table: Any) -> NDArray[Any]:
    """Return an array that does not change when another block takes the place of the table."""
    is_view = isinstance(table, np.ndarray) and np.may_share_memory(array, table)
    return array.copy() if is_view else array


def add_vectors(sample: Sample, embedding: str | Reader | None) -> Sample:
    """Return a sample with the vectors of its rows, from a column of it or from a reader."""
    if embedding is None:
        return sample
    column = embedding if isinstance(embedding, str) else None
    reader: Any = embedding
    cells = reader.take(sample.rows) if column is None else sample.table[column]
    vectors = as_vectors(cells, column, parameter="embedding", rows=sample.rows)
    return replace(sample, embedding=vectors, embedding_column=column)


def take_rows(table: Any, rows: IndexArray) -> Any:
    """Return rows of a table in memory, of the same type but for lists and odd formats."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(table, "tocsr"):
        return table.tocsr()[rows]  # which is the table itself where it is CSR
    return (table if hasattr(table, "shape") else np.asarray(table))[rows]


def open_memory(X: Any) -> LocalSource:
    """Return an array-like, a sparse matrix or a frame as a source; cells are not read."""
    try:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        n_rows, n_columns = int(shape[0]), int(shape[1]) if len(shape) > 1 else 1
    except (TypeError, IndexError):
        message = f"must be a table: an array, a frame or a path, got a {type(X).__name__}"
        raise InputTypeError(message, "X") from None
    except ValueError as error:  # rows of different lengths
        raise InputError(f"is no table: {error}", "X") from error
    return LocalSource(Memory(X, n_rows, n_columns, column_names(X)))
