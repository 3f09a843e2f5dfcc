r"""The rules of a tree: for each split, the few features that tell its children apart.

The clusters score every row (:mod:`taxarbor.clusters`). At a split the target of a row is the
child of its best leaf there, and its weight is how much worse the best leaf of another child
fits: a row that fits both sides costs nothing. Rules minimise the squared hinge loss, weighted
so, over all pairs of the target and another child. Features are added one at a time, the one
that promises most first, and the weights fitted anew, until the next feature is not worth its
price. Of more than two children each has features of its own, and pays for them. The price is
in rows: a split of many rows, where much is at stake, may use more features than a small one.
Features that splits above use cost more. The features of one column of a table, such as the
values of a category, count as one: the first pays for the column, and others come for a part of
its price.

Rules decide: rows go where the rules send them, from the root down, and each rule is found for
the rows that arrive at it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._run import Run, node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.clusters import Clusters
from taxarbor.clusters._find import match_notes
from taxarbor.clusters._links import build_tree
from taxarbor.hierarchy import HierarchyBuilder, LinearRule
from taxarbor.hierarchy._route import place_rows
from taxarbor.rows import Rows, as_rows
from taxarbor.rows._problems import RuleProblem

NODE_ROWS = 5000
"""Rows per node on which a rule is sought. With 1,000 of them rules of as many features cost
half a point of the adjusted Rand index on five of the shared sets; with 2,500, hardly any."""

MIN_CHILD_ROWS = 50
"""Rows of each child that the sample has, if there are as many."""

LEAF_ROWS = 1250
"""Rows of each leaf on which rules are sought: with two leaves, half of the sample."""

PRICE, GROWTH = 0.0021, 0.25
"""What a feature must be worth: this share of the rows of an average leaf, and more at a node
that is larger, by this power of how many times. A lower price buys more features for less; with
one that is the same for all nodes the first rules of large trees become long."""

MIN_WORTH = 0.5
"""And at least that, whatever the size: the loss of one row that stands on the border."""

SOFTNESS = 4.0
"""How much better, in halves of a squared distance, a row fits one side than the other if its
weight is tanh(1/2). One would be right if leaves were normal with the scatter that they are
given; four cost least on the shared sets, at as many features."""

RIDGE = 1e-3
"""Weight of the squared weights, for features of unit variance."""

SCORES_AT_ONCE = 1_000_000
"""Scores, rows times leaves, that are held at a time."""

DRAWN = 7
"""What tells the hashes of these rows from those of others."""

NOT_DIVIDED = "no rule that divides its rows was found"
TOO_SMALL = "a child would have fewer than min_leaf_size rows"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """How few features a rule should use.

    Attributes
    ----------
    novelty : float
        By how many times its price a feature costs more that a split above uses already.
    max_features : int or None
        The most columns that a rule may use.
    owner : array of shape (n_features,) or None
        The column that each feature is of; None: each is one of its own.
    """

    novelty: float = 1.0
    max_features: int | None = None
    owner: IndexArray | None = None

    def known(self, above: NDArray[np.bool_], rule: LinearRule) -> NDArray[np.bool_]:
        """Return which features are of columns in use, above a node and by its rule."""
        used = rule.weights.any(axis=0)
        if self.owner is not None:
            used = np.isin(self.owner, self.owner[used])
        return np.asarray(above | used)


def find_rules(
    clusters: Clusters,
    X: Any,
    sparsity: Sparsity,
    run: Run,
    *,
    branching: int = 2,
    max_depth: int | None = None,
    min_leaf_size: int = 1,
) -> HierarchyBuilder:
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
        The most children per split: pairs are gathered as far as a rule can tell them apart.
    max_depth : int, optional
        Greatest depth of a leaf.
    min_leaf_size : int
        Least number of rows of a leaf: smaller ones are removed, and their rows go to siblings.
    """
    if clusters.scores is None:
        return clusters.tree
    sample = _draw_rule_sample(clusters, X, run.seed)
    search = _Search(clusters.tree, sample, clusters.scores, sparsity)
    descent = _Descent(search, branching)
    for level in _levels(clusters.tree):
        nodes = [node for node in level if descent.depth.get(node, max_depth) != max_depth]
        for node, division in zip(nodes, run.each(descent.divide, nodes), strict=True):
            if division is not None:
                descent.go_on(node, division)
    tree = _build(clusters.tree, descent)
    while True:
        labels = place_rows(tree.freeze(order=False), X, n_threads=run.width)
        counts = np.bincount(labels, minlength=tree.n_leaves)
        small = _smallest_children(tree, counts, max(min_leaf_size, 1))
        if tree.n_leaves == 1 or not small:
            break
        tree = _remove_leaves(tree, small)
    tree.resize(counts)
    notes = [clusters.tree.note(leaf) for leaf in clusters.tree.leaves]
    for position, note in match_notes(labels, clusters.labels, notes).items():
        tree.refuse(tree.leaves[position], note)
    return tree


@final
@dataclass(frozen=True, slots=True, eq=False)
class _RuleSample:
    """Some rows of each leaf, which stand for all: what rules are sought on."""

    rows: Rows
    places: IndexArray  # the leaf of each, from left to right
    chances: Array  # evenly distributed between 0 and 1, the lowest of each leaf
    weights: Array  # how many rows of the same leaf each stands for


def _draw_rule_sample(clusters: Clusters, X: Any, seed: int) -> _RuleSample:
    """Return the rows of lowest hash of each leaf."""
    labels, n_leaves = clusters.labels, clusters.tree.n_leaves
    hashes = native.hashes(node_seed(seed, (DRAWN,)), np.arange(len(labels)))
    order = np.lexsort((hashes, labels))
    places = labels[order].astype(np.intp)
    rank = np.arange(len(order)) - np.searchsorted(places, places)
    drawn, places = order[rank < LEAF_ROWS], places[rank < LEAF_ROWS]
    sizes = np.bincount(labels, minlength=n_leaves)
    weights = (sizes / np.minimum(sizes, LEAF_ROWS).clip(1))[places]
    rows = as_rows(X, center=np.zeros(X.shape[1])).take(drawn)
    return _RuleSample(rows, places, hashes[drawn] / 2.0**64, weights)


class _Division(NamedTuple):
    children: tuple[int, ...]
    rule: LinearRule
    sides: IndexArray


@final
class _Descent:
    """The rows of a sample on their way down a tree."""

    def __init__(self, search: "_Search", branching: int) -> None:
        rows = search.sample.rows
        self._search, self._branching = search, branching
        self._arrived: dict[int, IndexArray] = {0: np.arange(rows.n_rows)}
        self._known = {0: np.zeros(rows.n_features, dtype=bool)}
        self.depth = {0: 0}  # of the nodes that rows have arrived at
        self.made: dict[int, _Division] = {}

    def size(self, node: int) -> int:
        """Return about how many rows have arrived at a node."""
        return max(round(float(self._search.sample.weights[self._arrived[node]].sum())), 1)

    def divide(self, node: int) -> _Division | None:
        """Divide the rows of a node among as many children as can be told apart."""
        own, known = self._arrived[node], self._known[node]
        for children in _choices(self._search.tree, node, self._branching):
            if len(own) < len(children):
                continue
            rule = self._search.find(node, children, own, known)
            seen = self._search.sample.rows.take(own, center=rule.center)
            sides = seen.best(rule.weights, rule.offsets)
            if np.bincount(sides, minlength=len(children)).all():
                return _Division(children, rule, sides)
            if len(children) == 2:
                return self._move_threshold(children, rule, own)
        return None

    def _move_threshold(
        self, children: tuple[int, ...], rule: LinearRule, own: IndexArray
    ) -> _Division | None:
        """Divide rows that a rule sends all to one child where both get about their share."""
        sample, tree = self._search.sample, self._search.tree
        seen = sample.rows.take(own, center=rule.center)
        scores = seen.scores(rule.weights)
        values, at = np.unique(scores[:, 0] - scores[:, 1], return_inverse=True)
        if len(values) < 2:
            return None
        below = np.cumsum(np.bincount(at, weights=sample.weights[own]))
        first, second = (tree.size(child) for child in children)
        cut = int(np.abs(below[:-1] - below[-1] * second / (first + second)).argmin())
        threshold = 0.5 * (float(values[cut]) + float(values[cut + 1]))
        offsets = np.array([-0.5 * threshold, 0.5 * threshold], dtype=rule.dtype)
        moved = LinearRule(rule.weights, rule.center, offsets)
        sides = seen.best(moved.weights, moved.offsets)
        return _Division(children, moved, sides) if 0 < sides.sum() < len(sides) else None

    def go_on(self, node: int, division: _Division) -> None:
        """Send the rows of a node to its children."""
        own, sparsity = self._arrived.pop(node), self._search.sparsity
        known = sparsity.known(self._known.pop(node), division.rule)
        for side, child in enumerate(division.children):
            self._arrived[child], self._known[child] = own[division.sides == side], known
            self.depth[child] = self.depth[node] + 1
        self.made[node] = division


def _choices(plan: HierarchyBuilder, node: int, branching: int) -> Iterator[tuple[int, ...]]:
    """Return the children of a node when pairs are gathered, then fewer and fewer."""
    choices = [plan.children(node)]
    while len(choices[-1]) < branching:
        inner = [child for child in choices[-1] if plan.children(child)]
        if not inner:
            break
        first = min(inner, key=lambda child: plan.children(child)[0])  # the one split first
        at = choices[-1].index(first)
        choices.append((*choices[-1][:at], *plan.children(first), *choices[-1][at + 1 :]))
    return reversed(choices)


def _levels(tree: HierarchyBuilder) -> Iterator[list[int]]:
    """Yield the nodes that were split, those of one depth together, from the root down."""
    by_depth: dict[int, list[int]] = {}
    for node in sorted(tree.inner):
        by_depth.setdefault(tree.depth(node), []).append(node)
    for _, level in sorted(by_depth.items()):
        yield level


def _build(plan: HierarchyBuilder, descent: _Descent) -> HierarchyBuilder:
    """Return the plan's tree with rules, its nodes made in the same order."""
    made = descent.made
    splits = {node: made[node].children for node in plan.inner if node in made}
    sizes = np.zeros(plan.n_nodes, dtype=np.intp)
    for node in [0, *(child for parts in splits.values() for child in parts)]:
        if node not in splits:
            sizes[node] = descent.size(node)
    for node in reversed(splits):
        sizes[node] = sizes[list(splits[node])].sum()
    tree, node_of = build_tree(splits, 0, sizes)
    for node in splits:
        tree.explain(node_of[node], made[node].rule)
        tree.record(node_of[node], **plan.recorded(node))
    for node, leaf in node_of.items():
        if node not in splits:
            tree.refuse(leaf, NOT_DIVIDED if plan.children(node) else "")
    return tree


def _smallest_children(tree: HierarchyBuilder, counts: IndexArray, least: int) -> set[int]:
    """Return the leaves of fewer rows than that, of each parent the smallest one."""
    smallest: dict[int, tuple[int, int]] = {}
    for leaf, n_rows in zip(tree.leaves, counts.tolist(), strict=True):
        parent = tree.parents[leaf]
        if n_rows < least and (n_rows, leaf) < smallest.get(parent, (least, 0)):
            smallest[parent] = n_rows, leaf
    return {leaf for _, leaf in smallest.values()}


def _remove_leaves(tree: HierarchyBuilder, gone: set[int]) -> HierarchyBuilder:
    """Remove leaves: their siblings get the rows, and a single one takes its parent's place."""
    kept = {
        node: [k for k, child in enumerate(tree.children(node)) if child not in gone]
        for node in tree.inner
    }

    def remaining(node: int) -> int:
        while len(kept.get(node, ())) == 1:
            node = tree.children(node)[kept[node][0]]
        return node

    splits = {
        node: tuple(remaining(tree.children(node)[k]) for k in own)
        for node, own in kept.items()
        if len(own) > 1
    }
    sizes = np.array([tree.size(node) for node in range(tree.n_nodes)])
    for node in reversed(splits):
        sizes[node] = sizes[list(splits[node])].sum()
    new, node_of = build_tree(splits, remaining(0), sizes)
    rules, parents = tree.freeze(order=False).rules, tree.parents
    for node, made in node_of.items():
        if node not in splits:
            is_alone = len(kept.get(parents[node], ())) == 1
            new.refuse(made, TOO_SMALL if is_alone else tree.note(node))
            continue
        rule = rules[node]
        assert rule is not None
        own = kept[node]
        new.record(made, **tree.recorded(node))
        new.explain(made, LinearRule(rule.weights[own], rule.center, rule.offsets[own]))
    return new


@final
class _Search:
    """What the search of every node's rule has in common."""

    def __init__(
        self,
        tree: HierarchyBuilder,
        sample: _RuleSample,
        scores: LinearRule,
        sparsity: Sparsity,
    ) -> None:
        self.tree, self.sample, self.sparsity = tree, sample, sparsity
        self._scores = scores  # how well rows fit the leaves, from left to right
        # The leaves of each node.
        self._spans = {leaf: slice(at, at + 1) for at, leaf in enumerate(tree.leaves)}
        for node in reversed(tree.inner):
            children = tree.children(node)
            first, last = self._spans[children[0]], self._spans[children[-1]]
            self._spans[node] = slice(first.start, last.stop)
        rows = sample.rows
        # Of the widest feature.
        self._rounding = 16.0 * float(np.finfo(rows.dtype).eps * rows.spread().max())

    def find(
        self,
        node: int,
        children: tuple[int, ...],
        own: IndexArray,
        known: NDArray[np.bool_],
    ) -> LinearRule:
        """Return a sparse rule for the rows of one node, given the features used above it."""
        drawn, counts = self._draw(children, own)
        targets, importance = self._soft_targets(drawn, children)
        n_own, n_all = float(self.sample.weights[own].sum()), self.tree.size(0)
        average = n_all / self._scores.n_children
        worth = PRICE * average * (n_own / average) ** GROWTH
        return find_rule(
            self.sample.rows.take(drawn),
            targets,
            importance * counts,
            1.0 + self.sparsity.novelty * known,
            n_children=len(children),
            price=max(worth, MIN_WORTH) * float(counts.sum()) / n_own,
            sparsity=self.sparsity,
            rounding=self._rounding,
        )

    def _draw(self, children: tuple[int, ...], own: IndexArray) -> tuple[IndexArray, Array]:
        """Return which rows of a node its rule is sought on, and for how many each counts."""
        weights, chances = self.sample.weights[own], self.sample.chances[own]
        share = min(NODE_ROWS / float(weights.sum()), 1.0)
        # Of a leaf of which fewer were drawn than that, all are, and count for more.
        chosen, counts = chances < share, np.maximum(weights * share, 1.0)
        if chosen.all():
            return own, counts
        # Rows that rules brought here from elsewhere are drawn as a part of their own.
        side_of = np.full(self._scores.n_children, len(children))
        for side, child in enumerate(children):
            side_of[self._spans[child]] = side
        sides = side_of[self.sample.places[own]]
        n_sides = len(children) + 1
        n_drawn = np.bincount(sides[chosen], minlength=n_sides)
        if (n_drawn < np.minimum(np.bincount(sides, minlength=n_sides), MIN_CHILD_ROWS)).any():
            order = np.lexsort((chances, sides))
            rank = np.arange(len(order)) - np.searchsorted(sides[order], sides[order])
            chosen[order[rank < MIN_CHILD_ROWS]] = True
        return own[chosen], counts[chosen]

    def _soft_targets(
        self, drawn: IndexArray, children: tuple[int, ...]
    ) -> tuple[NDArray[np.int32], Array]:
        """Return the child of each row's best leaf, and a weight from 0 to 1."""
        best = self._best_scores(drawn, children)
        highest = best.max(axis=0)
        if len(best) == 2:  # as below, but faster
            labels, second = (best[1] > best[0]).astype(np.int32), best.min(axis=0)
        else:
            labels = best.argmax(axis=0).astype(np.int32)
            second = np.partition(best, -2, axis=0)[-2]
        weights: Array = np.tanh(0.5 / SOFTNESS * (highest - second)).astype(np.float64)
        weights[:] = weights if weights.any() else 1.0
        counts = np.bincount(labels, minlength=len(children))
        sizes = np.array([self.tree.size(child) for child in children])
        for child in np.flatnonzero(counts == 0):
            # An empty child gets the rows with the smallest loss of score.
            size = max(len(labels) * sizes[child] // (2 * sizes.sum()), 1)
            given = np.argsort(highest - best[child], kind="stable")[:size]
            labels[given], weights[given] = child, weights.max()
        return labels, weights

    def _best_scores(self, drawn: IndexArray, children: tuple[int, ...]) -> Array:
        """Return how well each row fits the best leaf of each child, a row per child."""
        rows, scores = self.sample.rows, self._scores
        begin, end = self._spans[children[0]].start, self._spans[children[-1]].stop
        weights, offsets = scores.weights[begin:end], scores.offsets[begin:end]
        best = np.empty((len(children), len(drawn)), dtype=rows.dtype)
        step = max(SCORES_AT_ONCE // len(weights), 1)
        for first in range(0, len(drawn), step):
            some = slice(first, first + step)
            seen = rows.take(drawn[some], center=scores.center)
            # Long rows are summed up faster than short columns.
            fit = np.ascontiguousarray(seen.scores(weights).T) + offsets[:, None]
            for child, own in zip(children, best[:, some], strict=True):
                span = self._spans[child]
                fit[span.start - begin : span.stop - begin].max(axis=0, out=own)
        return best


def find_rule(
    rows: Rows,
    labels: NDArray[np.int32],
    weights: Array,
    penalty_factor: Array,
    *,
    n_children: int,
    price: float,
    sparsity: Sparsity,
    rounding: float = 0.0,
) -> LinearRule:
    """Return a sparse rule that sends rows to their children.

    The weights say what a row in another child costs; a feature must lower the cost by its
    penalty factor times the price, and one of factor 0 is not used at all. Nor is one that
    deviates by no more than its own rounding or the one given.
    """
    problem = RuleProblem(
        labels=labels,
        n_children=n_children,
        weights=weights,
        penalty_factor=penalty_factor,
        owner=sparsity.owner,
        rounding=rounding,
        price=price,
        ridge=RIDGE,
        max_features=sparsity.max_features or 0,
    )
    found, offsets = rows.find_rule(problem)
    if n_children == 2:
        found = np.concatenate([0.5 * found, -0.5 * found])
        offsets = np.concatenate([0.5 * offsets, -0.5 * offsets])
    return LinearRule(*(part.astype(rows.dtype) for part in (found, rows.center, offsets)))
