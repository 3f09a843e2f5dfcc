"""The growth loop: best first, from the root down (the paper's Algorithm 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import final

from taxarbor._errors import InterruptedFitWarning, warn_caller
from taxarbor._run import GrowthEvent, Run
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.rows import Rows
from taxarbor.split import Refusal, Split, SplitTask, Splitter

__all__ = ["Run", "StoppingRule", "grow"]


@final
@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When a tree is large enough. Each limit that is None does not count.

    Attributes
    ----------
    n_leaves : int or None
        The tree never has more leaves than this.
    max_leaf_size : int or None
        Leaves of at most this many rows are left alone.
    max_depth : int or None
        Leaves at this depth are left alone.

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

    def spares(self, n_rows: int, depth: int) -> bool:
        """Say whether a leaf is small or deep enough to be left alone."""
        small = self.max_leaf_size is not None and n_rows <= self.max_leaf_size
        return small or (self.max_depth is not None and depth >= self.max_depth)


@final
@dataclass(slots=True, eq=False)
class Gathering:
    """Splits into few children, read as splits into more.

    The children of a leaf whose parent has fewer than ``branching`` take its place there; so
    nodes have that many children at most, and are full before there are deeper ones.
    """

    branching: int
    splits: dict[int, list[int]] = field(default_factory=dict)
    _home: dict[int, int] = field(default_factory=dict)  # the parent of each node but the root
    _depth: dict[int, int] = field(default_factory=lambda: {0: 0})

    def level(self, node: int) -> int:
        """Return the depth at which a leaf would be split."""
        return self._depth[node] - self._joins(node)

    def add(self, node: int, children: Sequence[int]) -> None:
        """Take note of a split."""
        home = node
        if self._joins(node):
            home = self._home[node]
            at = self.splits[home].index(node)
            self.splits[home][at : at + 1] = children
        else:
            self.splits[node] = [*children]
        for child in children:
            self._home[child], self._depth[child] = home, self._depth[home] + 1

    def _joins(self, node: int) -> bool:
        return node in self._home and len(self.splits[self._home[node]]) < self.branching


def grow(
    rows: Rows,
    splitter: Splitter,
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
    gather: int = 2,
) -> HierarchyBuilder:
    """Grow a tree.

    Each leaf is tried once. Candidates wait in a heap; the one with the highest score is
    applied, and its children are tried. An interrupt (Ctrl-C) ends the growth with a
    warning and keeps the tree grown so far.

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
        The seed, where to run, and whom to tell.
    gather : int
        How many children splits will be gathered to: depth counts as it does then.

    Returns
    -------
    HierarchyBuilder
        The tree; ``freeze`` it when nothing more is to be added.

    Examples
    --------
    >>> from taxarbor import load_animals
    >>> from taxarbor.grow import Run, StoppingRule, grow
    >>> from taxarbor.rows import as_rows
    >>> from taxarbor.split import KMeansSplitter
    >>> rows = as_rows(load_animals().X)
    >>> tree = grow(rows, KMeansSplitter(), branching=2, stop=StoppingRule(5), run=Run(seed=0))
    >>> tree.freeze().n_leaves
    5
    """
    tree = HierarchyBuilder(rows.n_rows)
    growth = _Growth(tree, rows, splitter, branching, stop, run, Gathering(gather))
    try:
        growth.go_on()
    except KeyboardInterrupt:
        warn_caller(
            "the fit was interrupted; the tree is what was grown so far", InterruptedFitWarning
        )
    return tree


@final
@dataclass(slots=True, eq=False)
class _Growth:
    """A tree on its way, with the candidates that wait to be applied."""

    tree: HierarchyBuilder
    rows: Rows
    splitter: Splitter
    branching: int
    stop: StoppingRule
    run: Run
    gathering: Gathering

    def go_on(self) -> None:
        """Try, apply the best, and again, until the tree is full or nothing is left."""
        heap: list[tuple[float, int, Split]] = []
        new: Sequence[int] = (0,)
        n_tried = 0
        while not self.stop.is_full(self.tree.n_leaves, self.branching):
            tried = [node for node in new if not self._spares(node)]
            for node, found in zip(tried, self.run.each(self._split, tried), strict=True):
                n_tried += 1
                if isinstance(found, Refusal):
                    self.tree.refuse(node, found.reason)
                else:
                    self.tree.record(
                        node, score=found.score, objective=found.objective, info=found.info
                    )
                    heappush(heap, (-found.score, node, found))
                if self._stops_here(n_tried):
                    return
            if not heap:
                return
            _, node, best = heappop(heap)
            if self._spares(node):  # its parent has become full
                new = ()
                continue
            new = self.tree.add_split(node, best.labels, best.rule)
            self.gathering.add(node, new)
            if self._stops_here(n_tried):
                return

    def _spares(self, node: int) -> bool:
        return self.stop.spares(self.tree.size(node), self.gathering.level(node))

    def _split(self, node: int) -> Split | Refusal:
        path, lineage = self.tree.lineage(node)
        rows = self.rows if node == 0 else self.rows.take(self.tree.rows(node))
        return self.splitter.split(
            SplitTask(rows, path, lineage, self.branching, self.run.seed, self.rows.center)
        )

    def _stops_here(self, n_tried: int) -> bool:
        most = self.stop.n_leaves or 0
        return self.run.observer(GrowthEvent(self.tree.n_leaves, most, n_tried))
