"""The results as pages: Markdown with figures, written whole from what is in the store."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from taxarbor.bench import _defaults_text
from taxarbor.bench._ablation import plan_defaults
from taxarbor.bench._checks import describe_checks
from taxarbor.bench._claims import describe_claims, summarise_claims
from taxarbor.bench._defaults import (
    Scores,
    describe_everywhere,
    describe_groups,
    describe_means,
    summarise_defaults,
)
from taxarbor.bench._experiment import Part
from taxarbor.bench._figures import draw_heights, draw_sparsity, draw_sweep, draw_tree
from taxarbor.bench._findings import describe_differences, describe_heights, describe_ranks
from taxarbor.bench._jobs import DONE, Job, commit, machine
from taxarbor.bench._markdown import plain
from taxarbor.bench._plan import Setup, sweep_datasets
from taxarbor.bench._published import STAND_INS
from taxarbor.bench._readability import describe_readability, describe_sparser
from taxarbor.bench._scalings import describe_scalings
from taxarbor.bench._select import of_setup, of_table, spread_out
from taxarbor.bench._sparsity import describe_sparsity, zero_shares
from taxarbor.bench._store import Store
from taxarbor.bench._sweep import describe_sweep, sweep_panels
from taxarbor.bench._table import describe_tables
from taxarbor.bench._text import (
    CHECKS,
    CLAIMS,
    DIFFERENCES,
    HEIGHTS,
    INTRODUCTION,
    RANKS,
    SCALED,
    SCALINGS,
    SPARSITY,
    SWEEP,
    TREE,
)
from taxarbor.bench._tree import describe_tree, grow_tree

if TYPE_CHECKING:
    import pandas as pd

SWEPT_BY = {"shortest_path": "SP", "adjusted_shortest_path": "aSP"}
SWEPT_BY_WITHOUT_TRUTH = {"rand": "RI", "adjusted_rand": "ARI"}


def write_pages(parts: tuple[Part, ...], store: Store, setup: Setup, page: Path) -> list[Path]:
    """Write a page with the given parts, and its figures into a folder beside it.

    Parameters
    ----------
    parts : tuple of {"table", "scalings", "sweep", "sparsity", "tree", "defaults"}
        What to show.
    store : Store
        The results.
    setup : Setup
        What they are of.
    page : Path
        The Markdown file. Figures go into the folder of the same name, without the ending.

    Returns
    -------
    list of Path
        All that was written.
    """
    found = store.read()
    jobs = spread_out(found, setup)
    figures = page.with_suffix("")
    sections = [_introduce(parts, found, setup)]
    writers: dict[Part, Callable[[], str]] = {
        "table": lambda: _table_section(jobs, setup, figures),
        "scalings": lambda: "\n\n".join([SCALINGS, describe_scalings(found, setup)]),
        "sweep": lambda: _sweep_section(jobs, setup, figures),
        "sparsity": lambda: _sparsity_section(jobs, setup, figures),
        "tree": lambda: _tree_section(jobs, setup, figures),
        "defaults": lambda: _defaults_section(jobs, setup),
    }
    sections += [writers[part]() for part in parts]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return [page, *sorted(figures.glob("*.png")), *sorted(figures.glob("*.svg"))]


def _introduce(parts: tuple[Part, ...], found: "pd.DataFrame", setup: Setup) -> str:
    here, text = of_setup(found, setup), INTRODUCTION
    if parts == ("defaults",):
        text, planned = _defaults_text.INTRODUCTION, set(plan_defaults(setup))
        fields = here[[*Job._fields]].itertuples(index=False, name=None)
        here = here.loc[np.array([Job(*one) in planned for one in fields], dtype=np.bool_)]
    jobs = here.drop_duplicates([*Job._fields])
    failed = jobs[jobs["status"] != DONE]
    lost = "".join(
        f"\n- {one.method} on {plain(one.dataset)}, {one.n_clusters} clusters, "
        f"seed {one.seed}: {plain(one.status)}"
        for one in failed.itertuples()
    )
    return text.format(
        scaling=SCALED[setup.scaling],
        rows=f"at most {setup.max_rows:,} rows of each" if setup.max_rows else "all rows",
        seeds=f"{setup.n_seeds} seed" + "s" * (setup.n_seeds != 1),
        strengths=", ".join(f"{strength:g}" for strength in setup.strengths),
        n_jobs=f"{len(jobs):,}",
        hours=f"{jobs['seconds'].sum() / 3600:.1f}",
        commits=", ".join(sorted(set(here["commit"]))) or commit(),
        machine="; ".join(sorted(set(here["machine"]))) or machine(),
        lost=f"\nWithout a result:\n{lost}" if lost else "",
    )


def _table_section(jobs: "pd.DataFrame", setup: Setup, figures: Path) -> str:
    parts = ["## Every method on every data set"]
    stand_ins = [name for name in setup.datasets() if name in STAND_INS]
    if stand_ins:
        parts = [
            summarise_claims(jobs, setup),
            CHECKS,
            describe_checks(jobs, setup),
            CLAIMS,
            describe_claims(jobs, setup),
            *parts,
        ]
    if "shortest_path" in jobs.columns:
        scored = set(jobs.loc[jobs["shortest_path"].notna(), "dataset"])
        shown = [name for name in sweep_datasets(setup) if name in scored]
        draw_heights({name: of_table(jobs, setup, name) for name in shown}, figures / "heights")
        parts += [
            HEIGHTS.format(picture=_link(figures, "heights")),
            describe_heights(jobs, setup),
        ]
    parts += [RANKS, describe_ranks(jobs, setup)]
    if stand_ins:
        parts += [DIFFERENCES, describe_differences(jobs, setup)]
    return "\n\n".join([*parts, *describe_tables(jobs, setup)])


def _sweep_section(jobs: "pd.DataFrame", setup: Setup, figures: Path) -> str:
    parts = [SWEEP]
    has_truth = "shortest_path" in jobs.columns
    for measure, short in (SWEPT_BY if has_truth else SWEPT_BY_WITHOUT_TRUTH).items():
        panels = sweep_panels(jobs, setup, measure)
        if panels:
            draw_sweep(panels, short, figures / f"sweep-{short}")
            link = _link(figures, f"sweep-{short}")
            picture = f"![{short} by clusters and children]({link})"
            parts += [f"### {short}", picture, *describe_sweep(jobs, setup, measure)]
    return "\n\n".join(parts)


def _sparsity_section(jobs: "pd.DataFrame", setup: Setup, figures: Path) -> str:
    draw_sparsity(zero_shares(jobs, setup), figures / "sparsity")
    picture = f"![share of zero weights]({_link(figures, 'sparsity')})"
    return "\n\n".join([SPARSITY, picture, describe_sparsity(jobs, setup)])


def _tree_section(jobs: "pd.DataFrame", setup: Setup, figures: Path) -> str:
    chosen = grow_tree(jobs, setup)
    if chosen is None:
        return "## A tree\n\nThere is no result to draw."
    draw_tree(chosen, figures / "tree")
    picture = f"![the first layers of the tree]({_link(figures, 'tree')})"
    text = TREE.format(told=plain(chosen.told), measure=chosen.measure)
    return "\n\n".join([text, picture, describe_tree(chosen)])


def _defaults_section(jobs: "pd.DataFrame", setup: Setup) -> str:
    text, scores = _defaults_text, Scores.of(jobs, setup)
    if not len(jobs):
        return f"{text.SUMMARY}\n\nThere are no results."
    parts = [text.SUMMARY, summarise_defaults(scores), text.MEANS, describe_means(scores)]
    parts += [text.EVERYWHERE, *describe_everywhere(scores)]
    parts += [text.GROUPS, *describe_groups(scores)]
    parts += [text.READABILITY, describe_readability(scores)]
    parts += [text.SPARSER, describe_sparser(scores)]
    return "\n\n".join(parts)


def _link(figures: Path, name: str) -> str:
    """Return where a picture is, as seen from the page."""
    return quote(f"{figures.name}/{name}.png")
