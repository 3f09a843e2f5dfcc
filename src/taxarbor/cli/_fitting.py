"""From a table to a tree that takes rows as they are in the file."""

import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils.sparsefuncs import mean_variance_axis

from taxarbor._errors import InterruptedFitWarning
from taxarbor.cli._guard import collected
from taxarbor.data import Table
from taxarbor.estimators import HMMC
from taxarbor.hierarchy import Hierarchy

FAR = 100.0
"""Columns that vary so many times more than the usual one decide everything."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A tree, and what it took.

    Attributes
    ----------
    tree : Hierarchy
        With the table's names, for rows in the table's units.
    seconds : float
        How long the fit took.
    was_interrupted : bool
        Whether the tree is what there was when somebody pressed Ctrl-C.
    """

    tree: Hierarchy
    seconds: float
    was_interrupted: bool


def fit_table(
    table: Table, settings: dict[str, Any], notes: list[str], *, standardize: bool
) -> Fitted:
    """Fit HMMC to the rows of a table.

    Parameters
    ----------
    table : Table
        The rows.
    settings : dict
        Parameters of HMMC.
    notes : list of str
        Gets what the fit warns of.
    standardize : bool
        Whether columns are scaled to variance 1 first. The tree takes unscaled rows.
    """
    X: Any = table.X
    begun = time.perf_counter()
    if standardize:
        X, mean, scale = _standardized(X)
    else:
        notes += _note_on_scales(_deviations(X), table.feature_names)
    with collected(notes) as there_was:
        tree = HMMC(**settings).fit(X).hierarchy_
        was_interrupted = there_was(InterruptedFitWarning)
    seconds = time.perf_counter() - begun
    if standardize:
        tree = tree.unscale(mean, scale)
    if table.feature_names is not None:
        tree = tree.rename_features(table.feature_names)
    return Fitted(tree, seconds, was_interrupted)


def _standardized(X: Any) -> tuple[Any, Any, Any]:
    """Return columns of variance 1, what was subtracted, and what they were divided by.

    It is done in float64, as a mean in float32 is off by as much as some columns vary. Sparse
    columns keep their means, which would fill them.
    """
    scaler = StandardScaler(with_mean=not issparse(X))
    with np.errstate(all="ignore"):  # what does not fit is refused below
        scaled = scaler.fit_transform(X.astype(np.float64)).astype(X.dtype, copy=False)
    if not np.isfinite(scaler.scale_).all():
        raise ValueError(
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
    times = deviations.max() / np.median(varying)
    return [
        f"{name} varies {times:,.0f} times as much as the usual column, and so decides most; "
        "--standardize makes them all vary alike"
    ]
