"""All commands: each parses its options, calls the library and shows the result."""

import csv
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

from taxarbor import __version__
from taxarbor._errors import InputError, TableWarning, counted
from taxarbor.cli import _shell as shell

AUTO: Final = "auto"
ExportFormat: TypeAlias = Literal["json", "newick", "dot", "csv"]
SUFFIXES: dict[str, ExportFormat] = {
    **{".json": "json", ".csv": "csv"},
    **{".nwk": "newick", ".newick": "newick", ".dot": "dot", ".gv": "dot"},
}
_table: Any = partial(shell.option, rich_help_panel="Columns")
_tree: Any = partial(shell.option, rich_help_panel="Tree")


def fit(
    data: shell.Data,
    output: Annotated[Path | None, shell.output("Model; default: named after DATA.")] = None,
    n_clusters: Annotated[
        str, shell.option("Number of clusters, or auto; default: 8.", "--n-clusters", "-k")
    ] = "8",
    id_column: shell.IdColumn = None,
    label_column: shell.LabelColumn = None,
    format: shell.Format = None,
    labels: Annotated[Path | None, shell.option("Also write the cluster of each row.")] = None,
    report: Annotated[Path | None, shell.option("Also write an HTML report.")] = None,
    show: Annotated[
        bool, shell.option("Write and open a report.", "--open", metavar="")
    ] = False,
    force: shell.Force = False,
    as_json: shell.Json = False,
    columns: Annotated[str | None, _table("Use only these columns: a,b,c.")] = None,
    exclude: Annotated[str | None, _table("Use all columns but these: a,b.")] = None,
    categories: Annotated[str | None, _table("Categorical columns, besides text: a,b.")] = None,
    numbers: Annotated[str | None, _table("Numbers that look like identifiers: a,b.")] = None,
    text: Annotated[str | None, _table("Columns whose words are features: a,b.")] = None,
    missing: Annotated[str | None, _table("Values that mean missing: -999,unknown.")] = None,
    names: Annotated[Path | None, _table("File with names of columns, a line each.")] = None,
    sheet: shell.Sheet = None,
    layer: Annotated[str | None, _table("Layer of h5ad to use; raw for that of raw.")] = None,
    embedding: shell.Embedding = None,
    scale: Annotated[
        Literal["auto", "standard", "none"],
        _table("Scale numeric columns: auto (default), standard or none."),
    ] = "auto",
    metric: Annotated[
        Literal["euclidean", "cosine"],
        _table("Distance between rows: euclidean (default) or cosine."),
    ] = "euclidean",
    column_weights: Annotated[
        str | None, _table("Weights of columns, 1 for one that counts whole: a=1,b=0.5.")
    ] = None,
    max_features: Annotated[int | None, _tree("Maximum of features per split.", min=1)] = None,
    min_leaf_size: Annotated[
        int | None, _tree("Minimum number of rows per cluster; default: by the rows.", min=1)
    ] = None,
    noise: Annotated[float, _tree("Share of the rows to label as noise, -1.")] = 0.0,
    seed: shell.Seed = 0,
    jobs: shell.Jobs = 1,
) -> None:
    """Fit a tree of clusters to a table, and save it as a model.

    Numeric columns and text columns with few values are used; missing values are imputed. Other
    columns are left out, and a note says why.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._terminal import gather_notes, print_fit, summarize
    from taxarbor.estimators import Taxarbor
    from taxarbor.metrics import tree_scores
    from taxarbor.sources import RAW

    if n_clusters != AUTO and not n_clusters.isdecimal():
        raise InputError(f"must be 1 or more, or auto; got {n_clusters}", "n_clusters")
    name = files.stem_of(data)
    if output is None and name is None:
        raise InputError("standard input has no name: name the model with --output")
    model = output or Path(f"{name}.taxarbor")
    page = report or (model.with_suffix(".html") if show else None)
    files.check_outputs((model, page), (data,), labels, force=force)
    layer = RAW if layer == "raw" else layer or ""
    file = files.DataFile(data, format, id_column, label_column, sheet, layer)
    named = _split(",".join(filter(None, (columns, categories, numbers, text))))
    option = "-k auto" if n_clusters == AUTO else ""
    rows = file.read(_split(columns), names, features=named, option=option)
    estimator = Taxarbor(
        AUTO if n_clusters == AUTO else int(n_clusters),
        max_features=max_features,
        min_leaf_size=min_leaf_size,
        noise=noise,
        encoder=files.make_encoder(
            scale,
            is_matrix=file.kind in ("npy", "npz", "h5ad"),
            metric=metric,
            categorical_features=_split(categories) or "from_dtype",
            numeric_features=_split(numbers) or None,
            missing_values=tuple(_split(missing)),
            text_features=_split(text) or None,
        ),
        column_weights=_split_weights(column_weights),
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )
    begin = time.perf_counter()
    with shell.collect_notes(data, but=TableWarning) as warned:  # which columns.notes holds
        excluded = [name for name in _split(exclude) if name != rows.id_column]
        vectors = file.find_embedding(embedding, rows.X.names)
        taxonomy = files.fit_without(estimator, rows.X, excluded, vectors)
        taxonomy = files.describe_reading(taxonomy, rows, id_column)
        seconds = time.perf_counter() - begin
        scores = None if rows.labels is None else tree_scores(taxonomy, rows.labels)
        taxonomy.save(model)
        if labels is not None:
            files.write_labels(labels, estimator.labels_, rows)
        if page is not None:
            attached = files.attach_rows(taxonomy, rows, files.SAMPLE_ROWS)
            files.write_page(page, *attached, name)
    if show and page is not None and not files.open_in_browser(page):
        warned.append(f"no browser found: open {page} in one")
    document = {"data": data, "id_column": rows.id_column, **summarize(taxonomy)}
    document |= {"seconds": seconds, "scores": scores}
    document |= {"model": model, "labels": labels, "report": page}
    document["notes"] = gather_notes(taxonomy, warned, None if as_json else model)
    shell.answer(document, as_json, lambda: print_fit(str(file), taxonomy, document))


def _split(text: str | None) -> list[str]:
    """Return the names in a text such as ``a, b``, where quotes keep blanks and commas."""
    lines = csv.reader((text or "").splitlines(), skipinitialspace=True)
    return [name for line in lines for name in line]


def _split_weights(text: str | None) -> dict[str, float] | None:
    """Return the numbers in a text such as ``a=1,b=0.5`` by their names."""
    weights = {}
    for part in _split(text):
        name, _, number = part.rpartition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            problem = f"must be names and numbers, such as age=1; got {part!r}"
            raise InputError(problem, "column_weights") from None
    return weights or None


def demo(
    output: Annotated[Path, shell.output("Report; default: demo.html.")] = Path("demo.html"),
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Fit the animals that come with the package, show the tree, and write a report."""
    from taxarbor.cli._files import check_outputs
    from taxarbor.cli._terminal import print_fit, summarize
    from taxarbor.data import load_animals
    from taxarbor.estimators import Taxarbor
    from taxarbor.metrics import ClassTree, tree_scores
    from taxarbor.report import report

    check_outputs((output,), (), force=force)
    animals = load_animals()
    X, names = animals.X / animals.X.max(axis=0), animals.names
    classes = ClassTree.read(animals.tree).ancestors_of(names, 2)  # which colour the page
    begin, estimator = time.perf_counter(), Taxarbor(12, random_state=0)
    taxonomy = estimator.fit(X, feature_names=animals.feature_names).taxonomy_
    document = {**summarize(taxonomy), "seconds": time.perf_counter() - begin}
    report(taxonomy, X, output, row_names=names, classes=classes, title="Animals")
    document |= {"scores": tree_scores(taxonomy, classes), "report": output, "notes": []}
    shell.answer(document, as_json, lambda: print_fit("Animals", taxonomy, document, names))


def show(
    model: shell.Model,
    n_clusters: shell.Clusters = None,
    depth: Annotated[int | None, shell.option("Number of levels to show.", min=0)] = None,
    top: Annotated[int, typer.Option(min=0, help="Number of features per node.")] = 3,
    as_json: shell.Json = False,
) -> None:
    """Show the tree of a model, with the features that lead to each node."""
    from taxarbor.cli._files import load_model
    from taxarbor.cli._terminal import list_nodes, print_tree, summarize

    taxonomy = load_model(model, n_clusters)
    facts, columns = summarize(taxonomy), taxonomy.columns
    facts |= {"made_by": taxonomy.made_by, "feature_names": taxonomy.feature_names}
    facts["columns"] = [{"column": one.label, "missing": one.missing} for one in columns]
    facts["notes"] = columns.notes

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
    convert = {"json": to_json, "newick": to_newick, "dot": to_dot}.get(format)
    text = files.format_csv(to_frame(taxonomy)) if convert is None else convert(taxonomy)
    text = text.rstrip("\n") + "\n"
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
    proba: Annotated[bool, shell.option("Add probabilities.", "--proba", metavar="")] = False,
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
    with shell.collect_notes(data) as notes:
        labels = taxonomy.predict(rows.X)
        probabilities = taxonomy.predict_proba(rows.X).round(6) if proba else None
    if proba and taxonomy.temperature is None:
        notes.append("the probabilities are not calibrated: run taxarbor assess first")
    document: dict[str, Any] = {"output": output, "n_clusters": taxonomy.tree.n_leaves}
    if as_json:
        document |= {"rows": rows.row_names, "labels": labels.tolist()}
        document |= {} if probabilities is None else {"probabilities": probabilities.tolist()}
    show = partial(files.write_labels, output, labels, rows, probabilities)
    if output is not None:
        show()
        show = partial(shell.print_lines, f"{counted(len(labels), 'row')} -> {output}")
    shell.answer(document | {"notes": [*rows.notes, *notes]}, as_json, show)


def report(
    model: shell.Model,
    data: shell.TrainingData,
    output: Annotated[Path, shell.output("HTML file to write.")],
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
    with shell.collect_notes(data) as notes:
        file = files.DataFile(data, format, id_column, label_column, sheet)
        taxonomy, rows = files.read_model(model, file, most=files.SAMPLE_ROWS)
        files.write_page(output, taxonomy, rows, title or files.stem_of(data))
    document = {"report": output, "notes": [*rows.notes, *notes]}
    shell.answer(document, as_json, partial(shell.print_lines, f"report -> {output}"))


def explain(
    model: shell.Model,
    data: shell.TrainingData,
    node: Annotated[str | None, shell.option("Explain a node: its number, or c0, c1.")] = None,
    row: Annotated[str | None, shell.option("Explain a row: its name or number.")] = None,
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
    from taxarbor.cli._files import DataFile, read_model
    from taxarbor.cli._terminal import explain_row, find_node, print_nodes, print_records
    from taxarbor.explain import explain as explain_rows

    if node is not None and row is not None:
        raise InputError("choose one of --node and --row")
    with shell.collect_notes(data) as notes:
        taxonomy, rows = read_model(model, DataFile(data, format, id_column, sheet=sheet))
        explanation = explain_rows(taxonomy, rows.X, row_names=rows.row_names)
    if node is not None:
        document = explanation.node(find_node(taxonomy, node), n_top=top, n_examples=top)
        cluster = "" if document["cluster"] is None else f", c{document['cluster']}"
        n_rows = counted(document["n_rows"], "row")
        title = f"node {document['node']}{cluster}: {document['name']}, {n_rows}"
        show = partial(print_records, title, document)
    elif row is not None:
        document = explain_row(explanation, row)
        cluster = f"c{document['cluster']}" if document["cluster"] >= 0 else "no cluster: noise"
        show = partial(print_records, f"{document['name']} is in {cluster}", document)
    else:
        ids = range(taxonomy.tree.n_nodes)
        nodes = [explanation.node(one, n_top=top, n_examples=top) for one in ids]
        document, show = {"nodes": nodes}, partial(print_nodes, nodes)
    shell.answer(document | {"notes": [*rows.notes, *notes]}, as_json, show)


def assess(
    model: shell.Model,
    data: shell.TrainingData,
    output: Annotated[Path | None, shell.output("Model; default: MODEL is replaced.")] = None,
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
    with shell.collect_notes(data) as notes:
        file = files.DataFile(data, format, sheet=sheet)
        taxonomy, rows = files.read_model(model, file, "assess")
        assessed = assess_model(
            files.restore_estimator(taxonomy),
            rows.X,
            n_refits=refits,
            n_jobs=jobs,
            random_state=seed,
            verbose=int(sys.stderr.isatty()),
            embedding=file.find_embedding(embedding, rows.X.names),
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


EXAMPLES: dict[Callable[..., None], str] = {
    fit: "customers.csv -k 6 -o model.taxarbor --label-column class",
    show: "model.taxarbor --depth 2",
    predict: "model.taxarbor customers.csv --id-column id -o labels.csv",
    explain: "model.taxarbor customers.csv --node c0",
    report: "model.taxarbor customers.csv -o report.html --id-column id",
    export: "model.taxarbor -o tree.nwk",
    assess: "model.taxarbor customers.csv --refits 10",
    demo: "-o animals.html",
}

app = typer.Typer(
    name="taxarbor", no_args_is_help=True, pretty_exceptions_enable=False, cls=shell.Commands
)
for command, example in EXAMPLES.items():
    name = command.__name__
    app.command(name, epilog=f"Example: taxarbor {name} {example}", cls=shell.Command)(command)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"taxarbor {__version__}, Python {platform.python_version()}")
        raise typer.Exit


_version: Any = partial(shell.option, callback=_print_version, is_eager=True)


@app.callback(epilog="Example: taxarbor demo")
def start(
    version: Annotated[bool, _version("Print the version.", "--version", metavar="")] = False,
) -> None:
    """Hierarchical clustering with rules that people can read.

    Start with fit; the other commands read the model that it writes.
    """
