r"""Leaves by classes: the table that every score is computed from, and the flat scores.

The flat scores have scikit-learn's values. Its adjusted mutual information is too slow for
large data, so the expectation is computed here. For sums :math:`a` and :math:`b` of a row and
a column of the table over :math:`n` rows of data, a cell :math:`k` of shuffled data is
hypergeometric, and its expected contribution is

.. math:: \sum_k p(k) \, \frac{k}{n} \log \frac{n k}{a b}.

Ratios of successive probabilities are rational. Summed from the mode outward, in both
directions, they need no logarithm of a factorial, and their total is the normalising constant.
That is exact to rounding, where differences of log-gammas lose seven digits at a million rows.
The sum covers about ten standard deviations on each side rather than all of 0 to min(a, b).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, counted, warn_caller
from taxarbor._types import IndexArray
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import is_gap
from taxarbor.hierarchy._route import leaves_below
from taxarbor.hierarchy._tree import expect_hierarchy
from taxarbor.tables._checks import check_weights

Floats = NDArray[np.float64]
Counts = NDArray[Any]  # int64, or float64 where weights are no whole numbers

NO_LABEL = "(no label)"
"""What rows without a class are called wherever classes are shown."""
MOST = 2**31
"""Rows that weights may stand for: squares must fit in 64 bits."""

_NEGLIGIBLE = 1e-20
"""Terms this small, relative to the mode, do not change a sum in double precision."""
_STRIDE = 8
"""Terms to add before checking which sums are complete."""


# The class of each row


def encode_labels(y: ArrayLike, n_rows: int) -> tuple[IndexArray, tuple[Any, ...]]:
    """Return the number of each row's class, -1 if it has none, and the label of each class.

    Labels may be anything hashable, in a list, an array, or a pandas or polars series; those
    that read the same, such as 1 and "1", are one class. None, NaN, NA, NaT, what is masked
    and blank text are no labels: files hold such rows in any of these ways.
    """
    is_pandas = type(y).__module__.partition(".")[0] == "pandas"
    values: Any = y if is_pandas else _as_array(y)
    if values.shape != (n_rows,):
        raise InputError(
            f"there must be one class for each of the {n_rows} rows of the hierarchy, an array "
            f"of shape ({n_rows},); got shape {values.shape}"
        )
    codes, classes = _encode_pandas(values) if is_pandas else _encode_array(values)
    first: dict[str, Any] = {}
    for label in classes:
        if not _is_missing(label):
            first.setdefault(name_of(label), label)
    if not first:
        raise InputError(f"none of the {n_rows} rows has a label: there are no classes")
    if len(first) == len(classes):
        return codes, classes
    number = {name: code for code, name in enumerate(first)}
    merged = [-1 if _is_missing(one) else number[name_of(one)] for one in classes]
    return np.array([*merged, -1], dtype=np.intp)[codes], tuple(first.values())


def name_of(label: Any) -> str:
    """Return a label as text, as it is looked up among the names of a tree."""
    return label.decode() if isinstance(label, bytes) else str(label)


def _encode_pandas(y: Any) -> tuple[IndexArray, tuple[Any, ...]]:
    import pandas as pd

    codes, classes = pd.factorize(y)  # -1 where there is none
    return codes.astype(np.intp), tuple(classes.tolist())


def _encode_array(y: NDArray[Any]) -> tuple[IndexArray, tuple[Any, ...]]:
    if y.dtype.kind not in "fcmMbiu":
        return _encode_hashable(y.tolist())
    if y.dtype.kind in "biu":
        low, high = int(y.min()), int(y.max())
        if high - low <= 4 * len(y):
            return _encode_dense(y, low)
    codes, is_known = np.full(len(y), -1, dtype=np.intp), ~np.isnan(y)
    classes, codes[is_known] = np.unique(y[is_known], return_inverse=True)
    return codes, tuple(classes.tolist())


def _encode_dense(y: NDArray[Any], low: int) -> tuple[IndexArray, tuple[Any, ...]]:
    """Count integers from a narrow range instead of sorting them."""
    wide = y if y.dtype == np.uint64 else y.astype(np.int64)  # differences must fit
    shifted = (wide - wide.dtype.type(low)).astype(np.intp)
    present = np.bincount(shifted) > 0
    values: list[Any] = [low + offset for offset in np.flatnonzero(present).tolist()]
    if y.dtype.kind == "b":
        values = [bool(value) for value in values]
    return (np.cumsum(present) - 1)[shifted], tuple(values)


def _encode_hashable(y: list[Any]) -> tuple[IndexArray, tuple[Any, ...]]:
    """Look labels up one by one: several times as fast as sorting strings."""
    try:
        number = {label: code for code, label in enumerate(dict.fromkeys(y))}
    except TypeError as error:
        raise InputError(
            f"there must be one class per row, such as a number or a name: {error}"
        ) from error
    codes = np.fromiter(map(number.__getitem__, y), dtype=np.intp, count=len(y))
    return codes, tuple(number)


def _as_array(y: ArrayLike) -> NDArray[Any]:
    if isinstance(y, np.ma.MaskedArray):
        values = np.asarray(y, dtype=object)
        values[np.ma.getmaskarray(y)] = None
        return values
    # NumPy would turn ["a", nan] into two strings.
    return np.asarray(y, dtype=object if isinstance(y, Sequence) else None)


def _is_missing(label: Any) -> bool:
    return is_gap(name_of(label) if isinstance(label, bytes) else label)


# The table


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafTable:
    """The number of rows of each class in each leaf; no class is empty, but leaves may be.

    ``counts`` has a row per leaf, from left to right, and a column per class. Its sums of
    squares are exact in int64, and in float64 up to 9e7 rows. Only with weights that are no
    whole numbers, it is float64.
    """

    hierarchy: Hierarchy
    counts: Counts
    classes: tuple[Any, ...]

    @property
    def n_rows(self) -> float:
        """Number of rows that count; an int unless weights are fractions."""
        n_rows: float = self.counts.sum().item()
        return n_rows

    @property
    def n_pairs(self) -> float:
        """Number of unordered pairs of distinct rows."""
        n_pairs: float = pairs(self.counts.sum()).item()
        return n_pairs

    def node_counts(self) -> Counts:
        """Count rows by node and class: the leaves below a node are a slice of all leaves."""
        tree = self.hierarchy
        running = np.zeros((tree.n_leaves + 1, len(self.classes)), dtype=self.counts.dtype)
        np.cumsum(self.counts, axis=0, out=running[1:])
        first, last = leaves_below(tree)
        return running[last] - running[first]


def tabulate(
    hierarchy: Hierarchy, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> LeafTable:
    """Count the rows by leaf and class; warn of rows that are left out for want of a class."""
    expect_hierarchy(hierarchy)
    n_rows, order = hierarchy.n_rows, hierarchy.rows(hierarchy.root)
    codes, classes = encode_labels(y, n_rows)
    mine = codes[order]
    given = check_weights(sample_weight, n_rows)
    weights = None if given is None else given[order]
    shape = hierarchy.n_leaves, len(classes) + 1  # first those without a class
    # Leaves own consecutive rows of `order`, so only the classes have to be looked up.
    offsets = np.arange(shape[0]) * shape[1] + 1
    cells = np.repeat(offsets, hierarchy.sizes[hierarchy.leaves]) + mine
    counts = np.bincount(cells, weights, minlength=shape[0] * shape[1]).reshape(shape)[:, 1:]
    total = counts.sum()
    if not 2 <= total <= MOST:
        told = f"at least two are needed, got {total:g}"
        if total > MOST:
            told = f"weights stand for {MOST:,} at most, got {total:.1e}; divide them"
        raise InputError(f"scores compare pairs of rows with a label: {told}")
    if weights is None or np.array_equal(counts, np.floor(counts)):
        counts = counts.astype(np.int64)
    is_left_out = mine < 0 if weights is None else (mine < 0) & (weights > 0.0)
    if n_left_out := int(is_left_out.sum()):
        many = "are" if n_left_out > 1 else "is"
        told = f"{counted(n_left_out, 'row')} without a label {many} left out of the scores"
        warn_caller(told, UserWarning)
    found = np.flatnonzero(counts.any(axis=0))
    return LeafTable(hierarchy, counts[:, found], tuple(classes[code] for code in found))


def pairs(counts: Any) -> Any:
    """Return the number of unordered pairs among each number of rows."""
    twice = counts * (counts - 1)
    return twice // 2 if twice.dtype.kind == "i" else twice / 2


# Flat scores


def rand_score(
    hierarchy: Hierarchy, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the Rand index: the share of pairs of rows on which leaves and classes agree.

    They agree on a pair that is together in both or apart in both.

    Parameters
    ----------
    hierarchy, y : Hierarchy, array-like of shape (n_rows,)
        The learned tree, and the class of each row. Rows without one (None, NaN, NA or blank
        text) are left out, and so are those that the tree sets apart.
    sample_weight : array-like of shape (n_rows,), optional
        How many rows each row stands for: 2 is a row that is there twice, 0 one that is not
        there. Pairs among a fraction of a row are negative, so weights that sum to 1 are
        refused: they should be 1 on average, or more.

    Returns
    -------
    float
        Between 0 and 1. High for any two clusterings with many clusters.

    Warns
    -----
    UserWarning
        If rows have no class; it says how many.

    Raises
    ------
    ValueError
        If ``y`` is of another length, or fewer than two rows have a class; or if weights are
        of another length, negative, not finite, all 0, or sum to less than 2 or more than
        2**31.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> rand_score(from_labels([0, 0, 1, 1]), ["a", "a", "b", "c"])
    0.8333333333333334
    """
    return rand(tabulate(hierarchy, y, sample_weight))


def adjusted_rand_score(
    hierarchy: Hierarchy, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the Rand index, corrected for chance.

    Takes and raises what :func:`rand_score` does.

    Returns
    -------
    float
        1 at best; 0 is expected of shuffled rows.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> adjusted_rand_score(from_labels([0, 0, 1, 1]), ["a", "a", "b", "c"])
    0.5714285714285714
    """
    return adjusted_rand(tabulate(hierarchy, y, sample_weight))


def adjusted_mutual_info_score(
    hierarchy: Hierarchy, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return how much leaves and classes tell about each other, corrected for chance.

    That is the mutual information minus what is expected of shuffled rows, divided by the
    mean of the two entropies minus the same. Takes and raises what :func:`rand_score` does.

    Returns
    -------
    float
        1 at best; 0 is expected of shuffled rows.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> tree = from_labels([0, 0, 1, 1])
    >>> round(adjusted_mutual_info_score(tree, ["a", "a", "b", "c"]), 6)
    0.571429
    """
    return adjusted_information(tabulate(hierarchy, y, sample_weight).counts)


def rand(table: LeafTable) -> float:
    """Return the Rand index."""
    together, in_leaf, in_class = _pair_counts(table.counts)
    apart = table.n_pairs - in_leaf - in_class + together
    return (together + apart) / table.n_pairs


def adjusted_rand(table: LeafTable) -> float:
    """Return the Rand index, corrected for chance."""
    together, in_leaf, in_class = _pair_counts(table.counts)
    if together == in_leaf == in_class:
        return 1.0  # also where both put all rows together, or all apart: 0 / 0
    # Over a common denominator, which Python's integers hold: products reach 1e24.
    chance = in_leaf * in_class
    most = (in_leaf + in_class) * table.n_pairs
    return 2 * (together * table.n_pairs - chance) / (most - 2 * chance)


def _pair_counts(counts: Counts) -> tuple[float, float, float]:
    """Count the pairs of rows with one leaf and class, with one leaf, with one class."""
    sizes = (counts, counts.sum(axis=1), counts.sum(axis=0))
    together, in_leaf, in_class = (pairs(each).sum().item() for each in sizes)
    return together, in_leaf, in_class


def adjusted_information(counts: Counts) -> float:
    """Return the mutual information of a table without empty columns, corrected."""
    counts = counts[counts.any(axis=1)]
    n_leaves, n_classes = counts.shape
    if n_leaves == n_classes == np.count_nonzero(counts):
        return 1.0  # the same clustering, perhaps all in one or each alone: 0 / 0
    if min(n_leaves, n_classes) == 1:
        return 0.0
    leaf_sizes, class_sizes = counts.sum(axis=1), counts.sum(axis=0)
    expected = expected_information(leaf_sizes, class_sizes)
    most = (_entropy(leaf_sizes) + _entropy(class_sizes)) / 2
    return (_information(counts) - expected) / (most - expected)


def expected_information(leaf_sizes: Counts, class_sizes: Counts) -> float:
    """Return the mutual information expected when rows are shuffled; the sums are equal."""
    n_rows = float(leaf_sizes.sum())
    leaf, n_leaf = np.unique(leaf_sizes, return_counts=True)
    label, n_label = np.unique(class_sizes, return_counts=True)
    a, b = (sizes.ravel() for sizes in np.meshgrid(leaf, label, indexing="ij"))
    cells = _expected_cells(a.astype(np.float64), b.astype(np.float64), n_rows)
    return float(n_leaf @ cells.reshape(len(leaf), len(label)) @ n_label) / n_rows


def _expected_cells(a: Floats, b: Floats, n: float) -> Floats:
    """Return the mean of ``k log(n k / (a b))`` for each pair of sums.

    Sums that are no whole numbers have the probabilities of the same ratios, none below 0.
    """
    mode = np.floor((a + 1) * (b + 1) / (n + 2))
    least, most = np.maximum(a + b - n, 0), np.minimum(a, b)
    mode = np.clip(mode, np.ceil(least), np.floor(most))  # against rounding
    norm, total = np.ones_like(a), mode * np.log(np.maximum(mode, 1) * n / (a * b))
    for step in (1, -1):  # the terms on each side of the mode, relative to the one there
        alive, weight, k = np.arange(len(a)), np.ones_like(a), mode
        while len(alive):
            a_here, b_here = a[alive], b[alive]
            rest, mean = n - a_here - b_here, a_here * b_here / n
            norm_here, total_here = np.zeros_like(weight), np.zeros_like(weight)
            for _ in range(_STRIDE):
                if step > 0:
                    ratio = (a_here - k) * (b_here - k) / ((k + 1) * (rest + k + 1))
                else:
                    ratio = k * (rest + k) / ((a_here - k + 1) * (b_here - k + 1))
                weight, k = weight * np.maximum(ratio, 0.0), k + step
                # Past the end of its range, k may be anything: the weight is 0 from there on.
                norm_here += weight
                total_here += weight * k * np.log(np.maximum(k, 1) / mean)
            norm[alive] += norm_here
            total[alive] += total_here
            keep = weight > _NEGLIGIBLE
            alive, weight, k = alive[keep], weight[keep], k[keep]
    return total / norm


def _information(counts: Counts) -> float:
    leaf, label = np.nonzero(counts)
    cells, n_rows = counts[leaf, label].astype(np.float64), counts.sum()
    expected = counts.sum(axis=1)[leaf] / n_rows * counts.sum(axis=0)[label]
    return float(np.sum(cells * np.log(cells / expected))) / float(n_rows)


def _entropy(sizes: Counts) -> float:
    share = sizes / sizes.sum()
    return -float(np.sum(share * np.log(share)))
