"""The clusters of a tree and the tree above them, before there are rules for them."""

from dataclasses import replace

from taxarbor._run import GrowthEvent, Run
from taxarbor.grow import StoppingRule, grow
from taxarbor.hierarchy import HierarchyBuilder, Placement
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import compete
from taxarbor.refine._links import at_leaves, link_leaves
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
    """Return a tree of pairs, without rules, and what places rows in its leaves.

    More leaves are grown than asked for, and compete for the rows; the closest are linked. What
    they make competes again, and is linked to the tree above.

    Parameters
    ----------
    rows : Rows
        All rows, with all features.
    splitter : Splitter
        Divides one node, in coordinates, into two.
    branching : int
        How many children pairs will be gathered to; a greatest depth counts as it does then.
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
    sizes, is_linked = (min_leaf_size, stop.max_leaf_size), stop.max_depth is None
    if is_linked and tree.n_leaves > 1:
        compete(tree, coordinates, None, *sizes)
        tree = link_leaves(tree, coordinates, stop)
    placement = compete(tree, coordinates, rows, *sizes)
    if placement is None:
        return tree, None
    if not is_linked:
        return tree, placement
    # Rows have moved since: the leaves stay, the tree above them is made anew.
    linked = link_leaves(tree, coordinates, StoppingRule())
    return linked, at_leaves(linked, tree, placement)


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
