"""The numbers and claims that the paper publishes, beside our results."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from experiments.data import STAND_INS
from experiments.figures import sweep_panels, zero_shares
from experiments.plan import Setup
from experiments.tables import (
    OURS,
    Protocol,
    median_seconds,
    of_table,
    rivals,
    score,
    table,
)

STEADY = 0.02
"""A range of SP within which it is called stable."""


class Published(NamedTuple):
    """One method on one data set, as printed: SP, PS, RI in percent, and seconds."""

    shortest_path: float = math.nan
    path_sharing: float = math.nan
    rand: float = math.nan
    seconds: float = math.nan


_TABLE = """\
KM     77.95 92.83 96.04 5.2     77.48 91.34 94.50 7.4    75.44 76.76 78.08 2.9    79.66 82.03 87.14 4.0
SC     77.90 92.54 95.71 209.2   77.16 88.72 91.21 172.2  74.15 74.00 74.12 112.0  69.39 67.79 61.25 137.3
MMC    77.08 83.67 83.71 15957.7 77.32 90.59 93.54 6077.0 78.03 84.23 88.49 1366.6 79.98 82.74 89.24 2634.3
SL     63.97 16.24 2.65 88.3     64.00 16.24 2.69 80.9    58.21 29.12 5.30 61.2    45.85 32.97 5.24 84.5
AL     74.55 38.99 32.84 72.1    64.37 17.00 3.94 80.9    58.24 29.17 5.45 47.8    45.87 33.00 5.29 49.0
CL     92.60 87.54 93.33 81.8    68.14 22.63 34.27 47.6   58.30 29.26 5.58 54.2    46.46 33.62 6.59 69.3
HKM    71.95 40.46 30.02 1.6     85.00 76.86 79.77 3.2    77.68 65.75 59.75 2.2    82.85 80.93 84.67 1.9
HSC    81.59 69.84 67.43 247.0   79.47 47.69 57.25 873.2  68.59 45.84 36.62 745.4  64.76 52.69 53.64 913.6
HKM-D  92.59 91.01 95.97 5.8     91.43 88.24 95.02 2.4    84.89 74.77 85.37 1.9    81.42 80.87 86.60 3.2
HSC-D  94.18 90.38 95.98 293.4   79.94 48.02 57.97 873.4  69.29 46.07 37.11 316.9  48.19 37.01 11.00 892.9
HMMC   94.40 91.03 95.96 1986.9  93.69 89.66 95.65 1550.1 90.48 85.08 90.16 994.3  86.94 84.63 90.59 1411.6
HMMC-G 94.36 90.83 95.87 1389.6  93.77 89.59 95.56 1254.2 90.40 85.03 90.10 883.6  86.69 84.33 90.56 1016.4
HMMC-E 93.81 90.74 95.45 788.2   93.11 89.39 94.79 1408.8 87.82 83.00 86.26 616.3  85.77 83.98 89.06 1658.4
HMMC-1 87.77 77.49 77.84 558.1   92.01 89.69 95.49 769.9  89.94 84.72 89.54 486.9  86.81 84.52 90.52 690.1
HMMC-2 92.70 90.92 95.99 893.2   93.65 89.47 95.25 1449.1 90.05 84.71 89.68 541.3  86.13 84.08 89.94 1158.3
"""  # noqa: E501


def _read() -> dict[tuple[str, str], Published]:
    found = {}
    for line in _TABLE.splitlines():
        method, *numbers = line.split()
        values = [float(number) for number in numbers]
        for n, name in enumerate(STAND_INS):
            found[method, name] = Published(*values[4 * n : 4 * n + 4])
    return found


PUBLISHED = _read()
"""The paper's Table 1, by method and the name of our data set."""


class Claim(NamedTuple):
    """A claim of the paper, our result on each data set, and whether it holds there."""

    said: str
    found: list[str]
    holds: list[bool]

    def add(self, dataset: str, told: str, margin: float, holds: bool) -> None:
        """Note the result on a data set, unless a number is missing."""
        if not math.isnan(margin):
            self.found.append(f"{STAND_INS[dataset]} {told}")
            self.holds.append(holds)


def describe_claims(jobs: pd.DataFrame, setup: Setup) -> str:
    """Return the claims that the results allow to judge, as a Markdown table."""
    lines = [
        [one.said, "; ".join(one.found), f"{sum(one.holds)} of {len(one.holds)}"]
        for one in _claims(jobs, setup)
        if one.found
    ]
    return table(["the paper says", "here", "holds on"], lines)


def summarise_claims(jobs: pd.DataFrame, setup: Setup) -> str:
    """Return the results in a few lines: who leads, by SP and corrected for chance."""
    tables = _judged(jobs, setup)
    lines = []
    views: tuple[tuple[str, Protocol, str], ...] = (
        ("SP, the paper's protocol", "best", "shortest_path"),
        ("SP adjusted for chance, the paper's protocol", "best", "adjusted_shortest_path"),
        ("the same without labels, by default", "default", "adjusted_shortest_path"),
    )
    for told, protocol, measure in views:
        holds = _lead(tables, protocol, measure, told).holds
        lines.append(
            f"- {told}: {OURS[protocol]} leads on {sum(holds)} of {len(holds)} data sets."
        )
    return "\n".join(["## In short", "", *lines])


def _judged(jobs: pd.DataFrame, setup: Setup) -> dict[str, pd.DataFrame]:
    """Return the results of the table on each stand-in that HMMC was run on."""
    known = set(setup.datasets())
    tables = {name: of_table(jobs, setup, name) for name in STAND_INS if name in known}
    return {name: here for name, here in tables.items() if (here["method"] == "HMMC").any()}


def _claims(jobs: pd.DataFrame, setup: Setup) -> Iterator[Claim]:
    tables, asp = _judged(jobs, setup), "adjusted_shortest_path"
    said = "HMMC has the highest SP, of all but variants"
    yield _lead(tables, "best", "shortest_path", said)
    said = "(the same, adjusted for chance)"
    yield _lead(tables, "best", asp, said)
    said = "(the same for Taxarbor, adjusted for chance and without labels)"
    yield _lead(tables, "default", asp, said)
    yield _bottom_up(tables, asp)
    yield _sparser(tables, jobs, setup)
    yield _slower(tables)
    yield _stable(jobs, setup, "F", "whatever the number of clusters, 1 to 2 times the classes")
    yield _stable(jobs, setup, "K", "whatever the number of children per split, 2 to 5")


def _lead(
    tables: dict[str, pd.DataFrame], protocol: Protocol, measure: str, said: str
) -> Claim:
    claim = Claim(said, [], [])
    for name, here in tables.items():
        ours = score(here, OURS[protocol], protocol, measure).mean
        for rival, theirs in list(rivals(here, protocol, measure).items())[:1]:
            told = f"{100 * ours:.1f}, {rival} {100 * theirs.mean:.1f}"
            claim.add(name, told, ours - theirs.mean, ours > theirs.mean)
    return claim


def _bottom_up(tables: dict[str, pd.DataFrame], measure: str) -> Claim:
    claim = Claim("bottom-up methods do worse, here by aSP and the best of four", [], [])
    for name, here in tables.items():
        ours = score(here, "HMMC", "best", measure).mean
        known = rivals(here, "default", measure, ("bottom-up",))
        for rival, theirs in list(known.items())[:1]:
            told = f"{rival} {100 * theirs.mean:.1f}, HMMC {100 * ours:.1f}"
            claim.add(name, told, ours - theirs.mean, theirs.mean < ours)
    return claim


def _sparser(tables: dict[str, pd.DataFrame], jobs: pd.DataFrame, setup: Setup) -> Claim:
    claim = Claim("with alpha = beta = 1, HMMC is sparser than HMMC-G and HMMC-E", [], [])
    for name, shares in zero_shares(jobs, setup).items():
        if name in tables:
            found = [shares[one].mean for one in ("HMMC", "HMMC-G", "HMMC-E")]
            told = ", ".join(f"{100 * share:.1f}" for share in found)
            claim.add(name, f"{told} % zeros", sum(found), found[0] > max(found[1:]))
    return claim


def _slower(tables: dict[str, pd.DataFrame]) -> Claim:
    claim = Claim("HMMC takes longer than k-means", [], [])
    for name, here in tables.items():
        ours = median_seconds(here, "HMMC", "best")
        theirs = median_seconds(here, "KM", "default")
        told = f"{ours:.2f} s, one start of KM {theirs:.2f} s"
        claim.add(name, told, ours - theirs, ours > theirs)
    return claim


def _stable(jobs: pd.DataFrame, setup: Setup, axis: str, said: str) -> Claim:
    claim = Claim(f"SP is stable, here within {100 * STEADY:.0f} points, {said}", [], [])
    for panel in sweep_panels(jobs, setup, "shortest_path"):
        means = [one.mean for one in panel.lines.get("HMMC", []) if not math.isnan(one.mean)]
        if panel.axis == axis and panel.dataset in STAND_INS and len(means) > 1:
            low, high = min(means), max(means)
            told = f"{100 * low:.1f} to {100 * high:.1f}"
            claim.add(panel.dataset, told, high - low, high - low <= STEADY)
    return claim
