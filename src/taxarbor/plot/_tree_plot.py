"""Trees as boxes, as dendrograms drawn by SciPy, and as the stability of their cuts.

A box holds lines of text and, below them, a bar of classes. Where boxes are placed, ``across``
is the direction in which leaves follow one another and ``along`` that from the root to the
leaves: to the right and down, or down and to the right. Lengths are in points.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, InputTypeError, printable, require
from taxarbor._types import Array, IndexArray, Mask
from taxarbor.exchange import to_linkage
from taxarbor.metrics.classes import NO_LABEL, Classes
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._text import count_rows, describe_rule
from taxarbor.taxonomy.stability_result import MIN_STABLE_SHARE
from taxarbor.taxonomy.taxonomy import taxonomy_of
from taxarbor.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.font_manager import FontProperties

Lines: TypeAlias = list[tuple[str, str]]  # texts and their colours

# The look of all plots
INK, PLAIN, PLUS, MINUS = "#1f2933", "#52606d", "#05668d", "#9b2c1f"
BRANCH, EDGE, FACE, LEAF_FACE = "#9fb0c0", "#b8c4d0", "#ffffff", "#f3f6f9"
OTHER, GRID = "#c9d1d9", "#e4e9ee"
FONT_SIZE, LINE_HEIGHT = 8.0, 11.0  # the latter from one baseline to the next
MAX_LETTERS = 28  # of a line
MAX_INCHES = 100.0  # of a new figure
POINTS_PER_INCH = 72.0
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}  # "$" is no mathematics
# Boxes
GAP_ACROSS, GAP_ALONG, MARGIN, STUB = 8.0, 28.0, 6.0, 10.0
PAD, SPACE = 6.0, 3.5  # within boxes, and between lines and bar
BAR_HEIGHT, MIN_BAR_WIDTH = 5.0, 60.0
ROUNDING, LINE_WIDTH = 4.0, 1.3
DOTTED, DASHED = (0, (1.0, 1.2)), (0, (3.0, 2.0))
UNSTABLE_ALPHA = 0.65  # of the text of a node that is not stable
MIN_FONT_SIZE = 1.0  # matplotlib draws smaller fonts too large for their boxes
LEGEND_PAD, LEGEND_HANDLE = 5.0, 3.1 * FONT_SIZE  # a coloured square with the space around it
N_TOP_FEATURES = 3
MAX_CLASSES_NAMED, MIN_CLASS_SHARE, MAX_CLASS_LETTERS = 2, 0.1, 20  # of a node
# The muted set of Paul Tol, made for colour-blind readers, less one that is close to others.
CLASS_COLOURS = (
    "#332288", "#cc6677", "#44aa99", "#ddcc77", "#88ccee", "#882255", "#117733", "#999933",
)  # fmt: skip
BAR_COLOURS = (*CLASS_COLOURS, OTHER, GRID)  # of the rest, and of rows without a class
# Dendrograms and curves
WIDTH, LEAF_HEIGHT, AXIS_HEIGHT = 480.0, 15.0, 40.0  # of a new figure with a dendrogram
CURVE_SIZE = 460.0, 300.0  # of one with a curve
MAX_COLOURED = 5  # branches
MAX_NAMED = 200  # leaves; of more, none has a text
MAX_TICKS = 15


# Figures


def require_matplotlib(function: str) -> None:
    """Raise ImportError, saying what to install, if matplotlib is missing."""
    with require(function, "matplotlib"):
        import matplotlib.textpath  # noqa: F401


def shorten(text: object, max_letters: int = MAX_LETTERS) -> str:
    """Return the text on one line, printable and not too long."""
    line = printable(str(text)).strip()
    return line if len(line) <= max_letters else line[: max_letters - 1].rstrip() + "…"


def new_axes(width: float, height: float, *, layout: str) -> "Axes":
    """Return axes on a new figure of this size."""
    from matplotlib import pyplot as plt

    inches = [min(length / POINTS_PER_INCH, MAX_INCHES) for length in (width, height)]
    figure = plt.figure(figsize=(inches[0], inches[1]), facecolor="white", layout=layout)
    return figure.add_axes((0, 0, 1, 1)) if layout == "none" else figure.add_subplot()


# Coordinates


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeLayout:
    """Boxes that do not overlap, and branches that cross none; ``y`` is 0 at the bottom."""

    low: Array  # (n_shown, 2), lower left corners, (x, y); boxes are equally wide
    high: Array  # (n_shown, 2), upper right corners
    branches: Array  # (n_shown - 1, 4, 2), from the parent to each node but the root
    stubs: Array  # (n_cut, 2, 2), short lines that stand for children not shown
    size: tuple[float, float]


def lay_out(
    tree: Tree, nodes: IndexArray, widths: Array, heights: Array, *, is_down: bool
) -> TreeLayout:
    """Return boxes of these sizes at least for some nodes, with which their parents are shown.

    The nodes shown without children stand at equal distances, and a parent in the middle
    between its first and its last child.
    """
    depth = tree.depth[nodes]
    parents = np.searchsorted(nodes, tree.parents[nodes[1:]])  # ids ascend, as positions do
    widths = np.full(len(nodes), widths.max())
    across, along = (widths, heights) if is_down else (heights, widths)
    levels = np.zeros(depth.max() + 1)  # the largest box of each
    np.maximum.at(levels, depth, along)
    tops = MARGIN + np.cumsum(levels + GAP_ALONG) - levels - GAP_ALONG
    is_end = ~np.isin(np.arange(len(nodes)), parents)
    breadth = _find_breadths(tree.start[nodes], parents, np.flatnonzero(is_end))
    pitch = across.max() + GAP_ACROSS
    middle, top = MARGIN + pitch * (breadth + 0.5), tops[depth]
    cut = np.flatnonzero(is_end & ~np.isin(nodes, tree.leaves))
    length = tops[-1] + levels[-1] + MARGIN + STUB * bool(len(cut))
    size = pitch * np.count_nonzero(is_end) + 2 * MARGIN, float(length)
    width, height = size if is_down else size[::-1]

    def to_page(*points: tuple[Array, Array]) -> Array:
        """Return points of lines, (across, along), as (x, y)."""
        lines = np.stack([np.column_stack(point) for point in points], axis=1)
        lines = lines if is_down else lines[..., ::-1]
        return np.stack([lines[..., 0], height - lines[..., 1]], axis=-1)

    end, bar = top + along, top[1:] - GAP_ALONG / 2
    boxes = to_page((middle - across / 2, top), (middle + across / 2, end))
    branches = to_page(
        (middle[parents], end[parents]), (middle[parents], bar),
        (middle[1:], bar), (middle[1:], top[1:]),
    )  # fmt: skip
    stubs = to_page((middle[cut], end[cut]), (middle[cut], end[cut] + STUB))
    return TreeLayout(boxes.min(axis=1), boxes.max(axis=1), branches, stubs, (width, height))


def _find_breadths(start: IndexArray, parents: IndexArray, ends: IndexArray) -> Array:
    """Return 0, 1, 2, ... for the ends in the order of rows, and for parents the middle."""
    breadth = np.zeros(len(start))
    breadth[ends[np.argsort(start[ends])]] = np.arange(len(ends))
    inner, first, n_children = np.unique(parents, return_index=True, return_counts=True)
    families = np.column_stack([inner, first + 1, first + n_children])
    for node, left, right in families[::-1].tolist():  # children before their parent
        breadth[node] = (breadth[left] + breadth[right]) / 2
    return breadth


# What boxes hold


def count_classes(
    tree: Tree, nodes: Sequence[int], given: ArrayLike | None
) -> tuple[Array, Lines, list[Lines]]:
    """Return the shares of classes in nodes, a legend, and lines such as ``mammals · 92%``.

    The shares are those of the eight largest classes, of all others and of rows without one;
    the lines tell parts of the rows with a class. Without classes, all is empty.
    """
    if given is None:
        return np.zeros((len(nodes), 0)), [], [[] for _ in nodes]
    classes, n_coloured = Classes.of(given, tree.n_rows), len(CLASS_COLOURS)
    shares, lines = np.zeros((len(nodes), n_coloured + 2)), []
    for node, line in zip(nodes, shares, strict=True):
        counts = classes.count(tree.rows(node))
        for code, count in counts:
            line[min(code, n_coloured)] += count / tree.sizes[node]  # -1 is the last
        n_known = sum(count for code, count in counts if code >= 0)
        lines.append([
            (f"{shorten(classes.names[code], MAX_CLASS_LETTERS)} · {count / n_known:.0%}",
             PLAIN)
            for code, count in counts[:MAX_CLASSES_NAMED]
            if code >= 0 and count >= MIN_CLASS_SHARE * n_known
        ])  # fmt: skip
    names = [*map(shorten, classes.names[:n_coloured])]
    names += [""] * (n_coloured - len(names)) + ["other", NO_LABEL]
    legend = zip(names, BAR_COLOURS, shares[0].tolist(), strict=True)
    return shares, [(name, colour) for name, colour, share in legend if share], lines


def describe_node(taxonomy: Taxonomy, node: int) -> Lines:
    """Return the number of rows, what leads here and what the rule does."""
    lines = [(count_rows(taxonomy, node), INK)]
    for reason in taxonomy.reasons(node, N_TOP_FEATURES):
        colour = PLUS if reason.sign > 0 else MINUS
        lines.append((phrase(reason, MAX_LETTERS), colour))
    rule = describe_rule(taxonomy, node).removeprefix("its rule ").partition(" by ")[0]
    return [*lines, (shorten(rule), PLAIN)] if rule else lines


def check_lines(texts: Sequence[str], node: int) -> Lines:
    """Return lines that can be drawn, the first in black; TypeError if these are not lines."""
    if isinstance(texts, str):
        raise InputTypeError(f"must return lines, got {texts!r} for node {node}", "describe")
    return [(shorten(text), PLAIN if n else INK) for n, text in enumerate(texts)]


# The drawing


def plot_tree(
    taxonomy: object,
    *,
    max_depth: SupportsIndex | None = None,
    describe: Callable[[int], Sequence[str]] | None = None,
    classes: ArrayLike | None = None,
    orientation: Literal["down", "right"] = "down",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a tree as boxes, joined by branches, that say what is in each node and why.

    Once the tree was assessed, nodes that are not stable are pale and dashed.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The tree.
    max_depth : int, optional
        Show no deeper nodes. A dotted line marks a node that has some below; leaves are grey.
    describe : callable, optional
        Takes a node's id and returns the lines of its box, of which the first is a title; up
        to 28 characters of each are shown, literally. By default: the number of rows; what
        leads to the node, three features at most, blue where it has more of them and red where
        it has less; and the two largest classes.
    classes : array of shape (n_rows,), optional
        The class of each row, for a bar in each box: the eight largest classes in colours, any
        others and rows without a class in grey.
    orientation : {"down", "right"}
        Where the tree grows to: from a root on top, or from a root on the left.
    ax : Axes, optional
        Axes to draw on, in which all is drawn smaller where there is little room; by default
        those of a new figure, as large as the boxes need, but at most 100 inches.

    Returns
    -------
    Axes
        The axes. Boxes are its first patches, in the order of the nodes shown.

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, or for an argument, or what ``describe`` returns, not as above.

    Examples
    --------
    >>> from taxarbor.exchange import from_linkage
    >>> tree = from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> ax = plot_tree(tree, describe=lambda node: [f"node {node}", "costs $5"])
    >>> [text.get_text() for text in ax.texts[:2]]
    ['node 0', 'costs $5']
    >>> ax.figure.savefig("tree.png", dpi=3000 / ax.figure.get_figwidth())  # doctest: +SKIP
    """
    if orientation not in ("down", "right"):
        raise InputError(f"orientation must be 'down' or 'right', got {orientation!r}")
    taxonomy = taxonomy_of(taxonomy)
    tree = taxonomy.tree
    limit = tree.height if max_depth is None else operator.index(max_depth)
    if limit < 0:
        raise InputError(f"max_depth must be 0 or more, or None, got {limit}")
    nodes = np.flatnonzero(tree.depth <= limit)
    shares, legend, class_lines = count_classes(tree, nodes.tolist(), classes)
    lines = [
        describe_node(taxonomy, node) + of_classes
        if describe is None
        else check_lines(describe(node), node)
        for node, of_classes in zip(nodes.tolist(), class_lines, strict=True)
    ]
    is_unstable = np.zeros(len(nodes), dtype=bool)
    if taxonomy.stability is not None:
        is_unstable[1:] = ~taxonomy.stability.is_stable[nodes[1:]]
    legend += [("pale: not stable", GRID)] * bool(is_unstable.any())
    require_matplotlib("plot_tree")
    widths, heights = measure_boxes(lines, has_bars=shares.size > 0)
    layout = lay_out(tree, nodes, widths, heights, is_down=orientation == "down")
    if ax is None:
        _, foot = _measure_legend(legend, layout.size[0])
        ax = new_axes(layout.size[0], layout.size[1] + foot, layout="none")
    scale = _fit_axes(ax, layout, legend)
    _draw_branches(ax, layout, scale)
    _draw_boxes(ax, layout, scale, np.isin(nodes, tree.leaves), is_unstable)
    _draw_bars(ax, layout, shares)
    _write_lines(ax, layout, scale, lines, is_unstable)
    _draw_legend(ax, legend)
    return ax


def font(colour: str, scale: float = 1.0) -> "FontProperties":
    """Return the font of a line: titles, which are black, are bold."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(weight="bold" if colour == INK else "normal", size=scale * FONT_SIZE)


def width_of(text: str, colour: str = PLAIN) -> float:
    """Return the width of a line, whatever the figure is saved as."""
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, font(colour), False)[0])


def measure_boxes(lines: Sequence[Lines], *, has_bars: bool) -> tuple[Array, Array]:
    """Return the width and the height that each box needs."""
    least = MIN_BAR_WIDTH if has_bars else 0.0
    widths = [max([least, *(width_of(*line) for line in texts)]) for texts in lines]
    heights = np.array([LINE_HEIGHT * len(texts) for texts in lines])
    heights += has_bars * (BAR_HEIGHT + SPACE)
    return np.array(widths) + 2 * PAD, heights + 2 * PAD


def _fit_axes(ax: "Axes", layout: TreeLayout, legend: Lines) -> float:
    """Put a layout in the middle of axes, above a legend; return the scale of its fonts."""
    width, height = np.array(ax.bbox.size) / (ax.figure.dpi / POINTS_PER_INCH)
    foot = min(_measure_legend(legend, width)[1], height / 2)
    scale = min(1.0, width / layout.size[0], (height - foot) / layout.size[1])
    left = (layout.size[0] - width / scale) / 2
    bottom = (layout.size[1] - (height + foot) / scale) / 2
    ax.set_axis_off()
    ax.set_aspect("auto")
    ax.set(xlim=(left, left + width / scale), ylim=(bottom, bottom + height / scale))
    return float(scale)


def _draw_branches(ax: "Axes", layout: TreeLayout, scale: float) -> None:
    from matplotlib.collections import LineCollection

    look: dict[str, Any] = {"colors": BRANCH, "linewidths": LINE_WIDTH * scale}
    for lines, style in ((layout.branches, "solid"), (layout.stubs, DOTTED)):
        drawn = LineCollection([*lines], linestyles=style, zorder=1, **look)
        ax.add_collection(drawn, autolim=False)


def _draw_boxes(
    ax: "Axes", layout: TreeLayout, scale: float, is_leaf: Mask, is_unstable: Mask
) -> None:
    from matplotlib.patches import FancyBboxPatch

    looks = zip(layout.low, layout.high - layout.low, is_leaf, is_unstable, strict=True)
    for low, (width, height), leaf, unstable in looks:
        box = FancyBboxPatch(
            tuple(low), width, height, linewidth=scale, zorder=2, edgecolor=EDGE,
            boxstyle=f"round,pad=0,rounding_size={ROUNDING}",
            facecolor=LEAF_FACE if leaf else FACE,
            linestyle=DASHED if unstable else "solid",
        )  # fmt: skip
        ax.add_patch(box)


def _draw_bars(ax: "Axes", layout: TreeLayout, shares: Array) -> None:
    """Draw bars of classes at the feet of boxes, one class after the other."""
    left, bottom = layout.low.T + PAD
    widths = shares.T * (layout.high[:, 0] - layout.low[:, 0] - 2 * PAD)
    for colour, width in zip(BAR_COLOURS, widths, strict=False):
        some = width > 0.0
        ax.barh(
            bottom[some], width[some], BAR_HEIGHT, left[some], align="edge", color=colour,
            linewidth=0.0, zorder=3,
        )  # fmt: skip
        left = left + width


def _write_lines(
    ax: "Axes", layout: TreeLayout, scale: float, lines: Sequence[Lines], is_unstable: Mask
) -> None:
    """Write the lines of each box one below the other, from the middle of its top."""
    if scale * FONT_SIZE < MIN_FONT_SIZE:
        return
    look: dict[str, Any] = {"ha": "center", "va": "baseline", "zorder": 3, **LITERAL}
    middles, tops = (layout.low[:, 0] + layout.high[:, 0]) / 2, layout.high[:, 1]
    for texts, x, top, unstable in zip(lines, middles, tops, is_unstable, strict=True):
        look["alpha"] = UNSTABLE_ALPHA if unstable else 1.0
        for n, (text, colour) in enumerate(texts):
            y = top - PAD - FONT_SIZE - n * LINE_HEIGHT
            ax.text(x, y, text, color=colour, fontproperties=font(colour, scale), **look)


def _draw_legend(ax: "Axes", legend: Lines) -> None:
    """Draw a legend at the foot of the axes."""
    from matplotlib.patches import Patch

    if not legend:
        return
    # A name that begins with an underscore would be left out.
    handles = [
        Patch(facecolor=colour, label=" " * name.startswith("_") + name)
        for name, colour in legend
    ]
    width = ax.bbox.width / (ax.figure.dpi / POINTS_PER_INCH)
    drawn = ax.legend(
        handles=handles, loc="lower center", ncols=_measure_legend(legend, width)[0],
        frameon=False, prop=font(PLAIN), borderpad=0.0, borderaxespad=LEGEND_PAD / FONT_SIZE,
        handlelength=1.0, handleheight=1.0, handletextpad=0.5, columnspacing=1.6,
        labelspacing=LINE_HEIGHT / FONT_SIZE - 1.0, labelcolor=PLAIN,
    )  # fmt: skip
    for text in drawn.get_texts():
        text.set(**LITERAL)


def _measure_legend(legend: Lines, width: float) -> tuple[int, float]:
    """Return in how many columns a legend fits into a width, and its height."""
    if not legend:
        return 0, 0.0
    widest = max(width_of(name) for name, _ in legend) + LEGEND_HANDLE
    n_columns = max(1, min(len(legend), int(width // widest)))
    return n_columns, -(-len(legend) // n_columns) * LINE_HEIGHT + 2 * LEGEND_PAD


# Plots over the number of clusters


def plot_dendrogram(taxonomy: object, *, ax: "Axes | None" = None) -> "Axes":
    """Draw a tree as a dendrogram: the later a split was made, the closer to the leaves.

    Up to five branches have colours of their own. A line across the picture where the axis
    says 5 clusters meets the clusters of ``taxonomy.cut(5)``. A leaf has the name of its
    cluster, its number of rows and the feature that does most for it.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The tree, with at least two leaves, and less than many hundred levels.
    ax : Axes, optional
        Axes to draw on; those of a new figure by default. Texts of leaves are tick labels:
        ``layout="constrained"`` of a figure makes room for them.

    Returns
    -------
    Axes
        The axes. For other texts and styles, draw ``to_linkage(taxonomy)`` of
        :mod:`taxarbor.exchange` by :func:`scipy.cluster.hierarchy.dendrogram`.

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, or for an argument not as above.

    Examples
    --------
    >>> from taxarbor.exchange import from_linkage
    >>> ax = plot_dendrogram(from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]]))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['c0 · 1 row', 'c1 · 1 row', 'c2 · 1 row']
    """
    from scipy.cluster.hierarchy import dendrogram  # takes long

    taxonomy = taxonomy_of(taxonomy)
    tree, Z = taxonomy.tree, to_linkage(taxonomy)
    require_matplotlib("plot_dendrogram")
    steps = np.arange(tree.n_splits + 1)
    # A split replaces one cluster by its children, whose birth is its step.
    n_clusters = np.searchsorted(tree.birth, steps, side="right") - steps
    n_above = max(1, int(np.count_nonzero(n_clusters <= MAX_COLOURED)) - 1)
    options: Any = {"orientation": "left", "above_threshold_color": BRANCH, "no_labels": True}
    try:
        # Drawn once without axes: a tree that is too deep leaves no figure.
        dendrogram(Z, no_plot=True)
        if ax is None:
            height = LEAF_HEIGHT * tree.n_leaves + AXIS_HEIGHT
            ax = new_axes(WIDTH, height, layout="constrained")
        dendrogram(Z, ax=ax, color_threshold=tree.n_splits + 1 - n_above, **options)
    except RecursionError:
        problem = f"SciPy draws no tree of {tree.height} levels, or as many children"
        raise InputError(f"{problem}: draw fewer clusters, taxonomy.prune(100)") from None
    ax.set_ylim(10.0 * tree.n_leaves, 0.0)  # the first leaf on top; SciPy's are 10 apart
    ax.spines[:].set_visible(False)
    ax.spines["bottom"].set(visible=True, bounds=(0.5, tree.n_splits + 0.5), color=BRANCH)
    shown = steps[:: -(-len(steps) // MAX_TICKS)]
    ax.set_xticks(tree.n_splits - shown + 0.5, [f"{n:,}" for n in n_clusters[shown]])
    _label_axis(ax.xaxis, "clusters, if cut here")
    if tree.n_leaves <= MAX_NAMED:
        names = []
        for label, leaf in enumerate(tree.leaves.tolist()):
            reasons = [phrase(one, MAX_LETTERS) for one in taxonomy.reasons(leaf, 1)]
            names.append(" · ".join([f"c{label}", count_rows(taxonomy, leaf), *reasons]))
        ax.yaxis.tick_right()
        ax.tick_params("y", length=0.0)
        at = 10.0 * np.arange(tree.n_leaves) + 5.0
        ax.set_yticks(at, names, color=INK, fontsize=FONT_SIZE, **LITERAL)
    return ax


def _label_axis(axis: "Axis", label: str) -> None:
    axis.set_label_text(label, color=PLAIN, fontsize=FONT_SIZE)
    axis.set_tick_params("both", color=BRANCH, labelcolor=PLAIN, labelsize=FONT_SIZE)


def plot_stability(taxonomy: object, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the stability of each number of clusters, and the suggested number.

    A point is the share of refits that recover the least stable cluster of the cut, with a gap
    beside it; the suggestion is the last number at half of them or more.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        A tree that was assessed.
    ax : Axes, optional
        Axes to draw on; those of a new figure by default.

    Returns
    -------
    Axes
        The axes; its lines are the stability of these rows, that of rows without clusters, the
        limit and the suggestion. ``taxonomy.stability.curve`` has the numbers.

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, or for a tree that was not assessed.

    Examples
    --------
    >>> from taxarbor import Taxarbor, make_planted_tree
    >>> from taxarbor.stability import assess
    >>> X = make_planted_tree(200, depth=2).X
    >>> ax = plot_stability(assess(Taxarbor(6, random_state=0).fit(X), X, n_refits=5))
    >>> ax.get_legend().texts[-1].get_text()
    'suggested: 4'
    """
    stability = taxonomy_of(taxonomy).stability
    if stability is None:
        raise InputError("the tree was not assessed: pass stability.assess(model, X)")
    require_matplotlib("plot_stability")
    from matplotlib.ticker import MaxNLocator

    ax = ax or new_axes(*CURVE_SIZE, layout="constrained")
    curve = stability.curve
    thin: dict[str, Any] = {"linewidth": 0.8, "zorder": 1}
    ax.plot(*curve[:2], "-o", color=PLUS, markersize=3.5, label="these rows", zorder=3)
    ax.plot(*curve[::2], "-o", color=BRANCH, markersize=2.5, label="rows without clusters")
    ax.axhline(MIN_STABLE_SHARE, color=BRANCH, linestyle=":", **thin)
    label = f"suggested: {curve.suggested}"
    ax.axvline(curve.suggested, color=MINUS, linestyle="--", label=label, **thin)
    ax.set_ylim(-0.03, 1.05)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _label_axis(ax.xaxis, "number of clusters")
    _label_axis(ax.yaxis, "least stable cluster: share of refits")
    ax.grid(axis="y", color=GRID, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(BRANCH)
    ax.legend(frameon=False, fontsize=FONT_SIZE, labelcolor=PLAIN)
    return ax
