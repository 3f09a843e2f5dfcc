r"""The rules of a tree: which few features tell its clusters apart.

Clusters are found where likeness is measured; rules are found in the features, which people can
read. A rule sits at a node and chooses among a frontier of its descendants by linear scores on
a few shared features, those of linear discriminant analysis (``_discriminant.py``).

All choices are made by rows left out: moments of one half of a sample make the rule, and it is
measured by the share of the other half's rows that it sends to their cluster.

**Frontier.** Where one or two columns divide the two children of a node nearly as well as all
columns do, they decide, and the words of the rule are exact. Elsewhere one rule chooses among
all clusters below the node, and the splits between only nest and describe.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import combinations
from typing import NamedTuple, final

import numpy as np

from taxarbor._fit_context import Run
from taxarbor._types import Array, IndexArray, Mask, Matrix
from taxarbor.clusters import Clusters
from taxarbor.clusters.leaves import build_tree
from taxarbor.grow import BranchMerger
from taxarbor.rules._discriminant import (
    CHOICE_ROWS,
    DIGITS,
    Moments,
    RuleSample,
    Sparsity,
    draw_rule_sample,
    remove_columns,
    sort_falling,
)
from taxarbor.tree import LinearRule, Tree, TreeBuilder
from taxarbor.tree.edit_tree import resize
from taxarbor.tree.route_rows import place_rows

N_COLUMNS = 6  # columns that planes are made of: those that separate most


class ColumnPlane(NamedTuple):
    """Rows whose weighted sum of a few features exceeds a threshold go to the second child."""

    columns: IndexArray
    features: IndexArray
    weights: Array
    threshold: float
    rank: tuple[float, float]  # the share of rows on their side, the distance of the children

    def divide(self, values: Array, rows: IndexArray) -> Mask:
        """Return which rows go to the second child."""
        return values[np.ix_(rows, self.features)] @ self.weights > self.threshold


def find_planes(sample: RuleSample, rows: IndexArray, is_second: Mask) -> list[ColumnPlane]:
    """Return the planes of one and of two columns that divide rows best, if any do."""
    values, weights = sample.values[rows].astype(np.float64), sample.weights[rows]
    masses = weights @ ~is_second, weights @ is_second
    if not min(masses):
        return []
    means = [(weights * side) @ values for side in (~is_second, is_second)]
    means = [total / mass for total, mass in zip(means, masses, strict=True)]
    around = values - np.where(is_second[:, None], means[1], means[0])
    difference = means[1] - means[0]
    columns = _choose_columns(sample, weights @ around**2 / weights.sum(), difference)
    best: list[ColumnPlane] = []
    for n_columns in (1, 2):
        planes = []
        for chosen in combinations(columns.tolist(), n_columns):
            features = np.flatnonzero(np.isin(sample.columns, chosen))
            part = around[:, features]
            apart = difference[features]
            scatter = (part.T * weights) @ part / weights.sum()
            ridge = 1e-3 * (np.trace(scatter) + apart @ apart) / len(features) + 1e-300
            scatter[np.diag_indices(len(features))] += ridge
            direction = np.linalg.solve(scatter, apart)
            distance = float(apart @ direction) or 1.0
            direction /= distance  # the means differ by one
            cut = _find_cut(values[:, features] @ direction, is_second, weights)
            if cut is not None:
                threshold, share = cut
                rank = round(share, 9), float(f"{distance:.{DIGITS}g}")
                plane = np.sort(chosen), features, direction, threshold, rank
                planes.append(ColumnPlane(*plane))
        if not planes:
            break
        best.append(max(planes, key=lambda plane: plane.rank))
    return best


def _choose_columns(sample: RuleSample, variances: Array, difference: Array) -> IndexArray:
    """Return the columns that separate most, given variances within and between children."""
    total = variances + difference**2
    separation = difference**2 / np.maximum(variances, 1e-6 * total + 1e-300)
    separation[total <= sample.rounding] = 0.0  # the feature is constant here
    by_column = np.zeros(sample.n_columns)
    np.maximum.at(by_column, sample.columns, separation)
    columns = sort_falling(by_column)[:N_COLUMNS]
    return np.sort(columns[by_column[columns] > 0.0])


def _find_cut(scores: Array, is_second: Mask, weights: Array) -> tuple[float, float] | None:
    """Return the threshold that divides rows best, of equals in the widest gap; None if equal.

    Also the share of the rows that are on their side.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    signed = (weights * np.where(is_second, -1.0, 1.0))[order]
    gaps = np.diff(ordered)
    # Duplicate rows may differ by rounding, and stay together.
    gaps[gaps <= 1e-10 * np.abs(ordered).max(initial=0.0)] = 0.0
    if not len(gaps) or not gaps.max() > 0.0:
        return None
    right = np.cumsum(signed)[:-1] + weights @ is_second
    right[gaps <= 0.0] = -np.inf
    ties = np.flatnonzero(right >= right.max() - 1e-9 * weights.sum())
    at = ties[gaps[ties].argmax()]
    return float(ordered[at] + 0.5 * gaps[at]), float(right[at] / weights.sum())


TOLERANCE, LEAST_TOLERANCE = 0.08, 0.01
"""The share of left-out rows that a rule of one or two columns may send to another child than
all columns do: at most, and where these make no error, to which theirs is added. It is divided
by the binary logarithm of the number of clusters below, as every level adds its errors, and is
one row at least. With twice as much the shared sets lose a point of most measures; where all
columns make no error, 0.08 lost clusters that are plain."""

SECOND_COLUMN_GAIN, FAR_BELOW = 0.03, 0.05
"""The share of left-out rows that a second column must sort. And how far below the tolerance
two columns may be for a few more to be tried."""

KEPT_SHARE = 0.88
"""The share of its columns that a rule keeps when some are removed. Few are removed at a time:
of redundant columns, each is worth little."""


def find_rules(
    clusters: Clusters,
    X: Matrix,
    sparsity: Sparsity,
    run: Run,
    *,
    branching: int = 2,
    min_leaf_size: int = 1,
) -> Tree:
    """Return a tree of the same leaves whose rules decide where rows go.

    ``X`` holds the rows of the clusters, with all features. Pairs of children are merged up to
    ``branching``; leaves of fewer than ``min_leaf_size`` rows are removed, and these go
    elsewhere.
    """
    if clusters.tree.n_leaves == 1:
        return clusters.tree.freeze(with_rows=False)
    tree = _merge_branches(clusters.tree, branching)
    sample = draw_rule_sample(clusters, X, sparsity, run.seed)
    search = _Search(tree, sample, sparsity)
    waiting = [0]
    while waiting:
        node = waiting.pop()
        choice = search.find(node)
        tree.set_rule(node, choice.make_rule(sample))
        if choice.is_near:
            waiting += [child for child in tree.children(node) if tree.children(child)]
    return _remove_small(tree.freeze(with_rows=False), X, min_leaf_size, run.width)


def _merge_branches(binary: TreeBuilder, branching: int) -> TreeBuilder:
    """Return a tree of the same leaves whose splits are those of a binary tree, merged."""
    merger = BranchMerger(branching)
    for node in binary.inner:
        merger.add(node, binary.children(node))
    sizes = np.array([binary.size(node) for node in range(binary.n_nodes)])
    tree, node_of = build_tree(merger.splits, 0, sizes)
    for node in merger.splits:
        tree.record(node_of[node], *binary.recorded(node))
    return tree


def _remove_small(tree: Tree, X: Matrix, min_size: int, n_threads: int) -> Tree:
    """Return a tree without leaves of fewer rows, of each parent the smallest first."""
    while True:
        labels = place_rows(tree, X, n_threads=n_threads)
        counts = np.bincount(labels, minlength=tree.n_leaves)
        order = np.lexsort((counts, parents := tree.parents[tree.leaves]))
        smallest = order[np.diff(parents[order], prepend=-2) != 0]
        small = smallest[counts[smallest] < max(min_size, 1)]
        if tree.n_leaves == 1 or not len(small):
            return resize(tree, counts).tree
        counts = np.maximum(counts, 1)
        counts[small] = 0
        tree = resize(tree, counts).tree


class _Choice(NamedTuple):
    """A rule in some columns: among the children, or all leaves below."""

    columns: IndexArray
    weights: Array  # (n_scores, n_features of the columns)
    offsets: Array  # (n_scores,)
    is_near: bool  # whether it chooses among the children

    @classmethod
    def of_plane(cls, plane: ColumnPlane) -> "_Choice":
        weights = 0.5 * np.stack([-plane.weights, plane.weights])
        offsets = 0.5 * np.array([plane.threshold, -plane.threshold])
        return cls(plane.columns, weights, offsets, is_near=True)

    def make_rule(self, sample: RuleSample) -> LinearRule:
        """Return the rule in all features."""
        is_used = np.isin(sample.columns, self.columns)
        dtype = sample.values.dtype
        weights = np.zeros((len(self.offsets), len(sample.center)), dtype=dtype)
        weights[:, sample.features[is_used]] = self.weights / sample.scale[is_used]
        return LinearRule(weights, sample.center.astype(dtype), self.offsets.astype(dtype))


class _Targets(NamedTuple):
    """Clusters that a rule chooses among, and the rows by which rules are compared."""

    moments: Sequence[Moments]  # of either half of the sample, and of both
    span: range  # the clusters' positions in the moments
    rows: IndexArray
    labels: IndexArray  # the cluster of each row
    is_near: bool


@final
class _Search:
    """The search for the rules of all nodes of a tree."""

    def __init__(self, tree: TreeBuilder, sample: RuleSample, sparsity: Sparsity) -> None:
        self.tree, self.sample, self.sparsity = tree, sample, sparsity
        halves = [
            Moments.of(sample.values[is_in], sample.labels[is_in], tree.n_leaves)
            for is_in in (sample.halves == 0, sample.halves == 1)
        ]
        self._moments = [*halves, halves[0] + halves[1]]
        # The leaves of each node.
        self._spans = {leaf: range(at, at + 1) for at, leaf in enumerate(tree.leaves)}
        for node in reversed(tree.inner):
            first, last = (self._spans[tree.children(node)[at]] for at in (0, -1))
            self._spans[node] = range(first.start, last.stop)
        self._choosing = np.flatnonzero(sample.is_choosing)

    @cached_property
    def _scores(self) -> Array:
        """The scores of choosing rows for each leaf, by all features of the other half."""
        labels, leaves = self.sample.labels[self._choosing], range(self.tree.n_leaves)
        targets = _Targets(self._moments, leaves, self._choosing, labels, is_near=False)
        every = np.arange(len(self.sample.features))
        return self._score_left_out(targets, [every, every])

    def _score_left_out(self, targets: _Targets, features: Sequence[IndexArray]) -> Array:
        """Return the scores of rows for each cluster, by some features of the other half."""
        sample, rows, span = self.sample, targets.rows, targets.span
        scores = np.empty((len(rows), len(span)))
        for half, own in enumerate(features):
            clusters = slice(span.start, span.stop)
            weights, offsets = targets.moments[half].discriminate(clusters, own)
            is_out = sample.halves[rows] != half
            scores[is_out] = sample.values[np.ix_(rows[is_out], own)] @ weights.T + offsets
        return scores

    def find(self, node: int) -> _Choice:
        """Return the rule of a node."""
        sample, max_columns = self.sample, self.sparsity.max_features
        leaves = self._spans[node]
        parts = [self._spans[child] for child in self.tree.children(node)]
        starts = [part.start for part in parts]
        first, last = np.searchsorted(sample.labels, [leaves.start, leaves.stop])
        chosen = slice(*np.searchsorted(self._choosing, [first, last]))
        rows = self._choosing[chosen]
        labels = sample.labels[rows]
        children = np.searchsorted(starts, labels, side="right") - 1

        def measure(sent: IndexArray) -> float:
            """Return the share of rows that go to their child, given the leaves they go to."""
            is_right = np.searchsorted(starts, sent, side="right") - 1 == children
            return sample.share(rows, is_right)

        far = _Targets(self._moments, leaves, rows, labels, is_near=False)
        find_far = partial(self._find_discriminant, far, max_columns)
        if self.sparsity.is_free:
            return find_far()[0]
        wide, is_hard = (None if max_columns is None else find_far()), False
        if len(parts) == 2:
            if wide is None:
                scores = self._scores[chosen, leaves.start : leaves.stop]
                sent, n_lost = leaves.start + scores.argmax(axis=1), 0
            else:
                sent, n_lost = wide[1], _count_lost(labels, wide[1] == labels)
            share = measure(sent)
            tolerance = min(TOLERANCE, LEAST_TOLERANCE + 1.0 - share) / np.log2(len(leaves))
            min_share = share - max(tolerance, 1.0 / len(rows))
            drawn = np.arange(first, last, 1 + (last - first) // CHOICE_ROWS)
            plane, share = self._find_plane(drawn, rows, starts[1], min_share)
            if plane is not None and self._count_lost_by(plane, drawn, starts[1]) <= n_lost:
                return _Choice.of_plane(plane)
            is_hard = max_columns is None and share < min_share - FAR_BELOW
        choice, sent = wide or find_far()
        n_levels = np.log(len(leaves)) / np.log(len(parts))
        max_near = max_columns or int(len(choice.columns) / n_levels)
        if len(parts) == len(leaves) or max_near < 1 or is_hard:
            return choice
        # Only the children, where as few columns on the path tell them apart as well.
        merged = [moments.merge(parts) for moments in self._moments]
        near = _Targets(merged, range(len(parts)), rows, children, is_near=True)
        near_choice, sides = self._find_discriminant(near, max_near)
        n_lost = _count_lost(labels, sides == children)
        n_empty = len(leaves) - len(np.unique(sent))
        is_worse = sample.share(rows, sides == children) < measure(sent)
        return choice if n_lost > n_empty or (n_lost == n_empty and is_worse) else near_choice

    def _find_plane(
        self, drawn: IndexArray, rows: IndexArray, second: int, min_share: float
    ) -> tuple[ColumnPlane | None, float]:
        """Return the plane of one or two columns that divides two children, None if none does.

        Its columns must divide enough of the rows left out; the plane is then found on all
        drawn rows. Also the share of the rows left out that such a plane divides.
        """
        sample, values = self.sample, self.sample.values
        is_second = sample.labels[rows] >= second
        is_right = np.zeros((2, len(rows)), dtype=bool)
        for half in (0, 1):
            is_in = sample.halves[rows] == half
            planes = find_planes(sample, rows[is_in], is_second[is_in])
            for at, plane in enumerate(planes):
                is_right[at, ~is_in] = plane.divide(values, rows[~is_in]) == is_second[~is_in]
        shares = [sample.share(rows, right) for right in is_right]
        if self.sparsity.max_features == 1:
            shares[1] = 0.0
        n_columns = 1 if shares[0] >= max(min_share, shares[1] - SECOND_COLUMN_GAIN) else 2
        planes = []
        if shares[n_columns - 1] >= min_share:
            planes = find_planes(sample, drawn, sample.labels[drawn] >= second)
        return (planes[n_columns - 1] if len(planes) >= n_columns else None), max(shares)

    def _count_lost_by(self, plane: ColumnPlane, drawn: IndexArray, second: int) -> int:
        """Count the clusters of which a plane sends most drawn rows to the other child."""
        labels = self.sample.labels[drawn]
        is_second = plane.divide(self.sample.values, drawn)
        return _count_lost(labels, is_second == (labels >= second))

    def _find_discriminant(
        self, targets: _Targets, max_columns: int | None
    ) -> tuple[_Choice, IndexArray]:
        """Return the rule that chooses among clusters, and where rows left out are sent.

        The number of columns is chosen by rows left out: these go where rules of the other half
        with as many columns send them. The rule itself is made from both halves. It takes more
        columns where so few would leave a cluster without rows, and more do not.
        """
        sample, moments, span = self.sample, targets.moments[2], targets.span
        clusters, n_columns = slice(span.start, span.stop), sample.n_columns
        sizes = [n_columns] if self.sparsity.is_free else _falling_sizes(n_columns, max_columns)
        kept = [
            remove_columns(half, clusters, sample.columns, sizes)
            for half in targets.moments[:2]
        ]
        rising = [size for size in reversed(sizes) if size <= (max_columns or n_columns)]
        size, sent = self._choose_size(targets, kept, rising)
        until = sizes[: sizes.index(size) + 1]
        final = remove_columns(moments, clusters, sample.columns, until)
        for features in (*(final[more] for more in rising if more >= size), final[size]):
            weights, offsets = moments.discriminate(clusters, features)
            scores = sample.values[np.ix_(targets.rows, features)] @ weights.T + offsets
            if len(np.unique(scores.argmax(axis=1))) == len(span):
                break
        columns = np.unique(sample.columns[features])
        return _Choice(columns, weights, offsets, targets.is_near), sent

    def _choose_size(
        self, targets: _Targets, kept: Sequence[dict[int, IndexArray]], sizes: Sequence[int]
    ) -> tuple[int, IndexArray]:
        """Return the number of columns that sorts rows left out best, and where these go.

        ``kept`` has the features of each half's rules, for each number of columns. The fewest
        columns within a standard error of the best are chosen.
        """
        sample, rows = self.sample, targets.rows
        worth: dict[int, float] = {}
        sent: dict[int, IndexArray] = {}
        for size in sizes:
            if worth and 1.0 - sample.price * size < max(worth.values()):
                break  # it cannot be better, even if it sorts all rows
            scores = self._score_left_out(targets, [half[size] for half in kept])
            sent[size] = targets.span.start + scores.argmax(axis=1)
            share = sample.share(rows, sent[size] == targets.labels)
            worth[size] = share - sample.price * size
        best = max(worth, key=lambda size: worth[size])
        share = min(worth[best] + sample.price * best, 1.0)
        error = np.sqrt(share * (1.0 - share) / len(rows))
        size = min(size for size in worth if worth[size] >= worth[best] - error)
        return size, sent[size]


def _count_lost(labels: IndexArray, is_right: Mask) -> int:
    """Count the clusters of which most rows do not go where they belong."""
    clusters = np.unique(labels, return_inverse=True)[1]
    return int(np.count_nonzero(np.bincount(clusters, ~is_right) > 0.5 * np.bincount(clusters)))


def _falling_sizes(n_columns: int, max_columns: int | None) -> list[int]:
    """Return numbers of columns from all down to one, with the most that a rule may use."""
    sizes = [n_columns]
    while sizes[-1] > 1:
        sizes.append(min(int(KEPT_SHARE * sizes[-1]), sizes[-1] - 1))
    return sorted({*sizes, min(max_columns or n_columns, n_columns)}, reverse=True)
