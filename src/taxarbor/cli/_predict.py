"""``taxarbor predict``: the groups of new rows."""

from typing import Any

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._input import Asked, read_for
from taxarbor.cli._output import (
    as_file,
    check_labels_name,
    check_outputs,
    say_json,
    say_notes,
    write_labels,
)
from taxarbor.cli._render import counted
from taxarbor.hierarchy import Hierarchy


def predict(
    model: opt.Model,
    data: opt.Data,
    output: opt.Output = None,
    id_column: opt.IdColumn = None,
    format: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Say in which group of a model each row of a file falls, as csv.

    Columns are found by name; further ones do not matter.
    """
    output = as_file(output)
    check_labels_name(output)
    check_outputs((output,), (model, data), force=force)
    tree = Hierarchy.load(model)
    table = read_for(tree, data, Asked(id_column, format=format))
    X: Any = table.X
    labels = tree.predict(X).tolist()
    if output is not None or not as_json:
        write_labels(output, labels, table.row_names, id_column, force=force)
    if as_json:
        say_json(
            {"output": output, "rows": table.row_names, "labels": labels}
            | {"n_groups": tree.n_leaves, "notes": table.notes}
        )
        return
    say_notes(table.notes)
    if output is not None:
        typer.echo(f"{counted(len(labels), 'row')} -> {output}")
