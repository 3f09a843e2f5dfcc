"""From a table to a tree that takes rows as they are in the file."""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from taxarbor._errors import InputError, TableWarning, counted
from taxarbor._frames import is_plain
from taxarbor._types import Array
from taxarbor.cli._reading import (
    as_frame,
    find_columns,
    has_typed_columns,
    mark_table,
    split_names,
)
from taxarbor.cli._shell import noted
from taxarbor.estimators import HMMC, Taxarbor
from taxarbor.rows._checks import all_finite
from taxarbor.tables import Table, TableEncoder
from taxarbor.tables._profile import AS_DATES, AS_IDENTIFIER
from taxarbor.taxonomy import Taxonomy

METHODS: dict[str, type[Any]] = {"taxarbor": Taxarbor, "hmmc": HMMC}
OPTIONS = {
    AS_IDENTIFIER: "looks like an identifier; ask for it with --columns to use it",
    AS_DATES: "dates; name it in --dates to use it",
}
"""Why columns are left out, in words of the command line."""
MODELS = {kind.__name__: kind for kind in METHODS.values()}


class Fitted(NamedTuple):
    """A tree with the table's names, how long it took, and why columns are left out."""

    taxonomy: Taxonomy
    seconds: float
    dropped: tuple[tuple[str, str], ...]


def make_encoder(
    table: Table,
    categories: str | None,
    dates: str | None,
    *,
    missing: str | None,
    metric: str | None,
    scale: str | None,
) -> tuple[Table, Any]:
    """Return a table whose columns are marked, and its encoder, by the options that were given.

    Matrices are numbers of one kind: they are not scaled unless that is asked for.
    """
    kinds = find_columns(table, split_names(categories, "categories"), "categories")
    days = find_columns(table, split_names(dates, "dates"), "dates")
    table, is_typed = mark_table(table, days, kinds), has_typed_columns(table)
    given = {"missing": missing, "metric": metric, "scale": scale}
    options: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    is_named = isinstance(table.X, np.ndarray) and table.feature_names is not None
    if not (options or is_typed or (is_named and not all_finite(table.X))):
        return table, "auto"
    scale = scale or "auto"
    options["scale"] = None if scale == "none" or (scale == "auto" and not is_typed) else scale
    return table, TableEncoder(**options, date_features=days or None)


def fit_table(table: Table, estimator: Any, notes: list[str], beside: dict[str, Any]) -> Fitted:
    """Fit an estimator to a table; what it did and warns of goes to the notes.

    ``beside`` are the weights and vectors of its rows, None for none.
    """
    weights: Array | None = beside["sample_weight"]
    X: Any = table.X if estimator.encoder == "auto" else as_frame(table)
    names = None if has_typed_columns(replace(table, X=X)) else table.feature_names
    begun = time.perf_counter()
    warned: list[str] = []
    with noted(warned, but=TableWarning):
        given = {name: values for name, values in beside.items() if values is not None}
        taxonomy = estimator.fit(X, **given).taxonomy_
    seconds, dropped = time.perf_counter() - begun, table.dropped
    if names is not None:
        taxonomy = taxonomy.rename_features(names)
    if (encoding := taxonomy.encoding) is not None:
        notes += encoding.notes
        taxonomy = replace(
            taxonomy, encoding=replace(encoding, dropped=(*dropped, *encoding.dropped))
        )
        for name, why in encoding.dropped:
            reason = OPTIONS.get(why, why.replace("embedding=", "--embedding "))
            dropped += ((name, reason),)
    n_excluded = 0
    if taxonomy.tree.weights is not None:  # noise has a note of its own
        n_excluded = int(
            (taxonomy.tree.weights[taxonomy.tree.rows(taxonomy.tree.root)] == 0.0).sum()
        )
        n_excluded -= 0 if weights is None else int(np.count_nonzero(weights == 0.0))
    elif weights is None:  # of rows in blocks only the counts are known
        n_excluded = round(
            float(
                taxonomy.tree.sizes[taxonomy.tree.root]
                - taxonomy.tree.node_weights[taxonomy.tree.root]
            )
        )
    if n_excluded > 0:
        outliers = f"{counted(n_excluded, 'row')} far from all others, or without a value"
        notes.append(f"{outliers}, excluded from the fit")
    if taxonomy.tree.n_noise:
        noise = counted(taxonomy.tree.n_noise, "row is", "rows are")
        notes.append(f"{noise} set apart, far from all clusters")
    notes += warned
    return Fitted(taxonomy, seconds, dropped)


def restore_model(table: Table, taxonomy: Taxonomy) -> Any:
    """Return the fitted estimator that a tree came from, for the table it was fitted to."""
    made_by = dict(taxonomy.made_by or {})
    kind = MODELS.get(str(made_by.pop("estimator", "")))
    made_by.pop("embedding", None)  # of its fit
    if kind is None:
        raise InputError("the model does not say how it was fitted: fit it again")
    try:
        if isinstance(made_by.get("encoder"), dict):
            made_by["encoder"] = TableEncoder(**made_by["encoder"])
        if made_by.get("n_clusters") is not None:
            made_by["n_clusters"] = taxonomy.tree.n_leaves  # it may have been cut since
        model = kind(**made_by)
    except TypeError as error:
        message = f"the model was fitted with parameters that are not known here: {error}"
        raise InputError(message) from error
    model.taxonomy_, model.labels_, model.n_features_in_ = (
        taxonomy,
        taxonomy.tree.labels,
        table.X.shape[1],
    )
    if not is_plain(table.X) and table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    return model
