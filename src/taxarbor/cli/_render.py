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

from taxarbor._errors import counted, printable
from taxarbor._format import format_column
from taxarbor.cli._shell import print_lines
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy._text import (
    describe_decision,
    describe_rule,
    describe_stability,
    outline,
    phrase,
)

if TYPE_CHECKING:
    from taxarbor.explain import Explanation

COLOURS = {1: "blue", -1: "red"}
"""Of a feature that is higher or lower."""
UNLIMITED_WIDTH = 10_000
"""Columns where there is no terminal: lines stay whole for other programs."""
SCORES = {
    "adjusted_shortest_path": "number of steps between rows, compared with the true tree",
    "adjusted_path_sharing": "shared path from the root, compared with the true tree",
    "adjusted_rand": "pairs of rows in the same cluster, compared with the classes",
    "adjusted_mutual_info": "mutual information of clusters and classes",
    "dendrogram_purity": "purity of the smallest node with two rows of a class",
}
"""The measures that are shown."""
N_LISTED = 3
"""Features and rows of a node in the table of all nodes."""
BARS = "▁▂▃▄▅▆▇█"
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
    members: Mapping[int, str] | None = None,
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
            text.append(f"\n{printable(members[node])}", "dim")
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
    header: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Collection[str] = ()
) -> None:
    """Print a table; columns of numbers are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in header:
        is_number = name in numbers
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        table.add_row(*(c if isinstance(c, Text) else Text(printable(str(c))) for c in row))
    draw(table)


def print_scores(scores: Mapping[str, float], reference: str = "the known classes") -> None:
    """Print scores against a reference."""
    print_lines(f"\nCompared with {reference} (1 is perfect, 0 is chance):\n")
    rows = [
        (name.replace("_", " "), f"{scores[name]:.3f}", meaning)
        for name, meaning in SCORES.items()
        if not math.isnan(scores.get(name, math.nan))
    ]
    print_table(("measure", "score", "meaning"), rows, ("score",))


def format_share(value: float | None) -> str:
    """Return a share in percent, ``-`` for none."""
    return "-" if value is None or math.isnan(value) else f"{round(value, 2) + 0.0:.0%}"


def _format_margin(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


# Explanations


def print_nodes(nodes: Sequence[dict[str, Any]]) -> None:
    """Print a line per node."""
    lines = []
    for node in nodes:
        cluster = "" if node["cluster"] is None else f"c{node['cluster']}"
        name = "  " * node["depth"] + node["name"]
        features = [_colour(one, one["effect"]) for one in node["standout"][:N_LISTED]]
        rows = [_name_rows(node[kind][:N_LISTED]) for kind in ("typical", "borderline")]
        lines.append((
            *(node["node"], Text(cluster, "bold green"), f"{node['n_rows']:,}", name),
            *(Text(", ").join(features), *rows),
        ))  # fmt: skip
    header = (
        "node",
        "cluster",
        "rows",
        "name",
        "distinctive features",
        "typical",
        "borderline",
    )
    print_table(header, lines, ("node", "rows"))


def print_node(explanation: "Explanation", node: dict[str, Any]) -> None:
    """Print all that is known about a node."""
    taxonomy, number = explanation.taxonomy, node["node"]
    cluster = "" if node["cluster"] is None else f", c{node['cluster']}"
    draw(Text(f"node {number}{cluster}: ").append(printable(node["name"]), "bold"))
    share = format_share(node["n_rows"] / explanation.whole.tree.n_rows)
    lines = [f"{counted(node['n_rows'], 'row')}, {share} of all, at depth {node['depth']}"]
    above = [explanation.names[ancestor] for ancestor in taxonomy.tree.path(number)[:-1]]
    if above:
        lines.append(f"within {' > '.join(above)}")
    if (decider := node["decided_by"]) is not None:
        decision = describe_decision(taxonomy, number)
        used = counted(int(taxonomy.n_features_used[decider]), "feature")
        lines.append(f"split by {used}" + (f", {decision}" if decision else ""))
    print_lines("\n".join(lines))
    if node["standout"]:
        print_lines("\nDistinctive features, compared with all rows:\n")
        _print_distinctive(node["standout"])
    if node["features"]:
        print_lines("\nFeatures that separate the node from its siblings:\n")
        is_boolean: Any = taxonomy.is_boolean
        rows = [
            (
                _colour(one, 1.0 if one["direction"] == "higher" else -1.0),
                format_share(one["share"]),
                *_format_means(one["mean"], one["rest_mean"], is_boolean[one["column"]]),
            )
            for one in node["features"]
        ]
        numbers = ("share", "mean", "mean of siblings")
        print_table(("feature", *numbers), rows, numbers)
    for kind, measure in EXAMPLES.items():
        if node[kind]:
            draw(Text(f"\n{kind} rows ({measure}): ").append(_name_rows(node[kind], measure)))


def _print_distinctive(features: Sequence[dict[str, Any]]) -> None:
    """Print features of a node and of all rows, with histograms if these can be encoded."""
    has_bars = make_console().encoding.startswith("utf")
    numbers = ("effect", "mean", "mean of all")
    rows = []
    for one in features:
        means = _format_means(one["mean"], one["all_mean"], one["share"] is not None)
        bars = [_draw_counts(one[counts]) for counts in ("counts", "all_counts")]
        cells = (_colour(one, one["effect"]), f"{one['effect']:+.2f}", *means)
        rows.append((*cells, *bars) if has_bars else cells)
    histograms = ("histogram", "histogram of all") if has_bars else ()
    print_table(("feature", *numbers, *histograms), rows, numbers)


def _format_means(mean: float | None, other: float | None, is_boolean: bool) -> list[str]:
    """Return two means of a feature, as shares if it is boolean."""
    if is_boolean:
        return [format_share(mean), format_share(other)]
    return format_column([math.nan if value is None else value for value in (mean, other)])


def _draw_counts(counts: Sequence[int]) -> str:
    """Return a histogram in a line of text, where only empty bins are flat."""
    largest = max(counts)
    return "".join(BARS[math.ceil((len(BARS) - 1) * count / largest)] for count in counts)


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Print the path of each row, a line per rule."""
    lines: list[tuple[Any, ...]] = []
    for row in rows:
        name = f"row {row['row']}" if row["name"] is None else row["name"]
        cluster = "noise" if row["cluster"] < 0 else f"c{row['cluster']}"
        first = Text(printable(name)).append(f"  {cluster}", "bold green")
        for number, step in enumerate(row["steps"], start=1):
            is_beyond = (step["margin"] or 0.0) < 0.0
            margin = Text(_format_margin(step["margin"]), "red" if is_beyond else "")
            percentile = format_share(step["surer_than"])
            lines.append((first, number, step["child_name"], margin, percentile, step["why"]))
            first = Text()
        if not row["steps"]:
            lines.append((first, *[""] * 5))
    numbers = ("step", "margin", "percentile")
    print_table(("row", "step", "goes to", *numbers[1:], "because"), lines, numbers)
    print_lines(
        "\nMargin: 1 is the median, 0 is the boundary, negative is beyond it. "
        "Percentile: share of the cluster's rows with a smaller margin."
    )


def _colour(feature: dict[str, Any], sign: float) -> Text:
    return Text(printable(feature["words"]), COLOURS[1 if sign > 0.0 else -1])


def _name_rows(rows: Sequence[dict[str, Any]], measure: str | None = None) -> Text:
    """Return the names of rows, and a number measured of each."""
    names = [str(row["name"]) for row in rows]
    if measure is not None:
        names = [
            f"{name} ({_format_margin(row[measure])})"
            for name, row in zip(names, rows, strict=True)
        ]
    return Text(printable(", ".join(names)))
