"""What the estimators share: how a fitted tree is used, when growth stops, and warnings."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import GrowthWarning, InputError, counted, warn_caller
from taxarbor._frames import is_anndata
from taxarbor._progress import show_progress
from taxarbor._run import Run, one_blas_thread
from taxarbor._types import Array, TableLike
from taxarbor.estimators._fit_steps import select_columns
from taxarbor.grow import StoppingRule
from taxarbor.sources import open_source
from taxarbor.tables import TableEncoder
from taxarbor.tables._validation import SeenFeatures, check_count, check_jobs, check_new_rows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit_taxonomy import drop_rows
from taxarbor.taxonomy._new_rows import check_matrix, route
from taxarbor.taxonomy._probabilities import predict_proba
from taxarbor.tree import Tree

MAX_NAMED_REFUSALS = 3
"""Leaves that could not be split, and that a warning names."""


class TaxonomyEstimator(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A clusterer whose result is a :class:`~taxarbor.taxonomy.Taxonomy`."""

    n_clusters: int | str | None
    encoder: TableEncoder | str | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int
    taxonomy_: Taxonomy
    labels_: NDArray[np.intp]
    outlier_score_: Array

    @abstractmethod
    def fit(
        self, X: TableLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the taxonomy; see :meth:`Taxarbor.fit`."""

    def predict(self, X: TableLike) -> NDArray[np.intp]:
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

    def predict_proba(self, X: TableLike) -> Array:
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
        self,
        X: TableLike,
        work: Callable[..., NDArray[Any]],
        dtype: DTypeLike,
        n_columns: int | None = None,
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

    def _copy_fitted(self, taxonomy: Taxonomy, seen: SeenFeatures, **results: object) -> Self:
        """Return a copy with the attributes of a fit, and none of an earlier one."""
        params = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        fitted = copy(self)
        fitted.__dict__ = params | seen.attributes | {"taxonomy_": taxonomy} | results
        return fitted


@contextmanager
def start_run(estimator: TaxonomyEstimator) -> Iterator[Run]:
    """Yield the context of a fit: a seed, threads, and an observer of progress.

    Within the block BLAS has one thread, so that sums have one order.
    """
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    n_threads = check_jobs(estimator.n_jobs)
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        observer = stack.enter_context(
            show_progress(type(estimator).__name__, estimator.verbose)
        )
        pool = stack.enter_context(ThreadPoolExecutor(n_threads)) if n_threads > 1 else None
        yield Run(seed, observer, pool, n_threads)


def check_growth(estimator: Any, n_clusters: int | str | None) -> tuple[int, StoppingRule]:
    """Return the number of children per split, and when to stop."""
    given = {
        "n_clusters": n_clusters,
        "max_leaf_size": estimator.max_leaf_size,
        "max_depth": estimator.max_depth,
    }
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
            reasons = "more would be too small, or have equal rows, or no rule separates them"
        leaves = counted(tree.n_leaves, "leaf", "leaves")
        message = f"the tree has {leaves} where {requested} were requested"
    elif requested is None and stop.max_leaf_size is not None:
        message = f"some leaves have more than max_leaf_size={stop.max_leaf_size} rows"
    else:
        return
    if reasons:
        warn_caller(f"{message}: {reasons}", GrowthWarning)


def _describe_refusals(tree: Tree) -> str:
    """Return which leaves could not be split, and why, the first few by name."""
    refused = [(int(leaf), tree.notes[leaf]) for leaf in tree.leaves if tree.notes[leaf]]
    texts = [
        f"leaf node {node} ({counted(int(tree.sizes[node]), 'row')}) cannot be split: {reason}"
        for node, reason in refused[:MAX_NAMED_REFUSALS]
    ]
    n_more = len(refused) - MAX_NAMED_REFUSALS
    return "; ".join([*texts, f"and {n_more} more"] if n_more > 0 else texts)
