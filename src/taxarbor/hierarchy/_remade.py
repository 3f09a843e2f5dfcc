"""Trees that are made of another: coarser, with other rows or none, in other units."""

import operator
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor import native
from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._encoding import add_below, share_missing
from taxarbor.hierarchy._reasons import find_two_values
from taxarbor.hierarchy._repeats import repeats_of
from taxarbor.hierarchy._route import expand, route, with_means
from taxarbor.hierarchy._rule import LinearRule, merge_targets, unscaled
from taxarbor.rows import as_rows

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

NAMED = 5
"""Leaves without rows that are named, at most."""
_NO_ROWS: Any = {
    "order": None,
    "noise": np.zeros(0, dtype=np.intp),
    "weights": None,
    "totals": None,
}
"""What a tree of counts has for what is of rows and their weights."""


# Coarser


def pruned(
    tree: "Hierarchy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> "Hierarchy":
    """Return a coarser tree; see :meth:`Hierarchy.prune`."""
    kept, is_inner = kept_nodes(tree, n_clusters, depth)
    new_id = np.full(tree.n_nodes + 1, -1)  # the last for the parent of the root, -1
    new_id[kept] = np.arange(len(kept))
    home = new_id.copy()  # the leaf that a node without an id of its own is in now
    for node in np.flatnonzero(new_id[:-1] < 0).tolist():
        home[node] = home[tree.parents[node]]
    return _take_nodes(
        tree,
        kept,
        rules=_take_rules(tree, np.where(is_inner, kept, -1), home),
        start=tree.start[kept],
        stop=tree.stop[kept],
        parents=new_id[tree.parents[kept]],
        # Splits that stay are counted anew: by depth, earlier ones may have gone.
        birth=np.unique(tree.birth[kept], return_inverse=True)[1],
        totals=None if tree.totals is None else tree.totals[kept],
        trust=tree.trust and tree.trust.take(kept, is_inner, tree.node_weights[kept]),
    )


def _take_nodes(tree: "Hierarchy", nodes: IndexArray, **changes: Any) -> "Hierarchy":
    """Return a tree of some nodes with what is known of them."""
    known: dict[str, Any] = {
        "info": tuple(tree.info[node] for node in nodes.tolist()),
        "notes": tuple(tree.notes[node] for node in nodes.tolist()),
        "score": tree.score[nodes],
        "objective": tree.objective[nodes],
        "means": None if tree.means is None else tree.means[nodes],
        "missing": None if tree.missing is None else tree.missing[nodes],
    }
    return replace(tree, **(known | changes))


def _take_rules(
    tree: "Hierarchy", nodes: IndexArray, new_nodes: IndexArray
) -> tuple[LinearRule | None, ...]:
    """Return the rules of some nodes, given what all nodes have become; -1 is none."""
    rules: list[LinearRule | None] = []
    for node in nodes.tolist():
        rule = None if node < 0 else tree.rules[node]
        rules.append(rule and merge_targets(rule, new_nodes[list(tree.frontier(node))]))
    return tuple(rules)


def kept_nodes(
    tree: "Hierarchy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> tuple[IndexArray, NDArray[np.bool_]]:
    """Return the ids of the nodes that a cut leaves, ascending, and which have children."""
    if (n_clusters is None) == (depth is None):
        raise ValueError("give either n_clusters or depth, and not both")
    if n_clusters is not None:
        wanted = operator.index(n_clusters)
        if not 1 <= wanted <= tree.n_leaves:
            raise ValueError(
                "n_clusters must be between 1 and the number of leaves, "
                f"{tree.n_leaves}, got {wanted}"
            )
        n_leaves_after = 1 + np.cumsum(np.bincount(tree.birth)[1:] - 1)
        last_step = np.searchsorted(n_leaves_after, wanted, side="right")
        kept = np.flatnonzero(tree.birth <= last_step)
    else:
        limit = operator.index(depth)  # type: ignore[arg-type]
        if limit < 0:
            raise ValueError(f"depth must be 0 or more, got {limit}")
        kept = np.flatnonzero(tree.depth <= limit)
    is_inner = np.zeros(tree.n_nodes, dtype=bool)
    is_inner[tree.parents[kept[1:]]] = True
    return kept, is_inner[kept]


def from_left(tree: "Hierarchy", nodes: IndexArray) -> IndexArray:
    """Return nodes, none of them above another, from left to right."""
    return nodes[np.argsort(tree.start[nodes])]


# Other rows


def attached(tree: "Hierarchy", X: ArrayLike, sample_weight: ArrayLike | None) -> "Hierarchy":
    """Return the tree with these rows; see :meth:`Hierarchy.attach`."""
    is_mapped = isinstance(X, np.memmap) and X._mmap is not None  # type: ignore[attr-defined]
    is_lazy = isinstance(X, str | os.PathLike) or hasattr(X, "__dask_graph__")
    if is_mapped or is_lazy or type(X).__module__.startswith("pyarrow._dataset"):
        raise InputTypeError(
            "the rows of a tree must fit into memory: pass an array, a CSR matrix or a frame, "
            f"such as a sample of the rows, not {type(X).__name__}; model.predict labels "
            "them part by part"
        )
    found = expand(X, tree)
    if not (n_rows := found.data.shape[0]):
        raise InputError("X has no rows, and a tree with rows needs one in each leaf")
    labels, weights, repeats = route(tree, found), None, None
    _require_all(
        tree, np.bincount(labels[labels >= 0]), "no row of X goes to", "pass more rows"
    )
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
        is_right = weights.shape == (n_rows,) and bool(np.isfinite(weights).all())
        if not is_right or not weights.any() or weights.min() < 0.0:
            raise InputError(
                f"sample_weight must be {n_rows:,} finite numbers, one for each row, none "
                "negative and not all 0"
            )
        repeats = repeats_of(weights)
    new = regroup(without_rows(tree), labels, weights)
    none = "sample_weight is zero for all rows of"
    _require_all(tree, new.node_weights[new.leaves], none, "give some of them a weight")
    new = with_means(new, found.data, new.labels, repeats)
    if found.gaps is not None and tree.encoding is not None:
        new = replace(new, missing=share_missing(new, found.gaps, new.labels, repeats))
    if new.two_values is not None:
        return new
    return replace(new, two_values=find_two_values(as_rows(found.data)))


def _require_all(tree: "Hierarchy", sizes: NDArray[Any], none: str, what: str) -> None:
    """Raise an error if a leaf has no rows, or only such without a weight."""
    empty = np.setdiff1d(np.arange(tree.n_leaves), np.flatnonzero(sizes > 0))
    if len(empty):
        told = some([f"c{label}" for label in empty.tolist()], NAMED)
        raise InputError(
            f"{none} {counted(len(empty), 'cluster')} of the tree, {told}: {what}, or pass a "
            "smaller tree, as tree.prune returns it"
        )


def without_rows(tree: "Hierarchy") -> "Hierarchy":
    """Return a tree of counts, without what is known of rows and of their weights."""
    return replace(tree, **_NO_ROWS, n_noise=tree.n_noise, trust=None)


def for_new_rows(tree: "Hierarchy") -> "Hierarchy":
    """Return a tree that says the same of new rows, without what is known of its own."""
    totals = tree.totals if tree.weights is None else tree.node_weights
    return replace(without_rows(tree), totals=totals)


def regroup(tree: "Hierarchy", labels: IndexArray, weights: Array | None = None) -> "Hierarchy":
    """Return the tree with other rows, by the position of their leaves; those at -1 are noise.

    A leaf without rows is removed, and where a node has one child left, that takes its place.
    """
    counts = np.bincount(labels + 1, minlength=tree.n_leaves + 1)  # noise first
    return replace(
        resize(tree, counts[1:], int(counts[0])),
        order=native.sort_by_label(np.asarray(labels), tree.n_leaves),
        noise=np.flatnonzero(labels < 0) if counts[0] else np.zeros(0, dtype=np.intp),
        weights=weights,
    )


def resize(tree: "Hierarchy", counts: IndexArray, n_noise: int = 0) -> "Hierarchy":
    """Return a tree of counts with other numbers of rows in its leaves, and of noise.

    As :func:`regroup` does. The leaves that are left stay in their order.
    """
    sizes = add_below(np.asarray(counts, dtype=np.intp), tree.leaves, tree.parents)
    left = [[c for c in tree.children(node) if sizes[c]] for node in range(tree.n_nodes)]
    is_gone, source, decider = sizes == 0, np.arange(tree.n_nodes), np.arange(tree.n_nodes)
    for node in reversed(range(tree.n_nodes)):
        if len(left[node]) == 1:
            (child,) = left[node]
            is_gone[child], source[node] = True, source[child]
            if tree.rules[decider[child]] is not None:  # of all rules in one place, the lowest
                decider[node] = decider[child]
    kept, home = np.flatnonzero(~is_gone), np.arange(tree.n_nodes)
    for node in np.flatnonzero(is_gone).tolist():
        home[node] = home[tree.parents[node]]
    new_id = np.full(tree.n_nodes, -1)
    new_id[kept] = np.arange(len(kept))
    start = np.zeros_like(sizes)
    for node in range(tree.n_nodes):
        begin = start[node]
        for child in left[node]:
            start[child], begin = begin, begin + sizes[child]
    return _take_nodes(
        tree,
        source[kept],
        **_NO_ROWS,
        rules=_take_rules(tree, decider[kept], np.where(sizes, np.arange(tree.n_nodes), -1)),
        n_noise=n_noise,
        start=start[kept],
        stop=(start + sizes)[kept],
        parents=np.concatenate(([-1], new_id[home[tree.parents[kept[1:]]]])),
        birth=np.unique(tree.birth[kept], return_inverse=True)[1],
    )


# Other units


def unscaled_tree(
    tree: "Hierarchy", mean: ArrayLike | None, scale: ArrayLike | None
) -> "Hierarchy":
    """Return the tree of rows that were not scaled; see :meth:`Hierarchy.unscale`."""
    if tree.encoding is not None:
        raise InputError(
            "the tree is in the units of the table that it was grown on, and takes its "
            "rows as they are: what was scaled for the fit is undone already"
        )
    shift, factor = _scaling(tree, mean, scale)
    means, values = tree.means, tree.two_values
    if means is not None:
        means = (means * factor + shift).astype(means.dtype)
    rules = tuple(rule and unscaled(rule, shift, factor) for rule in tree.rules)
    if values is not None:
        values = values * factor[:, None] + shift[:, None]
    return replace(
        tree,
        rules=rules,
        means=means,
        two_values=values,
        noise_model=tree.noise_model and tree.noise_model.unscale(shift, factor),
    )


def _scaling(
    tree: "Hierarchy", mean: ArrayLike | None, scale: ArrayLike | None
) -> tuple[Array, Array]:
    """Return both as arrays, 0 and 1 where there are none, or raise ValueError."""
    shapes = [np.shape(values) for values in (mean, scale) if values is not None]
    scaled = tree.rules[tree.root], tree.means, tree.two_values
    if any(part is not None for part in scaled):
        shapes = [(tree.n_features,)]
    expected = shapes[0] if shapes else (0,)
    shift, factor = (
        np.full(expected, usual) if values is None else np.asarray(values, dtype=np.float64)
        for values, usual in ((mean, 0.0), (scale, 1.0))
    )
    if shift.shape != expected or factor.shape != expected or shift.ndim != 1:
        raise InputError(
            f"mean and scale must have shape {expected}, one number per feature, or be None, "
            f"got {shift.shape} and {factor.shape}"
        )
    if not (np.isfinite(shift).all() and np.isfinite(factor).all() and (factor > 0.0).all()):
        raise InputError("mean and scale must be finite, and every scale positive")
    return shift, factor
