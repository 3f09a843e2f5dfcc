"""What ours grows its first tree on: coordinates in blocks, divided by planes.

The nodes of one round are tried together. One sweep moves rows to the nodes that they are in by
now and draws the samples, on which planes are found; a second one counts the rows on either
side. Where a bound on sizes binds, the score at which to cut is found exactly, by counting its
bits: in three more sweeps of counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._run import Run, node_seed
from taxarbor._types import Array, IndexArray, SolveInfo
from taxarbor.grow import Path
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine._coordinates import Coordinates
from taxarbor.rows._order import SHIFTS, float_of, narrowed
from taxarbor.split import GapSplitter, Refusal
from taxarbor.split._gap import SAMPLE, Plane
from taxarbor.sweep import Column
from taxarbor.sweep._copies import ALL, Drawn, draw, limits


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A node divided by a plane: rows that score as high as the threshold, and the others.

    ``sides`` are the places of these two among the children.
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
@dataclass(frozen=True, slots=True, eq=False)
class Planes:
    """The planes of some nodes, and where each is cut."""

    weights: Array
    offsets: Array
    thresholds: NDArray[np.float32]

    @classmethod
    def of(cls, planes: Sequence[Plane], thresholds: Sequence[Any] | None = None) -> "Planes":
        """Stack planes."""
        if not planes:
            return cls(np.zeros((0, 0)), np.zeros(0), np.zeros(0, dtype=np.float32))
        cuts = np.zeros(len(planes)) if thresholds is None else thresholds
        return cls(
            np.stack([plane.weights for plane in planes]),
            np.array([plane.offset for plane in planes]),
            np.asarray(cuts, dtype=np.float32),
        )

    def take(self, some: IndexArray) -> "Planes":
        """Return some of them."""
        return Planes(self.weights[some], self.offsets[some], self.thresholds[some])


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Finds planes for nodes, given rows that were drawn of each.

    Where those are all at one point of many, there is none yet; where rows that differ were
    drawn apart, the point makes up the rest of the sample.
    """

    splitter: GapSplitter
    numbers: IndexArray
    sizes: list[int]
    seeds: list[int]
    points: Array | None = None

    def __call__(self, drawn: Drawn, run: Run) -> list[tuple[Plane | Refusal | None, Array]]:
        """Return a plane for each node, and its first row."""
        most = SAMPLE if self.points is None else SAMPLE // 2
        rows, hashes = drawn.stacked(), drawn.hashes
        kind = np.min_scalar_type(drawn.parts.max(initial=0))  # short ones are sorted faster
        order = np.argsort(drawn.parts.astype(kind), kind="stable")
        parts = drawn.parts[order]
        edges = np.searchsorted(parts, [self.numbers, self.numbers + 1]).T.tolist()

        def find(place: int) -> tuple[Plane | Refusal | None, Array]:
            at, size = order[slice(*edges[place])], self.sizes[place]
            own = rows[at[np.argsort(hashes[at], kind="stable")[:most]]]
            if self.points is not None:
                point = self.points[place]
                own = np.concatenate([np.tile(point, (SAMPLE - len(own), 1)), own])
            elif size > SAMPLE and (own == own[0]).all():
                return None, own[0].copy()
            return self.splitter.find(own, size, self.seeds[place]), own[0].copy()

        return list(run.each(find, range(len(self.sizes))))


@final
class Field:
    """The coordinates of all rows, as the nodes of a tree divide them.

    Nodes that were tried ahead are divided as well, so there are more than in the tree. Each
    has a number, and each row that of the lowest node that it has arrived at.
    """

    looks_ahead = True

    def __init__(self, coordinates: Coordinates, splitter: GapSplitter, run: Run) -> None:
        self._coordinates, self._splitter, self._run = coordinates, splitter, run
        self._engine, self._copies = coordinates.blocks.engine, coordinates.copies
        self.n_rows = self._copies.n
        self._number: dict[Path, int] = {(): 0}
        self._sizes = [self.n_rows]
        self._cuts: dict[Path, Cut] = {}
        self._nodes, _ = self._engine.keep(_at_root, coordinates.values, self._copies.counts)

    def seek(self, paths: Sequence[Path]) -> list[Cut | Refusal]:
        """Return how to divide each of some nodes."""
        found = self._planes(paths)
        cuts = iter(self._cut(paths, found))
        made = [plane if isinstance(plane, Refusal) else next(cuts) for plane, _ in found]
        self._cuts |= {
            p: one for p, one in zip(paths, made, strict=True) if isinstance(one, Cut)
        }
        return made

    def apply(
        self, tree: HierarchyBuilder, node: int, path: Path, found: Cut
    ) -> tuple[int, ...]:
        """Split a leaf of the tree."""
        return tree.divide(node, found.sizes)

    def labels(self, leaves: Sequence[Path]) -> Column:
        """Return the position among these leaves of each row, -1 for those without part."""
        inner = {path[:depth] for path in leaves for depth in range(len(path))}
        self._move([path for path in inner if (*path, 0) not in self._number], ())
        position, place = {path: at for at, path in enumerate(leaves)}, []
        for path in self._number:  # in the order of their numbers
            # Those that were tried ahead lie below a leaf.
            above = (position.get(path[:depth], -1) for depth in range(len(path) + 1))
            place.append(max(above))
        labels, _ = self._engine.keep(relabel, self._nodes, place=np.array(place, np.int32))
        return labels

    @property
    def _columns(self) -> tuple[Column, Column, Column]:
        return self._coordinates.values, self._nodes, self._copies.counts

    def _planes(self, paths: Sequence[Path]) -> list[tuple[Any, Array]]:
        """Return a plane, or a Refusal, for each node, and one of its rows."""
        parents = {path[:-1] for path in paths if path not in self._number}
        found: list[Any] = self._move(parents, paths)
        alike = [at for at, (plane, _) in enumerate(found) if plane is None]
        if alike:  # what differs was not drawn
            search = self._search([paths[at] for at in alike])
            points = np.full((len(self._sizes), len(found[0][1])), np.nan, dtype=np.float32)
            points[search.numbers] = [found[at][1] for at in alike]
            columns = *self._columns, self._copies.first
            seed, then = self._run.seed, replace(search, points=points[search.numbers])
            others = self._engine.sweep(_others, *columns, points=points, seed=seed, then=then)
            for at, one in zip(alike, others, strict=True):
                found[at] = one
        return found

    def _search(self, paths: Sequence[Path]) -> "_Search":
        numbers = np.array([self._number[path] for path in paths], dtype=np.intp)
        sizes = [self._sizes[number] for number in numbers]
        seeds = [node_seed(self._run.seed, path) for path in paths]
        return _Search(self._splitter, numbers, sizes, seeds)

    def _move(self, parents: Iterable[Path], paths: Sequence[Path]) -> list[Any]:
        """Move the rows of some nodes to their children, and find planes for others."""
        inner = sorted(parents, key=lambda path: self._number[path])
        number, sizes = dict(self._number), list(self._sizes)
        slots = np.full(len(sizes), -1, dtype=np.int32)
        slots[[number[path] for path in inner]] = np.arange(len(inner))
        children = np.empty((len(inner), 2), dtype=np.int32)
        for at, path in enumerate(inner):
            cut = self._cuts[path]
            for turn in range(2):
                number[(*path, turn)] = len(sizes)
                sizes.append(cut.sizes[turn])
            children[at] = [number[(*path, side)] for side in cut.sides]
        cuts = [self._cuts[path] for path in inner]
        own = np.array([number[path] for path in paths], dtype=np.intp)
        seeds = [node_seed(self._run.seed, path) for path in paths]
        keys, bounds = np.zeros((2, len(sizes)), dtype=np.uint64)
        keys[own], bounds[own] = seeds, limits(np.array(sizes)[own], SAMPLE)
        nodes, found = self._engine.keep(
            _move,
            *(*self._columns, self._copies.first),
            slots=slots,
            planes=Planes.of([cut.plane for cut in cuts], [cut.threshold for cut in cuts]),
            children=children,
            keys=keys,
            bounds=bounds,  # of nodes whose rows nobody wants, zero
            then=_Search(self._splitter, own, [sizes[node] for node in own], seeds),
        )
        # In one step: an interrupt before it has moved nobody.
        self._nodes, self._number, self._sizes = nodes, number, sizes
        planes: list[Any] = found
        return planes

    def _cut(
        self, paths: Sequence[Path], found: Sequence[tuple[Any, Array]]
    ) -> list[Cut | Refusal]:
        """Find where to cut along each plane that was found, within the bounds on sizes."""
        some = [at for at, (plane, _) in enumerate(found) if isinstance(plane, Plane)]
        if not some:
            return []
        told = Planes.of([found[at][0] for at in some])
        numbers = np.array([self._number[paths[at]] for at in some])
        slots = np.full(len(self._sizes), -1, dtype=np.int32)
        slots[numbers] = np.arange(len(some))
        n_high = self._engine.sweep(_count_sides, *self._columns, slots=slots, planes=told)
        sizes = np.array(self._sizes)[numbers]
        bounds = np.array([self._splitter.bounds(int(size)) for size in sizes])
        wanted = np.clip(n_high, bounds[:, 0], bounds[:, 1])
        thresholds = np.zeros(len(some), dtype=np.float32)
        (bound,) = np.nonzero(wanted != n_high)
        if len(bound):
            slots[:] = -1
            slots[numbers[bound]] = np.arange(len(bound))
            highest = self._highest(told.take(bound), slots, wanted[bound], sizes[bound])
            thresholds[bound], n_high[bound] = highest
        parts = zip(some, thresholds, n_high.tolist(), sizes.tolist(), strict=True)
        return [self._oriented(*found[at], *where) for at, *where in parts]

    def _oriented(
        self, plane: Plane, row: Array, threshold: np.float32, n_high: int, size: int
    ) -> Cut | Refusal:
        """Return a cut whose first child has a given row, whichever way the plane points."""
        least = max(self._splitter.min_size, 1)
        if min(n_high, size - n_high) < least:
            if least == 1:
                return Refusal(f"all of its {size} rows are equal, or nearly so")
            told = f"children of at least {least} rows would tear equal ones apart"
            return Refusal(f"{told}, of its {size} rows")
        score = np.float32(row.astype(np.float64) @ plane.weights + plane.offset)
        sides, sizes = (0, 1), (n_high, size - n_high)
        if score < threshold:
            sides, sizes = (1, 0), sizes[::-1]
        return Cut(plane, threshold, sides, sizes, size * plane.gap)

    def _highest(
        self, planes: Planes, slots: NDArray[np.int32], wanted: IndexArray, sizes: IndexArray
    ) -> tuple[NDArray[np.float32], IndexArray]:
        """Return thresholds that so many rows reach, and how many do.

        Rows of equal scores stay together, where most of them would be.
        """
        keys, ranks = np.full(len(wanted), -1), sizes - wanted
        alike = ranks
        for shift in SHIFTS:
            counts = self._engine.sweep(
                _count_scores,
                *self._columns,
                slots=slots,
                planes=planes,
                prefixes=keys,
                shift=shift,
            )
            keys, ranks, alike = narrowed(counts, keys, ranks)
        above = wanted + ranks - alike
        is_above = wanted - above < above + alike - wanted  # most of those alike are below
        n_high = np.where(is_above, above, above + alike)
        least = max(self._splitter.min_size, 1)
        other = np.where(is_above, above + alike, above)
        fits, other_fits = (np.minimum(part, sizes - part) >= least for part in (n_high, other))
        is_above ^= ~fits & other_fits
        scores = float_of(keys.astype(np.uint32))
        higher = np.nextafter(scores, np.float32(np.inf))
        return np.where(is_above, higher, scores), np.where(is_above, above, above + alike)


# ---- what is done in each block --------------------------------------------------------------


def _at_root(Z: Array, counts: NDArray[np.int32] | None) -> tuple[NDArray[np.int32], None]:
    nodes = np.zeros(len(Z), dtype=np.int32)
    if counts is not None:
        nodes[counts == 0] = -1
    return nodes, None


def _move(
    Z: Array,
    nodes: NDArray[np.int32],
    counts: NDArray[np.int32] | None,
    first: int,
    *,
    slots: NDArray[np.int32],
    planes: Planes,
    children: NDArray[np.int32],
    **low: Any,
) -> tuple[NDArray[np.int32], Drawn]:
    """Move rows to their children, and draw some of each node that is wanted."""
    if len(children):
        where = planes.weights, planes.offsets, planes.thresholds
        nodes = native.move(Z, nodes, slots, *where, children)
    return nodes, draw(Z, nodes, counts, first, **low)


def _others(
    Z: Array,
    nodes: NDArray[np.int32],
    counts: NDArray[np.int32] | None,
    first: int,
    *,
    points: NDArray[np.float32],
    seed: int,
) -> Drawn:
    """Draw rows that are not at the point of their node; of nodes that have a point."""
    own = points[nodes]
    differs = (own != Z).any(axis=1) & ~np.isnan(own[:, 0]) & (nodes >= 0)
    apart = np.where(differs, nodes, -1).astype(np.int32)
    n_nodes = len(points)
    keys = np.array([node_seed(seed, (node,)) for node in range(n_nodes)], dtype=np.uint64)
    found = draw(Z, apart, counts, first, keys=keys, bounds=np.full(n_nodes, ALL))
    at, parts = found.lowest(SAMPLE // 2)
    return Drawn(parts, found.hashes[at], [found.stacked()[at]])


def _count_sides(
    Z: Array, nodes: Any, counts: Any, *, slots: NDArray[np.int32], planes: Planes
) -> NDArray[np.int64]:
    return native.count_sides(Z, nodes, counts, slots, planes.weights, planes.offsets)


def _count_scores(
    Z: Array,
    nodes: Any,
    counts: Any,
    *,
    slots: NDArray[np.int32],
    planes: Planes,
    prefixes: NDArray[np.int64],
    shift: int,
) -> NDArray[np.int64]:
    where = slots, planes.weights, planes.offsets
    return native.count_scores(Z, nodes, counts, *where, prefixes, shift)


def relabel(
    labels: NDArray[np.int32], *, place: NDArray[np.int32]
) -> tuple[NDArray[np.int32], None]:
    """Give labels other numbers; those below zero stay."""
    return np.where(labels < 0, labels, place[labels]).astype(np.int32), None
