r"""Mutual information of leaves and classes, corrected for chance.

For sums :math:`a` and :math:`b` of a row and a column of the table over :math:`n` rows of
data, a cell :math:`k` of shuffled data is hypergeometric, and expected to add

.. math:: \sum_k p(k) \, \frac{k}{n} \log \frac{n k}{a b}.

Ratios of successive probabilities are rational, so from the mode outward, up and down, they
need no logarithm of a factorial, and the sum of all norms them. That is exact to rounding,
where differences of log-gammas lose seven digits at a million rows. The terms taken span some
ten standard deviations to each side rather than all of 0 to min(a, b).
"""

import numpy as np
from numpy.typing import NDArray

from taxarbor.metrics._table import Counts

_NEGLIGIBLE = 1e-20
"""Terms so small, relative to the mode, do not change a sum in double precision."""
_STRIDE = 8
"""Terms to add between looking for sums that are done with."""

Floats = NDArray[np.float64]


def adjusted_information(counts: Counts) -> float:
    """Return the mutual information, less the expected, over the mean entropy, less the same.

    Parameters
    ----------
    counts : int array of shape (n_leaves, n_classes)
        Rows by leaf and class, with no empty leaf or class.
    """
    n_leaves, n_classes = counts.shape
    if n_leaves == n_classes == np.count_nonzero(counts):
        return 1.0  # the same clustering, which may be all in one or each alone: 0 / 0
    if min(n_leaves, n_classes) == 1:
        return 0.0
    leaf_sizes, class_sizes = counts.sum(axis=1), counts.sum(axis=0)
    expected = expected_information(leaf_sizes, class_sizes)
    most = (_entropy(leaf_sizes) + _entropy(class_sizes)) / 2
    return (_information(counts) - expected) / (most - expected)


def expected_information(leaf_sizes: Counts, class_sizes: Counts) -> float:
    """Return the mutual information to expect when rows are shuffled.

    Parameters
    ----------
    leaf_sizes, class_sizes : int arrays
        Number of rows of each leaf and of each class; the sums are equal.
    """
    n_rows = int(leaf_sizes.sum())
    leaf, n_leaf = np.unique(leaf_sizes, return_counts=True)
    group, n_group = np.unique(class_sizes, return_counts=True)
    a, b = (sizes.ravel() for sizes in np.meshgrid(leaf, group, indexing="ij"))
    cells = _expected_cells(a.astype(np.float64), b.astype(np.float64), float(n_rows))
    return float(n_leaf @ cells.reshape(len(leaf), len(group)) @ n_group) / n_rows


def _expected_cells(a: Floats, b: Floats, n: float) -> Floats:
    """Return the mean of ``k log(n k / (a b))`` for each pair of sums."""
    mode = np.floor((a + 1) * (b + 1) / (n + 2))
    mode = np.clip(mode, np.maximum(a + b - n, 0), np.minimum(a, b))  # against rounding
    norm, total = np.ones_like(a), mode * np.log(np.maximum(mode, 1) * n / (a * b))
    for step in (1, -1):
        _add_tail(norm, total, (a, b, mode, n), step)
    return total / norm


def _add_tail(
    norm: Floats, total: Floats, law: tuple[Floats, Floats, Floats, float], step: int
) -> None:
    """Add the terms on one side of the mode, relative to the one there, in place."""
    a, b, k, n = law
    rest, mean = n - a - b, a * b / n
    alive, weight = np.arange(len(a)), np.ones_like(a)
    while len(alive):
        norm_here, total_here = np.zeros_like(weight), np.zeros_like(weight)
        for _ in range(_STRIDE):
            if step > 0:
                weight = weight * ((a - k) * (b - k) / ((k + 1) * (rest + k + 1)))
            else:
                weight = weight * (k * (rest + k) / ((a - k + 1) * (b - k + 1)))
            k = k + step
            # Past the end of its range, k may be anything: the weight is 0 from there on.
            norm_here += weight
            total_here += weight * k * np.log(np.maximum(k, 1) / mean)
        norm[alive] += norm_here
        total[alive] += total_here
        keep = weight > _NEGLIGIBLE
        alive, weight, k = alive[keep], weight[keep], k[keep]
        a, b, rest, mean = a[keep], b[keep], rest[keep], mean[keep]


def _information(counts: Counts) -> float:
    leaf, group = np.nonzero(counts)
    cells, n_rows = counts[leaf, group].astype(np.float64), counts.sum()
    expected = counts.sum(axis=1)[leaf] / n_rows * counts.sum(axis=0)[group]
    return float(np.sum(cells * np.log(cells / expected))) / float(n_rows)


def _entropy(sizes: Counts) -> float:
    share = sizes / sizes.sum()
    return -float(np.sum(share * np.log(share)))
