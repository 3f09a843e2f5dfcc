"""Nodes in words: names that are safe to write, the features that matter, a text tree."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def printable(text: str) -> str:
    """Return the text on one line, without control characters or half characters."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in whole)


def in_digits(value: float) -> str:
    """Return a number in four digits: ``17,590``, ``0.1235``; ``2.5e+12`` if none is enough."""
    text = f"{value:.4g}"
    is_large = "e" in text and 1.0 <= abs(value) < 1e9
    return f"{float(text):,.0f}" if is_large else text


def leaf_names(hierarchy: "Hierarchy", names: Sequence[str] | None) -> dict[int, str]:
    """Return the name of each leaf by node id: those given, in order, else c0, c1, ...

    Raises
    ------
    ValueError
        If there are more or fewer names than leaves.
    """
    if names is None:
        names = [f"c{label}" for label in range(hierarchy.n_leaves)]
    if len(names) != hierarchy.n_leaves:
        raise ValueError(f"got {len(names)} names for {hierarchy.n_leaves} leaves")
    return dict(zip(hierarchy.leaves.tolist(), map(str, names), strict=True))


def size(hierarchy: "Hierarchy", node: int) -> str:
    """Return ``12 rows``, ``1 row``."""
    n_rows = len(hierarchy.rows(node))
    return f"{n_rows} row" + "s" * (n_rows != 1)


def top_features(hierarchy: "Hierarchy", node: int, n_top: int) -> str:
    """Say which features send rows to this node rather than to its siblings.

    ``+name`` says that larger values lead here, ``-name`` that smaller ones do; those that
    do most come first. Empty for the root, and where there are no rules.
    """
    found = hierarchy.reasons(node, max(n_top, 0))
    return ", ".join(printable(str(reason)) for reason in found)


def to_text(
    hierarchy: "Hierarchy",
    max_depth: int | None = None,
    n_top: int = 3,
    *,
    max_nodes: int = 200,
) -> str:
    """Return the tree as indented text, one line per node.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    max_depth : int, optional
        Show no deeper nodes.
    n_top : int
        Show so many features per node: ``+name`` where larger values lead to the node,
        ``-name`` where smaller ones do.
    max_nodes : int
        Show so many nodes at most.

    Returns
    -------
    str
        Lines such as ``node 4: 12 rows, +age, -height [c2]``.
    """
    names = leaf_names(hierarchy, None)
    n_leaves = count_leaves(hierarchy)
    lines: list[str] = []
    waiting = [hierarchy.root]
    while waiting and len(lines) < max_nodes:
        node = waiting.pop()
        depth = int(hierarchy.depth[node])
        parts = [size(hierarchy, node), top_features(hierarchy, node, n_top)]
        line = "  " * depth + f"node {node}: " + ", ".join(filter(None, parts))
        if node in names:
            line += f" [{names[node]}]"
        elif max_depth is not None and depth >= max_depth:
            line += f" [{n_leaves[node]} clusters]"
        else:
            waiting += reversed(hierarchy.children(node))
        lines.append(line)
    if waiting:
        n_hidden = sum(n_leaves[node] for node in waiting)
        lines.append(f"... and {n_hidden} more clusters")
    return "\n".join(lines)


def count_leaves(hierarchy: "Hierarchy") -> list[int]:
    """Count the leaves within each node, itself included: their slices start in its own."""
    starts = hierarchy.start[hierarchy.leaves]
    ends = np.searchsorted(starts, [hierarchy.start, hierarchy.stop])
    counts: list[int] = (ends[1] - ends[0]).tolist()
    return counts
