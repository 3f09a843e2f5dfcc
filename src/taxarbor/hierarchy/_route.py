"""Where new rows end up."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from taxarbor._types import IndexArray
from taxarbor.hierarchy._arrays import all_finite
from taxarbor.hierarchy._placement import deciding_rule
from taxarbor.hierarchy._rule import LinearRule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy
    from taxarbor.rows import Rows


def route(hierarchy: "Hierarchy", rows: "Rows") -> IndexArray:
    """Send rows to their leaves: by the placement, where there is one, or down the tree.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    rows : Rows
        Data with the features that the rules or the placement expect.

    Returns
    -------
    int array of shape (n_rows,)
        Position of each row's leaf in ``hierarchy.leaves``.

    Raises
    ------
    ValueError
        If the tree has neither rules nor a placement.
    """
    _check_rules(hierarchy)
    placement = hierarchy.placement
    if placement is None:
        leaf_of = _descend(hierarchy, rows)
    else:
        leaf_of = placement.leaves[_choose(placement.rule, rows, np.arange(rows.n_rows))]
    return _leaf_positions(hierarchy)[leaf_of]


def predict(hierarchy: "Hierarchy", X: ArrayLike) -> IndexArray:
    """Return the leaf position of each row of ``X``; see :meth:`Hierarchy.predict`."""
    _check_rules(hierarchy)
    rule = deciding_rule(hierarchy)
    check_columns(X, hierarchy.feature_names)
    data = check_data(X, hierarchy)
    if rule is None or not data.shape[0]:
        return np.zeros(data.shape[0], dtype=np.intp)
    from taxarbor.rows import as_rows

    return route(hierarchy, as_rows(data))


def decision_path(hierarchy: "Hierarchy", X: ArrayLike) -> sparse.csr_array:
    """Return the nodes that each row visits; see :meth:`Hierarchy.decision_path`."""
    leaf = predict(hierarchy, X)
    paths = [hierarchy.path(node) for node in hierarchy.leaves]
    lengths = np.array([len(path) for path in paths])
    flat = np.concatenate([np.array(path, dtype=np.intp) for path in paths])
    row_lengths = lengths[leaf]
    indptr = np.concatenate(([0], np.cumsum(row_lengths)))
    # Entry e of row r is entry e - indptr[r] of its leaf's path.
    offsets = (np.cumsum(lengths) - lengths)[leaf] - indptr[:-1]
    indices = flat[np.arange(indptr[-1]) + np.repeat(offsets, row_lengths)]
    ones = np.ones(len(indices), dtype=np.intp)
    return sparse.csr_array((ones, indices, indptr), shape=(len(leaf), hierarchy.n_nodes))


def _descend(hierarchy: "Hierarchy", rows: "Rows") -> IndexArray:
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
        choice = _choose(rule, rows, positions)
        # In the smallest type NumPy sorts in linear time, whatever the number of children.
        choice = choice.astype(np.min_scalar_type(rule.n_children))
        stops = np.cumsum(np.bincount(choice, minlength=rule.n_children))
        parts = np.split(positions[np.argsort(choice, kind="stable")], stops[:-1])
        for child, chosen in zip(hierarchy.children(node), parts, strict=True):
            if len(chosen):
                waiting[child] = chosen
    return leaf_of


def _choose(rule: LinearRule, rows: "Rows", positions: IndexArray) -> IndexArray:
    """Return the child of the rule for each of the rows at these positions."""
    from taxarbor.rows._base import best_scores

    return best_scores(rows.take(positions, center=rule.center), rule.weights, rule.offsets)


def _check_rules(hierarchy: "Hierarchy") -> None:
    """Raise ValueError if nothing says which way new rows go."""
    has_none = hierarchy.placement is None and hierarchy.rules[hierarchy.root] is None
    if has_none and hierarchy.n_leaves > 1:
        raise ValueError(
            "this hierarchy was made from labels or merges alone and has no rules to place "
            "new rows by; use an estimator with predict, such as taxarbor.HMMC"
        )


def _leaf_positions(hierarchy: "Hierarchy") -> IndexArray:
    """Return for each node its position among the leaves, -1 for inner nodes."""
    positions = np.full(hierarchy.n_nodes, -1, dtype=np.intp)
    positions[hierarchy.leaves] = np.arange(hierarchy.n_leaves)
    return positions


def check_columns(X: Any, names: tuple[str, ...] | None) -> None:
    """Raise ValueError if a frame's columns are not the features the tree was grown on."""
    columns = getattr(X, "columns", None)
    if names is None or columns is None:
        return
    given = [str(column) for column in columns]
    if sorted(given) == sorted(names) and given != list(names):
        raise ValueError(
            "the columns of X are in another order than the hierarchy was grown on; "
            "use X[list(hierarchy.feature_names)]"
        )
    if given != list(names):
        missing = [name for name in names if name not in set(given)][:3]
        raise ValueError(
            f"the columns of X are not those the hierarchy was grown on; missing: {missing}"
        )


def check_data(X: ArrayLike, hierarchy: "Hierarchy") -> Any:
    """Return X as a float array or CSR matrix of a tree's features, or raise ValueError."""
    rule = deciding_rule(hierarchy)
    known = hierarchy.means if rule is None else rule.weights  # of a column per feature
    is_sparse = sparse.issparse(X)
    data: Any = X.tocsr() if is_sparse else np.asarray(X)  # type: ignore[union-attr]
    if data.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, (n_rows, n_features), got shape {data.shape}"
        )
    if known is not None and data.shape[1] != known.shape[1]:
        raise ValueError(
            f"X has {data.shape[1]} features, but the hierarchy was grown on {known.shape[1]}"
        )
    data = _as_float(data, np.dtype(np.float64) if rule is None else rule.dtype)
    if not all_finite(data.data if is_sparse else data):
        raise ValueError(f"X holds NaN, infinity or a value too large for {data.dtype}")
    return data if is_sparse else np.ascontiguousarray(data)


def _as_float(data: Any, dtype: np.dtype[np.floating]) -> Any:
    """Cast integers to float64, floats to the given dtype; text and the like are refused."""
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):  # an overflow is infinite and refused for it
            return data.astype(dtype, copy=False)
    if data.dtype.kind not in "biuO":
        raise ValueError(f"X must hold numbers, got {data.dtype}")
    try:
        return data.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers: {error}") from error
