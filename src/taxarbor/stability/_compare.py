r"""Compare a tree with those of its refits: recovery and separation of nodes and of cuts.

A plane through the middle of a single cloud is found again and again: a recovered cluster need
not be one. So a gap must lie between it and its nearest neighbour, which is tested on rows that
the refit has not seen. Two clusters are projected on the direction that separates them best,
and three windows of one width are chosen by the rows of the refit: the emptiest place between
the two, M, and the fullest on either side, L and R. If the density has one peak only, wherever
it is, then it is at M at least as high as at L or at R. So the counts n of unseen rows in them
have, for one side or the other,

    n_M ~ Binomial(n_M + n_side, p),   p >= 1/2,

and there is a gap where that is unlikely for both. The null hypothesis is thus every unimodal
distribution: bell-shaped or flat, correlated, skewed, heavy-tailed or bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import solve
from scipy.special import bdtr
from sklearn.base import BaseEstimator

from taxarbor._types import Array, IndexArray, Mask, Matrix
from taxarbor.clusters import Coordinates
from taxarbor.clusters.leaves import Leaves, compete
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy.probabilities import jaccard
from taxarbor.taxonomy.stability_result import MIN_JACCARD, Curve
from taxarbor.tree import Tree

MAX_CONSECUTIVE, CUT_RATIO = 50, 1.1  # cuts measured one by one; the ratio of those beyond
ALPHA = 0.05  # level of the test for a gap, in one refit
WINDOW = 1 / 3  # width of a window, in units of the distance of the two medians
N_WINDOWS = 21  # that are tried at each place
TINY = 1e-12


@final
@dataclass(frozen=True, slots=True, eq=False)
class Refits:
    """A taxonomy, and refits of its model to parts of its rows."""

    taxonomy: Taxonomy  # its tree is compared with those of the refits
    data: Matrix  # all of its rows, as models are fitted to them
    rows: IndexArray  # those that halves are drawn from, and that the coordinates are of
    coordinates: Coordinates
    halves: list[IndexArray]  # what each refit has seen, as positions in rows
    models: list[BaseEstimator]  # the refits

    def __iter__(self) -> Iterator[tuple[Tree, IndexArray, Mask]]:
        """Yield the tree of each refit, the positions that it has seen, and these as a mask."""
        for model, half in zip(self.models, self.halves, strict=True):
            yield model.taxonomy_.tree, half, np.isin(np.arange(len(self.rows)), half)

    @property
    def points(self) -> Array:
        """The coordinates as float64, without the constant one."""
        return self.coordinates.values[:, :-1].astype(np.float64)


def compare_nodes(refits: Refits, labels: list[IndexArray], curve: Curve) -> Stability:
    """Return the stability of each node, given the leaf of each row in each refit."""
    tree, Z = refits.taxonomy.tree, refits.points
    n_recovered, n_separated = np.zeros((2, tree.n_nodes), dtype=np.intp)
    n_matched, n_left_out = np.zeros((2, tree.n_nodes))
    inside = tree.rows(tree.root)
    for (other, half, is_seen), leaves in zip(refits, labels, strict=True):
        common = _count_common(tree, other, leaves, inside)
        index = common / (common[:, :1] + common[:1] - common)  # the root, first, has all rows
        match, is_recovered = index.argmax(axis=1), index.max(axis=1) >= MIN_JACCARD
        n_recovered += is_recovered
        is_separated = _find_separated_nodes(
            other, leaves[refits.rows], Z, is_seen, np.unique(match[is_recovered])
        )
        n_separated += is_recovered & is_separated[match]
        left_out = np.setdiff1d(inside, refits.rows[half], assume_unique=True)
        common = _count_common(tree, other, leaves, left_out)
        n_left_out += common[:, 0]
        n_matched += _count_matched(tree, other, index, common)
    n_matched[0] = n_matched[tree.leaves].sum()
    shares = np.full(tree.n_nodes, np.nan)
    np.divide(n_matched, n_left_out, shares, where=n_left_out > 0.0)
    return Stability(len(refits.models), n_recovered, n_separated, shares, curve)


def measure_curve(refits: Refits, reference: Refits) -> Curve:
    """Return the stability of the cuts of a tree, and of those of a reference tree."""
    n_clusters, others = _list_cuts(refits.taxonomy.tree), _list_cuts(reference.taxonomy.tree)
    in_reference = np.full(len(n_clusters), np.nan)
    _, at, of = np.intersect1d(n_clusters, others, assume_unique=True, return_indices=True)
    stability = _measure_cuts(refits, n_clusters)
    in_reference[at] = _measure_cuts(reference, others)[of]
    return Curve(n_clusters, stability, in_reference)


def _list_cuts(tree: Tree) -> IndexArray:
    """Return numbers of clusters to cut a tree into, from 1 to all: of large ones, some."""
    n_added = np.bincount(tree.birth)[1:] - 1
    sizes = [1]
    for size in (1 + np.cumsum(n_added, dtype=np.intp)).tolist():
        if size <= MAX_CONSECUTIVE or size >= CUT_RATIO * sizes[-1] or size == tree.n_leaves:
            sizes.append(size)
    return np.array(sizes)


def _measure_cuts(refits: Refits, sizes: IndexArray) -> Array:
    """Return the share of refits in which the least stable cluster of each cut is recovered.

    Cut to fewer clusters than it was grown to, a tree may have a cluster in pieces, which an
    early split went through. So the clusters of each cut compete for the rows first, as leaves
    do at the end of a fit to that number of clusters.
    """
    Z, every_row = refits.points, np.arange(len(refits.rows))
    shares = [1.0]
    for n_clusters in sizes[1:].tolist():
        cut = refits.taxonomy.tree.cut(n_clusters)[refits.rows]
        labels = _reassign(refits.coordinates, cut, every_row)
        n_recovered = np.zeros(int(labels.max()) + 1, dtype=np.intp)
        for tree, half, is_seen in refits:
            cut = tree.cut(min(n_clusters, tree.n_leaves))
            others = _reassign(refits.coordinates, cut, half)
            index = jaccard(labels, others)
            match, is_recovered = index.argmax(axis=1), index.max(axis=1) >= MIN_JACCARD
            if is_recovered.any():
                is_tested = np.isin(np.arange(index.shape[1]), match[is_recovered])
                is_recovered &= find_separated(Z, others, is_seen, is_tested)[match]
            n_recovered += is_recovered
        shares.append(float(n_recovered.min()) / len(refits.models))
    return np.array(shares)


def _reassign(coordinates: Coordinates, labels: IndexArray, rows: IndexArray) -> IndexArray:
    """Let clusters of some rows compete for all rows; return the cluster of each row."""
    labels = np.unique(labels, return_inverse=True)[1]
    K = int(labels.max()) + 1
    if K == 1:
        return np.zeros(coordinates.n_rows, dtype=np.intp)
    some = coordinates.take(rows)
    _, model = compete(Leaves.of(labels.astype(np.int32), K, some), some)
    scores = coordinates.values[:, :-1] @ model.weights.T + model.offsets
    return np.unique(scores.argmax(axis=1), return_inverse=True)[1]


def _count_common(tree: Tree, other: Tree, labels: IndexArray, rows: IndexArray) -> Array:
    """Return the weight of rows in each two nodes, given their leaves in the other tree."""
    counts = np.zeros((tree.n_leaves, other.n_leaves))
    weights = 1.0 if tree.weights is None else tree.weights[rows]
    np.add.at(counts, (tree.labels[rows], labels[rows]), weights)
    return np.asarray(_are_below(tree).T.astype(np.float64) @ counts @ _are_below(other))


def _count_matched(tree: Tree, other: Tree, index: Array, common: Array) -> Array:
    """Return the weight of the rows of each node that are in the matching node, too.

    Only the root matches the root, which has all rows. Leaves are matched one to one, so that
    the sum of their Jaccard indices is as large as possible.
    """
    from scipy.optimize import linear_sum_assignment  # late: it takes long to load

    weights = np.zeros(tree.n_nodes)
    if other.n_nodes > 1:
        match = 1 + index[:, 1:].argmax(axis=1)
        weights = common[np.arange(tree.n_nodes), match]
    of, to = linear_sum_assignment(index[np.ix_(tree.leaves, other.leaves)], maximize=True)
    weights[tree.leaves] = 0.0
    weights[tree.leaves[of]] = common[tree.leaves[of], other.leaves[to]]
    return weights


def _are_below(tree: Tree) -> Mask:
    """Return which leaves, in their order, are below which nodes."""
    first = tree.start[tree.leaves][:, None]
    return (tree.start <= first) & (first < tree.stop)


def _find_separated_nodes(
    tree: Tree, labels: IndexArray, Z: Array, is_seen: Mask, nodes: IndexArray
) -> Mask:
    """Return which of these nodes are separated from their siblings; False for all others."""
    is_separated = np.zeros(tree.n_nodes, dtype=bool)
    is_separated[0] = True
    is_below = _are_below(tree)
    for parent in np.unique(tree.parents[nodes[nodes > 0]]).tolist():
        children = list(tree.children(parent))
        rows = np.flatnonzero(is_below[labels, parent])
        child = is_below[labels[rows]][:, children].argmax(axis=1)
        is_tested = np.isin(children, nodes)
        is_separated[children] = find_separated(Z[rows], child, is_seen[rows], is_tested)
    return is_separated


def find_separated(Z: Array, labels: IndexArray, is_seen: Mask, is_tested: Mask) -> Mask:
    """Return of clusters whether a gap lies between each and the one nearest to it.

    Clusters were found by the rows that were seen, and are tested by the others. A cluster that
    is not tested counts as not separated, and so does one without others: its cut is none.
    """
    K = len(is_tested)
    seen, unseen = _list_members(labels, K, is_seen), _list_members(labels, K, ~is_seen)
    is_separated = np.zeros(K, dtype=bool)
    large = np.flatnonzero([len(rows) > 1 for rows in seen])
    if len(large) < 2:
        return is_separated
    means = np.stack([Z[seen[k]].mean(axis=0) for k in large])
    weights = _find_discriminants(Z, [seen[k] for k in large], means)
    products = weights @ means.T
    squares = np.diag(products)
    distances = squares[:, None] + squares - products - products.T
    np.fill_diagonal(distances, np.inf)
    tested: dict[tuple[int, int], bool] = {}
    for a, b in enumerate(distances.argmin(axis=1).tolist()):
        if not is_tested[large[a]]:
            continue
        if (b, a) not in tested:
            direction = weights[b] - weights[a]
            left, right = Z[seen[large[a]]] @ direction, Z[seen[large[b]]] @ direction
            rest = np.concatenate([unseen[large[a]], unseen[large[b]]])
            tested[a, b] = tested[b, a] = has_gap(left, right, Z[rest] @ direction)
        is_separated[large[a]] = tested[a, b]
    return is_separated


def has_gap(left: Array, right: Array, unseen: Array) -> bool:
    """Return whether unseen rows leave a gap between two clusters, projected on a line."""
    low, high = float(np.median(left)), float(np.median(right))
    distance = high - low
    if not distance > 0.0:
        return False
    seen, width = np.sort(np.concatenate([left, right])), WINDOW * distance
    between = np.linspace(low, high, N_WINDOWS)
    emptiest = np.flatnonzero((counts := _count_in(seen, between, width)) == counts.min())
    middle = between[emptiest[len(emptiest) // 2]]
    lefts = np.linspace(low - distance / 2, middle - width, N_WINDOWS)
    rights = np.linspace(middle + width, high + distance / 2, N_WINDOWS)
    fullest = (places[_count_in(seen, places, width).argmax()] for places in (lefts, rights))
    windows = np.array([middle, *fullest])
    n_middle, *n_sides = _count_in(np.sort(unseen), windows, width).tolist()
    return bool(bdtr(n_middle, n_middle + min(n_sides), 0.5) <= ALPHA)


def _list_members(labels: IndexArray, K: int, chosen: Mask) -> list[IndexArray]:
    """Return the chosen rows of each cluster."""
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    return np.split(rows, np.cumsum(np.bincount(labels[rows], minlength=K))[:-1])


def _find_discriminants(Z: Array, members: list[IndexArray], means: Array) -> Array:
    """Return the means in the metric that leaves compete in: differences separate best."""
    within = np.zeros((Z.shape[1], Z.shape[1]))
    for rows, mean in zip(members, means, strict=True):
        centered = Z[rows] - mean
        within += centered.T @ centered
    within /= sum(map(len, members))
    within[np.diag_indices(len(within))] += np.trace(within) / len(within) + TINY
    return np.asarray(solve(within, means.T, assume_a="pos").T)


def _count_in(ordered: Array, places: Array, width: float) -> IndexArray:
    """Count the values in a window around each place."""
    first = np.searchsorted(ordered, places - width / 2, side="left")
    return np.asarray(np.searchsorted(ordered, places + width / 2, side="right") - first)
