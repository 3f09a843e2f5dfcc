"""Trees from labels and from merges, of any library.

Labels and merges do not say where new rows go, so these trees have no rules.
"""

import operator
from dataclasses import replace
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError
from taxarbor._frames import is_missing
from taxarbor.clusters.leaves import build_tree
from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import TreeBuilder


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
    # NumPy would turn a NaN in a list of strings into the text "nan".
    array = np.asarray(labels, dtype=object if isinstance(labels, list | tuple) else None)
    if array.ndim != 1 or not array.size:
        raise InputError(f"labels must be an array of shape (n_rows,), got shape {array.shape}")
    listed = array.tolist()
    try:  # only the distinct ones are compared, as that is slow
        distinct = sorted(dict.fromkeys(listed))
    except TypeError as error:
        raise InputError(
            "labels must be of one type that can be hashed and sorted, and none missing; "
            f"map(str, labels) may help ({error})"
        ) from error
    if any(is_missing(label) and not isinstance(label, str) for label in distinct):
        raise InputError("labels must not be missing, got None or NaN")
    code_of = {label: code for code, label in enumerate(distinct)}
    builder = TreeBuilder(len(listed))
    if len(distinct) > 1:
        codes = map(code_of.__getitem__, listed)
        builder.add_split(0, np.fromiter(codes, dtype=np.intp, count=len(listed)))
    return Taxonomy(builder.freeze())


def from_linkage(Z: ArrayLike, n_clusters: SupportsIndex | None = None) -> Taxonomy:
    """Return the tree of the last merges of a bottom-up clustering.

    The last merge is the first split, the one before it the second, and so on, whatever
    their heights: centroid and median linkage may merge at a lower height than before.
    The score of a split is the height of the merge. The tree has no rules.

    Parameters
    ----------
    Z : array of shape (n_rows - 1, 4) or (n_rows - 1, 2)
        Row ``i`` has the two clusters that make up cluster ``n_rows + i``, the left one first,
        and the height of the merge, as in the linkage matrices of SciPy and fastcluster, whose
        last column is not used. Without heights, as in ``children_`` of scikit-learn's
        AgglomerativeClustering, scores are NaN.
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
    from scipy.cluster.hierarchy import is_valid_linkage, leaves_list  # takes long

    matrix = np.asarray(Z)
    has_heights = matrix.shape[1:] != (2,)
    if not has_heights:
        matrix = np.column_stack([matrix, np.zeros_like(matrix)])
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
    n_rows = len(pairs) + 1
    n_leaves = n_rows if n_clusters is None else operator.index(n_clusters)
    if not 1 <= n_leaves <= n_rows:
        raise InputError(
            f"n_clusters must be between 1 and the number of rows, {n_rows}, got {n_leaves}"
        )
    sizes = [1] * n_rows
    for left, right in pairs.tolist():
        sizes.append(sizes[left] + sizes[right])
    merges = range(len(pairs) - 1, n_rows - 1 - n_leaves, -1)  # from the last on
    splits = {n_rows + merge: pairs[merge].tolist() for merge in merges}
    builder, node_of = build_tree(splits, 2 * n_rows - 2, np.array(sizes))
    for merge in merges if has_heights else ():
        builder.record(node_of[n_rows + merge], float(matrix[merge, 2]))
    order = leaves_list(matrix).astype(np.intp)
    return Taxonomy(replace(builder.freeze(with_rows=False), order=order))
