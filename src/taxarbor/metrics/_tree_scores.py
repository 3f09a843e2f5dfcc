r"""Scores of the tree as a whole: against a true tree of the classes, and node by node.

**Similarities.** Two leaves are similar if their branches part late. All that is needed is the
parent of each node, so one implementation serves the learned tree and the true one. Leaves are
taken from left to right. The branches of two leaves then part at the shallowest of the places
where neighbours between them part, so a running minimum along a row gives a whole row of
pairs. Rows come in blocks: large trees need no square matrix.

**Agreement.** Two rows are as similar as their leaves are in the learned tree, :math:`a`, and
as their classes are in the true one, :math:`b`. A score is one minus the mean of
:math:`(a - b)^2` over all pairs of distinct rows. With the table :math:`N` of rows by leaf and
class, and :math:`A`, :math:`B` the similarities of leaves and of classes, the sum of
:math:`a b` over all ordered pairs is that of :math:`(N^T A N) \circ B`; a row paired with
itself adds 1. When rows are shuffled, :math:`a` and :math:`b` of a pair are independent, so the
expected mean is :math:`\overline{a^2} + \overline{b^2} - 2 \bar a \bar b`. It does not depend
on how leaves and classes match, but it does depend on the shape of both trees.

**Nodes.** Purity and cost are sums over pairs of rows of a value :math:`f` of the pair's lowest
common ancestor. Let :math:`Q_v` be the weight of all pairs below node :math:`v`. The pairs that
meet at :math:`v` weigh :math:`Q_v` minus those of its children, so the sum over pairs becomes
:math:`\sum_v Q_v (f_v - f_{parent(v)})`, with nothing above the root.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan
from typing import Literal, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._types import IndexArray
from taxarbor.metrics._class_tree import ClassTree, TreeSource
from taxarbor.metrics._table import (
    Floats,
    LeafTable,
    adjusted_mutual_info,
    adjusted_rand,
    pairs,
    rand,
    tabulate,
)
from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import Tree

_BLOCK_SIZE = 2**18
"""Number of pairs to hold at once: a few megabytes. More is no faster."""
_ROUNDING = 1e-13
"""A chance error smaller than this, relative to the terms it is a difference of, is 0."""


_Measure: TypeAlias = Literal["shortest_path", "path_sharing"]
"""What counts as similar; see the functions of these names."""
_MEASURES: tuple[_Measure, ...] = get_args(_Measure)


# Similarities


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafPairs:
    """All pairs of some leaves of a tree, held in the space of one row of them.

    ``order`` has the positions of the given leaves from left to right, and ``depth`` the
    number of edges above each, in that order. ``parting`` is the depth of the node where the
    branches of neighbours part, ``diameter`` the most edges between any two leaves of the
    whole tree, given or not.
    """

    order: IndexArray
    depth: IndexArray
    parting: IndexArray
    diameter: int

    @classmethod
    def of(cls, parents: IndexArray, leaves: IndexArray) -> Self:
        """Survey a tree, in time that grows with its nodes and not with its height.

        Parents have smaller ids than their children; the leaves may be in any order.
        """
        above, n_nodes = parents.tolist(), len(parents)
        size, height, diameter = [1] * n_nodes, [0] * n_nodes, 0
        for node in range(n_nodes - 1, 0, -1):
            parent, reach = above[node], height[node] + 1
            size[parent] += size[node]
            if height[parent]:  # another child was seen: two leaves meet here
                diameter = max(diameter, height[parent] + reach)
            height[parent] = max(height[parent], reach)
        place, depth = [0] * n_nodes, [0] * n_nodes  # from left to right, parents first
        free = [1] * n_nodes  # the next place below each node, counted from its own
        for node in range(1, n_nodes):
            parent = above[node]
            place[node] = place[parent] + free[parent]
            free[parent] += size[node]
            depth[node] = depth[parent] + 1
        places = np.array(place, dtype=np.intp)
        order = np.argsort(places[leaves])
        met = places[leaves[order]]
        depths = np.empty(n_nodes, dtype=np.intp)
        depths[places] = depth
        # On the way from a leaf to its neighbour, the shallowest node is a child of the one
        # where they part.
        parting = np.minimum.reduceat(depths[: met[-1] + 1], met[:-1] + 1) - 1
        return cls(order, depths[met], parting, diameter)

    def blocks(self, measure: _Measure) -> Iterator[tuple[slice, Floats]]:
        """Yield the similarities of some leaves with all, until each had its turn."""
        n_leaves = len(self.depth)
        step = max(1, _BLOCK_SIZE // n_leaves)
        for start in range(0, n_leaves, step):
            rows = slice(start, min(start + step, n_leaves))
            yield rows, self._similarity(rows, measure)

    def matrix(self, measure: _Measure) -> Floats:
        """Return the similarities of all pairs, leaves in the order they were given."""
        result = np.empty((len(self.depth),) * 2)
        for rows, block in self.blocks(measure):
            result[np.ix_(self.order[rows], self.order)] = block
        return result

    def _similarity(self, rows: slice, measure: _Measure) -> Floats:
        common, own = self._common_depth(rows), self.depth[rows, None]
        if measure == "shortest_path":
            distance = own + self.depth - 2 * common
            return 1.0 - distance / max(self.diameter, 1)
        longer = np.maximum(own, self.depth)
        # Only a root that is a leaf has a branch of length 0, and it shares it with itself.
        return np.where(longer == 0, 1.0, common / np.maximum(longer, 1))

    def _common_depth(self, rows: slice) -> IndexArray:
        """Return the depth of the lowest common ancestors, of shape (n_rows, n_leaves)."""
        here, there = np.arange(rows.start, rows.stop)[:, None], np.arange(len(self.depth))
        far = self.depth.max()  # no branches part deeper
        result = np.where(there > here, np.append(far, self.parting), far)
        np.minimum.accumulate(result, axis=1, out=result)
        left = np.where(there < here, np.append(self.parting, far), far)[:, ::-1]
        np.minimum(result, np.minimum.accumulate(left, axis=1)[:, ::-1], out=result)
        result[here == there] = self.depth[rows]
        return result


def shortest_path_similarity(tree: Tree | ClassTree) -> Floats:
    """Return one minus the edges between leaves, divided by the most there are in the tree.

    Parameters
    ----------
    tree : Taxonomy or ClassTree
        The tree.

    Returns
    -------
    float array of shape (n_leaves, n_leaves)
        In the order of ``tree.leaves``; 1 on the diagonal, 0 for the leaves farthest apart.

    Examples
    --------
    >>> from taxarbor.metrics import ClassTree
    >>> mammals = ["animal", "mammal"]
    >>> tree = ClassTree.read({"cat": mammals, "dog": mammals, "owl": ["animal"]})
    >>> shortest_path_similarity(tree)
    array([[1.        , 0.33333333, 0.        ],
           [0.33333333, 1.        , 0.        ],
           [0.        , 0.        , 1.        ]])
    """
    return LeafPairs.of(tree.parents, tree.leaves).matrix("shortest_path")


def path_sharing_similarity(tree: Tree | ClassTree) -> Floats:
    """Return the number of nodes that branches share, divided by those of the longer one.

    A branch runs from the root, which does not count, to the leaf, which does. Takes and
    returns what :func:`shortest_path_similarity` does; 0 is for leaves that only the root
    joins.

    Examples
    --------
    >>> from taxarbor.metrics import ClassTree
    >>> mammals = ["animal", "mammal"]
    >>> tree = ClassTree.read({"cat": mammals, "dog": mammals, "owl": ["animal"]})
    >>> path_sharing_similarity(tree)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    return LeafPairs.of(tree.parents, tree.leaves).matrix("path_sharing")


# Agreement with a true tree


def shortest_path_score(
    taxonomy: Taxonomy,
    y: ArrayLike,
    truth: TreeSource,
    *,
    adjusted: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compare distances in the learned tree with those in the true one.

    The similarity of two rows is one minus the number of edges between their leaves, divided
    by the most there are between any two leaves of that tree. The score is one minus the mean
    squared difference of the two similarities over all pairs of distinct rows.

    Parameters
    ----------
    taxonomy, y : Taxonomy, array-like of shape (n_rows,)
        The learned tree, and the class of each row: as text, a leaf of the true tree. Rows
        without one (None, NaN, NA or blank text) are left out, and so are outliers that the
        tree leaves out.
    truth : ClassTree, or what :meth:`ClassTree.read` takes
        The true tree. Leaves that no row belongs to count for its greatest distance, as they
        do in the learned tree.
    adjusted : bool
        Correct for chance: 0 is expected of shuffled rows, 1 is best. Without it, the score
        mostly rewards trees with the shape of the true one.
    sample_weight : array-like of shape (n_rows,), optional
        How many rows each row stands for: 2 is a row that is there twice, 0 one that is not
        there. Pairs among a fraction of a row are negative, so weights that sum to less than
        2 are refused: they should be 1 on average, or more.

    Returns
    -------
    float
        Between 0 and 1; at most 1 if adjusted.

    Warns
    -----
    UserWarning
        If rows have no class; it says how many.

    Raises
    ------
    ValueError
        If ``y`` is of another length, or fewer than two rows have a class; if ``truth`` is not
        a tree, or a class is not one of its leaves; or if weights are of another length,
        negative, not finite, all 0, or sum to less than 2 or more than 2**31.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> tree, mammals = from_labels([0, 0, 1]), ["animal", "mammal"]
    >>> truth = {"cat": mammals, "dog": mammals, "owl": ["animal"]}
    >>> score = shortest_path_score(tree, ["cat", "dog", "owl"], truth)
    >>> round(score, 6)  # cat and dog have a similarity of 1/3, and are in one leaf
    0.851852
    """
    table = tabulate(taxonomy, y, sample_weight)
    return _score(table, truth, "shortest_path", adjusted=adjusted)


def path_sharing_score(
    taxonomy: Taxonomy,
    y: ArrayLike,
    truth: TreeSource,
    *,
    adjusted: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compare how long rows stay together in the learned tree and in the true one.

    The similarity of two rows is the number of nodes that the branches of their leaves
    share, the root not counted, divided by those of the longer branch. The score is one minus
    the mean squared difference of the two similarities over all pairs of distinct rows. Takes,
    returns and raises what :func:`shortest_path_score` does.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> tree, mammals = from_labels([0, 0, 1]), ["animal", "mammal"]
    >>> truth = {"cat": mammals, "dog": mammals, "owl": ["animal"]}
    >>> score = path_sharing_score(tree, ["cat", "dog", "owl"], truth)
    >>> round(score, 6)  # cat and dog share one node of two, and are in one leaf
    0.916667
    """
    table = tabulate(taxonomy, y, sample_weight)
    return _score(table, truth, "path_sharing", adjusted=adjusted)


def _score(table: LeafTable, truth: TreeSource, measure: _Measure, *, adjusted: bool) -> float:
    error, chance = _compare(table, _learned_pairs(table), _true_pairs(table, truth), measure)
    return _adjust(error, chance) if adjusted else 1.0 - error


def _adjust(error: float, chance: float) -> float:
    """Return 0 by chance and 1 at best; 1 if both similarities are the same constant."""
    return 1.0 - error / chance if chance > 0.0 else 1.0


def _learned_pairs(table: LeafTable) -> LeafPairs:
    return LeafPairs.of(table.tree.parents, table.tree.leaves)


def _true_pairs(table: LeafTable, truth: TreeSource) -> LeafPairs:
    tree = ClassTree.read(truth)
    return LeafPairs.of(tree.parents, tree.leaves_of(table.classes))


def _compare(
    table: LeafTable, learned: LeafPairs, true: LeafPairs, measure: _Measure
) -> tuple[float, float]:
    """Return the mean squared difference over all pairs of rows, and that expected by chance.

    Takes time in proportion to ``n_leaves * n_classes * (n_leaves + n_classes)``.
    """
    counts = table.counts[learned.order][:, true.order].astype(np.float64)
    joined = np.empty_like(counts)  # A @ N
    a = np.zeros(2)
    leaf_sizes, class_sizes = counts.sum(axis=1), counts.sum(axis=0)
    for rows, A in learned.blocks(measure):
        joined[rows] = A @ counts
        a += _moments(A, leaf_sizes[rows], leaf_sizes)
    b, both = np.zeros(2), 0.0
    for rows, B in true.blocks(measure):
        b += _moments(B, class_sizes[rows], class_sizes)
        both += float(np.vdot(counts[:, rows].T @ joined, B))
    # Ordered pairs, less each row paired with itself, where a = b = 1.
    n_rows, n_pairs = table.n_rows, 2 * table.n_pairs
    (mean_a, square_a), (mean_b, square_b) = (a - n_rows) / n_pairs, (b - n_rows) / n_pairs
    squares = square_a + square_b
    error = squares - 2.0 * (both - n_rows) / n_pairs
    chance = squares - 2.0 * mean_a * mean_b
    # By rounding, equal trees may differ by -1e-17.
    return max(0.0, float(error)), float(chance) if chance > _ROUNDING * squares else 0.0


def _moments(block: Floats, here: Floats, there: Floats) -> Floats:
    """Sum the values of a block and their squares, each as often as it occurs."""
    return np.array([here @ block @ there, here @ np.square(block) @ there])


# Node by node


def dendrogram_purity(
    taxonomy: Taxonomy, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return how pure the smallest node is that holds two rows of a class.

    For each pair of distinct rows of one class, take the share of that class among the rows
    of their lowest common ancestor. The purity is the mean over these pairs. Two rows of one
    leaf meet in that leaf. Takes ``y`` and weights as :func:`shortest_path_score` does.

    Returns
    -------
    float
        Between 0 and 1; 1 if for every class there is a node that holds its rows and no
        others. NaN if no class has two rows, because then there is no pair.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> tree = from_labels([0, 0, 0, 1, 1])
    >>> round(dendrogram_purity(tree, ["a", "a", "b", "c", "c"]), 6)
    0.833333
    """
    return _purity(tabulate(taxonomy, y, sample_weight))


def dasgupta_cost(
    taxonomy: Taxonomy,
    y: ArrayLike,
    truth: TreeSource = None,
    *,
    normalize: bool = True,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return Dasgupta's cost: how large the nodes are in which similar rows meet.

    The sum over all pairs of distinct rows of their similarity times the number of rows of
    their lowest common ancestor [1]_. Two rows of one leaf meet in that leaf. Lower is
    better.

    Parameters
    ----------
    taxonomy, y, sample_weight
        As :func:`shortest_path_score` takes them, which raises the same.
    truth : ClassTree, or what :meth:`ClassTree.read` takes, optional
        A tree of the classes: two rows are as similar as their classes are by the shortest
        path in it. Without it, the similarity is 1 within a class and 0 between classes.
    normalize : bool
        Divide by the cost of a tree that is a single leaf.

    Returns
    -------
    float
        If normalized, above 0 and at most 1; NaN if no two rows are similar at all.

    References
    ----------
    .. [1] Dasgupta, "A cost function for similarity-based hierarchical clustering",
       STOC 2016.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> tree = from_labels([0, 0, 1, 1])
    >>> dasgupta_cost(tree, ["a", "a", "b", "b"], normalize=False)
    4.0
    >>> dasgupta_cost(tree, ["a", "a", "b", "b"])
    0.5
    """
    table = tabulate(taxonomy, y, sample_weight)
    classes = None if truth is None else _true_pairs(table, truth)
    return _cost(table, classes, normalize=normalize)


def _purity(table: LeafTable) -> float:
    """Return the dendrogram purity."""
    counts, parents = table.node_counts(), table.tree.parents
    weights = pairs(counts).astype(np.float64)
    if not weights[0].sum() > 0.0:
        return nan
    sizes = counts.sum(axis=1, keepdims=True)
    share = counts / np.where(sizes == 0, 1, sizes)  # no pair meets in an empty node
    gain = share.copy()
    gain[1:] -= share[parents[1:]]
    return float(np.vdot(weights, gain) / weights[0].sum())


def _cost(table: LeafTable, classes: LeafPairs | None, *, normalize: bool) -> float:
    """Return Dasgupta's cost, with classes as similar as they are in a tree, if given."""
    n = table.node_counts().astype(np.float64)
    sizes = n.sum(axis=1)
    if classes is None:
        similar = np.square(n).sum(axis=1)  # over all ordered pairs of rows of each node
    else:
        n, similar = n[:, classes.order], np.zeros(len(n))
        for columns, B in classes.blocks("shortest_path"):
            similar += np.sum((n @ B.T) * n[:, columns], axis=1)
    weights, gain = (similar - sizes) / 2.0, sizes.copy()
    gain[1:] -= sizes[table.tree.parents[1:]]
    total = float(weights @ gain)
    if not normalize:
        return total
    return total / float(weights[0] * sizes[0]) if weights[0] > 0.0 else nan


# All scores at once


def score_hierarchy(
    taxonomy: Taxonomy,
    y: ArrayLike,
    truth: TreeSource = None,
    *,
    dasgupta: bool = False,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Score a learned tree by every measure at once: the rows are counted only once.

    Parameters
    ----------
    taxonomy, y, truth, sample_weight
        As :func:`shortest_path_score` takes them, which warns and raises the same; the true
        tree is optional.
    dasgupta : bool
        Whether to add Dasgupta's cost, normalized.

    Returns
    -------
    dict of str to float
        With a true tree ``shortest_path``, ``path_sharing``, ``adjusted_shortest_path``,
        ``adjusted_path_sharing``, and what the first two are expected to be when rows are
        shuffled, ``chance_shortest_path`` and ``chance_path_sharing``. Always ``rand``,
        ``adjusted_rand``, ``adjusted_mutual_info`` and ``dendrogram_purity``, of leaves as
        clusters, with the values of scikit-learn's functions. The purity is NaN if no class
        has two rows, the mutual information if weights are not whole numbers. On request
        ``dasgupta_cost``. In this order, and as fractions, not in percent.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> tree = Taxarbor(12, random_state=0).fit(animals.X).taxonomy_
    >>> scores = score_hierarchy(tree, animals.names, animals.tree)
    >>> scores["adjusted_shortest_path"] > 0.1
    True
    """
    table = tabulate(taxonomy, y, sample_weight)
    classes = None if truth is None else _true_pairs(table, truth)
    scores: dict[str, float] = {}
    if classes is not None:
        leaves = _learned_pairs(table)
        found = {measure: _compare(table, leaves, classes, measure) for measure in _MEASURES}
        scores |= {name: 1.0 - error for name, (error, _) in found.items()}
        scores |= {f"adjusted_{name}": _adjust(*both) for name, both in found.items()}
        scores |= {f"chance_{name}": 1.0 - chance for name, (_, chance) in found.items()}
    scores["rand"] = rand(table)
    scores["adjusted_rand"] = adjusted_rand(table)
    scores["adjusted_mutual_info"] = adjusted_mutual_info(table)
    scores["dendrogram_purity"] = _purity(table)
    if dasgupta:
        scores["dasgupta_cost"] = _cost(table, classes, normalize=True)
    return scores
