"""Rows of Dask arrays and frames, by whatever scheduler is the current one.

A fit is two rounds of ordinary tasks: partitions give their sampled rows, and are routed.
Tasks are pure functions of a partition, so Dask's retries make up for a lost worker.
"""

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add, attrgetter
from typing import Any, ClassVar, TypeAlias, final

import narwhals as nw
import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from taxarbor._errors import InputError, InputTypeError, named_by, require, some
from taxarbor._frames import Table, as_table, take_rows
from taxarbor._types import Array, IndexArray
from taxarbor.sources._sample import Sample, add_vectors, draw_rows
from taxarbor.sources.file_checks import MAX_NAMED, Reader

Collected: TypeAlias = Any  # an array, a frame or a task of Dask: no types without it
Work: TypeAlias = Callable[[Table, slice], Any]


@final
@dataclass(frozen=True, eq=False)
class DaskSource:
    """A Dask array or frame; see ``LocalSource``. Nothing is computed before it must be."""

    X: Collected
    names: list[str] | None
    embedding: str | Reader | None = None
    layer: ClassVar[str] = ""
    in_memory: ClassVar[bool] = False

    @cached_property
    def bounds(self) -> IndexArray:
        """The first row of each partition, and the number of rows, counted where unknown."""
        if _is_array(self.X) and not np.isnan(self.X.shape[0]):
            sizes = self.X.chunks[0]
        else:
            import dask

            some = self.X if _is_array(self.X) else self.X[self.X.columns[:1].tolist()]
            find_shape = dask.delayed(attrgetter("shape"))
            sizes = [n for n, *_ in _compute([*map(find_shape, _split(some))])]
        bounds = np.cumsum([0, *sizes], dtype=np.intp)
        if not bounds[-1]:
            raise InputError("has no rows; all of its partitions are empty", "X")
        return bounds

    @property
    def n_rows(self) -> int:
        return int(self.bounds[-1])

    @property
    def n_columns(self) -> int:
        return int(self.X.shape[1])

    @property
    def slices(self) -> dict[int, slice]:
        """The rows of each partition that has any, by its number."""
        pairs = enumerate(pairwise(self.bounds.tolist()))
        return {number: slice(*pair) for number, pair in pairs if pair[0] < pair[1]}

    def sample(self, n: int, seed: int, weights: Array | None = None) -> Sample:
        """Return the n rows with the lowest keys."""
        rows, counts = draw_rows(self.n_rows, n, seed, weights)
        n_drawn = np.diff(np.searchsorted(rows, self.bounds))
        slices = {k: some for k, some in self.slices.items() if n_drawn[k]}
        tables = _compute(self._map(partial(_take, rows), slices))
        return add_vectors(Sample(_stack(tables), rows, counts, self.n_rows), self.embedding)

    def keep(self, names: Collection[str]) -> "DaskSource":
        """Return the source with the named columns only, or as it is if it has no others."""
        kept = [j for j, name in enumerate(self.names or ()) if name in names]
        if self.names is None or not kept or len(kept) == self.n_columns:
            return self
        X = self.X[:, kept] if _is_array(self.X) else self.X[self.X.columns[kept].tolist()]
        return replace(self, X=X, names=[self.names[j] for j in kept])

    def route(self, work: Work, dtypes: Sequence[DTypeLike]) -> tuple[list[Collected], Any]:
        """Return lazy arrays, whose blocks are kept by the scheduler, and the total."""
        import dask
        import dask.array as da

        results = dask.persist(*self._map(work, self.slices))
        totals = _compute([result[1] for result in results])
        sizes = [rows.stop - rows.start for rows in self.slices.values()]
        arrays = []
        for j, dtype in enumerate(dtypes):
            pairs = zip(results, sizes, strict=True)
            blocks = [da.from_delayed(result[0][j], (size,), dtype) for result, size in pairs]
            arrays.append(da.concatenate(blocks))
        return arrays, reduce(add, totals)

    def apply(self, work: Work, dtype: DTypeLike, n_columns: int | None = None) -> Collected:
        """Return the array of ``work`` lazily, of one dimension or of so many columns."""
        import dask.array as da

        width = () if n_columns is None else (n_columns,)
        n_blocks = self.X.npartitions
        sizes = self.X.chunks[0] if _is_array(self.X) else [np.nan] * n_blocks
        call = partial(_apply, work, np.empty((0, *width), dtype))
        pairs = zip(self._map(call, dict.fromkeys(range(n_blocks))), sizes, strict=True)
        blocks = [da.from_delayed(result, (size, *width), dtype) for result, size in pairs]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    def _map(self, work: Work, slices: Mapping[int, slice | None]) -> list[Collected]:
        """Return a task for each partition in a mapping to its rows, None if not counted."""
        import cloudpickle
        from dask import delayed

        expected = [self.n_columns] if _is_array(self.X) else [*map(str, self.X.columns)]
        # Of arrays that Dask sends apart, some are not aligned, and none can be written to.
        shared = delayed(cloudpickle.dumps((work, expected), protocol=5))
        parts = _split(self.X)
        return [delayed(_run)(parts[k], k, rows, shared) for k, rows in slices.items()]


def open_dask(X: Collected) -> DaskSource:
    """Return a collection as a source, or raise InputError."""
    with require("data of Dask", "dask[array,dataframe]"):
        import dask.array as da
        import dask.dataframe as dd
    if isinstance(X, dd.DataFrame):
        if not len(X.columns):
            raise InputError("has no columns", "X")
        return DaskSource(X, [str(name) for name in X.columns])
    if not isinstance(X, da.Array):
        message = f"must be an array or a frame of Dask, got a {type(X).__name__}"
        raise InputTypeError(f"{message}; X.to_frame() makes a frame of a series", "X")
    if X.ndim != 2:
        raise InputError(f"must have two dimensions, got shape {X.shape}", "X")
    if X.numblocks[1] > 1:
        raise InputError("has chunks that split rows; pass X.rechunk({1: -1})", "X")
    if np.isnan(X.shape[1]):
        raise InputError("has an unknown width; pass X.compute_chunk_sizes()", "X")
    if X.dtype.kind not in "biuf":
        raise InputTypeError(f"must hold numbers, got {X.dtype}; X.astype(float)", "X")
    return DaskSource(X, None)


def _is_array(X: Collected) -> bool:
    import dask.array as da

    return isinstance(X, da.Array)


def _compute(tasks: Sequence[Collected]) -> Sequence[Any]:
    import dask

    try:
        return tuple(dask.compute(*tasks))
    except KeyError as error:  # of Dask, where files of a folder differ
        raise InputError(f"has a partition that lacks a column: {error}", "X") from error


def _split(X: Collected) -> list[Collected]:
    """Return the tasks that make the partitions of a collection."""
    if _is_array(X):
        return list(X.to_delayed().ravel())
    from dask.dataframe.dask_expr import new_collection

    kinds = [type(one).__name__ for one in X.expr.walk()]
    read = any(kind.startswith("Read") or kind == "FromMapProjectable" for kind in kinds)
    if kinds[0] == "Projection" and not read:  # _run selects columns, and says
        X = new_collection(X.expr.frame)  # which are absent; a file is read in part
    # Optimising may read several partitions as one.
    return list(X.simplify().to_delayed(optimize_graph=False))


def _run(part: Any, number: int, rows: slice | None, shared: bytes) -> Any:
    """Return the result of the work on a partition, or raise InputError that names it."""
    work, expected = pickle.loads(shared)
    part = as_table(part)
    if isinstance(part, nw.DataFrame):
        title, place_of = f"partition {number} of X", {str(c): c for c in part.columns}
        if absent := [repr(name) for name in expected if name not in place_of]:
            raise InputError(f"{title} lacks {some(absent, MAX_NAMED)}, which X says it has")
        part = part.select([place_of[name] for name in expected])
    else:  # aligned, as kernels need it
        title = f"block {number} of X"
        if part.shape[-1] != expected[0]:
            raise InputError(f"{title} has {part.shape[-1]} columns, but X says {expected[0]}")
        part = np.require(part, None, "A") if isinstance(part, np.ndarray) else part.tocsr(True)
    rows = rows or slice(0, part.shape[0])
    if part.shape[0] != rows.stop - rows.start:
        message = f"{title} has {part.shape[0]:,} rows, but X says {rows.stop - rows.start:,}"
        raise InputError(f"{message}; X.compute_chunk_sizes() may help")
    with named_by(title):
        return work(part, rows)


def _take(sampled: IndexArray, table: Table, rows: slice) -> Any:
    inside = sampled[slice(*np.searchsorted(sampled, (rows.start, rows.stop)))] - rows.start
    taken = table if len(inside) == table.shape[0] else take_rows(table, inside)
    return taken.to_native() if isinstance(taken, nw.DataFrame) else taken


def _apply(work: Work, empty: NDArray[Any], table: Table, rows: slice) -> NDArray[Any]:
    if not table.shape[0]:
        return empty
    (found,), _ = work(table, rows)
    return np.asarray(found, empty.dtype)


def _stack(tables: Sequence[Any]) -> Table:
    if len(tables) == 1:
        return as_table(tables[0])
    if sparse.issparse(tables[0]):
        return as_table(sparse.vstack(tables, format="csr"))
    if isinstance(tables[0], np.ndarray):
        return as_table(np.concatenate(tables))
    from dask.dataframe.dispatch import concat  # unites categories

    return as_table(concat([*tables]))
