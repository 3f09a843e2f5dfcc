"""What ours grows its first tree on: rows that were drawn, in coordinates, divided by planes.

So many rows are drawn, in one sweep, that each leaf has about as many as a plane is sought on;
where there are no more, that is all of them. The tree grows where the drawn rows are. One more
sweep sends all rows down to its leaves, so that their sizes are exact again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._run import GrowthEvent, Observer, Run, ignore, node_seed
from taxarbor._types import Array, IndexArray, SolveInfo
from taxarbor.grow import Path, StoppingRule, grow_on
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import Labels, Leafing, add_up
from taxarbor.refine._links import regrouped, undone
from taxarbor.split import GapSplitter, Refusal
from taxarbor.split._gap import SAMPLE, Plane
from taxarbor.sweep._copies import Drawn, draw, limits

FEWEST, MOST = 100_000, 1_000_000
"""Rows that are drawn at least, and at most: of more than a thousand leaves, each has fewer."""

SOME = 10
"""Rows that are drawn of each leaf at least, where leaves shall be small rather than few."""

HELD = 2
"""How often growth holds what was drawn: divided by two levels of the tree."""

MARGIN = 0.9
"""Of the greatest size of a leaf: where sizes are estimates, leaves are to be smaller."""

FEW = 2
"""Rows of each child, at least, among those that were drawn."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A node divided by a plane: rows that score as high as the threshold, and the others.

    ``sides`` are the places of these two among the children, whose sizes are estimates where
    not all rows were drawn.
    """

    plane: Plane
    threshold: np.float32
    sides: tuple[int, int]
    sizes: tuple[int, int]
    score: float

    @property
    def objective(self) -> float:
        """What the splitter minimised."""
        return self.info.trace[-1]

    @property
    def info(self) -> SolveInfo:
        """How it was found."""
        return self.plane.info


@final
class Field:
    """Rows that were drawn, as the nodes of a tree divide them.

    Parameters
    ----------
    rows : float32 array of shape (n_drawn, n_coordinates + 1)
        In random order: the first of any node's are a sample of it.
    n_rows : int
        How many they stand for.
    splitter : GapSplitter
        Finds the plane of a node.
    run : Run
        The seed, and where to run.
    """

    looks_ahead = True

    def __init__(self, rows: Array, n_rows: int, splitter: GapSplitter, run: Run) -> None:
        self.n_rows, self.cuts = n_rows, dict[Path, Cut]()
        self._splitter, self._run = splitter, run
        # Nodes that were not tried yet: what was drawn of them, and their sizes.
        self._waiting: dict[Path, tuple[Array, int]] = {(): (rows, n_rows)}

    def seek(self, paths: Sequence[Path]) -> list[Cut | Refusal]:
        """Return how to divide each of some nodes."""
        found = list(self._run.each(self._divided, paths))
        for path, (cut, parts) in zip(paths, found, strict=True):
            if isinstance(cut, Cut):
                self.cuts[path] = cut
                for side, below in enumerate(zip(parts, cut.sizes, strict=True)):
                    self._waiting[(*path, side)] = below
            del self._waiting[path]
        return [cut for cut, _ in found]

    def apply(
        self, tree: HierarchyBuilder, node: int, path: Path, found: Cut
    ) -> tuple[int, ...]:
        """Split a leaf of the tree."""
        return tree.divide(node, found.sizes)

    def _divided(self, path: Path) -> tuple[Cut | Refusal, Sequence[Array]]:
        """Return how to divide a node, and the rows of its children."""
        rows, size = self._waiting[path]
        if len(rows) < min(size, 2 * FEW):
            return Refusal(f"too few of its rows, about {size}, were drawn"), ()
        plane = self._plane(path)
        if isinstance(plane, Refusal):
            return plane if len(rows) == size else _estimated(plane, len(rows)), ()
        scores = native.plane_scores(rows, plane.weights, plane.offset)
        threshold = self._threshold(scores, size)
        is_high = scores >= threshold
        is_first = is_high == is_high[0]  # the first child has the first row
        n_first = _as_rows(int(np.count_nonzero(is_first)), len(rows), size)
        sizes, least = (n_first, size - n_first), max(self._splitter.min_size, 1)
        if min(sizes) < least:
            if least == 1:
                return Refusal(f"all of its {size} rows are equal, or nearly so"), ()
            told = f"children of at least {least} rows would tear equal ones apart"
            if len(rows) < size:
                told = f"no plane was found that leaves children of at least {least} rows"
            return Refusal(f"{told}, of its {size} rows"), ()
        sides = (0, 1) if is_high[0] else (1, 0)
        cut = Cut(plane, threshold, sides, sizes, size * plane.gap)
        return cut, (rows[is_first], rows[~is_first])

    def _plane(self, path: Path) -> Plane | Refusal:
        """Return the plane of a node; where a sample of it is all alike, of what differs."""
        (rows, size), seed = self._waiting[path], node_seed(self._run.seed, path)
        found = self._splitter.find(rows[:SAMPLE], size, seed)
        if isinstance(found, Plane) or len(rows) <= SAMPLE:
            return found
        others = rows[(rows != rows[0]).any(axis=1)][: SAMPLE // 2]
        alike = np.tile(rows[0], (SAMPLE - len(others), 1))
        return self._splitter.find(np.concatenate([alike, others]), size, seed)

    def _threshold(self, scores: Array, size: int) -> np.float32:
        """Return where to cut, so that the children keep to the bounds on their sizes.

        Rows of equal scores stay together, where most of them would be.
        """
        n = len(scores)
        n_high = int(np.count_nonzero(scores >= 0.0))
        low, high = self._splitter.bounds(n, size)
        wanted = min(max(n_high, low), high)
        if wanted == n_high:
            return np.float32(0.0)
        score = np.partition(scores, n - wanted)[n - wanted]
        above = int(np.count_nonzero(scores > score))
        upto = int(np.count_nonzero(scores >= score))
        least = max(self._splitter.min_size, 1)
        sizes = (_as_rows(k, n, size) for k in (above, upto))
        fits, other_fits = (least <= part <= size - least for part in sizes)
        is_above = fits if fits != other_fits else wanted - above < upto - wanted
        return np.float32(np.nextafter(score, np.float32(np.inf)) if is_above else score)


def _as_rows(n_drawn: int, n_all: int, size: int) -> int:
    """Return how many rows of a node some of those stand for that were drawn of it."""
    if n_all == size:
        return n_drawn
    return min(max(round(size * n_drawn / n_all), n_drawn), size - (n_all - n_drawn))


def _estimated(refusal: Refusal, n_drawn: int) -> Refusal:
    return Refusal(f"{refusal.reason}, going by {n_drawn} of its rows")


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Grow:
    """Grows a tree on the rows that were drawn, where they are."""

    n_rows: int
    splitter: GapSplitter
    stop: StoppingRule
    gather: int
    seed: int
    n_told: int | None  # leaves that the observer hears of when all are grown; 0: nobody hears

    def __call__(self, drawn: Drawn, run: Run) -> tuple[HierarchyBuilder, list[Cut]]:
        """Return the tree, and how its inner nodes are divided, in order."""
        run = replace(run, seed=self.seed, observer=self._observer(run))
        field = Field(_by_hash(drawn, run), self.n_rows, self.splitter, run)
        how: Any = {"branching": 2, "stop": self.stop, "run": run, "gather": self.gather}
        tree = grow_on(field, **how)
        return tree, [field.cuts[tree.lineage(node)[0]] for node in tree.inner]

    def _observer(self, run: Run) -> Observer:
        n_grown, n_told = self.stop.n_leaves, self.n_told
        if n_told == 0:
            return ignore
        if n_grown is None or n_told is None:
            return run.observer

        def observe(event: GrowthEvent, /) -> None:
            done = max(event.n_leaves * n_told // n_grown, 1)
            run.observer(GrowthEvent(done, n_told, event.n_tried))

        return observe


def _by_hash(drawn: Drawn, run: Run) -> Array:
    """Take the rows out, and return them in the order of their hashes."""
    ranks = np.empty(len(drawn.hashes), dtype=np.intp)
    ranks[np.argsort(drawn.hashes, kind="stable")] = np.arange(len(ranks))
    places = np.split(ranks, np.cumsum([len(part) for part in drawn.rows])[:-1])
    rows = np.empty((len(ranks), drawn.rows[0].shape[1]), dtype=drawn.rows[0].dtype)

    def put(part: int) -> None:
        rows[places[part]] = drawn.rows[part]
        drawn.rows[part] = None

    list(run.each(put, range(len(places))))
    return rows


def grow_leaves(
    coordinates: Coordinates,
    splitter: GapSplitter,
    stop: StoppingRule,
    seed: int,
    *,
    gather: int = 2,
    n_told: int | None = None,
) -> Leafing:
    """Grow a tree of two children per split, and send all rows down to its leaves.

    Parameters
    ----------
    coordinates : Coordinates
        All rows.
    splitter : GapSplitter
        Divides a node. Leaves keep to its least size, but for a root on its own.
    stop : StoppingRule
        When the tree is large enough.
    seed : int
        Each node draws its random numbers from this seed and its path from the root.
    gather : int
        How many children splits will be gathered to: depth counts as it does then.
    n_told : int, optional
        How many leaves the observer hears of when all are grown; 0: it is told nothing.
    """
    engine, copies = coordinates.blocks.engine, coordinates.copies
    drawn, most = n_drawn(copies.n, stop, gather), stop.max_leaf_size
    while True:
        margin = most if most is None or drawn >= copies.n else max(int(MARGIN * most), 1)
        fine, most = replace(stop, max_leaf_size=margin), margin
        tree, cuts = engine.sweep(
            draw,
            *(coordinates.values, [None] * len(copies.first), copies.counts, copies.first),
            keys=np.array([node_seed(seed, ())], dtype=np.uint64),
            bounds=limits(np.array([copies.n]), drawn),
            then=_Grow(copies.n, splitter, fine, gather, seed, n_told),
        )
        found = _sent_down(tree, cuts, coordinates)
        sizes = [tree.size(leaf) for leaf in tree.leaves]
        if most is None or stop.max_leaf_size is None or most == 1:
            break
        # Leaves that were left alone, and are larger than they seemed.
        if not any((found.counts > stop.max_leaf_size) & (np.array(sizes) <= most)):
            break
    tree.resize(found.counts, [bool(one) for one in found.counts != sizes])
    while found.n_leaves > 1 and found.counts.min() < splitter.min_size:
        leaves = np.array(found.tree.leaves)[found.counts < splitter.min_size]
        why = f"a child would have fewer than {splitter.min_size} rows"
        found = regrouped(found, *undone(found.tree, leaves.tolist(), why), coordinates)
    return found


def n_drawn(n_rows: int, stop: StoppingRule, gather: int) -> float:
    """Return how many rows to draw, so that a plane of each leaf can be sought."""
    wanted = [float(n_rows)]
    if stop.n_leaves is not None:
        wanted.append(min(float(SAMPLE) * stop.n_leaves, MOST))
    if stop.max_depth is not None:
        n_leaves = min(gather, MOST) ** min(stop.max_depth, 30)
        wanted.append(min(float(SAMPLE) * n_leaves, MOST))
    if stop.max_leaf_size is not None:
        n_leaves = n_rows / stop.max_leaf_size
        wanted.append(max(min(SAMPLE * n_leaves, MOST), SOME * n_leaves))
    return max(min(wanted), FEWEST)


def _sent_down(
    tree: HierarchyBuilder, cuts: Sequence[Cut], coordinates: Coordinates
) -> Leafing:
    """Return the tree with all rows in its leaves."""
    refs = {leaf: ~at for at, leaf in enumerate(tree.leaves)}
    refs |= {node: at for at, node in enumerate(tree.inner)}
    kids = [tree.children(node) for node in tree.inner]
    children = [
        [refs[own[side]] for side in cut.sides] for own, cut in zip(kids, cuts, strict=True)
    ]
    planes: dict[str, Any] = {
        "planes": np.array([cut.plane.weights for cut in cuts]),
        "offsets": np.array([cut.plane.offset for cut in cuts]),
        "thresholds": np.array([cut.threshold for cut in cuts], dtype=np.float32),
        "children": np.array(children, dtype=np.int32),
    }
    columns = coordinates.values, coordinates.copies.counts
    engine = coordinates.blocks.engine
    labels, (counts, sums) = engine.keep(_to_leaves, *columns, **planes)
    return Leafing(tree, labels, counts, sums)


def _to_leaves(
    Z: Array, counts: NDArray[np.int32] | None, **planes: Any
) -> tuple[Labels, tuple[IndexArray, Array]]:
    n_planes = len(planes["planes"])
    labels = native.descend(Z, **planes) if n_planes else np.zeros(len(Z), dtype=np.int32)
    if counts is not None:
        labels[counts == 0] = -1
    return labels, add_up(Z, labels, counts, n_leaves=n_planes + 1)
