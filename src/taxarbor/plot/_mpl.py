"""Trees as boxes: what is asked for, measured, placed and drawn; matplotlib comes late."""

import functools
import math
from typing import TYPE_CHECKING, Any, SupportsIndex

from numpy.typing import ArrayLike

from taxarbor.hierarchy import Hierarchy, hierarchy_of
from taxarbor.plot._axes import (
    LARGEST,
    POINTS,
    LegendLayout,
    lay_out_legend,
    new_axes,
    require_matplotlib,
    room_on,
    widest_entry,
)
from taxarbor.plot._boxes import Orientation, expect_orientation, place_boxes
from taxarbor.plot._classes import Makeup, count_classes
from taxarbor.plot._contents import Contents
from taxarbor.plot._describe import Describe, StyledLine, describe_node, tidy
from taxarbor.plot._draw import TreeArtists, draw_tree
from taxarbor.plot._images import Exemplars, make_strips
from taxarbor.plot._layout import lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_tree(
    hierarchy: Any,
    *,
    max_depth: SupportsIndex | None = None,
    describe: Describe | None = None,
    classes: ArrayLike | None = None,
    images: ArrayLike | None = None,
    exemplars: Exemplars | None = None,
    orientation: Orientation = "down",
    ax: "Axes | None" = None,
) -> TreeArtists:
    """Draw a tree as boxes, joined by branches, that say what is in each node and why.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.
    max_depth : int, optional
        Show no deeper nodes. A dotted line shows where there are some; leaves are grey.
    describe : callable, optional
        Takes a node's id and returns the lines of its box: strings, or pairs of a string and
        a style, which is "title", "plain", "plus" or "minus". The first line is a title by
        default, the others plain. Texts are shown as they are, without mathematics, and cut
        after 28 characters. If not given: the number of rows; three features, ``+name``
        where larger values lead to the node, ``-name`` where smaller ones do; and the two
        largest classes.
    classes : array of shape (n_rows,), optional
        The class of each row. A bar in each box then shows its make-up, the eight largest
        classes in colours and any others in grey, and a legend names them.
    images : array of shape (n_rows, height, width) or (n_rows, height, width, 3 or 4), optional
        An image for each row, in grey or in colours: floats from 0 to 1, or bytes. Each box
        then shows some of its rows.
    exemplars : mapping or callable, optional
        By a node's id, the numbers of the rows whose images are shown; for nodes that a
        mapping leaves out, none. If not given: four rows from all over the node.
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
        If an argument, or what ``describe`` or ``exemplars`` returns, is none of the above.

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
    expect_orientation(orientation)
    if exemplars is not None and images is None:
        raise ValueError("exemplars are rows whose images are shown: give the images too")
    hierarchy = hierarchy_of(hierarchy)
    layout = lay_out(hierarchy, max_depth)
    nodes = layout.nodes.tolist()
    makeup = None if classes is None else count_classes(hierarchy, classes)
    if describe is None:
        describe = functools.partial(_describe_all, hierarchy, makeup)
    contents = Contents(
        words=[tidy(describe(node), node) for node in nodes],
        counts=None if makeup is None else makeup.counts[layout.nodes],
        colours=() if makeup is None else makeup.colours,
        strips=() if images is None else make_strips(hierarchy, nodes, images, exemplars),
    )
    require_matplotlib("plot_tree")
    place = functools.partial(place_boxes, layout, *contents.measure(), orientation)
    if ax is None:
        ax = _new_axes(place().size, makeup)
    ax.set_aspect("auto")
    width, height = room_on(ax)
    legend = LegendLayout()
    if makeup is not None:
        legend = lay_out_legend(makeup.groups, makeup.colours, (width, height))
    placed = place((width, height - legend.height))
    return draw_tree(ax, layout, placed, contents, legend)


def _describe_all(hierarchy: Hierarchy, makeup: Makeup | None, node: int) -> list[StyledLine]:
    lines = describe_node(hierarchy, node)
    return lines if makeup is None else lines + makeup.describe(hierarchy, node)


def _new_axes(size: tuple[float, float], makeup: Makeup | None) -> "Axes":
    """Return axes that are all of a new figure, of this many points if that is not too many."""
    width, height = size
    if makeup is not None:
        width = max(width, widest_entry(makeup.groups))
        height += lay_out_legend(makeup.groups, makeup.colours, (width, math.inf)).height
    scale = min(1.0, LARGEST * POINTS / max(width, height))
    return new_axes((scale * width, scale * height))
