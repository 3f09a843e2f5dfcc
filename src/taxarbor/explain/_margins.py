"""How clearly each row belongs where it is, at every split on its way.

The margin of a row at a split is its best score among the leaves below its own child, less
the best among the leaves below the other children: what decides where a row goes. Without a
placement it is the rule's score of its own child less the best of the others. It is negative
for a row that is not where its scores would send it. Margins are in units of the split's
median, so that 1 is a usual row and 0 is the border, whatever the units of the data.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy, LinearRule
from taxarbor.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 22
"""Scores computed at once."""


def raw_margins(
    hierarchy: Hierarchy, rows: Rows, node: int, positions: IndexArray, children: IndexArray
) -> Array:
    """Return the margin of some rows at a split, in units of the scores.

    Parameters
    ----------
    hierarchy : Hierarchy
        A tree with rules.
    rows : Rows
        Data with its features.
    node : int
        The node that is split.
    positions : int array of shape (n_some,)
        Which of the rows.
    children : int array of shape (n_some,)
        Position among the node's children of the one each row is in.
    """
    rule, owner = _decider(hierarchy, node)
    margins = np.empty(len(positions))
    for some in blocks(len(positions), rule.n_children):
        scores = rows.take(positions[some], center=rule.center).scores(rule.weights)
        margins[some] = _lead(scores.astype(np.float64) + rule.offsets, owner, children[some])
    return margins


def find_rivals(
    hierarchy: Hierarchy, rows: Rows, node: int, positions: IndexArray, children: IndexArray
) -> tuple[IndexArray, NDArray[np.bool_]]:
    """Ask the node's rule alone where some rows belong.

    Returns
    -------
    rivals : int array of shape (n_some,)
        Of the children that each row is not in, the one with the highest score.
    agrees : bool array of shape (n_some,)
        Whether the rule sends the row to the child it is in.
    """
    rule = hierarchy.rules[node]
    assert rule is not None
    rivals = np.empty(len(positions), dtype=np.intp)
    agrees = np.empty(len(positions), dtype=bool)
    for some in blocks(len(positions), rule.n_children):
        scores = rows.take(positions[some], center=rule.center).scores(rule.weights)
        scores = scores + rule.offsets
        agrees[some] = scores.argmax(axis=1) == children[some]
        scores[np.arange(len(scores)), children[some]] = -np.inf
        rivals[some] = scores.argmax(axis=1)
    return rivals, agrees


def least_margins(hierarchy: Hierarchy, margins: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the least margin on the way to each node, of each of its rows.

    Parents come first, so that a node looks at its parent alone: a walk from each node to the
    root would take too long in a deep tree. There is nothing above the root, so infinity.
    """
    least = [np.full(len(hierarchy.order), np.inf)]
    for node, parent in enumerate(hierarchy.parents[1:].tolist(), start=1):
        own = slice(*([hierarchy.start[node], hierarchy.stop[node]] - hierarchy.start[parent]))
        above = margins[parent]
        assert above is not None
        least.append(np.minimum(least[parent][own], above[own]))
    return tuple(least)


def children_of_rows(hierarchy: Hierarchy, node: int) -> IndexArray:
    """Return which child each row of a node is in, in the order of ``rows(node)``."""
    sizes = hierarchy.n_rows[list(hierarchy.children(node))]
    return np.repeat(np.arange(len(sizes)), sizes)


def _decider(hierarchy: Hierarchy, node: int) -> tuple[LinearRule, IndexArray]:
    """Return what decides between a node's children, and the child of each of its scores."""
    placement, children = hierarchy.placement, hierarchy.children(node)
    rule = hierarchy.rules[node]
    if placement is None:
        assert rule is not None
        return rule, np.arange(len(children))
    # The slices of the children tile that of the node: a cell lies where its leaf begins.
    first_rows = hierarchy.start[placement.leaves]
    is_below = (first_rows >= hierarchy.start[node]) & (first_rows < hierarchy.stop[node])
    cells = np.flatnonzero(is_below)
    edges = hierarchy.start[list(children)]
    owner = np.searchsorted(edges, first_rows[cells], side="right") - 1
    whole = placement.rule
    return LinearRule(whole.weights[cells], whole.center, whole.offsets[cells]), owner


def _lead(scores: Array, owner: IndexArray, children: IndexArray) -> Array:
    """Return the best score of each row's own child less the best of the others."""
    is_own = owner == children[:, None]
    own = np.where(is_own, scores, -np.inf).max(axis=1)
    others = np.where(is_own, -np.inf, scores).max(axis=1)
    lead: Array = own - others
    return lead


def blocks(n_rows: int, n_scores: int) -> "Iterator[slice]":
    """Return slices of rows that have some millions of scores, at most, each."""
    step = max(BLOCK // n_scores, 1)
    return (slice(first, first + step) for first in range(0, n_rows, step))
