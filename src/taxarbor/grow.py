"""The growth loop: best first, from the root down (the paper's Algorithm 1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, nsmallest
from typing import Any, Protocol, final

from taxarbor._run import GrowthEvent, Run
from taxarbor._types import IndexArray
from taxarbor.rows import Rows
from taxarbor.split import Refusal, SplitTask, Splitter
from taxarbor.tree import LinearRule, TreeBuilder

__all__ = ["Run", "StoppingRule", "grow"]

Path = tuple[int, ...]
"""Which child to take at each split, from the root down: what a node is known by."""

AHEAD = 2
"""Nodes tried together, for each that runs at a time: they do not take equally long."""


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


class Ground(Protocol):
    """What a tree grows on: the rows of its nodes, wherever they are."""

    n_rows: int
    looks_ahead: bool
    """Whether nodes can be tried before their parents are split in the tree."""

    def seek(self, paths: Sequence[Path]) -> Iterable[Any]:
        """Return the best split of each of some nodes, or a Refusal.

        The splits of their parents were found before. A split has a score, an objective, info
        and, where the ground looks ahead, the sizes of its children.
        """
        ...

    def apply(self, tree: TreeBuilder, node: int, path: Path, split: Any) -> tuple[int, ...]:
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
    ground = _RowsInMemory(rows, splitter, branching, run)
    return grow_on(ground, branching=branching, stop=stop, run=run)


def grow_on(
    ground: Ground, *, branching: int, stop: StoppingRule, run: Run, gather: int = 2
) -> TreeBuilder:
    """Grow a tree on any ground; see :func:`grow`.

    ``gather`` is how many children splits will be gathered to: depth counts as it does then.
    """
    tree = TreeBuilder(ground.n_rows)
    _Growth(tree, ground, branching, stop, run, Gathering(gather)).run_to_end()
    return tree


@final
class _RowsInMemory:
    """Rows that a splitter divides node by node."""

    looks_ahead = False

    def __init__(self, rows: Rows, splitter: Splitter, branching: int, run: Run) -> None:
        self.n_rows = rows.n_rows
        self._rows, self._splitter, self._branching, self._run = rows, splitter, branching, run
        self._members: dict[Path, tuple[IndexArray, tuple[LinearRule, ...]]] = {}

    def seek(self, paths: Sequence[Path]) -> Iterable[Any]:
        return self._run.each(self._split, paths)

    def apply(self, tree: TreeBuilder, node: int, path: Path, split: Any) -> tuple[int, ...]:
        self._members.pop(path, None)
        made = tree.add_split(node, split.labels, split.rule)
        for turn, child in enumerate(made):
            self._members[(*path, turn)] = tree.rows(child), tree.lineage(child)[1]
        return made

    def _split(self, path: Path) -> Any:
        no_rules: tuple[LinearRule, ...] = ()
        rows, lineage = self._rows, no_rules
        if path:
            members, lineage = self._members[path]
            rows = rows.take(members)
        return self._splitter.split(
            SplitTask(rows, path, lineage, self._branching, self._run.seed, self._rows.center)
        )


@final
@dataclass(slots=True, eq=False)
class _Growth:
    """A tree on its way, with the candidates that wait to be applied."""

    tree: TreeBuilder
    ground: Ground
    branching: int
    stop: StoppingRule
    run: Run
    gathering: Gathering
    paths: dict[int, Path] = field(default_factory=lambda: {0: ()})
    heap: list[tuple[float, int, Any]] = field(default_factory=list)
    splits: dict[Path, Any] = field(default_factory=dict)  # of nodes not in the tree yet
    n_tried: int = 0

    def run_to_end(self) -> None:
        """Try, apply the best, and again, until the tree is full or nothing is left."""
        new: Sequence[int] = (0,)
        while not self.stop.is_full(self.tree.n_leaves, self.branching):
            self._try([node for node in new if not self._spares(node)])
            if not self.heap:
                return
            _, node, best = heappop(self.heap)
            new = ()
            if self._spares(node):  # its parent has become full
                continue
            new = self.ground.apply(self.tree, node, self.paths[node], best)
            self.paths |= {child: (*self.paths[node], at) for at, child in enumerate(new)}
            self.gathering.add(node, new)
            self._notify()

    def _try(self, nodes: Sequence[int]) -> None:
        """Find the splits of new leaves, and add them to the candidates."""
        lacking = [path for node in nodes if (path := self.paths[node]) not in self.splits]
        if lacking:
            if self.ground.looks_ahead and self.run.width > 1:
                lacking += self._ahead(AHEAD * self.run.width - len(lacking))
            self.splits |= zip(lacking, self.ground.seek(lacking), strict=True)
        for node in nodes:
            split = self.splits.pop(self.paths[node])
            self.n_tried += 1
            if isinstance(split, Refusal):
                self.tree.refuse(node, split.reason)
            else:
                self.tree.record(
                    node, score=split.score, objective=split.objective, info=split.info
                )
                heappush(self.heap, (-split.score, node, split))
            self._notify()

    def _ahead(self, most: int) -> list[Path]:
        """Return children of the candidates that, for all we know, will be applied next.

        These are what the growth would apply from here, if nodes that were not tried could not
        be split: what comes of them can but take the place of others. So the tree is the same,
        whoever is tried when, and few are tried in vain.
        """
        if self.stop.max_depth is not None and self.gathering.branching > 2:
            return []  # how deep a node is depends on what is applied before
        room = None
        if self.stop.n_leaves is not None:
            room = (self.stop.n_leaves - self.tree.n_leaves) // (self.branching - 1)
        best = nsmallest(most, self.heap)
        waiting = [(cost, self.paths[node], split) for cost, node, split in best]
        heapify(waiting)  # where costs are equal, by their paths
        paths: list[Path] = []
        while waiting and len(paths) < most and (room is None or room > 0):
            _, path, split = heappop(waiting)
            room = None if room is None else room - 1
            for at, size in enumerate(split.sizes):
                child = (*path, at)
                known = self.splits.get(child)
                if known is None and not self.stop.spares(size, len(child)):
                    paths.append(child)
                elif known is not None and not isinstance(known, Refusal):
                    heappush(waiting, (-known.score, child, known))
        return paths

    def _spares(self, node: int) -> bool:
        return self.stop.spares(self.tree.size(node), self.gathering.level(node))

    def _notify(self) -> None:
        most = self.stop.n_leaves or 0
        self.run.observer(GrowthEvent(self.tree.n_leaves, most, self.n_tried))
