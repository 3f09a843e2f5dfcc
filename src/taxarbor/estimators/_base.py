"""What the estimators share: one fit from its beginning to its end, and reading the tree."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import replace
from numbers import Integral
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxarbor._blas import one_blas_thread
from taxarbor._errors import GrowthWarning, InputError, counted, warn_caller
from taxarbor._progress import show_progress
from taxarbor._run import Crew, Run, look_away
from taxarbor._types import Array, Status
from taxarbor.estimators._parts import refuse_stream, rows_by_parts
from taxarbor.estimators._progress import CallbackSupportMixin, call_back, observe_all
from taxarbor.grow import StoppingRule, grow
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder
from taxarbor.hierarchy._build import MOVED
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._memberships import probabilities
from taxarbor.hierarchy._noise import score_rows
from taxarbor.hierarchy._reasons import find_two_values
from taxarbor.hierarchy._remade import per_row
from taxarbor.hierarchy._repeats import repeats_of
from taxarbor.hierarchy._route import route, visited
from taxarbor.rows import Rows
from taxarbor.split import MaxMarginSplitter, Splitter
from taxarbor.sweep._lazy_results import is_dask
from taxarbor.tables import TableEncoder
from taxarbor.tables._checks import (
    SeenFeatures,
    check_count,
    check_jobs,
    check_new_rows,
    check_weights,
)
from taxarbor.tables._stream import as_stream
from taxarbor.tables._training import Training


class HierarchyEstimator(CallbackSupportMixin, ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A clusterer whose result is a :class:`~taxarbor.hierarchy.Hierarchy`."""

    encoder: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    hierarchy_: Hierarchy
    labels_: NDArray[np.intp]
    outlier_score_: Array

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the tree; see :meth:`Taxarbor.fit`."""

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Send rows down the tree and return their clusters, numbered as in ``labels_``.

        Where the fit set rows apart as noise, new ones that are as far from all have -1.

        On the training rows this agrees with ``labels_``, except for rows that a bound on
        sizes moved across a boundary or kept in their leaf, and where labels come from a
        graph, as in :class:`~taxarbor.HierarchicalSpectral`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows. Files, memory maps and datasets are read part by part; of an array or a
            frame of Dask the labels are a lazy array.

        Returns
        -------
        labels : array of shape (n_rows,)
        """
        check_is_fitted(self)
        if as_stream(X) is not None:
            found: NDArray[np.intp] = rows_by_parts(route, self.hierarchy_, X, dtype=np.intp)
            return found
        checked = check_new_rows(self, X)
        return route(self.hierarchy_, checked, n_threads=check_jobs(self.n_jobs))

    def predict_proba(self, X: Any) -> Array:
        """Return how likely each row is to be in each cluster, if all were fitted again.

        A rough guess after ``fit``, which does not fit again; see
        :meth:`taxarbor.Hierarchy.predict_proba`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        probabilities : array of shape (n_rows, n_clusters)
            Rows sum to one; each is highest where ``predict`` puts the row, unless that says
            that it is noise, of which the probabilities say nothing.
        """
        check_is_fitted(self)
        tree = self.hierarchy_
        if as_stream(X) is not None:
            how: Any = {"dtype": np.float64, "n_columns": tree.n_leaves}
            found: Array = rows_by_parts(probabilities, tree, X, **how)
            return found
        checked = check_new_rows(self, X)
        return probabilities(tree, checked, n_threads=check_jobs(self.n_jobs))

    def decision_path(self, X: Any) -> Any:
        """Return which nodes each row visits on its way down.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        indicator : CSR array of shape (n_rows, n_nodes)
            One where row i passes through node j.
        """
        if is_dask(X):
            check_is_fitted(self)
            return self.hierarchy_.decision_path(X)
        labels = self.predict(X)
        return visited(self.hierarchy_, labels)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show a fitted model's tree in notebooks, below its parameters."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        tree = vars(self).get("hierarchy_")
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
        self, X: Any, weights: Any, splitter: Splitter, branching: int, stop: StoppingRule
    ) -> Self:
        """Grow a tree whose splits are final and whose rules decide."""
        with Fitting(self, X, weights, branching, stop) as fit:
            if isinstance(splitter, MaxMarginSplitter):
                splitter = splitter.over(fit.owner)
            tree = grow(fit.rows, splitter, branching=branching, stop=fit.stop, run=fit.run)
            fit.keep(tree)
            if isinstance(splitter, MaxMarginSplitter):
                _warn_if_unbalanced(tree, splitter, has_weights=weights is not None)
        return self


def begin(
    estimator: HierarchyEstimator,
    opening: ExitStack,
    seed: int,
    n_threads: int,
    max_leaves: int | None,
) -> tuple[Run, Any]:
    """Return what the steps of a fit are told, and the context of its callbacks.

    Until the stack is closed BLAS has one thread, the pool is open and progress is shown.
    """
    opening.enter_context(one_blas_thread())
    bar = opening.enter_context(show_progress(type(estimator).__name__, estimator.verbose))
    callbacks, context = call_back(estimator, max_leaves)
    # Large nodes are swept by several threads, small ones are tried side by side.
    pool = None
    if n_threads > 1:
        pool = opening.enter_context(Crew(n_threads))
    watcher = look_away if bar is None else bar.watch
    return Run(seed, observe_all(bar, callbacks), pool, watcher, n_threads), context


@final
class Fitting:
    """One fit, from the check of its data to the attributes that it leaves.

    Inside the ``with`` block BLAS has one thread, the pool is open and progress is shown. An
    exception, Ctrl-C among them, leaves the estimator as it was. ``rows`` are the training
    data, checked, each as often as it counts, ``stop`` counts them so, and ``run`` is what the
    steps are told.
    """

    rows: Rows
    stop: StoppingRule
    run: Run

    def __init__(
        self,
        estimator: HierarchyEstimator,
        X: Any,
        sample_weight: Any,
        branching: int,
        stop: StoppingRule,
    ) -> None:
        refuse_stream(estimator, X)
        self._estimator, self._branching, self._asked = estimator, branching, stop
        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        n_threads = check_jobs(estimator.n_jobs)
        self._training = Training.of(estimator, X, n_threads, sample_weight)
        self._all, self.owner = self._training.rows, self._training.owner
        self._weights = self._given = check_weights(sample_weight, self._all.n_rows)
        self._leave_out(self._training.empty)
        self._take_part()
        if self.rows is not self._all and stop.max_leaf_size is not None:
            stop = replace(stop, max_leaf_size=self.copies(stop.max_leaf_size))
        self.stop, self.run = stop, Run(seed)
        self._open = ExitStack()

    def _leave_out(self, mask: NDArray[np.bool_] | None) -> None:
        """Give rows no weight."""
        if mask is not None:
            self._weights = np.where(mask, 0.0, 1.0 if self._weights is None else self._weights)

    def _take_part(self) -> None:
        """Find which rows take part, and how often each."""
        n, weights = self._all.n_rows, self._weights
        self.rows, self._index, self._per_weight = self._all, None, 1.0
        if weights is not None:
            repeats = repeats_of(weights)
            with np.errstate(over="ignore"):
                self._per_weight = repeats.sum() / weights.sum()
            self._index = np.repeat(np.arange(n), repeats)
            self.rows, n = self._all.take(self._index), int(np.count_nonzero(repeats))
            if n < 2:
                told = "a fit needs two rows that count and have a value"
                raise InputError(f"leaves {counted(n, 'row')}; {told}", "sample_weight")
        if self._asked.n_leaves is not None and self._asked.n_leaves > n:
            told = f"n_samples={n} rows" + (" that take part" if n < self._all.n_rows else "")
            few = f"{told} make fewer leaves; lower it"
            raise InputError(f"is {self._asked.n_leaves}, but {few}", "n_clusters")

    def copies(self, size: int) -> int:
        """Return how many of ``rows`` weigh as much as this size of a leaf."""
        return max(round(min(size * self._per_weight, 2.0**31)), 1)

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            how = self.run.seed, self.rows.n_threads, self._asked.n_leaves
            run, self._context = begin(self._estimator, opening, *how)
            self.run = replace(run, watcher=look_away)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)

    def keep(self, tree: HierarchyBuilder) -> None:
        """Freeze the tree, with the means of its nodes, and leave it on the estimator."""
        estimator, means = self._estimator, tree.means(self.rows)
        names, maker = self._training.seen.names, made_by(self._estimator)
        encoding = self._training.encoding
        if encoding is not None:
            names = None  # those of the features come with the words
        frozen = tree.freeze(feature_names=names, means=means, made_by=maker)
        hierarchy = self._finished(frozen)
        scores = self._scores(hierarchy)
        if encoding is not None:
            hierarchy = encoding.decode(hierarchy, self._training.gaps)
        per_row: Any = {"labels_": hierarchy.labels.copy(), "outlier_score_": scores}
        finish(estimator, hierarchy, self._training.seen, self._context, **per_row)
        n_lost = tree.n_leaves - hierarchy.n_leaves
        warn_if_short(hierarchy, self._asked, self._branching, n_lost)
        _warn_if_unsettled(hierarchy, estimator.get_params())

    def _scores(self, tree: Hierarchy) -> Array:
        n, index = self._all.n_rows, self._index
        counts = None if index is None else np.bincount(index, minlength=n)
        weights, empty = self._given, self._training.empty
        if empty is not None:  # it is not known that they are far
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
        return score_rows(tree, self._all, self.run, counts=counts, weights=weights)

    def _finished(self, frozen: Hierarchy) -> Hierarchy:
        """Return a tree of ``rows``, with what is measured of them, as one of all rows."""
        encoding = self._training.encoding
        pairs = None if encoding is None else encoding.two_values
        pairs = find_two_values(self.rows) if pairs is None else pairs
        tree = replace(frozen, two_values=pairs)
        if self._index is None:
            return tree
        tree = per_row(tree, self._index, self._all)
        return replace(tree, weights=self._weights)


def finish(
    estimator: HierarchyEstimator,
    hierarchy: Hierarchy,
    seen: SeenFeatures,
    context: Any,
    **per_row: Any,
) -> None:
    """Leave what a fit found on its estimator: the tree, labels and scores of the rows."""
    fitted = {"hierarchy_": hierarchy, **per_row}
    kept = {k: v for k, v in vars(estimator).items() if k != "feature_names_in_"}
    estimator.__dict__ = kept | seen.attributes | fitted  # in one step: all is new
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator)


def made_by(estimator: HierarchyEstimator) -> dict[str, Any]:
    """Return an estimator's name and parameters as plain values, but for how it is run."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [plain(one) for one in value]
        if isinstance(value, bool | str | None):
            return value
        if isinstance(value, TableEncoder):
            return {name: plain(one) for name, one in value.get_params().items()}
        if hasattr(value, "tolist"):
            return plain(value.tolist())
        if isinstance(value, Encoding):  # of rows that were encoded before
            return None
        return int(value) if isinstance(value, Integral) else float(value)

    how = ("random_state", "n_jobs", "verbose", "memory_limit")
    given = {
        name: one for name, one in estimator.get_params(deep=False).items() if name not in how
    }
    return {"estimator": type(estimator).__name__} | {
        name: plain(one) for name, one in given.items()
    }


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


def warn_if_short(tree: Hierarchy, stop: StoppingRule, branching: int, n_lost: int) -> None:
    """Warn when the tree could not be grown as far as asked for, and say why."""
    reasons = _describe_refusals(tree)
    if n_lost:
        had = f"{counted(n_lost, 'leaf', 'leaves')} had nothing but noise, or copies of rows"
        reasons = "; ".join(filter(None, (f"{had} that are elsewhere", reasons)))
    asked = stop.n_leaves
    if asked is not None and tree.n_leaves < asked:
        if not reasons and tree.n_leaves + branching - 1 > asked:
            reasons = f"a split into {branching} adds {branching - 1} leaves at once"
        leaves = "leaf" if tree.n_leaves == 1 else "leaves"
        told = f"the tree has {tree.n_leaves} {leaves} where {asked} were asked for"
    elif asked is None and stop.max_leaf_size is not None:
        told = f"some leaves have more than max_leaf_size={stop.max_leaf_size} rows"
    else:
        return
    if reasons:
        warn_caller(f"{told}: {reasons}", GrowthWarning)


def _warn_if_unbalanced(
    tree: HierarchyBuilder, splitter: MaxMarginSplitter, *, has_weights: bool
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


def _warn_if_unsettled(tree: Hierarchy, parameters: dict[str, Any]) -> None:
    """Warn, once, of splits whose solver ran out of rounds."""
    splits = [info for info, rule in zip(tree.info, tree.rules, strict=True) if rule and info]
    open_ends = sum(info.status is Status.ITERATION_LIMIT for info in splits)
    if open_ends:
        told = f"{open_ends} of {len(splits)} splits did not settle in the rounds they may take"
        if "solver" in parameters:
            told += "; scale the columns, raise tol, or try solver='pqn'"
        warn_caller(told, ConvergenceWarning)


def _describe_refusals(tree: Hierarchy, most: int = 3) -> str:
    """Say which leaves could not be split, and why, the first few by name."""
    refused = [(int(leaf), tree.notes[leaf]) for leaf in tree.leaves if tree.notes[leaf]]
    refused.sort(key=lambda leaf: leaf[1].endswith(MOVED))  # what is true of its rows first
    told = "; ".join(
        f"leaf node {node} ({counted(int(tree.sizes[node]), 'row')}) was refused: {why}"
        for node, why in refused[:most]
    )
    rest = len(refused) - most
    return told + (f"; and {rest} more" if rest > 0 else "")
