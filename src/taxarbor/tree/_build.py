"""The tree on its way: leaves are split, rows move, rules come; then it is frozen, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import nan
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor import native
from taxarbor._types import IndexArray, SolveInfo
from taxarbor.tree.rule import LinearRule
from taxarbor.tree.tree import Tree, node_id, number_rows


@dataclass(slots=True, eq=False)
class _Node:
    """What is known of one node."""

    start: int
    stop: int
    parent: int
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
    at any moment leaves a whole tree. Where leaves are divided by sizes alone, there is no
    array of all rows.

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
        self._nodes = [_Node(0, n_rows, parent=-1)]
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

    def path(self, node: int) -> tuple[int, ...]:
        """Return which child to take at each node above, from the root down."""
        return tuple(below - self._splits[at].start for at, below in self._steps(node))

    def rules_above(self, node: int) -> tuple[LinearRule, ...]:
        """Return the rules of the nodes above that have one, from the root down."""
        rules = (self._nodes[at].rule for at, _ in self._steps(node))
        return tuple(rule for rule in rules if rule is not None)

    def _steps(self, node: int) -> list[tuple[int, int]]:
        """Return each node above, from the root down, and its child on the way to the node."""
        steps = []
        while (parent := self._node(node).parent) >= 0:
            steps.append((parent, node))
            node = parent
        return steps[::-1]

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
            rules that look further down, split without rules, then call :meth:`set_rule`.

        Raises
        ------
        ValueError
            If the node was split before, or the labels do not fit the node or the rule. Rules
            that do not fit together are refused when the tree is frozen.
        """
        leaf = self._leaf(node)
        array, n_rows = np.asarray(labels), leaf.stop - leaf.start
        if array.shape != (n_rows,) or array.dtype.kind not in "iu":
            raise ValueError(
                f"labels must be {n_rows} integers, one per row of the node, "
                f"got {array.dtype} of shape {array.shape}"
            )
        # There cannot be more children than rows; counting them could take all the memory.
        most = max(min(int(array.max()), n_rows), 1)
        n_children = most + 1 if rule is None else rule.n_targets
        sizes = np.zeros(n_children, dtype=np.intp)
        if array.min() >= 0 and array.max() < n_children:
            sizes = np.bincount(array.astype(np.intp), minlength=n_children)
        if not sizes.all():
            raise ValueError(
                f"labels must be 0 to {n_children - 1}, each of at least one row, "
                f"got {np.unique(array)[:10]}"
            )
        own = self._order[leaf.start : leaf.stop]
        own[:] = own[native.sort_by_label(array.astype(np.int32), n_children)]
        leaf.rule = rule
        return self.divide(node, sizes.tolist())

    def divide(self, node: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """Split a leaf into children of these sizes, in the order of its rows, and no rule."""
        leaf, n_nodes = self._leaf(node), self.n_nodes
        del self._nodes[n_nodes:]
        for start, stop in pairwise(accumulate(sizes, initial=leaf.start)):
            self._nodes.append(_Node(start, stop, int(node)))
        leaf.note = ""
        made = range(n_nodes, len(self._nodes))
        self._splits[int(node)] = made
        return tuple(made)

    def record(
        self, node: int, score: float, objective: float = nan, info: SolveInfo | None = None
    ) -> None:
        """Keep what is known of the node's split, applied or only a candidate."""
        owner = self._node(node)
        owner.score, owner.objective, owner.info = float(score), float(objective), info

    def recorded(self, node: int) -> tuple[float, float, SolveInfo | None]:
        """Return what is known of the node's split, as ``record`` takes it."""
        owner = self._node(node)
        return owner.score, owner.objective, owner.info

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

    def set_rule(self, node: int, rule: LinearRule) -> None:
        """Give a node that was split a rule.

        Its targets are the next nodes below, from left to right, that are leaves or have a
        rule when the tree is frozen: ValueError is raised then if there are more or fewer.
        """
        if node not in self._splits:
            raise ValueError(f"node {node} was not split, and has nothing to choose among")
        self._node(node).rule = rule

    def freeze(self, *, with_rows: bool = True) -> Tree:
        """Return the tree as it is now, of counts or with its rows; the builder may go on."""
        nodes = self._nodes[: self.n_nodes]
        return Tree(
            parents=np.array([node.parent for node in nodes]),
            sizes=np.array([node.stop - node.start for node in nodes]),
            # An interrupted split may have left its rule.
            rules=tuple(n.rule if i in self._splits else None for i, n in enumerate(nodes)),
            score=np.array([node.score for node in nodes]),
            objective=np.array([node.objective for node in nodes]),
            info=tuple(node.info for node in nodes),
            notes=tuple(node.note for node in nodes),
            order=self._order if with_rows else None,
        )

    def _node(self, node: int) -> _Node:
        return self._nodes[node_id(node, self.n_nodes)]

    def _leaf(self, node: int) -> _Node:
        leaf = self._node(node)
        if node in self._splits:
            raise ValueError(f"node {node} has been split before")
        return leaf
