"""The only place where what a user passes in is checked and cast."""

import math
from copy import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, final

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from taxarbor.rows import Rows, as_rows

RANGE = {"float32": (1e-15, 1e15), "float64": (1e-70, 1e70)}
"""Within which the data may vary: fourth powers, or squares in float32, must fit."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SeenFeatures:
    """What scikit-learn's conventions want an estimator to remember of its training data."""

    n_features_in_: int
    feature_names_in_: NDArray[np.object_] | None

    @property
    def names(self) -> list[str] | None:
        """The names as plain strings, where there are any."""
        found = self.feature_names_in_
        return None if found is None else [str(name) for name in found]

    @property
    def attributes(self) -> dict[str, Any]:
        """What to set on the estimator."""
        found = {"n_features_in_": self.n_features_in_}
        if self.feature_names_in_ is None:
            return found
        return found | {"feature_names_in_": self.feature_names_in_}


def check_training_rows(estimator: Any, X: Any, n_threads: int) -> tuple[Rows, SeenFeatures]:
    """Return a user's training data as rows, or raise ValueError or TypeError saying why not.

    The estimator is left as it is.
    """
    probe = copy(estimator)
    with np.errstate(over="ignore", invalid="ignore"):
        checked = validate_data(
            probe,
            X,
            accept_sparse="csr",
            dtype=_float_types(X),
            order="C",
            ensure_min_samples=2,
        )
    rows = as_rows(_canonical(checked), n_threads=n_threads)
    _check_range(rows)
    return rows, SeenFeatures(probe.n_features_in_, vars(probe).get("feature_names_in_"))


def check_new_rows(estimator: Any, X: Any) -> Any:
    """Return new data as an array, after comparing it with what the estimator was fitted on."""
    return _canonical(
        validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype=_float_types(X),
            order="C",
            reset=False,
        )
    )


def check_count(name: str, value: Any, *, least: int) -> int:
    """Return an integer parameter that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def check_jobs(n_jobs: Any) -> int:
    """Return the number of threads that scikit-learn's ``n_jobs`` stands for."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1, -1 for all processors, or None")
    return int(effective_n_jobs(n_jobs))


def check_strength(name: str, value: Any) -> float:
    """Return a non-negative, finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and not negative, got {value}")
    return number


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}"
        )


def check_balance(value: Any, n_children: int) -> tuple[float, float]:
    """Return the least and greatest size of a child, as multiples of an equal share."""
    if value is None:
        return 0.0, float(n_children)
    try:
        low, high = value if isinstance(value, tuple | list) else (value, 2.0 - value)
        low, high = check_strength("low", low), check_strength("high", high)
        fits = low <= 1.0 <= high
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            "balance must be None, a number between 0 and 1, or a pair (low, high) of "
            f"numbers with low <= 1 <= high, as multiples of an equal share; got {value!r}"
        )
    return low, high


def _float_types(X: Any) -> list[type[np.floating]]:
    """Return the types to keep, or to cast to, the first for all others.

    scikit-learn does not see that a polars frame is float32.
    """
    is_polars = type(X).__module__.partition(".")[0] == "polars"
    if is_polars and np.asarray(X[:1]).dtype == np.float32:
        return [np.float32]
    return [np.float64, np.float32]


def _canonical(X: Any) -> Any:
    """Give a sparse matrix one entry per cell, in order, without touching the user's."""
    if not issparse(X):
        return X
    sparse: Any = X
    if not sparse.has_canonical_format:
        sparse = sparse.copy()
        sparse.sum_duplicates()
    return sparse


def _check_range(rows: Rows) -> None:
    with np.errstate(all="ignore"):
        spread = float(rows.spread().max(initial=0.0))
    low, high = RANGE[rows.dtype.name]
    if spread == 0.0 or low <= spread <= high:
        return
    verb = "multiply" if spread < low else "divide"
    told = f"by about {spread:.0e}" if math.isfinite(spread) else "beyond what fits"
    raise ValueError(
        f"X varies {told} in {rows.dtype.name}, where it should vary by {low:.0e} to "
        f"{high:.0e}, so that sums of powers fit; {verb} X by a constant first"
    )
