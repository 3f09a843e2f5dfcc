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
    from taxarbor.cli._labels import check_labels_name, write_blocks, write_labels
    from taxarbor.cli._streaming import Placing, is_streamed
    from taxarbor.hierarchy import Hierarchy
    from taxarbor.hierarchy._rule import deciding_rule

    output = files.as_file(output)
    check_labels_name(output, proba=proba)
    files.check_outputs((output,), (model, data), force=force)
    tree = Hierarchy.load(model)
    if deciding_rule(tree) is None and tree.n_leaves > 1:
        raise InputError(f"{model} was made from labels alone: it has no rules for new rows")
    asked = {"id_column": id_column, "format": format}
    notes: list[str] = []
    told: dict[str, Any] = {"output": output, "rows": None}
    if is_streamed(data, format=format, memory_limit=memory_limit):
        placing = Placing(tree, data, proba=proba, **asked)
        n_rows, blocks = placing.header.n_rows, placing.blocks(told if as_json else None)
        if output is not None or not as_json:
            write_blocks(output, blocks, placing.header, force=force)
        else:
            deque(blocks, maxlen=0)
        notes += placing.notes()
    else:
        table = files.read_for(tree, data, **asked)
        X: Any = files.as_features(tree, table).X
        labels, notes = tree.predict(X).tolist(), [*table.notes]
        n_rows = len(labels)
        told |= {"rows": table.row_names, "labels": labels}
        P = None
        if proba:
            P = told["probabilities"] = tree.predict_proba(X).round(6).tolist()
        if output is not None or not as_json:
            write_labels(output, labels, table, P, force=force)
    if proba and tree.temperature is None:
        notes.append("probabilities are a rough guess until taxarbor assess measures them")
    told |= {"n_clusters": tree.n_leaves, "notes": notes}
    line = f"{counted(n_rows, 'row')} -> {output}"
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
    from taxarbor.cli import _files as files
    from taxarbor.cli._render import SCALE, say, score_table
    from taxarbor.hierarchy import Hierarchy
    from taxarbor.metrics import score_hierarchy
    from taxarbor.metrics._table import encode_labels

    tree = Hierarchy.load(model)
    classes = files.read_truth(truth)
    table = files.read_own(tree, data, label_column=label_column, format=format)
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
    from taxarbor.cli._streaming import is_streamed, open_own
    from taxarbor.hierarchy import Hierarchy
    from taxarbor.report import report as write_report

    if truth is not None and label_column is None:
        raise InputError("--truth is a tree of the rows' classes: give --label-column, too")
    files.check_outputs((output,), (model, data, truth), force=force)
    tree = Hierarchy.load(model)
    classes = files.read_truth(truth)
    asked = {"id_column": id_column, "format": format}
    options: dict[str, Any] = files.heading(title, data) | {"truth": classes}
    notes: list[str] = []
    X: Any
    if is_streamed(data, format=format, whole=opt.given(label_column, "--label-column")):
        X, options["row_names"] = open_own(tree, data, **asked)
        names = X.names if tree.encoding is None else None
    else:
        table = files.read_own(tree, data, label_column=label_column, **asked)
        X, names, notes = table.X, table.feature_names, [*table.notes]
        options |= {"row_names": table.row_names, "classes": table.labels}
    if tree.feature_names is None and names is not None:
        tree = tree.rename_features(names)
    with files.placed(output, force=force) as path, noted(notes):
        write_report(tree, X, path, **options)
    answer({"report": output, "notes": notes}, as_json, f"report -> {output}")
