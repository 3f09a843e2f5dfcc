"""From a taxonomy and its rows to an explanation."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, warn_caller
from taxarbor._number_text import format_number
from taxarbor._types import Array, TableLike
from taxarbor.explain._rows import FeatureTable, measure_margins, name_rows
from taxarbor.explain.distinctive import ColumnSummary
from taxarbor.explain.explanation import Explanation
from taxarbor.metrics.classes import Classes
from taxarbor.tables.columns import FeatureRows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._reasons import list_reasons
from taxarbor.taxonomy.new_rows import load_rows, read_rows
from taxarbor.taxonomy.statistics import describe_rows
from taxarbor.taxonomy.taxonomy import taxonomy_of
from taxarbor.tree import LinearRule, Tree

MAX_STANDARD_ERRORS = 6.0  # between the mean of a column and that of the fit
FIT_SAMPLE_ROWS = 100_000  # rows of the smallest sample that a tree is found on
MIN_RELATIVE_SHARE = 0.3  # of the first feature's share, for a second one to be named
N_NAMED, NAME_LENGTH = 2, 48  # features in the name of a node, and characters of each


def explain(
    model: object,
    X: TableLike,
    *,
    row_names: Sequence[str] | None = None,
    classes: ArrayLike | None = None,
) -> Explanation:
    """Explain why the rows of a taxonomy are where they are, and how clearly.

    Parameters
    ----------
    model : fitted estimator or Taxonomy
        The taxonomy. One made from labels or merges alone is explained by nearest means.
        Features are called as it says, or else as the columns of a data frame; others can be
        given by :meth:`~taxarbor.Taxonomy.rename_features`.
    X : array-like, CSR matrix, data frame, AnnData or path of shape (n_rows, n_columns)
        The rows that it was fitted to, in the same order; for a model of a table, that table.
        Files are read into memory; arrays are not copied: do not change them while you use the
        explanation.
    row_names : sequence of str, optional
        Names of the rows; by default the index of a data frame, if it holds names.
    classes : array-like of shape (n_rows,), optional
        Known classes of the rows, to be counted in each node. Rows without one (None, NaN, NA
        or blank text) are counted as ``"(no label)"``.

    Returns
    -------
    Explanation
        Features, examples and margins of the nodes, and the paths of the rows.

    Raises
    ------
    ValueError
        If ``X`` does not have the rows and features of the taxonomy, or there is not one name
        or class for each. Rows that were scaled before the fit must be scaled here, too.
    TypeError, sklearn.exceptions.NotFittedError
        If there is no taxonomy, or it is within a pipeline: pass its last step. If ``X`` is a
        Dask collection: attach a sample to the taxonomy, and explain that.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> model = Taxarbor(6, random_state=0).fit(X)
    >>> taxonomy = model.taxonomy_.rename_features(animals.feature_names)
    >>> why = explain(taxonomy, X, row_names=animals.names)
    >>> why.names[1], [example["name"] for example in why.examples(1, 2)["typical"]]
    ('gives_milk', ['dog', 'cheetah'])
    """
    taxonomy, source = load_rows(taxonomy_of(model), X)
    columns, names = taxonomy.columns, source.names
    if columns.names is None and names and len(names) == columns.n_columns_in:
        taxonomy = replace(taxonomy, columns=replace(columns, names=tuple(names)))
    rows = read_rows(taxonomy, source)
    if (n_rows := rows.data.shape[0]) != taxonomy.tree.n_rows:
        rows_are = f"has {n_rows:,} rows, and the tree {taxonomy.tree.n_rows:,}"
        raise InputError(f"{rows_are}: pass the same rows, in the same order", "X")
    taxonomy = taxonomy if taxonomy.tree.has_rows else taxonomy.attach(source)
    table, came_with_rules = FeatureTable.of(taxonomy, rows), has_rules(taxonomy.tree)
    assert table.rows is not None
    complete = add_what_is_missing(taxonomy, table)
    summary = ColumnSummary(complete, table)
    check_same_rows(taxonomy, summary, table)
    explanation = Explanation(
        taxonomy=complete,
        names=name_nodes(complete),
        row_names=name_rows(row_names, X, n_rows),
        classes=None if classes is None else Classes.of(classes, n_rows),
        margins=measure_margins(complete.tree, table.rows),
        has_rules=came_with_rules,
        _table=table,
        _summary=summary,
    )
    share = float((explanation.least_margins >= 0.0).mean())
    if came_with_rules and share < 0.5:
        problem = f"the rules send only {share:.0%} of these rows where the tree has them"
        warn_caller(f"{problem}: are they in the same order?", UserWarning)
    return explanation


def has_rules(tree: Tree) -> bool:
    return tree.n_leaves == 1 or any(rule is not None for rule in tree.rules)


def add_what_is_missing(taxonomy: Taxonomy, table: FeatureTable) -> Taxonomy:
    """Add means, booleans and nearest-mean rules, where there are none."""
    tree, columns = taxonomy.tree, taxonomy.columns
    if taxonomy.statistics is None:
        rows = FeatureRows(table.data, table.missing)
        statistics = describe_rows(tree, columns, rows, tree.labels, tree.weights)
        if table.rows is not None and not columns.readings:
            columns = replace(columns, is_boolean=table.rows.find_booleans())
        taxonomy = replace(taxonomy, statistics=statistics, columns=columns)
    means = taxonomy.means
    assert means is not None
    if not has_rules(tree):
        points = means.astype(table.data.dtype)
        families = [list(tree.children(node)) for node in range(tree.n_nodes)]
        rules = [LinearRule.nearest(points[family]) if family else None for family in families]
        taxonomy = replace(taxonomy, tree=replace(tree, rules=tuple(rules)))
    return taxonomy


def name_nodes(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return a short name of each node: the features that lead there from its parent."""
    names = ["all rows"]
    for node, reasons in enumerate(list_reasons(taxonomy, N_NAMED)[1:], start=1):
        named = [r for r in reasons if not r.share < MIN_RELATIVE_SHARE * reasons[0].share]
        words = [phrase(reason, NAME_LENGTH) for reason in named]
        names.append(", ".join(words) or f"node {node}")
    return tuple(names)


def check_same_rows(taxonomy: Taxonomy, summary: ColumnSummary, table: FeatureTable) -> None:
    """Raise ValueError if the mean of a column is not that of the taxonomy's own rows.

    Means of a large tree are those of a sample. They count outliers, which the summary leaves
    out, as it does rows of so small a weight that a fit rounds it to zero.
    """
    if taxonomy.means is None:
        return
    weights, center, error = summary.weights, summary.center, FIT_SAMPLE_ROWS**-0.5
    if (weights != 1.0).any():
        error = max(error, float(np.sqrt(np.square(weights).sum()) / weights.sum()))
    fitted: Array = taxonomy.means[taxonomy.tree.root].astype(np.float64)
    allowed = MAX_STANDARD_ERRORS * error * summary.spread
    allowed += 4.0 * np.finfo(np.float32).eps * np.abs(center)
    excluded = np.flatnonzero((weights == 0.0) & (taxonomy.tree.labels >= 0))
    if len(excluded):
        sums = np.asarray(table.data[excluded].sum(axis=0)) - len(excluded) * center
        allowed += np.abs(sums) / (weights.sum() / weights.max() + len(excluded))
    shifted = np.flatnonzero(np.abs(fitted - center) > allowed)
    if len(shifted):
        column = int(shifted[0])
        name = taxonomy.columns.feature_name(column)
        before, now = (format_number(float(means[column])) for means in (fitted, center))
        raise InputError(
            f"X does not hold the rows of the tree, in the same order: the mean of {name} was "
            f"{before}, and is {now} now. If they were scaled, pass pipeline[:-1].transform(X)"
        )
