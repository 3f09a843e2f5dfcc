"""The paper's Table 1: every method on every data set, by both protocols."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from taxarbor.bench._markdown import NOTHING, number, percent, plain, seconds, without_gaps
from taxarbor.bench._methods import METHODS, Family
from taxarbor.bench._plan import Setup
from taxarbor.bench._published import PUBLISHED, STAND_INS, Published
from taxarbor.bench._select import DEFAULT, Mean, Protocol, choose, of_table, summarise
from taxarbor.bench._work import open_dataset

if TYPE_CHECKING:
    import pandas as pd

PAPERS = {"shortest_path": "SP", "path_sharing": "PS", "rand": "RI"}
CORRECTED = {
    "adjusted_shortest_path": "aSP",
    "adjusted_path_sharing": "aPS",
    "adjusted_rand": "ARI",
    "adjusted_mutual_info": "AMI",
    "dendrogram_purity": "DP",
}
NOWHERE = Published(math.nan, math.nan, math.nan, math.nan)


def describe_tables(jobs: "pd.DataFrame", setup: Setup) -> Iterator[str]:
    """Yield a heading and two tables for each data set."""
    for dataset in setup.datasets():
        here = of_table(jobs, setup, dataset)
        if not len(here):
            continue
        yield f"### {plain(title(dataset))}\n\n{_shape(dataset, setup)}"
        yield papers_measures(here, dataset)
        yield corrected_measures(here)


def papers_measures(here: "pd.DataFrame", dataset: str) -> str:
    """Return SP, PS, RI and seconds: as published, best over the grid, default."""
    headings = ["method"]
    for short in PAPERS.values():
        headings += [f"{short} paper", f"{short} best", f"{short} default"]
        headings += ["SP best, shuffled"] if short == "SP" else []
    lines = []
    for method in METHODS:
        printed = PUBLISHED.get((method, dataset), NOWHERE)
        cells = [method]
        for measure, short in PAPERS.items():
            cells.append(number(getattr(printed, measure)))
            cells += [percent(score(here, method, how, measure)) for how in ("best", "default")]
            if short == "SP":
                by_sp = choose(here, method, "best", measure)
                cells.append(percent(summarise(by_sp, "chance_shortest_path")))
        lines.append([*cells, *_times(here, method, printed)])
    return without_gaps([*headings, "s paper", "s best", "s default"], lines)


def corrected_measures(here: "pd.DataFrame") -> str:
    """Return the measures that are corrected for chance, and the shape of the trees."""
    headings = ["method"]
    for short in CORRECTED.values():
        headings += [f"{short} best", f"{short} default"]
    lines = []
    for method in METHODS:
        cells = [method]
        for measure in CORRECTED:
            cells += [percent(score(here, method, how, measure)) for how in ("best", "default")]
        tall = summarise(choose(here, method, "best", "shortest_path"), "height").mean
        default = choose(here, method, "default", "shortest_path")
        cells += [number(tall, 1), number(summarise(default, "height").mean, 1)]
        lines.append([*cells, number(summarise(default, "peak_mb").mean, 0)])
    return without_gaps([*headings, "height, best SP", "height, default", "MB"], lines)


def score(here: "pd.DataFrame", method: str, protocol: Protocol, measure: str) -> Mean:
    """Return a measure of a method under a protocol."""
    return summarise(choose(here, method, protocol, measure), measure)


def rivals(
    here: "pd.DataFrame",
    protocol: Protocol,
    measure: str,
    families: tuple[Family, ...] = ("flat", "bottom-up", "top-down"),
) -> dict[str, Mean]:
    """Return a measure of all methods of others that have one, the highest first."""
    means = {
        name: score(here, name, protocol, measure)
        for name, method in METHODS.items()
        if method.family in families
    }
    known = [(name, one) for name, one in means.items() if not math.isnan(one.mean)]
    return dict(sorted(known, key=lambda pair: -pair[1].mean))


def median_seconds(here: "pd.DataFrame", method: str, protocol: Protocol) -> float:
    """Return the median time of one fit, over seeds and, for the best, over the grid."""
    if protocol == "default" or len(METHODS[method].grid) == 1:
        mine = choose(here, method, protocol, "rand")
    else:
        mine = here[(here["method"] == method) & (here["settings"] != DEFAULT)]
    return float(mine["seconds"].median()) if len(mine) else math.nan


def title(dataset: str) -> str:
    """Return the name of a data set, with that of the paper's which it stands in for."""
    return f"{dataset}: for {STAND_INS[dataset]}" if dataset in STAND_INS else dataset


def _times(here: "pd.DataFrame", method: str, printed: Published) -> list[str]:
    ours = [seconds(median_seconds(here, method, how)) for how in ("best", "default")]
    paper = NOTHING if math.isnan(printed.seconds) else f"{printed.seconds:,.1f}"
    return [paper, *ours]


def _shape(dataset: str, setup: Setup) -> str:
    data = open_dataset(dataset, setup.scaling, setup.max_rows, setup.folder)
    n_rows, n_features = data.X.shape
    return f"{n_rows:,} rows x {n_features:,} features, {data.n_classes} classes and clusters."
