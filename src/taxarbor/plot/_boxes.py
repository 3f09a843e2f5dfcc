"""Boxes at the places of a layout, and the branches between them, in points.

``across`` is the direction of a layout's breadth and ``along`` that of its depth: to the right
and down where the root is on top, down and to the right where it is on the left.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, final, get_args

import numpy as np

from taxarbor._types import Array
from taxarbor.plot._layout import TreeLayout

Orientation: TypeAlias = Literal["down", "right"]

GAP_ACROSS = 8.0
GAP_ALONG = 28.0
MARGIN = 6.0
STUB = 10.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class BoxLayout:
    """Boxes that do not overlap, and branches that cross none.

    Attributes
    ----------
    low, high : float arrays of shape (n_shown, 2)
        The lower left and the upper right corner of each box, (x, y). Those of one depth
        are of one width.
    branches : tuple of float array of shape (n_corners, 2)
        The lines from parents to children. No two overlap: a line drawn twice looks bolder.
    stubs : tuple of float array of shape (2, 2)
        The short lines that stand for children which are not shown, from each node cut.
    size : tuple of float
        Width and height of the whole.
    scale : float
        What all of these and the fonts are multiplied by to fit the room given; at most 1.
    """

    low: Array
    high: Array
    branches: tuple[Array, ...]
    stubs: tuple[Array, ...]
    size: tuple[float, float]
    scale: float


def expect_orientation(given: object) -> None:
    """Raise ValueError, saying what there is, for what is no orientation."""
    if given not in get_args(Orientation):
        raise ValueError(f"orientation must be 'down' or 'right', got {given!r}")


def place_boxes(
    layout: TreeLayout,
    widths: Array,
    heights: Array,
    orientation: Orientation,
    room: tuple[float, float] | None = None,
) -> BoxLayout:
    """Return the boxes as close as they may stand, or spread over the room given.

    Parameters
    ----------
    layout : TreeLayout
        Where the nodes stand.
    widths, heights : float arrays of shape (n_shown,)
        How large a box each node needs.
    orientation : {"down", "right"}
        Which way the tree grows.
    room : tuple of float, optional
        Width and height to fill.
    """
    is_down = orientation == "down"
    widths = _largest(layout, widths)[layout.depth]
    across, along = (widths, heights) if is_down else (heights, widths)
    if room is not None and not is_down:
        room = room[1], room[0]
    first, last, between, (size, scale) = _arrange(layout, across, along, room)
    *branches, stubs = _join(layout, first, last, between)
    page = size if is_down else size[::-1]

    def turn(points: Array) -> Array:
        """Take (across, along) to (x, y), which counts from the bottom of the page."""
        x, y = np.moveaxis(points if is_down else points[..., ::-1], -1, 0)
        return np.stack([x, page[1] - y], axis=-1)

    corners = turn(first), turn(last)
    return BoxLayout(
        low=np.minimum(*corners),
        high=np.maximum(*corners),
        branches=tuple(line for lines in branches for line in turn(lines)),
        stubs=tuple(turn(stubs)),
        size=(float(page[0]), float(page[1])),
        scale=scale,
    )


def _arrange(
    layout: TreeLayout, across: Array, along: Array, room: tuple[float, float] | None
) -> tuple[Array, Array, Array, tuple[Array, float]]:
    """Return opposite corners of the boxes, what levels leave free, and size and scale."""
    levels, pitch = _largest(layout, along), _pitch(layout, across)
    middle = _centred(pitch * layout.breadth, across)
    begin = MARGIN + np.concatenate([[0.0], np.cumsum(levels[:-1] + GAP_ALONG)])
    tail = STUB if layout.is_cut.any() else 0.0
    size, scale = np.array([2 * (middle + across / 2).max(), begin[-1] + levels[-1]]), 1.0
    size += [2 * MARGIN, tail + MARGIN]
    if room is not None:
        scale = min(1.0, *(room / size))
        # What there is to spare goes between the nodes and, half as much, into the margins.
        spare = (np.array(room) / scale - size) / [layout.n_ends, len(levels)]
        middle = _centred((pitch + spare[0]) * layout.breadth, across)
        begin += spare[1] * (np.arange(len(levels)) + 0.5)
        size = np.array(room) / scale
    middle += size[0] / 2
    first = np.column_stack([middle - across / 2, begin[layout.depth]])
    last = np.column_stack([middle + across / 2, begin[layout.depth] + along])
    between = (begin[:-1] + levels[:-1] + begin[1:]) / 2
    return first, last, between, (size, scale)


def _join(layout: TreeLayout, first: Array, last: Array, between: Array) -> list[Array]:
    """Return stems, hoops, drops and stubs, each of shape (n_lines, n_corners, 2).

    Of each family, the stem leaves the parent, the hoop joins the first and the last child,
    and drops hang the others on it. Boxes leave ``between`` free, where the hoops run.
    """
    middle, begin, end = (first[:, 0] + last[:, 0]) / 2, first[:, 1], last[:, 1]
    parents, nodes = layout.edges.T
    # Siblings are consecutive.
    is_first, is_last = np.diff(parents, prepend=-1) != 0, np.diff(parents, append=-1) != 0
    up, left, right = parents[is_first], nodes[is_first], nodes[is_last]
    other, cut = nodes[~(is_first | is_last)], np.flatnonzero(layout.is_cut)
    # The free place above each node; nothing is drawn above the root.
    free = np.append(between, np.nan)[layout.depth - 1]
    lines = [
        [(up, end[up]), (up, free[left])],
        [(left, begin[left]), (left, free[left]), (right, free[right]), (right, begin[right])],
        [(other, free[other]), (other, begin[other])],
        [(cut, end[cut]), (cut, end[cut] + STUB)],
    ]
    return [
        np.stack([np.column_stack([middle[n], at]) for n, at in line], axis=1) for line in lines
    ]


def _largest(layout: TreeLayout, sizes: Array) -> Array:
    """Return the largest size of each level."""
    largest = np.zeros(layout.height + 1)
    np.maximum.at(largest, layout.depth, sizes)
    return largest


def _pitch(layout: TreeLayout, across: Array) -> float:
    """Return the smallest unit of breadth that keeps the boxes of each level apart."""
    order = np.lexsort([layout.breadth, layout.depth])
    a, b = order[:-1], order[1:]
    needed = (across[a] + across[b]) / 2 + GAP_ACROSS
    units = needed / np.where(
        layout.depth[a] == layout.depth[b], layout.breadth[b] - layout.breadth[a], np.inf
    )
    return float(units.max(initial=0.0))


def _centred(middle: Array, across: Array) -> Array:
    """Shift the boxes so that they reach equally far to both sides of 0."""
    reach = float((middle - across / 2).min() + (middle + across / 2).max())
    return middle - reach / 2
