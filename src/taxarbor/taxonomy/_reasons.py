"""Why rows are sent to a node: the features of the rule that decides, by what each does.

A rule adds up weights times values. How far it pulls a child's rows from the others', on
average, is the sum over features of the difference of weights times the difference of means:
what a feature adds to that is its part in the separation. Weights alone do not tell, as they
depend on the units of the columns.

Where the rule chooses among nodes further down than the children, the weights of a child are
the mean of those that lead to nodes below it, by their rows. There are no thresholds then; but
still a feature is named first only if the means differ the same way.

The values of a category are features of one column, and make one reason together. A row has one
of them, so only the differences of their weights matter: they are seen from the weight of a row
without a value, in which every category has its share.
"""

from collections.abc import Iterator, Sequence
from math import nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.taxonomy._phrases import MOSTLY, Reason
from taxarbor.tree.rule import LinearRule, threshold_of

if TYPE_CHECKING:
    from taxarbor.taxonomy.taxonomy import Taxonomy

DIGITS = 5  # to which shares are compared, in units of the largest: rounding must not choose
MATTERS = 0.05  # of the most that a category does, what another must do to be named beside it


def reasons(taxonomy: "Taxonomy", node: int, n_top: int | None) -> tuple[Reason, ...]:
    """Return the features that lead to a node; see :meth:`Taxonomy.reasons`."""
    parent = taxonomy.tree.parent(node)
    return () if parent is None else next(_explain(taxonomy, parent, [node], n_top))


def child_reasons(
    taxonomy: "Taxonomy", parent: int, n_top: int | None
) -> list[tuple[Reason, ...]]:
    """Return the features that lead to each child of a node."""
    return [*_explain(taxonomy, parent, taxonomy.tree.children(parent), n_top)]


def list_reasons(taxonomy: "Taxonomy", n_top: int | None) -> list[tuple[Reason, ...]]:
    """Return the features that lead to each node of a tree."""
    found: list[tuple[Reason, ...]] = [()] * taxonomy.tree.n_nodes
    for node in range(taxonomy.tree.n_nodes):
        if children := taxonomy.tree.children(node):
            found[children[0] : children[-1] + 1] = child_reasons(taxonomy, node, n_top)
    return found


class _Comparison(NamedTuple):
    """A node beside its siblings: the contrast of weights, and means of known values.

    The rule is given where one column alone divides the parent in two.
    """

    taxonomy: "Taxonomy"
    node: int
    contrast: Array
    rule: LinearRule | None
    here: Array | None
    beside: Array | None

    @property
    def is_first(self) -> bool:
        """Whether the node is the first child, which takes ties."""
        tree = self.taxonomy.tree
        return self.node == tree.children(tree.parents[self.node])[0]


def _explain(
    taxonomy: "Taxonomy", parent: int, nodes: Sequence[int], n_top: int | None
) -> Iterator[tuple[Reason, ...]]:
    """Yield the reasons of some children of a node."""
    tree, columns, decider = taxonomy.tree, taxonomy.columns, taxonomy.tree.decided_by(parent)
    rule = None if decider is None else tree.rules[decider]
    if decider is None or rule is None:
        yield from ((),) * len(nodes)
        return
    # Where the nodes begin that the scores lead to, and what each counts for in a mean.
    frontier = np.array(tree.frontier(decider))
    begins, parts = tree.start[frontier][rule.targets], np.ones(rule.n_scores)
    if decider != parent or rule.n_scores > len(tree.children(parent)):
        sizes = tree.node_weights[frontier]
        # Nodes whose rows count for nothing are compared, too.
        sizes = np.maximum(sizes, 1e-12 * (float(sizes.max()) or 1.0))
        parts = (sizes / np.bincount(rule.targets))[rule.targets]

    def select(node: int) -> slice:
        """Return the scores that lead to a node or below it."""
        return slice(*np.searchsorted(begins, [tree.start[node], tree.stop[node]]).tolist())

    family, rests = select(parent), rest_means(taxonomy, parent)
    mean = _mean(rule.weights[family], parts[family])
    largest = np.abs(rule.weights[family]).max(axis=0).astype(np.float64)
    is_pair = decider == parent and rule.n_scores == 2
    for node in nodes:
        own = select(node)
        # The child's weights less the mean over all children: the rest is common.
        contrast: Array = _mean(rule.weights[own], parts[own]) - mean
        # What the rounding of the mean leaves, column by column: they have units of their own.
        contrast[np.abs(contrast) <= 1e-12 * largest] = 0.0
        gains = None
        if rests is not None and taxonomy.means is not None:
            rest = rests[node - tree.children(parent)[0]]
            here = taxonomy.means[node].astype(np.float64)
            gains = contrast * (columns.take_logs(here) - columns.take_logs(rest))
        features, shares, n_columns = _rank(taxonomy, contrast, gains, n_top)
        comparison = _Comparison(
            taxonomy,
            node,
            contrast,
            rule if is_pair and n_columns == 1 else None,
            known_mean(taxonomy, node),
            known_mean(taxonomy, node, beside=True),
        )
        pairs = zip(features.tolist(), shares.tolist(), strict=True)
        yield tuple(_describe(comparison, feature, share) for feature, share in pairs)


def _mean(weights: Array, parts: Array) -> Array:
    """Return the mean of lines by what each counts for; divided first, not to overflow."""
    mean: Array = (weights.astype(np.float64) / (parts.sum() / parts)[:, None]).sum(axis=0)
    return mean


def _rank(
    taxonomy: "Taxonomy", contrast: Array, gains: Array | None, n_top: int | None
) -> tuple[IndexArray, Array, int]:
    """Return the first features of the columns that do most, their shares, and how many."""
    used = np.flatnonzero(contrast)
    # Features of a category stand side by side, and are one.
    first = np.flatnonzero(np.diff(taxonomy.columns.owner[used], prepend=-1))
    n_columns = len(first)
    if not n_columns:
        shares = keys = np.zeros(0)
    elif gains is None:
        keys = np.maximum.reduceat(np.abs(contrast[used]), first)
        shares = np.full(n_columns, nan)
    else:
        gains = np.add.reduceat(gains[used], first)
        # Divided by the sum of those that are positive, or, if none is, of all sizes.
        shares = gains / (gains[gains > 0.0].sum() or np.abs(gains).sum() or 1.0)
        # A share of many features is small, however large it is beside the others.
        keys = (shares / (np.abs(shares).max(initial=0.0) or 1.0)).round(DIGITS)
        if n_top is not None:
            chosen = keys > 0.0
            first, shares, keys = first[chosen], shares[chosen], keys[chosen]
    # Among equals, the column that comes first.
    largest = np.argsort(-keys, kind="stable")
    largest = largest if n_top is None else largest[: max(n_top, 0)]
    return used[first[largest]], shares[largest], n_columns


def _describe(one: _Comparison, feature: int, share: float) -> Reason:
    """Return what a feature, or the category that it is of, does for a node."""
    taxonomy, columns = one.taxonomy, one.taxonomy.columns
    place = int(columns.owner[feature])
    unknown = float(missing_shares(taxonomy, one.node)[place])
    if (category := category_of(taxonomy, feature)) is not None:
        return _describe_category(one, category, share, unknown)
    if taxonomy.missing is not None and one.rule is None:
        rest = float(missing_shares(taxonomy, one.node, beside=True)[place])
        if _differs_by_gaps(one, feature, share):
            label = columns[place].label
            return _describe_gaps(one, feature, label, share, (unknown, rest))
    fill = float(columns.take_logs(columns.fills[[feature]], [feature])[0])
    weight, have, threshold, takes_unknown = float(one.contrast[feature]), None, None, False
    is_boolean = bool(columns.is_boolean[feature])
    if one.here is not None and is_boolean:
        have = _share(one.here[feature])
    if one.rule is not None:
        at = threshold_of(one.rule, feature)
        ahead = np.sign(weight) * (one.rule.dtype.type(fill) - at)
        takes_unknown = unknown > 0.0 and bool(ahead > 0.0 or (one.is_first and ahead == 0.0))
        if not is_boolean or 0.0 <= at <= 1.0:
            threshold = columns.undo_log(feature, at)
    return Reason(
        feature,
        columns.feature_name(feature),
        weight,
        share,
        threshold,
        have,
        unknown=unknown,
        takes_unknown=takes_unknown,
        takes_threshold=one.rule is not None and one.is_first,
        unit=columns[place].unit,
        levels=columns[place].categories if columns[place].kind == "ordered" else (),
    )


def _differs_by_gaps(one: _Comparison, feature: int, share: float) -> bool:
    """Say whether a feature leads here only by what stands for its missing values.

    Where values are known, their means lie the other way.
    """
    if one.here is None or one.beside is None or not share > 0.0:
        return False
    difference = one.here[feature] - one.beside[feature]
    return bool(one.contrast[feature] * difference <= 0.0)  # no for NaN


def _describe_gaps(
    one: _Comparison, feature: int, name: str, share: float, missing: tuple[float, float]
) -> Reason:
    """Return a reason that says that more values are missing here than beside, or fewer."""
    unknown, rest = missing
    word, have = ("unknown", unknown) if unknown > rest else ("known", 1.0 - unknown)
    weight = float(np.abs(one.contrast[feature]))
    return Reason(feature, name, weight, share, None, have, (word,), unknown)


def _describe_category(
    one: _Comparison, category: "Category", share: float, unknown: float
) -> Reason:
    """Return which values of a category lead to a node, or which lead elsewhere."""
    weights = category.weights(one.contrast)
    weights -= np.dot(category.fill, weights)
    weights[np.abs(weights) <= 1e-9 * np.abs(weights).max()] = 0.0
    here = None if one.here is None else category.spread(one.here)
    beside = None if one.beside is None else category.spread(one.beside)
    rest = float(missing_shares(one.taxonomy, one.node, beside=True)[category.place])
    threshold, takes_unknown, toward = None, False, weights > 0.0
    sent = _find_sent(one, category)
    if sent.any() and not sent[:-1].all():
        threshold, takes_unknown, toward = 0.5, bool(sent[-1]) and unknown > 0.0, sent[:-1]
    elif here is not None and beside is not None:
        gains = weights * (here - beside)
        is_lacking = unknown > max(rest, MOSTLY)  # the few that have a value say little
        if gains.sum() > 1e-6 * np.abs(weights).max() and not is_lacking:
            toward = _leaning(weights, gains > MATTERS * gains.max())
        elif share > 0.0 and unknown != rest:  # it is those without a value that differ
            first, name = category.first, category.name
            return _describe_gaps(one, first, name, share, (unknown, rest))
    if not toward.any():  # all weigh the same
        toward = np.arange(len(toward)) == 0
    is_not = len(toward) < 2 * np.count_nonzero(toward) < 2 * len(toward)
    named = np.flatnonzero(~toward if is_not else toward)
    if (seen := beside if is_not else here) is not None:
        named = named[np.argsort(-seen[named].round(DIGITS), kind="stable")]
    most = int(named[np.argmax(-weights[named] if is_not else weights[named])])
    return Reason(
        category.first + (0 if len(category.values) == 2 else most),
        category.name,
        float(weights[most]),
        share,
        threshold,
        None if here is None else _share(here[named].sum()),
        tuple(category.values[code] for code in named.tolist()),
        unknown,
        takes_unknown,
    )


def _find_sent(one: _Comparison, category: "Category") -> NDArray[np.bool_]:
    """Return which values alone send a row here, by the rule, and at last if none does."""
    rule = one.rule
    # In rows of one length, a value counts the less, the more others there are.
    if rule is None or one.taxonomy.columns.unit_length:
        return np.zeros(1, dtype=bool)
    at = 0 if one.is_first else 1
    own = np.where(one.contrast == 0.0, 0.0, rule.weights[at] - rule.weights[1 - at])
    offset = float(rule.offsets[at]) - float(rule.offsets[1 - at])
    scores = category.weights(own) - own @ rule.center + offset
    scores = np.append(scores, np.dot(category.fill, scores))
    return (scores >= 0.0) if one.is_first else (scores > 0.0)


def _leaning(weights: Array, matters: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the values of a category that lead to a node, of those that matter there."""
    toward = (weights > 0.0) & matters
    toward = toward if toward.any() else ~((weights < 0.0) & matters)
    return weights > 0.0 if toward.all() else toward


def _share(value: float) -> float | None:
    """Return a share without what rounding adds, None if it is not known."""
    return None if np.isnan(value) else min(max(float(value), 0.0), 1.0)


class Category(NamedTuple):
    """A column of categories, what stands for a gap, and where it and its features begin."""

    name: str
    values: tuple[str, ...]
    fill: tuple[float, ...]
    place: int
    first: int

    def weights(self, features: Array) -> Array:
        """Return the weight of each value; of two, the second alone has a feature."""
        own = features[self.first : self.first + len(self.values)].astype(np.float64)
        return np.array([0.0, own[0]]) if len(self.values) == 2 else own

    def spread(self, features: Array) -> Array:
        """Return the share of each value; of two, the first has what is left."""
        own = self.weights(features)
        return np.array([1.0 - own[1], own[1]]) if len(self.values) == 2 else own


def category_of(taxonomy: "Taxonomy", feature: int) -> Category | None:
    """Return the category that a feature is of, None for a number."""
    columns = taxonomy.columns
    place = int(columns.owner[feature])
    reading = columns.readings.get(place)
    if reading is None or not reading.is_nominal:
        return None
    column, first = columns[place], int(np.searchsorted(columns.owner, place))
    # A value of these names is no gap.
    shown = (f'"{one}"' if one in ("known", "unknown") else one for one in column.categories)
    return Category(column.label, tuple(shown), column.fill, place, first)


def count_columns(taxonomy: "Taxonomy", rule: LinearRule | None) -> int:
    """Return the number of columns of the user's table that a rule uses."""
    return 0 if rule is None else len(np.unique(taxonomy.columns.owner[rule.features]))


def missing_shares(taxonomy: "Taxonomy", node: int, *, beside: bool = False) -> Array:
    """Return the share of a node's rows, or of its siblings', without a value, by column."""
    missing, parent = taxonomy.missing, taxonomy.tree.parent(node)
    if missing is None:
        return np.zeros(len(taxonomy.columns))
    shares: Array = missing[node]
    if beside and parent is not None:
        assert taxonomy.statistics is not None
        n_rows, n_all = taxonomy.statistics.counts[[node, parent]].tolist()
        shares = (n_all * missing[parent] - n_rows * shares) / (n_all - n_rows)
        shares = shares.round(12).clip(0.0, 1.0)  # what rounding leaves of all and of none
    return shares


def known_mean(taxonomy: "Taxonomy", node: int, *, beside: bool = False) -> Array | None:
    """Return the mean of a node's rows, or of its siblings', where they have a value.

    NaN where none has one; None where means are not known.
    """
    missing, columns, parent = taxonomy.missing, taxonomy.columns, taxonomy.tree.parent(node)
    if taxonomy.means is None or (beside and parent is None):
        return None
    mean: Array = taxonomy.means[node].astype(np.float64)
    if beside and parent is not None:
        rests = rest_means(taxonomy, parent)
        assert rests is not None
        mean = rests[taxonomy.tree.children(parent).index(node)]
        center = np.abs(taxonomy.means[taxonomy.tree.root])
        mean = np.where(np.abs(mean) <= 1e-9 * center, 0.0, mean)  # what rounding leaves
    # Where rows were normalized to length 1, imputed values were, too.
    if missing is None or columns.unit_length:
        return mean
    share = missing_shares(taxonomy, node, beside=beside)[columns.owner]
    is_some = share < 1.0
    known: Array = np.full(len(mean), nan)
    rest = (mean - share * columns.fills)[is_some]
    rest[np.abs(rest) <= 1e-6 * np.abs(columns.fills[is_some])] = 0.0  # what rounding leaves
    known[is_some] = rest / (1.0 - share[is_some])
    return known


def rest_means(taxonomy: "Taxonomy", parent: int) -> Array | None:
    """Return the mean of the siblings' rows of each child; None where means are unknown.

    Taken from theirs, as what is left of the parent's mean loses digits.
    """
    if taxonomy.means is None:
        return None
    children = list(taxonomy.tree.children(parent))
    means: Array = taxonomy.means[children].astype(np.float64)
    if len(children) == 2:
        return np.asarray(means[::-1])
    assert taxonomy.statistics is not None
    sizes, n_all = taxonomy.statistics.counts[children], taxonomy.statistics.counts[parent]
    center = taxonomy.means[parent].astype(np.float64)
    excess = sizes / sizes.sum() @ (means - taxonomy.means[parent])
    own = (sizes / n_all)[:, None] * (taxonomy.means[children] - center)
    # Seen from the parent's mean, a large child is no farther away than a small rest.
    rests: Array = center + (excess - own) * (n_all / (n_all - sizes))[:, None]
    return rests
