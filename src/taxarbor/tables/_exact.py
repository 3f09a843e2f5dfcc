"""Sums without rounding, and hashes, for numbers that come in parts."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from taxarbor._types import Array

SHARE = 1 << 64
"""Hashes are below this."""
LIMBS = 67
"""Of 32 bits: from the least double to sums of many of the greatest."""
TERMS = 4
"""Doubles that a sum is read out in: more digits than any mean or variance needs."""


def exact_sums(table: Any, counts: NDArray[np.int32] | None = None) -> NDArray[np.int64]:
    """Return the exact sum of each column, float64, an array or CSR, as limbs.

    NaN adds nothing. Limbs of several parts can be added.
    """
    n, p = table.shape
    if issparse(table):
        values, columns = table.data, table.indices
        weights = None if counts is None else np.repeat(counts, np.diff(table.indptr))
    else:
        values, columns = table.ravel(), np.tile(np.arange(p), n)
        weights = None if counts is None else np.repeat(counts, p)
    here = np.flatnonzero(~np.isnan(values))
    values, columns = np.ascontiguousarray(values[here]), columns[here]
    bits = values.view(np.int64)
    exponents = (bits >> 52) & 0x7FF
    digits = (bits & ((1 << 52) - 1)) | (np.minimum(exponents, 1) << 52)
    at = np.maximum(exponents, 1) - 1
    limb, shift = at >> 5, at & 31
    sign = np.where(bits < 0, -1, 1) * (1 if weights is None else weights[here].astype(np.int64))
    low, high = (digits & 0xFFFFFFFF) << shift, (digits >> 32) << shift
    found = np.zeros((p, LIMBS), dtype=np.int64)
    np.add.at(found, (columns, limb), (low & 0xFFFFFFFF) * sign)
    np.add.at(found, (columns, limb + 1), ((low >> 32) + (high & 0xFFFFFFFF)) * sign)
    np.add.at(found, (columns, limb + 2), (high >> 32) * sign)
    for one in range(LIMBS - 1):
        carry = found[:, one] >> 32
        found[:, one] -= carry << 32
        found[:, one + 1] += carry
    return found


def exact_values(limbs: NDArray[np.int64]) -> list[Fraction]:
    """Return the sums that limbs stand for."""
    return [
        Fraction(sum(int(limb) << (32 * at) for at, limb in enumerate(row)), 1 << 1074)
        for row in limbs
    ]


def hashes(key: int, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return 64 bits for each number, different for each."""
    with np.errstate(over="ignore"):
        found = np.uint64(key) ^ (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        for _ in range(2):
            found ^= found >> np.uint64(30)
            found *= np.uint64(0xBF58476D1CE4E5B9)
            found ^= found >> np.uint64(27)
            found *= np.uint64(0x94D049BB133111EB)
            found ^= found >> np.uint64(31)
    return found
