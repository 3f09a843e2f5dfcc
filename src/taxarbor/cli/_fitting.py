"""From a table to a tree that takes rows as they are in the file."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.sparse import issparse

from taxarbor._errors import InputError, InterruptedFitWarning, TableWarning, counted
from taxarbor.cli import interruptible
from taxarbor.cli._files import as_frame, named_columns, split_names
from taxarbor.estimators import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, Taxarbor
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import is_plain
from taxarbor.hierarchy._checks import all_finite
from taxarbor.tables import Table, TableEncoder
from taxarbor.tables._checks import check_jobs
from taxarbor.tables._study import AS_DATES, AS_IDENTIFIER
from taxarbor.trust import assess

METHODS: dict[str, type[Any]] = {
    "taxarbor": Taxarbor,
    "hmmc": HMMC,
    "kmeans": HierarchicalKMeans,
    "spectral": HierarchicalSpectral,
}
OPTIONS = {
    AS_IDENTIFIER: "looks like an identifier; ask for it with --columns to use it",
    AS_DATES: "dates; name it in --dates to use it",
}
"""Why columns are left out, in words of the command line."""
MODELS = {kind.__name__: kind for kind in METHODS.values()} | {"MMC": MMC}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A tree with the table's names, for rows in the table's units, and what it took.

    ``dropped`` are the columns of the file that it does not use, each with the reason.
    """

    tree: Hierarchy
    seconds: float
    was_interrupted: bool
    dropped: tuple[tuple[str, str], ...]


def make_estimator(method: str, settings: dict[str, Any]) -> Any:
    """Return the estimator of a method."""
    check_jobs(settings.get("n_jobs"))
    return METHODS[method](**settings)


def make_encoder(
    table: Table, categories: str | None, dates: str | None, **given: str | None
) -> Any:
    """Return the encoder for a table, by the options that were given.

    Matrices are numbers of one kind: they are not scaled unless that is asked for.
    """
    X: Any = table.X
    for name in named_columns(table, split_names(categories, "categories"), "categories"):
        X[name] = X[name].astype("category")
    days = named_columns(table, split_names(dates, "dates"), "dates")
    is_frame = not is_plain(X)
    with_gaps = not is_frame and _has_named_gaps(table)
    return encoder_of(is_frame, days, with_gaps=with_gaps, **given)


def encoder_of(is_frame: bool, days: list[str], *, with_gaps: bool, **given: str | None) -> Any:
    """Return the encoder for a frame or a matrix, and for the columns of dates to use."""
    options: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    if not (options or is_frame or with_gaps):
        return "auto"
    scale = options.get("scale", "auto")
    options["scale"] = None if scale == "none" or (scale == "auto" and not is_frame) else scale
    return TableEncoder(**options, date_features=days or None)


def _has_named_gaps(table: Table) -> bool:
    """Say whether a matrix has gaps that are best told of by the names of its columns."""
    X: Any = table.X
    return table.feature_names is not None and not (issparse(X) or all_finite(X))


def fit_table(table: Table, estimator: Any, notes: list[str], weights: Any = None) -> Fitted:
    """Fit an estimator to the rows of a table; what it did and warns of goes to the notes."""
    X = table.X if estimator.encoder == "auto" else as_frame(table)
    names = table.feature_names if is_plain(X) else None
    return fit_rows(X, estimator, notes, weights, names=names, dropped=table.dropped)


def fit_rows(
    X: Any,
    estimator: Any,
    notes: list[str],
    weights: Any = None,
    *,
    names: Sequence[str] | None = None,
    dropped: tuple[tuple[str, str], ...] = (),
) -> Fitted:
    """Fit an estimator to rows, wherever they are; features get the names, if there are any."""
    counts = {} if weights is None else {"sample_weight": weights}
    begun = time.perf_counter()
    with interruptible(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        tree = estimator.fit(X, **counts).hierarchy_
    seconds = time.perf_counter() - begun
    if names is not None:
        tree = tree.rename_features(names)
    if (encoding := tree.encoding) is not None:
        notes += encoding.notes
        tree = replace(tree, encoding=replace(encoding, dropped=(*dropped, *encoding.dropped)))
        for name, reason in encoding.dropped:
            dropped += ((name, OPTIONS.get(reason, reason)),)
    absent = 0
    if tree.weights is not None:
        absent = int(
            (tree.weights[tree.rows(tree.root)] == 0.0).sum()
        )  # noise is told of below
    absent -= 0 if weights is None else int(np.count_nonzero(np.asarray(weights) == 0.0))
    if weights is None and not tree.has_rows:  # of which only the numbers are known
        absent = round(float(tree.sizes[tree.root] - tree.node_weights[tree.root]))
    if absent > 0:
        what = f"{counted(absent, 'row')} far from all others, or without a value"
        notes.append(f"{what}, had no part in the fit")
    if tree.n_noise:
        what = counted(tree.n_noise, "row is", "rows are")
        notes.append(f"{what} set apart, far from all clusters")
    told = [one for one in caught if not issubclass(one.category, TableWarning)]
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in told)
    was_interrupted = any(issubclass(one.category, InterruptedFitWarning) for one in caught)
    return Fitted(tree, seconds, was_interrupted, dropped)


def assess_table(
    table: Table, tree: Hierarchy, notes: list[str], **settings: Any
) -> tuple[Hierarchy, bool]:
    """Fit a model again to its table; return its tree, and whether Ctrl-C ended it early."""
    made_by = dict(tree.made_by or {})
    kind = MODELS.get(str(made_by.pop("estimator", "")))
    if kind is None or "standardized" in made_by:  # which an encoder says now
        raise InputError(
            "the model does not say how it was fitted, as it was made by an older taxarbor or "
            "from labels alone: fit it again"
        )
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
    with interruptible(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        assessed = assess(model, X, **settings)
    notes += [" ".join(str(warning.message).split()) for warning in caught]
    return assessed, any(issubclass(one.category, InterruptedFitWarning) for one in caught)
