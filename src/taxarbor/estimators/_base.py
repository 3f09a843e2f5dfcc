"""What the estimators share: fitting one tree, and reading it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import GrowthWarning, InterruptedFitWarning, warn_caller
from taxarbor._types import Status
from taxarbor.estimators._progress import (
    CallbackSupportMixin,
    ProgressBar,
    call_back,
    observe_all,
    with_callbacks,
)
from taxarbor.grow import StoppingRule, deferred_interrupt, grow
from taxarbor.hierarchy import Hierarchy, with_means
from taxarbor.rows import Rows
from taxarbor.split import Splitter
from taxarbor.tables._checks import check_jobs, check_new_rows, check_training_rows


class HierarchyEstimator(CallbackSupportMixin, ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A clusterer whose result is a :class:`~taxarbor.hierarchy.Hierarchy`."""

    random_state: Any
    n_jobs: int | None
    verbose: int
    hierarchy_: Hierarchy
    labels_: NDArray[np.intp]

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            Finite numbers. float32 stays float32; CSR is not made dense.
        y : ignored
            There by convention.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not as described; the message says which.

        Warns
        -----
        GrowthWarning
            If there are fewer leaves than asked for, with the leaves that refused and why.
        """
        return self._grow(X, *self._check_parameters())

    @abstractmethod
    def _check_parameters(self) -> tuple[Splitter, int, StoppingRule]:
        """Return the splitter, the number of children per split, and when to stop."""

    def _make_tree(
        self, rows: Rows, grow_on: Callable[[Rows], Hierarchy], seed: int, run_all: Any
    ) -> Hierarchy:
        """Return the tree of the rows: grown on them as they are, unless overridden."""
        return grow_on(rows)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Send rows down the tree and return their leaves, numbered as in ``labels_``.

        On the training rows this agrees with ``labels_`` except where the balance of a
        split, or that no child may be empty, moved a row to the other side of its boundary,
        and where labels come from a graph, as in
        :class:`~taxarbor.HierarchicalSpectral`.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            New rows.

        Returns
        -------
        labels : array of shape (n_rows,)
        """
        check_is_fitted(self)
        return self.hierarchy_.predict(check_new_rows(self, X))

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
        check_is_fitted(self)
        return self.hierarchy_.decision_path(check_new_rows(self, X))

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
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _grow(self, X: Any, splitter: Splitter, branching: int, stop: StoppingRule) -> Self:
        """Check the data, grow the tree with progress shown as asked, and keep it.

        Nothing of an earlier fit is touched before the new tree is there.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_threads = check_jobs(self.n_jobs)
        rows, seen = check_training_rows(self, X, n_threads)
        if stop.n_leaves is not None and stop.n_leaves > rows.n_rows:
            raise ValueError(
                f"n_clusters={stop.n_leaves} leaves cannot be made from "
                f"n_samples={rows.n_rows} rows; lower n_clusters"
            )
        bar = ProgressBar(type(self).__name__) if self.verbose else None
        callbacks, context = call_back(self, stop.n_leaves)
        # Large nodes are swept by several threads, small ones are tried side by side.
        pool = ThreadPoolExecutor(n_threads)
        try:
            run_all = pool.map if n_threads > 1 else map
            grow_on = partial(
                grow,
                splitter=splitter,
                branching=branching,
                stop=stop,
                seed=seed,
                feature_names=seen.names,
                observer=observe_all(bar, callbacks),
                run_all=run_all,
            )
            tree = self._finish(rows, grow_on, seed, run_all)
        finally:
            with deferred_interrupt():
                pool.shutdown(cancel_futures=True)
            if bar is not None:
                bar.close()
        with deferred_interrupt():  # all of it is new, or nothing
            seen.note_on(self)
            self.hierarchy_ = tree
            self.labels_ = tree.labels.copy()
        if context is not None:
            context.call_on_fit_task_end(estimator=self)
        _warn_if_short(tree, stop, branching)
        _warn_if_unsettled(tree, self.get_params())
        return self

    def _finish(
        self, rows: Rows, grow_on: Callable[[Rows], Hierarchy], seed: int, run_all: Any
    ) -> Hierarchy:
        """Return the whole tree, with means.

        Once it is grown, Ctrl-C waits until the rest is done, which takes a part of the time
        that growth took. Pressed a second time, it ends the fit.
        """
        whole: Hierarchy | None = None
        try:
            with ExitStack() as rest:

                def grow_first(rows: Rows) -> Hierarchy:
                    grown = grow_on(rows)
                    rest.enter_context(deferred_interrupt(once=True))
                    return grown

                tree = self._make_tree(rows, grow_first, seed, run_all)
                whole = with_means(tree, rows, run_all)
        except KeyboardInterrupt:
            if whole is None:
                raise
            warn_caller(
                "the fit was interrupted when the tree was grown; what was left to do was "
                "finished, and the whole tree is kept",
                InterruptedFitWarning,
            )
        return whole


def _warn_if_short(tree: Hierarchy, stop: StoppingRule, branching: int) -> None:
    """Warn when the tree could not be grown as far as asked for, and say why."""
    reasons = _describe_refusals(tree)
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


def _warn_if_unsettled(tree: Hierarchy, parameters: dict[str, Any]) -> None:
    """Warn, once, of splits whose solver ran out of rounds."""
    splits = [info for info, rule in zip(tree.info, tree.rules, strict=True) if rule and info]
    open_ends = sum(info.status is Status.ITERATION_LIMIT for info in splits)
    if open_ends:
        told = f"{open_ends} of {len(splits)} splits did not settle in the rounds they may take"
        if "solver" in parameters and not parameters.get("refine", False):
            told += "; scale the columns, raise tol, or try solver='pqn'"
        warn_caller(told, ConvergenceWarning)


def _describe_refusals(tree: Hierarchy, most: int = 3) -> str:
    """Say which leaves could not be split, and why, the first few by name."""
    refused = [(int(leaf), tree.notes[leaf]) for leaf in tree.leaves if tree.notes[leaf]]
    told = "; ".join(
        f"leaf node {node} ({_count(tree, node)}) was refused: {why}"
        for node, why in refused[:most]
    )
    rest = len(refused) - most
    return told + (f"; and {rest} more" if rest > 0 else "")


def _count(tree: Hierarchy, node: int) -> str:
    n_rows = len(tree.rows(node))
    return f"{n_rows} row" + "s" * (n_rows != 1)
