"""The way of single rows through a tree, split by split."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._types import Array, IndexArray
from taxarbor.explain._margins import blocks, find_rivals, raw_margins
from taxarbor.hierarchy import Hierarchy, in_digits, printable

if TYPE_CHECKING:
    from taxarbor.explain._explanation import Explanation

TOP = 3
"""Features named per step."""

BITS = 17
"""To which the parts of features are compared: rounding must not choose."""

FEW, TOGETHER = 256, 32
"""Sparse rows are looked at in all columns up to so many, else so many rows together."""


class Steps(NamedTuple):
    """A split on the ways of some rows.

    Attributes
    ----------
    node : int
        The node that is split.
    places : int array
        Which of the rows asked for pass through it. The other arrays follow this order.
    children : int array
        Ids of the children that they are in.
    margins : float array
        How clearly: 1 is usual, 0 the border, negative the wrong side.
    surer_than : float array
        Share of the child's rows that have a smaller margin.
    agrees : bool array
        Whether the rule alone sends the row there, too.
    told : list
        What was made of the features that pull the row most.
    """

    node: int
    places: IndexArray
    children: IndexArray
    margins: Array
    surer_than: Array
    agrees: NDArray[np.bool_]
    told: list[Any]


class Pull(NamedTuple):
    """What one feature does to one row: its value, the children's means, and which way.

    ``strength`` is the part that it adds to the rule's score, divided by the sum of the sizes
    of all such parts: positive if it pulls the row to the child it is in.
    """

    feature: int
    name: str
    value: float
    mean: float
    other_mean: float
    strength: float

    def __str__(self) -> str:
        side = "" if self.strength >= 0.0 else " (against)"
        return f"{printable(self.name)} = {in_digits(self.value)}{side}"


Tell = Callable[[tuple[Pull, ...]], Any]


def find_steps(
    explanation: "Explanation",
    source: tuple[Any, Any],
    leaves: IndexArray,
    chosen: IndexArray,
    tell: Tell,
) -> Iterator[Steps]:
    """Return the splits that some rows pass through, parents first.

    Parameters
    ----------
    explanation : Explanation
        The tree, with the margins of its own rows.
    source : pair of Rows and of array or CSR matrix
        The same data in both forms.
    leaves : int array of shape (n_rows,)
        Id of the leaf of each row.
    chosen : int array
        The rows to follow.
    tell : callable
        What to make of the features that pull a row most at a split, to its own side or to
        the other. To keep them all would take much memory.
    """
    tree = explanation.hierarchy
    begins = tree.start[leaves[chosen]]
    for node in range(tree.n_nodes):
        children = list(tree.children(node))
        # A leaf lies below a node if its slice begins within the node's.
        inside = np.flatnonzero((begins >= tree.start[node]) & (begins < tree.stop[node]))
        if not children or not len(inside):
            continue
        which = np.searchsorted(tree.start[children], begins[inside], side="right") - 1
        yield _steps_at(explanation, source, (node, inside, which), chosen[inside], tell)


def _steps_at(
    explanation: "Explanation",
    source: tuple[Any, Any],
    where: tuple[int, IndexArray, IndexArray],
    positions: IndexArray,
    tell: Tell,
) -> Steps:
    tree, (rows, data), (node, places, which) = explanation.hierarchy, source, where
    margins = raw_margins(tree, rows, node, positions, which) / explanation.units[node]
    rivals, agrees = find_rivals(tree, rows, node, positions, which)
    children, surer = np.array(tree.children(node)), np.empty(len(positions))
    told: list[Any] = [None] * len(positions)
    for k in np.unique(which).tolist():
        known = np.sort(explanation.margins_within(node, children[k]))
        own = np.flatnonzero(which == k)
        # Margins that differ by rounding only are equal.
        surer[own] = np.searchsorted(known, margins[own] - 1e-6) / len(known)
        # Rows between the same two children are moved by the same differences.
        for rival in np.unique(rivals[own]).tolist():
            pair = own[rivals[own] == rival]
            pulls = _pulls(tree, data, (node, k, rival), positions[pair])
            for place, pull in zip(pair.tolist(), pulls, strict=True):
                told[place] = tell(pull)
    return Steps(node, places, children[which], margins, surer, agrees, told)


class _Contrast(NamedTuple):
    """What tells two children apart, in the columns where their weights differ.

    A feature adds to the difference of scores ``weights * (x - (means + others) / 2)``;
    ``at_zero`` is the size of that where the value is zero, as most values of sparse rows are.
    """

    columns: IndexArray
    weights: Array
    means: Array
    others: Array
    at_zero: Array

    @classmethod
    def between(cls, tree: Hierarchy, node: int, own: int, rival: int) -> "_Contrast":
        rule, first = tree.rules[node], tree.children(node)[0]
        assert rule is not None
        assert tree.means is not None
        weights = rule.weights[own].astype(np.float64) - rule.weights[rival]
        columns = np.flatnonzero(weights)
        means, others = (
            tree.means[first + k, columns].astype(np.float64) for k in (own, rival)
        )
        weights = weights[columns]
        return cls(columns, weights, means, others, np.abs(weights * (means + others) / 2.0))

    def take(self, some: IndexArray) -> "_Contrast":
        columns, *others = self
        return _Contrast(columns[some], *(part[some] for part in others))


def _pulls(
    tree: Hierarchy, data: Any, where: tuple[int, int, int], positions: IndexArray
) -> Iterator[tuple[Pull, ...]]:
    """Return the features that pull rows most between two children, row by row."""
    contrast = _Contrast.between(tree, *where)
    n_columns, is_sparse = len(contrast.columns), sparse.issparse(data)
    if not is_sparse or n_columns <= FEW:
        for some in blocks(len(positions), max(1, n_columns)):
            yield from _strongest(tree.feature_names, data, positions[some], contrast, 0.0)
        return
    ranked = np.argsort(-_rounded(contrast.at_zero), kind="stable")
    for first in range(0, len(positions), TOGETHER):
        block = positions[first : first + TOGETHER]
        part = data[block]
        # Of the columns in which a row has zero, a few come first; where it has none of
        # its own, at most as many more are needed as it has values.
        n_needed = TOP + int(np.diff(part.indptr).max())
        is_seen = np.zeros(n_columns, dtype=bool)
        is_seen[ranked[:n_needed]] = True
        is_seen[np.isin(contrast.columns, part.indices)] = True
        rest = float(contrast.at_zero[~is_seen].sum())
        seen = contrast.take(np.flatnonzero(is_seen))
        yield from _strongest(tree.feature_names, data, block, seen, rest)


def _strongest(
    names: tuple[str, ...] | None,
    data: Any,
    positions: IndexArray,
    contrast: _Contrast,
    rest: float,
) -> Iterator[tuple[Pull, ...]]:
    """Return the features that pull most; ``rest`` is what those left out add, together."""
    columns, weights, means, others, _ = contrast
    values = dense_part(data, positions, columns).astype(np.float64)
    parts = weights * (values - (means + others) / 2.0)
    sizes = np.abs(parts)
    total = np.maximum(rest + sizes.sum(axis=1), np.finfo(float).tiny)
    for i, top in enumerate(_largest(sizes).tolist()):
        yield tuple(
            Pull(
                feature=(column := int(columns[j])),
                name=names[column] if names else f"x{column}",
                value=float(values[i, j]),
                mean=float(means[j]),
                other_mean=float(others[j]),
                strength=float(parts[i, j] / total[i]),
            )
            for j in top
            if sizes[i, j] > 0.0
        )


def _largest(sizes: Array) -> IndexArray:
    """Return the positions of the largest few of each line; of equals, the first ones."""
    n_lines, n_columns = sizes.shape
    n_top = min(TOP, n_columns)
    if not n_top:
        return np.zeros((n_lines, 0), dtype=np.intp)
    least = np.partition(sizes, n_columns - n_top, axis=1)[:, n_columns - n_top, None]
    # What rounding makes as large as the least of them, too.
    line, column = np.nonzero(sizes >= least * (1.0 - 2.0 ** (2 - BITS)))
    order = np.lexsort((column, -_rounded(sizes[line, column]), line))
    first = np.searchsorted(line, np.arange(n_lines))[:, None]
    return column[order][first + np.arange(n_top)]


def _rounded(sizes: Array) -> Array:
    """Return what is left of numbers, whatever their units, if they have few digits."""
    mantissa, exponent = np.frexp(sizes)
    rounded: Array = np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS)
    return rounded


def dense_part(data: Any, positions: IndexArray, features: IndexArray) -> Array:
    """Return some columns of some rows as an array."""
    part: Any = data[positions][:, features]
    is_sparse = sparse.issparse(part)
    whole: Array = part.toarray() if is_sparse else part
    return whole
