"""The order of float32 numbers in whole numbers, and how one of a given rank is found.

A key is a uint32 that is greater for a greater number. Of many numbers in many blocks, the one
of rank k is found in three rounds, without sorting: each counts keys by some of their bits, 10
and then twice 11, of those keys alone whose bits above are the ones found before.

    prefixes = np.full(len(ranks), -1)
    for shift in SHIFTS:
        counts = ...  # native.count_scores(..., prefixes, shift), added up over all blocks
        prefixes, ranks = narrowed(counts, prefixes, ranks)
    values = float_of(prefixes.astype(np.uint32))
"""

import numpy as np
from numpy.typing import NDArray

SHIFTS = (22, 11, 0)
"""Bits below the ones that are counted, in each round."""

BITS = 11
"""Bits by which keys are counted in a round: those of ``native.count_scores``."""

SIGN = np.uint32(1 << 31)


def key_of(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return the key of each number; those of -0 and 0 are the same.

    Examples
    --------
    >>> import numpy as np
    >>> key_of(np.array([-np.inf, -1.0, 0.0, 1.0, np.inf], dtype=np.float32))
    array([   8388607, 1082130431, 2147483648, 3212836864, 4286578688],
          dtype=uint32)
    """
    bits = (np.asarray(values, dtype=np.float32) + np.float32(0.0)).view(np.uint32)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def float_of(keys: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return the number of each key.

    Examples
    --------
    >>> import numpy as np
    >>> float_of(key_of(np.array([-1.5, 0.0, 2.5], dtype=np.float32)))
    array([-1.5,  0. ,  2.5], dtype=float32)
    """
    own = np.asarray(keys, dtype=np.uint32)
    return np.where(own & SIGN, own ^ SIGN, ~own).view(np.float32)


def narrowed(
    counts: NDArray[np.int64], prefixes: NDArray[np.int64], ranks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the upper bits of the keys of given ranks, and their ranks among keys with these.

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
    before = np.where(bins > 0, up_to[np.arange(len(bins)), bins - 1], 0)
    return (np.maximum(prefixes, 0) << BITS) | bins, ranks - before
