r"""The rules of a tree: which few features tell its clusters apart.

Clusters are found where likeness is measured; rules are sought in the features, which people
can read. A rule sits at a node and chooses among a frontier of its descendants by linear scores
on a few shared features. The scores are those of linear discriminant analysis: with the means
m_k of the clusters and S, the scatter within them plus a ridge, both in the features of the
rule,

    s_k(x) = m_k' S^-1 x - m_k' S^-1 m_k / 2.

Whatever is chosen is chosen by rows left out: moments of one half of a sample make the rule,
and the rows of the other half say how many of them it sends to their cluster.

**Frontier.** Where one or two columns divide the two children of a node nearly as well as all
columns do, they decide, and the words of the rule are exact. Elsewhere one rule chooses among
all clusters below the node, and the splits between only nest and describe.

**Columns.** What is lost where clusters are near each other is measured by

    sum_kl n_k n_l / D_kl^2,    D_kl^2 = (m_k - m_l)' S^-1 (m_k - m_l).

Without column j each squared distance is less by (b_jk - b_jl)^2 / A_jj, with A = S^-1 and
b = A M', so to first order the sum grows by that over D_kl^4. Columns are removed from all of
them, those that are worth least first, so weak features that only work together are not missed.
The features of one column of a table, such as the values of a category, stay or go together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from taxarbor import native
from taxarbor._run import Run, node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.clusters import Clusters, find_density
from taxarbor.clusters._find import match_notes
from taxarbor.clusters._links import build_tree
from taxarbor.grow import Gathering
from taxarbor.tree import LinearRule, Tree, TreeBuilder
from taxarbor.tree._edit import resize
from taxarbor.tree._routing import place_rows, sum_by_label

RULE_ROWS, MIN_LEAF_ROWS = 10_000, 50
"""Rows on which rules are sought, as many of each leaf; and of each leaf at least."""

CHOICE_ROWS = 4000
"""Of these, the rows that say which rule is best."""

MAX_CANDIDATES = 1500
"""Features that are looked at together; of more, those that separate most by themselves."""

PRICE = 0.0002
"""The share of left-out rows that a column must sort. Of rules within a standard error of the
best the one of fewest columns is taken. With five times the price a row of the shared sets
meets 37 features instead of 54, and 0.7 of the adjusted mutual information is lost. In rows of
many columns, most of them zero, such as texts, a row meets only the words that it has."""

TOLERANCE = 0.08
"""The share of left-out rows that a rule of one or two columns may send to another child than
all columns do, divided by the binary logarithm of the number of clusters below, as every level
adds its errors. With twice as much the shared sets lose a point of most measures; with less
tables of a dozen columns lose their thresholds."""

ONE_COLUMN, FAR_BELOW = 0.03, 0.05
"""The share of left-out rows that a second column must sort. And the share that two columns may
lack beyond the tolerance for a few more to be tried."""

N_SIMPLE = 6
"""Columns that rules of one or two columns are made of: those that separate most."""

NOVELTY_SHARE = 0.01
"""The share of rows that a column of rules above must sort beyond others, at novelty 1."""

SHRINKAGE = 1.0
"""The ridge, as a share of the mean variance within clusters, as clusters have it."""

STEP, SURPRISE = 0.88, 0.02
"""The share of its columns that a rule keeps when some are removed. And what that may cost
beyond twice what these are worth, as a share of the sum so far, or fewer are removed."""

ROUNDING = 64.0
"""Roundings of a value up to which a feature counts as constant."""

DIGITS = 5
"""To which values are compared: rounding must not choose."""

DRAWN = 7
"""What tells the hashes of these rows from those of others."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """How few features a rule should use.

    Attributes
    ----------
    novelty : float
        How strongly columns of rules above a node are avoided.
    max_features : int or None
        The most columns that a rule may use.
    owner : array of shape (n_features,) or None
        The column that each feature is of; None: each is one of its own.
    is_free : bool
        Whether features have no price: rules use all of them, as people cannot read any.
    is_scaled : bool
        Whether features are divided by their deviations, as clusters were found elsewhere; not
        those of texts and the like, in which rare words would count most.
    """

    novelty: float = 1.0
    max_features: int | None = None
    owner: IndexArray | None = None
    is_free: bool = False
    is_scaled: bool = False


def find_rules(
    clusters: Clusters,
    X: Any,
    sparsity: Sparsity,
    run: Run,
    *,
    branching: int = 2,
    min_leaf_size: int = 1,
) -> Tree:
    """Return a tree of the same leaves whose rules decide where rows go.

    Parameters
    ----------
    clusters : Clusters
        The tree as it should be, of two children per split.
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows of the clusters, with all features.
    sparsity : Sparsity
        How few features the rules use.
    run : Run
        The seed, and where to run.
    branching : int
        The most children per split: pairs are gathered.
    min_leaf_size : int
        Least number of rows of a leaf: smaller ones are removed, and their rows go elsewhere.
    """
    tree = _gather(clusters.tree, branching)
    if tree.n_leaves > 1:
        sample = _draw_sample(clusters, X, sparsity, run.seed)
        search = _Search(tree, sample, sparsity)
        waiting: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
        while waiting:
            node, known = waiting.pop()
            choice = search.find(node, known)
            tree.explain(node, sample.make_rule(choice))
            if choice.is_near:
                known |= {*choice.columns.tolist()}
                waiting += [
                    (child, known) for child in tree.children(node) if tree.children(child)
                ]
    frozen, labels = _remove_small(tree.freeze(order=False), X, min_leaf_size, run.width)
    notes = [clusters.tree.note(leaf) for leaf in clusters.tree.leaves]
    is_whole = frozen.n_leaves == clusters.tree.n_leaves  # or no note says why leaves are lost
    matched = match_notes(labels, clusters.labels, notes) if is_whole else {}
    by_leaf = {int(frozen.leaves[position]): note for position, note in matched.items()}
    return replace(frozen, notes=tuple(by_leaf.get(i, "") for i in range(frozen.n_nodes)))


def _gather(plan: TreeBuilder, branching: int) -> TreeBuilder:
    """Return a tree of the same leaves whose splits are those of a binary tree, gathered."""
    gathering = Gathering(branching)
    for node in plan.inner:
        gathering.add(node, plan.children(node))
    sizes = np.array([plan.size(node) for node in range(plan.n_nodes)])
    tree, node_of = build_tree(gathering.splits, 0, sizes)
    for node in gathering.splits:
        tree.record(node_of[node], **plan.recorded(node))
    return tree


def _remove_small(
    tree: Tree, X: Any, least: int, n_threads: int
) -> tuple[Tree, NDArray[np.int32]]:
    """Return a tree without leaves of fewer rows, of each parent the smallest first; labels."""
    while True:
        labels = place_rows(tree, X, n_threads=n_threads)
        counts = np.bincount(labels, minlength=tree.n_leaves)
        order = np.lexsort((counts, parents := tree.parents[tree.leaves]))
        smallest = order[np.diff(parents[order], prepend=-2) != 0]
        small = smallest[counts[smallest] < max(least, 1)]
        if tree.n_leaves == 1 or not len(small):
            return resize(tree, counts).tree, labels
        counts = np.maximum(counts, 1)
        counts[small] = 0
        tree = resize(tree, counts).tree


# The rows that rules are sought on


@final
@dataclass(frozen=True, slots=True, eq=False)
class _RuleSample:
    """Some rows of each leaf, in those features that may be used, about their mean."""

    values: Array  # (n_rows, n_candidates)
    labels: IndexArray  # the leaf of each row, from left to right; rows are sorted by it
    halves: IndexArray  # 0 or 1: each makes rules for the other
    is_choosing: NDArray[np.bool_]  # the rows that say which rule is best
    weights: Array  # how many rows of its leaf each stands for, of the choosing ones
    center: Array  # (n_features,)
    scale: Array  # (n_candidates,), by which values were divided
    features: IndexArray  # (n_candidates,), of all features
    columns: IndexArray  # (n_candidates,), the column of each, from 0 on
    price: float  # of a column

    @property
    def n_columns(self) -> int:
        return int(self.columns[-1]) + 1 if len(self.columns) else 0

    def make_rule(self, choice: "_Choice") -> LinearRule:
        """Return a choice as a rule in all features."""
        own = np.isin(self.columns, choice.columns)
        dtype = self.values.dtype
        weights = np.zeros((len(choice.offsets), len(self.center)), dtype=dtype)
        weights[:, self.features[own]] = choice.weights / self.scale[own]
        return LinearRule(weights, self.center.astype(dtype), choice.offsets.astype(dtype))


def _draw_sample(clusters: Clusters, X: Any, sparsity: Sparsity, seed: int) -> _RuleSample:
    """Draw the rows of lowest hash of each leaf, and find the features that may be used."""
    labels, n_leaves = clusters.labels, clusters.tree.n_leaves
    hashes = native.hashes(node_seed(seed, (DRAWN,)), np.arange(len(labels)))
    order = np.lexsort((hashes, labels))
    rank = np.arange(len(order)) - np.searchsorted(labels[order], labels[order])
    is_drawn = rank < max(RULE_ROWS // n_leaves, MIN_LEAF_ROWS)
    drawn, rank = order[is_drawn], rank[is_drawn]
    own = labels[drawn].astype(np.intp)
    # Of every two rows of a leaf one is in each half, and so of those that choose.
    is_choosing = rank // 2 % (1 + len(own) // CHOICE_ROWS) == 0
    sizes, n_choosing = np.bincount(labels), np.bincount(own[is_choosing])
    rows: Any = X[drawn]
    if issparse(X):
        center, variances = (each.astype(float) for each in mean_variance_axis(rows, axis=0))
    else:
        center, variances = (each(rows, axis=0, dtype=float) for each in (np.mean, np.var))
    means = sum_by_label(rows, own, n_leaves) / np.bincount(own)[:, None]
    between = np.bincount(own) @ (means - center) ** 2 / len(own)
    eps = float(np.finfo(X.dtype).eps)
    widest = 0.0 if sparsity.is_scaled else float(np.sqrt(variances.max()))
    features = _choose_candidates(variances, between, eps * (np.abs(center) + widest))
    density, scale = find_density(X), np.ones(len(features))
    if sparsity.is_scaled and density == 1.0:
        scale = np.sqrt(np.where(variances > 0.0, variances, 1.0))[features]
    if issparse(X):
        values = rows[:, features].toarray()
    else:
        values = rows if len(features) == X.shape[1] else rows[:, features]
    values = (values - center[features].astype(X.dtype)) / scale.astype(X.dtype)
    owner = np.arange(X.shape[1]) if sparsity.owner is None else sparsity.owner
    return _RuleSample(
        np.ascontiguousarray(values),
        own,
        rank % 2,
        is_choosing,
        (sizes / n_choosing)[own],
        center,
        scale,
        features,
        np.unique(owner[features], return_inverse=True)[1],
        PRICE * density,
    )


def _choose_candidates(total: Array, between: Array, rounding: Array) -> IndexArray:
    """Return the features that vary, of many those that separate most by themselves."""
    varies = np.sqrt(total) > ROUNDING * rounding  # what rounding makes of a constant is not
    features = np.flatnonzero(varies)
    if len(features) > MAX_CANDIDATES:
        within = np.maximum(total - between, 0.0)
        worth = between / (within + SHRINKAGE * within.mean() + 1e-300) * varies
        features = np.sort(_order(worth)[:MAX_CANDIDATES])
    return features if len(features) else np.arange(1)


def _order(values: Array) -> IndexArray:
    """Return positions, the largest value first; of those that differ by rounding, in order."""
    mantissas, exponents = np.frexp(values)
    rounded = np.ldexp(np.round(mantissas, DIGITS), exponents)
    return np.argsort(-rounded, kind="stable")


# Linear discriminant analysis in some of the features


@final
@dataclass(frozen=True, eq=False)
class _Moments:
    """Numbers, sums and products of the rows of each leaf: what rules are made of."""

    counts: Array  # (n_leaves,)
    sums: Array  # (n_leaves, n_features)
    products: Array  # (n_features, n_features), of all leaves

    @classmethod
    def of(cls, values: Array, labels: IndexArray, n_leaves: int) -> "_Moments":
        sums = native.label_sums(values, labels.astype(np.int32), n_leaves)
        counts = np.bincount(labels, minlength=n_leaves).astype(np.float64)
        return cls(counts, sums, (values.T @ values).astype(np.float64))

    def __add__(self, other: "_Moments") -> "_Moments":
        sums = self.counts + other.counts, self.sums + other.sums
        return _Moments(*sums, self.products + other.products)

    @cached_property
    def means(self) -> Array:
        means: Array = self.sums / np.maximum(self.counts, 1.0)[:, None]
        return means

    @cached_property
    def scatter(self) -> Array:
        """The mean product within leaves, and a ridge."""
        scatter: Array = (self.products - self.sums.T @ self.means) / self.counts.sum()
        size = len(scatter)
        total = np.trace(self.products) / self.counts.sum()
        ridge = max(SHRINKAGE * np.trace(scatter), 1e-6 * total, 1e-300) / size
        scatter[np.diag_indices(size)] += ridge
        return scatter

    @cached_property
    def inverse(self) -> Array:
        return np.linalg.inv(self.scatter)

    def merge(self, parts: Sequence[range]) -> "_Moments":
        """Return the moments of some unions of leaves, with the scatter within all leaves."""
        own = slice(parts[0].start, parts[-1].stop)
        ends = [part.start - own.start for part in parts]
        counts, sums = (np.add.reduceat(all_[own], ends) for all_ in (self.counts, self.sums))
        within = (self.products - self.sums.T @ self.means) * (counts.sum() / self.counts.sum())
        return _Moments(counts, sums, within + self.sums[own].T @ self.means[own])

    def discriminate(self, leaves: Any, features: IndexArray) -> tuple[Array, Array]:
        """Return the scores of some leaves in some features; -inf for a leaf of no row."""
        means = self.means[leaves][:, features]
        if len(features) == len(self.scatter):
            weights = means @ self.inverse
        else:
            own = self.scatter[np.ix_(features, features)]
            weights = np.linalg.solve(own, means.T).T
        offsets = -0.5 * np.einsum("kj,kj->k", weights, means)
        return weights, np.where(self.counts[leaves] > 0, offsets, -np.inf)


def _remove_columns(
    moments: _Moments, leaves: Any, columns: IndexArray, sizes: Sequence[int], keenness: Array
) -> dict[int, IndexArray]:
    """Return the features of the best columns, for each number of columns, in falling order.

    Columns are removed in turn, from all, those that are worth least; ``keenness`` multiplies
    what each column is worth.
    """
    means, counts, own = moments.means[leaves], moments.counts[leaves], np.arange(len(columns))
    A = moments.inverse
    B = A @ means.T
    near, lost = _weigh_pairs(means @ B, counts)
    kept = {}
    for size in sizes:
        left, at = np.unique(columns[own], return_inverse=True)
        while size < len(left):
            worth = _measure_worth(A, B, near, at) * keenness[left]
            order, n_gone = _order(worth)[::-1], len(left) - size
            while True:
                gone = np.flatnonzero(np.isin(at, order[:n_gone]))
                A_left, B_left, is_in = _remove_features(A, B, gone)
                new_near, new_lost = _weigh_pairs(means[:, own[is_in]] @ B_left, counts)
                # Of columns that say the same each is worth little, and all together much.
                expected = 2.0 * worth[order[:n_gone]].sum() + SURPRISE * lost
                if n_gone == 1 or new_lost - lost <= expected:
                    break
                n_gone //= 2
            A, B, near, lost, own = A_left, B_left, new_near, new_lost, own[is_in]
            left, at = np.unique(columns[own], return_inverse=True)
        kept[size] = own
    return kept


def _remove_features(A: Array, B: Array, gone: IndexArray) -> tuple[Array, Array, IndexArray]:
    """Return S^-1 and S^-1 M' without some features, and the positions of the others."""
    is_in = np.setdiff1d(np.arange(len(A)), gone, assume_unique=True)
    both = np.hstack([A[np.ix_(gone, is_in)], B[gone]])
    update, across = np.linalg.solve(A[np.ix_(gone, gone)], both), A[np.ix_(is_in, gone)]
    A_left = A[np.ix_(is_in, is_in)] - across @ update[:, : len(is_in)]
    return A_left, B[is_in] - across @ update[:, len(is_in) :], is_in


def _weigh_pairs(products: Array, counts: Array) -> tuple[Array, float]:
    """Return how much each two leaves count, given the products of their means, and the sum."""
    squares = np.diag(products)
    distances = np.maximum(squares[:, None] + squares - products - products.T, 0.0)
    distances = np.maximum(distances, 1e-3 * distances.max() or 1.0)
    pairs = np.outer(counts, counts)
    np.fill_diagonal(pairs, 0.0)
    return pairs / distances**2, float((pairs / distances).sum())


def _measure_worth(A: Array, B: Array, near: Array, columns: IndexArray) -> Array:
    """Return how much less is separated without each column."""

    def add_pairs(one: Array, other: Array) -> Array:
        added: Array = (one * other) @ near.sum(axis=1) - ((one @ near) * other).sum(axis=1)
        return np.maximum(added, 0.0)

    worth: Array = add_pairs(B, B) / np.diag(A)
    if len(columns) == columns[-1] + 1:
        return worth
    first = np.flatnonzero(np.diff(columns, prepend=-1))
    by_column = worth[first]
    for column in np.flatnonzero(np.bincount(columns) > 1).tolist():
        own = np.flatnonzero(columns == column)
        parts = np.linalg.solve(A[np.ix_(own, own)], B[own])
        by_column[column] = add_pairs(B[own], parts).sum()
    return by_column


# The rule of a node


class _Choice(NamedTuple):
    """A rule in some columns: among the children, or all leaves below."""

    columns: IndexArray
    weights: Array  # (n_scores, n_features of the columns)
    offsets: Array  # (n_scores,)
    is_near: bool  # whether it chooses among the children


@final
class _Search:
    """What the search of every node's rule has in common."""

    def __init__(self, tree: TreeBuilder, sample: _RuleSample, sparsity: Sparsity) -> None:
        self.tree, self.sample, self.sparsity = tree, sample, sparsity
        halves = [
            _Moments.of(sample.values[own], sample.labels[own], tree.n_leaves)
            for own in (sample.halves == 0, sample.halves == 1)
        ]
        self._moments = [*halves, halves[0] + halves[1]]
        # The leaves of each node.
        self._spans = {leaf: range(at, at + 1) for at, leaf in enumerate(tree.leaves)}
        for node in reversed(tree.inner):
            first, last = (self._spans[tree.children(node)[at]] for at in (0, -1))
            self._spans[node] = range(first.start, last.stop)
        self._choosing = np.flatnonzero(sample.is_choosing)
        # What rounding alone may add to the variance of a feature.
        self._rounding = (ROUNDING * np.abs(sample.values).max(axis=0)) ** 2
        self._rounding *= float(np.finfo(sample.values.dtype).eps) ** 2

    @cached_property
    def _scores(self) -> Array:
        """How well choosing rows fit each leaf by all features, found without them."""
        sample, every = self.sample, np.arange(len(self.sample.features))
        scores = np.empty((len(self._choosing), self.tree.n_leaves))
        for half in (0, 1):
            weights, offsets = self._moments[half].discriminate(slice(None), every)
            own = sample.halves[self._choosing] != half
            scores[own] = sample.values[self._choosing[own]] @ weights.T + offsets
        return scores

    def find(self, node: int, known: frozenset[int]) -> _Choice:
        """Return the rule of a node, given the columns of the rules above it."""
        leaves, labels = self._spans[node], self.sample.labels
        parts = [self._spans[child] for child in self.tree.children(node)]
        starts = [part.start for part in parts]
        own = slice(*np.searchsorted(labels, [leaves.start, leaves.stop]))
        places = slice(*np.searchsorted(self._choosing, [own.start, own.stop]))
        rows, cap = self._choosing[places], self.sparsity.max_features
        children = np.searchsorted(starts, labels[rows], side="right") - 1

        def agree(sent: IndexArray) -> float:
            """Return the share of rows that go to their child, given the leaves they go to."""
            sides = np.searchsorted(starts, sent, side="right") - 1
            return self._agree(rows, sides == children)

        options: Any = {"labels": labels[rows], "known": known, "most": cap}
        find_wide = partial(self._find_wide, self._moments, leaves, rows, **options)
        if self.sparsity.is_free:
            return find_wide()[0]
        wide, is_hard = (None if cap is None else find_wide()), False
        if len(parts) == 2:
            within = slice(leaves.start, leaves.stop)
            by_all = self._scores[places, within].argmax(axis=1) + leaves.start
            least = agree(by_all if wide is None else wide[1])
            least -= TOLERANCE / np.log2(len(leaves))
            n_lost = 0 if wide is None else _count_lost(labels[rows], wide[1] == labels[rows])
            drawn = np.arange(own.start, own.stop, 1 + (own.stop - own.start) // CHOICE_ROWS)
            simple, share = self._find_simple(
                drawn, rows, starts[1], known=known, least=least, n_lost=n_lost
            )
            if simple is not None:
                return simple
            is_hard = cap is None and share < least - FAR_BELOW
        choice, sent = wide or find_wide()
        n_levels = np.log(len(leaves)) / np.log(len(parts))
        most = cap or int(len(choice.columns) / n_levels)
        if len(parts) == len(leaves) or most < 1 or is_hard:
            return choice
        # Only the children, where as few columns on the path tell them apart as well.
        merged = [moments.merge(parts) for moments in self._moments]
        near, sides = self._find_wide(
            merged, range(len(parts)), rows, labels=children, known=known, most=most
        )
        share, near_share = agree(sent), self._agree(rows, sides == children)
        n_lost = _count_lost(labels[rows], sides == children)
        n_empty = len(leaves) - len(np.unique(sent))
        is_worse = n_lost > n_empty or (n_lost == n_empty and near_share < share)
        return choice if is_worse else near

    def _agree(self, rows: IndexArray, is_right: NDArray[np.bool_]) -> float:
        weights = self.sample.weights[rows]
        return float(weights @ is_right / weights.sum())

    def _find_simple(
        self,
        drawn: IndexArray,
        rows: IndexArray,
        second: int,
        *,
        known: frozenset[int],
        least: float,
        n_lost: int,
    ) -> tuple[_Choice | None, float]:
        """Return the rule of one or two columns that divides two children, None if none does.

        It must divide enough of the rows left out, and most drawn rows of every cluster, but
        for as many clusters as are lost otherwise. Also the share of the rows left out that
        such a rule divides.
        """
        values, labels = self.sample.values, self.sample.labels
        is_second, is_right = labels[rows] >= second, np.zeros((2, len(rows)), dtype=bool)
        for half in (0, 1):
            own = self.sample.halves[rows] == half
            for at, plane in enumerate(self._find_planes(rows[own], is_second[own], known)):
                is_right[at, ~own] = plane.divide(values, rows[~own]) == is_second[~own]
        shares = [self._agree(rows, each) for each in is_right]
        if self.sparsity.max_features == 1:
            shares[1] = 0.0
        n_columns = 1 if shares[0] >= max(least, shares[1] - ONE_COLUMN) else 2
        if shares[n_columns - 1] < least:
            return None, max(shares)
        is_second = labels[drawn] >= second
        planes = self._find_planes(drawn, is_second, known)
        if len(planes) < n_columns:
            return None, max(shares)
        plane = planes[n_columns - 1]
        is_right = plane.divide(values, drawn) == is_second
        is_kept = _count_lost(labels[drawn], is_right) <= n_lost
        return (plane.as_choice() if is_kept else None), max(shares)

    def _find_planes(
        self, rows: IndexArray, is_second: NDArray[np.bool_], known: frozenset[int]
    ) -> list["_Plane"]:
        """Return the planes of one and of two columns that divide rows best, if any do."""
        sample = self.sample
        values, weights = sample.values[rows].astype(np.float64), sample.weights[rows]
        masses = weights @ ~is_second, weights @ is_second
        if not min(masses):
            return []
        means = [(weights * side) @ values for side in (~is_second, is_second)]
        means = [total / mass for total, mass in zip(means, masses, strict=True)]
        around = values - np.where(is_second[:, None], means[1], means[0])
        variances = weights @ around**2 / weights.sum()
        difference = means[1] - means[0]
        total = variances + difference**2
        separation = difference**2 / np.maximum(variances, 1e-6 * total + 1e-300)
        separation[total <= self._rounding] = 0.0  # the feature is constant here
        by_column = np.zeros(sample.n_columns)
        np.maximum.at(by_column, sample.columns, separation)
        handicap = dict.fromkeys(known, NOVELTY_SHARE * self.sparsity.novelty)
        columns = _order(by_column)[:N_SIMPLE]
        columns = np.sort(columns[by_column[columns] > 0.0])
        best = []
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
                direction /= distance  # the means are one apart
                cut = _find_cut(values[:, features] @ direction, is_second, weights)
                if cut is not None:
                    share = round(cut[1] - sum(handicap.get(one, 0.0) for one in chosen), 9)
                    key = share, float(f"{distance:.{DIGITS}g}")
                    planes.append(_Plane(np.sort(chosen), features, direction, cut[0], key))
            if not planes:
                break
            best.append(max(planes, key=lambda plane: plane.key))
        return best

    def _find_wide(
        self,
        moments: Sequence[_Moments],
        leaves: range,
        rows: IndexArray,
        *,
        labels: IndexArray,
        known: frozenset[int],
        most: int | None,
    ) -> tuple[_Choice, IndexArray]:
        """Return the rule that chooses among some leaves, and where it sends rows left out."""
        sample, within = self.sample, slice(leaves.start, leaves.stop)
        n_columns = sample.n_columns
        sizes = [n_columns] if self.sparsity.is_free else _falling_sizes(n_columns, most)
        keenness = np.ones(n_columns)
        keenness[[*known]] /= 1.0 + self.sparsity.novelty
        kept = [
            _remove_columns(each, within, sample.columns, sizes, keenness)
            for each in moments[:2]
        ]
        worth: dict[int, float] = {}
        sent: dict[int, IndexArray] = {}
        compared = [size for size in reversed(sizes) if size <= (most or n_columns)]
        for size in compared:
            if worth and 1.0 - sample.price * size < max(worth.values()):
                break  # it cannot be better, whatever it sorts
            sent[size] = np.empty(len(rows), dtype=np.intp)
            for half in (0, 1):
                features = kept[half][size]
                weights, offsets = moments[half].discriminate(within, features)
                out = sample.halves[rows] != half
                scores = sample.values[np.ix_(rows[out], features)] @ weights.T + offsets
                sent[size][out] = leaves.start + scores.argmax(axis=1)
            worth[size] = self._agree(rows, sent[size] == labels) - sample.price * size
        best = max(worth, key=lambda size: worth[size])
        share = min(worth[best] + sample.price * best, 1.0)
        error = np.sqrt(share * (1.0 - share) / len(rows))
        size = min(size for size in worth if worth[size] >= worth[best] - error)
        until = sizes[: sizes.index(size) + 1]
        final = _remove_columns(moments[2], within, sample.columns, until, keenness)
        # More columns, where so few would leave a cluster without rows and others do not.
        for features in (*(final[more] for more in compared if more >= size), final[size]):
            weights, offsets = moments[2].discriminate(within, features)
            scores = sample.values[np.ix_(rows, features)] @ weights.T + offsets
            if len(np.unique(scores.argmax(axis=1))) == len(leaves):
                break
        columns, is_near = np.unique(sample.columns[features]), moments is not self._moments
        return _Choice(columns, weights, offsets, is_near), sent[size]


def _count_lost(labels: IndexArray, is_right: NDArray[np.bool_]) -> int:
    """Count the clusters of which most rows do not go where they belong."""
    clusters = np.unique(labels, return_inverse=True)[1]
    return int(np.count_nonzero(np.bincount(clusters, ~is_right) > 0.5 * np.bincount(clusters)))


def _falling_sizes(n_columns: int, most: int | None) -> list[int]:
    """Return numbers of columns from all down to one, with the most that a rule may use.

    Few are removed at a time: of columns that say the same, each is worth little.
    """
    sizes = [n_columns]
    while sizes[-1] > 1:
        sizes.append(min(int(STEP * sizes[-1]), sizes[-1] - 1))
    return sorted({*sizes, min(most or n_columns, n_columns)}, reverse=True)


class _Plane(NamedTuple):
    """Rows whose weighted sum of a few features exceeds a threshold go to the second child."""

    columns: IndexArray
    features: IndexArray
    weights: Array
    threshold: float
    key: tuple[float, float]  # by which it is chosen: the rows on their side, the distance

    def divide(self, values: Array, rows: IndexArray) -> NDArray[np.bool_]:
        """Return which rows go to the second child."""
        is_second: NDArray[np.bool_] = (
            values[np.ix_(rows, self.features)] @ self.weights > self.threshold
        )
        return is_second

    def as_choice(self) -> _Choice:
        weights = 0.5 * np.stack([-self.weights, self.weights])
        offsets = 0.5 * np.array([self.threshold, -self.threshold])
        return _Choice(self.columns, weights, offsets, is_near=True)


def _find_cut(
    scores: Array, is_second: NDArray[np.bool_], weights: Array
) -> tuple[float, float] | None:
    """Return the threshold that divides rows best, of equals in the widest gap; None if equal.

    Also the share of the rows that are on their side.
    """
    order = np.argsort(scores, kind="stable")
    ordered, own = scores[order], (weights * np.where(is_second, -1.0, 1.0))[order]
    gaps = np.diff(ordered)
    # Rows of equal cells may differ by rounding, and stay together.
    gaps[gaps <= 1e-10 * np.abs(ordered).max(initial=0.0)] = 0.0
    if not len(gaps) or not gaps.max() > 0.0:
        return None
    right = np.cumsum(own)[:-1] + weights @ is_second
    right[gaps <= 0.0] = -np.inf
    ties = np.flatnonzero(right >= right.max() - 1e-9 * weights.sum())
    at = ties[gaps[ties].argmax()]
    return float(ordered[at] + 0.5 * gaps[at]), float(right[at] / weights.sum())
