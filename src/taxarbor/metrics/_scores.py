r"""Scores of a tree against known classes, and against a true tree of the classes.

**Counts.** Every score is computed from the number of rows of each class in each leaf.

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
from typing import Any, Literal, Self, TypeAlias, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, counted, warn_caller
from taxarbor._types import IndexArray
from taxarbor.metrics._classes import ClassTree, ClassTreeLike, encode_labels
from taxarbor.tables._validation import check_weights
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.tree import Tree
from taxarbor.tree._edit_tree import leaves_below

Floats: TypeAlias = NDArray[np.float64]
Similarity: TypeAlias = Literal["shortest_path", "path_sharing"]

MAX_ROWS = 2**31
"""Rows that weights may stand for: squares must fit in 64 bits."""
MAX_FLAT_ROWS = 10**8
"""Rows that scikit-learn's scores take: they need the labels of each row, not counts."""
PAIRS_PER_BLOCK = 2**18
"""Pairs of leaves to hold at once: a few megabytes. More is no faster."""
RELATIVE_ROUNDING = 1e-13
"""A chance error smaller than this, relative to the terms it is a difference of, is 0."""


# Counts


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafTable:
    """The number of rows of each class in each leaf; no class is empty, but leaves may be.

    ``counts`` has a row per leaf, from left to right, and a column per class. Its sums of
    squares are exact in int64, and in float64 up to 9e7 rows. Only with weights that are no
    whole numbers, it is float64.
    """

    tree: Tree
    counts: NDArray[Any]
    classes: tuple[object, ...]

    @classmethod
    def of(cls, model: object, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        """Count the rows by leaf and class; warn of rows that are excluded, without a class."""
        tree = taxonomy_of(model).tree
        rows = tree.rows(tree.root)
        codes, classes = encode_labels(y, tree.n_rows)
        codes, weights = codes[rows], check_weights(sample_weight, tree.n_rows)
        weights = None if weights is None else weights[rows]
        shape = tree.n_leaves, len(classes) + 1  # first those without a class
        # Leaves own consecutive rows, so only the classes have to be looked up.
        offsets = np.arange(shape[0]) * shape[1] + 1
        cells = np.repeat(offsets, tree.sizes[tree.leaves]) + codes
        counts = np.bincount(cells, weights, minlength=shape[0] * shape[1])
        counts = counts.reshape(shape)[:, 1:]
        if not 2 <= (total := counts.sum()) <= MAX_ROWS:
            message = f"at least two are needed, got {total:g}"
            if total > MAX_ROWS:
                message = (
                    f"weights stand for {MAX_ROWS:,} at most, got {total:.1e}; divide them"
                )
            raise InputError(f"scores compare pairs of rows with a label: {message}")
        if np.array_equal(counts, np.floor(counts)):
            counts = counts.astype(np.int64)
        is_excluded = codes < 0 if weights is None else (codes < 0) & (weights > 0.0)
        if n_excluded := int(is_excluded.sum()):
            rows_are = counted(n_excluded, "row") + (" is" if n_excluded == 1 else " are")
            warn_caller(f"{rows_are} excluded from the scores: no label", UserWarning)
        present = np.flatnonzero(counts.any(axis=0))
        return cls(tree, counts[:, present], tuple(classes[code] for code in present))

    @property
    def n_rows(self) -> float:
        """Number of rows that count; an int unless weights are fractions."""
        n_rows: float = self.counts.sum().item()
        return n_rows

    def node_counts(self) -> NDArray[Any]:
        """Count rows by node and class: the leaves below a node are a slice of all leaves."""
        running = np.zeros((len(self.counts) + 1, len(self.classes)), dtype=self.counts.dtype)
        np.cumsum(self.counts, axis=0, out=running[1:])
        first, last = leaves_below(self.tree)
        return running[last] - running[first]

    def flat_scores(self) -> dict[str, float]:
        """Return scikit-learn's scores of leaves as clusters, NaN where it has none.

        It takes no weights: whole numbers are repeated rows.
        """
        from sklearn import metrics  # takes long

        names = "rand", "adjusted_rand", "adjusted_mutual_info"
        if self.counts.dtype.kind == "f" or self.n_rows > MAX_FLAT_ROWS:
            return dict.fromkeys(names, nan)
        cells = np.nonzero(self.counts)
        leaf, label = (np.repeat(numbers, self.counts[cells]) for numbers in cells)
        scores = {name: getattr(metrics, f"{name}_score") for name in names}
        return {name: float(score(label, leaf)) for name, score in scores.items()}


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
        free = [1] * n_nodes  # the next place below each node, counted from its place
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

    def blocks(self, kind: Similarity) -> Iterator[tuple[slice, Floats]]:
        """Yield the similarities of some leaves with all, until each had its turn."""
        n_leaves = len(self.depth)
        step = max(1, PAIRS_PER_BLOCK // n_leaves)
        for start in range(0, n_leaves, step):
            rows = slice(start, min(start + step, n_leaves))
            yield rows, self._similarity(rows, kind)

    def _similarity(self, rows: slice, kind: Similarity) -> Floats:
        common, depth = self._common_depth(rows), self.depth[rows, None]
        if kind == "shortest_path":
            return 1.0 - (depth + self.depth - 2 * common) / max(self.diameter, 1)
        longer = np.maximum(depth, self.depth)
        # Only a root that is a leaf has a branch of length 0, and it shares it with itself.
        return np.where(longer == 0, 1.0, common / np.maximum(longer, 1))

    def _common_depth(self, rows: slice) -> IndexArray:
        """Return the depth of the lowest common ancestors, of shape (n_rows, n_leaves)."""
        row, column = np.arange(rows.start, rows.stop)[:, None], np.arange(len(self.depth))
        deepest = self.depth.max()  # no branches part deeper
        result = np.where(column > row, np.append(deepest, self.parting), deepest)
        np.minimum.accumulate(result, axis=1, out=result)
        left = np.where(column < row, np.append(self.parting, deepest), deepest)[:, ::-1]
        np.minimum(result, np.minimum.accumulate(left, axis=1)[:, ::-1], out=result)
        result[row == column] = self.depth[rows]
        return result


# Agreement with a true tree


def shortest_path_score(
    taxonomy: object,
    y: ArrayLike,
    truth: ClassTreeLike,
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
        The learned tree, or a fitted estimator, and the class of each row: as text, a leaf of
        the true tree. Rows without a class (None, NaN, NA or blank text) are excluded, and so
        are outliers.
    truth : ClassTree, nested dicts or paths, as :meth:`ClassTree.read` takes
        The true tree. Leaves that no row belongs to count for its greatest distance, as they
        do in the learned tree.
    adjusted : bool
        Correct for chance: 0 is expected of shuffled rows, 1 is best. Without it, the score
        mostly rewards trees with the shape of the true one.
    sample_weight : array-like of shape (n_rows,), optional
        Number of rows that each row stands for: a weight of 2 is equivalent to repeating the
        row, 0 to excluding it. Weights must sum to 2 at least, and should be 1 on average.

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
    return _score(LeafTable.of(taxonomy, y, sample_weight), truth, "shortest_path", adjusted)


def path_sharing_score(
    taxonomy: object,
    y: ArrayLike,
    truth: ClassTreeLike,
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
    return _score(LeafTable.of(taxonomy, y, sample_weight), truth, "path_sharing", adjusted)


def _score(table: LeafTable, truth: ClassTreeLike, kind: Similarity, adjusted: bool) -> float:
    error, chance = _compare(table, _true_pairs(table, truth), kind)
    return _adjust(error, chance) if adjusted else 1.0 - error


def _adjust(error: float, chance: float) -> float:
    """Return 0 by chance and 1 at best; 1 if both similarities are the same constant."""
    return 1.0 - error / chance if chance > 0.0 else 1.0


def _true_pairs(table: LeafTable, truth: ClassTreeLike) -> LeafPairs:
    tree = ClassTree.read(truth)
    return LeafPairs.of(tree.parents, tree.leaves_of(table.classes))


def _compare(table: LeafTable, true: LeafPairs, kind: Similarity) -> tuple[float, float]:
    """Return the mean squared difference over all pairs of rows, and that expected by chance.

    Takes time in proportion to ``n_leaves * n_classes * (n_leaves + n_classes)``.
    """
    learned = LeafPairs.of(table.tree.parents, table.tree.leaves)
    counts = table.counts[learned.order][:, true.order].astype(np.float64)
    joined = np.empty_like(counts)  # A @ N
    a = np.zeros(2)
    leaf_sizes, class_sizes = counts.sum(axis=1), counts.sum(axis=0)
    for rows, A in learned.blocks(kind):
        joined[rows] = A @ counts
        a += _moments(A, leaf_sizes[rows], leaf_sizes)
    b, both = np.zeros(2), 0.0
    for rows, B in true.blocks(kind):
        b += _moments(B, class_sizes[rows], class_sizes)
        both += float(np.vdot(counts[:, rows].T @ joined, B))
    # Ordered pairs, less each row paired with itself, where a = b = 1.
    n_rows = table.n_rows
    n_pairs = n_rows * (n_rows - 1)
    (mean_a, square_a), (mean_b, square_b) = (a - n_rows) / n_pairs, (b - n_rows) / n_pairs
    squares = square_a + square_b
    error = squares - 2.0 * (both - n_rows) / n_pairs
    chance = squares - 2.0 * mean_a * mean_b
    # By rounding, equal trees may differ by -1e-17.
    chance = float(chance) if chance > RELATIVE_ROUNDING * squares else 0.0
    return max(0.0, float(error)), chance


def _moments(block: Floats, n_rows: Floats, n_columns: Floats) -> Floats:
    """Sum the values of a block and their squares, each as often as it occurs."""
    return np.array([n_rows @ block @ n_columns, n_rows @ np.square(block) @ n_columns])


# Node by node


def dendrogram_purity(
    taxonomy: object, y: ArrayLike, *, sample_weight: ArrayLike | None = None
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
    return _purity(LeafTable.of(taxonomy, y, sample_weight))


def dasgupta_cost(
    taxonomy: object,
    y: ArrayLike,
    truth: ClassTreeLike | None = None,
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
    truth : ClassTree, nested dicts or paths, as :meth:`ClassTree.read` takes, optional
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
    table = LeafTable.of(taxonomy, y, sample_weight)
    classes = None if truth is None else _true_pairs(table, truth)
    return _cost(table, classes, normalize=normalize)


def _purity(table: LeafTable) -> float:
    """Return the dendrogram purity."""
    counts, parents = table.node_counts(), table.tree.parents
    weights = counts * (counts - 1.0) / 2.0
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


def tree_scores(
    taxonomy: object,
    y: ArrayLike,
    truth: ClassTreeLike | None = None,
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
        clusters. The first three are scikit-learn's, and NaN if weights are not whole numbers
        or sum to more than 10**8; the purity is NaN if no class has two rows. On request
        ``dasgupta_cost``. In this order, and as fractions, not in percent.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> tree = Taxarbor(12, random_state=0).fit(animals.X).taxonomy_
    >>> scores = tree_scores(tree, animals.names, animals.tree)
    >>> scores["adjusted_shortest_path"] > 0.1
    True
    """
    table = LeafTable.of(taxonomy, y, sample_weight)
    classes = None if truth is None else _true_pairs(table, truth)
    scores: dict[str, float] = {}
    if classes is not None:
        errors = {kind: _compare(table, classes, kind) for kind in get_args(Similarity)}
        scores |= {kind: 1.0 - error for kind, (error, _) in errors.items()}
        scores |= {f"adjusted_{kind}": _adjust(*both) for kind, both in errors.items()}
        scores |= {f"chance_{kind}": 1.0 - chance for kind, (_, chance) in errors.items()}
    scores |= table.flat_scores() | {"dendrogram_purity": _purity(table)}
    if dasgupta:
        scores["dasgupta_cost"] = _cost(table, classes, normalize=True)
    return scores
