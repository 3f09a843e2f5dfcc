"""``taxarbor fit`` and ``taxarbor demo``: from a table to a model."""

import csv
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from taxarbor._errors import InputError, TableWarning, counted
from taxarbor.cli import _shell as shell

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from taxarbor._types import TableLike
    from taxarbor.estimators import Taxarbor
    from taxarbor.sources import Source
    from taxarbor.tables import TableEncoder
    from taxarbor.taxonomy import Taxonomy

AUTO: Final = "auto"
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
        Path | None, shell.option("Model; default: named after DATA.", "--output", "-o")
    ] = None,
    n_clusters: Annotated[
        str, shell.option("Number of clusters, or auto; default: 8.", "--n-clusters", "-k")
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
    categories: Annotated[str | None, _table("Categorical columns, besides text: a,b.")] = None,
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
    max_features: Annotated[int | None, _tree("Maximum of features per split.", min=1)] = None,
    min_leaf_size: Annotated[int, _tree("Minimum number of rows per cluster.", min=1)] = 1,
    noise: Annotated[float, _tree("Share of the rows to label as noise, -1.")] = 0.0,
    seed: shell.Seed = 0,
    jobs: shell.Jobs = 1,
) -> None:
    """Fit a tree of clusters to a table, and save it as a model.

    Numeric columns and text columns with few values are used; missing values are imputed. Other
    columns are left out, and a note says why.
    """
    from taxarbor.cli import _files as files
    from taxarbor.estimators import Taxarbor

    if n_clusters != AUTO and not n_clusters.isdecimal():
        raise InputError(f"must be 1 or more, or auto; got {n_clusters}", "n_clusters")
    name = files.stem_of(data)
    if output is None and name is None:
        raise InputError("standard input has no name: name the model with --output")
    model = output or Path(f"{name}.taxarbor")
    page = report or (model.with_suffix(".html") if show else None)
    files.check_outputs((model, page), (data,), labels, force=force)
    file = files.DataFile(data, format, id_column, label_column, sheet, layer)
    rows = file.read(
        _split(columns), _split(categories), names, option="-k auto" * (n_clusters == AUTO)
    )
    estimator = Taxarbor(
        AUTO if n_clusters == AUTO else int(n_clusters),
        max_features=max_features,
        min_leaf_size=min_leaf_size,
        noise=noise,
        encoder=_make_encoder(
            scale,
            is_frame=rows.is_frame,
            metric=metric,
            missing_values=tuple(_split(missing)),
            text_features=_split(text) or None,
        ),
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )
    notes, begin = list[str](), time.perf_counter()
    with shell.collect_notes(notes, but=TableWarning):  # which columns.notes holds
        excluded = [name for name in _split(exclude) if name != rows.id_column]
        vectors = file.find_embedding(embedding, rows.source.names)
        taxonomy = _fit(estimator, rows.source, excluded, vectors)
    seconds = time.perf_counter() - begin
    notes = _gather_notes(rows.notes, taxonomy, notes)
    with shell.collect_notes(notes):
        facts = _describe(taxonomy, seconds, rows.labels)
    taxonomy.save(model)
    if labels is not None:
        files.write_labels(labels, estimator.labels_, rows)
    if page is not None:
        with shell.collect_notes(notes):
            files.write_page(page, *files.attach_rows(taxonomy, rows), name)
        if show and not files.open_in_browser(page):
            notes.append(f"no browser found: open {page} in one")
    outputs = {"model": model, "labels": labels, "report": page}
    document = {"data": data, **facts, "notes": notes, **outputs}
    shell.answer(document, as_json, lambda: _print_fit(str(file), taxonomy, document))


def _split(text: str | None) -> list[str]:
    """Return the names in a text such as ``a, b``, where quotes keep blanks and commas."""
    lines = csv.reader((text or "").splitlines(), skipinitialspace=True)
    return [name for line in lines for name in line]


def _make_encoder(
    scale: str, *, is_frame: bool, **parameters: object
) -> "TableEncoder | Literal['auto']":
    """Return the encoder of a table; a matrix has one unit, and is scaled only on request."""
    from taxarbor.tables import TableEncoder

    usual = TableEncoder(scale="auto" if is_frame else None)
    scaling = {AUTO: usual.scale, "none": None}.get(scale, scale)
    encoder = TableEncoder().set_params(scale=scaling, **parameters)
    is_usual = scale == AUTO and encoder.get_params() == usual.get_params()
    return AUTO if is_usual else encoder


def _fit(
    estimator: "Taxarbor", source: "Source", excluded: Sequence[str], vectors: "TableLike"
) -> "Taxonomy":
    """Fit to rows without some columns; those that have no names are x0, x1, and so on."""
    import numpy as np

    from taxarbor.sources import open_source

    if not excluded:
        return estimator.fit(source, embedding=vectors).taxonomy_
    known = source.names or [f"x{place}" for place in range(source.n_columns)]
    if unknown := [name for name in excluded if name not in known]:
        raise InputError(f"names {unknown[0]!r}, which is no column of the table", "exclude")
    kept = [place for place, name in enumerate(known) if name not in excluded]
    if not kept:
        raise InputError("leaves no column", "exclude")
    part = open_source(source, feature_names=known).keep([known[place] for place in kept])
    taxonomy = estimator.fit(part, embedding=vectors).taxonomy_
    names = None if source.names is None else tuple(source.names)
    columns, width = taxonomy.columns, source.n_columns  # as the model reads whole tables
    positions = np.array(kept)[columns.positions]
    columns = replace(columns, n_columns_in=width, positions=positions, names=names)
    return replace(taxonomy, columns=columns)


def _gather_notes(
    of_file: Sequence[str], taxonomy: "Taxonomy", warned: Sequence[str]
) -> list[str]:
    """Return the notes on a table, as many as there is room for, and all others."""
    from taxarbor.tables.notes import MAX_NOTES

    others = [*warned, *_describe_excluded(taxonomy)]
    notes = [*of_file, *(note.for_shell for note in taxonomy.columns.notes)]
    return [*notes[: max(MAX_NOTES - len(others), 1)], *others]


def _describe_excluded(taxonomy: "Taxonomy") -> Iterator[str]:
    """Yield notes on the rows that a fit left out."""
    tree = taxonomy.tree
    n_excluded = round(float(tree.sizes[tree.root] - tree.node_weights[tree.root]))
    if n_excluded > 0:
        rows = counted(n_excluded, "outlier or empty row", "outliers or empty rows")
        yield f"{rows} excluded from the fit"
    if tree.n_noise:
        yield f"{counted(tree.n_noise, 'row')} labelled as noise"


def _describe(
    taxonomy: "Taxonomy", seconds: float, classes: "ArrayLike | None"
) -> dict[str, Any]:
    """Return sizes of a fitted model, and how well it agrees with known classes."""
    from taxarbor.cli._terminal import list_dropped, summarize
    from taxarbor.metrics import tree_scores

    scores = None if classes is None else tree_scores(taxonomy, classes)
    facts = {**summarize(taxonomy), "seconds": seconds, "scores": scores}
    return facts | {"dropped": list_dropped(taxonomy)}


def _print_fit(
    title: str,
    taxonomy: "Taxonomy",
    document: dict[str, Any],
    row_names: Sequence[str] | None = None,
) -> None:
    """Print what was fitted, the tree (all of it with the names of rows) and its scores."""
    from taxarbor.cli._terminal import print_scores, print_tree, print_verdict

    tree, n_dropped = taxonomy.tree, len(document["dropped"])
    left_out = f" ({n_dropped} left out)" if n_dropped else ""
    columns = counted(len(taxonomy.columns), "column")
    shell.print_lines(f"{title}: {counted(tree.n_rows, 'row')}, {columns}{left_out}")
    clusters = counted(tree.n_leaves, "cluster")
    shell.print_lines(f"{clusters} in {document['seconds']:.2f} s\n")
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
    from taxarbor.cli._files import check_outputs
    from taxarbor.data import load_animals
    from taxarbor.estimators import Taxarbor
    from taxarbor.metrics import ClassTree
    from taxarbor.report import report

    check_outputs((output,), (), force=force)
    animals = load_animals()
    X, names = animals.X / animals.X.max(axis=0), animals.names
    classes = ClassTree.read(animals.tree).ancestors_of(names, CLASS_DEPTH)
    begin, estimator = time.perf_counter(), Taxarbor(DEMO_CLUSTERS, random_state=0)
    taxonomy = estimator.fit(X, feature_names=animals.feature_names).taxonomy_
    document = _describe(taxonomy, time.perf_counter() - begin, classes)
    report(taxonomy, X, output, row_names=names, classes=classes, title="Animals")
    document |= {"report": output, "notes": []}
    shell.answer(document, as_json, lambda: _print_fit("Animals", taxonomy, document, names))
