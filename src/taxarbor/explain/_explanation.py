"""Reasons, examples and margins of a tree and its rows, as frames and as plain values."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError
from taxarbor._format import format_column, format_number
from taxarbor._frames import make_frame
from taxarbor._types import Array, IndexArray
from taxarbor.explain._names import Classes, columns_of, find_row, given_names, index_of
from taxarbor.explain._portrait import Portraits
from taxarbor.explain._steps import Source, find_steps, number_or_none
from taxarbor.tables._encoding import Expanded
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._reasons import (
    Reason,
    are_zero_and_one,
    category_of,
    known_mean,
    missing_shares,
)
from taxarbor.taxonomy._routing import check_columns, expand
from taxarbor.taxonomy._text import phrase

if TYPE_CHECKING:
    import pandas as pd

TOP = 10  # features that stand out, unless asked otherwise
_FEATURE = (
    *("feature", "column", "words", "direction", "share", "weight", "mean", "rest_mean"),
    "missing",
)
_KINDS = ("typical", "extreme", "borderline")
DIGITS = 6  # to which margins are compared
TABLE = "a table of explanations"  # what needs pandas


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation:
    """Why the rows of a tree are where they are, and how clearly, as :func:`explain` finds it.

    The data are not copied: do not change them while you use the explanation. Methods return
    plain values, or data frames where the name is plural.

    Attributes
    ----------
    taxonomy : Taxonomy
        The tree, with rules and means. A tree that had no rules has nearest-mean ones.
    names : tuple of str
        A short name for each node, made of the features that lead to it from its parent.
    row_names : tuple of str or None
        Names of the rows.
    classes : Classes or None
        Known classes: their ``names``, the largest first, and ``codes``, one per row, -1 for
        rows without a class.
    margins : tuple of array or None
        For each node with a rule, the margins of its rows, in the order of
        ``taxonomy.tree.rows(node)``; None for others. 1 is usual, 0 is the border.
    units : float array of shape (n_nodes,)
        The median of the absolute margins of each rule, by which they were divided.
    whole : Taxonomy
        The tree of all rows; that of a sample, in ``taxonomy``, has fewer.
    numbers : int array
        The numbers of the rows among all rows, ascending: those of a sample, or all.
    notes : tuple of str
        Where the explanation comes from a sample, a sentence that says so.
    has_rules : bool
        Whether the tree came with rules of its own.

    Examples
    --------
    >>> from taxarbor.explain import explain
    >>> from taxarbor.exchange import from_labels
    >>> why = explain(from_labels([0, 0, 1, 1]), [[1.0], [2.0], [9.0], [12.0]])
    >>> [row["row"] for row in why.borderline(0, 1)]
    [2]
    >>> [one["feature"] for one in why.standout(2)]
    ['x0']
    """

    taxonomy: Taxonomy
    names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    classes: Classes | None
    margins: tuple[Array | None, ...]
    units: Array
    whole: Taxonomy
    numbers: IndexArray
    notes: tuple[str, ...]
    has_rules: bool
    _least: tuple[Array, ...]
    _columns: Sequence[str] | None
    _source: Source
    _portraits: Portraits

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
            Number of features at most; by default all of the rule's, and ten that stand out.
        n_examples : int
            Number of typical, of extreme and of borderline rows, at most.

        Returns
        -------
        dict
            ``node``, ``name``, ``parent``, ``depth``, ``n_rows``, ``children``, ``cluster``
            (the label, None for inner nodes), ``decided_by`` (the node whose rule decides to
            which child rows go, None for leaves), ``n_features`` of its own rule, ``note``;
            ``missing``, the share of its rows without a value, of each column with missing
            values; ``features``, as in :meth:`features`; ``standout``, ``typical``,
            ``extreme`` and ``borderline``, as the methods of these names return them; and
            ``classes``, if known, the number of rows of each, the largest first.
        """
        taxonomy = self.taxonomy
        parent = taxonomy.tree.parent(node)
        index = operator.index(node)
        is_leaf = taxonomy.tree.is_leaf(index)
        values = {
            "node": index,
            "name": self.names[index],
            "parent": parent,
            "depth": int(taxonomy.tree.depth[index]),
            "n_rows": int(self.whole.tree.sizes[index]),
            "children": list(taxonomy.tree.children(index)),
            "cluster": int(np.flatnonzero(taxonomy.tree.leaves == index)[0])
            if is_leaf
            else None,
            "decided_by": taxonomy.tree.decided_by(index),
            "n_features": 0
            if (rule := taxonomy.tree.rules[index]) is None
            else rule.n_features_used,
            "note": taxonomy.tree.notes[index],
            "missing": self._missing(index),
            "features": self.leading(index, n_top),
            "standout": self.standout(index, TOP if n_top is None else n_top),
            **self.examples(index, n_examples),
        }
        if self.classes is not None:
            counts = self.classes.count(taxonomy.tree.rows(index), self.weights)
            values["classes"] = {self.classes.name(code): count for code, count in counts}
        return values

    def standout(self, node: SupportsIndex, n_top: int = TOP) -> list[dict[str, Any]]:
        """Return the features in which a node's rows differ most, ``n_top`` at most.

        Returns
        -------
        list of dict
            ``feature``, its ``column``, ``words`` such as "higher age", and its ``effect``:
            the difference of the means, in standard deviations, from -1 to 1, where the
            feature alone separates the node's rows from all others; the largest first. ``mean``
            of the node's rows and ``all_mean`` of all rows. ``share`` and ``all_share`` of
            rows that have it, for yes-no features, else None. ``missing``, the share of the
            node's rows without a value, which count in nothing else. ``counts`` of the node's
            rows and ``all_counts`` of all rows in bins with these ``edges``; the outer bins
            include all rows beyond. Of a category, the value that differs most. The root has
            none.
        """
        return self._portraits.standout(self.taxonomy, node, n_top)

    def typical(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows nearest to the mean of a node's rows.

        Columns are measured in standard deviations over all rows. The rows of an inner node lie
        between its clusters, and need not be typical of any of them.

        Parameters
        ----------
        node, n_examples : int
            Id of the node, and the number of rows at most.

        Returns
        -------
        list of dict
            ``row``, ``name`` and ``distance``, the smallest first; 1 is the median of the
            node's rows. IndexError is raised if there is no such node.
        """
        return self.examples(node, n_examples)["typical"]

    def extreme(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows deepest inside a node: those with the largest least margin.

        Takes and raises what :meth:`typical` does. Instead of the distance there is the
        ``margin``, the least on the row's path, the largest of these first; of equal ones, the
        most typical row. Rows with the smallest margin are none: where all are equal, as yes-no
        rules make them, the list is empty. Those of the root are its children's, in turn.
        """
        return self.examples(node, n_examples)["extreme"]

    def borderline(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows nearest to the border: between a node's children, or of a leaf.

        Takes, returns and raises what :meth:`extreme` does. The margin is the one at this
        border, the smallest first; of equal ones, the least typical row. Where the split is
        decided above, the border is that of all nodes which the rule there chooses among. Rows
        with the largest margin are none. A tree of one leaf has no border, and neither such
        rows nor extreme ones.
        """
        return self.examples(node, n_examples)["borderline"]

    def examples(self, node: SupportsIndex, n_examples: int = 5) -> dict[str, list[Any]]:
        """Return :meth:`typical`, :meth:`extreme` and :meth:`borderline` rows by these names.

        Takes and raises what they do.
        """
        taxonomy, index, n_examples = self.taxonomy, operator.index(node), max(n_examples, 0)
        rows, means = taxonomy.tree.rows(node), taxonomy.means
        assert means is not None
        distances = self._portraits.distances(rows, means[index].astype(np.float64))
        nearest = np.argsort(distances, kind="stable")[:n_examples]
        found = {"typical": self._rows_with(rows[nearest], "distance", distances[nearest])}
        parent, margins = taxonomy.tree.parent(node), self.margins[index]
        if parent is None:
            parts = [self.extreme(child, n_examples) for child in taxonomy.tree.children(index)]
            turns = [part[n] for n in range(n_examples) for part in parts if n < len(part)]
            found["extreme"] = turns[:n_examples]
        else:
            least = self._least[index]
            deepest = _largest(least, -distances, n_examples)
            found["extreme"] = self._rows_with(rows[deepest], "margin", least[deepest])
            margins = self.margins_within(parent, node) if margins is None else margins
        found["borderline"] = []
        if margins is not None:
            outer = _largest(-margins, distances, n_examples)
            found["borderline"] = self._rows_with(rows[outer], "margin", margins[outer])
        return found

    def _missing(self, node: int) -> dict[str, float]:
        taxonomy = self.taxonomy
        if taxonomy.missing is None or taxonomy.encoding is None:
            return {}
        shares = zip(taxonomy.encoding.columns, taxonomy.missing[node].tolist(), strict=True)
        return {column.label: share for column, share in shares if share > 0.0}

    def margins_within(self, ancestor: SupportsIndex, node: SupportsIndex) -> Array:
        """Return the margins of a node's rows, in order, at the split of one of its ancestors.

        They are those of the rule that decides this split. Takes their ids. IndexError is
        raised if there are no such nodes, ValueError if the first is not an ancestor of the
        second.
        """
        taxonomy, above, below = self.taxonomy, operator.index(ancestor), operator.index(node)
        n_rows = (
            len(taxonomy.tree.rows(above)),
            len(taxonomy.tree.rows(below)),
        )  # which checks the ids
        start, decider = (
            int(taxonomy.tree.start[below] - taxonomy.tree.start[above]),
            taxonomy.tree.decided_by(above),
        )
        # Slices nest, and those of children are smaller than their parent's.
        if decider is None or not 0 <= start <= n_rows[0] - n_rows[1] or above == below:
            raise InputError(f"node {ancestor} is not an ancestor of node {node}")
        margins = self.margins[decider]
        assert margins is not None
        start = int(taxonomy.tree.start[below] - taxonomy.tree.start[decider])
        return margins[start : start + n_rows[1]]

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
            path, from the root down: the node of the rule, the ``child`` that the row goes to
            from there (a child, or a node further down), their names, the margin, the share of
            the child's rows with a smaller one, and the features that pull most, towards the
            child or against it, in words and as values. Noise has no leaf, cluster -1 and no
            steps.
        """
        place, taxonomy = self._place(row), self.taxonomy
        leaves = _leaves(taxonomy, taxonomy.tree.labels)
        found = find_steps(self, self._source, leaves, np.array([place]), tuple)
        steps = [
            {
                "node": node,
                "node_name": self.names[node],
                "child": child,
                "child_name": self.names[child],
                "margin": number_or_none(margin),
                "surer_than": surer_than,
                "why": "; ".join(map(str, pulls)),
                "pulls": [pull._asdict() for pull in pulls],
            }
            for _, node, child, margin, surer_than, pulls in zip(
                *(part.tolist() for part in found), strict=True
            )
        ]
        return {
            "row": int(self.numbers[place]),
            "name": None if self.row_names is None else self.row_names[place],
            "leaf": int(leaves[place]) if leaves[place] >= 0 else None,
            "cluster": int(taxonomy.tree.labels[place]),
            "steps": steps,
        }

    def features(self) -> "pd.DataFrame":
        """Return a data frame with a line per node and feature that leads to it.

        Returns
        -------
        DataFrame
            Columns node, name, parent, feature, its column, words (what is so here),
            direction ("higher" or "lower" values lead here; "unknown" or "known" where the
            node differs from its siblings by missing values), share (of the separation from
            the siblings; a negative one pulls the other way), weight, mean (of the node's
            rows that have a value; of a category, the share with the values in words),
            rest_mean (of the siblings') and missing (the share of the node's rows without).
        """
        lines = [
            (node, self.names[node], self.taxonomy.tree.parent(node), *values.values())
            for node in range(1, self.taxonomy.tree.n_nodes)
            for values in self.leading(node)
        ]
        return make_frame(TABLE, lines, ("node", "name", "parent", *_FEATURE))

    def nodes(self, *, n_examples: int = 3) -> "pd.DataFrame":
        """Return a data frame with a line per node: its name, its size and its examples.

        Columns as in :meth:`node`; features, the first three of a kind, rows and classes are
        given in words. -1 is the parent of the root, the cluster of an inner node and what
        decides at a leaf.
        """
        lines = []
        for index in range(self.taxonomy.tree.n_nodes):
            values = self.node(index, n_top=3, n_examples=n_examples)
            del values["children"]
            # Whole numbers, as in exchange.to_frame.
            for kind in ("parent", "cluster", "decided_by"):
                values[kind] = -1 if values[kind] is None else values[kind]
            for kind in ("features", "standout"):
                values[kind] = ", ".join(one["words"] for one in values[kind])
            for kind in _KINDS:
                values[kind] = ", ".join(one["name"] for one in values[kind])
            values["missing"] = ", ".join(
                f"{name} {format_number(100 * share, 2)} %"
                for name, share in values["missing"].items()
            )
            if self.classes is not None:
                counts = values["classes"].items()
                values["classes"] = ", ".join(f"{name} {count}" for name, count in counts)
            lines.append(values)
        return make_frame(TABLE, lines)

    def rows(self, which: Iterable[int | str] | int | str | None = None) -> "pd.DataFrame":
        """Return a data frame with a line per row and rule on its path.

        Parameters
        ----------
        which : iterable of int or str, int or str, optional
            Numbers or names of the rows, or a single one; all of them by default.

        Returns
        -------
        DataFrame
            Columns row, row_name, step, node, node_name, child (where the row goes from the
            node, as in :meth:`row`), child_name, margin, surer_than (the share of the child's
            rows with a smaller margin) and why: the features that pull most, in words.

        Raises
        ------
        TypeError, IndexError, KeyError
            If these are not numbers or names of rows. Of a mask, pass ``np.flatnonzero``.
        """
        if which is None:
            places = np.arange(self.taxonomy.tree.n_rows)
        else:
            some = [which] if isinstance(which, int | str | np.integer) else which
            places = np.array([self._place(row) for row in some], dtype=np.intp)
        leaves = _leaves(self.taxonomy, self.taxonomy.tree.labels)
        return self._step_frame(
            self._source, leaves, places, self.numbers[places], self.row_names
        )

    def place(self, X: ArrayLike, row_names: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return where new rows go, and why, in a data frame like that of :meth:`rows`.

        Parameters
        ----------
        X, row_names
            New rows, and what they are called, as :func:`explain` takes them.

        Raises
        ------
        ValueError
            If ``X`` does not have the features of the tree, in their order.
        """
        taxonomy, columns = self.taxonomy, self._columns
        # Without columns of their own, the names given must at least be in the same order.
        if columns is None and sorted(columns_of(X) or ()) == sorted(
            taxonomy.feature_names or ()
        ):
            columns = taxonomy.feature_names
        fitted = taxonomy
        if (
            taxonomy.encoding is None
        ):  # which has the names of the columns, not those given since
            check_columns(X, columns)
            names = None if columns is None else tuple(columns)
            fitted = replace(taxonomy, tree=replace(taxonomy.tree, feature_names=names))
        data, gaps = expand(X, fitted)
        names = given_names("row", row_names, index_of(X), data.shape[0])
        source = Source.of(taxonomy, data, gaps)
        leaves = _leaves(taxonomy, taxonomy.predict(Expanded(data, gaps)))
        every = np.arange(len(leaves))
        return self._step_frame(source, leaves, every, every, names)

    def to_dict(self, *, n_top: int | None = None, n_examples: int = 5) -> dict[str, Any]:
        """Return ``{"nodes": [...]}``, with each :meth:`node`, and ``"notes"`` of a sample.

        Takes the numbers that :meth:`node` takes.
        """
        nodes = range(self.taxonomy.tree.n_nodes)
        found = [self.node(n, n_top=n_top, n_examples=n_examples) for n in nodes]
        return {"nodes": found} | ({"notes": list(self.notes)} if self.notes else {})

    @property
    def data(self) -> Any:
        """The rows as features of the tree, an array or CSR matrix."""
        return self._source.data

    @property
    def weights(self) -> Array | None:
        """How many rows each row of a sample stands for; None where there is no sample."""
        return self.taxonomy.tree.weights if self.notes else None

    @property
    def least_margins(self) -> Array:
        """The least margin on the path of each row, in the order of ``taxonomy.tree.rows(0)``."""
        leaves = self.taxonomy.tree.leaves.tolist()
        return np.concatenate([self._least[leaf] for leaf in leaves])

    def places(self, rows: IndexArray) -> IndexArray:
        """Return where rows are in ``taxonomy``, ``classes`` and ``row_names``."""
        return np.searchsorted(self.numbers, rows)

    def cells(self, rows: IndexArray, feature: int) -> list[str]:
        """Return the values of some rows in a feature, or in the column of a category, as text.

        ``unknown`` where there is no value.
        """
        taxonomy, category = self.taxonomy, category_of(self.taxonomy, feature)
        cells = self._source.cells(self.places(rows), feature, category)
        if category is not None:
            return ["unknown" if code is None else category.values[code] for code in cells]
        pairs = taxonomy.two_values
        if pairs is not None and are_zero_and_one(pairs[feature]):
            texts = ["yes" if value else "no" for value in cells]
        else:
            texts = format_column(nan if value is None else value for value in cells)
        return [
            "unknown" if cell is None else text for cell, text in zip(cells, texts, strict=True)
        ]

    def row_name(self, row: int) -> str:
        """Return the name of a row, or ``row 12`` if it has none."""
        name = ""
        if self.row_names is not None:
            name = self.row_names[int(self.places(np.array(row)))].strip()
        return name or f"row {row}"

    def leading(self, node: int, n_top: int | None = None) -> list[dict[str, Any]]:
        """Return the lines of :meth:`features` of a node; takes what :meth:`node` does."""
        taxonomy = self.taxonomy
        sides: Any = [
            (
                known_mean(taxonomy, node, beside=beside),
                missing_shares(taxonomy, node, beside=beside),
            )
            for beside in (False, True)
        ]
        lines = []
        for reason in taxonomy.reasons(node, n_top):
            direction = "higher" if reason.sign > 0 else "lower"
            if reason.categories in (("known",), ("unknown",)):
                direction = reason.categories[0]
            words, both = phrase(reason), (_mean_of(reason, taxonomy, *side) for side in sides)
            said = reason.name, reason.feature, words, direction, reason.share, reason.weight
            values = *said, *map(number_or_none, both), reason.unknown
            lines.append(dict(zip(_FEATURE, values, strict=True)))
        return lines

    def _rows_with(self, rows: IndexArray, what: str, values: Array) -> list[dict[str, Any]]:
        return [
            {"row": row, "name": self.row_name(row), what: number_or_none(value)}
            for row, value in zip(self.numbers[rows].tolist(), values.tolist(), strict=True)
        ]

    def _place(self, row: int | str) -> int:
        return find_row(row, self.row_names, self.whole.tree.n_rows, self.numbers)

    def _step_frame(
        self,
        source: Source,
        leaves: IndexArray,
        chosen: IndexArray,
        numbers: IndexArray,
        row_names: Sequence[str] | None,
    ) -> "pd.DataFrame":
        """Return a frame with a line per chosen row and rule; see :func:`find_steps`.

        ``chosen`` are places of rows, and ``numbers`` what they are called by.
        """
        steps = find_steps(self, source, leaves, chosen, lambda p: "; ".join(map(str, p)))
        if row_names is None:
            called = [f"row {number}" for number in numbers.tolist()]
        else:
            called = [row_names[place] for place in chosen.tolist()]
        names = _texts(self.names)
        first = np.searchsorted(steps.places, steps.places)
        return make_frame(TABLE, {
            "row": numbers[steps.places], "row_name": _texts(called)[steps.places],
            "step": np.arange(len(steps.places)) - first + 1,
            "node": steps.nodes, "node_name": names[steps.nodes],
            "child": steps.children, "child_name": names[steps.children],
            "margin": steps.margins, "surer_than": steps.surer_than,
            "why": _texts(steps.reasons.tolist()),
        })  # fmt: skip


def _leaves(taxonomy: Taxonomy, labels: IndexArray) -> IndexArray:
    """Return the leaf of each label, -1 of noise."""
    return np.append(taxonomy.tree.leaves, -1)[labels]


def _largest(values: Array, then: Array, n: int) -> IndexArray:
    """Return the n largest values, but not the smallest; of equals, the largest in ``then``."""
    keys = np.where(np.isfinite(values), values, 0.0).round(DIGITS)
    order = np.lexsort((-then, -keys))[:n]
    found: IndexArray = order[keys[order] > keys.min()]
    return found


def _texts(texts: Sequence[str]) -> Any:
    return np.array([*texts, None], dtype=object)[:-1]


def _mean_of(reason: Reason, taxonomy: Taxonomy, means: Array, missing: Array) -> float:
    """Return the mean of a reason's feature, or the share of rows with its categories."""
    if taxonomy.encoding is None or not reason.categories:
        return float(means[reason.feature])
    unknown = float(missing[taxonomy.encoding.owner[reason.feature]])
    shares = {"known": 1.0 - unknown, "unknown": unknown}
    if (category := category_of(taxonomy, reason.feature)) is not None:
        shares |= dict(zip(category.values, category.spread(means).tolist(), strict=True))
    return float(sum(shares[name] for name in reason.categories))
