"""What the estimators share: their base class, warnings, and the steps of a fit.

The steps are the rows to train on, the statistics of nodes, and the routing of all rows.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import GrowthWarning, InputError, counted, warn_caller
from taxarbor._fit_context import Run, one_blas_thread, show_progress
from taxarbor._frames import is_anndata
from taxarbor._types import Array, IndexArray, TableLike
from taxarbor.grow import StoppingRule
from taxarbor.rows import as_rows
from taxarbor.sources import Sample, Source, open_source
from taxarbor.tables import TableEncoder
from taxarbor.tables._encoding import Encoding, FeatureRows
from taxarbor.tables._table_encoder import Features, make_features
from taxarbor.tables._validation import (
    SeenFeatures,
    check_count,
    check_jobs,
    check_new_rows,
    check_range,
    count_repeats,
)
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit_taxonomy import decode, drop_rows, regroup, resize
from taxarbor.taxonomy._new_rows import add_means, check_matrix, expand, route, share_missing
from taxarbor.taxonomy._noise import OutlierScorer, RouteBlock, fit_noise_model
from taxarbor.taxonomy._probabilities import predict_proba
from taxarbor.taxonomy._reasons import find_booleans
from taxarbor.tree import Tree
from taxarbor.tree._edit_tree import sum_below

MAX_NAMED_REFUSALS = 3
"""Leaves that could not be split, and that a warning names."""
WEIGHT_UNITS = 2**30
"""Weights are summed as integer multiples of this part of the greatest: in any order."""

Table = TypeVar("Table")


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
            New rows. Files and memory maps are read in blocks; for a Dask array or
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
        return source.apply(call, dtype, n_columns, n_threads=n_threads)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show the tree of a fitted model in notebooks, below its parameters."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        taxonomy = vars(self).get("taxonomy_")
        if taxonomy is not None and "text/html" in bundle:
            bundle["text/html"] += taxonomy._repr_html_()
        return bundle

    def __sklearn_tags__(self) -> Any:
        """Declare that sparse rows and, with an encoder, missing values are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.encoder is not None
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


# The steps of a fit


@final
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """The rows of a sample that a tree is found on, each repeated by its weight."""

    sample: Sample  # the rows, in the user's units
    features: Features
    repeats: IndexArray | None  # of each row, 0 if it is excluded; None for once
    per_row: float  # how many repeats stand for a row, or a unit of weight, of the source

    @classmethod
    def of(
        cls, estimator: BaseEstimator, sample: Sample, n_clusters: int | None
    ) -> "TrainingRows":
        """Encode a sample, and count the repeats of its rows: none of rows without a value."""
        column = sample.embedding_column
        features = make_features(estimator, sample.table, sample.weights, column)
        if sample.embedding is not None:
            check_range(sample.embedding, "embedding")
        weights, n = sample.weights, len(sample.rows)
        if features.empty is not None:
            weights = np.where(features.empty, 0.0, 1.0 if weights is None else weights)
        repeats, per_row = None, n / sample.n_rows
        if weights is not None:
            repeats = count_repeats(weights)
            with np.errstate(over="ignore"):
                per_row = float(repeats.sum() / weights.sum())
            n = int(np.count_nonzero(repeats))
        if n < 2:
            problem = f"has {counted(n, 'row')} with a value"
            if sample.weights is not None:
                problem += " and a positive weight"
            raise InputError(f"{problem}; a fit needs at least 2", "X")
        if n_clusters is not None and n_clusters > n:
            message = f"is {n_clusters}, more than the n_samples={n} rows of the fit; lower it"
            raise InputError(message, "n_clusters")
        return cls(sample, features, repeats, per_row)

    @property
    def copies_per_row(self) -> float:
        """Average number of repeats of a row; 1 where weights are numbers of rows."""
        if self.repeats is None or self.per_row == 1.0:
            return 1.0
        return float(self.repeats.sum() / np.count_nonzero(self.repeats))

    @property
    def index(self) -> IndexArray:
        """The position in the sample of each repeat."""
        rows = np.arange(len(self.sample.rows))
        return rows if self.repeats is None else np.repeat(rows, self.repeats)

    def repeat(self, table: Table) -> Table:
        """Return the rows of an array or a CSR matrix of the sample, each repeated."""
        return table if self.repeats is None else table[self.index]  # type: ignore[index]

    def points(self) -> Any:
        """Return the repeated rows in which clusters are found: the embedding, or features."""
        vectors = self.sample.embedding
        return self.repeat(self.features.data if vectors is None else vectors)

    def exclude(self, outliers: NDArray[np.bool_]) -> "TrainingRows":
        """Return the same without some of the repeats."""
        repeats = np.bincount(self.index[~outliers], minlength=len(self.sample.rows))
        return replace(self, repeats=repeats)

    def scale_size(self, size: int) -> int:
        """Return how many repeats stand for so many rows of the source, at least one."""
        return max(round(min(size * self.per_row, 2.0**31)), 1)

    def scale_stop(self, stop: StoppingRule) -> StoppingRule:
        """Return when to stop, with sizes in repeats."""
        most = stop.max_leaf_size
        return stop if most is None else replace(stop, max_leaf_size=self.scale_size(most))

    def weigh_rows(self, weights: Array | None) -> Array | None:
        """Return the weights of the rows of the source: 0 for those that were excluded.

        Where the sample is not all rows, that is not known, and weights are as given.
        """
        if self.repeats is None or len(self.repeats) < self.sample.n_rows:
            return weights
        given = np.ones(len(self.repeats)) if weights is None else weights
        return np.where(self.repeats > 0, given, 0.0)

    def decode(self, tree: Tree, estimator: BaseEstimator) -> tuple[Taxonomy, FeatureRows]:
        """Return a tree as a taxonomy in the user's units, and the sample in these."""
        encoding, names = self.features.encoding, self.features.seen.names
        parameters = _list_parameters(estimator)
        if self.sample.embedding is not None:
            parameters["embedding"] = self.sample.embedding_column or True
        if encoding is None and names is not None:
            tree = replace(tree, feature_names=tuple(names))
        taxonomy = Taxonomy(tree, made_by=parameters)
        if encoding is not None:
            taxonomy = decode(taxonomy, encoding)
        return taxonomy, expand(self.sample.table, taxonomy)

    def describe(self, taxonomy: Taxonomy, rows: FeatureRows, labels: IndexArray) -> Taxonomy:
        """Return the taxonomy with statistics of its nodes, given the leaves of the sample."""
        taxonomy = add_means(taxonomy, rows.data, labels, self.repeats)
        if taxonomy.encoding is not None:
            missing = share_missing(taxonomy.tree, rows.missing, labels, self.repeats)
            return replace(taxonomy, missing=missing)
        data = as_rows(rows.data, center=np.zeros(rows.data.shape[1]))
        if self.repeats is not None:
            data = data.take(np.flatnonzero(self.repeats), data.center)
        return replace(taxonomy, is_boolean=find_booleans(data))

    def fit_noise_model(
        self,
        taxonomy: Taxonomy,
        rows: FeatureRows,
        labels: IndexArray,
        noise: float = 0.0,
        counts_for_noise: IndexArray | None = None,
    ) -> OutlierScorer:
        """Return the outlier scores of the sample's clusters, with a limit for noise.

        Noise is a share of ``counts_for_noise``, the repeats before outliers were excluded.
        """
        encoding = self.features.encoding
        return fit_noise_model(
            taxonomy,
            rows.data,
            labels,
            counts=self.repeats,
            counts_for_noise=counts_for_noise,
            scale=None if encoding is None else encoding.scale,
            noise=noise,
        )


def route_source(
    source: Source,
    taxonomy: Taxonomy,
    scorer: OutlierScorer,
    weights: Array | None,
    n_threads: int,
) -> tuple[Taxonomy, Any, Any]:
    """Route every row of a source; return the taxonomy with them, labels and outlier scores.

    The tree of rows in memory has these rows, others have counts.
    """
    unit = 1.0 if weights is None else float(weights.max()) / WEIGHT_UNITS
    units = None if weights is None else np.rint(weights / unit).astype(np.int64)
    work = RouteBlock(drop_rows(taxonomy), scorer, units, n_threads)
    (labels, scores), sizes = select_columns(source, taxonomy).route(
        work, (np.intp, np.float64), n_threads=n_threads
    )
    if source.in_memory:
        return regroup(taxonomy, labels, weights), labels, scores
    taxonomy = resize(taxonomy, sizes[0, 1:], int(sizes[0, 0]))
    if weights is not None:
        tree = taxonomy.tree
        totals = sum_below(sizes[1, 1:] * unit, tree.leaves, tree.parents)
        taxonomy = replace(taxonomy, tree=replace(tree, totals=totals))
    return taxonomy, labels, scores


def select_columns(source: Source, taxonomy: Taxonomy) -> Source:
    """Return a source with only those columns that a taxonomy reads by name."""
    encoding = taxonomy.encoding
    if encoding is None or not encoding.has_names:
        return source
    return source.keep({column.name for column in encoding.columns})


def _list_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Return an estimator's name and parameters as plain values, for its file.

    Without those that do not change the method: ``random_state``, ``n_jobs``, ``verbose``.
    """

    def simplify(value: Any) -> Any:
        if isinstance(value, TableEncoder):
            return value.get_params()
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        return None if isinstance(value, Encoding) else float(value)

    parameters = {"estimator": type(estimator).__name__} | estimator.get_params(deep=False)
    for name in ("random_state", "n_jobs", "verbose"):
        parameters.pop(name, None)
    plain: dict[str, Any] = json.loads(json.dumps(parameters, default=simplify))
    return plain
