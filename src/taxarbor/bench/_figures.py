"""The figures, as PNG and SVG."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxarbor.bench._methods import METHODS
from taxarbor.bench._published import STAND_INS
from taxarbor.bench._select import Mean
from taxarbor.bench._sweep import Panel
from taxarbor.bench._tree import LAYERS, ChosenTree, describe_nodes
from taxarbor.plot import plot_tree

if TYPE_CHECKING:
    import pandas as pd

STYLES = {
    "KM": ("#8d99ae", "o", ":"),
    "SC": ("#8d99ae", "s", ":"),
    "MMC": ("#8d99ae", "^", ":"),
    "HKM": ("#e09f3e", "o", "--"),
    "HSC": ("#5a9367", "o", "--"),
    "HKM-D": ("#e09f3e", "s", "-"),
    "HSC-D": ("#5a9367", "s", "-"),
    "HMMC": ("#9b2226", "D", "-"),
    "HMMC-G": ("#ca6702", "D", "-"),
    "HMMC-E": ("#005f73", "D", "-"),
    "HMMC-1": ("#94a1b2", "D", "-"),
}
FAMILY_COLOURS = {
    "flat": "#8d99ae",
    "bottom-up": "#005f73",
    "top-down": "#e09f3e",
    "ours": "#9b2226",
}
SUFFIXES = ("png", "svg")


def draw_sweep(panels: Sequence[Panel], measure: str, stem: Path) -> None:
    """Draw the panels, those over clusters above those over children."""
    n_columns = len(panels) // 2
    with _figure(stem, 2, n_columns, (3.6 * n_columns + 1.2, 6.4)) as (figure, axes):
        for panel, ax in zip(panels, axes.flat, strict=True):
            _draw_panel(panel, ax)
        for ax in axes[:, 0]:
            ax.set_ylabel(f"{measure}, %")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=2 * n_columns, frameon=False
        )


def draw_sparsity(shares: Mapping[str, Mapping[str, Mean]], stem: Path) -> None:
    """Draw a bar per variant, grouped by data set."""
    with _figure(stem, 1, 1, (2.0 * len(shares) + 1.6, 3.4)) as (figure, axes):
        ax = axes[0, 0]
        variants = list(next(iter(shares.values())))
        width = 0.8 / len(variants)
        for n, name in enumerate(variants):
            means = [100.0 * one[name].mean for one in shares.values()]
            spreads = [100.0 * one[name].spread for one in shares.values()]
            places = np.arange(len(shares)) + (n - (len(variants) - 1) / 2) * width
            colour = STYLES[name][0]
            ax.bar(places, means, 0.92 * width, yerr=spreads, color=colour, label=name)
        names = [_short(name) for name in shares]
        ax.set_xticks(np.arange(len(shares)), names, parse_math=False)
        ax.set_ylabel("zero weights, %")
        ax.set_ylim(0, 100)
        figure.legend(loc="outside lower center", ncols=len(variants), frameon=False)


def draw_heights(tables: Mapping[str, "pd.DataFrame"], stem: Path) -> None:
    """Draw SP of every tree of the table against that of the same tree with shuffled rows."""
    with _figure(stem, 1, len(tables), (3.6 * len(tables) + 0.6, 3.9)) as (figure, axes):
        for (dataset, here), ax in zip(tables.items(), axes[0], strict=True):
            for family, colour in FAMILY_COLOURS.items():
                members = [name for name, one in METHODS.items() if one.family == family]
                mine = here[here["method"].isin(members)]
                x, y = 100 * mine["chance_shortest_path"], 100 * mine["shortest_path"]
                ax.plot(x, y, ".", color=colour, alpha=0.5, ms=5, label=family)
            ends = [100 * here["chance_shortest_path"].min(), 100 * here["shortest_path"].max()]
            ax.plot(ends, ends, color="#444444", lw=0.8, zorder=0)
            ax.set_title(_short(dataset), fontsize=10, parse_math=False)
            ax.set_xlabel("SP with shuffled rows, %")
        axes[0, 0].set_ylabel("SP, %")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=min(2 * len(tables), 4),
            frameon=False,
        )


def draw_tree(chosen: ChosenTree, stem: Path) -> None:
    """Draw the first layers of a tree."""
    from matplotlib import pyplot as plt

    drawn = plot_tree(
        chosen.tree, max_depth=LAYERS - 1, describe=describe_nodes(chosen), orientation="down"
    )
    figure: Any = drawn.axes.figure
    drawn.axes.set_title(chosen.told, fontsize=11, loc="left", parse_math=False)
    _save(figure, stem)
    plt.close(figure)


def _draw_panel(panel: Panel, ax: Any) -> None:
    places = np.arange(len(panel.ticks))
    for name, means in panel.lines.items():
        colour, marker, dash = STYLES[name]
        values = [100.0 * one.mean for one in means]
        ax.plot(places, values, color=colour, marker=marker, ls=dash, ms=4, lw=1.4, label=name)
    ax.set_xticks(places, panel.ticks)
    ax.set_xlabel("clusters / classes" if panel.axis == "F" else "children per split")
    ax.set_title(_short(panel.dataset), fontsize=10, parse_math=False)
    ax.grid(axis="y", color="#e5e5e5", lw=0.6)


def _short(dataset: str) -> str:
    return STAND_INS.get(dataset, dataset)


@contextmanager
def _figure(
    stem: Path, n_rows: int, n_columns: int, size: tuple[float, float]
) -> Iterator[tuple[Any, Any]]:
    """Give axes to draw on, then write the figure and let go of it."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=size, squeeze=False, layout="constrained"
    )
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    try:
        yield figure, axes
        _save(figure, stem)
    finally:
        plt.close(figure)


def _save(figure: Any, stem: Path) -> None:
    import matplotlib as mpl

    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix in SUFFIXES:
        # Without a date or random names, so that the same results make the same files.
        metadata = {"Date": None} if suffix == "svg" else {}
        with mpl.rc_context({"svg.hashsalt": stem.name}):
            figure.savefig(
                stem.with_suffix(f".{suffix}"),
                dpi=130,
                facecolor="white",
                bbox_inches="tight",
                metadata=metadata,
            )
