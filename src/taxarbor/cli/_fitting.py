"""From a table to a tree that takes rows as they are in the file."""

import time
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler

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
    scaler = StandardScaler(with_mean=not issparse(table.X)).fit(table.X)
    if not standardize:
        notes += _note_on_scales(np.sqrt(scaler.var_), table.feature_names)
    begun = time.perf_counter()
    with collected(notes) as there_was:
        X = scaler.transform(table.X) if standardize else table.X
        tree = HMMC(**settings).fit(X).hierarchy_
        was_interrupted = there_was(InterruptedFitWarning)
    seconds = time.perf_counter() - begun
    if standardize:
        mean = np.zeros(X.shape[1]) if scaler.mean_ is None or issparse(X) else scaler.mean_
        tree = tree.unscale(mean, scaler.scale_)
    if table.feature_names is not None:
        tree = tree.rename_features(table.feature_names)
    return Fitted(tree, seconds, was_interrupted)


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
