"""What a user calls things: names of rows and columns, given or found with the data."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from taxarbor._types import Array
from taxarbor.hierarchy import Hierarchy, check_columns, in_digits
from taxarbor.rows import Rows

MOVED = 1e-3
"""Standard deviations that the mean of a column may differ by; and what float32 rounds."""


def given_names(
    kind: str, given: Sequence[str] | None, found: Sequence[str] | None, n_expected: int
) -> tuple[str, ...] | None:
    """Return the names that are given, or else found, or None.

    Raises
    ------
    TypeError
        If a single text is given.
    ValueError
        If there are more or fewer than there should be.
    """
    if isinstance(given, str):
        raise TypeError(f"{kind}_names must be a list of names, got the text {given!r}")
    names = found if given is None else given
    if names is None:
        return None
    if len(names) != n_expected:
        things = {"row": "rows", "feature": "features"}[kind]
        raise ValueError(f"got {len(names)} {kind} names for {n_expected} {things}")
    return tuple(str(name) for name in names)


def find_row(row: Any, names: Sequence[str] | None, n_rows: int) -> int:
    """Return the number of a row, given that or its name.

    Raises
    ------
    KeyError, IndexError
        If there is no such row, or there are several of this name.
    TypeError
        If it is neither: the truth values of a mask are not.
    """
    if isinstance(row, str):
        found = [n for n, name in enumerate(names or ()) if name == row]
        if len(found) != 1:
            told = "there is no row" if not found else f"there are {len(found)} rows"
            raise KeyError(f"{told} called {row!r}; give its number, 0 to {n_rows - 1}")
        return found[0]
    if isinstance(row, bool | np.bool_):
        raise TypeError(
            f"a row is a number or a name, got {row}; of a mask, pass np.flatnonzero(mask)"
        )
    number = operator.index(row)
    if not 0 <= number < n_rows:
        raise IndexError(f"there is no row {number}: rows are numbered 0 to {n_rows - 1}")
    return number


def columns_of(X: Any) -> Sequence[str] | None:
    """Return the names of a frame's columns."""
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(name) for name in columns)


def index_of(X: Any) -> Sequence[str] | None:
    """Return the index of a pandas frame if it holds names, not just numbers."""
    index = getattr(X, "index", None)
    is_named = getattr(getattr(index, "dtype", None), "kind", "i") in "OUT"
    return [str(name) for name in index] if index is not None and is_named else None


def check_order(
    X: Any, columns: Sequence[str] | None, feature_names: tuple[str, ...] | None
) -> None:
    """Raise ValueError if a frame has other columns than were explained.

    Where these had no names of their own, those given must at least not be in another order.
    """
    found = columns_of(X)
    if columns is not None:
        check_columns(X, tuple(columns))
    elif found is not None and sorted(found) == sorted(feature_names or ()):
        check_columns(X, feature_names)


def check_same_rows(tree: Hierarchy, rows: Rows, data: Any) -> None:
    """Raise ValueError if the mean of a column is not that of the tree's own rows."""
    if tree.means is None:
        return
    known, found = tree.means[tree.root].astype(np.float64), rows.center
    spread = np.sqrt(np.maximum(_mean_squares(data) - found**2, 0.0))
    allowed = MOVED * spread + 4.0 * np.finfo(np.float32).eps * np.abs(found)
    wrong = np.flatnonzero(np.abs(known - found) > allowed)
    if len(wrong):
        column, names = int(wrong[0]), tree.feature_names
        raise ValueError(
            "X does not hold the rows that the tree was grown on: the mean of "
            f"{names[column] if names else f'x{column}'} was {in_digits(known[column])}, and "
            f"is {in_digits(found[column])} now. If they were scaled for it, pass them as they "
            "were then, pipeline[:-1].transform(X), or the tree in the units of X, as "
            "hierarchy.unscale(scaler.mean_, scaler.scale_) returns it"
        )


def _mean_squares(data: Any) -> Array:
    """Return the mean of each column's squares, without a copy of dense data."""
    n_rows, n_features = data.shape
    is_sparse = sparse.issparse(data)
    total = np.zeros(n_features)
    if is_sparse:
        total += np.bincount(
            data.indices, np.square(data.data, dtype=np.float64), minlength=n_features
        )
    else:
        np.einsum("ij,ij->j", data, data, dtype=np.float64, out=total)
    mean: Array = total / n_rows
    return mean
