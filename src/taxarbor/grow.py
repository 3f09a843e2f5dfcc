"""The growth loop: best first, from the root down (the paper's Algorithm 1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, nsmallest
from typing import Protocol, final

from taxarbor._run import GrowthEvent, Run
from taxarbor._types import IndexArray
from taxarbor.rows import Rows
from taxarbor.split import Refusal, Split, SplitTask, Splitter
from taxarbor.tree import LinearRule, TreeBuilder

__all__ = ["Run", "StoppingRule", "grow"]

Path = tuple[int, ...]
"""Identifies a node: which child to take at each split, from the root down."""

TASKS_PER_THREAD = 2
"""Nodes proposed together, per thread: they do not take equally long."""


@final
@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When a tree is large enough. A limit that is None has no effect.

    Attributes
    ----------
    n_leaves : int or None
        The tree never has more leaves than this.
    max_leaf_size : int or None
        Leaves of at most this many rows are not split.
    max_depth : int or None
        Leaves at this depth are not split.

    Examples
    --------
    >>> from taxarbor.grow import StoppingRule
    >>> StoppingRule(n_leaves=8).is_full(7, branching=3)
    True
    """

    n_leaves: int | None = None
    max_leaf_size: int | None = None
    max_depth: int | None = None

    def is_full(self, n_leaves: int, branching: int) -> bool:
        """Say whether one more split would make too many leaves."""
        return self.n_leaves is not None and n_leaves + branching - 1 > self.n_leaves

    def is_final(self, n_rows: int, depth: int) -> bool:
        """Say whether a leaf is small or deep enough not to be split."""
        small = self.max_leaf_size is not None and n_rows <= self.max_leaf_size
        return small or (self.max_depth is not None and depth >= self.max_depth)


@final
@dataclass(slots=True, eq=False)
class BranchMerger:
    """Merges splits into few children to splits into more.

    The children of a leaf whose parent has fewer than ``branching`` replace it there; so nodes
    have that many children at most, and are full before there are deeper ones.
    """

    branching: int
    splits: dict[int, list[int]] = field(default_factory=dict)
    _parent: dict[int, int] = field(default_factory=dict)
    _depth: dict[int, int] = field(default_factory=lambda: {0: 0})

    def level(self, node: int) -> int:
        """Return the depth at which a leaf would be split."""
        return self._depth[node] - self._is_merged(node)

    def add(self, node: int, children: Sequence[int]) -> None:
        """Add a split."""
        parent = node
        if self._is_merged(node):
            parent = self._parent[node]
            position = self.splits[parent].index(node)
            self.splits[parent][position : position + 1] = children
        else:
            self.splits[node] = [*children]
        for child in children:
            self._parent[child], self._depth[child] = parent, self._depth[parent] + 1

    def _is_merged(self, node: int) -> bool:
        return node in self._parent and len(self.splits[self._parent[node]]) < self.branching


class SplitSource(Protocol):
    """Proposes splits of a growing tree's nodes, and applies those that are chosen."""

    n_rows: int
    is_speculative: bool
    """Whether nodes can be split before their parents are split in the tree."""

    def propose_splits(self, paths: Sequence[Path]) -> Iterable[Split | Refusal]:
        """Return the best split of each node, whose parents had theirs proposed before."""
        ...

    def apply(self, tree: TreeBuilder, node: int, path: Path, split: Split) -> tuple[int, ...]:
        """Split a leaf of the tree, and return the ids of its children."""
        ...


def grow(
    rows: Rows,
    splitter: Splitter,
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
) -> TreeBuilder:
    """Grow a tree.

    Each leaf is tried once. Candidates wait in a heap; the one with the highest score is
    applied, and its children are tried.

    Parameters
    ----------
    rows : Rows
        All rows.
    splitter : Splitter
        Divides one node.
    branching : int
        Children per split.
    stop : StoppingRule
        When to stop.
    run : Run
        The seed, the thread pool and the observer.

    Returns
    -------
    TreeBuilder
        The tree; ``freeze`` it when nothing more is to be added.

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
    source = _SplitRows(rows, splitter, branching, run)
    return grow_from(source, branching=branching, stop=stop, run=run)


def grow_from(
    source: SplitSource,
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
    max_children: int = 2,
) -> TreeBuilder:
    """Grow a tree by the splits of a source; see :func:`grow`.

    Splits will be merged up to ``max_children``: depth counts as it does then.
    """
    tree = TreeBuilder(source.n_rows)
    _Growth(tree, source, branching, stop, run, BranchMerger(max_children)).run_to_end()
    return tree


@final
class _SplitRows:
    """Rows that a splitter divides node by node."""

    is_speculative = False

    def __init__(self, rows: Rows, splitter: Splitter, branching: int, run: Run) -> None:
        self.n_rows = rows.n_rows
        self._rows, self._splitter, self._branching, self._run = rows, splitter, branching, run
        self._members: dict[Path, tuple[IndexArray, tuple[LinearRule, ...]]] = {}

    def propose_splits(self, paths: Sequence[Path]) -> Iterable[Split | Refusal]:
        return self._run.each(self._split, paths)

    def apply(self, tree: TreeBuilder, node: int, path: Path, split: Split) -> tuple[int, ...]:
        _, lineage = self._members.pop(path, (None, ()))
        lineage = lineage if split.rule is None else (*lineage, split.rule)
        children = tree.add_split(node, split.labels, split.rule)
        for position, child in enumerate(children):
            self._members[(*path, position)] = tree.rows(child), lineage
        return children

    def _split(self, path: Path) -> Split | Refusal:
        rows = self._rows
        lineage: tuple[LinearRule, ...] = ()
        if path:
            members, lineage = self._members[path]
            rows = rows.take(members)
        return self._splitter.split(
            SplitTask(rows, path, lineage, self._branching, self._run.seed, self._rows.center)
        )


@final
@dataclass(slots=True, eq=False)
class _Growth:
    """A growing tree, and the candidates for its next splits."""

    tree: TreeBuilder
    source: SplitSource
    branching: int
    stop: StoppingRule
    run: Run
    merger: BranchMerger
    paths: dict[int, Path] = field(default_factory=lambda: {0: ()})
    heap: list[tuple[float, int, Split]] = field(default_factory=list)
    # Of nodes that are not in the tree yet.
    proposed: dict[Path, Split | Refusal] = field(default_factory=dict)
    n_tried: int = 0

    def run_to_end(self) -> None:
        """Propose splits and apply the best, until the tree is full or no candidate is left."""
        new: Sequence[int] = (0,)
        while not self.stop.is_full(self.tree.n_leaves, self.branching):
            self._propose([node for node in new if not self._is_final(node)])
            if not self.heap:
                return
            _, node, best = heappop(self.heap)
            new = ()
            if self._is_final(node):  # its parent has become full
                continue
            new = self.source.apply(self.tree, node, self.paths[node], best)
            self.paths |= {child: (*self.paths[node], at) for at, child in enumerate(new)}
            self.merger.add(node, new)
            self._notify()

    def _propose(self, nodes: Sequence[int]) -> None:
        """Add the splits of new leaves to the candidates."""
        missing = [path for node in nodes if (path := self.paths[node]) not in self.proposed]
        if missing:
            if self.source.is_speculative and self.run.width > 1:
                n_more = TASKS_PER_THREAD * self.run.width - len(missing)
                missing += self._choose_speculative(n_more)
            self.proposed |= zip(missing, self.source.propose_splits(missing), strict=True)
        for node in nodes:
            split = self.proposed.pop(self.paths[node])
            self.n_tried += 1
            if isinstance(split, Refusal):
                self.tree.refuse(node, split.reason)
            else:
                self.tree.record(
                    node, score=split.score, objective=split.objective, info=split.info
                )
                heappush(self.heap, (-split.score, node, split))
            self._notify()

    def _choose_speculative(self, max_nodes: int) -> list[Path]:
        """Return children of the candidates that, as far as is known, will be applied next.

        That is, what the growth would apply if nodes without a proposed split could not be
        split. Their splits can only replace others, so the tree is the same, whichever nodes
        are proposed early, and few are proposed in vain.
        """
        if self.stop.max_depth is not None and self.merger.branching > 2:
            return []  # the depth of a node depends on the splits applied before
        n_splits_left = None
        if self.stop.n_leaves is not None:
            n_splits_left = (self.stop.n_leaves - self.tree.n_leaves) // (self.branching - 1)
        best = nsmallest(max_nodes, self.heap)
        waiting = [(cost, self.paths[node], split) for cost, node, split in best]
        heapify(waiting)  # where costs are equal, by their paths
        paths: list[Path] = []
        while waiting and len(paths) < max_nodes and n_splits_left != 0:
            _, path, split = heappop(waiting)
            n_splits_left = None if n_splits_left is None else n_splits_left - 1
            for position, size in enumerate(split.sizes):
                child = (*path, position)
                known = self.proposed.get(child)
                if known is None and not self.stop.is_final(size, len(child)):
                    paths.append(child)
                elif known is not None and not isinstance(known, Refusal):
                    heappush(waiting, (-known.score, child, known))
        return paths

    def _is_final(self, node: int) -> bool:
        return self.stop.is_final(self.tree.size(node), self.merger.level(node))

    def _notify(self) -> None:
        max_leaves = self.stop.n_leaves or 0
        self.run.observer(GrowthEvent(self.tree.n_leaves, max_leaves, self.n_tried))
