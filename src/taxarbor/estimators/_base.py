"""What the estimators share: their base class, warnings, and the steps of a fit.

The steps are the rows of a table, weights as repeats of them, and the routing of all rows.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import GrowthWarning, InputError, counted, warn_caller
from taxarbor._fit_context import Run, one_blas_thread, show_progress
from taxarbor._frames import Table
from taxarbor._parameters import check_count, check_jobs, check_random
from taxarbor._types import Array, IndexArray, Mask, TableLike
from taxarbor.grow import StoppingRule
from taxarbor.sources import RAW, Sample, Source, open_source
from taxarbor.tables import TableEncoder, TextColumn
from taxarbor.tables.checks import count_repeats
from taxarbor.tables.columns import Columns, FeatureRows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.edit_taxonomy import regroup, resize, restore_units
from taxarbor.taxonomy.new_rows import apply, match_columns, route
from taxarbor.taxonomy.noise import OutlierScorer
from taxarbor.taxonomy.probabilities import predict_proba
from taxarbor.tree import Tree
from taxarbor.tree.edit_tree import drop_rows, sum_below

Rows = TypeVar("Rows")

MAX_NAMED_REFUSALS = 3  # leaves that could not be split, and that a warning names
WEIGHT_UNITS = 2**30  # weights are summed in units of the greatest / this: in any order


class TaxonomyEstimator(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A clusterer whose result is a :class:`~taxarbor.taxonomy.Taxonomy`."""

    n_clusters: int | str | None
    encoder: TableEncoder | str | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int
    _weighs_columns: ClassVar[bool] = False  # whether columns of different units have weights
    taxonomy_: Taxonomy
    labels_: NDArray[np.intp]
    outlier_score_: Array

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
        check_is_fitted(self)
        return apply(self.taxonomy_, X, route, n_threads=check_jobs(self.n_jobs))

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
        taxonomy, n_threads = self.taxonomy_, check_jobs(self.n_jobs)
        n_leaves = taxonomy.tree.n_leaves
        return apply(taxonomy, X, predict_proba, np.float64, n_leaves, n_threads=n_threads)

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

    def _copy_fitted(self, taxonomy: Taxonomy, seen: dict[str, Any], **results: object) -> Self:
        """Return a copy with the attributes of a fit, and none of an earlier one."""
        params = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        fitted = copy(self)
        fitted.__dict__ = params | seen | {"taxonomy_": taxonomy} | results
        return fitted


@contextmanager
def start_run(estimator: TaxonomyEstimator) -> Iterator[Run]:
    """Yield the context of a fit: a seed, threads, and an observer of progress.

    Within the block BLAS has one thread, so that sums have one order.
    """
    seed = int(check_random(estimator.random_state).randint(2**31 - 1))
    n_threads = check_jobs(estimator.n_jobs)
    title = type(estimator).__name__
    with (
        one_blas_thread(),
        show_progress(title, estimator.verbose) as observer,
        ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool,
    ):
        yield Run(seed, observer, pool, n_threads)


def check_growth(
    estimator: TaxonomyEstimator, n_clusters: int | str | None
) -> tuple[int, StoppingRule]:
    """Return the number of children per split, and when to stop."""
    sizes = {name: getattr(estimator, name) for name in ("max_leaf_size", "max_depth")}
    given = {"n_clusters": n_clusters, **sizes}
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


def open_rows(
    X: TableLike,
    embedding: TableLike,
    feature_names: Sequence[str] | None,
    layer: str | None,
    *,
    use_raw: bool,
    n_threads: int,
) -> Source:
    """Return the rows to fit to, as the parameters of ``fit`` choose them."""
    if use_raw and layer is not None:
        raise InputError("must be None where use_raw is True", "layer")
    part = RAW if use_raw else layer or ""
    source = open_source(
        X, embedding=embedding, feature_names=feature_names, layer=part, n_threads=n_threads
    )
    if not source.n_rows:
        raise InputError("has no rows (n_samples=0); a fit needs at least 2", "X")
    return source


@final
@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """How often each row of a sample is repeated in a fit."""

    n_rows: int  # of the sample
    counts: IndexArray | None  # of each row, 0 if it is excluded; None for once
    per_row: float  # how many repeats stand for a row, or a unit of weight, of the source

    @classmethod
    def of(cls, sample: Sample, empty: Mask | None, n_clusters: int | None) -> "Repeats":
        """Count the repeats of the rows of a sample: none of rows without a value."""
        weights, n = sample.weights, len(sample.rows)
        if empty is not None:
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
        counts, per_row = None, n / sample.n_rows
        if weights is not None:
            counts = count_repeats(weights)
            with np.errstate(over="ignore"):
                per_row = float(counts.sum() / weights.sum())
            n = int(np.count_nonzero(counts))
        if n < 2:
            problem = f"has {counted(n, 'row')} with a value"
            if sample.weights is not None:
                problem += " and a positive weight"
            raise InputError(f"{problem}; a fit needs at least 2", "X")
        if n_clusters is not None and n_clusters > n:
            message = f"is {n_clusters}, more than the n_samples={n} rows of the fit; lower it"
            raise InputError(message, "n_clusters")
        return cls(len(sample.rows), counts, per_row)

    @property
    def copies_per_row(self) -> float:
        """Average number of repeats of a row; 1 where weights are numbers of rows."""
        if self.counts is None or self.per_row == 1.0:
            return 1.0
        return float(self.counts.sum() / np.count_nonzero(self.counts))

    @property
    def index(self) -> IndexArray:
        """The position in the sample of each repeat."""
        rows = np.arange(self.n_rows)
        return rows if self.counts is None else np.repeat(rows, self.counts)

    def repeat(self, table: Rows) -> Rows:
        """Return the rows of an array or a CSR matrix of the sample, each repeated."""
        return table if self.counts is None else table[self.index]  # type: ignore[index]

    def exclude(self, outliers: Mask) -> "Repeats":
        """Return the same without some of the repeats."""
        return replace(self, counts=np.bincount(self.index[~outliers], minlength=self.n_rows))

    def scale_size(self, size: int) -> int:
        """Return how many repeats stand for so many rows of the source, at least one."""
        return max(round(min(size * self.per_row, 2.0**31)), 1)

    def scale_stop(self, stop: StoppingRule) -> StoppingRule:
        """Return when to stop, with sizes in repeats."""
        most = stop.max_leaf_size
        return stop if most is None else replace(stop, max_leaf_size=self.scale_size(most))

    def weigh_rows(self, weights: Array | None, n_rows: int) -> Array | None:
        """Return the weights of the rows of the source: 0 for those that were excluded.

        Where the sample is not all rows, that is not known, and weights are as given.
        """
        if self.counts is None or self.n_rows < n_rows:
            return weights
        given = np.ones(self.n_rows) if weights is None else weights
        return np.where(self.counts > 0, given, 0.0)


def make_taxonomy(
    tree: Tree, columns: Columns, estimator: BaseEstimator, sample: Sample
) -> Taxonomy:
    """Return a tree of a sample's features as a taxonomy in the user's units.

    It has the name and the parameters of the estimator as plain values, but for those that do
    not change the method.
    """

    def simplify(value: Any) -> Any:
        if isinstance(value, TableEncoder):
            return value.get_params()
        if isinstance(value, TextColumn):
            return asdict(value)
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        if isinstance(value, Columns):
            return None
        return [*value] if isinstance(value, Iterable) else float(value)

    given = {"estimator": type(estimator).__name__} | estimator.get_params(deep=False)
    for name in ("random_state", "n_jobs", "verbose"):
        given.pop(name, None)
    made_by: dict[str, Any] = json.loads(json.dumps(given, default=simplify))
    if sample.embedding is not None:
        made_by["embedding"] = sample.embedding_column or True
    columns = replace(columns, layer=sample.layer)
    return Taxonomy(restore_units(tree, columns), columns, made_by=made_by)


def route_source(
    source: Source,
    taxonomy: Taxonomy,
    scorer: OutlierScorer,
    weights: Array | None,
    *,
    read: FeatureRows | None,
    n_threads: int,
) -> tuple[Taxonomy, Any, Any]:
    """Route every row of a source; return the taxonomy with them, labels and outlier scores.

    ``read`` are all rows, where they are known already. The tree of rows in memory has these
    rows, others have counts.
    """
    unit = 1.0 if weights is None else float(weights.max()) / WEIGHT_UNITS
    units = None if weights is None else np.rint(weights / unit).astype(np.int64)
    source, match = match_columns(taxonomy, source, of_rules=False)
    counts = replace(taxonomy, tree=drop_rows(taxonomy.tree))
    fill, size = taxonomy.columns.fill, taxonomy.tree.n_leaves + 1

    def route_block(table: "Table | None", block: slice) -> Any:
        """Return labels and scores; and the rows of each leaf, noise first, and weights."""
        rows = counts.columns.read(table, counts.dtype, match) if read is None else read
        labels = route(counts, rows, n_threads=n_threads)
        logs = counts.columns.take_logs(rows.data)
        scores = scorer.score_rows(logs, fill, labels, n_threads=n_threads)
        sizes = np.zeros((2, size), dtype=np.int64)
        sizes[0] = np.bincount(labels + 1, minlength=size)
        if units is not None:
            np.add.at(sizes[1], labels + 1, units[block])
        return (labels, scores), sizes

    if read is not None:
        (labels, scores), sizes = route_block(None, slice(0, source.n_rows))
    else:
        (labels, scores), sizes = source.route(route_block, (np.intp, np.float64))
    if source.in_memory:
        return regroup(taxonomy, labels, weights), labels, scores
    taxonomy = resize(taxonomy, sizes[0, 1:], int(sizes[0, 0]))
    if weights is not None:
        tree = taxonomy.tree
        totals = sum_below(sizes[1, 1:] * unit, tree.leaves, tree.parents)
        taxonomy = replace(taxonomy, tree=replace(tree, totals=totals))
    return taxonomy, labels, scores
