r"""Scores of a tree against known classes, and against a true tree of the classes.

**Agreement.** Two rows are as similar as their leaves are in the learned tree, :math:`a`, and
as their classes are in the true one, :math:`b`. A score is one minus the mean of
:math:`(a - b)^2` over all pairs of distinct rows. With the table :math:`N` of rows by leaf and
class, and :math:`A`, :math:`B` the similarities of leaves and of classes, the sum of
:math:`a b` over all ordered pairs is that of :math:`(N^T A N) \circ B`; a row paired with
itself adds 1. When rows are shuffled, :math:`a` and :math:`b` of a pair are independent, so the
expected mean is :math:`\overline{a^2} + \overline{b^2} - 2 \bar a \bar b`.

**Purity.** It is a sum over pairs of rows of a value :math:`f` of the pair's lowest common
ancestor. Let :math:`Q_v` be the weight of all pairs below node :math:`v`. The pairs that meet
at :math:`v` weigh :math:`Q_v` minus those of its children, so the sum over pairs becomes
:math:`\sum_v Q_v (f_v - f_{parent(v)})`, with nothing above the root.
"""

from collections.abc import Iterator
from math import nan
from typing import Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, counted, warn_caller
from taxarbor._types import IndexArray
from taxarbor.metrics.classes import Classes, ClassTree, ClassTreeLike
from taxarbor.taxonomy.taxonomy import taxonomy_of
from taxarbor.tree import Tree
from taxarbor.tree.edit_tree import sum_below

Floats: TypeAlias = NDArray[np.float64]
Similarity: TypeAlias = Literal["shortest_path", "path_sharing"]

PAIRS_PER_BLOCK = 2**18  # of leaves, to hold at once: a few megabytes. More is no faster
RELATIVE_ROUNDING = 1e-13  # a smaller chance error, relative to its terms, is 0


def tree_scores(
    taxonomy: object, y: ArrayLike, truth: ClassTreeLike | None = None
) -> dict[str, float]:
    """Score how well a tree agrees with known classes, and with a true tree of the classes.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The learned tree.
    y : array-like of shape (n_rows,)
        The class of each row. Rows without a class (None, NaN, NA or blank text) are excluded,
        and a warning says how many; so are outliers.
    truth : ClassTree, nested dicts or paths, as :meth:`ClassTree.read` takes, optional
        The true tree. The classes, as text, are leaves of it. Leaves that no row belongs to
        count for its greatest distance, as they do in the learned tree.

    Returns
    -------
    dict of str to float
        As fractions. With a true tree:

        - ``shortest_path``: two rows are as similar as one minus the number of edges between
          their leaves, divided by the most there are between any two leaves of that tree. The
          score is one minus the mean squared difference of the similarities in both trees,
          over all pairs of distinct rows.
        - ``path_sharing``: the same with another similarity, the number of nodes that the
          branches of two leaves share, the root not counted, divided by those of the longer.
        - ``chance_shortest_path``, ``chance_path_sharing``: what is expected of shuffled rows.
        - ``adjusted_shortest_path``, ``adjusted_path_sharing``: corrected for chance, 0 is
          expected of shuffled rows and 1 is best. Those that are not corrected mostly reward
          trees with the shape of the true one.

        Always ``rand``, ``adjusted_rand`` and ``adjusted_mutual_info``, scikit-learn's scores
        of the leaves as clusters, and ``dendrogram_purity``: for two rows of one class, the
        share of the class among the rows of their lowest common ancestor; the mean over all
        such pairs, NaN if no class has two rows.

    Raises
    ------
    ValueError
        If ``y`` is of another length, or fewer than two rows have a class; or if ``truth`` is
        not a tree, or a class is not one of its leaves.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> tree, mammals = from_labels([0, 0, 1]), ["animal", "mammal"]
    >>> truth = {"cat": mammals, "dog": mammals, "owl": ["animal"]}
    >>> scores = tree_scores(tree, ["cat", "dog", "owl"], truth)
    >>> round(scores["shortest_path"], 6)  # cat and dog are in one leaf, alike by 1/3
    0.851852
    >>> round(scores["path_sharing"], 6)  # they share one node of two
    0.916667
    """
    tree = taxonomy_of(taxonomy).tree
    counts, classes = _count_classes(tree, y)
    scores: dict[str, float] = {}
    if truth is not None:
        true_tree = ClassTree.read(truth)
        leaves = true_tree.leaves_of(classes)
        order = np.argsort(leaves)
        true = LeafPairs.of(true_tree.parents, leaves[order])
        learned, of_pairs = _survey(tree), counts[:, order].astype(np.float64)
        errors = {
            kind: _compare(of_pairs, learned, true, kind) for kind in get_args(Similarity)
        }
        scores |= {kind: 1.0 - error for kind, (error, _) in errors.items()}
        # Without an error by chance, both similarities are the same constant.
        scores |= {
            f"adjusted_{kind}": 1.0 - error / chance if chance > 0.0 else 1.0
            for kind, (error, chance) in errors.items()
        }
        scores |= {f"chance_{kind}": 1.0 - chance for kind, (_, chance) in errors.items()}
    return scores | _score_leaves(counts) | {"dendrogram_purity": _purity(tree, counts)}


def _count_classes(tree: Tree, y: ArrayLike) -> tuple[IndexArray, list[str]]:
    """Count the rows of each class in each leaf, and name the classes, none of them empty."""
    classes = Classes.of(y, tree.n_rows)
    codes = classes.codes[tree.rows(tree.root)]
    is_known = codes >= 0
    n_rows = int(is_known.sum())
    if n_excluded := len(codes) - n_rows:
        rows_are = counted(n_excluded, "row") + (" is" if n_excluded == 1 else " are")
        warn_caller(f"{rows_are} excluded from the scores: no label", UserWarning)
    if n_rows < 2:
        raise InputError(f"scores compare rows with a label: two are needed, got {n_rows}")
    leaf = np.repeat(np.arange(tree.n_leaves), tree.sizes[tree.leaves])  # of rows in this order
    counts = np.zeros((tree.n_leaves, len(classes.names)), dtype=np.intp)
    np.add.at(counts, (leaf[is_known], codes[is_known]), 1)
    present = np.flatnonzero(counts.any(axis=0))  # a class may have outliers only
    return counts[:, present], [classes.names[code] for code in present]


def _score_leaves(counts: IndexArray) -> dict[str, float]:
    """Return scikit-learn's scores of leaves as clusters."""
    from sklearn import metrics  # takes long

    cells = np.nonzero(counts)
    leaf, label = (np.repeat(numbers, counts[cells]) for numbers in cells)
    names = "rand", "adjusted_rand", "adjusted_mutual_info"
    return {name: float(getattr(metrics, f"{name}_score")(label, leaf)) for name in names}


def _purity(tree: Tree, counts: IndexArray) -> float:
    """Return the dendrogram purity."""
    of_nodes = sum_below(counts, tree.leaves, tree.parents)
    weights = of_nodes * (of_nodes - 1.0) / 2.0
    if not weights[0].sum() > 0.0:
        return nan
    sizes = of_nodes.sum(axis=1, keepdims=True)
    share = of_nodes / np.where(sizes == 0, 1, sizes)  # no pair meets in an empty node
    gain = share.copy()
    gain[1:] -= share[tree.parents[1:]]
    return float(np.vdot(weights, gain) / weights[0].sum())


class LeafPairs(NamedTuple):
    """All pairs of some leaves of a tree, in blocks: large trees need no square matrix.

    Two leaves part at the shallowest of the places between them where neighbours do.
    """

    depth: IndexArray  # edges above each of the leaves, from left to right
    parting: IndexArray  # depths of the nodes where the branches of neighbours part
    diameter: int  # the most edges between any two leaves of the tree, given or not

    @classmethod
    def of(cls, parents: IndexArray, leaves: IndexArray) -> Self:
        """Survey a tree whose nodes are numbered from left to right, parents first."""
        above, n_nodes = parents.tolist(), len(parents)
        depth, height, diameter = [0] * n_nodes, [0] * n_nodes, 0
        for node in range(1, n_nodes):
            depth[node] = depth[above[node]] + 1
        for node in range(n_nodes - 1, 0, -1):
            parent, reach = above[node], height[node] + 1
            if height[parent]:  # another child was seen: two leaves meet here
                diameter = max(diameter, height[parent] + reach)
            height[parent] = max(height[parent], reach)
        depths = np.array(depth, dtype=np.intp)
        # On the way from a leaf to its neighbour, the shallowest node is a child of the one
        # where they part.
        parting = np.minimum.reduceat(depths[: leaves[-1] + 1], leaves[:-1] + 1) - 1
        return cls(depths[leaves], parting, diameter)

    def blocks(self, kind: Similarity) -> Iterator[tuple[slice, Floats]]:
        """Yield the similarities of some leaves with all, until each had its turn."""
        n_leaves = len(self.depth)
        step = max(1, PAIRS_PER_BLOCK // n_leaves)
        for start in range(0, n_leaves, step):
            rows = slice(start, min(start + step, n_leaves))
            common, depth = self._common_depth(rows), self.depth[rows, None]
            if kind == "shortest_path":
                n_edges = depth + self.depth - 2 * common
                yield rows, 1.0 - n_edges / max(self.diameter, 1)
            else:
                # Only a root that is a leaf has a branch of length 0; it shares it with itself.
                longer = np.maximum(depth, self.depth)
                yield rows, np.where(longer == 0, 1.0, common / np.maximum(longer, 1))

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


def _survey(tree: Tree) -> LeafPairs:
    """Survey a learned tree: its nodes are in the order of births, and each owns a row."""
    order = np.lexsort((tree.depth, tree.start))
    position = np.argsort(order)
    parents = np.append(position, -1)[tree.parents[order]]
    return LeafPairs.of(parents, position[tree.leaves])


def _compare(
    counts: Floats, learned: LeafPairs, true: LeafPairs, kind: Similarity
) -> tuple[float, float]:
    """Return the mean squared difference over all pairs of rows, and that expected by chance.

    Takes time in proportion to ``n_leaves * n_classes * (n_leaves + n_classes)``.
    """
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
    n_rows = int(counts.sum())
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
