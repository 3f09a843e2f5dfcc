"""Plots over the number of clusters: dendrograms, drawn by SciPy, and the stability of cuts."""

from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor._errors import InputError
from taxarbor.exchange import to_linkage
from taxarbor.plot import _axes
from taxarbor.plot._axes import BRANCH, FONT_SIZE, INK, LITERAL, MINUS, PLAIN, PLUS
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._text import count_rows
from taxarbor.taxonomy.stability_result import MIN_STABLE_SHARE
from taxarbor.taxonomy.taxonomy import taxonomy_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, LEAF_HEIGHT, AXIS_HEIGHT = 480.0, 15.0, 40.0  # of a new figure with a dendrogram
CURVE_SIZE = 460.0, 300.0  # of one with a curve
MAX_COLOURED = 5  # branches
MAX_NAMED = 200  # leaves; of more, none has a text
MAX_TICKS = 15


def plot_dendrogram(taxonomy: object, *, ax: "Axes | None" = None) -> "Axes":
    """Draw a tree as a dendrogram: the later a split was made, the closer to the leaves.

    Up to five branches have colours of their own. A line across the picture where the axis
    says 5 clusters meets the clusters of ``taxonomy.cut(5)``. A leaf has the name of its
    cluster, its number of rows and the feature that does most for it.

    Parameters
    ----------
    taxonomy : Taxonomy or fitted estimator
        The tree, with at least two leaves.
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
        Without matplotlib, if the root was not split or the tree is many hundred levels deep,
        or for an argument not as above.

    Examples
    --------
    >>> from taxarbor.exchange import from_linkage
    >>> ax = plot_dendrogram(from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]]))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['c0 · 1 row', 'c1 · 1 row', 'c2 · 1 row']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(ax.figure)
    """
    from scipy.cluster.hierarchy import dendrogram  # takes long

    taxonomy = taxonomy_of(taxonomy)
    tree, Z = taxonomy.tree, to_linkage(taxonomy)
    _axes.require_matplotlib("plot_dendrogram")
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
            ax = _axes.new_axes(WIDTH, height, layout="constrained")
        dendrogram(Z, ax=ax, color_threshold=tree.n_splits + 1 - n_above, **options)
    except RecursionError:
        raise InputError(
            f"SciPy draws no dendrogram that is so deep, {tree.height} splits above a leaf, or "
            "with so many children of one node: draw fewer clusters, taxonomy.prune(100)"
        ) from None
    ax.set_ylim(10.0 * tree.n_leaves, 0.0)  # the first leaf on top; SciPy's are 10 apart
    ax.spines[:].set_visible(False)
    side = ax.spines["bottom"]
    side.set(visible=True, bounds=(0.5, tree.n_splits + 0.5), color=BRANCH)
    shown = steps[:: -(-len(steps) // MAX_TICKS)]
    ax.set_xticks(tree.n_splits - shown + 0.5, [f"{n:,}" for n in n_clusters[shown]])
    ax.tick_params("x", color=BRANCH, labelcolor=PLAIN, labelsize=FONT_SIZE)
    ax.set_xlabel("clusters, if cut here", color=PLAIN, fontsize=FONT_SIZE)
    if tree.n_leaves <= MAX_NAMED:
        names = [_describe_leaf(taxonomy, leaf) for leaf in tree.leaves.tolist()]
        ax.yaxis.tick_right()
        ax.tick_params("y", length=0.0)
        at = 10.0 * np.arange(tree.n_leaves) + 5.0
        look: dict[str, Any] = {"color": INK, "fontsize": FONT_SIZE, **LITERAL}
        ax.set_yticks(at, names, **look)
    return ax


def _describe_leaf(taxonomy: Taxonomy, leaf: int) -> str:
    label = int(np.flatnonzero(taxonomy.tree.leaves == leaf)[0])
    reasons = [phrase(one, _axes.MAX_LETTERS) for one in taxonomy.reasons(leaf, 1)]
    return " · ".join([f"c{label}", count_rows(taxonomy, leaf), *reasons])


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
    >>> import matplotlib.pyplot as plt
    >>> plt.close(ax.figure)
    """
    stability = taxonomy_of(taxonomy).stability
    if stability is None:
        raise InputError(
            "the tree was not assessed yet; pass taxarbor.stability.assess(model, X)"
        )
    _axes.require_matplotlib("plot_stability")
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        ax = _axes.new_axes(*CURVE_SIZE, layout="constrained")
    curve = stability.curve
    thin: dict[str, Any] = {"linewidth": 0.8, "zorder": 1}
    ax.plot(*curve[:2], "-o", color=PLUS, markersize=3.5, label="these rows", zorder=3)
    ax.plot(*curve[::2], "-o", color=BRANCH, markersize=2.5, label="rows without clusters")
    ax.axhline(MIN_STABLE_SHARE, color=BRANCH, linestyle=":", **thin)
    label = f"suggested: {curve.suggested}"
    ax.axvline(curve.suggested, color=MINUS, linestyle="--", label=label, **thin)
    ax.set_ylim(-0.03, 1.05)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("number of clusters", color=PLAIN, fontsize=FONT_SIZE)
    ax.set_ylabel("least stable cluster: share of refits", color=PLAIN, fontsize=FONT_SIZE)
    ax.tick_params(which="both", color=BRANCH, labelcolor=PLAIN, labelsize=FONT_SIZE)
    ax.grid(axis="y", color=_axes.GRID, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(BRANCH)
    ax.legend(frameon=False, fontsize=FONT_SIZE, labelcolor=PLAIN)
    return ax
