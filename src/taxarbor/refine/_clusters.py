"""The clusters of a tree and the tree above them, before there are rules for them."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from taxarbor.grow import StoppingRule
from taxarbor.hierarchy import HierarchyBuilder, LinearRule
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._field import HELD, grow_leaves, n_drawn
from taxarbor.refine._leaves import Leafing, compete
from taxarbor.refine._links import link_leaves
from taxarbor.split import GapSplitter

LEAST, MORE = 16, 500
"""Twice as many leaves are grown as asked for, but this many at least, and so many more at
most: with four times as many nothing is gained, and large trees have small leaves anyway."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """A tree of pairs, without rules, with its rows and what places rows in its leaves.

    Attributes
    ----------
    leafing : Leafing
        The tree, and the leaf of each row.
    placement : LinearRule or None
        Scores of the leaves, from left to right, for rows with all features; None for a root
        on its own.
    """

    leafing: Leafing
    placement: LinearRule | None

    @property
    def tree(self) -> HierarchyBuilder:
        """The tree."""
        return self.leafing.tree


def find_clusters(
    coordinates: Coordinates,
    splitter: GapSplitter,
    *,
    branching: int,
    stop: StoppingRule,
    seed: int,
    min_leaf_size: int = 1,
    is_silent: bool = False,
) -> Clusters:
    """Return the clusters of the rows, and the tree above them.

    More leaves are grown than asked for, and compete for the rows; the closest are linked. What
    they make competes again, and is linked to the tree above.

    Parameters
    ----------
    coordinates : Coordinates
        All rows.
    splitter : GapSplitter
        Divides one node, in coordinates, into two.
    branching : int
        How many children pairs will be gathered to; a greatest depth counts as it does then.
    stop : StoppingRule
        When the tree is large enough. A greatest depth leaves the tree as it was grown.
    seed : int
        Each node draws its random numbers from this seed and its path from the root.
    min_leaf_size : int
        Least size of a leaf.
    is_silent : bool
        Whether the observer is told nothing.
    """
    sizes, is_linked = (min_leaf_size, stop.max_leaf_size), stop.max_depth is None
    fine = _finer(stop) if is_linked else stop
    n_told = 0 if is_silent else stop.n_leaves
    now = grow_leaves(coordinates, splitter, fine, seed, gather=branching, n_told=n_told)
    if is_linked and now.n_leaves > 1:
        now, _ = compete(now, coordinates, *sizes)
        now, _ = link_leaves(now, coordinates, stop)
    if now.n_leaves == 1:
        return Clusters(now, None)
    now, model = compete(now, coordinates, *sizes)
    rule = coordinates.rule(model.weights, model.offsets)
    if not is_linked:
        return Clusters(now, rule)
    # Rows have moved since: the leaves stay, the tree above them is made anew.
    now, place = link_leaves(now, coordinates, StoppingRule())
    order = np.argsort(place)
    rule = LinearRule(rule.weights[order], rule.center, rule.offsets[order])
    return Clusters(now, rule)


def n_held(n_rows: int, branching: int, stop: StoppingRule) -> int:
    """Return how many rows of coordinates :func:`find_clusters` holds in memory, at most."""
    fine = _finer(stop) if stop.max_depth is None else stop
    return HELD * min(n_rows, int(n_drawn(n_rows, fine, branching)))


def _finer(stop: StoppingRule) -> StoppingRule:
    """Return when to stop growing leaves that will be linked."""
    asked = stop.n_leaves
    if asked is None or asked == 1:
        return stop
    return replace(stop, n_leaves=asked + min(max(asked, LEAST - asked), MORE))
