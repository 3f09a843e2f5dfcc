"""The tree while it grows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._types import IndexArray, SolveInfo
from taxarbor.hierarchy._rule import LinearRule, Placement
from taxarbor.hierarchy._tree import Hierarchy


@dataclass(slots=True, eq=False)
class _Node:
    start: int
    stop: int
    parent: int
    birth: int
    depth: int
    is_split: bool = False
    score: float = nan
    objective: float = nan
    rule: LinearRule | None = None
    fidelity: float = nan
    info: SolveInfo | None = None
    note: str = ""


@final
class HierarchyBuilder:
    """Grows a tree from its root by splitting leaves.

    A split costs time in proportion to the rows of the node. Either all splits have a
    rule or none has.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data, all owned by the root.
    feature_names : sequence of str, optional
        Names of the columns.

    Raises
    ------
    ValueError
        If there is no row.
    """

    def __init__(self, n_rows: int, feature_names: Sequence[str] | None = None) -> None:
        if n_rows < 1:
            raise ValueError(f"a hierarchy needs one row at least, got {n_rows}")
        self._names = None if feature_names is None else tuple(str(n) for n in feature_names)
        self._order = np.arange(n_rows, dtype=np.intp)
        self._nodes = [_Node(0, n_rows, parent=-1, birth=0, depth=0)]
        self._n_splits = 0

    @property
    def n_nodes(self) -> int:
        """Number of nodes so far."""
        return len(self._nodes)

    @property
    def n_leaves(self) -> int:
        """Number of leaves so far."""
        return len(self._nodes) - self._n_splits

    def depth(self, node: int) -> int:
        """Return the number of splits above the node."""
        return self._node(node).depth

    def n_rows(self, node: int) -> int:
        """Return the number of rows of the node."""
        owner = self._node(node)
        return owner.stop - owner.start

    def rows(self, node: int) -> IndexArray:
        """Return the row numbers of the node, a copy that later splits leave alone."""
        owner = self._node(node)
        return self._order[owner.start : owner.stop].copy()

    def add_split(
        self,
        node: int,
        labels: ArrayLike,
        rule: LinearRule | None = None,
        *,
        fidelity: float = nan,
    ) -> tuple[int, ...]:
        """Split a leaf.

        Parameters
        ----------
        node : int
            Id of the leaf.
        labels : int array
            The child, from 0 on, of each row of the node, in the order of ``rows(node)``.
            Rows keep their order within a child.
        rule : LinearRule, optional
            How new rows are sent to the children. A tree without rules cannot predict,
            unless it has a placement.
        fidelity : float
            The share of the node's rows that the rule sends to their own child; NaN where
            that is not known.

        Returns
        -------
        tuple of int
            Ids of the children.

        Raises
        ------
        ValueError
            If the node was split before, the labels do not fit the node or the rule, a
            child would be empty, only some splits would have a rule, or the fidelity is no
            share or that of no rule.
        """
        leaf = self._leaf(node)
        self._check_rule(rule)
        _check_fidelity(fidelity, rule)
        n_children = None if rule is None else rule.n_children
        children = _checked_labels(labels, leaf.stop - leaf.start, n_children)
        own = self._order[leaf.start : leaf.stop]
        own[:] = own[np.argsort(children, kind="stable")]
        stops = leaf.start + np.cumsum(np.bincount(children))
        self._n_splits += 1
        start = leaf.start
        for stop in stops.tolist():
            child = _Node(start, stop, int(node), birth=self._n_splits, depth=leaf.depth + 1)
            self._nodes.append(child)
            start = stop
        leaf.is_split, leaf.rule, leaf.note = True, rule, ""
        leaf.fidelity = float(fidelity)
        return tuple(range(self.n_nodes - len(stops), self.n_nodes))

    def record(
        self, node: int, *, score: float, objective: float, info: SolveInfo | None
    ) -> None:
        """Keep what is known of the node's split, applied or only a candidate."""
        owner = self._node(node)
        owner.score, owner.objective, owner.info = float(score), float(objective), info

    def refuse(self, node: int, reason: str) -> None:
        """Keep the reason why this leaf cannot be split."""
        self._leaf(node).note = reason

    def freeze(self, placement: Placement | None = None) -> Hierarchy:
        """Return the tree as it is now; the builder may go on.

        Parameters
        ----------
        placement : Placement, optional
            What sends new rows to the leaves instead of the rules, which then need not be.

        Raises
        ------
        ValueError
            If the placement does not fit the leaves, the rules or the feature names.
        """
        nodes = self._nodes
        return Hierarchy(
            order=self._order,
            start=np.array([node.start for node in nodes]),
            stop=np.array([node.stop for node in nodes]),
            parents=np.array([node.parent for node in nodes]),
            birth=np.array([node.birth for node in nodes]),
            score=np.array([node.score for node in nodes]),
            objective=np.array([node.objective for node in nodes]),
            rules=tuple(node.rule for node in nodes),
            info=tuple(node.info for node in nodes),
            notes=tuple(node.note for node in nodes),
            feature_names=self._names,
            fidelity=np.array([node.fidelity for node in nodes]),
            placement=placement,
        )

    def _node(self, node: int) -> _Node:
        if not 0 <= node < len(self._nodes):
            raise IndexError(f"there is no node {node}: ids run from 0 to {self.n_nodes - 1}")
        return self._nodes[node]

    def _leaf(self, node: int) -> _Node:
        leaf = self._node(node)
        if leaf.is_split:
            raise ValueError(f"node {node} has been split before")
        return leaf

    def _check_rule(self, rule: LinearRule | None) -> None:
        """Compare with the names and with the root's rule, the first there was."""
        first = self._nodes[0].rule
        if self._n_splits and (first is None) != (rule is None):
            had, comes = ("none", "one") if first is None else ("one", "none")
            raise ValueError(
                "either all splits have a rule or none has: the first split had "
                f"{had}, now there is {comes}"
            )
        if rule is None:
            return
        n_features = len(rule.center)
        if self._names is not None and len(self._names) != n_features:
            raise ValueError(f"{len(self._names)} feature names, but a rule over {n_features}")
        if first is not None and (first.dtype, len(first.center)) != (rule.dtype, n_features):
            raise ValueError(f"all rules must be of one kind: first {first}, now {rule}")


def _check_fidelity(fidelity: float, rule: LinearRule | None) -> None:
    """Raise ValueError unless this can be known of the rule."""
    if isnan(fidelity):
        return
    if not 0 <= fidelity <= 1:
        raise ValueError(f"fidelity must be from 0 to 1, or NaN, got {fidelity}")
    if rule is None:
        raise ValueError(f"without a rule there is no fidelity, got {fidelity}")


def _checked_labels(
    labels: ArrayLike, n_rows: int, n_children: int | None
) -> NDArray[np.integer]:
    """Return the labels in the smallest type, which NumPy sorts in linear time.

    Where no rule says how many children there are, the largest label does.
    """
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
        why = f"the rule has {n_children} children"
    if least < 0 or most >= n_children:
        raise ValueError(
            f"labels must be 0 to {n_children - 1}, as {why}, got {least} to {most}"
        )
    children = array.astype(np.min_scalar_type(n_children))
    counts = np.bincount(children, minlength=n_children)
    if not counts.all():
        raise ValueError(f"child {int(counts.argmin())} would be empty")
    return children
