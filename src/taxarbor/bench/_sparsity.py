"""The paper's Figure 3: the share of zero weights of each variant, strengths at 1."""

from typing import TYPE_CHECKING

from taxarbor.bench._jobs import write_settings
from taxarbor.bench._markdown import percent, plain, table
from taxarbor.bench._methods import METHODS
from taxarbor.bench._plan import SPARSE, Setup, full_strength, sweep_datasets
from taxarbor.bench._select import Mean, of_table, summarise

if TYPE_CHECKING:
    import pandas as pd


def zero_shares(jobs: "pd.DataFrame", setup: Setup) -> dict[str, dict[str, Mean]]:
    """Return the share of zero weights, by data set and variant."""
    return {
        dataset: {name: _share(jobs, setup, dataset, name) for name in SPARSE}
        for dataset in sweep_datasets(setup)
    }


def describe_sparsity(jobs: "pd.DataFrame", setup: Setup) -> str:
    """Return the same as a Markdown table."""
    shares = zero_shares(jobs, setup)
    lines = [[name, *(percent(one[name]) for one in shares.values())] for name in SPARSE]
    return table(["zero weights, %", *map(plain, shares)], lines)


def _share(jobs: "pd.DataFrame", setup: Setup, dataset: str, method: str) -> Mean:
    settings = write_settings(full_strength(METHODS[method]))
    here = of_table(jobs, setup, dataset)
    mine = here[(here["method"] == method) & (here["settings"] == settings)]
    return summarise(mine, "zero_weights")
