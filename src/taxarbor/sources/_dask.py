"""Rows of Dask arrays and frames, by whatever scheduler is the current one.

A fit is two rounds of ordinary tasks: partitions give their sampled rows, and are routed.
Tasks are pure functions of a partition, so Dask's own retries make up for a lost worker.
"""

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, ClassVar, final
from uuid import uuid4

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
        if self._is_frame and len(self._parts) == X.npartitions:
            first = X[X.columns[:1]]
            parts = _delayed(first)
            if len(parts) != X.npartitions:  # some would be read as one
                parts = first.simplify().to_delayed(optimize_graph=False)
            sizes = _compute(_map_delayed(parts, _length, _cells(len(parts)))).ravel()
        elif self._is_frame or np.isnan(X.shape[0]):
            sizes = _compute(self._map(_count)).ravel()
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
        weights = None if weights is None else np.asarray(weights)
        rows, counts = draw_rows(self.n_rows, n, seed, weights)
        tables = _compute(self._map(_take, rows, self.bounds)).ravel()
        table = _stack([table for table in tables if table is not None])
        return Sample(table, rows, counts, self.n_rows)

    def route(
        self, work: Callable[[Any, slice], Any], *, n_threads: int = 1
    ) -> tuple[list[Any], Any]:
        """Return lazy arrays, whose blocks are kept by the scheduler, and the total."""
        import dask
        import dask.array as da

        results = self._map(_route, work, self.bounds)
        form = {"dtype": object, "meta": np.empty((0, 0), object)}
        kept = results.map_blocks(_first, **form, name=_key("taxarbor-kept"))
        total = da.reduction(
            results, _second, _add, axis=0, concatenate=False, split_every=FAN_IN, **form
        )
        with _cluster_errors():
            kept, total = dask.persist(kept, total)
        found, forms = _compute(total).item()
        sizes = tuple(np.diff(self.bounds).tolist())
        return [
            kept.map_blocks(
                _entry,
                j=j,
                empty=_Packed(np.empty((0, *shape), dtype)),
                chunks=(sizes, *((length,) for length in shape)),
                drop_axis=() if shape else 1,
                meta=np.empty((0, *shape), dtype),
                name=_key("taxarbor-rows"),
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
        width = () if n_columns is None else (n_columns,)
        empty = np.empty((0, *width), dtype)
        sizes = (np.nan,) * len(self._parts) if self._is_frame else self._X.chunks[0]
        return self._map(
            _apply,
            work,
            empty,
            chunks=(sizes, *((n,) for n in width)),
            meta=empty,
        )

    @cached_property
    def _parts(self) -> Any:
        """The partitions of a frame; Dask may read several small ones of X as one."""
        return _delayed(self._X)

    def _map(self, call: Callable[..., Any], *values: Any, **form: Any) -> Any:
        """Return an array of what is called makes of each partition; values are sent once."""
        from dask.delayed import delayed

        X = self._X
        expected = self.names or (self.n_columns, X.dtype)
        shared = delayed(_Packed((expected, values)), pure=False, traverse=False)
        if self._is_frame:
            form = form or _cells(len(self._parts))
            return _map_delayed(self._parts, partial(_call, call), form, shared)
        form = form or _cells(X.numblocks[0])
        return X.map_blocks(
            _call_block,
            call=call,
            shared=shared,
            drop_axis=() if len(form["chunks"]) == 2 else 1,
            name=_key(f"taxarbor-{call.__name__.strip('_')}"),
            **form,
        )


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
        self.value = value

    def __reduce__(self) -> Any:
        import cloudpickle

        return _unpack, (cloudpickle.dumps(self.value, protocol=5),)


def _unpack(data: bytes) -> _Packed:
    return _Packed(pickle.loads(data))


def _key(name: str) -> str:
    """Return a name for tasks; results of one name would be taken for one."""
    return f"{name}-{uuid4().hex}"


def _box(value: Any) -> Any:
    box = np.empty((1, 1), dtype=object)
    box[0, 0] = value
    return box


def _cells(n_parts: int) -> dict[str, Any]:
    """Return the form of an array with any object for each partition."""
    return {"chunks": ((1,) * n_parts, (1,)), "meta": np.empty((0, 0), object)}


def _map_delayed(
    parts: Sequence[Any], call: Callable[..., Any], form: dict[str, Any], *shared: Any
) -> Any:
    """Return an array with a chunk for each part, made by one task."""
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    name, zeros = _key("taxarbor-partition"), (0,) * (len(form["chunks"]) - 1)
    keys = [one.key for one in shared]
    layer = {(name, k, *zeros): (call, k, part.key, *keys) for k, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[*parts, *shared])
    return da.Array(graph, name, **form)


def _length(k: int, frame: Any) -> Any:
    return _box(len(frame))


def _delayed(X: Any) -> Any:
    """Return the partitions of a frame, in which Dask's own steps are fused."""
    has_futures = False
    if "distributed" in sys.modules:
        from distributed import futures_of

        has_futures = bool(futures_of(X))
    # Dask forgets the futures of persisted data where it rewrites a graph.
    return X.to_delayed(optimize_graph=not has_futures)


def _call(call: Callable[..., Any], k: int, part: Any, shared: _Packed) -> Any:
    """Return what is called makes of a partition, which is checked first."""
    expected, values = shared.value
    title = f"{'partition' if isinstance(expected, list) else 'block'} {k} of X"
    return call(_checked(part, title, expected), title, k, *values)


def _call_block(block: Any, *, call: Any, shared: _Packed, block_id: Any) -> Any:
    return _call(call, block_id[0], block, shared)


def _checked(part: Any, title: str, expected: Any) -> Any:
    """Return a partition as kernels take it, or raise InputError that names it."""
    if isinstance(expected, list):
        given = [str(name) for name in part.columns]
        if given != expected:
            wrong = [name for name in expected if name not in given] or given
            told = f"{title} has other columns than the frame says"
            raise InputError(f"{told}: {', '.join(map(repr, wrong[:3]))}")
        return part
    part, (n_columns, dtype) = _aligned(part), expected
    if part.ndim != 2 or part.shape[1] != n_columns or part.dtype != dtype:
        told = f"{title} has shape {part.shape} and holds {part.dtype}"
        raise InputTypeError(f"{told}, but X says {n_columns} columns of {dtype}")
    return part


def _check_size(part: Any, title: str, n_rows: int) -> None:
    if part.shape[0] != n_rows:
        told = f"{title} has {part.shape[0]:,} rows, but X says {n_rows:,}"
        raise InputError(f"{told}; X.compute_chunk_sizes() may help")


def _aligned(part: Any) -> Any:
    """Return an array or a CSR array whose numbers begin where kernels expect them."""
    if not hasattr(part, "tocsr"):
        return np.require(part, requirements="A")
    part = part.tocsr()
    cells = (part.data, part.indices, part.indptr)
    return sparse.csr_array(
        tuple(np.require(one, requirements="A") for one in cells), shape=part.shape
    )


def _count(part: Any, title: str, k: int) -> Any:
    return _box(part.shape[0])


def _take(part: Any, title: str, k: int, rows: IndexArray, bounds: IndexArray) -> Any:
    first, last = bounds[k : k + 2]
    _check_size(part, title, last - first)
    own = rows[slice(*np.searchsorted(rows, (first, last)))] - first
    if not len(own):
        return _box(None)
    return _box(part if len(own) == part.shape[0] else take_rows(part, own))


def _stack(tables: Sequence[Any]) -> Any:
    """Return tables one below the other."""
    if len(tables) == 1:
        return tables[0]
    if sparse.issparse(tables[0]):
        return sparse.vstack(tables, format="csr")
    if not hasattr(tables[0], "iloc"):
        return np.concatenate(tables)
    from dask.dataframe.dispatch import concat  # unites categories

    return concat([*tables])


def _route(
    part: Any, title: str, k: int, work: Callable[[Any, slice], Any], bounds: IndexArray
) -> Any:
    """Return the arrays of a partition; what is added up, and the forms of the arrays."""
    first, last = bounds[k : k + 2].tolist()
    _check_size(part, title, last - first)
    if first == last:
        return _box((None, None))
    with named_by(title):
        arrays, small = work(part, slice(first, last))
    return _box((arrays, (small, [(array.shape[1:], array.dtype) for array in arrays])))


def _first(result: Any) -> Any:
    return _box(result.item()[0])


def _second(result: Any, axis: Any, keepdims: bool) -> Any:
    return _box(result.item()[1])


def _add(results: Any, axis: Any, keepdims: bool) -> Any:
    """Return the sum of results, without those of empty partitions."""
    items = [one.item() for one in (results if isinstance(results, list) else [results])]
    found = [one for one in items if one is not None]
    total = (reduce(add, [small for small, _ in found]), found[0][1]) if found else None
    return _box(total) if keepdims else _box(total)[0]


def _entry(kept: Any, *, j: int, empty: _Packed) -> Any:
    arrays = kept.item()
    return empty.value if arrays is None else arrays[j]


def _apply(part: Any, title: str, k: int, work: Callable[[Any], Any], empty: Any) -> Any:
    if not part.shape[0]:
        return empty
    with named_by(title):
        return np.asarray(work(part)).astype(empty.dtype, copy=False)


def _compute(collection: Any) -> Any:
    import dask

    with _cluster_errors():
        return dask.compute(collection)[0]


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
