"""The stability of a tree that is cut into 1, 2, 3, ... clusters."""

from typing import TYPE_CHECKING, Any

from taxarbor._errors import InputError
from taxarbor.plot import _axes
from taxarbor.plot._axes import BRANCH, FONT_SIZE, MINUS, PLAIN, PLUS
from taxarbor.taxonomy.stability_result import MIN_STABLE_SHARE
from taxarbor.taxonomy.taxonomy import taxonomy_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 460.0, 300.0  # points of a new figure


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
        ax = _axes.new_axes(WIDTH, HEIGHT, layout="constrained")
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
