"""Features, examples and margins of a taxonomy and its rows, as plain values and as frames."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, InputTypeError
from taxarbor._frames import make_frame
from taxarbor._number_text import format_share
from taxarbor._types import Array, IndexArray, Matrix
from taxarbor.explain._rows import FeatureTable, Margins, find_steps, name_rows
from taxarbor.explain.distinctive import DIGITS, ColumnSummary
from taxarbor.metrics.classes import Classes
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._reasons import category_of, count_columns, known_mean, missing_shares
from taxarbor.taxonomy.new_rows import read_rows, route
from taxarbor.tree.tree import node_id

if TYPE_CHECKING:
    import pandas as pd

N_DISTINCTIVE = 10  # features of each node, unless asked otherwise
OF_GAPS: dict[tuple[str, ...], str] = {("known",): "known", ("unknown",): "unknown"}
"""The direction of reasons by missing values alone."""
OF_SIGN = {1: "higher", -1: "lower"}  # that of others
EXAMPLES = ("typical", "extreme", "borderline")
USE = "a table of explanations"  # what needs pandas


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation:
    """Why the rows of a taxonomy are where they are, and how clearly; made by :func:`explain`.

    The data are not copied: do not change them while you use the explanation. What is said of
    a single node are plain values; methods whose name is plural return data frames.

    Attributes
    ----------
    taxonomy : Taxonomy
        The taxonomy, with rules and means. Nearest-mean rules are added where it had none.
    names : tuple of str
        A short name of each node, made of the features that lead to it from its parent.
    row_names : tuple of str or None
        Names of the rows.
    classes : Classes or None
        Known classes: their ``names``, the largest first, and ``codes``, one per row, -1 for
        rows without a class.
    margins : Margins
        For each node with a rule, ``values`` has the margins of its rows, in the order of
        ``taxonomy.tree.rows(node)``; None for others. 1 is typical, 0 is the border. ``units``
        are the medians of the absolute margins of each rule, by which they were divided, and
        ``least`` the least margins on the paths to each node.
    has_rules : bool
        Whether the taxonomy came with rules.

    Examples
    --------
    >>> from taxarbor.explain import explain
    >>> from taxarbor.exchange import from_labels
    >>> why = explain(from_labels([0, 0, 1, 1]), [[1.0], [2.0], [9.0], [12.0]])
    >>> [example["row"] for example in why.examples(0, 1)["borderline"]]
    [2]
    >>> [feature["words"] for feature in why.distinctive_features(2)]
    ['higher x0']
    """

    taxonomy: Taxonomy
    names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    classes: Classes | None
    margins: Margins
    has_rules: bool
    _table: FeatureTable
    _summary: ColumnSummary

    def __repr__(self) -> str:
        return f"Explanation({self.taxonomy!r})"

    # Nodes

    def node(
        self, node: SupportsIndex, *, n_top: int | None = None, n_examples: int = 5
    ) -> dict[str, Any]:
        """Return all that is known about a node.

        Parameters
        ----------
        node : int
            Id of the node.
        n_top : int, optional
            Maximum number of features; by default all of the rule's, and ten distinctive ones.
        n_examples : int
            Maximum number of typical, of extreme and of borderline rows.

        Returns
        -------
        dict
            ``node``, ``name``, ``parent``, ``depth``, ``n_rows``, ``children``, ``cluster``
            (the label, None for inner nodes), ``decided_by`` (the node whose rule decides to
            which child rows go, None for leaves), ``n_features`` of the node's rule, ``note``;
            ``missing``, the share of the node's rows without a value, for each column with
            missing values; ``features``, as in :meth:`deciding_features`;
            ``distinctive_features``; ``typical``, ``extreme`` and ``borderline``, as in
            :meth:`examples`; and ``classes``, if known, the number of rows of each, the largest
            first.
        """
        tree = self.taxonomy.tree
        index = node_id(node, tree.n_nodes)
        cluster = np.flatnonzero(tree.leaves == index)
        n_distinctive = N_DISTINCTIVE if n_top is None else n_top
        columns, missing = self.taxonomy.columns, missing_shares(self.taxonomy, index)
        incomplete = np.flatnonzero(missing).tolist()
        values = {
            "node": index,
            "name": self.names[index],
            "parent": tree.parent(node),
            "depth": int(tree.depth[index]),
            "n_rows": int(tree.sizes[index]),
            "children": list(tree.children(index)),
            "cluster": int(cluster[0]) if len(cluster) else None,
            "decided_by": tree.decided_by(index),
            "n_features": count_columns(self.taxonomy, tree.rules[index]),
            "note": tree.notes[index],
            "missing": {columns[place].label: float(missing[place]) for place in incomplete},
            "features": self.deciding_features(index, n_top),
            "distinctive_features": self.distinctive_features(index, n_distinctive),
            **self.examples(index, n_examples),
        }
        if self.classes is not None:
            counts = self.classes.count(tree.rows(index))
            values["classes"] = {self.classes.name(code): count for code, count in counts}
        return values

    def deciding_features(
        self, node: SupportsIndex, n_top: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the features that send rows to a node rather than to its siblings.

        Returns
        -------
        list of dict
            ``feature``, its ``column``, ``words`` such as "higher age", and the ``direction``
            ("higher" or "lower" values lead here; "unknown" or "known" where the node differs
            from its siblings by missing values). ``share`` of the separation from the siblings,
            negative where other features have to make up for it, and ``weight`` in the rule.
            ``mean`` of the node's rows that have a value, or the share of rows with the
            categories in words, and ``rest_mean`` of the siblings'. ``missing``, the share of
            the node's rows without a value. The largest share comes first; with ``n_top``, only
            so many positive ones.
        """
        taxonomy, index = self.taxonomy, operator.index(node)
        here = known_mean(taxonomy, index), missing_shares(taxonomy, index)
        rest_mean = known_mean(taxonomy, index, beside=True)
        rest = rest_mean, missing_shares(taxonomy, index, beside=True)
        return [
            {
                "feature": reason.name,
                "column": reason.feature,
                "words": phrase(reason),
                "direction": OF_GAPS.get(reason.categories, OF_SIGN[reason.sign]),
                "share": reason.share,
                "weight": reason.weight,
                "mean": _mean_of(taxonomy, reason, *here),
                "rest_mean": _mean_of(taxonomy, reason, *rest),
                "missing": reason.unknown,
            }
            for reason in taxonomy.reasons(index, n_top)
        ]

    def distinctive_features(
        self, node: SupportsIndex, n_top: int = N_DISTINCTIVE
    ) -> list[dict[str, Any]]:
        """Return the features in which a node's rows differ most from all others.

        Returns
        -------
        list of dict
            At most ``n_top``, the largest effect first; none for the root. ``feature``, its
            ``column``, ``words`` such as "higher age", and its ``effect``: the difference of
            the means, in standard deviations, from -1 to 1, where the feature alone separates
            the node's rows from all others. ``mean`` of the node's rows and ``all_mean`` of all
            rows; for booleans also ``share`` and ``all_share`` of rows that have it, else None.
            ``missing``, the share of the node's rows without a value, which are left out of all
            else. ``counts`` of the node's rows and ``all_counts`` of all rows in bins with
            these ``edges``; the outer bins include all rows beyond. Of a category, the value
            that differs most.
        """
        return self._summary.distinctive_features(self.taxonomy.tree.rows(node), n_top)

    def examples(
        self, node: SupportsIndex, n_examples: int = 5
    ) -> dict[str, list[dict[str, Any]]]:
        """Return rows that show what a node is like, and where it ends.

        Parameters
        ----------
        node, n_examples : int
            Id of the node, and the maximum number of rows of each kind. IndexError is raised if
            there is no such node.

        Returns
        -------
        dict
            ``typical``: the rows nearest to the mean of the node's rows, with their
            ``distance``, in standard deviations of each feature; 1 is the median of the node's
            rows. Those of an inner node lie between its clusters, and need not be typical of
            any of them.

            ``extreme``: the rows deepest inside the node, with their ``margin``, the least on
            the path, the largest first; of equal ones, the most typical row. Those of the root
            are its children's, in turn.

            ``borderline``: the rows nearest to the border between the node's children, or of a
            leaf, with their ``margin`` there, the smallest first; of equal ones, the least
            typical row. Where a rule above decides the split, the border is that of all nodes
            which it chooses among.

            Each row has its ``row`` number and ``name``. Rows with the smallest margin of all
            are not extreme and those with the largest not borderline: where all margins are
            equal, as with boolean features, or there is one leaf, both lists are empty.
        """
        tree, index, n_examples = self.taxonomy.tree, operator.index(node), max(n_examples, 0)
        rows, means = tree.rows(node), self.taxonomy.means
        assert means is not None
        distances = self._summary.distances(rows, means[index].astype(np.float64))
        nearest = np.argsort(distances, kind="stable")[:n_examples]
        typical = self._list_rows(rows[nearest], distances[nearest], "distance")
        parent, margins = tree.parent(node), self.margins.values[index]
        if parent is None:
            parts = [self.examples(child, n_examples)["extreme"] for child in tree.children(0)]
            turns = [part[n] for n in range(n_examples) for part in parts if n < len(part)]
            extreme = turns[:n_examples]
        else:
            least = self.margins.least[index]
            deepest = _find_largest(least, -distances, n_examples)
            extreme = self._list_rows(rows[deepest], least[deepest])
            margins = self.margins_within(parent, node) if margins is None else margins
        borderline: list[dict[str, Any]] = []
        if margins is not None:
            nearest = _find_largest(-margins, distances, n_examples)
            borderline = self._list_rows(rows[nearest], margins[nearest])
        return dict(zip(EXAMPLES, (typical, extreme, borderline), strict=True))

    def _list_rows(
        self, rows: IndexArray, values: Array, measure: str = "margin"
    ) -> list[dict[str, Any]]:
        return [
            {"row": row, "name": self.row_name(row), measure: _number_or_none(value)}
            for row, value in zip(rows.tolist(), values.tolist(), strict=True)
        ]

    def margins_within(self, ancestor: SupportsIndex, node: SupportsIndex) -> Array:
        """Return the margins of a node's rows, in order, at the split of one of its ancestors.

        They are those of the rule that decides this split. IndexError is raised if there are no
        such nodes, ValueError if the first is not an ancestor of the second.
        """
        tree = self.taxonomy.tree
        decider, n_rows = tree.decided_by(ancestor), len(tree.rows(node))
        above, below = operator.index(ancestor), operator.index(node)
        # Slices nest, and those of children are smaller than their parent's.
        is_within = tree.start[above] <= tree.start[below] < tree.stop[above]
        if decider is None or not is_within or n_rows >= tree.sizes[above]:
            raise InputError(f"node {ancestor} is not an ancestor of node {node}")
        return self.margins.within(tree, decider, below)

    def nodes(self, *, n_examples: int = 3) -> "pd.DataFrame":
        """Return a data frame with a line per node: its name, its size and its examples.

        Columns as in :meth:`node`; features, the first three of a kind, rows and classes are
        given in words. The parent of the root, the cluster of an inner node and the decider of
        a leaf are -1.
        """
        lines = []
        for node in range(self.taxonomy.tree.n_nodes):
            values = self.node(node, n_top=3, n_examples=n_examples)
            lines.append({key: _as_cell(values[key]) for key in values if key != "children"})
        return make_frame(USE, lines)

    # Rows

    def rows(self, which: Iterable[int | str] | int | str | None = None) -> "pd.DataFrame":
        """Return why rows are where they are: a line per row and rule on its path.

        Parameters
        ----------
        which : iterable of int or str, int or str, optional
            Numbers or names of the rows, or a single one; all of them by default.

        Returns
        -------
        DataFrame
            ``row``, ``row_name``, and ``step``, from 1 at the root; the ``node`` of the rule,
            the ``child`` that the row goes to from there (a child, or a node further down), and
            ``node_name`` and ``child_name``; the ``margin``, its ``margin_percentile`` (the
            share of the child's rows with a smaller margin), and ``why``: the features that
            contribute most, for the child or ``(against)`` it. Noise has no lines.

        Raises
        ------
        TypeError, IndexError, KeyError
            As :meth:`find_row` raises them. Of a mask, pass ``np.flatnonzero``.
        """
        tree = self.taxonomy.tree
        if which is None:
            chosen = np.arange(tree.n_rows)
        else:
            rows = [which] if isinstance(which, int | str | np.integer) else which
            chosen = np.array([self.find_row(row) for row in rows], dtype=np.intp)
        return self._step_frame(self._table, tree.labels, chosen, self.row_names)

    def place(self, X: ArrayLike, row_names: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return where new rows go, and why, in a data frame like that of :meth:`rows`.

        Parameters
        ----------
        X, row_names
            New rows, and their names, as :func:`explain` takes them.

        Raises
        ------
        ValueError
            If ``X`` does not have the features of the taxonomy, in their order.
        """
        rows = read_rows(self.taxonomy, X)
        names = name_rows(row_names, X, n_rows := rows.data.shape[0])
        table, labels = FeatureTable.of(self.taxonomy, rows), route(self.taxonomy, rows)
        return self._step_frame(table, labels, np.arange(n_rows), names)

    def _step_frame(
        self,
        table: FeatureTable,
        labels: IndexArray,
        chosen: IndexArray,
        row_names: Sequence[str] | None,
    ) -> "pd.DataFrame":
        steps = find_steps(self.taxonomy, self.margins, table, labels, chosen)
        rows, names = chosen[steps.place], np.array(self.names, dtype=object)
        return make_frame(USE, {
            "row": rows,
            "row_name": [_name_row(row_names, row) for row in rows.tolist()],
            "step": np.arange(len(rows)) - np.searchsorted(steps.place, steps.place) + 1,
            "node": steps.node,
            "node_name": names[steps.node],
            "child": steps.child,
            "child_name": names[steps.child],
            "margin": steps.margin,
            "margin_percentile": steps.percentile,
            "why": steps.why,
        })  # fmt: skip

    def find_row(self, row: int | str) -> int:
        """Return the number of a row, given its number or its name.

        TypeError is raised if it is neither, IndexError if there is no row of this number,
        KeyError if there is not one row of this name.
        """
        n_rows = self.taxonomy.tree.n_rows
        if isinstance(row, str):
            names = self.row_names or ()
            if (n_same := names.count(row)) != 1:
                count = "there is no row" if not n_same else f"there are {n_same} rows"
                raise KeyError(f"{count} called {row!r}; give its number, 0 to {n_rows - 1}")
            return names.index(row)
        if isinstance(row, bool | np.bool_):
            raise InputTypeError(f"a row is a number or a name, got {row}; see np.flatnonzero")
        if not 0 <= (number := operator.index(row)) < n_rows:
            raise IndexError(f"there is no row {number}; rows are 0 to {n_rows - 1}")
        return number

    def row_name(self, row: int) -> str:
        """Return the name of a row, or ``row 12`` if it has none."""
        return _name_row(self.row_names, row)

    @property
    def data(self) -> Matrix:
        """The rows as features of the taxonomy, an array or CSR matrix."""
        return self._table.data

    @property
    def least_margins(self) -> Array:
        """The least margin on the path of each row, in the order of ``tree.rows(0)``."""
        return np.concatenate([self.margins.least[leaf] for leaf in self.taxonomy.tree.leaves])

    def format_cells(self, rows: IndexArray, feature: int) -> list[str]:
        """Return the values of some rows in a feature, or in the column of a category, as text.

        ``unknown`` where the value is missing.
        """
        return self._table.format_cells(self.taxonomy, rows, feature)


def _name_row(names: Sequence[str] | None, row: int) -> str:
    return ("" if names is None else names[row].strip()) or f"row {row}"


def _number_or_none(value: float) -> float | None:
    """Return a number that JSON can hold."""
    return float(value) if np.isfinite(value) else None


@np.errstate(over="ignore")
def _find_largest(values: Array, ties: Array, n: int) -> IndexArray:
    """Return the n largest values, but not the smallest; of equals, the largest in ``ties``."""
    keys = np.where(np.isfinite(values), values, 0.0).round(DIGITS)
    order = np.lexsort((-ties, -keys))[:n]
    return np.asarray(order[keys[order] > keys.min()])


def _as_cell(value: object) -> object:
    """Return a value of a node as a frame holds it: lists in words, -1 for None."""
    if isinstance(value, list):
        return ", ".join(item.get("words") or item["name"] for item in value)
    if isinstance(value, dict):  # counts of rows, or shares
        texts = ((k, format_share(v) if isinstance(v, float) else v) for k, v in value.items())
        return ", ".join(f"{name} {text}" for name, text in texts)
    return -1 if value is None else value  # integers, as in exchange.to_frame


def _mean_of(
    taxonomy: Taxonomy, reason: Reason, means: Array | None, missing: Array
) -> float | None:
    """Return the mean of a reason's feature, or the share of rows with its categories."""
    assert means is not None
    if not reason.categories:
        return _number_or_none(means[reason.feature])
    share = missing[taxonomy.columns.owner[reason.feature]]
    shares = {"known": 1.0 - share, "unknown": share}
    if (category := category_of(taxonomy, reason.feature)) is not None:
        shares |= dict(zip(category.values, category.spread(means), strict=True))
    return _number_or_none(sum(shares[name] for name in reason.categories))
