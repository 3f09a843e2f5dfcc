"""The growth loop: best first, from the root down (the paper's Algorithm 1)."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import final

from taxarbor._errors import InterruptedFitWarning, warn_caller
from taxarbor._events import GrowthEvent, Observer, ignore
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, LinearRule
from taxarbor.rows import Rows
from taxarbor.split import Refusal, Split, SplitTask, Splitter

__all__ = ["Map", "StoppingRule", "deferred_interrupt", "grow"]

Map = Callable[[Callable[[int], Split | Refusal], Iterable[int]], Iterable[Split | Refusal]]


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


def grow(
    rows: Rows,
    splitter: Splitter,
    *,
    branching: int,
    stop: StoppingRule,
    seed: int,
    feature_names: Sequence[str] | None = None,
    observer: Observer = ignore,
    run_all: Map = map,
) -> Hierarchy:
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
    seed : int
        Each node draws its random numbers from this seed and its path from the root.
    feature_names : sequence of str, optional
        Kept in the hierarchy.
    observer : callable
        Receives a :class:`~taxarbor._events.GrowthEvent` after each step.
    run_all : callable
        Like the builtin ``map``, which it is by default: runs independent splits. A pool's
        runs them side by side; the tree is the same.

    Returns
    -------
    Hierarchy
    """
    builder = HierarchyBuilder(rows.n_rows, feature_names)
    growth = _Growth(builder, rows, splitter, branching=branching, stop=stop, seed=seed)
    try:
        growth.run(observer, run_all)
    except KeyboardInterrupt:
        warn_caller(
            "the fit was interrupted; the tree grown so far, "
            f"of {builder.n_leaves} {'leaf' if builder.n_leaves == 1 else 'leaves'}, is kept",
            InterruptedFitWarning,
        )
    return builder.freeze()


@final
class _Growth:
    """A tree on its way, with the candidates that wait to be applied."""

    def __init__(
        self,
        builder: HierarchyBuilder,
        rows: Rows,
        splitter: Splitter,
        *,
        branching: int,
        stop: StoppingRule,
        seed: int,
    ) -> None:
        self._builder, self._rows, self._splitter = builder, rows, splitter
        self._branching, self._stop, self._seed = branching, stop, seed
        self._ancestry: dict[int, tuple[tuple[int, ...], tuple[LinearRule, ...]]] = {
            0: ((), ())
        }
        self._heap: list[tuple[float, int, Split]] = []
        self._n_tried = 0

    def run(self, observer: Observer, run_all: Map) -> None:
        """Try, apply the best, and again, until the tree is full or nothing is left."""
        new: Sequence[int] = (0,)
        while not self._stop.is_full(self._builder.n_leaves, self._branching):
            open_nodes = [node for node in new if not self._is_spared(node)]
            # A node on its own, as the root is, stays in this thread, where Ctrl-C is heard.
            run = run_all if len(open_nodes) > 1 else map
            for node, found in zip(open_nodes, run(self._split, open_nodes), strict=True):
                self._keep(node, found)
                if self._report(observer):
                    return
            if not self._heap:
                return
            with deferred_interrupt():
                new = self._apply_best()
            if self._report(observer):
                return

    def _is_spared(self, node: int) -> bool:
        return self._stop.spares(self._builder.n_rows(node), len(self._ancestry[node][0]))

    def _split(self, node: int) -> Split | Refusal:
        path, lineage = self._ancestry[node]
        rows = self._rows if node == 0 else self._rows.take(self._builder.rows(node))
        return self._splitter.split(
            SplitTask(rows, path, lineage, self._branching, self._seed, self._rows.center)
        )

    def _keep(self, node: int, found: Split | Refusal) -> None:
        self._n_tried += 1
        if isinstance(found, Refusal):
            self._builder.refuse(node, found.reason)
            return
        self._builder.record(
            node, score=found.score, objective=found.objective, info=found.info
        )
        heappush(self._heap, (-found.score, node, found))

    def _apply_best(self) -> tuple[int, ...]:
        _, node, split = heappop(self._heap)
        path, lineage = self._ancestry.pop(node)
        children = self._builder.add_split(node, split.labels, split.rule)
        if split.rule is not None:
            lineage = (*lineage, split.rule)
        for which, child in enumerate(children):
            self._ancestry[child] = (*path, which), lineage
        return children

    def _report(self, observer: Observer) -> bool:
        most = self._stop.n_leaves or 0
        return observer(GrowthEvent(self._builder.n_leaves, most, self._n_tried))


@contextmanager
def deferred_interrupt(*, once: bool = False) -> Iterator[None]:
    """Let what is done here finish before Ctrl-C is heard; if ``once``, a second is at once."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[bool] = []

    def hear(*_: object) -> None:
        heard.append(True)
        if once and len(heard) > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        signal.raise_signal(signal.SIGINT)
