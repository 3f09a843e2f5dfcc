"""Explanations as tables and lines."""

import math
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from taxarbor._errors import counted, printable
from taxarbor.cli._render import SIGNS, add_row, make_table, percent, plain, say, stdout
from taxarbor.explain import Explanation
from taxarbor.hierarchy._words import format_column

FEW = 3
"""Features and rows in a line of the table of all nodes."""
LEVELS = "▁▂▃▄▅▆▇█"
DOUBT = "yellow"
DOUBTFUL = "Doubtful: the rules above are false for a fifth of the rows or more."
MARGINS = "Margin: 1 is usual, 0 the border, negative beyond it."


def say_nodes(nodes: Sequence[dict[str, Any]], top: int) -> None:
    """Print a line per node."""
    few = min(FEW, top)
    numbers = ("node", "rows", "rules hold for")
    names = ("name", "what stands out", "typical rows", "at the border")
    table = make_table("node", "cluster", *numbers[1:], *names, right=numbers)
    for told in nodes:
        cluster = "" if told["cluster"] is None else f"c{told['cluster']}"
        holds = Text(percent(told["follows"]), DOUBT if told["doubt"] else "")
        name = plain("  " * told["depth"] + told["name"])
        name.append(" (doubtful)" if told["doubt"] else "", DOUBT)
        cells = (told["node"], Text(cluster, "bold green"), f"{told['n_rows']:,}", holds, name)
        features = (_words(one, one["effect"]) for one in told["standout"][:few])
        rows = (_rows(told[kind][:few]) for kind in ("typical", "borderline"))
        add_row(table, *cells, Text(", ").join(features), *rows)
    say(table)
    if any(told["doubt"] for told in nodes):
        say(f"\n{DOUBTFUL}")


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
        doubt = f"doubtful: {printable(told['doubt'])}" if told["doubt"] else ""
        holds = f"the rules above hold for {percent(told['follows'])} of its rows"
        say(Text(doubt or holds, DOUBT if doubt else ""))
    if told["children"]:
        rule = f"divided by {counted(told['n_features'], 'feature')}"
        if told["fidelity"] is not None:
            rule += f"; this rule holds for {told['fidelity']:.0%} of its rows"
        say(rule)
    if told["standout"]:
        say("\nWhat stands out, against all rows:\n")
        _say_standout(told["standout"])
    if told["features"]:
        say("\nWhat leads here, rather than beside it:\n")
        is_yes_no = tree.yes_no
        assert is_yes_no is not None
        numbers = ("share", "mean", "mean of the rest")
        table = make_table("feature", *numbers, right=numbers)
        for one in told["features"]:
            means = _pair(one["mean"], one["rest_mean"], is_yes_no[one["column"]])
            sign = 1.0 if one["direction"] == "higher" else -1.0
            add_row(table, _words(one, sign), percent(one["share"]), *means)
        say(table)
    border = "between its children" if told["children"] else "to its siblings"
    for kind, what, measure in (
        ("typical", "typical rows, with distances from the middle", "distance"),
        ("extreme", "extreme rows, with least margins", "margin"),
        ("borderline", f"rows at the border {border}, with margins", "margin"),
    ):
        if told[kind]:
            say(Text(f"\n{what}: ").append(_rows(told[kind], measure)))


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
    for told in rows:
        name = f"row {told['row']}" if told["name"] is None else told["name"]
        home = "set apart" if told["cluster"] < 0 else f"c{told['cluster']}"
        first: Any = plain(name).append(f"  {home}", "bold green")
        for step, one in enumerate(told["steps"], start=1):
            is_beyond = (one["margin"] or 0.0) < 0.0
            margin = Text(_measured(one["margin"]), "red" if is_beyond else "")
            cells = (first, step, one["child_name"], margin, percent(one["surer_than"]))
            add_row(table, *cells, Text(printable(one["why"]), "" if one["holds"] else DOUBT))
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
        leaf = None if label < 0 else int(tree.leaves[label])
        place = {"leaf": leaf, "cluster": label}
        rows.append({"row": row, "name": name, **place, "follows": True, "steps": []})
    kept = ("node", "node_name", "child", "child_name", "margin", "surer_than", "holds", "why")
    for line in why.place(X, row_names).to_dict("records"):
        told = rows[line["row"]]
        told["steps"].append({name: line[name] for name in kept})
        told["follows"] &= line["holds"]
    return rows


def _words(one: dict[str, Any], sign: float) -> Text:
    return Text(printable(one["words"]), SIGNS[1 if sign > 0.0 else -1])


def _rows(rows: Sequence[dict[str, Any]], measure: str | None = None) -> Text:
    """Name rows, those without names by their numbers, and what is measured of them."""
    told = []
    for one in rows:
        is_unnamed = one["name"] == f"row {one['row']}"
        name = str(one["row"]) if is_unnamed else str(one["name"])
        told.append(name if measure is None else f"{name} ({_measured(one[measure])})")
    return plain(", ".join(told))


def _measured(value: float | None) -> str:
    """Return a margin or a distance, of which 1 is usual."""
    return "-" if value is None else f"{value:,.2f}"
