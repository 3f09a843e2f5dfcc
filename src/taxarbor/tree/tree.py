"""The tree of clusters: its structure and rules, what must hold, navigation and cuts."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, SolveInfo, set_frozen
from taxarbor.tree import edit_tree
from taxarbor.tree.rule import LinearRule

Claims: TypeAlias = Iterator[tuple[bool | np.bool_, str]]
"""What must hold, and what to say where it does not; the next is computed if it does."""


def node_id(node: SupportsIndex, n_nodes: int) -> int:
    """Return the id as a number, or raise IndexError if there is no such node."""
    index = operator.index(node)
    if not 0 <= index < n_nodes:
        raise IndexError(f"there is no node {index}: ids run from 0 to {n_nodes - 1}")
    return index


def check_claims(what: str, claims: Claims) -> None:
    """Raise ValueError for the first claim that does not hold."""
    for holds, message in claims:
        if not holds:
            raise ValueError(f"invalid {what}: {message}")


def _shape_claims(tree: "Tree") -> Claims:
    n_nodes = len(tree.parents)
    yield n_nodes > 0, "there must be a root"
    for name in ("parents", "sizes", "score", "objective"):
        shape = getattr(tree, name).shape
        yield shape == (n_nodes,), f"{name} has shape {shape}, not ({n_nodes},)"
    for name in ("rules", "info", "notes"):
        length = len(getattr(tree, name))
        yield length == n_nodes, f"{name} has {length} entries for {n_nodes} nodes"
    parents, sizes = tree.parents, tree.sizes
    above, first = parents[1:], _first_children(parents)
    is_before = (above >= 0).all() and (above < np.arange(1, n_nodes)).all()
    message = "only node 0 has no parent, and a parent's id is smaller than its children's"
    yield parents[0] == -1 and is_before, message
    is_once = len(np.unique(parents[first])) == len(first)
    yield is_once, "siblings must have consecutive ids, and a node is split once"
    are_two = (np.diff(first, append=n_nodes) >= 2).all()
    yield are_two, "a split must have two children at least"
    yield (sizes > 0).all() and sizes[0] < 1 << 62, "every node must own a row"
    are_whole = np.array_equal(np.add.reduceat(sizes, first), sizes[parents[first]])
    yield are_whole or not len(first), "the sizes of children must add up to their parent's"


def _rule_claims(tree: "Tree") -> Claims:
    """Yield what must hold of rules and notes."""
    n_nodes = len(tree.parents)
    n_targets = np.array([0 if rule is None else rule.n_targets for rule in tree.rules])
    is_leaf = tree._n_children == 0
    if n_targets.any():
        yield n_targets[0] > 0, "the root must have a rule where any node has one"
        yield not n_targets[is_leaf].any(), "a leaf must have no rule"
        # Rows go to leaves and to nodes with a rule, from the next node above with a rule.
        is_end = is_leaf | (n_targets > 0)
        sources = tree._decider[tree.parents[1:]][is_end[1:]]
        fit = n_targets == np.bincount(sources, minlength=n_nodes)
        message = "a rule must have a target for each node of its frontier"
        yield fit.all(), f"{message}; that of node {fit.argmin()} does not"
    kinds = {(rule.dtype, len(rule.center)) for rule in tree.rules if rule is not None}
    yield len(kinds) <= 1, "all rules must have the same dtype and number of features"
    yield all(isinstance(note, str) for note in tree.notes), "notes must be strings"
    has_note = np.array([note != "" for note in tree.notes])
    yield not has_note[~is_leaf].any(), "only leaves may have a note"


def _row_claims(tree: "Tree") -> Claims:
    """Yield what must hold of rows; only a tree of counts has totals, and it has no weights."""
    if tree.order is not None:
        is_flat = tree.order.ndim == tree.noise.ndim == 1
        yield is_flat and tree.sizes[0] == len(tree.order), "the root must own all rows"
        rows = np.concatenate((tree.order, tree.noise))
        in_range = rows.min() >= 0 and rows.max() < tree.n_rows
        is_right = in_range and (np.bincount(rows, minlength=tree.n_rows) == 1).all()
        yield is_right, f"order, and noise, must hold each of 0 to {tree.n_rows - 1} once"
        yield tree.totals is None, "a tree with rows has their weights, and no totals"
    else:
        is_bare = tree.weights is None and not len(tree.noise)
        yield is_bare, "a tree of counts has no weights or noise, which are of rows"
        is_count = type(tree.n_noise) is int and 0 <= tree.n_noise < 1 << 62
        yield is_count, "n_noise must be a number of rows"
    for name, length in (("totals", len(tree.parents)), ("weights", tree.n_rows)):
        if (values := getattr(tree, name)) is not None:
            is_right = values.shape == (length,) and np.isfinite(values).all()
            yield is_right, f"{name} must be finite, one for each of {length}"
            yield (values >= 0).all() and values.any(), f"{name} must not be negative"


def _first_children(parents: IndexArray) -> IndexArray:
    """Return the first child of each split, in the order of the splits."""
    return np.flatnonzero(np.diff(parents[1:], prepend=-2)) + 1


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """A tree of clusters, frozen: arrays cannot be written to, attributes not assigned.

    Nodes are numbered as they were created, so the root is 0, a parent comes before its
    children and siblings are consecutive. Node ``i`` owns the rows
    ``order[start[i]:stop[i]]``, and the slices of its children tile its own. A tree of more
    rows than fit into memory holds counts only: ``order`` is None.

    Attributes
    ----------
    parents, sizes : int arrays of shape (n_nodes,)
        The id of each node's parent, -1 for the root; the number of rows of each node.
    rules : tuple of LinearRule or None
        How a node sends rows on, to its :meth:`frontier`; None for leaves, and for inner nodes
        whose split is decided above, see :meth:`decided_by`. A tree made from labels or merges
        alone has no rules, and cannot place new rows.
    score, objective : float arrays of shape (n_nodes,)
        What the split of the node was ranked by, and the objective its solver reached. A leaf
        that was tried has those of the candidate; NaN where no split was found.
    info, notes : tuples of SolveInfo or None, and of str
        What it took to find the split or the candidate; why a leaf could not be split, or "".
    order : int array or None
        The numbers of all rows that are not noise, arranged so that each node owns a slice.
    weights : float array of shape (n_rows,) or None
        The sample weights of the fit, None where all are equal. Rows of weight 0 were excluded
        from the fit, and are where new rows like them go. A tree of counts has none.
    noise, n_noise : int array, int
        The numbers of the rows that are in no node, as they are far from every cluster, and
        how many there are. A tree of counts has no numbers.
    totals : float array of shape (n_nodes,) or None
        The sum of the sample weights of each node, in a tree of counts from a fit with
        weights; see ``node_weights``.
    start, stop, birth, depth : int arrays of shape (n_nodes,)
        The slices; the growth step that created the node, 0 for the root, ``t`` for the
        children of the ``t``-th split; and the number of splits above it.
    leaves : int array of shape (n_leaves,)
        Ids of the leaves from left to right.

    Raises
    ------
    ValueError
        If the fields do not make a tree.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.tree import LinearRule, TreeBuilder
    >>> builder = TreeBuilder(4)
    >>> builder.add_split(0, [1, 0, 1, 1], LinearRule(np.eye(2), np.zeros(2)))
    (1, 2)
    >>> builder.freeze(), builder.freeze().labels
    (Tree(n_rows=4, n_leaves=2, height=1), array([1, 0, 1, 1]))
    """

    parents: IndexArray
    sizes: IndexArray
    rules: tuple[LinearRule | None, ...]
    score: Array
    objective: Array
    info: tuple[SolveInfo | None, ...]
    notes: tuple[str, ...]
    order: IndexArray | None = None
    weights: Array | None = None
    noise: IndexArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    n_noise: int = 0
    totals: Array | None = None
    start: IndexArray = field(init=False)
    stop: IndexArray = field(init=False)
    birth: IndexArray = field(init=False)
    depth: IndexArray = field(init=False)
    leaves: IndexArray = field(init=False)
    _first_child: IndexArray = field(init=False)
    _n_children: IndexArray = field(init=False)
    _decider: IndexArray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("parents", "sizes", "order", "noise"):
            if (given := getattr(self, name)) is not None:
                array = np.asarray(given)
                if array.dtype.kind not in "iu":
                    raise ValueError(f"invalid tree: {name} must hold integers")
                set_frozen(self, **{name: array.astype(np.intp)})
        for name in ("score", "objective", "weights", "totals"):
            if (given := getattr(self, name)) is not None:
                set_frozen(self, **{name: np.array(given, dtype=np.float64)})
        for name in ("rules", "info", "notes"):
            set_frozen(self, **{name: tuple(getattr(self, name))})
        if self.has_rows:
            set_frozen(self, n_noise=len(self.noise))
        check_claims("tree", _shape_claims(self))
        self._derive()
        check_claims("tree", _rule_claims(self))
        check_claims("tree", _row_claims(self))

    def _derive(self) -> None:
        """Set what follows from parents, sizes and rules."""
        first, n_nodes = _first_children(self.parents), self.n_nodes
        first_child, n_children = np.zeros((2, n_nodes), dtype=np.intp)
        first_child[self.parents[first]] = first
        n_children[self.parents[first]] = np.diff(first, append=n_nodes)
        parents, sizes = self.parents.tolist(), self.sizes.tolist()
        start, depth, decider, free = ([0] * n_nodes for _ in range(4))
        for node in range(1, n_nodes):
            parent = parents[node]
            start[node] = free[node] = free[parent]  # after the siblings on its left
            free[parent] += sizes[node]
            depth[node] = depth[parent] + 1
            decider[node] = decider[parent] if self.rules[node] is None else node
        leaves = np.flatnonzero(n_children == 0)
        starts = np.array(start, dtype=np.intp)
        set_frozen(
            self,
            start=starts,
            stop=starts + self.sizes,
            birth=np.searchsorted(first, np.arange(n_nodes), side="right"),
            depth=np.array(depth, dtype=np.intp),
            leaves=leaves[np.argsort(starts[leaves])],
            _first_child=first_child,
            _n_children=n_children,
            _decider=np.array(decider, dtype=np.intp),
        )

    def __repr__(self) -> str:
        return f"Tree(n_rows={self.n_rows}, n_leaves={self.n_leaves}, height={self.height})"

    @property
    def root(self) -> int:
        """Id of the root, 0."""
        return 0

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.parents)

    @property
    def n_leaves(self) -> int:
        """Number of leaves, that is, of clusters."""
        return len(self.leaves)

    @property
    def n_splits(self) -> int:
        """Number of splits applied."""
        return int(self.birth[-1])

    @property
    def height(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    @property
    def n_rows(self) -> int:
        """Number of rows that the tree was grown on, with those that are noise."""
        return int(self.sizes[0]) + self.n_noise

    @property
    def has_rows(self) -> bool:
        """Whether the tree knows which rows its nodes own, and not only how many."""
        return self.order is not None

    @property
    def n_features(self) -> int | None:
        """Number of features; None in a tree without rules."""
        rule = self.rules[self.root]
        return None if rule is None else len(rule.center)

    @property
    def node_weights(self) -> NDArray[Any]:
        """The sum of the sample weights of each node; its size, without weights."""
        if self.totals is not None:
            return self.totals
        if self.weights is None:
            return self.sizes
        sums = np.concatenate(([0.0], np.cumsum(self.weights[self.rows(self.root)])))
        return _read_only(sums[self.stop] - sums[self.start])

    @property
    def labels(self) -> IndexArray:
        """The cluster of each row: the position of its leaf in ``leaves``, -1 for noise."""
        rows = self.rows(self.root)
        return _read_only(number_rows(rows, self.sizes[self.leaves], self.n_rows))

    def parent(self, node: SupportsIndex) -> int | None:
        """Return the parent's id, None for the root."""
        parent = int(self.parents[node_id(node, self.n_nodes)])
        return None if parent < 0 else parent

    def children(self, node: SupportsIndex) -> tuple[int, ...]:
        """Return the ids of the children from left to right, () for a leaf."""
        node = node_id(node, self.n_nodes)
        first = int(self._first_child[node])
        return tuple(range(first, first + int(self._n_children[node])))

    def is_leaf(self, node: SupportsIndex) -> bool:
        """Return whether the node has no children."""
        return bool(self._n_children[node_id(node, self.n_nodes)] == 0)

    def path(self, node: SupportsIndex) -> tuple[int, ...]:
        """Return the ids from the root to the node, both included."""
        node = node_id(node, self.n_nodes)
        path = [node]
        for _ in range(self.depth[node]):
            path.append(int(self.parents[path[-1]]))
        return tuple(reversed(path))

    def decided_by(self, node: SupportsIndex) -> int | None:
        """Return the node whose rule decides to which child of this node rows go.

        That is the node itself or, where it has no rule, the next one above it that has one;
        None for a leaf, and without rules.
        """
        decider = int(self._decider[node_id(node, self.n_nodes)])
        return None if self.is_leaf(node) or self.rules[decider] is None else decider

    def frontier(self, node: SupportsIndex) -> tuple[int, ...]:
        """Return the nodes that this node's rule chooses among, from left to right.

        They are leaves, or have a rule of their own; nodes in between are decided by this
        rule, too. () where the node has no rule.

        Examples
        --------
        >>> import numpy as np
        >>> from taxarbor.tree import LinearRule, TreeBuilder
        >>> builder = TreeBuilder(3)
        >>> builder.add_split(0, [0, 1, 1]), builder.add_split(2, [0, 1])
        ((1, 2), (3, 4))
        >>> builder.set_rule(0, LinearRule(np.eye(3), np.zeros(3)))
        >>> builder.freeze().frontier(0), builder.freeze().decided_by(2)
        ((1, 3, 4), 0)
        """
        node = node_id(node, self.n_nodes)
        if self.rules[node] is None:
            return ()
        has_rule = self._decider == np.arange(self.n_nodes)
        is_end = (self._n_children == 0) | has_rule
        below = np.flatnonzero(is_end[1:] & (self._decider[self.parents[1:]] == node)) + 1
        return tuple(below[np.argsort(self.start[below])].tolist())

    def rows(self, node: SupportsIndex) -> IndexArray:
        """Return the row numbers of the node, a read-only view."""
        node = node_id(node, self.n_nodes)
        if self.order is None:
            raise InputError(
                "the tree holds counts only, and does not know which rows its nodes own: "
                "taxonomy.attach(X) gives it rows, taxonomy.predict(X) the labels of rows"
            )
        return self.order[self.start[node] : self.stop[node]]

    def cut(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> IndexArray:
        """Return the labels of a coarser clustering; see :meth:`taxarbor.Taxonomy.cut`."""
        kept, is_inner = edit_tree.kept_nodes(self, n_clusters, depth)
        ends = kept[~is_inner]
        sizes = self.sizes[ends[np.argsort(self.start[ends])]]
        return number_rows(self.rows(self.root), sizes, self.n_rows)

    def prune(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> "Tree":
        """Return the coarser tree whose labels :meth:`cut` returns for the same argument."""
        return edit_tree.prune(self, n_clusters, depth).tree


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def number_rows(
    order: IndexArray, sizes: Sequence[int] | IndexArray, n_rows: int | None = None
) -> IndexArray:
    """Label rows 0, 1, ...: from the left, so many of the ordered rows have each label.

    Of more rows than are ordered, the others have -1.
    """
    labels = np.full(len(order) if n_rows is None else n_rows, -1, dtype=np.intp)
    labels[order] = np.repeat(np.arange(len(sizes)), sizes)
    return labels
