"""Whether the rules above a node hold for its rows: how far its words can be trusted.

A rule holds for a row if it sends the row to the child that the row is in. Where the rules
decide, they all do. Where they describe what a placement or a bound on sizes decided, some rows
are exceptions, and along a path they add up.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._checks import no_rows
from taxarbor.hierarchy._reasons import dividing_feature
from taxarbor.hierarchy._words import MOSTLY
from taxarbor.rows import Rows
from taxarbor.rows._base import best_scores

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


@final
@dataclass(frozen=True, slots=True, eq=False)
class Follows:
    """For which rows the rules on their path hold, and which rules do not.

    A rule holds for a row if it sends the row to the child that the row is in. The arrays are
    copied and cannot be written to.

    Attributes
    ----------
    broken : int array of shape (n_rows,) or None
        The first node on the row's path whose rule does not hold for it, -1 if all do, and
        for noise, which has no path; None in a tree of counts, not rows.
    share : float array of shape (n_nodes,)
        The share of the node's rows for which all rules above the node hold.
    worst : int array of shape (n_nodes,)
        The ancestor whose rule is false for most of the node's rows, -1 if all hold for all.
    worst_share : float array of shape (n_nodes,)
        The share of the node's rows for which that rule holds.
    gap : float array of shape (n_nodes, 2)
        Where one feature divides a node in two: its largest value among the rows that the
        rule takes for low, and its smallest among the others. NaN elsewhere.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> tree = Taxarbor(6, random_state=0).fit(load_animals().X).hierarchy_
    >>> follows = tree.follows
    >>> bool((tree.cut(6)[follows.rows] == tree.labels[follows.rows]).all())
    True
    >>> follows.share.shape == follows.worst.shape == (tree.n_nodes,)
    True
    """

    broken: IndexArray | None
    share: Array
    worst: IndexArray
    worst_share: Array
    gap: Array

    def __post_init__(self) -> None:
        for name in ("broken", "worst") if self.broken is not None else ("worst",):
            self._set(name, np.array(getattr(self, name), dtype=np.intp))
        for name in ("share", "worst_share", "gap"):
            self._set(name, np.array(getattr(self, name), dtype=np.float64))

    def _set(self, name: str, array: NDArray[Any]) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        told = "" if self.broken is None else f"rows={self.rows.mean():.1%}, "
        return f"Follows({told}n_doubtful={self.is_doubtful.sum()})"

    # Arrays forget in a pickle that they are read-only: build the copy anew.
    def __reduce__(self) -> tuple[Any, ...]:
        return Follows, (self.broken, self.share, self.worst, self.worst_share, self.gap)

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Whether every rule on the row's path holds for it, of shape (n_rows,)."""
        if self.broken is None:
            raise no_rows()
        return self.broken < 0

    @property
    def is_doubtful(self) -> NDArray[np.bool_]:
        """Whether the words of a node are false for a fifth of its rows or more."""
        return self.share <= MOSTLY


def measured(
    hierarchy: "Hierarchy",
    rows: Rows,
    run: Run | None = None,
    *,
    holds: bool = False,
    two_values: Array | None = None,
) -> "Hierarchy":
    """Return the tree with what only its rows can tell: whom the rules hold for, and where.

    One sweep over the rows of each split, and one for ``two_values``, unless given. With
    ``holds`` the rules are known to hold for all rows, and only splits by one feature are
    looked at. Nothing is known of a tree without rules.
    """
    if two_values is None:
        seen = rows.take(hierarchy.rows(0)) if len(hierarchy.noise) else rows
        two_values = seen.two_values()
    tree = replace(hierarchy, two_values=two_values)
    inner = [node for node, rule in enumerate(tree.rules) if rule is not None]
    if not inner and tree.n_leaves > 1:
        return tree
    n, sizes = tree.n_nodes, tree.sizes
    fidelity, gap = np.full(n, np.nan), np.full((n, 2), np.nan)
    broken = np.full(sizes[0], -1, dtype=np.intp)  # by places in the order of the tree
    n_broken, n_worst = np.zeros(n), np.zeros(n)
    worst = np.full(n, -1, dtype=np.intp)
    # By their first rows, parents first: what is below a node stands behind it.
    listed = np.lexsort((np.arange(n), tree.start))
    starts = tree.start[listed]
    found = (run or Run()).each(lambda node: _exceptions(tree, rows, node, holds), inner)
    for node, (wrong, gap[node]) in zip(inner, found, strict=True):
        fidelity[node] = (sizes[node] - len(wrong)) / sizes[node]
        if not len(wrong):
            continue
        first, last = np.searchsorted(starts, (tree.start[node], tree.stop[node]))
        below = listed[first:last]
        below = below[below > node]
        places = tree.start[node] + wrong
        n_wrong = _count_within(places, tree, below)
        is_worse = n_wrong > n_worst[below]
        worst[below[is_worse]], n_worst[below[is_worse]] = node, n_wrong[is_worse]
        places = places[broken[places] < 0]
        broken[places] = node
        n_broken[below] += _count_within(places, tree, below)
    by_row = np.full(tree.n_rows, -1, dtype=np.intp)
    by_row[tree.rows(0)] = broken
    share, worst_share = (sizes - n_broken) / sizes, (sizes - n_worst) / sizes
    follows = Follows(by_row, share, worst, worst_share, gap)
    return replace(tree, fidelity=fidelity, follows=follows)


def _exceptions(
    tree: "Hierarchy", rows: Rows, node: int, holds: bool
) -> tuple[IndexArray, tuple[float, float]]:
    """Return which rows of a node its rule sends elsewhere, and the gap at its threshold."""
    rule, children = tree.rules[node], tree.children(node)
    assert rule is not None
    gap, alone = (np.nan, np.nan), dividing_feature(rule)
    if holds and alone is None:
        return np.empty(0, dtype=np.intp), gap
    labels = np.repeat(np.arange(len(children)), tree.sizes[children[0] : children[-1] + 1])
    own = rows.take(tree.rows(node), center=rule.center)
    sent = labels if holds else best_scores(own, rule.weights, rule.offsets)
    if alone is not None and 0 < np.count_nonzero(sent) < len(sent):
        column, step = np.zeros((1, rows.n_features)), rule.weights[:, alone]
        column[0, alone] = 1.0
        plain = rows.take(tree.rows(node), center=np.zeros(rows.n_features))
        values, is_low = plain.scores(column)[:, 0], sent == int(step[0] > step[1])
        gap = float(values[is_low].max()), float(values[~is_low].min())
    return np.flatnonzero(sent != labels), gap


def _count_within(places: IndexArray, tree: "Hierarchy", nodes: IndexArray) -> IndexArray:
    """Count the places, which ascend, within the slices of some nodes."""
    first, last = np.searchsorted(places, (tree.start[nodes], tree.stop[nodes]))
    counts: IndexArray = last - first
    return counts
