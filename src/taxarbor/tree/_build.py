"""The tree on its way: leaves are split, rows move, rules come; then it is frozen, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import nan
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor import native
from taxarbor._types import IndexArray, SolveInfo
from taxarbor.tree._rule import LinearRule
from taxarbor.tree._tree import Tree, node_id, number_rows


@dataclass(slots=True, eq=False)
class _Node:
    """What is known of one node."""

    start: int
    stop: int
    parent: int
    birth: int
    depth: int
    score: float = nan
    objective: float = nan
    info: SolveInfo | None = None
    rule: LinearRule | None = None
    note: str = ""


@final
class TreeBuilder:
    """Grows a tree from its root by splitting leaves.

    A split costs time in proportion to the rows of the node. Nodes are numbered as they are
    made: the root is 0, siblings are consecutive. In the end the root has a rule or no node has
    one; a rule chooses among the next nodes below that are leaves or have a rule. An interrupt
    at any moment leaves a whole tree. Where leaves are only cut, and nobody asks for rows,
    there is no array of all rows.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data, all owned by the root.

    Raises
    ------
    ValueError
        If there is no row.

    Examples
    --------
    >>> from taxarbor.tree import TreeBuilder
    >>> builder = TreeBuilder(4)
    >>> builder.add_split(0, [1, 0, 1, 1])
    (1, 2)
    >>> builder.freeze().labels
    array([1, 0, 1, 1])
    """

    def __init__(self, n_rows: int) -> None:
        if n_rows < 1:
            raise ValueError(f"a tree needs at least one row, got {n_rows}")
        self._rows: IndexArray | None = None  # until it is asked for: all rows as they come
        self._knows_rows = True
        self._nodes = [_Node(0, n_rows, parent=-1, birth=0, depth=0)]
        # A split counts from the moment it stands here; nodes beyond the last one do not.
        self._splits: dict[int, range] = {}

    @property
    def n_nodes(self) -> int:
        """Number of nodes so far."""
        return next(reversed(self._splits.values())).stop if self._splits else 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves so far."""
        return self.n_nodes - len(self._splits)

    @property
    def inner(self) -> tuple[int, ...]:
        """The nodes that were split, in that order."""
        return tuple(self._splits)

    @property
    def parents(self) -> list[int]:
        """Id of each node's parent, -1 for the root."""
        return [node.parent for node in self._nodes[: self.n_nodes]]

    @property
    def leaves(self) -> list[int]:
        """The leaves from left to right."""
        leaves = [node for node in range(self.n_nodes) if node not in self._splits]
        return sorted(leaves, key=lambda node: self._nodes[node].start)

    @property
    def _order(self) -> IndexArray:
        """The rows from left to right, to be written to."""
        if not self._knows_rows:
            raise ValueError("the leaves were given sizes: their rows are not known")
        if self._rows is None:
            self._rows = np.arange(self._nodes[0].stop, dtype=np.intp)
        return self._rows

    @property
    def labels(self) -> IndexArray:
        """The position of each row's leaf among the leaves."""
        return number_rows(self._order, [self.size(leaf) for leaf in self.leaves])

    def depth(self, node: int) -> int:
        """Return the number of splits above the node."""
        return self._node(node).depth

    def size(self, node: int) -> int:
        """Return the number of rows of the node."""
        owner = self._node(node)
        return owner.stop - owner.start

    def rows(self, node: int) -> IndexArray:
        """Return the row numbers of the node, a copy that later splits leave alone."""
        owner = self._node(node)
        return self._order[owner.start : owner.stop].copy()

    def children(self, node: int) -> tuple[int, ...]:
        """Return the ids of the children from left to right, () for a leaf."""
        return tuple(self._splits.get(node, ()))

    def note(self, node: int) -> str:
        """Return why this leaf could not be split, or ""."""
        return self._node(node).note

    def lineage(self, node: int) -> tuple[tuple[int, ...], tuple[LinearRule, ...]]:
        """Return which child to take at each ancestor, from the root down, and their rules."""
        node = node_id(node, self.n_nodes)
        path: list[int] = []
        rules: list[LinearRule] = []
        while node > 0:
            parent = self._nodes[node].parent
            path.append(node - self._splits[parent].start)
            rule = self._nodes[parent].rule
            if rule is not None:
                rules.append(rule)
            node = parent
        return tuple(reversed(path)), tuple(reversed(rules))

    def add_split(
        self, node: int, labels: ArrayLike, rule: LinearRule | None = None
    ) -> tuple[int, ...]:
        """Split a leaf, and return the ids of its children.

        Parameters
        ----------
        node : int
            Id of the leaf.
        labels : int array
            The child, from 0 on, of each row of the node, in the order of ``rows(node)``.
            Rows keep their order within a child.
        rule : LinearRule, optional
            How new rows are sent to the children. A tree without rules cannot predict. For
            rules that look further down, split without rules, then call :meth:`explain`.

        Raises
        ------
        ValueError
            If the node was split before, the labels do not fit the node or the rule, a
            child would be empty, or only some splits would have a rule.
        """
        leaf = self._leaf(node)
        first, n_children = self._nodes[0].rule, None if rule is None else rule.n_targets
        if self._splits and (first is None) != (rule is None):
            had, comes = ("none", "one") if first is None else ("one", "none")
            raise ValueError(
                "either all splits have a rule or none has: the first split had "
                f"{had}, now there is {comes}"
            )
        kinds = {(one.dtype, len(one.center)) for one in (first, rule) if one is not None}
        if len(kinds) > 1:
            raise ValueError(f"all rules must be of one kind: first {first}, now {rule}")
        children, sizes = _checked_labels(labels, leaf.stop - leaf.start, n_children)
        own = self._order[leaf.start : leaf.stop]
        own[:] = own[native.sort_by_label(children.astype(np.int32), len(sizes))]
        leaf.rule = rule
        return self.cut(node, (leaf.start + np.cumsum(sizes)[:-1]).tolist())

    def cut(self, node: int, places: Sequence[int]) -> tuple[int, ...]:
        """Split a leaf before these places in the order of all rows, without a rule."""
        leaf, n_nodes = self._leaf(node), self.n_nodes
        del self._nodes[n_nodes:]
        birth, depth = len(self._splits) + 1, leaf.depth + 1
        for start, stop in pairwise((leaf.start, *places, leaf.stop)):
            self._nodes.append(_Node(start, stop, int(node), birth, depth))
        leaf.note = ""
        made = range(n_nodes, len(self._nodes))
        self._splits[int(node)] = made
        return tuple(made)

    def divide(self, node: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """Split a leaf into children of these sizes, without a rule or rows."""
        start = self._node(node).start
        return self.cut(node, [start + size for size in accumulate(sizes[:-1])])

    def record(
        self, node: int, *, score: float, objective: float, info: SolveInfo | None
    ) -> None:
        """Keep what is known of the node's split, applied or only a candidate."""
        owner = self._node(node)
        owner.score, owner.objective, owner.info = float(score), float(objective), info

    def recorded(self, node: int) -> dict[str, Any]:
        """Return what is known of the node's split: what ``record`` takes."""
        owner = self._node(node)
        return {"score": owner.score, "objective": owner.objective, "info": owner.info}

    def refuse(self, node: int, reason: str) -> None:
        """Keep the reason why this leaf cannot be split."""
        self._leaf(node).note = reason

    def resize(self, sizes: IndexArray) -> None:
        """Give the leaves other numbers of rows, and forget which rows; the shape stays.

        Of the leaves from left to right, none empty. Their sum may be another than before.
        """
        n_leaves = self.n_leaves
        if np.shape(sizes) != (n_leaves,) or not (np.asarray(sizes) > 0).all():
            raise ValueError(f"sizes must be {n_leaves} positive numbers, one for each leaf")
        stops = np.cumsum(sizes)
        for leaf, start, stop in zip(self.leaves, stops - sizes, stops, strict=True):
            self._nodes[leaf].start, self._nodes[leaf].stop = int(start), int(stop)
        for node in reversed(self.inner):
            own, owner = self._splits[node], self._nodes[node]
            owner.start, owner.stop = self._nodes[own[0]].start, self._nodes[own[-1]].stop
        self._rows, self._knows_rows = None, False

    def explain(self, node: int, rule: LinearRule) -> None:
        """Give a node that was split a rule.

        Its targets are the next nodes below, from left to right, that are leaves or have a
        rule when the tree is frozen: ValueError is raised then if there are more or fewer.
        """
        if node not in self._splits:
            raise ValueError(f"node {node} was not split, and has nothing to choose among")
        self._node(node).rule = rule

    def freeze(
        self,
        *,
        feature_names: Sequence[str] | None = None,
        order: IndexArray | Literal[False] | None = None,
    ) -> Tree:
        """Return the tree as it is now; the builder may go on.

        Parameters
        ----------
        feature_names, order : optional
            Fields of the tree; the order is the builder's by default, and False for a tree
            that holds counts, not rows.
        """
        nodes = self._nodes[: self.n_nodes]
        names = "start", "stop", "birth", "score", "objective"
        columns: Any = {name: np.array([getattr(n, name) for n in nodes]) for name in names}
        rows = self._order if order is None else None if order is False else order
        return Tree(
            **columns,
            order=rows,
            parents=np.array(self.parents),
            # An interrupted split may have left its rule.
            rules=tuple(n.rule if i in self._splits else None for i, n in enumerate(nodes)),
            info=tuple(node.info for node in nodes),
            notes=tuple(node.note for node in nodes),
            feature_names=None if feature_names is None else tuple(map(str, feature_names)),
        )

    def _node(self, node: int) -> _Node:
        return self._nodes[node_id(node, self.n_nodes)]

    def _leaf(self, node: int) -> _Node:
        leaf = self._node(node)
        if node in self._splits:
            raise ValueError(f"node {node} has been split before")
        return leaf


def _checked_labels(
    labels: ArrayLike, n_rows: int, n_children: int | None
) -> tuple[NDArray[np.integer], IndexArray]:
    """Return the labels and the sizes; without a rule, the largest label says how many."""
    array = np.asarray(labels)
    if array.shape != (n_rows,) or array.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be {n_rows} integers, one per row of the node, "
            f"got {array.dtype} of shape {array.shape}"
        )
    least, most = int(array.min()), int(array.max())
    if n_children is None:
        # No more than rows, as counting the empty ones could take all the memory.
        n_children, why = max(2, min(most + 1, n_rows)), f"the node has {n_rows} rows"
    else:
        why = f"the rule has {n_children} targets"
    if least < 0 or most >= n_children:
        raise ValueError(
            f"labels must be 0 to {n_children - 1}, as {why}, got {least} to {most}"
        )
    children = array.astype(np.min_scalar_type(n_children))
    counts = np.bincount(children, minlength=n_children)
    if not counts.all():
        raise ValueError(f"child {int(counts.argmin())} would be empty")
    return children, counts
