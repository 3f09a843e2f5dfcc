"""The page of the paper's experiment: Markdown with figures, written from the results."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from experiments.claims import (
    PUBLISHED,
    Published,
    describe_claims,
    summarise_claims,
)
from experiments.data import SCALINGS, STAND_INS
from experiments.figures import (
    describe_sparsity,
    draw_heights,
    draw_sweep,
    draw_tree,
    grow_tree,
    sweep_panels,
    zero_shares,
)
from experiments.methods import DONE, METHODS, Job
from experiments.plan import Setup, plan_results
from experiments.run import Store, commit, machine
from experiments.tables import (
    CORRECTED,
    NOTHING,
    OURS,
    PAPERS,
    PROTOCOLS,
    Protocol,
    choose,
    done_jobs,
    median_seconds,
    number,
    of_setup,
    of_table,
    percent,
    rivals,
    score,
    seconds,
    summarise,
    table,
)

NO_RESULTS = "There are no results."
ADJUSTED = ("adjusted_shortest_path", "adjusted_rand")
"""Measures adjusted for chance that stand beside the paper's."""
INTRODUCTION = """\
# The paper's experiment

Written by `make results`; do not edit it by hand.

The experiment of *Hierarchical Maximum-Margin Clustering* (Zhou, Hwang, Schmidt, Sigal and
Mori, ICML 2015) on available data: rows as they are, {rows}, {seeds} of every random method.
{n_jobs} fits, {hours} hours on one core. Commit {commits}; {machine}; one thread per fit.

The two AWA data sets are the paper's images, with attributes learned again and one kind of
feature less. VEHICLE and IMAGENET stand for other images of other classes, so only the order
of methods can be compared with the paper.

There are two protocols.

- **best**, the paper's: for each seed and each measure, alpha and beta are those of
  {strengths} with the highest score. The labels choose them, for each measure separately.
  k-means, HKM and HKM-D take the best of ten starts. HMMC has the paper's settings: one start,
  raw strengths, children within a tenth of an equal share, and the mean of all rows as the
  origin of all nodes.
- **default**: each estimator with only the number of clusters set, without labels. Ours is
  Taxarbor.

All numbers are percent, means over seeds. SP, PS: agreement of the tree with the true tree, by
shortest paths and by path sharing. RI: Rand index of the leaves. aSP, aPS, ARI, AMI: adjusted
for chance, 0 for shuffled rows and 100 for a perfect match. DP: dendrogram purity. KM:
k-means; SC: spectral clustering; MMC: flat maximum-margin clustering; SL, AL, CL: single,
average and complete linkage; BKM: scikit-learn's bisecting k-means; HKM, HSC: top-down k-means
and spectral clustering, the most compact children first; HKM-D, HSC-D: the leaf with the
largest scatter first; HMMC-G, -E, -1, -2: group, exclusive, l1 and squared l2 penalty.
{lost}"""

CLAIMS_TEXT = """\
## The paper's claims

By means over seeds, protocol best unless stated otherwise."""

TABLES_TEXT = """\
## The paper's Table 1

*paper* is the published number. Ours is that of protocol best, and of protocol default for
Taxarbor. Seconds are those of one fit; the paper's are of 2015. The largest standard deviation
over seeds is {spread:.1f} points."""

HEIGHTS_TEXT = """\
## What SP measures

SP is one minus a mean squared error, and most pairs of rows are far apart in the true tree. A
tree whose leaves are far apart on average has a high SP, whatever rows are in the leaves. The
figure shows the SP of every tree against that of the same tree with shuffled rows, which is
known in closed form; trees on the diagonal carry no information about the classes.

![SP of every tree, against the same tree with shuffled rows]({picture})

Correlations over the trees of all methods and settings. Near 1 in the first column, the shape
of the tree alone determines SP. The last column has the aSP of HMMC's trees with the best SP,
and the aSP that trees of this shape need to reach the paper's SP."""

RANKS_TEXT = """\
## Adjusted for chance

HMMC by protocol best and Taxarbor by default: score and rank among all methods except our
other variants, then the best other method."""

SCALINGS_TEXT = """\
## Scaled rows

HMMC, protocol best, on rows as they are (none), scaled to unit length (unit) and standardized
(standard). The paper's raw strengths depend on the scale of the data. Scores that reach the
paper's are in bold."""

SWEEP_TEXT = """\
## More clusters and more children per split

The paper's Figure 2, protocol best. First row: 1, 1.5 and 2 times as many clusters as classes,
two children per split. Second row: two to five children per split. Two seeds; one for spectral
clustering."""

SPARSITY_TEXT = """\
## Sparsity

The paper's Figure 3: the share of zeros among all weights of a tree, with alpha = beta = 1."""

TREE_TEXT = """\
## A tree

The paper's Figure 4: the first four levels of a tree ({title}, seed 0; the settings with the
highest SP). Each node has its number of rows, its three largest classes, and the three
features with the largest weights in its split."""


def write_results(store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write the page, and its figures into a folder beside it; return all that was written.

    Figures go into the folder of the page's name, without the ending.
    """
    found = of_jobs(store.read(), plan_results(setup))
    jobs = done_jobs(found, setup)
    figures = page.with_suffix("")
    sections = [introduce(INTRODUCTION, of_setup(found, setup), setup)]
    if len(jobs):
        sections += _table_section(jobs, setup, figures)
        sections += [SCALINGS_TEXT, describe_scalings(found, setup)]
        sections += _sweep_section(jobs, setup, figures)
        sections += [SPARSITY_TEXT, describe_sparsity(zero_shares(jobs, setup))]
        sections += _tree_section(jobs, setup, figures)
    else:
        sections.append(NO_RESULTS)
    write_page(page, sections)
    return [page, *sorted(figures.glob("*.png"))]


def write_page(page: Path, sections: Iterable[str]) -> None:
    """Write sections of Markdown."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")


def of_jobs(found: pd.DataFrame, jobs: Iterable[Job]) -> pd.DataFrame:
    """Return the results of these jobs: those of the other page may be in the same file."""
    wanted: set[tuple[object, ...]] = set(jobs)
    fields = found[[*Job._fields]].itertuples(index=False, name=None)
    return found.loc[np.array([one in wanted for one in fields], dtype=np.bool_)]


def introduce(text: str, jobs: pd.DataFrame, setup: Setup) -> str:
    """Return how these results were made: on what, how many of them, and where."""
    lost = "".join(
        f"\n- {one.method} on {one.dataset}, {one.n_clusters} clusters, "
        f"seed {one.seed}: {one.status}"
        for one in jobs[jobs["status"] != DONE].itertuples()
    )
    return text.format(
        rows=f"at most {setup.max_rows:,} rows" if setup.max_rows else "all rows",
        seeds=f"{setup.n_seeds} seed" + "s" * (setup.n_seeds != 1),
        strengths=", ".join(f"{strength:g}" for strength in setup.strengths),
        n_jobs=f"{len(jobs):,}",
        hours=f"{jobs['seconds'].sum() / 3600:.1f}",
        minutes=f"{jobs['seconds'].sum() / 60:.0f}",
        commits=", ".join(sorted(set(jobs["commit"]))) or commit(),
        machine="; ".join(sorted(set(jobs["machine"]))) or machine(),
        lost=f"\nWithout a result:\n{lost}" if lost else "",
    )


def _table_section(jobs: pd.DataFrame, setup: Setup, figures: Path) -> Iterator[str]:
    yield summarise_claims(jobs, setup)
    yield CLAIMS_TEXT
    yield describe_claims(jobs, setup)
    tables = {name: here for name, here in _tables(jobs, setup) if name in setup.stand_ins()}
    yield TABLES_TEXT.format(spread=100.0 * max(map(_largest_spread, tables.values())))
    for dataset, here in tables.items():
        yield f"### {_title(dataset)}\n\n{_shape(dataset, setup)}"
        yield compare_methods(here, dataset)
    yield RANKS_TEXT
    yield describe_ranks(jobs, setup)
    draw_heights(tables, figures / "heights")
    yield HEIGHTS_TEXT.format(picture=_link(figures, "heights"))
    yield describe_heights(jobs, setup)


def _sweep_section(jobs: pd.DataFrame, setup: Setup, figures: Path) -> Iterator[str]:
    yield SWEEP_TEXT
    for measure, short in (("shortest_path", "SP"), ("adjusted_shortest_path", "aSP")):
        panels = sweep_panels(jobs, setup, measure)
        draw_sweep(panels, short, figures / f"sweep-{short}")
        yield f"![{short} by clusters and children]({_link(figures, f'sweep-{short}')})"


def _tree_section(jobs: pd.DataFrame, setup: Setup, figures: Path) -> Iterator[str]:
    chosen = grow_tree(jobs, setup)
    if chosen is None:
        yield "## A tree\n\nThere is no result to draw."
        return
    draw_tree(chosen, figures / "tree")
    yield TREE_TEXT.format(title=chosen.title)
    yield f"![the first levels of the tree]({_link(figures, 'tree')})"


def _link(figures: Path, name: str) -> str:
    """Return where a picture is, as seen from the page."""
    return quote(f"{figures.name}/{name}.png")


def _tables(jobs: pd.DataFrame, setup: Setup) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each data set's trees of the table, where there are any."""
    for dataset in setup.datasets():
        here = of_table(jobs, setup, dataset)
        if len(here):
            yield dataset, here


def _title(dataset: str) -> str:
    """Return the name of a data set, with that of the paper's which it stands in for."""
    return f"{dataset}: for {STAND_INS[dataset]}" if dataset in STAND_INS else dataset


def _shape(dataset: str, setup: Setup) -> str:
    data = setup.open(dataset)
    n_rows, n_features = data.X.shape
    return f"{n_rows:,} rows x {n_features:,} features, {data.n_classes} classes and clusters."


def compare_methods(here: pd.DataFrame, dataset: str) -> str:
    """Return each method's scores as published and as measured here, and seconds."""
    headings = ["method"]
    for short in PAPERS.values():
        headings += [f"{short} paper", short]
    lines = []
    for method in METHODS:
        printed = PUBLISHED.get((method, dataset), Published())
        protocol = _protocol_of(method)
        cells = [method]
        for measure in PAPERS:
            cells.append(number(getattr(printed, measure), 1))
            cells.append(number(100.0 * score(here, method, protocol, measure).mean, 1))
        for measure in ADJUSTED:
            cells.append(number(100.0 * score(here, method, protocol, measure).mean, 1))
        cells.append(NOTHING if math.isnan(printed.seconds) else f"{printed.seconds:,.1f}")
        lines.append([*cells, seconds(median_seconds(here, method, protocol))])
    adjusted = (CORRECTED[measure] for measure in ADJUSTED)
    return table([*headings, *adjusted, "s paper", "s"], lines)


def _protocol_of(method: str) -> Protocol:
    """Return the protocol of a method in the table: best, where it has one."""
    return "default" if method == OURS["default"] else "best"


def _largest_spread(here: pd.DataFrame) -> float:
    """Return the largest standard deviation over seeds in a table of methods."""
    spreads = (
        score(here, method, _protocol_of(method), measure).spread
        for method in METHODS
        for measure in (*PAPERS, *ADJUSTED)
    )
    return max((spread for spread in spreads if not math.isnan(spread)), default=0.0)


def describe_heights(jobs: pd.DataFrame, setup: Setup) -> str:
    """Return, for each data set, how much of SP is the shape of the tree alone."""
    lines = []
    for dataset, here in _tables(jobs, setup):
        spread = here[["shortest_path", "chance_shortest_path", "adjusted_rand"]].dropna()
        if len(spread) < 3:
            continue
        with np.errstate(invalid="ignore"):  # trees that are all the same
            related = np.corrcoef(spread.to_numpy().T)
        lines.append(
            [
                STAND_INS.get(dataset, dataset),
                number(len(spread), 0),
                number(related[0, 1], 3),
                number(related[0, 2], 3),
                _needed(here, dataset),
            ]
        )
    headings = ["data", "trees", "SP with SP shuffled", "SP with ARI"]
    return table([*headings, "HMMC: aSP, and aSP for the paper's SP"], lines)


def _needed(here: pd.DataFrame, dataset: str) -> str:
    """Return the aSP of HMMC's trees with the best SP, and what the paper's SP takes.

    At the shape of those trees: SP is 1 - E (1 - aSP), with E the error of shuffled rows.
    """
    printed = PUBLISHED.get(("HMMC", dataset))
    trees = choose(here, "HMMC", "best", "shortest_path")
    if printed is None or not len(trees):
        return ""
    error = 1.0 - summarise(trees, "chance_shortest_path").mean
    needed = 1.0 - (1.0 - printed.shortest_path / 100.0) / error
    ours = summarise(trees, "adjusted_shortest_path").mean
    return f"{100 * ours:.1f}, {'any' if needed <= 0.0 else f'{100 * needed:.1f}'}"


def describe_ranks(jobs: pd.DataFrame, setup: Setup) -> str:
    """Return who is best by each measure that is corrected for chance, and where ours is."""
    lines = []
    for dataset, here in _tables(jobs, setup):
        for protocol in PROTOCOLS:
            cells = [f"{STAND_INS.get(dataset, dataset)}, {protocol}"]
            cells += [_rank(here, protocol, measure) for measure in CORRECTED]
            lines.append(cells)
    return table(["data, protocol", *CORRECTED.values()], lines)


def _rank(here: pd.DataFrame, protocol: Protocol, measure: str) -> str:
    """Return ``HMMC 12.3 (3 of 13); Ward 15.1``: our other methods do not compete."""
    ours = score(here, OURS[protocol], protocol, measure).mean
    if math.isnan(ours):
        return ""
    known = rivals(here, protocol, measure)
    place = 1 + sum(one.mean > ours for one in known.values())
    told = f"{OURS[protocol]} {100 * ours:.1f} ({place} of {len(known) + 1})"
    best = next(iter(known.items()), None)
    return told if best is None else f"{told}; {best[0]} {100 * best[1].mean:.1f}"


def describe_scalings(found: pd.DataFrame, setup: Setup) -> str:
    """Return SP, PS and RI of HMMC, protocol best, for rows scaled in every way."""
    headings = ["data, rows"]
    for short in PAPERS.values():
        headings += [f"{short} paper", short]
    lines = []
    for scaling in SCALINGS:
        jobs = done_jobs(found, replace(setup, scaling=scaling))
        for dataset in setup.stand_ins():
            here = of_table(jobs, setup, dataset)
            printed = PUBLISHED.get(("HMMC", dataset), Published())
            cells = [f"{STAND_INS.get(dataset, dataset)}, {scaling}"]
            for measure in PAPERS:
                paper, ours = getattr(printed, measure), score(here, "HMMC", "best", measure)
                reached = 100.0 * ours.mean >= paper
                cells += [number(paper), f"**{percent(ours)}**" if reached else percent(ours)]
            lines.append(cells)
    lines.sort(key=lambda line: line[0])
    return table(headings, lines)
