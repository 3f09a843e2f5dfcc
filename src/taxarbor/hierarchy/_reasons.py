"""Why rows are sent to a node: the features of its parent's rule, by what each does.

A rule adds up weights times values. How far it pulls a child's rows from the others', on
average, is the sum over features of the difference of weights times the difference of means:
what a feature adds to that is its part in the separation. Weights alone do not tell, as they
depend on the units of the columns.
"""

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np

from taxarbor._types import Array
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.hierarchy._words import phrase, round_between

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

DIGITS = 5
"""To which shares are compared, in units of the largest: rounding must not choose."""


@final
@dataclass(frozen=True, slots=True)
class Reason:
    """A feature that sends rows to a node rather than to its siblings.

    Attributes
    ----------
    feature : int
        Number of the column.
    name : str
        Its name, ``x0``, ``x1``, ... where there are none.
    weight : float
        Its weight for the node, less the mean over the node and its siblings.
    share : float
        Its part in the separation of the node's rows from their siblings', of which those
        that are positive add up to 1. Negative if the others have to make up for it. NaN
        where the means of the nodes are not known; then the largest weight comes first.
    threshold : float or None
        Where this feature alone divides the parent in two: the rows that follow the rule have
        at most this value in one child, and more in the other. Rounded as far as no row of
        the parent is passed over.
    have : float or None
        The share of the node's rows that have it, for a feature of yes and no.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> tree = Taxarbor(6, random_state=0).fit(X).hierarchy_
    >>> first = tree.rename_features(animals.feature_names).reasons(1)[0]
    >>> str(first), first.sign, first.have
    ('gives_milk', 1, 1.0)
    """

    feature: int
    name: str
    weight: float
    share: float
    threshold: float | None = None
    have: float | None = None

    @property
    def sign(self) -> int:
        """1 if larger values lead to the node, -1 if smaller ones do."""
        return 1 if self.weight > 0.0 else -1

    @property
    def is_yes_no(self) -> bool:
        """Whether the feature holds only 0 and 1, as far as the tree knows."""
        return self.have is not None

    def __str__(self) -> str:
        return phrase(self)


def reasons(hierarchy: "Hierarchy", node: int, n_top: int | None) -> tuple[Reason, ...]:
    """Return the features that lead to a node; see :meth:`Hierarchy.reasons`."""
    parent, names = hierarchy.parent(node), hierarchy.feature_names
    rule = None if parent is None else hierarchy.rules[parent]
    if parent is None or rule is None:
        return ()
    # The child's weights less the mean over all children: the rest is common.
    family = _family_of(hierarchy, parent)
    own = rule.weights[node - hierarchy.children(parent)[0]].astype(np.float64)
    contrast: Array = own - family.mean_weights
    # What the rounding of the mean leaves, column by column: they have units of their own.
    contrast[np.abs(contrast) <= 1e-12 * family.largest_weights] = 0.0
    used = np.flatnonzero(contrast)
    rest = rest_mean(hierarchy, node)
    if rest is None or hierarchy.means is None:
        shares, keys = np.full(len(used), nan), np.abs(contrast[used])
    else:
        gains = (contrast * (hierarchy.means[node].astype(np.float64) - rest))[used]
        # Divided by the sum of those that are positive, or, if none is, of all sizes.
        shares = gains / (gains[gains > 0.0].sum() or np.abs(gains).sum() or 1.0)
        # A share of many features is small, however large it is beside the others.
        keys = (shares / (np.abs(shares).max(initial=0.0) or 1.0)).round(DIGITS)
        if n_top is not None:
            chosen = keys > 0.0
            used, shares, keys = used[chosen], shares[chosen], keys[chosen]
    # Among equals, the column that comes first.
    largest = np.argsort(-keys, kind="stable")
    largest = largest if n_top is None else largest[: max(n_top, 0)]
    threshold = _threshold(hierarchy, parent)
    return tuple(
        Reason(
            column,
            names[column] if names else f"x{column}",
            float(contrast[column]),
            share,
            threshold,
            _share_with(hierarchy, node, column),
        )
        for column, share in zip(used[largest].tolist(), shares[largest].tolist(), strict=True)
    )


def dividing_feature(rule: LinearRule) -> int | None:
    """Return the feature by which alone a rule divides rows in two, or None."""
    weights = rule.weights.astype(np.float64)
    difference = np.abs(weights[0] - weights[1])
    used = np.flatnonzero(difference > 1e-12 * np.abs(weights).max(axis=0))
    return int(used[0]) if len(weights) == 2 and len(used) == 1 else None


def _threshold(hierarchy: "Hierarchy", parent: int) -> float | None:
    """Return where one feature divides a node in two, in few digits, no row passed over."""
    rule, follows = hierarchy.rules[parent], hierarchy.follows
    if rule is None or follows is None or np.isnan(follows.gap[parent]).any():
        return None
    column = dividing_feature(rule)
    if column is None:
        return None
    weights, center, offsets = (
        part.astype(np.float64) for part in (rule.weights[:, column], rule.center, rule.offsets)
    )
    exact = center[column] - (offsets[0] - offsets[1]) / (weights[0] - weights[1])
    return round_between(float(exact), *follows.gap[parent].tolist())


def _share_with(hierarchy: "Hierarchy", node: int, column: int) -> float | None:
    """Return which share of a node's rows has a feature of yes and no, None of another."""
    means, values = hierarchy.means, hierarchy.two_values
    if means is None or values is None or not are_zero_and_one(values[column]):
        return None
    return min(max(float(means[node, column]), 0.0), 1.0)


def are_zero_and_one(values: Array) -> Any:
    """Say of pairs of values, along the last axis, which are 0 and 1 but for rounding."""
    return (np.abs(values - [0.0, 1.0]) < 1e-5).all(axis=-1)


def rest_mean(hierarchy: "Hierarchy", node: int) -> Array | None:
    """Return the mean of the siblings' rows; None for the root and where means are unknown.

    Taken from theirs, as what is left of the parent's mean loses digits.
    """
    parent = hierarchy.parent(node)
    if hierarchy.means is None or parent is None:
        return None
    first, *others = hierarchy.children(parent)
    if len(others) == 1:
        other: Array = hierarchy.means[others[0] if node == first else first]
        return other.astype(np.float64)
    n_rows, n_all = hierarchy.node_weights[[node, parent]].tolist()
    center = hierarchy.means[parent].astype(np.float64)
    own = n_rows / n_all * (hierarchy.means[node] - center)
    excess = _family_of(hierarchy, parent).excess
    # Seen from the parent's mean, a large child is no farther away than a small rest.
    rest: Array = center + (excess - own) * (n_all / (n_all - n_rows))
    return rest


class _Family(NamedTuple):
    """What the children of a node have in common, and each of them is compared with.

    Over the children: the mean and the largest size of the weights, and the sum of how far
    each mean is from the parent's, times its part of the rows. Empty where these are not known.
    """

    parent: int
    mean_weights: Array
    largest_weights: Array
    excess: Array


_LATEST: "WeakKeyDictionary[Hierarchy, _Family]" = WeakKeyDictionary()
"""The last family asked for, of each tree: siblings are asked for one after the other, and
in a tree of many children each would else look at all of them."""


def _family_of(hierarchy: "Hierarchy", parent: int) -> _Family:
    found = _LATEST.get(hierarchy)
    if found is not None and found.parent == parent:
        return found
    rule, means, children = hierarchy.rules[parent], hierarchy.means, hierarchy.children(parent)
    mean = largest = excess = np.zeros(0)
    if rule is not None:
        weights = rule.weights.astype(np.float64)
        mean, largest = (weights / len(weights)).sum(axis=0), np.abs(weights).max(axis=0)
    if means is not None:
        own = slice(children[0], children[-1] + 1)
        sizes = hierarchy.node_weights[own]
        excess = sizes / sizes.sum() @ (means[own].astype(np.float64) - means[parent])
    found = _LATEST[hierarchy] = _Family(parent, mean, largest, excess)
    return found
