"""The result of a fit: a tree, and what is known beside it of features, noise, stability."""

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, counted
from taxarbor._types import Array, IndexArray, TableLike, set_frozen
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import (
    _reasons,
    _text,
    edit_taxonomy,
    model_file,
    new_rows,
    probabilities,
)
from taxarbor.taxonomy._phrases import Reason
from taxarbor.taxonomy.noise import NoiseModel
from taxarbor.taxonomy.stability_result import Stability
from taxarbor.taxonomy.statistics import NodeStatistics
from taxarbor.tree import Tree
from taxarbor.tree.tree import Claims, check_claims, node_id


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taxonomy:
    """A tree of clusters with all that is needed to read it, to route new rows and to save it.

    Attributes
    ----------
    tree : Tree
        The structure, the rules and, where rows are in memory, their order.
    columns : Columns
        What the columns of the user's table are, and how they become the features of the tree.
        There are none in a tree that was made from labels or merges alone.
    statistics : NodeStatistics or None
        Counts and sums of each node's rows; None where not known.
    noise_model : NoiseModel or None
        Decides which new rows are noise, where any are; kept whole when pruning.
    stability : Stability or None
        Which clusters recurred when the model was refitted, once it was assessed.
    temperature : float or None
        The temperature of the probabilities, measured by refitting; None where it was not.
    made_by : dict or None
        The name and the parameters of the estimator.
    means : array of shape (n_nodes, n_features) or None
        The weighted mean of each node's rows, in which missing values are imputed.

    Raises
    ------
    ValueError
        If the parts do not fit together.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> taxonomy = Taxarbor(4, random_state=0).fit(load_animals().X).taxonomy_
    >>> taxonomy, taxonomy.tree.n_leaves
    (Taxonomy(n_rows=206, n_leaves=4, height=2), 4)
    """

    tree: Tree
    columns: Columns = field(default_factory=lambda: Columns.plain(0, imputes=False))
    statistics: NodeStatistics | None = None
    noise_model: NoiseModel | None = None
    stability: Stability | None = None
    temperature: float | None = None
    made_by: dict[str, Any] | None = None
    means: Array | None = field(init=False)

    def __post_init__(self) -> None:
        if not self.columns.n_features and self.tree.n_features is not None:
            set_frozen(self, columns=Columns.plain(self.tree.n_features, imputes=False))
        means = None if self.statistics is None else self.statistics.mean(self.columns)
        set_frozen(self, means=means)
        check_claims("taxonomy", _claims(self))

    def __repr__(self) -> str:
        return repr(self.tree).replace("Tree", "Taxonomy", 1)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"

    # The state is what a file holds: plain arrays and text, which any pickler can take.
    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return model_file.pack(self)

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        Taxonomy.__init__(self, **model_file.unpack(state))

    @property
    def n_features(self) -> int | None:
        """Number of features; None in a tree that was made from labels or merges alone."""
        return self.columns.n_features or None

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, ``x0``, ``x1``, ... where the table has none."""
        return self.columns.feature_names or None

    @property
    def missing(self) -> Array | None:
        """The share of missing values of each node's rows in each of the ``columns``."""
        return None if self.statistics is None else self.statistics.missing

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The type of the features."""
        rule = self.tree.rules[self.tree.root]
        return np.dtype(np.float64) if rule is None else rule.dtype

    @property
    def n_features_used(self) -> IndexArray:
        """Number of features that each node's rule uses, 0 where there is none.

        Those of one column of the user's table count as one.
        """
        used = [_reasons.count_columns(self, rule) for rule in self.tree.rules]
        counts = np.array(used, dtype=np.intp)
        counts.setflags(write=False)
        return counts

    def reasons(self, node: SupportsIndex, n_top: int | None = 3) -> tuple[Reason, ...]:
        """Return the features that send rows to this node rather than to its siblings.

        Those that do most for it come first, ``n_top`` at most, and only such that pull the
        rows apart. ``n_top=None`` returns all that the rule uses, those that pull rows
        together with a negative share. There are none for the root and without rules. The
        values of a category make one reason together. Where the rule chooses among more nodes
        than the siblings, its weights are averaged over those below each of them, and a reason
        never has a threshold.
        """
        return _reasons.reasons(self, node_id(node, self.tree.n_nodes), n_top)

    def rename_features(self, names: Sequence[str]) -> "Taxonomy":
        """Return the same taxonomy with names of the features of an array.

        ValueError is raised if a table had other names, as new rows are read by them.
        """
        if isinstance(names, str):
            raise TypeError(f"names must be a list of names, got the text {names!r}")
        renamed, columns = tuple(str(name) for name in names), self.columns
        if columns.names is not None and columns.feature_names == renamed:
            return self
        if len(renamed) != (len(columns) or len(renamed)):
            expected = f"must hold one name for each of {counted(len(columns), 'column')}"
            raise InputError(f"{expected}; got {len(renamed)}", "names")
        if not columns.n_features:
            return replace(self, columns=Columns.plain(len(renamed), renamed, imputes=False))
        if columns.names is not None:
            raise InputError(
                "the names of the features are those of the table that the tree was grown on: "
                "rename the columns of the table, and fit again"
            )
        return replace(self, columns=columns.rename(renamed))

    def cut(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> IndexArray:
        """Return the labels of a coarser clustering, numbered from left to right.

        Give either argument: with ``n_clusters`` the latest splits are undone until there are
        at most so many clusters, fewer only where a split made more than two children; with
        ``depth`` all splits of nodes at this depth or deeper. Noise has -1. ValueError is
        raised if not exactly one is given, or it is out of range.
        """
        return self.tree.cut(n_clusters, depth=depth)

    def prune(
        self, n_clusters: SupportsIndex | None = None, *, depth: SupportsIndex | None = None
    ) -> "Taxonomy":
        """Return the coarser taxonomy whose labels :meth:`cut` returns for the same argument.

        Nodes are numbered anew, and keep what is known of them. One whose split is undone
        keeps its score, objective and info, as a leaf that was tried, but not its rule. A rule
        that chose among nodes below such a leaf sends their rows to it. Takes and raises what
        :meth:`cut` does.

        Examples
        --------
        >>> from taxarbor.exchange import from_linkage
        >>> taxonomy = from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
        >>> taxonomy.prune(2), taxonomy.prune(2).tree.labels
        (Taxonomy(n_rows=3, n_leaves=2, height=1), array([0, 0, 1]))
        """
        return edit_taxonomy.prune(self, n_clusters, depth)

    def attach(self, X: TableLike, sample_weight: ArrayLike | None = None) -> "Taxonomy":
        """Return the tree with other rows, for one that holds counts: each where it is sent.

        Sizes, means and shares of missing values are then those of these rows; the rows of the
        fit have the same sizes again, unless bounds on sizes kept some of them from where the
        rules send them. What else is known of the tree stays, but for its stability.

        X are rows as in :meth:`predict`, but of Dask: those of the fit, or a sample of them;
        ``sample_weight`` is what each counts for. Raises what :meth:`predict` does, and an
        InputError if a leaf gets no row.

        Examples
        --------
        >>> from taxarbor import Taxarbor
        >>> taxonomy = Taxarbor(2, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]]).taxonomy_
        >>> int(taxonomy.attach([[7.0], [2.0], [0.5]]).tree.sizes[0])
        3
        """
        return edit_taxonomy.attach(self, X, sample_weight)

    def predict(self, X: TableLike) -> IndexArray:
        """Return the cluster of each row of new data, numbered as in ``labels``.

        If fitted with ``noise``, new rows beyond the threshold are labelled -1.

        Parameters
        ----------
        X : array-like, CSR matrix, data frame, path or stream of shape (n_rows, n_columns)
            New rows, from whatever source a fit takes: files are read in blocks, and of a Dask
            collection the labels are a lazy array. Columns are found by name where both sides
            have names, else by position; those that no rule reads may be absent.

        Raises
        ------
        ValueError
            If X is no table, has another number of columns, or none of those that are needed,
            or holds infinity; or if the tree has no rules.

        Warns
        -----
        TableWarning
            If a column that rules read is absent, or holds values that the fit did not see:
            both count as missing.
        """
        return new_rows.apply(self, X, new_rows.route)

    def predict_proba(self, X: TableLike) -> Array:
        """Return how likely each row of new data is to be in each leaf.

        That is: to lie in this cluster again when the same method is fitted to other rows of
        the same kind. Where ``temperature`` is None, no refits were made, and the numbers are a
        rough guess.

        The result has shape (n_rows, n_leaves); its columns are the clusters from left to
        right. Rows sum to one, and are highest, for the first time, where :meth:`predict` puts
        the row, or would, if it were not noise. Takes and raises what :meth:`predict` does.

        Examples
        --------
        >>> from taxarbor import Taxarbor, load_animals
        >>> X = load_animals().X
        >>> taxonomy = Taxarbor(6, random_state=0).fit(X).taxonomy_
        >>> P = taxonomy.predict_proba(X)
        >>> P.shape, bool((P.argmax(axis=1) == taxonomy.predict(X)).all())
        ((206, 6), True)
        """
        n_leaves, work = self.tree.n_leaves, probabilities.predict_proba
        return new_rows.apply(self, X, work, np.float64, n_leaves)

    def to_text(
        self, max_depth: int | None = None, n_top: int = 3, *, max_nodes: int = 200
    ) -> str:
        """Return the tree as indented text, one line per node, ``max_nodes`` at most.

        ``max_depth`` leaves out what is deeper. A line says of ``n_top`` features what leads
        to the node: ``node 4: 12 rows, age at most 41.5 [c2]`` where one feature decides,
        ``higher age, lower height`` where several do. Where a rule looks further down than the
        children of its node, ``(its rule chooses among 12 clusters by 40 features)``. Once the
        tree was assessed, ``(recovered in 18 of 20 refits)``.
        """
        return _text.to_text(self, max_depth, n_top, max_nodes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of the taxonomy to one file of exactly this name, whole or not at all.

        A file that is there is replaced, once the new one is complete. OSError is raised if
        the file cannot be written; what was there before is left as it was.
        """
        model_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Taxonomy":
        """Return the taxonomy that :meth:`save` wrote.

        Raises
        ------
        FileFormatError
            If the file is damaged, of another kind or of another version.
        OSError
            If it cannot be read, FileNotFoundError if there is none.
        """
        return model_file.load(path, cls)


def _claims(taxonomy: Taxonomy) -> Claims:
    """Yield what must hold of the parts, which are each sound on their own."""
    tree, columns, means = taxonomy.tree, taxonomy.columns, taxonomy.means
    n_nodes, n_features = tree.n_nodes, columns.n_features
    yield tree.n_features in (None, n_features), f"the columns must make {n_features} features"
    if means is not None:
        message = f"statistics must be of {n_nodes} nodes and {n_features} features"
        yield means.shape == (n_nodes, n_features), message
        yield np.isfinite(means).all(), "means must be finite"
    if (missing := taxonomy.missing) is not None:
        are_shares = missing.shape == (n_nodes, len(columns)) and (missing <= 1.0 + 1e-9).all()
        yield are_shares, "missing must be a share for each node and column"
    if taxonomy.noise_model is not None:
        width = taxonomy.noise_model.centers.shape[1]
        yield n_features == width, "noise_model must have a column for each feature"
    if taxonomy.stability is not None:
        yield tree.has_rows, "a tree of counts has no stability, which is of rows"
        yield from taxonomy.stability.claims(tree)
    given = taxonomy.temperature
    is_right = given is None or (isinstance(given, float) and 0.0 < given < np.inf)
    yield is_right, f"temperature must be None or a positive, finite float, got {given!r}"
    is_right = taxonomy.made_by is None or isinstance(taxonomy.made_by, dict)
    yield is_right, "made_by must be None or a dict"


def taxonomy_of(model: object) -> Taxonomy:
    """Return the tree of a fitted model, or what is one already; TypeError if there is none."""
    result = getattr(model, "taxonomy_", model)
    if isinstance(result, Taxonomy):
        return result
    steps = getattr(model, "steps", None)
    last = steps[-1][-1] if isinstance(steps, list) and steps else model
    declared = (inspect.get_annotations(base) for base in type(last).__mro__)
    if any("taxonomy_" in names for names in declared) and "taxonomy_" not in vars(last):
        from sklearn.exceptions import NotFittedError  # late: scikit-learn takes long to load

        raise NotFittedError(f"this {type(last).__name__} is not fitted yet: call fit first")
    if last is not model and isinstance(getattr(last, "taxonomy_", None), Taxonomy):
        raise TypeError(
            "got a pipeline, whose model has seen other rows than were passed to it: pass "
            "pipeline[-1], its last step, and for X pipeline[:-1].transform(X)"
        )
    raise TypeError(
        f"expected a fitted model of taxarbor or a Taxonomy, got {type(model).__name__}; "
        "call fit first, or make a tree by from_linkage or from_labels of taxarbor.exchange"
    )
