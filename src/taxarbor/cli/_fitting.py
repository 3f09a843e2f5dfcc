"""From a table to a tree that takes rows as they are in the file."""

import time
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from taxarbor._errors import InputError, TableWarning, counted
from taxarbor.cli._reading import as_frame, is_framed, marked, named_columns, split_names
from taxarbor.cli._shell import noted
from taxarbor.estimators import HMMC, Taxarbor
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import is_plain
from taxarbor.hierarchy._checks import all_finite
from taxarbor.tables import Table, TableEncoder
from taxarbor.tables._checks import check_jobs
from taxarbor.tables._profile import AS_DATES, AS_IDENTIFIER
from taxarbor.trust import assess

METHODS: dict[str, type[Any]] = {"taxarbor": Taxarbor, "hmmc": HMMC}
OPTIONS = {
    AS_IDENTIFIER: "looks like an identifier; ask for it with --columns to use it",
    AS_DATES: "dates; name it in --dates to use it",
}
"""Why columns are left out, in words of the command line."""
MODELS = {kind.__name__: kind for kind in METHODS.values()}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A tree with the table's names, for rows in the table's units, and what it took.

    ``dropped`` are the columns of the file that it does not use, each with the reason.
    """

    tree: Hierarchy
    seconds: float
    dropped: tuple[tuple[str, str], ...]


def make_estimator(method: str, settings: dict[str, Any]) -> Any:
    """Return the estimator of a method."""
    check_jobs(settings.get("n_jobs"))
    return METHODS[method](**settings)


def make_encoder(
    table: Table, categories: str | None, dates: str | None, **given: str | None
) -> tuple[Table, Any]:
    """Return a table whose columns are marked, and its encoder, by the options that were given.

    Matrices are numbers of one kind: they are not scaled unless that is asked for.
    """
    kinds = named_columns(table, split_names(categories, "categories"), "categories")
    days = named_columns(table, split_names(dates, "dates"), "dates")
    table, is_frame = marked(table, days, kinds), is_framed(table)
    options: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    if not (options or is_frame or _has_named_gaps(table)):
        return table, "auto"
    scale = options.get("scale", "auto")
    options["scale"] = None if scale == "none" or (scale == "auto" and not is_frame) else scale
    return table, TableEncoder(**options, date_features=days or None)


def _has_named_gaps(table: Table) -> bool:
    """Say whether a matrix has gaps that are best told of by the names of its columns."""
    X: Any = table.X
    is_dense = isinstance(X, np.ndarray)
    return table.feature_names is not None and is_dense and not all_finite(X)


def fit_table(table: Table, estimator: Any, notes: list[str], weights: Any) -> Fitted:
    """Fit an estimator to a table; what it did and warns of goes to the notes."""
    X: Any = table.X if estimator.encoder == "auto" else as_frame(table)
    names = None if is_framed(replace(table, X=X)) else table.feature_names
    counts = {} if weights is None else {"sample_weight": weights}
    begun = time.perf_counter()
    warned: list[str] = []
    with noted(warned, but=TableWarning):
        tree = estimator.fit(X, **counts).hierarchy_
    seconds, dropped = time.perf_counter() - begun, table.dropped
    if names is not None:
        tree = tree.rename_features(names)
    if (encoding := tree.encoding) is not None:
        notes += encoding.notes
        tree = replace(tree, encoding=replace(encoding, dropped=(*dropped, *encoding.dropped)))
        for name, reason in encoding.dropped:
            dropped += ((name, OPTIONS.get(reason, reason)),)
    absent = 0
    if tree.weights is not None:  # noise is told of below
        absent = int((tree.weights[tree.rows(tree.root)] == 0.0).sum())
    absent -= 0 if weights is None else int(np.count_nonzero(np.asarray(weights) == 0.0))
    if weights is None and not tree.has_rows:  # of which only the numbers are known
        absent = round(float(tree.sizes[tree.root] - tree.node_weights[tree.root]))
    if absent > 0:
        what = f"{counted(absent, 'row')} far from all others, or without a value"
        notes.append(f"{what}, had no part in the fit")
    if tree.n_noise:
        what = counted(tree.n_noise, "row is", "rows are")
        notes.append(f"{what} set apart, far from all clusters")
    notes += warned
    return Fitted(tree, seconds, dropped)


def assess_table(table: Table, tree: Hierarchy, notes: list[str], **settings: Any) -> Hierarchy:
    """Fit a model again to its table, and return its tree."""
    made_by = dict(tree.made_by or {})
    kind = MODELS.get(str(made_by.pop("estimator", "")))
    if kind is None:
        raise InputError("the model does not say how it was fitted: fit it again")
    X: Any = table.X
    try:
        if isinstance(made_by.get("encoder"), dict):
            made_by["encoder"] = TableEncoder(**made_by["encoder"])
        if made_by.get("n_clusters") is not None:
            made_by["n_clusters"] = tree.n_leaves  # it may have been cut since
        model = kind(**made_by)
    except TypeError as error:
        told = f"the model was fitted with parameters that are not known here: {error}"
        raise InputError(told) from error
    model.hierarchy_, model.labels_, model.n_features_in_ = tree, tree.labels, X.shape[1]
    if not is_plain(X) and table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    with noted(notes):
        return assess(model, X, **settings)
