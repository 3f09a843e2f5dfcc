"""``taxarbor fit`` and ``taxarbor demo``: from a table to a model."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from taxarbor._errors import InputError, TableWarning, counted, some
from taxarbor.cli import _shell as shell

if TYPE_CHECKING:
    from taxarbor._types import IndexArray
    from taxarbor.cli._input import DataFile
    from taxarbor.tables import Table
    from taxarbor.taxonomy import Taxonomy

AUTO = "auto"
N_LEVELS_SHOWN, N_LINES_SHOWN = 3, 40
"""The part of the tree that fit prints."""
MAX_NAMED = 5
"""Columns that a note names before it only counts them."""
DEMO_CLUSTERS = 12
CLASS_DEPTH = 2
"""Level of the biological classification whose classes colour the page."""


class ColumnOptions(NamedTuple):
    """The options of fit that say how columns are used."""

    columns: str | None
    categories: str | None
    dates: str | None
    weights: str | None
    embedding: str | None
    scale: str
    metric: str


class FittedTable(NamedTuple):
    """A model, the table it was fitted to, and what fit prints about them."""

    taxonomy: "Taxonomy"
    labels: "IndexArray"
    table: "Table"
    X: Any
    dropped: tuple[tuple[str, str], ...]
    notes: list[str]
    seconds: float


def _table(help: str, **more: Any) -> Any:
    return shell.option(help, rich_help_panel="Columns", **more)


def _tree(help: str, **more: Any) -> Any:
    return shell.option(help, rich_help_panel="Tree", **more)


def fit(
    data: shell.Data,
    output: Annotated[
        Path | None,
        shell.option("Model to write; default: named after DATA.", "--output", "-o"),
    ] = None,
    n_clusters: Annotated[
        str,
        shell.option(
            "Number of clusters, or auto for as many as are stable; default: 8.",
            *("--n-clusters", "-k"),
            metavar="NUMBER",
        ),
    ] = "8",
    id_column: shell.IdColumn = None,
    label_column: shell.LabelColumn = None,
    format: shell.Format = None,
    labels: Annotated[Path | None, shell.option("Also write the cluster of each row.")] = None,
    report: Annotated[Path | None, shell.option("Also write an HTML report.")] = None,
    show: Annotated[
        bool, shell.option("Also write an HTML report, and open it in a browser.", "--open")
    ] = False,
    force: shell.Force = False,
    as_json: shell.Json = False,
    columns: Annotated[str | None, _table("Use only these columns: a,b,c.")] = None,
    categories: Annotated[
        str | None, _table("Columns to treat as categorical, besides text: a,b.")
    ] = None,
    dates: Annotated[
        str | None, _table("Date columns to use, as year, month and weekday: a,b.")
    ] = None,
    weights: Annotated[str | None, _table("Column of sample weights; not a feature.")] = None,
    embedding: shell.Embedding = None,
    scale: Annotated[
        Literal["auto", "standard", "none"],
        _table("Scale numeric columns: auto (default), standard or none."),
    ] = "auto",
    metric: Annotated[
        Literal["euclidean", "cosine"],
        _table("Distance between rows: euclidean (default) or cosine."),
    ] = "euclidean",
    method: Annotated[
        Literal["taxarbor", "hmmc"], _tree("Clustering method: taxarbor (default) or hmmc.")
    ] = "taxarbor",
    max_features: Annotated[
        int | None, _tree("Maximum number of features per split (taxarbor).", min=1)
    ] = None,
    min_leaf_size: Annotated[
        int | None, _tree("Minimum number of rows per cluster (taxarbor).", min=1)
    ] = None,
    noise: Annotated[
        float | None,
        _tree("Share of the rows to label as noise, -1 (taxarbor).", metavar="SHARE"),
    ] = None,
    seed: shell.Seed = 0,
    jobs: shell.Jobs = 1,
) -> None:
    """Fit a tree of clusters to a table, and save it as a model.

    Numeric columns and text columns with few values are used; missing values are imputed. Other
    columns are left out, and a note says why.
    """
    from taxarbor.cli import _output as write
    from taxarbor.cli._input import DataFile
    from taxarbor.cli._terminal import summarize
    from taxarbor.metrics import tree_scores
    from taxarbor.report import report as write_report

    optional = {"max_features": max_features, "min_leaf_size": min_leaf_size, "noise": noise}
    given = {option: value for option, value in optional.items() if value is not None}
    estimator = _make_estimator(method, n_clusters, seed, jobs)
    only_taxarbor = [*given, *["embedding"] * (embedding is not None)]
    if method != "taxarbor" and only_taxarbor:
        raise InputError(f"is for --method taxarbor, not for {method}", only_taxarbor[0])
    estimator.set_params(**given)
    name = write.stem_of(data)
    if output is None and name is None:
        raise InputError("standard input has no name: name the model with --output")
    model = output or Path(f"{name}.taxarbor")
    page = report or (model.with_suffix(".html") if show else None)
    write.check_labels_name(labels)
    write.check_outputs((model, page, labels), (data,), force=force)

    file = DataFile(data, format, id_column, label_column)
    if n_clusters == AUTO:
        file.load("-k auto")
    options = ColumnOptions(columns, categories, dates, weights, embedding, scale, metric)
    fitted = _fit_file(estimator, file, options)
    taxonomy, table, notes, scores = fitted.taxonomy, fitted.table, fitted.notes, None
    if table.labels is not None:
        with shell.collect_notes(notes):
            scores = tree_scores(taxonomy, table.labels)

    write.check_new(model, force=force)
    taxonomy.save(model)
    if labels is not None:
        write.write_labels(labels, fitted.labels, table, force=force)
    if page is not None:
        write.check_new(page, force=force)
        title, names = name or "A taxonomy", table.row_names
        with shell.collect_notes(notes):
            write_report(
                taxonomy, fitted.X, page, row_names=names, classes=table.labels, title=title
            )
        if show and not write.open_in_browser(page):
            notes.append(f"no browser found: open {page} in one")
    dropped = [{"column": column, "reason": reason} for column, reason in fitted.dropped]
    if dropped and not as_json:
        listed = [f"{column} ({reason})" for column, reason in fitted.dropped]
        notes.insert(0, f"columns left out: {some(listed, MAX_NAMED)}")
    document = {"data": data, "method": method, **summarize(taxonomy), "dropped": dropped}
    if taxonomy.stability is not None:
        document["verdict"] = taxonomy.stability.curve.verdict()
    document |= {"seconds": fitted.seconds, "scores": scores, "notes": notes}
    outputs = {"model": model, "labels": labels, "report": page}
    shell.answer(document | outputs, as_json, lambda: _print_fit(file, fitted, scores, outputs))


def _make_estimator(method: str, n_clusters: str, seed: int, jobs: int) -> Any:
    from taxarbor.estimators import HMMC, Taxarbor

    if n_clusters == AUTO and method != "taxarbor":
        raise InputError(f"auto is for --method taxarbor, not for {method}", "n_clusters")
    if n_clusters != AUTO and not (n_clusters.isdecimal() and int(n_clusters)):
        raise InputError(f"must be 1 or more, or auto, got {n_clusters}", "n_clusters")
    return {"taxarbor": Taxarbor, "hmmc": HMMC}[method](
        AUTO if n_clusters == AUTO else int(n_clusters),
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )


def _fit_file(estimator: Any, file: "DataFile", options: ColumnOptions) -> FittedTable:
    """Fit an estimator to the table in a file."""
    from taxarbor.cli import _input as read

    for option in ("categories", "weights"):
        if getattr(options, option) is not None:
            file.load(f"--{option}")
    if file.label_column is not None:
        file.load("--label-column")
    table, weights = read.read_training_table(
        file,
        read.split_names(options.columns, "columns") if options.columns is not None else None,
        read.split_names(options.categories, "categories"),
        options.weights,
        options.embedding,
    )
    X = file.cells(table)
    encoder = _make_encoder(file, table, options)
    notes, warned = [*table.notes], list[str]()
    if table.id_column is not None and file.id_column is None:
        notes.append(f"row names are taken from the column {table.id_column}")
    given = {"sample_weight": weights} if weights is not None else {}
    known = table.feature_names or ()
    if (embedding := read.find_embedding(file, options.embedding, known)) is not None:
        given["embedding"] = embedding
    begin = time.perf_counter()
    with shell.collect_notes(warned, but=TableWarning):
        estimator.set_params(encoder=encoder).fit(table.X if encoder == AUTO else X, **given)
    seconds = time.perf_counter() - begin
    taxonomy, dropped = estimator.taxonomy_, ()
    if taxonomy.feature_names is None and table.feature_names is not None:
        taxonomy = taxonomy.rename_features(table.feature_names)
    if (encoding := taxonomy.encoding) is not None:
        dropped, notes = encoding.dropped, [*notes, *encoding.notes]
    notes += [*_describe_excluded(taxonomy, is_weighted=weights is not None), *warned]
    return FittedTable(taxonomy, estimator.labels_, table, X, dropped, notes, seconds)


def _make_encoder(file: "DataFile", table: "Table", options: ColumnOptions) -> Any:
    """Return the encoder of a table; a matrix has one unit, and is scaled only on request."""
    import numpy as np

    from taxarbor.cli._input import is_frame, split_names
    from taxarbor.tables import TableEncoder

    X, scale, dates = table.X, options.scale, split_names(options.dates, "dates") or None
    has_types = file.format == "parquet" if file.in_blocks else is_frame(X)
    is_default = dates is None and (scale, options.metric) == ("auto", "euclidean")
    has_gaps = isinstance(X, np.ndarray) and bool(np.isnan(X).any())
    if is_default and not has_types and not (has_gaps and table.feature_names):
        return AUTO
    scaling: Any = None if scale == "none" or (scale == "auto" and not has_types) else scale
    metric: Any = options.metric
    return TableEncoder(scale=scaling, metric=metric, date_features=dates)


def _describe_excluded(taxonomy: "Taxonomy", *, is_weighted: bool) -> Iterator[str]:
    """Yield notes on the rows that took no part in a fit."""
    tree = taxonomy.tree
    n_excluded = round(float(tree.sizes[tree.root] - tree.node_weights[tree.root]))
    if n_excluded > 0 and not is_weighted:
        rows = counted(n_excluded, "outlier or empty row", "outliers or empty rows")
        yield f"{rows} excluded from the fit"
    if tree.n_noise:
        yield f"{counted(tree.n_noise, 'row')} labelled as noise"


def _print_fit(
    file: "DataFile",
    fitted: FittedTable,
    scores: dict[str, float] | None,
    outputs: dict[str, Path | None],
) -> None:
    from taxarbor.cli._terminal import print_scores, print_tree, print_verdict

    taxonomy, n_dropped = fitted.taxonomy, len(fitted.dropped)
    tree, encoding = taxonomy.tree, taxonomy.encoding
    n_columns = (taxonomy.n_features or 0) if encoding is None else len(encoding.columns)
    left_out = f" ({n_dropped} left out)" if n_dropped else ""
    shell.print_lines(
        f"{file}: {counted(tree.n_rows, 'row')}, {counted(n_columns, 'column')}{left_out}\n"
        f"{counted(tree.n_leaves, 'cluster')} in {fitted.seconds:.2f} s -> {outputs['model']}\n"
    )
    print_tree(taxonomy, N_LEVELS_SHOWN, max_nodes=N_LINES_SHOWN)
    if tree.height > N_LEVELS_SHOWN or tree.n_nodes > N_LINES_SHOWN:
        shell.print_lines("(the first levels; taxarbor show prints all)")
    if taxonomy.stability is not None and tree.n_leaves > 1:  # else a note says it
        print_verdict(taxonomy.stability)
    if scores is not None:
        print_scores(scores)
    for kind in ("labels", "report"):
        if outputs[kind] is not None:
            shell.print_lines(f"\n{kind} -> {outputs[kind]}")


def demo(
    data: Annotated[
        Literal["animals", "digits"],
        typer.Option(help="Animals with attributes, or handwritten digits."),
    ] = "animals",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="HTML report to write.")
    ] = Path("demo.html"),
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Fit a data set that comes with the package, show the tree, and write a report."""
    from taxarbor.cli import _output as write
    from taxarbor.cli import _terminal as render
    from taxarbor.estimators import Taxarbor
    from taxarbor.metrics import tree_scores
    from taxarbor.report import report

    write.check_outputs((output,), (), force=force)
    X, feature_names, page = _load_animals() if data == "animals" else _load_digits()
    begin = time.perf_counter()
    model = Taxarbor(DEMO_CLUSTERS, random_state=0).fit(X)
    seconds = time.perf_counter() - begin
    taxonomy, names = model.taxonomy_.rename_features(feature_names), page.get("row_names")
    scores = tree_scores(taxonomy, page["classes"])
    write.check_new(output, force=force)
    report(taxonomy, X, output, **page)
    members = None
    if names is not None:
        leaves = {leaf: taxonomy.tree.rows(leaf) for leaf in taxonomy.tree.leaves.tolist()}
        members = {leaf: [names[row] for row in rows] for leaf, rows in leaves.items()}
    document = {"data": data, **render.summarize(taxonomy), "seconds": seconds}
    document |= {"scores": scores, "report": output, "notes": []}

    def show() -> None:
        shape = f"{counted(X.shape[0], 'row')}, {counted(X.shape[1], 'feature')}"
        clusters = f"{taxonomy.tree.n_leaves} clusters in {seconds:.2f} s"
        shell.print_lines(f"{page['title']}: {shape}, {clusters}\n")
        render.print_tree(taxonomy, members=members)
        render.print_scores(scores)
        shell.print_lines(f"\nreport -> {output}")

    shell.answer(document, as_json, show)


def _load_animals() -> tuple[Any, tuple[str, ...], dict[str, Any]]:
    from taxarbor.data import load_animals
    from taxarbor.metrics import ClassTree

    animals = load_animals()
    classes = ClassTree.read(animals.tree).ancestors_of(animals.names, CLASS_DEPTH)
    page = {"title": "Animals", "row_names": animals.names, "classes": classes}
    return animals.X / animals.X.max(axis=0), animals.feature_names, page


def _load_digits() -> tuple[Any, tuple[str, ...], dict[str, Any]]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    classes = [str(digit) for digit in digits.target]
    images = 1.0 - digits.images / 16.0
    page = {"title": "Handwritten digits", "classes": classes, "images": images}
    return digits.data, tuple(map(str, digits.feature_names)), page
