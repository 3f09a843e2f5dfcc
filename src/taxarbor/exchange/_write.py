"""The tree in the terms of other libraries and file formats.

No function recurses, so a tree may be as deep as it likes. Newick and DOT are written here, as
libraries for them recurse, or need Graphviz, and each would be one more to install.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError, missing_extra, printable
from taxarbor._frames import make_frame
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._text import (
    count_rows,
    describe_rule,
    describe_stability,
    leaf_names,
    top_features,
)

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

# Newick reads an underscore as a blank, and the rest of these as punctuation.
_NEEDS_NO_QUOTES = re.compile(r"[^\s()\[\]{}/\\,;:=*'\"`+<>_]+")


def _node_table(taxonomy: Taxonomy, n_top: int) -> dict[str, list[Any]]:
    """Return plain values per node, column by column, for frames and graphs."""
    leaf = np.full(taxonomy.tree.n_nodes, -1)
    leaf[taxonomy.tree.leaves] = np.arange(taxonomy.tree.n_leaves)
    told = [top_features(taxonomy, node, n_top) for node in range(taxonomy.tree.n_nodes)]
    unknown, trust = np.full(taxonomy.tree.n_nodes, np.nan), taxonomy.stability
    return {
        "parent": taxonomy.tree.parents.tolist(),
        "depth": taxonomy.tree.depth.tolist(),
        "birth": taxonomy.tree.birth.tolist(),
        "n_rows": taxonomy.tree.sizes.tolist(),
        "is_leaf": (leaf >= 0).tolist(),
        "leaf": leaf.tolist(),
        "score": taxonomy.tree.score.tolist(),
        "objective": taxonomy.tree.objective.tolist(),
        "n_features_used": taxonomy.n_features_used.tolist(),
        "top_features": told,
        **{
            name: (unknown if trust is None else getattr(trust, name)).tolist()
            for name in ("n_recovered", "apart", "n_rule_recovered", "left_out", "is_stable")
        },
        "note": list(taxonomy.tree.notes),
    }


def to_frame(taxonomy: Taxonomy, *, n_top: int = 3) -> "pd.DataFrame":
    """Return a pandas data frame with one row per node. Rows that are noise are in none.

    Parameters
    ----------
    taxonomy : Taxonomy
        The tree.
    n_top : int
        Number of features named per node.

    Returns
    -------
    DataFrame
        Columns node, parent (-1 for the root), depth, birth, n_rows, is_leaf, leaf (the
        cluster's label, -1 for inner nodes), score, objective, n_features_used (by the
        node's own rule), top_features (of the parent's rule: what sends rows here), n_recovered,
        apart, n_rule_recovered, left_out and is_stable (as :class:`~taxarbor.taxonomy.Stability` has
        them; NaN unless the tree was assessed) and note.

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
    table = _node_table(taxonomy, n_top)
    return make_frame("to_frame", {"node": list(range(taxonomy.tree.n_nodes)), **table})


def to_networkx(taxonomy: Taxonomy, *, n_top: int = 3) -> "nx.DiGraph":
    """Return a networkx graph with edges from parent to child.

    Nodes are ids and carry the columns of :func:`to_frame` as attributes, but for
    ``node`` and ``parent``. Takes what :func:`to_frame` does.

    Raises
    ------
    ImportError
        If networkx is not installed.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels, to_networkx
    >>> graph = to_networkx(from_labels([0, 1, 1]))
    >>> list(graph.edges), graph.nodes[2]["n_rows"]
    ([(0, 1), (0, 2)], 2)
    """
    try:
        import networkx as nx
    except ImportError as error:
        raise missing_extra("to_networkx", "networkx") from error
    table = _node_table(taxonomy, n_top)
    parents = table.pop("parent")
    graph = nx.DiGraph()
    for node, values in enumerate(zip(*table.values(), strict=True)):
        graph.add_node(node, **dict(zip(table, values, strict=True)))
    graph.add_edges_from((parent, node) for node, parent in enumerate(parents) if node)
    return graph


def to_linkage(taxonomy: Taxonomy) -> NDArray[np.float64]:
    """Return a SciPy linkage matrix in which the observations are the leaves, without noise.

    Splits are undone from the last to the first, which merges at heights 1, 2, ...; a
    split in K children becomes K - 1 merges at one height.

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
    n_leaves = taxonomy.tree.n_leaves
    if n_leaves == 1:
        raise InputError("a linkage needs two leaves at least, and the root was not split")
    # Births ascend with ids: this finds the first child of each split.
    first_children = np.unique(taxonomy.tree.birth, return_index=True)[1][1:]
    split_nodes = taxonomy.tree.parents[first_children]
    cluster, n_merged = [-1] * taxonomy.tree.n_nodes, [1] * taxonomy.tree.n_nodes
    for label, leaf in enumerate(taxonomy.tree.leaves.tolist()):
        cluster[leaf] = label
    merges: list[tuple[int, int, int, int]] = []
    for height, node in enumerate(reversed(split_nodes.tolist()), start=1):
        first, *others = taxonomy.tree.children(node)
        merged, count = cluster[first], n_merged[first]
        for other in others:
            pair = sorted((merged, cluster[other]))
            count += n_merged[other]
            merged = n_leaves + len(merges)
            merges.append((pair[0], pair[1], height, count))
        cluster[node], n_merged[node] = merged, count
    return np.array(merges, dtype=np.float64)


def to_newick(taxonomy: Taxonomy, names: Sequence[str] | None = None) -> str:
    """Return the tree in Newick format; noise is no leaf of it.

    Parameters
    ----------
    taxonomy : Taxonomy
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
    leaves = {leaf: printable(name) for leaf, name in leaf_names(taxonomy, names).items()}
    for leaf, name in leaves.items():
        if not _NEEDS_NO_QUOTES.fullmatch(name):  # a quote within is doubled
            leaves[leaf] = "'" + name.replace("'", "''") + "'"
    pieces: list[str] = []
    waiting: list[int | str] = [";", taxonomy.tree.root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif item in leaves:
            pieces.append(leaves[item])
        else:
            waiting.append(")")
            for child in reversed(taxonomy.tree.children(item)):
                waiting += [child, ","]
            waiting[-1] = "("
    return "".join(pieces)


def to_dot(taxonomy: Taxonomy, names: Sequence[str] | None = None, *, n_top: int = 3) -> str:
    r"""Return the tree in Graphviz's DOT language.

    Takes and raises what :func:`to_newick` does, and ``n_top``, the number of features named
    per node.

    Examples
    --------
    >>> from taxarbor.exchange import from_labels, to_dot
    >>> print(to_dot(from_labels([0, 1, 1])).splitlines()[3])
      1 [label="c0\n1 row"];
    """
    leaves = leaf_names(taxonomy, names)
    lines = ["digraph taxonomy {", "  node [shape=box];"]
    for node in range(taxonomy.tree.n_nodes):
        told = top_features(taxonomy, node, n_top), count_rows(taxonomy, node)
        notes = describe_rule(taxonomy, node), describe_stability(taxonomy, node)
        parts = [printable(leaves.get(node, "")), *told, *notes]
        # DOT reads backslashes, quotes and HTML entities.
        escaped = [escape(part, quote=False).replace("\\", r"\\") for part in parts if part]
        label = r"\n".join(escaped).replace('"', r"\"")
        lines.append(f'  {node} [label="{label}"];')
    lines += [f"  {p} -> {node};" for node, p in enumerate(taxonomy.tree.parents) if node]
    return "\n".join([*lines, "}", ""])
