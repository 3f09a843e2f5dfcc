"""Rows of Dask arrays and frames, by whatever scheduler is the current one.

A fit is two rounds of ordinary tasks: partitions give their sampled rows, and are routed.
Tasks are pure functions of a partition, so Dask's retries make up for a lost worker.
"""

import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from operator import add, itemgetter
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from taxarbor._errors import ClusterError, InputError, InputTypeError, missing_extra, named_by
from taxarbor._frames import is_frame, take_rows
from taxarbor._types import Array, IndexArray
from taxarbor.sources._local_source import Reader, Sample, add_vectors, draw_rows

FAN_IN = 8
"""Values that one task sums."""


@final
class DaskSource:
    """A Dask array or frame; see ``LocalSource``. Nothing is computed before it must be."""

    in_memory: ClassVar[bool] = False

    embedding: str | Reader | None = None

    def __init__(self, X: Any, names: list[str] | None) -> None:
        self._X, self.names, self.n_columns = X, names, int(X.shape[1])

    @classmethod
    def open(cls, X: Any) -> "DaskSource":
        """Return a collection as a source, or raise InputError."""
        try:
            import dask.array as da
            import dask.dataframe as dd
        except ImportError as error:
            raise missing_extra("data of Dask", "dask[array,dataframe]") from error
        if isinstance(X, dd.DataFrame):
            if not len(X.columns):
                raise InputError("has no columns", "X")
            return cls(X, [str(name) for name in X.columns])
        if not isinstance(X, da.Array):
            message = f"must be an array or a frame of Dask, got a {type(X).__name__}"
            raise InputTypeError(f"{message}; X.to_frame() makes a frame of a series", "X")
        _check_chunks(X)
        return cls(X, None)

    @cached_property
    def bounds(self) -> IndexArray:
        """The first row of each partition, and the number of rows.

        Partitions of unknown sizes are counted when this is first asked for; of frames that
        takes one column.
        """
        if self.names is None and not np.isnan(self._X.shape[0]):
            sizes = self._X.chunks[0]
        else:
            some = self._X if self.names is None else self._X[self._X.columns[:1]]
            parts = _find_parts(some, is_frame=self.names is not None)
            sizes = _compute([_delay(_count)(part) for part in parts])
        bounds = np.cumsum([0, *sizes], dtype=np.intp)
        if not bounds[-1]:
            raise InputError("has no rows; all of its partitions are empty", "X")
        return bounds

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.bounds[-1])

    def sample(self, n: int, seed: int, weights: Array | None = None) -> Sample:
        """Return the n rows with the lowest keys."""
        rows, counts = draw_rows(self.n_rows, n, seed, weights)
        edges = np.searchsorted(rows, self.bounds).tolist()
        tasks = [
            _delay(_take)(part, check, _Packed(rows[edges[k] : edges[k + 1]] - check.first))
            for k, (part, check) in enumerate(self._parts())
            if edges[k] < edges[k + 1]
        ]
        sample = Sample(_stack(_compute(tasks)), rows, counts, self.n_rows)
        return add_vectors(sample, self.embedding)

    def keep(self, names: Collection[str]) -> "DaskSource":
        """Return the source itself: Dask reads all columns."""
        return self

    def route(
        self,
        work: Callable[[Any, slice], Any],
        dtypes: Sequence[DTypeLike],
        *,
        n_threads: int = 1,
    ) -> tuple[list[Any], Any]:
        """Return lazy arrays, whose blocks are kept by the scheduler, and the total."""
        import dask
        import dask.array as da

        parts = [(part, check) for part, check in self._parts() if check.n_rows]
        shared = _delay(_Packed(work), traverse=False)
        with _cluster_errors():
            results = dask.persist(*(_delay(_route)(*part, shared) for part in parts))
        totals = [_delay(itemgetter(1))(result) for result in results]
        while len(totals) > 1:
            groups = (totals[k : k + FAN_IN] for k in range(0, len(totals), FAN_IN))
            totals = [_delay(_add)(group) for group in groups]
        (total,) = _compute(totals)
        arrays = [
            da.concatenate(
                [
                    da.from_delayed(_delay(_entry)(result, j), (check.n_rows,), dtype)
                    for result, (_, check) in zip(results, parts, strict=True)
                ]
            )
            for j, dtype in enumerate(dtypes)
        ]
        return arrays, total

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

        parts = _find_parts(self._X, is_frame=self.names is not None)
        sizes = self._X.chunks[0] if self.names is None else [np.nan] * len(parts)
        width = () if n_columns is None else (n_columns,)
        shared = _delay(_Packed((work, np.empty((0, *width), dtype))), traverse=False)
        blocks = [
            da.from_delayed(_delay(_apply)(part, self._check(k), shared), (n, *width), dtype)
            for k, (part, n) in enumerate(zip(parts, sizes, strict=True))
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    def _parts(self) -> Iterator[tuple[Any, "_Check"]]:
        """Yield each partition, and what it must be."""
        for k, part in enumerate(_find_parts(self._X, is_frame=self.names is not None)):
            first, last = self.bounds[k : k + 2].tolist()
            yield part, self._check(k, first, last - first)

    def _check(self, k: int, first: int = 0, n_rows: int | None = None) -> "_Check":
        if self.names is not None:
            return _Check(f"partition {k} of X", first, n_rows, tuple(self.names))
        expected = self.n_columns, self._X.dtype
        return _Check(f"block {k} of X", first, n_rows, expected)


def _check_chunks(X: Any) -> None:
    """Raise InputError unless a Dask array has whole rows of numbers in each chunk."""
    if X.ndim != 2:
        message = f"must have two dimensions, (n_rows, n_features), got shape {X.shape}"
        raise InputError(message, "X")
    if X.numblocks[1] > 1:
        message = f"has {X.numblocks[1]} chunks along its columns; a row must lie in one chunk"
        raise InputError(f"{message}: X.rechunk({{1: -1}})", "X")
    if np.isnan(X.shape[1]):
        message = "has an unknown number of columns; give X.compute_chunk_sizes()"
        raise InputError(message, "X")
    if X.dtype.kind not in "biuf":
        raise InputTypeError(f"must hold numbers, got {X.dtype}; X.astype(float)", "X")


def _find_parts(X: Any, *, is_frame: bool) -> list[Any]:
    """Return the tasks that make the partitions of a collection."""
    if is_frame:  # of which optimising may read several parts as one
        return list(X.simplify().to_delayed(optimize_graph=False))
    return list(X.to_delayed().ravel())


def _delay(call: Any, *, traverse: bool = True) -> Any:
    from dask.delayed import delayed

    return delayed(call, pure=False, traverse=traverse)


@final
class _Check:
    """The expected rows of a partition, and its column names, or their number and type."""

    def __init__(
        self, title: str, first: int, n_rows: int | None, expected: tuple[Any, ...]
    ) -> None:
        self.title, self.first, self.n_rows, self.expected = title, first, n_rows, expected

    def __call__(self, part: Any) -> Any:
        """Return a partition as kernels take it, or raise InputError that names it."""
        if is_frame(part):
            given = tuple(str(name) for name in part.columns)
            if given != self.expected:
                wrong = [name for name in self.expected if name not in given] or given
                message = f"{self.title} has other columns than the frame says"
                raise InputError(f"{message}: {', '.join(map(repr, wrong[:3]))}")
        else:
            part, (n_columns, dtype) = _align(part), self.expected
            if part.ndim != 2 or part.shape[1] != n_columns or part.dtype != dtype:
                message = f"{self.title} has shape {part.shape} and holds {part.dtype}"
                raise InputTypeError(f"{message}, but X says {n_columns} columns of {dtype}")
        if self.n_rows not in (None, part.shape[0]):
            message = f"{self.title} has {part.shape[0]:,} rows, but X says {self.n_rows:,}"
            raise InputError(f"{message}; X.compute_chunk_sizes() may help")
        return part


@final
class _Packed:
    """A value that travels as one piece.

    Of arrays that Dask sends apart, some are not aligned, and none can be written to.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        import cloudpickle

        return _unpack, (cloudpickle.dumps(self.value, protocol=5),)


def _unpack(data: bytes) -> _Packed:
    return _Packed(pickle.loads(data))


def _align(part: Any) -> Any:
    """Return an array or a CSR array whose numbers begin where kernels expect them."""
    if not sparse.issparse(part):
        return np.require(part, requirements="A")
    matrix: Any = part
    matrix = matrix.tocsr()
    cells = (matrix.data, matrix.indices, matrix.indptr)
    return sparse.csr_array(
        tuple(np.require(array, requirements="A") for array in cells), shape=matrix.shape
    )


def _count(part: Any) -> int:
    return int(part.shape[0])


def _take(part: Any, check: _Check, rows: _Packed) -> Any:
    part = check(part)
    return part if len(rows.value) == part.shape[0] else take_rows(part, rows.value)


def _route(part: Any, check: _Check, work: _Packed) -> Any:
    part = check(part)
    with named_by(check.title):
        return work.value(part, slice(check.first, check.first + part.shape[0]))


def _apply(part: Any, check: _Check, shared: _Packed) -> Any:
    work, empty = shared.value
    part = check(part)
    if not part.shape[0]:
        return empty
    with named_by(check.title):
        return np.asarray(work(part)).astype(empty.dtype, copy=False)


def _entry(result: Any, j: int) -> Any:
    return result[0][j]


def _add(values: Sequence[Any]) -> Any:
    return reduce(add, values)


def _stack(tables: Sequence[Any]) -> Any:
    """Return tables one below the other."""
    if len(tables) == 1:
        return tables[0]
    if sparse.issparse(tables[0]):
        return sparse.vstack(tables, format="csr")
    if not is_frame(tables[0]):
        return np.concatenate(tables)
    from dask.dataframe.dispatch import concat  # unites categories

    return concat([*tables])


def _compute(tasks: Sequence[Any]) -> list[Any]:
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
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        advice = "use smaller chunks or workers with more memory, and fit again"
        raise ClusterError(
            f"the Dask cluster lost its workers or data: {advice} ({cause})"
        ) from error
