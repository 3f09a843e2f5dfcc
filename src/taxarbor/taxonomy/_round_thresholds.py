"""Thresholds of few digits, which divide the rows at hand as before."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._number_text import round_between
from taxarbor._types import Array
from taxarbor.tree._edit_tree import leaves_below
from taxarbor.tree._rule import LinearRule, dividing_feature, threshold_of, with_threshold

if TYPE_CHECKING:
    from taxarbor.taxonomy._taxonomy import Taxonomy


def round_thresholds(
    taxonomy: "Taxonomy", X: Any, labels: NDArray[np.integer] | None = None
) -> "Taxonomy":
    """Return the tree with thresholds of few digits, where one feature divides a node in two.

    The rows X, in the units of the tree, stay on their sides; ``labels`` are the positions of
    their leaves, -1 for none, by default those of the tree. Booleans, features of 0 and 1, have
    no threshold in words, and keep theirs.
    """
    leaf_of = taxonomy.tree.labels if labels is None else labels
    is_sparse = bool(sparse.issparse(X))
    columns: Any = X.tocsc() if is_sparse else np.asarray(X)
    first, last = leaves_below(taxonomy.tree)
    rules = list(taxonomy.tree.rules)
    for node, rule in enumerate(taxonomy.tree.rules):
        feature = None if rule is None else dividing_feature(rule)
        if rule is None or feature is None:
            continue
        if taxonomy.is_boolean is not None and taxonomy.is_boolean[feature]:
            continue
        rows = np.flatnonzero((leaf_of >= first[node]) & (leaf_of < last[node]))
        column = columns[:, [feature]]
        column = column.toarray() if is_sparse else column
        values = column[rows, 0].astype(rule.dtype)
        is_second = leaf_of[rows] >= first[taxonomy.tree.children(node)[1]]
        rules[node] = _rounded(rule, feature, values, is_second)
    return replace(taxonomy, tree=replace(taxonomy.tree, rules=tuple(rules)))


def _rounded(
    rule: LinearRule, feature: int, values: Array, is_second: NDArray[np.bool_]
) -> LinearRule:
    """Return the rule with a threshold of few digits between the values of its children."""
    threshold, weights = threshold_of(rule, feature), rule.weights[:, feature]
    is_low = bool(weights[0] < weights[1])  # whether the first child has the low values
    is_high = values > threshold if is_low else values >= threshold
    by_labels = is_second == is_low
    # Rows next to the boundary may be elsewhere by rounding; others by a bound on sizes alone.
    far = np.abs(values[by_labels != is_high] - threshold).max(initial=0.0)
    reach = np.abs(rule.offsets).sum() / np.abs(weights[0] - weights[1])
    unit = float(np.abs(threshold) + np.abs(rule.center[feature]) + reach)
    if far <= 16.0 * np.finfo(rule.dtype).eps * unit:
        is_high = by_labels
    low = values[~is_high].max(initial=-np.inf)
    high = values[is_high].min(initial=np.inf)
    if not -np.inf < low < high < np.inf:
        return with_threshold(rule, feature, float(threshold))
    few = rule.dtype.type(round_between(float(threshold), float(low), float(high)))
    if not low < few < high:  # next to each other: the first child takes ties
        few = low if is_low else high
    return with_threshold(rule, feature, float(few))
