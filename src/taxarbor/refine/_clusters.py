"""The clusters of a tree and the tree above them, before there are rules for them."""

from dataclasses import replace

from taxarbor._run import GrowthEvent, Run
from taxarbor.grow import StoppingRule, grow
from taxarbor.hierarchy import HierarchyBuilder, Placement
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import compete
from taxarbor.refine._links import gather, link_leaves
from taxarbor.rows import Rows
from taxarbor.split import Splitter

LEAST, MORE = 16, 500
"""Twice as many leaves are grown as asked for, but this many at least, and so many more at
most: with four times as many nothing is gained, and large trees have small leaves anyway."""


def find_clusters(
    rows: Rows,
    splitter: Splitter,
    *,
    branching: int,
    stop: StoppingRule,
    run: Run,
    min_leaf_size: int = 1,
) -> tuple[HierarchyBuilder, Placement | None]:
    """Return a tree without rules, and what places rows in its leaves.

    More leaves are grown than asked for, and compete for the rows; the closest are linked, and
    what they make competes again.

    Parameters
    ----------
    rows : Rows
        All rows, with all features.
    splitter : Splitter
        Divides one node, in coordinates, into two.
    branching : int
        The most children of a node.
    stop : StoppingRule
        When the tree is large enough. A greatest depth leaves the tree as it was grown.
    run : Run
        The seed, where to run, and whom to tell.
    min_leaf_size : int
        Least size of a leaf.

    Returns
    -------
    tuple of HierarchyBuilder and Placement
        No placement for a root on its own.
    """
    coordinates = Coordinates.of(rows, run.seed)
    fine = stop if stop.max_depth is not None else _finer(stop)
    tree = grow(
        coordinates.rows,
        splitter,
        branching=2,
        stop=fine,
        run=_in_proportion(run, fine.n_leaves, stop.n_leaves),
        gather=branching,
    )
    sizes = min_leaf_size, stop.max_leaf_size
    if stop.max_depth is None and tree.n_leaves > 1:
        compete(tree, coordinates, None, *sizes)
        tree = link_leaves(tree, coordinates, stop)
    if branching > 2:
        tree = gather(tree, branching)
    return tree, compete(tree, coordinates, rows, *sizes)


def _finer(stop: StoppingRule) -> StoppingRule:
    """Return when to stop growing leaves that will be linked."""
    asked = stop.n_leaves
    if asked is None or asked == 1:
        return stop
    return replace(stop, n_leaves=asked + min(max(asked, LEAST - asked), MORE))


def _in_proportion(run: Run, n_grown: int | None, n_leaves: int | None) -> Run:
    """Return a run whose observer hears of the leaves asked for, not of those grown."""
    if n_grown is None or n_leaves is None:
        return run

    def observe(event: GrowthEvent, /) -> bool:
        done = max(event.n_leaves * n_leaves // n_grown, 1)
        return run.observer(GrowthEvent(done, n_leaves, event.n_tried))

    return replace(run, observer=observe)
