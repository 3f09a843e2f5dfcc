r"""The rules of a tree: for each split, the few features that tell its children apart.

The leaves of a whole tree compete for the rows (:mod:`taxarbor.refine._leaves`), so a row knows
how well it fits each leaf. At a split it wants the child of its best leaf there, and how much
it cares is how much worse the best leaf of another child is: a row that fits both sides costs
nothing. Rules minimise the squared hinge loss, weighted so, over all pairs of the wanted child
and another. Features are added one at a time, the one that promises most first, and the weights
fitted anew, until the next feature is not worth its price. Of more than two children each has
features of its own, and pays for them. The price is in rows: a split of many rows, where much
is at stake, may use more features than a small one. Features that splits above use cost more.
The features of one column of a table, such as the values of a category, count as one: the first
pays for the column, and others come for a part of its price.

Rules either describe the tree, which stays as it is, or decide: rows then go where the rules
send them, from the root down, and each rule is found for the rows that arrive at it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import Run, node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.grow import StoppingRule
from taxarbor.hierarchy import HierarchyBuilder, LinearRule
from taxarbor.refine._clusters import Clusters
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._links import built, gather, undone
from taxarbor.rows import Rows, as_rows
from taxarbor.rows._base import RuleProblem, best_scores
from taxarbor.sweep._copies import Drawn, draw, limits

SAMPLE = 5000
"""Rows per node on which a rule is sought. With 1,000 of them rules of as many features cost
half a point of the adjusted Rand index on five of the shared sets; with 2,500, hardly any."""

LEAST = 50
"""Rows of each child that the sample has, if there are as many."""

PRICE, GROWTH = 0.0021, 0.25
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

MOST = 1_000_000
"""Scores, rows times leaves, that are held at a time."""

OF_LEAF = 1250
"""Rows of each leaf on which rules are sought: with two leaves, half of the sample."""

CELLS, FEWEST = 1 << 27, 250
"""Cells of all these rows, at most, and rows of each leaf that there are anyway."""

NEAREST = 8
"""Thresholds that are tried where the best one breaks the sizes of leaves."""

RULES = 7
"""What tells the hashes of these rows from those of others."""

REFUSED = "no rule that divides its rows was found"


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Witnesses:
    """Some rows of each leaf, which stand for all: what rules are sought on.

    Attributes
    ----------
    rows : Rows
        Copies of rows, with all features.
    places : int array of shape (n_rows,)
        The leaf of each, from left to right.
    chances : array of shape (n_rows,)
        Evenly distributed between 0 and 1, the lowest of each leaf.
    weights : array of shape (n_rows,)
        How many copies of the same leaf each stands for.
    """

    rows: Rows
    places: IndexArray
    chances: Array
    weights: Array


def find_rules(
    clusters: Clusters,
    coordinates: Coordinates,
    sparsity: Sparsity,
    run: Run,
    *,
    describes: bool,
    **how: Any,
) -> tuple[HierarchyBuilder, dict[int, int] | None]:
    """Return a tree with rules, and which nodes of the clusters' its leaves stand for, if any.

    Rules are sought where the rows are that were drawn of the leaves. They describe the tree,
    whose leaves then are those of the clusters, or decide; further settings are for that.
    """
    assert clusters.placement is not None
    seek = _Seek(clusters.tree, clusters.placement, sparsity, describes, how)
    found: tuple[HierarchyBuilder, dict[int, int] | None]
    found = _heard(clusters, coordinates, run.seed, seek)
    return found


def _heard(clusters: Clusters, coordinates: Coordinates, seed: int, then: Any) -> Any:
    """Draw rows of all leaves, and return what is made of them."""
    blocks, copies, sizes = coordinates.blocks, coordinates.copies, clusters.leafing.counts
    cells = len(sizes) * max(blocks.n_cells, 1.0)
    most = int(np.clip(CELLS / cells, FEWEST, OF_LEAF))
    numbers = (np.cumsum(blocks.sizes) - blocks.sizes).tolist()
    return blocks.engine.sweep(
        draw if blocks.whole is None else _draw_numbers,
        blocks.data if blocks.whole is None else numbers,
        *(clusters.leafing.labels, copies.counts, copies.first),
        keys=np.full(len(sizes), node_seed(seed, (RULES,)), dtype=np.uint64),
        bounds=limits(sizes, most),
        then=_Hear(sizes, blocks.whole, then),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Hear:
    """Makes something of the rows that were drawn of leaves of these sizes."""

    sizes: IndexArray
    whole: Rows | None
    then: Callable[[Witnesses, Run], Any]

    def __call__(self, drawn: Drawn, run: Run) -> Any:
        order = np.lexsort((drawn.hashes, drawn.parts))
        places, found = drawn.parts[order], drawn.stacked()[order]
        rows = as_rows(found) if self.whole is None else self.whole.take(found)
        taken = np.bincount(places, minlength=len(self.sizes))
        weights = (self.sizes / np.maximum(taken, 1))[places]
        return self.then(Witnesses(rows, places, drawn.hashes[order] / 2.0**64, weights), run)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Seek:
    """Finds the rules of a tree of pairs."""

    tree: HierarchyBuilder
    placement: LinearRule
    sparsity: Sparsity
    describes: bool
    how: dict[str, Any]

    def __call__(
        self, witnesses: Witnesses, run: Run
    ) -> tuple[HierarchyBuilder, dict[int, int] | None]:
        told = witnesses, self.placement, self.sparsity, run
        if not self.describes:
            return decide(self.tree, *told, **self.how)
        tree = gather(self.tree, self.how["branching"])
        describe(tree, *told)
        return tree, None


def _draw_numbers(start: int, labels: Any, counts: Any, first: int, **low: Any) -> Drawn:
    return draw(np.arange(start, start + len(labels)), labels, counts, first, **low)


def describe(
    tree: HierarchyBuilder,
    witnesses: Witnesses,
    placement: LinearRule,
    sparsity: Sparsity,
    run: Run,
) -> None:
    """Give each split of a tree a rule; no row moves.

    Parameters
    ----------
    tree : HierarchyBuilder
        The tree.
    witnesses : Witnesses
        Rows of its leaves.
    placement : LinearRule
        How well rows fit the leaves, from left to right.
    sparsity : Sparsity
        How few features the rules use.
    run : Run
        The seed, and where to run.
    """
    search = _Search.of(tree, witnesses, placement, sparsity)
    known = {0: np.zeros(witnesses.rows.n_features, dtype=bool)}

    def find(node: int) -> LinearRule:
        span = search.spans[node]
        own = (span.start <= witnesses.places) & (witnesses.places < span.stop)
        return search.rule(node, tree.children(node), np.flatnonzero(own), known[node])

    for level in _levels(tree):
        for node, rule in zip(level, run.each(find, level), strict=True):
            tree.explain(node, rule)
            above = sparsity.known(known.pop(node), rule)
            known |= dict.fromkeys(tree.children(node), above)


def decide(
    plan: HierarchyBuilder,
    witnesses: Witnesses,
    placement: LinearRule,
    sparsity: Sparsity,
    run: Run,
    *,
    stop: StoppingRule,
    branching: int = 2,
    min_leaf_size: int = 1,
) -> tuple[HierarchyBuilder, dict[int, int]]:
    """Return a tree of the same leaves whose rules alone decide where rows go.

    How many rows its nodes have is an estimate, until all rows were sent down.

    Parameters
    ----------
    plan : HierarchyBuilder
        The tree as it should be, of two children per split.
    witnesses, placement, sparsity, run
        As in :func:`describe`.
    stop : StoppingRule
        The size that leaves keep to, where those of the plan do, and the depth. A node whose
        rows no rule divides this way becomes a leaf.
    branching : int
        The most children per split: pairs are gathered as far as a rule can tell them apart.
    min_leaf_size : int
        Least size of a leaf, likewise.

    Returns
    -------
    HierarchyBuilder, dict
        The tree, and the node of the plan that each of its leaves stands for.
    """
    sizes = np.array([plan.size(leaf) for leaf in plan.leaves])
    most = plan.size(0) if stop.max_leaf_size is None else stop.max_leaf_size
    # Of the leaves up to each, so that a node's are a difference.
    bounds = np.zeros((2, len(sizes) + 1), dtype=np.intp)
    np.cumsum([np.minimum(sizes, min_leaf_size), np.maximum(sizes, most)], 1, out=bounds[:, 1:])
    search = _Search.of(plan, witnesses, placement, sparsity)
    descent = _Descent(search, branching, min_leaf_size, bounds)
    for level in _levels(plan):
        arrived = [node for node in level if node in descent.depth]
        there = [node for node in arrived if descent.depth[node] != stop.max_depth]
        for node, found in zip(there, run.each(descent.find, there), strict=True):
            if found is not None:
                descent.go_on(node, found)
    return _built(plan, descent)


class _Division(NamedTuple):
    children: tuple[int, ...]
    rule: LinearRule
    sides: IndexArray


@final
class _Descent:
    """Rows on their way down a plan."""

    def __init__(
        self, search: "_Search", branching: int, min_leaf_size: int, bounds: IndexArray
    ) -> None:
        self._search, self._branching, self._least = search, branching, min_leaf_size
        self._bounds, rows = bounds, search.witnesses.rows
        self._arrived: dict[int, IndexArray] = {0: np.arange(rows.n_rows)}
        self._known = {0: np.zeros(rows.n_features, dtype=bool)}
        self.depth = {0: 0}  # of the nodes that rows have arrived at
        self.made: dict[int, _Division] = {}

    def size(self, node: int) -> int:
        """Return about how many rows have arrived at a node."""
        own = self._arrived[node]
        return max(round(float(self._search.witnesses.weights[own].sum())), 1)

    def find(self, node: int) -> _Division | None:
        """Divide the rows of a node among as many children as can be told apart."""
        own, known = self._arrived[node], self._known[node]
        rules: dict[tuple[int, ...], LinearRule] = {}
        for is_strict in (True, False):
            for children in _choices(self._search.tree, node, self._branching):
                if len(own) < len(children):
                    continue
                if children not in rules:
                    rules[children] = self._search.rule(node, children, own, known)
                found = self._divide(node, children, rules[children], is_strict)
                if found is not None:
                    return _Division(children, *found)
        return None

    def go_on(self, node: int, found: _Division) -> None:
        """Send the rows of a node to its children."""
        own, sparsity = self._arrived.pop(node), self._search.sparsity
        known = sparsity.known(self._known.pop(node), found.rule)
        for side, child in enumerate(found.children):
            self._arrived[child], self._known[child] = own[found.sides == side], known
            self.depth[child] = self.depth[node] + 1
        self.made[node] = found

    def _divide(
        self, node: int, children: tuple[int, ...], rule: LinearRule, is_strict: bool
    ) -> tuple[LinearRule, IndexArray] | None:
        own, known = self._arrived[node], self._known[node]
        spans = [self._search.spans[child] for child in children]
        edges = [spans[0].start, *(span.stop for span in spans)]
        least, most = self._bounds[:, edges[1:]] - self._bounds[:, edges[:-1]]
        witnesses = self._search.witnesses
        seen, weights = witnesses.rows.take(own, center=rule.center), witnesses.weights[own]
        if not is_strict:
            # A child with too few rows for all its leaves is better than no child.
            return _divide(seen, weights, rule, np.minimum(least, self._least), most)
        found = _divide(seen, weights, rule, least, most)
        if found is None and len(children) == 2:
            # What rows want may be too uneven, and few features leave many of them alike.
            size = int(weights.sum())
            n_first = max(least[0], size - most[1]), min(most[0], size - least[1])
            even = self._search.rule(node, children, own, known, n_first=n_first)
            found = _divide(seen, weights, even, least, most)
        return found


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


def _built(
    plan: HierarchyBuilder, descent: _Descent
) -> tuple[HierarchyBuilder, dict[int, int]]:
    """Return the plan's tree with other rows, its nodes made in the same order."""
    made = descent.made
    splits = {node: made[node].children for node in plan.inner if node in made}
    sizes = np.zeros(plan.n_nodes, dtype=np.intp)
    for node in [0, *(child for parts in splits.values() for child in parts)]:
        if node not in splits:
            sizes[node] = descent.size(node)
    for node in reversed(splits):
        sizes[node] = sizes[list(splits[node])].sum()
    tree, node_of = built(splits, 0, sizes)
    for node in splits:
        tree.explain(node_of[node], made[node].rule)
        tree.record(node_of[node], **plan.recorded(node))
    stands_for = {}
    for node, leaf in node_of.items():
        if node not in splits:
            tree.refuse(leaf, REFUSED if plan.children(node) else plan.note(node))
            stands_for[leaf] = node
    return tree, stands_for


def without_leaves(
    tree: HierarchyBuilder, stands_for: dict[int, int], leaves: Sequence[int]
) -> tuple[HierarchyBuilder, dict[int, int]]:
    """Undo the splits that made some leaves: their parents become leaves instead.

    What rows say of sizes is known when all were sent down, and an estimate may have been too
    high. Takes and returns what :func:`decide` does.
    """
    new, place = undone(tree, leaves, REFUSED)
    parts, own = np.bincount(place), new.leaves
    kept = {
        own[at]: stands_for[leaf] if parts[at] == 1 else -1
        for leaf, at in zip(tree.leaves, place.tolist(), strict=True)
    }
    return new, kept


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What the search of every node's rule has in common."""

    tree: HierarchyBuilder
    witnesses: Witnesses
    spans: dict[int, slice]  # the leaves of each node
    leaves: LinearRule  # how well rows fit the leaves, from left to right
    rounding: float  # of the widest feature
    sparsity: Sparsity

    @classmethod
    def of(
        cls,
        tree: HierarchyBuilder,
        witnesses: Witnesses,
        placement: LinearRule,
        sparsity: Sparsity,
    ) -> "_Search":
        spans = {leaf: slice(at, at + 1) for at, leaf in enumerate(tree.leaves)}
        for node in reversed(tree.inner):
            children = tree.children(node)
            spans[node] = slice(spans[children[0]].start, spans[children[-1]].stop)
        rows = witnesses.rows
        rounding = 16.0 * float(np.finfo(rows.dtype).eps * rows.spread().max())
        return cls(tree, witnesses, spans, placement, rounding, sparsity)

    def rule(
        self,
        node: int,
        children: tuple[int, ...],
        own: IndexArray,
        known: NDArray[np.bool_],
        *,
        n_first: tuple[int, int] | None = None,
    ) -> LinearRule:
        """Return a sparse rule for the rows of one node, given the features used above it.

        With ``n_first``, as many rows, at least and at most, want the first of two children,
        and features have no price.
        """
        drawn, counts = self._draw(children, own)
        best = self._fit(drawn, children)
        labels, cares = self._wishes(best, children)
        n_own, n_all = float(self.witnesses.weights[own].sum()), self.tree.size(0)
        if n_first is not None:
            least, most = (int(count * len(drawn) / n_own) for count in n_first)
            size = int(np.clip(np.count_nonzero(labels == 0), least, most))
            order = np.argsort(best[1] - best[0], kind="stable")
            labels[order], cares[:] = np.arange(len(order)) >= size, 1.0
        average = n_all / self.leaves.n_children
        worth = PRICE * average * (n_own / average) ** GROWTH
        price = max(worth, LEAST_WORTH) * float(counts.sum()) / n_own
        return find_rule(
            self.witnesses.rows.take(drawn),
            labels,
            cares * counts,
            1.0 + self.sparsity.novelty * known,
            n_children=len(children),
            price=price if n_first is None else 0.0,
            sparsity=self.sparsity,
            rounding=self.rounding,
        )

    def _draw(self, children: tuple[int, ...], own: IndexArray) -> tuple[IndexArray, Array]:
        """Return which rows of a node its rule is sought on, and for how many each counts."""
        weights, chances = self.witnesses.weights[own], self.witnesses.chances[own]
        share = min(SAMPLE / float(weights.sum()), 1.0)
        # Of a leaf of which fewer were drawn than that, all are, and count for more.
        chosen, counts = chances < share, np.maximum(weights * share, 1.0)
        if not chosen.all():
            # Rows that rules brought here from elsewhere are drawn as a part of their own.
            side_of = np.full(self.leaves.n_children, len(children))
            for side, child in enumerate(children):
                side_of[self.spans[child]] = side
            sides = side_of[self.witnesses.places[own]]
            order = np.lexsort((chances, sides))
            rank = np.arange(len(order)) - np.searchsorted(sides[order], sides[order])
            chosen[order[rank < LEAST]] = True
        return own[chosen], counts[chosen]

    def _fit(self, drawn: IndexArray, children: tuple[int, ...]) -> Array:
        """Return how well each row fits the best leaf of each child, a row per child."""
        rows = self.witnesses.rows
        begin, end = self.spans[children[0]].start, self.spans[children[-1]].stop
        weights, offsets = self.leaves.weights[begin:end], self.leaves.offsets[begin:end]
        best = np.empty((len(children), len(drawn)), dtype=rows.dtype)
        step = max(MOST // len(weights), 1)
        for first in range(0, len(drawn), step):
            some = slice(first, first + step)
            seen = rows.take(drawn[some], center=self.leaves.center)
            # Long rows are summed up faster than short columns.
            fit = np.ascontiguousarray(seen.scores(weights).T) + offsets[:, None]
            for child, own in zip(children, best[:, some], strict=True):
                span = self.spans[child]
                fit[span.start - begin : span.stop - begin].max(axis=0, out=own)
        return best

    def _wishes(
        self, best: Array, children: tuple[int, ...]
    ) -> tuple[NDArray[np.int32], Array]:
        """Return which child each row wants, and how much it cares, from 0 to 1."""
        highest = best.max(axis=0)
        if len(best) == 2:  # as below, but faster
            labels, second = (best[1] > best[0]).astype(np.int32), best.min(axis=0)
        else:
            labels = best.argmax(axis=0).astype(np.int32)
            second = np.partition(best, -2, axis=0)[-2]
        weights: Array = np.tanh(0.5 / DOUBT * (highest - second)).astype(np.float64)
        weights[:] = weights if weights.any() else 1.0
        wanted = np.bincount(labels, minlength=len(children))
        counts = np.array([self.tree.size(child) for child in children])
        for child in np.flatnonzero(wanted == 0):
            # Nobody's first choice, but there must be somebody: those who mind least.
            size = max(len(labels) * counts[child] // (2 * counts.sum()), 1)
            given = np.argsort(highest - best[child], kind="stable")[:size]
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
    sparsity: Sparsity,
    rounding: float = 0.0,
) -> LinearRule:
    """Return a sparse rule that sends rows to the children that they want.

    The weights say what a row in another child costs; a feature must lower the cost by its
    reluctance times the price, and one of no reluctance is not used at all. Nor is one that
    deviates by no more than its own rounding or the one given.
    """
    problem = RuleProblem(
        labels=labels,
        n_children=n_children,
        weights=weights,
        reluctance=reluctance,
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


def _levels(tree: HierarchyBuilder) -> Iterator[list[int]]:
    """Yield the nodes that were split, those of one depth together, from the root down."""
    by_depth: dict[int, list[int]] = {}
    for node in sorted(tree.inner):
        by_depth.setdefault(tree.depth(node), []).append(node)
    for _, level in sorted(by_depth.items()):
        yield level


def _divide(
    rows: Rows, counts: Array, rule: LinearRule, least: IndexArray, most: IndexArray
) -> tuple[LinearRule, IndexArray] | None:
    """Return the rule, its thresholds moved if sizes ask for it, and where it sends rows.

    The rows are seen from the centre of the rule, and count for several each.
    """
    sides = best_scores(rows, rule.weights, rule.offsets)
    if _fits(sides, counts, least, most):
        return rule, sides
    if not rule.weights.any():
        return None
    scores = rows.scores(rule.weights).astype(np.float64) + rule.offsets
    for offsets in _thresholds(scores, counts, sides, least, most):
        moved = LinearRule(
            rule.weights, rule.center, (rule.offsets + offsets).astype(rule.dtype)
        )
        sides = best_scores(rows, moved.weights, moved.offsets)
        if _fits(sides, counts, least, most):
            return moved, sides
    return None


def _fits(sides: IndexArray, counts: Array, least: IndexArray, most: IndexArray) -> bool:
    sizes = np.bincount(sides, weights=counts, minlength=len(least))
    return bool(((least <= sizes) & (sizes <= most)).all())


def _thresholds(
    scores: Array, counts: Array, sides: IndexArray, least: IndexArray, most: IndexArray
) -> Iterator[Array]:
    """Yield what to add to the scores of the children for them to have their sizes.

    Of two children, thresholds between rows that differ, those nearest to the best one first;
    of more, each child that is too small or too large is changed in turn.
    """
    n, K = counts.sum(), scores.shape[1]
    if K == 2:
        along = scores[:, 1] - scores[:, 0]
        order = np.argsort(along, kind="stable")
        along, below = along[order], np.cumsum(counts[order])
        lower, upper = max(least[0], n - most[1]), min(most[0], n - least[1])
        cuts = np.arange(1, len(along))
        cuts = cuts[(along[:-1] < along[1:]) & (lower <= below[:-1]) & (below[:-1] <= upper)]
        now = counts[sides == 0].sum()
        nearest = np.argsort(np.abs(below[cuts - 1] - now), kind="stable")
        for cut in cuts[nearest[:NEAREST]]:
            middle = 0.5 * (along[cut - 1] + along[cut])
            yield np.array([0.5 * middle, -0.5 * middle])
        return
    added = np.zeros(K)
    for _ in range(NEAREST * K):
        now = scores + added
        sizes = np.bincount(now.argmax(axis=1), weights=counts, minlength=K)
        wrong = np.maximum(least - sizes, 0) + np.maximum(sizes - most, 0)
        if not wrong.any():
            break
        child = int(wrong.argmax())
        others = np.delete(now, child, axis=1).max(axis=1)
        lacking = others - now[:, child]
        order = np.argsort(lacking, kind="stable")
        size = np.clip(sizes[child], least[child], min(most[child], n - 1))
        reached = np.cumsum(counts[order])
        last = int(np.searchsorted(reached, size))
        if size < sizes[child]:  # the one that reaches it may be too much
            last = max(int(np.searchsorted(reached, size, side="right")) - 1, 0)
        last = min(last, len(order) - 1)
        pair = order[last], order[min(last + 1, len(order) - 1)]
        added[child] += 0.5 * (lacking[pair[0]] + lacking[pair[1]])
    yield added
