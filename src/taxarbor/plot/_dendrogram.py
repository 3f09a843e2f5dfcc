"""Dendrograms: the order of the splits as heights, with a line of text for each leaf."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy, hierarchy_of
from taxarbor.plot._axes import new_axes, require_matplotlib, room_on
from taxarbor.plot._boxes import Orientation, expect_orientation
from taxarbor.plot._describe import (
    Describe,
    StyledLine,
    count_rows,
    describe_reasons,
    tidy,
)
from taxarbor.plot._layout import lay_out
from taxarbor.plot._palette import BRANCH, BRANCHES, INK, N_BRANCHES, PLAIN, find_branches
from taxarbor.plot._text import FONT_SIZE, LEADING, fit, font, width_of, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.text import Text

# Points of a new figure: for a leaf, for a split, and for all splits at least and at most.
LEAF, SPLIT, LEAST, MOST = 15.0, 18.0, 200.0, 480.0
GAP = 8.0  # points between a leaf and its text
SMALLEST_LABEL = 4.0  # font size below which leaves have no text
MARGIN, LINE = 6.0, 1.5
TOLD = "clusters, if cut here"
DOT = 6.0, 60.0  # smallest and largest area of a leaf's dot
N_TICKS = 15


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DendrogramLayout:
    """Lines of a dendrogram; the arrays are read-only.

    Heights are those of :meth:`Hierarchy.to_linkage`: leaves are at 0, and splits, undone from
    the last to the first, at 1, 2, ... SciPy's own dendrogram is not used, as it recurses over
    the depth, and may turn children around.

    Attributes
    ----------
    leaves : int array of shape (n_leaves,)
        Ids of the leaves from left to right, which stand at 0, 1, 2, ...
    lines : tuple of float array of shape (4 or 2, 2)
        Hoops that join the first and the last child of a split, and drops to the others
        there are. Corners are (place across the tree, height).
    owners : int array of shape (n_lines,)
        Id of the node that was split.
    branches : int array of shape (n_nodes,)
        The branch of each node, for colours: up to six, 0, 1, ... from left to right, more
        where the first split made more; -1 for nodes above all branches.

    Examples
    --------
    >>> from taxarbor import Hierarchy
    >>> layout = lay_out_dendrogram(Hierarchy.from_labels([0, 1]))
    >>> layout.lines[0].tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
    """

    leaves: IndexArray
    lines: tuple[Array, ...]
    owners: IndexArray
    branches: IndexArray

    def __post_init__(self) -> None:
        for array in (self.leaves, *self.lines, self.owners, self.branches):
            array.setflags(write=False)

    def __repr__(self) -> str:
        return f"DendrogramLayout(n_leaves={len(self.leaves)}, n_lines={len(self.lines)})"


def lay_out_dendrogram(hierarchy: Any) -> DendrogramLayout:
    """Return the lines of a dendrogram.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.

    Raises
    ------
    TypeError
        If it has no tree.
    ValueError
        If the root was not split.
    """
    hierarchy = hierarchy_of(hierarchy)
    place = lay_out(hierarchy).breadth
    if hierarchy.n_leaves == 1:
        raise ValueError("a dendrogram needs two leaves at least, and the root was not split")
    height = np.zeros(hierarchy.n_nodes)
    parents = hierarchy.parents[1:]
    height[parents] = hierarchy.n_splits + 1 - hierarchy.birth[1:]
    nodes = np.arange(1, hierarchy.n_nodes)
    # Siblings are consecutive.
    is_first, is_last = np.diff(parents, prepend=-1) != 0, np.diff(parents, append=-1) != 0
    other = nodes[~(is_first | is_last)]
    left, right, up = nodes[is_first], nodes[is_last], parents[is_first]
    hoops = [(left, left), (left, up), (right, up), (right, right)]
    drops = [(other, hierarchy.parents[other]), (other, other)]
    lines = [
        np.stack([np.column_stack([place[at], height[of]]) for at, of in corners], axis=1)
        for corners in (hoops, drops)
    ]
    return DendrogramLayout(
        leaves=hierarchy.leaves.copy(),
        lines=tuple(line for kind in lines for line in kind),
        owners=np.concatenate([up, hierarchy.parents[other]]),
        branches=find_branches(hierarchy),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class DendrogramArtists:
    """What was drawn, to be changed or asked for its place.

    Attributes
    ----------
    axes : Axes
        What it was drawn on.
    layout : DendrogramLayout
        Which leaves and lines there are.
    lines : LineCollection
        The lines, in their order.
    dots : PathCollection
        The leaves, from left to right, as large as they have rows.
    texts : tuple of Text
        What is said of each leaf; none at all where there is no room.
    """

    axes: "Axes"
    layout: DendrogramLayout
    lines: "LineCollection"
    dots: "PathCollection"
    texts: tuple["Text", ...]


def plot_dendrogram(
    hierarchy: Any,
    *,
    describe: Describe | None = None,
    orientation: Orientation = "right",
    ax: "Axes | None" = None,
) -> DendrogramArtists:
    """Draw a tree as a dendrogram: the later a split was made, the closer to the leaves.

    Up to six branches have colours of their own. Where a line across the picture says
    5 clusters, there are the clusters of ``hierarchy.cut(5)``.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree, of two leaves at least.
    describe : callable, optional
        Takes a leaf's id and returns lines, as for :func:`plot_tree`, which are written one
        behind the other. If not given: the name of the cluster, its number of rows and what
        leads to it most.
    orientation : {"right", "down"}
        Where the tree grows to.
    ax : Axes, optional
        What to draw on. If not given, a new figure is made.

    Returns
    -------
    DendrogramArtists
        The axes and all that was drawn on them.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If the root was not split, or an argument is none of the above.

    Examples
    --------
    >>> from taxarbor import Hierarchy
    >>> tree = Hierarchy.from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> drawn = plot_dendrogram(tree)
    >>> [text.get_text() for text in drawn.texts]
    ['c0 · 1 row', 'c1 · 1 row', 'c2 · 1 row']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    expect_orientation(orientation)
    hierarchy = hierarchy_of(hierarchy)
    layout = lay_out_dendrogram(hierarchy)
    if describe is None:
        describe = functools.partial(_describe, hierarchy)
    words = [
        " · ".join(text for text, _ in tidy(describe(leaf), leaf) if text)
        for leaf in layout.leaves.tolist()
    ]
    require_matplotlib("plot_dendrogram")
    widths = max(width_of((text, "plain")) for text in words)
    if ax is None:
        ax = _new_axes(hierarchy, orientation, widths)
    is_down = orientation == "down"
    ax.set_aspect("auto")
    across, along = room_on(ax) if is_down else room_on(ax)[::-1]
    scale = min(1.0, across / hierarchy.n_leaves / (LEADING * FONT_SIZE))
    if scale * FONT_SIZE < SMALLEST_LABEL:
        words, widths = [], 0.0
    reserved = min(scale * widths, 0.6 * along)
    point = (hierarchy.n_splits + 0.7) / max(along - reserved - 2 * GAP, 1.0)
    _set_limits(ax, hierarchy, is_down, -point * (reserved + 2 * GAP))
    lines, dots = _draw_lines(ax, hierarchy, layout, is_down)
    texts = []
    for n, text in enumerate(words):
        at = (n, -point * GAP) if is_down else (-point * GAP, n)
        written = write(
            ax, at, fit((text, "plain"), reserved / scale + 0.1), color=INK,
            ha="center" if is_down else "left", va="top" if is_down else "center_baseline",
            rotation=90.0 if is_down else 0.0, fontproperties=font("plain", scale),
        )  # fmt: skip
        texts.append(written)
    return DendrogramArtists(ax, layout, lines, dots, tuple(texts))


def _describe(hierarchy: Hierarchy, leaf: int) -> list[StyledLine]:
    label = int(np.searchsorted(hierarchy.start[hierarchy.leaves], hierarchy.start[leaf]))
    told: list[StyledLine] = [(f"c{label}", "title"), (count_rows(hierarchy, leaf), "plain")]
    return told + describe_reasons(hierarchy, leaf, 1)


def _new_axes(hierarchy: Hierarchy, orientation: Orientation, widths: float) -> "Axes":
    across = max(LEAF * hierarchy.n_leaves, LEAST / 4)
    along = min(max(SPLIT * hierarchy.n_splits, LEAST), MOST) + widths + 2 * GAP
    if orientation == "down":
        return new_axes((across, along), (42.0, MARGIN, MARGIN, MARGIN))
    return new_axes((along, across), (MARGIN, 36.0, MARGIN, MARGIN))


def _set_limits(ax: "Axes", hierarchy: Hierarchy, is_down: bool, lowest: float) -> None:
    """Show all, and say on the axis along the tree how many clusters a cut there makes."""
    n_splits = hierarchy.n_splits
    across, along = (ax.xaxis, ax.yaxis) if is_down else (ax.yaxis, ax.xaxis)
    ax.set(xlim=(-0.5, hierarchy.n_leaves - 0.5), ylim=(lowest, n_splits + 0.7))
    if not is_down:
        ax.set(xlim=(n_splits + 0.7, lowest), ylim=(hierarchy.n_leaves - 0.5, -0.5))
    ax.spines[:].set_visible(False)
    side = ax.spines["left" if is_down else "bottom"]
    side.set(visible=True, bounds=(0.5, n_splits + 0.5), color=BRANCH)
    across.set_ticks([])
    steps = np.arange(0, n_splits + 1, -(-(n_splits + 1) // N_TICKS))
    along.set_ticks(
        n_splits - steps + 0.5, [f"{_n_clusters(hierarchy, s):,}" for s in steps.tolist()]
    )
    along.set_tick_params(color=BRANCH, labelcolor=PLAIN, labelsize=FONT_SIZE)
    look: dict[str, Any] = {"color": PLAIN, "fontsize": FONT_SIZE}
    if is_down:
        ax.set_ylabel(TOLD, loc="top", **look)
    else:
        ax.set_xlabel(TOLD, loc="left", **look)


def _n_clusters(hierarchy: Hierarchy, step: int) -> int:
    """Return how many clusters there are after so many splits."""
    return int(np.searchsorted(hierarchy.birth, step, side="right")) - step


def _draw_lines(
    ax: "Axes", hierarchy: Hierarchy, layout: DendrogramLayout, is_down: bool
) -> tuple["LineCollection", "PathCollection"]:
    from matplotlib.collections import LineCollection

    turn = 1 if is_down else -1
    lines = LineCollection(
        [line[:, ::turn] for line in layout.lines],
        colors=[_colour(layout, owner) for owner in layout.owners.tolist()],
        linewidths=LINE,
        joinstyle="round",
        zorder=1,
    )
    ax.add_collection(lines, autolim=False)
    places = np.column_stack([np.arange(len(layout.leaves)), np.zeros(len(layout.leaves))])
    n_rows = hierarchy.n_rows[layout.leaves]
    x, y = places[:, ::turn].T
    dots = ax.scatter(
        x,
        y,
        s=DOT[0] + (DOT[1] - DOT[0]) * n_rows / n_rows.max(),
        c=[_colour(layout, leaf) for leaf in layout.leaves.tolist()],
        linewidths=0.0,
        zorder=2,
    )
    return lines, dots


def _colour(layout: DendrogramLayout, node: int) -> str:
    branch = int(layout.branches[node])
    return BRANCH if branch < 0 else BRANCHES[branch % N_BRANCHES]
