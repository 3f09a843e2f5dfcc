"""Checks of the data and weights that a user passes to a fit."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from types import SimpleNamespace
from typing import Any

import narwhals as nw
import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.utils import validation

from taxarbor._errors import InputError, InputTypeError
from taxarbor._frames import Table, as_canonical, as_numeric, fill_masked
from taxarbor._types import Array, IndexArray
from taxarbor.rows import as_rows, check_structure

RANGE = {"float32": (1e-15, 1e15), "float64": (1e-70, 1e70)}
"""Within which the data may vary: fourth powers, or squares in float32, must fit."""
MAX_MEAN = {"float32": 1e17, "float64": 1e150}  # of a column, absolute: squares must fit
HAS_NARWHALS = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
"""Whether scikit-learn reads the names of columns of all frames."""
MAX_WEIGHT_EXPONENT = 100
"""Of 2, in the greatest weight: sums of the weights, and of rows times weights, must fit."""
EXACT_REPEATS = (4, 20_000)  # copies per row, and in all, up to which integers are kept
MAX_REPEATS = (10, 10_000)
"""Copies per row, and copies, that other weights are rounded to; but one per row at least. More
would make large fits slower, and fewer would take light rows of small tables for none."""
WEIGHT_GRID = 2.0**32
"""Weights are rounded to this part of the greatest first, so that the last digits of a common
factor have no effect."""


def list_seen(fitted: Any) -> dict[str, Any]:
    """Return the attributes of training data that scikit-learn's conventions ask for."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(fitted)[name] for name in names if name in vars(fitted)}


def check_array(estimator: Any, X: Table, *, allow_nan: bool) -> tuple[Any, dict[str, Any]]:
    """Return training data as floats, dense or canonical CSR, and what :func:`list_seen` does.

    The estimator stays as it is. Raises InputError, which is a TypeError, too, where
    scikit-learn has one.
    """
    probe = copy(estimator)
    with input_errors(), np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            check_structure(X)
        numbers = as_numeric(X)
        if numbers.dtype.kind == "c":
            raise InputError("is complex. Complex data not supported: pass X.real, X.imag", "X")
        is_single = numbers.dtype.newbyteorder("=") == np.float32
        data = validation.check_array(
            numbers,
            accept_sparse="csr",
            dtype=np.float32 if is_single else [np.float64, np.float32],
            order="C",
            ensure_min_samples=2,
            ensure_all_finite="allow-nan" if allow_nan else True,
            estimator=estimator,
            input_name="X",
        )
        check_columns(probe, X if isinstance(X, nw.DataFrame) else data, reset=True)
    return as_canonical(data) if issparse(data) else data, list_seen(probe)


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the weights of rows, None if all are 1, or raise InputError."""
    if sample_weight is None:
        return None
    name = "sample_weight"
    try:
        given = np.asarray(fill_masked(sample_weight))
        casting: Any = "unsafe" if given.dtype == object else "safe"
        weights = given.astype(np.float64, casting=casting)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputTypeError(f"must hold numbers: {error}", name) from error
    if weights.shape != (n_rows,):
        raise InputError(f"must hold {n_rows:,} numbers; got shape {weights.shape}", name)
    wrong = np.flatnonzero(~((weights >= 0.0) & (weights < math.inf)))
    if len(wrong):
        value = f"row {wrong[0]} has {weights[wrong[0]]:g}"
        raise InputError(f"must be finite and not negative; {value}", name)
    exponent = int(np.frexp(weights.max(initial=0.0))[1])
    if abs(exponent) > MAX_WEIGHT_EXPONENT:  # a common factor of weights has no effect
        weights = np.ldexp(weights, -exponent)
    if not weights.any():
        raise InputError("is zero for all rows", name)
    if np.count_nonzero(weights) < 2:
        raise InputError("is positive for 1 row only; a fit needs at least 2", name)
    return None if (weights == 1.0).all() else weights


def count_repeats(weights: Array) -> IndexArray:
    """Return the number of copies of each row in a fit: weights are repeats.

    A fit knows rows and nothing of weights; the tree of its copies is brought back to the rows
    later. So integer weights equal repeated rows, bounds on sizes included, and rows of weight
    zero are absent. Other weights are rounded: each row is within one copy of its share. The
    rows with one more depend on the weights that are not zero and their order alone, which is
    shuffled, as data may be sorted.
    """
    repeats = np.zeros(len(weights), dtype=np.intp)
    (positive,) = weights.nonzero()
    weights, n = weights[positive], len(positive)
    with np.errstate(over="ignore"):
        total = weights.sum()
    is_small = total <= max(EXACT_REPEATS[0] * n, EXACT_REPEATS[1])
    if is_small and (weights == np.floor(weights)).all():
        repeats[positive] = weights.astype(np.intp)
    elif (weights == weights[0]).all():
        repeats[positive] = 1
    else:
        shuffled = np.random.default_rng(0).permutation(n)
        sums = np.cumsum(np.round(weights[shuffled] / weights.max() * WEIGHT_GRID))  # exact
        n_copies = max(n, min(MAX_REPEATS[0] * n, MAX_REPEATS[1]))
        due = np.floor(sums * (n_copies / sums[-1]) + 0.5).astype(np.intp)
        repeats[positive[shuffled]] = np.diff(due, prepend=0)
    return repeats


def check_columns(estimator: Any, X: Table, *, reset: bool) -> None:
    """Set or compare ``n_features_in_`` and ``feature_names_in_``, by scikit-learn's rules."""
    table: Any = X.to_native() if isinstance(X, nw.DataFrame) else X
    if isinstance(X, nw.DataFrame) and not (HAS_NARWHALS or X.implementation.is_pandas()):
        protocol = SimpleNamespace(column_names=lambda: X.columns)
        table = SimpleNamespace(__dataframe__=lambda: protocol, shape=X.shape)
    validation.validate_data(estimator, table, reset=reset, skip_check_array=True)


@contextmanager
def input_errors() -> Iterator[None]:
    """Turn what scikit-learn raises of the data into InputError."""
    try:
        yield
    except InputError:
        raise
    except OverflowError as error:
        raise InputError("holds an integer that is too large for float64", "X") from error
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except ValueError as error:
        raise InputError(str(error)) from error


def check_range(data: Any, parameter: str = "X") -> None:
    """Raise InputError where sums of powers of the data would not fit into their type."""
    rows = as_rows(data)
    name = rows.dtype.name
    (low, high), max_mean = RANGE[name], MAX_MEAN[name]
    with np.errstate(all="ignore"):
        spread = float(rows.spread().max(initial=0.0))
    if not (spread == 0.0 or low <= spread <= high):
        verb = "multiply" if spread < low else "divide"
        much = f"by about {spread:.0e}" if math.isfinite(spread) else "beyond all numbers"
        problem = f"varies {much} in {name}, where {low:.0e} to {high:.0e} are expected"
        raise InputError(f"{problem}; {verb} it by a constant first", parameter)
    largest = float(np.abs(rows.center).max(initial=0.0))
    if largest > max_mean:
        problem = f"has a column of mean {largest:.0e}, in {name}, beyond {max_mean:.0e}"
        raise InputError(f"{problem}; subtract a constant first", parameter)
