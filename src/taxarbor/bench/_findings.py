"""What the results say in words; every number in them is computed."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from taxarbor.bench._markdown import number, percent, plain, table
from taxarbor.bench._methods import METHODS
from taxarbor.bench._plan import Setup
from taxarbor.bench._published import PUBLISHED, STAND_INS
from taxarbor.bench._select import Protocol, choose, of_table, summarise
from taxarbor.bench._table import CORRECTED, PAPERS, rivals, score

if TYPE_CHECKING:
    import pandas as pd

FAR = 5.0
"""Points by which a published value and ours must differ to be listed."""


def describe_heights(jobs: "pd.DataFrame", setup: Setup) -> str:
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
                plain(STAND_INS.get(dataset, dataset)),
                number(len(spread), 0),
                number(related[0, 1], 3),
                number(related[0, 2], 3),
                told,
                _needed(here, dataset),
            ]
        )
    headings = ["data", "trees", "SP with SP shuffled", "SP with ARI", "HMMC: SP by height"]
    return table([*headings, "HMMC: aSP, and aSP for the paper's SP"], lines)


def _needed(here: "pd.DataFrame", dataset: str) -> str:
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


def describe_ranks(jobs: "pd.DataFrame", setup: Setup) -> str:
    """Return who is best by each measure that is corrected for chance, and where HMMC is."""
    lines = []
    for dataset, here in _tables(jobs, setup):
        for protocol in ("best", "default"):
            cells = [f"{plain(STAND_INS.get(dataset, dataset))}, {protocol}"]
            for measure in CORRECTED:
                cells += [_rank(here, protocol, measure)]
            lines.append(cells)
    return table(["data, protocol", *CORRECTED.values()], lines)


def describe_differences(jobs: "pd.DataFrame", setup: Setup) -> str:
    """Return the published values that are far from ours."""
    lines = []
    for dataset, here in _tables(jobs, setup):
        for method in METHODS:
            printed = PUBLISHED.get((method, dataset))
            for measure, short in PAPERS.items():
                ours = score(here, method, "best", measure)
                if printed is None or math.isnan(ours.mean):
                    continue
                theirs = getattr(printed, measure)
                if abs(100.0 * ours.mean - theirs) >= FAR:
                    lines.append(
                        [method, STAND_INS[dataset], short, number(theirs), percent(ours)]
                    )
    return table(["method", "data", "measure", "paper", "ours"], lines)


def _tables(jobs: "pd.DataFrame", setup: Setup) -> Iterator[tuple[str, "pd.DataFrame"]]:
    """Yield each data set's trees of the table, where there are any."""
    for dataset in setup.datasets():
        here = of_table(jobs, setup, dataset)
        if len(here):
            yield dataset, here


def _rank(here: "pd.DataFrame", protocol: Protocol, measure: str) -> str:
    """Return ``HMMC 12.3 (3 of 14); Ward 15.1``: variants of ours do not compete."""
    ours = score(here, "HMMC", protocol, measure).mean
    if math.isnan(ours):
        return ""
    known = rivals(here, protocol, measure)
    place = 1 + sum(one.mean > ours for one in known.values())
    told = f"HMMC {100 * ours:.1f} ({place} of {len(known) + 1})"
    best = next(iter(known.items()), None)
    return told if best is None else f"{told}; {best[0]} {100 * best[1].mean:.1f}"
