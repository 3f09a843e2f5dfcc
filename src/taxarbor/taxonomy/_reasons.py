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

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.rows import Rows
from taxarbor.taxonomy._text import MOSTLY, phrase
from taxarbor.tree._rule import LinearRule, threshold_of

if TYPE_CHECKING:
    from taxarbor.taxonomy._taxonomy import Taxonomy

DIGITS = 5
"""To which shares are compared, in units of the largest: rounding must not choose."""
MATTERS = 0.05
"""Of the most that a category does, what another must do to be named beside it."""


@final
@dataclass(frozen=True, slots=True)
class Reason:
    """A feature that sends rows to a node rather than to its siblings.

    The values of a category are features of one column, and make one reason.

    Attributes
    ----------
    feature : int
        Number of the feature; of those of a category, the one that does most.
    name : str
        Its name, ``x0``, ``x1``, ... where there are none; that of the column, of a category.
    weight : float
        Its weight for the node, less the mean over the node and its siblings; of a category,
        less that of a row without a value.
    share : float
        Its part in the separation of the node's rows from their siblings', of which those
        that are positive add up to 1. Negative if the others have to make up for it. NaN
        where the means of the nodes are not known; then the largest weight comes first.
    threshold : float or None
        Where this feature alone divides the parent in two: exactly where the rule does, as
        the shortest number that the dtype of the rule rounds to it. 0.5 where a category
        alone does.
    have : float or None
        The share of the node's rows that have it, for a feature of yes and no, or one of the
        ``categories``; of the rows with a value, None if there are none.
    categories : tuple of str
        Of a category, those that lead here, the most frequent first, or with a ``sign`` of -1
        those that lead elsewhere, if these are fewer. () for numbers.
    unknown : float
        The share of the node's rows that have no value in this column.
    takes_unknown : bool
        Whether some have none and come here for it, where this column alone divides.
    takes_threshold : bool
        Whether rows at the threshold itself come here: the first child takes them.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> taxonomy = Taxarbor(6, random_state=0).fit(X).taxonomy_
    >>> first = taxonomy.rename_features(animals.feature_names).reasons(1)[0]
    >>> str(first), first.sign, first.have
    ('warm_blooded', 1, 1.0)
    """

    feature: int
    name: str
    weight: float
    share: float
    threshold: float | None = None
    have: float | None = None
    categories: tuple[str, ...] = ()
    unknown: float = 0.0
    takes_unknown: bool = False
    takes_threshold: bool = False

    @property
    def sign(self) -> int:
        """1 if larger values lead to the node, -1 if smaller ones do."""
        return 1 if self.weight > 0.0 else -1

    def __str__(self) -> str:
        return phrase(self)


def reasons(taxonomy: "Taxonomy", node: int, n_top: int | None) -> tuple[Reason, ...]:
    """Return the features that lead to a node; see :meth:`Taxonomy.reasons`."""
    parent = taxonomy.tree.parent(node)
    decider = None if parent is None else taxonomy.tree.decided_by(parent)
    rule = None if decider is None else taxonomy.tree.rules[decider]
    if parent is None or rule is None:
        return ()
    # The child's weights less the mean over all children: the rest is common.
    family = _family_of(taxonomy, parent)
    own = _scores_below(taxonomy, node, family.begins)
    contrast: Array = _mean(rule.weights[own], family.parts[own]) - family.mean_weights
    # What the rounding of the mean leaves, column by column: they have units of their own.
    contrast[np.abs(contrast) <= 1e-12 * family.largest_weights] = 0.0
    used = np.flatnonzero(contrast)
    # Features of a category stand side by side, and are one.
    columns = columns_of(taxonomy)[used]
    first = np.flatnonzero(np.diff(columns, prepend=-1))
    is_alone = decider == parent and rule.n_scores == 2 and len(first) == 1
    rest = rest_mean(taxonomy, node)
    if not len(used):
        shares = keys = np.zeros(0)
    elif rest is None or taxonomy.means is None:
        keys = np.maximum.reduceat(np.abs(contrast[used]), first)
        shares = np.full(len(first), nan)
    else:
        gains = (contrast * (taxonomy.means[node].astype(np.float64) - rest))[used]
        gains = np.add.reduceat(gains, first)
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
    comparison = _Comparison(
        taxonomy,
        node,
        rule,
        contrast,
        is_alone,
        known_mean(taxonomy, node),
        None if taxonomy.encoding is None else known_mean(taxonomy, node, beside=True),
    )
    return tuple(
        comparison.reason(int(used[at]), share)
        for at, share in zip(first[largest], shares[largest].tolist(), strict=True)
    )


class _Comparison(NamedTuple):
    """A node beside its siblings: the rule, the contrast of weights, the known means."""

    taxonomy: "Taxonomy"
    node: int
    rule: LinearRule
    contrast: Array
    is_alone: bool
    here: Array | None
    beside: Array | None

    def reason(self, feature: int, share: float) -> Reason:
        taxonomy, names = self.taxonomy, self.taxonomy.feature_names
        unknown, fill = 0.0, nan
        if taxonomy.encoding is not None:
            place = int(taxonomy.encoding.owner[feature])
            unknown = float(missing_shares(taxonomy, self.node)[place])
            if (category := category_of(taxonomy, feature)) is not None:
                return self._of_category(category, share, unknown)
            if not self.is_alone and self._differs_by_gaps(feature, share):
                rest = float(missing_shares(taxonomy, self.node, beside=True)[place])
                label = taxonomy.encoding.columns[place].label
                return self._of_missing(feature, label, share, unknown, rest)
            fill = taxonomy.encoding.columns[place].fill[0]
        weight, have = float(self.contrast[feature]), None
        is_boolean = taxonomy.is_boolean is not None and taxonomy.is_boolean[feature]
        if self.here is not None and is_boolean:
            have = _share(self.here[feature])
        threshold, takes, is_first = None, False, False
        if self.is_alone:
            at = threshold_of(self.rule, feature)
            is_first = self.node == taxonomy.tree.children(taxonomy.tree.parents[self.node])[0]
            ahead = np.sign(weight) * (self.rule.dtype.type(fill) - at)
            takes = unknown > 0.0 and bool(ahead > 0.0 or (is_first and ahead == 0.0))
            if not is_boolean or 0.0 <= at <= 1.0:
                threshold = float(str(at))
        name = names[feature] if names else f"x{feature}"
        more = share, threshold, have, (), unknown, takes, is_first
        return Reason(feature, name, weight, *more)

    def _differs_by_gaps(self, feature: int, share: float) -> bool:
        """Say whether a feature leads here only by what stands for its missing values.

        Where values are known, their means lie the other way.
        """
        if self.here is None or self.beside is None or not share > 0.0:
            return False
        difference = self.here[feature] - self.beside[feature]
        return bool(self.contrast[feature] * difference <= 0.0)  # no for NaN

    def _of_missing(
        self, feature: int, name: str, share: float, unknown: float, rest: float
    ) -> Reason:
        """Return a reason that says that more values are missing here, or fewer."""
        said, part = ("unknown", unknown) if unknown > rest else ("known", 1.0 - unknown)
        weight = float(np.abs(self.contrast[feature]))
        return Reason(feature, name, weight, share, None, part, (said,), unknown)

    def _of_category(self, one: "Category", share: float, unknown: float) -> Reason:
        weights = one.weights(self.contrast)
        weights -= np.dot(one.fill, weights)
        weights[np.abs(weights) <= 1e-9 * np.abs(weights).max()] = 0.0
        here = None if self.here is None else one.spread(self.here)
        beside = None if self.beside is None else one.spread(self.beside)
        rest = float(missing_shares(self.taxonomy, self.node, beside=True)[one.place])
        threshold, takes, toward = None, False, weights > 0.0
        sent = self._sent_here(one) if self.is_alone else toward[:0]
        if sent.any() and not sent[:-1].all():
            threshold, takes, toward = 0.5, bool(sent[-1]) and unknown > 0.0, sent[:-1]
        elif here is not None and beside is not None:
            gains = weights * (here - beside)
            is_lacking = unknown > max(rest, MOSTLY)  # the few that have a value say little
            if gains.sum() > 1e-6 * np.abs(weights).max() and not is_lacking:
                toward = _leaning(weights, gains > MATTERS * gains.max())
            elif share > 0.0 and unknown != rest:  # it is those without a value that differ
                return self._of_missing(one.first, one.name, share, unknown, rest)
        if not toward.any():  # all weigh the same
            toward = np.arange(len(toward)) == 0
        is_not = len(toward) < 2 * np.count_nonzero(toward) < 2 * len(toward)
        named = np.flatnonzero(~toward if is_not else toward)
        if (seen := beside if is_not else here) is not None:
            named = named[np.argsort(-seen[named].round(DIGITS), kind="stable")]
        most = int(named[np.argmax(-weights[named] if is_not else weights[named])])
        have = None if here is None else _share(here[named].sum())
        said_of = tuple(one.values[code] for code in named.tolist())
        weight = float(weights[most])
        more = share, threshold, have, said_of, unknown, takes
        return Reason(one.feature(most), one.name, weight, *more)

    def _sent_here(self, one: "Category") -> NDArray[np.bool_]:
        """Return which values alone send a row here, by the rule, and at last if none does."""
        assert self.taxonomy.encoding is not None
        if (
            self.taxonomy.encoding.unit_length
        ):  # a value counts the less, the more others there are
            return np.zeros(1, dtype=bool)
        at = self.node - self.taxonomy.tree.children(self.taxonomy.tree.parents[self.node])[0]
        own = np.where(
            self.contrast == 0.0, 0.0, self.rule.weights[at] - self.rule.weights[1 - at]
        )
        offset = float(self.rule.offsets[at]) - float(self.rule.offsets[1 - at])
        scores = one.weights(own) - own @ self.rule.center + offset
        scores = np.append(scores, np.dot(one.fill, scores))
        return (scores >= 0.0) if at == 0 else (scores > 0.0)


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

    def feature(self, code: int) -> int:
        return self.first + (code if len(self.values) != 2 else 0)


def category_of(taxonomy: "Taxonomy", feature: int) -> Category | None:
    """Return the category that a feature is of, None for a number."""
    encoding = taxonomy.encoding
    if encoding is None:
        return None
    place = int(encoding.owner[feature])
    column, first = encoding.columns[place], int(np.searchsorted(encoding.owner, place))
    if not column.categories:
        return None
    # A value of these names is no gap.
    shown = (f'"{one}"' if one in ("known", "unknown") else one for one in column.categories)
    return Category(column.label, tuple(shown), column.fill, place, first)


def columns_of(taxonomy: "Taxonomy") -> IndexArray:
    """Return the column of each feature."""
    encoding = taxonomy.encoding
    return np.arange(taxonomy.n_features or 0) if encoding is None else encoding.owner


def missing_shares(taxonomy: "Taxonomy", node: int, *, beside: bool = False) -> Array:
    """Return the share of a node's rows, or of its siblings', without a value, by column."""
    missing, parent = taxonomy.missing, taxonomy.tree.parent(node)
    if missing is None or taxonomy.encoding is None:
        return np.zeros(0 if taxonomy.encoding is None else len(taxonomy.encoding.columns))
    shares: Array = missing[node]
    if beside and parent is not None:
        n_rows, n_all = taxonomy.tree.node_weights[[node, parent]].tolist()
        shares = (n_all * missing[parent] - n_rows * shares) / (n_all - n_rows)
        shares = shares.round(12).clip(0.0, 1.0)  # what rounding leaves of all and of none
    return shares


def known_mean(taxonomy: "Taxonomy", node: int, *, beside: bool = False) -> Array | None:
    """Return the mean of a node's rows, or of its siblings', where they have a value.

    NaN where none has one; None where means are not known.
    """
    means, missing, encoding = taxonomy.means, taxonomy.missing, taxonomy.encoding
    mean = rest_mean(taxonomy, node) if beside else None
    if means is None or (beside and mean is None):
        return None
    mean = means[node].astype(np.float64) if mean is None else mean
    # Where rows were normalized to length 1, imputed values were, too.
    if missing is None or encoding is None or encoding.unit_length:
        return mean
    share = missing_shares(taxonomy, node, beside=beside)[encoding.owner]
    is_some = share < 1.0
    known: Array = np.full(len(mean), nan)
    rest = (mean - share * encoding.fills)[is_some]
    rest[np.abs(rest) <= 1e-6 * np.abs(encoding.fills[is_some])] = 0.0  # what rounding leaves
    known[is_some] = rest / (1.0 - share[is_some])
    return known


def find_booleans(rows: Rows) -> NDArray[np.bool_]:
    """Return which features hold 0 and 1 only, but for rounding."""
    return np.asarray((np.abs(rows.few_values() - [0.0, 1.0]) < 1e-5).all(axis=1))


def rest_mean(taxonomy: "Taxonomy", node: int) -> Array | None:
    """Return the mean of the siblings' rows; None for the root and where means are unknown.

    Taken from theirs, as what is left of the parent's mean loses digits.
    """
    parent = taxonomy.tree.parent(node)
    if taxonomy.means is None or parent is None:
        return None
    first, *others = taxonomy.tree.children(parent)
    if len(others) == 1:
        other: Array = taxonomy.means[others[0] if node == first else first]
        return other.astype(np.float64)
    n_rows, n_all = taxonomy.tree.node_weights[[node, parent]].tolist()
    center = taxonomy.means[parent].astype(np.float64)
    own = n_rows / n_all * (taxonomy.means[node] - center)
    excess = _family_of(taxonomy, parent).excess
    # Seen from the parent's mean, a large child is no farther away than a small rest.
    rest: Array = center + (excess - own) * (n_all / (n_all - n_rows))
    return rest


class _Family(NamedTuple):
    """What the children of a node have in common, and each of them is compared with.

    Of the scores of the rule that decides: where the nodes they lead to begin, and what each
    counts for in a mean. Over the children: the mean and the largest size of the weights, and
    the sum of how far each mean is from the parent's, times its part of the rows. Empty where
    these are not known.
    """

    parent: int
    begins: IndexArray
    parts: Array
    mean_weights: Array
    largest_weights: Array
    excess: Array


_LATEST: "WeakKeyDictionary[Taxonomy, _Family]" = WeakKeyDictionary()
"""The last family asked for, of each tree: siblings are asked for one after the other, and
in a tree of many children each would else look at all of them."""


def _family_of(taxonomy: "Taxonomy", parent: int) -> _Family:
    family = _LATEST.get(taxonomy)
    if family is not None and family.parent == parent:
        return family
    means, children = taxonomy.means, taxonomy.tree.children(parent)
    begins: IndexArray = np.zeros(0, dtype=np.intp)
    parts: Array = np.zeros(0)
    mean = largest = excess = parts
    decider = taxonomy.tree.decided_by(parent)
    if decider is not None and (rule := taxonomy.tree.rules[decider]) is not None:
        frontier = np.array(taxonomy.tree.frontier(decider))
        begins, parts = taxonomy.tree.start[frontier][rule.targets], np.ones(rule.n_scores)
        if decider != parent or rule.n_scores > len(children):
            sizes = taxonomy.tree.node_weights[frontier]
            # Nodes whose rows count for nothing are compared, too.
            sizes = np.maximum(sizes, 1e-12 * (float(sizes.max()) or 1.0))
            parts = (sizes / np.bincount(rule.targets))[rule.targets]
        own = _scores_below(taxonomy, parent, begins)
        mean = _mean(rule.weights[own], parts[own])
        largest = np.abs(rule.weights[own]).max(axis=0).astype(np.float64)
    if means is not None:
        own = slice(children[0], children[-1] + 1)
        sizes = taxonomy.tree.node_weights[own]
        excess = sizes / sizes.sum() @ (means[own].astype(np.float64) - means[parent])
    family = _LATEST[taxonomy] = _Family(parent, begins, parts, mean, largest, excess)
    return family


def _scores_below(taxonomy: "Taxonomy", node: int, begins: IndexArray) -> slice:
    """Return which scores of a rule lead to a node or below it."""
    ends = taxonomy.tree.start[node], taxonomy.tree.stop[node]
    return slice(*np.searchsorted(begins, ends).tolist())


def _mean(weights: Array, parts: Array) -> Array:
    """Return the mean of lines by what each counts for; divided first, not to overflow."""
    mean: Array = (weights.astype(np.float64) / (parts.sum() / parts)[:, None]).sum(axis=0)
    return mean
