"""Why the defaults are what they are: Taxarbor and other methods, and one change at a time.

Half of the rows are fitted; the other half is held out and scored. No setting is chosen by
labels.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.data import STAND_INS, list_datasets
from experiments.groups import N_ALIKE, agree, cluster
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
"""Prefix of the measures on held-out rows."""

OF_LEAVES = ("adjusted_rand", "adjusted_mutual_info")
"""Measures that clusters without a tree have as well."""

SHOWN = ("adjusted_shortest_path", "adjusted_rand")
"""Measures that are compared data set by data set."""

TIMED = "awa_pca"
"""The data set whose seconds are compared, if there is one of this name."""

INTRODUCTION = """\
# Why the defaults are what they are

Written by `make defaults`; do not edit it by hand.

`Taxarbor` compared with other methods at their defaults, and with itself with one choice
changed. Each data set ({rows}) is split at random into two halves: one is fitted, the other is
assigned by the fitted tree and scored. Methods without `predict` assign a held-out row to the
nearest cluster mean. There are as many clusters as classes, and {seeds}, each with other
halves, the same for all methods. No method sees a label. {n_jobs} fits, {minutes} minutes on
one core. Commit {commits}; {machine}. Seconds are those of fits on one thread.

All numbers are percent: means over seeds ± their standard deviation. aSP, aPS: agreement of
the tree with the true tree, by shortest paths and by path sharing. ARI, AMI: agreement of the
leaves with the classes. These four are adjusted for chance: 0 for shuffled rows, 100 for a
perfect match. DP: dendrogram purity.

- Ward, AL: SciPy's Ward and average linkage. BKM, KM: scikit-learn's `BisectingKMeans` and
  `KMeans`. KM+Ward: k-means with ten times as many centers as clusters (at most a third of the
  rows), then Ward's method on the centers.
- HKM, HKM-D: top-down k-means that next splits the leaf with the most compact children, or the
  leaf with the largest scatter.
- HMMC: the paper's method with relative strengths of 0.003, children of at least 0.3 of an
  equal share, and each node centered on its own mean.
- *clusters without rules*: the clusters that Taxarbor fits its rules to; [](rules.md) measures
  what the rules cost.

The defaults were tuned on these data sets with their labels, so results on other data may be
worse.
{lost}"""

MEANS_TEXT = """\
## Means over data sets

Held-out rows. Each data set has the same weight. Seconds are means over data sets of the
median fit. [](rules.md) has scores by data set and those of training rows."""

SAMPLE_TEXT = """\
## The size of the sample

Taxarbor finds its tree on a sample of {per_cluster} rows per cluster, and at least {least:,}
rows. Here all rows of each data set are halved, and the tree is found on a sample of one half
(all of it, where it has fewer rows). The same held-out rows are scored for every size."""

GROUPS_TEXT = """\
## One choice at a time

Held-out rows. The first line of each table is the default; the other lines are differences
from it, with their standard deviation over seeds. In the first table clusters have no rules,
so that each choice is measured by itself."""


AGREEMENT_TEXT = f"""\
## How far two seeds agree

ARI of the labels that two seeds give the same rows: of all rows of each data set, by all pairs
of {N_ALIKE} seeds, means over data sets; and the seconds of a fit to half of them, as above.
The last section of [](groups.md) has each data set, beside k-means."""


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
CLUSTERS = Row("clusters without rules", "variant", HALF)
"""Each row is in the leaf of the best score, so that a choice is measured without rules."""

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
OURS = (DEFAULT, CLUSTERS, Row("HMMC", "HMMC", {**PAPERS, **HALF}))


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
    return CLUSTERS._replace(label=label)


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
    return Row(f"in each split, alpha = beta = {alpha:g}", "HMMC", settings)


STARTS = (
    DEFAULT._replace(label=str(Taxarbor().n_init)),
    *(Row(str(n), "Taxarbor", {"n_init": n, **HALF}) for n in (1, 2, 4, 12)),
)
"""Their numbers; the default is the first."""

GROUPS = (
    Group(
        "leaves grown",
        (
            _default("twice as many as clusters"),
            _variant("as many as clusters", more=0),
            _variant("a cut of a tree of four times as many clusters", cut_of=4),
        ),
    ),
    Group("weight of a linked leaf", _others("power", (0.5, 1.0), "rows to the power {}")),
    Group("rounds of the last competition", _others("rounds", (1, 5))),
    Group(
        "shrinkage of the scatter",
        (
            _default("by the evidence, at least {:g}".format(default_of("shrinkage"))),
            _variant("at least 0.1", shrinkage=0.1),
            _variant("always the least", max_shrinkage=default_of("shrinkage")),
            _variant("Euclidean distance", shrinkage=1e6),
        ),
    ),
    Group(
        "start of a split",
        (
            _default("from the principal direction"),
            _variant("from Ward's clusters", starts=["ward"]),
            _variant("from distant rows", starts=["far_rows"]),
        ),
    ),
    Group(
        "split order",
        (_default("by gap"), *(_variant(f"by {one}", grow_by=one) for one in CRITERIA[1:])),
    ),
    Group(
        "least child in growth",
        (
            _default("a tenth of the node"),
            _variant("a quarter", balance=0.5),
            _variant("a row", balance=None),
        ),
    ),
    Group("ridge", _others("ridge", (0.03, 0.0003))),
    Group("coordinates", _others("coordinates", (32, 128))),
    Group("starts", STARTS),
    Group(
        "sparsity",
        (
            DEFAULT._replace(label="after the tree is complete"),
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
        sections += [summarise_defaults(scores), MEANS_TEXT, describe_means(scores)]
        text = SAMPLE_TEXT.format(least=SAMPLE_ROWS, per_cluster=ROWS_PER_CLUSTER)
        every_row = Scores.of(done_jobs(results, setup), setup)
        sections += [text, *describe_samples(every_row)]
        sections += [GROUPS_TEXT, *describe_groups(scores)]
        sections += [AGREEMENT_TEXT, describe_agreement(scores)]
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
    lines += [_places(scores, measure) for measure in SHOWN]
    lines += [_steadiness(scores), _times(scores)]
    return "\n".join(f"- {line}" for line in lines if line)


def describe_means(scores: Scores) -> str:
    """Return the means over data sets of all methods."""
    lines = []
    for row in (*RIVALS, *OURS):
        cells = [percent(scores.over_all(row, NEW + one), 1) for one in CORRECTED]
        times = [scores.median_seconds(name, row) for name in scores.datasets]
        lines.append([row.label, *cells, seconds(float(np.mean(times)))])
    return table(["method", *CORRECTED.values(), "s"], lines)


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
    """Yield a table for each default: its means, and what each other choice would change."""
    for first in (CLUSTERS, DEFAULT):
        groups = [group for group in GROUPS if _is_same(group.rows[0], first)]
        means = (percent(scores.over_all(first, NEW + measure), 1) for measure in CORRECTED)
        lines = [["default", *means]]
        for group in groups:
            default, *others = group.rows
            for row in others:
                changes = (scores.difference(row, first, NEW + one) for one in CORRECTED)
                label = f"{group.title}: {row.label}, not {default.label}"
                lines.append([label, *map(signed, changes)])
        yield table([first.label, *CORRECTED.values()], lines)


def describe_agreement(scores: Scores) -> str:
    """Return how far labels of two seeds agree, for each number of starts, by fits made now."""
    lines = []
    for row in sorted(STARTS, key=lambda row: int(row.label)):
        found, times = [], []
        for name in scores.datasets:
            X, k = scores.setup.open(name).X, n_clusters_of(scores.setup, name)
            found.append(agree(partial(cluster, X, k, n_init=int(row.label))))
            times.append(scores.median_seconds(name, row))
        ari = percent(mean_of([float(np.mean(found))]), 1)
        lines.append([row.label, ari, seconds(float(np.mean(times)))])
    return table(["starts", "ARI of two seeds", "s"], lines)


def _is_same(row: Row, other: Row) -> bool:
    """Say whether two rows are made in the same way, whatever their labels."""
    return (row.method, row.settings) == (other.method, other.settings)


def signed(value: Mean) -> str:
    """Return a difference as ``+1.2 ± 0.3``, in percent."""
    text = percent(value, 1)
    return text if math.isnan(value.mean) or value.mean < 0.0 else f"+{text}"


def _lead(scores: Scores, measure: str) -> str:
    """Return Taxarbor's mean on held-out rows, the best rival's, and the difference."""
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
        f"{CORRECTED[measure]} on held-out rows: Taxarbor {percent(ours, 1)}, best other "
        f"method {best.label} {percent(theirs[best.label], 1)}{left_out}, difference "
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
    n_good = counts["best"] + counts["near"]
    return (
        f"{CORRECTED[measure]} on held-out rows, by data set: Taxarbor is best, or within one "
        f"standard error of the best other method, on {n_good} of {total} "
        f"(best on {counts['best']}{where})."
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
        "Standard deviation of ARI on held-out rows over seeds, mean over data sets: Taxarbor "
        f"{ours:.2f}, BKM {theirs:.2f}; {verdict} BKM's."
    )


def _times(scores: Scores) -> str:
    """Return the seconds of one fit, beside those of the fastest rival and of Ward."""
    where = TIMED if TIMED in scores.datasets else scores.datasets[0]
    times = {row.label: scores.median_seconds(where, row) for row in (DEFAULT, BKM, WARD)}
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
