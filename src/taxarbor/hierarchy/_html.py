"""A tree for notebooks: a list that folds, without scripts, every name escaped."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from taxarbor.hierarchy._text import size, top_features

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

MAX_LEAVES = 100
"""Of a tree with more leaves, only the first splits are shown, and of a node with more
children only the first of these."""

OPEN_DEPTH = 3
"""Nodes above this depth are shown unfolded."""

STYLE = """
.taxarbor{font:13px/1.55 system-ui,sans-serif;max-width:60em}
.taxarbor ul{list-style:none;margin:0;padding:0 0 0 1.1em;border-left:1px solid #8aa4bf55}
.taxarbor>ul{padding:0;border:0}.taxarbor li{margin:0;padding:0 0 0 .3em}
.taxarbor summary{cursor:pointer}.taxarbor .leaf{padding-left:1em}
.taxarbor .n{opacity:.65;font-variant-numeric:tabular-nums}
.taxarbor .bar{display:inline-block;height:.55em;
min-width:1px;background:#05668d;border-radius:2px;margin-right:.5em;opacity:.7}
"""


def to_html(hierarchy: "Hierarchy", n_top: int = 3) -> str:
    """Return the tree as HTML that folds and needs no script.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    n_top : int
        Number of features named per node.
    """
    shown = hierarchy.prune(min(MAX_LEAVES, hierarchy.n_leaves))
    if shown.n_leaves == 1:  # the first split alone makes too many
        shown = hierarchy.prune(depth=1)
    # A node of the smaller tree may hold several leaves of the whole one.
    starts = hierarchy.start[hierarchy.leaves]
    first, last = np.searchsorted(starts, [shown.start, shown.stop]).tolist()
    head, n_shown = escape(repr(hierarchy)), min(shown.n_leaves, MAX_LEAVES)
    if n_shown < hierarchy.n_leaves:
        head += f", cut to {n_shown} of its groups"
    groups = [range(*ends) for ends in zip(first, last, strict=True)]
    body = "".join(_pieces(shown, groups, n_top))
    return f'<style>{STYLE}</style><div class="taxarbor"><div>{head}</div>{body}</div>'


def _pieces(hierarchy: "Hierarchy", groups: list[range], n_top: int) -> list[str]:
    """Return the markup from left to right; no function recurses.

    ``groups`` are the leaves of the whole tree within each node.
    """
    pieces: list[str] = []
    waiting: list[int | str] = ["</ul>", hierarchy.root, "<ul>"]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        line = _line(hierarchy, item, _label(groups[item]), n_top)
        children = hierarchy.children(item)
        if not children:
            pieces.append(f'<li class="leaf">{line}</li>')
            continue
        is_open = " open" if hierarchy.depth[item] < OPEN_DEPTH else ""
        pieces.append(f"<li><details{is_open}><summary>{line}</summary><ul>")
        n_hidden = sum(len(groups[child]) for child in children[MAX_LEAVES:])
        more = f'<li class="leaf">… and {n_hidden:,} more groups</li>' if n_hidden else ""
        waiting += ["</ul></details></li>", more, *reversed(children[:MAX_LEAVES])]
    return pieces


def _label(leaves: range) -> str:
    return f"c{leaves[0]}" if len(leaves) == 1 else f"{len(leaves)} groups"


def _line(hierarchy: "Hierarchy", node: int, label: str, n_top: int) -> str:
    share = len(hierarchy.rows(node)) / len(hierarchy.order)
    told = escape(top_features(hierarchy, node, n_top)) or "all rows" * (node == 0)
    return (
        f'<span class="bar" style="width:{8 * share:.2f}em"></span><b>{told}</b> '
        f'<span class="n">{size(hierarchy, node)} · {label}</span>'
    )
