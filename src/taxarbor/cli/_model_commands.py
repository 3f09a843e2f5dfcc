"""The commands that read a model: show, predict, explain, report, export and assess."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from taxarbor._errors import InputError, counted
from taxarbor.cli import _shell as shell

if TYPE_CHECKING:
    import pandas as pd

    from taxarbor.explain import Explanation
    from taxarbor.taxonomy import Taxonomy

ExportFormat: TypeAlias = Literal["json", "newick", "dot", "linkage", "csv"]
SUFFIXES: dict[str, ExportFormat] = {
    **{".json": "json", ".csv": "csv"},
    **{".nwk": "newick", ".newick": "newick", ".dot": "dot", ".gv": "dot"},
}
NODE_STABILITY = ("n_recovered", "n_separated", "n_rule_recovered", "left_out", "is_stable")


def show(
    model: shell.Model,
    n_clusters: shell.Clusters = None,
    depth: Annotated[int | None, shell.option("Number of levels to show.", min=0)] = None,
    top: Annotated[int, typer.Option(min=0, help="Number of features per node.")] = 3,
    as_json: shell.Json = False,
) -> None:
    """Show the tree of a model, with the features that lead to each node."""
    from taxarbor.cli._input import load_model
    from taxarbor.cli._terminal import print_tree, summarize

    taxonomy = load_model(model, n_clusters)
    facts, encoding = summarize(taxonomy), taxonomy.encoding
    facts |= {"made_by": taxonomy.made_by, "feature_names": taxonomy.feature_names}
    if encoding is not None:
        columns = ({"column": one.label, "missing": one.missing} for one in encoding.columns)
        dropped = ({"column": name, "reason": reason} for name, reason in encoding.dropped)
        facts |= {"columns": [*columns], "dropped": [*dropped], "notes": encoding.notes}

    def show_tree() -> None:
        counts = [counted(facts["n_rows"], "row"), counted(facts["n_clusters"], "cluster")]
        if facts["n_features"]:
            counts.insert(1, counted(facts["n_features"], "feature"))
        name = (taxonomy.made_by or {}).get("estimator")
        shell.print_lines(", ".join(counts) + (f", fitted by {name}" if name else ""))
        print_tree(taxonomy, depth, top)

    nodes = _list_nodes(taxonomy, depth, top) if as_json else []
    shell.answer({"model": facts, "nodes": nodes, "notes": []}, as_json, show_tree)


def _list_nodes(taxonomy: "Taxonomy", depth: int | None, n_top: int) -> list[dict[str, Any]]:
    """Return the nodes in a list, parents first: nested JSON has a maximum depth."""
    from taxarbor.taxonomy._text import outline

    tree = taxonomy.tree
    labels = {int(leaf): label for label, leaf in enumerate(tree.leaves)}
    nodes = []
    for level, node, reasons, _ in outline(taxonomy, depth, n_top, tree.n_nodes):
        assert node is not None
        nodes.append({
            "node": node,
            "parent": tree.parent(node),
            "children": list(tree.children(node)),
            "depth": level,
            "n_rows": int(tree.sizes[node]),
            "cluster": labels.get(node),
            "reasons": [
                {
                    **{"feature": r.name, "sign": r.sign, "share": r.share, "weight": r.weight},
                    **{"threshold": r.threshold, "words": str(r)},
                }
                for r in reasons
            ],
        })  # fmt: skip
    return sorted(nodes, key=lambda values: values["node"])


def export(
    model: shell.Model,
    to: Annotated[
        ExportFormat | None,
        shell.option(
            "Format: the model as json; the tree as newick, dot (Graphviz) or linkage (SciPy); "
            "a line per node as csv. Default: by the extension of the output."
        ),
    ] = None,
    output: shell.Output = None,
    n_clusters: shell.Clusters = None,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Write the tree of a model in a format of other programs."""
    from taxarbor.cli import _output as write
    from taxarbor.cli._input import load_model

    output = write.as_file(output)
    format = to or SUFFIXES.get("" if output is None else output.suffix.lower())
    if format is None:
        formats = "json, newick, dot, linkage or csv"
        raise InputError(f"is needed: {formats}; or an output with their extension", "to")
    write.check_outputs((output,), (model,), force=force)
    text = _export(load_model(model, n_clusters), format)
    document: dict[str, Any] = {"format": format, "output": output, "notes": []}
    if output is None:
        document["text"] = text
        shell.answer(document, as_json, lambda: shell.print_data(text))
        return
    write.write_text(output, text, force=force)
    shell.answer(document, as_json, lambda: shell.print_lines(f"{format} -> {output}"))


def _export(taxonomy: "Taxonomy", format: ExportFormat) -> str:
    from taxarbor.cli._output import format_csv
    from taxarbor.exchange import to_dot, to_frame, to_json, to_linkage, to_newick

    if format == "csv":
        frame = to_frame(taxonomy)
        cells = frame.astype(object).where(frame.notna(), "")
        return "".join(format_csv([frame.columns, *cells.to_numpy().tolist()]))
    if format == "linkage":
        merges = to_linkage(taxonomy).astype(int).tolist()
        return "".join(format_csv([("a", "b", "height", "size"), *merges]))
    convert = {"json": to_json, "newick": to_newick, "dot": to_dot}[format]
    return convert(taxonomy).rstrip("\n") + "\n"


def predict(
    model: shell.Model,
    data: shell.Data,
    output: shell.Output = None,
    n_clusters: shell.Clusters = None,
    id_column: shell.IdColumn = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each cluster.")
    ] = False,
    format: shell.Format = None,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Predict the cluster of each row of a table, as csv, tsv, npy or parquet.

    Columns are selected by name, and others are ignored. Missing values and unknown categories
    are imputed by the mean of the column.
    """
    from taxarbor.cli import _output as write
    from taxarbor.cli._input import DataFile, load_model, predict_rows, read_rows

    output = write.as_file(output)
    write.check_labels_name(output, proba=proba)
    write.check_outputs((output,), (model, data), force=force)
    taxonomy = load_model(model, n_clusters)
    if taxonomy.tree.rules[taxonomy.tree.root] is None and taxonomy.tree.n_leaves > 1:
        raise InputError(f"{model} was made from labels: it has no rules to predict new rows")
    table = read_rows(taxonomy, DataFile(data, format, id_column))
    labels, probabilities, notes = predict_rows(taxonomy, table, proba=proba)
    if proba and taxonomy.temperature is None:
        notes.append("the probabilities are not calibrated: run taxarbor assess first")
    document: dict[str, Any] = {"output": output, "n_clusters": taxonomy.tree.n_leaves}
    if as_json:
        document |= {"rows": table.row_names, "labels": labels.tolist()}
        document |= {} if probabilities is None else {"probabilities": probabilities.tolist()}
    write_labels = partial(write.write_labels, labels=labels, table=table, force=force)
    line = f"{counted(len(labels), 'row')} -> {output}"
    show = partial(write_labels, None, probabilities=probabilities)
    if output is not None:
        write_labels(output, probabilities=probabilities)
        show = partial(shell.print_lines, line)
    shell.answer(document | {"notes": notes}, as_json, show)


def report(
    model: shell.Model,
    data: shell.TrainingData,
    output: Annotated[Path, shell.option("HTML file to write.", "--output", "-o")],
    id_column: shell.IdColumn = None,
    label_column: shell.LabelColumn = None,
    title: Annotated[
        str | None, shell.option("Title of the report; default: the name of DATA.")
    ] = None,
    format: shell.Format = None,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Write an HTML report that works offline: the tree, its rules, its rows.

    With --label-column, scores against the known classes are printed as well.
    """
    from taxarbor.cli import _output as write
    from taxarbor.cli._input import DataFile, in_memory, load_model, read_rows
    from taxarbor.cli._terminal import print_scores
    from taxarbor.metrics import tree_scores
    from taxarbor.report import report as write_report

    write.check_outputs((output,), (model, data), force=force)
    taxonomy = load_model(model)
    table = read_rows(taxonomy, DataFile(data, format, id_column, label_column))
    if taxonomy.feature_names is None and table.feature_names is not None:
        taxonomy = taxonomy.rename_features(table.feature_names)
    notes, scores = [*table.notes], None
    write.check_new(output, force=force)
    with shell.collect_notes(notes):
        write_report(
            taxonomy,
            in_memory(table),
            output,
            row_names=table.row_names,
            classes=table.labels,
            title=title or write.stem_of(data) or "A taxonomy",
        )
        if table.labels is not None and taxonomy.tree.has_rows:
            scores = tree_scores(taxonomy, table.labels)

    def show_scores() -> None:
        shell.print_lines(f"report -> {output}")
        if scores is not None:
            print_scores(scores)

    shell.answer({"report": output, "scores": scores, "notes": notes}, as_json, show_scores)


def explain(
    model: shell.Model,
    data: shell.TrainingData,
    node: Annotated[
        str | None, shell.option("Explain one node: its number, or a cluster, c0, c1, ...")
    ] = None,
    row: Annotated[
        str | None, shell.option("Explain one row: its name, or its number from 0.")
    ] = None,
    new: Annotated[Path | None, shell.option("Explain new rows from this file.")] = None,
    id_column: shell.IdColumn = None,
    label_column: shell.LabelColumn = None,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of features and rows.")] = 5,
    format: shell.Format = None,
    as_json: shell.Json = False,
) -> None:
    """Explain clusters by distinctive features, and by typical and borderline rows.

    Without --node, --row or --new, all nodes are explained. A row has a margin at each split:
    1 is the median, 0 is the boundary.
    """
    from taxarbor.cli import _input as read
    from taxarbor.cli import _terminal as render
    from taxarbor.explain import explain as explain_rows

    if sum(choice is not None for choice in (node, row, new)) > 1:
        raise InputError("choose one of --node, --row and --new")
    if str(data) == str(new) == "-":
        raise InputError("only one of DATA and --new can be standard input")
    taxonomy = read.load_model(model)
    table = read.read_rows(taxonomy, read.DataFile(data, format, id_column, label_column))
    if taxonomy.feature_names is None and table.feature_names is not None:
        taxonomy = taxonomy.rename_features(table.feature_names)
    X, notes = read.in_memory(table), [*table.notes]
    with shell.collect_notes(notes):
        explanation = explain_rows(taxonomy, X, row_names=table.row_names, classes=table.labels)
    document: dict[str, Any]
    if node is not None:
        document = explanation.node(_find_node(taxonomy, node), n_top=top, n_examples=top)
        show = partial(render.print_node, explanation, document)
    elif row is not None:
        number = _find_row(explanation, row)
        cluster = int(explanation.taxonomy.tree.labels[number])
        steps = explanation.rows(number).assign(cluster=f"c{cluster}")
        notes += ["the row is noise"] if cluster < 0 else []
        document = {"row": number, "name": explanation.row_name(number), "cluster": cluster}
        document["steps"] = steps.to_dict("records")
        show = partial(render.print_steps, steps)
    elif new is not None:
        labels, steps, more = _explain_new_rows(explanation, new, id_column)
        notes += more
        document = {"labels": labels, "steps": steps.to_dict("records")}
        show = partial(render.print_steps, steps)
    else:
        nodes = range(taxonomy.tree.n_nodes)
        document = {"nodes": [explanation.node(n, n_top=top, n_examples=top) for n in nodes]}
        show = partial(render.print_nodes, explanation)
    shell.answer(document | {"notes": notes}, as_json, show)


def _explain_new_rows(
    explanation: "Explanation", path: Path, id_column: str | None
) -> "tuple[list[int], pd.DataFrame, list[str]]":
    """Return the clusters of new rows, the rules on their paths, and notes."""
    from taxarbor.cli import _input as read

    taxonomy = explanation.taxonomy
    table = read.read_rows(taxonomy, read.DataFile(path, id_column=id_column))
    labels, _, notes = read.predict_rows(taxonomy, table, proba=False)
    steps = explanation.place(read.in_memory(table), table.row_names)
    steps["cluster"] = [f"c{label}" for label in labels[steps["row"]]]
    if n_noise := int((labels < 0).sum()):
        notes.append(f"{counted(n_noise, 'new row is', 'new rows are')} noise")
    return labels.tolist(), steps, notes


def _find_node(taxonomy: "Taxonomy", text: str) -> int:
    """Return a node by its number or, as c0, c1, ..., by that of its cluster."""
    tree = taxonomy.tree
    names = {str(node): node for node in range(tree.n_nodes)}
    names |= {f"c{label}": leaf for label, leaf in enumerate(tree.leaves.tolist())}
    if text.lower() not in names:
        clusters = f"a cluster, c0 to c{tree.n_leaves - 1}"
        problem = f"must be a number, 0 to {tree.n_nodes - 1}, or {clusters}; got {text!r}"
        raise InputError(problem, "node")
    return names[text.lower()]


def _find_row(explanation: "Explanation", text: str) -> int:
    """Return the number of a row by its name, or by its number if no row has this name."""
    is_number = text.isascii() and text.isdigit() and text not in (explanation.row_names or ())
    try:
        return explanation.find_row(int(text) if is_number else text)
    except (KeyError, IndexError) as error:
        raise InputError(str(error.args[0])) from error


def assess(
    model: shell.Model,
    data: shell.TrainingData,
    output: Annotated[
        Path | None,
        shell.option("Model to write; default: MODEL, which is replaced.", "--output", "-o"),
    ] = None,
    refits: Annotated[int, shell.option("Number of refits; default: 20.", min=1)] = 20,
    id_column: shell.IdColumn = None,
    label_column: shell.LabelColumn = None,
    format: shell.Format = None,
    embedding: shell.Embedding = None,
    seed: shell.Seed = 0,
    jobs: shell.Jobs = 1,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Measure the stability of a model: refit it to halves of its rows.

    The model then knows how often each cluster recurs, and how many clusters are stable.
    """
    from taxarbor.cli import _input as read
    from taxarbor.cli import _output as write
    from taxarbor.cli._terminal import print_tree, print_verdict
    from taxarbor.stability import assess as assess_model

    target = output or model
    force = force or output is None
    write.check_outputs((target,), (data,) if output is None else (model, data), force=force)
    taxonomy = read.load_model(model)
    table = read.read_rows(
        taxonomy, file := read.DataFile(data, format, id_column, label_column)
    )
    X, notes = read.in_memory(table), [*table.notes]
    with shell.collect_notes(notes):
        assessed = assess_model(
            _restore_estimator(taxonomy, X),
            X,
            n_refits=refits,
            n_jobs=jobs,
            random_state=seed,
            verbose=int(sys.stderr.isatty()),
            embedding=read.find_embedding(file, embedding),
        )
    stability = assessed.stability
    assert stability is not None
    write.check_new(target, force=force)
    assessed.save(target)
    columns = {name: getattr(stability, name).tolist() for name in NODE_STABILITY}
    nodes = [
        {"node": node} | {name: values[node] for name, values in columns.items()}
        for node in range(assessed.tree.n_nodes)
    ]
    document = {
        "model": target,
        "n_refits": stability.n_refits,
        "suggested": stability.suggested,
        "verdict": stability.curve.verdict(),
        "left_out": stability.left_out[0].item(),
        "nodes": nodes,
        "rows": stability.rows.tolist(),
        "curve": {name: values.tolist() for name, values in stability.curve._asdict().items()},
        "notes": notes,
    }

    def show_stability() -> None:
        print_tree(assessed)
        print_verdict(stability)
        if 1 < stability.suggested < assessed.tree.n_leaves:
            shell.print_lines(f"Select them with --clusters {stability.suggested}.")
        shell.print_lines(f"assessed model -> {target}")

    shell.answer(document, as_json, show_stability)


def _restore_estimator(taxonomy: "Taxonomy", X: Any) -> Any:
    """Return the fitted estimator of a model."""
    import numpy as np

    from taxarbor.estimators import HMMC, Taxarbor
    from taxarbor.tables import TableEncoder

    parameters = dict(taxonomy.made_by or {})
    name, estimators = parameters.pop("estimator", ""), {"Taxarbor": Taxarbor, "HMMC": HMMC}
    if name not in estimators:
        raise InputError("the model does not hold its parameters: fit it again")
    parameters.pop("embedding", None)  # an argument of its fit
    try:
        if isinstance(parameters.get("encoder"), dict):
            parameters["encoder"] = TableEncoder(**parameters["encoder"])
        if parameters.get("n_clusters") is not None:
            parameters["n_clusters"] = taxonomy.tree.n_leaves  # it may be pruned
        estimator = estimators[name](**parameters)
    except TypeError as error:
        raise InputError(f"the model has unknown parameters: {error}") from error
    estimator.taxonomy_, estimator.labels_ = taxonomy, taxonomy.tree.labels
    estimator.n_features_in_ = X.shape[1]
    if hasattr(X, "columns"):
        estimator.feature_names_in_ = np.array([*map(str, X.columns)], dtype=object)
    return estimator
