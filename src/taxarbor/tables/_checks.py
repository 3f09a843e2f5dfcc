"""The only place where what a user passes to an estimator is checked and cast."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self, final

import numpy as np
import sklearn
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import validation

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._frames import (
    as_frame,
    column_names,
    is_frame,
    is_polars,
    refuse_times,
    unmasked,
)
from taxarbor._types import Array
from taxarbor.rows import as_rows
from taxarbor.rows._checks import check_structure

RANGE = {"float32": (1e-15, 1e15), "float64": (1e-70, 1e70)}
"""Within which the data may vary: fourth powers, or squares in float32, must fit."""
KNOWS_FRAMES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
"""Whether scikit-learn finds the names of columns in frames of every kind."""

FARTHEST = {"float32": 1e17, "float64": 1e150}
"""How far from zero the mean of a column may be: squares must fit."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SeenFeatures:
    """What scikit-learn's conventions want an estimator to remember of its training data."""

    n_features_in_: int
    feature_names_in_: NDArray[np.object_] | None

    @classmethod
    def of(cls, fitted: Any) -> "SeenFeatures":
        """Return what an estimator or a transformer has seen."""
        return cls(fitted.n_features_in_, vars(fitted).get("feature_names_in_"))

    @property
    def names(self) -> list[str] | None:
        """The names as plain strings, where there are any."""
        names = self.feature_names_in_
        return None if names is None else [str(name) for name in names]

    @property
    def attributes(self) -> dict[str, Any]:
        """What to set on the estimator."""
        seen = {"n_features_in_": self.n_features_in_}
        names = self.feature_names_in_
        return seen if names is None else seen | {"feature_names_in_": names}


def check_array(estimator: Any, X: Any, *, allow_nan: bool) -> tuple[Any, SeenFeatures]:
    """Return training data as a float array or a canonical CSR matrix, or raise InputError.

    The estimator stays as it is. The error is a TypeError, too, where scikit-learn has one.
    """
    probe = copy(estimator)
    is_finite: Any = "allow-nan" if allow_nan else True
    data = _checked(probe, X, ensure_min_samples=2, ensure_all_finite=is_finite)
    return data, SeenFeatures.of(probe)


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return what rows count for, None if all count one, or raise InputError."""
    if sample_weight is None:
        return None
    name = "sample_weight"
    try:
        given = np.asarray(unmasked(sample_weight))
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
    if not weights.any():
        raise InputError("is zero for all rows: none would count", name)
    if np.count_nonzero(weights) < 2:
        raise InputError("is positive for 1 row only; a fit needs 2 at least", name)
    return None if (weights == 1.0).all() else weights


def check_new_rows(estimator: Any, X: Any) -> Any:
    """Return new rows, after comparing them with what the estimator was fitted on.

    Where columns were encoded by name, those that the encoding uses are enough, in any order,
    and the tree looks for them. Otherwise scikit-learn's own rules hold. Missing values and
    infinities are left to the routing, which reads every cell.
    """
    X, tree = as_frame(X), vars(estimator).get("taxonomy_")
    encoding = None if tree is None else tree.encoding
    if encoding is None:
        return _checked(estimator, X, reset=False, ensure_all_finite=False)
    if encoding.has_names and column_names(X) is not None:
        refuse_repeated_names(X.columns)
        return X
    with input_errors():
        validate_data(estimator, X, skip_check_array=True, reset=False)
    return X


@final
class _Columns:
    """The names and the shape of a frame, as scikit-learn below 1.9 asks for them."""

    def __init__(self, frame: Any) -> None:
        self.shape = frame.shape
        self._names = list(frame.columns)

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> list[str]:
        return self._names


def validate_data(
    estimator: Any,
    X: Any,
    *,
    reset: bool = True,
    skip_check_array: bool = False,
    **options: Any,
) -> Any:
    """Do what scikit-learn's function of this name does, with the names of every frame.

    Below 1.9 it does not find those of polars 2, which has no ``__dataframe__`` any more. What
    its versions refuse in other words, or not at all, is refused here.
    """
    if is_frame(X):
        refuse_repeated_names(X.columns)
    elif len(shape := np.asarray(X).shape) > 2:
        expected = "must have two dimensions, (n_rows, n_features)"
        raise InputError(f"{expected}, got shape {shape}", "X")
    if KNOWS_FRAMES or hasattr(X, "__dataframe__") or not is_frame(X):
        return validation.validate_data(
            estimator, X, reset=reset, skip_check_array=skip_check_array, **options
        )
    validation.validate_data(estimator, _Columns(X), reset=reset, skip_check_array=True)
    if skip_check_array:
        return X
    return validation.check_array(X, estimator=estimator, input_name="X", **options)


def refuse_repeated_names(names: Iterable[Hashable]) -> None:
    """Raise InputError where two columns have one name."""
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        problem = f"has more than one column called {some(repeated, 5)}"
        raise InputError(f"{problem}; make the names different", "X")


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
        raise InputError(
            "must be None, a number between 0 and 1, or a pair (low, high) of numbers with "
            f"low <= 1 <= high, as multiples of an equal share; got {_short(value)}",
            "balance",
        )
    return low, high


def _short(value: Any) -> str:
    """Return a value as text; Python refuses to write out integers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return f"a {type(value).__name__}"


def _checked(
    estimator: Any,
    X: Any,
    *,
    reset: bool = True,
    ensure_min_samples: int = 1,
    ensure_all_finite: Any = True,
) -> Any:
    """Return X as an array or a canonical CSR matrix, by scikit-learn's conventions."""
    with input_errors(), np.errstate(over="ignore", invalid="ignore"):
        refuse_times(X)
        X = unmasked(X)
        if issparse(X):
            check_structure(X)
        data: Any = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=_float_types(X),
            order="C",
            ensure_min_samples=ensure_min_samples,
            ensure_all_finite=ensure_all_finite,
        )
    if issparse(X) and not data.has_canonical_format:
        data = data.copy()  # the user's stays as it is
        data.sum_duplicates()
    return data


@contextmanager
def input_errors() -> Iterator[None]:
    """Take what scikit-learn raises of the data for what it is."""
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


def _float_types(X: Any) -> list[type[np.floating]]:
    """Return the types to keep, or to cast to, the first for all others.

    scikit-learn does not see that a polars frame is float32, nor an array of the other byte
    order.
    """
    dtype = np.asarray(X[:1]).dtype if is_polars(X) else getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.newbyteorder("=") == np.float32:
        return [np.float32]
    return [np.float64, np.float32]


def check_range(data: Any, parameter: str = "X") -> None:
    """Raise InputError where sums of powers of the data would not fit into their type."""
    rows = as_rows(data)
    name = rows.dtype.name
    (low, high), most = RANGE[name], FARTHEST[name]
    with np.errstate(all="ignore"):
        spread = float(rows.spread().max(initial=0.0))
    if not (spread == 0.0 or low <= spread <= high):
        verb = "multiply" if spread < low else "divide"
        much = f"by about {spread:.0e}" if math.isfinite(spread) else "beyond what fits"
        raise InputError(
            f"varies {much} in {name}, where it should vary by {low:.0e} to {high:.0e}, so "
            f"that sums of powers fit; {verb} it by a constant first",
            parameter,
        )
    farthest = float(np.abs(rows.center).max(initial=0.0))
    if farthest > most:
        problem = f"has a column whose mean is about {farthest:.0e}, in {name}"
        remedy = f"where it should be at most {most:.0e}; subtract a constant first"
        raise InputError(f"{problem}, {remedy}", parameter)
