"""What is said of nodes, and trees as indented text."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from taxarbor._errors import counted
from taxarbor.taxonomy._phrases import Reason, phrase
from taxarbor.taxonomy._reasons import child_reasons, count_columns
from taxarbor.tree.edit_tree import leaves_below

if TYPE_CHECKING:
    from taxarbor.taxonomy.taxonomy import Taxonomy


def describe_stability(taxonomy: "Taxonomy", node: int) -> str:
    """Return ``recovered in 18 of 20 refits``; "" for the root and what was not assessed."""
    stability = taxonomy.stability
    return "" if stability is None or node == taxonomy.tree.root else stability.describe(node)


def describe_rule(taxonomy: "Taxonomy", node: int) -> str:
    """Return ``its rule chooses among 12 clusters by 40 features``, or "".

    It is said only of a rule that looks further down than the children of its node.
    """
    if not (choice := _describe_frontier(taxonomy, node)):
        return ""
    by = counted(count_columns(taxonomy, taxonomy.tree.rules[node]), "feature")
    return f"its rule chooses {choice} by {by}"


def describe_decision(taxonomy: "Taxonomy", node: int) -> str:
    """Return ``decided at node 0, among 12 clusters``, of the split of a node.

    "" where a rule of its own chooses among its children, for leaves, and without rules.
    """
    decider = taxonomy.tree.decided_by(node)
    choice = "" if decider is None else _describe_frontier(taxonomy, decider)
    return f"decided at node {decider}, {choice}" if choice else ""


def _describe_frontier(taxonomy: "Taxonomy", node: int) -> str:
    """Return ``among 12 clusters``, ``among 12 nodes`` if some are split, "" for children."""
    frontier = taxonomy.tree.frontier(node)
    if len(frontier) <= len(taxonomy.tree.children(node)):
        return ""
    are_leaves = all(map(taxonomy.tree.is_leaf, frontier))
    return f"among {counted(len(frontier), 'cluster' if are_leaves else 'node')}"


def leaf_names(taxonomy: "Taxonomy", names: Sequence[str] | None) -> dict[int, str]:
    """Return the name of each leaf by node id: those given, in order, else c0, c1, ..."""
    if names is None:
        names = [f"c{label}" for label in range(taxonomy.tree.n_leaves)]
    if len(names) != taxonomy.tree.n_leaves:
        raise ValueError(f"got {len(names)} names for {taxonomy.tree.n_leaves} leaves")
    return dict(zip(taxonomy.tree.leaves.tolist(), map(str, names), strict=True))


def count_rows(taxonomy: "Taxonomy", node: int) -> str:
    """Return ``1,200 rows``, ``1 row``."""
    return counted(int(taxonomy.tree.sizes[node]), "row")


Line: TypeAlias = tuple[int, int | None, Sequence[Reason], str]
"""A node as text shows it: depth, id, reasons, and a label: ``c2`` for a leaf, ``3 clusters``
where the nodes below are not shown, or "". The last may have no id, and say what is hidden."""


def outline(
    taxonomy: "Taxonomy", max_depth: int | None, n_top: int, max_nodes: int
) -> Iterator[Line]:
    """Yield the lines of a tree, from the root down and from left to right.

    Of a tree of more than ``max_nodes``, the first splits are shown.
    """
    tree, names = taxonomy.tree, leaf_names(taxonomy, None)
    first, last = leaves_below(tree)
    n_leaves = (last - first).tolist()
    n_nodes_after = np.cumsum(np.bincount(tree.birth))
    last_step = max(int(np.searchsorted(n_nodes_after, max_nodes, "right")) - 1, 1)
    n_lines, pending = 0, [(tree.root, taxonomy.reasons(tree.root))]
    while pending and n_lines < max_nodes:
        node, reasons = pending.pop()
        depth, label, children = int(tree.depth[node]), names.get(node, ""), tree.children(node)
        is_hidden = max_depth is not None and depth >= max_depth
        if children and (is_hidden or tree.birth[children[0]] > last_step):
            label = f"{n_leaves[node]:,} clusters"
        else:
            below = child_reasons(taxonomy, node, max(n_top, 0))
            pending += reversed([*zip(children, below, strict=True)])
        yield depth, node, reasons, label
        n_lines += 1
    if pending:  # of a split into more children than lines
        n_hidden = sum(n_leaves[node] for node, _ in pending)
        yield 1, None, (), f"... and {counted(n_hidden, 'more cluster')}"


def to_text(taxonomy: "Taxonomy", max_depth: int | None, n_top: int, max_nodes: int) -> str:
    """Return the tree as indented text; see :meth:`Taxonomy.to_text`."""
    lines: list[str] = []
    for depth, node, reasons, label in outline(taxonomy, max_depth, n_top, max_nodes):
        indent = "  " * depth
        if node is None:
            lines.append(indent + label)
            continue
        parts = [count_rows(taxonomy, node), *map(phrase, reasons)]
        line = f"{indent}node {node}: " + ", ".join(parts)
        for words in (describe_rule(taxonomy, node), describe_stability(taxonomy, node)):
            line += f" ({words})" if words else ""
        lines.append(f"{line} [{label}]" if label else line)
    if n_noise := taxonomy.tree.n_noise:
        lines.append(f"{counted(n_noise, 'row')} set apart as noise")
    return "\n".join(lines)
