"""Why the defaults are what they are: Taxarbor beside other methods, and one change at a time.

No setting is chosen by labels.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
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
    NOTHING,
    Mean,
    done_jobs,
    number,
    percent,
    seconds,
    summarise,
    table,
)
from experiments.variants import CRITERIA, default_of
from taxarbor import Taxarbor
from taxarbor.estimators._taxarbor import ROWS_PER_CLUSTER, SAMPLE_ROWS

MARGINS = {measure: 2.0 if short == "aSP" else 1.0 for measure, short in CORRECTED.items()}
"""Points by which Taxarbor should be above the best rival."""

IN_FULL = ("adjusted_shortest_path", "adjusted_rand")
"""What is shown on every data set, for every variant."""

TIMED = "awa_pca"
"""Where seconds are compared, if it is there."""

READING = (
    "features per split, median",
    "largest",
    "of",
    "shared with the parent's rule",
)

INTRODUCTION = """\
# Why the defaults are what they are

Written by `make defaults`, not by hand: run it again rather than edit this page.

Taxarbor, beside other methods as they come and beside itself with one choice made otherwise.
Each choice is seen by itself, in the clusters that rules are then found for, each row in the
one that fits it best; [](rules.md) has what the rules cost. Rows as they are, {rows}, as many
clusters as classes, {seeds} of every method that is random. No method saw a
label. {n_jobs} fits, {hours} hours of one core. Commit {commits}; {machine}. Seconds are
of one thread, with two fits side by side (`--n-jobs` unless changed): they compare with each
other, and a fit alone may be faster.

Numbers are points, that is percent: means over seeds ± their standard deviation. aSP, aPS:
agreement of the learned tree with the true one, by shortest paths and by shared paths; ARI,
AMI: of the leaves with the classes; all four corrected for chance, 0 for shuffled rows and 100
for the truth. DP: dendrogram purity. A mean over data sets has a dash where a data set is
missing. Ward, AL: SciPy's Ward and average link; HKM, HKM-D: top-down k-means, the most compact
children or the most scattered leaf first; BKM: scikit-learn's bisecting k-means; KM+Ward:
k-means with ten times as many centres as clusters, a third of the rows at most, then Ward's
method on the centres; HMMC: the paper's method, greedy and sparse inside the alternation, with
relative strengths of 0.003, children of at least 0.3 of an equal share, and each node seen from
its own mean.

The defaults were chosen by tables like these, of the shared data sets (awa, tiny, wordnet,
pbmc), so they were chosen with the labels of these: on other data they may do worse.
{lost}"""

MEANS_TEXT = """\
## Means over data sets

The same weight for each data set; measures of trees over those with a true tree. Seconds are
means over data sets of the median fit."""

EVERYWHERE_TEXT = """\
## Every data set

The highest mean of each column in bold."""

SAMPLE_TEXT = """\
## The size of the sample

Taxarbor finds its tree on a sample: {per_cluster} rows per cluster, but at least {least:,}.
Every row is then routed by the rules. These data sets have fewer rows than that, so the tree is
found on all of them; here it is found on fewer, drawn at random, and all rows are routed. Means
over data sets ± their standard deviation over seeds, which is larger than most differences:
with other draws another size may come out as the smallest that is enough."""

GROUPS_TEXT = """\
## One choice at a time

The default is the first line of each table. In brackets: the difference to it, of the mean
over data sets. Then aSP and ARI on each data set, the highest in bold; a difference within the
spread is a tie."""

READABILITY_TEXT = """\
## How the rules read

Means over seeds, of the trees of Taxarbor: how many features the rule of a split uses, of how
many there are; and the share of its features that the rule of its parent uses too."""

SPARSER_TEXT = """\
On one data set, with the rules sought otherwise; the tree is the same:"""


class Row(NamedTuple):
    """A line of a table: its label, and how it is made."""

    label: str
    method: str
    settings: Settings


class Group(NamedTuple):
    """A choice: the default first, then the others."""

    title: str
    rows: tuple[Row, ...]


DEFAULT = Row("Taxarbor", "Taxarbor", {})
FOUR_STARTS = Row("Taxarbor, 4 starts", "Taxarbor", {"n_init": 4})
CLUSTERS = Row("clusters without rules", "variant", {})
"""Rows are in the leaves of the best score: each choice is seen without what rules do to it."""

BKM, WARD = Row("BKM", "BKM", {}), Row("Ward", "Ward", {})

RIVALS = (
    WARD,
    Row("AL", "AL", {}),
    Row("HKM", "HKM", {}),
    Row("HKM-D", "HKM-D", {}),
    Row("HKM-D, 10 starts", "HKM-D", {"n_init": 10}),
    BKM,
    Row("KM+Ward", "KM+Ward", {}),
)
OURS = (
    DEFAULT,
    FOUR_STARTS,
    CLUSTERS,
    Row("HMMC", "HMMC", {"alpha": 0.003, "beta": 0.003, "balance": 0.3, "center": "node"}),
)


SAMPLES = (
    *(
        Row(f"{size} rows per cluster", "Taxarbor", {"sample": size})
        for size in sorted({150, 300, 750, ROWS_PER_CLUSTER})
    ),
    DEFAULT._replace(label="all rows"),
)
MAX_LOSS = 0.2
"""Points of each mean that a sample may cost, beside all rows."""


def _default(label: str) -> Row:
    """Return Taxarbor's clusters, with the default of one of its choices as the label."""
    return CLUSTERS._replace(label=f"{label} (default)")


def _variant(label: str, **settings: object) -> Row:
    return Row(label, "variant", settings)


def _others(name: str, values: Sequence[object], label: str = "{}") -> tuple[Row, ...]:
    """Return the default of a choice, then a row for each other value of it."""
    known = signature(Taxarbor).parameters
    default = known[name].default if name in known else default_of(name)
    others = (_variant(label.format(one), **{name: one}) for one in values)
    return (_default(label.format(default)), *others)


def _sparse_inside(alpha: float) -> Row:
    settings = {"alpha": alpha, "beta": alpha, "balance": 0.5, "center": "node", "n_init": 4}
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

READABLE = (
    DEFAULT._replace(label="default"),
    Row("novelty = 0", "Taxarbor", {"novelty": 0.0}),
    *(Row(f"max_features = {most}", "Taxarbor", {"max_features": most}) for most in (3, 5, 10)),
)
"""What the rules of one data set are read with."""


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


def plan_defaults(setup: Setup) -> Iterator[Job]:
    """Yield what the page needs, each job once."""
    rows = (*RIVALS, *OURS, *SAMPLES, *(row for group in GROUPS for row in group.rows))
    jobs = plan_rows(setup, all_datasets(setup), rows)
    yield from dict.fromkeys(chain(jobs, plan_rows(setup, [setup.tree_dataset()], READABLE)))


def write_defaults(store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write the page; return that it was written."""
    results = of_jobs(store.read(), plan_defaults(setup))
    scores = Scores.of(done_jobs(results, setup), setup)
    sections = [introduce(INTRODUCTION, results, setup), "## In short"]
    if not len(scores.jobs):
        sections.append(NO_RESULTS)
    else:
        sections += [summarise_defaults(scores), MEANS_TEXT, describe_means(scores)]
        sections += [EVERYWHERE_TEXT, *describe_everywhere(scores)]
        text = SAMPLE_TEXT.format(least=SAMPLE_ROWS, per_cluster=ROWS_PER_CLUSTER)
        sections += [text, *describe_samples(scores)]
        sections += [GROUPS_TEXT, *describe_groups(scores)]
        sections += [READABILITY_TEXT, describe_readability(scores)]
        sections += [SPARSER_TEXT, describe_sparser(scores)]
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

    def on(self, dataset: str, row: Row, measure: str, branching: int = 2) -> Mean:
        """Return the mean over seeds of a measure on one data set."""
        return summarise(self._of(dataset, row, branching), measure)

    def over_all(self, row: Row, measure: str, branching: int = 2) -> Mean:
        """Return the mean over data sets, and its spread over seeds.

        NaN if a result is missing, as means would not compare.
        """
        by_set = []
        for name in self.datasets:
            jobs = self._of(name, row, branching).sort_values("seed")
            if measure not in jobs or not len(jobs) or jobs[measure].isna().any():
                return Mean()
            by_set.append(jobs[measure].to_numpy())
        n_seeds = max(map(len, by_set))
        if any(len(values) not in (1, n_seeds) for values in by_set):
            return Mean()
        # A method that is not random has one value, for all seeds.
        means = np.mean([np.broadcast_to(values, n_seeds) for values in by_set], axis=0)
        return Mean(float(means.mean()), float(means.std()), n_seeds)

    def median_seconds(self, dataset: str, row: Row) -> float:
        """Return the median time of one fit."""
        return float(self._of(dataset, row, 2)["seconds"].median())

    def _of(self, dataset: str, row: Row, branching: int) -> pd.DataFrame:
        jobs = self.jobs
        return jobs[
            (jobs["dataset"] == dataset)
            & (jobs["method"] == row.method)
            & (jobs["settings"] == write_settings(row.settings))
            & (jobs["n_clusters"] == n_clusters_of(self.setup, dataset))
            & (jobs["branching"] == branching)
        ]


def summarise_defaults(scores: Scores) -> str:
    """Return in a few lines how Taxarbor at its defaults compares with the rivals."""
    lines = [_margin(scores, measure) for measure in CORRECTED]
    lines += [_leads(scores, "adjusted_shortest_path"), _steadiness(scores), _times(scores)]
    return "\n".join(f"- {line}" for line in lines if line)


def describe_means(scores: Scores) -> str:
    """Return the means over data sets of all rivals and of ours."""
    lines = []
    for row in (*RIVALS, *OURS):
        means = [scores.over_all(row, measure).mean for measure in CORRECTED]
        times = [scores.median_seconds(name, row) for name in scores.datasets]
        cells = [number(100.0 * mean, 1) for mean in means]
        lines.append([row.label, *cells, seconds(float(np.mean(times)))])
    return table(["method", *CORRECTED.values(), "s"], lines)


def describe_everywhere(scores: Scores) -> Iterator[str]:
    """Yield for each measure a table of all methods on all data sets."""
    for measure, short in CORRECTED.items():
        yield f"### {short}\n\n{_in_full(scores, (*RIVALS, *OURS), measure)}"


def describe_samples(scores: Scores) -> Iterator[str]:
    """Yield the means for each size of the sample, and the smallest size that is enough."""
    means = [[scores.over_all(row, one) for one in CORRECTED] for row in SAMPLES]
    lines = [[row.label, *map(percent, own)] for row, own in zip(SAMPLES, means, strict=True)]
    yield table(["tree found on", *CORRECTED.values()], lines)
    values = 100.0 * np.array([[one.mean for one in own] for own in means])
    is_enough = (values >= values[-1] - MAX_LOSS).all(axis=1)
    if is_enough.any():
        smallest = SAMPLES[int(is_enough.argmax())].label
        yield (
            f"The smallest sample that keeps each mean within {MAX_LOSS} of all rows, or above "
            f"it, has {smallest}; Taxarbor takes {ROWS_PER_CLUSTER}."
        )


def describe_groups(scores: Scores) -> Iterator[str]:
    """Yield for each choice what the others would give."""
    for group in GROUPS:
        yield f"### {group.title}"
        yield _differences(scores, group)
        for measure in IN_FULL:
            yield f"{CORRECTED[measure]}:\n\n{_in_full(scores, group.rows, measure)}"


def describe_readability(scores: Scores) -> str:
    """Return how many features rules use on every data set."""
    lines = [[name, *_reading(scores, name, DEFAULT)] for name in scores.datasets]
    return table(["default", *READING], lines)


def describe_sparser(scores: Scores) -> str:
    """Return the same on one data set, for other settings of the rules."""
    name = scores.setup.tree_dataset()
    lines = [[row.label, *_reading(scores, name, row)] for row in READABLE]
    return table([name, *READING], lines)


def _reading(scores: Scores, dataset: str, row: Row) -> list[str]:
    median = scores.on(dataset, row, "median_features").mean
    if math.isnan(median):
        return [NOTHING] * len(READING)
    return [
        number(median, 1),
        number(scores.on(dataset, row, "most_features").mean, 1),
        number(float(scores.setup.open(dataset).X.shape[1]), 0),
        percent(scores.on(dataset, row, "parent_overlap"), 1),
    ]


def _differences(scores: Scores, group: Group) -> str:
    """Return the means over data sets, and their difference to the default's, the first."""
    lines = []
    first = {name: scores.over_all(group.rows[0], name).mean for name in CORRECTED}
    for row in group.rows:
        cells = [row.label]
        for measure in CORRECTED:
            mean = scores.over_all(row, measure).mean
            cell = number(100.0 * mean, 1)
            if row is not group.rows[0] and not math.isnan(mean + first[measure]):
                cell += f" ({100.0 * (mean - first[measure]):+.1f})"
            cells.append(cell)
        lines.append(cells)
    return table(["means over data", *CORRECTED.values()], lines)


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


def _margin(scores: Scores, measure: str) -> str:
    """Return Taxarbor's mean, the best rival's, and whether the margin asked for holds."""
    ours = scores.over_all(DEFAULT, measure).mean
    theirs = {row.label: scores.over_all(row, measure).mean for row in RIVALS}
    known = {name: mean for name, mean in theirs.items() if not math.isnan(mean)}
    if math.isnan(ours) or not known:
        return ""
    best = max(known, key=lambda name: known[name])
    ahead = 100.0 * (ours - known[best])
    asked = MARGINS[measure]
    verdict = "holds" if ahead >= asked else "**falls short**"
    missing = [name for name in theirs if name not in known]
    left_out = f" (without {', '.join(missing)}, which lack a result)" if missing else ""
    return (
        f"{CORRECTED[measure]}: Taxarbor {100.0 * ours:.1f}, the best rival {best} "
        f"{100.0 * known[best]:.1f}{left_out}, difference {ahead:+.2f}. "
        f"A margin of {asked:g} {'point' if asked == 1.0 else 'points'}: {verdict}."
    )


def _leads(scores: Scores, measure: str) -> str:
    """Return on how many data sets Taxarbor is first, or as good as the first."""
    counts = {"best": 0, "near": 0, "behind": 0}
    behind = []
    for name in scores.datasets:
        ours = scores.on(name, DEFAULT, measure)
        known = [scores.on(name, row, measure) for row in RIVALS]
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
        f"{CORRECTED[measure]} by data set: Taxarbor is best, or within one standard error of "
        f"the best rival, on {counts['best'] + counts['near']} of {total} (best on "
        f"{counts['best']}{where}). The standard error is that of the difference of the two "
        "means over seeds."
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
        means = [scores.on(name, row, "adjusted_rand") for name in scores.datasets]
        spreads.append(100.0 * float(np.mean([one.spread for one in means])))
    ours, theirs = spreads
    if math.isnan(ours + theirs):
        return ""
    verdict = "no more than" if ours <= theirs else "**more than**"
    return (
        f"Standard deviation of ARI over seeds, mean over data sets: Taxarbor {ours:.2f}, BKM "
        f"{theirs:.2f}; {verdict} BKM's."
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
    return f"Seconds of one fit on {where}, median over seeds: {'; '.join(parts)}."
