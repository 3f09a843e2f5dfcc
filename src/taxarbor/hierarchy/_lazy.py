"""What a tree says of the rows of a Dask collection, as lazy Dask arrays."""

from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor._errors import InputTypeError
from taxarbor.hierarchy._attach import for_new_rows
from taxarbor.hierarchy._memberships import probabilities
from taxarbor.hierarchy._route import route
from taxarbor.sweep._lazy_results import in_blocks

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def lazy_labels(tree: "Hierarchy", X: Any) -> Any:
    """Return the cluster of each row; see :meth:`Hierarchy.predict`."""
    return in_blocks(route, for_new_rows(tree), X, np.intp)


def lazy_probabilities(tree: "Hierarchy", X: Any) -> Any:
    """Return how likely rows are in each leaf; see :meth:`Hierarchy.predict_proba`."""
    bare = for_new_rows(tree)
    return in_blocks(probabilities, bare, X, np.float64, n_columns=tree.n_leaves)


def refuse_paths(X: Any) -> None:
    """Raise for what :meth:`Hierarchy.decision_path` would need a lazy sparse matrix for."""
    raise InputTypeError(
        f"decision_path takes rows in memory, not a {type(X).__name__} of Dask; call it for a "
        "block at a time, or take the labels of predict: tree.path says how to get there"
    )
