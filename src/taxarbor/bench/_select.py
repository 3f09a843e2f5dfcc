"""From long-form results to the numbers of a table.

Two protocols. *Best*, the paper's: for each seed and each measure, the settings of a method's
grid at which that very measure is highest; the labels choose. *Default*: the method as it
comes, no labels. Both are means over seeds, with the standard deviation.
"""

import json
import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from taxarbor.bench._jobs import DONE, Job, code_digest, write_settings
from taxarbor.bench._methods import METHODS, STRENGTHS
from taxarbor.bench._plan import Setup

if TYPE_CHECKING:
    import pandas as pd

Protocol = Literal["best", "default"]
DEFAULT = write_settings({})


class Mean(NamedTuple):
    """A mean over seeds, with the spread; NaN where there is no result."""

    mean: float = math.nan
    spread: float = math.nan
    n_values: int = 0


def of_setup(found: "pd.DataFrame", setup: Setup) -> "pd.DataFrame":
    """Return the results of this setup and code, done or not."""
    return found[
        (found["code"] == code_digest())
        & (found["scaling"] == setup.scaling)
        & (found["max_rows"] == setup.max_rows)
        & (found["seed"] < setup.n_seeds)
    ]


def of_table(jobs: "pd.DataFrame", setup: Setup, dataset: str) -> "pd.DataFrame":
    """Return a data set's jobs of the table: two children, as many leaves as classes."""
    return jobs[
        (jobs["dataset"] == dataset)
        & (jobs["branching"] == 2)
        & (jobs["n_clusters"] == setup.n_classes(dataset))
    ]


def spread_out(found: "pd.DataFrame", setup: Setup) -> "pd.DataFrame":
    """Return one line per job of this setup and code, with a column per measure."""
    kept = of_setup(found, setup)
    kept = kept[kept["status"] == DONE]
    index = [*Job._fields, "seconds", "peak_mb"]
    return kept.pivot(index=index, columns="measure", values="value").reset_index()


def choose(
    jobs: "pd.DataFrame", method: str, protocol: Protocol, measure: str
) -> "pd.DataFrame":
    """Return one job per data set, shape and seed: the best by a measure, or the default."""
    mine = jobs[jobs["method"] == method]
    if protocol == "default":
        return mine[mine["settings"] == DEFAULT]
    if measure not in mine.columns:  # of trees, where no data set has a true one
        return mine.iloc[:0]
    allowed = {write_settings(settings) for settings in METHODS[method].grid}
    mine = mine[mine["settings"].isin(allowed) & mine[measure].notna()]
    # Settings in a fixed order, so that ties do not depend on which job ended first.
    mine = mine.sort_values("settings", kind="stable")
    best = mine.groupby(["dataset", "n_clusters", "branching", "seed"])[measure].idxmax()
    return mine.loc[best]


def summarise(jobs: "pd.DataFrame", measure: str) -> Mean:
    """Return the mean of a measure over the jobs, and its standard deviation."""
    values = jobs[measure].dropna() if measure in jobs.columns else jobs.iloc[:0, 0]
    if not len(values):
        return Mean()
    return Mean(float(values.mean()), float(values.std(ddof=0)), len(values))


def chosen_settings(job: "pd.Series") -> str:
    """Return what was chosen for a job, in words: ``alpha=0.01, beta=1``."""
    settings = json.loads(job["settings"])
    strengths = {key: settings[key] for key in STRENGTHS if key in settings}
    return ", ".join(f"{key}={value:g}" for key, value in strengths.items()) or "defaults"
