"""How easily the rules of HMMC's trees are read."""

import math

from taxarbor.bench._ablation import DEFAULT, READABLE, Row
from taxarbor.bench._defaults import Scores
from taxarbor.bench._markdown import NOTHING, number, percent, plain, table
from taxarbor.bench._plan import tree_dataset
from taxarbor.bench._work import open_dataset

HEADINGS = (
    "features per split, median",
    "largest",
    "of",
    "fidelity, mean",
    "least",
    "shared with the parent's rule",
)


def describe_readability(scores: Scores) -> str:
    """Return how many features rules use, and how true they are, on every data set."""
    lines = [[plain(name), *_cells(scores, name, DEFAULT)] for name in scores.datasets]
    return table(["default", *HEADINGS], lines)


def describe_sparser(scores: Scores) -> str:
    """Return the same on one data set, for other settings of the rules."""
    name = tree_dataset(scores.setup)
    lines = [[row.told, *_cells(scores, name, row)] for row in READABLE]
    return table([plain(name), *HEADINGS], lines)


def _cells(scores: Scores, dataset: str, row: Row) -> list[str]:
    setup = scores.setup
    X = open_dataset(dataset, setup.scaling, setup.max_rows, setup.folder).X
    median = scores.on(dataset, row, "median_features").mean
    if math.isnan(median):
        return [NOTHING] * len(HEADINGS)
    return [
        number(median, 1),
        number(scores.on(dataset, row, "most_features").mean, 1),
        number(float(X.shape[1]), 0),
        percent(scores.on(dataset, row, "mean_fidelity"), 1),
        percent(scores.on(dataset, row, "least_fidelity"), 1),
        percent(scores.on(dataset, row, "parent_overlap"), 1),
    ]
