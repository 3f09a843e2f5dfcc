"""Exact sums of many columns and labels, without the digits that none of them has.

A sum of doubles can have 2,100 binary digits, and most use a tenth of them. All digits of the
columns of a wide table, for all leaves of a tree, would take more memory than the table.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._types import Array
from taxarbor.rows import Rows

CELLS = 1 << 22
"""Limbs that are held whole at a time; but those of one label."""

NEAR = 1 << 10
"""Sums that are looked at together: what they take stays near the processor."""

LOW = 2**32 - 1
"""The greatest limb but the last."""

Limbs = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums as limbs of 32 bits, lowest first: those that are zero in all are left out.

    Attributes
    ----------
    first : int
        How many are left out below.
    limbs : int array of shape (n_labels, n_features, n_kept)
        Whole numbers of any size and sign, so that such arrays can be added up.
    is_float32 : bool
        Whether they are of float32 values.
    """

    first: int
    limbs: Limbs
    is_float32: bool

    @classmethod
    def of(cls, limbs: Limbs, is_float32: bool) -> "Sums":
        """Return what ``native.exact_sums`` found."""
        n = limbs.shape[-1]
        flat = limbs.reshape(-1, n)
        is_zero, is_sign = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
        for begin in range(0, len(flat), NEAR):
            some = flat[begin : begin + NEAR]
            sign = some[:, -1:] >> 63
            is_zero &= (some == 0).all(axis=0)
            is_sign[:-1] &= (some[:, :-1] == (sign & LOW)).all(axis=0)
            is_sign[-1:] &= (some[:, -1:] == sign).all(axis=0)
        is_zero[-1] = is_sign[0] = False
        last = n - 1 - int(np.argmin(is_sign[::-1]))  # above, there is but the sign
        first = min(int(np.argmin(is_zero)), last)
        kept = limbs[..., first : last + 1].copy()
        if last < n - 1:
            kept[..., -1] += (limbs[..., -1] >> 63) * 2**32
        return cls(first, kept, is_float32)

    def merge(self, other: "Sums") -> "Sums":
        """Return the sums of both."""
        first, last = min(self.first, other.first), max(self._last, other._last)
        limbs = self._over(first, last)
        begin = other.first - first
        limbs[..., begin : begin + other.limbs.shape[-1]] += other.limbs
        return Sums(first, limbs, self.is_float32)

    def below(self, leaves: Any, parents: Any) -> "Sums":
        """Return the sums of all nodes of a tree, of whose leaves these are the sums."""
        return Sums(self.first, below(self.limbs, leaves, parents), self.is_float32)

    def values(self) -> Array:
        """Return the nearest doubles, of shape (n_labels, n_features)."""
        n_limbs = N_LIMBS[self.is_float32]
        flat = self.limbs.reshape(-1, self.limbs.shape[-1])
        (filled,) = np.nonzero(flat.any(axis=1))  # few, where rows are sparse
        found, step = np.zeros(len(flat)), CELLS // n_limbs
        for begin in range(0, len(filled), step):
            some = filled[begin : begin + step]
            whole = np.zeros((len(some), n_limbs), dtype=np.int64)
            whole[:, self.first : self._last] = flat[some]
            found[some] = native.exact_values(whole, self.is_float32)
        return found.reshape(self.limbs.shape[:-1])

    @property
    def _last(self) -> int:
        return self.first + int(self.limbs.shape[-1])

    def _over(self, first: int, last: int) -> Limbs:
        """Return the limbs of a wider range, in an array of their own."""
        found = np.zeros((*self.limbs.shape[:-1], last - first), dtype=np.int64)
        found[..., self.first - first : self._last - first] = self.limbs
        return found


N_LIMBS = {True: 10, False: 67}
"""Of the sums of float32 values, and of others."""


def below(values: NDArray[Any], leaves: Any, parents: Any) -> NDArray[Any]:
    """Return for all nodes of a tree what there is in the leaves below them, added up.

    ``parents`` are those of all nodes, each before its children.
    """
    found = np.zeros((len(parents), *values.shape[1:]), dtype=values.dtype)
    found[leaves] = values
    for node in range(len(parents) - 1, 0, -1):
        found[parents[node]] += found[node]
    return found


def sums_of_labels(
    rows: Rows,
    labels: NDArray[np.int32],
    counts: NDArray[np.int32] | None,
    n_labels: int,
) -> Sums:
    """Return the exact sums of the rows of each label, of some labels at a time."""
    is_float32 = rows.dtype == np.float32
    step = max(CELLS // (N_LIMBS[is_float32] * max(rows.n_features, 1)), 1)
    if step >= n_labels:
        return Sums.of(rows.exact_sums(labels, counts, n_labels), is_float32)
    parts = []
    for first in range(0, n_labels, step):
        n = min(step, n_labels - first)
        own = np.where((labels >= first) & (labels < first + n), labels - first, -1)
        found = rows.exact_sums(own.astype(np.int32), counts, n)
        parts.append(Sums.of(found, is_float32))
    first, last = min(one.first for one in parts), max(one._last for one in parts)
    return Sums(first, np.concatenate([one._over(first, last) for one in parts]), is_float32)
