"""From a taxonomy and its rows, or a sample of them, to an explanation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, counted, warn_caller
from taxarbor._number_text import format_number
from taxarbor._types import Array, IndexArray
from taxarbor.explain._distinctive import ColumnSummary
from taxarbor.explain._explanation import N_REASONS, Explanation
from taxarbor.explain._feature_table import (
    Classes,
    FeatureTable,
    check_names,
    column_labels,
    index_labels,
)
from taxarbor.explain._margins import least_margins, measure_margins
from taxarbor.sources import open_source
from taxarbor.tables._encoding import FeatureRows
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._edit_taxonomy import drop_rows, regroup
from taxarbor.taxonomy._new_rows import add_means, expand
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._reasons import find_booleans, list_reasons
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.tree import LinearRule, Tree

MIN_SAMPLE_ROWS, SAMPLE_ROWS_PER_LEAF = 100_000, 500
"""Rows that are drawn: at least so many, and so many for each leaf."""
SAMPLED = (
    "Histograms with their means, examples and margins come from a sample of {:,} rows of "
    "{:,}; sizes, rules and the means beside them are of all rows"
)
MAX_SHIFT = 1e-3
"""Standard deviations that the mean of a column may differ by, beyond float32's rounding."""
MAX_STANDARD_ERRORS = 6.0
"""That the mean of a sample, or of weighted rows, may differ by from that of the fit."""
MIN_RELATIVE_SHARE = 0.3
"""A second feature is named only if its share is at least this part of the first one's."""
N_NAMED, NAME_LENGTH = 2, 48
"""Features in the name of a node, and characters of each."""


def explain(
    model: object,
    X: ArrayLike,
    *,
    row_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    classes: ArrayLike | None = None,
) -> Explanation:
    """Explain why the rows of a taxonomy are where they are, and how clearly.

    Parameters
    ----------
    model : fitted estimator or Taxonomy
        The taxonomy. One made from labels or merges alone is explained by nearest means.
    X : array-like or CSR matrix of shape (n_rows, n_features), or rows not in memory
        The rows that it was fitted to, in the same order; for a model of a table, that table.
        Arrays are not copied: do not change them while you use the explanation. From more than
        100,000 rows in a file, a memory map or a Dask collection, a sample is drawn.
    row_names : sequence of str, optional
        Names of the rows; by default the index of a data frame, if it holds names.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the taxonomy, or of a data frame. Those of a
        table cannot be replaced.
    classes : array-like of shape (n_rows,), optional
        Known classes of the rows, to be counted in each node. Rows without one (None, NaN, NA
        or blank text) are counted as ``"(no label)"``.

    Returns
    -------
    Explanation
        Features, examples and margins of the nodes, and the paths of the rows. Where they come
        from a sample, its ``notes`` say so.

    Raises
    ------
    ValueError
        If ``X`` does not have the rows and features of the taxonomy, or there is not one name
        or class for each. Rows that were scaled before the fit must be scaled here, too.
    TypeError, sklearn.exceptions.NotFittedError
        If there is no taxonomy, or it is within a pipeline: pass its last step.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> model = Taxarbor(6, random_state=0).fit(X)
    >>> why = explain(model, X, row_names=animals.names, feature_names=animals.feature_names)
    >>> step = why.row("otter")["steps"][0]
    >>> step["child_name"], step["margin"] > 0
    ('warm_blooded', True)
    """
    taxonomy = taxonomy_of(model)
    n_rows, (X, sample) = taxonomy.tree.n_rows, draw_rows(taxonomy, X)
    rows = expand(X, taxonomy)
    columns = taxonomy.feature_names
    if taxonomy.encoding is None:
        columns = column_labels(X) or columns
        if rows.missing is not None:
            raise InputError("X holds NaN, and the rows that the tree was grown on had none")
    if sample is None:
        check_n_rows(taxonomy.tree, rows.data.shape[0])
        taxonomy = taxonomy if taxonomy.tree.has_rows else taxonomy.attach(X)
    names = check_names("row", row_names, None if sample else index_labels(X), n_rows)
    features = check_names("feature", feature_names, columns, rows.data.shape[1])
    known = None if classes is None else Classes.of(classes, n_rows)
    given = taxonomy if features is None else taxonomy.rename_features(features)
    table, numbers = FeatureTable.of(given, rows), np.arange(n_rows)
    if sample is None:
        whole = taxonomy = complete(given, table)
        weights: Array = np.ones(n_rows)
    else:
        whole, weights, numbers = given, sample.weights, sample.rows
        taxonomy = complete(sample.take(given), table)
        labels = index_labels(X) if names is None else [names[n] for n in numbers.tolist()]
        names = None if labels is None else tuple(labels)
        known = known and replace(known, codes=known.codes[numbers])
    summary = ColumnSummary(taxonomy, table)
    check_same_rows(given, summary)
    assert table.rows is not None
    margins, units = measure_margins(taxonomy.tree, table.rows, weights)
    least = least_margins(taxonomy.tree, margins)
    if sample is None and not isinstance(X, FeatureRows):
        warn_of_order(given.tree, least)
    reasons = list_reasons(taxonomy, N_REASONS)
    notes = () if sample is None else (SAMPLED.format(len(numbers), n_rows),)
    return Explanation(
        taxonomy=taxonomy,
        names=name_nodes(reasons),
        row_names=names,
        classes=known,
        margins=margins,
        units=units,
        whole=whole,
        row_numbers=numbers,
        weights=weights,
        notes=notes,
        has_rules=has_rules(given.tree),
        _least=least,
        _reasons=tuple(reasons),
        _columns=columns,
        _table=table,
        _summary=summary,
    )


def has_rules(tree: Tree) -> bool:
    return tree.n_leaves == 1 or any(rule is not None for rule in tree.rules)


def name_nodes(reasons: Sequence[Sequence[Reason]]) -> tuple[str, ...]:
    """Return a short name of each node: the features that lead there from its parent."""
    names = ["all rows"]
    for node, first in enumerate(reasons[1:], start=1):
        named = [
            r for r in first[:N_NAMED] if not r.share < MIN_RELATIVE_SHARE * first[0].share
        ]
        words = [phrase(reason, NAME_LENGTH) for reason in named]
        names.append(", ".join(words) or f"node {node}")
    return tuple(names)


def complete(taxonomy: Taxonomy, table: FeatureTable) -> Taxonomy:
    """Add means, booleans and nearest-mean rules, where there are none."""
    tree = taxonomy.tree
    if taxonomy.means is None:
        taxonomy = add_means(taxonomy, table.data, tree.labels)
    means = taxonomy.means
    assert means is not None
    if not has_rules(tree):
        families = [list(tree.children(node)) for node in range(tree.n_nodes)]
        rules = [LinearRule.nearest(means[family]) if family else None for family in families]
        taxonomy = replace(taxonomy, tree=replace(tree, rules=tuple(rules)))
    # Where values are missing, the rows do not say which features are booleans.
    if taxonomy.is_boolean is None and taxonomy.encoding is None and table.rows is not None:
        taxonomy = replace(taxonomy, is_boolean=find_booleans(table.rows))
    return taxonomy


# Samples


class Sample(NamedTuple):
    """Rows that were drawn: their numbers, leaves, and how many rows each stands for."""

    rows: IndexArray
    labels: IndexArray
    weights: Array

    def take(self, taxonomy: Taxonomy) -> Taxonomy:
        """Return a taxonomy with these rows only."""
        taken = regroup(drop_rows(taxonomy), self.labels, self.weights)
        if (stability := taxonomy.stability) is None:
            return taken
        return replace(taken, stability=replace(stability, rows=stability.rows[self.rows]))


def draw_rows(taxonomy: Taxonomy, X: Any) -> tuple[Any, Sample | None]:
    """Return rows in memory as they are, and a sample of others, if there are many."""
    source, tree = None if isinstance(X, FeatureRows) else open_source(X), taxonomy.tree
    if source is None or source.in_memory:
        return X, None
    drawn = source.sample(max(MIN_SAMPLE_ROWS, SAMPLE_ROWS_PER_LEAF * tree.n_leaves), seed=0)
    check_n_rows(tree, drawn.n_rows)
    if len(drawn.rows) == drawn.n_rows:
        return drawn.table, None
    labels = tree.labels[drawn.rows] if tree.has_rows else taxonomy.predict(drawn.table)
    n_drawn = np.bincount(labels[labels >= 0], minlength=tree.n_leaves)
    if not n_drawn.all():
        raise InputError(
            f"none of {counted(len(labels), 'row')} drawn from X is in cluster "
            f"c{int(n_drawn.argmin())} of the tree: pass the rows that the tree was grown on, "
            "or a smaller tree, as taxonomy.prune returns it"
        )
    # The rows of a leaf stand for all of its rows; noise counts for nothing.
    weights = np.ones(len(labels)) if tree.weights is None else tree.weights[drawn.rows]
    sums = np.bincount(labels + 1, weights, minlength=tree.n_leaves + 1)[1:]
    factors = tree.node_weights[tree.leaves] / np.where(sums > 0.0, sums, 1.0)
    weights = weights * np.append(factors, 0.0)[labels]
    return drawn.table, Sample(drawn.rows, labels, weights)


# Checks


def check_n_rows(tree: Tree, n_rows: int) -> None:
    """Raise ValueError if X does not have as many rows as the tree was grown on."""
    if n_rows != tree.n_rows:
        raise InputError(
            f"X has {n_rows:,} rows, but the tree was grown on {tree.n_rows:,}: pass the same "
            "rows, in the same order"
        )


def check_same_rows(taxonomy: Taxonomy, summary: ColumnSummary) -> None:
    """Raise ValueError if the mean of a column is not that of the taxonomy's own rows.

    Those of a sample, on which large trees are grown, or of rows with weights, which a fit
    rounds, may differ by some standard errors.
    """
    if taxonomy.means is None:
        return
    weights, center, max_shift = summary.weights, summary.center, MAX_SHIFT
    if taxonomy.tree.n_rows > MIN_SAMPLE_ROWS:
        max_shift = MAX_STANDARD_ERRORS / MIN_SAMPLE_ROWS**0.5
    if not (weights == 1.0).all():
        error = float(np.sqrt(np.square(weights).sum()) / weights.sum())
        max_shift = max(max_shift, MAX_STANDARD_ERRORS * error)
    fitted = taxonomy.means[taxonomy.tree.root].astype(np.float64)
    allowed = max_shift * summary.spread + 4.0 * np.finfo(np.float32).eps * np.abs(center)
    shifted = np.flatnonzero(np.abs(fitted - center) > allowed)
    if len(shifted):
        column, names = int(shifted[0]), taxonomy.feature_names
        name = names[column] if names else f"x{column}"
        before, now = (format_number(float(means[column])) for means in (fitted, center))
        raise InputError(
            "X does not hold the rows that the tree was grown on, in the same order: the mean "
            f"of {name} was {before}, and is {now} now. If the rows were scaled for the fit, "
            "pass the scaled rows, pipeline[:-1].transform(X)"
        )


def warn_of_order(tree: Tree, least: tuple[Array, ...]) -> None:
    """Warn if the rules send most rows elsewhere: they may be in another order."""
    if tree.n_leaves == 1 or not has_rules(tree):
        return
    share = float((np.concatenate([least[leaf] for leaf in tree.leaves]) >= 0.0).mean())
    if share < 0.5:
        problem = f"the rules send only {share:.0%} of these rows where the tree has them"
        warn_caller(f"{problem}: are they in the same order?", UserWarning)
