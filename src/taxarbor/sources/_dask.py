"""Rows of Dask arrays and frames, by whatever scheduler is the current one.

A fit is two rounds of ordinary tasks: partitions give their sampled rows, and are routed.
Tasks are pure functions of a partition, so Dask's own retries make up for a lost worker.
"""

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from itertools import pairwise
from operator import add, itemgetter
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from taxarbor._errors import (
    ClusterError,
    InputError,
    InputTypeError,
    missing_extra,
    named_by,
)
from taxarbor._types import Array, IndexArray
from taxarbor.sources._local import take_rows
from taxarbor.sources._reader import columns_at
from taxarbor.sources._sample import Sample, draw_rows

FAN_IN = 8
"""Values that one task adds up."""
MAX_GATHERED = 64
"""Partitions whose sampled rows come here one by one; of more, some are put together before."""


@final
class DaskSource:
    """A Dask array or frame; see ``LocalSource``. Nothing is computed before it must be."""

    is_lazy: ClassVar[bool] = True
    in_memory: ClassVar[bool] = False

    def __init__(self, X: Any, names: list[str] | None) -> None:
        self._X, self.names, self.n_columns = X, names, int(X.shape[1])
        self._is_frame = names is not None

    @classmethod
    def open(cls, X: Any, columns: Sequence[str] | None) -> "DaskSource":
        """Return a collection as a source, or raise InputError."""
        try:
            import dask.array as da
            import dask.dataframe as dd
        except ImportError as error:
            raise missing_extra("data of Dask", "dask[array,dataframe]") from error
        if isinstance(X, dd.DataFrame):
            names = [str(name) for name in X.columns]
            if columns is not None:
                columns_at("X", columns, names)
                X, names = X[[*columns]], [*columns]
            if not names:
                raise InputError("has no columns", "X")
            return cls(X, names)
        if not isinstance(X, da.Array):
            told = f"must be an array or a frame of Dask, got a {type(X).__name__}"
            raise InputTypeError(f"{told}; X.to_frame() makes a frame of a series", "X")
        _check_chunks(X)
        if columns is not None:
            columns_at("X", columns, None)
        return cls(X, None)

    @cached_property
    def bounds(self) -> IndexArray:
        """The first row of each partition, and the number of rows.

        Partitions of unknown sizes are counted when this is first asked for; of frames that
        takes one column.
        """
        X = self._X
        if self._is_frame:
            sizes = _compute([X[X.columns[:1]].map_partitions(len)])[0]
        elif np.isnan(X.shape[0]):
            sizes = _compute([_task(_count, part) for part in self._parts])
        else:
            sizes = X.chunks[0]
        found = np.cumsum([0, *sizes], dtype=np.intp)
        if not found[-1]:
            raise InputError("has no rows; all of its partitions are empty", "X")
        return found

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.bounds[-1])

    def sample(self, n: int, seed: int, weights: Array | None = None) -> Sample:
        """Return the n rows with the lowest keys."""
        if weights is not None:
            weights = np.asarray(weights)
        rows, counts = draw_rows(self.n_rows, n, seed, weights)
        cuts = np.searchsorted(rows, self.bounds)
        shared, tasks = self._shared(take_rows), []
        for k, (first, last) in enumerate(pairwise(cuts.tolist())):
            if first < last:
                own = rows[first:last] - self.bounds[k]
                tasks.append(_task(_take, self._parts[k], shared, *self._facts(k), own))
        while len(tasks) > MAX_GATHERED:
            tasks = [_task(_stack, *group) for group in _groups(tasks)]
        return Sample(_stack(*_compute(tasks)), rows, counts, self.n_rows)

    def route(
        self, work: Callable[[Any, slice], Any], *, n_threads: int = 1
    ) -> tuple[list[Any], Any]:
        """Return lazy arrays, whose blocks are kept by the scheduler, and the total."""
        import dask
        import dask.array as da

        shared, bounds = self._shared(work), self.bounds.tolist()
        sizes = [last - first for first, last in pairwise(bounds) if first < last]
        results = [
            _task(_route, self._parts[k], shared, *self._facts(k), first)
            for k, (first, last) in enumerate(pairwise(bounds))
            if first < last
        ]
        arrays = [_task(itemgetter(0), result) for result in results]
        tasks = [_task(itemgetter(1), result) for result in results]
        while len(tasks) > 1:
            tasks = [_task(_add, *group) for group in _groups(tasks)]
        with _cluster_errors():
            *kept, total = dask.persist(*arrays, *tasks)
        found, forms = _compute([total])[0].load()
        return [
            da.concatenate(
                [
                    da.from_delayed(_task(itemgetter(j), part), (size, *shape), dtype)
                    for part, size in zip(kept, sizes, strict=True)
                ]
            )
            for j, (shape, dtype) in enumerate(forms)
        ], found

    def apply(
        self,
        work: Callable[[Any], Any],
        dtype: DTypeLike,
        n_columns: int | None = None,
        *,
        n_threads: int = 1,
    ) -> Any:
        """Return a lazy array; its chunks are known where those of X are."""
        import dask.array as da

        shared, dtype = self._shared(work), np.dtype(dtype)
        width = () if n_columns is None else (n_columns,)
        empty = np.empty((0, *width), dtype)
        if not self._is_frame:
            return self._X.map_blocks(
                _apply_block,
                shared=shared,
                empty=_Packed(empty),
                chunks=(self._X.chunks[0], *((n,) for n in width)),
                drop_axis=None if width else 1,
                meta=empty,
                name=_key("taxarbor-apply"),  # results of one name would be taken for one
            )
        blocks = [
            da.from_delayed(
                _task(_apply, part, shared, f"partition {k} of X", np.nan, _Packed(empty)),
                (np.nan, *width),
                dtype,
                meta=empty,
            )
            for k, part in enumerate(self._parts)
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    @cached_property
    def _parts(self) -> list[Any]:
        """A task for each partition, in which Dask's own steps are fused."""
        # Dask forgets the futures of persisted data where it rewrites a graph.
        found = self._X.to_delayed(optimize_graph=not _has_futures(self._X))
        return list(np.ravel(np.array(found, dtype=object)))

    def _facts(self, k: int) -> tuple[str, int]:
        """Return the title of a partition and its number of rows."""
        title = f"{'partition' if self._is_frame else 'block'} {k} of X"
        return title, int(self.bounds[k + 1] - self.bounds[k])

    def _shared(self, work: Callable[..., Any]) -> Any:
        """Return a task for what is in a graph once: the work, and what a partition must be."""
        form = self.names or (self.n_columns, self._X.dtype)
        return _task(_same, _Packed((work, form)))


def is_dask(X: Any) -> bool:
    """Say whether something is a collection of Dask, without importing it."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def _check_chunks(X: Any) -> None:
    """Raise InputError unless a Dask array has whole rows of numbers in each chunk."""
    if X.ndim != 2:
        told = f"must have two dimensions, (n_rows, n_features), got shape {X.shape}"
        raise InputError(told, "X")
    if X.numblocks[1] > 1:
        told = f"has {X.numblocks[1]} chunks along its columns; a row must lie in one chunk"
        raise InputError(f"{told}: X.rechunk({{1: -1}})", "X")
    if np.isnan(X.shape[1]):
        told = "does not know how many columns it has; give X.compute_chunk_sizes()"
        raise InputError(told, "X")
    if X.dtype.kind not in "biuf":
        raise InputTypeError(f"must hold numbers, got {X.dtype}; X.astype(float)", "X")


@final
class _Packed:
    """A value that Dask neither looks into nor takes apart.

    It travels as one piece: of arrays that Dask sends apart, some are not aligned, and none
    can be written to.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    def load(self) -> Any:
        return self._value

    def __reduce__(self) -> Any:
        import cloudpickle

        return _unpack, (cloudpickle.dumps(self._value, protocol=5),)


def _unpack(data: bytes) -> _Packed:
    return _Packed(pickle.loads(data))


def _task(work: Callable[..., Any], *arguments: Any) -> Any:
    from dask.delayed import delayed

    name = getattr(work, "__name__", type(work).__name__).strip("_")
    return delayed(work, name=None, pure=False, traverse=False)(
        *arguments, dask_key_name=_key(f"taxarbor-{name}")
    )


def _key(name: str) -> str:
    from uuid import uuid4

    return f"{name}-{uuid4().hex}"


def _same(value: Any) -> Any:
    return value


def _groups(tasks: Sequence[Any]) -> list[Sequence[Any]]:
    return [tasks[k : k + FAN_IN] for k in range(0, len(tasks), FAN_IN)]


def _opened(part: Any, shared: _Packed, title: str, n_rows: float) -> tuple[Any, Any]:
    """Return a partition as kernels take it, and the work; or raise InputError."""
    work, form = shared.load()
    if isinstance(form, list):
        given = [str(name) for name in part.columns]
        if given != form:
            wrong = [name for name in form if name not in given] or given
            told = f"{title} has other columns than the frame says"
            raise InputError(f"{told}: {', '.join(map(repr, wrong[:3]))}")
    else:
        part, (n_columns, dtype) = _aligned(part), form
        if part.ndim != 2 or part.shape[1] != n_columns or part.dtype != dtype:
            told = f"{title} has shape {part.shape} and holds {part.dtype}"
            raise InputTypeError(f"{told}, but X says {n_columns} columns of {dtype}")
    if not np.isnan(n_rows) and part.shape[0] != n_rows:
        told = f"{title} has {part.shape[0]:,} rows, but X says {n_rows:,}"
        raise InputError(f"{told}; X.compute_chunk_sizes() may help")
    return part, work


def _aligned(part: Any) -> Any:
    """Return an array or a CSR array whose numbers begin where kernels expect them."""
    if not hasattr(part, "tocsr"):
        return np.require(part, requirements="A")
    part = part.tocsr()
    cells = (part.data, part.indices, part.indptr)
    return sparse.csr_array(
        tuple(np.require(one, requirements="A") for one in cells), shape=part.shape
    )


def _count(part: Any) -> int:
    return int(part.shape[0])


def _take(part: Any, shared: _Packed, title: str, n_rows: int, rows: IndexArray) -> Any:
    part, take = _opened(part, shared, title, n_rows)
    return part if len(rows) == n_rows else take(part, rows)


def _stack(*tables: Any) -> Any:
    """Return tables one below the other."""
    if len(tables) == 1:
        return tables[0]
    if sparse.issparse(tables[0]):
        return sparse.vstack(tables, format="csr")
    if not hasattr(tables[0], "iloc"):
        return np.concatenate(tables)
    from dask.dataframe.dispatch import concat  # puts categories together

    return concat([*tables])


def _route(part: Any, shared: _Packed, title: str, n_rows: int, first: int) -> Any:
    """Return the arrays of a partition; what is added up, with the forms of the arrays."""
    part, work = _opened(part, shared, title, n_rows)
    with named_by(title):
        arrays, small = work(part, slice(first, first + n_rows))
    forms = [(array.shape[1:], array.dtype) for array in arrays]
    return tuple(arrays), _Packed((small, forms))


def _add(*packed: _Packed) -> _Packed:
    smalls = [one.load()[0] for one in packed]
    return _Packed((reduce(add, smalls), packed[0].load()[1]))


def _apply(part: Any, shared: _Packed, title: str, n_rows: float, empty: _Packed) -> Any:
    part, work = _opened(part, shared, title, n_rows)
    nothing = empty.load()
    if not part.shape[0]:
        return nothing
    with named_by(title):
        return np.asarray(work(part)).astype(nothing.dtype, copy=False)


def _apply_block(block: Any, *, shared: _Packed, empty: _Packed, block_id: Any) -> Any:
    return _apply(block, shared, f"block {block_id[0]} of X", np.nan, empty)


def _has_futures(X: Any) -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import futures_of

    return bool(futures_of(X))


def _compute(tasks: Sequence[Any]) -> list[Any]:
    """Return what tasks make, in this process."""
    import dask

    with _cluster_errors():
        return list(dask.compute(*tasks))


@contextmanager
def _cluster_errors() -> Iterator[None]:
    """Say what to do where workers die or a cluster is gone."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ not in ("KilledWorker", "CommClosedError", "CancelledError"):
            raise
        told = " ".join(str(error).split())[:200] or type(error).__name__
        advice = "use smaller chunks or workers with more memory, and fit again"
        raise ClusterError(
            f"the Dask cluster lost its workers or data: {advice} ({told})"
        ) from error
