"""What the estimators share: reading the fitted tree, and a fit whose splits are final."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import GrowthWarning, InputError, InputTypeError, counted, warn_caller
from taxarbor._types import Array, IndexArray, Status
from taxarbor.estimators._fit import Training, keep_columns, start_run
from taxarbor.grow import StoppingRule, grow
from taxarbor.rows import as_rows
from taxarbor.sources import open_source
from taxarbor.split import MaxMarginSplitter, Splitter
from taxarbor.tables._checks import (
    SeenFeatures,
    check_count,
    check_jobs,
    check_new_rows,
    check_weights,
)
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit import drop_rows, regroup
from taxarbor.taxonomy._noise import score_rows
from taxarbor.taxonomy._probabilities import predict_proba
from taxarbor.taxonomy._routing import route
from taxarbor.tree import Tree, TreeBuilder
from taxarbor.tree._routing import find_paths, place_rows


class TaxonomyEstimator(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A clusterer whose result is a :class:`~taxarbor.taxonomy.Taxonomy`."""

    encoder: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    taxonomy_: Taxonomy
    labels_: NDArray[np.intp]
    outlier_score_: Array

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the tree; see :meth:`Taxarbor.fit`."""

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Send rows down the tree and return their clusters, numbered as in ``labels_``.

        Where the fit set rows apart as noise, new ones that are as far from all have -1.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows. Files, memory maps and datasets are read in blocks; for an array or a
            frame of Dask the labels are a lazy array.

        Returns
        -------
        labels : array of shape (n_rows,)
        """
        labels: NDArray[np.intp] = self._apply(X, route, np.intp)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return how likely each row is to be in each cluster, if all were fitted again.

        A rough guess after ``fit``, which does not fit again; see
        :meth:`taxarbor.Taxonomy.predict_proba`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows, as in :meth:`predict`.

        Returns
        -------
        probabilities : array of shape (n_rows, n_clusters)
            Rows sum to one; each is highest where ``predict`` puts the row, unless that says
            that it is noise, of which the probabilities say nothing.
        """
        check_is_fitted(self)
        found: Array = self._apply(X, predict_proba, np.float64, self.taxonomy_.tree.n_leaves)
        return found

    def decision_path(self, X: Any) -> Any:
        """Return which nodes each row visits on its way down.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows, not of Dask.

        Returns
        -------
        indicator : CSR array of shape (n_rows, n_nodes)
            One where row i passes through node j.
        """
        labels = self.predict(X)
        if not isinstance(labels, np.ndarray):
            raise InputTypeError(
                "must be rows in memory or in files for decision_path, not of Dask; call it "
                "for a block at a time",
                "X",
            )
        return find_paths(self.taxonomy_.tree, labels)

    def _apply(
        self, X: Any, work: Callable[..., Any], dtype: DTypeLike, n_columns: int | None = None
    ) -> Any:
        """Return what a function of a tree and rows makes of all rows, wherever they are."""
        check_is_fitted(self)
        source, n_threads = open_source(X), check_jobs(self.n_jobs)
        if source.in_memory:
            taxonomy, source = self.taxonomy_, open_source(check_new_rows(self, X))
        else:
            taxonomy = drop_rows(self.taxonomy_)
            source = keep_columns(source, taxonomy)
        call = partial(work, taxonomy, n_threads=n_threads)
        return source.apply(call, dtype, n_columns, n_threads=n_threads)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show a fitted model's tree in notebooks, below its parameters."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        tree = vars(self).get("taxonomy_")
        if tree is not None and "text/html" in bundle:
            bundle["text/html"] += tree._repr_html_()
        return bundle

    def __sklearn_tags__(self) -> Any:
        """Say that sparse input is welcome and the type of floats is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.encoder is not None
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fit_greedily(
        self,
        X: Any,
        sample_weight: Any,
        splitter: Splitter,
        branching: int,
        stop: StoppingRule,
    ) -> Self:
        """Grow a tree on all rows, in memory, whose splits are final.

        Labels are what the splits made of the rows; rows without a part go by the rules.
        """
        with start_run(self) as run:
            source = open_source(X)
            weights = check_weights(sample_weight, source.n_rows)
            sample = replace(source.sample(source.n_rows, run.seed), weights=weights)
            training = Training.of(self, sample, stop.n_leaves)
            if isinstance(splitter, MaxMarginSplitter):
                splitter = splitter.over(training.features.owner)
            rows = as_rows(training.copies(), n_threads=run.width)
            grown = grow(rows, splitter, branching=branching, stop=training.stop(stop), run=run)
            taxonomy, expanded = training.finish(grown.freeze(order=False), self)
            tree = taxonomy.tree
            routed = np.zeros(len(sample.rows), dtype=np.intp)
            if tree.n_leaves == 1 or tree.rules[tree.root] is not None:
                routed = place_rows(tree, expanded.data, n_threads=run.width).astype(np.intp)
            labels = _labels_of_rows(grown.labels, training.index, routed)
            taxonomy = training.describe(taxonomy, expanded, labels)
            noise_model, center_of = training.find_noise(taxonomy, expanded, labels)
            scores = score_rows(
                taxonomy, noise_model, center_of, expanded.data, labels, n_threads=run.width
            )
            taxonomy = regroup(taxonomy, labels, training.weights_of_rows(weights))
            self._keep(
                taxonomy,
                training.features.seen,
                labels_=taxonomy.tree.labels.copy(),
                outlier_score_=scores,
                n_rerouted_=int(np.count_nonzero(labels != routed)),
            )
            warn_if_short(taxonomy.tree, stop, branching)
            if isinstance(splitter, MaxMarginSplitter):
                _warn_if_unbalanced(grown, splitter, has_weights=weights is not None)
            _warn_if_unsettled(taxonomy.tree, self.get_params())
        return self

    def _keep(self, taxonomy: Taxonomy, seen: SeenFeatures, **per_row: Any) -> None:
        """Leave what a fit found on the estimator, in one step: all is new."""
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = kept | seen.attributes | {"taxonomy_": taxonomy} | per_row


def _labels_of_rows(
    labels: IndexArray, index: IndexArray | None, routed: IndexArray
) -> IndexArray:
    """Return the leaf of most copies of each row, the first of ties; of none, by the rules."""
    if index is None:
        return labels
    n_leaves = int(labels.max()) + 1
    cells, counts = np.unique(index * n_leaves + labels, return_counts=True)
    cells = cells[np.lexsort((-counts, cells // n_leaves))]
    rows, first = np.unique(cells // n_leaves, return_index=True)
    own = routed.copy()
    own[rows] = cells[first] % n_leaves
    return own


def check_growth(estimator: Any, n_clusters: int | None = None) -> tuple[int, StoppingRule]:
    """Return the number of children per split, and when to stop: its own, or at a number."""
    names = "n_clusters", "max_leaf_size", "max_depth"
    given = {name: getattr(estimator, name) for name in names}
    if n_clusters is not None:
        given["n_clusters"] = n_clusters
    limits = [v if v is None else check_count(name, v, least=1) for name, v in given.items()]
    if all(limit is None for limit in limits):
        raise InputError("give n_clusters, max_leaf_size or max_depth: nothing ends the growth")
    branching = check_count("branching", estimator.branching, least=2)
    return branching, StoppingRule(*limits)


def warn_if_short(tree: Tree, stop: StoppingRule, branching: int) -> None:
    """Warn when the tree could not be grown as far as asked for, and say why."""
    reasons = _describe_refusals(tree)
    asked = stop.n_leaves
    if asked is not None and tree.n_leaves < asked:
        if not reasons and tree.n_leaves + branching - 1 > asked:
            reasons = f"a split into {branching} adds {branching - 1} leaves at once"
        if not reasons and stop.max_leaf_size is None and stop.max_depth is None:
            reasons = "others would be too small, or no rule tells their rows apart"
        leaves = "leaf" if tree.n_leaves == 1 else "leaves"
        told = f"the tree has {tree.n_leaves} {leaves} where {asked} were asked for"
    elif asked is None and stop.max_leaf_size is not None:
        told = f"some leaves have more than max_leaf_size={stop.max_leaf_size} rows"
    else:
        return
    if reasons:
        warn_caller(f"{told}: {reasons}", GrowthWarning)


def _warn_if_unbalanced(
    tree: TreeBuilder, splitter: MaxMarginSplitter, *, has_weights: bool
) -> None:
    """Warn, once, of splits that equal rows keep from the sizes that were asked for."""
    splits = [[tree.size(child) for child in tree.children(node)] for node in tree.inner]
    off = [sizes for sizes in splits if not splitter.allows(sizes)]
    if off:
        shares = [size * len(sizes) / sum(sizes) for sizes in off for size in sizes]
        what = "equal rows, and what one row weighs," if has_weights else "equal rows"
        low, high = splitter.balance
        warn_caller(
            f"{len(off)} of {counted(len(splits), 'split')} could not be balanced, as {what} "
            f"stay together: children have {min(shares):.3g} to {max(shares):.3g} of an equal "
            f"share, where balance asks for {low:g} to {high:g}; balance=None asks for none",
            GrowthWarning,
        )


def _warn_if_unsettled(tree: Tree, parameters: dict[str, Any]) -> None:
    """Warn, once, of splits whose solver ran out of rounds."""
    splits = [info for info, rule in zip(tree.info, tree.rules, strict=True) if rule and info]
    open_ends = sum(info.status is Status.ITERATION_LIMIT for info in splits)
    if open_ends:
        told = f"{open_ends} of {len(splits)} splits did not settle in the rounds they may take"
        if "solver" in parameters:
            told += "; scale the columns, raise tol, or try solver='pqn'"
        warn_caller(told, ConvergenceWarning)


def _describe_refusals(tree: Tree, most: int = 3) -> str:
    """Say which leaves could not be split, and why, the first few by name."""
    refused = [(int(leaf), tree.notes[leaf]) for leaf in tree.leaves if tree.notes[leaf]]
    told = "; ".join(
        f"leaf node {node} ({counted(int(tree.sizes[node]), 'row')}) was refused: {why}"
        for node, why in refused[:most]
    )
    rest = len(refused) - most
    return told + (f"; and {rest} more" if rest > 0 else "")
