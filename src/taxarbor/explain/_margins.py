"""How clearly rows are where they are: margins at rules, and what features contribute to them.

A rule chooses among the nodes of its frontier. The margin of a row is the best score of the
node that it is in minus the best score of the others. It is negative where the rule would send
the row elsewhere, which can happen where something else than the rules placed the rows. Margins
are divided by the median of the rule's absolute margins: 1 is typical and 0 is the border,
whatever the units of the data.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import printable
from taxarbor._number_text import format_number
from taxarbor._types import Array, IndexArray
from taxarbor.explain._feature_table import FeatureTable, blocks, weighted_quantiles
from taxarbor.rows import Rows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._reasons import category_of, known_mean
from taxarbor.tree import LinearRule, Tree
from taxarbor.tree._rule import dividing_feature, threshold_of

if TYPE_CHECKING:
    from taxarbor.explain._explanation import Explanation

N_CONTRIBUTIONS = 3
"""Features named per step."""
PRECISION_BITS = 17
"""To which contributions are compared: rounding must not decide which are named."""


# Margins


def measure_margins(
    tree: Tree, rows: Rows, weights: Array
) -> tuple[tuple[Array | None, ...], Array]:
    """Return the margins of the rows at each rule, and the medians they were divided by."""
    margins: list[Array | None] = [None] * tree.n_nodes
    units = np.ones(tree.n_nodes)
    for node, rule in enumerate(tree.rules):
        if rule is None:
            continue
        sizes, positions = tree.sizes[list(tree.frontier(node))], tree.rows(node)
        targets = np.repeat(np.arange(len(sizes)), sizes)
        scores, _, _ = score_margins(rule, rows, positions, targets)
        units[node] = weighted_quantiles(np.abs(scores), weights[positions], 0.5) or 1.0
        margins[node] = scores / units[node]
    return tuple(margins), units


def score_margins(
    rule: LinearRule, rows: Rows, positions: IndexArray, targets: IndexArray
) -> tuple[Array, IndexArray, IndexArray]:
    """Return the margins of rows in units of the scores, and the two scores they are between.

    ``targets`` is the target of the rule that each row is in. The first score is the best that
    leads there, the second the best of those that lead elsewhere.
    """
    margins, (inside, outside) = np.empty(len(targets)), np.empty((2, len(targets)), np.intp)
    for part in blocks(len(positions), rule.n_scores):
        scores = rows.take(positions[part], center=rule.center).scores(rule.weights)
        scores = (scores + rule.offsets.astype(scores.dtype)).astype(np.float64)
        is_inside = rule.targets == targets[part, None]
        here, there = np.where(is_inside, scores, -np.inf), np.where(is_inside, -np.inf, scores)
        inside[part], outside[part] = here.argmax(axis=1), there.argmax(axis=1)
        margins[part] = here.max(axis=1) - there.max(axis=1)
    return margins, inside, outside


def least_margins(tree: Tree, margins: Sequence[Array | None]) -> tuple[Array, ...]:
    """Return the least margin on the path to each node, of each of its rows.

    Parents come first, so a node looks at its parent alone: a walk from each node to the root
    would take too long in a deep tree. There is nothing above the root, so infinity.
    """
    least: list[Array] = [np.full(tree.sizes[0], np.inf)]
    for node, parent in enumerate(tree.parents[1:].tolist(), start=1):
        part = slice(*([tree.start[node], tree.stop[node]] - tree.start[parent]))
        above, inherited = margins[parent], least[parent][part]
        # A split without a rule is decided above, where its rows have their margins.
        least.append(inherited if above is None else np.minimum(inherited, above[part]))
    return tuple(least)


# Steps


class Steps(NamedTuple):
    """The rules on the paths of rows, row by row from the root down: one column per value.

    ``place`` is that of the row among the chosen ones, ``node`` that of the rule, ``child`` the
    node of its frontier that the row is in, ``percentile`` the share of the child's rows with
    a smaller margin, ``reasons`` the strongest contributions, as they were rendered.
    """

    place: IndexArray
    node: IndexArray
    child: IndexArray
    margin: Array
    percentile: Array
    reasons: NDArray[np.object_]


class Contribution(NamedTuple):
    """What a feature adds to the margin of a row.

    The value of a category is its name, and its means are shares; None if it is missing. The
    means are of the node that the row is in and of its strongest rival. ``strength`` is the
    part that the feature adds to the difference of their scores, divided by the sum of the
    absolute parts of all features: positive if it speaks for the node the row is in.
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
    table: FeatureTable,
    labels: IndexArray,
    chosen: IndexArray,
    render: Callable[[tuple[Contribution, ...]], object],
) -> Steps:
    """Return the rules that the chosen rows pass through, row by row from the root down.

    ``labels`` are the clusters of all rows, -1 for noise, which passes through no rule.
    ``render`` converts the contributions of a step, as to keep them all takes much memory.
    """
    tree, rows = explanation.taxonomy.tree, table.rows
    begins = np.append(tree.start[tree.leaves], -1)[labels[chosen]]
    columns: list[Steps] = []
    for node, rule in enumerate(tree.rules):
        # A leaf lies below a node if its slice begins within the node's.
        places = np.flatnonzero((begins >= tree.start[node]) & (begins < tree.stop[node]))
        if rule is None or rows is None or not len(places):
            continue
        positions, frontier = chosen[places], np.array(tree.frontier(node))
        targets = np.searchsorted(tree.start[frontier], begins[places], side="right") - 1
        margins, inside, outside = score_margins(rule, rows, positions, targets)
        margins /= explanation.units[node]
        percentiles, reasons = np.empty(len(places)), np.empty(len(places), dtype=object)
        for target in np.unique(targets).tolist():
            part = targets == target
            percentiles[part] = _rank(explanation, node, frontier[target], margins[part])
        # Rows between the same two scores have the same differences of weights.
        pairs = inside * rule.n_scores + outside
        order = np.argsort(pairs, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1):
            between = node, int(inside[part[0]]), int(outside[part[0]])
            parts = feature_contributions(explanation.taxonomy, table, between, positions[part])
            reasons[part] = list(map(render, parts))
        nodes = np.full(len(places), node)
        columns.append(Steps(places, nodes, frontier[targets], margins, percentiles, reasons))
    if not columns:
        none = np.zeros(0, dtype=np.intp)
        return Steps(none, none, none, np.zeros(0), np.zeros(0), np.zeros(0, dtype=object))
    steps = Steps(*map(np.concatenate, zip(*columns, strict=True)))
    # Parents come first, and a stable sort keeps it so.
    order = np.argsort(steps.place, kind="stable")
    return Steps._make(column[order] for column in steps)


def _rank(explanation: "Explanation", node: int, child: int, margins: Array) -> Array:
    """Return the share of a child's rows with a smaller margin at a node's rule, of each."""
    known = explanation.margins_within(node, child)
    order = np.argsort(known, kind="stable")
    weights = explanation.weights[explanation.taxonomy.tree.rows(child)[order]]
    shares: Array = np.append(0.0, np.cumsum(weights)) / weights.sum()
    # Margins that differ by rounding only are equal.
    return shares[np.searchsorted(known[order], margins - 1e-6)]


def feature_contributions(
    taxonomy: Taxonomy,
    table: FeatureTable,
    between: tuple[int, int, int],
    positions: IndexArray,
) -> Iterator[tuple[Contribution, ...]]:
    """Return the strongest contributions to the margins of rows, row by row.

    ``between`` is the node of a rule and two of its scores, to whose difference a feature adds
    ``weight * (x - (mean + other mean) / 2)``.
    """
    node, *scores = between
    rule, frontier = taxonomy.tree.rules[node], taxonomy.tree.frontier(node)
    assert rule is not None
    assert taxonomy.means is not None
    pair = [frontier[target] for target in rule.targets[scores].tolist()]
    means = [mean for below in pair if (mean := known_mean(taxonomy, below)) is not None]
    weights = rule.weights[scores[0]].astype(np.float64) - rule.weights[scores[1]]
    features = np.flatnonzero(weights)
    middle = taxonomy.means[pair][:, features].astype(np.float64).mean(axis=0)
    if (alone := dividing_feature(rule)) is not None:  # it decides, at its threshold
        middle[features == alone] = threshold_of(rule, alone)
    first = np.flatnonzero(np.diff(table.column_of[features], prepend=-1))
    for block in blocks(len(positions), len(features)):
        values = table.values(positions[block], features).astype(np.float64)
        parts = weights[features] * (values - middle)
        if len(first) < len(features):  # the features of a category are one
            parts = np.add.reduceat(parts, first, axis=1)
        sizes = np.abs(parts)
        total = np.maximum(sizes.sum(axis=1), np.finfo(float).tiny)
        strongest = find_largest(sizes)
        lookup = {
            column: _describe_feature(
                taxonomy, table, means, positions[block], int(features[first[column]])
            )
            for column in np.unique(strongest).tolist()
        }
        for i, columns in enumerate(strongest.tolist()):
            yield tuple(
                Contribution._make((*lookup[column](i), float(parts[i, column] / total[i])))
                for column in columns
                if sizes[i, column] > 0.0
            )


def _describe_feature(
    taxonomy: Taxonomy,
    table: FeatureTable,
    means: list[Array],
    positions: IndexArray,
    feature: int,
) -> Callable[[int], tuple[Any, ...]]:
    """Return a function of a row that returns its :class:`Contribution` but the strength."""
    names, category = taxonomy.feature_names, category_of(taxonomy, feature)
    cells = table.cells(positions, feature, category)
    if category is None:
        name = names[feature] if names else f"x{feature}"
        both = [number_or_none(mean[feature]) for mean in means]
        return lambda i: (feature, name, cells[i], *both)
    shares = [category.spread(mean).tolist() for mean in means]
    by_code: dict[float | None, tuple[Any, ...]] = {
        code: (category.feature(code), category.name, value, *map(number_or_none, both))
        for code, (value, *both) in enumerate(zip(category.values, *shares, strict=True))
    }
    by_code[None] = feature, category.name, None, None, None
    return lambda i: by_code[cells[i]]


def number_or_none(value: float) -> float | None:
    """Return a number that JSON can hold."""
    return float(value) if np.isfinite(value) else None


def find_largest(sizes: Array) -> IndexArray:
    """Return the positions of the largest few of each line; of equals, the first ones."""
    n_columns = sizes.shape[1]
    if not (n_top := min(N_CONTRIBUTIONS, n_columns)):
        return np.zeros(sizes.shape, dtype=np.intp)
    largest = np.maximum(sizes.max(axis=1, keepdims=True), np.finfo(float).tiny)
    keys = np.rint(sizes / largest * 2.0**PRECISION_BITS).astype(np.int64) * n_columns
    keys = np.arange(n_columns) - keys
    top = np.argpartition(keys, n_top - 1, axis=1)[:, :n_top]
    order = np.take_along_axis(keys, top, axis=1).argsort(axis=1)
    return np.take_along_axis(top, order, axis=1)
