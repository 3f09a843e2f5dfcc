"""Rows for a tree that holds counts: each goes where the tree sends it."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._types import Array
from taxarbor.hierarchy._encoding import missing_in_leaves, shares_missing
from taxarbor.hierarchy._follows import measured_rows
from taxarbor.hierarchy._repeats import regrouped, repeats_of
from taxarbor.hierarchy._route import check_columns, expand, route, with_means
from taxarbor.rows import as_rows

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

NAMED = 5
"""Leaves without rows that are named, at most."""


def attached(tree: "Hierarchy", X: ArrayLike, sample_weight: ArrayLike | None) -> "Hierarchy":
    """Return the tree with these rows; see :meth:`Hierarchy.attach`."""
    _refuse_streams(X)
    if tree.encoding is None:
        check_columns(X, tree.feature_names)
    found = expand(X, tree)
    if not found.data.shape[0]:
        raise InputError("X has no rows, and a tree with rows needs one in each leaf")
    labels = route(tree, found)
    empty = np.setdiff1d(np.arange(tree.n_leaves), labels)
    if len(empty):
        told = some([f"c{label}" for label in empty.tolist()], NAMED)
        raise InputError(
            f"no row of X goes to {counted(len(empty), 'cluster')} of the tree, {told}: pass "
            "more rows, such as those of the fit, or a smaller tree, as tree.prune returns it"
        )
    rows = as_rows(found.data)
    weights = None if sample_weight is None else _checked(sample_weight, len(labels))
    new = replace(regrouped(without_rows(tree), labels), weights=weights)
    new = with_means(new, rows, None if weights is None else repeats_of(weights))
    if found.gaps is not None and tree.encoding is not None:
        missing = missing_in_leaves(new, found.gaps)
        new = replace(new, missing=shares_missing(new, missing))
    return measured_rows(new, rows, two_values=tree.two_values)


def without_rows(tree: "Hierarchy") -> "Hierarchy":
    """Return a tree of counts, without what is known of rows and of their weights."""
    follows = tree.follows and replace(tree.follows, broken=None)
    return replace(
        tree,
        order=None,
        noise=np.zeros(0, dtype=np.intp),
        n_noise=tree.n_noise,
        weights=None,
        totals=None,
        follows=follows,
        trust=None,
    )


def for_new_rows(tree: "Hierarchy") -> "Hierarchy":
    """Return a tree that says the same of new rows, without what is known of its own."""
    totals = tree.totals if tree.weights is None else tree.node_weights
    return replace(without_rows(tree), totals=totals)


def _refuse_streams(X: Any) -> None:
    """Raise for what may be larger than memory: a file, a part of one, or a lazy table."""
    is_mapped = isinstance(X, np.memmap) and X._mmap is not None  # type: ignore[attr-defined]
    is_lazy = isinstance(X, str | os.PathLike) or hasattr(X, "__dask_graph__")
    is_dataset = type(X).__module__.startswith("pyarrow.") or hasattr(X, "make_engine")
    if is_mapped or is_lazy or is_dataset:
        raise InputTypeError(
            "the rows of a tree must fit into memory: pass an array, a CSR matrix or a frame, "
            f"such as a sample of the rows, not {type(X).__name__}; model.predict labels "
            "them part by part"
        )


def _checked(sample_weight: ArrayLike, n_rows: int) -> Array:
    weights: Array = np.asarray(sample_weight, dtype=np.float64)
    is_right = (
        weights.shape == (n_rows,) and np.isfinite(weights).all() and (weights >= 0).all()
    )
    if not is_right or not weights.any():
        raise InputError(
            f"sample_weight must be {n_rows:,} finite numbers, one for each row, none negative "
            "and not all 0"
        )
    return weights
