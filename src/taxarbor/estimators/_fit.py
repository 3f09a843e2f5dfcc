"""The steps that all fits share: the rows that take part, and what a fit leaves behind."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from taxarbor._errors import InputError, counted
from taxarbor._progress import show_progress
from taxarbor._run import Run, ignore, one_blas_thread
from taxarbor._types import Array, IndexArray
from taxarbor.grow import StoppingRule
from taxarbor.rows import as_rows
from taxarbor.sources import Sample, Source
from taxarbor.sources._local import LocalSource
from taxarbor.tables import TableEncoder
from taxarbor.tables._checks import check_jobs, check_range
from taxarbor.tables._encoding import Encoding, Expanded
from taxarbor.tables._features import Features, make_features
from taxarbor.tables._weights import repeats_of
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit import decode, drop_rows, regroup, resize, round_thresholds
from taxarbor.taxonomy._noise import NoiseModel, RouteBlock, find_noise_model
from taxarbor.taxonomy._reasons import find_two_values
from taxarbor.taxonomy._routing import add_means, expand, share_missing
from taxarbor.tree import Tree
from taxarbor.tree._edit import sum_below
from taxarbor.tree._routing import place_rows
from taxarbor.tree._rule import dividing_feature

WEIGHT_UNITS = 2**30
"""Weights are added up in whole multiples of this part of the greatest: in any order."""


@contextmanager
def start_run(estimator: Any) -> Iterator[Run]:
    """Yield what the steps of a fit share: a seed, threads, and an observer of progress.

    Within the block BLAS has one thread, so that sums have one order.
    """
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    n_threads = check_jobs(estimator.n_jobs)
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        bar = stack.enter_context(show_progress(type(estimator).__name__, estimator.verbose))
        pool = stack.enter_context(ThreadPoolExecutor(n_threads)) if n_threads > 1 else None
        yield Run(seed, bar or ignore, pool, n_threads)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows of a sample that take part in a fit, each as often as it counts.

    Attributes
    ----------
    sample : Sample
        The rows, in the user's units.
    features : Features
        What a fit sees of all of them.
    repeats : int array or None
        How often each row of the sample takes part; None for once.
    repeats_with_outliers : int array or None
        The same before outliers were left out.
    per_row : float
        How many copies stand for a row, or a unit of weight, of the source.
    """

    sample: Sample
    features: Features
    repeats: IndexArray | None
    repeats_with_outliers: IndexArray | None
    per_row: float

    @classmethod
    def of(cls, estimator: Any, sample: Sample, n_clusters: int | None) -> "Training":
        """Encode a sample, and count how often its rows take part: empty ones do not."""
        features = make_features(
            estimator, sample.table, sample.weights, sample.embedding_column
        )
        if sample.embedding is not None:
            check_range(sample.embedding, "embedding")
        weights, n = sample.weights, len(sample.rows)
        if features.empty is not None:
            weights = np.where(features.empty, 0.0, 1.0 if weights is None else weights)
        repeats, per_row = None, n / sample.n_rows
        if weights is not None:
            repeats = repeats_of(weights)
            with np.errstate(over="ignore"):
                per_row = float(repeats.sum() / weights.sum())
            n = int(np.count_nonzero(repeats))
        if n < 2:
            few = f"leaves {counted(n, 'row')} with a value and a positive weight"
            raise InputError(f"{few}; a fit needs 2 at least", "sample_weight")
        if n_clusters is not None and n_clusters > n:
            rows = f"n_samples={n} rows" + (" that take part" if n < sample.n_rows else "")
            raise InputError(
                f"is {n_clusters}, but {rows} make fewer leaves; lower it", "n_clusters"
            )
        return cls(sample, features, repeats, repeats, per_row)

    @property
    def index(self) -> IndexArray | None:
        """The position in the sample of each copy; None where each row has one."""
        if self.repeats is None:
            return None
        return np.repeat(np.arange(len(self.repeats)), self.repeats)

    @property
    def copies_per_row(self) -> float:
        """How many copies stand for a row on average; 1 where weights are numbers of rows."""
        if self.repeats is None or self.per_row == 1.0:
            return 1.0
        return float(self.repeats.sum() / np.count_nonzero(self.repeats))

    def copies(self) -> Any:
        """Return the features of the rows, each as often as it takes part."""
        index = self.index
        return self.features.data if index is None else self.features.data[index]

    def points(self) -> Any:
        """Return the same copies where likeness is measured: the embedding, or the features."""
        points, index = self.sample.embedding, self.index
        if points is None:
            return self.copies()
        return points if index is None else points[index]

    def without(self, outliers: NDArray[np.bool_] | None) -> "Training":
        """Return the same without some copies: rows take part with the others they have."""
        if outliers is None:
            return self
        index = np.arange(len(outliers)) if self.repeats is None else self.index
        assert index is not None
        repeats = np.bincount(index[~outliers], minlength=len(self.sample.rows))
        return replace(self, repeats=repeats)

    def in_sample(self, size: int) -> int:
        """Return how many copies stand for so many rows of the source, one at least."""
        return max(round(min(size * self.per_row, 2.0**31)), 1)

    def stop(self, asked: StoppingRule) -> StoppingRule:
        """Return when to stop, with sizes in copies of the sample."""
        most = asked.max_leaf_size
        return asked if most is None else replace(asked, max_leaf_size=self.in_sample(most))

    def weights_of_rows(self, weights: Array | None) -> Array | None:
        """Return what rows of the source count for: nothing for those that had no part.

        Where the sample is not all rows, that is not known, and they count as given.
        """
        if self.repeats is None or len(self.repeats) < self.sample.n_rows:
            return weights
        given = np.ones(len(self.repeats)) if weights is None else weights
        return np.where(self.repeats > 0, given, 0.0)

    def finish(
        self, tree: Tree, estimator: Any, *, has_round_thresholds: bool = False
    ) -> tuple[Taxonomy, Expanded]:
        """Return a tree of features as a taxonomy in the user's units, and the sample in these."""
        encoding = self.features.encoding
        names = self.features.seen.names if encoding is None else None
        parameters = made_by(estimator)
        if self.sample.embedding is not None:
            parameters["embedding"] = self.sample.embedding_column or True
        named = replace(tree, feature_names=None if names is None else tuple(names))
        taxonomy = Taxonomy(named, made_by=parameters)
        if encoding is not None:
            taxonomy = decode(taxonomy, encoding)
        expanded = expand(self.sample.table, taxonomy)
        rules = [rule for rule in taxonomy.tree.rules if rule is not None]
        if has_round_thresholds and any(dividing_feature(rule) is not None for rule in rules):
            labels = place_rows(taxonomy.tree, expanded.data)
            taxonomy = round_thresholds(taxonomy, expanded.data, labels)
        return taxonomy, expanded

    def describe(self, taxonomy: Taxonomy, expanded: Expanded, labels: IndexArray) -> Taxonomy:
        """Return the taxonomy with statistics of its nodes, given the leaves of the sample."""
        taxonomy = add_means(taxonomy, expanded.data, labels, self.repeats)
        if taxonomy.encoding is not None:
            missing = share_missing(taxonomy.tree, expanded.gaps, labels, self.repeats)
            return replace(taxonomy, missing=missing)
        rows = as_rows(expanded.data, center=np.zeros(expanded.data.shape[1]))
        if self.repeats is not None:
            rows = rows.take(np.flatnonzero(self.repeats), rows.center)
        return replace(taxonomy, two_values=find_two_values(rows))

    def find_noise(
        self, taxonomy: Taxonomy, expanded: Expanded, labels: IndexArray, noise: float = 0.0
    ) -> tuple[NoiseModel, NDArray[np.int32]]:
        """Return what is usual for the rows of a tree; see :func:`find_noise_model`."""
        encoding = self.features.encoding
        return find_noise_model(
            taxonomy,
            expanded.data,
            labels,
            counts=self.repeats,
            counts_for_noise=self.repeats_with_outliers,
            scale=None if encoding is None else encoding.scale,
            noise=noise,
        )


def route_all(
    source: Source,
    taxonomy: Taxonomy,
    noise_model: NoiseModel,
    center_of: NDArray[np.int32],
    *,
    weights: Array | None,
    n_threads: int,
) -> tuple[Taxonomy, Any, Any]:
    """Route every row of a source; return the taxonomy with them, labels and outlier scores.

    A tree of rows in memory knows its rows, others have counts.
    """
    unit = 1.0 if weights is None else float(weights.max()) / WEIGHT_UNITS
    units = None if weights is None else np.rint(weights / unit).astype(np.int64)
    work = RouteBlock(drop_rows(taxonomy), noise_model, center_of, units, n_threads)
    dtypes = (np.intp, np.float64)
    rows = keep_columns(source, taxonomy)
    (labels, scores), sizes = rows.route(work, dtypes, n_threads=n_threads)
    if source.in_memory:
        return regroup(taxonomy, labels, weights), labels, scores
    taxonomy = resize(taxonomy, sizes[0, 1:], int(sizes[0, 0]))
    if weights is not None:
        tree = taxonomy.tree
        totals = sum_below(sizes[1, 1:] * unit, tree.leaves, tree.parents)
        taxonomy = replace(taxonomy, tree=replace(tree, totals=totals))
    return taxonomy, labels, scores


def keep_columns(source: Source, taxonomy: Taxonomy) -> Source:
    """Return a source without columns that a taxonomy does not use, such as an embedding."""
    encoding = taxonomy.encoding
    if not isinstance(source, LocalSource) or encoding is None or not encoding.has_names:
        return source
    return source.keep({column.name for column in encoding.columns})


def made_by(estimator: Any) -> dict[str, Any]:
    """Return an estimator's name and parameters as plain values, but for how it is run."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [plain(one) for one in value]
        if isinstance(value, bool | str | None):
            return value
        if isinstance(value, TableEncoder):
            return {name: plain(one) for name, one in value.get_params().items()}
        if isinstance(value, np.ndarray | np.generic):
            return plain(value.tolist())
        if isinstance(value, Encoding):  # of rows that were encoded before
            return None
        return int(value) if isinstance(value, Integral) else float(value)

    given = estimator.get_params(deep=False)
    settings = {
        k: v for k, v in given.items() if k not in ("random_state", "n_jobs", "verbose")
    }
    return {"estimator": type(estimator).__name__} | {k: plain(v) for k, v in settings.items()}
