"""Rows in the memory or in the files of this machine, and the sample of them.

The key of row i is a hash of (seed, i), and the sample is the n rows with the lowest keys. It
depends on nothing else, so memory, files, any chunks and any number of workers give the same.

With weights the key is an exponential variable of rate w_i, ``-log(1 - u_i) / w_i`` with u_i
the hash as a fraction (Efraimidis and Spirakis 2006). Given tau, the (n + 1)-th lowest key, row
i is drawn with probability ``1 - exp(-w_i tau)``; a sampled row counts for its weight over it.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, final

import narwhals as nw
import numpy as np
from numpy.typing import DTypeLike, NDArray

from taxarbor import native
from taxarbor._errors import named_by
from taxarbor._fit_context import node_seed
from taxarbor._frames import as_vectors, is_frame, take_rows
from taxarbor._types import Array, IndexArray
from taxarbor.sources._matrices import H5adReader, NpyReader, as_native
from taxarbor.sources._parquet import ParquetReader
from taxarbor.sources.file_checks import Block, count_block_rows

FRAME_ROWS = 100_000
"""Rows of a data frame that are encoded at a time."""
HASHED_ROWS = 1 << 20
"""Rows that are hashed at a time."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows of a source in memory.

    Attributes
    ----------
    table : array, CSR matrix or data frame
        The sampled rows in the units of the source and in its order; the object itself where
        it is in memory and all of its rows are sampled.
    rows : int array of shape (n_sampled,)
        Their row numbers, ascending.
    weights : float array of shape (n_sampled,) or None
        Weight of each row; the sum is that of the weights of all rows. None where no
        weights were given: all rows count the same.
    n_rows : int
        Rows of the source.
    embedding : float array of shape (n_sampled, n_dimensions) or None
        The vectors in which likeness is measured; None: it is measured in the features.
    embedding_column : str or None
        The column of the table that they are in.
    """

    table: Any
    rows: IndexArray
    weights: Array | None
    n_rows: int
    embedding: Array | None = None
    embedding_column: str | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A table in memory: one block, the object itself; frames are encoded by parts."""

    table: Any
    n_rows: int
    n_columns: int
    names: list[str] | None
    in_memory: bool = True
    """False for a memory map, which is read by parts."""

    def blocks(self) -> Iterator[Block]:
        """Yield the table, or rows of a frame or a memory map."""
        step = FRAME_ROWS if is_frame(self.table) else max(self.n_rows, 1)
        if not self.in_memory:
            step = count_block_rows(self.table[:1].nbytes)
        for first in range(0, max(self.n_rows, 1), step):
            rows = slice(first, min(first + step, self.n_rows))
            part = self.table if step >= self.n_rows else take_rows(self.table, rows)
            yield Block(None, rows, part if self.in_memory else as_native(part))

    def take(self, rows: IndexArray) -> Any:
        """Return some rows; the table itself for all."""
        taken = self.table if len(rows) == self.n_rows else take_rows(self.table, rows)
        return taken if self.in_memory else as_native(taken)


Reader: TypeAlias = Memory | NpyReader | H5adReader | ParquetReader
"""Yields all rows in blocks, in their order, and takes some of them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LocalSource:
    """Rows in the memory or in the files of this machine, in a fixed order."""

    reader: Reader
    embedding: str | Reader | None = None
    """The column with the vectors of the rows, or a reader of them."""
    is_lazy: ClassVar[bool] = False
    """Whether results are lazy arrays."""

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
        return replace(self, reader=replace(self.reader, names=kept))

    def route(
        self,
        work: Callable[[Any, slice], Any],
        dtypes: Sequence[DTypeLike],
        *,
        n_threads: int = 1,
    ) -> tuple[list[NDArray[Any]], Any]:
        """Return arrays over all rows, and a total, from one pass over the blocks.

        ``work(table, rows)`` gets the rows of a block and their numbers as a slice. It returns
        a tuple of arrays with one entry for each, and a value that is added up with ``+`` over
        all blocks, in their order; for Dask it must be picklable. The dtypes are those of the
        arrays. So many blocks of a file are worked on at a time; Dask has its own workers.
        """
        arrays: list[NDArray[Any]] = []
        total: Any = None
        for rows, (parts, small) in self._map(work, n_threads):
            typed = [np.asarray(part, t) for part, t in zip(parts, dtypes, strict=True)]
            if rows == slice(0, self.n_rows):
                return typed, small
            arrays = arrays or [np.empty((self.n_rows, *p.shape[1:]), p.dtype) for p in typed]
            for array, part in zip(arrays, typed, strict=True):
                array[rows] = part
            total = small if total is None else total + small
        return arrays, total

    def _map(
        self, work: Callable[[Any, slice], Any], n_threads: int
    ) -> Iterator[tuple[slice, Any]]:
        """Yield the rows of each block with the result, in order; few wait in memory."""

        def run(block: Block) -> Any:
            with named_by(block.title):
                return work(block.table, block.rows)

        if n_threads == 1 or self.in_memory:
            yield from ((block.rows, run(block)) for block in self.reader.blocks())
            return
        waiting: deque[tuple[slice, Future[Any]]] = deque()
        with ThreadPoolExecutor(n_threads) as pool:
            for block in self.reader.blocks():
                waiting.append((block.rows, pool.submit(run, block)))
                if len(waiting) > n_threads:
                    rows, future = waiting.popleft()
                    yield rows, future.result()
            yield from ((rows, future.result()) for rows, future in waiting)

    def apply(
        self,
        work: Callable[[Any], Any],
        dtype: DTypeLike,
        n_columns: int | None = None,
        *,
        n_threads: int = 1,
    ) -> NDArray[Any]:
        """Return the arrays ``work(table)`` of all blocks as one, with one dimension.

        Or with ``n_columns`` columns if given, which Dask needs to know.
        """

        def call(table: Any, rows: slice) -> Any:
            return (work(table),), 0

        return self.route(call, (dtype,), n_threads=n_threads)[0][0]


def add_vectors(sample: Sample, embedding: str | Reader | None) -> Sample:
    """Return a sample with the vectors of its rows, from a column of it or from a reader."""
    if embedding is None:
        return sample
    column = embedding if isinstance(embedding, str) else None
    if isinstance(embedding, str):
        cells = nw.from_native(sample.table, eager_only=True).get_column(embedding)
    else:
        cells = embedding.take(sample.rows)
    vectors = as_vectors(cells, column, rows=sample.rows)
    return replace(sample, embedding=vectors, embedding_column=column)


def draw_rows(
    n_rows: int, n: int, seed: int, weights: Array | None = None
) -> tuple[IndexArray, Array | None]:
    """Return the row numbers of a sample of at most n rows, and what each row counts for.

    All rows are taken if there are no more. Those of weight 0 are never drawn.

    Examples
    --------
    >>> rows, weights = draw_rows(1_000_000, 3, seed=0)
    >>> rows.shape, weights is None
    ((3,), True)
    >>> draw_rows(3, 10, seed=0, weights=np.array([2.0, 0.0, 1.0]))
    (array([0, 2]), array([2., 1.]))
    """
    if weights is None:
        if n_rows <= n:
            return np.arange(n_rows), None
        rows, _ = _lowest(n_rows, n, node_seed(seed, ()), None)
        return np.sort(rows), None
    weights = np.asarray(weights)
    if np.count_nonzero(weights) <= n:
        rows = np.flatnonzero(weights)
        return rows, weights[rows].astype(np.float64)
    rows, keys = _lowest(n_rows, n + 1, node_seed(seed, ()), weights)
    rows = np.sort(rows[:n])
    drawn = weights[rows].astype(np.float64)
    with np.errstate(over="ignore"):
        chance = np.maximum(-np.expm1(-drawn * keys[n]), np.finfo(np.float64).tiny)
    counts = drawn / chance
    return rows, counts * (weights.sum(dtype=np.float64) / counts.sum())


def _lowest(
    n_rows: int, n: int, seed: int, weights: Array | None
) -> tuple[IndexArray, NDArray[Any]]:
    """Return the n rows with the lowest keys, by key, and these keys."""
    rows, hashes = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.uint64)
    keys: NDArray[Any] = np.empty(0, dtype=np.float64 if weights is not None else np.uint64)
    bound: Any = np.inf
    for first in range(0, n_rows, HASHED_ROWS):
        numbers = np.arange(first, min(first + HASHED_ROWS, n_rows))
        if weights is not None:
            numbers = numbers[weights[numbers] > 0]
        new_hashes: NDArray[Any] = native.hashes(seed, numbers)
        new = new_hashes if weights is None else _exponential(new_hashes, weights[numbers])
        low = np.flatnonzero(new <= bound)
        rows = np.append(rows, numbers[low])
        hashes, keys = np.append(hashes, new_hashes[low]), np.append(keys, new[low])
        if len(rows) >= 2 * n or first + HASHED_ROWS >= n_rows:
            bound = np.partition(keys, n - 1)[n - 1]
            low = np.flatnonzero(keys <= bound)
            rows, hashes, keys = rows[low], hashes[low], keys[low]
    order = np.lexsort((hashes, keys))[:n]  # keys may be equal where hashes are not
    return rows[order], keys[order]


def _exponential(hashes: NDArray[np.uint64], weights: Array) -> NDArray[np.float64]:
    """Return the key of each row."""
    u = np.minimum((hashes + 0.5) / 2.0**64, 1.0 - 2.0**-53)
    with np.errstate(over="ignore"):
        keys: NDArray[np.float64] = -np.log1p(-u) / weights
    return keys
