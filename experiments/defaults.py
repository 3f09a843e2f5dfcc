"""Why the defaults are what they are: rivals, ours, and one choice otherwise at a time.

No setting is chosen by labels.
"""

import math
from collections.abc import Iterator, Sequence
from inspect import signature
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
from experiments.variants import WORTHS, usual
from taxarbor import Taxarbor

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
clusters as classes unless it says otherwise, {seeds} of every method that is random. No method
saw a label. {n_jobs} fits, {hours} hours of one core. Commit {commits}; {machine}. Seconds are
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
pbmc), so that the labels of those had a say in them: on other data they may do worse.
{lost}"""

MEANS_TEXT = """\
## Means over data sets

The same weight for each data set; measures of trees over those with a true tree. Seconds are
means over data sets of the median fit."""

EVERYWHERE_TEXT = """\
## Every data set

The highest mean of each column in bold."""

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
    """A line of a table: what it is called, and how it is made."""

    told: str
    method: str
    settings: Settings


class Group(NamedTuple):
    """A choice: the default first, then the others, and for which numbers of clusters.

    These are multiples of the number of classes.
    """

    title: str
    rows: tuple[Row, ...]
    multiples: tuple[float, ...] = (1.0,)


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


def _default(told: str) -> Row:
    """Return Taxarbor's clusters, called by what one of its choices is by default."""
    return CLUSTERS._replace(told=f"{told} (default)")


def _variant(told: str, **settings: object) -> Row:
    return Row(told, "variant", settings)


def _others(name: str, values: Sequence[object], told: str = "{}") -> tuple[Row, ...]:
    """Return the default of a choice, then a row for each other value of it."""
    known = signature(Taxarbor).parameters
    own = known[name].default if name in known else usual(name)
    others = (_variant(told.format(one), **{name: one}) for one in values if one != own)
    return (_default(told.format(own)), *others)


def _sparse_inside(alpha: float) -> Row:
    settings = {"alpha": alpha, "beta": alpha, "balance": 0.5, "center": "node", "n_init": 4}
    return Row(f"inside, alpha = beta = {alpha:g}", "HMMC", settings)


GROUPS = (
    Group(
        "Leaves that are grown, and how they are linked",
        (
            _default("twice as many as clusters"),
            _variant("as many as clusters", more=0),
            *_others("power", (0.5, 0.75, 1.0), "rows to the power {}")[1:],
            _variant("cut of a tree of twice as many clusters", cut_of=2),
            _variant("cut of a tree of four times as many", cut_of=4),
        ),
    ),
    Group(
        "Moving rows when the tree is whole",
        (
            _default(f"rounds: {usual('rounds')}"),
            *_others("rounds", (1, 2, 3), "rounds: {}")[1:],
            _variant("plain distance", shrinkage=1e6),
            _variant("shrinkage 0.1", shrinkage=0.1),
        ),
    ),
    Group(
        "Starts per split",
        (
            *_others("n_init", (1, 2, 4, 12)),
            _variant("one, from Ward's clusters", starts=["ward"]),
            _variant("one, from far rows", starts=["far_rows"]),
        ),
    ),
    Group(
        "Which leaf is split next",
        (_default("by gap"), *(_variant(f"by {worth}", grow_by=worth) for worth in WORTHS[1:])),
        (0.5, 1.0, 2.0),
    ),
    Group(
        "Balance",
        (
            *_others("balance", (0.9, 0.6, 0.5, 0.4, 0.3), "balance {}"),
            _variant("no balance", balance=None),
        ),
    ),
    Group("Ridge", _others("ridge", (0.03, 0.003, 0.0003))),
    Group("Coordinates", _others("coordinates", (16, 32, 128))),
    Group(
        "Sparsity, after the tree is whole or inside the alternation",
        (
            DEFAULT._replace(told="after (default)"),
            *(_sparse_inside(alpha) for alpha in (0.003, 0.01, 0.03)),
        ),
    ),
)

READABLE = (
    DEFAULT._replace(told="default"),
    Row("novelty = 0", "Taxarbor", {"novelty": 0.0}),
    *(Row(f"max_features = {most}", "Taxarbor", {"max_features": most}) for most in (3, 5, 10)),
)
"""What the rules of one data set are read with."""


def all_datasets(setup: Setup) -> list[str]:
    """Return all data with its own rows, and other rows where these are of the experiment."""
    found = list_datasets(setup.folder)
    return [name for name in found if "/" not in name or name in STAND_INS]


def n_clusters_of(setup: Setup, dataset: str, multiple: float) -> int:
    """Return a multiple of the number of classes, but two at least."""
    return max(int(multiple * setup.n_classes(dataset)), 2)


def plan_defaults(setup: Setup) -> Iterator[Job]:
    """Yield what the page needs, each job once."""
    lines = [(row, 1.0) for row in (*RIVALS, *OURS)]
    for group in GROUPS:
        lines += [(row, multiple) for multiple in group.multiples for row in group.rows]
    wanted = [(name, *line) for name in all_datasets(setup) for line in lines]
    wanted += [(setup.tree_dataset(), row, 1.0) for row in READABLE]
    yield from dict.fromkeys(
        job
        for name, row, multiple in wanted
        for job in setup.jobs(
            name,
            find_method(row.method),
            row.settings,
            n_clusters=n_clusters_of(setup, name, multiple),
        )
    )


def write_defaults(store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write the page; return that it was written."""
    found = of_jobs(store.read(), plan_defaults(setup))
    scores = Scores.of(done_jobs(found, setup), setup)
    sections = [introduce(INTRODUCTION, found, setup), "## In short"]
    if not len(scores.jobs):
        sections.append(NO_RESULTS)
    else:
        sections += [summarise_defaults(scores), MEANS_TEXT, describe_means(scores)]
        sections += [EVERYWHERE_TEXT, *describe_everywhere(scores)]
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

    def on(self, dataset: str, row: Row, measure: str, multiple: float = 1.0) -> Mean:
        """Return the mean over seeds of a measure on one data set."""
        return summarise(self._of(dataset, row, multiple), measure)

    def over_all(self, row: Row, measure: str, multiple: float = 1.0) -> float:
        """Return the mean over data sets; NaN if one is missing, as means would not compare."""
        means = [self.on(name, row, measure, multiple).mean for name in self.datasets]
        return float(np.mean(means))

    def median_seconds(self, dataset: str, row: Row) -> float:
        """Return the median time of one fit."""
        return float(self._of(dataset, row, 1.0)["seconds"].median())

    def _of(self, dataset: str, row: Row, multiple: float) -> pd.DataFrame:
        jobs = self.jobs
        return jobs[
            (jobs["dataset"] == dataset)
            & (jobs["method"] == row.method)
            & (jobs["settings"] == write_settings(row.settings))
            & (jobs["n_clusters"] == n_clusters_of(self.setup, dataset, multiple))
            & (jobs["branching"] == 2)
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
        means = [scores.over_all(row, measure) for measure in CORRECTED]
        times = [scores.median_seconds(name, row) for name in scores.datasets]
        cells = [number(100.0 * mean, 1) for mean in means]
        lines.append([row.told, *cells, seconds(float(np.mean(times)))])
    return table(["method", *CORRECTED.values(), "s"], lines)


def describe_everywhere(scores: Scores) -> Iterator[str]:
    """Yield for each measure a table of all methods on all data sets."""
    for measure, short in CORRECTED.items():
        yield f"### {short}\n\n{_in_full(scores, (*RIVALS, *OURS), measure, 1.0)}"


def describe_groups(scores: Scores) -> Iterator[str]:
    """Yield for each choice what the others would give."""
    for group in GROUPS:
        yield f"### {group.title}"
        for multiple in group.multiples:
            if len(group.multiples) > 1:
                yield f"**F = {multiple:g} x the number of classes**"
            yield _differences(scores, group, multiple)
            for measure in IN_FULL:
                full = _in_full(scores, group.rows, measure, multiple)
                yield f"{CORRECTED[measure]}:\n\n{full}"


def describe_readability(scores: Scores) -> str:
    """Return how many features rules use on every data set."""
    lines = [[name, *_reading(scores, name, DEFAULT)] for name in scores.datasets]
    return table(["default", *READING], lines)


def describe_sparser(scores: Scores) -> str:
    """Return the same on one data set, for other settings of the rules."""
    name = scores.setup.tree_dataset()
    lines = [[row.told, *_reading(scores, name, row)] for row in READABLE]
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


def _differences(scores: Scores, group: Group, multiple: float) -> str:
    """Return the means over data sets, and their difference to the default's, the first."""
    lines = []
    first = {name: scores.over_all(group.rows[0], name, multiple) for name in CORRECTED}
    for row in group.rows:
        cells = [row.told]
        for measure in CORRECTED:
            mean = scores.over_all(row, measure, multiple)
            told = number(100.0 * mean, 1)
            if row is not group.rows[0] and not math.isnan(mean + first[measure]):
                told += f" ({100.0 * (mean - first[measure]):+.1f})"
            cells.append(told)
        lines.append(cells)
    return table(["means over data", *CORRECTED.values()], lines)


def _in_full(scores: Scores, rows: Sequence[Row], measure: str, multiple: float) -> str:
    """Return a measure of each row on each data set, with the highest in bold."""
    found = {
        name: [scores.on(name, row, measure, multiple) for row in rows]
        for name in scores.datasets
    }
    lines = []
    for n, row in enumerate(rows):
        cells = [row.told]
        for means in found.values():
            told = percent(means[n], 1)
            known = [one.mean for one in means if not math.isnan(one.mean)]
            cells.append(f"**{told}**" if known and means[n].mean == max(known) else told)
        lines.append(cells)
    return table(["", *found], lines)


def _margin(scores: Scores, measure: str) -> str:
    """Return Taxarbor's mean, the best rival's, and whether the margin asked for holds."""
    ours = scores.over_all(DEFAULT, measure)
    theirs = {row.told: scores.over_all(row, measure) for row in RIVALS}
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
    told = "no more than" if ours <= theirs else "**more than**"
    return (
        f"Standard deviation of ARI over seeds, mean over data sets: Taxarbor {ours:.2f}, BKM "
        f"{theirs:.2f}; {told} BKM's."
    )


def _times(scores: Scores) -> str:
    """Return the seconds of one fit, beside those of the fastest rival and of Ward."""
    where = TIMED if TIMED in scores.datasets else scores.datasets[0]
    times = {
        row.told: scores.median_seconds(where, row) for row in (DEFAULT, FOUR_STARTS, BKM, WARD)
    }
    ours = times.pop(DEFAULT.told)
    if math.isnan(ours):
        return ""
    told = [f"{DEFAULT.told} {seconds(ours)}"]
    told += [
        f"{name} {seconds(time)}"
        + (f" (Taxarbor takes {ours / time:.2f} times that)" if time > 0 else "")
        for name, time in times.items()
        if not math.isnan(time)
    ]
    return f"Seconds of one fit on {where}, median over seeds: {'; '.join(told)}."
