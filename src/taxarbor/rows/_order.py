"""The order of numbers in whole numbers, and how one of a given rank is found.

A key is a whole number that is greater for a greater number. Of many float32 numbers in many
blocks, the one of rank k is found in three rounds, without sorting: each counts keys by some of
their bits, 10 and then twice 11, of those keys alone whose bits above were found before.

    prefixes = np.full(len(ranks), -1)
    for shift in SHIFTS:
        counts = ...  # native.count_scores(..., prefixes, shift), added up over all blocks
        prefixes, ranks, n_alike = narrowed(counts, prefixes, ranks)
    values = float_of(prefixes.astype(np.uint32))
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array

SHIFTS = (22, 11, 0)
"""Bits below the ones that are counted, in each round."""

BITS = 11
"""Bits by which keys are counted in a round: those of ``native.count_scores``."""

Keys = NDArray[np.unsignedinteger[Any]]


def key_of(values: Array) -> Keys:
    """Return the key of each number, as wide as it is; those of -0 and 0 are the same.

    Examples
    --------
    >>> import numpy as np
    >>> key_of(np.array([-np.inf, -1.0, 0.0, 1.0, np.inf], dtype=np.float32))
    array([   8388607, 1082130431, 2147483648, 3212836864, 4286578688],
          dtype=uint32)
    """
    bits: Any = (values + values.dtype.type(0.0)).view(f"u{values.itemsize}")
    sign = _sign(bits)
    keys: Keys = np.where(bits & sign, ~bits, bits | sign)
    return keys


def float_of(keys: Keys) -> Array:
    """Return the number of each key.

    Examples
    --------
    >>> import numpy as np
    >>> float_of(key_of(np.array([-1.5, 0.0, 2.5], dtype=np.float32)))
    array([-1.5,  0. ,  2.5], dtype=float32)
    """
    sign = _sign(keys)
    found: Array = np.where(keys & sign, keys ^ sign, ~keys).view(f"f{keys.itemsize}")
    return found


def _sign(keys: Keys) -> Any:
    return keys.dtype.type(1 << (8 * keys.itemsize - 1))


def narrowed(
    counts: NDArray[np.int64], prefixes: NDArray[np.int64], ranks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the upper bits of the keys of given ranks, and their ranks among keys with these.

    And how many such keys there are.

    Parameters
    ----------
    counts : array of shape (n, 2048)
        Keys by their next bits, for each of the ranks.
    prefixes : array of shape (n,)
        Upper bits that these keys have; -1 before the first round.
    ranks : array of shape (n,)
        How many keys lie before the one that is sought, among the ones counted; fewer than
        are counted.
    """
    up_to = np.cumsum(counts, axis=1)
    bins = np.count_nonzero(up_to <= ranks[:, None], axis=1)
    each = np.arange(len(bins))
    n_alike = counts[each, bins]
    before = up_to[each, bins] - n_alike
    return (np.maximum(prefixes, 0) << BITS) | bins, ranks - before, n_alike
