"""The rows that are explained: their cells, and how clearly they are where they are.

A rule chooses among the nodes of its frontier. The margin of a row is the best score of the
node that it is in minus the best score of the others. It is negative where the rule would send
the row elsewhere, which can happen where something else than the rules placed the rows. Margins
are divided by the median of the rule's absolute margins: 1 is typical and 0 is the border,
whatever the units of the data.

A feature adds ``weight * (x - middle)`` to the margin, where the weight is the difference of
its weights in the two scores, and the middle that of the means of the two nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError, InputTypeError, printable
from taxarbor._number_text import format_number
from taxarbor._types import Array, IndexArray, Matrix
from taxarbor.rows import CELLS_PER_BLOCK, Rows, as_rows
from taxarbor.tables.columns import FeatureRows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._reasons import category_of
from taxarbor.tree import LinearRule, Tree
from taxarbor.tree.rule import dividing_feature, threshold_of

Places: TypeAlias = IndexArray | slice | list[int]  # positions of rows, or numbers of features

UNKNOWN = "unknown"  # stands for missing values
N_CONTRIBUTIONS = 3  # features named per step
PRECISION = 2.0**17  # to which contributions are compared: rounding must not decide


# Cells


@final
@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Rows as features of a taxonomy, and the missing cells of the table they come from."""

    data: Matrix
    rows: Rows | None  # which score the data, if there are any
    missing: "Matrix | None"  # a mask of the same rows, with the columns of the user's table
    column_of: IndexArray  # of each feature

    @classmethod
    def of(cls, taxonomy: Taxonomy, rows: FeatureRows) -> Self:
        """Return expanded rows of a taxonomy."""
        data, gaps, _ = rows
        gaps = gaps if gaps is None or isinstance(gaps, np.ndarray) else gaps.tocsr()
        scored = as_rows(taxonomy.columns.take_logs(data)) if data.shape[0] else None
        return cls(data, scored, gaps, taxonomy.columns.owner)

    def values(self, positions: Places, features: Places) -> Array:
        """Return some features of some rows as an array."""
        return _dense_part(self.data, positions, features)

    def is_missing(self, positions: Places, features: Places) -> NDArray[np.bool_] | None:
        """Return which rows have no value in some features; None where all values are known."""
        if self.missing is None:
            return None
        part = _dense_part(self.missing, positions, self.column_of[features])
        return part.astype(bool, copy=False)

    def format_cells(
        self, taxonomy: Taxonomy, positions: IndexArray, feature: int
    ) -> list[str]:
        """Return a feature of some rows, or the column of its category, as text."""
        category = category_of(taxonomy, feature)
        if category is None:
            values = self.values(positions, [feature])[:, 0].tolist()
            if taxonomy.columns.is_boolean[feature]:
                texts = ["yes" if value else "no" for value in values]
            else:
                texts = [format_number(value) for value in values]
        else:
            n_features = len(category.values) if len(category.values) > 2 else 1
            cells = self.values(positions, category.first + np.arange(n_features))
            codes = cells.argmax(axis=1) if n_features > 1 else cells[:, 0] > 0.0
            texts = [category.values[int(code)] for code in codes.tolist()]
        missing = self.is_missing(positions, [feature])
        if missing is None:
            return texts
        pairs = zip(missing[:, 0], texts, strict=True)
        return [UNKNOWN if is_missing else text for is_missing, text in pairs]


def _dense_part(matrix: Any, positions: Places, columns: Places) -> Array:
    rows = np.arange(matrix.shape[0])[positions]
    if isinstance(matrix, np.ndarray):
        return np.asarray(matrix[rows[:, None], columns])  # no other columns are copied
    # Whole rows are copied first: a block at a time.
    parts = [matrix[rows[some]][:, columns] for some in blocks(len(rows), row_width(matrix))]
    parts = parts or [matrix[rows][:, columns]]
    return np.concatenate([part.toarray() for part in parts])


def row_width(matrix: Matrix) -> float:
    """Return how many numbers a row holds on average: of a sparse matrix, those stored."""
    n_values = matrix.size if isinstance(matrix, np.ndarray) else matrix.nnz
    return float(n_values / max(matrix.shape[0], 1))


def blocks(n_rows: int, width: float) -> Iterator[slice]:
    """Return slices of rows of about a million numbers each, given the numbers of a row."""
    step = max(int(CELLS_PER_BLOCK / max(width, 1.0)), 1)
    return (slice(first, first + step) for first in range(0, n_rows, step))


def name_rows(given: Sequence[str] | None, X: object, n_rows: int) -> tuple[str, ...] | None:
    """Return the names that were given, or else the index of a pandas frame if it has names."""
    if isinstance(given, str):
        raise InputTypeError(f"must be a list of names, got the text {given!r}", "row_names")
    if given is None:
        index: Any = getattr(X, "index", None)
        if getattr(getattr(index, "dtype", None), "kind", "i") not in "OUT":  # just numbers
            return None
        given = index
    if len(given) != n_rows:
        raise InputError(f"got {len(given)} row names for {n_rows} rows")
    return tuple(str(name) for name in given)


# Margins


class Margins(NamedTuple):
    """The margins of a tree's rows at each rule, in the order of ``tree.rows(node)``."""

    values: tuple[Array | None, ...]  # None for nodes without a rule
    units: Array  # the medians that they were divided by
    least: tuple[Array, ...]  # on the paths to each node; infinity for the root

    def within(self, tree: Tree, decider: int, node: int) -> Array:
        """Return the margins of a node's rows at the rule of a node above."""
        margins = self.values[decider]
        assert margins is not None
        return margins[tree.start[node] - tree.start[decider] :][: tree.sizes[node]]


def measure_margins(tree: Tree, rows: Rows) -> Margins:
    """Return the margins of all rows at each rule on their paths."""
    margins: list[Array | None] = [None] * tree.n_nodes
    units, so_far = np.ones(tree.n_nodes), np.full(tree.sizes[0], np.inf)
    least: list[Array] = []
    for node, rule in enumerate(tree.rules):  # parents come first
        part = slice(tree.start[node], tree.stop[node])
        least.append(so_far[part].copy())
        if rule is not None:
            sizes = tree.sizes[list(tree.frontier(node))]
            targets = np.repeat(np.arange(len(sizes)), sizes)
            scores, _, _ = score_margins(rule, rows, tree.rows(node), targets)
            units[node] = np.median(np.abs(scores)) or 1.0
            margins[node] = scores = scores / units[node]
            so_far[part] = np.minimum(so_far[part], scores)
    return Margins(tuple(margins), units, tuple(least))


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


# Steps


class Steps(NamedTuple):
    """The rules on the paths of rows, row by row from the root down: one column per value."""

    place: IndexArray  # of the row among the chosen ones
    node: IndexArray  # whose rule it is
    child: IndexArray  # the node of its frontier that the row is in
    margin: Array
    percentile: Array  # the share of the child's rows with a smaller margin
    why: NDArray[np.object_]  # the strongest contributions in words


def find_steps(
    taxonomy: Taxonomy,
    known: Margins,
    table: FeatureTable,
    labels: IndexArray,
    chosen: IndexArray,
) -> Steps:
    """Return the rules that the chosen rows of a table pass through.

    ``known`` are the margins of the taxonomy's own rows, ``labels`` the clusters of the table's
    rows, -1 for noise, which passes through no rule.
    """
    tree, none = taxonomy.tree, np.zeros(0, dtype=np.intp)
    begins = np.append(tree.start[tree.leaves], -1)[labels[chosen]]
    columns = [Steps(none, none, none, np.zeros(0), np.zeros(0), np.zeros(0, dtype=object))]
    for node, rule in enumerate(tree.rules):
        # A leaf lies below a node if its slice begins within the node's.
        places = np.flatnonzero((begins >= tree.start[node]) & (begins < tree.stop[node]))
        if rule is None or table.rows is None or not len(places):
            continue
        positions, frontier = chosen[places], np.array(tree.frontier(node))
        targets = np.searchsorted(tree.start[frontier], begins[places], side="right") - 1
        margins, inside, outside = score_margins(rule, table.rows, positions, targets)
        margins /= known.units[node]
        percentiles, why = np.empty(len(places)), np.empty(len(places), dtype=object)
        for target in np.unique(targets).tolist():
            part, others = targets == target, known.within(tree, node, frontier[target])
            # Margins that differ by rounding only are equal.
            n_lower = np.searchsorted(np.sort(others), margins[part] - 1e-6)
            percentiles[part] = n_lower / len(others)
        # Rows between the same two scores have the same differences of weights.
        pairs = inside * rule.n_scores + outside
        order = np.argsort(pairs, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1):
            between = node, int(inside[part[0]]), int(outside[part[0]])
            why[part] = [*name_contributions(taxonomy, table, between, positions[part])]
        nodes = np.full(len(places), node)
        columns.append(Steps(places, nodes, frontier[targets], margins, percentiles, why))
    steps = Steps(*map(np.concatenate, zip(*columns, strict=True)))
    # Parents come first, and a stable sort keeps it so.
    order = np.argsort(steps.place, kind="stable")
    return Steps._make(column[order] for column in steps)


def name_contributions(
    taxonomy: Taxonomy,
    table: FeatureTable,
    between: tuple[int, int, int],
    positions: IndexArray,
) -> Iterator[str]:
    """Name the features that add most to the margin of each row, with its values.

    ``between`` is the node of a rule and two of its scores. ``(against)`` stands behind those
    that speak for the second.
    """
    node, *scores = between
    rule, frontier = taxonomy.tree.rules[node], taxonomy.tree.frontier(node)
    assert rule is not None
    assert taxonomy.means is not None
    weights = rule.weights[scores[0]].astype(np.float64) - rule.weights[scores[1]]
    features = np.flatnonzero(weights)
    pair = [frontier[target] for target in rule.targets[scores].tolist()]
    take_logs = partial(taxonomy.columns.take_logs, features=features)
    middle = take_logs(taxonomy.means[pair][:, features].astype(np.float64)).mean(axis=0)
    if (alone := dividing_feature(rule)) is not None:  # it decides, at its threshold
        middle[features == alone] = threshold_of(rule, alone)
    first = np.flatnonzero(np.diff(table.column_of[features], prepend=-1))
    for block in blocks(len(positions), len(features)):
        some = positions[block]
        values = take_logs(table.values(some, features).astype(np.float64))
        parts = weights[features] * (values - middle)
        if len(first) < len(features):  # the features of a category are one
            parts = np.add.reduceat(parts, first, axis=1)
        strongest = find_strongest(np.abs(parts))
        texts = {
            column: name_values(taxonomy, table, some, int(features[first[column]]))
            for column in np.unique(strongest).tolist()
        }
        for i, columns in enumerate(strongest.tolist()):
            yield "; ".join(
                texts[column][i] + ("" if parts[i, column] > 0.0 else " (against)")
                for column in columns
                if parts[i, column] != 0.0
            )


def find_strongest(sizes: Array) -> IndexArray:
    """Return the positions of the largest few of each line; of equals, the first ones."""
    largest = sizes.max(axis=1, keepdims=True, initial=np.finfo(float).tiny)
    n_columns = sizes.shape[1]
    keys = np.arange(n_columns) - np.rint(sizes / largest * PRECISION) * n_columns
    first = np.arange(min(N_CONTRIBUTIONS, n_columns))  # to sort all would take long
    return np.argpartition(keys, first, axis=1)[:, first]


def name_values(
    taxonomy: Taxonomy, table: FeatureTable, positions: IndexArray, feature: int
) -> list[str]:
    """Return ``age = 41.5`` or ``age unknown`` of each row."""
    category = category_of(taxonomy, feature)
    name = taxonomy.columns.feature_name(feature) if category is None else category.name
    name = printable(name)
    texts = map(printable, table.format_cells(taxonomy, positions, feature))
    return [f"{name} {text}" if text == UNKNOWN else f"{name} = {text}" for text in texts]
