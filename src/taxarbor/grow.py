"""The growth loop: best first, from the root down (the paper's Algorithm 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import final

from taxarbor._fit_context import Run
from taxarbor.rows import Rows
from taxarbor.split import Refusal, Split, SplitTask, Splitter
from taxarbor.tree import TreeBuilder

__all__ = ["Run", "StoppingRule", "grow"]


@final
@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When a tree is large enough. A limit that is None has no effect.

    Examples
    --------
    >>> from taxarbor.grow import StoppingRule
    >>> StoppingRule(n_leaves=8).is_full(7, branching=3)
    True
    """

    n_leaves: int | None = None  #: the tree never has more leaves than this
    max_leaf_size: int | None = None  #: leaves of at most this many rows are not split
    max_depth: int | None = None  #: leaves at this depth are not split

    def is_full(self, n_leaves: int, branching: int) -> bool:
        """Return whether one more split would make too many leaves."""
        return self.n_leaves is not None and n_leaves + branching - 1 > self.n_leaves

    def is_final(self, n_rows: int, depth: int) -> bool:
        """Return whether a leaf is small or deep enough not to be split."""
        small = self.max_leaf_size is not None and n_rows <= self.max_leaf_size
        return small or (self.max_depth is not None and depth >= self.max_depth)


@final
class BranchMerger:
    """Merges splits into few children to splits into more.

    The children of a leaf whose parent has fewer than ``branching`` replace it there; so nodes
    have that many children at most, and are full before there are deeper ones.
    """

    def __init__(self, branching: int) -> None:
        self.splits: dict[int, list[int]] = {}
        self._branching = branching
        self._parent: dict[int, int] = {}

    def level(self, node: int) -> int:
        """Return the depth at which a leaf would be split."""
        n_above = -int(self._is_merged(node))
        while node in self._parent:
            node, n_above = self._parent[node], n_above + 1
        return n_above

    def add(self, node: int, children: Sequence[int]) -> None:
        """Add a split."""
        parent = node
        if self._is_merged(node):
            parent = self._parent[node]
            position = self.splits[parent].index(node)
            self.splits[parent][position : position + 1] = children
        else:
            self.splits[node] = [*children]
        self._parent |= dict.fromkeys(children, parent)

    def _is_merged(self, node: int) -> bool:
        return node in self._parent and len(self.splits[self._parent[node]]) < self._branching


def grow(
    rows: Rows, splitter: Splitter, *, branching: int, stop: StoppingRule, run: Run
) -> TreeBuilder:
    """Grow a tree of ``branching`` children per split, whose nodes a splitter divides.

    Each leaf is tried once. Candidates wait in a heap; the one with the highest score is
    applied, and its children are tried. ``freeze`` the tree when nothing more is to be added.

    Examples
    --------
    >>> from taxarbor import load_animals
    >>> from taxarbor.grow import Run, StoppingRule, grow
    >>> from taxarbor.rows import as_rows
    >>> from taxarbor.split import MaxMarginSplitter, Regularizer
    >>> rows = as_rows(load_animals().X)
    >>> penalty = Regularizer("group", alpha=0.003, beta=0.0, relative=True)
    >>> splitter = MaxMarginSplitter(penalty, (0.9, 1.1))
    >>> tree = grow(rows, splitter, branching=2, stop=StoppingRule(5), run=Run(seed=0))
    >>> tree.freeze().n_leaves
    5
    """

    def divide(tree: TreeBuilder, node: int) -> Split | Refusal:
        own = rows.take(tree.rows(node)) if node else rows
        path, above = tree.path(node), tree.rules_above(node)
        return splitter.split(SplitTask(own, path, above, branching, run.seed, rows.center))

    return grow_tree(rows.n_rows, divide, branching=branching, stop=stop, run=run)


def grow_tree(
    n_rows: int,
    divide: Callable[[TreeBuilder, int], Split | Refusal],
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
    max_children: int = 2,
) -> TreeBuilder:
    """Grow a tree by a function that divides a leaf of it; see :func:`grow`.

    Splits will be merged up to ``max_children``: depth counts as it does then.
    """
    tree, merger = TreeBuilder(n_rows), BranchMerger(max_children)
    candidates: list[tuple[float, int, Split]] = []
    new: Sequence[int] = (0,)

    def is_final(node: int) -> bool:
        return stop.is_final(tree.size(node), merger.level(node))

    while not stop.is_full(tree.n_leaves, branching):
        tried = [node for node in new if not is_final(node)]
        for node, split in zip(tried, run.each(partial(divide, tree), tried), strict=True):
            if isinstance(split, Refusal):
                tree.refuse(node, split.reason)
            else:
                tree.record(node, score=split.score, objective=split.objective, info=split.info)
                heappush(candidates, (-split.score, node, split))
            run.observer(tree.n_leaves, stop.n_leaves or 0)
        if not candidates:
            break
        _, node, split = heappop(candidates)
        new = ()
        if not is_final(node):  # its parent may have become full
            new = tree.add_split(node, split.labels, split.rule)
            merger.add(node, new)
            run.observer(tree.n_leaves, stop.n_leaves or 0)
    return tree
