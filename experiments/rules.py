"""What sparse rules cost: beside the clusters that they follow, and methods without rules.

No setting is chosen by labels.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.defaults import BKM, CLUSTERS, WARD, Row, all_datasets, n_clusters_of
from experiments.methods import Job, find_method, write_settings
from experiments.plan import Setup
from experiments.results import NO_RESULTS, introduce, of_jobs, write_page
from experiments.run import Store
from experiments.tables import CORRECTED, Mean, done_jobs, number, percent, summarise, table

MAX_ROWS = 6000
"""Rows of each data set in the first part; the second has all."""

RULES = Row("Taxarbor", "Taxarbor", {})
ROWS = (
    RULES,
    Row("5 features at most", "Taxarbor", {"max_features": 5}),
    CLUSTERS,
    Row(
        "paper's greedy tree",
        "HMMC",
        {"alpha": 0.003, "beta": 0.003, "balance": 0.3, "center": "node"},
    ),
    WARD,
    BKM,
)

MOST_FEATURES, MOST_LOSS = 10.0, 1.5
"""What was asked for: features per split, and points of ARI below clusters without rules."""

BRANCHINGS = (3, 5)
"""Children per split in the part on wide trees."""

WIDE = (RULES, CLUSTERS, Row("k-means trees, 10 starts", "HKM-D", {"n_init": 10}))

INTRODUCTION = """\
# Rules that decide

Written by `make rules`, not by hand: run it again rather than edit this page.

`Taxarbor` finds clusters, each row in the one that fits it best by all features, and then
sparse rules for them, which decide where each row goes. Here are both, beside methods that have
no rules, and the paper's method, whose rules decide while the tree is grown (relative strengths
of 0.003, children of at least 0.3 of an equal share, each node seen from its own mean). As many
leaves as classes, {seeds} of every method that is random; no method saw a label. Commit
{commits}; {machine}.

Numbers are points, that is percent. aSP, aPS: agreement of the tree with the true one, by
shortest paths and by shared paths; ARI, AMI: of the leaves with the classes; all four
corrected for chance. DP: dendrogram purity. *Features*: mean number per split. ± is the
standard deviation over seeds: of the mean over data sets in the first table of a part, of the
value in the others.

The price of a feature was chosen on these data, by tables like these.
{lost}"""


def plan_rules(setup: Setup) -> Iterator[Job]:
    """Yield what the page needs, each job once."""
    for part in _parts(setup):
        for branching, rows in ((2, ROWS), *((some, WIDE) for some in BRANCHINGS)):
            for name in all_datasets(part):
                for row in rows:
                    yield from part.jobs(
                        name,
                        find_method(row.method),
                        row.settings,
                        n_clusters=n_clusters_of(part, name, 1.0),
                        branching=branching,
                    )


def write_rules(store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write the page; return that it was written."""
    found = of_jobs(store.read(), plan_rules(setup))
    sections: list[str] = []
    for part in _parts(setup):
        jobs = done_jobs(found, part)
        wide = {some: jobs[jobs["branching"] == some] for some in BRANCHINGS}
        jobs = jobs[jobs["branching"] == 2]
        if not sections:
            sections.append(introduce(INTRODUCTION, found, part))
        title = f"{part.max_rows:,} rows of each at most" if part.max_rows else "All rows"
        sections += [f"## {title}", *(_describe(jobs, part) if len(jobs) else [NO_RESULTS])]
        for branching, its in wide.items():
            if len(its):
                sections += [f"### Up to {branching} children per split", _wide(its, part)]
    write_page(page, sections)
    return [page]


def _parts(setup: Setup) -> list[Setup]:
    """Return the same with some rows and with all; some alone where no more are wanted."""
    if setup.max_rows:
        return [setup]
    return [replace(setup, max_rows=MAX_ROWS), setup]


def _describe(jobs: pd.DataFrame, setup: Setup) -> Iterator[str]:
    """Yield the means over data sets, what was asked for, and every data set."""
    names = all_datasets(setup)
    yield _means(jobs, names)
    yield _asked(jobs, names)
    for measure, short in (*CORRECTED.items(), ("mean_features", "Features per split")):
        lines = []
        for name in names:
            cells = [_of(jobs, row, name) for row in ROWS]
            lines.append([name, *(_tell(summarise(one, measure), measure) for one in cells)])
        yield f"### {short}\n\n{table(['data', *(row.told for row in ROWS)], lines)}"


def _wide(jobs: pd.DataFrame, setup: Setup) -> str:
    """Return the means of trees of more children."""
    names = all_datasets(setup)
    measures = [*CORRECTED, "features_per_child"]
    lines = [
        [row.told, *(_tell(over_all(jobs, row, names, one), one) for one in measures)]
        for row in WIDE
    ]
    return table(["", *CORRECTED.values(), "features per child"], lines)


def _means(jobs: pd.DataFrame, names: list[str]) -> str:
    measures = [*CORRECTED, "mean_features"]
    headings = ["", *CORRECTED.values(), "features"]
    lines = [
        [row.told, *(_tell(over_all(jobs, row, names, one), one) for one in measures)]
        for row in ROWS
    ]
    return table(headings, lines)


def _asked(jobs: pd.DataFrame, names: list[str]) -> str:
    """Return what was asked of the rules, and whether it came out."""
    mean = {
        (row.told, measure): over_all(jobs, row, names, measure).mean
        for row in (RULES, CLUSTERS, WARD)
        for measure in (*CORRECTED, "mean_features")
    }
    used = mean[RULES.told, "mean_features"]
    most = f"at most {MOST_FEATURES:g}"
    lines = [("features per split", most, number(used, 1), used <= MOST_FEATURES)]
    for measure, short in CORRECTED.items():
        ahead = 100.0 * (mean[RULES.told, measure] - mean[WARD.told, measure])
        lines.append((f"{short} less Ward's", "at least 0", f"{ahead:+.2f}", ahead >= 0.0))
    less = 100.0 * (mean[RULES.told, "adjusted_rand"] - mean[CLUSTERS.told, "adjusted_rand"])
    least = f"at least -{MOST_LOSS:g}"
    lines.append(("ARI less that of the clusters", least, f"{less:+.2f}", less >= -MOST_LOSS))
    told = [[*line[:3], "yes" if line[3] else "**no**"] for line in lines]
    return table(["mean over data sets", "asked", "got", "holds"], told)


def over_all(jobs: pd.DataFrame, row: Row, names: list[str], measure: str) -> Mean:
    """Return the mean over data sets, and how it spreads over seeds."""
    by_set = []
    for name in names:
        here = _of(jobs, row, name).sort_values("seed")
        if measure not in here or here[measure].isna().any() or not len(here):
            return Mean()
        by_set.append(here[measure].to_numpy())
    n_seeds = max(map(len, by_set))
    # A method that is not random has one value, for all seeds.
    means = np.mean([np.broadcast_to(one, n_seeds) for one in by_set], axis=0)
    return Mean(float(means.mean()), float(means.std()), n_seeds)


def _of(jobs: pd.DataFrame, row: Row, name: str) -> pd.DataFrame:
    return jobs[
        (jobs["dataset"] == name)
        & (jobs["method"] == row.method)
        & (jobs["settings"] == write_settings(row.settings))
    ]


def _tell(value: Mean, measure: str) -> str:
    if measure not in ("mean_features", "features_per_child"):
        return percent(value, 1)
    spread = f" ± {value.spread:.1f}" if value.n_values > 1 else ""
    return number(value.mean, 1) + spread
