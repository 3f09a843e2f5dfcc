r"""All leaves at once: they compete for the rows, and then the closest are linked.

A split is final as the tree grows, so a row on the wrong side of an early one can never reach
the leaf it belongs to. When the tree is whole, the leaves compete for the rows directly. Each
is a mean, seen in the metric of the scatter within leaves:

    a row x goes to   argmin_k (x - m_k)' S^-1 (x - m_k),   S = S_within + ridge I.

Means and scatter follow the rows, in turn. Neither step raises ``log det S``, the total
objective: for a given S the moves lower ``trace(S^-1 S_within)``, and for given rows their own
scatter is the S that minimises ``log det S + trace(S^-1 (S_within + ridge I))``.

The ridge follows the evidence: oracle-approximating shrinkage (Chen, Wiesel, Eldar and Hero,
2010) tells from the scatter, the rows and the coordinates how far the scatter can be trusted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from taxarbor import native
from taxarbor._fit_context import node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.clusters._coordinates import Coordinates, draw_positions
from taxarbor.grow import StoppingRule
from taxarbor.tree import TreeBuilder

ROUNDS, MIN_MOVED = 20, 0.001
"""The most rounds of moves, and the share of the rows from which on there is another. Most rows
that ever move do so in the first; but leaves without a gap between them find their place only
in a dozen."""

SHRINKAGE, MAX_SHRINKAGE = 1.0, 99.0
"""The ridge, as a share of the mean variance within leaves: at least halfway from the metric of
the data to that of the plain distance, and at most nearly that one."""

MAX_EXCLUDED = 0.5
"""The share of the coordinates up to which the directions of the means are no evidence."""

MIN_RIDGE = 1e3
"""The least ridge, in roundings of the variance of all rows, plus one in double precision per
row: where leaves are single points, the scatter within them is rounding."""

SEED_ROUNDS = 3  # of k-means, from rows drawn at random
SEED_STREAM = 11  # distinguishes the hashes that draw seeds from others

Labels = NDArray[np.int32]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """The rows of some leaves."""

    labels: Labels  # (n_rows,), the leaf of each row
    counts: IndexArray  # (n_leaves,), rows in each leaf
    means: Array  # (n_leaves, n_coordinates)

    @classmethod
    def of(cls, labels: Labels, n_leaves: int, coordinates: Coordinates) -> Self:
        """Count the rows of each leaf, and take their means; NaN for a leaf of no rows."""
        counts = np.bincount(labels, minlength=n_leaves)
        sums = native.label_sums(coordinates.values, labels, n_leaves)
        with np.errstate(invalid="ignore"):
            return cls(labels, counts, sums[:, :-1] / counts[:, None])

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.counts)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafModel:
    """Linear scores: a row goes to the leaf of the highest ``weights @ z + offsets``."""

    weights: Array  # (n_leaves, n_coordinates)
    offsets: Array  # (n_leaves,)


def seed_leaves(coordinates: Coordinates, n_seeds: int, seed: int) -> Leaves:
    """Return leaves about rows drawn at random, after a few rounds of k-means."""
    positions = draw_positions(coordinates.n_rows, n_seeds, node_seed(seed, (SEED_STREAM,)))
    means = coordinates.values[positions, :-1].astype(np.float64)
    for _ in range(SEED_ROUNDS):
        leaves = assign_rows(_score_means(means, None), coordinates)
        means = leaves.means.astype(np.float64)
    return leaves


def join_leaves(first: Leaves, second: Leaves, coordinates: Coordinates) -> Leaves:
    """Return leaves about the means of both, in the metric of the first."""
    within, _ = _scatter_within(first, coordinates)
    means = np.vstack([first.means, second.means])
    return assign_rows(_score_means(means, within), coordinates)


def assign_rows(model: LeafModel, coordinates: Coordinates) -> Leaves:
    """Return the leaves of rows that go to the highest score; none may be empty."""
    labels = np.unique(_assign(model, coordinates), return_inverse=True)[1].astype(np.int32)
    return Leaves.of(labels, int(labels.max()) + 1, coordinates)


def _assign(model: LeafModel, coordinates: Coordinates) -> Labels:
    lifted = np.pad(model.weights, ((0, 0), (0, 1)))
    return coordinates.rows.best(lifted, model.offsets).astype(np.int32)


def compete(
    leaves: Leaves, coordinates: Coordinates, max_rounds: int | None = None
) -> tuple[Leaves, LeafModel]:
    """Move each row to the leaf, of two at least, that it fits best, until few move.

    Also returns the model of the last round. A round that would empty a leaf is not made.
    """
    ridge = None
    for _ in range(ROUNDS if max_rounds is None else max_rounds):
        model, ridge = fit_leaves(leaves, coordinates, ridge)
        moved = Leaves.of(_assign(model, coordinates), leaves.n_leaves, coordinates)
        if not moved.counts.all():
            break
        n_moved = np.count_nonzero(moved.labels != leaves.labels)
        leaves = moved
        if n_moved < MIN_MOVED * coordinates.n_rows:
            break
    return leaves, model


def fit_leaves(
    leaves: Leaves, coordinates: Coordinates, ridge: float | None = None
) -> tuple[LeafModel, float]:
    """Return the scores of leaves for the rows that they have, and the ridge.

    A ridge may be given, to stay the same over rounds.
    """
    within, ridge = _scatter_within(leaves, coordinates, ridge)
    return _score_means(leaves.means, within), ridge


def measure_objective(leaves: Leaves, coordinates: Coordinates, ridge: float) -> float:
    """Return the logarithm of the determinant of the scatter within leaves, with a ridge."""
    within, _ = _scatter_within(leaves, coordinates, ridge)
    return float(np.linalg.slogdet(within)[1])


def _scatter_within(
    leaves: Leaves, coordinates: Coordinates, ridge: float | None = None
) -> tuple[Array, float]:
    """Return the mean product within leaves with a ridge, which follows the evidence."""
    total, n, means = coordinates.scatter, coordinates.n_rows, leaves.means
    within = total - (means.T * (leaves.counts / n)) @ means
    if ridge is None:
        eps = MIN_RIDGE * float(np.finfo(np.float32).eps) + n * float(np.finfo(float).eps)
        least = max(eps * float(np.trace(total)), coordinates.unit**2)
        share = _find_shrinkage(within, leaves)
        ridge = max(share * float(np.trace(within)) / len(within), least)
    within[np.diag_indices(len(total))] += ridge
    return within, ridge


def _find_shrinkage(within: Array, leaves: Leaves) -> float:
    """Return the ridge as a share of the mean variance, given the scatter within leaves.

    Rows were moved to where the scatter along the differences of means is small, so of few
    leaves only the scatter across these is evidence.
    """
    n_rows, size = int(leaves.counts.sum()), len(within)
    if leaves.n_leaves - 1 <= MAX_EXCLUDED * size:
        differences = leaves.means[1:] - leaves.means[0]
        across = np.linalg.qr(differences.T, mode="complete")[0][:, len(differences) :]
        within, size = across.T @ within @ across, size - len(differences)
    squares, square = float((within**2).sum()), float(np.trace(within)) ** 2
    part = (1.0 - 2.0 / size) * squares + square
    rest = (n_rows + 1.0 - 2.0 / size) * (squares - square / size)
    # part / rest is the weight of the plain distance, if it is less than 1.
    return max(SHRINKAGE, part / max(rest - part, part / MAX_SHRINKAGE, 1e-300))


def _score_means(means: Array, within: Array | None) -> LeafModel:
    """Return the scores of means in the metric of a scatter; None: in the plain distance."""
    weights = means if within is None else cho_solve(cho_factor(within), means.T).T
    return LeafModel(weights, -0.5 * np.einsum("kq,kq->k", weights, means))


POWER = 0.75
"""The weight of a leaf is this power of its size. With Ward's own weight, 1, large clusters are
divided before small ones are separated; on the shared sets that costs a point of the adjusted
Rand index."""


def link_leaves(
    means: Array, counts: IndexArray, stop: StoppingRule
) -> tuple[TreeBuilder, IndexArray]:
    """Return a tree of two children per split whose leaves are the given ones or their unions.

    Links are undone, the last one first, until the tree is full; leaves that are small enough
    stay whole. The score of a node is the cost of its link. Also returns the position of each
    given leaf among the new ones.
    """
    links, costs = ward_links(means, counts**POWER)
    # Each node is a range of leaves, from left to right; the root is the last link.
    n = len(counts)
    first, widths = np.arange(2 * n - 1), np.ones(2 * n - 1, dtype=np.intp)
    sizes = np.concatenate([counts, np.zeros(n - 1, dtype=np.intp)])
    for whole, (a, b) in enumerate(links.tolist(), n):
        first[whole], widths[whole] = min(first[a], first[b]), widths[a] + widths[b]
        sizes[whole] = sizes[a] + sizes[b]
    links = np.where((first[links[:, :1]] < first[links[:, 1:]]), links, links[:, ::-1])
    begin, open_nodes = np.zeros_like(widths), {2 * n - 2}
    splits: dict[int, tuple[int, int]] = {}
    for whole, (left, right) in reversed([*enumerate(links.tolist(), n)]):
        begin[left], begin[right] = begin[whole], begin[whole] + widths[left]
        is_full = stop.is_full(len(splits) + 1, 2)
        if whole in open_nodes and not is_full and not stop.is_final(int(sizes[whole]), 0):
            splits[whole] = left, right
            open_nodes |= {left, right}
    tree, node_of = build_tree(splits, 2 * n - 2, sizes)
    for whole in splits:
        tree.record(node_of[whole], float(costs[whole - n]))
    edges = np.sort([begin[node] for node in open_nodes if node not in splits])
    return tree, np.searchsorted(edges, begin[:n], side="right") - 1


def merge_small(means: Array, counts: IndexArray, min_size: int) -> IndexArray:
    """Return the new number of each leaf when small ones are merged with their nearest.

    The smallest leaf is merged first, with the one whose union with it costs least.
    """
    points, sizes = means.copy(), counts.astype(np.float64)
    target = np.arange(len(counts))
    is_open = np.ones(len(counts), dtype=bool)
    while np.count_nonzero(is_open) > 1:
        leaf = int(np.argmin(np.where(is_open, sizes, np.inf)))
        if sizes[leaf] >= min_size:
            break
        weights = sizes**POWER
        costs = ((points - points[leaf]) ** 2).sum(axis=1)
        costs *= weights * weights[leaf] / (weights + weights[leaf])
        costs[~is_open] = costs[leaf] = np.inf
        nearest = int(costs.argmin())
        share = sizes[leaf] / (sizes[leaf] + sizes[nearest])
        points[nearest] += share * (points[leaf] - points[nearest])
        sizes[nearest] += sizes[leaf]
        is_open[leaf] = False
        target[target == leaf] = nearest
    return (np.cumsum(is_open) - 1)[target]


def build_tree(
    splits: Mapping[int, Sequence[int]], root: int, sizes: IndexArray
) -> tuple[TreeBuilder, dict[int, int]]:
    """Return a tree, given the sizes of its nodes, and its number for each of them.

    Splits come in the order in which they are made.
    """
    nodes = [root, *chain.from_iterable(splits.values())]
    node_of = {node: made for made, node in enumerate(nodes)}
    tree = TreeBuilder(int(sizes[root]))
    for node, parts in splits.items():
        tree.divide(node_of[node], [int(sizes[part]) for part in parts])
    return tree, node_of


def ward_links(means: Array, weights: Array) -> tuple[IndexArray, Array]:
    """Link points of given weights by Ward's method, by chains of nearest neighbours.

    Returns pairs, numbered as SciPy's ``linkage`` does, and what each adds to the scatter.
    """
    n = len(means)
    points = means.astype(np.float64, order="C")
    pairs, costs = native.ward_links(points, weights.astype(np.float64))
    highest = [0.0] * n  # what the last link within each point cost
    for link, (a, b) in enumerate(pairs.tolist()):
        # A union never costs less than its parts, but for rounding.
        costs[link] = highest[a] = max(float(costs[link]), highest[a], highest[b])
    # Chains link far pairs here before near ones there.
    order = np.argsort(costs, kind="stable")
    number, links = list(range(n)), np.empty((n - 1, 2), dtype=np.intp)
    for link, at in enumerate(order.tolist()):
        a, b = pairs[at].tolist()
        links[link] = number[a], number[b]
        number[a] = n + link
    return links, costs[order]
