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
from taxarbor.hierarchy._checks import keep, no_rows
from taxarbor.hierarchy._reasons import dividing_feature
from taxarbor.hierarchy._route import arranged, leaves_below
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.hierarchy._words import MOSTLY
from taxarbor.rows import Rows, as_rows
from taxarbor.rows._base import best_scores
from taxarbor.sweep import Column, Engine, LocalEngine, merged
from taxarbor.sweep._select import Extremes

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
        for name in ("broken", "share", "worst", "worst_share", "gap"):
            given = getattr(self, name)
            if name != "broken" or given is not None:
                dtype = np.intp if name in ("broken", "worst") else np.float64
                keep(self, **{name: np.array(given, dtype=dtype)})

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


def measured_rows(
    hierarchy: "Hierarchy",
    rows: Rows,
    run: Run | None = None,
    *,
    holds: bool = False,
    two_values: Array | None = None,
) -> "Hierarchy":
    """Return what :func:`measured` does, of a tree of rows in memory."""
    engine, labels = LocalEngine(run or Run()), [hierarchy.labels]
    return measured(hierarchy, [rows], labels, engine, holds=holds, two_values=two_values)


def measured(
    hierarchy: "Hierarchy",
    entries: Column,
    labels: Column,
    engine: Engine,
    *,
    counts: Column | None = None,
    holds: bool = False,
    two_values: Array | None = None,
) -> "Hierarchy":
    """Return the tree with what only its rows can tell: whom the rules hold for, and where.

    One sweep over the rows. With ``holds`` the rules are known to hold for all rows, and only
    splits by one feature are looked at. Nothing is known of a tree without rules.

    Parameters
    ----------
    hierarchy : Hierarchy
        A tree of rows, which come in this order, or of counts.
    entries : Column
        The rows: arrays, CSR matrices or Rows.
    labels : Column
        The position of each row's leaf among the leaves, -1 for noise.
    engine : Engine
        Sweeps them.
    counts : Column or None
        How often each row counts; None, or an entry of None, for once. Those that take no part
        have none in any share, but what is said of thresholds holds for them as well.
    holds : bool
        Whether every row is where the rules send it.
    two_values : array of shape (n_features, 2), optional
        The two values of features that have no others, where that is known.
    """
    splits = _splits(hierarchy, holds)
    own: Column = [None] * len(entries) if counts is None else counts
    broken, found = None, None
    if splits or two_values is None:
        how: Any = {"n_leaves": hierarchy.n_leaves, "has_pairs": two_values is None}
        told = entries, labels, own
        broken, found = engine.keep(_followed, *told, splits=splits, holds=holds, **how)
    if two_values is None:
        assert found is not None
        assert found.pairs is not None
        two_values = found.pairs.two_values()
    tree = hierarchy
    if tree.n_leaves > 1 and not any(rule is not None for rule in tree.rules):
        return replace(tree, two_values=two_values)
    by_row = None
    if tree.has_rows:
        by_row = np.full(tree.n_rows, -1, dtype=np.intp)
        if splits and not holds:
            assert broken is not None
            by_row = np.concatenate(engine.gather(broken))
    follows, fidelity = _of_nodes(tree, splits, found, by_row)
    known: Any = {"fidelity": fidelity, "follows": follows, "two_values": two_values}
    return replace(tree, **known)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """A node with a rule: the leaves that are below it, and what divides it.

    ``edges`` are the positions of the first leaves of its children, and one past the last.
    """

    node: int
    rule: LinearRule
    edges: IndexArray
    alone: int | None  #: the feature by which alone the rule divides in two


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Least and greatest value of columns that have at most two, of shape (n_features, 2).

    NaN for other columns.
    """

    values: Array

    def merge(self, other: "_Pairs") -> "_Pairs":
        low = np.minimum(self.values[:, 0], other.values[:, 0])
        high = np.maximum(self.values[:, 1], other.values[:, 1])
        both = np.hstack((self.values, other.values))
        fits = ((both == low[:, None]) | (both == high[:, None])).all(axis=1)
        return _Pairs(np.where(fits[:, None], np.stack((low, high), axis=1), np.nan))

    def two_values(self) -> Array:
        """Return the pairs of those columns that have two values."""
        has_two = self.values[:, 0] < self.values[:, 1]
        return np.where(has_two[:, None], self.values, np.nan)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What rows tell of the rules.

    Of the leaves below each split, one split after the other: ``wrong``, how many rows its
    rule sends elsewhere, and ``first``, of how many rows no rule above did.
    """

    sizes: NDArray[np.int64]  #: of the leaves
    wrong: NDArray[np.int64]
    first: NDArray[np.int64]
    gap: Extremes  #: of each split: the least high value, and the greatest low one
    pairs: _Pairs | None

    def merge(self, other: "_Found") -> "_Found":
        return _Found(*(merged(getattr(self, n), getattr(other, n)) for n in self.__slots__))


def _splits(tree: "Hierarchy", holds: bool) -> tuple[_Split, ...]:
    """Return the splits whose rules are to be looked at, parents first."""
    first, last = leaves_below(tree)
    found = []
    for node, rule in enumerate(tree.rules):
        alone = None if rule is None else dividing_feature(rule)
        if rule is not None and (alone is not None or not holds):
            edges = np.append(first[[*tree.children(node)]], last[node])
            found.append(_Split(node, rule, edges, alone))
    return tuple(found)


def _followed(
    entry: Any,
    labels: NDArray[np.integer],
    counts: NDArray[np.integer] | None,
    *,
    splits: tuple[_Split, ...],
    n_leaves: int,
    holds: bool,
    has_pairs: bool,
) -> tuple[NDArray[np.int32], _Found]:
    """Return the first broken rule of each row of a block, and what the rows tell."""
    (there,) = np.nonzero(labels >= 0)
    order = arranged(there, labels[there], n_leaves)
    homes = labels[order].astype(np.intp)
    stops = np.concatenate(([0], np.cumsum(np.bincount(homes, minlength=n_leaves))))
    rows = rows_of(entry)
    zero = np.zeros(rows.n_features)
    weights = np.ones(len(labels), dtype=np.int64) if counts is None else counts
    broken = np.full(len(labels), -1, dtype=np.int32)
    gap = np.full(len(splits), np.inf), np.full(len(splits), -np.inf)
    none = np.zeros(0, dtype=np.int64)
    wrong, first = [none], [none]

    def counted(some: IndexArray, split: _Split) -> NDArray[np.int64]:
        n = int(split.edges[-1] - split.edges[0])
        places = homes[some] - split.edges[0]
        found = np.bincount(places, weights=weights[order[some]], minlength=n)
        return found.astype(np.int64)

    for turn, split in enumerate(splits):
        begin, end = stops[split.edges[[0, -1]]]
        own = order[begin:end]
        children = np.repeat(np.arange(len(split.edges) - 1), np.diff(stops[split.edges]))
        sent = children
        if not holds and len(own):
            here = rows.take(own, center=split.rule.center)
            sent = best_scores(here, split.rule.weights, split.rule.offsets)
        exceptions = begin + np.flatnonzero(sent != children)
        wrong.append(counted(exceptions, split))
        exceptions = exceptions[broken[order[exceptions]] < 0]
        first.append(counted(exceptions, split))
        broken[order[exceptions]] = split.node
        if split.alone is not None and len(own):
            gap[0][turn], gap[1][turn] = _gap(rows.take(own, zero), split, sent)
    sizes = np.bincount(homes, weights=weights[order], minlength=n_leaves)
    seen = order if counts is None else order[counts[order] > 0]
    pairs = None
    if has_pairs and len(seen):
        some = rows if len(seen) == rows.n_rows else rows.take(seen, zero)
        pairs = _Pairs(some.few_values())
    sums = np.concatenate(wrong), np.concatenate(first)
    return broken, _Found(sizes.astype(np.int64), *sums, Extremes(*gap), pairs)


def _gap(rows: Rows, split: _Split, sent: IndexArray) -> tuple[float, float]:
    """Return a feature's least value among rows sent to its high side, and the greatest low."""
    column, step = np.zeros((1, rows.n_features)), split.rule.weights[:, split.alone]
    column[0, split.alone] = 1.0
    values, is_low = rows.scores(column)[:, 0], sent == int(step[0] > step[1])
    low, high = values[is_low], values[~is_low]
    return float(high.min(initial=np.inf)), float(low.max(initial=-np.inf))


def _of_nodes(
    tree: "Hierarchy",
    splits: tuple[_Split, ...],
    found: _Found | None,
    broken: IndexArray | None,
) -> tuple[Follows, Array]:
    """Return what is known of all nodes, given what rows tell of the leaves below splits."""
    n, (first, last) = tree.n_nodes, leaves_below(tree)
    fidelity = np.where([rule is not None for rule in tree.rules], 1.0, np.nan)
    n_broken, n_worst = np.zeros(n), np.zeros(n)
    worst, gap = np.full(n, -1, dtype=np.intp), np.full((n, 2), np.nan)
    if found is None:
        return Follows(broken, np.ones(n), worst, np.ones(n), gap), fidelity

    def within(counts: NDArray[np.int64], nodes: IndexArray, begin: int) -> Array:
        """Add up the counts of leaves, of which the first is at ``begin``, below nodes."""
        sums = np.concatenate(([0], np.cumsum(counts)))
        return (sums[last[nodes] - begin] - sums[first[nodes] - begin]).astype(np.float64)

    sizes = within(found.sizes, np.arange(n), 0)
    place = 0
    for turn, split in enumerate(splits):
        node, begin, end = split.node, int(split.edges[0]), int(split.edges[-1])
        high, low = found.gap.low[turn], found.gap.high[turn]
        if np.isfinite(high) and np.isfinite(low):
            gap[node] = low, high
        own = slice(place, place + end - begin)
        place = own.stop
        n_wrong = int(found.wrong[own].sum())
        if not n_wrong:
            continue
        fidelity[node] = (sizes[node] - n_wrong) / sizes[node]
        (below,) = np.nonzero((first >= begin) & (last <= end))
        below = below[below > node]
        n_each = within(found.wrong[own], below, begin)
        is_worse = n_each > n_worst[below]
        worst[below[is_worse]], n_worst[below[is_worse]] = node, n_each[is_worse]
        n_broken[below] += within(found.first[own], below, begin)
    counting = np.maximum(sizes, 1.0)  # a leaf of rows that take no part has nothing broken
    share, worst_share = (counting - n_broken) / counting, (counting - n_worst) / counting
    return Follows(broken, share, worst, worst_share, gap), fidelity


def rows_of(entry: Any) -> Rows:
    """Return a block of a column, an array, a CSR matrix or rows, as rows about any centre."""
    rows: Rows = (
        as_rows(entry, center=np.zeros(entry.shape[1])) if hasattr(entry, "shape") else entry
    )
    return rows
