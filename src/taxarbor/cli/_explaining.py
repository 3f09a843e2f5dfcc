"""Explanations as tables and lines."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from taxarbor._errors import counted, printable
from taxarbor.cli._render import SIGNS, add_row, make_table, number, percent, plain, say
from taxarbor.explain import Explanation

FEW = 3
"""Features and rows in a line of the table of all nodes."""
OTHERWISE = "the features together decide otherwise than these alone"
MARGINS = "Margin: 1 is usual, 0 the border, negative beyond it."


def say_nodes(nodes: Sequence[dict[str, Any]], top: int) -> None:
    """Print a line per node."""
    few = min(FEW, top)
    columns = ("node", "cluster", "rows", "name", "features", "typical rows", "at the border")
    table = make_table(*columns, right=("node", "rows"))
    for told in nodes:
        cluster = "" if told["cluster"] is None else f"c{told['cluster']}"
        name = "  " * told["depth"] + told["name"]
        features = [_feature(f).append(f" {f['share']:.0%}") for f in told["features"][:few]]
        cells = (told["node"], Text(cluster, "bold green"), f"{told['n_rows']:,}", name)
        rows = (_rows(told[kind][:few]) for kind in ("exemplars", "borderline"))
        add_row(table, *cells, Text(", ").join(features), *rows)
    say(table)


def say_node(why: Explanation, told: dict[str, Any]) -> None:
    """Print all there is on one node."""
    tree, node = why.hierarchy, told["node"]
    cluster = "" if told["cluster"] is None else f", c{told['cluster']}"
    say(Text(f"node {node}{cluster}: ").append(printable(told["name"]), "bold"))
    share = told["n_rows"] / tree.n_rows
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
        numbers = ("share", "mean", "mean of the rest")
        table = make_table("feature", *numbers, right=numbers)
        for one in told["features"]:
            means = (number(one["mean"]), number(one["rest_mean"]))
            add_row(table, _feature(one), percent(one["share"]), *means)
        say(table)
    border = "between its children" if told["children"] else "to its siblings"
    kinds = {"typical rows": "exemplars", f"rows at the border {border}": "borderline"}
    for what, kind in kinds.items():
        if told[kind]:
            say(Text(f"\n{what}, with margins: ").append(_rows(told[kind], with_margins=True)))


def say_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Print the way of each row, a line per step."""
    columns = ("row", "step", "goes to", "margin", "surer than", "because")
    table = make_table(*columns, right=("step", "margin", "surer than"))
    for told in rows:
        name = f"row {told['row']}" if told["name"] is None else told["name"]
        first: Any = plain(name).append(f"  c{told['cluster']}", "bold green")
        for step, one in enumerate(told["steps"], start=1):
            margin = Text(number(one["margin"]), "red" if (one["margin"] or 0.0) < 0.0 else "")
            cells = (first, step, one["child_name"], margin, percent(one["surer_than"]))
            add_row(table, *cells, _because(one))
            first = ""
        if not told["steps"]:
            add_row(table, first, "", "", "", "", "")
    say(table)
    say(f"\n{MARGINS} Surer than: the share of the cluster's rows with a smaller one.")


def place_rows(why: Explanation, X: Any, row_names: Sequence[str] | None) -> list[Any]:
    """Return where new rows go, and why, as :meth:`Explanation.row` has it."""
    tree = why.hierarchy
    rows: list[dict[str, Any]] = []
    for row, label in enumerate(tree.predict(X).tolist()):
        name = None if row_names is None else row_names[row].strip() or f"row {row}"
        place = {"leaf": int(tree.leaves[label]), "cluster": label}
        rows.append({"row": row, "name": name, **place, "steps": []})
    kept = ("node", "node_name", "child", "child_name", "margin", "surer_than", "agrees", "why")
    for line in why.place(X, row_names).to_dict("records"):
        rows[line["row"]]["steps"].append({name: line[name] for name in kept})
    return rows


def _feature(one: dict[str, Any]) -> Text:
    sign, style = ("+", SIGNS[1]) if one["direction"] == "higher" else ("-", SIGNS[-1])
    return Text(sign + printable(one["feature"]), style)


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
    return plain(told).append("" if step["agrees"] else f" ({OTHERWISE})", "dim")
