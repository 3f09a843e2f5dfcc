"""Icicles: each level of the tree is a band, and each node as wide in it as it has rows."""

import functools
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._types import Array
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._tree import hierarchy_of
from taxarbor.hierarchy._words import count_rows
from taxarbor.plot import _axes, _layout
from taxarbor.plot._axes import FACE, POINTS, Size, StyledLine, value
from taxarbor.plot._layout import Makeup, Orientation, TreeLayout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.legend import Legend
    from matplotlib.text import Text

# Points of a new figure: for a level, for a node without children, for all at most.
LEVEL, END = {"down": 62.0, "right": 80.0}, {"down": 62.0, "right": 26.0}
MOST = 1800.0
MARGIN = 6.0
PAD = np.array([3.0, 0.0])  # points that text leaves free at its ends; lines are apart anyway
LINE = 1.0  # width of the lines between rectangles, where these are not small


@value
class IcicleArtists:
    """What ``plot_icicle`` drew; see there."""

    axes: "Axes"
    layout: TreeLayout
    cells: "PolyCollection"
    texts: tuple[tuple["Text", ...], ...]
    cuts: "LineCollection"
    legend: "Legend | None"


def plot_icicle(
    hierarchy: Any,
    *,
    max_depth: SupportsIndex | None = None,
    describe: _layout.Describe | None = None,
    classes: ArrayLike | None = None,
    orientation: Orientation = "right",
    ax: "Axes | None" = None,
) -> IcicleArtists:
    """Draw a tree as bands of rectangles, each as wide as its node has rows.

    Once the tree was assessed, nodes that are not stable are pale, and a legend says what that
    means.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.
    max_depth : int, optional
        Show no deeper nodes. A dotted line marks a node that has some below.
    describe : callable, optional
        The lines of each node, as for :func:`plot_tree`, shown as far as they fit. By default:
        what leads to the node most, its rows, its largest classes and what else leads there;
        first of all, where the words are false for a fifth of its rows or more, for how many
        they hold.
    classes : array of shape (n_rows,), optional
        The class of each row. A node then has the colour of its largest class, the stronger
        the larger its share of the rows with a class; it is grey without any. By default,
        each branch has a colour.
    orientation : {"right", "down"}
        Where the tree grows to.
    ax : Axes, optional
        What to draw on, all over; a new figure by default.

    Returns
    -------
    IcicleArtists
        What was drawn: ``axes``, ``layout`` (``layout.nodes``, ids of the nodes shown, in the
        order of ``cells`` and ``texts``), ``cells``, ``texts`` (the lines that fit),
        ``cuts`` (dotted lines, no children shown) and ``legend`` (None without classes and
        pale nodes).

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, or for an argument, or lines of ``describe``, not as above.

    Examples
    --------
    >>> from taxarbor.exchange import from_linkage
    >>> tree = from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> drawn = plot_icicle(tree, classes=["bird", "bird", "fish"])
    >>> [text.get_text() for text in drawn.texts[0]]
    ['3 rows', 'bird · 67%', 'fish · 33%']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    _layout.expect_orientation(orientation)
    hierarchy = hierarchy_of(hierarchy)
    layout = _layout.lay_out(hierarchy, max_depth)
    makeup = _layout.count_classes(hierarchy, classes)
    if describe is None:
        describe = functools.partial(_describe, hierarchy, makeup)
    words = [_layout.tidy(describe(node), node) for node in layout.nodes.tolist()]
    cells = lay_out_cells(hierarchy, layout, makeup, orientation)
    entries = (*makeup.entries, *_layout.explain_lost(hierarchy, layout))
    _axes.require_matplotlib("plot_icicle")
    if ax is None:
        size = _axes.add_legend(_measure(layout, words, orientation), entries)
        ax = _axes.new_axes(size, (MARGIN,) * 4)
    room = _axes.room_on(ax)
    legend = _axes.lay_out_legend(entries, room)
    width, height = cells.high.max(axis=0)
    ax.set_axis_off()
    ax.set_aspect("auto")
    ax.set(xlim=(0, width), ylim=(height * room[1] / (room[1] - legend.height), 0))
    drawn, texts = draw_cells(ax, cells), write_in_cells(ax, cells, words)
    cuts = _draw_cuts(ax, cells, layout, orientation)
    return IcicleArtists(ax, layout, drawn, texts, cuts, _axes.draw_legend(ax, legend))


def _describe(hierarchy: Hierarchy, makeup: Makeup, node: int) -> list[StyledLine]:
    reasons = _layout.describe_reasons(hierarchy, node)
    size: StyledLine = (count_rows(hierarchy, node), "plain")
    first = [*reasons[:1], size]
    return [*first, *makeup.describe(hierarchy, node), *reasons[1:]]


@value
class Cells:
    """Rectangles and their colours.

    A corner has a number of rows across the tree and of levels along it, turned to (x, y): a
    node of depth d reaches from level d to d + 1, and its children tile its breadth.
    """

    low: Array  # (n_shown, 2)
    high: Array  # (n_shown, 2), the opposite corners
    faces: Array  # (n_shown, 3): red, green and blue

    def measure(self, ax: "Axes") -> Array:
        """Return widths and heights in points on these axes, (n_shown, 2)."""
        corners = ax.transData.transform(self.low), ax.transData.transform(self.high)
        sizes: Array = np.abs(corners[1] - corners[0]) * (POINTS / ax.figure.dpi)
        return sizes


def lay_out_cells(
    hierarchy: Hierarchy, layout: TreeLayout, makeup: Makeup, orientation: Orientation
) -> Cells:
    """Return the rectangles, in the colours of branches or of the largest classes.

    Nodes that were lost are pale.
    """
    nodes, depth = layout.nodes, layout.depth
    low, high = (hierarchy.start[nodes], depth), (hierarchy.stop[nodes], depth + 1)
    turn = 1 if orientation == "down" else -1
    first, last = (np.column_stack(corner[::turn]).astype(float) for corner in (low, high))
    if not makeup.entries:
        faces = _layout.shade(hierarchy, _layout.find_branches(hierarchy))[nodes]
    else:
        mixed = []
        for node in nodes.tolist():
            found, shares = makeup.largest(hierarchy, node)
            largest, share = (int(found[0]), float(shares[0])) if len(found) else (-1, 1.0)
            _, colour = makeup.entries[min(largest, _axes.N_CLASSES)]
            mixed.append(_axes.mix(colour, FACE, 0.1 + 0.7 * share))
        faces = np.array(mixed)
    faces[layout.is_lost] = 1.0 - _axes.PALE * (1.0 - faces[layout.is_lost])
    return Cells(first, last, faces)


def _measure(
    layout: TreeLayout, words: list[list[StyledLine]], orientation: Orientation
) -> Size:
    """Return the width and the height of a new figure."""
    across = min(max(END[orientation] * layout.n_ends, 2 * END["down"]), MOST)
    level = LEVEL[orientation]
    if orientation == "down":
        return across, min(level * (layout.height + 1), MOST)
    # As wide as the first lines, which are short.
    level = max([level, *(_axes.width_of(lines[0]) for lines in words if lines)]) + 8.0
    return min(level * (layout.height + 1), MOST), across


def _draw_cuts(
    ax: "Axes", cells: Cells, layout: TreeLayout, orientation: Orientation
) -> "LineCollection":
    """Draw a dotted line at the far end of each node whose children are not shown."""
    from matplotlib.collections import LineCollection

    near = np.where([orientation == "down", orientation == "right"], cells.low, cells.high)
    ends = np.stack([near, cells.high], axis=1)[layout.is_cut]
    cuts = LineCollection(
        list(ends), colors=_axes.PLAIN, linewidths=LINE, linestyles=_axes.DOTTED, zorder=2
    )
    cuts.set_clip_on(False)
    ax.add_collection(cuts, autolim=False)
    return cuts


def draw_cells(ax: "Axes", cells: Cells) -> "PolyCollection":
    """Draw the rectangles, with thin lines between that do not hide the small ones."""
    from matplotlib.collections import PolyCollection

    corners = list(_axes.rectangles(cells.low, cells.high))
    widths = np.minimum(LINE, 0.12 * cells.measure(ax).min(axis=1)).tolist()
    look: dict[str, Any] = {"facecolors": list(cells.faces), "edgecolors": FACE}
    drawn = PolyCollection(corners, linewidths=widths, zorder=1, **look)
    ax.add_collection(drawn, autolim=False)
    return drawn


def write_in_cells(
    ax: "Axes", cells: Cells, words: list[list[StyledLine]]
) -> tuple[tuple["Text", ...], ...]:
    """Write into each rectangle as much as fits, upwards where that is the only way."""
    texts = []
    for n, (size, lines) in enumerate(zip(cells.measure(ax), words, strict=True)):
        fitted = [_axes.fit_lines(lines, room - 2 * PAD) for room in (size, size[::-1])]
        # How much of the first line is left: what has to be turned must be worth it.
        level, upright = (len(left[0][0]) if left else 0 for left in fitted)
        is_upright = upright > 2 * level
        texts.append(_write(ax, cells, n, fitted[is_upright], is_upright))
    return tuple(texts)


def _write(
    ax: "Axes", cells: Cells, n: int, lines: list[StyledLine], is_upright: bool
) -> tuple["Text", ...]:
    """Write lines around the middle of a rectangle."""
    from matplotlib.patches import Rectangle

    low, high = cells.low[n], cells.high[n]
    middle = ax.transData.transform((low + high) / 2)
    # From the first line on: down the page or, where text runs upwards, to the right.
    onwards = np.array([1.0, 0.0] if is_upright else [0.0, -1.0]) * ax.figure.dpi / POINTS
    to_data = ax.transData.inverted().transform
    # Fits as the axes are now; should they get smaller, no text runs over its rectangle.
    frame = Rectangle(tuple(low), *(high - low), transform=ax.transData)
    look: dict[str, Any] = {"ha": "center", "va": "baseline", "zorder": 3, "clip_on": True}
    look |= {"rotation": 90.0 if is_upright else 0.0, "rotation_mode": "anchor"}
    look["color"] = _axes.ink_on(cells.faces[n])
    texts = []
    below = _axes.baselines(lines) - _axes.height_of(lines) / 2
    for (text, style), drop in zip(lines, below, strict=True):
        at = to_data(middle + drop * onwards)
        written = _axes.write(ax, at, text, fontproperties=_axes.font(style), **look)
        written.set_clip_path(frame)
        texts.append(written)
    return tuple(texts)
