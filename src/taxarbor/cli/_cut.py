"""``taxarbor cut``: fewer groups from the same model."""

from pathlib import Path
from typing import Annotated

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._input import Asked, read_own
from taxarbor.cli._output import (
    as_file,
    check_labels_name,
    check_outputs,
    placed,
    say_json,
    say_notes,
    write_labels,
)
from taxarbor.cli._render import counted
from taxarbor.hierarchy import Hierarchy

MODEL_SUFFIX = ".taxarbor"


def cut(
    model: opt.Model,
    n_clusters: Annotated[
        int | None,
        typer.Option("--n-clusters", "-k", help="So many groups.", show_default=False),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="The groups at this level.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A name in .taxarbor gets the smaller model, another the groups of the rows, "
            "as csv. Default: those, on standard output.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The rows that the model was fitted on, for their names.", show_default=False
        ),
    ] = None,
    id_column: opt.IdColumn = None,
    format: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Undo the last splits of a model, without fitting it again.

    Give -k or --depth.
    """
    if (n_clusters is None) == (depth is None):
        raise ValueError("give either -k or --depth, and not both")
    if id_column is not None and data is None:
        raise ValueError("--id-column names a column of --data; give both")
    output = as_file(output)
    is_model = output is not None and output.suffix.lower() == MODEL_SUFFIX
    check_labels_name(None if is_model else output)
    check_outputs((output,), (model, data), force=force)
    tree = Hierarchy.load(model)
    smaller = tree.prune(n_clusters, depth=depth)
    notes: list[str] = []
    row_names = None
    if data is not None:
        row_names = read_own(tree, data, Asked(id_column, format=format), notes).row_names
    labels = smaller.labels.tolist()
    if is_model and output is not None:
        with placed(output, force=force) as path:
            smaller.save(path)
    elif output is not None or not as_json:
        write_labels(output, labels, row_names, id_column, force=force)
    if as_json:
        say_json(
            {"output": output, "n_groups": smaller.n_leaves, "rows": row_names}
            | {"labels": labels, "notes": notes}
        )
        return
    say_notes(notes)
    if output is not None:
        typer.echo(f"{counted(smaller.n_leaves, 'group')} -> {output}")
