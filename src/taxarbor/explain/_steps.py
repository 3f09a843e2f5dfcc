"""The path of each row through the tree, split by split, and how clear each step is.

The margin of a row at a split is its best score among the leaves below its own child, minus
the best among the leaves below the other children: this is what decides where a row goes.
Without a placement it is the rule's score of its own child minus the best of the others. It is
negative for a row that its scores would send elsewhere. Margins are in units of the split's
median, so that 1 is usual and 0 is the border, whatever the units of the data.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import printable
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy, LinearRule
from taxarbor.hierarchy._reasons import Category, blocks_of, category_of, known_mean
from taxarbor.hierarchy._words import format_number
from taxarbor.rows import Rows, as_rows

if TYPE_CHECKING:
    from taxarbor.explain._explanation import Explanation

BLOCK = 1 << 20  # scores computed at once
TOP = 3  # features named per step
BROKEN = "the rule does not hold for this row"
BITS = 17  # precision to which the parts of features are compared: rounding must not choose
FEW, TOGETHER = 256, 32
"""Up to FEW columns, sparse rows are looked at in all of them; else, TOGETHER rows at once."""


# Margins


def measure(
    tree: Hierarchy, rows: Rows, weights: Array | None = None
) -> tuple[tuple[Array | None, ...], Array]:
    """Return the margins of the rows at each split, and the medians they were divided by.

    The rows of a sample have weights: what each stands for.
    """
    margins: list[Array | None] = [None] * tree.n_nodes
    units = np.ones(tree.n_nodes)
    for node in sorted(set(tree.parents[1:].tolist())):
        found = raw_margins(tree, rows, node, tree.rows(node), children_of_rows(tree, node))
        own = None if weights is None else weights[tree.rows(node)]
        unit = median(np.abs(found), own)
        units[node] = unit if unit > 0.0 else 1.0
        margins[node] = found / units[node]
    return tuple(margins), units


def median(values: Array, weights: NDArray[Any] | None) -> float:
    """Return the median of values that count for as much as their weights.

    Whole numbers say how often a value is there. Where none counts, all do.
    """
    if weights is None or not weights.any():
        return float(np.median(values))
    if weights.dtype.kind == "i":
        return float(np.median(np.repeat(values, weights)))
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(sums, sums[-1] / 2.0)]])


def raw_margins(
    hierarchy: Hierarchy, rows: Rows, node: int, positions: IndexArray, children: IndexArray
) -> Array:
    """Return the margins of some rows at a split, in units of the scores.

    ``children`` says which of the node's children, 0, 1, ..., each of the rows is in.
    """
    rule, starts = _decider(hierarchy, node)
    margins = np.empty(len(positions))
    for some in blocks(len(positions), rule.n_children):
        scores = rows.take(positions[some], center=rule.center).scores(rule.weights)
        scores += rule.offsets.astype(scores.dtype)
        best = np.maximum.reduceat(scores, starts, axis=1).astype(np.float64)
        at = np.arange(len(best)), children[some]
        own, best[at] = best[at], -np.inf
        margins[some] = own - best.max(axis=1)
    return margins


def _decider(hierarchy: Hierarchy, node: int) -> tuple[LinearRule, IndexArray]:
    """Return what decides between a node's children, and where the scores of each begin."""
    children = hierarchy.children(node)
    rule = hierarchy.rules[node]
    assert rule is not None
    return rule, np.arange(len(children))


def find_rivals(
    hierarchy: Hierarchy, rows: Rows, node: int, positions: IndexArray, children: IndexArray
) -> tuple[IndexArray, NDArray[np.bool_]]:
    """Return the best child that each row is not in, and whether the rule holds for it."""
    rule = hierarchy.rules[node]
    assert rule is not None
    rivals = np.empty(len(positions), dtype=np.intp)
    holds = np.empty(len(positions), dtype=bool)
    for some in blocks(len(positions), rule.n_children):
        scores = rows.take(positions[some], center=rule.center).scores(rule.weights)
        scores = scores + rule.offsets
        holds[some] = scores.argmax(axis=1) == children[some]
        scores[np.arange(len(scores)), children[some]] = -np.inf
        rivals[some] = scores.argmax(axis=1)
    return rivals, holds


def least_margins(hierarchy: Hierarchy, margins: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the least margin on the path to each node, of each of its rows.

    Parents come first, so a node looks at its parent alone: a walk from each node to the root
    would take too long in a deep tree. There is nothing above the root, so infinity.
    """
    least = [np.full(hierarchy.sizes[0], np.inf)]
    for node, parent in enumerate(hierarchy.parents[1:].tolist(), start=1):
        own = slice(*([hierarchy.start[node], hierarchy.stop[node]] - hierarchy.start[parent]))
        above = margins[parent]
        assert above is not None
        least.append(np.minimum(least[parent][own], above[own]))
    return tuple(least)


def children_of_rows(hierarchy: Hierarchy, node: int) -> IndexArray:
    """Return which child each row of a node is in, in the order of ``rows(node)``."""
    sizes = hierarchy.sizes[list(hierarchy.children(node))]
    return np.repeat(np.arange(len(sizes)), sizes)


def blocks(n_rows: int, n_scores: int) -> Iterator[slice]:
    """Return slices of rows that have some millions of scores, at most, each."""
    step = max(BLOCK // n_scores, 1)
    return (slice(first, first + step) for first in range(0, n_rows, step))


# Steps


class Steps(NamedTuple):
    """A split on the paths of some rows; one value of each array per row.

    ``places`` says which of the rows asked for pass through the split. Then the ids of the node
    and of the children they are in, the margins, the share of the child's rows with a smaller
    one, whether the rule holds, and what was made of the strongest features.
    """

    places: IndexArray
    nodes: IndexArray
    children: IndexArray
    margins: Array
    surer_than: Array
    holds: NDArray[np.bool_]
    told: NDArray[np.object_]


class Source(NamedTuple):
    """Rows of a table: to be scored, as an array or CSR matrix, and what has no value there.

    ``blocks`` says which column of the table each feature is of, as :func:`blocks_of` has it.
    """

    rows: Any
    data: Any
    gaps: Any
    blocks: IndexArray

    @classmethod
    def of(cls, tree: Hierarchy, data: Any, gaps: Any) -> Self:
        """Return the rows of a tree's features; both are arrays or sparse."""
        is_sparse = sparse.issparse(gaps)
        gaps = gaps.tocsr() if is_sparse else gaps
        return cls(as_rows(data) if data.shape[0] else None, data, gaps, blocks_of(tree))

    def gaps_in(self, positions: Any, features: Any) -> NDArray[np.bool_] | None:
        """Return which rows have no value in the columns of some features; None if all do."""
        if self.gaps is None:
            return None
        places = self.blocks[features]
        found = dense_part(self.gaps, positions, np.maximum(places, 0))
        # One that says who has none is always known.
        is_gap: NDArray[np.bool_] = found & (places >= 0)
        return is_gap

    def cells(
        self,
        positions: IndexArray,
        feature: int,
        category: Category | None,
        values: Array | None = None,
    ) -> list[Any]:
        """Return the number that each row has in a feature, or the code of its category.

        None where there is no value. ``values`` are those of the feature, where they are known.
        """
        if category is not None:
            n_values = len(category.values)
            own = category.first + np.arange(1 if n_values == 2 else n_values)
            spread = dense_part(self.data, positions, own)
            values = (spread[:, 0] > 0).astype(int) if n_values == 2 else spread.argmax(axis=1)
        elif values is None:
            values = dense_part(self.data, positions, [feature])[:, 0]
        told: list[Any] = values.tolist()
        gaps = self.gaps_in(positions, [feature if category is None else category.first])
        if gaps is not None:
            told = [None if gap else one for gap, one in zip(gaps[:, 0], told, strict=True)]
        return told


class Pull(NamedTuple):
    """What one feature does to one row: its value, the children's means, and which way.

    The value of a category is its name, of which the means are shares; None if it is not known.
    ``strength`` is the part that it adds to the rule's score, divided by the sum of the sizes
    of all such parts: positive if it pulls the row to the child it is in.
    """

    feature: int
    name: str
    value: float | str | None
    mean: float | None
    other_mean: float | None
    strength: float

    def __str__(self) -> str:
        name, value = printable(self.name), self.value
        side = "" if self.strength >= 0.0 else " (against)"
        if value is None or value in ("known", "unknown"):
            return f"{name} {value or 'unknown'}{side}"
        told = printable(value) if isinstance(value, str) else format_number(value)
        return f"{name} = {told}{side}"


def find_steps(
    explanation: "Explanation",
    source: Source,
    leaves: IndexArray,
    chosen: IndexArray,
    tell: Callable[[tuple[Pull, ...]], Any],
) -> Iterator[Steps]:
    """Return the splits that the chosen rows pass through, parents first.

    ``leaves`` is the id of the leaf of each row, -1 for noise, which passes through none;
    ``tell`` says what to make of the features that pull a row most, because to keep them all
    takes much memory.
    """
    tree, rows = explanation.hierarchy, source.rows
    begins = np.append(tree.start, -1)[leaves[chosen]]
    for node in range(tree.n_nodes):
        children = np.array(tree.children(node), dtype=np.intp)
        # A leaf lies below a node if its slice begins within the node's.
        places = np.flatnonzero((begins >= tree.start[node]) & (begins < tree.stop[node]))
        if not len(children) or not len(places):
            continue
        positions = chosen[places]
        which = np.searchsorted(tree.start[children], begins[places], side="right") - 1
        margins = raw_margins(tree, rows, node, positions, which) / explanation.units[node]
        rivals, holds = find_rivals(tree, rows, node, positions, which)
        surer, told = np.empty(len(places)), np.empty(len(places), dtype=object)
        for k in np.unique(which).tolist():
            known = explanation.margins_within(node, children[k])
            order = np.argsort(known, kind="stable")
            shares = explanation.shares_within(int(children[k]), order)
            own = np.flatnonzero(which == k)
            # Margins that differ by rounding only are equal.
            surer[own] = shares[np.searchsorted(known[order], margins[own] - 1e-6)]
            # Rows between the same two children are moved by the same differences.
            for rival in np.unique(rivals[own]).tolist():
                pair = own[rivals[own] == rival]
                pulls = _pulls(tree, source, (node, k, rival), positions[pair])
                for place, pull in zip(pair.tolist(), pulls, strict=True):
                    told[place] = tell(pull)
        nodes = np.full(len(places), node)
        yield Steps(places, nodes, children[which], margins, surer, holds, told)


def _pulls(
    tree: Hierarchy, source: Source, where: tuple[int, int, int], positions: IndexArray
) -> Iterator[tuple[Pull, ...]]:
    """Return the features that pull rows most between two children, row by row.

    A feature adds ``weight * (x - (mean + other mean) / 2)`` to the difference of the scores.
    """
    node, own, rival = where
    rule, first = tree.rules[node], tree.children(node)[0]
    assert rule is not None
    assert tree.means is not None
    weights = rule.weights[own].astype(np.float64) - rule.weights[rival]
    columns = np.flatnonzero(weights)
    contrast = np.stack([weights, tree.means[first + own], tree.means[first + rival]])
    contrast = contrast[:, columns]
    n_columns, data, encoding = len(columns), source.data, tree.encoding
    is_sparse = sparse.issparse(data)
    teller = _Teller(tree, source, first + own, first + rival)
    has_words = encoding is not None and encoding.n_features > len(encoding.columns)
    if not is_sparse or n_columns <= FEW or has_words:
        for some in blocks(len(positions), max(1, n_columns)):
            yield from teller.strongest(positions[some], (columns, contrast, 0.0))
        return
    # Most values of sparse rows are zero, where a feature adds this much.
    at_zero = np.abs(contrast[0] * (contrast[1] + contrast[2]) / 2.0)
    ranked = np.argsort(-_rounded(at_zero), kind="stable")
    for begin in range(0, len(positions), TOGETHER):
        block = positions[begin : begin + TOGETHER]
        part = data[block]
        # Among the columns where a row has zero, the first few are enough: a row has values
        # of its own in at most as many of them as it has values at all.
        n_needed = TOP + int(np.diff(part.indptr).max())
        is_seen = np.isin(columns, part.indices)
        is_seen[ranked[:n_needed]] = True
        rest = float(at_zero[~is_seen].sum())
        seen = columns[is_seen], contrast[:, is_seen], rest
        yield from teller.strongest(block, seen)


class _Teller:
    """Tells what rows have in the features that pull them most between two children."""

    def __init__(self, tree: Hierarchy, source: Source, own: int, rival: int) -> None:
        self.tree, self.source = tree, source
        self.means, self.others = known_mean(tree, own), known_mean(tree, rival)

    def strongest(
        self, positions: IndexArray, seen: tuple[IndexArray, Array, float]
    ) -> Iterator[tuple[Pull, ...]]:
        """Return the features that pull most of those seen; the rest is what others add."""
        columns, (weights, means, others), rest = seen
        values = dense_part(self.source.data, positions, columns).astype(np.float64)
        parts = weights * (values - (means + others) / 2.0)
        owners = columns if self.tree.encoding is None else blocks_of(self.tree)[columns]
        first = np.flatnonzero(np.diff(owners, prepend=np.iinfo(np.intp).min))
        if len(first) < len(columns):  # the features of a category are one
            parts = np.add.reduceat(parts, first, axis=1)
        sizes = np.abs(parts)
        total = np.maximum(rest + sizes.sum(axis=1), np.finfo(float).tiny)
        tops = _largest(sizes)
        cells = {
            j: self._cells(positions, int(columns[first[j]]), values[:, first[j]])
            for j in np.unique(tops).tolist()
        }
        for i, top in enumerate(tops.tolist()):
            yield tuple(
                cells[j](i, float(parts[i, j] / total[i])) for j in top if sizes[i, j] > 0.0
            )

    def _cells(
        self, positions: IndexArray, feature: int, values: Array
    ) -> Callable[[int, float], Pull]:
        """Return what tells of a row and a strength how this feature pulls the row."""
        names, category = self.tree.feature_names, category_of(self.tree, feature)
        name = names[feature] if names else f"x{feature}"
        cells = self.source.cells(positions, feature, category, values)
        means, others = self.means, self.others
        assert means is not None
        assert others is not None
        if category is None:
            mean, other = number_or_none(means[feature]), number_or_none(others[feature])
            return lambda i, strength: Pull(feature, name, cells[i], mean, other, strength)
        both = category.spread(means), category.spread(others)

        def tell(i: int, strength: float) -> Pull:
            if (code := cells[i]) is None:
                return Pull(feature, category.name, None, None, None, strength)
            mean, other = (number_or_none(part[code]) for part in both)
            own, value = category.feature(code), category.values[code]
            return Pull(own, category.name, value, mean, other, strength)

        return tell


def number_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _largest(sizes: Array) -> IndexArray:
    """Return the positions of the largest few of each line; of equals, the first ones."""
    n_lines, n_columns = sizes.shape
    n_top = min(TOP, n_columns)
    if not n_top:
        return np.zeros((n_lines, 0), dtype=np.intp)
    least = np.partition(sizes, n_columns - n_top, axis=1)[:, n_columns - n_top, None]
    # With those that only rounding makes smaller than the least of them.
    line, column = np.nonzero(sizes >= least * (1.0 - 2.0 ** (2 - BITS)))
    order = np.lexsort((column, -_rounded(sizes[line, column]), line))
    first = np.searchsorted(line, np.arange(n_lines))[:, None]
    return column[order][first + np.arange(n_top)]


def _rounded(sizes: Array) -> Array:
    """Round to a relative precision, whatever the units."""
    mantissa, exponent = np.frexp(sizes)
    rounded: Array = np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS)
    return rounded


def dense_part(data: Any, positions: Any, features: Any) -> Any:
    """Return some columns of some rows as an array."""
    if not sparse.issparse(data):
        return data[positions][:, features]
    matrix: Any = data
    rows = np.arange(matrix.shape[0])[positions]
    # Whole rows are copied first: a few at a time.
    parts = [
        matrix[rows[some]][:, features].toarray() for some in blocks(len(rows), matrix.shape[1])
    ]
    return np.concatenate(parts) if parts else matrix[rows][:, features].toarray()
