"""Rows of features meet a tree: the leaves they are routed to, the means of nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from taxarbor import native
from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, Matrix
from taxarbor.rows import as_rows

if TYPE_CHECKING:
    from taxarbor.tree.tree import Tree


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
    def of(cls, tree: "Tree") -> "RoutingTable":
        """Return the rules of a tree."""
        rules = [(node, rule) for node, rule in enumerate(tree.rules) if rule is not None]
        target_of = {node: turn for turn, (node, _) in enumerate(rules)}
        target_of |= {leaf: ~position for position, leaf in enumerate(tree.leaves.tolist())}
        used, centers, weights, offsets, targets = [], [], [], [], list[int]()
        for node, rule in rules:
            used.append(own := rule.features)
            centers.append(rule.center[own])
            weights.append(rule.weights[:, own].T.ravel())
            offsets.append(rule.offsets)
            frontier = tree.frontier(node)
            targets += [target_of[frontier[target]] for target in rule.targets.tolist()]
        return cls(
            np.cumsum([0, *map(len, used)], dtype=np.int64),
            _concatenate(used, np.int32),
            _concatenate(centers, np.float64),
            _concatenate(weights, np.float64),
            np.cumsum([0, *map(len, offsets)], dtype=np.int64),
            _concatenate(offsets, np.float64),
            np.array(targets, dtype=np.int32),
            tree.n_leaves,
        )


def _concatenate(parts: Sequence[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts], dtype=dtype, casting="unsafe")


def place_rows(
    tree: "Tree",
    data: Matrix,
    fill: Array | None = None,
    *,
    name: Callable[[int], str] = "x{}".format,
    n_threads: int = 1,
) -> NDArray[np.int32]:
    """Return the leaves of rows, by their position: an array or a CSR matrix of features.

    ``fill`` are the values that NaN is replaced by; None where NaN is refused, as infinity is.
    ``name`` returns the name of a feature.
    """
    n_rows, n_features = data.shape
    if tree.n_leaves > 1 and tree.rules[tree.root] is None:
        raise InputError(
            "this tree was made from labels or merges alone and has no rules to place "
            "new rows by; use an estimator with predict, such as taxarbor.Taxarbor"
        )
    if not n_rows:
        return np.zeros(0, dtype=np.int32)
    rows = as_rows(data, center=np.zeros(n_features), n_threads=n_threads)
    labels, refused = rows.route(RoutingTable.of(tree), fill)
    if refused >= 0:
        refuse_values(data, name, allow_nan=fill is not None)
    return labels


def refuse_values(data: Matrix, name: Callable[[int], str], *, allow_nan: bool) -> None:
    """Raise InputError for the first value that is infinite, or NaN if that is refused."""
    cells: Array = data.ravel() if isinstance(data, np.ndarray) else data.data
    wrong = np.flatnonzero(np.isinf(cells) if allow_nan else ~np.isfinite(cells))
    if not len(wrong):
        return
    first = int(wrong[0])
    row, column = divmod(first, data.shape[1])
    if not isinstance(data, np.ndarray):
        row, column = int(np.searchsorted(data.indptr[1:], first, "right")), data.indices[first]
    value = f"infinity or a value too large for {cells.dtype}"
    value = "NaN" if np.isnan(cells[first]) else value
    where = f"row {row} of column {name(int(column))!r}, counted from 0"
    raise InputError(f"contains {value}, in {where}", "X")


def sum_by_label(
    X: Matrix, labels: IndexArray, n_labels: int, weights: Array | IndexArray | None = None
) -> Array:
    """Return the sum of the rows of each label, in float64, each times its weight.

    Rows of a negative label add nothing.
    """
    if isinstance(X, np.ndarray) and (weights is None or weights.dtype.kind in "iu"):
        times = None if weights is None else weights.astype(np.int32)
        return native.label_sums(X, labels.astype(np.int32), n_labels, times)
    (placed,) = np.nonzero(labels >= 0)
    ones = np.ones(len(placed)) if weights is None else weights[placed].astype(np.float64)
    cells = ones, (labels[placed], placed)
    indicator = sparse.csr_array(cells, shape=(n_labels, len(labels)))
    sums = indicator @ X.astype(np.float64)
    return np.asarray(sums if isinstance(sums, np.ndarray) else sums.toarray())
