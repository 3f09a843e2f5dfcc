"""From a tree and its rows, or a sample of them, to an explanation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError
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
from taxarbor.explain._sample import Sample, draw_rows
from taxarbor.explain._steps import Source, least_margins, measure
from taxarbor.hierarchy import Hierarchy, LinearRule
from taxarbor.hierarchy._encoding import Expanded
from taxarbor.hierarchy._reasons import find_two_values
from taxarbor.hierarchy._remade import regrouped, weighted, without_rows
from taxarbor.hierarchy._route import check_columns, expand, with_means
from taxarbor.hierarchy._tree import hierarchy_of
from taxarbor.rows import Rows
from taxarbor.tables._checks import check_weights
from taxarbor.tables._stream import as_stream

APART = 6.0
"""Standard errors that the mean of a sample may differ by from that of all rows."""


def explain(
    model: Any,
    X: ArrayLike,
    *,
    row_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Explanation:
    """Say why the rows of a tree are where they are, and how clearly.

    Parameters
    ----------
    model : fitted estimator or Hierarchy
        The tree. One made from labels or merges alone is explained by nearest means.
    X : array-like or CSR matrix of shape (n_rows, n_features), or what is read part by part
        The rows that it was grown on, in the same order; of a tree of a table, that table.
        Arrays are not copied: do not change them while you use the explanation. Of more than
        some 100,000 rows in a file, a memory map or a collection of Dask, a sample of each
        leaf is drawn.
    row_names : sequence of str, optional
        What the rows are called; by default the index of a data frame that has names.
    feature_names : sequence of str, optional
        Names of the columns; by default the tree's own, or those of a data frame. A table
        names its own.
    classes : array-like of shape (n_rows,), optional
        Known classes of the rows, to be counted in each node. Rows without one (None, NaN, NA
        or blank text) are counted as ``"(no label)"``.
    sample_weight : array-like of shape (n_rows,), optional
        What each row counts for in means, shares and histograms; by default what it counted
        for in the fit.

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
    tree, stream = hierarchy_of(model), as_stream(X)
    sample = None
    if stream is not None:
        if sample_weight is not None:
            told = "cannot be given with rows that are read part by part: fit with weights"
            raise InputError(told, "sample_weight")
        sample = draw_rows(tree, stream)
        X = sample.X
    numbers = None if sample is None else sample.numbers
    columns = _columns_of(tree, X)
    data, gaps = _expanded(tree, X)
    n_rows = tree.n_rows
    if numbers is None:
        tree = _with_rows(tree, X, data.shape[0])
    called = given_names("row", row_names, index_of(X) if numbers is None else None, n_rows)
    named = given_names("feature", feature_names, columns, data.shape[1])
    known = None if classes is None else Classes.of(classes, n_rows)
    own = whole = tree if named is None else tree.rename_features(named)
    source, weights = Source.of(own, data, gaps), None
    if sample is None or numbers is None:
        tree, portraits = _of_all(own, source, gaps, sample_weight)
        whole = tree
    else:
        tree, portraits = _of_sample(own, sample, source)
        found = index_of(X) if called is None else [called[n] for n in numbers.tolist()]
        called = None if found is None else tuple(found)
        known = known and replace(known, codes=known.codes[numbers])
        weights = tree.weights
    margins, units = measure(tree, source.rows, weights)
    least = least_margins(tree, margins)
    return Explanation(
        hierarchy=tree,
        names=name_nodes(tree),
        row_names=called,
        classes=known,
        margins=margins,
        units=units,
        whole=whole,
        numbers=numbers,
        notes=() if sample is None or numbers is None else (sample.told(n_rows),),
        _least=least,
        _columns=columns,
        _n_used=tree.n_features_used.tolist(),
        _source=source,
        _portraits=portraits,
    )


def _with_rows(tree: Hierarchy, X: Any, n_rows: int) -> Hierarchy:
    """Return the tree with these rows, which must be as many as it was grown on."""
    if n_rows != tree.n_rows:
        raise InputError(
            f"X has {n_rows} rows, but the tree was grown on {tree.n_rows}: pass the same "
            "rows, in the same order"
        )
    return tree if tree.has_rows else tree.attach(X)


def _of_all(
    tree: Hierarchy, source: Source, gaps: Any, sample_weight: ArrayLike | None
) -> tuple[Hierarchy, Portraits]:
    """Return the tree with all that its rows tell, which count by other weights if given."""
    portraits = Portraits(tree, source)
    check_same_rows(tree, portraits.center, portraits.spread, portraits.moved)
    tree = _described(tree, source.rows)
    if sample_weight is None:
        return tree, portraits
    tree = weighted(tree, check_weights(sample_weight, tree.n_rows), source.rows, gaps)
    return tree, Portraits(tree, source)


def _of_sample(whole: Hierarchy, sample: Sample, source: Source) -> tuple[Hierarchy, Portraits]:
    """Return the tree with the rows of a sample, and with what is known of all rows."""
    assert sample.labels is not None
    assert sample.weights is not None
    tree = regrouped(without_rows(whole), sample.labels)
    if whole.means is None:
        tree = with_means(tree, source.rows)
    tree = _described(replace(tree, weights=sample.weights), source.rows)
    if whole.two_values is not None:
        tree = replace(tree, two_values=whole.two_values)
    if whole.trust is not None:
        trust = replace(whole.trust, rows=whole.trust.rows[sample.numbers])
        tree = replace(tree, trust=trust)
    portraits = Portraits(tree, source, is_sample=True)
    # A sample differs a little, the less the more rows count.
    n_effective = sample.weights.sum() ** 2 / np.square(sample.weights).sum()
    check_same_rows(whole, portraits.mean, portraits.spread, APART / np.sqrt(n_effective))
    return tree, portraits


def _columns_of(tree: Hierarchy, X: Any) -> Sequence[str] | None:
    """Return the names of the columns, those of a frame first, which must be the tree's."""
    if tree.encoding is not None:
        return tree.feature_names
    check_columns(X, tree.feature_names)
    return columns_of(X) or tree.feature_names


def _expanded(tree: Hierarchy, X: Any) -> Expanded:
    """Return the rows as the tree's features, and their gaps."""
    found = expand(X, tree)
    if found.gaps is not None and tree.encoding is None:
        raise InputError("X holds NaN, and the rows that the tree was grown on had no gaps")
    return found


def _described(tree: Hierarchy, rows: Rows) -> Hierarchy:
    """Return the tree with all that its rows tell, and nearest-mean rules if it has none."""
    if tree.means is None:
        tree = with_means(tree, rows)
    assert tree.means is not None
    if not any(rule is not None for rule in tree.rules):
        families = [list(tree.children(node)) for node in range(tree.n_nodes)]
        rules = [LinearRule.nearest(tree.means[some]) if some else None for some in families]
        tree = replace(tree, rules=tuple(rules))
    if tree.two_values is not None or tree.encoding is not None:
        return tree
    return replace(tree, two_values=find_two_values(rows))
