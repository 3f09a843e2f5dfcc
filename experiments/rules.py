"""What sparse rules cost: beside the clusters that they are found for, and other methods.

Half of the rows are fitted, the other half is new. No setting is chosen by labels.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from experiments.defaults import (
    BKM,
    CLUSTERS,
    DEFAULT,
    OURS,
    WARD,
    Row,
    Scores,
    all_datasets,
    plan_rows,
)
from experiments.methods import Job
from experiments.plan import Setup
from experiments.results import NO_RESULTS, introduce, of_jobs, write_page
from experiments.run import Store
from experiments.tables import CORRECTED, NOTHING, Mean, done_jobs, number, percent, table

MAX_ROWS = 6000
"""Rows of each data set; half of them are fitted."""


def _half(row: Row) -> Row:
    return row._replace(settings={**row.settings, "sample": "half"})


ROWS = tuple(
    map(
        _half,
        (
            DEFAULT,
            Row("5 features at most", "Taxarbor", {"max_features": 5}),
            CLUSTERS,
            OURS[-1]._replace(label="paper's greedy tree"),
            WARD,
            BKM,
        ),
    )
)
WIDE = (ROWS[0], _half(Row("k-means trees, 10 starts", "HKM-D", {"n_init": 10})))
BRANCHINGS = (3, 5)
"""Children per split of wide trees."""

FEATURES = {"mean_features": "features per split", "path_features": "features on a path"}

INTRODUCTION = """\
# Rules that decide

Written by `make rules`, not by hand: run it again rather than edit this page.

`Taxarbor` finds clusters, and then sparse rules for them, which decide where each row goes.
*Clusters without rules* are the same clusters, each row in the one of the best score in all
features: the ceiling for rules. Beside them are the paper's method, whose rules are found while
the tree is grown (relative strengths of 0.003, children of at least 0.3 of an equal share, each
node seen from its own mean), Ward's method and bisecting k-means (BKM). One half of the rows,
drawn at random, is fitted; the other half is new, and goes where the rules send it: with Ward's
method, which has none, to the nearest mean of a cluster. Data sets as they are, {rows}. As many
leaves as classes; {seeds}, that is random halves; no method saw a label. Commit {commits};
{machine}.

Numbers are points, that is percent. aSP, aPS: agreement of the tree with the true one, by
shortest paths and by shared paths; ARI, AMI: of the leaves with the classes; all four
corrected for chance. DP: dendrogram purity. *Features per split*: their mean number in a rule.
*Features on a path*: those of all rules that a row meets, mean over rows. ± is the standard
deviation over seeds: of the mean over data sets in the first table of a section, of the value
in the others.

The price of a feature was chosen on these data, by tables like these.
{lost}"""


def plan_rules(setup: Setup) -> Iterator[Job]:
    """Yield what the page needs, each job once."""
    setup = _small(setup)
    names = all_datasets(setup)
    yield from plan_rows(setup, names, ROWS)
    for branching in BRANCHINGS:
        for job in plan_rows(setup, names, WIDE):
            yield job._replace(branching=branching)


def write_rules(store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write the page; return that it was written."""
    setup = _small(setup)
    results = of_jobs(store.read(), plan_rules(setup))
    scores = Scores.of(done_jobs(results, setup), setup)
    sections = [introduce(INTRODUCTION, results, setup)]
    if len(scores.jobs):
        sections += ["## New rows", *_describe(scores, "new_")]
        sections += ["## Rows of the fit", *_describe(scores, "")]
        for branching in BRANCHINGS:
            sections.append(f"## New rows, up to {branching} children per split")
            sections.append(_means(scores, WIDE, "new_", branching))
    else:
        sections.append(NO_RESULTS)
    write_page(page, sections)
    return [page]


def _small(setup: Setup) -> Setup:
    return replace(setup, max_rows=min(setup.max_rows or MAX_ROWS, MAX_ROWS))


def _describe(scores: Scores, prefix: str) -> Iterator[str]:
    """Yield the means over data sets, their differences, and every data set."""
    yield _means(scores, ROWS, prefix)
    yield _differences(scores, prefix)
    for measure, short in CORRECTED.items():
        lines = [
            [name, *(percent(scores.on(name, row, prefix + measure), 1) for row in ROWS)]
            for name in scores.datasets
        ]
        yield f"### {short}\n\n{table(['data', *(row.label for row in ROWS)], lines)}"


def _means(scores: Scores, rows: tuple[Row, ...], prefix: str, branching: int = 2) -> str:
    lines = []
    for row in rows:
        agreement = [scores.over_all(row, prefix + one, branching) for one in CORRECTED]
        features = [scores.over_all(row, one, branching) for one in FEATURES]
        cells = [percent(one, 1) for one in agreement] + [_count(one) for one in features]
        lines.append([row.label, *cells])
    return table(["", *CORRECTED.values(), *FEATURES.values()], lines)


def _differences(scores: Scores, prefix: str) -> str:
    """Return by how much Taxarbor is above the methods without sparse rules."""
    lines = []
    for row in map(_half, (CLUSTERS, WARD, BKM)):
        cells = [f"Taxarbor less {row.label}"]
        for measure in CORRECTED:
            ours, other = (scores.over_all(one, prefix + measure) for one in (ROWS[0], row))
            difference = 100.0 * (ours.mean - other.mean)
            cells.append(NOTHING if math.isnan(difference) else f"{difference:+.2f}")
        lines.append(cells)
    return table(["mean over data sets", *CORRECTED.values()], lines)


def _count(value: Mean) -> str:
    spread = f" ± {value.spread:.1f}" if value.n_values > 1 else ""
    return number(value.mean, 1) + spread
