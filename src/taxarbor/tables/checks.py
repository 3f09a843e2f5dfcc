"""Checks of the data and weights that a user passes to a fit."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple, Self, final

import narwhals as nw
import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import validation

from taxarbor._errors import InputError, InputTypeError, counted
from taxarbor._frames import (
    as_numeric,
    fill_masked,
    wrap_frame,
)
from taxarbor._types import Array, IndexArray
from taxarbor.rows import as_rows, check_structure

RANGE = {"float32": (1e-15, 1e15), "float64": (1e-70, 1e70)}
"""Within which the data may vary: fourth powers, or squares in float32, must fit."""
MAX_MEAN = {"float32": 1e17, "float64": 1e150}
"""Largest absolute mean of a column: squares must fit."""
HAS_NARWHALS = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
"""Whether scikit-learn reads the names of columns of all frames."""
MAX_WEIGHT_EXPONENT = 100
"""Of 2, in the greatest weight: sums of the weights, and of rows times weights, must fit."""
EXACT_REPEATS = (4, 20_000)
"""Copies per row, and copies, up to which integer weights are not rounded."""
MAX_REPEATS = (10, 10_000)
"""Copies per row, and copies, that other weights are rounded to; but one per row at least. More
would make large fits slower, and fewer would take light rows of small tables for none."""
WEIGHT_GRID = 2.0**32
"""Weights are rounded to this part of the greatest first, so that the last digits of a common
factor have no effect."""


class SeenFeatures(NamedTuple):
    """The attributes of training data that scikit-learn's conventions ask for."""

    n_features_in_: int
    feature_names_in_: NDArray[np.object_] | None

    @classmethod
    def of(cls, fitted: Any) -> "SeenFeatures":
        """Return those of a fitted estimator or transformer."""
        return cls(fitted.n_features_in_, vars(fitted).get("feature_names_in_"))

    @property
    def names(self) -> list[str] | None:
        """The names as plain strings, where there are any."""
        names = self.feature_names_in_
        return None if names is None else [str(name) for name in names]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes to set on the estimator."""
        seen = {"n_features_in_": self.n_features_in_}
        names = self.feature_names_in_
        return seen if names is None else seen | {"feature_names_in_": names}


def check_array(estimator: Any, X: Any, *, allow_nan: bool) -> tuple[Any, SeenFeatures]:
    """Return training data as a float array or a canonical CSR matrix, or raise InputError.

    The estimator stays as it is. The error is a TypeError, too, where scikit-learn has one.
    """
    probe = copy(estimator)
    is_finite: Any = "allow-nan" if allow_nan else True
    data = _check_numbers(probe, X, ensure_min_samples=2, ensure_all_finite=is_finite)
    return data, SeenFeatures.of(probe)


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the weights of rows, None if all are 1, or raise InputError.

    Extreme weights are divided by a power of two.
    """
    if sample_weight is None:
        return None
    name = "sample_weight"
    try:
        given = np.asarray(fill_masked(sample_weight))
        weights = given.astype(
            np.float64, casting="unsafe" if given.dtype == object else "safe"
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise InputTypeError(f"must hold numbers: {error}", name) from error
    if weights.shape != (n_rows,):
        expected = f"must hold one number for each of {counted(n_rows, 'row')}"
        raise InputError(f"{expected}; got shape {weights.shape}", name)
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


def check_dimensions(X: Any) -> None:
    """Raise InputError for more than two dimensions, as not all scikit-learns do."""
    if len(shape := np.asarray(X).shape) > 2:
        expected = "must have two dimensions, (n_rows, n_features)"
        raise InputError(f"{expected}, got shape {shape}", "X")


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Set or compare ``n_features_in_`` and ``feature_names_in_``, by scikit-learn's rules."""
    frame = wrap_frame(X)
    if frame is None:
        check_dimensions(X)
    elif HAS_NARWHALS or frame.implementation.is_pandas():
        X = frame.to_native()
    else:
        X = _Columns(frame.columns, frame.shape)
    validation.validate_data(estimator, X, reset=reset, skip_check_array=True)


@final
class _Columns:
    """The names and the shape of a frame, as scikit-learn below 1.9 asks for them."""

    def __init__(self, names: list[str], shape: tuple[int, int]) -> None:
        self.names, self.shape = names, shape

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> list[str]:
        return self.names


def _check_numbers(
    estimator: Any,
    X: Any,
    *,
    reset: bool = True,
    ensure_min_samples: int = 1,
    ensure_all_finite: bool | str = True,
) -> Any:
    """Return X as an array or a canonical CSR matrix, by scikit-learn's conventions."""
    with input_errors(), np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            check_structure(X)
        numbers = as_numeric(X)
        dtype = getattr(numbers, "dtype", None)
        if isinstance(dtype, np.dtype) and dtype.kind == "c":
            remedy = "pass X.real, X.imag or both"
            raise InputError(
                f"holds complex numbers. Complex data not supported: {remedy}", "X"
            )
        is_single = isinstance(dtype, np.dtype) and dtype.newbyteorder("=") == np.float32
        data = validation.check_array(
            numbers,
            accept_sparse="csr",
            dtype=np.float32 if is_single else [np.float64, np.float32],
            order="C",
            ensure_min_samples=ensure_min_samples,
            ensure_all_finite=ensure_all_finite,
            estimator=estimator,
            input_name="X",
        )
        check_columns(estimator, X if isinstance(X, nw.DataFrame) else data, reset=reset)
    if issparse(X) and not data.has_canonical_format:
        data = data.copy()  # the user's stays as it is
        data.sum_duplicates()
    return data


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
        raise InputError(
            f"varies {much} in {name}, where it should vary by {low:.0e} to {high:.0e}, so "
            f"that sums of powers fit; {verb} it by a constant first",
            parameter,
        )
    largest = float(np.abs(rows.center).max(initial=0.0))
    if largest > max_mean:
        problem = f"has a column whose mean is about {largest:.0e}, in {name}"
        remedy = f"where it should be at most {max_mean:.0e}; subtract a constant first"
        raise InputError(f"{problem}, {remedy}", parameter)
