"""The commands that read a model: show, predict, explain, report, export and assess."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from taxarbor._errors import InputError, counted
from taxarbor.cli import _shell as shell

if TYPE_CHECKING:
    from taxarbor.estimators import HMMC, Taxarbor
    from taxarbor.explain import Explanation
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
    from taxarbor.cli._files import load_model
    from taxarbor.cli._terminal import list_dropped, list_nodes, print_tree, summarize

    taxonomy = load_model(model, n_clusters)
    facts, columns = summarize(taxonomy), taxonomy.columns
    facts |= {"made_by": taxonomy.made_by, "feature_names": taxonomy.feature_names}
    facts["columns"] = [{"column": one.label, "missing": one.missing} for one in columns]
    facts |= {"dropped": list_dropped(taxonomy), "notes": columns.notes}

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
        shell.option("The model as json; its tree as newick or dot; a line per node as csv."),
    ] = None,
    output: shell.Output = None,
    n_clusters: shell.Clusters = None,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Write the tree of a model in a format of other programs."""
    from taxarbor.cli import _files as files
    from taxarbor.exchange import to_dot, to_frame, to_json, to_newick

    format = to or SUFFIXES.get("" if output is None else output.suffix.lower())
    if format is None:
        formats = "json, newick, dot or csv, or an output with their extension"
        raise InputError(f"is needed: {formats}", "to")
    files.check_outputs((output,), (model,), force=force)
    taxonomy = files.load_model(model, n_clusters)
    if format == "csv":
        text = files.format_csv(to_frame(taxonomy))
    else:
        convert = {"json": to_json, "newick": to_newick, "dot": to_dot}[format]
        text = convert(taxonomy).rstrip("\n") + "\n"
    document: dict[str, Any] = {"format": format, "output": output, "notes": []}
    if output is None:
        document["text"], show = text, partial(shell.print_data, text)
    else:
        files.write_text(output, text)
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
    sheet: shell.Sheet = None,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Predict the cluster of each row of a table, as csv, tsv or parquet.

    Columns are selected by name, and others are ignored. Missing values and unknown categories
    are imputed by the mean of the column.
    """
    from taxarbor.cli import _files as files

    files.check_outputs((), (model, data), output, force=force)
    taxonomy = files.load_model(model, n_clusters)
    if taxonomy.tree.rules[taxonomy.tree.root] is None and taxonomy.tree.n_leaves > 1:
        raise InputError(f"{model} was made from labels: it has no rules to predict new rows")
    rows = files.read_rows(taxonomy, files.DataFile(data, format, id_column, sheet=sheet))
    notes = [*rows.notes]
    with shell.collect_notes(notes):
        labels = taxonomy.predict(rows.source)
        probabilities = taxonomy.predict_proba(rows.source).round(6) if proba else None
    if proba and taxonomy.temperature is None:
        notes.append("the probabilities are not calibrated: run taxarbor assess first")
    document: dict[str, Any] = {"output": output, "n_clusters": taxonomy.tree.n_leaves}
    if as_json:
        document |= {"rows": rows.names, "labels": labels.tolist()}
        document |= {} if probabilities is None else {"probabilities": probabilities.tolist()}
    show = partial(files.write_labels, output, labels, rows, probabilities)
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
    title: Annotated[str | None, shell.option("Title; default: the name of DATA.")] = None,
    format: shell.Format = None,
    sheet: shell.Sheet = None,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Write an HTML report that works offline: the tree, its rules, its rows.

    With --label-column, it has the scores against the known classes.
    """
    from taxarbor.cli import _files as files

    files.check_outputs((output,), (model, data), force=force)
    notes: list[str] = []
    with shell.collect_notes(notes):
        file = files.DataFile(data, format, id_column, label_column, sheet)
        taxonomy, rows = files.read_model(model, file)
        files.write_page(output, taxonomy, rows, title or files.stem_of(data))
    document = {"report": output, "notes": [*rows.notes, *notes]}
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
    sheet: shell.Sheet = None,
    as_json: shell.Json = False,
) -> None:
    """Explain clusters by distinctive features, and by typical and borderline rows.

    Without --node or --row, all nodes are explained. A row has a margin at each split: 1 is the
    median, 0 is the boundary.
    """
    from taxarbor.cli import _terminal as render
    from taxarbor.cli._files import DataFile, read_model
    from taxarbor.explain import explain as explain_rows

    if node is not None and row is not None:
        raise InputError("choose one of --node and --row")
    notes: list[str] = []
    with shell.collect_notes(notes):
        file = DataFile(data, format, id_column, sheet=sheet)
        taxonomy, rows = read_model(model, file)
        explanation = explain_rows(taxonomy, rows.source, row_names=rows.names)
    document: dict[str, Any]
    if node is not None:
        document = {**explanation.node(_find_node(taxonomy, node), n_top=top, n_examples=top)}
        cluster = "" if document["cluster"] is None else f", c{document['cluster']}"
        n_rows = counted(document["n_rows"], "row")
        title = f"node {document['node']}{cluster}: {document['name']}, {n_rows}"
        show = partial(render.print_records, title, document)
    elif row is not None:
        document = _explain_row(explanation, row)
        cluster = f"c{document['cluster']}" if document["cluster"] >= 0 else "no cluster: noise"
        title = f"{document['name']} is in {cluster}"
        show = partial(render.print_records, title, document)
    else:
        ids = range(taxonomy.tree.n_nodes)
        nodes = [explanation.node(one, n_top=top, n_examples=top) for one in ids]
        document, show = {"nodes": nodes}, partial(render.print_nodes, nodes)
    shell.answer(document | {"notes": [*rows.notes, *notes]}, as_json, show)


def _explain_row(explanation: "Explanation", row: str) -> dict[str, Any]:
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
    sheet: shell.Sheet = None,
    embedding: shell.Embedding = None,
    seed: shell.Seed = 0,
    jobs: shell.Jobs = 1,
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Measure the stability of a model: refit it to halves of its rows.

    The model then knows how often each cluster recurs, and how many clusters are stable.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._terminal import list_nodes, print_tree, print_verdict
    from taxarbor.stability import assess as assess_model

    target, inputs = output or model, (data,) if output is None else (model, data)
    files.check_outputs((target,), inputs, force=force or output is None)
    notes: list[str] = []
    with shell.collect_notes(notes):
        file = files.DataFile(data, format, sheet=sheet)
        taxonomy, rows = files.read_model(model, file, "assess")
        assessed = assess_model(
            _restore_estimator(taxonomy),
            rows.source,
            n_refits=refits,
            n_jobs=jobs,
            random_state=seed,
            verbose=int(sys.stderr.isatty()),
            embedding=file.find_embedding(embedding, rows.source.names),
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
        "notes": [*rows.notes, *notes],
    }

    def show_stability() -> None:
        print_tree(assessed)
        print_verdict(stability)
        if 1 < stability.suggested < assessed.tree.n_leaves:
            shell.print_lines(f"Select them with --clusters {stability.suggested}.")
        shell.print_lines(f"assessed model -> {target}")

    shell.answer(document, as_json, show_stability)


def _restore_estimator(taxonomy: "Taxonomy") -> "Taxarbor | HMMC":
    """Return the fitted estimator of a model, as assess refits it."""
    from taxarbor.estimators import HMMC, Taxarbor
    from taxarbor.tables import TableEncoder

    parameters = dict(taxonomy.made_by or {})
    kinds: dict[str, type[Taxarbor | HMMC]] = {"Taxarbor": Taxarbor, "HMMC": HMMC}
    if (kind := kinds.get(parameters.pop("estimator", ""))) is None:
        raise InputError("the model does not hold its parameters: fit it again")
    parameters.pop("embedding", None)  # an argument of its fit
    if isinstance(parameters.get("encoder"), dict):
        parameters["encoder"] = TableEncoder(**parameters["encoder"])
    if parameters.get("n_clusters") is not None:
        parameters["n_clusters"] = taxonomy.tree.n_leaves  # it may be pruned
    try:
        estimator = kind(**parameters)
    except TypeError as error:
        raise InputError(f"the model has unknown parameters: {error}") from error
    estimator.taxonomy_, estimator.labels_ = taxonomy, taxonomy.tree.labels
    return estimator
