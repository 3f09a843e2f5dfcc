"""From a table to a tree that takes rows as they are in the file."""

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.sparsefuncs import mean_variance_axis

from taxarbor._errors import InputError, InterruptedFitWarning
from taxarbor.cli import interruptible
from taxarbor.estimators import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, Taxarbor
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._words import format_number
from taxarbor.tables import Table
from taxarbor.tables._checks import check_jobs
from taxarbor.trust import assess

FAR = 100.0
"""Columns that vary so many times more than the usual one decide everything."""
METHODS: dict[str, type[Any]] = {
    "taxarbor": Taxarbor,
    "hmmc": HMMC,
    "kmeans": HierarchicalKMeans,
    "spectral": HierarchicalSpectral,
}
MODELS = {kind.__name__: kind for kind in METHODS.values()} | {"MMC": MMC}
STANDARDIZED = "standardized"
"""Where a tree says that columns were scaled before its model saw them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A tree with the table's names, for rows in the table's units, and what it took."""

    tree: Hierarchy
    seconds: float
    was_interrupted: bool


def make_estimator(method: str, settings: dict[str, Any]) -> Any:
    """Return the estimator of a method."""
    check_jobs(settings.get("n_jobs"))
    return METHODS[method](**settings)


def fit_table(table: Table, estimator: Any, notes: list[str], *, standardize: bool) -> Fitted:
    """Fit an estimator to the rows of a table; what it warns of goes to the notes.

    The tree takes unscaled rows, whether or not columns are scaled to variance 1 first.
    """
    X: Any = table.X
    begun = time.perf_counter()
    if standardize:
        X, mean, scale = standardized(X)
    else:
        notes += _note_on_scales(_deviations(X), table.feature_names)
    with interruptible(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        tree = estimator.fit(X).hierarchy_
    seconds = time.perf_counter() - begun
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    was_interrupted = any(issubclass(one.category, InterruptedFitWarning) for one in caught)
    if standardize:
        tree = tree.unscale(mean, scale)
        tree = replace(tree, made_by={**(tree.made_by or {}), STANDARDIZED: True})
    if table.feature_names is not None:
        tree = tree.rename_features(table.feature_names)
    return Fitted(tree, seconds, was_interrupted)


def assess_table(
    table: Table, tree: Hierarchy, notes: list[str], **settings: Any
) -> tuple[Hierarchy, bool]:
    """Fit a model again to its table; return its tree, and whether Ctrl-C ended it early."""
    made_by = dict(tree.made_by or {})
    kind = MODELS.get(made_by.pop("estimator", ""))
    if kind is None:
        raise InputError(
            "the model does not say how it was fitted, as it was made by an older taxarbor or "
            "from labels alone: fit it again"
        )
    X: Any = table.X
    if made_by.pop(STANDARDIZED, False):
        X = standardized(X)[0]
    if made_by["n_clusters"] is not None:
        made_by["n_clusters"] = tree.n_leaves  # it may have been cut since
    model = kind(**made_by)
    model.hierarchy_, model.labels_, model.n_features_in_ = tree, tree.labels, X.shape[1]
    with interruptible(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        assessed = assess(model, X, **settings)
    notes += [" ".join(str(warning.message).split()) for warning in caught]
    return assessed, any(issubclass(one.category, InterruptedFitWarning) for one in caught)


def standardized(X: Any) -> tuple[Any, Any, Any]:
    """Return columns of variance 1, what was subtracted, and what they were divided by.

    It is done in float64, as a mean in float32 is off by as much as some columns vary. Sparse
    columns keep their means, which would fill them.
    """
    scaler = StandardScaler(with_mean=not issparse(X))
    with np.errstate(all="ignore"):  # what does not fit is refused below
        scaled = scaler.fit_transform(X.astype(np.float64)).astype(X.dtype, copy=False)
    if not np.isfinite(scaler.scale_).all():
        raise InputError(
            "the values are too large for --standardize; divide them by a constant first"
        )
    mean = scaler.mean_ if scaler.with_mean else np.zeros(len(scaler.scale_))
    return scaled, mean, scaler.scale_


def _deviations(X: Any) -> Any:
    """Return the standard deviation of each column."""
    with np.errstate(all="ignore"):  # the fit refuses what is too large, in words
        variances = mean_variance_axis(X, 0)[1] if issparse(X) else X.var(0, dtype=np.float64)
    return np.sqrt(variances)


def _note_on_scales(deviations: Any, names: tuple[str, ...] | None) -> list[str]:
    varying = deviations[deviations > 0.0]
    if not len(varying) or deviations.max() <= FAR * np.median(varying):
        return []
    column = int(deviations.argmax())
    name = f"x{column}" if names is None else names[column]
    times = format_number(float(deviations.max() / np.median(varying)), 2)
    return [
        f"{name} varies {times} times as much as the usual column, and so decides most; "
        "--standardize makes them all vary alike"
    ]
