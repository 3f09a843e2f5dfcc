"""What was hoped for, beside what came out; nothing here passes by itself."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from taxarbor.bench._markdown import number, percent, seconds, table
from taxarbor.bench._plan import Setup
from taxarbor.bench._published import PUBLISHED, STAND_INS
from taxarbor.bench._select import Mean, of_table
from taxarbor.bench._sparsity import zero_shares
from taxarbor.bench._table import PAPERS, median_seconds, rivals, score

if TYPE_CHECKING:
    import pandas as pd

FASTER = 2000.0
SLOWER = 2.0


class Check(NamedTuple):
    """One hope: what, on which data, what was asked, what came, whether it holds."""

    what: str
    dataset: str
    asked: str
    got: str
    holds: bool


def describe_checks(jobs: "pd.DataFrame", setup: Setup) -> str:
    """Return all checks that the results allow, as a Markdown table."""
    headings = ["HMMC, paper's protocol", "data", "asked", "came out", "holds"]
    lines = [
        [one.what, one.dataset, one.asked, one.got, "yes" if one.holds else "**no**"]
        for one in find_checks(jobs, setup)
    ]
    return table(headings, lines)


def find_checks(jobs: "pd.DataFrame", setup: Setup) -> Iterator[Check]:
    """Yield the checks of each stand-in of the paper's data that there are results for."""
    for dataset, shares in zero_shares(jobs, setup).items():
        if dataset not in STAND_INS:
            continue
        here = of_table(jobs, setup, dataset)
        if not len(here[here["method"] == "HMMC"]):
            continue
        if STAND_INS[dataset].startswith("AWA"):
            yield from _against_paper(here, dataset)
        yield from _against_baselines(here, dataset)
        yield from _against_scatter(here, dataset)
        yield from _sparser(shares, dataset)
        yield from _speed(here, dataset)


def _against_paper(here: "pd.DataFrame", dataset: str) -> Iterator[Check]:
    for measure, short in PAPERS.items():
        printed = getattr(PUBLISHED["HMMC", dataset], measure)
        ours = score(here, "HMMC", "best", measure)
        yield Check(
            f"{short} at least the paper's",
            STAND_INS[dataset],
            f"≥ {number(printed)}",
            percent(ours),
            100.0 * ours.mean >= printed,
        )


def _against_baselines(here: "pd.DataFrame", dataset: str) -> Iterator[Check]:
    """Compare SP with that of every method that is not a variant of ours."""
    known = rivals(here, "best", "shortest_path")
    if not known:
        return
    best = next(iter(known))
    ours = score(here, "HMMC", "best", "shortest_path")
    yield Check(
        f"SP above every baseline's (the best: {best})",
        STAND_INS[dataset],
        f"> {percent(known[best])}",
        percent(ours),
        ours.mean > known[best].mean,
    )


def _against_scatter(here: "pd.DataFrame", dataset: str) -> Iterator[Check]:
    for measure in ("path_sharing", "rand"):
        theirs, ours = (score(here, name, "best", measure) for name in ("HKM-D", "HMMC"))
        if math.isnan(theirs.mean):
            continue
        yield Check(
            f"{PAPERS[measure]} at least HKM-D's",
            STAND_INS[dataset],
            f"≥ {percent(theirs)}",
            percent(ours),
            ours.mean >= theirs.mean,
        )


def _sparser(shares: Mapping[str, Mean], dataset: str) -> Iterator[Check]:
    ours = shares["HMMC"]
    for variant in ("HMMC-G", "HMMC-E"):
        theirs = shares[variant]
        if math.isnan(theirs.mean):
            continue
        yield Check(
            f"zero weights above {variant}'s",
            STAND_INS[dataset],
            f"> {percent(theirs)}",
            percent(ours),
            ours.mean > theirs.mean,
        )


def _speed(here: "pd.DataFrame", dataset: str) -> Iterator[Check]:
    ours = median_seconds(here, "HMMC", "best")
    printed = PUBLISHED["HMMC", dataset].seconds
    if STAND_INS[dataset].startswith("AWA"):
        yield Check(
            "times faster than the paper's",
            STAND_INS[dataset],
            f"≥ {number(FASTER, 0)}",
            f"{number(printed / ours, 0)} ({seconds(ours)} s)",
            printed / ours >= FASTER,
        )
    scatter = median_seconds(here, "HKM-D", "default")
    if math.isnan(scatter):
        return
    yield Check(
        "seconds, as a multiple of HKM-D's with one start",
        STAND_INS[dataset],
        f"≤ {number(SLOWER, 0)}",
        f"{number(ours / scatter)} ({seconds(ours)} and {seconds(scatter)} s)",
        ours / scatter <= SLOWER,
    )
