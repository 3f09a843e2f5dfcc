"""The result of a fit: a tree, and what is known beside it of features, noise, stability."""

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, set_frozen
from taxarbor.tables._encoding import Encoding
from taxarbor.taxonomy import (
    _edit_taxonomy,
    _model_file,
    _new_rows,
    _probabilities,
    _reasons,
    _text,
)
from taxarbor.taxonomy._noise import NoiseModel
from taxarbor.taxonomy._phrases import Reason
from taxarbor.taxonomy._stability_result import Stability
from taxarbor.tree import Tree
from taxarbor.tree._tree import Claims, check_claims, node_id


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taxonomy:
    """A tree of clusters with all that is needed to read it, to route new rows and to save it.

    Attributes
    ----------
    tree : Tree
        The structure, the rules and, where rows are in memory, their order.
    means : array of shape (n_nodes, n_features) or None
        The weighted mean of each node's rows that took part in the fit, of the dtype of the
        rules; None where not known.
    is_boolean : bool array of shape (n_features,) or None
        Which features hold 0 and 1 only; None where that is not known.
    missing : float array of shape (n_nodes, n_columns) or None
        The share of missing values of each node's rows in each column of the encoding; None
        where there are none.
    encoding : Encoding or None
        How the columns of the user's table become the features of the tree; None where they
        are the features.
    noise_model : NoiseModel or None
        Decides which new rows are noise, where any are; kept whole when pruning.
    stability : Stability or None
        Which clusters recurred when the model was refitted, once it was assessed.
    temperature : float or None
        The temperature of the probabilities, measured by refitting; None where it was not.
    made_by : dict or None
        The name and the parameters of the estimator.

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
    means: Array | None = None
    is_boolean: NDArray[np.bool_] | None = None
    missing: Array | None = None
    encoding: Encoding | None = None
    noise_model: NoiseModel | None = None
    stability: Stability | None = None
    temperature: float | None = None
    made_by: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("means", "is_boolean", "missing"):
            if (given := getattr(self, name)) is not None:
                set_frozen(self, **{name: np.array(given)})
        check_claims("taxonomy", _claims(self))

    def __repr__(self) -> str:
        return repr(self.tree).replace("Tree", "Taxonomy", 1)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"

    # The state is what a file holds: plain arrays and text, which any pickler can take.
    def __getstate__(self) -> dict[str, NDArray[Any]]:
        return _model_file.pack(self)

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        Taxonomy.__init__(self, **_model_file.unpack(state))

    @property
    def n_features(self) -> int | None:
        """Number of features; None where no rule, mean or name tells."""
        if (width := self.tree.n_features) is not None:
            return width
        values = self.is_boolean if self.means is None else self.means.T
        return None if values is None else len(values)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, where known."""
        return self.tree.feature_names

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
        """Return the same taxonomy with other names of the features.

        ValueError is raised if these came with a table, as new rows are read by them.
        """
        if isinstance(names, str):
            raise TypeError(f"names must be a list of names, got the text {names!r}")
        renamed = tuple(str(name) for name in names)
        of_table = None if self.encoding is None else self.encoding.feature_names
        if of_table is not None and of_table != renamed and self.feature_names == of_table:
            raise InputError(
                "the names of the features are those of the table that the tree was grown on: "
                "rename the columns of the table, and fit again"
            )
        return replace(self, tree=replace(self.tree, feature_names=renamed))

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
        return _edit_taxonomy.prune(self, n_clusters, depth)

    def attach(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> "Taxonomy":
        """Return the tree with other rows, for one that holds counts: each where it is sent.

        Sizes, means and shares of missing values are then those of these rows; the rows of the
        fit have the same sizes again, unless bounds on sizes kept some of them from where the
        rules send them. What else is known of the tree stays, but for its stability.

        X are rows in memory as in :meth:`predict`: those of the fit, or a sample of them;
        ``sample_weight`` is what each counts for. Raises what :meth:`predict` does, and an
        InputError if a leaf gets no row.

        Examples
        --------
        >>> from taxarbor import Taxarbor
        >>> taxonomy = Taxarbor(2, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]]).taxonomy_
        >>> int(taxonomy.attach([[7.0], [2.0], [0.5]]).tree.sizes[0])
        3
        """
        return _edit_taxonomy.attach(self, X, sample_weight)

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
        return _new_rows.route(self, X)

    def predict_proba(self, X: ArrayLike) -> Array:
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
        return _probabilities.predict_proba(self, X)

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
        _model_file.save(self, path)

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
        return _model_file.load(path, cls)


def _claims(taxonomy: Taxonomy) -> Claims:
    """Yield what must hold of the parts, which are each sound on their own."""
    tree, means, booleans = taxonomy.tree, taxonomy.means, taxonomy.is_boolean
    n_nodes, n_features = tree.n_nodes, taxonomy.n_features
    rule = tree.rules[tree.root]
    if means is not None:
        is_right = means.shape == (n_nodes, n_features) and means.dtype.char in "fd"
        message = f"means must be floats of {n_nodes} nodes and {n_features} features"
        yield is_right, f"{message}, got {means.dtype} of shape {means.shape}"
        yield np.isfinite(means).all(), "means must be finite"
        is_right = rule is None or rule.dtype == means.dtype
        yield is_right, "means must have the dtype of the rules"
    if booleans is not None:
        is_right = booleans.shape == (n_features,) and booleans.dtype == bool
        yield is_right, f"is_boolean must be a bool for each of {n_features} features"
    if taxonomy.noise_model is not None:
        width = taxonomy.noise_model.centers.shape[1]
        yield n_features in (None, width), "noise_model must have a column for each feature"
    n_columns = 0
    if taxonomy.encoding is not None:
        n_columns, n_made = len(taxonomy.encoding.columns), taxonomy.encoding.n_features
        yield n_features in (None, n_made), f"the encoding must make {n_features} features"
    if (missing := taxonomy.missing) is not None:
        is_right = missing.shape == (n_nodes, n_columns) and missing.dtype == np.float64
        message = "missing must have a share for each node and column of the encoding"
        yield is_right and ((missing >= 0.0) & (missing <= 1.0)).all(), message
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
