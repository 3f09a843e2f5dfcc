"""What the estimators share: reading the fitted tree, and a fit whose splits are final."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import GrowthWarning, InputError, counted, warn_caller
from taxarbor._frames import is_anndata
from taxarbor._types import Array, IndexArray, Status
from taxarbor.estimators._fit_steps import TrainingRows, select_columns, start_run
from taxarbor.grow import StoppingRule, grow
from taxarbor.rows import as_rows
from taxarbor.sources import open_source
from taxarbor.split import MaxMarginSplitter, Splitter
from taxarbor.tables._validation import (
    SeenFeatures,
    check_count,
    check_jobs,
    check_new_rows,
    check_weights,
)
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit_taxonomy import drop_rows, regroup
from taxarbor.taxonomy._new_rows import check_matrix, route
from taxarbor.taxonomy._probabilities import predict_proba
from taxarbor.tree import Tree, TreeBuilder
from taxarbor.tree._route_rows import place_rows

MAX_NAMED_REFUSALS = 3
"""Leaves that could not be split, and that a warning names."""


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
        """Fit the taxonomy; see :meth:`Taxarbor.fit`."""

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict the cluster of each row by the rules of the tree.

        Parameters
        ----------
        X : array-like, CSR matrix or data frame of shape (n_rows, n_features)
            New rows. Files, memory maps and datasets are read in blocks; for a Dask array or
            data frame the labels are a lazy array.

        Returns
        -------
        labels : array of shape (n_rows,)
            Clusters, numbered as in ``labels_``; -1 for noise, where ``noise`` was set.
        """
        labels: NDArray[np.intp] = self._apply(X, route, np.intp)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Predict how likely each row is to be in each cluster again, in a fit to other rows.

        A rough estimate until the model was assessed; see
        :meth:`taxarbor.Taxonomy.predict_proba`.

        Parameters
        ----------
        X : array-like, CSR matrix or data frame of shape (n_rows, n_features)
            New rows, as in :meth:`predict`.

        Returns
        -------
        probabilities : array of shape (n_rows, n_clusters)
            Rows sum to one. Each is highest for the cluster that ``predict`` returns, or that
            it would return if the row were not noise.
        """
        check_is_fitted(self)
        n_leaves = self.taxonomy_.tree.n_leaves
        P: Array = self._apply(X, predict_proba, np.float64, n_leaves)
        return P

    def _apply(
        self, X: Any, work: Callable[..., Any], dtype: DTypeLike, n_columns: int | None = None
    ) -> Any:
        """Return the result of a function of a taxonomy and rows, wherever the rows are."""
        check_is_fitted(self)
        source, n_threads = open_source(X), check_jobs(self.n_jobs)
        if is_anndata(X) or not source.in_memory:
            check_matrix(self.taxonomy_, source.names)
        if source.in_memory:
            taxonomy, source = self.taxonomy_, open_source(check_new_rows(self, X))
        else:
            taxonomy = drop_rows(self.taxonomy_)
            source = select_columns(source, taxonomy)
        call = partial(work, taxonomy, n_threads=n_threads)
        return source.apply(call, dtype, n_columns)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show the tree of a fitted model in notebooks, below its parameters."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        taxonomy = vars(self).get("taxonomy_")
        if taxonomy is not None and "text/html" in bundle:
            bundle["text/html"] += taxonomy._repr_html_()
        return bundle

    def __sklearn_tags__(self) -> Any:
        """Declare that sparse rows are accepted and the type of floats is preserved."""
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

        Labels are those of the splits; excluded rows are routed by the rules.
        """
        with start_run(self) as run:
            source = open_source(X)
            weights = check_weights(sample_weight, source.n_rows)
            sample = replace(source.sample(source.n_rows, run.seed), weights=weights)
            training = TrainingRows.of(self, sample, stop.n_leaves)
            features = training.features
            if isinstance(splitter, MaxMarginSplitter):
                splitter = splitter.over(features.owner)
            data = as_rows(training.repeat(features.data), n_threads=run.width)
            stop_at = training.scale_stop(stop)
            grown = grow(data, splitter, branching=branching, stop=stop_at, run=run)
            taxonomy, rows = training.decode(grown.freeze(with_rows=False), self)
            tree = taxonomy.tree
            routed = np.zeros(len(sample.rows), dtype=np.intp)
            if tree.n_leaves == 1 or tree.rules[tree.root] is not None:
                routed = place_rows(tree, rows.data, n_threads=run.width).astype(np.intp)
            labels = _label_rows(grown.labels, training.index, routed)
            taxonomy = training.describe(taxonomy, rows, labels)
            scorer = training.fit_noise_model(taxonomy, rows, labels)
            scores = scorer.score_rows(taxonomy, rows.data, labels, n_threads=run.width)
            taxonomy = regroup(taxonomy, labels, training.weigh_rows(weights))
            fitted = self._copy_fitted(
                taxonomy,
                features.seen,
                labels_=taxonomy.tree.labels.copy(),
                outlier_score_=scores,
                n_rerouted_=int(np.count_nonzero(labels != routed)),
            )
            warn_if_short(taxonomy.tree, stop, branching)
            if isinstance(splitter, MaxMarginSplitter):
                _warn_if_unbalanced(grown, splitter, has_weights=weights is not None)
            _warn_if_not_converged(taxonomy.tree, has_solver="solver" in self.get_params())
        self.__dict__ = fitted.__dict__  # in one step, once nothing can fail any more
        return self

    def _copy_fitted(self, taxonomy: Taxonomy, seen: SeenFeatures, **results: Any) -> Self:
        """Return a copy with the attributes of a fit, and none of an earlier one."""
        params = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        fitted = copy(self)
        fitted.__dict__ = params | seen.attributes | {"taxonomy_": taxonomy} | results
        return fitted


def _label_rows(labels: IndexArray, index: IndexArray, routed: IndexArray) -> IndexArray:
    """Return the leaf of most repeats of each row, the first of ties; of none, by the rules."""
    n_leaves = int(labels.max()) + 1
    cells, counts = np.unique(index * n_leaves + labels, return_counts=True)
    cells = cells[np.lexsort((-counts, cells // n_leaves))]
    rows, first = np.unique(cells // n_leaves, return_index=True)
    by_row = routed.copy()
    by_row[rows] = cells[first] % n_leaves
    return by_row


def check_growth(estimator: Any, n_clusters: int | None = None) -> tuple[int, StoppingRule]:
    """Return the number of children per split, and when to stop.

    ``n_clusters`` takes the place of the estimator's parameter, if given.
    """
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
    """Warn if the tree has fewer or larger leaves than requested, and say why."""
    reasons = _describe_refusals(tree)
    requested = stop.n_leaves
    if requested is not None and tree.n_leaves < requested:
        if not reasons and tree.n_leaves + branching - 1 > requested:
            reasons = f"a split into {branching} adds {branching - 1} leaves at once"
        if not reasons and stop.max_leaf_size is None and stop.max_depth is None:
            reasons = "others would be too small, or no rule separates their rows"
        leaves = counted(tree.n_leaves, "leaf", "leaves")
        message = f"the tree has {leaves} where {requested} were requested"
    elif requested is None and stop.max_leaf_size is not None:
        message = f"some leaves have more than max_leaf_size={stop.max_leaf_size} rows"
    else:
        return
    if reasons:
        warn_caller(f"{message}: {reasons}", GrowthWarning)


def _warn_if_unbalanced(
    tree: TreeBuilder, splitter: MaxMarginSplitter, *, has_weights: bool
) -> None:
    """Warn, once, of splits that cannot be balanced because equal rows stay together."""
    splits = [[tree.size(child) for child in tree.children(node)] for node in tree.inner]
    unbalanced = [sizes for sizes in splits if not splitter.allows(sizes)]
    if unbalanced:
        shares = [size * len(sizes) / sum(sizes) for sizes in unbalanced for size in sizes]
        rows = "equal rows, and the repeats of one row," if has_weights else "equal rows"
        low, high = splitter.balance
        warn_caller(
            f"{len(unbalanced)} of {counted(len(splits), 'split')} could not be balanced, as "
            f"{rows} stay together: children have {min(shares):.3g} to {max(shares):.3g} of an "
            f"equal share, outside balance=({low:g}, {high:g}); balance=None sets no bounds",
            GrowthWarning,
        )


def _warn_if_not_converged(tree: Tree, *, has_solver: bool) -> None:
    """Warn, once, of splits whose solver reached its limit of iterations."""
    splits = [info for info, rule in zip(tree.info, tree.rules, strict=True) if rule and info]
    n_open = sum(info.status is Status.ITERATION_LIMIT for info in splits)
    if n_open:
        message = f"{n_open} of {len(splits)} splits did not converge"
        if has_solver:
            message += "; scale the columns, raise tol, or try solver='pqn'"
        warn_caller(message, ConvergenceWarning)


def _describe_refusals(tree: Tree) -> str:
    """Return which leaves could not be split, and why, the first few by name."""
    refused = [(int(leaf), tree.notes[leaf]) for leaf in tree.leaves if tree.notes[leaf]]
    texts = [
        f"leaf node {node} ({counted(int(tree.sizes[node]), 'row')}) cannot be split: {reason}"
        for node, reason in refused[:MAX_NAMED_REFUSALS]
    ]
    n_more = len(refused) - MAX_NAMED_REFUSALS
    return "; ".join([*texts, f"and {n_more} more"] if n_more > 0 else texts)
