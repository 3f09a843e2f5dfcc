"""Weights are repeats: a fit sees each row as often as it counts; noise is seen apart.

What grows a tree knows rows and nothing of weights. It gets an index that names a row several
times, and its tree, of these copies, is brought back to the rows here. So integer weights do
exactly what repeated rows do, bounds on sizes included, and rows of weight zero are absent.
Other weights are rounded to whole numbers of copies.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._follows import measured_rows
from taxarbor.hierarchy._route import arranged, place, with_means
from taxarbor.hierarchy._rule import LinearRule, Placement, deciding_rule
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
    tree: "Hierarchy",
    index: IndexArray,
    rows: Rows,
    run: Run | None = None,
    noise: NDArray[np.bool_] | None = None,
) -> "Hierarchy":
    """Return a tree of copies as one of rows, given the row of each copy, ascending.

    A row goes where most of its copies are, to the first such leaf; one without copies goes
    where equal rows are, or else new ones go, unless it is noise. A leaf that has no row then,
    as a bound on sizes put the lesser part of some rows' copies there, is removed. What is
    known of the nodes is what was measured of the copies.
    """
    n, K, labels = rows.n_rows, tree.n_leaves, tree.labels
    there = np.flatnonzero(labels >= 0)
    cells, counts = np.unique(index[there] * K + labels[there], return_counts=True)
    cells = cells[np.lexsort((-counts, cells // K))]
    own, first = np.unique(cells // K, return_index=True)
    homes = np.full(n, -1, dtype=np.intp)
    homes[own] = cells[first] % K
    if not np.bincount(homes[own], minlength=K).all():
        copies = rows.take(index)
        moved = measured_rows(with_means(regrouped(tree, homes[index]), copies), copies, run)
        return per_row(moved, index, rows, run, noise)
    copy = np.zeros(n, dtype=np.intp)  # one that is where its row is
    stays = np.flatnonzero(homes[index] == labels)
    copy[index[stays]] = stays
    alone = np.flatnonzero(homes < 0 if noise is None else (homes < 0) & ~noise)
    if len(alone):
        rule, sent = deciding_rule(tree), np.zeros(n, dtype=np.intp)
        if rule is not None:
            sent = place(tree, rows.take(np.arange(n), rule.center))
        (stray,) = np.nonzero((homes >= 0) & (homes != sent))
        homes[alone] = Strays.of(rows, stray, homes).lead(rows, alone, sent)
    found = regrouped(tree, homes)
    if tree.follows is None:
        return found
    broken = np.full(n, -1, dtype=np.intp)
    follows = tree.follows
    assert follows.broken is not None
    broken[own] = follows.broken[copy[own]]
    if len(alone):  # of whom what is said must hold as well, and may not where rules describe
        again = measured_rows(found, rows, run, two_values=tree.two_values).follows
        assert again is not None
        assert again.broken is not None
        broken[alone] = again.broken[alone]
        follows = replace(follows, gap=again.gap)
    return replace(found, follows=replace(follows, broken=broken))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Strays:
    """Rows that a bound on sizes, or a graph, put elsewhere than where new rows go.

    Equal rows that take no part in the fit go after them.
    """

    marks: NDArray[np.uint64]
    leaves: NDArray[np.integer]

    @classmethod
    def none(cls) -> "Strays":
        """Return no rows."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.intp))

    @classmethod
    def of(cls, rows: Rows, positions: IndexArray, labels: NDArray[np.integer]) -> "Strays":
        """Return some rows, each once, given the leaves of all."""
        return cls(rows.marks(positions), labels[positions]).sorted()

    def sorted(self) -> "Strays":
        """Return them in order, each once."""
        marks, first = np.unique(self.marks, return_index=True)
        return Strays(marks, self.leaves[first])

    def merge(self, other: "Strays") -> "Strays":
        """Return these and others."""
        marks = np.concatenate([self.marks, other.marks])
        return Strays(marks, np.concatenate([self.leaves, other.leaves]))

    def lead(
        self, rows: Rows, positions: IndexArray, sent: NDArray[np.integer]
    ) -> NDArray[np.integer]:
        """Return the leaves of some rows: that of an equal stray, else where it is sent."""
        found = sent[positions]
        if len(self.marks):
            own = rows.marks(positions)
            at = np.minimum(np.searchsorted(self.marks, own), len(self.marks) - 1)
            found = np.where(self.marks[at] == own, self.leaves[at], found)
        return found


def regrouped(tree: "Hierarchy", labels: IndexArray) -> "Hierarchy":
    """Return the tree with other rows, by the position of their leaves; those at -1 are noise.

    A leaf without rows is removed, and where a node has one child left, that takes its place.
    What rows tell of the rules, and their weights, are not known any more.
    """
    (there,) = np.nonzero(labels >= 0)
    counts = np.bincount(labels[there], minlength=tree.n_leaves)
    return replace(
        resized(tree, counts, len(labels) - len(there)),
        order=arranged(there, labels[there], tree.n_leaves),
        noise=np.flatnonzero(labels < 0),
    )


def resized(tree: "Hierarchy", counts: IndexArray, n_noise: int = 0) -> "Hierarchy":
    """Return a tree of counts with other numbers of rows in its leaves, and of noise.

    As :func:`regrouped` does. The leaves that are left stay in their order.
    """
    sizes = np.zeros(tree.n_nodes, dtype=np.intp)
    sizes[tree.leaves] = counts
    for node in range(tree.n_nodes - 1, 0, -1):  # children come after their parents
        sizes[tree.parents[node]] += sizes[node]
    left = [[c for c in tree.children(node) if sizes[c]] for node in range(tree.n_nodes)]
    is_gone, source = sizes == 0, np.arange(tree.n_nodes)
    for node in reversed(range(tree.n_nodes)):
        if len(left[node]) == 1:
            (child,) = left[node]
            is_gone[child], source[node] = True, source[child]
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
    origin = source[kept]
    inner = {int(node) for node in origin if len(left[node]) > 1}
    return replace(
        tree,
        order=None,
        noise=np.zeros(0, dtype=np.intp),
        n_noise=n_noise,
        start=start[kept],
        stop=(start + sizes)[kept],
        parents=np.concatenate(([-1], new_id[home[tree.parents[kept[1:]]]])),
        birth=np.unique(tree.birth[kept], return_inverse=True)[1],
        score=tree.score[origin],
        objective=tree.objective[origin],
        rules=tuple(
            _of_children(tree, node, left[node]) if node in inner else None
            for node in origin.tolist()
        ),
        info=tuple(tree.info[node] for node in origin),
        notes=tuple(tree.notes[node] for node in origin),
        fidelity=np.where(np.isin(origin, [*inner]), tree.fidelity[origin], np.nan),
        means=None if tree.means is None else tree.means[origin],
        placement=tree.placement and _of_leaves(tree.placement, sizes > 0, new_id[home]),
        follows=None,
        weights=None,
        totals=None,
    )


def _of_children(tree: "Hierarchy", node: int, children: list[int]) -> LinearRule | None:
    """Return a node's rule for those of its children that are left."""
    rule, own = tree.rules[node], np.array(children) - tree.children(node)[0]
    if rule is None or len(own) == rule.n_children:
        return rule
    return LinearRule(rule.weights[own], rule.center, rule.offsets[own])


def _of_leaves(
    placement: Placement, is_left: NDArray[np.bool_], new_id: IndexArray
) -> Placement | None:
    """Return the placement in those leaves that are left, None if that is one."""
    own = is_left[placement.leaves]
    leaves, rule = new_id[placement.leaves[own]], placement.rule
    if len(np.unique(leaves)) == 1:
        return None
    return Placement(LinearRule(rule.weights[own], rule.center, rule.offsets[own]), leaves)
