"""From a tree and its rows, or a sample of them, to an explanation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, warn_caller
from taxarbor._types import Array
from taxarbor.explain._explanation import Explanation
from taxarbor.explain._names import (
    Classes,
    check_same_rows,
    columns_of,
    given_names,
    index_of,
    name_nodes,
)
from taxarbor.explain._portrait import Portraits
from taxarbor.explain._sample import check_n_rows, draw_rows
from taxarbor.explain._steps import Source, least_margins, measure
from taxarbor.rows import Rows
from taxarbor.tables._encoding import Expanded
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit import drop_rows, regroup
from taxarbor.taxonomy._reasons import find_two_values
from taxarbor.taxonomy._routing import add_means, check_columns, expand
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.tree import LinearRule

SAMPLED = (
    "Histograms with their means, examples and margins come from a sample of {:,} rows of "
    "{:,}; sizes, rules and the means beside them are of all rows"
)


def explain(
    model: Any,
    X: ArrayLike,
    *,
    row_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    classes: ArrayLike | None = None,
) -> Explanation:
    """Explain why the rows of a tree are where they are, and how clearly.

    Parameters
    ----------
    model : fitted estimator or Taxonomy
        The tree. One made from labels or merges alone is explained by nearest means.
    X : array-like or CSR matrix of shape (n_rows, n_features), or rows not in memory
        The rows that it was grown on, in the same order; of a tree of a table, that table.
        Arrays are not copied: do not change them while you use the explanation. Of more than
        100,000 rows in a file, a memory map or a Dask collection, a sample is drawn.
    row_names : sequence of str, optional
        What the rows are called; by default the index of a data frame that has names.
    feature_names : sequence of str, optional
        Names of the columns; by default the tree's own, or those of a data frame. A table
        names its own.
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
        If ``X`` does not have the rows and features of the tree, or there is not one name or
        class for each. Rows that were scaled before the fit must be scaled here, too.
    TypeError, sklearn.exceptions.NotFittedError
        If there is no tree, or it is within a pipeline: pass its last step.

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
    drawn = draw_rows(taxonomy, X)
    X, numbers, n_rows = drawn.table, drawn.rows, taxonomy.tree.n_rows
    columns: Sequence[str] | None = taxonomy.feature_names
    if taxonomy.encoding is None:
        check_columns(X, columns)
        columns = columns_of(X) or columns
    data, gaps = expand(X, taxonomy)
    if gaps is not None and taxonomy.encoding is None:
        raise InputError("X holds NaN, and the rows that the tree was grown on had none")
    if numbers is None:
        check_n_rows(taxonomy, data.shape[0])
        taxonomy = taxonomy if taxonomy.tree.has_rows else taxonomy.attach(X)
    called = given_names("row", row_names, index_of(X) if numbers is None else None, n_rows)
    named = given_names("feature", feature_names, columns, data.shape[1])
    known = None if classes is None else Classes.of(classes, n_rows)
    given = whole = taxonomy if named is None else taxonomy.rename_features(named)
    source = Source.of(given, data, gaps)
    if numbers is None:
        whole = taxonomy = _described(given, data, source.rows)
    else:
        assert drawn.labels is not None
        taxonomy = regroup(drop_rows(given), drawn.labels, drawn.weights)
        if given.stability is not None:
            taxonomy = replace(
                taxonomy, stability=replace(given.stability, rows=given.stability.rows[numbers])
            )
        taxonomy = _described(taxonomy, data, source.rows)
        found = index_of(X) if called is None else [called[n] for n in numbers.tolist()]
        called = None if found is None else tuple(found)
        known = known and replace(known, codes=known.codes[numbers])
    portraits = Portraits(taxonomy, source)
    check_same_rows(given, portraits)
    margins, units = measure(
        taxonomy, source.rows, taxonomy.tree.weights if numbers is not None else None
    )
    least = least_margins(taxonomy, margins)
    if numbers is None and not isinstance(X, Expanded):
        _warn_of_order(given, least)
    return Explanation(
        taxonomy=taxonomy,
        names=name_nodes(taxonomy),
        row_names=called,
        classes=known,
        margins=margins,
        units=units,
        whole=whole,
        numbers=np.arange(n_rows) if numbers is None else numbers,
        notes=() if numbers is None else (SAMPLED.format(len(numbers), n_rows),),
        has_rules=_has_rules(given),
        _least=least,
        _columns=columns,
        _source=source,
        _portraits=portraits,
    )


def _has_rules(taxonomy: Taxonomy) -> bool:
    return taxonomy.tree.n_leaves == 1 or any(rule is not None for rule in taxonomy.tree.rules)


def _warn_of_order(taxonomy: Taxonomy, least: tuple[Array, ...]) -> None:
    """Warn if the rules send most rows elsewhere: they may be in another order."""
    if taxonomy.tree.n_leaves == 1 or not _has_rules(taxonomy):
        return
    share = float(
        (np.concatenate([least[leaf] for leaf in taxonomy.tree.leaves]) >= 0.0).mean()
    )
    if share < 0.5:
        message = (
            f"the rules send only {100 * share:.0f} % of these rows where the tree has them"
        )
        warn_caller(f"{message}: are they in the same order?", UserWarning)


def _described(taxonomy: Taxonomy, data: Any, rows: Rows) -> Taxonomy:
    """Return the tree with means, two-valued features, and nearest-mean rules if without."""
    if taxonomy.means is None:
        taxonomy = add_means(taxonomy, data, taxonomy.tree.labels)
    assert taxonomy.means is not None
    if not _has_rules(taxonomy):
        families = [list(taxonomy.tree.children(node)) for node in range(taxonomy.tree.n_nodes)]
        rules = [
            LinearRule.nearest(taxonomy.means[some]) if some else None for some in families
        ]
        taxonomy = replace(taxonomy, tree=replace(taxonomy.tree, rules=tuple(rules)))
    # Where values are missing, the rows do not say which features have two values.
    if taxonomy.two_values is None and taxonomy.encoding is None:
        taxonomy = replace(taxonomy, two_values=find_two_values(rows))
    return taxonomy
