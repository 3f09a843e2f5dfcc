"""Trees, tables and facts for people: coloured on a terminal, plain elsewhere.

All text from models and data goes through :func:`rich.text.Text`, which reads no markup.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from taxarbor._errors import counted, printable
from taxarbor.hierarchy import Hierarchy, Trust
from taxarbor.hierarchy._rule import deciding_rule
from taxarbor.hierarchy._words import count_leaves, describe_doubt, format_number, phrase

SIGNS = {1: "blue", -1: "red"}
WIDE = 10_000
"""Columns where there is no terminal: nothing is cut, and other programs read whole lines."""
MEANING = {
    "adjusted_shortest_path": "steps between rows in the tree, against those in the true tree",
    "adjusted_path_sharing": "way from the root that rows share, against the true tree's",
    "adjusted_rand": "pairs of rows that are together or apart, against the classes",
    "adjusted_mutual_info": "what the cluster tells of the class",
    "dendrogram_purity": "one class alone where two of its rows meet (by chance above 0)",
}
"""The measures that are told to people."""
SCALE = "1 is perfect, 0 is chance"
FIRST_LEVELS = 3
FIRST_LINES = 40
"""How much of a tree is a summary."""


def stdout() -> Console:
    """Return what draws on standard output."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def say(drawn: RenderableType) -> None:
    """Print a tree, a table or a line; without blanks at the ends of lines in a pipe."""
    console = stdout()
    if console.is_terminal:
        console.print(drawn)
        return
    with console.capture() as captured:
        console.print(drawn)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def plain(value: object) -> Text:
    """Return text as it is, on one line."""
    return Text(printable(str(value)))


def say_tree(
    tree: Hierarchy, max_depth: int | None, n_top: int = 3, *, max_nodes: int | None = None
) -> None:
    """Print a tree with reasons: guides and colours on a terminal, indented text elsewhere."""
    most = tree.n_nodes if max_nodes is None else max_nodes
    if stdout().is_terminal:
        say(draw_tree(tree, max_depth=max_depth, n_top=n_top, max_nodes=most))
    else:
        typer.echo(tree.to_text(max_depth, n_top, max_nodes=most))


def say_first_levels(tree: Hierarchy) -> None:
    """Print as much of a tree as fits on a screen."""
    say_tree(tree, FIRST_LEVELS, max_nodes=FIRST_LINES)
    if tree.height > FIRST_LEVELS or tree.n_nodes > FIRST_LINES:
        typer.echo("(the first levels; taxarbor show has all of it)")


def say_assessed(tree: Hierarchy, trust: Trust) -> None:
    """Print how often each node of a tree came back, and how many clusters to keep."""
    say_tree(tree, None)
    say_verdict(trust)
    if 1 < trust.suggested < tree.n_leaves:
        typer.echo("taxarbor cut --suggest undoes the other splits.")


def say_verdict(trust: Trust) -> None:
    """Print how many clusters to keep."""
    verdict = trust.curve.verdict()
    typer.echo(f"\n{verdict[0].upper()}{verdict[1:]}.")


def draw_tree(
    tree: Hierarchy,
    *,
    max_depth: int | None = None,
    n_top: int = 3,
    max_nodes: int,
    below: dict[int, str] | None = None,
) -> Tree:
    """Return a tree of lines such as ``age above 41  12 rows  c2``, and more below some."""
    label = {int(leaf): f"c{number}" for number, leaf in enumerate(tree.leaves)}
    drawn = {tree.root: Tree(_line(tree, 0, n_top, label), guide_style="dim", highlight=False)}
    waiting = list(reversed(tree.children(tree.root)))
    hidden, n_leaves = 0, count_leaves(tree)
    while waiting:
        node = waiting.pop()
        if len(drawn) >= max_nodes:
            hidden += n_leaves[node]
            continue
        text = _line(tree, node, n_top, label)
        if below and node in below:
            text.append(f"\n{printable(below[node])}", "dim")
        parent = tree.parent(node)
        assert parent is not None
        drawn[node] = drawn[parent].add(text)
        if max_depth is not None and tree.depth[node] >= max_depth and node not in label:
            text.append(f"  {counted(n_leaves[node], 'cluster')}", "italic")
        else:
            waiting += reversed(tree.children(node))
    if hidden:
        drawn[tree.root].add(Text(f"... and {counted(hidden, 'more cluster')}", "dim"))
    return drawn[tree.root]


def _line(tree: Hierarchy, node: int, n_top: int, label: dict[int, str]) -> Text:
    reasons = tree.reasons(node, n_top)
    text = Text("all" if node == tree.root else f"node {node}", "bold")
    if reasons:
        told = [Text(phrase(reason), SIGNS[reason.sign]) for reason in reasons]
        text = Text(", ").join(told)
    text.append(f"  {counted(int(tree.sizes[node]), 'row')}", "dim")
    if node in label:
        text.append(f"  {label[node]}", "bold green")
    if node != tree.root and reasons:
        text.append(f"  node {node}", "dim")
    if doubt := describe_doubt(tree, node):
        text.append(f"  ({doubt})", "yellow")
    if tree.trust is not None and node != tree.root:
        style = "dim" if tree.trust.is_stable[node] else "yellow"
        text.append(f"  ({tree.trust.told(node)})", style)
    return text


def make_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """Return an empty table; columns of numbers stand to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        is_number = name in right
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    return table


def add_row(table: Table, *cells: Any) -> None:
    """Add a line to a table; what is no text of rich's yet is taken as it is."""
    table.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in cells))


def number(value: float | None) -> str:
    """Return a number as people write it, such as 17,590; ``-`` for none."""
    return "-" if value is None else format_number(value)


def percent(value: float | None) -> str:
    """Return a share in percent, ``-`` for none."""
    return "-" if value is None or math.isnan(value) else f"{round(value, 2) + 0.0:.0%}"


def score_table(scores: Mapping[str, float]) -> Table:
    """Return the scores that are corrected for chance, with what they say."""
    table = make_table("measure", "score", "compares", right=("score",))
    for name, meaning in MEANING.items():
        if not math.isnan(scores.get(name, math.nan)):
            add_row(table, name.replace("_", " "), f"{scores[name]:.3f}", meaning)
    return table


def model_facts(tree: Hierarchy) -> dict[str, Any]:
    """Return sizes and means of a tree, as plain values."""
    used = [int(n) for n, rule in zip(tree.n_features_used, tree.rules, strict=True) if rule]
    known = tree.fidelity[~np.isnan(tree.fidelity)]
    return {
        "n_rows": tree.n_rows,
        "n_noise": tree.n_noise,
        "n_features": tree.n_features,
        "n_clusters": tree.n_leaves,
        "height": tree.height,
        "median_features_per_split": float(np.median(used)) if used else None,
        "mean_fidelity": float(known.mean()) if len(known) else None,
        "places_new_rows": deciding_rule(tree) is not None,
    }
