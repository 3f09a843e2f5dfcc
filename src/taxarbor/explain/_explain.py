"""From a tree and its rows to an explanation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._types import Array
from taxarbor.explain._explanation import Explanation
from taxarbor.explain._given import check_same_rows, columns_of, given_names, index_of
from taxarbor.explain._margins import children_of_rows, least_margins, raw_margins
from taxarbor.explain._words import are_yes_no, name_nodes
from taxarbor.hierarchy import (
    Hierarchy,
    LinearRule,
    check_columns,
    check_data,
    hierarchy_of,
    with_means,
)
from taxarbor.rows import Rows, as_rows


def explain(
    model: Any,
    X: ArrayLike,
    *,
    row_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
) -> Explanation:
    """Say why the rows of a tree are where they are, and how clearly.

    Parameters
    ----------
    model : fitted estimator or Hierarchy
        The tree. One made from labels or merges alone is explained by nearest means.
    X : array-like or CSR matrix of shape (n_rows, n_features)
        The rows that it was grown on, in the same order. They are not copied: do not change
        them while you use the explanation.
    row_names : sequence of str, optional
        What the rows are called; by default the index of a data frame that has names.
    feature_names : sequence of str, optional
        Names of the columns; by default the tree's own, or those of a data frame.

    Returns
    -------
    Explanation
        Features, examples and margins of the nodes, and the ways of the rows.

    Raises
    ------
    ValueError
        If ``X`` does not have the rows and features of the tree, or there is not one name
        for each. Rows that were scaled before the tree was grown must be scaled here, too.
    TypeError
        If there is no tree, or it is within a pipeline: pass its last step.
    sklearn.exceptions.NotFittedError
        If the model was not fitted.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> model = HMMC(6, random_state=0).fit(X)
    >>> why = explain(model, X, row_names=animals.names, feature_names=animals.feature_names)
    >>> step = why.row("otter")["steps"][0]
    >>> step["child_name"], step["margin"] > 0
    ('gives_milk', True)
    """
    tree = hierarchy_of(model)
    check_columns(X, tree.feature_names)
    columns = columns_of(X) or tree.feature_names
    data = check_data(X, tree)
    n_rows, n_features = data.shape
    if n_rows != len(tree.order):
        raise ValueError(
            f"X has {n_rows} rows, but the tree was grown on {len(tree.order)}: pass the same "
            "rows, in the same order"
        )
    names = given_names("feature", feature_names, columns, n_features)
    called = given_names("row", row_names, index_of(X), n_rows)
    rows = as_rows(data)
    check_same_rows(tree, rows, data)
    tree = _described(tree if names is None else replace(tree, feature_names=names), rows)
    margins, units = _measure(tree, rows)
    is_yes_no = are_yes_no(data)
    return Explanation(
        hierarchy=tree,
        names=name_nodes(tree, is_yes_no.tolist()),
        row_names=called,
        margins=margins,
        units=units,
        is_yes_no=is_yes_no,
        _least=least_margins(tree, margins),
        _columns=columns,
        _rows=rows,
        _data=data,
    )


def _described(tree: Hierarchy, rows: Rows) -> Hierarchy:
    """Return the tree with means, and with rules where it has none: the nearest child's mean.

    Such a rule weighs each feature by how far apart the children are in it.
    """
    if tree.means is None:
        tree = with_means(tree, rows)
    if any(rule is not None for rule in tree.rules):
        return tree
    means = tree.means
    assert means is not None
    rules = [
        LinearRule.nearest(means[list(children)]) if children else None
        for children in (tree.children(node) for node in range(tree.n_nodes))
    ]
    return replace(tree, rules=tuple(rules))


def _measure(tree: Hierarchy, rows: Rows) -> tuple[tuple[Array | None, ...], Array]:
    """Return the margins of the rows at each split, and the medians they were divided by."""
    margins: list[Array | None] = []
    units = np.ones(tree.n_nodes)
    for node in range(tree.n_nodes):
        if tree.is_leaf(node):
            margins.append(None)
            continue
        found = raw_margins(tree, rows, node, tree.rows(node), children_of_rows(tree, node))
        unit = float(np.median(np.abs(found)))
        units[node] = unit if unit > 0.0 else 1.0
        margins.append(found / units[node])
    return tuple(margins), units
