"""The page of the paper's experiment: Markdown with figures, written whole from the results."""

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
    describe_checks,
    describe_claims,
    summarise_claims,
)
from experiments.data import SCALINGS, STAND_INS
from experiments.figures import (
    describe_sparsity,
    describe_sweep,
    describe_tree,
    draw_heights,
    draw_sparsity,
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
    without_gaps,
)

NO_RESULTS = "There are no results."
FAR = 5.0
"""Points by which a published value and ours must differ to be listed."""

INTRODUCTION = """\
# Results

Written by `make results`, not by hand: run it again rather than edit this page.

The experiment of *Hierarchical Maximum-Margin Clustering* (Zhou, Hwang, Schmidt, Sigal and
Mori, ICML 2015) on data that can be had: rows as they are, {rows}, {seeds} of every
method that is random. {n_jobs} fits, {hours} hours of one core. Commit {commits}; {machine};
one thread per fit, as many fits side by side as there were workers.

Two protocols stand side by side.

- **best**, the paper's: for every seed and every measure, the alpha and beta, each out of
  {strengths}, at which that very measure is highest. The labels choose,
  and for each measure anew. Methods without such parameters have one setting; k-means, HKM
  and HKM-D take the best of ten starts. HMMC has the paper's setting: one start, raw
  strengths, children within a tenth of an equal share, one origin (the mean of all rows) for
  all nodes.
- **default**: what a user without labels gets, the estimator with only the number of clusters
  set. Ours is Taxarbor then, which has nothing for labels to choose; it may be better than
  what they choose, as children of equal shares can cost more than the labels gain.

Numbers are percent, means over seeds ± their standard deviation. SP, PS: agreement of the
learned tree with the true one, by shortest paths and by shared paths. RI: Rand index of the
leaves. aSP, aPS, ARI, AMI: corrected for chance, 0 for shuffled rows and 100 for the truth.
DP: dendrogram purity. *SP shuffled*: the SP of the same tree when its rows are shuffled. KM:
k-means; SC: spectral; MMC: flat maximum-margin clustering; SL, AL, CL: single, average,
complete link; BKM: scikit-learn's bisecting k-means; HKM, HSC: top-down k-means and spectral
clustering, the most compact children first; HKM-D, HSC-D: the most scattered leaf first;
HMMC-G, -E, -1, -2: with group, exclusive, l1, squared l2 penalty; with two children, -G and
-1 are the same but for the scale of alpha. Seconds are of one fit; MB is how much the process
grew beyond what it had, so 0 where that was enough.
{lost}"""

CHECKS_TEXT = """\
## What we aimed for, and what came out

The two AWA sets are the paper's images, with attributes learned anew and one kind of feature
less. VEHICLE and IMAGENET stand for other images of other classes (tiny_vehicle15 and
tiny_imagenet20, visual words; under their own names the same with features of a network), so
that there only the methods compare, not the numbers. Means are compared: a difference within
the spread is a tie. *Rows scaled*, below, has the first three lines on rows scaled in other
ways. The paper's seconds are of 2015, on other hardware."""

CLAIMS_TEXT = """\
### What the paper says of its results

Claim by claim, protocol best unless it says otherwise, by the means. Where one holds on fewer
than all data sets, our results contradict the paper, on AWA, or did not find the same on
other data; the tables below have the evidence."""

HEIGHTS_TEXT = """\
### What SP rewards

SP is one minus a mean squared error, and most pairs of rows are far apart in the true tree. A
tree whose leaves are far apart on average fits them well, whatever is in the leaves. So each
tree has an SP that it would have with its rows shuffled, known in closed form; the figure
shows the SP of every tree of the table against that. Trees on the diagonal know nothing of
the classes that SP could see. Where the first correlation below is near 1, how high a method
is on SP is decided by how far right it is, that is by the shape of the tree, rather than by
how far above the diagonal.

![SP of every tree, against the same tree with shuffled rows]({picture})

Correlations over the trees of all methods and settings; the mean SP of HMMC and its variants
by the height of the tree; and, of HMMC's trees with the best SP, the aSP, with the one that
trees of that shape would need to have the paper's SP:"""

RANKS_TEXT = """\
### Corrected for chance

HMMC for the best protocol, Taxarbor by default: the place among all methods but our other
ones, and the best of the others (or, where ours is first, the second):"""

DIFFERENCES_TEXT = """\
### Far from the paper's numbers

Values that differ by five points or more. The stand-ins for VEHICLE and IMAGENET have 8,250
images in 15 classes and 11,000 in 20, the paper 26,624 and 28,957 in 20, so that SP, PS and RI
have other levels there."""

SCALINGS_TEXT = """\
## Rows scaled

HMMC by the paper's protocol, beside the paper's numbers and HKM-D, on rows as they are (none),
of unit length (unit), and with columns of mean 0 and variance 1 (standard). The raw strengths
of the paper act on the scale of the rows, and so the shape of the tree depends on it. Bold:
at least the paper's."""

SWEEP_TEXT = """\
## More clusters, more children per split

The paper's Figure 2, protocol best. Above: as many clusters as classes, half as many again,
twice as many, with two children per split. Below: two to five children per split, as many
clusters as classes; flat and bottom-up methods have no such choice. Two seeds, and one of
spectral clustering, which takes long and hardly depends on it."""

SPARSITY_TEXT = """\
## Sparsity

The paper's Figure 3: the share of zeros among all weights of a tree, alpha = beta = 1,
paper's setting."""

TREE_TEXT = """\
## A tree

The paper's Figure 4: the first four layers of a tree ({told}, seed 0; the setting that is
best by SP). In each node its number of rows, the three largest classes with their
counts, and the three features that decide its split, by the length of their weights. No label
was seen in growing it, but for the choice of alpha and beta."""


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
        sections += _sparsity_section(jobs, setup, figures)
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
        rows=f"at most {setup.max_rows:,} rows of each" if setup.max_rows else "all rows",
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
    yield CHECKS_TEXT
    yield describe_checks(jobs, setup)
    yield CLAIMS_TEXT
    yield describe_claims(jobs, setup)
    yield "## Every method on every data set"
    trees = {name: here for name, here in _tables(jobs, setup) if name in setup.stand_ins()}
    draw_heights(trees, figures / "heights")
    yield HEIGHTS_TEXT.format(picture=_link(figures, "heights"))
    yield describe_heights(jobs, setup)
    yield RANKS_TEXT
    yield describe_ranks(jobs, setup)
    yield DIFFERENCES_TEXT
    yield describe_differences(jobs, setup)
    for dataset, here in _tables(jobs, setup):
        yield f"### {_title(dataset)}\n\n{_shape(dataset, setup)}"
        yield papers_measures(here, dataset)
        yield corrected_measures(here)


def _sweep_section(jobs: pd.DataFrame, setup: Setup, figures: Path) -> Iterator[str]:
    yield SWEEP_TEXT
    for measure, short in (("shortest_path", "SP"), ("adjusted_shortest_path", "aSP")):
        panels = sweep_panels(jobs, setup, measure)
        draw_sweep(panels, short, figures / f"sweep-{short}")
        yield f"### {short}"
        yield f"![{short} by clusters and children]({_link(figures, f'sweep-{short}')})"
        yield from describe_sweep(panels)


def _sparsity_section(jobs: pd.DataFrame, setup: Setup, figures: Path) -> Iterator[str]:
    shares = zero_shares(jobs, setup)
    draw_sparsity(shares, figures / "sparsity")
    yield SPARSITY_TEXT
    yield f"![share of zero weights]({_link(figures, 'sparsity')})"
    yield describe_sparsity(shares)


def _tree_section(jobs: pd.DataFrame, setup: Setup, figures: Path) -> Iterator[str]:
    chosen = grow_tree(jobs, setup)
    if chosen is None:
        yield "## A tree\n\nThere is no result to draw."
        return
    draw_tree(chosen, figures / "tree")
    yield TREE_TEXT.format(told=chosen.title)
    yield f"![the first layers of the tree]({_link(figures, 'tree')})"
    yield describe_tree(chosen)


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


def papers_measures(here: pd.DataFrame, dataset: str) -> str:
    """Return SP, PS, RI and seconds: as published, best over the grid, default."""
    headings = ["method"]
    for short in PAPERS.values():
        headings += [f"{short} paper", f"{short} best", f"{short} default"]
        headings += ["SP best, shuffled"] if short == "SP" else []
    lines = []
    for method in METHODS:
        printed = PUBLISHED.get((method, dataset), Published())
        cells = [method]
        for measure, short in PAPERS.items():
            cells.append(number(getattr(printed, measure)))
            cells += [percent(score(here, method, how, measure)) for how in PROTOCOLS]
            if short == "SP":
                by_sp = choose(here, method, "best", measure)
                cells.append(percent(summarise(by_sp, "chance_shortest_path")))
        cells.append(NOTHING if math.isnan(printed.seconds) else f"{printed.seconds:,.1f}")
        cells += [seconds(median_seconds(here, method, how)) for how in PROTOCOLS]
        lines.append(cells)
    return without_gaps([*headings, "s paper", "s best", "s default"], lines)


def corrected_measures(here: pd.DataFrame) -> str:
    """Return the measures that are corrected for chance, and the shape of the trees."""
    headings = ["method"]
    for short in CORRECTED.values():
        headings += [f"{short} best", f"{short} default"]
    lines = []
    for method in METHODS:
        cells = [method]
        for measure in CORRECTED:
            cells += [percent(score(here, method, how, measure)) for how in PROTOCOLS]
        tall = summarise(choose(here, method, "best", "shortest_path"), "height").mean
        default = choose(here, method, "default", "shortest_path")
        cells += [number(tall, 1), number(summarise(default, "height").mean, 1)]
        lines.append([*cells, number(summarise(default, "peak_mb").mean, 0)])
    return without_gaps([*headings, "height, best SP", "height, default", "MB"], lines)


def describe_heights(jobs: pd.DataFrame, setup: Setup) -> str:
    """Return, for each data set, how much of SP is the shape of the tree alone."""
    lines = []
    for dataset, here in _tables(jobs, setup):
        spread = here[["shortest_path", "chance_shortest_path", "adjusted_rand"]].dropna()
        if len(spread) < 3:
            continue
        with np.errstate(invalid="ignore"):  # trees that are all the same
            related = np.corrcoef(spread.to_numpy().T)
        ours = here[here["method"].str.startswith("HMMC")]
        by_height = ours.groupby("height")["shortest_path"].mean()
        told = ", ".join(f"{height:.0f}: {100 * sp:.1f}" for height, sp in by_height.items())
        lines.append(
            [
                STAND_INS.get(dataset, dataset),
                number(len(spread), 0),
                number(related[0, 1], 3),
                number(related[0, 2], 3),
                told,
                _needed(here, dataset),
            ]
        )
    headings = ["data", "trees", "SP with SP shuffled", "SP with ARI", "HMMC: SP by height"]
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


def describe_differences(jobs: pd.DataFrame, setup: Setup) -> str:
    """Return the published values that are far from ours."""
    lines = []
    for dataset, here in _tables(jobs, setup):
        for method in METHODS:
            printed = PUBLISHED.get((method, dataset), Published())
            for measure, short in PAPERS.items():
                ours, theirs = score(here, method, "best", measure), getattr(printed, measure)
                if abs(100.0 * ours.mean - theirs) >= FAR:
                    lines.append(
                        [method, STAND_INS[dataset], short, number(theirs), percent(ours)]
                    )
    return table(["method", "data", "measure", "paper", "ours"], lines)


def describe_scalings(found: pd.DataFrame, setup: Setup) -> str:
    """Return SP, PS and RI, protocol best, for rows scaled in every way."""
    headings = ["data, rows"]
    for short in PAPERS.values():
        headings += [f"{short} paper", f"{short} HMMC", f"{short} HKM-D"]
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
                cells.append(percent(score(here, "HKM-D", "best", measure)))
            by_sp = choose(here, "HMMC", "best", "shortest_path")
            cells.append(number(summarise(by_sp, "height").mean, 1))
            lines.append([*cells, percent(summarise(by_sp, "chance_shortest_path"))])
    lines.sort(key=lambda line: line[0])
    return table([*headings, "height, best SP", "SP best, shuffled"], lines)
