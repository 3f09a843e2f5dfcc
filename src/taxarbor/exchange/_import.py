"""Trees from labels, linkage matrices and fitted clusterers of scikit-learn.

Labels and merges do not say where new rows go, so these trees have no rules. Estimators are
recognized by their attributes, as importing ``sklearn.cluster`` takes long.
"""

import heapq
import operator
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from taxarbor._errors import InputError
from taxarbor._frames import is_missing
from taxarbor._types import Array, IndexArray
from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import LinearRule, Tree, TreeBuilder


def from_labels(labels: ArrayLike) -> Taxonomy:
    """Return a root with one leaf per distinct label, in sorted order.

    If all labels are equal, there is just the root. The tree has no rules, and its ``labels``
    count the distinct labels given, 0, 1, ...

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Numbers, strings, bools, or objects that can be hashed and sorted. All are treated
        alike: the -1 by which HDBSCAN marks noise makes a leaf, the first one.

    Raises
    ------
    ValueError
        If there are no labels, one is missing, or they are not such an array.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels
    >>> taxonomy = from_labels(["cat", "dog", "ant", "dog"])
    >>> taxonomy, taxonomy.tree.labels
    (Taxonomy(n_rows=4, n_leaves=3, height=1), array([1, 2, 0, 2]))
    """
    return Taxonomy(_one_split(_codes(labels)))


def _one_split(codes: IndexArray, centers: Array | None = None) -> Tree:
    """Return a root and its leaves, to which the nearest of the centers, if any, send rows."""
    builder = TreeBuilder(len(codes))
    if codes.any():
        builder.add_split(0, codes, None if centers is None else LinearRule.nearest(centers))
    return builder.freeze()


def from_linkage(Z: ArrayLike, n_clusters: SupportsIndex | None = None) -> Taxonomy:
    """Return the tree of the last merges in a linkage matrix of SciPy or fastcluster.

    The last merge is the first split, the one before it the second, and so on, whatever
    their heights: centroid and median linkage may merge at a lower height than before.
    The score of a split is the height of the merge. The tree has no rules.

    Parameters
    ----------
    Z : array of shape (n_rows - 1, 4)
        Row ``i`` has the two clusters that make up cluster ``n_rows + i``, the left one first,
        and the height of the merge. The last column is not used.
    n_clusters : int, optional
        Number of leaves. By default each row is one.

    Raises
    ------
    ValueError
        If Z is not a valid linkage matrix, or n_clusters is not between 1 and n_rows.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> from taxarbor.exchange import from_linkage, to_newick
    >>> Z = linkage([[0.0], [9.0], [1.0], [5.0]])
    >>> to_newick(from_linkage(Z))
    '(c0,(c1,(c2,c3)));'
    >>> from_linkage(Z, n_clusters=2).tree.labels
    array([1, 0, 1, 1])
    """
    from scipy.cluster.hierarchy import is_valid_linkage  # takes long

    matrix = np.asarray(Z)
    if matrix.dtype.kind not in "iuf" or not np.isfinite(matrix).all():
        raise InputError(
            "Z must hold finite numbers, as scipy.cluster.hierarchy.linkage returns"
        )
    matrix = matrix.astype(np.float64)
    try:
        is_valid_linkage(matrix, throw=True, name="Z")
    except ValueError as error:
        raise InputError(str(error)) from error
    pairs = matrix[:, :2].astype(np.intp)
    if (pairs != matrix[:, :2]).any():
        raise InputError("the first two columns of Z must hold cluster numbers, got fractions")
    return Taxonomy(_from_merges(pairs, matrix[:, 2], n_clusters))


def _from_merges(
    pairs: IndexArray, heights: NDArray[np.float64], n_clusters: SupportsIndex | None
) -> Tree:
    """Return the tree of the last merges, each of the two clusters in a row of ``pairs``."""
    n_rows = len(pairs) + 1
    n_leaves = n_rows if n_clusters is None else operator.index(n_clusters)
    if not 1 <= n_leaves <= n_rows:
        raise InputError(
            f"n_clusters must be between 1 and the number of rows, {n_rows}, got {n_leaves}"
        )
    start, stop = _slices(pairs)
    order = np.empty(n_rows, dtype=np.intp)
    order[start[:n_rows]] = np.arange(n_rows)
    splits = np.arange(len(pairs))[::-1][: n_leaves - 1]  # merges, from the last on
    clusters = np.concatenate(([2 * n_rows - 2], pairs[splits].ravel()))  # of each node
    node_of = np.empty(2 * n_rows - 1, dtype=np.intp)
    node_of[clusters] = np.arange(len(clusters))
    split_nodes = node_of[n_rows + splits]
    score = np.full(len(clusters), np.nan)
    score[split_nodes] = heights[splits]
    return Tree(
        order=order,
        parents=np.concatenate(([-1], np.repeat(split_nodes, 2))),
        sizes=(stop - start)[clusters],
        score=score,
        objective=np.full(len(clusters), np.nan),
        rules=(None,) * len(clusters),
        info=(None,) * len(clusters),
        notes=("",) * len(clusters),
    )


def _slices(pairs: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return where the rows of each cluster start and stop, left to right as merged."""
    n_rows = len(pairs) + 1
    merges: list[list[int]] = pairs.tolist()
    sizes = [1] * n_rows
    for left, right in merges:
        sizes.append(sizes[left] + sizes[right])
    starts = [0] * len(sizes)
    for merge in range(n_rows - 2, -1, -1):
        left, right = merges[merge]
        starts[left] = starts[n_rows + merge]
        starts[right] = starts[left] + sizes[left]
    start: IndexArray = np.array(starts, dtype=np.intp)
    return start, start + np.array(sizes, dtype=np.intp)


def _codes(labels: ArrayLike) -> IndexArray:
    """Return the position of each label among the distinct ones, which are sorted."""
    # NumPy would turn a NaN in a list of strings into the text "nan".
    array = np.asarray(labels, dtype=object if isinstance(labels, list | tuple) else None)
    if array.ndim != 1 or not array.size:
        raise InputError(f"labels must be an array of shape (n_rows,), got shape {array.shape}")
    if array.dtype.kind not in "biufUSOT":
        raise InputError(f"labels must be numbers, strings or booleans, not {array.dtype}")
    try:
        # Only the distinct ones are compared, as that is slow.
        distinct = dict.fromkeys(listed := array.tolist())
        if any(is_missing(label) and not isinstance(label, str) for label in distinct):
            raise InputError("labels must not be missing, got None or NaN")
        code = {label: i for i, label in enumerate(sorted(distinct))}
    except TypeError as error:
        raise InputError(
            "labels must be of one type that can be hashed and sorted; map(str, labels) may "
            f"help ({error})"
        ) from error
    return np.fromiter(map(code.__getitem__, listed), dtype=np.intp, count=len(listed))


def from_sklearn(fitted: object) -> Taxonomy:
    """Return the tree of a fitted clusterer.

    - The estimators of taxarbor have one, ``taxonomy_``.
    - ``AgglomerativeClustering`` gives its last merges, down to ``n_clusters_`` leaves,
      numbered from left to right. Scores are the heights, where it computed distances.
    - ``BisectingKMeans`` gives its bisections, in the order in which they were made.
      Scores are what it chose by: inertia or size.
    - An estimator with ``cluster_centers_``, such as ``KMeans``, gives a root with one leaf per
      cluster, numbered as in ``labels_``; clusters without rows are excluded.
    - An estimator with ``labels_`` only gives what :func:`from_labels` does.

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
    >>> from taxarbor.exchange import from_sklearn
    >>> model = KMeans(2, random_state=0).fit([[0.0], [1.0], [7.0], [9.0]])
    >>> taxonomy = from_sklearn(model)
    >>> bool((taxonomy.predict([[3.0], [6.0]]) == model.predict([[3.0], [6.0]])).all())
    True
    """
    taxonomy = getattr(fitted, "taxonomy_", None)
    if isinstance(taxonomy, Taxonomy):
        return taxonomy
    labels, names = _labels(fitted), getattr(fitted, "feature_names_in_", None)
    if getattr(fitted, "children_", None) is not None:
        tree = _from_agglomeration(fitted, labels)
    elif getattr(fitted, "bisecting_strategy", None) is not None:
        tree = _from_bisections(fitted, labels)
    elif (centers := _centers(fitted, labels)) is not None:
        used, codes = np.unique(labels, return_inverse=True)
        tree = _one_split(codes, centers[used])
    else:
        tree = _one_split(_codes(labels))
    return Taxonomy(tree if names is None else replace(tree, feature_names=tuple(names)))


def _labels(fitted: object) -> NDArray[Any]:
    """Return ``labels_``, or raise an error if there are none."""
    labels = getattr(fitted, "labels_", None)
    if labels is None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(fitted)
        raise InputError(
            f"{type(fitted).__name__} has no labels_ after fitting. Pass a clusterer, of a "
            "pipeline its last step, or labels to from_labels"
        )
    if getattr(fitted, "pooling_func", None) is not None:
        raise InputError(
            f"{type(fitted).__name__} clusters columns, not rows. For a tree of the columns, "
            "fit AgglomerativeClustering to X.T"
        )
    return np.asarray(labels)


def _from_agglomeration(fitted: Any, labels: NDArray[Any]) -> Tree:
    """Cut the tree of merges where the estimator did."""
    pairs = np.asarray(fitted.children_)
    if len(pairs) < len(labels) - 1:
        raise InputError(
            f"{type(fitted).__name__} stopped after {len(pairs)} of {len(labels) - 1} merges, "
            "so how its clusters go together is unknown: fit with compute_full_tree=True"
        )
    heights = getattr(fitted, "distances_", None)
    if heights is None or len(heights) != len(pairs):  # left over from another fit
        heights = np.full(len(pairs), np.nan)
    return _from_merges(pairs, np.asarray(heights), fitted.n_clusters_)


def _from_bisections(fitted: object, labels: NDArray[Any]) -> Tree:
    # Public attributes have the clusters only; these private ones are the same since 1.1.
    root = getattr(fitted, "_bisecting_tree", None)
    mean = getattr(fitted, "_X_mean", 0)  # of dense data, which was centred
    try:
        return _replay(root, mean, labels)
    except AttributeError as error:
        raise InputError(
            f"{type(fitted).__name__} of this version of scikit-learn keeps no tree that can "
            f"be read ({error}); from_labels takes its labels_"
        ) from error


def _replay(root: Any, mean: Any, labels: NDArray[Any]) -> Tree:
    """Bisect again, best first and of ties the leftmost, as scikit-learn did.

    A bisection of duplicate rows may leave one side empty; that side becomes no node.
    """
    builder = TreeBuilder(len(labels))
    pending = [(0.0, 0, 0, root)]  # by score, then by the first label; these differ
    while pending:
        *_, node, part = heapq.heappop(pending)
        if part.left is None:
            continue
        goes_right = labels[builder.rows(node)] >= _first_label(part.right)
        sides = [part.left, part.right]
        nodes: tuple[int, ...] = (node,)
        if goes_right.any() and not goes_right.all():
            rule = LinearRule.nearest(np.vstack([side.center for side in sides]) + mean)
            nodes = builder.add_split(node, goes_right.astype(np.intp), rule)
        else:
            sides = [sides[int(goes_right[0])]]
        for child, side in zip(nodes, sides, strict=True):
            score = float(side.score)
            builder.record(child, score)
            heapq.heappush(pending, (-score, _first_label(side), child, side))
    return builder.freeze()


def _first_label(part: Any) -> int:
    """Return the label of the leftmost leaf: labels count the leaves from left to right."""
    while part.left is not None:
        part = part.left
    return int(part.label)


def _centers(fitted: object, labels: NDArray[Any]) -> Array | None:
    """Return the center of each label, if rows go to the nearest of them."""
    centers: Any = getattr(fitted, "cluster_centers_", None)
    is_sparse = sparse.issparse(centers)
    points = np.asarray(centers.toarray() if is_sparse else centers)
    if points.dtype.kind in "iu":
        points = points.astype(np.float64)
    are_points = points.ndim == 2 and points.dtype in (np.float32, np.float64)
    is_nearest = getattr(fitted, "metric", "euclidean") == "euclidean"
    if not (are_points and is_nearest and labels.dtype.kind in "iu"):
        return None
    are_positions = labels.min(initial=0) >= 0 and labels.max(initial=0) < len(points)
    return points if are_positions else None
