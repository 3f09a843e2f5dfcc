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
        sign = limbs[..., -1] >> 63
        filler = sign & LOW
        n = limbs.shape[-1]
        last = n - 1
        if (limbs[..., last] == sign).all():  # above, there is but the sign
            last -= 1
            while last > 0 and (limbs[..., last] == filler).all():
                last -= 1
        first = 0
        while first < last and not limbs[..., first].any():
            first += 1
        kept = limbs[..., first : last + 1].copy()
        if last < n - 1:
            kept[..., -1] += sign * 2**32
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
        found, step = np.empty(len(flat)), CELLS // n_limbs
        for begin in range(0, len(flat), step):
            some = flat[begin : begin + step]
            whole = np.zeros((len(some), n_limbs), dtype=np.int64)
            whole[:, self.first : self._last] = some
            found[begin : begin + step] = native.exact_values(whole, self.is_float32)
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
