"""The class of each row, whatever a user keeps it in, as numbers from 0 on."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._types import IndexArray


def encode_labels(y: ArrayLike, n_rows: int) -> tuple[IndexArray, tuple[Any, ...]]:
    """Give each class a number.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Anything hashable; a pandas or polars series will do.
    n_rows : int
        Number of rows there should be.

    Returns
    -------
    codes : int array of shape (n_rows,)
        The class of each row.
    classes : tuple
        The label of each class; each occurs. Labels that read the same are one class.

    Raises
    ------
    ValueError
        If there is not one label per row, or one is missing or cannot be hashed.
    """
    if type(y).__module__.partition(".")[0] == "pandas":
        codes, classes = _encode_pandas(y, n_rows)
    else:
        codes, classes = _encode_array(_as_array(y), n_rows)
    if any(map(_is_missing, classes)):
        missing = np.isin(codes, [code for code, c in enumerate(classes) if _is_missing(c)])
        raise ValueError(_missing(int(missing.sum()), int(missing.argmax())))
    return _merged(codes, classes)


def name_of(label: Any) -> str:
    """Return the label as text, by which it is looked up among the names of a tree."""
    return label.decode() if isinstance(label, bytes) else str(label)


def _merged(codes: IndexArray, classes: tuple[Any, ...]) -> tuple[IndexArray, tuple[Any, ...]]:
    """Make labels that read the same, such as 1 and "1", one class."""
    first: dict[str, Any] = {}
    for label in classes:
        first.setdefault(name_of(label), label)
    if len(first) == len(classes):
        return codes, classes
    number = {name: code for code, name in enumerate(first)}
    merged = np.array([number[name_of(label)] for label in classes], dtype=np.intp)
    return merged[codes], tuple(first.values())


def _encode_pandas(y: Any, n_rows: int) -> tuple[IndexArray, tuple[Any, ...]]:
    import pandas as pd

    _check_shape(y.shape, n_rows)
    codes, classes = pd.factorize(y)
    if (codes < 0).any():
        raise ValueError(_missing(int((codes < 0).sum()), int((codes < 0).argmax())))
    return codes.astype(np.intp), tuple(classes.tolist())


def _encode_array(y: NDArray[Any], n_rows: int) -> tuple[IndexArray, tuple[Any, ...]]:
    _check_shape(y.shape, n_rows)
    if y.dtype.kind in "fcmM":
        missing = np.isnan(y)
        if missing.any():
            raise ValueError(_missing(int(missing.sum()), int(missing.argmax())))
    elif y.dtype.kind in "biu":
        low, high = int(y.min()), int(y.max())
        if high - low <= 4 * n_rows:
            return _encode_dense(y, low)
    else:
        return _encode_hashable(y.tolist())
    classes, codes = np.unique(y, return_inverse=True)
    return codes, tuple(classes.tolist())


def _encode_dense(y: NDArray[Any], low: int) -> tuple[IndexArray, tuple[Any, ...]]:
    """Count integers from a narrow range rather than sort them."""
    wide = y if y.dtype == np.uint64 else y.astype(np.int64)  # differences must fit
    shifted = (wide - wide.dtype.type(low)).astype(np.intp)
    present = np.bincount(shifted) > 0
    codes = (np.cumsum(present) - 1)[shifted]
    values: list[Any] = [low + offset for offset in np.flatnonzero(present).tolist()]
    if y.dtype.kind == "b":
        values = [bool(value) for value in values]
    return codes, tuple(values)


def _encode_hashable(y: list[Any]) -> tuple[IndexArray, tuple[Any, ...]]:
    """Look labels up one by one: several times as fast as sorting strings."""
    try:
        number = {label: code for code, label in enumerate(dict.fromkeys(y))}
    except TypeError as error:
        raise ValueError(
            f"there must be one class per row, such as a number or a name: {error}"
        ) from error
    codes = np.fromiter(map(number.__getitem__, y), dtype=np.intp, count=len(y))
    return codes, tuple(number)


def _as_array(y: ArrayLike) -> NDArray[Any]:
    if isinstance(y, np.ma.MaskedArray):
        values = np.asarray(y, dtype=object)
        values[np.ma.getmaskarray(y)] = None
        return values
    # NumPy would turn ["a", nan] into two strings.
    return np.asarray(y, dtype=object if isinstance(y, Sequence) else None)


def _check_shape(shape: tuple[int, ...], n_rows: int) -> None:
    if shape != (n_rows,):
        raise ValueError(
            f"there must be one class for each of the {n_rows} rows of the hierarchy, an array "
            f"of shape ({n_rows},); got shape {shape}"
        )


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(label, float | np.floating) and math.isnan(label)


def _missing(count: int, first: int) -> str:
    return (
        f"there is no class for {count} rows, the first of them row {first}; leave such rows "
        "out when fitting, or give them a class of their own"
    )
