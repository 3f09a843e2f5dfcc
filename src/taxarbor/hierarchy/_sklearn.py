"""Trees from fitted clusterers of scikit-learn, and from others made like them.

Estimators are told apart by their attributes, as importing ``sklearn.cluster`` takes long.
"""

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor._types import Array
from taxarbor.hierarchy._adapters import from_labels, from_merges
from taxarbor.hierarchy._rule import LinearRule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def from_sklearn(fitted: object) -> "Hierarchy":
    """Return the tree that a fitted clusterer found.

    - The estimators of taxarbor have one, ``hierarchy_``.
    - ``AgglomerativeClustering`` gives its last merges, down to ``n_clusters_`` leaves,
      numbered from left to right. Scores are the heights, where it computed distances.
    - ``BisectingKMeans`` gives its bisections, in the order in which they were made.
      Scores are what it chose by: inertia or size.
    - What has ``cluster_centers_``, such as ``KMeans``, gives a root with one leaf per
      cluster, numbered as in ``labels_`` but for those without rows, which are left out.
    - What has only ``labels_`` gives the same, as :meth:`Hierarchy.from_labels` does.

    The tree of any k-means has rules, and its ``predict`` agrees with scikit-learn's.

    Parameters
    ----------
    fitted : estimator
        With ``labels_`` of the rows. Of a pipeline, pass the last step.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.
    ValueError
        If there are no labels of rows, or the tree was not kept as a whole.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from taxarbor.hierarchy import Hierarchy
    >>> model = KMeans(2, random_state=0).fit([[0.0], [1.0], [7.0], [9.0]])
    >>> tree = Hierarchy.from_sklearn(model)
    >>> bool((tree.predict([[3.0], [6.0]]) == model.predict([[3.0], [6.0]])).all())
    True
    """
    from taxarbor.hierarchy._tree import Hierarchy

    own = getattr(fitted, "hierarchy_", None)
    if isinstance(own, Hierarchy):
        return own
    tree = _tree(fitted, _labels(fitted))
    names = getattr(fitted, "feature_names_in_", None)
    return tree if names is None else replace(tree, feature_names=tuple(map(str, names)))


def _tree(fitted: Any, labels: NDArray[Any]) -> "Hierarchy":
    """Tell estimators apart by what only they have."""
    if getattr(fitted, "children_", None) is not None:
        return _from_agglomeration(fitted, labels)
    if getattr(fitted, "bisecting_strategy", None) is not None:
        return _from_bisections(fitted, labels)
    centers = _centers(fitted, labels)
    return from_labels(labels) if centers is None else _from_centers(centers, labels)


def _labels(fitted: object) -> NDArray[Any]:
    """Return ``labels_``, or raise what says best why there are none."""
    labels = getattr(fitted, "labels_", None)
    if labels is None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(fitted)
        raise ValueError(
            f"{type(fitted).__name__} has no labels_ after fitting. Pass a clusterer, of a "
            "pipeline its last step, or labels to Hierarchy.from_labels"
        )
    if getattr(fitted, "pooling_func", None) is not None:
        raise ValueError(
            f"{type(fitted).__name__} groups columns, not rows. For a tree of the columns, "
            "fit AgglomerativeClustering to X.T"
        )
    return np.asarray(labels)


def _from_agglomeration(fitted: Any, labels: NDArray[Any]) -> "Hierarchy":
    """Cut the tree of merges where the estimator did."""
    pairs = np.asarray(fitted.children_)
    if len(pairs) < len(labels) - 1:
        raise ValueError(
            f"{type(fitted).__name__} stopped after {len(pairs)} of {len(labels) - 1} merges, "
            "so how its clusters go together is unknown: fit with compute_full_tree=True"
        )
    heights = getattr(fitted, "distances_", None)
    if heights is None or len(heights) != len(pairs):  # left over from another fit
        heights = np.full(len(pairs), np.nan)
    return from_merges(pairs, np.asarray(heights), fitted.n_clusters_)


def _from_bisections(fitted: object, labels: NDArray[Any]) -> "Hierarchy":
    # Public attributes have the clusters only; what is read here is the same since 1.1.
    root = getattr(fitted, "_bisecting_tree", None)
    mean = getattr(fitted, "_X_mean", 0)  # of dense data, which was centred
    try:
        return _replay(root, mean, labels)
    except AttributeError as error:
        raise ValueError(
            f"{type(fitted).__name__} of this version of scikit-learn keeps no tree that can "
            f"be read ({error}); Hierarchy.from_labels takes its labels_"
        ) from error


def _replay(root: Any, mean: Any, labels: NDArray[Any]) -> "Hierarchy":
    """Bisect again, best first and of ties the leftmost, as scikit-learn did.

    A bisection of equal rows may leave one side empty; that one is left out.
    """
    from taxarbor.hierarchy._build import HierarchyBuilder

    builder = HierarchyBuilder(len(labels))
    waiting = [(0.0, 0, 0, root)]  # by score, then by the first label; these differ
    while waiting:
        *_, node, part = heapq.heappop(waiting)
        if part.left is None:
            continue
        goes_right = labels[builder.rows(node)] >= _first_label(part.right)
        sides = [part.left, part.right]
        nodes: tuple[int, ...] = (node,)
        if goes_right.any() and not goes_right.all():
            centers = np.vstack([side.center for side in sides]) + mean
            nodes = builder.add_split(
                node, goes_right.astype(np.intp), LinearRule.nearest(centers)
            )
        else:
            sides = [sides[int(goes_right[0])]]
        for child, side in zip(nodes, sides, strict=True):
            score = float(side.score)
            builder.record(child, score=score, objective=np.nan, info=None)
            heapq.heappush(waiting, (-score, _first_label(side), child, side))
    return builder.freeze()


def _first_label(part: Any) -> int:
    """Return the label of the leftmost leaf: labels count the leaves from left to right."""
    while part.left is not None:
        part = part.left
    return int(part.label)


def _centers(fitted: object, labels: NDArray[Any]) -> Array | None:
    """Return the point that each label stands for, if rows go to the nearest of them."""
    centers: Any = getattr(fitted, "cluster_centers_", None)
    is_sparse = sparse.issparse(centers)
    points = np.asarray(centers.toarray() if is_sparse else centers)
    if points.dtype.kind in "iu":
        points = points.astype(np.float64)
    if points.ndim != 2 or points.dtype not in (np.float32, np.float64) or not len(points):
        return None
    is_nearest = getattr(fitted, "metric", "euclidean") == "euclidean"
    if not is_nearest or labels.dtype.kind not in "iu":
        return None
    are_positions = labels.min(initial=0) >= 0 and labels.max(initial=0) < len(points)
    return points if are_positions else None


def _from_centers(centers: Array, labels: NDArray[Any]) -> "Hierarchy":
    from taxarbor.hierarchy._build import HierarchyBuilder

    used, codes = np.unique(labels, return_inverse=True)
    builder = HierarchyBuilder(len(codes))
    if len(used) > 1:
        builder.add_split(0, codes, LinearRule.nearest(centers[used]))
    return builder.freeze()
