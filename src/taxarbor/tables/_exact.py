"""Sums of the columns of a table without rounding, so that parts of it can be added up."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._types import Array
from taxarbor.rows import as_rows

LIMBS, UNIT = 67, 1 << 1074
"""Numbers of 32 bits that hold the exact sum of doubles, and how many units make one."""


def exact_sums(table: Any, counts: NDArray[np.int32] | None = None) -> NDArray[np.int64]:
    """Return the exact sum of each column, float64, an array or CSR, as limbs.

    NaN adds nothing. Those of several parts can be added.
    """
    n, p = table.shape
    if n == 0 or p == 0:
        return np.zeros((p, LIMBS), dtype=np.int64)
    own = np.ascontiguousarray(table) if isinstance(table, np.ndarray) else table
    rows = as_rows(own, center=np.zeros(p))
    return rows.exact_sums(None, counts, 1).reshape(p, LIMBS)


def sum_of(limbs: NDArray[np.int64]) -> Fraction:
    """Return the number that the limbs of one sum stand for."""
    return Fraction(sum(limb << (32 * at) for at, limb in enumerate(limbs.tolist())), UNIT)


def sums_of(limbs: NDArray[np.int64]) -> Array:
    """Return the doubles nearest to sums."""
    return native.exact_values(np.ascontiguousarray(limbs), False)
