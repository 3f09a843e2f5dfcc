"""The path of each row through the tree, rule by rule, and how clear each step is.

A rule chooses among the nodes of its frontier. The margin of a row is the best score of the
node that it is in minus the best score of the others. It is negative for a row that the rule
sends elsewhere, as can happen where something else than the rules placed the rows. Margins are
in units of the rule's median, so that 1 is usual and 0 is the border, whatever the units of the
data.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._errors import printable
from taxarbor._format import format_number
from taxarbor._types import Array, IndexArray
from taxarbor.rows import Rows, as_rows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._reasons import Category, category_of, columns_of, known_mean
from taxarbor.tree import LinearRule

if TYPE_CHECKING:
    from taxarbor.explain._explanation import Explanation

BLOCK = 1 << 20  # numbers held at once
TOP = 3  # features named per step
BITS = 17  # precision to which the parts of features are compared: rounding must not choose


# Margins


def measure(
    taxonomy: Taxonomy, rows: Rows, weights: Array | None = None
) -> tuple[tuple[Array | None, ...], Array]:
    """Return the margins of the rows at each rule, and the medians they were divided by.

    The rows of a sample have weights: what each stands for.
    """
    margins: list[Array | None] = [None] * taxonomy.tree.n_nodes
    units = np.ones(taxonomy.tree.n_nodes)
    for node, rule in enumerate(taxonomy.tree.rules):
        if rule is None:
            continue
        sizes = taxonomy.tree.sizes[list(taxonomy.tree.frontier(node))]
        targets = np.repeat(np.arange(len(sizes)), sizes)
        found, _, _ = score_margins(rule, rows, taxonomy.tree.rows(node), targets)
        own = None if weights is None else weights[taxonomy.tree.rows(node)]
        unit = median(np.abs(found), own)
        units[node] = unit if unit > 0.0 else 1.0
        margins[node] = found / units[node]
    return tuple(margins), units


def median(values: Array, weights: Array | None) -> float:
    """Return the weighted median; where all weights are zero, that of all values.

    Where half of the weight lies on either side, the mean of both, as of repeated values.
    """
    if weights is None or not weights.any():
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0.0]
    sums = np.cumsum(weights[order])
    low = int(np.searchsorted(sums, sums[-1] / 2.0))
    high = min(low + bool(sums[low] == sums[-1] / 2.0), len(order) - 1)
    return float(values[order[[low, high]]].mean())


def score_margins(
    rule: LinearRule, rows: Rows, positions: IndexArray, targets: IndexArray
) -> tuple[Array, IndexArray, IndexArray]:
    """Return the margins of some rows, in units of the scores, and between which scores.

    ``targets`` says which of the rule's targets each of the rows is in. Its own score is the
    best that leads there, its rival the best of those that lead elsewhere.
    """
    margins, (own, rivals) = np.empty(len(positions)), np.empty((2, len(positions)), np.intp)
    for some in blocks(len(positions), rule.n_scores):
        scores = rows.take(positions[some], center=rule.center).scores(rule.weights)
        scores = (scores + rule.offsets.astype(scores.dtype)).astype(np.float64)
        is_own = rule.targets == targets[some, None]
        here, elsewhere = np.where(is_own, scores, -np.inf), np.where(is_own, -np.inf, scores)
        own[some], rivals[some] = here.argmax(axis=1), elsewhere.argmax(axis=1)
        margins[some] = here.max(axis=1) - elsewhere.max(axis=1)
    return margins, own, rivals


def least_margins(taxonomy: Taxonomy, margins: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the least margin on the path to each node, of each of its rows.

    Parents come first, so a node looks at its parent alone: a walk from each node to the root
    would take too long in a deep tree. There is nothing above the root, so infinity.
    """
    least = [np.full(taxonomy.tree.sizes[0], np.inf)]
    for node, parent in enumerate(taxonomy.tree.parents[1:].tolist(), start=1):
        own = slice(
            *(
                [taxonomy.tree.start[node], taxonomy.tree.stop[node]]
                - taxonomy.tree.start[parent]
            )
        )
        above, inherited = margins[parent], least[parent][own]
        # A split without a rule is decided above, where its rows have their margins.
        least.append(inherited if above is None else np.minimum(inherited, above[own]))
    return tuple(least)


def blocks(n_rows: int, width: float) -> Iterator[slice]:
    """Return slices of rows, of about a million numbers each, given those of a row."""
    step = max(int(BLOCK / max(width, 1.0)), 1)
    return (slice(first, first + step) for first in range(0, n_rows, step))


def row_width(data: Any) -> float:
    """Return how many numbers a row has: of a sparse matrix, those that are stored."""
    n_values = data.nnz if sparse.issparse(data) else data.size  # type: ignore[attr-defined]
    return float(n_values / max(data.shape[0], 1))


# Steps


class Steps(NamedTuple):
    """The rules on the paths of some rows: a value in each array per row and rule.

    ``places`` says which of the rows asked for. Then the ids of the rule's node and of the node
    of its frontier that the row is in, the margin, the share of that node's rows with a smaller
    one, and what was made of the strongest features.
    """

    places: IndexArray
    nodes: IndexArray
    children: IndexArray
    margins: Array
    surer_than: Array
    reasons: NDArray[np.object_]


class Source(NamedTuple):
    """Rows of a table: to be scored, as an array or CSR matrix, and what has no value there.

    ``columns`` says which column of the table each feature is of.
    """

    rows: Any
    data: Any
    gaps: Any
    columns: IndexArray

    @classmethod
    def of(cls, taxonomy: Taxonomy, data: Any, gaps: Any) -> Self:
        """Return the rows of a tree's features; both are arrays or sparse."""
        is_sparse = sparse.issparse(gaps)
        gaps = gaps.tocsr() if is_sparse else gaps
        return cls(as_rows(data) if data.shape[0] else None, data, gaps, columns_of(taxonomy))

    def gaps_in(self, positions: Any, features: Any) -> NDArray[np.bool_] | None:
        """Return which rows have no value in the columns of some features; None if all do."""
        if self.gaps is None:
            return None
        is_gap: NDArray[np.bool_] = dense_part(self.gaps, positions, self.columns[features])
        return is_gap

    def cells(
        self, positions: IndexArray, feature: int, category: Category | None
    ) -> list[Any]:
        """Return the number that each row has in a feature, or the code of its category.

        None where there is no value.
        """
        if category is not None:
            n_values = len(category.values)
            own = category.first + np.arange(1 if n_values == 2 else n_values)
            spread = dense_part(self.data, positions, own)
            values = (spread[:, 0] > 0).astype(int) if n_values == 2 else spread.argmax(axis=1)
        else:
            values = dense_part(self.data, positions, [feature])[:, 0]
        cells: list[Any] = values.tolist()
        gaps = self.gaps_in(positions, [feature if category is None else category.first])
        if gaps is not None:
            cells = [None if gap else one for gap, one in zip(gaps[:, 0], cells, strict=True)]
        return cells


class Pull(NamedTuple):
    """What one feature does to one row: its value, the means of both nodes, and which way.

    The value of a category is its name, of which the means are shares; None if it is not known.
    ``strength`` is the part that it adds to the rule's score, divided by the sum of the sizes
    of all such parts: positive if it pulls the row to the node it is in.
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
        if value is None:
            return f"{name} unknown{side}"
        text = printable(value) if isinstance(value, str) else format_number(value)
        return f"{name} = {text}{side}"


def find_steps(
    explanation: "Explanation",
    source: Source,
    leaves: IndexArray,
    chosen: IndexArray,
    render: Callable[[tuple[Pull, ...]], Any],
) -> Steps:
    """Return the rules that the chosen rows pass through, row by row from the root down.

    ``leaves`` is the id of the leaf of each row, -1 for noise, which passes through none;
    ``render`` converts the features that pull a row most, because to keep them all takes much
    memory.
    """
    taxonomy, rows = explanation.taxonomy, source.rows
    begins = np.append(taxonomy.tree.start, -1)[leaves[chosen]]
    found: list[Any] = [[np.zeros(0, dtype) for dtype in (int, int, int, float, float, object)]]
    for node, rule in enumerate(taxonomy.tree.rules):
        # A leaf lies below a node if its slice begins within the node's.
        places = np.flatnonzero(
            (begins >= taxonomy.tree.start[node]) & (begins < taxonomy.tree.stop[node])
        )
        if rule is None or not len(places):
            continue
        positions, frontier = chosen[places], np.array(taxonomy.tree.frontier(node))
        which = np.searchsorted(taxonomy.tree.start[frontier], begins[places], side="right") - 1
        margins, best, rivals = score_margins(rule, rows, positions, which)
        margins /= explanation.units[node]
        surer, reasons = np.empty(len(places)), np.empty(len(places), dtype=object)
        for k in np.unique(which).tolist():
            known = explanation.margins_within(node, frontier[k])
            order = np.argsort(known, kind="stable")
            each: Array = np.ones(len(order))
            if explanation.weights is not None:
                each = explanation.weights[taxonomy.tree.rows(frontier[k])[order]]
            shares = np.append(0.0, np.cumsum(each)) / each.sum()
            own = np.flatnonzero(which == k)
            # Margins that differ by rounding only are equal.
            surer[own] = shares[np.searchsorted(known[order], margins[own] - 1e-6)]
        # Rows between the same two scores are moved by the same differences.
        codes = best * rule.n_scores + rivals
        order = np.argsort(codes, kind="stable")
        for pair in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            scores = int(best[pair[0]]), int(rivals[pair[0]])
            pulls = _pulls(taxonomy, source, (node, *scores), positions[pair])
            for place, pull in zip(pair.tolist(), pulls, strict=True):
                reasons[place] = render(pull)
        nodes = np.full(len(places), node)
        found.append((places, nodes, frontier[which], margins, surer, reasons))
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    # Parents come first, and a stable sort keeps it so.
    order = np.argsort(joined[0], kind="stable")
    return Steps(*(part[order] for part in joined))


def _pulls(
    taxonomy: Taxonomy, source: Source, where: tuple[int, int, int], positions: IndexArray
) -> Iterator[tuple[Pull, ...]]:
    """Return the features that pull rows most between two scores of a rule, row by row.

    A feature adds ``weight * (x - (mean + other mean) / 2)`` to the difference of the scores.
    """
    node, own, rival = where
    rule, frontier = taxonomy.tree.rules[node], taxonomy.tree.frontier(node)
    assert rule is not None
    assert taxonomy.means is not None
    here, there = (frontier[target] for target in rule.targets[[own, rival]].tolist())
    weights = rule.weights[own].astype(np.float64) - rule.weights[rival]
    columns = np.flatnonzero(weights)
    means = taxonomy.means[[here, there]][:, columns]
    middle = means.astype(np.float64).mean(axis=0)
    begins = np.flatnonzero(np.diff(columns_of(taxonomy)[columns], prepend=-1))
    known = known_mean(taxonomy, here), known_mean(taxonomy, there)
    for some in blocks(len(positions), len(columns)):
        values = dense_part(source.data, positions[some], columns).astype(np.float64)
        parts = weights[columns] * (values - middle)
        if len(begins) < len(columns):  # the features of a category are one
            parts = np.add.reduceat(parts, begins, axis=1)
        sizes = np.abs(parts)
        total = np.maximum(sizes.sum(axis=1), np.finfo(float).tiny)
        tops = _largest(sizes)
        lookup = {
            j: _cells_of(taxonomy, source, positions[some], int(columns[begins[j]]), known)
            for j in np.unique(tops).tolist()
        }
        for i, top in enumerate(tops.tolist()):
            yield tuple(
                Pull(*lookup[j](i), float(parts[i, j] / total[i]))
                for j in top
                if sizes[i, j] > 0.0
            )


def _cells_of(
    taxonomy: Taxonomy,
    source: Source,
    positions: IndexArray,
    feature: int,
    known: tuple[Array | None, Array | None],
) -> Callable[[int], tuple[int, str, float | str | None, float | None, float | None]]:
    """Return a function of a row that returns all of its :class:`Pull` but the strength."""
    names, category = taxonomy.feature_names, category_of(taxonomy, feature)
    cells = source.cells(positions, feature, category)
    means, others = known
    assert means is not None
    assert others is not None
    if category is None:
        name = names[feature] if names else f"x{feature}"
        mean, other = number_or_none(means[feature]), number_or_none(others[feature])
        return lambda i: (feature, name, cells[i], mean, other)
    shares = (map(number_or_none, category.spread(part).tolist()) for part in (means, others))
    by_code: dict[int | None, Any] = {
        code: (category.feature(code), category.name, category.values[code], *both)
        for code, both in enumerate(zip(*shares, strict=True))
    }
    by_code[None] = feature, category.name, None, None, None
    return lambda i: by_code[cells[i]]


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
    parts = [matrix[rows[some]][:, features] for some in blocks(len(rows), row_width(data))]
    return np.concatenate([part.toarray() for part in parts or [matrix[rows][:, features]]])
