"""Trees from what other programs left behind: labels, or a record of merges.

Neither says how to place new rows, so these trees have no rules.
"""

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._types import IndexArray

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def expect_hierarchy(given: object) -> None:
    """Raise TypeError, saying what to pass, for what is no hierarchy: a model, as a rule."""
    from taxarbor.hierarchy._tree import Hierarchy

    if not isinstance(given, Hierarchy):
        raise TypeError(
            f"expected a Hierarchy, got {type(given).__name__}; pass model.hierarchy_, or "
            "make one by Hierarchy.from_sklearn, .from_linkage or .from_labels"
        )


def hierarchy_of(model: object) -> "Hierarchy":
    """Return the tree of a fitted model, or what is one already.

    Raises
    ------
    TypeError
        If there is none, or it is that of a pipeline's last step.
    sklearn.exceptions.NotFittedError
        If it is a model of taxarbor that was not fitted.
    """
    from taxarbor.hierarchy._tree import Hierarchy

    found = getattr(model, "hierarchy_", model)
    if isinstance(found, Hierarchy):
        return found
    steps = getattr(model, "steps", None)
    last = steps[-1][-1] if isinstance(steps, list) and steps else model
    _expect_fitted(last)
    if last is not model and isinstance(getattr(last, "hierarchy_", None), Hierarchy):
        raise TypeError(
            "got a pipeline, whose model has seen other rows than were passed to it: pass "
            "pipeline[-1], its last step, and for X pipeline[:-1].transform(X)"
        )
    raise TypeError(
        f"expected a fitted model of taxarbor or a Hierarchy, got {type(model).__name__}; "
        "call fit first, or make a tree by Hierarchy.from_sklearn, .from_linkage or "
        ".from_labels"
    )


def _expect_fitted(model: object) -> None:
    """Raise NotFittedError for an estimator of taxarbor, or made from one, without a tree."""
    # By their names, as the estimators are built upon this package.
    modules = [base.__module__ for base in type(model).__mro__]
    is_ours = any(module.startswith("taxarbor.estimators.") for module in modules)
    if is_ours and "hierarchy_" not in vars(model):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call fit first")


def from_labels(labels: ArrayLike) -> "Hierarchy":
    """Return a root with one leaf per distinct label, in sorted order.

    If all labels are equal, there is just the root. The tree has no rules.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Numbers, strings, bools, or objects that can be hashed and sorted. All are treated
        alike: the -1 by which HDBSCAN marks noise makes a leaf, the first one.

    Returns
    -------
    Hierarchy
        Its ``labels`` count the distinct labels given, 0, 1, ..., in sorted order.

    Raises
    ------
    ValueError
        If there are no labels, one is missing, or they are not such an array.

    Examples
    --------
    >>> from taxarbor.hierarchy import Hierarchy
    >>> tree = Hierarchy.from_labels(["cat", "dog", "ant", "dog"])
    >>> tree
    Hierarchy(n_rows=4, n_leaves=3, height=1)
    >>> tree.labels
    array([1, 2, 0, 2])
    """
    from taxarbor.hierarchy._build import HierarchyBuilder

    codes = _codes(labels)
    builder = HierarchyBuilder(len(codes))
    if codes.any():
        builder.add_split(0, codes)
    return builder.freeze()


def from_linkage(Z: ArrayLike, n_clusters: SupportsIndex | None = None) -> "Hierarchy":
    """Return the tree of the last merges in a linkage matrix of SciPy or fastcluster.

    The last merge is the first split, the one before it the second, and so on, whatever
    their heights: centroid and median linkage may merge at a lower height than before.
    The tree has no rules.

    Parameters
    ----------
    Z : array of shape (n_rows - 1, 4)
        Row ``i`` says which two clusters make up cluster ``n_rows + i``, the first of them
        on the left, and at which height. The last column is not used.
    n_clusters : int, optional
        Number of leaves. By default each row is one.

    Returns
    -------
    Hierarchy
        The score of a split is the height of the merge.

    Raises
    ------
    ValueError
        If Z is no linkage matrix, or n_clusters is not between 1 and n_rows.

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> from taxarbor.hierarchy import Hierarchy
    >>> Z = linkage([[0.0], [9.0], [1.0], [5.0]])
    >>> Hierarchy.from_linkage(Z).to_newick()
    '(c0,(c1,(c2,c3)));'
    >>> Hierarchy.from_linkage(Z, n_clusters=2).labels
    array([1, 0, 1, 1])
    """
    matrix = np.asarray(Z)
    if matrix.ndim != 2 or matrix.shape[1] != 4 or matrix.dtype.kind not in "iuf":
        raise ValueError(
            "Z must hold numbers in the shape (n_rows - 1, 4), as returned by "
            f"scipy.cluster.hierarchy.linkage, got {matrix.dtype} of shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("Z must be finite, got NaN or infinity")
    with np.errstate(invalid="ignore"):  # what is too large comes out different
        pairs = matrix[:, :2].astype(np.intp)
    if (pairs != matrix[:, :2]).any():
        raise ValueError("the first two columns of Z must hold cluster numbers, got others")
    return from_merges(pairs, matrix[:, 2].astype(np.float64), n_clusters)


def from_merges(
    pairs: IndexArray, heights: NDArray[np.float64], n_clusters: SupportsIndex | None
) -> "Hierarchy":
    """Return the tree of the last merges, each of the two clusters in a row of ``pairs``."""
    from taxarbor.hierarchy._tree import Hierarchy

    _check_merges(pairs)
    n_rows = len(pairs) + 1
    n_leaves = n_rows if n_clusters is None else operator.index(n_clusters)
    if not 1 <= n_leaves <= n_rows:
        raise ValueError(
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
    return Hierarchy(
        order=order,
        start=start[clusters],
        stop=stop[clusters],
        parents=np.concatenate(([-1], np.repeat(split_nodes, 2))),
        birth=(np.arange(len(clusters)) + 1) // 2,
        score=score,
        objective=np.full(len(clusters), np.nan),
        rules=(None,) * len(clusters),
        info=(None,) * len(clusters),
        notes=("",) * len(clusters),
    )


def _check_merges(pairs: IndexArray) -> None:
    """Raise ValueError unless each merge is of two clusters that are there to be merged."""
    n_rows = len(pairs) + 1
    too_large = pairs.max(axis=1, initial=0) >= n_rows + np.arange(len(pairs))
    if pairs.min(initial=0) < 0 or too_large.any():
        wrong = int(np.argmax((pairs.min(axis=1, initial=0) < 0) | too_large))
        raise ValueError(
            f"merge {wrong} is of clusters {pairs[wrong].tolist()}, but then only clusters "
            f"0 to {n_rows + wrong - 1} exist: {n_rows} rows, and one more per merge"
        )
    n_uses = np.bincount(pairs.ravel(), minlength=1)
    if n_uses.max() > 1:
        raise ValueError(
            f"cluster {int(n_uses.argmax())} is merged {int(n_uses.max())} times, "
            "and each can be merged once only"
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
    # A list is not left to NumPy, which would make the text "nan" of a NaN among texts.
    array = np.array(labels, dtype=object) if isinstance(labels, list | tuple) else labels
    array = np.asarray(array)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            f"labels must have one dimension and one entry at least, got shape {array.shape}"
        )
    if array.dtype.kind in "biufUS":
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError("labels must not be missing, got NaN")
        return np.unique(array, return_inverse=True)[1]
    if array.dtype.kind not in "OT":
        raise ValueError(
            f"labels must be numbers, strings, bools or objects, not {array.dtype}"
        )
    return _codes_of_objects(array.tolist())


def _codes_of_objects(labels: list[Any]) -> IndexArray:
    """Do the same for any objects; only the distinct ones are compared, as that is slow."""
    try:
        distinct = dict.fromkeys(labels)
        if any(label is None or label != label for label in distinct):  # noqa: PLR0124
            raise ValueError("labels must not be missing, got None or NaN")
        code = {label: i for i, label in enumerate(sorted(distinct))}
    except TypeError as error:  # of pandas.NA, too, which is neither equal nor unequal
        raise ValueError(
            "labels must be of one kind that can be hashed and sorted, and none missing; "
            f"map(str, labels) may help ({error})"
        ) from error
    return np.fromiter(map(code.__getitem__, labels), dtype=np.intp, count=len(labels))
