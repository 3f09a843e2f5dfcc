"""The tree of clusters: what it holds, how to move in it, how to cut it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._types import Array, IndexArray, SolveInfo
from taxarbor.hierarchy import (
    _adapters,
    _cut,
    _export,
    _html,
    _invariants,
    _io,
    _json,
    _reasons,
    _route,
    _sklearn,
    _text,
    _units,
)
from taxarbor.hierarchy._arrays import depths, indices, node_id, read_only
from taxarbor.hierarchy._placement import Placement
from taxarbor.hierarchy._reasons import Reason
from taxarbor.hierarchy._rule import LinearRule

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from scipy.sparse import csr_array


@final
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, repr=False)
class Hierarchy:
    """A tree of clusters, frozen: arrays cannot be written to, attributes not assigned.

    Nodes are numbered as they were created, so the root is 0, a parent comes before its
    children and siblings are consecutive. Node ``i`` owns the rows
    ``order[start[i]:stop[i]]``, and the slices of its children tile its own.

    Attributes
    ----------
    order : int array of shape (n_rows,)
        All row numbers, arranged so that each node owns a slice.
    start, stop : int arrays of shape (n_nodes,)
        The slices.
    parents : int array of shape (n_nodes,)
        Id of each node's parent, -1 for the root.
    birth : int array of shape (n_nodes,)
        The growth step that created the node: 0 for the root, ``t`` for the children of
        the ``t``-th split.
    score, objective : float arrays of shape (n_nodes,)
        What the split of the node was ranked by and what its solver reached. A leaf that
        was tried has those of the candidate; NaN where no split was found.
    rules : tuple of LinearRule or None
        How each node sends rows to its children; None for leaves. A tree made from labels
        or merges alone has no rules, and cannot place new rows.
    info : tuple of SolveInfo or None
        What it took to find the split or the candidate.
    notes : tuple of str
        Why a leaf could not be split; "" otherwise.
    feature_names : tuple of str or None
        Names of the columns, where known.
    fidelity : float array of shape (n_nodes,)
        The share of a node's rows that its rule sends to their own child; NaN where that
        is not known, the default, and where there is no rule.
    placement : Placement or None
        What places new rows, with or without rules, where there is one; the rules then
        describe the splits and decide nothing.
    means : array of shape (n_nodes, n_features) or None
        The mean of each node's rows, where known, of the dtype of the rules.
    depth : int array of shape (n_nodes,)
        Number of splits above each node.
    leaves : int array of shape (n_leaves,)
        Ids of the leaves from left to right.

    Raises
    ------
    ValueError
        If the fields do not make a tree.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
    >>> builder = HierarchyBuilder(4)
    >>> builder.add_split(0, [1, 0, 1, 1], LinearRule(np.eye(2), np.zeros(2)))
    (1, 2)
    >>> tree = builder.freeze()
    >>> tree
    Hierarchy(n_rows=4, n_leaves=2, height=1)
    >>> tree.labels
    array([1, 0, 1, 1])
    """

    order: IndexArray
    start: IndexArray
    stop: IndexArray
    parents: IndexArray
    birth: IndexArray
    score: Array
    objective: Array
    rules: tuple[LinearRule | None, ...]
    info: tuple[SolveInfo | None, ...]
    notes: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    fidelity: Array = None  # type: ignore[assignment]  # always an array once made
    placement: Placement | None = None
    means: Array | None = None
    depth: IndexArray = field(init=False)
    leaves: IndexArray = field(init=False)
    _n_children: IndexArray = field(init=False)
    _first_child: IndexArray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("order", "start", "stop", "parents", "birth"):
            self._set(name, indices(name, getattr(self, name)))
        if self.fidelity is None:
            self._set("fidelity", np.full(self.parents.shape, np.nan))
        for name in ("score", "objective", "fidelity"):
            self._set(name, np.array(getattr(self, name), dtype=np.float64))
        if self.means is not None:
            self._set("means", np.array(self.means))
        for name in ("rules", "info", "notes"):
            self._set(name, tuple(getattr(self, name)))
        if self.feature_names is not None:
            self._set("feature_names", tuple(self.feature_names))
        _invariants.check(self)
        self._set("depth", depths(self.parents))
        n_children = np.bincount(self.parents[1:], minlength=len(self.parents))
        self._set("_n_children", n_children)
        first = np.zeros_like(n_children)
        # Assigned from the last child to the first, so that the first one stays.
        first[self.parents[:0:-1]] = np.arange(len(first) - 1, 0, -1)
        self._set("_first_child", first)
        leaves = np.flatnonzero(n_children == 0)
        self._set("leaves", leaves[np.argsort(self.start[leaves])])

    def _set(self, name: str, value: object) -> None:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        sizes = f"n_rows={len(self.order)}, n_leaves={self.n_leaves}, height={self.height}"
        return f"Hierarchy({sizes})"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return _html.to_html(self)

    # The state is what a file holds: plain arrays and text, which any pickler can take.
    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return _io.pack(self)

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        Hierarchy.__init__(self, **_io.unpack(state))

    from_labels = staticmethod(_adapters.from_labels)
    from_linkage = staticmethod(_adapters.from_linkage)
    from_sklearn = staticmethod(_sklearn.from_sklearn)

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
    def n_rows(self) -> IndexArray:
        """Number of rows of each node."""
        return read_only(self.stop - self.start)

    @property
    def n_features(self) -> IndexArray:
        """Number of features that each node's rule uses, 0 where there is none."""
        used = [0 if rule is None else rule.n_features_used for rule in self.rules]
        return read_only(np.array(used, dtype=np.intp))

    @property
    def labels(self) -> IndexArray:
        """The cluster of each row: the position of its leaf in ``leaves``."""
        return read_only(_cut.number(self, self.leaves))

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

    def rows(self, node: SupportsIndex) -> IndexArray:
        """Return the row numbers of the node, a read-only view."""
        node = node_id(node, self.n_nodes)
        return self.order[self.start[node] : self.stop[node]]

    def reasons(self, node: SupportsIndex, n_top: int | None = 3) -> tuple[Reason, ...]:
        """Return the features that send rows to this node rather than to its siblings.

        Those that do most for it come first; () for the root and where there are no rules.

        Parameters
        ----------
        node : int
            Id of the node.
        n_top : int, optional
            Return so many at most, and only such that pull the rows apart. None is all
            that the rule uses, those that pull them together with a negative share.
        """
        return _reasons.reasons(self, node_id(node, self.n_nodes), n_top)

    def rename_features(self, names: Sequence[str]) -> "Hierarchy":
        """Return the same tree with other names of the columns."""
        if isinstance(names, str):
            raise TypeError(f"names must be a list of names, got the text {names!r}")
        return replace(self, feature_names=tuple(str(name) for name in names))

    def unscale(self, mean: ArrayLike | None, scale: ArrayLike | None) -> "Hierarchy":
        """Return the tree that sends ``x`` where this one sends ``(x - mean) / scale``.

        So nobody has to scale new rows, and means are in units that people know. Pass
        ``mean_`` and ``scale_`` of a ``StandardScaler``, or None for what it did not do: with
        ``with_mean=False``, None for the mean. ValueError is raised if these do not fit the
        features, are not finite, or a scale is not positive.
        """
        return _units.unscale(self, mean, scale)

    def cut(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> IndexArray:
        """Return the labels of a coarser clustering; exactly one argument is given.

        Parameters
        ----------
        n_clusters : int
            Undo the latest splits until there are at most so many clusters. There are
            fewer only where a split made more than two children.
        depth : int
            Undo all splits of nodes at this depth or deeper.

        Returns
        -------
        int array of shape (n_rows,)
            Clusters are numbered from left to right.

        Raises
        ------
        ValueError
            If not exactly one argument is given, or it is out of range.
        """
        return _cut.cut(self, n_clusters, depth)

    def prune(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> "Hierarchy":
        """Return the coarser tree whose labels :meth:`cut` returns for the same argument.

        Nodes are numbered anew, and keep what is known of them. One whose split is undone
        keeps its score, objective and info, as a leaf that was tried, but not its rule and
        fidelity. A placement goes on with the leaves there are, unless that is the root
        alone. Takes and raises what :meth:`cut` does.

        Examples
        --------
        >>> tree = Hierarchy.from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
        >>> tree.prune(2).to_newick(), tree.prune(2).labels
        ('(c0,c1);', array([0, 0, 1]))
        """
        return _cut.prune(self, n_clusters, depth)

    def predict(self, X: ArrayLike) -> IndexArray:
        """Return the cluster of each row of new data, numbered as in ``labels``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            Floats are cast to the dtype of the rules or the placement, integers to float64.

        Raises
        ------
        ValueError
            If X is not two-dimensional, has another number of features than the rules,
            holds NaN or infinity, or is not numeric; or if the tree has neither rules nor
            a placement.
        """
        return _route.predict(self, X)

    def decision_path(self, X: ArrayLike) -> "csr_array":
        """Return which nodes each row of new data visits, as ones in a CSR matrix.

        Takes and raises what :meth:`predict` does. The result has shape
        (n_rows, n_nodes); the indices of each row run from the root to the leaf.
        """
        return _route.decision_path(self, X)

    def to_text(
        self, max_depth: int | None = None, n_top: int = 3, *, max_nodes: int = 200
    ) -> str:
        """Return the tree as indented text, one line per node, ``max_nodes`` at most.

        ``max_depth`` leaves out what is deeper. A line names ``n_top`` features: ``+name``
        where larger values lead to the node, ``-name`` where smaller ones do.
        """
        return _text.to_text(self, max_depth, n_top, max_nodes=max_nodes)

    def to_frame(self, *, n_top: int = 3) -> "pd.DataFrame":
        """Return a pandas data frame with one row per node (needs ``taxarbor[io]``)."""
        return _export.to_frame(self, n_top=n_top)

    def to_networkx(self, *, n_top: int = 3) -> "nx.DiGraph":
        """Return a networkx graph, edges from parent to child (needs ``taxarbor[io]``)."""
        return _export.to_networkx(self, n_top=n_top)

    def to_linkage(self) -> NDArray[np.float64]:
        """Return a SciPy linkage matrix over the leaves."""
        return _export.to_linkage(self)

    def to_newick(self, names: Sequence[str] | None = None) -> str:
        """Return the tree in Newick format; leaves are named c0, c1, ... unless given."""
        return _export.to_newick(self, names)

    def to_dot(self, names: Sequence[str] | None = None, *, n_top: int = 3) -> str:
        """Return the tree in Graphviz's DOT language."""
        return _export.to_dot(self, names, n_top=n_top)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all of the hierarchy as strict JSON, and write it to a file if given."""
        return _json.to_json(self, path)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> "Hierarchy":
        """Return the hierarchy that :meth:`to_json` wrote: a text, or a ``Path`` to a file.

        Raises
        ------
        FileFormatError
            If the text is not of that kind.
        """
        return _json.from_json(source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of the hierarchy to one file, whole or not at all; see :meth:`load`."""
        _io.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Hierarchy":
        """Return the hierarchy that :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            If the file is damaged, of another kind or of a newer version.
        """
        return _io.load(path)
