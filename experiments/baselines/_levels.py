"""Which features the splits of each level turn on."""

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy, LinearRule
from taxarbor.hierarchy._tree import hierarchy_of
from taxarbor.plot import _axes
from taxarbor.plot._axes import FACE, FONT_SIZE, PLAIN, PLUS, room_on, value, width_of
from taxarbor.plot._layout import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.text import Text

MATTERS = 0.01  # share of a level from which on a feature matters to it
CELL = 34.0, 14.0  # points of a new figure
BAR = 10.0, 110.0  # width and length of what explains the colours
RIGHT, TOLD = 76.0, "share of the level"  # points for it and its label
N_TICKS = 20


@value
class FeatureLevels:
    """The part that each feature has in the splits of each level.

    A split counts in its level by its rows. A feature's part in a split is the share of the
    separation that it adds (``Reason.share``, taken as positive) or, where the means of the
    nodes are not known, the length of its weights over the children. So each level adds up
    to 1, or to 0 if its rules use no features. A column of a table is one feature.
    """

    features: IndexArray  # (n_used,), columns by the first level to which they matter
    names: tuple[str, ...]
    matrix: Array  # (n_used, n_levels), the shares


def measure_levels(hierarchy: Any) -> FeatureLevels:
    """Return which features are used where; ValueError without rules that use any."""
    hierarchy = hierarchy_of(hierarchy)
    rules = [(node, rule) for node, rule in enumerate(hierarchy.rules) if rule is not None]
    if not rules:
        raise InputError("the tree has no rules, so no features that its splits turn on")
    names, encoding = hierarchy.feature_names, hierarchy.encoding
    owner = np.arange(rules[0][1].weights.shape[1]) if encoding is None else encoding.owner
    matrix = np.zeros((owner[-1] + 1, hierarchy.height))
    for node, rule in rules:
        part = np.bincount(owner, _parts(hierarchy, node, rule))
        matrix[:, hierarchy.depth[node]] += hierarchy.sizes[node] * part
    totals = matrix.sum(axis=0)
    if not totals.any():
        raise InputError("the rules of the tree use no features: all their weights are equal")
    matrix /= np.where(totals > 0.0, totals, 1.0)
    order = _order(matrix)
    if encoding is not None and encoding.n_features > len(encoding.columns):
        names = [column.label for column in encoding.columns]
    told = tuple(names[j] if names else f"x{j}" for j in order.tolist())
    return FeatureLevels(order, told, matrix[order])


def _parts(hierarchy: Hierarchy, node: int, rule: LinearRule) -> Array:
    """Return the part of each feature in one split."""
    parts = np.zeros(rule.weights.shape[1])
    children = hierarchy.children(node)
    # Of two children, what sends rows to the one keeps them from the other.
    for child in children if len(children) > 2 else children[:1]:
        for reason in hierarchy.reasons(child, n_top=None):
            parts[reason.feature] += hierarchy.sizes[child] * abs(reason.share)
    if not np.isfinite(parts).all():
        weights = rule.weights.astype(np.float64)
        parts = np.linalg.norm(weights - weights.mean(axis=0), axis=0)
    total = parts.sum()
    return parts / total if total > 0.0 else parts


def _order(matrix: Array) -> IndexArray:
    """Return the features used, by the first level to which they matter and their share in it.

    Those that matter nowhere come last, by their largest share.
    """
    used = np.flatnonzero(matrix.any(axis=1))
    shares = np.column_stack([matrix[used], matrix[used].max(axis=1)])
    matters = shares >= MATTERS
    matters[:, -1] = True
    first = matters.argmax(axis=1)
    return used[np.lexsort([-shares[np.arange(len(used)), first], first])]


@value
class LevelArtists:
    """What ``plot_feature_levels`` drew; see there."""

    axes: "Axes"
    levels: FeatureLevels
    mesh: "QuadMesh"
    texts: tuple["Text", ...]
    colorbar: "Colorbar"


def plot_feature_levels(
    hierarchy: Any, *, n_top: SupportsIndex = 30, ax: "Axes | None" = None
) -> LevelArtists:
    """Draw which features the splits of each level turn on, as a table in colours.

    A penalty that keeps features from being used again below makes it a staircase.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree. It must have rules.
    n_top : int
        How many features to show: those with the largest shares over all levels, by the first
        level to which they matter. A last line sums up all others.
    ax : Axes, optional
        What to draw on; a new figure by default.

    Returns
    -------
    LevelArtists
        What was drawn: ``axes``, ``levels`` (``levels.names`` and ``levels.matrix``, the shares
        of all features), ``mesh``, ``texts`` (percentages, where they fit) and ``colorbar``.

    Raises
    ------
    ImportError, TypeError, ValueError
        Without matplotlib, if there are no rules, or for an argument not as above.

    Examples
    --------
    >>> from experiments.baselines import plot_feature_levels
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> tree = Taxarbor(4, random_state=0).fit(animals.X / animals.X.max(axis=0)).hierarchy_
    >>> drawn = plot_feature_levels(tree, n_top=5)
    >>> drawn.levels.matrix.sum(axis=0).round(6).tolist()
    [1.0, 1.0, 1.0]
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    most = operator.index(n_top)
    if most < 1:
        raise InputError(f"n_top must be 1 or more, got {most}")
    levels = measure_levels(hierarchy)
    names, matrix = _summarise(levels, most)
    _axes.require_matplotlib("plot_feature_levels")
    if ax is None:
        left = max(width_of((name, "plain")) for name in names) + 14.0
        width = max(CELL[0] * matrix.shape[1], 3 * CELL[0])
        ax = _axes.new_axes((width, CELL[1] * len(names)), (left, 8.0, RIGHT, 40.0))
    mesh = _draw_mesh(ax, names, matrix)
    return LevelArtists(ax, levels, mesh, _write_shares(ax, matrix), _draw_bar(ax, mesh))


def _summarise(levels: FeatureLevels, most: int) -> tuple[list[str], Array]:
    """Return the names and shares of the most important features, and of all others."""
    totals = levels.matrix.sum(axis=1)
    is_shown = np.zeros(len(totals), dtype=bool)
    is_shown[np.argsort(-totals, kind="stable")[:most]] = True
    names = [shorten(name) for name, shown in zip(levels.names, is_shown, strict=True) if shown]
    matrix, n_others = levels.matrix[is_shown], int((~is_shown).sum())
    if n_others:
        names.append(f"and {n_others:,} more feature" + "s" * (n_others > 1))
        matrix = np.vstack([matrix, levels.matrix[~is_shown].sum(axis=0)])
    return names, matrix


def _draw_mesh(ax: "Axes", names: list[str], matrix: Array) -> "QuadMesh":
    from matplotlib.colors import LinearSegmentedColormap

    n_levels = matrix.shape[1]
    cell = np.array(room_on(ax)) / matrix.shape[::-1]
    mesh = ax.pcolormesh(
        matrix, cmap=LinearSegmentedColormap.from_list("shares", [FACE, PLUS]), vmin=0.0,
        vmax=float(matrix.max()), edgecolors=_axes.GRID,
        linewidth=min(0.5, 0.1 * float(cell.min())),
    )  # fmt: skip
    ax.set_aspect("auto")
    ax.set(xlim=(0, n_levels), ylim=(len(names), 0))
    look: dict[str, Any] = {"labelsize": FONT_SIZE, "labelcolor": _axes.INK, "length": 0.0}
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, **look)
    shown = np.unique(np.linspace(0, n_levels - 1, min(n_levels, N_TICKS)).round().astype(int))
    ax.set_xticks(shown + 0.5, [f"{level}" for level in shown])
    ax.set_yticks(np.arange(len(names)) + 0.5, names, **_axes.LITERAL)
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("depth of the node that is split", color=PLAIN, fontsize=FONT_SIZE)
    ax.spines[:].set_visible(False)
    return mesh


def _draw_bar(ax: "Axes", mesh: "QuadMesh") -> "Colorbar":
    """Draw what the colours mean on the right, outside: the axes given stay as they are."""
    from matplotlib.ticker import PercentFormatter

    width, height = room_on(ax)
    length = min(1.0, BAR[1] / height)
    inset = ax.inset_axes((1.0 + BAR[0] / width, 1.0 - length, BAR[0] / width, length))
    bar = ax.figure.colorbar(mesh, cax=inset, format=PercentFormatter(1.0, 0))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=FONT_SIZE, labelcolor=PLAIN, length=0.0)
    if length * height >= width_of((TOLD, "plain")):  # or else it would be cut off
        bar.set_label(TOLD, color=PLAIN, fontsize=FONT_SIZE)
    return bar


def _write_shares(ax: "Axes", matrix: Array) -> tuple["Text", ...]:
    """Write percentages where there is room for them."""
    width, height = np.array(room_on(ax)) / matrix.shape[::-1]
    if width < width_of(("100 ", "plain")) or height < _axes.LEADING * FONT_SIZE:
        return ()
    texts = []
    for n, level in np.argwhere(matrix >= MATTERS).tolist():
        share = float(matrix[n, level])
        written = _axes.write(
            ax, (level + 0.5, n + 0.5), f"{100.0 * share:.0f}", ha="center",
            va="center_baseline", fontproperties=_axes.font("plain"),
            color=FACE if share > 0.78 * float(matrix.max()) else _axes.INK,
        )  # fmt: skip
        texts.append(written)
    return tuple(texts)
