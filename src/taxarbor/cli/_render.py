"""Trees, tables, facts and explanations for people: coloured on a terminal, plain elsewhere.

All text from models and data goes through :func:`rich.text.Text`, which reads no markup.
"""

import math
import os
from collections.abc import Mapping, Sequence
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
from taxarbor.cli._shell import say_lines
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy._text import (
    describe_decision,
    describe_rule,
    outline,
    phrase,
)

if TYPE_CHECKING:
    from taxarbor.explain import Explanation

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
"""The measures that are shown."""
SCALE = "1 is perfect, 0 is chance"
N_LISTED = 3
"""Features and rows in a line of the table of all nodes."""
LEVELS = "▁▂▃▄▅▆▇█"
MARGINS = "Margin: 1 is usual, 0 the border, negative beyond it."


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
    taxonomy: Taxonomy, max_depth: int | None, n_top: int = 3, *, max_nodes: int | None = None
) -> None:
    """Print a tree with reasons: guides and colours on a terminal, indented text elsewhere."""
    most = taxonomy.tree.n_nodes if max_nodes is None else max_nodes
    if stdout().is_terminal:
        say(draw_tree(taxonomy, max_depth=max_depth, n_top=n_top, max_nodes=most))
    else:
        typer.echo(taxonomy.to_text(max_depth, n_top, max_nodes=most))


def say_verdict(trust: Stability) -> None:
    """Print how many clusters to keep, and where refits send the rows left out."""
    verdict = trust.curve.verdict()
    typer.echo(f"\n{verdict[0].upper()}{verdict[1:]}.\n{trust.describe_left_out()}")


def draw_tree(
    taxonomy: Taxonomy,
    *,
    max_depth: int | None = None,
    n_top: int = 3,
    max_nodes: int,
    below: dict[int, str] | None = None,
) -> Tree:
    """Return a tree of lines such as ``age above 41  12 rows  c2``, and more below some."""
    drawn: list[Tree] = []  # the path from the root to the last line
    for depth, node, reasons, label in outline(taxonomy, max_depth, n_top, max_nodes):
        if node is None:
            drawn[0].add(Text(label, "dim"))
            continue
        text = Text("all" if node == taxonomy.tree.root else f"node {node}", "bold")
        if reasons:
            words = [Text(phrase(reason), SIGNS[reason.sign]) for reason in reasons]
            text = Text(", ").join(words)
        text.append(f"  {counted(int(taxonomy.tree.sizes[node]), 'row')}", "dim")
        if taxonomy.tree.is_leaf(node):
            text.append(f"  {label}", "bold green")
        if node != taxonomy.tree.root and reasons:
            text.append(f"  node {node}", "dim")
        if rule := describe_rule(taxonomy, node):
            text.append(f"  ({rule})", "dim")
        if taxonomy.stability is not None and node != taxonomy.tree.root:
            style = "dim" if taxonomy.stability.is_stable[node] else "yellow"
            text.append(f"  ({taxonomy.stability.describe(node)})", style)
        if label and not taxonomy.tree.is_leaf(node):
            text.append(f"  {label}", "italic")
        if below and node in below:
            text.append(f"\n{printable(below[node])}", "dim")
        del drawn[depth:]
        branch = (
            Tree(text, guide_style="dim", highlight=False) if not drawn else drawn[-1].add(text)
        )
        drawn.append(branch)
    return drawn[0]


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


def say_scores(scores: Mapping[str, float], reference: str = "the known classes") -> None:
    """Print scores against a reference."""
    say_lines(f"\nAgainst {reference} ({SCALE}):\n")
    say(score_table(scores))


def describe_model(taxonomy: Taxonomy) -> str:
    """Return sizes of a model, and the estimator that it came from."""
    features = f"{counted(taxonomy.n_features, 'feature')}, " if taxonomy.n_features else ""
    by = f", made by {name}" if (name := (taxonomy.made_by or {}).get("estimator")) else ""
    return f"{counted(taxonomy.tree.n_rows, 'row')}, {features}{counted(taxonomy.tree.n_leaves, 'cluster')}{by}"


def model_facts(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return sizes and means of a tree, as plain values."""
    used = [
        int(n)
        for n, rule in zip(taxonomy.n_features_used, taxonomy.tree.rules, strict=True)
        if rule
    ]
    return {
        "n_rows": taxonomy.tree.n_rows,
        "n_noise": taxonomy.tree.n_noise,
        "n_features": taxonomy.n_features,
        "n_clusters": taxonomy.tree.n_leaves,
        "height": taxonomy.tree.height,
        "median_features_per_split": float(np.median(used)) if used else None,
        "places_new_rows": taxonomy.tree.rules[taxonomy.tree.root] is not None,
    }


def say_nodes(nodes: Sequence[dict[str, Any]], top: int) -> None:
    """Print a line per node."""
    few = min(N_LISTED, top)
    numbers = ("node", "rows")
    names = ("name", "what stands out", "typical rows", "at the border")
    table = make_table("node", "cluster", *numbers[1:], *names, right=numbers)
    for values in nodes:
        cluster = "" if values["cluster"] is None else f"c{values['cluster']}"
        name = "  " * values["depth"] + values["name"]
        cells = (values["node"], Text(cluster, "bold green"), f"{values['n_rows']:,}", name)
        features = (_words(one, one["effect"]) for one in values["standout"][:few])
        rows = (_rows(values[kind][:few]) for kind in ("typical", "borderline"))
        add_row(table, *cells, Text(", ").join(features), *rows)
    say(table)


def say_node(why: "Explanation", values: dict[str, Any]) -> None:
    """Print all there is on one node."""
    taxonomy, node = why.taxonomy, values["node"]
    cluster = "" if values["cluster"] is None else f", c{values['cluster']}"
    say(Text(f"node {node}{cluster}: ").append(printable(values["name"]), "bold"))
    share = values["n_rows"] / taxonomy.tree.n_rows
    say(f"{counted(values['n_rows'], 'row')}, {share:.0%} of all, at depth {values['depth']}")
    above = " > ".join(
        printable(why.names[ancestor]) for ancestor in taxonomy.tree.path(node)[:-1]
    )
    if above:
        say(plain(f"within {above}"))
    if (decider := values["decided_by"]) is not None and (rule := taxonomy.tree.rules[decider]):
        where = f", {decision}" if (decision := describe_decision(taxonomy, node)) else ""
        say(f"divided by {counted(rule.n_features_used, 'feature')}{where}")
    if values["standout"]:
        say("\nWhat stands out, against all rows:\n")
        _say_standout(values["standout"])
    if values["features"]:
        say("\nWhat leads here, rather than beside it:\n")
        is_yes_no = taxonomy.is_boolean
        assert is_yes_no is not None
        numbers = ("share", "mean", "mean of the rest")
        table = make_table("feature", *numbers, right=numbers)
        for one in values["features"]:
            means = _pair(one["mean"], one["rest_mean"], is_yes_no[one["column"]])
            sign = 1.0 if one["direction"] == "higher" else -1.0
            add_row(table, _words(one, sign), percent(one["share"]), *means)
        say(table)
    border = "between its children" if values["children"] else "to its siblings"
    for kind, what, measure in (
        ("typical", "typical rows, with distances from the middle", "distance"),
        ("extreme", "extreme rows, with least margins", "margin"),
        ("borderline", f"rows at the border {border}, with margins", "margin"),
    ):
        if values[kind]:
            say(Text(f"\n{what}: ").append(_rows(values[kind], measure)))


def _say_standout(features: Sequence[dict[str, Any]]) -> None:
    """Print the features of a node against all rows, with small histograms if they can be."""
    is_drawn = stdout().encoding.startswith("utf")
    numbers = ("effect", "here", "all rows")
    shapes = ("distribution here", "of all rows") if is_drawn else ()
    table = make_table("feature", *numbers, *shapes, right=numbers)
    for one in features:
        means = _pair(one["mean"], one["all_mean"], one["share"] is not None)
        drawn = [_drawn(one[counts]) for counts in ("counts", "all_counts")] if is_drawn else []
        add_row(table, _words(one, one["effect"]), f"{one['effect']:+.2f}", *means, *drawn)
    say(table)


def _pair(mean: float | None, other: float | None, is_yes_no: bool) -> list[str]:
    """Return two means of a feature, as shares if it is one of yes and no."""
    if is_yes_no:
        return [percent(mean), percent(other)]
    return format_column([math.nan if one is None else one for one in (mean, other)])


def _drawn(counts: Sequence[int]) -> str:
    """Return a histogram in a line of text; a bin that is not empty is never flat."""
    most = max(counts)
    return "".join(LEVELS[math.ceil((len(LEVELS) - 1) * count / most)] for count in counts)


def say_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Print the way of each row, a line per step."""
    columns = ("row", "step", "goes to", "margin", "surer than", "because")
    table = make_table(*columns, right=("step", "margin", "surer than"))
    for values in rows:
        name = f"row {values['row']}" if values["name"] is None else values["name"]
        home = "set apart" if values["cluster"] < 0 else f"c{values['cluster']}"
        first: Any = plain(name).append(f"  {home}", "bold green")
        for step, one in enumerate(values["steps"], start=1):
            is_beyond = (one["margin"] or 0.0) < 0.0
            margin = Text(_measured(one["margin"]), "red" if is_beyond else "")
            cells = (first, step, one["child_name"], margin, percent(one["surer_than"]))
            add_row(table, *cells, one["why"])
            first = ""
        if not values["steps"]:
            add_row(table, first, "", "", "", "", "")
    say(table)
    say(f"\n{MARGINS} Surer than: the share of the cluster's rows with a smaller one.")


def describe_new_rows(why: "Explanation", X: Any, row_names: Sequence[str] | None) -> list[Any]:
    """Return where new rows go, and why, as :meth:`Explanation.row` has it."""
    taxonomy = why.taxonomy
    rows: list[dict[str, Any]] = []
    for row, label in enumerate(taxonomy.predict(X).tolist()):
        name = None if row_names is None else row_names[row].strip() or f"row {row}"
        leaf = None if label < 0 else int(taxonomy.tree.leaves[label])
        place = {"leaf": leaf, "cluster": label}
        rows.append({"row": row, "name": name, **place, "steps": []})
    kept = ("node", "node_name", "child", "child_name", "margin", "surer_than", "why")
    for line in why.place(X, row_names).to_dict("records"):
        rows[line["row"]]["steps"].append({name: line[name] for name in kept})
    return rows


def _words(one: dict[str, Any], sign: float) -> Text:
    return Text(printable(one["words"]), SIGNS[1 if sign > 0.0 else -1])


def _rows(rows: Sequence[dict[str, Any]], measure: str | None = None) -> Text:
    """Name rows, those without names by their numbers, and what is measured of them."""
    texts = []
    for one in rows:
        is_unnamed = one["name"] == f"row {one['row']}"
        name = str(one["row"]) if is_unnamed else str(one["name"])
        texts.append(name if measure is None else f"{name} ({_measured(one[measure])})")
    return plain(", ".join(texts))


def _measured(value: float | None) -> str:
    """Return a margin or a distance, of which 1 is usual."""
    return "-" if value is None else f"{value:,.2f}"
