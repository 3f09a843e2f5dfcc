"""From coordinates to clusters and the tree above them: grow, compete, link."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.clusters._compete import Labels, Leaves, compete, fit_leaves
from taxarbor.clusters._coordinates import Coordinates
from taxarbor.clusters._growth import grow_leaves
from taxarbor.clusters._links import link_leaves, merge_small
from taxarbor.grow import StoppingRule
from taxarbor.hierarchy import HierarchyBuilder, LinearRule
from taxarbor.split import GapSplitter

MIN_GROWN, MAX_EXTRA = 16, 500
"""Twice as many leaves are grown as asked for, but this many at least, and so many more at
most: with four times as many nothing is gained, and large trees have small leaves anyway."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """A tree of two children per split, without rules: what rules are to reproduce.

    Attributes
    ----------
    tree : HierarchyBuilder
        The tree.
    labels : int32 array of shape (n_rows,)
        The leaf of each row of the sample, by its position from the left.
    scores : LinearRule or None
        How well a row, with all its features, fits each leaf; None for a root on its own.
    """

    tree: HierarchyBuilder
    labels: Labels
    scores: LinearRule | None


def find_clusters(
    coordinates: Coordinates,
    splitter: GapSplitter,
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
) -> Clusters:
    """Return the clusters of the rows, and the tree above them.

    More leaves are grown than asked for, and compete for the rows; the closest are linked. What
    they make competes again, and is linked to the tree above. Leaves smaller than the least
    size of the splitter are merged with their nearest.

    Parameters
    ----------
    coordinates : Coordinates
        The rows.
    splitter : GapSplitter
        Divides one node, in coordinates, into two.
    branching : int
        How many children pairs will be gathered to; a greatest depth counts as it does then.
    stop : StoppingRule
        When the tree is large enough. A greatest depth leaves the tree as it was grown.
    run : Run
        Each node draws its random numbers from the seed and its path from the root.
    """
    is_linked = stop.max_depth is None
    fine = _finer(stop) if is_linked else stop
    tree, grown = grow_leaves(
        coordinates, splitter, fine, run, gather=branching, n_reported=stop.n_leaves
    )
    if tree.n_leaves == 1:
        return Clusters(tree, grown, None)
    notes = [tree.note(leaf) for leaf in tree.leaves]
    leaves = Leaves.of(grown, tree.n_leaves, coordinates)
    if is_linked:
        leaves, _ = compete(leaves, coordinates)
        tree, place = link_leaves(leaves.means, leaves.counts, stop)
        leaves = _renumber(leaves, place, coordinates)
        if leaves.n_leaves == 1:
            return Clusters(tree, leaves.labels, None)
    leaves, model = compete(leaves, coordinates)
    if is_linked:
        # Rows have moved since: the leaves stay, the tree above them is made anew.
        place = merge_small(leaves.means, leaves.counts, splitter.min_size)
        if place.max() + 1 < leaves.n_leaves:
            leaves = _renumber(leaves, place, coordinates)
            if leaves.n_leaves == 1:
                return Clusters(HierarchyBuilder(coordinates.n_rows), leaves.labels, None)
            model, _ = fit_leaves(leaves, coordinates)
        tree, place = link_leaves(leaves.means, leaves.counts, StoppingRule())
        labels, order = place[leaves.labels].astype(np.int32), np.argsort(place)
        scores = coordinates.rule(model.weights[order], model.offsets[order])
    else:
        tree.resize(leaves.counts)
        labels, scores = leaves.labels, coordinates.rule(model.weights, model.offsets)
    matched = match_notes(labels, grown, notes)
    for position, leaf in enumerate(tree.leaves):
        tree.refuse(leaf, matched.get(position, ""))
    return Clusters(tree, labels, scores)


def _renumber(leaves: Leaves, place: IndexArray, coordinates: Coordinates) -> Leaves:
    """Return the leaves that given ones, some of them together, become."""
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
    asked = stop.n_leaves
    if asked is None or asked == 1:
        return stop
    return replace(stop, n_leaves=asked + min(max(asked, MIN_GROWN - asked), MAX_EXTRA))
