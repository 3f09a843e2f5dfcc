"""What pictures say of nodes, computed without matplotlib: places, words, classes, branches."""

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, InputTypeError, printable
from taxarbor._types import Array, IndexArray
from taxarbor.metrics._classes import NO_LABEL, encode_labels, name_of
from taxarbor.plot import _axes
from taxarbor.plot._axes import (
    CLASSES,
    GRID,
    N_CLASSES,
    OTHER,
    Entries,
    Style,
    StyledLine,
    value,
)
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.taxonomy._text import phrase

Describe: TypeAlias = Callable[[int], Sequence[str | StyledLine]]
Orientation: TypeAlias = Literal["down", "right"]

STYLES: tuple[Style, ...] = get_args(Style)
N_TOP = 3  # features of a node
N_NAMED, LEAST = 2, 0.1  # classes of a node that are named, and their share at least
LONGEST, LONGEST_NAME = 28, 20  # letters of a line, and of a class with a share behind it


def expect_orientation(given: object) -> None:
    """Raise ValueError for what is no orientation."""
    if given not in get_args(Orientation):
        raise InputError(f"orientation must be 'down' or 'right', got {given!r}")


@value
class TreeLayout:
    """Places for the nodes of a tree, or of its upper levels.

    The nodes shown without children stand at breadths 0, 1, 2, ... from left to right, and a
    parent in the middle between its first and its last child. So any two nodes of one depth
    are at least 1 apart.
    """

    nodes: IndexArray  # ids of the nodes shown, parents first; all arrays follow this order
    depth: IndexArray
    breadth: Array
    parents: IndexArray  # of each node but the first, the position of its parent in nodes
    is_cut: NDArray[np.bool_]  # whether the node has children that are not shown
    is_lost: NDArray[np.bool_]  # whether the tree was assessed, and the node is not stable

    @property
    def n_ends(self) -> int:
        """Number of nodes shown without children: leaves, and nodes that are cut."""
        return len(self.nodes) - len(np.unique(self.parents))

    @property
    def height(self) -> int:
        """Depth of the deepest node shown."""
        return int(self.depth.max())


def lay_out(taxonomy: Any, max_depth: SupportsIndex | None = None) -> TreeLayout:
    """Return places for the nodes down to a depth; the root has depth 0.

    Raises TypeError where there is no tree, and ValueError if ``max_depth`` is negative.
    """
    taxonomy = taxonomy_of(taxonomy)
    limit = taxonomy.tree.height if max_depth is None else operator.index(max_depth)
    if limit < 0:
        raise InputError(f"max_depth must be 0 or more, or None, got {limit}")
    nodes = np.flatnonzero(taxonomy.tree.depth <= limit)
    # Ids ascend, and so do positions: what is said of the order of ids holds for both.
    parents = np.searchsorted(nodes, taxonomy.tree.parents[nodes[1:]])
    is_inner = np.zeros(len(nodes), dtype=bool)
    is_inner[parents] = True
    has_children = np.zeros(taxonomy.tree.n_nodes, dtype=bool)
    has_children[taxonomy.tree.parents[1:]] = True
    breadth = _breadths(parents, is_inner, taxonomy.tree.start[nodes])
    is_cut = has_children[nodes] & ~is_inner
    is_lost = np.zeros(len(nodes), dtype=bool)
    if taxonomy.stability is not None:
        is_lost[1:] = ~taxonomy.stability.is_stable[nodes[1:]]
    return TreeLayout(nodes, taxonomy.tree.depth[nodes], breadth, parents, is_cut, is_lost)


def _families(parents: IndexArray) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return the first and the last child of each node that has any, and all children between.

    Siblings are consecutive, and families in the order of the splits.
    """
    nodes = np.arange(1, len(parents) + 1)
    is_first, is_last = np.diff(parents, prepend=-1) != 0, np.diff(parents, append=-1) != 0
    return nodes[is_first], nodes[is_last], nodes[~(is_first | is_last)]


def _breadths(parents: IndexArray, is_inner: NDArray[np.bool_], start: IndexArray) -> Array:
    """Place the ends by their first row, then parents, the last split first."""
    ends = np.flatnonzero(~is_inner)
    breadth = np.empty(len(is_inner))
    breadth[ends[np.argsort(start[ends])]] = np.arange(len(ends))
    first, last, _ = _families(parents)
    places = breadth.tolist()
    for node, a, b in np.column_stack([parents[first - 1], first, last])[::-1].tolist():
        places[node] = (places[a] + places[b]) / 2
    return np.array(places)


def join_children(
    parents: IndexArray, across: Array, along: Array, bar: Array
) -> tuple[Array, Array, IndexArray]:
    """Return hoops, drops and whose they are: lines that join the children of each node.

    A hoop joins the first and the last child, (n_hoops, 4, 2), and drops hang the others on
    it, (n_drops, 2, 2). No two overlap: a line drawn twice looks bolder. Each node has a place
    ``across`` and ``along`` the tree, and the hoop over it and its siblings is at ``bar``.
    """
    first, last, other = _families(parents)
    hoops = [(first, along), (first, bar), (last, bar), (last, along)]
    lines = [
        np.stack([np.column_stack([across[n], at[n]]) for n, at in corners], axis=1)
        for corners in (hoops, [(other, bar), (other, along)])
    ]
    return lines[0], lines[1], parents[np.concatenate([first, other]) - 1]


def describe_reasons(taxonomy: Taxonomy, node: int, n_top: int = N_TOP) -> list[StyledLine]:
    """Return what leads to a node, in words."""
    return [
        (phrase(reason, LONGEST), "plus" if reason.sign > 0 else "minus")
        for reason in taxonomy.reasons(node, n_top)
    ]


def explain_lost(taxonomy: Taxonomy, layout: TreeLayout) -> Entries:
    """Return what a legend says of the nodes that are lost, if there are any."""
    if taxonomy.stability is None or not layout.is_lost.any():
        return ()
    half = f"fewer than half of {taxonomy.stability.n_refits} refits"
    return ((f"pale: came back, apart from others, in {half}", _axes.GRID),)


def shorten(text: object, longest: int = LONGEST) -> str:
    """Return what can be drawn of a text on one line, and not too much of it."""
    shown = printable(str(text)).strip()
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def tidy(lines: Sequence[str | StyledLine], node: int) -> list[StyledLine]:
    """Return lines that can be drawn: printable, not too long, each with a style.

    Without a style, the first line is the title and the others are plain. Raises TypeError if
    these are not lines, ValueError if there is no such style.
    """
    if isinstance(lines, str):
        raise InputTypeError(
            f"describe must return a list of lines, got the text {lines!r} for node {node}: "
            "put it in a list, or split it into lines"
        )
    tidied = []
    for n, line in enumerate(lines):
        text, style = (line, STYLES[min(n, 1)]) if isinstance(line, str) else line
        if style not in STYLES:
            known = ", ".join(STYLES)
            raise InputError(
                f"the style of a line must be one of {known}, got {style!r} for node {node}"
            )
        tidied.append((shorten(text), style))
    return tidied


@value
class Makeup:
    """How many rows of each class there are in each node; without classes, all is empty."""

    names: tuple[str, ...]  # all classes, the largest first; of the first eight, numbers ascend
    codes: IndexArray  # position in names of each row's class, or -1; as in taxonomy.tree.order
    entries: Entries  # the eight largest classes, all others together, rows without a label
    counts: IndexArray  # (n_nodes, n_entries), number of rows

    def describe(self, taxonomy: Taxonomy, node: int) -> list[StyledLine]:
        """Return lines such as ``mammals · 92%`` for the largest classes of a node.

        Shares are of the rows with a label.
        """
        if not self.entries:
            return []
        mine = self.codes[taxonomy.tree.start[node] : taxonomy.tree.stop[node]]
        found, counts = np.unique(mine[mine >= 0], return_counts=True)
        order, n_known = np.argsort(-counts, kind="stable")[:N_NAMED], counts.sum()
        return [
            (f"{shorten(self.names[n], LONGEST_NAME)} · {count / n_known:.0%}", "plain")
            for n, count in zip(found[order].tolist(), counts[order].tolist(), strict=True)
            if count >= LEAST * n_known
        ]


def count_classes(taxonomy: Taxonomy, classes: ArrayLike | None) -> Makeup:
    """Return the make-up of each node; ValueError if classes and rows do not match."""
    if classes is None:
        none = np.empty((taxonomy.tree.n_nodes, 0), dtype=np.intp)
        return Makeup((), np.empty(0, dtype=np.intp), (), none)
    rows = taxonomy.tree.rows(taxonomy.tree.root)
    n_shown = len(rows)
    codes, found = encode_labels(classes, taxonomy.tree.n_rows)
    names, codes = [name_of(label) for label in found], codes[rows]
    sizes = np.bincount(codes + 1, minlength=len(names) + 1)[1:]
    order = np.lexsort((np.array(names), -sizes))
    with contextlib.suppress(ValueError):  # numbers ascend, other names stay
        values = [float(name) for name in names]
        order[:N_CLASSES] = sorted(order[:N_CLASSES], key=values.__getitem__)
    rank = np.full(len(order) + 1, -1)
    rank[order] = np.arange(len(order))
    codes = rank[codes]
    told = tuple(shorten(names[n]) or "(empty)" for n in order.tolist())
    entries = tuple(zip(told, CLASSES, strict=False))
    entries += (("other", OTHER),) * (len(told) > N_CLASSES)
    entries += ((NO_LABEL, GRID),) * bool((codes < 0).any())
    # Sums up to each row: two of them make a node's, whose rows are consecutive.
    sums = np.zeros((n_shown + 1, len(entries)), dtype=np.intp)
    sums[np.arange(1, n_shown + 1), np.minimum(codes, N_CLASSES)] = 1  # -1 is the last
    np.cumsum(sums, axis=0, out=sums)
    return Makeup(told, codes, entries, sums[taxonomy.tree.stop] - sums[taxonomy.tree.start])


def find_branches(taxonomy: Taxonomy, most: int = _axes.N_BRANCHES) -> IndexArray:
    """Return the branch that each node belongs to: 0, 1, ... from left to right.

    The branches are the clusters of the finest cut into no more than ``most``, or those of
    the first split if they are more. A node above them has -1, and so has a single root.
    """
    if taxonomy.tree.n_leaves == 1:
        return np.array([-1])
    n_clusters = min(max(most, len(taxonomy.tree.children(0))), taxonomy.tree.n_leaves)
    shown = taxonomy.prune(n_clusters)
    # A node lies within a branch if its slice does.
    starts = shown.tree.start[shown.tree.leaves]
    first = np.searchsorted(starts, taxonomy.tree.start, side="right") - 1
    last = np.searchsorted(starts, taxonomy.tree.stop - 1, side="right") - 1
    return np.where(first == last, first, -1)
