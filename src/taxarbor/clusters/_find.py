r"""From coordinates to clusters and the tree above them: grow, compete, link.

A node is divided in two where the gap is, by a dense plane with an intercept; rules on few
features are found later, when the tree is whole. The plane is found on a sample, with a light
ridge in place of the sparse penalties, which would cost a point or two of agreement with true
classes. The last feature of the rows is a constant, so its weight is the intercept: boundaries
need not pass through the node's mean, and small clusters are cut off where the gap is. What
keeps them from being slivers is the lower bound on a child's size and the choice among starts,
by their gap: the scatter between the children for the root of the objective. The objective
alone would reward cutting off a few rows, the scatter alone cutting through the middle of a
cloud. All starts of a node run compiled, in one call (``native/src/halve.cpp``).
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from taxarbor import native
from taxarbor._fit_context import Run, node_seed
from taxarbor._types import Array, IndexArray, SolveInfo, Status
from taxarbor.clusters._coordinates import Coordinates, draw_positions
from taxarbor.clusters.leaves import (
    Labels,
    Leaves,
    compete,
    link_leaves,
    merge_small,
    seed_leaves,
)
from taxarbor.grow import StoppingRule, grow_tree
from taxarbor.optim import size_bounds
from taxarbor.rows import HalveProblem, as_rows
from taxarbor.split import Refusal, Split
from taxarbor.split.splitter import refuse_size
from taxarbor.tree import TreeBuilder

RIDGE = 3e-3  # weight of the squared weights, as a share of the rows' variance
PLANE_ROWS = 1000  # rows on which the plane is found

STARTS = ("principal", "ward", "far_rows", "ward", "ward", "ward")
"""Taken in turn, again and again, until there are as many as requested. Ward's clusters of
other rows are other starts; the others hardly change."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class GapPlane:
    """Where to divide a node: rows of the highest ``weights @ z + offset`` on one side."""

    weights: Array  # of all coordinates, the constant one as well
    offset: float
    gap: float  # separation of the sample: the larger, the clearer
    info: SolveInfo


@final
@dataclass(frozen=True, slots=True)
class GapSplitter:
    """Splits lifted rows, whose last feature is constant, in two where the gap is."""

    # The least and greatest size of a child, as multiples of half of the rows.
    balance: tuple[float, float] = (0.5, 1.5)
    n_init: int = 1
    min_size: int = 1  # of a child

    def find(self, sample: Array, n_rows: int, seed: int) -> GapPlane | Refusal:
        """Return the best plane for a sample of a node's rows, or why there is none."""
        few = refuse_size(n_rows, 2, self.min_size)
        if few is not None:
            return few
        rows = as_rows(sample)
        starts = [STARTS[turn % len(STARTS)] for turn in range(self.n_init)]
        bounds = self.bounds(len(sample), n_rows)
        half = rows.halve(HalveProblem(seed, starts, bounds, RIDGE / 2.0))
        if half is None:
            return Refusal(f"all of its {n_rows} rows are equal, or nearly so")
        trace, status = tuple(half.trace), Status(half.status)
        info = SolveInfo(status, len(trace) - 1, half.n_passes, trace)
        offset = -float(half.weights[:-1] @ rows.center[:-1])
        return GapPlane(half.weights, offset, half.gap, info)

    def bounds(self, n_drawn: int, n_rows: int) -> tuple[int, int]:
        """Return the least and most of a node's drawn rows that a child may have."""
        least = max(self.balance[0], min(2 * self.min_size / n_rows, 1.0))
        low, high = size_bounds(n_drawn, 2, least, self.balance[1])
        return max(low, n_drawn - high), min(high, n_drawn - low)


def grow_leaves(
    coordinates: Coordinates,
    splitter: GapSplitter,
    stop: StoppingRule,
    run: Run,
    *,
    max_children: int = 2,
) -> tuple[TreeBuilder, Labels]:
    """Grow a tree of two children per split, see :func:`grow_tree`; return its leaves, too."""
    n_rows = coordinates.n_rows
    # In random order, so that the first rows of a node are a sample of them.
    order = draw_positions(n_rows, n_rows, node_seed(run.seed, ()))
    values = coordinates.values[order]

    def divide(tree: TreeBuilder, node: int) -> Split | Refusal:
        rows = values[tree.rows(node)] if node else values
        return _divide(rows, splitter, node_seed(run.seed, tree.path(node)))

    tree = grow_tree(n_rows, divide, branching=2, stop=stop, run=run, max_children=max_children)
    labels = np.empty(n_rows, dtype=np.int32)
    labels[order] = tree.labels
    return tree, labels


def _divide(rows: Array, splitter: GapSplitter, seed: int) -> Split | Refusal:
    """Return the division of a node's rows in two, or why there is none."""
    size, least = len(rows), splitter.min_size
    plane = _find_plane(rows, splitter, seed)
    if isinstance(plane, Refusal):
        return plane
    scores = native.plane_scores(rows, plane.weights, plane.offset)
    is_high = scores >= _find_threshold(scores, splitter)
    is_second = is_high != is_high[0]  # the first child has the first row
    n_second = int(np.count_nonzero(is_second))
    if min(n_second, size - n_second) < least:
        if least == 1:
            return Refusal(f"all of its {size} rows are equal, or nearly so")
        return Refusal(
            f"its {size} rows hold duplicates that cannot be split into children of at "
            f"least {least} rows"
        )
    info = plane.info
    return Split(is_second.astype(np.int8), None, size * plane.gap, info.trace[-1], info)


def _find_plane(rows: Array, splitter: GapSplitter, seed: int) -> GapPlane | Refusal:
    """Return the plane of a node; where its sample is one point, add rows that differ."""
    plane = splitter.find(rows[:PLANE_ROWS], len(rows), seed)
    if isinstance(plane, GapPlane) or len(rows) <= PLANE_ROWS:
        return plane
    others = rows[(rows != rows[0]).any(axis=1)][: PLANE_ROWS // 2]
    alike = np.tile(rows[0], (PLANE_ROWS - len(others), 1))
    return splitter.find(np.concatenate([alike, others]), len(rows), seed)


def _find_threshold(scores: Array, splitter: GapSplitter) -> np.float32:
    """Return where to cut, so that the children keep to the bounds on their sizes.

    Rows of equal scores stay together, where most of them would be.
    """
    n = len(scores)
    n_high = int(np.count_nonzero(scores >= 0.0))
    low, high = splitter.bounds(n, n)
    target = min(max(n_high, low), high)
    if target == n_high:
        return np.float32(0.0)
    score = np.partition(scores, n - target)[n - target]
    above = int(np.count_nonzero(scores > score))
    upto = int(np.count_nonzero(scores >= score))
    least = splitter.min_size
    fits, other_fits = (least <= size <= n - least for size in (above, upto))
    is_above = fits if fits != other_fits else target - above < upto - target
    return np.float32(np.nextafter(score, np.float32(np.inf)) if is_above else score)


MIN_GROWN, MAX_EXTRA = 16, 500
"""Twice as many leaves are grown as requested, MIN_GROWN at least and MAX_EXTRA more at most:
four times as many gain nothing, and large trees have small leaves anyway."""

MAX_MOVED, SEEDS_PER_CLUSTER = 1 / 3, 3
"""Planes may not divide more clusters than there are coordinates without splitting some. Where
more than MAX_MOVED of the rows then leave the leaf that they were grown in, leaves start again
from random rows, SEEDS_PER_CLUSTER each. Of 200 planted clusters in 768 features, 0.67 do."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """A tree of two children per split, without rules: the target of rules."""

    tree: TreeBuilder
    labels: Labels  # the leaf of each row of the sample, by its position from the left


def find_clusters(
    coordinates: Coordinates,
    splitter: GapSplitter,
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
) -> Clusters:
    """Return the clusters of the rows, and the tree above them.

    More leaves are grown than requested, and compete for the rows; the closest are linked.
    Their unions compete again, and are linked to the tree above. Leaves smaller than the least
    size of the splitter are merged with their nearest. With a maximum depth the tree stays as
    it was grown; pairs of children will be merged up to ``branching``, and depth counts as it
    does then.
    """
    is_linked = stop.max_depth is None
    fine = _finer(stop) if is_linked else stop
    tree, grown = grow_leaves(coordinates, splitter, fine, run, max_children=branching)
    if tree.n_leaves == 1:
        return Clusters(tree, grown)
    leaves, _ = compete(Leaves.of(grown, tree.n_leaves, coordinates), coordinates)
    if is_linked:
        n_requested, moved = stop.n_leaves or 0, np.mean(leaves.labels != grown)
        if n_requested > coordinates.n_coordinates and moved > MAX_MOVED:
            seeds = seed_leaves(coordinates, SEEDS_PER_CLUSTER * n_requested, run.seed)
            leaves, _ = compete(seeds, coordinates)
        leaves = _choose_clusters(leaves, coordinates, stop, splitter.min_size)
        if leaves.n_leaves == 1:
            return Clusters(TreeBuilder(coordinates.n_rows), leaves.labels)
        # Rows have moved since: the leaves stay, the tree above them is made anew.
        tree, place = link_leaves(leaves.means, leaves.counts, StoppingRule())
        return Clusters(tree, place[leaves.labels].astype(np.int32))
    tree.resize(leaves.counts)
    for leaf in tree.leaves:
        tree.refuse(leaf, "")  # a reason may not hold for the rows that it has now
    return Clusters(tree, leaves.labels)


def _choose_clusters(
    fine: Leaves, coordinates: Coordinates, stop: StoppingRule, min_size: int
) -> Leaves:
    """Return as many leaves as requested, of the least size.

    The closest of the fine leaves are linked, and their unions compete again. Leaves that are
    too small then are merged with their nearest, and more are kept from the beginning.
    """
    n_requested = stop.n_leaves or 0
    limit = stop
    while True:
        _, place = link_leaves(fine.means, fine.counts, limit)
        leaves, _ = compete(_renumber(fine, place, coordinates), coordinates)
        place = merge_small(leaves.means, leaves.counts, min_size)
        n_missing = n_requested - int(place.max()) - 1
        n_kept = min((limit.n_leaves or 0) + n_missing, fine.n_leaves)
        if min_size == 1 or n_missing <= 0 or n_kept == limit.n_leaves:
            break
        limit = replace(stop, n_leaves=n_kept)
    leaves = _renumber(leaves, place, coordinates)
    if n_requested and leaves.n_leaves > n_requested:
        _, place = link_leaves(leaves.means, leaves.counts, stop)
        leaves = _renumber(leaves, place, coordinates)
    return leaves


def _renumber(leaves: Leaves, place: IndexArray, coordinates: Coordinates) -> Leaves:
    """Return the unions of some leaves, given the position of each among them."""
    labels = place[leaves.labels].astype(np.int32)
    return Leaves.of(labels, int(place.max()) + 1, coordinates)


def _finer(stop: StoppingRule) -> StoppingRule:
    """Return when to stop growing leaves that will be linked."""
    n_requested = stop.n_leaves
    if n_requested is None or n_requested == 1:
        return stop
    n_more = min(max(n_requested, MIN_GROWN - n_requested), MAX_EXTRA)
    return replace(stop, n_leaves=n_requested + n_more)
