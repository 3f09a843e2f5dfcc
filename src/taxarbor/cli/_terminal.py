"""Trees, tables and explanations for people: coloured on a terminal, plain elsewhere.

All text from models and data goes through :func:`rich.text.Text`, which reads no markup.
"""

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from taxarbor._errors import counted, printable, some
from taxarbor._number_text import format_number
from taxarbor.cli._shell import print_lines
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._text import (
    describe_decision,
    describe_rule,
    describe_stability,
    outline,
)

if TYPE_CHECKING:
    import pandas as pd

    from taxarbor.explain import Explanation

COLOURS = {1: "blue", -1: "red"}
"""Of a feature that is higher or lower."""
UNLIMITED_WIDTH = 10_000
"""Columns where there is no terminal: lines stay whole for other programs."""
SCORES = {
    "adjusted_rand": "pairs of rows in the same cluster, compared with the classes",
    "adjusted_mutual_info": "mutual information of clusters and classes",
    "dendrogram_purity": "purity of the smallest node with two rows of a class",
}
"""The measures that are shown."""
N_MEMBERS = 6
"""Rows of a cluster that are listed below it."""
EXAMPLES = {"typical": "distance", "extreme": "margin", "borderline": "margin"}
"""Kinds of example rows, and the number given with each row."""


def make_console() -> Console:
    """Return a console on standard output."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNLIMITED_WIDTH
    return console


def draw(drawing: RenderableType) -> None:
    """Print a tree, a table or a line; without trailing blanks in a pipe."""
    console = make_console()
    if console.is_terminal:
        console.print(drawing)
        return
    with console.capture() as captured:
        console.print(drawing)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


# Trees


def print_tree(
    taxonomy: Taxonomy,
    max_depth: int | None = None,
    n_top: int = 3,
    *,
    max_nodes: int | None = None,
    members: Mapping[int, Sequence[str]] | None = None,
) -> None:
    """Print a tree: guides and colours on a terminal or with members, else indented text."""
    max_nodes = taxonomy.tree.n_nodes if max_nodes is None else max_nodes
    if members is None and not make_console().is_terminal:
        typer.echo(taxonomy.to_text(max_depth, n_top, max_nodes=max_nodes))
        return
    path: list[Tree] = []  # from the root to the last line
    for depth, node, reasons, label in outline(taxonomy, max_depth, n_top, max_nodes):
        if node is None:
            path[0].add(Text(label, "dim"))
            continue
        words = [Text(phrase(reason), COLOURS[reason.sign]) for reason in reasons]
        text = Text(", ").join(words) if words else Text("all" if not depth else f"node {node}")
        text.append(f"  {counted(int(taxonomy.tree.sizes[node]), 'row')}", "dim")
        if label:
            text.append(f"  {label}", "bold green" if taxonomy.tree.is_leaf(node) else "italic")
        if words:
            text.append(f"  node {node}", "dim")
        if rule := describe_rule(taxonomy, node):
            text.append(f"  ({rule})", "dim")
        if stability := describe_stability(taxonomy, node):
            is_stable = taxonomy.stability is None or taxonomy.stability.is_stable[node]
            text.append(f"  ({stability})", "dim" if is_stable else "yellow")
        if members and node in members:
            text.append(f"\n{printable(some(sorted(members[node]), N_MEMBERS))}", "dim")
        del path[depth:]
        is_root = not path
        path.append(Tree(text, guide_style="dim") if is_root else path[-1].add(text))
    draw(path[0])


def print_verdict(stability: Stability) -> None:
    """Print how many clusters are stable, and where refits send the rows left out."""
    verdict = stability.curve.verdict()
    typer.echo(f"\n{verdict[0].upper()}{verdict[1:]}.\n{stability.describe_left_out()}")


def summarize(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return sizes of a model as plain values."""
    tree = taxonomy.tree
    used = taxonomy.n_features_used[[rule is not None for rule in tree.rules]]
    return {
        "n_rows": tree.n_rows,
        "n_noise": tree.n_noise,
        "n_features": taxonomy.n_features,
        "n_clusters": tree.n_leaves,
        "height": tree.height,
        "median_features_per_split": float(np.median(used)) if len(used) else None,
        "can_predict": tree.rules[tree.root] is not None,
    }


# Tables


def print_table(
    header: Sequence[str], rows: Iterable[Iterable[str]], numbers: Collection[str] = ()
) -> None:
    """Print a table; columns of numbers are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, justify="right" if name in numbers else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    draw(table)


def print_scores(scores: Mapping[str, float]) -> None:
    """Print scores against known classes."""
    print_lines("\nCompared with the known classes (1 is perfect, 0 is chance):\n")
    rows = [
        (name.replace("_", " "), f"{scores[name]:.3f}", meaning)
        for name, meaning in SCORES.items()
        if not math.isnan(scores.get(name, math.nan))
    ]
    print_table(("measure", "score", "meaning"), rows, ("score",))


# Explanations


def print_frame(frame: "pd.DataFrame", columns: Mapping[str, str]) -> None:
    """Print columns of a frame under other names."""
    numbers = [columns[name] for name in columns if frame[name].dtype.kind in "if"]
    cells = (map(_format_cell, frame[name].tolist()) for name in columns)
    print_table([*columns.values()], zip(*cells, strict=True), numbers)


def _format_cell(cell: object) -> str:
    if cell is None:
        return "-"
    return format_number(cell, 3) if isinstance(cell, float) else str(cell)


def print_nodes(explanation: "Explanation") -> None:
    """Print a line per node."""
    frame = explanation.nodes()
    frame["name"] = [
        "  " * depth + name for depth, name in zip(frame["depth"], frame["name"], strict=True)
    ]
    frame["cluster"] = [f"c{label}" if label >= 0 else "" for label in frame["cluster"]]
    columns = {"node": "node", "cluster": "cluster", "n_rows": "rows", "name": "name"}
    examples = {"distinctive_features": "distinctive features", "typical": "typical rows"}
    print_frame(frame, columns | examples | {"borderline": "borderline rows"})


def print_node(explanation: "Explanation", node: dict[str, Any]) -> None:
    """Print all that is known about a node."""
    import pandas as pd

    taxonomy, number = explanation.taxonomy, node["node"]
    cluster = "" if node["cluster"] is None else f", c{node['cluster']}"
    draw(Text(f"node {number}{cluster}: ").append(printable(node["name"]), "bold"))
    lines = [f"{counted(node['n_rows'], 'row')}, at depth {node['depth']}"]
    if path := [explanation.names[one] for one in taxonomy.tree.path(number)[:-1]]:
        lines.append(f"within {' > '.join(path)}")
    if (decider := node["decided_by"]) is not None:
        decision = describe_decision(taxonomy, number)
        used = counted(int(taxonomy.n_features_used[decider]), "feature")
        lines.append(f"split by {used}" + (f", {decision}" if decision else ""))
    print_lines("\n".join(lines))
    columns = {"words": "feature", "effect": "effect", "mean": "mean", "all_mean": "all rows"}
    if node["distinctive_features"]:
        print_lines("\nDistinctive features, compared with all rows:\n")
        print_frame(pd.DataFrame(node["distinctive_features"]), columns)
    columns = {"words": "feature", "share": "share", "mean": "mean", "rest_mean": "siblings"}
    if node["features"]:
        print_lines("\nFeatures that separate the node from its siblings:\n")
        print_frame(pd.DataFrame(node["features"]), columns)
    for kind, measure in EXAMPLES.items():
        if node[kind]:
            rows = (f"{row['name']} ({_format_cell(row[measure])})" for row in node[kind])
            print_lines(f"\n{kind} rows ({measure}): {', '.join(rows)}")


def print_steps(steps: "pd.DataFrame") -> None:
    """Print the path of rows, a line per rule."""
    columns = {"row_name": "row", "cluster": "cluster", "step": "step", "child_name": "goes to"}
    columns |= {"margin": "margin", "margin_percentile": "percentile", "why": "because"}
    print_frame(steps, columns)
    print_lines(
        "\nMargin: 1 is the median, 0 is the boundary, negative is beyond it. "
        "Percentile: share of the cluster's rows with a smaller margin."
    )
