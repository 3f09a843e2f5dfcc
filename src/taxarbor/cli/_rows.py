"""``taxarbor predict``, ``score`` and ``report``: a model and rows."""

from collections import deque
from typing import Annotated, Any

import typer

from taxarbor._errors import InputError, counted, printable
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import answer, noted


def predict(
    model: opt.Model,
    data: opt.Data,
    output: opt.Output = None,
    id_column: opt.IdColumn = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add probabilities, by cluster.")
    ] = False,
    format: opt.Format = None,
    memory_limit: opt.MemoryLimit = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Say which cluster of a model each row of a file belongs to, as csv, npy or parquet.

    Columns are found by name; others do not matter. What is missing, or was not there when the
    model was made, counts as the column's mean.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._reading import NewRows
    from taxarbor.hierarchy import Hierarchy
    from taxarbor.hierarchy._rule import deciding_rule

    output = files.as_file(output)
    files.check_labels_name(output, proba=proba)
    files.check_outputs((output,), (model, data), force=force)
    tree = Hierarchy.load(model)
    if deciding_rule(tree) is None and tree.n_leaves > 1:
        raise InputError(f"{model} was made from labels alone: it has no rules for new rows")
    asked = {"id_column": id_column, "format": format, "memory_limit": memory_limit}
    rows = NewRows(tree, data, proba=proba, **asked)
    told: dict[str, Any] = {"output": output, "rows": None}
    blocks = rows.blocks(told if as_json else None)
    if output is not None or not as_json:
        files.write_blocks(output, blocks, rows.header, force=force)
    else:
        deque(blocks, maxlen=0)
    notes = rows.notes()
    if proba and tree.temperature is None:
        notes.append("probabilities are a rough guess until taxarbor assess measures them")
    told |= {"n_clusters": tree.n_leaves, "notes": notes}
    line = f"{counted(rows.header.n_rows, 'row')} -> {output}"
    answer(told, as_json, line if output else None)


def score(
    model: opt.Model,
    data: opt.SameData,
    label_column: Annotated[str, opt.option("Column with the known classes.")],
    truth: opt.Truth = None,
    format: opt.Format = None,
    as_json: opt.Json = False,
) -> None:
    """Compare a model with the known classes of its rows, and with their true tree.

    The classes were not used in the fit. With --truth, the whole tree is compared, too.
    """
    from taxarbor.cli._reading import read_own, read_truth
    from taxarbor.cli._render import SCALE, say, score_table
    from taxarbor.hierarchy import Hierarchy
    from taxarbor.metrics import score_hierarchy
    from taxarbor.metrics._table import encode_labels

    tree = Hierarchy.load(model)
    classes = read_truth(truth)
    table = read_own(tree, data, label_column=label_column, format=format)
    labels: Any = table.labels
    notes = [*table.notes]
    with noted(notes):
        scores = score_hierarchy(tree, labels, classes)
    n_classes = len(encode_labels(labels, len(labels))[1])
    told: dict[str, Any] = {"n_clusters": tree.n_leaves, "n_classes": n_classes}
    told |= {"scores": scores, "notes": notes}
    line = f"{counted(tree.n_leaves, 'cluster')}, {counted(n_classes, 'class', 'classes')}"
    answer(told, as_json, f"{line} in {printable(label_column)}; {SCALE}\n")
    if not as_json:
        say(score_table(scores))


def report(
    model: opt.Model,
    data: opt.SameData,
    output: opt.Page,
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
    from taxarbor.cli import _files as files
    from taxarbor.cli._reading import read_rows, read_truth
    from taxarbor.hierarchy import Hierarchy
    from taxarbor.report import report as write_report

    if truth is not None and label_column is None:
        raise InputError("--truth is a tree of the rows' classes: give --label-column, too")
    files.check_outputs((output,), (model, data, truth), force=force)
    tree = Hierarchy.load(model)
    classes = read_truth(truth)
    asked = {"id_column": id_column, "label_column": label_column, "format": format}
    table = read_rows(tree, data, **asked)
    options: dict[str, Any] = files.heading(title, data) | {"truth": classes}
    options |= {"row_names": table.row_names, "classes": table.labels}
    if tree.feature_names is None and table.feature_names is not None:
        tree = tree.rename_features(table.feature_names)
    X: Any = table.X
    notes = [*table.notes]
    with files.placed(output, force=force) as path, noted(notes):
        write_report(tree, X, path, **options)
    answer({"report": output, "notes": notes}, as_json, f"report -> {output}")
