"""Checks of the parameters of estimators."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from taxarbor._errors import InputError, InputTypeError


def check_count(name: str, value: Any, *, least: int) -> int:
    """Return an integer parameter that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(f"must be an integer, got {value!r}", name)
    if value < least:
        raise InputError(f"must be at least {least}, got {value}", name)
    return int(value)


def check_jobs(n_jobs: Any) -> int:
    """Return the number of threads that scikit-learn's ``n_jobs`` stands for."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise InputTypeError(f"must be an integer or None, got {n_jobs!r}", "n_jobs")
    if n_jobs == 0:
        raise InputError("must not be 0; give 1 or more, or -1 for all processors", "n_jobs")
    return int(effective_n_jobs(n_jobs))


def check_random(random_state: Any) -> np.random.RandomState:
    """Return the generator that scikit-learn's ``random_state`` stands for."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
        return generator
    except ValueError as error:
        expected = "must be an integer from 0 to 2**32 - 1, a RandomState or None"
        raise InputError(f"{expected}; got {random_state!r}", "random_state") from error


def check_strength(name: str, value: Any) -> float:
    """Return a non-negative, finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"must be a number, got {value!r}", name)
    try:
        number = float(value)
    except OverflowError:  # an integer, or a fraction, beyond all floats
        raise InputError(f"must be less than {np.finfo(float).max:.1e}", name) from None
    if not 0.0 <= number < math.inf:
        raise InputError(f"must be finite and not negative, got {value}", name)
    return number


def check_noise(value: Any) -> float:
    """Return the share of rows that may be noise."""
    share = check_strength("noise", value)
    if share > 0.5:
        raise InputError(f"must be a share of the rows from 0 to 0.5; got {share:g}", "noise")
    return share


def check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    """Raise InputError unless the value is one of the choices."""
    if value not in choices:
        expected = ", ".join(map(repr, choices))
        raise InputError(f"must be one of {expected}; got {value!r}", name)


def check_balance(value: Any, n_children: int) -> tuple[float, float]:
    """Return the least and greatest size of a child, as multiples of an equal share."""
    if value is None:
        return 0.0, float(n_children)
    try:
        low, high = value if isinstance(value, tuple | list) else (value, 2.0 - value)
        low, high = check_strength("low", low), check_strength("high", high)
        fits = low <= 1.0 <= high
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        expected = "must be None, a number from 0 to 1, or a pair with low <= 1 <= high"
        raise InputError(f"{expected}; got {value!r}", "balance")
    return low, high
