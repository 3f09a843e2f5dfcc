"""What rules cost on new rows, and how many features a reader meets in them.

Half of the rows are fitted, the other half is new. No setting is chosen by labels.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from experiments.data import PLANTED, PLANTED_ROWS
from experiments.defaults import (
    BKM,
    CLUSTERS,
    DEFAULT,
    HALF,
    KM,
    NEW,
    WARD,
    Row,
    Scores,
    all_datasets,
    halve_few,
    has_measure,
    plan_rows,
    signed,
)
from experiments.methods import SHORT, Job
from experiments.plan import Setup
from experiments.results import NO_RESULTS, introduce, of_jobs, write_page
from experiments.run import Store
from experiments.tables import (
    CORRECTED,
    NOTHING,
    Mean,
    done_jobs,
    number,
    of_code,
    percent,
    seconds,
    table,
)

TWO_FEATURES = Row("max_features=2", "Taxarbor", {"max_features": 2, **HALF})
NO_NOVELTY = Row("novelty=0", "Taxarbor", {"novelty": 0.0, **HALF})
ROWS = (DEFAULT, TWO_FEATURES, NO_NOVELTY, CLUSTERS, WARD, BKM, KM)
WITH_RULES = (DEFAULT, TWO_FEATURES, NO_NOVELTY, BKM)

FEATURES = {
    "mean_features": "features per rule",
    "path_features": "features on a path",
    "n_rules": "rules",
    "short_rules": f"of {SHORT} features or fewer, two children",
}

WEAK = ((256, 50, 0.5), (256, 200, 0.5), (768, 200, 0.35), (768, 1000, 0.5))
"""Features, clusters, and the spread of their centres."""

WEAK_ROWS = (DEFAULT, BKM, KM)

MIN_ROWS_PER_CLUSTER = 20
"""Drawn data with fewer is left out, as in a quick run."""

INTRODUCTION = """\
# What rules cost

Written by `make rules`, not by hand: run it again rather than edit this page.

`Taxarbor` finds clusters, and then sparse rules for them, which decide where each row goes. Two
questions: what do rules cost on **new rows**, and how many features does a reader meet? Each
data set ({rows}) is halved at random. One half is fitted; the other half is new, is
placed by the fitted tree and scored. Rows of the fit come second.

Beside the default are rules with at most two features (`max_features=2`) and rules whose
features cost the same whether or not the rules above use them (`novelty=0`). *Clusters without
rules* are the clusters that the rules are found for, with each row at the best score in all
features. Ward: SciPy's Ward linkage, with new rows at the nearest mean of a cluster. BKM:
scikit-learn's bisecting k-means, with its own `predict`, as a tree. KM: scikit-learn's k-means,
which has no tree. As many leaves as classes; {seeds}, each with other halves, the same for all
methods; no method saw a label. {n_jobs} fits, {minutes} minutes of one core. Commit {commits};
{machine}.

Numbers are percent. aSP, aPS: agreement of the tree with the true one, by shortest paths and by
shared paths; ARI, AMI: of the leaves with the classes; all four are corrected for chance. DP:
dendrogram purity. ± is the standard deviation over seeds: of the mean over data sets in tables
of means, of the value in tables of data sets.

The price of a feature was chosen on these data sets, by tables like these.
{lost}"""

NEW_TEXT = """\
## New rows

Means over data sets, then by how much Taxarbor is above the others, seed by seed."""

READING_TEXT = f"""\
## How many features a reader meets

*Features on a path*: all features in the rules on the path from the root to a leaf, counted
again in each rule; the mean over leaves. *Features per rule*: the mean over rules. The last
column counts the rules that choose between two children by {SHORT} features at most. Bisecting
k-means compares distances to centres, in all features. First means over data sets, then the
default on every data set."""

FITTED_TEXT = """\
## Rows of the fit

The same means and differences for the half that was fitted."""

WEAK_TEXT = """\
## Many weak features

Drawn data without a tree: clusters of the same round shape, with spread 1 in every feature, and
centres with the given spread in every feature. {rows:,} rows are fitted, as many are new; one
seed. ARI on new rows, in brackets on rows of the fit; seconds of the fit with one thread."""


def plan_rules(setup: Setup) -> Iterator[Job]:
    """Yield what the page needs, each job once."""
    few = halve_few(setup)
    jobs = plan_rows(few, all_datasets(few), ROWS)
    drawn = plan_rows(setup, weak_datasets(setup), WEAK_ROWS)
    yield from dict.fromkeys(chain(jobs, (job for job in drawn if job.seed == 0)))


def weak_datasets(setup: Setup) -> list[str]:
    """Return the names of the drawn data that have rows enough for their clusters."""
    n_rows = setup.max_rows or PLANTED_ROWS
    return [
        f"{PLANTED}{n_features}/{n_clusters}/{spread:g}"
        for n_features, n_clusters, spread in WEAK
        if MIN_ROWS_PER_CLUSTER * n_clusters <= n_rows
    ]


def write_rules(store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write the page; return that it was written."""
    few = halve_few(setup)
    results = of_jobs(store.read(), plan_rules(setup))
    scores = Scores.of(done_jobs(results, few), few)
    sections = [introduce(INTRODUCTION, of_code(results), few)]
    if len(scores.jobs):
        sections += [NEW_TEXT, _means(scores, NEW), _differences(scores, NEW)]
        sections += _on_every_dataset(scores)
        sections += [READING_TEXT, _reading(scores), _reading_everywhere(scores)]
        sections += [FITTED_TEXT, _means(scores, ""), _differences(scores, "")]
        drawn = Scores(done_jobs(results, setup), setup, tuple(weak_datasets(setup)))
        text = WEAK_TEXT.format(rows=(setup.max_rows or PLANTED_ROWS) // 2)
        sections += [text, _weak(drawn)]
    else:
        sections.append(NO_RESULTS)
    write_page(page, sections)
    return [page]


def _means(scores: Scores, prefix: str) -> str:
    lines = [
        [row.label, *(percent(scores.over_all(row, prefix + one), 1) for one in CORRECTED)]
        for row in ROWS
    ]
    return table(["means over data sets", *CORRECTED.values()], lines)


def _differences(scores: Scores, prefix: str) -> str:
    """Return by how much Taxarbor is above the others, on average over data sets."""
    lines = []
    for row in ROWS[1:]:
        means = (scores.difference(DEFAULT, row, prefix + one) for one in CORRECTED)
        lines.append([f"Taxarbor less {row.label}", *map(signed, means)])
    return table(["means over data sets", *CORRECTED.values()], lines)


def _on_every_dataset(scores: Scores) -> Iterator[str]:
    for measure, short in CORRECTED.items():
        rows = [row for row in ROWS if has_measure(row, measure)]
        lines = [
            [name, *(percent(scores.on(name, row, NEW + measure), 1) for row in rows)]
            for name in scores.datasets
        ]
        heads = ["data", *(row.label for row in rows)]
        yield f"### {short} on new rows\n\n{table(heads, lines)}"


def _reading(scores: Scores) -> str:
    lines = [
        [row.label, *(_count(scores.over_all(row, one)) for one in FEATURES)]
        for row in WITH_RULES
    ]
    return table(["means over data sets", *FEATURES.values()], lines)


def _reading_everywhere(scores: Scores) -> str:
    lines = []
    for name in scores.datasets:
        n_features = str(scores.setup.open(name).X.shape[1])
        counts = (_count(scores.on(name, DEFAULT, one)) for one in FEATURES)
        lines.append([name, n_features, *counts])
    return table(["data", "features", *FEATURES.values()], lines)


def _weak(scores: Scores) -> str:
    """Return ARI and seconds on the drawn data."""
    lines = []
    for name in scores.datasets:
        cells = name.removeprefix(PLANTED).split("/")
        for row in WEAK_ROWS:
            new, fitted = (
                percent(scores.on(name, row, prefix + "adjusted_rand"), 1)
                for prefix in (NEW, "")
            )
            cells.append(NOTHING if new == NOTHING else f"{new} ({fitted})")
        cells += [seconds(scores.median_seconds(name, row)) for row in WEAK_ROWS]
        lines.append(cells)
    labels = [row.label for row in WEAK_ROWS]
    heads = [*(f"{one}, ARI" for one in labels), *(f"{one}, s" for one in labels)]
    return table(["features", "clusters", "spread", *heads], lines)


def _count(value: Mean) -> str:
    spread = f" ± {value.spread:.1f}" if value.n_values > 1 else ""
    return number(value.mean, 1) + spread
