"""Why the defaults are what they are: Taxarbor beside other methods, and one change at a time.

Half of the rows are fitted; the other half is new, and is the measure of record. No setting is
chosen by labels.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.data import STAND_INS, list_datasets
from experiments.methods import Job, Settings, find_method, write_settings
from experiments.plan import Setup
from experiments.results import NO_RESULTS, introduce, of_jobs, write_page
from experiments.run import Store
from experiments.tables import (
    CORRECTED,
    Mean,
    done_jobs,
    mean_of,
    of_code,
    percent,
    seconds,
    summarise,
    table,
)
from experiments.variants import CRITERIA, default_of
from taxarbor import Taxarbor
from taxarbor.estimators._taxarbor import ROWS_PER_CLUSTER, SAMPLE_ROWS

MAX_ROWS = 6000
"""Rows of each data set; half of them are fitted."""

NEW = "new_"
"""How the names of measures on new rows begin."""

OF_LEAVES = ("adjusted_rand", "adjusted_mutual_info")
"""What is measured of clusters without a tree, too."""

TIMED = "awa_pca"
"""Where seconds are compared, if it is there."""

INTRODUCTION = """\
# Why the defaults are what they are

Written by `make defaults`, not by hand: run it again rather than edit this page.

Taxarbor, beside other methods with their own defaults, and beside itself with one choice made
otherwise. The measure of record is on **new rows**: each data set ({rows}) is halved
at random; one half is fitted, and the other half is placed by the fitted tree and scored. Trees
with rules, k-means and bisecting k-means place new rows by their own `predict`; with all other
methods a new row goes to the nearest mean of a cluster. Scores of the rows of the fit come
second.

As many clusters as classes; {seeds}, each with other halves, the same for all methods. No
method saw a label. {n_jobs} fits, {minutes} minutes of one core. Commit {commits}; {machine}.
Seconds are of fits with one thread, two of them side by side (unless `--n-jobs` is changed).

Numbers are percent: means over seeds ± their standard deviation. aSP, aPS: agreement of the
learned tree with the true one, by shortest paths and by shared paths; ARI, AMI: of the leaves
with the classes; all four are corrected for chance: 0 for shuffled rows and 100 for the truth.
DP: dendrogram purity. Clusters without a tree have ARI and AMI only. A mean over data sets has
a dash where a result is missing. Ward, AL: SciPy's Ward and average linkage; HKM, HKM-D:
top-down k-means, which splits the leaf with the most compact children, or the most scattered
leaf; BKM: scikit-learn's bisecting k-means; KM: scikit-learn's k-means; KM+Ward: k-means with
ten times as many centres as clusters, a third of the rows at most, then Ward's method on the
centres; HMMC: the paper's method, greedy and sparse inside the alternation, with relative
strengths of 0.003, children of at least 0.3 of an equal share, and each node centred on its own
mean. *Clusters without rules* are those that Taxarbor finds rules for, with each row at the
best score in all features; [](rules.md) has what the rules cost.

The defaults were chosen by tables like these, on these data sets and with their labels: on
other data they may do worse.
{lost}"""

MEANS_TEXT = """\
## New rows: means over data sets

Each data set has the same weight. ± is the standard deviation over seeds of the mean over data
sets. Seconds are means over data sets of the median fit."""

FITTED_TEXT = """\
## Rows of the fit: means over data sets"""

EVERYWHERE_TEXT = """\
## New rows: every data set

The highest mean of each column in bold."""

SAMPLE_TEXT = """\
## The size of the sample

Taxarbor finds its tree on a sample: {per_cluster} rows per cluster, but at least {least:,}.
Here all rows of each data set are halved, and the tree is found on fewer rows of the one half;
where it has no more, on all of it. The other half is scored, the same rows for every size."""

GROUPS_TEXT = """\
## One choice at a time

On new rows. The default is the first line of each table. In brackets: the difference to it, of
the mean over data sets, with its standard deviation over seeds. All but the last table are of
clusters without rules, so that each choice is seen by itself."""


class Row(NamedTuple):
    """A line of a table: its label, and how it is made."""

    label: str
    method: str
    settings: Settings


class Group(NamedTuple):
    """A choice: the default first, then the others."""

    title: str
    rows: tuple[Row, ...]


HALF = {"sample": "half"}
DEFAULT = Row("Taxarbor", "Taxarbor", HALF)
FOUR_STARTS = Row("Taxarbor, 4 starts", "Taxarbor", {"n_init": 4, **HALF})
CLUSTERS = Row("clusters without rules", "variant", HALF)
"""Rows are in the leaves of the best score: each choice is seen without what rules do to it."""

BKM, WARD, KM = Row("BKM", "BKM", HALF), Row("Ward", "Ward", HALF), Row("KM", "KM", HALF)
"""The last one without a tree."""

RIVALS = (
    WARD,
    Row("AL", "AL", HALF),
    Row("HKM", "HKM", HALF),
    Row("HKM-D", "HKM-D", HALF),
    Row("HKM-D, 10 starts", "HKM-D", {"n_init": 10, **HALF}),
    BKM,
    Row("KM+Ward", "KM+Ward", HALF),
    KM,
)
PAPERS = {"alpha": 0.003, "beta": 0.003, "balance": 0.3, "center": "node"}
OURS = (DEFAULT, FOUR_STARTS, CLUSTERS, Row("HMMC", "HMMC", {**PAPERS, **HALF}))


SAMPLES = (
    *(
        Row(f"{size} rows per cluster", "Taxarbor", {"sample": size})
        for size in (25, 50, 100, 200)
    ),
    DEFAULT._replace(label="all rows of the half"),
)
MAX_LOSS = 0.2
"""Points of each mean that a sample may cost, beside all rows."""


def _default(label: str) -> Row:
    """Return Taxarbor's clusters, with the default of one of its choices as the label."""
    return CLUSTERS._replace(label=f"{label} (default)")


def _variant(label: str, **settings: object) -> Row:
    return Row(label, "variant", {**settings, **HALF})


def _others(name: str, values: Sequence[object], label: str = "{}") -> tuple[Row, ...]:
    """Return the default of a choice, then a row for each other value of it."""
    known = signature(Taxarbor).parameters
    default = known[name].default if name in known else default_of(name)
    others = (_variant(label.format(one), **{name: one}) for one in values)
    return (_default(label.format(default)), *others)


def _sparse_inside(alpha: float) -> Row:
    settings = {"alpha": alpha, "beta": alpha, "balance": 0.5, "center": "node", "n_init": 4}
    settings |= HALF
    return Row(f"inside, alpha = beta = {alpha:g}", "HMMC", settings)


GROUPS = (
    Group(
        "Leaves that are grown, and how they are linked",
        (
            _default("twice as many as clusters"),
            _variant("as many as clusters", more=0),
            *_others("power", (0.5, 1.0), "rows to the power {}")[1:],
            _variant("cut of a tree of four times as many clusters", cut_of=4),
        ),
    ),
    Group(
        "Moving rows when the tree is whole",
        (
            *_others("rounds", (1, 3), "rounds: {}"),
            _variant("plain distance", shrinkage=1e6),
            _variant("shrinkage 0.1", shrinkage=0.1),
        ),
    ),
    Group(
        "Starts per split",
        (
            *_others("n_init", (4, 12)),
            _variant("one, from Ward's clusters", starts=["ward"]),
            _variant("one, from far rows", starts=["far_rows"]),
        ),
    ),
    Group(
        "Which leaf is split next",
        (_default("by gap"), *(_variant(f"by {one}", grow_by=one) for one in CRITERIA[1:])),
    ),
    Group(
        "Balance",
        (
            *_others("balance", (0.9, 0.3), "balance {}"),
            _variant("no balance", balance=None),
        ),
    ),
    Group("Ridge", _others("ridge", (0.03, 0.0003))),
    Group("Coordinates", _others("coordinates", (32, 128))),
    Group(
        "Sparsity, after the tree is whole or inside the alternation",
        (
            DEFAULT._replace(label="after (default)"),
            *(_sparse_inside(alpha) for alpha in (0.003, 0.01, 0.03)),
        ),
    ),
)


def all_datasets(setup: Setup) -> list[str]:
    """Return all data with its own rows, and other rows where these are of the experiment."""
    found = list_datasets(setup.folder)
    return [name for name in found if "/" not in name or name in STAND_INS]


def n_clusters_of(setup: Setup, dataset: str) -> int:
    """Return the number of classes, but two at least."""
    return max(setup.n_classes(dataset), 2)


def plan_rows(setup: Setup, names: Iterable[str], rows: Iterable[Row]) -> Iterator[Job]:
    """Yield the jobs of some rows on some data sets."""
    for name, row in product(names, rows):
        method, n_clusters = find_method(row.method), n_clusters_of(setup, name)
        yield from setup.jobs(name, method, row.settings, n_clusters=n_clusters)


def halve_few(setup: Setup) -> Setup:
    """Return the setup with so many rows that halves of them are fitted in no time."""
    return replace(setup, max_rows=min(setup.max_rows or MAX_ROWS, MAX_ROWS))


def plan_defaults(setup: Setup) -> Iterator[Job]:
    """Yield what the page needs, each job once."""
    names = all_datasets(setup)
    rows = (*RIVALS, *OURS, *(row for group in GROUPS for row in group.rows))
    jobs = plan_rows(halve_few(setup), names, rows)
    yield from dict.fromkeys(chain(jobs, plan_rows(setup, names, SAMPLES)))


def write_defaults(store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write the page; return that it was written."""
    few = halve_few(setup)
    results = of_jobs(store.read(), plan_defaults(setup))
    scores = Scores.of(done_jobs(results, few), few)
    sections = [introduce(INTRODUCTION, of_code(results), few), "## In short"]
    if not len(scores.jobs):
        sections.append(NO_RESULTS)
    else:
        sections += [summarise_defaults(scores), MEANS_TEXT, describe_means(scores, NEW)]
        sections += [EVERYWHERE_TEXT, *describe_everywhere(scores)]
        text = SAMPLE_TEXT.format(least=SAMPLE_ROWS, per_cluster=ROWS_PER_CLUSTER)
        every_row = Scores.of(done_jobs(results, setup), setup)
        sections += [text, *describe_samples(every_row)]
        sections += [GROUPS_TEXT, *describe_groups(scores)]
        sections += [FITTED_TEXT, describe_means(scores, "")]
    write_page(page, sections)
    return [page]


class Scores(NamedTuple):
    """The results on some data sets, to be asked for."""

    jobs: pd.DataFrame
    setup: Setup
    datasets: tuple[str, ...]

    @classmethod
    def of(cls, jobs: pd.DataFrame, setup: Setup) -> "Scores":
        """Return the results on all data."""
        return cls(jobs, setup, tuple(all_datasets(setup)))

    def on(self, dataset: str, row: Row, measure: str) -> Mean:
        """Return the mean over seeds of a measure on one data set."""
        if not has_measure(row, measure):
            return Mean()
        return summarise(self._of(dataset, row), measure)

    def over_all(self, row: Row, measure: str) -> Mean:
        """Return the mean over data sets, and its spread over seeds.

        NaN if a result is missing, as means would not compare.
        """
        return mean_of(self._by_seed(row, measure))

    def difference(self, row: Row, other: Row, measure: str) -> Mean:
        """Return by how much the mean over data sets is above another's, seed by seed."""
        ours, theirs = self._by_seed(row, measure), self._by_seed(other, measure)
        if len(ours) != len(theirs):
            return Mean()
        return mean_of(np.subtract(ours, theirs).tolist())

    def _by_seed(self, row: Row, measure: str) -> list[float]:
        """Return the mean over data sets for each seed; nothing if a result is missing."""
        if not has_measure(row, measure):
            return []
        by_set = []
        for name in self.datasets:
            jobs = self._of(name, row).sort_values("seed")
            is_whole = jobs["seed"].tolist() == list(range(self.setup.n_seeds))
            if measure not in jobs or jobs[measure].isna().any() or not is_whole:
                return []
            by_set.append(jobs[measure].to_numpy())
        return [float(mean) for mean in np.mean(by_set, axis=0)]

    def median_seconds(self, dataset: str, row: Row) -> float:
        """Return the median time of one fit."""
        return float(self._of(dataset, row)["seconds"].median())

    def _of(self, dataset: str, row: Row) -> pd.DataFrame:
        jobs = self.jobs
        return jobs[
            (jobs["dataset"] == dataset)
            & (jobs["method"] == row.method)
            & (jobs["settings"] == write_settings(row.settings))
            & (jobs["n_clusters"] == n_clusters_of(self.setup, dataset))
        ]


def has_measure(row: Row, measure: str) -> bool:
    """Say whether a method has a measure: those of trees are not of k-means."""
    name = measure.removeprefix(NEW)
    return row.method != KM.method or name in OF_LEAVES or name not in CORRECTED


def summarise_defaults(scores: Scores) -> str:
    """Return in a few lines how Taxarbor at its defaults compares with the rivals."""
    lines = [_lead(scores, measure) for measure in CORRECTED]
    lines += [_places(scores, one) for one in ("adjusted_shortest_path", "adjusted_rand")]
    lines += [_steadiness(scores), _times(scores)]
    return "\n".join(f"- {line}" for line in lines if line)


def describe_means(scores: Scores, prefix: str) -> str:
    """Return the means over data sets of all rivals and of ours."""
    lines = []
    for row in (*RIVALS, *OURS):
        cells = [percent(scores.over_all(row, prefix + one), 1) for one in CORRECTED]
        times = [scores.median_seconds(name, row) for name in scores.datasets]
        lines.append([row.label, *cells, seconds(float(np.mean(times)))])
    return table(["method", *CORRECTED.values(), "s"], lines)


def describe_everywhere(scores: Scores) -> Iterator[str]:
    """Yield for each measure a table of all methods on all data sets."""
    for measure, short in CORRECTED.items():
        rows = [row for row in (*RIVALS, *OURS) if has_measure(row, measure)]
        yield f"### {short}\n\n{_in_full(scores, rows, NEW + measure)}"


def describe_samples(scores: Scores) -> Iterator[str]:
    """Yield the means for each size of the sample, and the smallest size that is enough."""
    means = [[scores.over_all(row, NEW + one) for one in CORRECTED] for row in SAMPLES]
    lines = [[row.label, *map(percent, own)] for row, own in zip(SAMPLES, means, strict=True)]
    yield table(["tree found on", *CORRECTED.values()], lines)
    values = 100.0 * np.array([[one.mean for one in own] for own in means])
    is_enough = (values >= values[-1] - MAX_LOSS).all(axis=1)
    if is_enough.any():
        smallest = SAMPLES[int(is_enough.argmax())].label
        yield (
            f"The smallest sample that keeps each mean within {MAX_LOSS} of that of all rows "
            f"of the half, or above it: {smallest}."
        )


def describe_groups(scores: Scores) -> Iterator[str]:
    """Yield for each choice what the others would give."""
    for group in GROUPS:
        yield f"### {group.title}\n\n{_differences(scores, group)}"


def _differences(scores: Scores, group: Group) -> str:
    """Return the means over data sets, and their difference to the default's, the first."""
    lines = []
    first, *_ = group.rows
    for row in group.rows:
        cells = [row.label]
        for measure in CORRECTED:
            cell = percent(scores.over_all(row, NEW + measure), 1)
            if row is not first:
                difference = scores.difference(row, first, NEW + measure)
                cell += f" ({signed(difference)})"
            cells.append(cell)
        lines.append(cells)
    return table(["means over data", *CORRECTED.values()], lines)


def signed(value: Mean) -> str:
    """Return a difference as ``+1.2 ± 0.3``, in percent."""
    text = percent(value, 1)
    return text if math.isnan(value.mean) or value.mean < 0.0 else f"+{text}"


def _in_full(scores: Scores, rows: Sequence[Row], measure: str) -> str:
    """Return a measure of each row on each data set, with the highest in bold."""
    by_set = {name: [scores.on(name, row, measure) for row in rows] for name in scores.datasets}
    lines = []
    for n, row in enumerate(rows):
        cells = [row.label]
        for means in by_set.values():
            cell = percent(means[n], 1)
            known = [one.mean for one in means if not math.isnan(one.mean)]
            cells.append(f"**{cell}**" if known and means[n].mean == max(known) else cell)
        lines.append(cells)
    return table(["", *by_set], lines)


def _lead(scores: Scores, measure: str) -> str:
    """Return Taxarbor's mean on new rows, the best rival's, and the difference."""
    ours = scores.over_all(DEFAULT, NEW + measure)
    rivals = [row for row in RIVALS if has_measure(row, measure)]
    theirs = {row.label: scores.over_all(row, NEW + measure) for row in rivals}
    known = [row for row in rivals if not math.isnan(theirs[row.label].mean)]
    if math.isnan(ours.mean) or not known:
        return ""
    best = max(known, key=lambda row: theirs[row.label].mean)
    missing = [row.label for row in rivals if row not in known]
    left_out = f" (without {', '.join(missing)}, which lack a result)" if missing else ""
    return (
        f"{CORRECTED[measure]} on new rows: Taxarbor {percent(ours, 1)}, the best rival "
        f"{best.label} {percent(theirs[best.label], 1)}{left_out}, difference "
        f"{signed(scores.difference(DEFAULT, best, NEW + measure))}."
    )


def _places(scores: Scores, measure: str) -> str:
    """Return on how many data sets Taxarbor is first, or as good as the first."""
    counts = {"best": 0, "near": 0, "behind": 0}
    behind = []
    for name in scores.datasets:
        ours = scores.on(name, DEFAULT, NEW + measure)
        known = [scores.on(name, row, NEW + measure) for row in RIVALS]
        known = [one for one in known if not math.isnan(one.mean)]
        if math.isnan(ours.mean) or not known:
            continue
        best = max(known, key=lambda one: one.mean)
        error = math.hypot(standard_error(ours), standard_error(best))
        place = "best" if ours.mean >= best.mean else "near"
        place = "behind" if ours.mean + error < best.mean else place
        counts[place] += 1
        behind += [name] if place == "behind" else []
    total = sum(counts.values())
    if not total:
        return ""
    where = f", behind on {', '.join(behind)}" if behind else ""
    return (
        f"{CORRECTED[measure]} on new rows, by data set: Taxarbor is best, or within one "
        f"standard error of the best rival, on {counts['best'] + counts['near']} of {total} "
        f"(best on {counts['best']}{where}). The standard error is that of the difference of "
        "the two means over seeds."
    )


def standard_error(value: Mean) -> float:
    """Return the standard error of a mean; 0 where there is one value."""
    return value.spread / math.sqrt(value.n_values - 1) if value.n_values > 1 else 0.0


def _steadiness(scores: Scores) -> str:
    """Return how much ARI varies over seeds, beside that of bisecting k-means."""
    if scores.setup.n_seeds < 2:
        return ""
    spreads = []
    for row in (DEFAULT, BKM):
        means = [scores.on(name, row, NEW + "adjusted_rand") for name in scores.datasets]
        spreads.append(100.0 * float(np.mean([one.spread for one in means])))
    ours, theirs = spreads
    if math.isnan(ours + theirs):
        return ""
    verdict = "no more than" if ours <= theirs else "**more than**"
    return (
        "Standard deviation of ARI on new rows over seeds, mean over data sets: Taxarbor "
        f"{ours:.2f}, BKM {theirs:.2f}; {verdict} BKM's."
    )


def _times(scores: Scores) -> str:
    """Return the seconds of one fit, beside those of the fastest rival and of Ward."""
    where = TIMED if TIMED in scores.datasets else scores.datasets[0]
    times = {
        row.label: scores.median_seconds(where, row)
        for row in (DEFAULT, FOUR_STARTS, BKM, WARD)
    }
    ours = times.pop(DEFAULT.label)
    if math.isnan(ours):
        return ""
    parts = [f"{DEFAULT.label} {seconds(ours)}"]
    parts += [
        f"{name} {seconds(time)}"
        + (f" (Taxarbor takes {ours / time:.2f} times that)" if time > 0 else "")
        for name, time in times.items()
        if not math.isnan(time)
    ]
    return f"Seconds of one fit to half of {where}, median over seeds: {'; '.join(parts)}."
