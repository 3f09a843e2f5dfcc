"""A tree with its reasons, examples and margins, as frames and as plain values."""

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.explain._frames import in_words, make_frame, step_columns
from taxarbor.explain._given import check_order, find_row, given_names, index_of
from taxarbor.explain._steps import Steps, Tell, dense_part, find_steps
from taxarbor.hierarchy import Hierarchy, Reason, check_data, rest_mean
from taxarbor.rows import Rows, as_rows

if TYPE_CHECKING:
    import pandas as pd


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation:
    """Why the rows of a tree are where they are, and how clearly; made by :func:`explain`.

    The data are not copied: do not change them while you use the explanation.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree, with rules and means. A tree that had no rules has got nearest-mean ones.
    names : tuple of str
        A short name for each node, made of the features that lead to it from its parent.
    row_names : tuple of str or None
        What the rows are called.
    margins : tuple of array or None
        For each split, the margins of the node's rows, in the order of
        ``hierarchy.rows(node)``; None for leaves. 1 is a usual row, 0 is the border.
    units : float array of shape (n_nodes,)
        The median of the absolute margins of each split, by which they were divided.
    is_yes_no : bool array of shape (n_features,)
        Which columns hold nothing but 0 and 1.
    """

    hierarchy: Hierarchy
    names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    margins: tuple[Array | None, ...]
    units: Array
    is_yes_no: NDArray[np.bool_]
    _least: tuple[Array, ...] = field(repr=False)
    _columns: Sequence[str] | None = field(repr=False)
    _rows: Rows = field(repr=False)
    _data: Any = field(repr=False)

    def __repr__(self) -> str:
        return f"Explanation({self.hierarchy!r})"

    def node(
        self, node: SupportsIndex, *, n_top: int | None = None, n_examples: int = 5
    ) -> dict[str, Any]:
        """Return what there is to say of a node, as plain values.

        Parameters
        ----------
        node : int
            Id of the node.
        n_top : int, optional
            Number of features at most, of those that pull the rows apart; None is all.
        n_examples : int
            Number of exemplars, and of borderline rows, at most.

        Returns
        -------
        dict
            ``node``, ``name``, ``parent``, ``depth``, ``n_rows``, ``children``, ``cluster``
            (the label, None for inner nodes), ``n_features`` and ``fidelity`` of its own
            rule, ``note``; ``features``, what leads here, as in :meth:`features`;
            ``exemplars``, rows deepest inside the margins of all splits above, and
            ``borderline``, rows nearest to the border between its children, or, in a leaf,
            between it and its siblings; each with row, name and margin.
        """
        tree = self.hierarchy
        parent = tree.parent(node)
        index = operator.index(node)
        is_leaf, rule = tree.is_leaf(index), tree.rules[index]
        fidelity = float(tree.fidelity[index])
        return {
            "node": index,
            "name": self.names[index],
            "parent": parent,
            "depth": int(tree.depth[index]),
            "n_rows": len(tree.rows(index)),
            "children": list(tree.children(index)),
            "cluster": int(np.flatnonzero(tree.leaves == index)[0]) if is_leaf else None,
            "n_features": 0 if rule is None else rule.n_features_used,
            "fidelity": None if math.isnan(fidelity) else fidelity,
            "note": tree.notes[index],
            "features": self.leading(index, n_top),
            "exemplars": self.exemplars(index, n_examples),
            "borderline": self.borderline(index, n_examples),
        }

    def exemplars(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows deepest inside a node: whose least margin on the way is largest.

        Parameters
        ----------
        node : int
            Id of the node.
        n_examples : int
            Number of rows at most.

        Returns
        -------
        list of dict
            ``row``, ``name`` and ``margin``, the least on its way, the largest of these first.
            Those of the root are its children's, in turn.

        Raises
        ------
        IndexError
            If there is no such node.
        """
        tree, n_examples = self.hierarchy, max(n_examples, 0)
        if tree.parent(node) is None:
            parts = [self.exemplars(child, n_examples) for child in tree.children(0)]
            turns = [part[n] for n in range(n_examples) for part in parts if n < len(part)]
            first = tree.rows(0)[:n_examples]
            return turns[:n_examples] or self._told(first, [math.nan] * len(first))
        least = self._least[operator.index(node)]
        deepest = np.argsort(-least, kind="stable")[:n_examples]
        return self._told(tree.rows(node)[deepest], least[deepest])

    def borderline(self, node: SupportsIndex, n_examples: int = 5) -> list[dict[str, Any]]:
        """Return the rows nearest to the border: between a node's children, or of a leaf.

        Takes, returns and raises what :meth:`exemplars` does. The margin is the one at this
        border, the smallest first; a tree of one leaf has no border, and no such rows.
        """
        tree, n_examples = self.hierarchy, max(n_examples, 0)
        parent, margins = tree.parent(node), self.margins[operator.index(node)]
        if margins is None:
            if parent is None:
                return []
            margins = self.margins_within(parent, node)
        nearest = np.argsort(margins, kind="stable")[:n_examples]
        return self._told(tree.rows(node)[nearest], margins[nearest])

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
        IndexError
            If there are no such nodes.
        ValueError
            If the one is not an ancestor of the other.
        """
        tree, above, below = self.hierarchy, operator.index(ancestor), operator.index(node)
        found = None if tree.is_leaf(above) else self.margins[above]
        n_rows = len(tree.rows(below))
        # Slices nest, and those of children are smaller than their parent's.
        begin = int(tree.start[below] - tree.start[above])
        is_within = begin >= 0 and tree.stop[below] <= tree.stop[above] and above != below
        if found is None or not is_within:
            raise ValueError(f"node {ancestor} is not an ancestor of node {node}")
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
            with a smaller one, whether the rule alone agrees, and the features that pull
            most, towards the child or against it.
        """
        number = self._number(row)
        leaf = int(self.hierarchy.leaves[self.hierarchy.labels[number]])
        steps = self._own_steps(np.array([number]), lambda pulls: [p._asdict() for p in pulls])
        return {
            "row": number,
            "name": None if self.row_names is None else self.row_names[number],
            "leaf": leaf,
            "cluster": int(self.hierarchy.labels[number]),
            "steps": [self._plain(step) for step in steps],
        }

    def features(self) -> "pd.DataFrame":
        """Return a data frame with a line per node and feature that leads to it.

        Returns
        -------
        DataFrame
            Columns node, name, parent, feature, direction ("higher" or "lower" values lead
            here), share (of the separation from the siblings; what is negative pulls the
            other way), weight, mean (of the node's rows), rest_mean (of the siblings').
        """
        columns = ("node", "name", "parent", *_FEATURE)
        lines = [
            {"node": node, "name": self.names[node], "parent": self.hierarchy.parent(node)}
            | values
            for node in range(1, self.hierarchy.n_nodes)
            for values in self.leading(node)
        ]
        return make_frame({name: [line[name] for line in lines] for name in columns})

    def nodes(self, *, n_examples: int = 3) -> "pd.DataFrame":
        """Return a data frame with a line per node: its name, its size and its examples.

        Columns as in :meth:`node`; the first three features, and rows, are given in words. The
        parent of the root and the cluster of an inner node are -1.
        """
        lines = []
        for index in range(self.hierarchy.n_nodes):
            values = self.node(index, n_top=3, n_examples=n_examples)
            del values["children"]
            for kind in ("parent", "cluster"):  # whole numbers, as in Hierarchy.to_frame
                values[kind] = -1 if values[kind] is None else values[kind]
            values["features"] = ", ".join(
                f"{one['direction']} {one['feature']}" for one in values["features"]
            )
            for kind in ("exemplars", "borderline"):
                values[kind] = ", ".join(str(one["name"]) for one in values[kind])
            lines.append(values)
        return make_frame({name: [line[name] for line in lines] for name in lines[0]})

    def rows(self, which: Iterable[int | str] | int | str | None = None) -> "pd.DataFrame":
        """Return a data frame with a line per row and split on its way.

        Parameters
        ----------
        which : iterable of int or str, int or str, optional
            Numbers or names of the rows, or a single one; all of them by default.

        Returns
        -------
        DataFrame
            Columns row, row_name, step, node, node_name, child, child_name, margin,
            surer_than, agrees and why: the features that pull most, in words.

        Raises
        ------
        TypeError, IndexError, KeyError
            If these are no numbers or names of rows. A mask is none: pass its
            ``np.flatnonzero``.
        """
        if which is None:
            numbers = np.arange(len(self.hierarchy.order))
        else:
            some = [which] if isinstance(which, int | str | np.integer) else which
            numbers = np.array([self._number(row) for row in some], dtype=np.intp)
        found = self._own_steps(numbers, in_words)
        tree = self.hierarchy
        return make_frame(step_columns(found, tree, self.names, numbers, self.row_names))

    def place(self, X: ArrayLike, row_names: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return where new rows go, and why: a data frame as :meth:`rows` has it.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows.
        row_names : sequence of str, optional
            What they are called.

        Raises
        ------
        ValueError
            If ``X`` does not have the features of the tree, in their order.
        """
        tree = self.hierarchy
        check_order(X, self._columns, tree.feature_names)
        data = check_data(X, tree)
        names = given_names("row", row_names, index_of(X), data.shape[0])
        chosen = np.arange(data.shape[0])
        leaves = tree.leaves[tree.predict(data)]
        source = (as_rows(data) if len(chosen) else None), data
        found = find_steps(self, source, leaves, chosen, in_words)
        return make_frame(step_columns(found, tree, self.names, chosen, names))

    def to_dict(self, *, n_top: int | None = None, n_examples: int = 5) -> dict[str, Any]:
        """Return all nodes as plain values, which JSON can hold.

        Parameters
        ----------
        n_top, n_examples : int
            Numbers of features and of rows, as :meth:`node` takes them.

        Returns
        -------
        dict
            ``nodes``, a list with what :meth:`node` says of each.
        """
        nodes = range(self.hierarchy.n_nodes)
        return {"nodes": [self.node(n, n_top=n_top, n_examples=n_examples) for n in nodes]}

    def values(self, rows: IndexArray, features: IndexArray) -> Array:
        """Return some columns of some rows, as an array."""
        return dense_part(self._data, rows, features)

    def row_name(self, row: int) -> str:
        """Return what a row is called: its name, or ``row 12`` if it has none."""
        name = "" if self.row_names is None else self.row_names[row].strip()
        return name or f"row {row}"

    def leading(self, node: int, n_top: int | None = None) -> list[dict[str, Any]]:
        """Return the features that lead to a node, as plain values; see :meth:`features`.

        Parameters
        ----------
        node : int
            Id of the node.
        n_top : int, optional
            So many at most, of those that pull the rows apart; None is all.
        """
        means, rest = self.hierarchy.means, rest_mean(self.hierarchy, node)
        if means is None or rest is None:
            return []
        return [
            _plain_reason(reason, float(means[node, j]), float(rest[j]))
            for reason in self.hierarchy.reasons(node, n_top)
            for j in [reason.feature]
        ]

    def _told(self, rows: IndexArray, margins: Iterable[float]) -> list[dict[str, Any]]:
        return [
            {"row": row, "name": self.row_name(row), "margin": _number_or_none(margin)}
            for row, margin in zip(rows.tolist(), margins, strict=False)
        ]

    def _number(self, row: int | str) -> int:
        return find_row(row, self.row_names, len(self.hierarchy.order))

    def _own_steps(self, numbers: IndexArray, tell: Tell) -> Iterator[Steps]:
        leaves = self.hierarchy.leaves[self.hierarchy.labels]
        return find_steps(self, (self._rows, self._data), leaves, numbers, tell)

    def _plain(self, steps: Steps) -> dict[str, Any]:
        """Return the only one of these steps as plain values."""
        child = int(steps.children[0])
        return {
            "node": steps.node,
            "node_name": self.names[steps.node],
            "child": child,
            "child_name": self.names[child],
            "margin": _number_or_none(steps.margins[0]),
            "surer_than": float(steps.surer_than[0]),
            "agrees": bool(steps.agrees[0]),
            "pulls": steps.told[0],
        }


_FEATURE = ("feature", "direction", "share", "weight", "mean", "rest_mean")


def _plain_reason(reason: Reason, mean: float, rest: float) -> dict[str, Any]:
    told = reason.name, "higher" if reason.sign > 0 else "lower", reason.share, reason.weight
    return dict(zip(_FEATURE, (*told, mean, rest), strict=True))


def _number_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
