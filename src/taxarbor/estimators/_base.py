"""What the estimators share: fitting one tree, and reading it."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import GrowthWarning
from taxarbor.data import check_new_rows
from taxarbor.estimators._progress import (
    CallbackSupportMixin,
    ProgressBar,
    call_back,
    observe_all,
)
from taxarbor.grow import StoppingRule, grow
from taxarbor.hierarchy import Hierarchy
from taxarbor.rows import Rows
from taxarbor.split import Splitter

UNITS = ("relative", "raw")
SOLVERS = ("auto", "newton", "pqn")


class HierarchyEstimator(CallbackSupportMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A clusterer whose result is a :class:`~taxarbor.hierarchy.Hierarchy`."""

    random_state: Any
    verbose: int
    hierarchy_: Hierarchy
    labels_: NDArray[np.intp]

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Send rows down the tree and return their leaves, numbered as in ``labels_``.

        On the training rows this agrees with ``labels_`` except where the balance of a
        split moved a row to the other side of its boundary.

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

    def __sklearn_tags__(self) -> Any:
        """Say that sparse input is welcome and the type of floats is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _grow(self, rows: Rows, splitter: Splitter, branching: int, stop: StoppingRule) -> Self:
        """Grow the tree, with progress shown as asked, and keep it."""
        bar = ProgressBar(type(self).__name__) if self.verbose else None
        callbacks, context = call_back(self, stop.n_leaves)
        names = getattr(self, "feature_names_in_", None)
        try:
            tree = grow(
                rows,
                splitter,
                branching=branching,
                stop=stop,
                seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                feature_names=None if names is None else [str(name) for name in names],
                observer=observe_all(bar, callbacks),
            )
        finally:
            if bar is not None:
                bar.close()
        self.hierarchy_ = tree
        self.labels_ = tree.labels.copy()
        if context is not None:
            context.call_on_fit_task_end(estimator=self)
        if stop.n_leaves is not None:
            self._warn_if_short(stop.n_leaves, branching)
        return self

    def _warn_if_short(self, asked: int, branching: int) -> None:
        """Warn when fewer leaves than asked for could be grown, and say why."""
        tree = self.hierarchy_
        reasons = _describe_refusals(tree)
        if not reasons and tree.n_leaves + branching - 1 > asked:
            reasons = f"a split into {branching} adds {branching - 1} leaves at once"
        if reasons and tree.n_leaves < asked:
            warnings.warn(
                f"the tree has {tree.n_leaves} leaves where {asked} were asked for: {reasons}",
                GrowthWarning,
                stacklevel=4,
            )


def _describe_refusals(tree: Hierarchy, most: int = 3) -> str:
    """Say which leaves could not be split, and why, the first few by name."""
    refused = [(int(leaf), tree.notes[leaf]) for leaf in tree.leaves if tree.notes[leaf]]
    told = "; ".join(
        f"leaf node {node} ({tree.n_rows[node]} rows) was refused: {why}"
        for node, why in refused[:most]
    )
    rest = len(refused) - most
    return told + (f"; and {rest} more" if rest > 0 else "")
