"""Boxes and what they hold, drawn where they were placed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._types import Array
from taxarbor.plot._axes import LegendLayout, draw_legend
from taxarbor.plot._boxes import BoxLayout
from taxarbor.plot._contents import PAD, Contents
from taxarbor.plot._describe import StyledLine
from taxarbor.plot._layout import TreeLayout
from taxarbor.plot._palette import BRANCH, EDGE, FACE, LEAF_FACE
from taxarbor.plot._text import COLOURS, FONT_SIZE, LEADING, SMALLEST, font, size_of, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.text import Text

ROUNDING, LINE = 4.0, 1.3
SMALLEST_STRIP = 2.0  # points of height below which images show nothing


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
    bars : PolyCollection or None
        The make-up of the nodes, where classes are given: a piece for each class in a node.
    strips : tuple of AxesImage
        The exemplars of each node that has any, where images are given.
    legend : Legend or None
        The colours of the classes.
    """

    axes: "Axes"
    layout: TreeLayout
    boxes: tuple["FancyBboxPatch", ...]
    texts: tuple[tuple["Text", ...], ...]
    branches: "LineCollection"
    stubs: "LineCollection"
    bars: "PolyCollection | None" = None
    strips: tuple["AxesImage", ...] = ()
    legend: "Legend | None" = None


def draw_tree(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout, contents: Contents, legend: LegendLayout
) -> TreeArtists:
    """Draw the tree all over the axes, and the legend below it."""
    from matplotlib.collections import LineCollection

    scale = placed.scale
    ax.set_axis_off()
    ax.set(xlim=(0, placed.size[0]), ylim=(-legend.height / scale, placed.size[1]))
    look: dict[str, Any] = {"colors": BRANCH, "linewidths": LINE * scale, "zorder": 1}
    branches = LineCollection(placed.branches, joinstyle="round", **look)
    stubs = LineCollection(placed.stubs, linestyles=(0, (1.0, 1.2)), **look)
    ax.add_collection(branches, autolim=False)
    ax.add_collection(stubs, autolim=False)
    boxes = _draw_boxes(ax, layout, placed)
    tops = np.column_stack(
        [(placed.low[:, 0] + placed.high[:, 0]) / 2, placed.high[:, 1] - PAD]
    )
    return TreeArtists(
        axes=ax,
        layout=layout,
        boxes=boxes,
        texts=tuple(
            _write(ax, *told, scale) for told in zip(contents.words, tops, strict=True)
        ),
        branches=branches,
        stubs=stubs,
        bars=_draw_bars(ax, contents, placed),
        strips=_draw_strips(ax, contents, placed),
        legend=draw_legend(ax, legend),
    )


def _draw_boxes(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout
) -> tuple["FancyBboxPatch", ...]:
    from matplotlib.patches import FancyBboxPatch

    has_children = layout.is_cut.copy()
    has_children[layout.edges[:, 0]] = True
    boxes = []
    for low, high, is_inner in zip(placed.low, placed.high, has_children, strict=True):
        width, height = high - low
        box = FancyBboxPatch(
            (low[0], low[1]), width, height, linewidth=placed.scale, zorder=2, edgecolor=EDGE,
            boxstyle=f"round,pad=0,rounding_size={ROUNDING}",
            facecolor=FACE if is_inner else LEAF_FACE,
        )  # fmt: skip
        ax.add_patch(box)
        boxes.append(box)
    return tuple(boxes)


def _write(ax: "Axes", lines: list[StyledLine], top: Array, scale: float) -> tuple["Text", ...]:
    """Write the lines one below the other, from the middle of the top."""
    if scale * FONT_SIZE < SMALLEST:
        return ()
    leading = [LEADING * size_of(style) for _, style in lines]
    texts = []
    for (text, style), below in zip(lines, np.cumsum(leading), strict=True):
        # From the foot of its strip, a line's baseline is as far as descenders reach.
        baseline = top[1] - below + (LEADING - 1.0) * size_of(style)
        written = write(
            ax, (top[0], baseline), text, ha="center", va="baseline", color=COLOURS[style],
            fontproperties=font(style, scale), zorder=3,
        )  # fmt: skip
        texts.append(written)
    return tuple(texts)


def _draw_bars(ax: "Axes", contents: Contents, placed: BoxLayout) -> "PolyCollection | None":
    from matplotlib.collections import PolyCollection

    if contents.counts is None:
        return None
    pieces, groups = contents.place_bars(placed)
    bars = PolyCollection(
        list(pieces), facecolors=[contents.colours[n] for n in groups], linewidths=0.0, zorder=3
    )
    ax.add_collection(bars, autolim=False)
    return bars


def _draw_strips(ax: "Axes", contents: Contents, placed: BoxLayout) -> tuple["AxesImage", ...]:
    places = contents.place_strips(placed)
    return tuple(
        ax.imshow(strip.pixels, extent=tuple(place), aspect="auto", zorder=3)
        for strip, place in zip(contents.strips, places.tolist(), strict=False)
        if placed.scale * strip.size[1] >= SMALLEST_STRIP
    )
