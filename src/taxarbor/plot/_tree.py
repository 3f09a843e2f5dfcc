"""Trees as boxes: what they hold, how large they are, where they stand, then the drawing.

A box holds, from top to bottom, lines of text, a strip of images and a bar of classes. Where
boxes are placed, ``across`` is the direction of a layout's breadth and ``along`` that of its
depth: to the right and down if the root is on top, down and to the right if it is on the left.
Lengths are in points.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError
from taxarbor._images import Pixels, check_images, small_image
from taxarbor._types import Array, IndexArray
from taxarbor.plot import _axes, _layout
from taxarbor.plot._axes import LegendLayout, Size, StyledLine, value
from taxarbor.plot._layout import Makeup, Orientation, TreeLayout
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.taxonomy._text import count_rows, describe_rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.text import Text

# Images side by side, as bytes of shape (height, width, 4), and their size on the page.
Strip: TypeAlias = tuple[Pixels, Size]
Examples: TypeAlias = Mapping[int, ArrayLike] | Callable[[int], ArrayLike]

GAP_ACROSS, GAP_ALONG, MARGIN, STUB = 8.0, 28.0, 6.0, 10.0
PAD, SPACE = 6.0, 3.5  # within boxes, and between what they hold
BAR, SHORTEST = 5.0, 60.0  # height of a bar, and its width at least
ROUNDING, LINE = 4.0, 1.3
N_IMAGES, SIDE = 4, 128  # images of a node, and pixels of their sides at most
TALLEST, WIDEST = 26.0, 78.0  # what an image takes at most
IMAGE_GAP = 0.1  # between two images, in widths of one
SMALLEST_STRIP = 2.0  # height below which images show nothing


@value
class TreeArtists:
    """What ``plot_tree`` drew; see there."""

    axes: "Axes"
    layout: TreeLayout
    boxes: tuple["FancyBboxPatch", ...]
    texts: tuple[tuple["Text", ...], ...]
    branches: "LineCollection"
    stubs: "LineCollection"
    bars: "PolyCollection | None"
    strips: tuple["AxesImage", ...]
    legend: "Legend | None"


def plot_tree(
    taxonomy: Any,
    *,
    max_depth: SupportsIndex | None = None,
    describe: _layout.Describe | None = None,
    classes: ArrayLike | None = None,
    images: ArrayLike | None = None,
    examples: Examples | None = None,
    orientation: Orientation = "down",
    ax: "Axes | None" = None,
) -> TreeArtists:
    """Draw a tree as boxes, joined by branches, that say what is in each node and why.

    Once the tree was assessed, the boxes of nodes that are not stable are pale and dashed, and
    a legend says what that means.

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
    images : array of shape (n_rows, height, width) or (n_rows, height, width, 3 or 4), optional
        An image for each row: floats from 0 to 1, or bytes. Each box shows some of its rows.
    examples : mapping or callable, optional
        By a node's id, the numbers of the rows whose images are shown; nodes that a mapping
        leaves out show none. By default: four rows from all over the node.
    orientation : {"down", "right"}
        Where the tree grows to: from a root on top, or from a root on the left.
    ax : Axes, optional
        What to draw on, all over; by default a new figure, as large as the boxes need, but at
        most 100 inches. Where there is too little room, all is drawn smaller, and without text
        where letters would be below one point.

    Returns
    -------
    TreeArtists
        What was drawn: ``axes``, ``layout`` (``layout.nodes``, ids of the nodes shown, in the
        order of ``boxes`` and ``texts``), ``boxes``, ``texts`` (the lines of each node),
        ``branches`` and ``stubs`` (to children shown, and not shown), ``bars`` (None without
        classes), ``legend`` (None without classes and pale nodes) and ``strips`` (an image for
        each node that shows any).

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, or for an argument, or what ``describe`` or ``examples`` returns,
        not as above.

    Examples
    --------
    >>> from taxarbor.exchange import from_linkage
    >>> tree = from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> drawn = plot_tree(tree, describe=lambda node: [f"node {node}", "costs $5"])
    >>> drawn
    TreeArtists(axes, layout, boxes, texts, branches, stubs, bars, strips, legend)
    >>> figure = drawn.axes.figure
    >>> figure.savefig("tree.png", dpi=3000 / figure.get_figwidth())  # doctest: +SKIP
    >>> import matplotlib.pyplot as plt
    >>> plt.close(figure)
    """
    _layout.expect_orientation(orientation)
    if examples is not None and images is None:
        raise InputError("examples are rows whose images are shown: give the images too")
    taxonomy = taxonomy_of(taxonomy)
    layout = _layout.lay_out(taxonomy, max_depth)
    nodes = layout.nodes.tolist()
    makeup = _layout.count_classes(taxonomy, classes)
    if describe is None:
        describe = functools.partial(describe_node, taxonomy, makeup)
    words = [_layout.tidy(describe(node), node) for node in nodes]
    colours = tuple(colour for _, colour in makeup.entries)
    entries = (*makeup.entries, *_layout.explain_lost(taxonomy, layout))
    strips = make_strips(taxonomy, nodes, images, examples)
    contents = Contents(words, makeup.counts[layout.nodes], colours, strips)
    _axes.require_matplotlib("plot_tree")
    place = functools.partial(place_boxes, layout, *contents.measure(), orientation)
    if ax is None:
        width, height = _axes.add_legend(place().size, entries)
        scale = min(1.0, _axes.LARGEST * _axes.POINTS / max(width, height))
        ax = _axes.new_axes((scale * width, scale * height))
    ax.set_aspect("auto")
    width, height = _axes.room_on(ax)
    legend = _axes.lay_out_legend(entries, (width, height))
    return _draw_tree(ax, layout, place((width, height - legend.height)), contents, legend)


def describe_node(taxonomy: Taxonomy, makeup: Makeup, node: int) -> list[StyledLine]:
    """Return the number of rows, what leads here, what the rule does, the largest classes."""
    size: StyledLine = (count_rows(taxonomy, node), "title")
    reasons = _layout.describe_reasons(taxonomy, node)
    rule = describe_rule(taxonomy, node).removeprefix("its rule ").partition(" by ")[0]
    rules: list[StyledLine] = [(rule, "plain")] if rule else []
    return [size, *reasons, *rules, *makeup.describe(taxonomy, node)]


def make_strips(
    taxonomy: Taxonomy, nodes: Sequence[int], images: Any, examples: Examples | None
) -> list[Strip]:
    """Return a strip of images for each node; arguments are those of ``plot_tree``."""
    if images is None:
        return [_line_up([])] * len(nodes)
    pixels = check_images(images, taxonomy.tree.n_rows)
    chosen = [_choose(taxonomy, node, examples) for node in nodes]
    return [_line_up([small_image(pixels, row, SIDE) for row in rows]) for rows in chosen]


def _choose(taxonomy: Taxonomy, node: int, examples: Examples | None) -> list[int]:
    """Return the rows to show for a node."""
    if examples is None:
        rows = taxonomy.tree.rows(node)
        spread = np.unique(np.linspace(0, len(rows) - 1, N_IMAGES).astype(int))
        return [int(row) for row in rows[spread]]
    given = examples.get(node, ()) if isinstance(examples, Mapping) else examples(node)
    chosen = np.asarray(given)
    if chosen.size == 0:
        return []
    last = taxonomy.tree.n_rows - 1
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise InputError(f"examples must be row numbers, got {given!r} for node {node}")
    if chosen.min() < 0 or chosen.max() > last:
        got = f"got {chosen.min()} to {chosen.max()} for node {node}"
        raise InputError(f"examples must be row numbers from 0 to {last}, {got}")
    return [int(row) for row in chosen]


def _line_up(images: list[Pixels]) -> Strip:
    """Put images side by side, in colours, with clear pixels between."""
    if not images:
        return np.zeros((1, 0, 4), dtype=np.uint8), (0.0, 0.0)
    height, width = images[0].shape[:2]
    gap = max(1, round(IMAGE_GAP * width))
    strip = np.zeros((height, len(images) * (width + gap) - gap, 4), dtype=np.uint8)
    for n, image in enumerate(images):
        colours = image[..., None].repeat(3, axis=2) if image.ndim == 2 else image
        place = strip[:, n * (width + gap) :][:, :width]
        place[..., 3] = 255
        place[..., : colours.shape[2]] = colours
    point = min(TALLEST / height, WIDEST / width)
    return strip, (point * strip.shape[1], point * height)


@value
class Contents:
    """What the boxes of a tree hold, in the order of its layout."""

    words: list[list[StyledLine]]
    counts: IndexArray  # (n_shown, n_colours), the pieces of each bar
    colours: tuple[str, ...]  # none, and no bars, where there are no classes
    strips: list[Strip]  # of no size where there are no images

    def measure(self) -> tuple[Array, Array]:
        """Return the width and the height that each box needs."""
        widths = [max(map(_axes.width_of, lines), default=0.0) for lines in self.words]
        strips = np.array([size for _, size in self.strips])
        width = np.maximum(widths, strips[:, 0])
        height = np.array([_axes.height_of(lines) for lines in self.words])
        height += strips[:, 1] + SPACE * (strips[:, 1] > 0.0)
        if self.colours:
            width, height = np.maximum(width, SHORTEST), height + BAR + SPACE
        return width + 2 * PAD, height + 2 * PAD

    def place_strips(self, placed: "BoxLayout") -> Array:
        """Return left, right, bottom and top of the strips, (n_shown, 4)."""
        sizes = np.array([size for _, size in self.strips])
        left = (placed.low[:, 0] + placed.high[:, 0] - sizes[:, 0]) / 2
        bottom = placed.low[:, 1] + PAD + (BAR + SPACE if self.colours else 0.0)
        return np.column_stack([left, left + sizes[:, 0], bottom, bottom + sizes[:, 1]])

    def place_bars(self, placed: "BoxLayout") -> tuple[Array, IndexArray]:
        """Return the corners of all pieces of the bars, (n_pieces, 4, 2), and their classes."""
        nodes, pieces = np.nonzero(self.counts)
        ends = np.cumsum(self.counts, axis=1) / self.counts.sum(axis=1, keepdims=True)
        ends = np.column_stack([np.zeros(len(ends)), ends])
        width = (placed.high - placed.low)[:, :1] - 2 * PAD
        places, foot = placed.low[:, :1] + PAD + width * ends, placed.low[nodes, 1] + PAD
        low = np.column_stack([places[nodes, pieces], foot])
        high = np.column_stack([places[nodes, pieces + 1], foot + BAR])
        return _axes.rectangles(low, high), pieces


@value
class BoxLayout:
    """Boxes that do not overlap, and branches that cross none."""

    low: Array  # (n_shown, 2), lower left corners, (x, y); boxes of one depth are equally wide
    high: Array  # (n_shown, 2), upper right corners
    branches: tuple[Array, ...]  # (n_corners, 2) each; no two overlap
    stubs: tuple[Array, ...]  # (2, 2) each, short lines that stand for children not shown
    size: Size
    scale: float  # what all of these and the fonts are multiplied by to fit; at most 1


def place_boxes(
    layout: TreeLayout,
    widths: Array,
    heights: Array,
    orientation: Orientation,
    room: Size | None = None,
) -> BoxLayout:
    """Return boxes of these sizes at least, as close as may be or spread over the room."""
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
    low, high = np.minimum(*corners), np.maximum(*corners)
    lines = tuple(line for several in branches for line in turn(several))
    page_size = float(page[0]), float(page[1])
    return BoxLayout(low, high, lines, tuple(turn(stubs)), page_size, scale)


def _arrange(
    layout: TreeLayout, across: Array, along: Array, room: Size | None
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

    Stems lead from parents to the middle of what is ``between`` two levels, where hoops run.
    """
    middle, begin, end = (first[:, 0] + last[:, 0]) / 2, first[:, 1], last[:, 1]
    # The free place above each node, of which the root has none; and below each.
    free = np.append(between, np.nan)
    above, below = free[layout.depth - 1], free[layout.depth]
    hoops, drops, _ = _layout.join_children(layout.parents, middle, begin, above)
    inner, cut = np.unique(layout.parents), np.flatnonzero(layout.is_cut)
    stems, stubs = (
        np.stack([np.column_stack([middle[n], at]) for at in (end[n], until)], axis=1)
        for n, until in ((inner, below[inner]), (cut, end[cut] + STUB))
    )
    return [stems, hoops, drops, stubs]


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


def _draw_tree(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout, contents: Contents, legend: LegendLayout
) -> TreeArtists:
    """Draw the tree all over the axes, and the legend below it."""
    from matplotlib.collections import LineCollection, PolyCollection

    scale = placed.scale
    ax.set_axis_off()
    ax.set(xlim=(0, placed.size[0]), ylim=(-legend.height / scale, placed.size[1]))
    look: dict[str, Any] = {"colors": _axes.BRANCH, "linewidths": LINE * scale, "zorder": 1}
    branches = LineCollection(placed.branches, joinstyle="round", **look)
    stubs = LineCollection(placed.stubs, linestyles=_axes.DOTTED, **look)
    ax.add_collection(branches, autolim=False)
    ax.add_collection(stubs, autolim=False)
    places = contents.place_strips(placed).tolist()
    bars = None
    if contents.colours:
        pieces, classes = contents.place_bars(placed)
        faces = [contents.colours[n] for n in classes]
        bars = PolyCollection(list(pieces), facecolors=faces, linewidths=0.0, zorder=3)
        ax.add_collection(bars, autolim=False)
    boxes = _draw_boxes(ax, layout, placed)
    texts = _write_words(ax, layout, placed, contents.words)
    strips = tuple(
        ax.imshow(pixels, extent=tuple(place), aspect="auto", zorder=3)
        for (pixels, size), place in zip(contents.strips, places, strict=True)
        if scale * size[1] >= SMALLEST_STRIP
    )
    drawn_legend = _axes.draw_legend(ax, legend)
    return TreeArtists(ax, layout, boxes, texts, branches, stubs, bars, strips, drawn_legend)


def _draw_boxes(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout
) -> tuple["FancyBboxPatch", ...]:
    from matplotlib.patches import FancyBboxPatch

    has_children = layout.is_cut.copy()
    has_children[layout.parents] = True
    boxes = []
    looks = zip(placed.low, placed.high, has_children, layout.is_lost, strict=True)
    for low, high, is_inner, is_lost in looks:
        width, height = high - low
        box = FancyBboxPatch(
            tuple(low), width, height, linewidth=placed.scale, zorder=2, edgecolor=_axes.EDGE,
            boxstyle=f"round,pad=0,rounding_size={ROUNDING}",
            facecolor=_axes.FACE if is_inner else _axes.LEAF_FACE,
            linestyle=_axes.DASHED if is_lost else "solid",
        )  # fmt: skip
        ax.add_patch(box)
        boxes.append(box)
    return tuple(boxes)


def _write_words(
    ax: "Axes", layout: TreeLayout, placed: BoxLayout, words: list[list[StyledLine]]
) -> tuple[tuple["Text", ...], ...]:
    """Write the lines of each box one below the other, from the middle of its top."""
    if placed.scale * _axes.FONT_SIZE < _axes.SMALLEST:
        return ((),) * len(words)
    look: dict[str, Any] = {"ha": "center", "va": "baseline", "zorder": 3}
    texts = []
    looks = zip(words, placed.low, placed.high, layout.is_lost, strict=True)
    for lines, low, high, is_lost in looks:
        middle, top = (low[0] + high[0]) / 2, high[1] - PAD
        look["alpha"] = _axes.PALE_INK if is_lost else 1.0
        written = [
            _axes.write(
                ax, (middle, top - below), text, color=_axes.COLOURS[style],
                fontproperties=_axes.font(style, placed.scale), **look,
            )
            for (text, style), below in zip(lines, _axes.baselines(lines), strict=True)
        ]  # fmt: skip
        texts.append(tuple(written))
    return tuple(texts)
