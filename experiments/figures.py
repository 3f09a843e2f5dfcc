"""The paper's figures, and one of what SP rewards: their numbers, then the pictures.

The same results make the same files.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.data import STAND_INS, Dataset
from experiments.methods import METHODS, STRENGTHS, Job, fit, write_settings
from experiments.plan import (
    BRANCHINGS,
    MULTIPLES,
    SPARSE,
    SWEEP_SEEDS,
    SWEPT,
    Setup,
    full_strength,
    sweep_shapes,
)
from experiments.tables import Mean, choose, of_table, percent, summarise, table
from taxarbor import Taxonomy
from taxarbor.plot import plot_tree

LAYERS = 4
TOP = 3
"""Layers of the tree that are shown, and classes and features of a node."""

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


class Panel(NamedTuple):
    """One panel: a data set, what varies, and for each method the means where it was run."""

    dataset: str
    axis: str
    ticks: tuple[str, ...]
    lines: dict[str, list[Mean]]


def sweep_panels(jobs: pd.DataFrame, setup: Setup, measure: str) -> list[Panel]:
    """Return the panels of Figure 2: over clusters for each data set, then over children."""
    jobs = jobs[jobs["seed"] < SWEEP_SEEDS]
    names = setup.stand_ins()
    return [
        _panel(jobs, setup, measure, name, children=over)
        for over in (False, True)
        for name in names
    ]


def _panel(
    jobs: pd.DataFrame, setup: Setup, measure: str, dataset: str, *, children: bool
) -> Panel:
    n, lines = len(MULTIPLES), {}
    for name in SWEPT:
        if not children or METHODS[name].branches:
            shapes = sweep_shapes(METHODS[name], setup.n_classes(dataset))
            swept = [shapes[0], *shapes[n:]] if children else shapes[:n]
            lines[name] = [_mean(jobs, dataset, name, shape, measure) for shape in swept]
    if children:
        return Panel(dataset, "K", tuple(map(str, BRANCHINGS)), lines)
    return Panel(dataset, "F", tuple(f"{multiple:g} x" for multiple in MULTIPLES), lines)


def _mean(
    jobs: pd.DataFrame, dataset: str, method: str, shape: tuple[int, int], measure: str
) -> Mean:
    here = jobs[
        (jobs["dataset"] == dataset)
        & (jobs["n_clusters"] == shape[0])
        & (jobs["branching"] == shape[1])
    ]
    return summarise(choose(here, method, "best", measure), measure)


def zero_shares(jobs: pd.DataFrame, setup: Setup) -> dict[str, dict[str, Mean]]:
    """Return Figure 3: the share of zero weights by data set and variant, strengths at 1."""
    shares: dict[str, dict[str, Mean]] = {}
    for dataset in setup.stand_ins():
        here = of_table(jobs, setup, dataset)
        for name in SPARSE:
            settings = write_settings(full_strength(METHODS[name]))
            fits = here[(here["method"] == name) & (here["settings"] == settings)]
            shares.setdefault(dataset, {})[name] = summarise(fits, "zero_weights")
    return shares


def describe_sparsity(shares: Mapping[str, Mapping[str, Mean]]) -> str:
    """Return the same as a Markdown table."""
    lines = [[name, *(percent(one[name]) for one in shares.values())] for name in SPARSE]
    return table(["zero weights, %", *shares], lines)


class ChosenTree(NamedTuple):
    """A tree to draw, the rows that it divides, and a title."""

    taxonomy: Taxonomy
    data: Dataset
    title: str


def grow_tree(jobs: pd.DataFrame, setup: Setup) -> ChosenTree | None:
    """Grow again the tree of seed 0 whose settings were best by SP; None if there is none."""
    dataset = setup.tree_dataset()
    data, here = setup.open(dataset), of_table(jobs, setup, dataset)
    best = choose(here[here["seed"] == 0], "HMMC", "best", "shortest_path")
    if not len(best):
        return None
    job = Job(*(best.iloc[0][field] for field in Job._fields))
    settings = json.loads(job.settings)
    strengths = ", ".join(f"{key}={settings[key]:g}" for key in STRENGTHS)
    return ChosenTree(fit(job, data), data, f"HMMC on {dataset}, {strengths}")


def describe_nodes(chosen: ChosenTree) -> Callable[[int], list[str]]:
    """Return what to write in each node: its size, its largest classes, its features.

    The features are those of the node's own split, by the length of their weights over the
    children, as in the paper; a leaf has none.
    """
    tree, data = chosen.taxonomy.tree, chosen.data
    names = data.feature_names or tuple(f"x{n}" for n in range(data.X.shape[1]))

    def describe(node: int) -> list[str]:
        rows = tree.rows(node)
        classes, counts = np.unique(data.y[rows], return_counts=True)
        largest = np.argsort(-counts, kind="stable")[:TOP]
        lines = [f"{len(rows):,} rows"]
        lines += [f"{classes[n]}  {counts[n]:,}" for n in largest]
        rule = tree.rules[node]
        if rule is not None:
            lengths = np.linalg.norm(rule.weights, axis=0)
            decisive = np.argsort(-lengths, kind="stable")[:TOP]
            lines += [names[p] for p in decisive if lengths[p] > 0.0]
        return lines

    return describe


def draw_sweep(panels: Sequence[Panel], measure: str, stem: Path) -> None:
    """Draw the panels, those over clusters above those over children."""
    n_columns = len(panels) // 2
    with _figure(stem, 2, n_columns, (3.6 * n_columns + 1.2, 6.4)) as (figure, axes):
        for panel, ax in zip(panels, axes.flat, strict=True):
            places = np.arange(len(panel.ticks))
            for name, means in panel.lines.items():
                colour, marker, dash = STYLES[name]
                values = [100.0 * one.mean for one in means]
                look = {"color": colour, "marker": marker, "ls": dash, "ms": 4, "lw": 1.4}
                ax.plot(places, values, label=name, **look)
            ax.set_xticks(places, panel.ticks)
            ax.set_xlabel("clusters / classes" if panel.axis == "F" else "children per split")
            ax.set_title(_short(panel.dataset), fontsize=10, parse_math=False)
            ax.grid(axis="y", color="#e5e5e5", lw=0.6)
        for ax in axes[:, 0]:
            ax.set_ylabel(f"{measure}, %")
        _legend(figure, axes[0, 0], 2 * n_columns)


def draw_heights(tables: Mapping[str, pd.DataFrame], stem: Path) -> None:
    """Draw SP of every tree of the table against that of the same tree with shuffled rows."""
    with _figure(stem, 1, len(tables), (3.6 * len(tables) + 0.6, 3.9)) as (figure, axes):
        for (dataset, here), ax in zip(tables.items(), axes[0], strict=True):
            for family, colour in FAMILY_COLOURS.items():
                members = [name for name, one in METHODS.items() if one.family == family]
                fits = here[here["method"].isin(members)]
                x, y = 100 * fits["chance_shortest_path"], 100 * fits["shortest_path"]
                ax.plot(x, y, ".", color=colour, alpha=0.5, ms=5, label=family)
            ends = [100 * here["chance_shortest_path"].min(), 100 * here["shortest_path"].max()]
            ax.plot(ends, ends, color="#444444", lw=0.8, zorder=0)
            ax.set_title(_short(dataset), fontsize=10, parse_math=False)
            ax.set_xlabel("SP with shuffled rows, %")
        axes[0, 0].set_ylabel("SP, %")
        _legend(figure, axes[0, 0], min(2 * len(tables), 4))


def draw_tree(chosen: ChosenTree, stem: Path) -> None:
    """Draw the first layers of a tree."""
    from matplotlib import pyplot as plt

    ax = plot_tree(
        chosen.taxonomy,
        max_depth=LAYERS - 1,
        describe=describe_nodes(chosen),
        orientation="down",
    )
    figure: Any = ax.figure
    ax.set_title(chosen.title, fontsize=11, loc="left", parse_math=False)
    _save(figure, stem)
    plt.close(figure)


def _short(dataset: str) -> str:
    return STAND_INS.get(dataset, dataset)


def _legend(figure: Any, ax: Any, n_columns: int) -> None:
    handles, labels = ax.get_legend_handles_labels()
    place = "outside lower center"
    figure.legend(handles, labels, loc=place, ncols=n_columns, frameon=False)


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
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".png"), dpi=130, facecolor="white", bbox_inches="tight")
