"""Dendrograms: the order of the splits as heights, with a line of text for each leaf."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.plot import _axes, _layout
from taxarbor.plot._axes import BRANCH, FONT_SIZE, PLAIN, StyledLine, value
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.taxonomy._text import count_rows

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


@value
class DendrogramLayout:
    """Lines of a dendrogram.

    Heights are those of :func:`~taxarbor.exchange.to_linkage`: leaves are at 0, and splits,
    undone from the last to the first, at 1, 2, ... Corners of lines are (place across the
    tree, height).
    """

    leaves: IndexArray  # (n_leaves,), ids from left to right, which stand at 0, 1, 2, ...
    lines: tuple[Array, ...]  # hoops (4, 2), then drops (2, 2), as ``join_children`` has them
    owners: IndexArray  # (n_lines,), id of the node that was split
    branches: IndexArray  # (n_nodes,), as ``find_branches`` has them, for colours


def lay_out_dendrogram(taxonomy: Any) -> DendrogramLayout:
    """Return the lines of a dendrogram; ValueError if the root was not split."""
    # SciPy's recurses (3,000 splits in a chain end it), turns children around, and is slower.
    taxonomy = taxonomy_of(taxonomy)
    if taxonomy.tree.n_leaves == 1:
        raise InputError("a dendrogram needs at least two leaves, but the root was not split")
    parents = taxonomy.tree.parents[1:]
    height = np.zeros(taxonomy.tree.n_nodes)
    height[parents] = taxonomy.tree.n_splits + 1 - taxonomy.tree.birth[1:]
    place, bar = _layout.lay_out(taxonomy).breadth, height[taxonomy.tree.parents]
    hoops, drops, owners = _layout.join_children(parents, place, height, bar)
    branches = _layout.find_branches(taxonomy)
    return DendrogramLayout(taxonomy.tree.leaves, (*hoops, *drops), owners, branches)


@value
class DendrogramArtists:
    """What ``plot_dendrogram`` drew; see there."""

    axes: "Axes"
    layout: DendrogramLayout
    lines: "LineCollection"
    dots: "PathCollection"
    texts: tuple["Text", ...]


def plot_dendrogram(
    taxonomy: Any,
    *,
    describe: _layout.Describe | None = None,
    orientation: _layout.Orientation = "right",
    ax: "Axes | None" = None,
) -> DendrogramArtists:
    """Draw a tree as a dendrogram: the later a split was made, the closer to the leaves.

    Up to six branches have colours of their own. A line across the picture where the axis
    says 5 clusters meets the clusters of ``taxonomy.cut(5)``.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The tree, with at least two leaves.
    describe : callable, optional
        Takes a leaf's id and returns lines, as for :func:`plot_tree`, written one behind the
        other. By default: the cluster's name, its number of rows and what leads to it most.
    orientation : {"right", "down"}
        Where the tree grows to.
    ax : Axes, optional
        What to draw on; a new figure by default.

    Returns
    -------
    DendrogramArtists
        What was drawn: ``axes``, ``layout`` (``layout.leaves`` are the ids of the leaves, in
        the order of ``dots`` and ``texts``), ``lines``, ``dots`` (the larger, the more rows a
        leaf has) and ``texts`` (empty if there is no room).

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, if the root was not split, or for an argument not as above.

    Examples
    --------
    >>> from taxarbor.exchange import from_linkage
    >>> tree = from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> drawn = plot_dendrogram(tree)
    >>> [text.get_text() for text in drawn.texts]
    ['c0 · 1 row', 'c1 · 1 row', 'c2 · 1 row']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    _layout.expect_orientation(orientation)
    taxonomy = taxonomy_of(taxonomy)
    layout = lay_out_dendrogram(taxonomy)
    if describe is None:
        describe = functools.partial(_describe, taxonomy)
    words = [
        " · ".join(text for text, _ in _layout.tidy(describe(leaf), leaf) if text)
        for leaf in layout.leaves.tolist()
    ]
    _axes.require_matplotlib("plot_dendrogram")
    # On a screen of few dots, letters are up to a tenth wider than they are on paper.
    widest = 1.1 * max(_axes.width_of((text, "plain")) for text in words)
    is_down = orientation == "down"
    if ax is None:
        across = max(LEAF * taxonomy.tree.n_leaves, LEAST / 4)
        along = min(max(SPLIT * taxonomy.tree.n_splits, LEAST), MOST) + widest + 2 * GAP
        size, left, bottom = (across, along), 42.0, MARGIN
        if not is_down:
            size, left, bottom = (along, across), MARGIN, 36.0
        ax = _axes.new_axes(size, (left, bottom, MARGIN, MARGIN))
    ax.set_aspect("auto")
    across, along = _axes.room_on(ax)[:: 1 if is_down else -1]
    scale = min(1.0, across / taxonomy.tree.n_leaves / (_axes.LEADING * FONT_SIZE))
    if scale * FONT_SIZE < SMALLEST_LABEL:
        words, widest = [], 0.0
    reserved = min(scale * widest, 0.6 * along)
    point = (taxonomy.tree.n_splits + 0.7) / max(along - reserved - 2 * GAP, 1.0)
    _set_limits(ax, taxonomy, is_down, -point * (reserved + 2 * GAP))
    lines, dots = _draw_lines(ax, taxonomy, layout, is_down)
    look: dict[str, Any] = {"ha": "left", "va": "center_baseline", "rotation": 0.0}
    if is_down:
        look = {"ha": "center", "va": "top", "rotation": 90.0}
    look |= {"color": _axes.INK, "fontproperties": _axes.font("plain", scale)}
    texts = []
    for n, text in enumerate(words):
        at = (n, -point * GAP) if is_down else (-point * GAP, n)
        shown = _axes.fit((text, "plain"), reserved / scale + 0.1)
        texts.append(_axes.write(ax, at, shown, **look))
    return DendrogramArtists(ax, layout, lines, dots, tuple(texts))


def _describe(taxonomy: Taxonomy, leaf: int) -> list[StyledLine]:
    label = int(
        np.searchsorted(taxonomy.tree.start[taxonomy.tree.leaves], taxonomy.tree.start[leaf])
    )
    size: StyledLine = (count_rows(taxonomy, leaf), "plain")
    return [(f"c{label}", "title"), size, *_layout.describe_reasons(taxonomy, leaf, 1)]


def _set_limits(ax: "Axes", taxonomy: Taxonomy, is_down: bool, lowest: float) -> None:
    """Show all, and say on the axis along the tree how many clusters a cut there makes."""
    n_splits = taxonomy.tree.n_splits
    across, along = (ax.xaxis, ax.yaxis) if is_down else (ax.yaxis, ax.xaxis)
    ax.set(xlim=(-0.5, taxonomy.tree.n_leaves - 0.5), ylim=(lowest, n_splits + 0.7))
    if not is_down:
        ax.set(xlim=(n_splits + 0.7, lowest), ylim=(taxonomy.tree.n_leaves - 0.5, -0.5))
    ax.spines[:].set_visible(False)
    side = ax.spines["left" if is_down else "bottom"]
    side.set(visible=True, bounds=(0.5, n_splits + 0.5), color=BRANCH)
    across.set_ticks([])
    steps = np.arange(0, n_splits + 1, -(-(n_splits + 1) // N_TICKS))
    # A split replaces one cluster by its children, whose birth is its step.
    n_clusters = np.searchsorted(taxonomy.tree.birth, steps, side="right") - steps
    along.set_ticks(n_splits - steps + 0.5, [f"{n:,}" for n in n_clusters.tolist()])
    along.set_tick_params(color=BRANCH, labelcolor=PLAIN, labelsize=FONT_SIZE)
    look: dict[str, Any] = {"color": PLAIN, "fontsize": FONT_SIZE}
    if is_down:
        ax.set_ylabel(TOLD, loc="top", **look)
    else:
        ax.set_xlabel(TOLD, loc="left", **look)


def _draw_lines(
    ax: "Axes", taxonomy: Taxonomy, layout: DendrogramLayout, is_down: bool
) -> tuple["LineCollection", "PathCollection"]:
    """Draw the lines, and a dot for each leaf."""
    from matplotlib.collections import LineCollection

    # The last colour is for -1: above all branches.
    used = np.where(layout.branches < 0, -1, layout.branches % _axes.N_BRANCHES)
    colours = np.array([*_axes.BRANCHES, BRANCH])[used]
    turn = 1 if is_down else -1
    lines = LineCollection(
        [line[:, ::turn] for line in layout.lines], colors=colours[layout.owners].tolist(),
        linewidths=LINE, joinstyle="round", zorder=1,
    )  # fmt: skip
    ax.add_collection(lines, autolim=False)
    n_rows = taxonomy.tree.stop[layout.leaves] - taxonomy.tree.start[layout.leaves]
    x, y = (np.arange(len(n_rows)), np.zeros(len(n_rows)))[::turn]
    dots = ax.scatter(
        x, y, s=DOT[0] + (DOT[1] - DOT[0]) * n_rows / n_rows.max(),
        c=colours[layout.leaves].tolist(), linewidths=0.0, zorder=2,
    )  # fmt: skip
    return lines, dots
