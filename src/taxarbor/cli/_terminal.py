"""Trees, tables and explanations for people: coloured on a terminal, plain elsewhere.

All text from models and data goes through :func:`rich.text.Text`, which reads no markup.
"""

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from taxarbor._errors import InputError, counted, printable, some
from taxarbor._number_text import format_number
from taxarbor.cli._shell import print_lines
from taxarbor.exchange import to_frame
from taxarbor.explain import Explanation
from taxarbor.tables.notes import MAX_NOTES
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy._phrases import phrase
from taxarbor.taxonomy._text import outline

COLOURS = {1: "blue", -1: "red"}  # of a feature that is higher or lower
N_LEVELS_SHOWN, N_LINES_SHOWN = 3, 40  # the part of the tree that fit prints
UNLIMITED_WIDTH = 10_000  # without a terminal: lines stay whole for other programs
SCORES = {  # that are shown
    "adjusted_rand": "pairs of rows in the same cluster, compared with the classes",
    "adjusted_mutual_info": "mutual information of clusters and classes",
    "dendrogram_purity": "purity of the smallest node with two rows of a class",
}
N_MEMBERS, N_LISTED = 6, 3  # rows below a cluster; features and rows in the table of nodes
FEATURE = {"words": "feature"}
EXAMPLE = {"name": "row", "margin": "margin"}
RECORDS = {  # of a node or a row: headings, and the titles of columns
    "distinctive_features": (
        "Distinctive features, compared with all rows",
        FEATURE | {"effect": "effect", "mean": "mean", "all_mean": "all rows"},
    ),
    "features": (
        "Features that separate the node from its siblings",
        FEATURE | {"share": "share", "mean": "mean", "rest_mean": "siblings"},
    ),
    "typical": ("Typical rows", {"name": "row", "distance": "distance"}),
    "extreme": ("Extreme rows", EXAMPLE),
    "borderline": ("Borderline rows", EXAMPLE),
    "steps": (
        "Path (margin: 1 is the median, 0 the boundary, negative beyond it; "
        "percentile: share of the cluster's rows with a smaller margin)",
        {"child_name": "goes to", "margin": "margin", "margin_percentile": "percentile"}
        | {"why": "because"},
    ),
}


def draw(drawing: RenderableType) -> None:
    """Print a tree, a table or a line; without trailing blanks in a pipe."""
    console = _make_console()
    if console.is_terminal:
        console.print(drawing)
        return
    with console.capture() as captured:
        console.print(drawing)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _make_console() -> Console:
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNLIMITED_WIDTH
    return console


# Trees


def print_tree(
    taxonomy: Taxonomy,
    max_depth: int | None = None,
    n_top: int = 3,
    *,
    max_nodes: int | None = None,
    row_names: Sequence[str] | None = None,
) -> None:
    """Print a tree as text, with guides and colours on a terminal or with row names."""
    tree = taxonomy.tree
    max_nodes = tree.n_nodes if max_nodes is None else max_nodes
    text = taxonomy.to_text(max_depth, n_top, max_nodes=max_nodes)
    if row_names is None and not _make_console().is_terminal:
        typer.echo(text)
        return
    path: list[Tree] = []  # from the root to the last line
    nodes = outline(taxonomy, max_depth, n_top, max_nodes)
    for (depth, node, reasons, label), words in zip(nodes, text.splitlines(), strict=False):
        line = Text(words.strip())
        for reason in reasons:
            line.highlight_words([phrase(reason)], COLOURS[reason.sign])
        line.highlight_words([f"[{label}]"], "bold green")
        if row_names is not None and node is not None and tree.is_leaf(node):
            members = sorted(row_names[row] for row in tree.rows(node))
            line.append(f"\n{printable(some(members, N_MEMBERS))}", "dim")
        del path[depth:]
        path.append(path[-1].add(line) if path else Tree(line, guide_style="dim"))
    draw(path[0])
    if tree.n_noise:
        typer.echo(text.splitlines()[-1])


def print_verdict(stability: Stability) -> None:
    """Print how many clusters are stable, and where refits send the rows left out."""
    verdict = stability.curve.verdict()
    typer.echo(f"\n{verdict[0].upper()}{verdict[1:]}.\n{stability.describe_left_out()}")


def summarize(taxonomy: Taxonomy) -> dict[str, Any]:
    """Return sizes of a model, and the columns that it does not use, as plain values."""
    tree, dropped = taxonomy.tree, taxonomy.columns.dropped
    facts: dict[str, Any] = {
        "n_rows": tree.n_rows,
        "n_noise": tree.n_noise,
        "n_features": taxonomy.n_features,
        "n_clusters": tree.n_leaves,
        "height": tree.height,
        "can_predict": tree.rules[tree.root] is not None,
        "dropped": [{"column": name, "reason": reason} for name, reason in dropped],
    }
    if taxonomy.stability is not None:
        facts["verdict"] = taxonomy.stability.curve.verdict()
    return facts


def list_nodes(taxonomy: Taxonomy, max_depth: int | None = None) -> list[dict[str, Any]]:
    """Return the nodes of a tree as plain values, as ``to_frame`` has them."""
    frame = to_frame(taxonomy)
    is_shown = frame["depth"] <= (taxonomy.tree.height if max_depth is None else max_depth)
    return list(frame[is_shown].to_dict("records"))


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


def print_nodes(nodes: Sequence[dict[str, Any]]) -> None:
    """Print a line per node."""
    header = ("node", "cluster", "rows", "name", "distinctive features")
    rows = []
    for node in nodes:
        cluster = "" if node["cluster"] is None else f"c{node['cluster']}"
        cells = [str(node["node"]), cluster, str(node["n_rows"])]
        cells += ["  " * node["depth"] + node["name"], _join(node["distinctive_features"])]
        rows.append([*cells, _join(node["typical"]), _join(node["borderline"])])
    print_table((*header, "typical rows", "borderline rows"), rows, ("node", "rows"))


def _join(items: Sequence[dict[str, Any]]) -> str:
    """Return the words of features or the names of rows, the first ones."""
    return ", ".join(item.get("words") or item["name"] for item in items[:N_LISTED])


def print_records(title: str, document: Mapping[str, Any]) -> None:
    """Print all that is known about a node or a row, a table for each kind of facts."""
    draw(Text(printable(title), "bold"))
    for kind, (heading, columns) in RECORDS.items():
        if records := document.get(kind):
            print_lines(f"\n{heading}:\n")
            cells = [[_format_cell(record[name]) for name in columns] for record in records]
            numbers = [t for n, t in columns.items() if not isinstance(records[0][n], str)]
            print_table([*columns.values()], cells, numbers)


def _format_cell(cell: object) -> str:
    if cell is None:
        return "-"
    return format_number(cell, 3) if isinstance(cell, float) else str(cell)


def find_node(taxonomy: Taxonomy, text: str) -> int:
    """Return a node by its number or, as c0, c1, ..., by that of its cluster."""
    tree = taxonomy.tree
    names = {str(node): node for node in range(tree.n_nodes)}
    names |= {f"c{label}": leaf for label, leaf in enumerate(tree.leaves.tolist())}
    if text.lower() not in names:
        clusters = f"a cluster, c0 to c{tree.n_leaves - 1}"
        problem = f"must be a number, 0 to {tree.n_nodes - 1}, or {clusters}; got {text!r}"
        raise InputError(problem, "node")
    return names[text.lower()]


def explain_row(explanation: Explanation, row: str) -> dict[str, Any]:
    """Return the path of a row, which is given by its name or its number."""
    is_number = row.isascii() and row.isdigit() and row not in (explanation.row_names or ())
    try:
        number = explanation.find_row(int(row) if is_number else row)
    except (KeyError, IndexError) as error:
        raise InputError(str(error.args[0])) from error
    return {
        "row": number,
        "name": explanation.row_name(number),
        "cluster": int(explanation.taxonomy.tree.labels[number]),
        "steps": explanation.rows(number).to_dict("records"),
    }


# Fits


def gather_notes(taxonomy: Taxonomy, warned: Sequence[str], model: Path | None) -> list[str]:
    """Return all notes; of those on the table some, if the others are in a model's file."""
    tree, others = taxonomy.tree, [*warned]
    n_excluded = round(float(tree.sizes[tree.root] - tree.node_weights[tree.root]))
    if n_excluded > 0:
        rows = counted(n_excluded, "outlier or empty row", "outliers or empty rows")
        others.append(f"{rows} excluded from the fit")
    if tree.n_noise:
        others.append(f"{counted(tree.n_noise, 'row')} labelled as noise")
    notes = [note.for_shell for note in taxonomy.columns.notes]
    n_shown = max(MAX_NOTES - len(others), 1)
    if model is not None and (n_more := len(notes) - n_shown) > 0:
        notes = notes[:n_shown]
        notes[-1] += f" ({n_more} more: taxarbor show {quote(str(model))} --json)"
    return [*notes, *others]


def print_fit(
    title: str,
    taxonomy: Taxonomy,
    document: dict[str, Any],
    row_names: Sequence[str] | None = None,
) -> None:
    """Print what was fitted, the tree (all of it with the names of rows) and its scores."""
    tree, n_dropped = taxonomy.tree, len(document["dropped"])
    left_out = f" ({n_dropped} left out)" if n_dropped else ""
    columns = counted(len({*taxonomy.columns.positions.tolist()}), "column")
    names = document.get("id_column")
    rows = counted(tree.n_rows, "row") + (f" named by {names!r}" if names else "")
    print_lines(f"{title}: {rows}, {columns}{left_out}")
    clusters = counted(tree.n_leaves, "cluster")
    print_lines(f"{clusters} in {document['seconds']:.2f} s\n")
    is_short = tree.height <= N_LEVELS_SHOWN and tree.n_nodes <= N_LINES_SHOWN
    if is_short or row_names is not None:
        print_tree(taxonomy, row_names=row_names)
    else:
        print_tree(taxonomy, N_LEVELS_SHOWN, max_nodes=N_LINES_SHOWN)
        print_lines("(the first levels; taxarbor show prints all)")
    if taxonomy.stability is not None and tree.n_leaves > 1:  # else a note says it
        print_verdict(taxonomy.stability)
    if document["scores"] is not None:
        print_scores(document["scores"])
    outputs = {kind: document.get(kind) for kind in ("model", "labels", "report")}
    lines = [f"{kind} -> {path}" for kind, path in outputs.items() if path is not None]
    print_lines("\n" + "\n".join(lines))
