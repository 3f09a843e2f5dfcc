"""Which features the splits of each level use."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taxarbor import LinearRule, Taxonomy
from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.text import Text

MIN_SHARE = 0.01
"""Share of a level from which on a feature matters to it."""
MAX_LETTERS = 28
CELL = 0.5, 0.2
"""Width and height of a cell of a new figure, in inches."""


@dataclass(frozen=True, slots=True, eq=False)
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


def measure_levels(taxonomy: Taxonomy) -> FeatureLevels:
    """Return which features are used where; InputError without rules that use any."""
    tree, columns = taxonomy.tree, taxonomy.columns
    rules = [(node, rule) for node, rule in enumerate(tree.rules) if rule is not None]
    if not rules:
        raise InputError("the tree has no rules, so its splits use no features")
    matrix = np.zeros((len(columns), tree.height))
    for node, rule in rules:
        parts = np.bincount(columns.owner, _measure_parts(taxonomy, node, rule))
        matrix[:, tree.depth[node]] += tree.sizes[node] * parts
    totals = matrix.sum(axis=0)
    if not totals.any():
        raise InputError("the rules of the tree use no features: all their weights are equal")
    matrix /= np.where(totals > 0.0, totals, 1.0)
    order = _order_features(matrix)
    names = tuple(columns[place].label for place in order.tolist())
    return FeatureLevels(order, names, matrix[order])


def _measure_parts(taxonomy: Taxonomy, node: int, rule: LinearRule) -> Array:
    """Return the part of each feature in one split."""
    parts = np.zeros(rule.weights.shape[1])
    children = taxonomy.tree.children(node)
    # With two children, what sends rows to the first keeps them from the second.
    for child in children if len(children) > 2 else children[:1]:
        for reason in taxonomy.reasons(child, n_top=None):
            parts[reason.feature] += taxonomy.tree.sizes[child] * abs(reason.share)
    if not np.isfinite(parts).all():
        weights = rule.weights.astype(np.float64)
        parts = np.linalg.norm(weights - weights.mean(axis=0), axis=0)
    total = parts.sum()
    return parts / total if total > 0.0 else parts


def _order_features(matrix: Array) -> IndexArray:
    """Return the features used, by the first level to which they matter and their share in it.

    Those that matter nowhere come last, by their largest share.
    """
    used = np.flatnonzero(matrix.any(axis=1))
    shares = np.column_stack([matrix[used], matrix[used].max(axis=1)])
    matters = shares >= MIN_SHARE
    matters[:, -1] = True
    first = matters.argmax(axis=1)
    return used[np.lexsort([-shares[np.arange(len(used)), first], first])]


@dataclass(frozen=True, slots=True, eq=False)
class LevelArtists:
    """What ``plot_feature_levels`` drew; see there."""

    axes: "Axes"
    levels: FeatureLevels
    mesh: "QuadMesh"
    texts: tuple["Text", ...]


def plot_feature_levels(
    taxonomy: Taxonomy, *, n_top: int = 30, ax: "Axes | None" = None
) -> LevelArtists:
    """Draw which features the splits of each level use, as a table in colours.

    A penalty that keeps features from being used again below makes it a staircase.

    Parameters
    ----------
    taxonomy : Taxonomy
        It must have rules.
    n_top : int
        How many features to show: those with the largest shares over all levels, by the first
        level to which they matter. A last line sums up all others.
    ax : Axes, optional
        What to draw on; a new figure by default.

    Returns
    -------
    LevelArtists
        What was drawn: ``axes``, ``levels`` (``levels.names`` and ``levels.matrix``, the shares
        of all features), ``mesh`` and ``texts`` (percentages).

    Examples
    --------
    >>> from experiments.baselines import plot_feature_levels
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> taxonomy = Taxarbor(4, random_state=0).fit(animals.X / animals.X.max(axis=0)).taxonomy_
    >>> drawn = plot_feature_levels(taxonomy, n_top=5)
    >>> drawn.levels.matrix.sum(axis=0).round(6).tolist()
    [1.0, 1.0, 1.0]
    >>> import matplotlib.pyplot as plt
    >>> plt.close(drawn.axes.figure)
    """
    from matplotlib import pyplot as plt

    if n_top < 1:
        raise InputError(f"n_top must be at least 1, got {n_top}")
    levels = measure_levels(taxonomy)
    names, matrix = _summarize(levels, n_top)
    n_levels = matrix.shape[1]
    if ax is None:
        size = 4.0 + CELL[0] * n_levels, 1.0 + CELL[1] * len(names)
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    mesh = ax.pcolormesh(matrix, cmap="Blues", vmin=0.0, vmax=1.25 * float(matrix.max()))
    ax.set(xlim=(0, n_levels), ylim=(len(names), 0))
    ax.set_xticks(np.arange(n_levels) + 0.5, [str(level) for level in range(n_levels)])
    ax.set_yticks(np.arange(len(names)) + 0.5, names, parse_math=False)
    ax.set_xlabel("depth of the node that is split")
    texts = [
        ax.text(level + 0.5, n + 0.5, f"{100 * matrix[n, level]:.0f}", ha="center", va="center")
        for n, level in np.argwhere(matrix >= MIN_SHARE).tolist()
    ]
    return LevelArtists(ax, levels, mesh, tuple(texts))


def _summarize(levels: FeatureLevels, n_top: int) -> tuple[list[str], Array]:
    """Return the names and shares of the most important features, and of all others."""
    totals = levels.matrix.sum(axis=1)
    is_shown = np.zeros(len(totals), dtype=bool)
    is_shown[np.argsort(-totals, kind="stable")[:n_top]] = True
    shown = [" ".join(levels.names[n].split()) for n in np.flatnonzero(is_shown)]
    names = [
        name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…" for name in shown
    ]
    matrix, n_others = levels.matrix[is_shown], int((~is_shown).sum())
    if n_others:
        names.append(f"and {n_others:,} more feature" + "s" * (n_others > 1))
        matrix = np.vstack([matrix, levels.matrix[~is_shown].sum(axis=0)])
    return names, matrix
