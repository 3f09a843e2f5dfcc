"""Features, examples and margins of a taxonomy and its rows, as plain values and as frames."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, InputTypeError
from taxarbor._frames import make_frame
from taxarbor._number_text import format_column, format_share
from taxarbor._types import Array, IndexArray
from taxarbor.explain._distinctive import ColumnSummary
from taxarbor.explain._feature_table import (
    Classes,
    FeatureTable,
    check_names,
    column_labels,
    index_labels,
)
from taxarbor.explain._margins import find_steps, number_or_none
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._new_rows import expand
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._reasons import category_of, known_mean, missing_shares

if TYPE_CHECKING:
    import pandas as pd

N_REASONS = 10
"""Features of each node that are kept, and shown unless asked otherwise."""
EXAMPLES = ("typical", "extreme", "borderline")
DIGITS = 6
"""To which margins are compared."""
USE = "a table of explanations"  # what needs pandas
FEATURE = (
    *("feature", "column", "words", "direction", "share", "weight", "mean", "rest_mean"),
    "missing",
)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation:
    """Why the rows of a taxonomy are where they are, and how clearly; made by :func:`explain`.

    The data are not copied: do not change them while you use the explanation. Methods return
    plain values, or data frames where the name is plural.

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
    margins : tuple of array or None
        For each node with a rule, the margins of its rows, in the order of
        ``taxonomy.tree.rows(node)``; None for others. 1 is typical, 0 is the border.
    units : float array of shape (n_nodes,)
        The median of the absolute margins of each rule, by which they were divided.
    whole : Taxonomy
        The taxonomy of all rows; that of a sample, in ``taxonomy``, has fewer.
    row_numbers : int array
        The numbers of the explained rows among all rows, ascending.
    weights : float array
        The number of rows that each row stands for: 1, unless the rows are a sample.
    notes : tuple of str
        Where the explanation comes from a sample, a sentence that says so.
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
    margins: tuple[Array | None, ...]
    units: Array
    whole: Taxonomy
    row_numbers: IndexArray
    weights: Array
    notes: tuple[str, ...]
    has_rules: bool
    _least: tuple[Array, ...]
    _reasons: tuple[tuple[Reason, ...], ...]
    _columns: tuple[str, ...] | None
    _table: FeatureTable
    _summary: ColumnSummary

    def __repr__(self) -> str:
        return f"Explanation({self.taxonomy!r})"

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
        tree, index = self.taxonomy.tree, operator.index(node)
        rule, cluster = tree.rules[index], np.flatnonzero(tree.leaves == index)
        n_distinctive = N_REASONS if n_top is None else n_top
        values = {
            "node": index,
            "name": self.names[index],
            "parent": tree.parent(node),
            "depth": int(tree.depth[index]),
            "n_rows": int(self.whole.tree.sizes[index]),
            "children": list(tree.children(index)),
            "cluster": int(cluster[0]) if len(cluster) else None,
            "decided_by": tree.decided_by(index),
            "n_features": 0 if rule is None else rule.n_features_used,
            "note": tree.notes[index],
            "missing": self._missing(index),
            "features": self.deciding_features(index, n_top),
            "distinctive_features": self.distinctive_features(index, n_distinctive),
            **self.examples(index, n_examples),
        }
        if self.classes is not None:
            counts = self.classes.count(tree.rows(index), self.weights)
            values["classes"] = {self.classes.name(code): count for code, count in counts}
        return values

    def _missing(self, node: int) -> dict[str, float]:
        encoding, missing = self.taxonomy.encoding, self.taxonomy.missing
        if missing is None or encoding is None:
            return {}
        shares = zip(encoding.columns, missing[node].tolist(), strict=True)
        return {column.label: share for column, share in shares if share > 0.0}

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
        if n_top is None or n_top > N_REASONS:
            reasons = taxonomy.reasons(node, n_top)
        else:
            reasons = self._reasons[index][: max(n_top, 0)]
        if not reasons:
            return []
        sides = [
            (
                known_mean(taxonomy, index, beside=beside),
                missing_shares(taxonomy, index, beside=beside),
            )
            for beside in (False, True)
        ]
        lines = []
        for reason in reasons:
            direction = "higher" if reason.sign > 0 else "lower"
            if reason.categories in (("known",), ("unknown",)):
                direction = reason.categories[0]
            means = [number_or_none(_mean_of(reason, taxonomy, *side)) for side in sides]
            values = reason.name, reason.feature, phrase(reason), direction, reason.share
            line = *values, reason.weight, *means, reason.unknown
            lines.append(dict(zip(FEATURE, line, strict=True)))
        return lines

    def distinctive_features(
        self, node: SupportsIndex, n_top: int = N_REASONS
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
        typical = self._list_rows(rows[nearest], "distance", distances[nearest])
        parent, margins = tree.parent(node), self.margins[index]
        if parent is None:
            parts = [self.examples(child, n_examples)["extreme"] for child in tree.children(0)]
            turns = [part[n] for n in range(n_examples) for part in parts if n < len(part)]
            extreme = turns[:n_examples]
        else:
            least = self._least[index]
            deepest = _find_largest(least, -distances, n_examples)
            extreme = self._list_rows(rows[deepest], "margin", least[deepest])
            margins = self.margins_within(parent, node) if margins is None else margins
        borderline: list[dict[str, Any]] = []
        if margins is not None:
            nearest = _find_largest(-margins, distances, n_examples)
            borderline = self._list_rows(rows[nearest], "margin", margins[nearest])
        return dict(zip(EXAMPLES, (typical, extreme, borderline), strict=True))

    def _list_rows(self, rows: IndexArray, measure: str, values: Array) -> list[dict[str, Any]]:
        return [
            {"row": row, "name": self.row_name(row), measure: number_or_none(value)}
            for row, value in zip(self.row_numbers[rows].tolist(), values.tolist(), strict=True)
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
        margins = self.margins[decider]
        assert margins is not None
        start = int(tree.start[below] - tree.start[decider])
        return margins[start : start + n_rows]

    def row(self, row: int | str) -> dict[str, Any]:
        """Return why a row is where it is.

        Parameters
        ----------
        row : int or str
            Its number or its name.

        Returns
        -------
        dict
            ``row``, ``name``, ``leaf``, ``cluster`` and ``steps``, one for each rule on its
            path, from the root down: the ``node`` of the rule, the ``child`` that the row goes
            to from there (a child, or a node further down), their names, the ``margin``, its
            ``margin_percentile`` (the share of the child's rows with a smaller margin), and the
            features that contribute most, for the child or against it, in words as ``why`` and
            as values in ``contributions``. Noise has no leaf, cluster -1 and no steps.
        """
        position, tree = self._find_row(row), self.taxonomy.tree
        steps = find_steps(self, self._table, tree.labels, np.array([position]), tuple)
        cluster = int(tree.labels[position])
        return {
            "row": int(self.row_numbers[position]),
            "name": None if self.row_names is None else self.row_names[position],
            "leaf": int(tree.leaves[cluster]) if cluster >= 0 else None,
            "cluster": cluster,
            "steps": [
                {
                    "node": node,
                    "node_name": self.names[node],
                    "child": child,
                    "child_name": self.names[child],
                    "margin": number_or_none(margin),
                    "margin_percentile": percentile,
                    "why": "; ".join(map(str, reasons)),
                    "contributions": [reason._asdict() for reason in reasons],
                }
                for _, node, child, margin, percentile, reasons in zip(
                    *(column.tolist() for column in steps), strict=True
                )
            ],
        }

    def features(self) -> "pd.DataFrame":
        """Return a data frame with a line per node and feature that leads to it.

        Columns node, name, parent, and those of :meth:`deciding_features`.
        """
        tree = self.taxonomy.tree
        lines = [
            (node, self.names[node], tree.parent(node), *feature.values())
            for node in range(1, tree.n_nodes)
            for feature in self.deciding_features(node)
        ]
        return make_frame(USE, lines, ("node", "name", "parent", *FEATURE))

    def nodes(self, *, n_examples: int = 3) -> "pd.DataFrame":
        """Return a data frame with a line per node: its name, its size and its examples.

        Columns as in :meth:`node`; features, the first three of a kind, rows and classes are
        given in words. The parent of the root, the cluster of an inner node and the decider of
        a leaf are -1.
        """
        nodes = self.to_dict(n_top=3, n_examples=n_examples)["nodes"]
        lines = [
            {key: _as_cell(node[key]) for key in node if key != "children"} for node in nodes
        ]
        return make_frame(USE, lines)

    def rows(self, which: Iterable[int | str] | int | str | None = None) -> "pd.DataFrame":
        """Return a data frame with a line per row and rule on its path.

        Parameters
        ----------
        which : iterable of int or str, int or str, optional
            Numbers or names of the rows, or a single one; all of them by default.

        Returns
        -------
        DataFrame
            Columns row, row_name, step and those of the steps of :meth:`row`, but for the
            contributions, which are in words only.

        Raises
        ------
        TypeError, IndexError, KeyError
            If these are not numbers or names of rows. Of a mask, pass ``np.flatnonzero``.
        """
        tree = self.taxonomy.tree
        if which is None:
            chosen = np.arange(tree.n_rows)
        else:
            rows = [which] if isinstance(which, int | str | np.integer) else which
            chosen = np.array([self._find_row(row) for row in rows], dtype=np.intp)
        names = self.row_names
        return self._step_frame(self._table, tree.labels, chosen, self.row_numbers, names)

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
        taxonomy, columns = self.taxonomy, self._columns
        fitted = taxonomy
        if taxonomy.encoding is None:
            # X has the columns of the fit, not the names given since. Where the fit had none,
            # the same names must at least be in the same order.
            given = taxonomy.feature_names
            if columns is None and sorted(column_labels(X) or ()) == sorted(given or ()):
                columns = given
            fitted = replace(taxonomy, tree=replace(taxonomy.tree, feature_names=columns))
        rows = expand(X, fitted)
        every = np.arange(rows.data.shape[0])
        names = check_names("row", row_names, index_labels(X), len(every))
        table, labels = FeatureTable.of(taxonomy, rows), taxonomy.predict(rows)
        return self._step_frame(table, labels, every, every, names)

    def to_dict(self, *, n_top: int | None = None, n_examples: int = 5) -> dict[str, Any]:
        """Return ``{"nodes": [...]}``, with each :meth:`node`, and ``"notes"`` of a sample.

        Takes the numbers that :meth:`node` takes.
        """
        ids = range(self.taxonomy.tree.n_nodes)
        nodes = [self.node(node, n_top=n_top, n_examples=n_examples) for node in ids]
        return {"nodes": nodes} | ({"notes": list(self.notes)} if self.notes else {})

    @property
    def data(self) -> Any:
        """The rows as features of the taxonomy, an array or CSR matrix."""
        return self._table.data

    @property
    def least_margins(self) -> Array:
        """The least margin on the path of each row, in the order of ``tree.rows(0)``."""
        leaves = self.taxonomy.tree.leaves.tolist()
        return np.concatenate([self._least[leaf] for leaf in leaves])

    def positions(self, rows: IndexArray) -> IndexArray:
        """Return where rows are in ``taxonomy``, ``classes`` and ``row_names``."""
        return np.searchsorted(self.row_numbers, rows)

    def format_cells(self, rows: IndexArray, feature: int) -> list[str]:
        """Return the values of some rows in a feature, or in the column of a category, as text.

        ``unknown`` where the value is missing.
        """
        category, is_boolean = category_of(self.taxonomy, feature), self._summary.is_boolean
        cells = self._table.cells(self.positions(rows), feature, category)
        if category is not None:
            texts = ["" if code is None else category.values[int(code)] for code in cells]
        elif is_boolean is not None and is_boolean[feature]:
            texts = ["yes" if value else "no" for value in cells]
        else:
            texts = format_column(nan if value is None else value for value in cells)
        pairs = zip(cells, texts, strict=True)
        return ["unknown" if value is None else text for value, text in pairs]

    def row_name(self, row: int) -> str:
        """Return the name of a row, or ``row 12`` if it has none."""
        name = ""
        if self.row_names is not None:
            name = self.row_names[int(self.positions(np.array(row)))].strip()
        return name or f"row {row}"

    def _find_row(self, row: int | str) -> int:
        """Return the position of a row, given its number or its name."""
        n_rows, numbers = self.whole.tree.n_rows, self.row_numbers
        if isinstance(row, str):
            same = [n for n, name in enumerate(self.row_names or ()) if name == row]
            if len(same) != 1:
                count = "there is no row" if not same else f"there are {len(same)} rows"
                raise KeyError(f"{count} called {row!r}; give its number, 0 to {n_rows - 1}")
            return same[0]
        if isinstance(row, bool | np.bool_):
            raise InputTypeError(
                f"a row is a number or a name, got {row}; of a mask, pass np.flatnonzero(mask)"
            )
        number = operator.index(row)
        position = int(np.searchsorted(numbers, number))
        if position == len(numbers) or numbers[position] != number:
            raise IndexError(
                f"row {number} is not among the {len(numbers):,} explained rows of rows 0 to "
                f"{n_rows - 1}; place(X) explains any rows"
            )
        return position

    def _step_frame(
        self,
        table: FeatureTable,
        labels: IndexArray,
        chosen: IndexArray,
        numbers: IndexArray,
        names: Sequence[str] | None,
    ) -> "pd.DataFrame":
        """Return a frame with a line per chosen row and rule; see :func:`find_steps`.

        ``numbers`` and ``names`` are those of all rows of the table.
        """
        steps = find_steps(self, table, labels, chosen, lambda some: "; ".join(map(str, some)))
        rows, every_name = numbers[chosen[steps.place]], np.array(self.names, dtype=object)
        return make_frame(USE, {
            "row": rows,
            "row_name": [f"row {row}" for row in rows.tolist()]
            if names is None
            else [names[position] for position in chosen[steps.place]],
            "step": np.arange(len(rows)) - np.searchsorted(steps.place, steps.place) + 1,
            "node": steps.node,
            "node_name": every_name[steps.node],
            "child": steps.child,
            "child_name": every_name[steps.child],
            "margin": steps.margin,
            "margin_percentile": steps.percentile,
            "why": steps.reasons,
        })  # fmt: skip


def _find_largest(values: Array, ties: Array, n: int) -> IndexArray:
    """Return the n largest values, but not the smallest; of equals, the largest in ``ties``."""
    keys = np.where(np.isfinite(values), values, 0.0).round(DIGITS)
    order = np.lexsort((-ties, -keys))[:n]
    largest: IndexArray = order[keys[order] > keys.min()]
    return largest


def _as_cell(value: Any) -> Any:
    """Return a value of a node as a frame holds it: lists in words, -1 for None."""
    if isinstance(value, list):
        return ", ".join(item.get("words") or item["name"] for item in value)
    if isinstance(value, dict):  # counts of rows, or shares
        texts = ((k, format_share(v) if isinstance(v, float) else v) for k, v in value.items())
        return ", ".join(f"{name} {text}" for name, text in texts)
    return -1 if value is None else value  # integers, as in exchange.to_frame


def _mean_of(reason: Reason, taxonomy: Taxonomy, means: Array | None, missing: Array) -> float:
    """Return the mean of a reason's feature, or the share of rows with its categories."""
    assert means is not None
    if taxonomy.encoding is None or not reason.categories:
        return float(means[reason.feature])
    unknown = float(missing[taxonomy.encoding.owner[reason.feature]])
    shares = {"known": 1.0 - unknown, "unknown": unknown}
    if (category := category_of(taxonomy, reason.feature)) is not None:
        shares |= dict(zip(category.values, category.spread(means).tolist(), strict=True))
    return float(sum(shares[name] for name in reason.categories))
