"""How a tree shows itself: as text, and as HTML in notebooks."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from taxarbor._errors import counted
from taxarbor.hierarchy._words import describe_doubt, describe_trust, phrase

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

MAX_LEAVES = 100
"""Of a larger tree the first splits are shown, of a node with more children the first ones."""
OPEN_DEPTH = 3
"""Nodes above this depth are shown unfolded."""
# Boxes, not lists: the styles of notebooks and pages put bullets before these.
STYLE = """
.taxarbor{font:13px/1.55 system-ui,sans-serif;max-width:60em}
.taxarbor .below{padding:0 0 0 .3em;margin-left:1.1em;border-left:1px solid #8aa4bf55}
.taxarbor summary{cursor:pointer}.taxarbor .leaf{padding-left:1em}
.taxarbor .n{opacity:.65;font-variant-numeric:tabular-nums}
.taxarbor .doubt{color:#c2600c}
.taxarbor .bar{display:inline-block;height:.55em;
min-width:1px;background:#05668d;border-radius:2px;margin-right:.5em;opacity:.7}
"""


def leaf_names(hierarchy: "Hierarchy", names: Sequence[str] | None) -> dict[int, str]:
    """Return the name of each leaf by node id: those given, in order, else c0, c1, ..."""
    if names is None:
        names = [f"c{label}" for label in range(hierarchy.n_leaves)]
    if len(names) != hierarchy.n_leaves:
        raise ValueError(f"got {len(names)} names for {hierarchy.n_leaves} leaves")
    return dict(zip(hierarchy.leaves.tolist(), map(str, names), strict=True))


def size(hierarchy: "Hierarchy", node: int) -> str:
    """Return ``1,200 rows``, ``1 row``."""
    return counted(int(hierarchy.sizes[node]), "row")


def top_features(hierarchy: "Hierarchy", node: int, n_top: int) -> str:
    """Say which features send rows to this node rather than to its siblings.

    Those that do most come first. Empty for the root, and where there are no rules.
    """
    return ", ".join(map(phrase, hierarchy.reasons(node, max(n_top, 0))))


def to_text(hierarchy: "Hierarchy", max_depth: int | None, n_top: int, max_nodes: int) -> str:
    """Return the tree as indented text; see :meth:`Hierarchy.to_text`."""
    names = leaf_names(hierarchy, None)
    n_leaves = count_leaves(hierarchy)
    lines: list[str] = []
    waiting = [hierarchy.root]
    while waiting and len(lines) < max_nodes:
        node = waiting.pop()
        depth = int(hierarchy.depth[node])
        parts = [size(hierarchy, node), top_features(hierarchy, node, n_top)]
        line = "  " * depth + f"node {node}: " + ", ".join(filter(None, parts))
        beside = describe_doubt(hierarchy, node), describe_trust(hierarchy, node)
        line += "".join(f" ({told})" for told in beside if told)
        if node in names:
            line += f" [{names[node]}]"
        elif max_depth is not None and depth >= max_depth:
            line += f" [{n_leaves[node]:,} clusters]"
        else:
            waiting += reversed(hierarchy.children(node))
        lines.append(line)
    if waiting:
        n_hidden = sum(n_leaves[node] for node in waiting)
        lines.append(f"... and {counted(n_hidden, 'more cluster')}")
    if n_noise := hierarchy.n_noise:
        lines.append(f"{counted(n_noise, 'row')} set apart as noise")
    return "\n".join(lines)


def count_leaves(hierarchy: "Hierarchy") -> list[int]:
    """Count the leaves within each node, itself included: their slices start in its own."""
    starts = hierarchy.start[hierarchy.leaves]
    first, last = np.searchsorted(starts, [hierarchy.start, hierarchy.stop])
    return [int(count) for count in last - first]


def to_html(hierarchy: "Hierarchy", n_top: int = 3) -> str:
    """Return the tree as HTML for notebooks: it folds, has no script, escapes every name."""
    shown = hierarchy.prune(min(MAX_LEAVES, hierarchy.n_leaves))
    if shown.n_leaves == 1:  # the first split alone makes too many
        shown = hierarchy.prune(depth=1)
    # A node of the smaller tree may hold several leaves of the whole one.
    starts = hierarchy.start[hierarchy.leaves]
    first, last = np.searchsorted(starts, [shown.start, shown.stop]).tolist()
    head, n_shown = escape(repr(hierarchy)), min(shown.n_leaves, MAX_LEAVES)
    if n_shown < hierarchy.n_leaves:
        head += f", cut to {n_shown} of its clusters"
    if n_noise := hierarchy.n_noise:
        head += f", {counted(n_noise, 'row')} set apart as noise"
    clusters = [range(*ends) for ends in zip(first, last, strict=True)]
    body = "".join(_pieces(shown, clusters, n_top))
    return f'<style>{STYLE}</style><div class="taxarbor"><div>{head}</div>{body}</div>'


def _pieces(hierarchy: "Hierarchy", clusters: list[range], n_top: int) -> list[str]:
    """Return the markup from left to right, given the leaves of the whole tree by node."""
    pieces: list[str] = []
    waiting: list[int | str] = [hierarchy.root]  # no function recurses
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        line = _line(hierarchy, item, clusters[item], n_top)
        children = hierarchy.children(item)
        if not children:
            pieces.append(f'<div class="leaf">{line}</div>')
            continue
        is_open = " open" if hierarchy.depth[item] < OPEN_DEPTH else ""
        pieces.append(f'<details{is_open}><summary>{line}</summary><div class="below">')
        n_hidden = sum(len(clusters[child]) for child in children[MAX_LEAVES:])
        told = f"… and {counted(n_hidden, 'more cluster')}"
        more = f'<div class="leaf">{told}</div>' if n_hidden else ""
        waiting += ["</div></details>", more, *reversed(children[:MAX_LEAVES])]
    return pieces


def _line(hierarchy: "Hierarchy", node: int, leaves: range, n_top: int) -> str:
    label = f"c{leaves[0]}" if len(leaves) == 1 else f"{len(leaves)} clusters"
    share = hierarchy.sizes[node] / hierarchy.sizes[0]
    told = escape(top_features(hierarchy, node, n_top)) or "all rows" * (node == 0)
    beside = [("n", f"{size(hierarchy, node)} · {label}")]
    if doubt := describe_doubt(hierarchy, node):
        beside.append(("doubt", f"({doubt})"))
    if hierarchy.trust is not None and node != hierarchy.root:
        is_stable = hierarchy.trust.is_stable[node]
        beside.append(("n" if is_stable else "doubt", f"({hierarchy.trust.told(node)})"))
    marks = " ".join(f'<span class="{kind}">{text}</span>' for kind, text in beside)
    bar = f'<span class="bar" style="width:{8 * share:.2f}em"></span>'
    return f"{bar}<b>{told}</b> {marks}"
