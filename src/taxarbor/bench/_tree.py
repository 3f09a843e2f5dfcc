"""The paper's Figure 4: the first layers of a tree, with what is in each node and why."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from taxarbor.bench._datasets import Dataset
from taxarbor.bench._jobs import Job
from taxarbor.bench._markdown import plain
from taxarbor.bench._plan import Setup, tree_dataset
from taxarbor.bench._select import choose, chosen_settings, of_table
from taxarbor.bench._work import fit, open_dataset
from taxarbor.hierarchy import Hierarchy
from taxarbor.plot import StyledLine

if TYPE_CHECKING:
    import pandas as pd

LAYERS = 4
TOP = 3


class ChosenTree(NamedTuple):
    """A tree to draw, the rows that it divides, and how it was chosen."""

    tree: Hierarchy
    data: Dataset
    told: str
    measure: str


def grow_tree(jobs: "pd.DataFrame", setup: Setup) -> ChosenTree | None:
    """Grow again the tree of seed 0 whose settings were best: by SP, or RI without a truth.

    None if no such tree could be grown in time.
    """
    dataset = tree_dataset(setup)
    data = open_dataset(dataset, setup.scaling, setup.max_rows, setup.folder)
    measure = "rand" if data.truth is None else "shortest_path"
    here = of_table(jobs, setup, dataset)
    found = choose(here[here["seed"] == 0], "HMMC", "best", measure)
    if not len(found):
        return None
    best = found.iloc[0]
    job = Job(*(best[field] for field in Job._fields))
    told = f"HMMC on {dataset}, {chosen_settings(best)}"
    return ChosenTree(fit(job, data), data, told, "RI" if data.truth is None else "SP")


def describe_nodes(chosen: ChosenTree) -> Callable[[int], list[StyledLine]]:
    """Return what to write in each node: its size, its largest classes, its features.

    The features are those of the node's own split, by the length of their weights over the
    children, as in the paper; a leaf has none.
    """
    tree, data = chosen.tree, chosen.data
    names = data.feature_names or tuple(f"x{n}" for n in range(data.X.shape[1]))

    def describe(node: int) -> list[StyledLine]:
        rows = tree.rows(node)
        classes, counts = np.unique(data.y[rows], return_counts=True)
        largest = np.argsort(-counts, kind="stable")[:TOP]
        lines: list[StyledLine] = [(f"{len(rows):,} rows", "title")]
        lines += [(f"{classes[n]}  {counts[n]:,}", "plain") for n in largest]
        rule = tree.rules[node]
        if rule is not None:
            lengths = np.linalg.norm(rule.weights, axis=0)
            decisive = np.argsort(-lengths, kind="stable")[:TOP]
            lines += [(names[p], "plus") for p in decisive if lengths[p] > 0.0]
        return lines

    return describe


def describe_tree(chosen: ChosenTree) -> str:
    """Return the first layers as Markdown, indented."""
    describe = describe_nodes(chosen)
    lines = []
    waiting = [chosen.tree.root]
    while waiting:
        node = waiting.pop()
        depth = int(chosen.tree.depth[node])
        size, *rest = describe(node)
        classes = ", ".join(plain(text) for text, style in rest if style == "plain")
        features = ", ".join(plain(text) for text, style in rest if style == "plus")
        turning = f"; turns on {features}" if features else ""
        lines.append(f"{'  ' * depth}- {size[0]}: {classes}{turning}")
        if depth < LAYERS - 1:
            waiting += reversed(chosen.tree.children(node))
    return "\n".join(lines)
