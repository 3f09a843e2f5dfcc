"""``taxarbor report``: a page to look at."""

from pathlib import Path
from typing import Annotated, Any

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._input import Asked, heading, read_own
from taxarbor.cli._output import check_outputs, placed, say_json, say_notes
from taxarbor.cli._scores import without_gaps
from taxarbor.hierarchy import Hierarchy


def report(
    model: opt.Model,
    data: opt.SameData,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page to write, say report.html.")
    ],
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    title: opt.Title = None,
    truth: opt.Truth = None,
    format: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write one self-contained HTML page: the tree, its reasons, its rows.

    It needs no network and no other file.
    """
    from taxarbor.metrics import ClassTree
    from taxarbor.report import report as write_report

    check_outputs((output,), (model, data, truth), force=force)
    tree = Hierarchy.load(model)
    classes = None if truth is None else ClassTree.read(truth)
    notes: list[str] = []
    table = read_own(tree, data, Asked(id_column, label_column, format), notes)
    if tree.feature_names is None and table.feature_names is not None:
        tree = tree.rename_features(table.feature_names)
    options: dict[str, Any] = heading(title, data)
    if table.labels is not None:
        options["classes"] = without_gaps(table.labels)
    X: Any = table.X
    with placed(output, force=force) as path:
        write_report(tree, X, path, row_names=table.row_names, truth=classes, **options)
    if as_json:
        say_json({"report": output, "notes": notes})
        return
    say_notes(notes)
    typer.echo(f"report -> {output}")
