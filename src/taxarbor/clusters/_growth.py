"""The first tree of our method: rows in coordinates, divided by planes, best first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from taxarbor import native
from taxarbor._run import GrowthEvent, Run, node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.clusters._compete import Labels
from taxarbor.clusters._coordinates import Coordinates, draw_rows
from taxarbor.grow import Path, StoppingRule, grow_from
from taxarbor.split import Refusal, Split
from taxarbor.split._gap import PLANE_ROWS, GapSplitter, Plane
from taxarbor.tree import TreeBuilder


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Rows of a node, in random order: the first are a sample of them."""

    values: Array
    ids: IndexArray

    def where(self, mask: Array) -> "_Part":
        return _Part(self.values[mask], self.ids[mask])


@final
class SampledTree:
    """The rows of a sample, as the nodes of a growing tree divide them."""

    is_speculative = True

    def __init__(self, rows: Array, splitter: GapSplitter, run: Run) -> None:
        order = draw_rows(len(rows), len(rows), node_seed(run.seed, ()))
        self.n_rows, self._splitter, self._run = len(rows), splitter, run
        self._parts: dict[Path, _Part] = {(): _Part(rows[order], order)}
        self.ids: dict[Path, IndexArray] = {(): order}

    def propose_splits(self, paths: Sequence[Path]) -> list[Split | Refusal]:
        """Return the division of each node, or why there is none."""
        divisions = list(self._run.each(self._divide, paths))
        for path, (_, parts) in zip(paths, divisions, strict=True):
            del self._parts[path]
            for side, part in enumerate(parts):
                self._parts[(*path, side)] = part
                self.ids[(*path, side)] = part.ids
        return [split for split, _ in divisions]

    def apply(self, tree: TreeBuilder, node: int, path: Path, split: Split) -> tuple[int, ...]:
        """Split a leaf of the tree."""
        return tree.divide(node, split.sizes)

    def _divide(self, path: Path) -> tuple[Split | Refusal, Sequence[_Part]]:
        """Return the division of a node, and the rows of its children."""
        part = self._parts[path]
        size, least = len(part.ids), max(self._splitter.min_size, 1)
        plane = self._find_plane(path)
        if isinstance(plane, Refusal):
            return plane, ()
        scores = native.plane_scores(part.values, plane.weights, plane.offset)
        is_high = scores >= self._threshold(scores)
        is_first = is_high == is_high[0]  # the first child has the first row
        n_first = int(np.count_nonzero(is_first))
        if min(n_first, size - n_first) < least:
            if least == 1:
                return Refusal(f"all of its {size} rows are equal, or nearly so"), ()
            return Refusal(
                f"its {size} rows hold duplicates that cannot be split into children of at "
                f"least {least} rows"
            ), ()
        info = plane.info
        split = Split((~is_first).astype(np.int8), None, size * plane.gap, info.trace[-1], info)
        return split, (part.where(is_first), part.where(~is_first))

    def _find_plane(self, path: Path) -> Plane | Refusal:
        """Return the plane of a node; where its sample is one point, add rows that differ."""
        rows, seed = self._parts[path].values, node_seed(self._run.seed, path)
        plane = self._splitter.find(rows[:PLANE_ROWS], len(rows), seed)
        if isinstance(plane, Plane) or len(rows) <= PLANE_ROWS:
            return plane
        others = rows[(rows != rows[0]).any(axis=1)][: PLANE_ROWS // 2]
        alike = np.tile(rows[0], (PLANE_ROWS - len(others), 1))
        return self._splitter.find(np.concatenate([alike, others]), len(rows), seed)

    def _threshold(self, scores: Array) -> np.float32:
        """Return where to cut, so that the children keep to the bounds on their sizes.

        Rows of equal scores stay together, where most of them would be.
        """
        n = len(scores)
        n_high = int(np.count_nonzero(scores >= 0.0))
        low, high = self._splitter.bounds(n, n)
        target = min(max(n_high, low), high)
        if target == n_high:
            return np.float32(0.0)
        score = np.partition(scores, n - target)[n - target]
        above = int(np.count_nonzero(scores > score))
        upto = int(np.count_nonzero(scores >= score))
        least = max(self._splitter.min_size, 1)
        fits, other_fits = (least <= size <= n - least for size in (above, upto))
        is_above = fits if fits != other_fits else target - above < upto - target
        return np.float32(np.nextafter(score, np.float32(np.inf)) if is_above else score)


def grow_leaves(
    coordinates: Coordinates,
    splitter: GapSplitter,
    stop: StoppingRule,
    run: Run,
    *,
    max_children: int = 2,
    n_reported: int | None = None,
) -> tuple[TreeBuilder, Labels]:
    """Grow a tree of two children per split; return it, and the leaf of each row.

    Parameters
    ----------
    coordinates : Coordinates
        The rows.
    splitter : GapSplitter
        Divides a node.
    stop : StoppingRule
        When the tree is large enough.
    run : Run
        The seed, where to run, and the observer.
    max_children : int
        Splits will be merged up to this many children: depth counts as it does then.
    n_reported : int, optional
        Number of leaves reported to the observer when all are grown.
    """
    growing = SampledTree(coordinates.values, splitter, run)

    def observe(event: GrowthEvent, /) -> None:
        if stop.n_leaves is not None and n_reported is not None:
            done = max(event.n_leaves * n_reported // stop.n_leaves, 1)
            event = GrowthEvent(done, n_reported, event.n_tried)
        run.observer(event)

    tree = grow_from(
        growing,
        branching=2,
        stop=stop,
        run=replace(run, observer=observe),
        max_children=max_children,
    )
    labels = np.empty(coordinates.n_rows, dtype=np.int32)
    for position, leaf in enumerate(tree.leaves):
        labels[growing.ids[tree.lineage(leaf)[0]]] = position
    return tree, labels
