"""Trees as text, and as HTML in notebooks: what is said of nodes, and the lines of a tree."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from taxarbor._errors import counted
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._reasons import Reason, child_reasons
from taxarbor.tree._edit_tree import leaves_below

if TYPE_CHECKING:
    from taxarbor.taxonomy._taxonomy import Taxonomy

MAX_HTML_NODES = 200
"""Nodes that a notebook shows: of a larger tree the first splits."""
OPEN_DEPTH = 3
"""Nodes above this depth are shown unfolded."""
# Boxes, not lists: the styles of notebooks and pages put bullets before these.
STYLE = """
.taxarbor{font:13px/1.55 system-ui,sans-serif;max-width:60em}
.taxarbor .below{padding:0 0 0 .3em;margin-left:1.1em;border-left:1px solid #8aa4bf55}
.taxarbor summary{cursor:pointer}.taxarbor .leaf{padding-left:1em}
.taxarbor .n{opacity:.65;font-variant-numeric:tabular-nums}
.taxarbor .unstable{color:#c2600c}
.taxarbor .bar{display:inline-block;height:.55em;
min-width:1px;background:#05668d;border-radius:2px;margin-right:.5em;opacity:.7}
"""


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
    by = counted(int(taxonomy.n_features_used[node]), "feature")
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


class Line(NamedTuple):
    """A node as text shows it; the last line may have none, and say what is hidden."""

    depth: int
    node: int | None
    reasons: Sequence[Reason]
    label: str
    """``c2`` for a leaf, ``3 clusters`` where the nodes below are not shown, or empty."""


def outline(
    taxonomy: "Taxonomy", max_depth: int | None, n_top: int, max_nodes: int
) -> Iterator[Line]:
    """Yield the lines of a tree, from the root down and from left to right.

    Of a tree of more than ``max_nodes``, the first splits are shown.
    """
    tree, names = taxonomy.tree, leaf_names(taxonomy, None)
    n_leaves = count_leaves(taxonomy)
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
        yield Line(depth, node, reasons, label)
        n_lines += 1
    if pending:  # of a split into more children than lines
        n_hidden = sum(n_leaves[node] for node, _ in pending)
        yield Line(1, None, (), f"... and {counted(n_hidden, 'more cluster')}")


def count_leaves(taxonomy: "Taxonomy") -> list[int]:
    """Count the leaves within each node, itself included: their slices start in its own."""
    first, last = leaves_below(taxonomy.tree)
    return [int(count) for count in last - first]


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
    return "\n".join([*lines, *_describe_noise(taxonomy)])


def _describe_noise(taxonomy: "Taxonomy") -> list[str]:
    n_noise = taxonomy.tree.n_noise
    return [f"{counted(n_noise, 'row')} set apart as noise"] if n_noise else []


def to_html(taxonomy: "Taxonomy", n_top: int = 3) -> str:
    """Return the tree as HTML for notebooks: it folds, has no script, escapes every name."""
    tree, n_leaves, pieces, n_open = taxonomy.tree, count_leaves(taxonomy), list[str](), 0
    for depth, node, reasons, label in outline(taxonomy, None, n_top, MAX_HTML_NODES):
        pieces += ["</div></details>"] * (n_open - depth)
        n_open = depth
        if node is None:
            pieces.append(f'<div class="leaf">{label}</div>')
            continue
        clusters = label or f"{n_leaves[node]:,} clusters"
        marks = [("n", f"{count_rows(taxonomy, node)} · {clusters}")]
        if words := describe_rule(taxonomy, node):
            marks.append(("n", f"({words})"))
        if words := describe_stability(taxonomy, node):
            assert taxonomy.stability is not None
            is_stable = taxonomy.stability.is_stable[node]
            marks.append(("n" if is_stable else "unstable", f"({words})"))
        spans = " ".join(f'<span class="{kind}">{text}</span>' for kind, text in marks)
        words = escape(", ".join(map(phrase, reasons))) or "all rows" * (node == tree.root)
        width = 8 * tree.sizes[node] / tree.sizes[0]
        line = f'<span class="bar" style="width:{width:.2f}em"></span><b>{words}</b> {spans}'
        if label:
            pieces.append(f'<div class="leaf">{line}</div>')
        else:
            is_open = " open" if depth < OPEN_DEPTH else ""
            pieces.append(f'<details{is_open}><summary>{line}</summary><div class="below">')
            n_open += 1
    pieces += ["</div></details>"] * n_open
    head = escape(", ".join([repr(taxonomy), *_describe_noise(taxonomy)]))
    return (
        f'<style>{STYLE}</style><div class="taxarbor"><div>{head}</div>{"".join(pieces)}</div>'
    )
