"""What a fitted tree says of rows that need not fit into memory: part by part."""

from collections.abc import Callable
from typing import Any

import numpy as np

from taxarbor._errors import InputTypeError, named_by
from taxarbor._run import Run
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._remade import for_new_rows
from taxarbor.sweep._lazy_results import in_blocks, is_dask
from taxarbor.tables._stream import Stream, as_stream


def rows_by_parts(
    work: Callable[[Hierarchy, Any], Any],
    tree: Hierarchy,
    X: Any,
    *,
    dtype: Any,
    n_columns: int | None = None,
) -> Any:
    """Return what a function says of all rows of a stream: an array, or a lazy one of Dask.

    Parameters
    ----------
    work : callable
        A function of a module, of a tree and some rows.
    tree : Hierarchy
        The tree; what it knows of its own rows is left behind.
    X : object
        Rows that :func:`~taxarbor.tables._stream.as_stream` takes.
    dtype, n_columns
        Of what the work returns; no columns for one number per row.
    """
    bare = for_new_rows(tree)
    if is_dask(X):
        return in_blocks(work, bare, X, dtype, n_columns)
    stream = as_stream(X)
    assert stream is not None
    engine = stream.make_engine(Run(), None)
    try:
        column = engine.lazy(_titled, stream.parts, stream.titles, tell=work, tree=bare)
        found = engine.gather(column)
    finally:
        engine.close()
    return np.concatenate(found) if found else np.empty(0, dtype=dtype)


def _titled(part: Any, title: str, *, tell: Callable[..., Any], tree: Hierarchy) -> Any:
    """Name the part in what is wrong with it."""
    with named_by(title):
        return tell(tree, part)


def refuse_stream(estimator: Any, X: Any) -> None:
    """Raise InputTypeError for data that only ours reads part by part."""
    if not _is_elsewhere(X):
        return
    kind, name = type(X).__name__, type(estimator).__name__
    told = f"must be rows in memory for {name}, got {kind}"
    raise InputTypeError(f"{told}; Taxarbor takes rows that do not fit there", "X")


def _is_elsewhere(X: Any) -> bool:
    """Say whether something is a path or a collection of Dask: rows that are elsewhere."""
    return isinstance(X, str | Stream) or hasattr(X, "__fspath__") or is_dask(X)
