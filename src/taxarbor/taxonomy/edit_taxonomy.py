"""Taxonomies made from another: coarser, with other rows, in the units of a table."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from taxarbor._errors import InputError, counted, some
from taxarbor._number_text import round_between
from taxarbor._types import Array, IndexArray, Mask, TableLike
from taxarbor.tables.checks import check_weights
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy.new_rows import load_rows, read_rows, route
from taxarbor.taxonomy.statistics import describe_rows
from taxarbor.tree import Tree, edit_tree
from taxarbor.tree.edit_tree import leaves_below
from taxarbor.tree.rule import (
    LinearRule,
    dividing_feature,
    threshold_of,
    unscale_rule,
    with_threshold,
)

if TYPE_CHECKING:
    from taxarbor.taxonomy.taxonomy import Taxonomy


def prune(
    taxonomy: "Taxonomy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> "Taxonomy":
    """Return a coarser taxonomy; see :meth:`Taxonomy.prune`."""
    tree, nodes = edit_tree.prune(taxonomy.tree, n_clusters, depth)
    pruned = _take_nodes(taxonomy, tree, nodes)
    if taxonomy.stability is None:
        return pruned
    is_inner = np.bincount(tree.parents[1:], minlength=tree.n_nodes) > 0
    stability = taxonomy.stability.take(nodes, is_inner, tree.node_weights)
    return replace(pruned, stability=stability)


def regroup(
    taxonomy: "Taxonomy", labels: IndexArray, weights: Array | None = None
) -> "Taxonomy":
    """Return the taxonomy with other rows in its leaves; see :func:`edit_tree.regroup`."""
    return _take_nodes(taxonomy, *edit_tree.regroup(taxonomy.tree, labels, weights))


def resize(taxonomy: "Taxonomy", counts: IndexArray, n_noise: int = 0) -> "Taxonomy":
    """Return a taxonomy of counts with other numbers of rows in its leaves, and of noise."""
    return _take_nodes(taxonomy, *edit_tree.resize(taxonomy.tree, counts, n_noise))


def _take_nodes(taxonomy: "Taxonomy", tree: Tree, nodes: IndexArray) -> "Taxonomy":
    """Return the taxonomy of a tree made from its own, given which nodes its nodes were."""
    statistics = taxonomy.statistics and taxonomy.statistics.take(nodes)
    return replace(taxonomy, tree=tree, statistics=statistics, stability=None)


def attach(taxonomy: "Taxonomy", X: TableLike, sample_weight: ArrayLike | None) -> "Taxonomy":
    """Return the tree with these rows; see :meth:`Taxonomy.attach`."""
    taxonomy, source = load_rows(taxonomy, X)
    rows = read_rows(taxonomy, source)
    if not (n_rows := rows.data.shape[0]):
        raise InputError("X has no rows, and a tree with rows needs one in each leaf")
    labels, weights = route(taxonomy, rows), check_weights(sample_weight, n_rows)
    counts = np.bincount(labels[labels >= 0], minlength=taxonomy.tree.n_leaves)
    _require_all(counts, "no row of X goes to", "pass more rows")
    new = regroup(taxonomy, labels, weights)
    totals = new.tree.node_weights[new.tree.leaves]
    _require_all(totals, "sample_weight is zero for all rows of", "give some a weight")
    statistics = describe_rows(new.tree, new.columns, rows, new.tree.labels, weights)
    return replace(new, statistics=statistics)


def _require_all(sizes: NDArray[Any], problem: str, remedy: str) -> None:
    """Raise an error if a leaf has no rows, or only rows of zero weight."""
    empty = [f"c{label}" for label in np.flatnonzero(sizes == 0).tolist()]
    if empty:
        clusters = f"{counted(len(empty), 'cluster')} of the tree, {some(empty, 5)}"
        raise InputError(f"{problem} {clusters}: {remedy}, or prune the taxonomy")


def restore_units(tree: Tree, columns: Columns) -> Tree:
    """Return a tree of scaled features as one of the features in the user's units."""
    if not columns.is_scaled:
        return tree
    dtype = np.float64 if columns.is_sparse else None  # these units may need more digits
    units = columns.shift, columns.scale
    rules = tuple(rule and unscale_rule(rule, *units, dtype) for rule in tree.rules)
    return replace(tree, rules=rules)


def round_thresholds(
    taxonomy: "Taxonomy", X: Any, labels: NDArray[np.integer] | None = None
) -> "Taxonomy":
    """Return the tree with thresholds of few digits, where one feature divides a node in two.

    The rows X, in the units of the tree, stay on their sides; ``labels`` are the positions of
    their leaves, -1 for none, by default those of the tree.
    """
    leaf_of = taxonomy.tree.labels if labels is None else labels
    is_sparse = bool(sparse.issparse(X))
    columns: Any = X.tocsc() if is_sparse else np.asarray(X)
    first, last = leaves_below(taxonomy.tree)
    rules = list(taxonomy.tree.rules)
    for node, rule in enumerate(taxonomy.tree.rules):
        if rule is None or (feature := dividing_feature(rule)) is None:
            continue
        rows = np.flatnonzero((leaf_of >= first[node]) & (leaf_of < last[node]))
        column = columns[:, [feature]]
        column = column.toarray() if is_sparse else column
        values = column[rows, 0].astype(rule.dtype)
        is_second = leaf_of[rows] >= first[taxonomy.tree.children(node)[1]]
        rules[node] = _rounded(rule, feature, values, is_second, taxonomy.columns)
    return replace(taxonomy, tree=replace(taxonomy.tree, rules=tuple(rules)))


def _rounded(
    rule: LinearRule, feature: int, given: Array, is_second: Mask, columns: Columns
) -> LinearRule:
    """Return the rule with a threshold of few digits between the values of its children."""

    def take_log(values: Array) -> Array:
        logs: Array = columns.take_logs(values[:, None], [feature])[:, 0]
        return logs

    values = take_log(given)
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
    ends = given[~is_high].max(), given[is_high].min()
    shown = np.clip(columns.undo_log(feature, threshold), *ends)
    few = take_log(np.array([round_between(*map(float, (shown, *ends)))], dtype=rule.dtype))[0]
    if not low < few < high:  # next to each other: the first child takes ties
        few = low if is_low else high
    return with_threshold(rule, feature, float(few))
