"""Why the defaults are what they are: the numbers, and what they say in a few lines."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from taxarbor.bench._ablation import (
    DEFAULT,
    GROUPS,
    OURS,
    RIVALS,
    Group,
    Row,
    all_datasets,
    n_clusters_of,
)
from taxarbor.bench._jobs import write_settings
from taxarbor.bench._markdown import NOTHING, number, percent, plain, seconds, without_gaps
from taxarbor.bench._plan import Setup
from taxarbor.bench._select import Mean, summarise
from taxarbor.bench._table import CORRECTED

if TYPE_CHECKING:
    import pandas as pd

MARGINS = {measure: 2.0 if short == "aSP" else 1.0 for measure, short in CORRECTED.items()}
"""Points by which HMMC should be above the best rival."""

IN_FULL = ("adjusted_shortest_path", "adjusted_rand")
"""What is shown on every data set, for every variant."""

TIMED = "awa_pca"
"""Where seconds are compared, if it is there."""


class Scores(NamedTuple):
    """The results on some data sets, to be asked for."""

    jobs: "pd.DataFrame"
    setup: Setup
    datasets: tuple[str, ...]

    @classmethod
    def of(cls, jobs: "pd.DataFrame", setup: Setup) -> "Scores":
        """Return the results on all data."""
        return cls(jobs, setup, tuple(all_datasets(setup)))

    def on(self, dataset: str, row: Row, measure: str, multiple: float = 1.0) -> Mean:
        """Return the mean over seeds of a measure on one data set."""
        return summarise(self._of(dataset, row, multiple), measure)

    def known(self, measure: str, multiple: float = 1.0) -> list[str]:
        """Return the data sets on which any method has a measure: of trees, those with one."""
        if measure not in self.jobs.columns:
            return []
        sizes = {name: n_clusters_of(self.setup, name, multiple) for name in self.datasets}
        there = self.jobs[self.jobs[measure].notna()]
        pairs = set(zip(there["dataset"], there["n_clusters"], strict=True))
        return [name for name, size in sizes.items() if (name, size) in pairs]

    def over_all(self, row: Row, measure: str, multiple: float = 1.0) -> float:
        """Return the mean over data sets; NaN if one is missing, as means would not compare."""
        means = [
            self.on(name, row, measure, multiple).mean for name in self.known(measure, multiple)
        ]
        return float(np.mean(means)) if means else math.nan

    def median_seconds(self, dataset: str, row: Row) -> float:
        """Return the median time of one fit."""
        return float(self._of(dataset, row, 1.0)["seconds"].median())

    def _of(self, dataset: str, row: Row, multiple: float) -> "pd.DataFrame":
        jobs = self.jobs
        return jobs[
            (jobs["dataset"] == dataset)
            & (jobs["method"] == row.method)
            & (jobs["settings"] == write_settings(row.settings))
            & (jobs["n_clusters"] == n_clusters_of(self.setup, dataset, multiple))
            & (jobs["branching"] == 2)
        ]


def summarise_defaults(scores: Scores) -> str:
    """Return in a few lines how HMMC at its defaults compares with the rivals."""
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
    return without_gaps(["method", *CORRECTED.values(), "s"], lines)


def describe_everywhere(scores: Scores) -> Iterator[str]:
    """Yield for each measure a table of all methods on all data sets."""
    for measure, short in CORRECTED.items():
        if scores.known(measure):
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
                if scores.known(measure, multiple):
                    table = _in_full(scores, group.rows, measure, multiple)
                    yield f"{CORRECTED[measure]}:\n\n{table}"


def _differences(scores: Scores, group: Group, multiple: float) -> str:
    """Return the means over data sets, and their difference to the default's, the first."""
    lines = []
    usual = {name: scores.over_all(group.rows[0], name, multiple) for name in CORRECTED}
    for row in group.rows:
        cells = [row.told]
        for measure in CORRECTED:
            mean = scores.over_all(row, measure, multiple)
            cells.append(_beside(mean, usual[measure], is_same=row is group.rows[0]))
        lines.append(cells)
    return without_gaps(["means over data", *CORRECTED.values()], lines)


def _beside(mean: float, usual: float, *, is_same: bool) -> str:
    if math.isnan(mean):
        return NOTHING
    told = number(100.0 * mean, 1)
    if is_same or math.isnan(usual):
        return told
    return f"{told} ({100.0 * (mean - usual):+.1f})"


def _in_full(scores: Scores, rows: Sequence[Row], measure: str, multiple: float) -> str:
    """Return a measure of each row on each data set, with the highest in bold."""
    shown = scores.known(measure, multiple)
    found = {name: [scores.on(name, row, measure, multiple) for row in rows] for name in shown}
    lines = []
    for n, row in enumerate(rows):
        cells = [row.told]
        for means in found.values():
            told = percent(means[n], 1)
            known = [one.mean for one in means if not math.isnan(one.mean)]
            cells.append(f"**{told}**" if known and means[n].mean == max(known) else told)
        lines.append(cells)
    return without_gaps(["", *map(plain, found)], lines)


def _margin(scores: Scores, measure: str) -> str:
    """Return HMMC's mean, the best rival's, and whether the margin asked for holds."""
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
        f"{CORRECTED[measure]}: HMMC {100.0 * ours:.1f}, the best rival {best} "
        f"{100.0 * known[best]:.1f}{left_out}, difference {ahead:+.2f}. "
        f"A margin of {asked:g} {'point' if asked == 1.0 else 'points'}: {verdict}."
    )


def _leads(scores: Scores, measure: str) -> str:
    """Return on how many data sets HMMC is first, or as good as the first."""
    counts = {"best": 0, "near": 0, "behind": 0}
    behind = []
    for name in scores.known(measure):
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
        behind += [plain(name)] if place == "behind" else []
    total = sum(counts.values())
    if not total:
        return ""
    where = f", behind on {', '.join(behind)}" if behind else ""
    return (
        f"{CORRECTED[measure]} by data set: HMMC is best, or within one standard error of the "
        f"best rival, on {counts['best'] + counts['near']} of {total} (best on "
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
    for row in (DEFAULT, _rival("BKM")):
        means = [scores.on(name, row, "adjusted_rand") for name in scores.datasets]
        spreads.append(100.0 * float(np.mean([one.spread for one in means])))
    ours, theirs = spreads
    if math.isnan(ours + theirs):
        return ""
    told = "no more than" if ours <= theirs else "**more than**"
    return (
        f"Standard deviation of ARI over seeds, mean over data sets: HMMC {ours:.2f}, BKM "
        f"{theirs:.2f}; {told} BKM's."
    )


def _times(scores: Scores) -> str:
    """Return the seconds of one fit, beside those of the fastest rival and of Ward."""
    where = TIMED if TIMED in scores.datasets else scores.datasets[0]
    rows = (DEFAULT, OURS[1], _rival("BKM"), _rival("Ward"))
    times = {row.told: scores.median_seconds(where, row) for row in rows}
    known = {name: time for name, time in times.items() if not math.isnan(time)}
    if "HMMC" not in known:
        return ""
    ours = known["HMMC"]
    told = [
        f"{name} {seconds(time)}"
        + (f" (HMMC takes {ours / time:.2f} times that)" if name != "HMMC" and time > 0 else "")
        for name, time in known.items()
    ]
    return f"Seconds of one fit on {plain(where)}, median over seeds: {'; '.join(told)}."


def _rival(name: str) -> Row:
    (row,) = (row for row in RIVALS if row.told == name)
    return row
