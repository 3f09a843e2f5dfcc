"""Trees from labels and merges of any library, and in other libraries' forms and file formats.

Labels and merges do not say where new rows go, so these trees have no rules. No function
recurses over the depth of the tree. Newick and DOT are written here, as libraries for them
recurse, or need Graphviz, and each would be one more dependency.
"""

import json
import math
import operator
import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, printable
from taxarbor._frames import is_missing, make_frame
from taxarbor._types import SolveInfo
from taxarbor.clusters.leaves import build_tree
from taxarbor.taxonomy import Stability
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._reasons import list_reasons
from taxarbor.taxonomy._text import (
    count_rows,
    describe_rule,
    describe_stability,
    leaf_names,
    outline,
)
from taxarbor.taxonomy.model_file import FORMAT, VERSION
from taxarbor.taxonomy.noise import NoiseModel
from taxarbor.taxonomy.stability_result import Curve
from taxarbor.taxonomy.taxonomy import Taxonomy, taxonomy_of
from taxarbor.tree import TreeBuilder

if TYPE_CHECKING:
    import pandas as pd

# Newick reads an underscore as a blank, and the rest of these as punctuation.
NEEDS_NO_QUOTES = re.compile(r"[^\s()\[\]{}/\\,;:=*'\"`+<>_]+")
STABILITY_COLUMNS = "n_recovered", "n_separated", "left_out", "is_stable"


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
        problem = f"labels must be of one type; try map(str, labels) ({error})"
        raise InputError(problem) from error
    if any(is_missing(label) and not isinstance(label, str) for label in distinct):
        raise InputError("labels must not be missing, got None or NaN")
    code_of = {label: code for code, label in enumerate(distinct)}
    builder = TreeBuilder(len(listed))
    if len(distinct) > 1:
        builder.add_split(0, np.array([code_of[label] for label in listed]))
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
        raise InputError("Z must hold finite numbers, as SciPy's linkage returns")
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
        raise InputError(f"must be from 1 to {n_rows}, the rows; got {n_leaves}", "n_clusters")
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


def to_frame(taxonomy: object) -> "pd.DataFrame":
    """Return a pandas data frame with one row per node of a taxonomy or fitted estimator.

    Rows that are noise are in none.

    Returns
    -------
    DataFrame
        Columns node, parent (-1 for the root), depth, birth, n_rows, is_leaf, leaf (the
        cluster's label, -1 for inner nodes), score, objective, n_features_used (by the
        node's own rule), top_features (of the parent's rule, three: what sends rows here),
        n_recovered, n_separated, left_out and is_stable (as
        :class:`~taxarbor.taxonomy.Stability` has them; NaN unless the tree was assessed) and
        note.

    Raises
    ------
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels, to_frame
    >>> to_frame(from_labels([0, 1, 1]))[["node", "parent", "n_rows"]].values.tolist()
    [[0, -1, 3], [1, 0, 1], [2, 0, 2]]
    """
    taxonomy = taxonomy_of(taxonomy)
    tree, stability = taxonomy.tree, taxonomy.stability
    leaf = np.full(tree.n_nodes, -1)
    leaf[tree.leaves] = np.arange(tree.n_leaves)
    columns = {
        "node": np.arange(tree.n_nodes),
        "parent": tree.parents,
        "depth": tree.depth,
        "birth": tree.birth,
        "n_rows": tree.sizes,
        "is_leaf": leaf >= 0,
        "leaf": leaf,
        "score": tree.score,
        "objective": tree.objective,
        "n_features_used": taxonomy.n_features_used,
        "top_features": [", ".join(map(phrase, some)) for some in list_reasons(taxonomy, 3)],
    }
    of_stability = {name: getattr(stability, name, np.nan) for name in STABILITY_COLUMNS}
    return make_frame("to_frame", columns | of_stability | {"note": list(tree.notes)})


def to_json(taxonomy: object) -> str:
    """Return all of a taxonomy, or of that of a fitted estimator, as strict ASCII JSON.

    The keys are attributes of :class:`~taxarbor.Taxonomy` and its tree; ``nodes`` has an object
    per node. A rule has weights for the features that it uses, one row per score, and in
    ``targets`` the id of the node that each score leads to. NaN is null, infinities are "inf"
    and "-inf"; other floats read back exactly. What is not known is null: the rule of a leaf,
    the order of a tree that holds counts. :meth:`~taxarbor.Taxonomy.save` writes files that can
    be loaded again.

    Examples
    --------
    >>> import json
    >>> from taxarbor.exchange import from_labels, to_json
    >>> json.loads(to_json(from_labels([0, 1, 1])))["order"]
    [0, 1, 2]
    """
    taxonomy = taxonomy_of(taxonomy)
    tree, (columns, arrays) = taxonomy.tree, taxonomy.columns.pack()
    of_tree = ("order", "weights", "noise", "n_noise", "totals")
    of_taxonomy = ("temperature", "noise_model", "stability", "made_by", "missing")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "feature_names": taxonomy.feature_names,
        **{name: getattr(tree, name) for name in of_tree},
        **{name: getattr(taxonomy, name) for name in of_taxonomy},
        "columns": columns | arrays,
        "nodes": [_describe_node(taxonomy, node) for node in range(tree.n_nodes)],
    }
    return json.dumps(_encode(document), allow_nan=False)


def _describe_node(taxonomy: Taxonomy, node: int) -> dict[str, object]:
    tree, rule = taxonomy.tree, taxonomy.tree.rules[node]
    values: dict[str, object] | None = None
    if rule is not None:
        values = {name: getattr(rule, name) for name in ("center", "offsets", "features")}
        frontier = tree.frontier(node)
        values["weights"] = rule.weights[:, rule.features]
        values["targets"] = [frontier[target] for target in rule.targets.tolist()]
    of_tree = ("start", "stop", "birth", "score", "objective")
    return {
        "id": node,
        "parent": tree.parent(node),
        "children": tree.children(node),
        **{name: getattr(tree, name)[node] for name in of_tree},
        "mean": None if taxonomy.means is None else taxonomy.means[node],
        "note": tree.notes[node],
        "rule": values,
        "info": _encode(tree.info[node]),
    }


def _encode(value: object) -> object:
    """Return arrays, and values made of them, as JSON has them."""
    if isinstance(value, NoiseModel | SolveInfo | Stability | Curve):
        return {name: _encode(getattr(value, name)) for name in value.__match_args__}
    if isinstance(value, np.ndarray):
        is_plain = value.dtype.kind != "f" or np.isfinite(value).all()
        return value.tolist() if is_plain else [_encode(part) for part in value]
    if isinstance(value, dict):
        return {key: _encode(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_encode(part) for part in value]
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, float) or math.isfinite(number):
        return number
    return None if math.isnan(number) else str(number)


def to_linkage(taxonomy: object) -> NDArray[np.float64]:
    """Return a SciPy linkage matrix in which the observations are the leaves, without noise.

    Splits are undone from the last to the first, which merges at heights 1, 2, ...; a
    split in K children becomes K - 1 merges at one height. The left one of two clusters comes
    first, so SciPy's ``dendrogram`` draws the leaves in the order of their labels.

    Returns
    -------
    float array of shape (n_leaves - 1, 4)
        The two clusters merged, the height, and the number of leaves merged. Observation
        ``j`` is the leaf with label ``j``.

    Raises
    ------
    ValueError
        If the root was never split.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels, to_linkage
    >>> to_linkage(from_labels([0, 1, 1]))
    array([[0., 1., 1., 2.]])
    """
    tree = taxonomy_of(taxonomy).tree
    if tree.n_leaves == 1:
        raise InputError("at least two leaves are needed, but the root was not split")
    # Births ascend with ids: this finds the first child of each split.
    first_children = np.unique(tree.birth, return_index=True)[1][1:]
    cluster, n_merged = [-1] * tree.n_nodes, [1] * tree.n_nodes
    for label, leaf in enumerate(tree.leaves.tolist()):
        cluster[leaf] = label
    merges: list[tuple[int, int, int, int]] = []
    for height, node in enumerate(reversed(tree.parents[first_children].tolist()), start=1):
        first, *others = tree.children(node)
        merged, count = cluster[first], n_merged[first]
        for other in others:
            count += n_merged[other]
            merges.append((merged, cluster[other], height, count))
            merged = tree.n_leaves + len(merges) - 1
        cluster[node], n_merged[node] = merged, count
    return np.array(merges, dtype=np.float64)


def to_newick(taxonomy: object, names: Sequence[str] | None = None) -> str:
    """Return the tree in Newick format; noise is no leaf of it.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The tree.
    names : sequence of str, optional
        Names of the leaves in the order of labels; c0, c1, ... by default. Quoted where
        the format asks for it; control characters become blanks.

    Raises
    ------
    ValueError
        If there are more or fewer names than leaves.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels, to_newick
    >>> to_newick(from_labels([0, 1, 2, 2]), ["ant", "bee", "it's"])
    "(ant,bee,'it''s');"
    """
    taxonomy = taxonomy_of(taxonomy)
    leaves = {leaf: printable(name) for leaf, name in leaf_names(taxonomy, names).items()}
    for leaf, name in leaves.items():
        if not NEEDS_NO_QUOTES.fullmatch(name):  # a quote within is doubled
            leaves[leaf] = "'" + name.replace("'", "''") + "'"
    pieces: list[str] = []
    pending: list[int | str] = [";", taxonomy.tree.root]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif item in leaves:
            pieces.append(leaves[item])
        else:
            pending.append(")")
            for child in reversed(taxonomy.tree.children(item)):
                pending += [child, ","]
            pending[-1] = "("
    return "".join(pieces)


def to_dot(taxonomy: object, names: Sequence[str] | None = None) -> str:
    r"""Return the tree in Graphviz's DOT language. Takes what :func:`to_newick` does.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels, to_dot
    >>> print(to_dot(from_labels([0, 1, 1])).splitlines()[3])
      1 [label="c0\n1 row"];
    """
    taxonomy = taxonomy_of(taxonomy)
    leaves = leaf_names(taxonomy, names)
    lines = ["digraph taxonomy {", "  node [shape=box];"]
    for _, node, reasons, _ in outline(taxonomy, None, 3, taxonomy.tree.n_nodes):
        assert node is not None
        parts = [printable(leaves.get(node, "")), ", ".join(map(phrase, reasons))]
        parts += [count_rows(taxonomy, node), describe_rule(taxonomy, node)]
        parts.append(describe_stability(taxonomy, node))
        # DOT reads backslashes, quotes and HTML entities.
        escaped = [escape(part, quote=False).replace("\\", r"\\") for part in parts if part]
        label = r"\n".join(escaped).replace('"', r"\"")
        lines.append(f'  {node} [label="{label}"];')
    lines += [f"  {p} -> {node};" for node, p in enumerate(taxonomy.tree.parents) if node]
    return "\n".join([*lines, "}", ""])
