"""Weights are repeats: a fit sees each row as often as it counts.

What grows a tree knows rows and nothing of weights. It gets an index that names a row several
times, and its tree, of these copies, is brought back to the rows here. So integer weights do
exactly what repeated rows do, bounds on sizes included, and rows of weight zero are absent.
Other weights are rounded to whole numbers of copies.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._follows import measured
from taxarbor.hierarchy._route import arranged, place
from taxarbor.hierarchy._rule import deciding_rule
from taxarbor.hierarchy._tree import keep_nodes
from taxarbor.rows import Rows

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

EXACT = (4, 20_000)
"""Copies per row, and copies, up to which integer weights are not rounded."""

COPIES = (10, 10_000)
"""Copies per row, and copies, that other weights are rounded to; but one per row at least. More
would make large fits slower, and fewer would take light rows of small tables for none."""

GRID = 2.0**32
"""Weights are rounded to this part of the greatest first: what the common factor of all leaves
in their last digits decides nothing."""

UNDONE = "its split divided the copies of one row, and left a child without rows"


def repeats_of(weights: Array) -> IndexArray:
    """Return how many copies a fit sees of each row; see the module.

    Each row is within one copy of its due. Which rows get the one more depends on nothing but
    the weights that are not zero and their order, which is shuffled: data may come in turns.
    """
    repeats = np.zeros(len(weights), dtype=np.intp)
    (some,) = weights.nonzero()
    own, n = weights[some], len(some)
    with np.errstate(over="ignore"):
        total = own.sum()
    if total <= max(EXACT[0] * n, EXACT[1]) and (own == np.floor(own)).all():
        repeats[some] = own.astype(np.intp)
    elif (own == own[0]).all():
        repeats[some] = 1
    else:
        shuffled = np.random.default_rng(0).permutation(n)
        grown = np.cumsum(np.round(own[shuffled] / own.max() * GRID))  # whole numbers
        n_copies = max(n, min(COPIES[0] * n, COPIES[1]))
        due = np.floor(grown * (n_copies / grown[-1]) + 0.5).astype(np.intp)
        repeats[some[shuffled]] = np.diff(due, prepend=0)
    return repeats


def per_row(
    tree: "Hierarchy", index: IndexArray, rows: Rows, run: Run | None = None
) -> "Hierarchy":
    """Return a tree of copies as one of rows, given the row of each copy, ascending.

    A row goes where most of its copies are, to the first such leaf; one without copies goes
    where new rows go. A split is undone if it leaves a child without rows: a bound on sizes
    divided the copies of one. What is known of the nodes is what was measured of the copies.
    """
    n, K, labels = rows.n_rows, tree.n_leaves, tree.labels
    cells, counts = np.unique(index * K + labels, return_counts=True)
    cells = cells[np.lexsort((-counts, cells // K))]
    own, first = np.unique(cells // K, return_index=True)
    homes = np.full(n, -1, dtype=np.intp)
    homes[own] = cells[first] % K
    sizes = _node_sizes(tree, np.bincount(homes[own], minlength=K))
    if not sizes.all():
        return per_row(_without_empty(tree, sizes), index, rows, run)
    copy = np.full(n, -1, dtype=np.intp)  # one that is where its row is
    stays = np.flatnonzero(homes[index] == labels)
    copy[index[stays]] = stays
    alone = np.flatnonzero(homes < 0)
    if len(alone):
        rule = deciding_rule(tree)
        seen = rule and rows.take(alone, center=rule.center)
        homes[alone] = 0 if seen is None else place(tree, seen)
    sizes = _node_sizes(tree, np.bincount(homes, minlength=K))
    start = np.zeros_like(sizes)
    for node in range(tree.n_nodes):
        begin = start[node]
        for child in tree.children(node):
            start[child] = begin
            begin += sizes[child]
    order = arranged(np.arange(n), homes, K)
    found = replace(tree, order=order, start=start, stop=start + sizes, follows=None)
    if tree.follows is None:
        return found
    broken = np.full(n, -1, dtype=np.intp)
    broken[own] = tree.follows.broken[copy[own]]
    if len(alone) and tree.placement is not None:  # the rules describe, and may not hold
        again = measured(found, rows, run).follows
        assert again is not None
        broken[alone] = again.broken[alone]
    return replace(found, follows=replace(tree.follows, broken=broken))


def _node_sizes(tree: "Hierarchy", of_leaves: IndexArray) -> IndexArray:
    """Return the number of rows of each node, given those of the leaves from left to right."""
    sizes = np.zeros(tree.n_nodes, dtype=np.intp)
    sizes[tree.leaves] = of_leaves
    for node in range(tree.n_nodes - 1, 0, -1):  # children come after their parents
        sizes[tree.parents[node]] += sizes[node]
    return sizes


def _without_empty(tree: "Hierarchy", sizes: IndexArray) -> "Hierarchy":
    """Return the tree without the splits that have a child of no rows, and what is below."""
    parents = tree.parents
    undone = np.zeros(tree.n_nodes, dtype=bool)
    undone[parents[sizes == 0]] = True
    gone = np.zeros(tree.n_nodes, dtype=bool)
    for node in range(1, tree.n_nodes):
        gone[node] = gone[parents[node]] or undone[parents[node]]
    kept = np.flatnonzero(~gone)
    is_inner = ~undone[kept] & ~np.isin(kept, tree.leaves)
    found = keep_nodes(tree, kept, is_inner)
    told = zip(found.notes, undone[kept], strict=True)
    return replace(found, notes=tuple(UNDONE if is_new else note for note, is_new in told))
