"""What the paper says of its results, claim by claim, beside what came out here."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from taxarbor.bench._markdown import table
from taxarbor.bench._plan import Setup
from taxarbor.bench._published import STAND_INS
from taxarbor.bench._select import Protocol, of_table
from taxarbor.bench._sparsity import zero_shares
from taxarbor.bench._sweep import sweep_panels
from taxarbor.bench._table import median_seconds, rivals, score

if TYPE_CHECKING:
    import pandas as pd

STEADY = 0.02
"""A range of SP within which it is called stable."""


class Claim(NamedTuple):
    """What the paper says, what came out on each data set, and on how many it holds."""

    said: str
    found: list[str]
    holds: list[bool]


def describe_claims(jobs: "pd.DataFrame", setup: Setup) -> str:
    """Return the claims that the results allow to judge, as a Markdown table."""
    known = _judged(jobs, setup)
    lines = [
        [one.said, "; ".join(one.found), f"{sum(one.holds)} of {len(one.holds)}"]
        for one in _claims(known, jobs, setup)
        if one.found
    ]
    return table(["the paper says", "here", "holds on"], lines)


def _judged(jobs: "pd.DataFrame", setup: Setup) -> dict[str, "pd.DataFrame"]:
    """Return the results of the table on each stand-in that HMMC was run on."""
    known = set(setup.datasets())
    tables = {name: of_table(jobs, setup, name) for name in STAND_INS if name in known}
    return {name: here for name, here in tables.items() if (here["method"] == "HMMC").any()}


def summarise_claims(jobs: "pd.DataFrame", setup: Setup) -> str:
    """Return the results in a few lines: who leads, by SP and corrected for chance."""
    tables = _judged(jobs, setup)
    lines = []
    views: tuple[tuple[str, Protocol, str], ...] = (
        ("SP, the paper's protocol", "best", "shortest_path"),
        ("SP corrected for chance, the paper's protocol", "best", "adjusted_shortest_path"),
        ("the same without labels, by default", "default", "adjusted_shortest_path"),
    )
    for told, protocol, measure in views:
        one = _lead(tables, protocol, measure, told)
        lines.append(f"- {told}: HMMC leads on {sum(one.holds)} of {len(one.holds)} data sets.")
    return "\n".join(["## In short", "", *lines])


def _claims(
    tables: dict[str, "pd.DataFrame"], jobs: "pd.DataFrame", setup: Setup
) -> Iterator[Claim]:
    yield _lead(tables, "best", "shortest_path", "HMMC has the highest SP, of all but variants")
    yield _lead(
        tables,
        "best",
        "adjusted_shortest_path",
        "(the same, corrected for chance: it captures the classes' tree best)",
    )
    yield _lead(
        tables,
        "default",
        "adjusted_shortest_path",
        "(the same, corrected for chance and without labels to choose alpha and beta)",
    )
    yield _bottom_up(tables)
    yield _sparser(tables, jobs, setup)
    yield _slower(tables)
    yield _stable(jobs, setup, "F", "whatever the number of clusters, 1 to 2 times the classes")
    yield _stable(jobs, setup, "K", "whatever the number of children per split, 2 to 5")


def _lead(
    tables: dict[str, "pd.DataFrame"], protocol: Protocol, measure: str, said: str
) -> Claim:
    claim = Claim(said, [], [])
    for name, here in tables.items():
        ours = score(here, "HMMC", protocol, measure).mean
        known = rivals(here, protocol, measure)
        if not known or math.isnan(ours):
            continue
        rival, theirs = next(iter(known.items()))
        claim.found.append(
            f"{STAND_INS[name]} {100 * ours:.1f}, {rival} {100 * theirs.mean:.1f}"
        )
        claim.holds.append(ours > theirs.mean)
    return claim


def _bottom_up(tables: dict[str, "pd.DataFrame"]) -> Claim:
    claim = Claim("bottom-up methods do worse, here by aSP and the best of four", [], [])
    measure = "adjusted_shortest_path"
    for name, here in tables.items():
        known = rivals(here, "default", measure, ("bottom-up",))
        ours = score(here, "HMMC", "best", measure).mean
        if not known or math.isnan(ours):
            continue
        best, theirs = next(iter(known.items()))
        claim.found.append(
            f"{STAND_INS[name]} {best} {100 * theirs.mean:.1f}, HMMC {100 * ours:.1f}"
        )
        claim.holds.append(theirs.mean < ours)
    return claim


def _sparser(tables: dict[str, "pd.DataFrame"], jobs: "pd.DataFrame", setup: Setup) -> Claim:
    claim = Claim("with alpha = beta = 1, HMMC is sparser than HMMC-G and HMMC-E", [], [])
    for name, shares in zero_shares(jobs, setup).items():
        if name not in tables:
            continue
        ours, *others = (shares[one].mean for one in ("HMMC", "HMMC-G", "HMMC-E"))
        if math.isnan(sum([ours, *others])):
            continue
        told = ", ".join(f"{100 * share:.1f}" for share in (ours, *others))
        claim.found.append(f"{STAND_INS[name]} {told} % zeros")
        claim.holds.append(ours > max(others))
    return claim


def _slower(tables: dict[str, "pd.DataFrame"]) -> Claim:
    claim = Claim("HMMC takes longer than k-means", [], [])
    for name, here in tables.items():
        ours = median_seconds(here, "HMMC", "best")
        theirs = median_seconds(here, "KM", "default")
        if math.isnan(ours + theirs):
            continue
        claim.found.append(f"{STAND_INS[name]} {ours:.2f} s, one start of KM {theirs:.2f} s")
        claim.holds.append(ours > theirs)
    return claim


def _stable(jobs: "pd.DataFrame", setup: Setup, axis: str, said: str) -> Claim:
    claim = Claim(f"SP is stable, here within {100 * STEADY:.0f} points, {said}", [], [])
    for panel in sweep_panels(jobs, setup, "shortest_path"):
        means = [one.mean for one in panel.lines.get("HMMC", []) if not math.isnan(one.mean)]
        if panel.axis == axis and panel.dataset in STAND_INS and len(means) > 1:
            low, high = min(means), max(means)
            name = STAND_INS[panel.dataset]
            claim.found.append(f"{name} {100 * low:.1f} to {100 * high:.1f}")
            claim.holds.append(high - low <= STEADY)
    return claim
