"""Explanations as tables and lines."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from taxarbor._errors import counted, printable
from taxarbor.cli._render import (
    SIGNS,
    add_row,
    make_table,
    number,
    percent,
    plain,
    say,
)
from taxarbor.explain import Explanation

FEW = 3
"""Features and rows in a line of the table of all nodes."""
OTHERWISE = "the features together decide otherwise than these alone"
MARGINS = "Margin: 1 is usual, 0 the border, negative beyond it."


def say_nodes(nodes: Sequence[dict[str, Any]], top: int) -> None:
    """Print a line per node."""
    few = min(FEW, top)
    table = make_table(
        *("node", "cluster", "rows", "name", "features", "typical rows", "at the border"),
        right=("node", "rows"),
    )
    for told in nodes:
        cluster = "" if told["cluster"] is None else f"c{told['cluster']}"
        add_row(
            table,
            told["node"],
            Text(cluster, "bold green"),
            f"{told['n_rows']:,}",
            "  " * told["depth"] + told["name"],
            Text(", ").join(
                _feature(one).append(f" {one['share']:.0%}") for one in told["features"][:few]
            ),
            _rows(told["exemplars"][:few]),
            _rows(told["borderline"][:few]),
        )
    say(table)


def say_node(why: Explanation, told: dict[str, Any]) -> None:
    """Print all there is on one node."""
    tree, node = why.hierarchy, told["node"]
    cluster = "" if told["cluster"] is None else f", c{told['cluster']}"
    say(Text(f"node {node}{cluster}: ").append(printable(told["name"]), "bold"))
    share = told["n_rows"] / len(tree.order)
    say(f"{counted(told['n_rows'], 'row')}, {share:.0%} of all, at depth {told['depth']}")
    above = " > ".join(printable(why.names[ancestor]) for ancestor in tree.path(node)[:-1])
    if above:
        say(plain(f"within {above}"))
    if told["children"]:
        rule = f"divided by {counted(told['n_features'], 'feature')}"
        if told["fidelity"] is not None:
            rule += f"; this rule alone places {told['fidelity']:.0%} of its rows"
        say(rule)
    if told["features"]:
        say("\nWhat leads here, rather than beside it:\n")
        table = make_table(
            *("feature", "share", "mean", "mean of the rest"),
            right=("share", "mean", "mean of the rest"),
        )
        for one in told["features"]:
            means = (number(one["mean"]), number(one["rest_mean"]))
            add_row(table, _feature(one), percent(one["share"]), *means)
        say(table)
    border = "between its children" if told["children"] else "to its siblings"
    for what, rows in (
        ("typical rows", told["exemplars"]),
        (f"rows at the border {border}", told["borderline"]),
    ):
        if rows:
            say(Text(f"\n{what}, with margins: ").append(_rows(rows, with_margins=True)))


def say_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Print the way of each row, a line per step."""
    table = make_table(
        *("row", "step", "goes to", "margin", "surer than", "because"),
        right=("step", "margin", "surer than"),
    )
    for told in rows:
        name = f"row {told['row']}" if told["name"] is None else told["name"]
        first: Any = plain(name).append(f"  c{told['cluster']}", "bold green")
        for step, one in enumerate(told["steps"], start=1):
            style = "red" if (one["margin"] or 0.0) < 0.0 else ""
            add_row(
                table,
                first,
                step,
                one["child_name"],
                Text(number(one["margin"]), style),
                percent(one["surer_than"]),
                _because(one),
            )
            first = ""
        if not told["steps"]:
            add_row(table, first, "", "", "", "", "")
    say(table)
    say(f"\n{MARGINS} Surer than: the share of the cluster's rows with a smaller one.")


def place_rows(
    why: Explanation, X: Any, row_names: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Return where new rows go, and why, as :meth:`Explanation.row` has it."""
    tree = why.hierarchy
    labels = tree.predict(X).tolist()
    rows: list[dict[str, Any]] = [
        {
            "row": row,
            "name": None if row_names is None else row_names[row].strip() or f"row {row}",
            "leaf": int(tree.leaves[label]),
            "cluster": label,
            "steps": [],
        }
        for row, label in enumerate(labels)
    ]
    kept = ("node", "node_name", "child", "child_name", "margin", "surer_than", "agrees", "why")
    for line in why.place(X, row_names).to_dict("records"):
        rows[line["row"]]["steps"].append({name: line[name] for name in kept})
    return rows


def _feature(one: dict[str, Any]) -> Text:
    is_higher = one["direction"] == "higher"
    sign = "+" if is_higher else "-"
    return Text(f"{sign}{printable(one['feature'])}", SIGNS[1 if is_higher else -1])


def _rows(rows: Sequence[dict[str, Any]], *, with_margins: bool = False) -> Text:
    """Name rows, those without names by their numbers."""
    told = []
    for one in rows:
        is_unnamed = one["name"] == f"row {one['row']}"
        name = str(one["row"]) if is_unnamed else str(one["name"])
        told.append(f"{name} ({number(one['margin'])})" if with_margins else name)
    return plain(", ".join(told))


def _because(step: dict[str, Any]) -> Text:
    """Return the features that pull the row most, and whether the rule alone agrees."""
    if "why" in step:  # which says it already
        return plain(str(step["why"]))
    told = "; ".join(
        f"{pull['name']} = {number(pull['value'])}{' (against)' * (pull['strength'] < 0.0)}"
        for pull in step["pulls"]
    )
    text = plain(told)
    return text if step["agrees"] else text.append(f" ({OTHERWISE})", "dim")
