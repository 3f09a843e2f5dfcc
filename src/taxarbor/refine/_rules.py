r"""The rules of a tree: for each split, the few features that tell its children apart.

The leaves of a whole tree compete for the rows (:mod:`taxarbor.refine._leaves`), so a row knows
how well it fits each leaf. At a split it wants the child of its best leaf there, and how much
it cares is how much worse the best leaf of another child is: a row that fits both sides costs
nothing. Rules minimise the squared hinge loss, weighted so. Features are added one at a time,
the one that promises most first, and all weights fitted anew, until the next feature is not
worth its price. The price is in rows: a split of many rows, where much is at stake, may use
more features than a small one. Features that splits above it use cost more.

Rules either describe the tree, which stays as it is, or decide: rows then go where the rules
send them, from the root down, and each rule is found for the rows that arrive at it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import Run, node_rng
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import HierarchyBuilder, LinearRule, Placement
from taxarbor.hierarchy._build import MOVED
from taxarbor.rows import Rows
from taxarbor.rows._base import RuleProblem, best_scores
from taxarbor.split._starts import true_spread

SAMPLE = 5000
"""Rows per node on which a rule is sought. With 1,000 of them rules of as many features cost
half a point of the adjusted Rand index on five of the shared sets; with 2,500, hardly any."""

LEAST = 50
"""Rows of each child that the sample has, if there are as many."""

PRICE, GROWTH = 0.0018, 0.25
"""What a feature must be worth: this share of the rows of an average leaf, and more at a node
that is larger, by this power of how many times. A lower price buys more features for less; with
one that is the same for all nodes the first rules of large trees become long."""

LEAST_WORTH = 0.5
"""And at least that, whatever the size: the loss of one row that stands on the border."""

DOUBT = 4.0
"""How much better, in halves of a squared distance, a row fits one side than the other if it
cares by tanh(1/2). One would be right if leaves were normal with the scatter that they are
given; four cost least on the shared sets, at as many features."""

RIDGE = 1e-3
"""Weight of the squared weights, for features of unit variance."""

CANDIDATES = 1024
"""Features of a node, the most promising, that are looked at closely."""

NEAREST = 8
"""Thresholds that are tried where the best one breaks the sizes of leaves."""

REFUSED = "no rule that divides its rows was found"


@final
@dataclass(frozen=True, slots=True)
class Sparsity:
    """How few features a rule should use.

    Attributes
    ----------
    novelty : float
        By how many times its price a feature costs more that a split above uses already.
    max_features : int or None
        The most features that a rule may use.
    """

    novelty: float = 1.0
    max_features: int | None = None


def describe(
    tree: HierarchyBuilder, rows: Rows, placement: Placement, sparsity: Sparsity, run: Run
) -> None:
    """Give each split of a tree a rule; no row moves.

    Parameters
    ----------
    tree : HierarchyBuilder
        The tree, its rows where they stay.
    rows : Rows
        All rows, with all features.
    placement : Placement
        How well rows fit the leaves.
    sparsity : Sparsity
        How few features the rules use.
    run : Run
        The seed, and where to run.
    """
    search = _Search.of(tree, rows, placement, sparsity, run)

    def find(node: int) -> LinearRule:
        return search.rule(node, tree.rows(node), tree.lineage(node)[1])

    for level in _levels(tree):
        for node, rule in zip(level, run.each(find, level), strict=True):
            tree.explain(node, rule)


def decide(
    plan: HierarchyBuilder,
    rows: Rows,
    placement: Placement,
    sparsity: Sparsity,
    run: Run,
    *,
    min_leaf_size: int = 1,
    max_leaf_size: int | None = None,
) -> HierarchyBuilder:
    """Return a tree of the same shape whose rules alone decide where rows go.

    Parameters
    ----------
    plan : HierarchyBuilder
        The tree as it should be.
    rows, placement, sparsity, run
        As in :func:`describe`.
    min_leaf_size, max_leaf_size : int
        Sizes that leaves keep to, where those of the plan do. A node whose rows no rule
        divides this way becomes a leaf.
    """
    search = _Search.of(plan, rows, placement, sparsity, run)
    sizes = np.array([plan.size(leaf) for leaf in plan.leaves])
    most = rows.n_rows if max_leaf_size is None else max_leaf_size
    bounds = np.minimum(sizes, min_leaf_size), np.maximum(sizes, most)
    arrived: dict[int, IndexArray] = {0: np.arange(rows.n_rows)}
    lineage: dict[int, tuple[LinearRule, ...]] = {0: ()}
    rules: dict[int, LinearRule] = {}
    sides: dict[int, IndexArray] = {}

    def find(node: int) -> tuple[LinearRule, IndexArray] | None:
        own = arrived[node]
        if len(own) < len(plan.children(node)):
            return None
        rule = search.rule(node, own, lineage[node])
        spans = [search.spans[child] for child in plan.children(node)]
        least, most = (np.array([bound[span].sum() for span in spans]) for bound in bounds)
        seen = rows.take(own, center=rows.center)
        found = _divide(seen, rule, least, most)
        if found is None and len(least) == 2:
            # What rows want may be too uneven, and few features leave many of them alike.
            n_first = max(least[0], len(own) - most[1]), min(most[0], len(own) - least[1])
            even = search.rule(node, own, lineage[node], n_first=n_first)
            found = _divide(seen, even, least, most)
        # A child with too few rows for all its leaves is better than no child.
        return found or _divide(seen, rule, np.minimum(least, min_leaf_size), most)

    for level in _levels(plan):
        there = [node for node in level if node in arrived]
        for node, found in zip(there, run.each(find, there), strict=True):
            if found is None:
                continue
            rules[node], sides[node] = found
            for side, child in enumerate(plan.children(node)):
                arrived[child] = arrived[node][sides[node] == side]
                lineage[child] = (*lineage[node], rules[node])
            del arrived[node]
    return _built(plan, rules, sides)


def _built(
    plan: HierarchyBuilder, rules: dict[int, LinearRule], sides: dict[int, IndexArray]
) -> HierarchyBuilder:
    """Return the plan's tree with other rows, its nodes made in the same order."""
    tree, node_of = HierarchyBuilder(plan.size(0)), {0: 0}
    for node in plan.inner:
        if node in node_of and node in rules:
            made = tree.add_split(node_of[node], sides[node], rules[node])
            tree.record(node_of[node], **plan.recorded(node))
            node_of |= dict(zip(plan.children(node), made, strict=True))
    for node, leaf in node_of.items():
        if node in rules:
            continue
        note = REFUSED if plan.children(node) else plan.note(node)
        if note and note != REFUSED and set(tree.rows(leaf)) != set(plan.rows(node)):
            note = note.removesuffix(MOVED) + MOVED
        tree.refuse(leaf, note)
    return tree


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What the search of every node's rule has in common."""

    tree: HierarchyBuilder
    rows: Rows
    places: IndexArray  # (n_rows,), the leaf that each row has in the tree, from left to right
    spans: dict[int, slice]  # the leaves of each node
    leaves: LinearRule  # how well rows fit the leaves, from left to right
    sparsity: Sparsity
    run: Run

    @classmethod
    def of(
        cls,
        tree: HierarchyBuilder,
        rows: Rows,
        placement: Placement,
        sparsity: Sparsity,
        run: Run,
    ) -> "_Search":
        spans = {leaf: slice(at, at + 1) for at, leaf in enumerate(tree.leaves)}
        for node in reversed(tree.inner):
            children = tree.children(node)
            spans[node] = slice(spans[children[0]].start, spans[children[-1]].stop)
        order = np.argsort([spans[int(leaf)].start for leaf in placement.leaves])
        rule = placement.rule
        fit = LinearRule(rule.weights[order], rule.center, rule.offsets[order])
        return cls(tree, rows, tree.labels, spans, fit, sparsity, run)

    def rule(
        self,
        node: int,
        own: IndexArray,
        lineage: tuple[LinearRule, ...],
        *,
        n_first: tuple[int, int] | None = None,
    ) -> LinearRule:
        """Return a sparse rule for the rows of one node, given those of its ancestors.

        With ``n_first``, as many rows, at least and at most, want the first of two children,
        and features have no price.
        """
        children = self.tree.children(node)
        ends = [self.spans[child].stop for child in children]
        # Rows that rules brought here from elsewhere are drawn as a part of their own.
        sides = np.searchsorted(ends, self.places[own], side="right")
        sides[self.places[own] < self.spans[node].start] = len(children)
        rng = node_rng(self.run.seed, self.tree.lineage(node)[0], stream=1)
        drawn = own[_sample(sides, rng)]
        few = self.rows.take(drawn)
        best = self._fit(few, children)
        labels, cares = self._wishes(best, children)
        if n_first is not None:
            least, most = (count * len(drawn) // len(own) for count in n_first)
            size = int(np.clip(np.count_nonzero(labels == 0), least, most))
            order = np.argsort(best[:, 1] - best[:, 0], kind="stable")
            labels[order], cares[:] = np.arange(len(order)) >= size, 1.0
        reluctance = np.ones(few.n_features)
        for rule in lineage:
            reluctance[rule.features] = 1.0 + self.sparsity.novelty
        reluctance[true_spread(few) == 0.0] = 0.0
        average = len(self.places) / self.leaves.n_children
        worth = PRICE * average * (len(own) / average) ** GROWTH
        price = max(worth, LEAST_WORTH) * len(drawn) / len(own)
        return find_rule(
            few,
            labels,
            cares,
            reluctance,
            n_children=len(children),
            price=price if n_first is None else 0.0,
            max_features=self.sparsity.max_features,
        )

    def _fit(self, few: Rows, children: tuple[int, ...]) -> Array:
        """Return how well each row fits the best leaf of each child."""
        begin, end = self.spans[children[0]].start, self.spans[children[-1]].stop
        seen = few.take(np.arange(few.n_rows), center=self.leaves.center)
        fit = seen.scores(self.leaves.weights[begin:end]).astype(np.float64)
        fit += self.leaves.offsets[begin:end]
        edges = [self.spans[child].start - begin for child in children]
        return np.maximum.reduceat(fit, edges, axis=1)

    def _wishes(
        self, best: Array, children: tuple[int, ...]
    ) -> tuple[NDArray[np.int32], Array]:
        """Return which child each row wants, and how much it cares, from 0 to 1."""
        labels, highest = best.argmax(axis=1).astype(np.int32), best.max(axis=1)
        second = np.partition(best, -2, axis=1)[:, -2]
        weights: Array = np.tanh(0.5 / DOUBT * (highest - second))
        weights[:] = weights if weights.any() else 1.0
        counts = np.array([self.tree.size(child) for child in children])
        for child in np.flatnonzero(np.bincount(labels, minlength=len(children)) == 0):
            # Nobody's first choice, but there must be somebody: those who mind least.
            size = max(len(best) * counts[child] // (2 * counts.sum()), 1)
            given = np.argsort(highest - best[:, child], kind="stable")[:size]
            labels[given], weights[given] = child, weights.max()
        return labels, weights


def find_rule(
    rows: Rows,
    labels: NDArray[np.int32],
    weights: Array,
    reluctance: Array,
    *,
    n_children: int,
    price: float,
    max_features: int | None = None,
) -> LinearRule:
    """Return a sparse rule that sends rows to the children that they want.

    The weights say what a row in another child costs; a feature must lower the cost by its
    reluctance times the price, and one of no reluctance is not used at all.
    """
    problem = RuleProblem(
        labels=labels,
        n_children=n_children,
        weights=weights,
        reluctance=reluctance,
        price=price,
        ridge=RIDGE,
        max_features=max_features or 0,
        max_candidates=CANDIDATES,
    )
    found, offsets = rows.find_rule(problem)
    if n_children == 2:
        found = np.concatenate([0.5 * found, -0.5 * found])
        offsets = np.concatenate([0.5 * offsets, -0.5 * offsets])
    rule = LinearRule(*(part.astype(rows.dtype) for part in (found, rows.center, offsets)))
    if n_children == 2 or not rule.weights.any():
        return rule
    # One child against the rest hides a child that lies between two others.
    other = _nearest(rows, labels, weights, rule)
    costs = [float(weights[_send(rows, one) != labels].sum()) for one in (rule, other)]
    return rule if costs[0] <= costs[1] else other


def _nearest(
    rows: Rows, labels: NDArray[np.int32], weights: Array, rule: LinearRule
) -> LinearRule:
    """Return the rule of the nearest mean of a child, on the features of another rule.

    In units of the features' deviations; a child without rows has the mean of all.
    """
    features, K = rule.features, rule.n_children
    member = np.where(labels[:, None] == np.arange(K), weights[:, None], 0.0)
    total = np.maximum(member.sum(axis=0), np.finfo(np.float64).tiny)
    means = rows.adjoint(member.astype(rows.dtype))[:, features] / total[:, None]
    squares = np.diag(rows.gram(np.arange(rows.n_rows), features))
    W = np.zeros(rule.weights.shape)
    W[:, features] = means / (squares / rows.n_rows)
    offsets = -0.5 * np.einsum("kj,kj->k", W[:, features], means)
    return LinearRule(*(part.astype(rows.dtype) for part in (W, rows.center, offsets)))


def _levels(tree: HierarchyBuilder) -> Iterator[list[int]]:
    """Yield the nodes that were split, those of one depth together, from the root down."""
    by_depth: dict[int, list[int]] = {}
    for node in sorted(tree.inner):
        by_depth.setdefault(tree.depth(node), []).append(node)
    for _, level in sorted(by_depth.items()):
        yield level


def _sample(parts: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Draw rows, of each part some."""
    n = len(parts)
    if n <= SAMPLE:
        return np.arange(n)
    chosen = []
    for part, count in enumerate(np.bincount(parts).tolist()):
        size = min(count, max(LEAST, SAMPLE * count // n))
        drawn = rng.choice(count, size, replace=False, shuffle=False)
        chosen.append(np.flatnonzero(parts == part)[drawn])
    return np.sort(np.concatenate(chosen))


def _send(rows: Rows, rule: LinearRule) -> IndexArray:
    """Return the child that a rule sends each row to."""
    seen = rows.take(np.arange(rows.n_rows), center=rule.center)
    return best_scores(seen, rule.weights, rule.offsets)


def _divide(
    rows: Rows, rule: LinearRule, least: IndexArray, most: IndexArray
) -> tuple[LinearRule, IndexArray] | None:
    """Return the rule, its thresholds moved if sizes ask for it, and where it sends rows."""
    sides = _send(rows, rule)
    if _fits(sides, least, most):
        return rule, sides
    if not rule.weights.any():
        return None
    seen = rows.take(np.arange(rows.n_rows), center=rule.center)
    scores = seen.scores(rule.weights).astype(np.float64) + rule.offsets
    for offsets in _thresholds(scores, sides, least, most):
        moved = LinearRule(
            rule.weights, rule.center, (rule.offsets + offsets).astype(rule.dtype)
        )
        sides = _send(rows, moved)
        if _fits(sides, least, most):
            return moved, sides
    return None


def _fits(sides: IndexArray, least: IndexArray, most: IndexArray) -> bool:
    counts = np.bincount(sides, minlength=len(least))
    return bool(((least <= counts) & (counts <= most)).all())


def _thresholds(
    scores: Array, sides: IndexArray, least: IndexArray, most: IndexArray
) -> Iterator[Array]:
    """Yield what to add to the scores of the children for them to have their sizes.

    Of two children, thresholds between rows that differ, those nearest to the best one first;
    of more, each child that is too small or too large is changed in turn.
    """
    n, K = scores.shape
    if K == 2:
        along = np.sort(scores[:, 1] - scores[:, 0])
        lower, upper = max(least[0], n - most[1]), min(most[0], n - least[1])
        cuts = np.arange(max(lower, 1), min(upper, n - 1) + 1)
        cuts = cuts[along[cuts - 1] < along[cuts]]
        nearest = np.argsort(np.abs(cuts - np.count_nonzero(sides == 0)), kind="stable")
        for cut in cuts[nearest[:NEAREST]]:
            middle = 0.5 * (along[cut - 1] + along[cut])
            yield np.array([0.5 * middle, -0.5 * middle])
        return
    added = np.zeros(K)
    for _ in range(NEAREST * K):
        now = scores + added
        counts = np.bincount(now.argmax(axis=1), minlength=K)
        wrong = np.maximum(least - counts, 0) + np.maximum(counts - most, 0)
        if not wrong.any():
            break
        child = int(wrong.argmax())
        others = np.delete(now, child, axis=1).max(axis=1)
        lacking = np.sort(others - now[:, child])
        size = int(np.clip(counts[child], least[child], min(most[child], n - 1)))
        added[child] += 0.5 * (lacking[size - 1] + lacking[min(size, n - 1)])
    yield added
