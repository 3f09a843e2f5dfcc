"""Where a tree meets data: checks of new rows, the leaves they go to, the means of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from taxarbor import native
from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._cells import as_frame, refuse_times, unmasked
from taxarbor.hierarchy._checks import all_finite, check_structure
from taxarbor.hierarchy._encoding import Expanded, add_below, empty_rows, fill_gaps
from taxarbor.rows import as_rows

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


@final
@dataclass(frozen=True, slots=True, eq=False)
class RoutingTable:
    """The rules of a tree as the routing kernel takes them, from the root down.

    Rule r chooses among the scores ``firsts[r]:firsts[r + 1]``, sums over the features
    ``starts[r]:starts[r + 1]``. The target of a score is another rule, further on, or, if
    negative, the leaf ``~target``; several scores may have the same.
    """

    starts: IndexArray
    features: NDArray[np.int32]
    centers: Array
    weights: Array  # of each feature of a rule, one for each of its scores
    firsts: IndexArray
    offsets: Array
    targets: NDArray[np.int32]
    n_leaves: int

    @classmethod
    def of(cls, tree: "Hierarchy") -> "RoutingTable":
        """Return the rules of a tree."""
        rules = [(node, rule) for node, rule in enumerate(tree.rules) if rule is not None]
        target_of = {node: turn for turn, (node, _) in enumerate(rules)}
        target_of |= {leaf: ~position for position, leaf in enumerate(tree.leaves.tolist())}
        used = [rule.features for _, rule in rules]
        centers = [rule.center[own] for (_, rule), own in zip(rules, used, strict=True)]
        weights = [
            rule.weights[:, own].T.ravel() for (_, rule), own in zip(rules, used, strict=True)
        ]
        targets = [
            target_of[frontier[target]]
            for node, rule in rules
            for frontier in [tree.frontier(node)]
            for target in rule.targets.tolist()
        ]
        return cls(
            np.cumsum([0, *map(len, used)], dtype=np.int64),
            _joined(used, np.int32),
            _joined(centers, np.float64),
            _joined(weights, np.float64),
            np.cumsum([0, *(rule.n_scores for _, rule in rules)], dtype=np.int64),
            _joined([rule.offsets for _, rule in rules], np.float64),
            np.array(targets, dtype=np.int32),
            tree.n_leaves,
        )


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts], dtype=dtype, casting="unsafe")


def route(hierarchy: "Hierarchy", X: ArrayLike, *, n_threads: int = 1) -> IndexArray:
    """Send rows to their leaves, or apart as noise; see :meth:`Hierarchy.predict`."""
    expanded = read_rows(X, hierarchy)
    labels = place_rows(hierarchy, expanded.data, n_threads=n_threads).astype(np.intp)
    if hierarchy.noise_model is not None and len(labels):
        fill = fills_of(hierarchy)
        is_noise = hierarchy.noise_model.find_noise(expanded.data, fill, n_threads=n_threads)
        empty = empty_rows(expanded.gaps)
        if empty is None and isinstance(expanded.data, np.ndarray):
            empty = np.zeros(len(labels), dtype=bool)
            empty[is_noise] = np.isnan(expanded.data[is_noise]).all(axis=1)
        labels[is_noise if empty is None else is_noise & ~empty] = -1
    return labels


def send(hierarchy: "Hierarchy", X: ArrayLike, *, n_threads: int = 1) -> IndexArray:
    """Send all rows to leaves, noise as well."""
    data = read_rows(X, hierarchy).data
    return place_rows(hierarchy, data, n_threads=n_threads).astype(np.intp)


def place_rows(hierarchy: "Hierarchy", data: Any, *, n_threads: int = 1) -> NDArray[np.int32]:
    """Return the leaves of rows, by their position: an array or a CSR matrix of features.

    NaN stands for the mean of a column, where a fit would take it so.

    Raises
    ------
    InputError
        If a value is infinite, or NaN where that is not allowed.
    """
    n_rows, n_features = data.shape
    if hierarchy.n_leaves > 1 and hierarchy.rules[hierarchy.root] is None:
        raise InputError(
            "this hierarchy was made from labels or merges alone and has no rules to place "
            "new rows by; use an estimator with predict, such as taxarbor.Taxarbor"
        )
    if not n_rows:
        return np.zeros(0, dtype=np.int32)
    rows = as_rows(data, center=np.zeros(n_features), n_threads=n_threads)
    labels, refused = rows.route(RoutingTable.of(hierarchy), fills_of(hierarchy))
    if refused >= 0:
        raise _refused_value(hierarchy, data, refused)
    return labels


def fills_of(hierarchy: "Hierarchy") -> Array | None:
    """Return what stands for a missing value in each feature; None where they are refused."""
    encoder = (hierarchy.made_by or {}).get("encoder")
    may_fill = encoder == "auto" or (
        isinstance(encoder, dict) and encoder.get("missing") != "error"
    )
    if not may_fill or hierarchy.means is None:
        return None
    fills: Array = hierarchy.means[hierarchy.root].astype(np.float64)
    return fills


def _refused_value(hierarchy: "Hierarchy", data: Any, row: int) -> InputError:
    """Return an error that says which value of a row is refused."""
    rows: Any = data[[row]]
    cells: Array = rows.toarray()[0] if sparse.issparse(data) else rows[0]
    wrong = ~np.isfinite(cells) if fills_of(hierarchy) is None else np.isinf(cells)
    column = int(np.flatnonzero(wrong)[0])
    names = hierarchy.feature_names
    name = f"x{column}" if names is None else names[column]
    value = (
        "NaN" if np.isnan(cells[column]) else f"infinity or a value too large for {cells.dtype}"
    )
    return InputError(f"contains {value}, in row {row} of column {name!r}, counted from 0", "X")


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


def expand(X: ArrayLike, hierarchy: "Hierarchy") -> Expanded:
    """Return X as features of a tree, with the missing cells of the user's table.

    Raises InputError where values are refused.
    """
    rows = read_rows(X, hierarchy)
    data: Any = rows.data
    cells = data.data if sparse.issparse(rows.data) else data
    if rows.gaps is not None or all_finite(cells):
        return rows
    fill = fills_of(hierarchy)
    wrong = ~np.isfinite(cells) if fill is None else np.isinf(cells)
    if fill is None or wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        row = first // data.shape[1]
        if sparse.issparse(rows.data):
            row = int(np.searchsorted(data.indptr[1:], first, "right"))
        raise _refused_value(hierarchy, data, row)
    return fill_gaps(data.copy(), fill)


def read_rows(X: ArrayLike, hierarchy: "Hierarchy") -> Expanded:
    """Return rows as an array or CSR matrix of features; arrays may still hold NaN.

    Cells are not looked at, unless a table is encoded.
    """
    rule = hierarchy.rules[hierarchy.root]
    dtype = np.dtype(np.float64) if rule is None else rule.dtype
    if isinstance(X, Expanded):
        return X
    if hierarchy.encoding is not None:
        return hierarchy.encoding.expand(X, dtype)
    X = as_frame(X)
    check_columns(X, hierarchy.feature_names)
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
        if not data.has_canonical_format:
            data = data.copy()  # the user's stays as it is
            data.sum_duplicates()
    data = _as_float(data, dtype)
    return Expanded(data if sparse.issparse(X) else np.ascontiguousarray(data), None)


def _with_nan(X: Any) -> Any:
    """Return a masked array, or a frame of pandas, with NaN for gaps, and all else as it is."""
    if not hasattr(X, "iloc"):
        return unmasked(X)
    if all(isinstance(dtype, np.dtype) for dtype in X.dtypes):
        return X.to_numpy()
    return X.to_numpy(dtype=object, na_value=np.nan)  # integers of pandas have no NaN


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


def sum_by_label(
    X: Any, labels: IndexArray, n_labels: int, counts: IndexArray | None = None
) -> Array:
    """Return the sum of the rows of each label, in float64, each row as often as it counts.

    Rows of a negative label add nothing.
    """
    if not sparse.issparse(X):
        times = None if counts is None else counts.astype(np.int32)
        return native.label_sums(X, labels.astype(np.int32), n_labels, times)
    (there,) = np.nonzero(labels >= 0)
    ones = np.ones(len(there)) if counts is None else counts[there].astype(np.float64)
    cells = ones, (labels[there], there)
    indicator = sparse.csr_array(cells, shape=(n_labels, len(labels)))
    matrix: Any = X
    sums: Any = indicator @ matrix.astype(np.float64)
    return np.asarray(sums.toarray())


def node_means(
    tree: "Hierarchy", X: Any, labels: IndexArray, counts: IndexArray | None = None
) -> Array:
    """Return the mean of each node's rows, in float64: an array or a CSR matrix of features.

    Rows may count several times, or not at all; a leaf of none of those that do counts whole.
    """
    n_leaves = tree.n_leaves
    if counts is not None:
        (there,) = np.nonzero(labels >= 0)
        n_copies = np.bincount(labels[there], counts[there], minlength=n_leaves)
        is_whole = np.append(n_copies == 0, False)[labels]  # noise, -1, is in no leaf
        counts = np.where(is_whole, 1, counts)
    sums = add_below(sum_by_label(X, labels, n_leaves, counts), tree.leaves, tree.parents)
    own = None if counts is None else counts[labels >= 0]
    n_rows = np.bincount(labels[labels >= 0], own, minlength=n_leaves)
    means: Array = sums / add_below(n_rows, tree.leaves, tree.parents)[:, None]
    return means


def with_means(
    hierarchy: "Hierarchy", X: Any, labels: IndexArray, counts: IndexArray | None = None
) -> "Hierarchy":
    """Return the tree with the mean of each node's rows, of the dtype of its rules."""
    rule = hierarchy.rules[hierarchy.root]
    dtype = X.dtype if rule is None else rule.dtype
    means = node_means(hierarchy, X, labels, counts).astype(dtype)
    if not all_finite(means):
        raise InputError("X holds values that are too large to take means of; scale them")
    return replace(hierarchy, means=means)
