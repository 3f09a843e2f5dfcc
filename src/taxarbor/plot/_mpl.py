"""Trees drawn by matplotlib, which is imported only when something is drawn."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, final, get_args

import numpy as np

from taxarbor._types import Array
from taxarbor.hierarchy import Hierarchy
from taxarbor.plot._boxes import BoxLayout, Orientation, place_boxes
from taxarbor.plot._describe import Describe, Style, StyledLine, describe_node, tidy
from taxarbor.plot._layout import TreeLayout, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.text import Text

BRANCH, EDGE, FACE, LEAF_FACE = "#9fb0c0", "#b8c4d0", "#ffffff", "#f3f6f9"
COLOURS: dict[Style, str] = {
    "title": "#1f2933",
    "plain": "#52606d",
    "plus": "#05668d",
    "minus": "#9b2c1f",
}
FONT_SIZE, TITLE_SIZE = 8.0, 9.0  # points, as all lengths here
LEADING = 1.38  # from one baseline to the next, in font sizes
PAD, ROUNDING, LINE = 6.0, 4.0, 1.3
SMALLEST = 1.0  # font size; matplotlib makes smaller ones so large, too large for their boxes
LARGEST = 100.0  # inches of a new figure's width or height; beyond, all is drawn smaller
POINTS = 72.0  # in an inch


@final
@dataclass(frozen=True, slots=True, eq=False)
class TreeArtists:
    """What was drawn, to be changed or asked for its place.

    Attributes
    ----------
    axes : Axes
        What it was drawn on; ``axes.figure`` is the figure.
    layout : TreeLayout
        Which nodes are shown. Boxes and texts follow its order.
    boxes : tuple of FancyBboxPatch
        One for each node.
    texts : tuple of tuple of Text
        The lines of each node.
    branches : LineCollection
        The lines from parents to children.
    stubs : LineCollection
        The short lines below nodes whose children are not shown.
    """

    axes: "Axes"
    layout: TreeLayout
    boxes: tuple["FancyBboxPatch", ...]
    texts: tuple[tuple["Text", ...], ...]
    branches: "LineCollection"
    stubs: "LineCollection"


def plot_tree(
    hierarchy: Hierarchy,
    *,
    max_depth: SupportsIndex | None = None,
    describe: Describe | None = None,
    orientation: Orientation = "down",
    ax: "Axes | None" = None,
) -> TreeArtists:
    """Draw a tree as boxes of text, joined by branches.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    max_depth : int, optional
        Show no deeper nodes. A dotted line shows where there are some; leaves are grey.
    describe : callable, optional
        Takes a node's id and returns the lines of its box: strings, or pairs of a string and
        a style, which is "title", "plain", "plus" or "minus". The first line is a title by
        default, the others plain. Texts are shown as they are, without mathematics, and cut
        after 28 characters. If not given: the number of rows and three features, ``+name``
        where larger values lead to the node, ``-name`` where smaller ones do.
    orientation : {"down", "right"}
        Where the tree grows to: from a root on top, or from a root on the left.
    ax : Axes, optional
        What to draw on, all over. If not given, a new figure is made, of the size that the
        boxes need, 100 inches at most. Where that or the present size of the axes is too
        small, all is drawn smaller, and without text where that would be below one point.

    Returns
    -------
    TreeArtists
        The axes and all that was drawn on them.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If the orientation, the depth or what ``describe`` returns is none of the above.

    Examples
    --------
    >>> from taxarbor import Hierarchy
    >>> tree = Hierarchy.from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> drawn = plot_tree(tree, describe=lambda node: [f"node {node}", "costs $5"])
    >>> figure = drawn.axes.figure
    >>> figure.savefig("tree.png", dpi=3000 / figure.get_figwidth())  # doctest: +SKIP
    >>> import matplotlib.pyplot as plt
    >>> plt.close(figure)
    """
    if orientation not in get_args(Orientation):
        raise ValueError(f"orientation must be 'down' or 'right', got {orientation!r}")
    layout = lay_out(hierarchy, max_depth)
    if describe is None:
        describe = functools.partial(describe_node, hierarchy)
    words = [tidy(describe(node), node) for node in layout.nodes.tolist()]
    widths, heights = _measure(words)
    if ax is None:
        ax = _new_axes(place_boxes(layout, widths, heights, orientation).size)
    ax.set_aspect("auto")
    point = ax.figure.dpi / POINTS
    room = ax.bbox.width / point, ax.bbox.height / point
    boxes = place_boxes(layout, widths, heights, orientation, room)
    return _draw(ax, layout, boxes, words)


def _size(style: Style) -> float:
    return TITLE_SIZE if style == "title" else FONT_SIZE


def _font(style: Style, scale: float = 1.0) -> "FontProperties":
    from matplotlib.font_manager import FontProperties

    weight = "bold" if style == "title" else "normal"
    return FontProperties(weight=weight, size=scale * _size(style))


def _measure(words: list[list[StyledLine]]) -> tuple[Array, Array]:
    """Return the width and the height of the box around each node's lines."""
    try:
        from matplotlib.textpath import text_to_path
    except ImportError as error:
        raise ImportError("plot_tree needs matplotlib: pip install 'taxarbor[plot]'") from error
    # Measured without a canvas, so that it holds for whatever the figure is saved as.
    lengths = {
        line: text_to_path.get_text_width_height_descent(line[0], _font(line[1]), False)[0]
        for line in {line for lines in words for line in lines if line[0]}
    }
    widths = [max((lengths.get(line, 0.0) for line in lines), default=0.0) for lines in words]
    heights = [sum(LEADING * _size(style) for _, style in lines) for lines in words]
    return np.array(widths) + 2 * PAD, np.array(heights) + 2 * PAD


def _new_axes(size: tuple[float, float]) -> "Axes":
    """Return axes that are all of a new figure, of this many points if that is not too many."""
    from matplotlib import pyplot as plt

    inches = np.array(size) / POINTS
    inches *= min(1.0, LARGEST / inches.max())
    figure = plt.figure(figsize=(inches[0], inches[1]), facecolor="white", layout="none")
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def _draw(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout, words: list[list[StyledLine]]
) -> TreeArtists:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyBboxPatch

    scale = placed.scale
    ax.set_axis_off()
    ax.set(xlim=(0, placed.size[0]), ylim=(0, placed.size[1]))
    look: dict[str, Any] = {"colors": BRANCH, "linewidths": LINE * scale, "zorder": 1}
    branches = LineCollection(placed.branches, joinstyle="round", **look)
    stubs = LineCollection(placed.stubs, linestyles=(0, (1.0, 1.2)), **look)
    ax.add_collection(branches, autolim=False)
    ax.add_collection(stubs, autolim=False)
    has_children = layout.is_cut.copy()
    has_children[layout.edges[:, 0]] = True
    boxes = []
    for low, high, is_inner in zip(placed.low, placed.high, has_children, strict=True):
        width, height = high - low
        box = FancyBboxPatch(
            (low[0], low[1]), width, height, linewidth=scale, zorder=2, edgecolor=EDGE,
            boxstyle=f"round,pad=0,rounding_size={ROUNDING}",
            facecolor=FACE if is_inner else LEAF_FACE,
        )  # fmt: skip
        ax.add_patch(box)
        boxes.append(box)
    centres = (placed.low + placed.high) / 2
    texts = [_write(ax, *told, scale) for told in zip(words, centres, strict=True)]
    return TreeArtists(ax, layout, tuple(boxes), tuple(texts), branches, stubs)


def _write(
    ax: "Axes", lines: list[StyledLine], centre: Array, scale: float
) -> tuple["Text", ...]:
    """Write the lines one below the other, around the centre."""
    if scale * FONT_SIZE < SMALLEST:
        return ()
    leading = [LEADING * _size(style) for _, style in lines]
    top = centre[1] + sum(leading) / 2
    texts = []
    for (text, style), below in zip(lines, np.cumsum(leading), strict=True):
        # From the foot of its strip, a line's baseline is as far as descenders reach.
        baseline = top - below + (LEADING - 1.0) * _size(style)
        written = ax.text(
            centre[0], baseline, text, ha="center", va="baseline", color=COLOURS[style],
            fontproperties=_font(style, scale), parse_math=False, usetex=False, zorder=3,
        )  # fmt: skip
        texts.append(written)
    return tuple(texts)
