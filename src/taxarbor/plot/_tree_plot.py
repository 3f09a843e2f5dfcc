"""Trees as boxes: where nodes stand, how large their boxes are, then the drawing.

A box holds lines of text and, below them, a bar of classes. Where boxes are placed, ``across``
is the direction of a layout's breadth and ``along`` that of its depth: to the right and down if
the root is on top, down and to the right if it is on the left. Lengths are in points.
"""

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.plot import _axes, _nodes
from taxarbor.plot._axes import Orientation, Size, StyledLine
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._taxonomy import taxonomy_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.legend import Legend
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.text import Text

GAP_ACROSS, GAP_ALONG, MARGIN, STUB = 8.0, 28.0, 6.0, 10.0
MIN_WIDTH = 150.0  # of a new figure: room for a legend
PAD, SPACE = 6.0, 3.5  # within boxes, and between lines and bar
BAR_HEIGHT, MIN_BAR_WIDTH = 5.0, 60.0
ROUNDING, LINE_WIDTH = 4.0, 1.3
DOTTED, DASHED = (0, (1.0, 1.2)), (0, (3.0, 2.0))
UNSTABLE_ALPHA = 0.65  # of the text of a node that is not stable
MIN_FONT_SIZE = 1.0  # matplotlib draws smaller fonts too large for their boxes
MAX_LEGEND_SHARE = 0.4  # of the height of the axes; a larger legend is left out


# Where nodes stand


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
    is_unstable: NDArray[np.bool_]  # whether the tree was assessed, and the node is not stable

    @property
    def n_ends(self) -> int:
        """Number of nodes shown without children: leaves, and nodes that are cut."""
        return len(self.nodes) - len(np.unique(self.parents))


def lay_out(taxonomy: Taxonomy, max_depth: SupportsIndex | None = None) -> TreeLayout:
    """Return places for the nodes down to a depth; the root has depth 0."""
    tree = taxonomy.tree
    limit = tree.height if max_depth is None else operator.index(max_depth)
    if limit < 0:
        raise InputError(f"max_depth must be 0 or more, or None, got {limit}")
    nodes = np.flatnonzero(tree.depth <= limit)
    parents = np.searchsorted(nodes, tree.parents[nodes[1:]])  # ids ascend, as positions do
    is_end = np.ones(len(nodes), dtype=bool)
    is_end[parents] = False
    ends = np.flatnonzero(is_end)
    breadth = np.zeros(len(nodes))
    breadth[ends[np.argsort(tree.start[nodes[ends]])]] = np.arange(len(ends))
    places, last = breadth.tolist(), [-1.0] * len(nodes)
    # From the last node to the first: children come before their parent, the last one first.
    for node, parent in zip(range(len(nodes) - 1, 0, -1), parents[::-1].tolist(), strict=True):
        last[parent] = places[node] if last[parent] < 0 else last[parent]
        places[parent] = (places[node] + last[parent]) / 2
    is_unstable = np.zeros(len(nodes), dtype=bool)
    if taxonomy.stability is not None:
        is_unstable[1:] = ~taxonomy.stability.is_stable[nodes[1:]]
    is_cut = is_end & ~np.isin(nodes, tree.leaves)
    return TreeLayout(nodes, tree.depth[nodes], np.array(places), parents, is_cut, is_unstable)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoxLayout:
    """Boxes that do not overlap, and branches that cross none."""

    low: Array  # (n_shown, 2), lower left corners, (x, y); boxes are equally wide
    high: Array  # (n_shown, 2), upper right corners
    branches: Array  # (n_lines, 2, 2), ends of lines; no two overlap
    stubs: Array  # (n_cut, 2, 2), short lines that stand for children not shown
    size: Size
    scale: float  # by which all of these and the fonts are multiplied to fit; at most 1


def place_boxes(
    layout: TreeLayout,
    widths: Array,
    heights: Array,
    orientation: Orientation,
    available: Size | None = None,
) -> BoxLayout:
    """Return boxes of these sizes at least, close to each other or spread over a size."""
    is_down, depth = orientation == "down", layout.depth
    widths = np.full(len(widths), widths.max())
    across, along = (widths, heights) if is_down else (heights, widths)
    levels = np.zeros(depth.max() + 1)  # the largest box of each
    np.maximum.at(levels, depth, along)
    length = levels.sum() + GAP_ALONG * (len(levels) - 1) + STUB * layout.is_cut.any()
    size = np.array([layout.n_ends * (across.max() + GAP_ACROSS), length]) + 2 * MARGIN
    scale, spare = 1.0, 0.0
    if available is not None:
        given = np.array(available if is_down else available[::-1])
        scale = min(1.0, *(given / size))
        spare = (given[1] / scale - size[1]) / len(levels)  # goes between levels
        size = given / scale
    pitch = (size[0] - 2 * MARGIN) / layout.n_ends
    middle = MARGIN + pitch * (layout.breadth + 0.5)
    steps = levels + GAP_ALONG + spare
    top = MARGIN + spare / 2 + np.cumsum(steps) - steps
    begin = np.column_stack([middle - across / 2, top[depth]])
    end = np.column_stack([middle + across / 2, top[depth] + along])
    page = size if is_down else size[::-1]

    def turn(points: Array) -> Array:
        """Take (across, along) to (x, y), which counts from the bottom of the page."""
        x, y = np.moveaxis(points if is_down else points[..., ::-1], -1, 0)
        return np.stack([x, page[1] - y], axis=-1)

    between = (top[:-1] + levels[:-1] + top[1:]) / 2
    branches, stubs = (turn(lines) for lines in _join(layout, begin, end, between))
    corners = turn(begin), turn(end)
    low, high = np.minimum(*corners), np.maximum(*corners)
    return BoxLayout(low, high, branches, stubs, (float(page[0]), float(page[1])), scale)


def _join(layout: TreeLayout, begin: Array, end: Array, between: Array) -> tuple[Array, Array]:
    """Return branches and stubs, each of shape (n_lines, 2, 2).

    A stem leads from a parent to a bar, in the middle between two levels, and from there drops
    lead to the children.
    """
    middle = (begin[:, 0] + end[:, 0]) / 2
    inner, cut = np.unique(layout.parents), np.flatnonzero(layout.is_cut)
    bar = between[layout.depth[inner]]
    left, right = np.full(len(middle), np.inf), np.full(len(middle), -np.inf)
    np.minimum.at(left, layout.parents, middle[1:])
    np.maximum.at(right, layout.parents, middle[1:])
    branches = [
        _lines(middle[inner], end[inner, 1], middle[inner], bar),
        _lines(left[inner], bar, right[inner], bar),
        _lines(middle[1:], between[layout.depth[1:] - 1], middle[1:], begin[1:, 1]),
    ]
    stubs = _lines(middle[cut], end[cut, 1], middle[cut], end[cut, 1] + STUB)
    return np.concatenate(branches), stubs


def _lines(x0: Array, y0: Array, x1: Array, y1: Array) -> Array:
    return np.stack([np.column_stack([x0, y0]), np.column_stack([x1, y1])], axis=1)


# What boxes hold


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contents:
    """What the boxes of a tree hold, in the order of its layout."""

    lines: list[list[StyledLine]]
    counts: IndexArray  # (n_shown, n_colours), the pieces of each bar
    colours: tuple[str, ...]  # empty where there are no classes, and so no bars

    def measure(self) -> tuple[Array, Array]:
        """Return the width and the height that each box needs."""
        widths = [max(map(_axes.width_of, lines), default=0.0) for lines in self.lines]
        width = np.array(widths)
        height = np.array([_axes.LINE_HEIGHT * len(lines) for lines in self.lines])
        if self.colours:
            width, height = np.maximum(width, MIN_BAR_WIDTH), height + BAR_HEIGHT + SPACE
        return width + 2 * PAD, height + 2 * PAD

    def place_bars(self, placed: BoxLayout) -> tuple[Array, IndexArray]:
        """Return the corners of all pieces of the bars, (n_pieces, 4, 2), and their classes."""
        nodes, pieces = np.nonzero(self.counts)
        ends = np.cumsum(self.counts, axis=1) / self.counts.sum(axis=1, keepdims=True)
        ends = np.column_stack([np.zeros(len(ends)), ends])
        width = (placed.high - placed.low)[:, :1] - 2 * PAD
        x, y = placed.low[:, :1] + PAD + width * ends, placed.low[nodes, 1] + PAD
        left, right, top = x[nodes, pieces], x[nodes, pieces + 1], y + BAR_HEIGHT
        corners = (left, y), (right, y), (right, top), (left, top)
        return np.stack([np.column_stack(corner) for corner in corners], axis=1), pieces


# The drawing


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeArtists:
    """What ``plot_tree`` drew; see there."""

    axes: "Axes"
    layout: TreeLayout
    boxes: tuple["FancyBboxPatch", ...]
    texts: tuple[tuple["Text", ...], ...]
    branches: "LineCollection"
    stubs: "LineCollection"
    bars: "PolyCollection | None"
    legend: "Legend | None"


def plot_tree(
    taxonomy: object,
    *,
    max_depth: SupportsIndex | None = None,
    describe: _nodes.Describe | None = None,
    classes: ArrayLike | None = None,
    orientation: Orientation = "down",
    ax: "Axes | None" = None,
) -> TreeArtists:
    """Draw a tree as boxes, joined by branches, that say what is in each node and why.

    Once the tree was assessed, the boxes of nodes that are not stable are pale and dashed, and
    a legend says so.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The tree.
    max_depth : int, optional
        Show no deeper nodes. A dotted line marks a node that has some below; leaves are grey.
    describe : callable, optional
        Takes a node's id and returns the lines of its box: strings, or pairs of a string and
        "title", "plain", "plus" or "minus". The first line is a title by default, the others
        plain. Texts are shown as they are, without mathematics, up to 28 characters. By
        default: the number of rows; what leads to the node, three features at most; and the
        two largest classes.
    classes : array of shape (n_rows,), optional
        The class of each row. A bar in each box then shows how many rows are of each class,
        the eight largest classes in colours, any others and rows without a class in grey, and
        a legend names them.
    orientation : {"down", "right"}
        Where the tree grows to: from a root on top, or from a root on the left.
    ax : Axes, optional
        Axes to fill; by default those of a new figure, as large as the boxes need, but at most
        100 inches. In smaller axes, all is drawn smaller, and without text where letters would
        be below one point.

    Returns
    -------
    TreeArtists
        What was drawn: ``axes``, ``layout`` (``layout.nodes``, ids of the nodes shown, in the
        order of ``boxes`` and ``texts``), ``boxes``, ``texts`` (the lines of each node),
        ``branches`` and ``stubs`` (to children shown, and not shown), ``bars`` (None without
        classes) and ``legend`` (None without classes and pale nodes).

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, or for an argument, or what ``describe`` returns, not as above.

    Examples
    --------
    >>> from taxarbor.exchange import from_linkage
    >>> tree = from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> drawn = plot_tree(tree, describe=lambda node: [f"node {node}", "costs $5"])
    >>> [text.get_text() for text in drawn.texts[0]]
    ['node 0', 'costs $5']
    >>> figure = drawn.axes.figure
    >>> figure.savefig("tree.png", dpi=3000 / figure.get_figwidth())  # doctest: +SKIP
    >>> import matplotlib.pyplot as plt
    >>> plt.close(figure)
    """
    _axes.check_orientation(orientation)
    taxonomy = taxonomy_of(taxonomy)
    layout = lay_out(taxonomy, max_depth)
    nodes = layout.nodes.tolist()
    counts = _nodes.ClassCounts.of(taxonomy.tree, classes)
    if describe is None:
        describe = functools.partial(_nodes.describe_node, taxonomy, counts)
    lines = [_nodes.check_lines(describe(node), node) for node in nodes]
    colours = tuple(colour for _, colour in counts.entries)
    contents = Contents(lines, counts.counts[layout.nodes], colours)
    entries = counts.entries
    if layout.is_unstable.any():
        entries += (("pale: not stable", _axes.GRID),)
    _axes.require_matplotlib("plot_tree")
    place = functools.partial(place_boxes, layout, *contents.measure(), orientation)
    if ax is None:
        width, height = place().size
        height += _axes.legend_height(entries, width)
        scale = min(1.0, _axes.MAX_INCHES * _axes.POINTS_PER_INCH / max(width, height))
        ax = _axes.new_axes((scale * max(width, MIN_WIDTH), scale * height))
    ax.set_aspect("auto")
    width, height = _axes.size_of(ax)
    foot = _axes.legend_height(entries, width)
    if foot > MAX_LEGEND_SHARE * height:
        entries, foot = (), 0.0
    placed = place((width, height - foot))
    ax.set_axis_off()
    ax.set(xlim=(0, placed.size[0]), ylim=(-foot / placed.scale, placed.size[1]))
    branches, stubs = _draw_branches(ax, placed)
    return TreeArtists(
        axes=ax,
        layout=layout,
        boxes=_draw_boxes(ax, layout, placed),
        texts=_write_lines(ax, layout, placed, contents.lines),
        branches=branches,
        stubs=stubs,
        bars=_draw_bars(ax, placed, contents),
        legend=_axes.draw_legend(ax, entries),
    )


def _draw_branches(ax: "Axes", placed: BoxLayout) -> tuple["LineCollection", "LineCollection"]:
    from matplotlib.collections import LineCollection

    look: dict[str, Any] = {"colors": _axes.BRANCH, "linewidths": LINE_WIDTH * placed.scale}
    branches = LineCollection(list(placed.branches), capstyle="projecting", zorder=1, **look)
    stubs = LineCollection(list(placed.stubs), linestyles=DOTTED, zorder=1, **look)
    for lines in (branches, stubs):
        ax.add_collection(lines, autolim=False)
    return branches, stubs


def _draw_bars(ax: "Axes", placed: BoxLayout, contents: Contents) -> "PolyCollection | None":
    from matplotlib.collections import PolyCollection

    if not contents.colours:
        return None
    pieces, classes = contents.place_bars(placed)
    faces = [contents.colours[n] for n in classes]
    bars = PolyCollection(list(pieces), facecolors=faces, linewidths=0.0, zorder=3)
    ax.add_collection(bars, autolim=False)
    return bars


def _draw_boxes(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout
) -> tuple["FancyBboxPatch", ...]:
    from matplotlib.patches import FancyBboxPatch

    has_children = layout.is_cut.copy()
    has_children[layout.parents] = True
    boxes = []
    looks = zip(placed.low, placed.high, has_children, layout.is_unstable, strict=True)
    for low, high, is_inner, is_unstable in looks:
        width, height = high - low
        box = FancyBboxPatch(
            tuple(low), width, height, linewidth=placed.scale, zorder=2, edgecolor=_axes.EDGE,
            boxstyle=f"round,pad=0,rounding_size={ROUNDING}",
            facecolor=_axes.FACE if is_inner else _axes.LEAF_FACE,
            linestyle=DASHED if is_unstable else "solid",
        )  # fmt: skip
        ax.add_patch(box)
        boxes.append(box)
    return tuple(boxes)


def _write_lines(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout, contents: list[list[StyledLine]]
) -> tuple[tuple["Text", ...], ...]:
    """Write the lines of each box one below the other, from the middle of its top."""
    if placed.scale * _axes.FONT_SIZE < MIN_FONT_SIZE:
        return ((),) * len(contents)
    look: dict[str, Any] = {"ha": "center", "va": "baseline", "zorder": 3, **_axes.LITERAL}
    texts = []
    places = zip(contents, placed.low, placed.high, layout.is_unstable, strict=True)
    for lines, low, high, is_unstable in places:
        middle, top = (low[0] + high[0]) / 2, high[1] - PAD - _axes.FONT_SIZE
        look["alpha"] = UNSTABLE_ALPHA if is_unstable else 1.0
        written = [
            ax.text(
                middle, top - n * _axes.LINE_HEIGHT, text, color=_axes.COLOURS[style],
                fontproperties=_axes.font(style, placed.scale), **look,
            )
            for n, (text, style) in enumerate(lines)
        ]  # fmt: skip
        texts.append(tuple(written))
    return tuple(texts)
