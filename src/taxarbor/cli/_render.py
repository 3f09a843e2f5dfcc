"""Trees and tables for people: coloured on a terminal, plain elsewhere.

All text from models and data goes through :func:`rich.text.Text`, which reads no markup.
"""

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from taxarbor.hierarchy import Hierarchy, Reason, count_leaves, in_digits, printable

SIGNS = {1: "blue", -1: "red"}
WIDE = 10_000
"""Columns where there is no terminal: nothing is cut, and other programs read whole lines."""
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
    tree: Hierarchy,
    *,
    max_depth: int | None = None,
    n_top: int = 3,
    max_nodes: int | None = None,
) -> None:
    """Print a tree with reasons: guides and colours on a terminal, indented text elsewhere."""
    most = tree.n_nodes if max_nodes is None else max_nodes
    if stdout().is_terminal:
        say(draw_tree(tree, max_depth=max_depth, n_top=n_top, max_nodes=most))
    else:
        typer.echo(tree.to_text(max_depth, n_top, max_nodes=most))


def say_first_levels(tree: Hierarchy) -> None:
    """Print as much of a tree as fits on a screen."""
    say_tree(tree, max_depth=FIRST_LEVELS, max_nodes=FIRST_LINES)
    if tree.height > FIRST_LEVELS or tree.n_nodes > FIRST_LINES:
        typer.echo("(the first levels; taxarbor show has all of it)")


def draw_tree(
    tree: Hierarchy,
    *,
    max_depth: int | None = None,
    n_top: int = 3,
    max_nodes: int,
    below: dict[int, str] | None = None,
) -> Tree:
    """Return a tree of lines such as ``+age, -height  12 rows  c2``.

    Parameters
    ----------
    tree : Hierarchy
        What to draw.
    max_depth, n_top, max_nodes : int
        As in :meth:`Hierarchy.to_text`.
    below : mapping, optional
        A further line for some nodes.
    """
    label = {int(leaf): f"c{number}" for number, leaf in enumerate(tree.leaves)}
    drawn = {tree.root: Tree(_line(tree, 0, n_top, label), guide_style="dim", highlight=False)}
    waiting = list(reversed(tree.children(tree.root)))
    hidden, n_groups = 0, count_leaves(tree)
    while waiting:
        node = waiting.pop()
        if len(drawn) >= max_nodes:
            hidden += n_groups[node]
            continue
        text = _line(tree, node, n_top, label)
        if below and node in below:
            text.append(f"\n{printable(below[node])}", "dim")
        parent = tree.parent(node)
        assert parent is not None
        drawn[node] = drawn[parent].add(text)
        if max_depth is not None and tree.depth[node] >= max_depth and node not in label:
            text.append(f"  {counted(n_groups[node], 'group')}", "italic")
        else:
            waiting += reversed(tree.children(node))
    if hidden:
        drawn[tree.root].add(Text(f"... and {counted(hidden, 'more group')}", "dim"))
    return drawn[tree.root]


def _line(tree: Hierarchy, node: int, n_top: int, label: dict[int, str]) -> Text:
    reasons = tree.reasons(node, n_top)
    text = Text(", ").join(signed(reason) for reason in reasons)
    if not reasons:
        text = Text("all" if node == tree.root else f"node {node}", "bold")
    text.append(f"  {counted(len(tree.rows(node)), 'row')}", "dim")
    if node in label:
        text.append(f"  {label[node]}", "bold green")
    if node != tree.root and reasons:
        text.append(f"  node {node}", "dim")
    return text


def signed(reason: Reason) -> Text:
    """Return ``+age`` or ``-age``, in colour."""
    return Text(printable(str(reason)), SIGNS[reason.sign])


def counted(number: int, what: str, many: str | None = None) -> str:
    """Return ``1 row``, ``12 rows``, ``1,200 rows``; ``many`` where that is no ``s`` more."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def make_table(*columns: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table; columns of numbers stand to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    numeric = set(right)
    for name in columns:
        is_number = name in numeric
        table.add_column(
            Text(name), justify="right" if is_number else "left", no_wrap=is_number
        )
    return table


def add_row(table: Table, *cells: Any) -> None:
    """Add a line to a table; what is no text of rich's yet is taken as it is."""
    table.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in cells))


def some(values: Sequence[str], most: int) -> str:
    """Return ``a, b and 7 more``."""
    told, n_more = ", ".join(values[:most]), len(values) - most
    return f"{told} and {n_more} more" if n_more > 0 else told


def number(value: float | None) -> str:
    """Return a number as people write it, such as 17,590; ``-`` for none."""
    return "-" if value is None else in_digits(value)


def percent(value: float | None) -> str:
    """Return a share in percent, ``-`` for none."""
    return "-" if value is None or math.isnan(value) else f"{value:.0%}"
