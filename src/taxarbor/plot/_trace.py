"""How the objective of each split fell, round by round."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, final

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import hierarchy_of
from taxarbor.plot._axes import new_axes, require_matplotlib
from taxarbor.plot._palette import BRANCH, FACE, MINUS, PLAIN, PLUS, Rgb, mix, rgb
from taxarbor.plot._text import FONT_SIZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.legend import Legend

SIZE, MARGINS = (400.0, 250.0), (52.0, 40.0, 12.0, 12.0)  # points of a new figure
LINE, ROOT_LINE, DOT, GRID = 1.2, 2.4, 12.0, "#e4e9ee"
N_NAMED = 5  # depths in the legend


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraceLines:
    """The objective of splits over their rounds, as shares of what it was at the start.

    Attributes
    ----------
    nodes : int array of shape (n_lines,)
        Ids of the nodes that were split.
    depth : int array of shape (n_lines,)
        Their depths.
    lines : tuple of float array of shape (n_rounds + 1, 2)
        Rounds and shares; the arrays are read-only.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> animals = load_animals()
    >>> tree = HMMC(4, random_state=0).fit(animals.X / animals.X.max(axis=0)).hierarchy_
    >>> traces = find_traces(tree)
    >>> len(traces.lines), traces.lines[0][0].tolist()
    (3, [0.0, 1.0])
    """

    nodes: IndexArray
    depth: IndexArray
    lines: tuple[Array, ...]

    def __post_init__(self) -> None:
        for array in (self.nodes, self.depth, *self.lines):
            array.setflags(write=False)

    def __repr__(self) -> str:
        return f"TraceLines(n_lines={len(self.lines)})"


def find_traces(hierarchy: Any, nodes: Iterable[SupportsIndex] | None = None) -> TraceLines:
    """Return the objective over rounds of some nodes.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.
    nodes : iterable of int, optional
        Ids of nodes. A leaf has a trace, too, if a split of it was tried. If not given: all
        nodes that were split and have a trace.

    Raises
    ------
    TypeError, IndexError
        If it has no tree, or that has no such nodes.
    ValueError
        If a node asked for has no trace, or none has.
    """
    hierarchy = hierarchy_of(hierarchy)
    told = [() if info is None else info.trace for info in hierarchy.info]
    if nodes is None:
        chosen = [n for n, trace in enumerate(told) if trace and not hierarchy.is_leaf(n)]
    else:
        chosen = [hierarchy.path(node)[-1] for node in nodes]
        without = [node for node in chosen if not told[node]]
        if without:
            raise ValueError(
                f"there is no trace of node {without[0]}: no split of it was sought"
            )
    if not chosen:
        raise ValueError(
            "there are no traces to show: only splits that a solver found in rounds have any"
        )
    return TraceLines(
        nodes=np.array(chosen),
        depth=hierarchy.depth[chosen],
        lines=tuple(_relative(told[node]) for node in chosen),
    )


def _relative(trace: tuple[float, ...]) -> Array:
    values = np.array(trace)
    # An objective never rises, and none is negative: what begins at 0 stays there.
    shares = values / values[0] if values[0] > 0.0 else np.ones(len(values))
    return np.column_stack([np.arange(len(values)), shares])


@final
@dataclass(frozen=True, slots=True, eq=False)
class TraceArtists:
    """What was drawn, to be changed or asked for its place.

    Attributes
    ----------
    axes : Axes
        What it was drawn on.
    traces : TraceLines
        What is shown.
    lines : LineCollection
        A line for each split, in reverse order, so that the root's lies on top.
    ends : PathCollection
        Where each of them ends.
    legend : Legend
        The colours of the depths.
    """

    axes: "Axes"
    traces: TraceLines
    lines: "LineCollection"
    ends: "PathCollection"
    legend: "Legend"


def plot_trace(
    hierarchy: Any,
    *,
    nodes: Iterable[SupportsIndex] | None = None,
    ax: "Axes | None" = None,
) -> TraceArtists:
    """Draw how the objective of each split fell, as a share of what it was at the start.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.
    nodes : iterable of int, optional
        Whose splits to show. If not given: all.
    ax : Axes, optional
        What to draw on. If not given, a new figure is made.

    Returns
    -------
    TraceArtists
        The axes and all that was drawn on them.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, IndexError, ValueError
        If there are no such nodes, or no traces of them: only splits that a solver found in
        rounds have any.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> animals = load_animals()
    >>> tree = HMMC(4, random_state=0).fit(animals.X / animals.X.max(axis=0)).hierarchy_
    >>> drawn = plot_trace(tree)
    >>> drawn.traces
    TraceLines(n_lines=3)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    traces = find_traces(hierarchy, nodes)
    require_matplotlib("plot_trace")
    from matplotlib.collections import LineCollection

    if ax is None:
        ax = new_axes(SIZE, MARGINS)
    backwards = traces.depth[::-1].tolist()
    colours = [_colour(depth, traces) for depth in backwards]
    lines = LineCollection(
        list(traces.lines[::-1]),
        colors=colours,
        linewidths=[ROOT_LINE if depth == 0 else LINE for depth in backwards],
        joinstyle="round",
        zorder=2,
    )
    ax.add_collection(lines, autolim=False)
    last = np.array([line[-1] for line in traces.lines[::-1]])
    ends = ax.scatter(last[:, 0], last[:, 1], c=colours, s=DOT, linewidths=0.0, zorder=3)
    _dress(ax, traces)
    return TraceArtists(ax, traces, lines, ends, _draw_legend(ax, traces))


def _colour(depth: int, traces: TraceLines) -> Rgb:
    """Return the root's colour, or one that is the lighter the deeper the node."""
    if depth == 0:
        return rgb(MINUS)
    deepest = int(traces.depth.max())
    return mix(PLUS, FACE, 1.0 - 0.75 * (depth - 1) / max(deepest - 1, 1))


def _dress(ax: "Axes", traces: TraceLines) -> None:
    """Set limits, scales and labels."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    values = np.concatenate(traces.lines)
    most, least = values[:, 0].max(), values[:, 1].min()
    ax.set_xlim(-0.02 * max(most, 1.0), 1.04 * max(most, 1.0))
    if least > 0.0:  # a logarithm shows late rounds too
        ax.set(yscale="log", ylim=(least**1.06 / 1.05, 1.1))
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_minor_formatter(NullFormatter())
    else:
        ax.set_ylim(-0.02, 1.05)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("round", color=PLAIN, fontsize=FONT_SIZE)
    ax.set_ylabel("objective / objective at the start", color=PLAIN, fontsize=FONT_SIZE)
    ax.tick_params(which="both", color=BRANCH, labelcolor=PLAIN, labelsize=FONT_SIZE)
    ax.grid(axis="y", color=GRID, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(BRANCH)


def _draw_legend(ax: "Axes", traces: TraceLines) -> "Legend":
    """Name the colours of a few depths."""
    from matplotlib.lines import Line2D

    depths, counts = np.unique(traces.depth, return_counts=True)
    shown = np.unique(np.linspace(0, len(depths) - 1, N_NAMED + 1).round().astype(int))
    handles = [
        Line2D(
            [], [], color=_colour(depth, traces), linewidth=LINE if depth else ROOT_LINE,
            label=f"depth {depth}, {count:,} split" + "s" * (count > 1) if depth else "root",
        )
        for depth, count in zip(depths[shown].tolist(), counts[shown].tolist(), strict=True)
    ]  # fmt: skip
    return ax.legend(
        handles=handles, loc="upper right", frameon=False, fontsize=FONT_SIZE, labelcolor=PLAIN
    )
