"""How the objective of each split fell, round by round."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._tree import hierarchy_of
from taxarbor.plot import _axes
from taxarbor.plot._axes import BRANCH, FONT_SIZE, PLAIN, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.legend import Legend

SIZE, MARGINS = (400.0, 250.0), (52.0, 40.0, 12.0, 12.0)  # points of a new figure
LINE, ROOT_LINE, DOT = 1.2, 2.4, 12.0
N_NAMED = 5  # depths in the legend, beside the root


@value
class TraceLines:
    """The objective of splits over their rounds, as shares of what it was at the start."""

    nodes: IndexArray  # (n_lines,), ids of the nodes that were split
    depth: IndexArray  # (n_lines,)
    lines: tuple[Array, ...]  # (n_rounds + 1, 2) each: rounds and shares


def find_traces(hierarchy: Any, nodes: Iterable[SupportsIndex] | None = None) -> TraceLines:
    """Return the objective over rounds of some nodes, as ``plot_trace`` takes them."""
    hierarchy = hierarchy_of(hierarchy)
    told = [() if info is None else info.trace for info in hierarchy.info]
    if nodes is None:
        chosen = [n for n, trace in enumerate(told) if trace and not hierarchy.is_leaf(n)]
    else:
        chosen = [hierarchy.path(node)[-1] for node in nodes]
        without = [node for node in chosen if not told[node]]
        if without:
            why = "no split of it was sought"
            raise InputError(f"there is no trace of node {without[0]}: {why}")
    if not chosen:
        raise InputError(
            "there are no traces to show: only splits that a solver found in rounds have any"
        )
    lines = []
    for node in chosen:
        values = np.array(told[node])
        # An objective never rises, and none is negative: what begins at 0 stays there.
        shares = values / values[0] if values[0] > 0.0 else np.ones(len(values))
        lines.append(np.column_stack([np.arange(len(values)), shares]))
    return TraceLines(np.array(chosen), hierarchy.depth[chosen], tuple(lines))


@value
class TraceArtists:
    """What ``plot_trace`` drew; see there."""

    axes: "Axes"
    traces: TraceLines
    lines: "LineCollection"
    ends: "PathCollection"
    legend: "Legend"


def plot_trace(
    hierarchy: Any, *, nodes: Iterable[SupportsIndex] | None = None, ax: "Axes | None" = None
) -> TraceArtists:
    """Draw how the objective of each split fell, as a share of what it was at the start.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.
    nodes : iterable of int, optional
        Ids of nodes. A leaf has a trace, too, if a split of it was tried. By default: all nodes
        that were split and have a trace.
    ax : Axes, optional
        What to draw on; a new figure by default.

    Returns
    -------
    TraceArtists
        What was drawn: ``axes``, ``traces`` (``traces.nodes``, the ids, and ``traces.lines``,
        rounds and shares), ``lines`` and ``ends`` (where they end), both in reverse order, so
        that the root is on top, and ``legend`` (the colours of the depths).

    Raises
    ------
    ImportError, TypeError, IndexError, ValueError
        Without matplotlib, or for nodes that do not exist or have no trace: only splits that a
        solver found in rounds have one.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> animals = load_animals()
    >>> model = HMMC(4, random_state=0)
    >>> drawn = plot_trace(model.fit(animals.X / animals.X.max(axis=0)).hierarchy_)
    >>> len(drawn.traces.lines), drawn.traces.lines[0][0].tolist()
    (3, [0.0, 1.0])
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    traces = find_traces(hierarchy, nodes)
    _axes.require_matplotlib("plot_trace")
    from matplotlib.collections import LineCollection

    if ax is None:
        ax = _axes.new_axes(SIZE, MARGINS)
    backwards = traces.depth[::-1].tolist()
    colours, widths = zip(*(_look(depth, traces) for depth in backwards), strict=True)
    lines = LineCollection(
        list(traces.lines[::-1]), colors=colours, linewidths=widths, joinstyle="round", zorder=2
    )
    ax.add_collection(lines, autolim=False)
    last = np.array([line[-1] for line in traces.lines[::-1]])
    ends = ax.scatter(last[:, 0], last[:, 1], c=colours, s=DOT, linewidths=0.0, zorder=3)
    _dress(ax, traces)
    return TraceArtists(ax, traces, lines, ends, _draw_legend(ax, traces))


def _look(depth: int, traces: TraceLines) -> tuple[Any, float]:
    """Return the colour and the width of a line: the root's, or the lighter the deeper."""
    if depth == 0:
        return _axes.rgb(_axes.MINUS), ROOT_LINE
    share = 1.0 - 0.75 * (depth - 1) / max(int(traces.depth.max()) - 1, 1)
    return _axes.mix(_axes.PLUS, _axes.FACE, share), LINE


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
    ax.grid(axis="y", color=_axes.GRID, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(BRANCH)


def _draw_legend(ax: "Axes", traces: TraceLines) -> "Legend":
    """Name the colours of a few depths."""
    from matplotlib.lines import Line2D

    depths, counts = np.unique(traces.depth, return_counts=True)
    shown = np.unique(np.linspace(0, len(depths) - 1, N_NAMED + 1).round().astype(int))
    handles = []
    for depth, count in zip(depths[shown].tolist(), counts[shown].tolist(), strict=True):
        colour, width = _look(depth, traces)
        label = f"depth {depth}, {count:,} split" + "s" * (count > 1) if depth else "root"
        handles.append(Line2D([], [], color=colour, linewidth=width, label=label))
    return ax.legend(
        handles=handles, loc="upper right", frameon=False, fontsize=FONT_SIZE, labelcolor=PLAIN
    )
