"""What rules cost on held-out rows, and how many features they use.

Half of the rows are fitted, the other half is held out. No setting is chosen by labels.
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
    SHOWN,
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
ROWS = (DEFAULT, TWO_FEATURES, CLUSTERS, WARD, BKM, KM)
WITH_RULES = (DEFAULT, TWO_FEATURES, BKM)
BY_DATASET = (DEFAULT, CLUSTERS, WARD, BKM, KM)

FEATURES = {
    "mean_features": "features per rule",
    "path_features": "features on a path",
    "n_rules": "rules",
    "short_rules": f"at most {SHORT} features, two children",
}

WEAK = ((256, 50, 0.5), (256, 200, 0.5), (768, 200, 0.35), (768, 1000, 0.5))
"""Features, clusters, and the standard deviation of their centers."""

WEAK_ROWS = (DEFAULT, BKM, KM)

MIN_ROWS_PER_CLUSTER = 20
"""Generated data with fewer rows is skipped, as in a quick run."""

INTRODUCTION = """\
# What rules cost

Written by `make rules`; do not edit it by hand.

`Taxarbor` finds clusters first and sparse rules second, and the rules decide where each row
goes. This page measures what the rules cost out of sample and how many features they use. Each
data set ({rows}) is split at random into two halves: one is fitted, the other is assigned by
the fitted tree and scored. There are as many leaves as classes, and {seeds}, each with other
halves, the same for all methods. No method sees a label. {n_jobs} fits, {minutes} minutes on
one core. Commit {commits}; {machine}.

- `max_features=2`: `Taxarbor` with that parameter.
- *clusters without rules*: the clusters that the rules are fitted to. A row goes to the leaf
  with the best score in all features.
- Ward: SciPy's Ward linkage; held-out rows go to the nearest cluster mean. BKM and KM:
  scikit-learn's `BisectingKMeans` and `KMeans`. KM has no tree.

All numbers are percent. aSP, aPS: agreement of the tree with the true tree, by shortest paths
and by path sharing. ARI, AMI: agreement of the leaves with the classes. These four are
adjusted for chance. DP: dendrogram purity. ± is the standard deviation over seeds.

The cost per feature was tuned on these data sets, so results on other data may be worse.
{lost}"""

NEW_TEXT = """\
## Held-out rows

Means over data sets, then the difference between Taxarbor and each other method."""

READING_TEXT = f"""\
## Number of features

*Features on a path* are those of all rules from the root to a leaf, averaged over leaves; a
feature counts once per rule. The last column counts rules that choose between two children by
at most {SHORT} features. Means over data sets, then the default on each data set."""

FITTED_TEXT = """\
## Training rows

The same means for the half that was fitted."""

WEAK_TEXT = """\
## Many weak features

Generated data without a tree: spherical clusters of unit variance, with centers drawn at the
given standard deviation in every feature. {rows:,} rows are fitted and as many are held out;
one seed. ARI of held-out rows, with that of training rows in brackets, and seconds of the fit
on one thread."""


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
        sections += [NEW_TEXT, _means(scores, NEW), _differences(scores)]
        sections += _on_every_dataset(scores)
        sections += [READING_TEXT, _reading(scores), _reading_everywhere(scores)]
        sections += [FITTED_TEXT, _means(scores, "")]
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


def _differences(scores: Scores) -> str:
    """Return Taxarbor's mean over data sets minus that of each other method."""
    lines = []
    for row in ROWS[1:]:
        means = (scores.difference(DEFAULT, row, NEW + measure) for measure in CORRECTED)
        lines.append([row.label, *map(signed, means)])
    return table(["Taxarbor minus", *CORRECTED.values()], lines)


def _on_every_dataset(scores: Scores) -> Iterator[str]:
    for measure in SHOWN:
        rows = [row for row in BY_DATASET if has_measure(row, measure)]
        lines = [
            [name, *(percent(scores.on(name, row, NEW + measure), 1) for row in rows)]
            for name in scores.datasets
        ]
        heads = ["data", *(row.label for row in rows)]
        yield f"### {CORRECTED[measure]} by data set\n\n{table(heads, lines)}"


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
