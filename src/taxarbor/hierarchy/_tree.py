"""The tree of clusters: what it holds, how to move in it, how to cut it."""

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, SolveInfo
from taxarbor.hierarchy import _file, _memberships, _reasons, _remade, _route, _words
from taxarbor.hierarchy._checks import check, find_deciders, indices, keep, no_rows, node_id
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._noise import NoiseModel
from taxarbor.hierarchy._reasons import Reason, are_zero_and_one
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.hierarchy._trust import Trust

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_FLOATS = ("score", "objective", "means", "two_values", "missing", "weights", "totals")


@final
@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, repr=False)
class Hierarchy:
    """A tree of clusters, frozen: arrays cannot be written to, attributes not assigned.

    Nodes are numbered as they were created, so the root is 0, a parent comes before its
    children and siblings are consecutive. Node ``i`` owns the rows
    ``order[start[i]:stop[i]]``, and the slices of its children tile its own. A tree of more
    rows than fit into memory holds counts: it does all that needs no rows, and ``attach``
    gives it some.

    Attributes
    ----------
    order : int array or None
        The numbers of all rows that are not noise, arranged so that each node owns a slice;
        None where the tree holds counts, whose slices then say no more than sizes.
    start, stop, parents : int arrays of shape (n_nodes,)
        The slices, and the id of each node's parent, -1 for the root.
    birth, depth : int arrays of shape (n_nodes,)
        The growth step that created the node, 0 for the root, ``t`` for the children of the
        ``t``-th split; and the number of splits above it.
    leaves : int array of shape (n_leaves,)
        Ids of the leaves from left to right.
    score, objective : float arrays of shape (n_nodes,)
        What the split of the node was ranked by and what its solver reached. A leaf that
        was tried has those of the candidate; NaN where no split was found.
    rules : tuple of LinearRule or None
        How a node sends rows on, to its :meth:`frontier`; None for leaves, and for inner nodes
        whose split is decided above, see :meth:`decided_by`. A tree made from labels or merges
        alone has no rules, and cannot place new rows.
    info, notes : tuples of SolveInfo or None, and of str
        What it took to find the split or the candidate; why a leaf could not be split, or "".
    feature_names : list of str or None
        Names of the columns, where known: a copy, which data frames take as columns.
    means : array of shape (n_nodes, n_features) or None
        The mean of each node's rows, where known, of the dtype of the rules; of those that
        took part in the fit, by their weights.
    two_values : float array of shape (n_features, 2) or None
        The two values of each column that has no others, the smaller first, and NaN for all
        other columns, where known: features of yes and no have 0 and 1.
    temperature : float or None
        How far probabilities are evened out, measured by fitting again; None where it was not.
    trust : Trust or None
        What came back when the model was fitted again, once it was assessed.
    made_by : dict or None
        The estimator that made it and its parameters, with which to fit it again.
    encoding : Encoding or None
        How the columns of the user's table become the features of the tree; None where they
        are the features.
    missing : float array of shape (n_nodes, n_columns) or None
        The share of each node's rows that have no value in a column of the encoding; None
        where all have one.
    weights : float array of shape (n_rows,) or None
        What each row counted for in the fit, None where all count the same. Rows of weight 0
        took no part, and are where new rows like them go. A tree of counts has none.
    noise : int array
        The numbers of the rows that are in no node, as they are far from every cluster. A tree
        of counts has none.
    noise_model : NoiseModel or None
        By what new rows are told to be noise, where any are; kept whole when pruning.
    totals : float array of shape (n_nodes,) or None
        What the rows of each node count for together, in a tree of counts from a fit with
        weights; see ``node_weights``.
    n_noise : int
        The number of rows that are in no node, which a tree of counts knows as well.

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
    >>> builder.freeze(), builder.freeze().labels
    (Hierarchy(n_rows=4, n_leaves=2, height=1), array([1, 0, 1, 1]))
    """

    order: IndexArray | None
    start: IndexArray
    stop: IndexArray
    parents: IndexArray
    birth: IndexArray
    score: Array
    objective: Array
    rules: tuple[LinearRule | None, ...]
    info: tuple[SolveInfo | None, ...]
    notes: tuple[str, ...]
    feature_names: Sequence[str] | None = None
    means: Array | None = None
    two_values: Array | None = None
    temperature: float | None = None
    trust: Trust | None = None
    made_by: dict[str, Any] | None = None
    encoding: Encoding | None = None
    missing: Array | None = None
    weights: Array | None = None
    noise: IndexArray = None  # type: ignore[assignment]  # always an array once made
    noise_model: NoiseModel | None = None
    totals: Array | None = None
    n_noise: int = 0
    depth: IndexArray = field(init=False)
    leaves: IndexArray = field(init=False)
    _n_children: IndexArray = field(init=False)
    _first_child: IndexArray = field(init=False)
    _decider: IndexArray = field(init=False)

    def __post_init__(self) -> None:
        if self.noise is None:
            keep(self, noise=np.zeros(0, dtype=np.intp))
        self._copy_arrays()
        keep(self, rules=tuple(self.rules), info=tuple(self.info), notes=tuple(self.notes))
        if self.feature_names is not None:
            keep(self, feature_names=tuple(self.feature_names))
        if self.has_rows:
            keep(self, n_noise=len(self.noise))
        check(self)
        n_children = np.bincount(self.parents[1:], minlength=len(self.parents))
        first = np.zeros_like(n_children)
        # Assigned from the last child to the first, so that the first one stays.
        first[self.parents[:0:-1]] = np.arange(len(first) - 1, 0, -1)
        leaves = _remade.from_left(self, np.flatnonzero(n_children == 0))
        keep(self, depth=_depths(self.parents), leaves=leaves)
        keep(self, _n_children=n_children, _first_child=first)
        keep(self, _decider=find_deciders(self.parents, self.rules))

    def _copy_arrays(self) -> None:
        """Make what is given the arrays that are kept, of their types."""
        for name in ("order", "start", "stop", "parents", "birth", "noise"):
            if (given := getattr(self, name)) is not None:
                keep(self, **{name: indices(name, given)})
        for name in _FLOATS:
            if (given := getattr(self, name)) is not None:
                dtype = None if name == "means" else np.float64
                keep(self, **{name: np.array(given, dtype=dtype)})

    def __repr__(self) -> str:
        sizes = f"n_rows={self.n_rows}, n_leaves={self.n_leaves}, height={self.height}"
        return f"Hierarchy({sizes})"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return _words.to_html(self)

    # The state is what a file holds: plain arrays and text, which any pickler can take.
    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return _file.pack(self)

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        Hierarchy.__init__(self, **_file.unpack(state))

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
        """Number of columns; None where no rule, mean or name tells."""
        rule = self.rules[self.root]
        if rule is not None:
            return len(rule.center)
        if self.means is not None:
            return int(self.means.shape[1])
        if self.two_values is not None:
            return len(self.two_values)
        return None if self.feature_names is None else len(self.feature_names)

    @property
    def yes_no(self) -> NDArray[np.bool_] | None:
        """Which features hold 0 and 1 and nothing else; None where that is not known."""
        return None if self.two_values is None else are_zero_and_one(self.two_values)

    @property
    def sizes(self) -> IndexArray:
        """Number of rows of each node."""
        return _read_only(self.stop - self.start)

    @property
    def node_weights(self) -> NDArray[Any]:
        """What the rows of each node count for together: their number, without weights."""
        if self.totals is not None:
            return self.totals
        if self.weights is None:
            return self.sizes
        sums = np.concatenate(([0.0], np.cumsum(self.weights[self.rows(self.root)])))
        return _read_only(sums[self.stop] - sums[self.start])

    @property
    def n_features_used(self) -> IndexArray:
        """Number of features that each node's rule uses, 0 where there is none.

        Those of one column of the user's table count as one.
        """
        encoding = self.encoding
        owner = np.arange(self.n_features or 0) if encoding is None else encoding.owner
        used = [
            0 if rule is None else len(np.unique(owner[rule.features])) for rule in self.rules
        ]
        return _read_only(np.array(used, dtype=np.intp))

    @property
    def labels(self) -> IndexArray:
        """The cluster of each row: the position of its leaf in ``leaves``, -1 for noise."""
        rows = self.rows(self.root)
        return _read_only(number(rows, self.sizes[self.leaves], self.n_rows))

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
        >>> from taxarbor.hierarchy import HierarchyBuilder, LinearRule
        >>> builder = HierarchyBuilder(3)
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
        found: list[int] = []
        waiting = [] if self.rules[node] is None else [*reversed(self.children(node))]
        while waiting:
            below = waiting.pop()
            if self.rules[below] is None and not self.is_leaf(below):
                waiting += reversed(self.children(below))
            else:
                found.append(below)
        return tuple(found)

    def rows(self, node: SupportsIndex) -> IndexArray:
        """Return the row numbers of the node, a read-only view."""
        node = node_id(node, self.n_nodes)
        if self.order is None:
            raise no_rows()
        return self.order[self.start[node] : self.stop[node]]

    def reasons(self, node: SupportsIndex, n_top: int | None = 3) -> tuple[Reason, ...]:
        """Return the features that send rows to this node rather than to its siblings.

        Those that do most for it come first, ``n_top`` at most, and only such that pull the
        rows apart. ``n_top=None`` returns all that the rule uses, those that pull rows
        together with a negative share. There are none for the root and without rules. The
        values of a category make one reason together. Where the rule chooses among more nodes
        than the siblings, its weights are averaged over those below each of them, and a reason
        never has a threshold.
        """
        return _reasons.reasons(self, node_id(node, self.n_nodes), n_top)

    def rename_features(self, names: Sequence[str]) -> "Hierarchy":
        """Return the same tree with other names of the columns.

        ValueError is raised if these came with a table, as new rows are read by them.
        """
        if isinstance(names, str):
            raise TypeError(f"names must be a list of names, got the text {names!r}")
        named = tuple(str(name) for name in names)
        own = None if self.encoding is None else self.encoding.feature_names
        if own is not None and own != named and self.feature_names == [*own]:
            raise InputError(
                "the names of the features are those of the table that the tree was grown on: "
                "rename the columns of the table, and fit again"
            )
        return replace(self, feature_names=named)

    def unscale(self, mean: ArrayLike | None, scale: ArrayLike | None) -> "Hierarchy":
        """Return the tree that sends ``x`` where this one sends ``(x - mean) / scale``.

        Nobody has to scale new rows then, and means and thresholds are in units people know.

        Parameters
        ----------
        mean, scale : arrays of shape (n_features,) or None
            What was subtracted from each column, and what it was divided by then: ``mean_``
            and ``scale_`` of scikit-learn's ``StandardScaler``. None if nothing was, as with
            ``with_mean=False``: the scaler then has a ``mean_`` that it does not subtract.

        Raises
        ------
        ValueError
            If these do not fit the features, are not finite, or a scale is not positive; or if
            the tree takes rows of a table, in the units of that.

        Examples
        --------
        >>> from sklearn.preprocessing import StandardScaler
        >>> from taxarbor import Taxarbor, load_animals
        >>> X = load_animals().X
        >>> scaler = StandardScaler().fit(X)
        >>> model = Taxarbor(6, random_state=0).fit(scaler.transform(X))
        >>> tree = model.hierarchy_.unscale(scaler.mean_, scaler.scale_)
        >>> bool((tree.predict(X) == model.labels_).all())
        True
        """
        return _remade.unscaled_tree(self, mean, scale)

    def cut(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> IndexArray:
        """Return the labels of a coarser clustering, numbered from left to right.

        Exactly one argument is given. Noise has -1.

        Parameters
        ----------
        n_clusters : int
            Undo the latest splits until there are at most so many clusters. There are
            fewer only where a split made more than two children.
        depth : int
            Undo all splits of nodes at this depth or deeper.

        Raises
        ------
        ValueError
            If not exactly one argument is given, or it is out of range.
        """
        kept, is_inner = _remade.kept_nodes(self, n_clusters, depth)
        sizes = self.sizes[_remade.from_left(self, kept[~is_inner])]
        return number(self.rows(self.root), sizes, self.n_rows)

    def prune(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> "Hierarchy":
        """Return the coarser tree whose labels :meth:`cut` returns for the same argument.

        Nodes are numbered anew, and keep what is known of them. One whose split is undone
        keeps its score, objective and info, as a leaf that was tried, but not its rule. A rule
        that chose among nodes below such a leaf sends their rows to it. Takes and raises what
        :meth:`cut` does.

        Examples
        --------
        >>> from taxarbor.exchange import from_linkage
        >>> tree = from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
        >>> tree.prune(2), tree.prune(2).labels
        (Hierarchy(n_rows=3, n_leaves=2, height=1), array([0, 0, 1]))
        """
        return _remade.pruned(self, n_clusters, depth)

    def attach(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> "Hierarchy":
        """Return the tree with other rows, for one that holds counts: each where it is sent.

        Sizes, means and shares of missing values are then those of these rows; the rows of the
        fit have the same sizes again, unless bounds on sizes kept some of them from where the
        rules send them. What else is known of the tree stays, but for its trust.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            The rows, in memory: those of the fit, or a sample of them. As in :meth:`predict`,
            which raises the same errors.
        sample_weight : array of shape (n_rows,), optional
            What each row counts for.

        Raises
        ------
        ValueError, TypeError
            If a leaf gets no row, or X need not fit into memory: a path, a lazy table.

        Examples
        --------
        >>> from taxarbor import Taxarbor
        >>> tree = Taxarbor(2, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]]).hierarchy_
        >>> tree.attach([[7.0], [2.0], [0.5]]).sizes.tolist()[0]
        3
        """
        return _remade.attached(self, X, sample_weight)

    def predict(self, X: ArrayLike) -> IndexArray:
        """Return the cluster of each row of new data, numbered as in ``labels``.

        Where rows were set apart as noise, so are new ones that are as far from every cluster.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            Floats are cast to the dtype of the rules, integers to float64.

        Raises
        ------
        ValueError
            If X is not two-dimensional, has another number of features than the rules,
            holds NaN or infinity, or is not numeric; or if the tree has no rules.
        """
        return _route.route(self, X)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return how likely each row of new data is to be in each leaf.

        That is: to lie in this cluster again when the same method is fitted to other rows of
        the same kind. How often that is so, only fitting again can tell; until then, where
        ``temperature`` is None, the numbers are a rough guess.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            As in :meth:`predict`, which raises the same errors.

        Returns
        -------
        probabilities : float64 array of shape (n_rows, n_leaves)
            The columns are the clusters from left to right. Rows sum to one, and are highest,
            for the first time, where :meth:`predict` puts the row, or would, if the row were
            not noise.

        Examples
        --------
        >>> from taxarbor import Taxarbor, load_animals
        >>> X = load_animals().X
        >>> tree = Taxarbor(6, random_state=0).fit(X).hierarchy_
        >>> P = tree.predict_proba(X)
        >>> P.shape, bool((P.argmax(axis=1) == tree.predict(X)).all())
        ((206, 6), True)
        """
        return _memberships.probabilities(self, X)

    def node_proba(self, P: ArrayLike) -> Array:
        """Return how likely rows are to be in each node: the sum over its leaves.

        Takes what :meth:`predict_proba` returns; the result has shape (n_rows, n_nodes).
        """
        return _memberships.node_sums(self, P)

    def decision_path(self, X: ArrayLike) -> "csr_array":
        """Return the nodes that each row of new data visits, as ones in a CSR matrix.

        Its shape is (n_rows, n_nodes); the indices of each row run from the root to the leaf,
        with those nodes in between that have no rule. Noise visits none.
        Takes and raises what :meth:`predict` does.
        """
        return _route.visited(self, _route.route(self, X))

    def to_text(
        self, max_depth: int | None = None, n_top: int = 3, *, max_nodes: int = 200
    ) -> str:
        """Return the tree as indented text, one line per node, ``max_nodes`` at most.

        ``max_depth`` leaves out what is deeper. A line says of ``n_top`` features what leads
        to the node: ``node 4: 12 rows, age at most 41.5 [c2]`` where one feature decides,
        ``higher age, lower height`` where several do. Where a rule looks further down than the
        children of its node, ``(its rule chooses among 12 clusters by 40 features)``. Once the
        tree was assessed, ``(came back in 18 of 20 refits)``.
        """
        return _words.to_text(self, max_depth, n_top, max_nodes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of the hierarchy to one file of exactly this name, whole or not at all.

        A file that is there is replaced, once the new one is complete. OSError is raised if
        the file cannot be written; what was there before is left as it was.
        """
        _file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Hierarchy":
        """Return the hierarchy that :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            If the file is damaged, of another kind or of another version.
        OSError
            If it cannot be read, FileNotFoundError if there is none.
        """
        return _file.load(path, cls)


def _read_as_list(slot: Any) -> Any:
    """Return the slot of a tuple in such a way that each reader gets a list of their own."""

    def read(tree: Hierarchy) -> list[str] | None:
        stored = slot.__get__(tree)
        return None if stored is None else list(stored)

    return property(read, slot.__set__)


# What is stored must not change, and data frames take a list for columns, but no tuple.
Hierarchy.feature_names = _read_as_list(Hierarchy.feature_names)  # type: ignore[misc]


def hierarchy_of(model: object) -> Hierarchy:
    """Return the tree of a fitted model, or what is one already; TypeError if there is none."""
    found = getattr(model, "hierarchy_", model)
    if isinstance(found, Hierarchy):
        return found
    steps = getattr(model, "steps", None)
    last = steps[-1][-1] if isinstance(steps, list) and steps else model
    declared = (inspect.get_annotations(base) for base in type(last).__mro__)
    if any("hierarchy_" in names for names in declared) and "hierarchy_" not in vars(last):
        from sklearn.exceptions import NotFittedError  # late: scikit-learn takes long to load

        raise NotFittedError(f"this {type(last).__name__} is not fitted yet: call fit first")
    if last is not model and isinstance(getattr(last, "hierarchy_", None), Hierarchy):
        raise TypeError(
            "got a pipeline, whose model has seen other rows than were passed to it: pass "
            "pipeline[-1], its last step, and for X pipeline[:-1].transform(X)"
        )
    raise TypeError(
        f"expected a fitted model of taxarbor or a Hierarchy, got {type(model).__name__}; "
        "call fit first, or make a tree by from_sklearn, from_linkage or from_labels of "
        "taxarbor.exchange"
    )


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _depths(parents: IndexArray) -> IndexArray:
    """Count the ancestors of each node, doubling the stride each time: no walk per node."""
    found = (parents >= 0).astype(np.intp)
    ancestors = np.maximum(parents, 0)  # the root, its own ancestor, adds nothing
    while ancestors.any():
        found += found[ancestors]
        ancestors = ancestors[ancestors]
    return found


def number(
    order: IndexArray, sizes: Sequence[int] | IndexArray, n_rows: int | None = None
) -> IndexArray:
    """Label rows 0, 1, ...: from the left, so many of the ordered rows have each label.

    Of more rows than are ordered, the others have -1.
    """
    labels = np.full(len(order) if n_rows is None else n_rows, -1, dtype=np.intp)
    labels[order] = np.repeat(np.arange(len(sizes)), sizes)
    return labels
