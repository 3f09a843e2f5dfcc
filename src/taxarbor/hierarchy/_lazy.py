"""What a tree says of the rows of a Dask collection, as lazy Dask arrays."""

from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor._errors import InputTypeError
from taxarbor.hierarchy._memberships import probabilities
from taxarbor.hierarchy._route import route
from taxarbor.sweep._lazy_results import in_blocks, is_dask_array, is_dask_frame

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def lazy_labels(tree: "Hierarchy", X: Any) -> Any:
    """Return the cluster of each row; see :meth:`Hierarchy.predict`."""
    found = in_blocks(route, tree, X, np.intp)
    _try_none(tree, X)
    return found


def lazy_probabilities(tree: "Hierarchy", X: Any) -> Any:
    """Return how likely rows are in each leaf; see :meth:`Hierarchy.predict_proba`."""
    found = in_blocks(probabilities, tree, X, np.float64, n_columns=tree.n_leaves)
    _try_none(tree, X)
    return found


def refuse_paths(X: Any) -> None:
    """Raise for what :meth:`Hierarchy.decision_path` would need a lazy sparse matrix for."""
    raise InputTypeError(
        f"decision_path takes rows in memory, not a {type(X).__name__} of Dask; call it block "
        "by block, as in X.map_blocks, or take the labels of predict, and tree.path of a leaf"
    )


def _try_none(tree: "Hierarchy", X: Any) -> None:
    """Send no rows to the leaves, which is refused if the columns are not those of the fit."""
    if is_dask_array(X):
        route(tree, np.empty((0, X.shape[1]), dtype=X.dtype))
    elif is_dask_frame(X):
        route(tree, X._meta)
