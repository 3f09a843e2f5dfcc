"""What scaling the rows does to HMMC and to its nearest rival."""

from dataclasses import replace
from typing import TYPE_CHECKING

from taxarbor.bench._datasets import SCALINGS
from taxarbor.bench._markdown import number, percent, plain, table
from taxarbor.bench._plan import Setup, sweep_datasets
from taxarbor.bench._published import PUBLISHED, STAND_INS
from taxarbor.bench._select import choose, of_table, spread_out, summarise
from taxarbor.bench._table import PAPERS, score

if TYPE_CHECKING:
    import pandas as pd


def describe_scalings(found: "pd.DataFrame", setup: Setup) -> str:
    """Return SP, PS and RI, protocol best, for rows scaled in every way."""
    headings = ["data, rows"]
    for short in PAPERS.values():
        headings += [f"{short} paper", f"{short} HMMC", f"{short} HKM-D"]
    lines = []
    for scaling in SCALINGS:
        jobs = spread_out(found, replace(setup, scaling=scaling))
        for dataset in sweep_datasets(setup):
            lines.append(_line(of_table(jobs, setup, dataset), dataset, scaling))
    lines.sort(key=lambda line: line[0])
    return table([*headings, "height, best SP", "SP best, shuffled"], lines)


def _line(here: "pd.DataFrame", dataset: str, scaling: str) -> list[str]:
    cells = [f"{plain(STAND_INS.get(dataset, dataset))}, {scaling}"]
    printed = PUBLISHED.get(("HMMC", dataset))
    for measure in PAPERS:
        paper = float("nan") if printed is None else getattr(printed, measure)
        ours = score(here, "HMMC", "best", measure)
        reached = f"**{percent(ours)}**" if 100.0 * ours.mean >= paper else percent(ours)
        cells += [number(paper), reached, percent(score(here, "HKM-D", "best", measure))]
    by_sp = choose(here, "HMMC", "best", "shortest_path")
    cells.append(number(summarise(by_sp, "height").mean, 1))
    return [*cells, percent(summarise(by_sp, "chance_shortest_path"))]
