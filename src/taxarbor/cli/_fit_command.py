"""``taxarbor fit`` and ``taxarbor demo``: from a table to a model."""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taxarbor._errors import InputError, TableWarning, counted
from taxarbor.cli import _shell as shell

if TYPE_CHECKING:
    from taxarbor.tables import Table
    from taxarbor.taxonomy import Taxonomy

AUTO = "auto"
N_LEVELS_SHOWN, N_LINES_SHOWN = 3, 40
"""The part of the tree that fit prints."""
DEMO_CLUSTERS = 12
CLASS_DEPTH = 2
"""Level of the biological classification whose classes colour the page."""


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
        shell.option("Number of clusters, or auto; default: 8.", "--n-clusters", "-k"),
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
    exclude: Annotated[str | None, _table("Use all columns but these: a,b.")] = None,
    categories: Annotated[
        str | None, _table("Columns to treat as categorical, besides text: a,b.")
    ] = None,
    text: Annotated[
        str | None, _table("Columns of texts whose words are features: a,b.")
    ] = None,
    missing: Annotated[
        str | None, _table("Values that stand for a missing one: -999,unknown.")
    ] = None,
    names: Annotated[
        Path | None, _table("File with the names of the columns, a line each.")
    ] = None,
    sheet: shell.Sheet = None,
    layer: shell.Layer = None,
    embedding: shell.Embedding = None,
    scale: Annotated[
        Literal["auto", "standard", "none"],
        _table("Scale numeric columns: auto (default), standard or none."),
    ] = "auto",
    metric: Annotated[
        Literal["euclidean", "cosine"],
        _table("Distance between rows: euclidean (default) or cosine."),
    ] = "euclidean",
    max_features: Annotated[
        int | None, _tree("Maximum number of features per split.", min=1)
    ] = None,
    min_leaf_size: Annotated[int, _tree("Minimum number of rows per cluster.", min=1)] = 1,
    noise: Annotated[
        float, _tree("Share of the rows to label as noise, -1.", metavar="SHARE")
    ] = 0.0,
    seed: shell.Seed = 0,
    jobs: shell.Jobs = 1,
) -> None:
    """Fit a tree of clusters to a table, and save it as a model.

    Numeric columns and text columns with few values are used; missing values are imputed. Other
    columns are left out, and a note says why.
    """
    from taxarbor._frames import is_frame
    from taxarbor.cli import _input as read
    from taxarbor.cli import _output as write
    from taxarbor.cli._terminal import summarize
    from taxarbor.estimators import Taxarbor
    from taxarbor.metrics import tree_scores

    if n_clusters != AUTO and not n_clusters.isdecimal():
        raise InputError(f"must be 1 or more, or auto; got {n_clusters}", "n_clusters")
    name = write.stem_of(data)
    if output is None and name is None:
        raise InputError("standard input has no name: name the model with --output")
    model = output or Path(f"{name}.taxarbor")
    page = report or (model.with_suffix(".html") if show else None)
    write.check_outputs((model, page), (data,), labels, force=force)

    file = read.DataFile(data, format, id_column, label_column, sheet, layer)
    in_memory = {"-k auto": n_clusters == AUTO, "--categories": categories is not None}
    option = next((name for name, is_used in in_memory.items() if is_used), None)
    table = file.read(read.split_names(columns) or None, option)
    if names is not None:
        table = replace(table, feature_names=tuple(read.read_lines(names)))
    table = read.exclude(file, table, read.split_names(exclude))
    read.mark_categories(file, table.X, read.split_names(categories))
    is_matrix = not (file.stored_format == "parquet" or is_frame(table.X))
    estimator = Taxarbor(
        AUTO if n_clusters == AUTO else int(n_clusters),
        max_features=max_features,
        min_leaf_size=min_leaf_size,
        noise=noise,
        encoder=_make_encoder(
            scale,
            is_matrix=is_matrix,
            metric=metric,
            missing_values=tuple(read.split_names(missing)),
            text_features=read.split_names(text) or None,
        ),
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )
    vectors = read.find_embedding(file, embedding, table.feature_names or ())
    notes: list[str] = []
    begin = time.perf_counter()
    with shell.collect_notes(notes, but=TableWarning):  # which columns.notes holds
        estimator.fit(read.open_table(table), embedding=vectors)
    seconds = time.perf_counter() - begin
    taxonomy = estimator.taxonomy_
    notes = _gather_notes(table, taxonomy, [*notes, *_describe_fit(taxonomy)])
    scores = None
    if table.labels is not None:
        with shell.collect_notes(notes):
            scores = tree_scores(taxonomy, table.labels)

    taxonomy.save(model)
    if labels is not None:
        write.write_labels(labels, estimator.labels_, table)
    if page is not None:
        with shell.collect_notes(notes):
            write.write_page(page, *read.attach_rows(taxonomy, table), name)
        if show and not write.open_in_browser(page):
            notes.append(f"no browser found: open {page} in one")
    document = {"data": data, **summarize(taxonomy), "seconds": seconds, "scores": scores}
    dropped = taxonomy.columns.dropped
    document["dropped"] = [{"column": name, "reason": reason} for name, reason in dropped]
    document |= {"notes": notes, "model": model, "labels": labels, "report": page}
    shell.answer(document, as_json, lambda: _print_fit(str(file), taxonomy, document))


def _make_encoder(scale: str, *, is_matrix: bool, **parameters: Any) -> Any:
    """Return the encoder of a table; a matrix has one unit, and is scaled only on request."""
    from taxarbor.tables import TableEncoder

    scaling: Any = None if scale == "none" or (scale == AUTO and is_matrix) else scale
    encoder = TableEncoder(scale=scaling, **parameters)
    is_usual = (
        scale == AUTO and encoder.get_params() == TableEncoder(scale=scaling).get_params()
    )
    return AUTO if is_usual else encoder


def _gather_notes(table: "Table", taxonomy: "Taxonomy", others: Sequence[str]) -> list[str]:
    """Return the notes on a table, as many as there is room for, and all others."""
    from taxarbor.tables.notes import MAX_NOTES

    notes = [*table.notes, *(note.for_shell for note in taxonomy.columns.notes)]
    return [*notes[: max(MAX_NOTES - len(others), 1)], *others]


def _describe_fit(taxonomy: "Taxonomy") -> Iterator[str]:
    """Yield notes on the rows that a fit left out."""
    tree = taxonomy.tree
    n_excluded = round(float(tree.sizes[tree.root] - tree.node_weights[tree.root]))
    if n_excluded > 0:
        rows = counted(n_excluded, "outlier or empty row", "outliers or empty rows")
        yield f"{rows} excluded from the fit"
    if tree.n_noise:
        yield f"{counted(tree.n_noise, 'row')} labelled as noise"


def _print_fit(
    title: str,
    taxonomy: "Taxonomy",
    document: dict[str, Any],
    row_names: Sequence[str] | None = None,
) -> None:
    """Print what was fitted, the tree (all of it with the names of rows) and its scores."""
    from taxarbor.cli._terminal import print_scores, print_tree, print_verdict

    tree, n_columns = taxonomy.tree, len(taxonomy.columns)
    n_dropped = len(document["dropped"])
    left_out = f" ({n_dropped} left out)" if n_dropped else ""
    clusters = f"{counted(tree.n_leaves, 'cluster')} in {document['seconds']:.2f} s"
    shell.print_lines(
        f"{title}: {counted(tree.n_rows, 'row')}, {counted(n_columns, 'column')}{left_out}\n"
        f"{clusters}\n"
    )
    is_short = tree.height <= N_LEVELS_SHOWN and tree.n_nodes <= N_LINES_SHOWN
    if is_short or row_names is not None:
        print_tree(taxonomy, row_names=row_names)
    else:
        print_tree(taxonomy, N_LEVELS_SHOWN, max_nodes=N_LINES_SHOWN)
        shell.print_lines("(the first levels; taxarbor show prints all)")
    if taxonomy.stability is not None and tree.n_leaves > 1:  # else a note says it
        print_verdict(taxonomy.stability)
    if document["scores"] is not None:
        print_scores(document["scores"])
    outputs = {kind: document.get(kind) for kind in ("model", "labels", "report")}
    lines = [f"{kind} -> {path}" for kind, path in outputs.items() if path is not None]
    shell.print_lines("\n" + "\n".join(lines))


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="HTML report to write.")
    ] = Path("demo.html"),
    force: shell.Force = False,
    as_json: shell.Json = False,
) -> None:
    """Fit the animals that come with the package, show the tree, and write a report."""
    from taxarbor.cli import _output as write
    from taxarbor.cli._terminal import summarize
    from taxarbor.data import load_animals
    from taxarbor.estimators import Taxarbor
    from taxarbor.metrics import ClassTree, tree_scores
    from taxarbor.report import report

    write.check_outputs((output,), (), force=force)
    animals = load_animals()
    X, names = animals.X / animals.X.max(axis=0), animals.names
    classes = ClassTree.read(animals.tree).ancestors_of(names, CLASS_DEPTH)
    begin = time.perf_counter()
    taxonomy = Taxarbor(DEMO_CLUSTERS, random_state=0).fit(X).taxonomy_
    seconds = time.perf_counter() - begin
    taxonomy = taxonomy.rename_features(animals.feature_names)
    scores = tree_scores(taxonomy, classes)
    report(taxonomy, X, output, row_names=names, classes=classes, title="Animals")
    document = {**summarize(taxonomy), "seconds": seconds, "scores": scores, "dropped": []}
    document |= {"report": output, "notes": []}
    shell.answer(document, as_json, lambda: _print_fit("Animals", taxonomy, document, names))
