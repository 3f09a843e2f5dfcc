"""The commands that read a model: show, predict, explain, report, export and assess."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from taxarbor._errors import InputError, counted
from taxarbor.cli import _shell as shell

if TYPE_CHECKING:
    from taxarbor.taxonomy import Taxonomy

ExportFormat: TypeAlias = Literal["json", "newick", "dot", "csv"]
SUFFIXES: dict[str, ExportFormat] = {
    **{".json": "json", ".csv": "csv"},
    **{".nwk": "newick", ".newick": "newick", ".dot": "dot", ".gv": "dot"},
}


def show(
    model: shell.Model,
    n_clusters: shell.Clusters = None,
    depth: Annotated[int | None, shell.option("Number of levels to show.", min=0)] = None,
    top: Annotated[int, typer.Option(min=0, help="Number of features per node.")] = 3,
    as_json: shell.Json = False,
) -> None:
    """Show the tree of a model, with the features that lead to each node."""
    from taxarbor.cli._input import load_model
    from taxarbor.cli._terminal import list_nodes, print_tree, summarize

    taxonomy = load_model(model, n_clusters)
    facts, columns = summarize(taxonomy), taxonomy.columns
    facts |= {"made_by": taxonomy.made_by, "feature_names": taxonomy.feature_names}
    used = [{"column": one.label, "missing": one.missing} for one in columns]
    dropped = [{"column": name, "reason": reason} for name, reason in columns.dropped]
    facts |= {"columns": used, "dropped": dropped, "notes": columns.notes}

    def show_tree() -> None:
        rows, clusters = taxonomy.tree.n_rows, taxonomy.tree.n_leaves
        shell.print_lines(f"{counted(rows, 'row')}, {counted(clusters, 'cluster')}")
        print_tree(taxonomy, depth, top)

    nodes = list_nodes(taxonomy, depth) if as_json else []
    shell.answer({"model": facts, "nodes": nodes, "notes": []}, as_json, show_tree)


def export(
    model: shell.Model,
    to: Annotated[
        ExportFormat | None,
        shell.option(
            "Format: the model as json; the tree as newick or dot (Graphviz); a line per node "
            "as csv. Default: by the extension of the output."
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
    from taxarbor.exchange import to_dot, to_frame, to_json, to_newick

    format = to or SUFFIXES.get("" if output is None else output.suffix.lower())
    if format is None:
        formats = "json, newick, dot or csv, or an output with their extension"
        raise InputError(f"is needed: {formats}", "to")
    write.check_outputs((output,), (model,), force=force)
    taxonomy = load_model(model, n_clusters)
    if format == "csv":
        text = write.format_csv(to_frame(taxonomy))
    else:
        convert = {"json": to_json, "newick": to_newick, "dot": to_dot}[format]
        text = convert(taxonomy).rstrip("\n") + "\n"
    document: dict[str, Any] = {"format": format, "output": output, "notes": []}
    if output is None:
        document["text"], show = text, partial(shell.print_data, text)
    else:
        write.write_text(output, text)
        show = partial(shell.print_lines, f"{format} -> {output}")
    shell.answer(document, as_json, show)


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
    """Predict the cluster of each row of a table, as csv, tsv or parquet.

    Columns are selected by name, and others are ignored. Missing values and unknown categories
    are imputed by the mean of the column.
    """
    from taxarbor.cli import _output as write
    from taxarbor.cli._input import DataFile, load_model, open_table, read_rows

    write.check_outputs((), (model, data), output, force=force)
    taxonomy = load_model(model, n_clusters)
    if taxonomy.tree.rules[taxonomy.tree.root] is None and taxonomy.tree.n_leaves > 1:
        raise InputError(f"{model} was made from labels: it has no rules to predict new rows")
    table = read_rows(taxonomy, DataFile(data, format, id_column))
    source, notes = open_table(table), [*table.notes]
    with shell.collect_notes(notes):
        labels = taxonomy.predict(source)
    probabilities = taxonomy.predict_proba(source).round(6) if proba else None
    if proba and taxonomy.temperature is None:
        notes.append("the probabilities are not calibrated: run taxarbor assess first")
    document: dict[str, Any] = {"output": output, "n_clusters": taxonomy.tree.n_leaves}
    if as_json:
        document |= {"rows": table.row_names, "labels": labels.tolist()}
        document |= {} if probabilities is None else {"probabilities": probabilities.tolist()}
    show = partial(write.write_labels, output, labels, table, probabilities)
    if output is not None:
        show()
        show = partial(shell.print_lines, f"{counted(len(labels), 'row')} -> {output}")
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

    With --label-column, it has the scores against the known classes.
    """
    from taxarbor.cli import _output as write
    from taxarbor.cli._input import DataFile, read_model

    write.check_outputs((output,), (model, data), force=force)
    notes: list[str] = []
    with shell.collect_notes(notes):
        file = DataFile(data, format, id_column, label_column)
        taxonomy, table = read_model(model, file)
        title = title or write.stem_of(data)
        write.write_page(output, taxonomy, table, title)
    document = {"report": output, "notes": [*table.notes, *notes]}
    shell.answer(document, as_json, partial(shell.print_lines, f"report -> {output}"))


def explain(
    model: shell.Model,
    data: shell.TrainingData,
    node: Annotated[
        str | None, shell.option("Explain one node: its number, or a cluster, c0, c1, ...")
    ] = None,
    row: Annotated[
        str | None, shell.option("Explain one row: its name, or its number from 0.")
    ] = None,
    id_column: shell.IdColumn = None,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of features and rows.")] = 5,
    format: shell.Format = None,
    as_json: shell.Json = False,
) -> None:
    """Explain clusters by distinctive features, and by typical and borderline rows.

    Without --node or --row, all nodes are explained. A row has a margin at each split: 1 is the
    median, 0 is the boundary.
    """
    from taxarbor.cli import _terminal as render
    from taxarbor.cli._input import DataFile, read_model
    from taxarbor.explain import explain as explain_rows

    if node is not None and row is not None:
        raise InputError("choose one of --node and --row")
    warned: list[str] = []
    with shell.collect_notes(warned):
        taxonomy, table = read_model(model, DataFile(data, format, id_column))
        explanation = explain_rows(taxonomy, table.X, row_names=table.row_names)
    notes = [*table.notes, *warned]
    document: dict[str, Any]
    if node is not None:
        document = explanation.node(_find_node(taxonomy, node), n_top=top, n_examples=top)
        cluster = "" if document["cluster"] is None else f", c{document['cluster']}"
        name, n_rows = document["name"], counted(document["n_rows"], "row")
        title = f"node {document['node']}{cluster}: {name}, {n_rows}"
        show = partial(render.print_records, title, document)
    elif row is not None:
        is_number = row.isascii() and row.isdigit() and row not in (table.row_names or ())
        try:
            number = explanation.find_row(int(row) if is_number else row)
        except (KeyError, IndexError) as error:
            raise InputError(str(error.args[0])) from error
        steps = explanation.rows(number)
        document = {"row": number, "name": explanation.row_name(number)}
        document["cluster"] = int(taxonomy.tree.labels[number])
        document["steps"] = steps.to_dict("records")
        cluster = f"c{document['cluster']}" if document["cluster"] >= 0 else "no cluster: noise"
        title = f"{document['name']} is in {cluster}"
        show = partial(render.print_records, title, document)
    else:
        ids = range(taxonomy.tree.n_nodes)
        nodes = [explanation.node(one, n_top=top, n_examples=top) for one in ids]
        document, show = {"nodes": nodes}, partial(render.print_nodes, nodes)
    shell.answer(document | {"notes": notes}, as_json, show)


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


def assess(
    model: shell.Model,
    data: shell.TrainingData,
    output: Annotated[
        Path | None,
        shell.option("Model to write; default: MODEL, which is replaced.", "--output", "-o"),
    ] = None,
    refits: Annotated[int, shell.option("Number of refits; default: 20.", min=1)] = 20,
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
    from taxarbor.cli import _output as write
    from taxarbor.cli._input import DataFile, find_embedding, read_model
    from taxarbor.cli._terminal import list_nodes, print_tree, print_verdict
    from taxarbor.stability import assess as assess_model

    target = output or model
    force = force or output is None
    write.check_outputs((target,), (data,) if output is None else (model, data), force=force)
    notes: list[str] = []
    with shell.collect_notes(notes):
        file = DataFile(data, format)
        taxonomy, table = read_model(model, file, "assess")
        assessed = assess_model(
            _restore_estimator(taxonomy),
            table.X,
            n_refits=refits,
            n_jobs=jobs,
            random_state=seed,
            verbose=int(sys.stderr.isatty()),
            embedding=find_embedding(file, embedding),
        )
    stability = assessed.stability
    assert stability is not None
    assessed.save(target)
    document = {
        "model": target,
        "n_refits": stability.n_refits,
        "suggested": stability.suggested,
        "verdict": stability.curve.verdict(),
        "left_out": float(stability.left_out[0]),
        "curve": {name: values.tolist() for name, values in stability.curve._asdict().items()},
        "nodes": list_nodes(assessed) if as_json else [],
        "notes": [*table.notes, *notes],
    }

    def show_stability() -> None:
        print_tree(assessed)
        print_verdict(stability)
        if 1 < stability.suggested < assessed.tree.n_leaves:
            shell.print_lines(f"Select them with --clusters {stability.suggested}.")
        shell.print_lines(f"assessed model -> {target}")

    shell.answer(document, as_json, show_stability)


def _restore_estimator(taxonomy: "Taxonomy") -> Any:
    """Return the fitted estimator of a model."""
    from taxarbor.estimators import HMMC, Taxarbor
    from taxarbor.tables import TableEncoder

    parameters = dict(taxonomy.made_by or {})
    if (
        kind := {"Taxarbor": Taxarbor, "HMMC": HMMC}.get(parameters.pop("estimator", ""))
    ) is None:
        raise InputError("the model does not hold its parameters: fit it again")
    parameters.pop("embedding", None)  # an argument of its fit
    if isinstance(parameters.get("encoder"), dict):
        parameters["encoder"] = TableEncoder(**parameters["encoder"])
    if parameters.get("n_clusters") is not None:
        parameters["n_clusters"] = taxonomy.tree.n_leaves  # it may be pruned
    try:
        estimator: Any = kind(**parameters)
    except TypeError as error:
        raise InputError(f"the model has unknown parameters: {error}") from error
    estimator.taxonomy_, estimator.labels_ = taxonomy, taxonomy.tree.labels
    return estimator
