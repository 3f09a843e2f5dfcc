"""Icicles: each level of the tree is a band, and each node as wide in it as it has rows."""

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy, hierarchy_of
from taxarbor.plot._axes import (
    LegendLayout,
    draw_legend,
    lay_out_legend,
    new_axes,
    require_matplotlib,
    room_on,
    widest_entry,
)
from taxarbor.plot._boxes import Orientation, expect_orientation
from taxarbor.plot._cells import Cells, draw_cells, write_in_cells
from taxarbor.plot._classes import Makeup, count_classes
from taxarbor.plot._describe import (
    Describe,
    StyledLine,
    count_rows,
    describe_reasons,
    tidy,
)
from taxarbor.plot._layout import lay_out
from taxarbor.plot._palette import FACE, PLAIN, find_branches, mix, shade
from taxarbor.plot._text import width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.legend import Legend
    from matplotlib.text import Text

# Points of a new figure: for a level, for a node without children, for all at most.
LEVEL, END = {"down": 62.0, "right": 80.0}, {"down": 62.0, "right": 26.0}
MOST = 1800.0
MARGIN, LINE = 6.0, 1.0


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IcicleLayout:
    """The rectangles of an icicle; the arrays are read-only.

    Attributes
    ----------
    nodes : int array of shape (n_shown,)
        Ids of the nodes shown, parents first. The other arrays follow this order.
    low, high : int arrays of shape (n_shown, 2)
        Opposite corners, each a number of rows across the tree and of levels along it: a
        node of depth d reaches from level d to d + 1, and its children tile its breadth.
    is_cut : bool array of shape (n_shown,)
        Whether the node has children that are not shown.

    Examples
    --------
    >>> from taxarbor import Hierarchy
    >>> lay_out_icicle(Hierarchy.from_labels([0, 1, 1])).high.tolist()
    [[3, 1], [1, 2], [3, 2]]
    """

    nodes: IndexArray
    low: IndexArray
    high: IndexArray
    is_cut: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for array in (self.nodes, self.low, self.high, self.is_cut):
            array.setflags(write=False)

    def __repr__(self) -> str:
        return f"IcicleLayout(n_shown={len(self.nodes)}, size={self.size})"

    @property
    def size(self) -> tuple[int, int]:
        """Number of rows and of levels."""
        n_rows, n_levels = self.high.max(axis=0).tolist()
        return n_rows, n_levels


def lay_out_icicle(hierarchy: Any, max_depth: SupportsIndex | None = None) -> IcicleLayout:
    """Return the rectangles of an icicle; takes and raises what ``lay_out`` does."""
    hierarchy = hierarchy_of(hierarchy)
    layout = lay_out(hierarchy, max_depth)
    nodes, depth = layout.nodes, layout.depth
    return IcicleLayout(
        nodes=nodes,
        low=np.column_stack([hierarchy.start[nodes], depth]),
        high=np.column_stack([hierarchy.stop[nodes], depth + 1]),
        is_cut=layout.is_cut.copy(),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class IcicleArtists:
    """What was drawn, to be changed or asked for its place.

    Attributes
    ----------
    axes : Axes
        What it was drawn on.
    layout : IcicleLayout
        Which nodes are shown. Cells and texts follow its order.
    cells : PolyCollection
        The rectangles.
    texts : tuple of tuple of Text
        The lines of each node, as far as they fit.
    cuts : LineCollection
        The dotted lines where children are not shown.
    legend : Legend or None
        The colours of the classes.
    """

    axes: "Axes"
    layout: IcicleLayout
    cells: "PolyCollection"
    texts: tuple[tuple["Text", ...], ...]
    cuts: "LineCollection"
    legend: "Legend | None"


def plot_icicle(
    hierarchy: Any,
    *,
    max_depth: SupportsIndex | None = None,
    describe: Describe | None = None,
    classes: ArrayLike | None = None,
    orientation: Orientation = "right",
    ax: "Axes | None" = None,
) -> IcicleArtists:
    """Draw a tree as bands of rectangles, each as wide as its node has rows.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.
    max_depth : int, optional
        Show no deeper nodes. A dotted line shows where there are some.
    describe : callable, optional
        The lines of each node, as for :func:`plot_tree`; they are shown as far as they fit.
        If not given: what leads to the node most, its number of rows, its largest class and
        what else leads there.
    classes : array of shape (n_rows,), optional
        The class of each row. A node then has the colour of its largest class, the stronger
        the larger that one's share. If not given, the colours are those of the branches.
    orientation : {"right", "down"}
        Where the tree grows to.
    ax : Axes, optional
        What to draw on, all over. If not given, a new figure is made.

    Returns
    -------
    IcicleArtists
        The axes and all that was drawn on them.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If an argument, or what ``describe`` returns, is none of the above.

    Examples
    --------
    >>> from taxarbor import Hierarchy
    >>> tree = Hierarchy.from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> drawn = plot_icicle(tree, classes=["bird", "bird", "fish"])
    >>> [text.get_text() for text in drawn.texts[0]]
    ['3 rows', 'bird · 67%', 'fish · 33%']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    expect_orientation(orientation)
    hierarchy = hierarchy_of(hierarchy)
    layout = lay_out_icicle(hierarchy, max_depth)
    makeup = None if classes is None else count_classes(hierarchy, classes)
    if describe is None:
        describe = functools.partial(_describe, hierarchy, makeup)
    words = [tidy(describe(node), node) for node in layout.nodes.tolist()]
    require_matplotlib("plot_icicle")
    if ax is None:
        ax = _new_axes(layout, words, orientation, makeup)
    legend = LegendLayout()
    if makeup is not None:
        legend = lay_out_legend(makeup.groups, makeup.colours, room_on(ax))
    _set_limits(ax, layout, orientation, legend.height)
    # Corners are (across, along) in a layout, and (x, y) on the axes.
    turn = 1 if orientation == "down" else -1
    cells = Cells(
        low=layout.low[:, ::turn].astype(float),
        high=layout.high[:, ::turn].astype(float),
        faces=_colour(hierarchy, layout, makeup),
    )
    return IcicleArtists(
        axes=ax,
        layout=layout,
        cells=draw_cells(ax, cells),
        texts=write_in_cells(ax, cells, words),
        cuts=_draw_cuts(ax, layout, turn),
        legend=draw_legend(ax, legend),
    )


def _describe(hierarchy: Hierarchy, makeup: Makeup | None, node: int) -> list[StyledLine]:
    reasons = describe_reasons(hierarchy, node)
    told: list[StyledLine] = [(count_rows(hierarchy, node), "plain")]
    if makeup is not None:
        told += makeup.describe(hierarchy, node)
    return [*reasons[:1], *told, *reasons[1:]]


def _colour(hierarchy: Hierarchy, layout: IcicleLayout, makeup: Makeup | None) -> Array:
    """Return the colours of the nodes shown, (n_shown, 3)."""
    if makeup is None:
        return shade(hierarchy, find_branches(hierarchy))[layout.nodes]
    groups, shares = makeup.majorities(hierarchy, layout.nodes)
    return np.array(
        [
            mix(makeup.colours[group], FACE, 0.1 + 0.7 * share)
            for group, share in zip(groups, shares, strict=True)
        ]
    )


def _new_axes(
    layout: IcicleLayout,
    words: list[list[StyledLine]],
    orientation: Orientation,
    makeup: Makeup | None,
) -> "Axes":
    n_ends = len(np.unique(layout.low[:, 0]))  # an inner node starts with its first child
    level = LEVEL[orientation]
    if orientation == "right":  # as wide as the first lines, which are short
        level = max([level, *(width_of(lines[0]) for lines in words if lines)]) + 8.0
    across = min(max(END[orientation] * n_ends, 2 * END["down"]), MOST)
    along = min(level * layout.size[1], MOST)
    width, height = (across, along) if orientation == "down" else (along, across)
    if makeup is not None:
        width = max(width, widest_entry(makeup.groups))
        height += lay_out_legend(makeup.groups, makeup.colours, (width, math.inf)).height
    return new_axes((width, height), (MARGIN,) * 4)


def _set_limits(
    ax: "Axes", layout: IcicleLayout, orientation: Orientation, foot: float
) -> None:
    """Show all of the layout, the root on top or on the left, and leave room at the foot."""
    ax.set_axis_off()
    ax.set_aspect("auto")
    width, height = layout.size if orientation == "down" else layout.size[::-1]
    room = room_on(ax)[1]
    ax.set(xlim=(0, width), ylim=(height * room / (room - foot), 0))


def _draw_cuts(ax: "Axes", layout: IcicleLayout, turn: int) -> "LineCollection":
    from matplotlib.collections import LineCollection

    low, high = layout.low[layout.is_cut], layout.high[layout.is_cut]
    ends = np.stack([np.column_stack([low[:, 0], high[:, 1]]), high], axis=1)[..., ::turn]
    cuts = LineCollection(
        list(ends), colors=PLAIN, linewidths=LINE, linestyles=(0, (1.0, 1.2)), zorder=2
    )
    cuts.set_clip_on(False)
    ax.add_collection(cuts, autolim=False)
    return cuts
