"""Dendrograms: SciPy's lines, with the number of clusters as axis and a text for each leaf."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor._errors import InputError
from taxarbor._types import Array
from taxarbor.exchange import to_linkage
from taxarbor.plot import _axes, _nodes
from taxarbor.plot._axes import BRANCH, FONT_SIZE, PLAIN, Orientation, StyledLine
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.taxonomy._text import count_rows
from taxarbor.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.text import Text

COLOURS = "#05668d", "#cc6677", "#44aa99", "#ddaa33", "#882255"  # of branches
# Points of a new figure: for a leaf, for a split, and for all splits at least and at most.
LEAF, SPLIT, MIN_LENGTH, MAX_LENGTH = 15.0, 18.0, 200.0, 480.0
MARGIN, AXIS_ROOM, LINE_WIDTH = 6.0, 40.0, 1.5
MIN_FONT_SIZE = 4.0  # below which leaves have no text
DOT_AREAS = 6.0, 60.0  # smallest and largest, of leaves
MAX_TICKS = 15


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DendrogramLayout:
    """Lines of a dendrogram; the leaf with label ``j`` stands at ``j``, at height 0.

    Heights are those of :func:`~taxarbor.exchange.to_linkage`: splits, undone from the last to
    the first, are at 1, 2, ...
    """

    lines: Array  # (n_merges, 4, 2), corners as (place of leaves, height)
    colours: tuple[str, ...]  # of lines
    leaf_colours: tuple[str, ...]
    ticks: Array  # heights between two splits
    n_clusters: tuple[int, ...]  # of a cut at these heights


def lay_out_dendrogram(taxonomy: Taxonomy) -> DendrogramLayout:
    """Return the lines that SciPy draws."""
    from scipy.cluster.hierarchy import dendrogram  # takes long

    tree, Z = taxonomy.tree, to_linkage(taxonomy)
    steps = np.arange(tree.n_splits + 1)
    # A split replaces one cluster by its children, whose birth is its step.
    n_clusters = np.searchsorted(tree.birth, steps, side="right") - steps
    n_above = max(1, int(np.count_nonzero(n_clusters <= len(COLOURS))) - 1)
    threshold = tree.n_splits + 1 - n_above
    try:
        lines = dendrogram(
            Z, no_plot=True, color_threshold=threshold, above_threshold_color=BRANCH
        )
    except RecursionError:
        raise InputError(
            f"SciPy draws no dendrogram that is so deep, {tree.height} splits above a leaf, or "
            "with so many children of one node: draw fewer clusters, taxonomy.prune(100)"
        ) from None
    corners = np.dstack([(np.array(lines["icoord"]) - 5.0) / 10.0, lines["dcoord"]])
    names = {f"C{n}": colour for n, colour in enumerate(COLOURS, start=1)}  # SciPy's palette
    colours, leaf_colours = (
        tuple(names.get(name, name) for name in lines[key])
        for key in ("color_list", "leaves_color_list")
    )
    shown = steps[:: -(-len(steps) // MAX_TICKS)]
    ticks, numbers = tree.n_splits - shown + 0.5, tuple(n_clusters[shown].tolist())
    return DendrogramLayout(corners, colours, leaf_colours, ticks, numbers)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DendrogramArtists:
    """What ``plot_dendrogram`` drew; see there."""

    axes: "Axes"
    layout: DendrogramLayout
    lines: "LineCollection"
    dots: "PathCollection"
    texts: tuple["Text", ...]


def plot_dendrogram(
    taxonomy: object,
    *,
    describe: _nodes.Describe | None = None,
    orientation: Orientation = "right",
    ax: "Axes | None" = None,
) -> DendrogramArtists:
    """Draw a tree as a dendrogram: the later a split was made, the closer to the leaves.

    Up to five branches have colours of their own. A line across the picture where the axis
    says 5 clusters meets the clusters of ``taxonomy.cut(5)``.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The tree, with at least two leaves.
    describe : callable, optional
        Takes a leaf's id and returns lines, as for :func:`plot_tree`, written one behind the
        other. By default: the cluster's name, its number of rows and the feature that does
        most for it.
    orientation : {"right", "down"}
        Where the tree grows to.
    ax : Axes, optional
        Axes to draw on; those of a new figure by default. Texts of leaves are tick labels:
        ``layout="constrained"`` of a figure makes room for them.

    Returns
    -------
    DendrogramArtists
        What was drawn: ``axes``, ``layout`` (corners of the lines), ``lines``, ``dots`` (the
        larger, the more rows a leaf has) and ``texts``, of leaves in the order of labels (empty
        if there are too many).

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, if the root was not split or the tree is many hundred levels deep,
        or for an argument not as above.

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
    _axes.check_orientation(orientation)
    taxonomy = taxonomy_of(taxonomy)
    tree, is_down = taxonomy.tree, orientation == "down"
    layout = lay_out_dendrogram(taxonomy)
    if describe is None:
        describe = functools.partial(_describe_leaf, taxonomy)
    labels = [
        " · ".join(text for text, _ in _nodes.check_lines(describe(leaf), leaf) if text)
        for leaf in tree.leaves.tolist()
    ]
    _axes.require_matplotlib("plot_dendrogram")
    if ax is None:
        across = max(LEAF * tree.n_leaves, MIN_LENGTH / 4)
        along = min(max(SPLIT * tree.n_splits, MIN_LENGTH), MAX_LENGTH)
        # On a screen of few dots, letters are up to a tenth wider than they are on paper.
        room = 1.1 * max(_axes.width_of((label, "plain")) for label in labels) + 2 * MARGIN
        if is_down:
            ax = _axes.new_axes((across, along), (AXIS_ROOM, room, MARGIN, MARGIN))
        else:
            ax = _axes.new_axes((along, across), (MARGIN, AXIS_ROOM, room, MARGIN))
    ax.set_aspect("auto")
    texts = _set_axes(ax, tree, layout, labels, is_down)
    return DendrogramArtists(ax, layout, *_draw_lines(ax, tree, layout, is_down), texts)


def _describe_leaf(taxonomy: Taxonomy, leaf: int) -> list[StyledLine]:
    label = int(np.flatnonzero(taxonomy.tree.leaves == leaf)[0])
    size: StyledLine = (count_rows(taxonomy, leaf), "plain")
    return [(f"c{label}", "title"), size, *_nodes.describe_reasons(taxonomy, leaf, 1)]


def _set_axes(
    ax: "Axes", tree: Tree, layout: DendrogramLayout, labels: list[str], is_down: bool
) -> tuple["Text", ...]:
    """Set limits and ticks: leaves on one axis, numbers of clusters on the other."""
    ax.set(xlim=(-0.5, tree.n_leaves - 0.5), ylim=(0.0, tree.n_splits + 0.7))
    if not is_down:
        ax.set(xlim=(tree.n_splits + 0.7, 0.0), ylim=(tree.n_leaves - 0.5, -0.5))
        ax.yaxis.tick_right()
    across, along = (ax.xaxis, ax.yaxis) if is_down else (ax.yaxis, ax.xaxis)
    ax.spines[:].set_visible(False)
    side = ax.spines["left" if is_down else "bottom"]
    side.set(visible=True, bounds=(0.5, tree.n_splits + 0.5), color=BRANCH)
    along.set_ticks(layout.ticks, [f"{n:,}" for n in layout.n_clusters])
    along.set_tick_params(color=BRANCH, labelcolor=PLAIN, labelsize=FONT_SIZE)
    along.set_label_text("clusters, if cut here", color=PLAIN, fontsize=FONT_SIZE)
    room = _axes.size_of(ax)[0 if is_down else 1] / tree.n_leaves
    size = min(1.0, room / _axes.LINE_HEIGHT) * FONT_SIZE
    if size < MIN_FONT_SIZE:
        across.set_ticks([])
        return ()
    across.set_tick_params(length=0.0, pad=MARGIN)
    look: dict[str, Any] = {"rotation": 90.0 if is_down else 0.0, **_axes.LITERAL}
    across.set_ticks(range(tree.n_leaves), labels, color=_axes.INK, fontsize=size, **look)
    return tuple(across.get_ticklabels())


def _draw_lines(
    ax: "Axes", tree: Tree, layout: DendrogramLayout, is_down: bool
) -> tuple["LineCollection", "PathCollection"]:
    """Draw the lines, and a dot for each leaf."""
    from matplotlib.collections import LineCollection

    turn = 1 if is_down else -1
    lines = LineCollection(
        list(layout.lines[..., ::turn]), colors=list(layout.colours), linewidths=LINE_WIDTH,
        joinstyle="round", zorder=1,
    )  # fmt: skip
    ax.add_collection(lines, autolim=False)
    sizes = tree.sizes[tree.leaves]
    areas = DOT_AREAS[0] + (DOT_AREAS[1] - DOT_AREAS[0]) * sizes / sizes.max()
    x, y = (np.arange(len(sizes)), np.zeros(len(sizes)))[::turn]
    look: dict[str, Any] = {"linewidths": 0.0, "zorder": 2, "clip_on": False}
    return lines, ax.scatter(x, y, s=areas, c=list(layout.leaf_colours), **look)
