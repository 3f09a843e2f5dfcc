"""Checks of values and of sparse matrices before compiled code reads them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array

CELLS_PER_BLOCK = 1 << 20
"""Cells that are checked at a time."""


def all_finite(values: Array) -> bool:
    """Return whether all values are finite; their sum mostly says so, without memory."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return True
    flat = values.ravel()
    steps = range(0, len(flat), CELLS_PER_BLOCK)
    return all(
        bool(np.isfinite(flat[first : first + CELLS_PER_BLOCK]).all()) for first in steps
    )


def check_structure(X: Any) -> None:
    """Raise ValueError if a SciPy sparse matrix is none, or points outside itself.

    Compiled code that follows a wrong index ends the process. SciPy's ``check_format`` is not
    used, as it passes every matrix whose last pointer is 0, and changes the one it looks at.
    """
    if len(X.shape) != 2:
        expected = "must have two dimensions, (n_rows, n_features)"
        raise InputError(f"{expected}, got shape {X.shape}", "X")
    is_sound = True
    if X.format in ("csr", "csc", "bsr"):
        shape = np.array(X.shape) // (X.blocksize if X.format == "bsr" else 1)
        n_outer, n_inner = shape[::-1] if X.format == "csc" else shape
        ends, n_stored = X.indptr, min(len(X.indices), len(X.data))
        is_sound = len(ends) == n_outer + 1 and ends[0] == 0 and ends[-1] <= n_stored
        is_sound = is_sound and (ends[1:] >= ends[:-1]).all()
        is_sound = is_sound and _are_within(X.indices[: ends[-1]], n_inner)
    elif X.format == "coo":
        is_sound = len(X.row) == len(X.col) == len(X.data)
        is_sound = is_sound and _are_within(X.row, X.shape[0])
        is_sound = is_sound and _are_within(X.col, X.shape[1])
    if not is_sound:
        raise InputError(
            f"X is a damaged sparse matrix: its indices do not fit its shape, {X.shape}, or "
            "its pointers do not ascend from 0 to the number of entries"
        )


def _are_within(indices: NDArray[np.integer], size: int) -> bool:
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < size)
