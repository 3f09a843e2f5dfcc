"""Scores against known classes, in words."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from taxarbor.cli._render import add_row, make_table

MEANING = {
    "adjusted_shortest_path": "steps between rows in the tree, against those in the true tree",
    "adjusted_path_sharing": "way from the root that rows share, against the true tree's",
    "adjusted_rand": "pairs of rows that are together or apart, against the classes",
    "adjusted_mutual_info": "what the group tells of the class",
    "dendrogram_purity": "one class alone where two of its rows meet (by chance above 0)",
}
"""The measures that are told to people."""
SCALE = "1 is perfect, 0 is chance"
NO_LABEL = "(no label)"


def score_table(scores: Mapping[str, float]) -> Table:
    """Return the scores that are corrected for chance, with what they say."""
    table = make_table("measure", "score", "compares", right=("score",))
    for name, meaning in MEANING.items():
        if not math.isnan(scores.get(name, math.nan)):
            add_row(table, name.replace("_", " "), f"{scores[name]:.3f}", meaning)
    return table


def without_gaps(labels: NDArray[np.str_]) -> list[str]:
    """Return labels with a word where there is none."""
    return [label or NO_LABEL for label in labels.tolist()]


def count_gaps(labels: NDArray[np.str_]) -> int:
    """Count the rows without a label."""
    return int((labels == "").sum())
