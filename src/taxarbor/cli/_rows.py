"""``taxarbor predict``, ``score``, ``report``, ``explain`` and ``assess``: a model and rows."""

import sys
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taxarbor._errors import InputError, counted, printable
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import answer, noted, say_lines

if TYPE_CHECKING:
    from taxarbor.explain import Explanation
    from taxarbor.hierarchy import Hierarchy


def predict(
    model: opt.Model,
    data: opt.Data,
    output: opt.Output = None,
    id_column: opt.IdColumn = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add probabilities, by cluster.")
    ] = False,
    format: opt.Format = None,
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

    output = files.as_file(output)
    files.check_labels_name(output, proba=proba)
    files.check_outputs((output,), (model, data), force=force)
    tree = Hierarchy.load(model)
    if tree.rules[tree.root] is None and tree.n_leaves > 1:
        raise InputError(f"{model} was made from labels alone: it has no rules for new rows")
    asked = {"id_column": id_column, "format": format}
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
    with files.writing(output, force=force), noted(notes):
        write_report(tree, X, output, **options)
    answer({"report": output, "notes": notes}, as_json, f"report -> {output}")


def explain(
    model: opt.Model,
    data: opt.SameData,
    node: Annotated[
        str | None, opt.option("One node: its number, or the cluster c0, c1, ...")
    ] = None,
    row: Annotated[str | None, opt.option("One row: its name, or its number from 0.")] = None,
    new: Annotated[
        Path | None, opt.option("A file of new rows: where they go, and why.")
    ] = None,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    top: Annotated[int, typer.Option(min=1, help="Features and rows named, at most.")] = 5,
    format: opt.Format = None,
    as_json: opt.Json = False,
) -> None:
    """Say what stands out in the clusters, and which rows are typical or at the border.

    Without --node, --row or --new: all nodes. The margin of a row is 1 where it is usual, 0 at
    the border, and negative beyond it.
    """
    from taxarbor.cli import _reading as reading
    from taxarbor.cli._render import place_rows, say_node, say_nodes, say_rows
    from taxarbor.explain import explain as explain_tree
    from taxarbor.hierarchy import Hierarchy

    if sum(choice is not None for choice in (node, row, new)) > 1:
        raise InputError("give one of --node, --row and --new")
    if str(data) == str(new) == "-":
        raise InputError("only one of DATA and --new can be standard input")
    tree = Hierarchy.load(model)
    wanted = None if node is None else _node_id(tree, node)
    asked = {"id_column": id_column, "label_column": label_column, "format": format}
    table = reading.read_rows(tree, data, **asked)
    fresh = None if new is None else reading.read_for(tree, new, id_column=id_column)
    named: dict[str, Any] = {"feature_names": tree.feature_names or table.feature_names}
    named |= {"row_names": table.row_names, "classes": table.labels}
    X: Any = table.X
    why = explain_tree(tree, X, **named)
    notes = [*table.notes, *why.notes, *(() if fresh is None else fresh.notes)]
    if wanted is not None:
        told: dict[str, Any] = why.node(wanted, n_top=top, n_examples=top)
        say = partial(say_node, why, told)
    elif row is not None:
        told = why.row(_row_id(why, row))
        say = partial(say_rows, [told])
    elif fresh is not None:
        told = {"rows": place_rows(why, reading.as_features(tree, fresh).X, fresh.row_names)}
        say = partial(say_rows, told["rows"])
    else:
        told = {"nodes": why.to_dict(n_top=top, n_examples=top)["nodes"]}
        say = partial(say_nodes, told["nodes"], top)
    answer(told | {"notes": notes}, as_json)
    if not as_json:
        say()


def _node_id(tree: "Hierarchy", text: str) -> int:
    """Return a node by its number or, as c0, c1, ..., by its cluster's."""
    is_leaf, digits = text[:1] in "cC", text.removeprefix("c").removeprefix("C")
    most = tree.n_leaves if is_leaf else tree.n_nodes
    if not (digits.isascii() and digits.isdigit() and int(digits) < most):
        raise InputError(
            f"there is no node {text!r}: nodes are numbered 0 to {tree.n_nodes - 1}, clusters "
            f"c0 to c{tree.n_leaves - 1}"
        )
    return int(tree.leaves[int(digits)]) if is_leaf else int(digits)


def _row_id(why: "Explanation", text: str) -> int | str:
    """Return the name of a row if it is one, else its number."""
    n_rows = why.whole.n_rows
    n_called = (why.row_names or ()).count(text)
    if n_called == 1:
        return text
    if n_called > 1:
        raise InputError(f"{n_called} rows are called {text!r}; give its number, from 0")
    if text.isascii() and text.isdigit() and int(text) < n_rows:
        return int(text)
    if why.row_names is not None:
        raise InputError(f"no row is called {text!r}, and numbers go from 0 to {n_rows - 1}")
    told = f"there is no row {text!r}: rows are numbered 0 to {n_rows - 1}"
    raise InputError(f"{told}; --id-column says where the names are")


def assess(
    model: opt.Model,
    data: opt.SameData,
    output: Annotated[
        Path | None,
        opt.option(
            "The assessed model to write; default: MODEL, which is replaced.", "--output", "-o"
        ),
    ] = None,
    refits: Annotated[int, opt.option("How many times to fit; default: 20.", min=1)] = 20,
    jobs: Annotated[int, opt.option("Refits side by side; -1 for all processors.")] = 1,
    seed: Annotated[
        int,
        opt.option("The same seed gives the same result; default: 0.", min=0, max=2**32 - 1),
    ] = 0,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    format: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Fit a model again to halves of its rows, and say which clusters came back.

    The model then knows how far to trust it, and cut --suggest how many clusters to keep.
    Ctrl-C keeps the refits that are done.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._fitting import assess_table
    from taxarbor.cli._reading import read_both
    from taxarbor.cli._render import say_assessed
    from taxarbor.hierarchy import Hierarchy

    target = model if output is None else output
    sources = (data,) if output is None else (model, data)
    files.check_outputs((target,), sources, force=force or output is None)
    tree = Hierarchy.load(model)
    asked = {"id_column": id_column, "label_column": label_column, "format": format}
    table = read_both(tree, data, **asked)[0]
    notes = [*table.notes]
    settings: dict[str, Any] = {"n_refits": refits, "n_jobs": jobs, "random_state": seed}
    settings["verbose"] = int(sys.stderr.isatty())
    assessed = assess_table(table, tree, notes, **settings)
    trust = assessed.trust
    assert trust is not None
    with files.writing(target, force=force or output is None):
        assessed.save(target)
    told = {
        "model": target,
        "n_refits": trust.n_refits,
        "suggested": trust.suggested,
        "verdict": trust.curve.verdict(),
        "nodes": [
            {
                "node": node,
                "came_back": int(trust.came_back[node]),
                "apart": int(trust.apart[node]),
                "rule_came_back": int(trust.rule_came_back[node]),
                "is_stable": bool(trust.is_stable[node]),
            }
            for node in range(assessed.n_nodes)
        ],
        "rows": trust.rows.tolist(),
        "curve": {name: values.tolist() for name, values in trust.curve._asdict().items()},
        "notes": notes,
    }
    answer(told, as_json)
    if not as_json:
        say_assessed(assessed, trust)
        say_lines(f"assessed model -> {target}")
