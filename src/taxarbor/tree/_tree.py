"""The tree of clusters: its structure and rules, what must hold, navigation and cuts."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, SolveInfo, set_frozen
from taxarbor.tree import _edit_tree
from taxarbor.tree._rule import LinearRule

Claims: TypeAlias = Iterator[tuple[bool | np.bool_, str]]
"""What must hold, and what to say where it does not; the next is computed if it does."""


def node_id(node: SupportsIndex, n_nodes: int) -> int:
    """Return the id as a number, or raise IndexError if there is no such node."""
    index = operator.index(node)
    if not 0 <= index < n_nodes:
        raise IndexError(f"there is no node {index}: ids run from 0 to {n_nodes - 1}")
    return index


def as_indices(name: str, values: IndexArray) -> IndexArray:
    """Copy to intp, which must lose nothing."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"invalid tree: {name} must hold integers, not {array.dtype}")
    return array.astype(np.intp)


def find_deciders(parents: IndexArray, rules: Sequence[object]) -> IndexArray:
    """Return the nearest node with a rule of each node: itself, or above; else the root.

    The stride is doubled each time, as a walk per node would take too long in a deep tree.
    """
    nodes = np.arange(len(parents))
    has_rule = np.array([rule is not None for rule in rules])
    above = np.where(has_rule, nodes, np.maximum(parents, 0))
    while (above[above] != above).any():
        above = above[above]
    return above


def check_tree(tree: "Tree") -> None:
    """Raise ValueError, naming what is wrong, unless the fields make a tree."""
    for claims in (_lengths, _lineage, _slices, _rules, _rows):
        check_claims("tree", claims(tree))


def check_claims(what: str, claims: Claims) -> None:
    """Raise ValueError for the first claim that does not hold."""
    for holds, message in claims:
        if not holds:
            raise ValueError(f"invalid {what}: {message}")


def _lengths(h: "Tree") -> Claims:
    n_nodes = len(h.parents)
    yield n_nodes > 0, "there must be a root"
    for name in ("start", "stop", "parents", "birth", "score", "objective"):
        shape = getattr(h, name).shape
        yield shape == (n_nodes,), f"{name} has shape {shape}, not ({n_nodes},)"
    for name in ("rules", "info", "notes"):
        length = len(getattr(h, name))
        yield length == n_nodes, f"{name} has {length} entries for {n_nodes} nodes"
    if h.order is None:
        return
    is_some = h.order.ndim == 1 and h.order.size > 0
    yield is_some, "order must be one-dimensional, not empty"
    yield h.noise.ndim == 1, "noise must be one-dimensional"
    yield h.stop[0] == len(h.order), "the root must own all rows"
    rows = np.concatenate((h.order, h.noise)) if len(h.noise) else h.order
    in_range = rows.min() >= 0 and rows.max() < h.n_rows
    is_right = in_range and (np.bincount(rows, minlength=h.n_rows) == 1).all()
    yield is_right, f"order, and noise, must hold each of 0 to {h.n_rows - 1} once"


def _lineage(h: "Tree") -> Claims:
    """Yield what holds of parents and birth, which say together what each split created."""
    is_root = h.parents[0] == -1 and h.birth[0] == 0
    yield is_root, "node 0 must be the root, born at step 0"
    parents, birth = h.parents[1:], h.birth[1:]
    if not len(parents):
        return
    are_before = (parents >= 0).all() and (parents < np.arange(1, len(h.parents))).all()
    message = "a parent's id must be smaller than its children's, and only the root has none"
    yield are_before, message
    steps = np.diff(birth, prepend=0)
    are_steps = birth[0] == 1 and ((steps == 0) | (steps == 1)).all()
    yield are_steps, "birth must count the splits, 1, 2, ..., in the order of ids"
    are_siblings = ((steps[1:] == 1) == (np.diff(parents) != 0)).all()
    message = "siblings must have consecutive ids and the same birth, and a node is split once"
    yield are_siblings and len(np.unique(parents)) == birth[-1], message
    yield (np.bincount(birth)[1:] >= 2).all(), "a split must have two children at least"


def _slices(h: "Tree") -> Claims:
    yield h.start[0] == 0, "the root must own all rows"
    yield (h.start < h.stop).all(), "every node must own a row: start < stop"
    parents, start, stop = h.parents[1:], h.start[1:], h.stop[1:]
    first, last = np.diff(parents, prepend=-2) != 0, np.diff(parents, append=-2) != 0
    tiles = (start[first] == h.start[parents[first]]).all()
    tiles &= (stop[last] == h.stop[parents[last]]).all() and (
        start[~first] == stop[~last]
    ).all()
    yield tiles, "the slices of children must tile the slice of their parent, in order"


def _rules(h: "Tree") -> Claims:
    """Yield what holds of rules and feature names."""
    n_nodes, names = len(h.parents), h.feature_names
    n_targets = np.array([0 if rule is None else rule.n_targets for rule in h.rules])
    if n_targets.any():
        is_leaf = np.bincount(h.parents[1:], minlength=n_nodes) == 0
        yield n_targets[0] > 0, "the root must have a rule where any node has one"
        yield not n_targets[is_leaf].any(), "a leaf must have no rule"
        # Rows go to leaves and to nodes with a rule, from the next node above with a rule.
        is_end = is_leaf | (n_targets > 0)
        sources = find_deciders(h.parents, h.rules)[h.parents[1:]][is_end[1:]]
        fit = n_targets == np.bincount(sources, minlength=n_nodes)
        message = "a rule must have a target for each node of its frontier"
        yield fit.all(), f"{message}; that of node {fit.argmin()} does not"
    kinds = {(rule.dtype, len(rule.center)) for rule in h.rules if rule is not None}
    yield len(kinds) <= 1, "all rules must have the same dtype and number of features"
    yield all(isinstance(note, str) for note in h.notes), "notes must be strings"
    yield not any(h.notes[node] for node in h.parents[1:]), "only leaves may have a note"
    if names is not None:
        yield all(isinstance(name, str) for name in names), "feature names must be strings"
        widths = {width for _, width in kinds}
        message = f"{len(names)} feature names for rules over {widths or 0} features"
        yield widths <= {len(names)}, message


def _rows(h: "Tree") -> Claims:
    """Yield what holds of rows: only a tree of counts has totals, and it has no row weights."""
    if h.order is not None:
        yield h.totals is None, "a tree with rows has their weights, and no totals"
    else:
        is_bare = h.weights is None and not len(h.noise)
        yield is_bare, "a tree of counts has no weights or noise, which are of rows"
        is_count = type(h.n_noise) is int and 0 <= h.n_noise < 1 << 62 and h.stop[0] < 1 << 62
        yield is_count, "n_noise must be a number of rows"
    for name, length in (("totals", len(h.parents)), ("weights", h.n_rows)):
        if (values := getattr(h, name)) is not None:
            is_right = values.shape == (length,) and np.isfinite(values).all()
            yield is_right, f"{name} must be finite, one for each of {length}"
            yield (values >= 0).all() and values.any(), f"{name} must not be negative"


@final
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, repr=False)
class Tree:
    """A tree of clusters, frozen: arrays cannot be written to, attributes not assigned.

    Nodes are numbered as they were created, so the root is 0, a parent comes before its
    children and siblings are consecutive. Node ``i`` owns the rows
    ``order[start[i]:stop[i]]``, and the slices of its children tile its own. A tree of more
    rows than fit into memory holds counts only: ``order`` is None.

    Attributes
    ----------
    order : int array or None
        The numbers of all rows that are not noise, arranged so that each node owns a slice;
        None where the tree holds counts, whose slices only give sizes.
    start, stop, parents : int arrays of shape (n_nodes,)
        The slices, and the id of each node's parent, -1 for the root.
    birth, depth : int arrays of shape (n_nodes,)
        The growth step that created the node, 0 for the root, ``t`` for the children of the
        ``t``-th split; and the number of splits above it.
    leaves : int array of shape (n_leaves,)
        Ids of the leaves from left to right.
    rules : tuple of LinearRule or None
        How a node sends rows on, to its :meth:`frontier`; None for leaves, and for inner nodes
        whose split is decided above, see :meth:`decided_by`. A tree made from labels or merges
        alone has no rules, and cannot place new rows.
    score, objective : float arrays of shape (n_nodes,)
        What the split of the node was ranked by, and the objective its solver reached. A leaf
        that was tried has those of the candidate; NaN where no split was found.
    info, notes : tuples of SolveInfo or None, and of str
        What it took to find the split or the candidate; why a leaf could not be split, or "".
    feature_names : tuple of str or None
        Names of the features, where known.
    weights : float array of shape (n_rows,) or None
        The sample weights of the fit, None where all are equal. Rows of weight 0 were excluded
        from the fit, and are where new rows like them go. A tree of counts has none.
    noise : int array
        The numbers of the rows that are in no node, as they are far from every cluster. A tree
        of counts has none.
    n_noise : int
        The number of rows that are in no node.
    totals : float array of shape (n_nodes,) or None
        The sum of the sample weights of each node, in a tree of counts from a fit with
        weights; see ``node_weights``.

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

    order: IndexArray | None
    start: IndexArray
    stop: IndexArray
    parents: IndexArray
    birth: IndexArray
    rules: tuple[LinearRule | None, ...]
    score: Array
    objective: Array
    info: tuple[SolveInfo | None, ...]
    notes: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    weights: Array | None = None
    noise: IndexArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    n_noise: int = 0
    totals: Array | None = None
    depth: IndexArray = field(init=False)
    leaves: IndexArray = field(init=False)
    _n_children: IndexArray = field(init=False)
    _first_child: IndexArray = field(init=False)
    _decider: IndexArray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("order", "start", "stop", "parents", "birth", "noise"):
            if (given := getattr(self, name)) is not None:
                set_frozen(self, **{name: as_indices(name, given)})
        for name in ("score", "objective", "weights", "totals"):
            if (given := getattr(self, name)) is not None:
                set_frozen(self, **{name: np.array(given, dtype=np.float64)})
        set_frozen(
            self, rules=tuple(self.rules), info=tuple(self.info), notes=tuple(self.notes)
        )
        if self.feature_names is not None:
            set_frozen(self, feature_names=tuple(self.feature_names))
        if self.has_rows:
            set_frozen(self, n_noise=len(self.noise))
        check_tree(self)
        n_children = np.bincount(self.parents[1:], minlength=len(self.parents))
        first = np.zeros_like(n_children)
        # Assigned from the last child to the first, so that the first one stays.
        first[self.parents[:0:-1]] = np.arange(len(first) - 1, 0, -1)
        leaves = np.flatnonzero(n_children == 0)
        set_frozen(
            self,
            depth=_depths(self.parents),
            leaves=leaves[np.argsort(self.start[leaves])],
            _n_children=n_children,
            _first_child=first,
            _decider=find_deciders(self.parents, self.rules),
        )

    def __repr__(self) -> str:
        sizes = f"n_rows={self.n_rows}, n_leaves={self.n_leaves}, height={self.height}"
        return f"Tree({sizes})"

    # Arrays forget in a pickle that they are read-only: build the copy anew.
    def __reduce__(self) -> tuple[type["Tree"], tuple[object, ...]]:
        return Tree, tuple(getattr(self, each.name) for each in fields(self) if each.init)

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
        return int(self.stop[0]) + self.n_noise

    @property
    def has_rows(self) -> bool:
        """Whether the tree knows which rows its nodes own, and not only how many."""
        return self.order is not None

    @property
    def n_features(self) -> int | None:
        """Number of features; None where neither rules nor names tell."""
        if (rule := self.rules[self.root]) is not None:
            return len(rule.center)
        return None if self.feature_names is None else len(self.feature_names)

    @property
    def sizes(self) -> IndexArray:
        """Number of rows of each node."""
        return _read_only(self.stop - self.start)

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

        Examples
        --------
        >>> import numpy as np
        >>> from taxarbor.tree import LinearRule, TreeBuilder
        >>> builder = TreeBuilder(3)
        >>> builder.add_split(0, [0, 1, 1]), builder.add_split(2, [0, 1])
        ((1, 2), (3, 4))
        >>> builder.explain(0, LinearRule(np.eye(3), np.zeros(3)))
        >>> tree = builder.freeze()
        >>> tree.decided_by(2), tree.frontier(0)
        (0, (1, 3, 4))
        """
        decider = int(self._decider[node_id(node, self.n_nodes)])
        return None if self.is_leaf(node) or self.rules[decider] is None else decider

    def frontier(self, node: SupportsIndex) -> tuple[int, ...]:
        """Return the nodes that this node's rule chooses among, from left to right.

        They are leaves, or have a rule of their own; nodes in between are decided by this
        rule, too. () where the node has no rule. See :meth:`decided_by` for an example.
        """
        node = node_id(node, self.n_nodes)
        targets: list[int] = []
        pending = [] if self.rules[node] is None else [*reversed(self.children(node))]
        while pending:
            below = pending.pop()
            if self.rules[below] is None and not self.is_leaf(below):
                pending += reversed(self.children(below))
            else:
                targets.append(below)
        return tuple(targets)

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
        kept, is_inner = _edit_tree.kept_nodes(self, n_clusters, depth)
        ends = kept[~is_inner]
        sizes = self.sizes[ends[np.argsort(self.start[ends])]]
        return number_rows(self.rows(self.root), sizes, self.n_rows)

    def prune(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> "Tree":
        """Return the coarser tree whose labels :meth:`cut` returns for the same argument."""
        return _edit_tree.prune(self, n_clusters, depth).tree


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _depths(parents: IndexArray) -> IndexArray:
    """Count the ancestors of each node, doubling the stride each time: no walk per node."""
    depths = (parents >= 0).astype(np.intp)
    ancestors = np.maximum(parents, 0)  # the root, its own ancestor, adds nothing
    while ancestors.any():
        depths += depths[ancestors]
        ancestors = ancestors[ancestors]
    return depths


def number_rows(
    order: IndexArray, sizes: Sequence[int] | IndexArray, n_rows: int | None = None
) -> IndexArray:
    """Label rows 0, 1, ...: from the left, so many of the ordered rows have each label.

    Of more rows than are ordered, the others have -1.
    """
    labels = np.full(len(order) if n_rows is None else n_rows, -1, dtype=np.intp)
    labels[order] = np.repeat(np.arange(len(sizes)), sizes)
    return labels
