"""Trees made from another tree: coarser, or with other rows in their leaves."""

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar

import numpy as np

from taxarbor import native
from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, Mask
from taxarbor.tree.rule import LinearRule, merge_targets

if TYPE_CHECKING:
    from taxarbor.tree.tree import Tree

Numbers = TypeVar("Numbers", Array, IndexArray)

_NO_ROWS = np.zeros(0, dtype=np.intp)


class Edit(NamedTuple):
    """A tree made from another, and the node of the other that each of its nodes was."""

    tree: "Tree"
    nodes: IndexArray


def prune(tree: "Tree", n_clusters: SupportsIndex | None, depth: SupportsIndex | None) -> Edit:
    """Return a coarser tree; see :meth:`taxarbor.Taxonomy.prune`."""
    kept, is_inner = kept_nodes(tree, n_clusters, depth)
    new_id = np.full(tree.n_nodes + 1, -1)  # the last for the parent of the root, -1
    new_id[kept] = np.arange(len(kept))
    new_leaf = new_id.copy()  # the leaf that a removed node is in now
    for node in np.flatnonzero(new_id[:-1] < 0).tolist():
        new_leaf[node] = new_leaf[tree.parents[node]]
    return _take(
        tree,
        kept,
        parents=new_id[tree.parents[kept]],
        sizes=tree.sizes[kept],
        rules=_take_rules(tree, np.where(is_inner, kept, -1), new_leaf),
        totals=None if tree.totals is None else tree.totals[kept],
    )


def kept_nodes(
    tree: "Tree", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> tuple[IndexArray, Mask]:
    """Return the ids of the nodes that a cut leaves, ascending, and which have children."""
    if (n_clusters is None) == (depth is None):
        raise ValueError("give either n_clusters or depth, and not both")
    if n_clusters is not None:
        limit = operator.index(n_clusters)
        if not 1 <= limit <= tree.n_leaves:
            expected = f"must be between 1 and the number of leaves, {tree.n_leaves}"
            raise InputError(f"{expected}, got {limit}", "n_clusters")
        n_leaves_after = 1 + np.cumsum(np.bincount(tree.birth)[1:] - 1)
        last_step = np.searchsorted(n_leaves_after, limit, side="right")
        kept = np.flatnonzero(tree.birth <= last_step)
    else:
        limit = operator.index(depth)  # type: ignore[arg-type]
        if limit < 0:
            raise ValueError(f"depth must be 0 or more, got {limit}")
        kept = np.flatnonzero(tree.depth <= limit)
    is_inner = np.zeros(tree.n_nodes, dtype=bool)
    is_inner[tree.parents[kept[1:]]] = True
    return kept, is_inner[kept]


def regroup(tree: "Tree", labels: IndexArray, weights: Array | None = None) -> Edit:
    """Return the tree with other rows, given the position of their leaves; -1 is noise.

    A leaf without rows is removed; where a node has one child left, that takes its place.
    """
    counts = np.bincount(labels + 1, minlength=tree.n_leaves + 1)  # noise first
    resized, nodes = resize(tree, counts[1:], int(counts[0]))
    regrouped = replace(
        resized,
        order=native.sort_by_label(np.asarray(labels), tree.n_leaves),
        noise=np.flatnonzero(labels < 0) if counts[0] else _NO_ROWS,
        weights=weights,
    )
    return Edit(regrouped, nodes)


def resize(tree: "Tree", counts: IndexArray, n_noise: int = 0) -> Edit:
    """Return a tree of counts with other numbers of rows in its leaves, and of noise.

    Empty leaves are removed as by :func:`regroup`; the others keep their order.
    """
    sizes = sum_below(np.asarray(counts, dtype=np.intp), tree.leaves, tree.parents)
    left = [[c for c in tree.children(node) if sizes[c]] for node in range(tree.n_nodes)]
    is_gone, source, decider = sizes == 0, np.arange(tree.n_nodes), np.arange(tree.n_nodes)
    for node in reversed(range(tree.n_nodes)):
        if len(left[node]) == 1:
            (child,) = left[node]
            is_gone[child], source[node] = True, source[child]
            if tree.rules[decider[child]] is not None:  # of all rules in one place, the lowest
                decider[node] = decider[child]
    kept, new_parent = np.flatnonzero(~is_gone), np.arange(tree.n_nodes)
    for node in np.flatnonzero(is_gone).tolist():
        new_parent[node] = new_parent[tree.parents[node]]
    new_id = np.full(tree.n_nodes, -1)
    new_id[kept] = np.arange(len(kept))
    return _take(
        tree,
        source[kept],
        order=None,
        noise=_NO_ROWS,
        weights=None,
        parents=np.concatenate(([-1], new_id[new_parent[tree.parents[kept[1:]]]])),
        sizes=sizes[kept],
        rules=_take_rules(tree, decider[kept], np.where(sizes, np.arange(tree.n_nodes), -1)),
        n_noise=n_noise,
        totals=None,
    )


def drop_rows(tree: "Tree") -> "Tree":
    """Return a tree of counts with the same sizes and sums of weights."""
    totals = tree.totals if tree.weights is None else tree.node_weights
    return replace(tree, order=None, noise=_NO_ROWS, weights=None, totals=totals)


def sum_below(values: Numbers, leaves: IndexArray, parents: IndexArray) -> Numbers:
    """Return for each node of a tree the sum of the values of the leaves below it."""
    sums = np.zeros((len(parents), *values.shape[1:]), dtype=values.dtype)
    sums[leaves] = values
    for node in range(len(parents) - 1, 0, -1):
        sums[parents[node]] += sums[node]
    return sums


def leaves_below(tree: "Tree") -> tuple[IndexArray, IndexArray]:
    """Return the position of the first leaf below each node, and one past that of the last."""
    first, last = np.searchsorted(tree.start[tree.leaves], [tree.start, tree.stop])
    return first, last


def _take(tree: "Tree", nodes: IndexArray, **changes: Any) -> Edit:
    """Return a tree with these changes and the records of these nodes."""
    info, notes = (tuple(one[node] for node in nodes) for one in (tree.info, tree.notes))
    score, objective = tree.score[nodes], tree.objective[nodes]
    changed = replace(tree, score=score, objective=objective, info=info, notes=notes, **changes)
    return Edit(changed, nodes)


def _take_rules(
    tree: "Tree", nodes: IndexArray, new_nodes: IndexArray
) -> tuple[LinearRule | None, ...]:
    """Return the rules of some nodes, given what all nodes have become; -1 is none."""
    rules: list[LinearRule | None] = []
    for node in nodes.tolist():
        rule = None if node < 0 else tree.rules[node]
        rules.append(rule and merge_targets(rule, new_nodes[list(tree.frontier(node))]))
    return tuple(rules)
