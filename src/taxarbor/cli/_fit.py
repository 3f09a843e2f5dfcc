"""``taxarbor fit``: from a file of rows to a model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from taxarbor._errors import InputError, counted, printable, some
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import noted, say_json, say_lines, say_notes

if TYPE_CHECKING:
    from taxarbor.cli._fitting import Fitted
    from taxarbor.tables import Table

AUTO, DEFAULT_CLUSTERS = "auto", 8
FIRST_LEVELS, FIRST_LINES = 3, 40
"""How much of the tree is printed."""
MAX_NAMED = 5
"""Columns that a note names before it only counts them."""
TREE = ("n_clusters", "branching", "max_leaf_size", "max_depth")
ONLY_TAXARBOR = ("max_features", "min_leaf_size", "noise")
"""Options of the tree: of all methods, and of one."""
N_CLUSTERS = (
    "Number of clusters, or auto: as many as are stable; 8 unless another limit is given."
)


def _table(help: str, **more: Any) -> Any:
    return opt.option(help, rich_help_panel="How the table is read", **more)


def _tree(help: str, **more: Any) -> Any:
    return opt.option(help, rich_help_panel="How the tree grows", **more)


def fit(
    data: opt.Data,
    output: Annotated[
        Path | None,
        opt.option("The model to write; default: the name of DATA.", "--output", "-o"),
    ] = None,
    n_clusters: Annotated[
        str | None,
        opt.option(N_CLUSTERS, "--n-clusters", "-k", metavar="NUMBER"),
    ] = None,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    format: opt.Format = None,
    embedding: opt.Embedding = None,
    report: Annotated[Path | None, opt.option("Also write a page to look at.")] = None,
    show: Annotated[
        bool,
        opt.option("Also write a page, beside the model, and open it in a browser.", "--open"),
    ] = False,
    title: opt.Title = None,
    labels: Annotated[
        Path | None, opt.option("Also write the cluster of each row, as csv.")
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    columns: Annotated[str | None, _table("Use these columns only: a,b,c.")] = None,
    categories: Annotated[
        str | None, _table("Columns to read as categories, besides text of few values: a,b.")
    ] = None,
    dates: Annotated[
        str | None, _table("Columns of dates to use, as year, month and weekday: a,b.")
    ] = None,
    weights: Annotated[
        str | None, _table("Column that says how much each row counts; it is no feature then.")
    ] = None,
    missing: Annotated[
        Literal["mean", "error"] | None,
        _table("Missing values: impute the mean, the default, or refuse them."),
    ] = None,
    scale: Annotated[
        Literal["auto", "standard", "none"] | None,
        _table("Standardize numbers where units differ, the default; always; never."),
    ] = None,
    metric: Annotated[
        Literal["euclidean", "cosine"] | None,
        _table("cosine: only the direction of a row counts, not its length."),
    ] = None,
    method: Annotated[
        Literal["taxarbor", "hmmc"],
        _tree("Taxarbor, the default, or the paper's HMMC."),
    ] = "taxarbor",
    branching: Annotated[
        int | None, _tree("Most children per split; default: 2.", min=2)
    ] = None,
    max_leaf_size: Annotated[
        int | None, _tree("Clusters of this many rows or fewer are not split.", min=1)
    ] = None,
    max_depth: Annotated[int | None, _tree("Most levels.", min=1)] = None,
    seed: Annotated[
        int, _tree("The same seed gives the same tree; default: 0.", min=0, max=2**32 - 1)
    ] = 0,
    jobs: Annotated[int, _tree("Threads; -1 for all processors. The tree is the same.")] = 1,
    max_features: Annotated[
        int | None, _tree("Most features per split (taxarbor).", min=1)
    ] = None,
    min_leaf_size: Annotated[
        int | None, _tree("Least rows of a cluster (taxarbor).", min=1)
    ] = None,
    noise: Annotated[
        float | None,
        _tree("Share of rows to set apart as noise, -1 (taxarbor).", metavar="SHARE"),
    ] = None,
) -> None:
    """Grow a tree of clusters from the rows of a file, and save it as a model.

    Columns of numbers and of few different texts are used, with missing values; others are left
    out, and named. Ctrl-C ends it, and nothing is written.
    """
    given = dict(locals())
    settings = _settings(method, given)
    settings |= {"random_state": seed, "n_jobs": jobs, "verbose": int(sys.stderr.isatty())}

    from taxarbor.cli import _files as files
    from taxarbor.cli._fitting import METHODS, fit_table, make_encoder
    from taxarbor.cli._render import model_facts
    from taxarbor.metrics import tree_scores
    from taxarbor.tables._checks import check_jobs

    check_jobs(jobs)
    estimator = METHODS[method](**settings)
    model = output or files.named_after(data, ".taxarbor")
    page = report or (model.with_suffix(".html") if show else None)
    files.check_labels_name(labels)
    files.check_outputs((model, page, labels), (data,), force=force)
    table, beside = _read(given, settings)
    notes = [*table.notes, *([] if weights is None else [f"rows are weighted by {weights}"])]
    if table.id_column is not None and id_column is None:
        notes.append(f"rows are named by {table.id_column}")
    table, encoder = make_encoder(
        table, categories, dates, missing=missing, metric=metric, scale=scale
    )
    fitted = fit_table(table, estimator.set_params(encoder=encoder), notes, beside)
    files.refuse_late(model, force=force)
    fitted.taxonomy.save(model)
    if labels is not None:
        files.write_labels(labels, estimator.labels_, table, force=force)
    scores = None
    if table.labels is not None:
        with noted(notes):
            scores = tree_scores(fitted.taxonomy, table.labels)
    if page is not None:
        files.refuse_late(page, force=force)
        with noted(notes):
            _write_page(page, fitted, table, files.heading(title, data))
        if show and not files.opened(page):
            notes.append(f"there is no browser here; open {page} in one")
    written = {"model": model, "labels": labels, "report": page}
    if as_json:
        document = {"data": data, "method": method, **model_facts(fitted.taxonomy)}
        if fitted.taxonomy.stability is not None:
            document["verdict"] = fitted.taxonomy.stability.curve.verdict()
        dropped = [{"column": name, "reason": reason} for name, reason in fitted.dropped]
        document |= {"seconds": fitted.seconds, "dropped": dropped, "scores": scores}
        say_json(document | {"notes": notes} | written)
        return
    if columns is None and fitted.dropped:  # else the others were left out on purpose
        left_out = [f"{name} ({reason})" for name, reason in fitted.dropped]
        notes.insert(0, f"left out: {some(left_out, MAX_NAMED)}")
    say_notes(notes)
    _say(data, fitted, scores, written)


def _read(given: dict[str, Any], settings: dict[str, Any]) -> "tuple[Table, dict[str, Any]]":
    """Return the rows, their weights and vectors, or refuse too few rows before the fit."""
    from taxarbor.cli import _reading as reading
    from taxarbor.metrics._classes import encode_labels
    from taxarbor.sources import open_source

    data, name = given["data"], _name(given["data"])
    in_blocks = reading.is_in_blocks(data, given["format"])
    n_clusters = settings.get("n_clusters", DEFAULT_CLUSTERS)
    needs_all = "-k auto" if n_clusters == AUTO else None
    needs_all = "--label-column" if given["label_column"] is not None else needs_all
    if in_blocks and needs_all is not None:
        if data.is_dir():
            raise InputError(f"{needs_all} needs all rows in memory, and {name} is a folder")
        in_blocks = False
    roles = {role: given[role] for role in ("id_column", "label_column", "format", "embedding")}
    table, weights = reading.read_training(
        data, given["columns"], given["weights"], **roles, in_blocks=in_blocks
    )
    n_rows = open_source(table.X).n_rows
    if n_rows == 1:
        raise InputError(f"{name} has one row: there is nothing to divide")
    if n_clusters not in (None, AUTO) and n_clusters > n_rows:
        problem = f"has {n_rows:,} rows, too few for {n_clusters:,} clusters"
        raise InputError(f"{name} {problem}; give a smaller -k")
    if table.labels is not None and (encode_labels(table.labels, n_rows)[0] >= 0).sum() < 2:
        raise InputError(f"{name} has one row with a label: scores compare two or more")
    known = table.feature_names or ()
    vectors = reading.find_embedding(data, given["embedding"], given["format"], known)
    return table, {"sample_weight": weights, "embedding": vectors}


def _write_page(page: Path, fitted: "Fitted", table: "Table", title: str) -> None:
    from taxarbor.cli._reading import as_features
    from taxarbor.report import report
    from taxarbor.sources import open_source

    X: Any = open_source(table.X)
    X = as_features(fitted.taxonomy, table) if X.in_memory else X
    report(
        fitted.taxonomy, X, page, row_names=table.row_names, classes=table.labels, title=title
    )


def _settings(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the tree that were given, or refuse those of another method."""
    names = (*TREE, *ONLY_TAXARBOR)
    settings = {name: given[name] for name in names if given[name] is not None}
    for name in (*ONLY_TAXARBOR, "embedding"):
        if given[name] is not None and method != "taxarbor":
            raise InputError(f"is for --method taxarbor, not for {method}", name)
    if (text := settings.get("n_clusters")) is not None:
        if text == AUTO and method != "taxarbor":
            raise InputError(f"auto is for --method taxarbor, not for {method}", "n_clusters")
        if text != AUTO and not (text.isdecimal() and int(text)):
            raise InputError(f"must be 1 or more, or auto, got {text}", "n_clusters")
        settings["n_clusters"] = text if text == AUTO else int(text)
    elif settings.keys() & {"max_leaf_size", "max_depth"}:
        settings["n_clusters"] = None
    return settings


def _name(data: Path) -> str:
    return "standard input" if str(data) == "-" else printable(str(data))


def _say(
    data: Path,
    fitted: "Fitted",
    scores: dict[str, float] | None,
    written: dict[str, Path | None],
) -> None:
    from taxarbor.cli._render import say_scores, say_tree, say_verdict

    taxonomy, n_dropped = fitted.taxonomy, len(fitted.dropped)
    n_used = (
        taxonomy.n_features if taxonomy.encoding is None else len(taxonomy.encoding.columns)
    )
    left_out = f" ({n_dropped} left out)" if n_dropped else ""
    say_lines(
        f"{_name(data)}: {counted(taxonomy.tree.n_rows, 'row')}, {counted(n_used or 0, 'column')}"
        f"{left_out}\n{counted(taxonomy.tree.n_leaves, 'cluster')} in {fitted.seconds:.2f} s -> "
        f"{written['model']}\n"
    )
    say_tree(taxonomy, FIRST_LEVELS, max_nodes=FIRST_LINES)
    if taxonomy.tree.height > FIRST_LEVELS or taxonomy.tree.n_nodes > FIRST_LINES:
        say_lines("(the first levels; taxarbor show has all of it)")
    if taxonomy.stability is not None and taxonomy.tree.n_leaves > 1:  # else a note says it
        say_verdict(taxonomy.stability)
    if scores is not None:
        say_scores(scores)
    for what in ("labels", "report"):
        if written[what] is not None:
            say_lines(f"\n{what} -> {written[what]}")
