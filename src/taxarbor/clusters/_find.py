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
    assign_rows,
    compete,
    fit_leaves,
    join_leaves,
    link_leaves,
    measure_objective,
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
    balance: tuple[float, float] = (0.2, 1.8)
    starts: tuple[str, ...] = ("principal",)
    min_size: int = 1  # of a child

    def find(self, sample: Array, n_rows: int, seed: int) -> GapPlane | Refusal:
        """Return the best plane for a sample of a node's rows, or why there is none."""
        few = refuse_size(n_rows, 2, self.min_size)
        if few is not None:
            return few
        rows = as_rows(sample)
        bounds = self.bounds(len(sample), n_rows)
        half = rows.halve(HalveProblem(seed, [*self.starts], bounds, RIDGE / 2.0))
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


PART_ROWS, PART_ROWS_PER_LEAF = 5000, 50
"""Clusters are found on a part of the sample: this many rows at least, and for each leaf that
is grown. Then they compete for all rows of the sample."""

FINE_ROUNDS, JOINED_ROUNDS, CHOSEN_ROUNDS = 10, 1, 4
"""The most rounds of moves of leaves that are linked: grown ones, clusters joined with those of
another start, and the unions of both. Only the best compete until few rows move."""

PART_STREAM, START_STREAM = 13, 17  # distinguish random numbers of parts and starts from others


def find_clusters(
    coordinates: Coordinates,
    splitter: GapSplitter,
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
    n_init: int = 1,
) -> Clusters:
    """Return the clusters of the rows, and the tree above them.

    They are found on a part of the rows, compete for all, and are linked to the tree. Leaves
    smaller than the least size of the splitter are merged with their nearest. With a maximum
    depth the tree stays as it was grown; pairs of children will be merged up to ``branching``,
    and depth counts as it does then. ``n_init`` is the number of starts.
    """
    if stop.max_depth is not None:
        tree, labels = grow_leaves(coordinates, splitter, stop, run, max_children=branching)
        if tree.n_leaves > 1:
            leaves, _ = compete(Leaves.of(labels, tree.n_leaves, coordinates), coordinates)
            tree.resize(leaves.counts)
            for leaf in tree.leaves:
                tree.refuse(leaf, "")  # a reason may not hold for the rows that it has now
            labels = leaves.labels
        return Clusters(tree, labels)
    n_requested = stop.n_leaves or 2
    for part in dict.fromkeys((_draw_part(coordinates, stop, run.seed), coordinates)):
        scaled = _scale(stop, splitter, part, coordinates)
        tree, leaves = _find_leaves(part, *scaled, run, n_init)
        if part is not coordinates and leaves.n_leaves > 1:
            model, _ = fit_leaves(leaves, part)
            leaves, _ = compete(assign_rows(model, coordinates), coordinates, 1)
        if leaves.n_leaves > 1:
            place = merge_small(leaves.means, leaves.counts, splitter.min_size)
            leaves = _renumber(leaves, place, coordinates)
        if leaves.n_leaves >= n_requested:
            break  # else the part may be too small
    if leaves.n_leaves == 1:
        tree = tree if tree.n_leaves == 1 else TreeBuilder(coordinates.n_rows)
        return Clusters(tree, np.zeros(coordinates.n_rows, dtype=np.int32))
    # Rows have moved since: the leaves stay, the tree above them is made anew.
    tree, place = link_leaves(leaves.means, leaves.counts, StoppingRule())
    return Clusters(tree, place[leaves.labels].astype(np.int32))


def _draw_part(coordinates: Coordinates, stop: StoppingRule, seed: int) -> Coordinates:
    """Return the rows of lowest hash, enough to find clusters on; all, if there are no more."""
    n_rows = coordinates.n_rows
    n_leaves = _finer(stop).n_leaves or 2 * n_rows / (stop.max_leaf_size or n_rows)
    size = max(PART_ROWS, int(min(PART_ROWS_PER_LEAF * n_leaves, n_rows)))
    if size >= n_rows:
        return coordinates
    return coordinates.take(draw_positions(n_rows, size, node_seed(seed, (PART_STREAM,))))


def _scale(
    stop: StoppingRule, splitter: GapSplitter, part: Coordinates, coordinates: Coordinates
) -> tuple[StoppingRule, GapSplitter]:
    """Return when to stop, and the splitter, with sizes in rows of a part."""
    share = part.n_rows / coordinates.n_rows
    least, most = splitter.min_size * share, stop.max_leaf_size
    if share == 1.0:
        return stop, splitter
    if splitter.min_size > 1:  # with room for chance
        splitter = replace(splitter, min_size=int(np.ceil(least + 2.0 * np.sqrt(least))))
    if most is not None:
        stop = replace(stop, max_leaf_size=max(round(most * share), 1))
    return stop, splitter


def _find_leaves(
    coordinates: Coordinates, stop: StoppingRule, splitter: GapSplitter, run: Run, n_init: int
) -> tuple[TreeBuilder, Leaves]:
    """Return as many leaves as requested, the best of some starts, and the tree of the first.

    More leaves are grown than requested, and compete for the rows; the closest are linked, and
    their unions compete again. Clusters about rows drawn at random join them, compete with
    them, and are linked likewise: so each is taken from the start that has it best.
    """
    n_requested = stop.n_leaves or 0
    tree, grown = grow_leaves(coordinates, splitter, _finer(stop), run)
    leaves = Leaves.of(grown, tree.n_leaves, coordinates)
    if tree.n_leaves == 1:
        return tree, leaves
    leaves, _ = compete(leaves, coordinates, FINE_ROUNDS)
    if n_requested > coordinates.n_coordinates and np.mean(leaves.labels != grown) > MAX_MOVED:
        leaves = seed_leaves(coordinates, SEEDS_PER_CLUSTER * n_requested, run.seed)
        leaves, _ = compete(leaves, coordinates, FINE_ROUNDS)
    leaves = _choose_clusters(leaves, coordinates, stop, splitter.min_size)
    _, ridge = fit_leaves(leaves, coordinates)
    least = measure_objective(leaves, coordinates, ridge)
    for turn in range(1, n_init if 1 < leaves.n_leaves == n_requested else 1):
        seed = node_seed(run.seed, (START_STREAM, turn))
        joined = join_leaves(leaves, seed_leaves(coordinates, n_requested, seed), coordinates)
        joined, _ = compete(joined, coordinates, JOINED_ROUNDS)
        joined = _choose_clusters(joined, coordinates, stop, splitter.min_size)
        objective = measure_objective(joined, coordinates, ridge)
        if joined.n_leaves == n_requested and objective < least:
            leaves, least = joined, objective
    if leaves.n_leaves > 1:
        leaves, _ = compete(leaves, coordinates)
    return tree, leaves


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
        unions = _renumber(fine, place, coordinates)
        leaves, _ = compete(unions, coordinates, CHOSEN_ROUNDS)
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
