"""From long-form results to the numbers of a table, and to Markdown.

Two protocols. *Best*, the paper's: for each seed and each measure, the settings of a method's
grid at which that very measure is highest; the labels choose. *Default*: the method as it
comes, no labels. Both are means over seeds, with the standard deviation.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from experiments.methods import DONE, METHODS, Family, write_settings
from experiments.plan import Setup
from experiments.run import COLUMNS, code_digest

Protocol = Literal["best", "default"]
PROTOCOLS: tuple[Protocol, ...] = ("best", "default")
OURS: dict[Protocol, str] = {"best": "HMMC", "default": "Taxarbor"}
"""Which method of ours each protocol is about."""

DEFAULT = write_settings({})
PAPERS = {"shortest_path": "SP", "path_sharing": "PS", "rand": "RI"}
CORRECTED = {
    "adjusted_shortest_path": "aSP",
    "adjusted_path_sharing": "aPS",
    "adjusted_rand": "ARI",
    "adjusted_mutual_info": "AMI",
    "dendrogram_purity": "DP",
}
NOTHING = "-"


class Mean(NamedTuple):
    """A mean over seeds, with the spread; NaN where there is no result."""

    mean: float = math.nan
    spread: float = math.nan
    n_values: int = 0


def of_code(found: pd.DataFrame) -> pd.DataFrame:
    """Return the results of this code, done or not."""
    return found[found["code"] == code_digest()]


def of_setup(found: pd.DataFrame, setup: Setup) -> pd.DataFrame:
    """Return the results of this setup and code, done or not."""
    found = of_code(found)
    return found[
        (found["scaling"] == setup.scaling)
        & (found["max_rows"] == setup.max_rows)
        & (found["seed"] < setup.n_seeds)
    ]


def done_jobs(found: pd.DataFrame, setup: Setup) -> pd.DataFrame:
    """Return those that are done, with a column per measure that any of them has."""
    kept = of_setup(found, setup)
    kept = kept[kept["status"] == DONE]
    measured = [name for name in kept if name not in COLUMNS and kept[name].notna().any()]
    return kept[[*COLUMNS, *measured]]


def of_table(jobs: pd.DataFrame, setup: Setup, dataset: str) -> pd.DataFrame:
    """Return a data set's jobs of the table: two children, as many leaves as classes."""
    return jobs[
        (jobs["dataset"] == dataset)
        & (jobs["branching"] == 2)
        & (jobs["n_clusters"] == setup.n_classes(dataset))
    ]


def choose(jobs: pd.DataFrame, method: str, protocol: Protocol, measure: str) -> pd.DataFrame:
    """Return one job per data set, shape and seed: the best by a measure, or the default."""
    mine = jobs[jobs["method"] == method]
    if protocol == "default":
        return mine[mine["settings"] == DEFAULT]
    if measure not in mine.columns:  # where nothing is done
        return mine.iloc[:0]
    allowed = {write_settings(settings) for settings in METHODS[method].grid}
    mine = mine[mine["settings"].isin(allowed) & mine[measure].notna()]
    # Settings in a fixed order, so that ties do not depend on which job ended first.
    mine = mine.sort_values("settings", kind="stable")
    best = mine.groupby(["dataset", "n_clusters", "branching", "seed"])[measure].idxmax()
    return mine.loc[best]


def summarise(jobs: pd.DataFrame, measure: str) -> Mean:
    """Return the mean of a measure over the jobs, and its standard deviation."""
    return mean_of(jobs[measure].dropna().tolist() if measure in jobs.columns else [])


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of some values, and their standard deviation."""
    return (
        Mean(float(np.mean(values)), float(np.std(values)), len(values)) if values else Mean()
    )


def score(here: pd.DataFrame, method: str, protocol: Protocol, measure: str) -> Mean:
    """Return a measure of a method under a protocol."""
    return summarise(choose(here, method, protocol, measure), measure)


def rivals(
    here: pd.DataFrame,
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


def median_seconds(here: pd.DataFrame, method: str, protocol: Protocol) -> float:
    """Return the median time of one fit, over seeds and, for the best, over the grid."""
    if protocol == "default" or len(METHODS[method].grid) == 1:
        mine = choose(here, method, protocol, "rand")
    else:
        mine = here[(here["method"] == method) & (here["settings"] != DEFAULT)]
    return float(mine["seconds"].median()) if len(mine) else math.nan


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rows = [headings, ["---", *["--:"] * (len(headings) - 1)], *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write_between(page: Path, begin: str, text: str, end: str) -> Path:
    """Write text between two marks of a page, if it has them, else alone."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    before, mark, rest = old.partition(begin)
    after = rest.partition(end)[2] if mark else "\n"
    page.parent.mkdir(parents=True, exist_ok=True)
    written = f"{before if mark else ''}{begin}\n\n{text}\n\n{end}{after}"
    page.write_text(written, encoding="utf-8")
    return page


def percent(value: Mean, digits: int = 2) -> str:
    """Return a mean as ``91.20 ± 0.30``, in percent; without a spread if there is one value."""
    if math.isnan(value.mean):
        return NOTHING
    told = f"{100 * value.mean:.{digits}f}"
    return told if value.n_values < 2 else f"{told} ± {100 * value.spread:.{digits}f}"


def number(value: float, digits: int = 2) -> str:
    """Return a number, or a dash for what is missing."""
    return NOTHING if math.isnan(value) else f"{value:,.{digits}f}"


def seconds(value: float) -> str:
    """Return seconds with as many digits as matter."""
    return number(value, 3 if value < 1 else 1)
