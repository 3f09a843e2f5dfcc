"""Weights are repeats: a fit sees each row as often as it counts.

What grows a tree knows rows and nothing of weights. It gets an index that names a row several
times, and its tree, of these copies, is brought back to the rows later. So integer weights do
exactly what repeated rows do, bounds on sizes included, and rows of weight zero are absent.
Other weights are rounded to whole numbers of copies.
"""

import numpy as np

from taxarbor._types import Array, IndexArray

EXACT = (4, 20_000)
"""Copies per row, and copies, up to which integer weights are not rounded."""

COPIES = (10, 10_000)
"""Copies per row, and copies, that other weights are rounded to; but one per row at least. More
would make large fits slower, and fewer would take light rows of small tables for none."""

GRID = 2.0**32
"""Weights are rounded to this part of the greatest first: what the common factor of all leaves
in their last digits decides nothing."""


def repeats_of(weights: Array) -> IndexArray:
    """Return how many copies a fit sees of each row; see the module.

    Each row is within one copy of its due. Which rows get the one more depends on nothing but
    the weights that are not zero and their order, which is shuffled: data may come in turns.
    """
    repeats = np.zeros(len(weights), dtype=np.intp)
    (some,) = weights.nonzero()
    own, n = weights[some], len(some)
    with np.errstate(over="ignore"):
        total = own.sum()
    if total <= max(EXACT[0] * n, EXACT[1]) and (own == np.floor(own)).all():
        repeats[some] = own.astype(np.intp)
    elif (own == own[0]).all():
        repeats[some] = 1
    else:
        shuffled = np.random.default_rng(0).permutation(n)
        grown = np.cumsum(np.round(own[shuffled] / own.max() * GRID))  # whole numbers
        n_copies = max(n, min(COPIES[0] * n, COPIES[1]))
        due = np.floor(grown * (n_copies / grown[-1]) + 0.5).astype(np.intp)
        repeats[some[shuffled]] = np.diff(due, prepend=0)
    return repeats
