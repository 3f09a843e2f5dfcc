"""Where a tree meets data: checks of new rows, the leaves they go to, the means of nodes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._cells import refuse_times, unmasked
from taxarbor.hierarchy._checks import all_finite, check_structure
from taxarbor.hierarchy._encoding import Expanded, empty_rows, fill_gaps
from taxarbor.rows import Rows, as_rows
from taxarbor.rows._base import best_scores
from taxarbor.sweep._sums import below, sums_of_labels

if TYPE_CHECKING:
    from taxarbor.hierarchy._build import HierarchyBuilder
    from taxarbor.hierarchy._tree import Hierarchy


def route(hierarchy: "Hierarchy", X: ArrayLike, *, n_threads: int = 1) -> IndexArray:
    """Send rows to their leaves, or apart; see :meth:`Hierarchy.predict`."""
    if hierarchy.usual is None:
        return send(hierarchy, X, n_threads=n_threads)
    if hierarchy.encoding is None:
        check_columns(X, hierarchy.feature_names)
    found = expand(X, hierarchy)
    labels = send(hierarchy, found, n_threads=n_threads)
    if len(labels):
        is_noise = hierarchy.usual.is_noise(found.data, n_threads)
        empty = empty_rows(found.gaps)
        labels[is_noise if empty is None else is_noise & ~empty] = -1
    return labels


def send(hierarchy: "Hierarchy", X: ArrayLike, *, n_threads: int = 1) -> IndexArray:
    """Send all rows to leaves, noise as well.

    No label depends on the number of threads.
    """
    rule = hierarchy.rules[hierarchy.root]
    if rule is None and hierarchy.n_leaves > 1:
        raise InputError(
            "this hierarchy was made from labels or merges alone and has no rules to place "
            "new rows by; use an estimator with predict, such as taxarbor.Taxarbor"
        )
    if hierarchy.encoding is None:
        check_columns(X, hierarchy.feature_names)
    data = check_data(X, hierarchy)
    if rule is None or not data.shape[0]:
        return np.zeros(data.shape[0], dtype=np.intp)
    return place(hierarchy, as_rows(data, center=rule.center, n_threads=n_threads))


def place(hierarchy: "Hierarchy", rows: Rows) -> IndexArray:
    """Return the leaves of rows about the centre of the root's rule, by their position."""
    leaf_of = _descend(hierarchy, rows)
    position = np.full(hierarchy.n_nodes, -1, dtype=np.intp)
    position[hierarchy.leaves] = np.arange(hierarchy.n_leaves)
    return position[leaf_of]


def visited(hierarchy: "Hierarchy", labels: IndexArray) -> sparse.csr_array:
    """Return the nodes on the way to each label; see :meth:`Hierarchy.decision_path`."""
    paths = [hierarchy.path(node) for node in hierarchy.leaves]
    lengths = np.array([len(path) for path in paths])
    flat = np.concatenate([np.array(path, dtype=np.intp) for path in paths])
    lengths = np.append(lengths, 0)  # noise, -1, visits none
    row_lengths = lengths[labels]
    indptr = np.concatenate(([0], np.cumsum(row_lengths)))
    # Entry e of row r is entry e - indptr[r] of its leaf's path.
    offsets = (np.cumsum(lengths) - lengths)[labels] - indptr[:-1]
    indices = flat[np.arange(indptr[-1]) + np.repeat(offsets, row_lengths)]
    ones = np.ones(len(indices), dtype=np.intp)
    return sparse.csr_array((ones, indices, indptr), shape=(len(labels), hierarchy.n_nodes))


def _descend(hierarchy: "Hierarchy", rows: Rows) -> IndexArray:
    """Return the id of the leaf to which the rules of the nodes send each row.

    Nodes are visited by id, parents first, so each rule is applied once, to all the rows
    that reach it.
    """
    leaf_of = np.zeros(rows.n_rows, dtype=np.intp)
    waiting = {hierarchy.root: np.arange(rows.n_rows)}
    for node, rule in enumerate(hierarchy.rules):
        positions = waiting.pop(node, None)
        if positions is None:
            continue
        if rule is None:
            leaf_of[positions] = node
            continue
        here = rows.take(positions, center=rule.center)
        choice = best_scores(here, rule.weights, rule.offsets)
        stops = np.cumsum(np.bincount(choice, minlength=rule.n_children))
        parts = np.split(arranged(positions, choice, rule.n_children), stops[:-1])
        for child, chosen in zip(hierarchy.children(node), parts, strict=True):
            if len(chosen):
                waiting[child] = chosen
    return leaf_of


def arranged(rows: IndexArray, labels: NDArray[np.integer], n_parts: int) -> IndexArray:
    """Return rows by their labels, in their order within a label.

    A few parts are picked one by one, which is faster than NumPy's fastest sort.
    """
    if n_parts > 8:
        narrow = labels.astype(np.min_scalar_type(n_parts))  # sorted in linear time
        return rows[np.argsort(narrow, kind="stable")]
    return np.concatenate([rows[labels == part] for part in range(n_parts)])


def leaves_below(
    tree: "Hierarchy", pruned: "Hierarchy | None" = None
) -> tuple[IndexArray, IndexArray]:
    """Return the position of the first leaf below each node, and one past that of the last.

    Below the nodes of a pruned tree, if one is given: the slices of leaves tile all others.
    """
    nodes = tree if pruned is None else pruned
    first, last = np.searchsorted(tree.start[tree.leaves], [nodes.start, nodes.stop])
    return first, last


def check_columns(X: Any, names: Sequence[str] | None) -> None:
    """Raise ValueError if a frame's columns are not the features the tree was grown on."""
    columns = getattr(X, "columns", None)
    if names is None or columns is None:
        return
    given, expected = [str(column) for column in columns], list(names)
    if given == expected:
        return
    if sorted(given) == sorted(expected):
        raise InputError(
            "the columns of X are in another order than the hierarchy was grown on; "
            "use X[hierarchy.feature_names]"
        )
    missing = [name for name in expected if name not in set(given)][:3]
    raise InputError(
        f"the columns of X are not those the hierarchy was grown on; missing: {missing}"
    )


def check_data(X: ArrayLike, hierarchy: "Hierarchy") -> Any:
    """Return X as a float array or CSR matrix of a tree's features, or raise ValueError."""
    return expand(X, hierarchy).data


def expand(X: ArrayLike, hierarchy: "Hierarchy") -> Expanded:
    """Return what :func:`check_data` does, with the gaps that the user's table has."""
    rule = hierarchy.rules[hierarchy.root]
    dtype = np.dtype(np.float64) if rule is None else rule.dtype
    if isinstance(X, Expanded):
        return X
    if hierarchy.encoding is not None:
        return hierarchy.encoding.expand(X, dtype)
    width = hierarchy.n_features
    refuse_times(X)
    data: Any = X if sparse.issparse(X) else np.asarray(_with_nan(X))
    if data.ndim != 2:
        raise InputError(
            f"X must have two dimensions, (n_rows, n_features), got shape {data.shape}"
        )
    if width not in (None, data.shape[1]):
        raise InputError(
            f"X has {data.shape[1]} features, but the hierarchy was grown on {width}"
        )
    if sparse.issparse(X):
        check_structure(X)
        data = data.tocsr()
        check_structure(data)  # what other formats were made into
    data = _as_float(data, dtype)
    if not all_finite(data.data if sparse.issparse(X) else data):
        return _filled(hierarchy, data)
    return Expanded(data if sparse.issparse(X) else np.ascontiguousarray(data), None)


def _with_nan(X: Any) -> Any:
    """Return a masked array, or a frame of pandas, with NaN for gaps, and all else as it is."""
    return X.to_numpy(na_value=np.nan) if hasattr(X, "iloc") else unmasked(X)


def _filled(hierarchy: "Hierarchy", data: Any) -> Expanded:
    """Take gaps in new rows for the means of the columns, if a table might have had some."""
    matrix: Any = data
    cells = matrix.data if sparse.issparse(data) else data
    encoder = (hierarchy.made_by or {}).get("encoder")
    may_fill = encoder == "auto" or (
        isinstance(encoder, dict) and encoder.get("missing") != "error"
    )
    if hierarchy.means is None or not may_fill or np.isinf(cells).any():
        raise InputError(f"X holds NaN, infinity or a value too large for {data.dtype}")
    # What is cast already may still be the caller's own.
    own = matrix.copy() if sparse.issparse(data) else np.array(data, order="C")
    return fill_gaps(own, hierarchy.means[hierarchy.root])


def _as_float(data: Any, dtype: np.dtype[np.floating]) -> Any:
    """Cast integers to float64, floats to the given dtype; text and the like are refused."""
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):  # an overflow is infinite and refused for it
            return data.astype(dtype, copy=False)
    if data.dtype.kind not in "biuO":
        raise InputError(f"X must hold numbers, got {data.dtype}")
    try:
        return data.astype(np.float64)
    except OverflowError as error:  # of Python's integers, which know no bound
        raise InputError("X holds an integer too large for float64") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"X must hold numbers: {error}") from error


def node_means(
    tree: "Hierarchy | HierarchyBuilder", rows: Rows, repeats: IndexArray | None = None
) -> Array:
    """Return the mean of each node's rows, in float64: one sweep of all rows.

    Rows may count several times, or not at all; a leaf of none of those that do counts whole.
    Sums are exact, so that the same rows have the same means wherever they are added up.
    """
    labels, leaves = tree.labels.astype(np.int32), list(tree.leaves)
    counts = None
    if repeats is not None:
        (there,) = np.nonzero(labels >= 0)
        n_copies = np.bincount(labels[there], repeats[there], minlength=len(leaves))
        is_whole = np.append(n_copies == 0, False)[labels]  # noise, -1, is in no leaf
        counts = np.where(is_whole, 1, repeats).astype(np.int32)
    parents = list(tree.parents)
    sums = sums_of_labels(rows, labels, counts, len(leaves)).below(leaves, parents)
    own = None if counts is None else counts[labels >= 0]
    n_rows = np.bincount(labels[labels >= 0], own, minlength=len(leaves))
    means: Array = sums.values() / below(n_rows, leaves, parents)[:, None]
    return means


def with_means(
    hierarchy: "Hierarchy", rows: Rows, repeats: IndexArray | None = None
) -> "Hierarchy":
    """Return the tree with the mean of each node's rows, of the dtype of its rules."""
    rule = hierarchy.rules[hierarchy.root]
    dtype = rows.dtype if rule is None else rule.dtype
    means = node_means(hierarchy, rows, repeats).astype(dtype)
    if not all_finite(means):
        raise InputError("X holds values that are too large to take means of; scale them")
    return replace(hierarchy, means=means)
