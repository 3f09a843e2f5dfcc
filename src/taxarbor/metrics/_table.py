"""Leaves by classes: the table that every score is computed from, and the flat scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, counted, warn_caller
from taxarbor._frames import is_gap
from taxarbor._types import IndexArray
from taxarbor.tables._checks import check_weights
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.tree import Tree
from taxarbor.tree._edit import leaves_below

Floats = NDArray[np.float64]
Counts = NDArray[Any]  # int64, or float64 where weights are no whole numbers

NO_LABEL = "(no label)"
"""What rows without a class are called wherever classes are shown."""
MOST = 2**31
"""Rows that weights may stand for: squares must fit in 64 bits."""


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
            f"there must be one class for each of the {n_rows} rows of the tree, an array "
            f"of shape ({n_rows},); got shape {values.shape}"
        )
    codes, classes = _encode(values)
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


def _encode(y: Any) -> tuple[IndexArray, tuple[Any, ...]]:
    if not isinstance(y, np.ndarray):
        import pandas as pd

        codes, classes = pd.factorize(y)  # -1 where there is none
        return codes.astype(np.intp), tuple(classes.tolist())
    if y.dtype.kind in "fcmMbiu":
        codes, is_known = np.full(len(y), -1, dtype=np.intp), ~np.isnan(y)
        classes, codes[is_known] = np.unique(y[is_known], return_inverse=True)
        return codes, tuple(classes.tolist())
    labels = y.tolist()
    try:  # looked up one by one: several times as fast as sorting strings
        number = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    except TypeError as error:
        raise InputError(
            f"there must be one class per row, such as a number or a name: {error}"
        ) from error
    codes = np.fromiter(map(number.__getitem__, labels), dtype=np.intp, count=len(labels))
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

    tree: Tree
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
        tree = self.tree
        running = np.zeros((tree.n_leaves + 1, len(self.classes)), dtype=self.counts.dtype)
        np.cumsum(self.counts, axis=0, out=running[1:])
        first, last = leaves_below(tree)
        return running[last] - running[first]


def tabulate(
    taxonomy: Taxonomy, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> LeafTable:
    """Count the rows by leaf and class; warn of rows that are left out for want of a class."""
    tree = taxonomy_of(taxonomy).tree
    n_rows, order = tree.n_rows, tree.rows(tree.root)
    codes, classes = encode_labels(y, n_rows)
    mine = codes[order]
    given = check_weights(sample_weight, n_rows)
    weights = None if given is None else given[order]
    shape = tree.n_leaves, len(classes) + 1  # first those without a class
    # Leaves own consecutive rows of `order`, so only the classes have to be looked up.
    offsets = np.arange(shape[0]) * shape[1] + 1
    cells = np.repeat(offsets, tree.sizes[tree.leaves]) + mine
    counts = np.bincount(cells, weights, minlength=shape[0] * shape[1]).reshape(shape)[:, 1:]
    total = counts.sum()
    if not 2 <= total <= MOST:
        message = f"at least two are needed, got {total:g}"
        if total > MOST:
            message = f"weights stand for {MOST:,} at most, got {total:.1e}; divide them"
        raise InputError(f"scores compare pairs of rows with a label: {message}")
    if weights is None or np.array_equal(counts, np.floor(counts)):
        counts = counts.astype(np.int64)
    is_left_out = mine < 0 if weights is None else (mine < 0) & (weights > 0.0)
    if n_left_out := int(is_left_out.sum()):
        many = "are" if n_left_out > 1 else "is"
        message = f"{counted(n_left_out, 'row')} without a label {many} left out of the scores"
        warn_caller(message, UserWarning)
    present = np.flatnonzero(counts.any(axis=0))
    return LeafTable(tree, counts[:, present], tuple(classes[code] for code in present))


def pairs(counts: Any) -> Any:
    """Return the number of unordered pairs among each number of rows."""
    twice = counts * (counts - 1)
    return twice // 2 if twice.dtype.kind == "i" else twice / 2


# Flat scores


def rand(table: LeafTable) -> float:
    """Return the Rand index, the share of pairs of rows on which leaves and classes agree."""
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


def adjusted_mutual_info(table: LeafTable) -> float:
    """Return the mutual information, corrected for chance; NaN of counts with fractions."""
    from sklearn.metrics import mutual_info_score
    from sklearn.metrics.cluster import expected_mutual_information

    counts = table.counts[table.counts.any(axis=1)]
    if counts.dtype.kind == "f":
        return nan  # the expectation is over permutations of whole rows
    n_leaves, n_classes = counts.shape
    if n_leaves == n_classes == np.count_nonzero(counts):
        return 1.0  # the same clustering, perhaps all in one or each alone: 0 / 0
    if min(n_leaves, n_classes) == 1:
        return 0.0
    expected = expected_mutual_information(counts, int(counts.sum()))
    most = (_entropy(counts.sum(axis=1)) + _entropy(counts.sum(axis=0))) / 2
    information = mutual_info_score(None, None, contingency=counts)
    return float((information - expected) / (most - expected))


def _entropy(sizes: Counts) -> float:
    share = sizes / sizes.sum()
    return -float(np.sum(share * np.log(share)))
