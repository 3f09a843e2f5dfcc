"""The paper's Figure 2: how a measure moves with the number of clusters and of children."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from taxarbor.bench._markdown import percent, plain, table
from taxarbor.bench._methods import METHODS
from taxarbor.bench._plan import (
    BRANCHINGS,
    MULTIPLES,
    SWEEP_SEEDS,
    SWEPT,
    Setup,
    sweep_datasets,
    sweep_shapes,
)
from taxarbor.bench._select import Mean, choose, summarise

if TYPE_CHECKING:
    import pandas as pd


class Panel(NamedTuple):
    """One panel: a data set, what varies, and for each method the means where it was run."""

    dataset: str
    axis: str
    ticks: tuple[str, ...]
    lines: dict[str, list[Mean]]


def sweep_panels(jobs: "pd.DataFrame", setup: Setup, measure: str) -> list[Panel]:
    """Return the panels: over clusters for each data set, then over children."""
    if measure not in jobs.columns:
        return []
    jobs = jobs[jobs["seed"] < SWEEP_SEEDS]
    found = sweep_datasets(setup)
    by_clusters = [_panel(jobs, setup, measure, name, children=False) for name in found]
    by_children = [_panel(jobs, setup, measure, name, children=True) for name in found]
    return by_clusters + by_children


def describe_sweep(jobs: "pd.DataFrame", setup: Setup, measure: str) -> Iterator[str]:
    """Yield the same as Markdown tables."""
    for panel in sweep_panels(jobs, setup, measure):
        headings = ["method", *(f"{panel.axis} = {tick}" for tick in panel.ticks)]
        lines = [[name, *map(percent, means)] for name, means in panel.lines.items()]
        yield f"**{plain(panel.dataset)}**\n\n{table(headings, lines)}"


def _panel(
    jobs: "pd.DataFrame", setup: Setup, measure: str, dataset: str, *, children: bool
) -> Panel:
    n_classes = setup.n_classes(dataset)
    lines = {}
    for name in SWEPT:
        method = METHODS[name]
        if children and not method.branches:
            continue
        shapes = sweep_shapes(method, n_classes)
        n = len(MULTIPLES)
        mine = [shapes[0], *shapes[n:]] if children else shapes[:n]
        lines[name] = [_mean(jobs, dataset, name, shape, measure) for shape in mine]
    if children:
        return Panel(dataset, "K", tuple(map(str, BRANCHINGS)), lines)
    return Panel(dataset, "F", tuple(f"{multiple:g} x" for multiple in MULTIPLES), lines)


def _mean(
    jobs: "pd.DataFrame", dataset: str, method: str, shape: tuple[int, int], measure: str
) -> Mean:
    here = jobs[
        (jobs["dataset"] == dataset)
        & (jobs["n_clusters"] == shape[0])
        & (jobs["branching"] == shape[1])
    ]
    return summarise(choose(here, method, "best", measure), measure)
