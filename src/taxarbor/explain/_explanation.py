"""Reasons, examples and margins of a tree and its rows, as frames and as plain values."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.explain._names import Classes, columns_of, find_row, given_names, index_of
from taxarbor.explain._portrait import Portraits
from taxarbor.explain._steps import (
    BROKEN,
    Source,
    Steps,
    find_steps,
    number_or_none,
)
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import make_frame
from taxarbor.hierarchy._encoding import Expanded
from taxarbor.hierarchy._reasons import Reason, category_of, known_mean, missing_shares
from taxarbor.hierarchy._route import check_columns, expand
from taxarbor.hierarchy._words import format_column, format_number, phrase

if TYPE_CHECKING:
    import pandas as pd

TOP = 10  # features that stand out, unless asked otherwise
_FEATURE = (
    *("feature", "column", "words", "direction", "share", "weight", "mean", "rest_mean"),
    "missing",
)
_NO_STEPS: Any = [np.zeros(0, dtype) for dtype in (int, int, int, float, float, bool, object)]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation:
    """Why the rows of a tree are where they are, and how clearly; made by :func:`explain`.

    The data are not copied: do not change them while you use the explanation.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree, with rules, means, and for whom the rules hold. A tree that had no rules
        has nearest-mean ones.
    names : tuple of str
        A short name for each node, made of the features that lead to it from its parent.
    row_names : tuple of str or None
        What the rows are called.
    classes : Classes or None
        Known classes: their ``names``, the largest first, and ``codes``, one per row, -1 for
        rows without a class.
    margins : tuple of array or None
        For each split, the margins of the node's rows, in the order of
        ``hierarchy.rows(node)``; None for leaves. 1 is usual, 0 is the border.
    units : float array of shape (n_nodes,)
        The median of the absolute margins of each split, by which they were divided.
    whole : Hierarchy
        The tree of all rows. Where ``hierarchy`` has the rows of a sample, the numbers of rows
        that are told are those of this one.
    numbers : int array or None
        The numbers of the rows of a sample among all rows, which are what rows are called by;
        None where there is no sample.
    notes : tuple of str
        What is to be known of the explanation: that it comes from a sample of so many rows.

    Examples
    --------
    >>> from taxarbor.explain import explain
    >>> from taxarbor.exchange import from_labels
    >>> why = explain(from_labels([0, 0, 1]), [[1.0], [2.0], [9.0]])
    >>> why.names
    ('all rows', 'x0 at most 5.25', 'x0 above 5.25')
    >>> [row["row"] for row in why.borderline(0, 1)]
    [1]
    >>> [one["feature"] for one in why.standout(2)]
    ['x0']
    """

    hierarchy: Hierarchy
    names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    classes: Classes | None
    margins: tuple[Array | None, ...]
    units: Array
    whole: Hierarchy
    numbers: IndexArray | None
    notes: tuple[str, ...]
    _least: tuple[Array, ...]
    _columns: Sequence[str] | None
    _n_used: Sequence[int]
    _source: Source
    _portraits: Portraits

    def __repr__(self) -> str:
        return f"Explanation({self.hierarchy!r})"

    def node(
        self, node: SupportsIndex, *, n_top: int | None = None, n_examples: int = 5
    ) -> dict[str, Any]:
        """Return all that is known about a node, as plain values.

        Parameters
        ----------
        node : int
            Id of the node.
        n_top : int, optional
            Number of features at most, of those that pull the rows apart and of those that
            stand out; None is all of the rule's, and ten that stand out.
        n_examples : int
            Number of typical, of extreme and of borderline rows, at most.

        Returns
        -------
        dict
            ``node``, ``name``, ``parent``, ``depth``, ``n_rows``, ``children``, ``cluster``
            (the label, None for inner nodes), ``n_features`` and ``fidelity`` of its own
            rule, ``note``; ``follows``, the share of its rows for which all rules above it
            hold, ``worst_rule``, the ancestor whose rule is false for most of them, if any,
            ``worst_rule_holds``, the share for which that one holds, and ``doubt``, which
            says so in words if the rules are false for a fifth of the rows or more, else "";
            ``missing``, the share of its rows without a value, of each column that has gaps;
            ``features``, what leads here from its parent, as in :meth:`features`;
            ``standout``, ``typical``, ``extreme`` and ``borderline``, as the methods of
            these names return them. If classes are known, ``classes``, the rows of each, the
            largest first.
        """
        tree = self.hierarchy
        parent = tree.parent(node)
        index = operator.index(node)
        is_leaf = tree.is_leaf(index)
        values = {
            "node": index,
            "name": self.names[index],
            "parent": parent,
            "depth": int(tree.depth[index]),
            "n_rows": int(self.whole.sizes[index]),
            "children": list(tree.children(index)),
            "cluster": int(np.flatnonzero(tree.leaves == index)[0]) if is_leaf else None,
            "n_features": self._n_used[index],
            "note": tree.notes[index],
            "missing": self._missing(index),
            "features": self.leading(index, n_top),
            "standout": self.standout(index, TOP if n_top is None else n_top),
            "typical": self.typical(index, n_examples),
            "extreme": self.extreme(index, n_examples),
            "borderline": self.borderline(index, n_examples),
        }
        if self.classes is not None:
            counts = self.classes.count(tree.rows(index), self.weights)
            values["classes"] = {self.classes.name(code): count for code, count in counts}
        return values

    def standout(self, node: SupportsIndex, n_top: int = TOP) -> list[dict[str, Any]]:
        """Return the features in which a node's rows differ most from all others.

        Parameters
        ----------
        node, n_top : int
            Id of the node, and the number of features at most.

        Returns
        -------
        list of dict
            ``feature``, its ``column``, ``words`` such as "higher age", and its ``effect``:
            the difference of the means, in standard deviations, from -1 to 1, where the
            feature alone tells the node's rows from all others; the largest first. ``mean``
            of the node's rows and ``all_mean`` of all rows. ``share`` and ``all_share``, of
            rows that have it, for yes-no features, else None. ``missing``, the share of the
            node's rows without a value, which count in nothing else. ``counts`` of the node's
            rows and ``all_counts`` of all rows in bins that have these ``edges``; rows beyond
            are in the outer bins. Of a category, the value that differs most is given. The
            root has none.
        """
        return self._portraits.standout(self.hierarchy, node, n_top)

    def typical(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows nearest to the mean of a node's rows.

        Columns are measured in standard deviations over all rows, so that units do not
        matter. The rows of an inner node lie in the middle of all its clusters, and need not
        be typical of any of them.

        Parameters
        ----------
        node, n_examples : int
            Id of the node, and the number of rows at most.

        Returns
        -------
        list of dict
            ``row``, ``name`` and ``distance``, the smallest first; 1 is the median of the
            node's rows.

        Raises
        ------
        IndexError
            If there is no such node.
        """
        rows, means = self.hierarchy.rows(node), self.hierarchy.means
        assert means is not None
        mean = means[operator.index(node)].astype(np.float64)
        distances = self._portraits.distances(rows, mean)
        nearest = np.argsort(distances, kind="stable")[: max(n_examples, 0)]
        return self._told(rows[nearest], "distance", distances[nearest])

    def extreme(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows deepest inside a node: those with the largest least margin.

        Takes and raises what :meth:`typical` does. Instead of the distance there is the
        ``margin``, the least on the row's path, the largest of these first. Those of the root
        are its children's, in turn.
        """
        tree, n_examples = self.hierarchy, max(n_examples, 0)
        if tree.parent(node) is None:
            parts = [self.extreme(child, n_examples) for child in tree.children(0)]
            turns = [part[n] for n in range(n_examples) for part in parts if n < len(part)]
            return turns[:n_examples]
        least = self._least[operator.index(node)]
        deepest = np.argsort(-least, kind="stable")[:n_examples]
        return self._told(tree.rows(node)[deepest], "margin", least[deepest])

    def borderline(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows nearest to the border: between a node's children, or of a leaf.

        Takes, returns and raises what :meth:`extreme` does. The margin is the one at this
        border, the smallest first. A tree of one leaf has no border, and neither such rows
        nor extreme ones.
        """
        tree, n_examples = self.hierarchy, max(n_examples, 0)
        parent, margins = tree.parent(node), self.margins[operator.index(node)]
        if margins is None:
            if parent is None:
                return []
            margins = self.margins_within(parent, node)
        nearest = np.argsort(margins, kind="stable")[:n_examples]
        return self._told(tree.rows(node)[nearest], "margin", margins[nearest])

    def _missing(self, node: int) -> dict[str, float]:
        tree = self.hierarchy
        if tree.missing is None or tree.encoding is None:
            return {}
        shares = zip(tree.encoding.columns, tree.missing[node].tolist(), strict=True)
        return {column.label: share for column, share in shares if share > 0.0}

    def margins_within(self, ancestor: SupportsIndex, node: SupportsIndex) -> Array:
        """Return the margins of a node's rows at the split of one of its ancestors.

        Parameters
        ----------
        ancestor, node : int
            Ids of the nodes.

        Returns
        -------
        float array
            In the order of ``hierarchy.rows(node)``.

        Raises
        ------
        IndexError, ValueError
            If there are no such nodes, or the first is not an ancestor of the second.
        """
        tree, above, below = self.hierarchy, operator.index(ancestor), operator.index(node)
        found = None if tree.is_leaf(above) else self.margins[above]
        n_rows = len(tree.rows(below))
        # Slices nest, and those of children are smaller than their parent's.
        begin = int(tree.start[below] - tree.start[above])
        is_within = begin >= 0 and tree.stop[below] <= tree.stop[above] and above != below
        if found is None or not is_within:
            raise InputError(f"node {ancestor} is not an ancestor of node {node}")
        return found[begin : begin + n_rows]

    def row(self, row: int | str) -> dict[str, Any]:
        """Return why a row is where it is, as plain values.

        Parameters
        ----------
        row : int or str
            Its number or its name.

        Returns
        -------
        dict
            ``row``, ``name``, ``leaf``, ``cluster`` and ``steps``, from the root down: the
            node, the child it is in, their names, the margin, the share of the child's rows
            with a smaller one, whether the rule holds for this row, and the features that
            pull most, towards the child or against it, in words and as values. ``follows``
            says whether all rules on its path hold. Noise has no leaf, cluster -1 and no steps.
        """
        place, tree = self._place(row), self.hierarchy
        leaves = _leaves(tree, tree.labels)
        found = find_steps(self, self._source, leaves, np.array([place]), tuple)
        steps = [
            {
                "node": (node := int(step.nodes[0])),
                "node_name": self.names[node],
                "child": (child := int(step.children[0])),
                "child_name": self.names[child],
                "margin": number_or_none(step.margins[0]),
                "surer_than": float(step.surer_than[0]),
                "holds": (holds := bool(step.holds[0])),
                "why": _why("; ".join(map(str, step.told[0])), holds),
                "pulls": [pull._asdict() for pull in step.told[0]],
            }
            for step in found
        ]
        return {
            "row": place if self.numbers is None else int(self.numbers[place]),
            "name": None if self.row_names is None else self.row_names[place],
            "leaf": int(leaves[place]) if leaves[place] >= 0 else None,
            "cluster": int(tree.labels[place]),
            "follows": all(step["holds"] for step in steps),
            "steps": steps,
        }

    def features(self) -> "pd.DataFrame":
        """Return a data frame with a line per node and feature that leads to it.

        Returns
        -------
        DataFrame
            Columns node, name, parent, feature, its column, words (what is so here),
            direction ("higher" or "lower" values lead here), share (of the separation from
            the siblings; a negative one pulls the other way), weight, mean (of the node's
            rows that have a value; of a category, the share with the values in words),
            rest_mean (of the siblings') and missing (the share of the node's rows without).
        """
        lines = [
            (node, self.names[node], self.hierarchy.parent(node), *values.values())
            for node in range(1, self.hierarchy.n_nodes)
            for values in self.leading(node)
        ]
        return make_frame(
            "a table of explanations", lines, ("node", "name", "parent", *_FEATURE)
        )

    def nodes(self, *, n_examples: int = 3) -> "pd.DataFrame":
        """Return a data frame with a line per node: its name, its size and its examples.

        Columns as in :meth:`node`; features, the first three of a kind, rows and classes are
        given in words. -1 is the parent of the root, the cluster of an inner node, and the
        worst rule where all hold.
        """
        lines = []
        for index in range(self.hierarchy.n_nodes):
            values = self.node(index, n_top=3, n_examples=n_examples)
            del values["children"]
            # Whole numbers, as in exchange.to_frame.
            for kind in ("parent", "cluster"):
                values[kind] = -1 if values[kind] is None else values[kind]
            for kind in ("features", "standout"):
                values[kind] = ", ".join(one["words"] for one in values[kind])
            for kind in ("typical", "extreme", "borderline"):
                values[kind] = ", ".join(one["name"] for one in values[kind])
            told = values["missing"].items()
            values["missing"] = ", ".join(
                f"{name} {format_number(100 * share, 2)} %" for name, share in told
            )
            if self.classes is not None:
                counts = values["classes"].items()
                values["classes"] = ", ".join(f"{name} {count}" for name, count in counts)
            lines.append(values)
        return make_frame("a table of explanations", lines)

    def rows(self, which: Iterable[int | str] | int | str | None = None) -> "pd.DataFrame":
        """Return a data frame with a line per row and split on its path.

        Parameters
        ----------
        which : iterable of int or str, int or str, optional
            Numbers or names of the rows, or a single one; all of them by default.

        Returns
        -------
        DataFrame
            Columns row, row_name, step, node, node_name, child, child_name, margin,
            surer_than, holds (whether the rule does for this row) and why: the features that
            pull most, in words.

        Raises
        ------
        TypeError, IndexError, KeyError
            If these are not numbers or names of rows. Of a mask, pass ``np.flatnonzero``.
        """
        if which is None:
            places = np.arange(self.hierarchy.n_rows)
        else:
            some = [which] if isinstance(which, int | str | np.integer) else which
            places = np.array([self._place(row) for row in some], dtype=np.intp)
        leaves = _leaves(self.hierarchy, self.hierarchy.labels)
        numbers = places if self.numbers is None else self.numbers[places]
        return self._step_frame(self._source, leaves, places, numbers, self.row_names)

    def place(self, X: ArrayLike, row_names: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return where new rows go, and why, in a data frame like that of :meth:`rows`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows, or a table of them.
        row_names : sequence of str, optional
            What they are called; by default the index of a data frame that has names.

        Raises
        ------
        ValueError
            If ``X`` does not have the features of the tree, in their order.
        """
        tree, columns = self.hierarchy, self._columns
        # Without columns of their own, the names given must at least be in the same order.
        if columns is None and sorted(columns_of(X) or ()) == sorted(tree.feature_names or ()):
            columns = tree.feature_names
        if tree.encoding is None:
            check_columns(X, columns)
        data, gaps = expand(X, tree)
        names = given_names("row", row_names, index_of(X), data.shape[0])
        source = Source.of(tree, data, gaps)
        leaves = _leaves(tree, tree.predict(Expanded(data, gaps)))
        every = np.arange(len(leaves))
        return self._step_frame(source, leaves, every, every, names)

    def to_dict(self, *, n_top: int | None = None, n_examples: int = 5) -> dict[str, Any]:
        """Return ``{"nodes": [...]}``, all nodes as plain values that JSON can hold.

        Of a sample, there are its ``"notes"``, too.

        Parameters
        ----------
        n_top, n_examples : int
            As :meth:`node` takes them.
        """
        nodes = range(self.hierarchy.n_nodes)
        told = [self.node(n, n_top=n_top, n_examples=n_examples) for n in nodes]
        return {"nodes": told} | ({"notes": list(self.notes)} if self.notes else {})

    @property
    def data(self) -> Any:
        """The rows as features of the tree, an array or CSR matrix."""
        return self._source.data

    @property
    def weights(self) -> Array | None:
        """How many rows each row of a sample stands for; None where there is no sample."""
        return None if self.numbers is None else self.hierarchy.weights

    def places(self, rows: IndexArray) -> IndexArray:
        """Return where rows are in ``hierarchy``, ``classes`` and ``row_names``.

        Their numbers, unless there is a sample.
        """
        return rows if self.numbers is None else np.searchsorted(self.numbers, rows)

    def shares_within(self, node: int, order: IndexArray) -> Array:
        """Return the share of a node's rows before each place of an order, and before its end.

        ``order`` is of ``hierarchy.rows(node)``.
        """
        if self.weights is None:
            return np.arange(len(order) + 1) / len(order)
        sums = np.cumsum(self.weights[self.hierarchy.rows(node)[order]])
        found: Array = np.append(0.0, sums) / sums[-1]
        return found

    def cells(self, rows: IndexArray, feature: int) -> list[str]:
        """Return what some rows have in a feature, in words: that of a category is its column.

        ``unknown`` where there is no value.
        """
        tree, category = self.hierarchy, category_of(self.hierarchy, feature)
        cells = self._source.cells(self.places(rows), feature, category)
        if category is not None:
            return ["unknown" if code is None else category.values[code] for code in cells]
        if tree.yes_no is not None and tree.yes_no[feature]:
            told = ["yes" if value else "no" for value in cells]
        else:
            told = format_column(nan if value is None else value for value in cells)
        return [
            "unknown" if cell is None else text for cell, text in zip(cells, told, strict=True)
        ]

    def row_name(self, row: int) -> str:
        """Return what a row is called: its name, or ``row 12`` if it has none."""
        name = ""
        if self.row_names is not None:
            name = self.row_names[int(self.places(np.array(row)))].strip()
        return name or f"row {row}"

    def leading(self, node: int, n_top: int | None = None) -> list[dict[str, Any]]:
        """Return what :meth:`features` says of a node, as plain values.

        Parameters
        ----------
        node, n_top : int
            As :meth:`node` takes them.
        """
        tree = self.hierarchy
        sides: Any = [
            (known_mean(tree, node, beside=beside), missing_shares(tree, node, beside=beside))
            for beside in (False, True)
        ]
        lines = []
        for reason in tree.reasons(node, n_top):
            direction = "higher" if reason.sign > 0 else "lower"
            words, share = phrase(reason), reason.share
            told = reason.name, reason.feature, words, direction, share, reason.weight
            both = (number_or_none(_mean_of(reason, tree, *side)) for side in sides)
            lines.append(dict(zip(_FEATURE, (*told, *both, reason.unknown), strict=True)))
        return lines

    def _told(self, rows: IndexArray, what: str, values: Array) -> list[dict[str, Any]]:
        numbers = rows if self.numbers is None else self.numbers[rows]
        return [
            {"row": row, "name": self.row_name(row), what: number_or_none(value)}
            for row, value in zip(numbers.tolist(), values.tolist(), strict=True)
        ]

    def _place(self, row: int | str) -> int:
        return find_row(row, self.row_names, self.whole.n_rows, self.numbers)

    def _step_frame(
        self,
        source: Source,
        leaves: IndexArray,
        chosen: IndexArray,
        numbers: IndexArray,
        row_names: Sequence[str] | None,
    ) -> "pd.DataFrame":
        """Return a frame with a line per chosen row and split; see :func:`find_steps`.

        ``chosen`` are places of rows, and ``numbers`` what they are called by.
        """
        tree = self.hierarchy
        found = find_steps(self, source, leaves, chosen, lambda p: "; ".join(map(str, p)))
        joined: Any = [np.concatenate(parts) for parts in zip(_NO_STEPS, *found, strict=True)]
        # Parents come first, and a stable sort keeps it so: each path begins at the root.
        order = np.argsort(joined[0], kind="stable")
        steps = Steps(*(part[order] for part in joined))
        if row_names is None:
            called = [f"row {number}" for number in numbers.tolist()]
        else:
            called = [row_names[place] for place in chosen.tolist()]
        told = list(map(_why, steps.told, steps.holds.tolist()))
        names = _texts(self.names)
        return make_frame("a table of explanations", {
            "row": numbers[steps.places], "row_name": _texts(called)[steps.places],
            "step": tree.depth[steps.nodes] + 1,
            "node": steps.nodes, "node_name": names[steps.nodes],
            "child": steps.children, "child_name": names[steps.children],
            "margin": steps.margins, "surer_than": steps.surer_than, "holds": steps.holds,
            "why": _texts(told),
        })  # fmt: skip


def _leaves(tree: Hierarchy, labels: IndexArray) -> IndexArray:
    """Return the leaf of each label, -1 of noise."""
    return np.append(tree.leaves, -1)[labels]


def _why(pulls: str, holds: bool) -> str:
    return "; ".join(filter(None, (pulls, "" if holds else BROKEN)))


def _texts(texts: Sequence[str]) -> Any:
    return np.array([*texts, None], dtype=object)[:-1]


def _mean_of(reason: Reason, tree: Hierarchy, means: Array, missing: Array) -> float:
    """Return the mean of a reason's feature, or the share of rows that it speaks of."""
    category = category_of(tree, reason.feature)
    if category is None or tree.encoding is None:
        return float(means[reason.feature])
    shares = dict(zip(category.values, category.spread(means).tolist(), strict=True))
    unknown = float(missing[tree.encoding.owner[reason.feature]])
    shares = {"known": 1.0 - unknown, "unknown": unknown} | shares
    return float(sum(shares[name] for name in reason.categories))
