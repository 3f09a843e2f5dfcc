"""Values for the rows of a Dask collection, as Dask arrays that are computed when asked for."""

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np

from taxarbor._errors import InputError, InputTypeError, missing_extra, named_by
from taxarbor._types import IndexArray
from taxarbor.sweep._dask import DaskEngine, Sealed, once
from taxarbor.sweep._engine import Column
from taxarbor.sweep._recipes import tasks_of

RowWork: TypeAlias = Callable[[Any, Any], Any]
"""Of a model and some rows: a function of a module."""


def is_dask(X: Any) -> bool:
    """Say whether something is a collection of Dask, without importing it."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def is_dask_array(X: Any) -> bool:
    """Say whether a collection of Dask is an array."""
    return _is_a(X, "dask.array", "Array")


def is_dask_frame(X: Any) -> bool:
    """Say whether a collection of Dask is a frame."""
    return _is_a(X, "dask.dataframe", "DataFrame")


def not_a_table(X: Any) -> InputTypeError:
    """Return an error for what is neither an array nor a frame."""
    told = f"must be an array or a frame of Dask, got a {type(X).__name__}"
    return InputTypeError(f"{told}; X.to_frame() makes a frame of a series", "X")


def check_chunks(X: Any) -> None:
    """Raise InputError unless a Dask array has whole rows of numbers in each chunk."""
    if X.ndim != 2:
        raise InputError(
            f"X must have two dimensions, (n_rows, n_features), got shape {X.shape}"
        )
    if X.numblocks[1] > 1:
        told = f"has {X.numblocks[1]} chunks along its columns; a row must lie in one chunk"
        raise InputError(f"{told}: X.rechunk({{1: -1}})", "X")
    if np.isnan(X.shape[1]):
        told = "does not know how many columns it has; give X.compute_chunk_sizes()"
        raise InputError(told, "X")
    if X.dtype.kind not in "biuf":
        raise InputTypeError(f"must hold numbers, got {X.dtype}; X.astype(float)", "X")


def lazy_rows(engine: DaskEngine, column: Column, sizes: IndexArray, dtype: Any) -> Any:
    """Return a column of arrays, such as the labels of each block, as one Dask array.

    What it needs of the column outlives the engine.

    Parameters
    ----------
    engine : DaskEngine
        Made the column.
    column : Column
        An array of one dimension for each block.
    sizes : int array of shape (n_blocks,)
        The rows of each block.
    dtype : dtype
        Of the arrays.
    """
    import dask.array as da

    blocks = [
        da.from_delayed(task, shape=(n,), dtype=dtype)
        for task, n in zip(engine.delayed(column), sizes.tolist(), strict=True)
    ]
    return da.concatenate(blocks)


def in_blocks(
    work: RowWork, model: Any, X: Any, dtype: Any, n_columns: int | None = None
) -> Any:
    """Return what a function makes of a model and all rows, as a lazy Dask array.

    Parameters
    ----------
    work : callable
        ``work(model, rows)`` returns an array with an entry, or a row, for each row.
    model : object
        Is in the graph once, however many blocks there are.
    X : Dask array or frame
        The rows.
    dtype : dtype
        Of what the work makes.
    n_columns : int, optional
        Of what it makes; None for one dimension.

    Raises
    ------
    InputError
        If rows lie across chunks, or if the work refuses no rows of such columns. When
        computed: what the work raises, with the block.
    """
    if is_dask_array(X):
        check_chunks(X)
        work(model, np.empty((0, X.shape[1]), dtype=X.dtype))
        return _of_array(once((work, model)), X, np.dtype(dtype), n_columns)
    if is_dask_frame(X):
        work(model, X._meta)
        return _of_frame(once((work, model)), X, np.dtype(dtype), n_columns)
    raise not_a_table(X)


def _of_array(call: Any, X: Any, dtype: np.dtype[Any], n_columns: int | None) -> Any:
    width = () if n_columns is None else (n_columns,)
    how: Any = {"drop_axis": 1} if n_columns is None else {}
    return X.map_blocks(
        _block_result,
        call=call,
        empty=Sealed(np.empty((0, *width), dtype=dtype)),
        chunks=(X.chunks[0], *((n,) for n in width)),
        meta=np.empty((0,) * (1 + len(width)), dtype=dtype),
        name=f"taxarbor-rows-{uuid4().hex}",  # results of one name would be taken for one
        **how,
    )


def _of_frame(call: Any, X: Any, dtype: np.dtype[Any], n_columns: int | None) -> Any:
    import dask.array as da
    from dask.delayed import delayed

    width = () if n_columns is None else (n_columns,)
    empty, work = Sealed(np.empty((0, *width), dtype=dtype)), delayed(_part_result, pure=False)
    blocks = [
        da.from_delayed(
            work(part, call, empty, f"partition {k}"), shape=(np.nan, *width), dtype=dtype
        )
        for k, part in enumerate(tasks_of(X))
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _block_result(block: Any, *, call: Sealed, empty: Sealed, block_id: Any) -> Any:
    return _part_result(block, call, empty, f"block {block_id[0]}")


def _part_result(rows: Any, call: Sealed, empty: Sealed, title: str) -> Any:
    nothing = empty.load()
    if not rows.shape[0]:
        return nothing
    work, model = call.load()
    with named_by(f"{title} of X"):
        return np.asarray(work(model, rows)).astype(nothing.dtype, copy=False)


def _is_a(X: Any, module: str, name: str) -> bool:
    from importlib import import_module

    if not is_dask(X):
        return False
    try:
        return isinstance(X, getattr(import_module(module), name))
    except ImportError as error:
        raise missing_extra("data of Dask", "dask[array,dataframe]") from error
