"""From coordinates to clusters and the tree above them: grow, compete, link."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.clusters._compete import Labels, Leaves, compete, seed_leaves
from taxarbor.clusters._coordinates import Coordinates
from taxarbor.clusters._growth import grow_leaves
from taxarbor.clusters._links import link_leaves, merge_small
from taxarbor.grow import StoppingRule
from taxarbor.split._gap import GapSplitter
from taxarbor.tree import TreeBuilder

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
    """A tree of two children per split, without rules: the target of rules.

    Attributes
    ----------
    tree : TreeBuilder
        The tree.
    labels : int32 array of shape (n_rows,)
        The leaf of each row of the sample, by its position from the left.
    """

    tree: TreeBuilder
    labels: Labels


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
    size of the splitter are merged with their nearest.

    Parameters
    ----------
    coordinates : Coordinates
        The rows.
    splitter : GapSplitter
        Divides one node, in coordinates, into two.
    branching : int
        Pairs of children will be merged up to this many; depth counts as it does then.
    stop : StoppingRule
        When the tree is large enough. With a maximum depth the tree stays as it was grown.
    run : Run
        Each node draws its random numbers from the seed and its path from the root.
    """
    is_linked = stop.max_depth is None
    fine = _finer(stop) if is_linked else stop
    tree, grown = grow_leaves(
        coordinates, splitter, fine, run, max_children=branching, n_reported=stop.n_leaves
    )
    if tree.n_leaves == 1:
        return Clusters(tree, grown)
    notes = [tree.note(leaf) for leaf in tree.leaves]
    leaves = Leaves.of(grown, tree.n_leaves, coordinates)
    leaves, _ = compete(leaves, coordinates)
    if is_linked:
        moved = np.count_nonzero(leaves.labels != grown) / len(grown)
        if (stop.n_leaves or 0) > coordinates.n_coordinates and moved > MAX_MOVED:
            assert stop.n_leaves is not None
            seeds = seed_leaves(coordinates, SEEDS_PER_CLUSTER * stop.n_leaves, run.seed)
            leaves, _ = compete(seeds, coordinates)
        leaves = _choose_clusters(leaves, coordinates, stop, splitter.min_size)
        if leaves.n_leaves == 1:
            return Clusters(TreeBuilder(coordinates.n_rows), leaves.labels)
        # Rows have moved since: the leaves stay, the tree above them is made anew.
        tree, place = link_leaves(leaves.means, leaves.counts, StoppingRule())
        labels = place[leaves.labels].astype(np.int32)
    else:
        tree.resize(leaves.counts)
        labels = leaves.labels
    matched = match_notes(labels, grown, notes)
    for position, leaf in enumerate(tree.leaves):
        tree.refuse(leaf, matched.get(position, ""))
    return Clusters(tree, labels)


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
        leaves = _renumber(fine, place, coordinates)
        leaves, _ = compete(leaves, coordinates)
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


def match_notes(labels: Labels, grown: Labels, notes: Sequence[str]) -> dict[int, str]:
    """Return the notes of grown leaves, for the leaves that have just the same rows.

    A note says why the rows of a leaf could not be split: of other rows it may not hold.
    """
    if not any(notes):
        return {}
    sizes, grown_sizes = np.bincount(labels), np.bincount(grown)
    pairs, counts = np.unique(labels.astype(np.intp) * len(notes) + grown, return_counts=True)
    new, old = np.divmod(pairs, len(notes))
    is_same = (counts == sizes[new]) & (counts == grown_sizes[old])
    matches = zip(new[is_same].tolist(), old[is_same].tolist(), strict=True)
    return {label: notes[leaf] for label, leaf in matches if notes[leaf]}


def _finer(stop: StoppingRule) -> StoppingRule:
    """Return when to stop growing leaves that will be linked."""
    n_requested = stop.n_leaves
    if n_requested is None or n_requested == 1:
        return stop
    return replace(
        stop, n_leaves=n_requested + min(max(n_requested, MIN_GROWN - n_requested), MAX_EXTRA)
    )
