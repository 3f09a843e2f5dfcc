"""``taxarbor fit``: from a file of rows to a model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taxarbor._errors import InputError, counted, printable, some
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import noted, say_json, say_lines, say_notes

if TYPE_CHECKING:
    from taxarbor.cli._fitting import Fitted
    from taxarbor.cli._reading import Beside
    from taxarbor.tables import Table

AUTO, DEFAULT_CLUSTERS = "auto", 8
MAX_NAMED = 5
"""Columns that a note names before it only counts them."""
ALL = ("n_clusters", "branching", "max_leaf_size", "max_depth", "n_init")
"""Options of the tree that every method has."""
ONLY = {
    **dict.fromkeys(("max_features", "novelty", "min_leaf_size"), ("taxarbor",)),
    "noise": ("taxarbor",),
    "balance": ("taxarbor", "hmmc"),
    **dict.fromkeys(
        ("penalty", "alpha", "beta", "units", "center", "solver", "tol"), ("hmmc",)
    ),
}
"""The methods that have an option of some only."""
AVOID = "How strongly a split avoids the features above it"


def _table(help: str, **more: Any) -> Any:
    return opt.option(help, rich_help_panel="How the table is read", **more)


def _tree(help: str, **more: Any) -> Any:
    return opt.option(help, rich_help_panel="How the tree grows", **more)


def _some(name: str, help: str, **more: Any) -> Any:
    told = f"{help} ({', '.join(ONLY[name])})"
    return opt.option(told, rich_help_panel="Options of some methods", **more)


def fit(
    data: opt.Data,
    output: Annotated[
        Path | None,
        opt.option("The model to write; default: the name of DATA.", "--output", "-o"),
    ] = None,
    n_clusters: Annotated[
        str | None,
        opt.option(
            "Number of clusters, or auto: as many as are stable (taxarbor); 8 unless "
            "--max-leaf-size or --max-depth is given.",
            *("--n-clusters", "-k"),
            metavar="NUMBER",
        ),
    ] = None,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    format: opt.Format = None,
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
        Literal["mean", "indicator", "error"] | None,
        _table(
            "What is missing counts as its column's mean, the default; also has a feature of "
            "its own; or is refused."
        ),
    ] = None,
    scale: Annotated[
        Literal["auto", "standard", "robust", "none"] | None,
        _table(
            "Numbers count alike where their units differ, the default; always (by variance, "
            "or by their middle half); or never."
        ),
    ] = None,
    metric: Annotated[
        Literal["euclidean", "cosine"] | None,
        _table("cosine: only the direction of a row counts, not its length."),
    ] = None,
    standardize: Annotated[bool, typer.Option("--standardize", hidden=True)] = False,
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
    n_init: Annotated[int | None, _tree("Starts per split.", min=1)] = None,
    seed: Annotated[
        int, _tree("The same seed gives the same tree; default: 0.", min=0, max=2**32 - 1)
    ] = 0,
    jobs: Annotated[int, _tree("Threads; -1 for all processors. The tree is the same.")] = 1,
    max_features: Annotated[
        int | None, _some("max_features", "Most features per split.", min=1)
    ] = None,
    novelty: Annotated[float | None, _some("novelty", f"{AVOID}.", min=0.0)] = None,
    min_leaf_size: Annotated[
        int | None, _some("min_leaf_size", "Least rows of a cluster.", min=1)
    ] = None,
    noise: Annotated[
        float | None,
        _some(
            "noise",
            "Share of the rows to set apart, far from all clusters, as -1.",
            metavar="SHARE",
        ),
    ] = None,
    balance: Annotated[
        str | None,
        _some(
            "balance",
            "Sizes of children: 1 is even, 0 or none sets no sizes; or least and greatest, as "
            "multiples of an even share: 0.9,1.1.",
            metavar="SIZES",
        ),
    ] = None,
    penalty: Annotated[
        Literal["group+exclusive", "group", "exclusive", "l1", "l2"] | None,
        _some("penalty", "How features are held down."),
    ] = None,
    alpha: Annotated[
        float | None, _some("alpha", "How strongly features are held down.", min=0.0)
    ] = None,
    beta: Annotated[float | None, _some("beta", f"{AVOID}.", min=0.0)] = None,
    units: Annotated[
        Literal["relative", "raw"] | None,
        _some("units", "Whether strengths are shares of the critical one, or the paper's."),
    ] = None,
    center: Annotated[
        Literal["node", "data"] | None,
        _some("center", "Boundaries pass through the mean of the node's rows, or of all."),
    ] = None,
    solver: Annotated[
        Literal["auto", "newton", "pqn"] | None, _some("solver", "How weights are found.")
    ] = None,
    tol: Annotated[
        float | None,
        _some("tol", "A split ends when a round lowers its objective by less.", min=0.0),
    ] = None,
) -> None:
    """Grow a tree of clusters from the rows of a file, and save it as a model.

    Columns of numbers and of few different texts are used, with gaps; others are left out, and
    named. Ctrl-C while the tree grows saves the tree so far.
    """
    given = dict(locals())
    settings = _settings(method, given)
    settings |= {"random_state": seed, "n_jobs": jobs, "verbose": int(sys.stderr.isatty())}

    import numpy as np

    from taxarbor.cli import _files as files
    from taxarbor.cli._fitting import fit_table, make_encoder, make_estimator

    estimator = make_estimator(method, settings)
    model = output or files.named_after(data, ".taxarbor")
    report = report or (model.with_suffix(".html") if show else None)
    files.check_labels_name(labels)
    files.check_outputs((model, report, labels), (data,), force=force)
    table, beside, counts = _read(given, settings)
    notes = [*table.notes, *([] if weights is None else [f"rows count by {weights}"])]
    if table.id_column is not None and id_column is None:
        notes.append(f"rows are called by {table.id_column}")
    options: dict[str, str | None] = {"missing": missing, "metric": metric}
    options["scale"] = scale or ("standard" if standardize else None)
    table, encoder = make_encoder(table, categories, dates, **options)
    estimator.set_params(encoder=encoder)
    fitted = fit_table(table, estimator, notes, counts)
    found = np.asarray(() if labels is None else estimator.labels_)
    with files.writing(model, force=force):
        fitted.tree.save(model)
    if labels is not None:
        if beside is not None:
            beside.write_labels(labels, found, id_column, force=force)
        else:
            files.write_labels(labels, found.tolist(), table, force=force)
    scores = _score(fitted, table, notes)
    if report is not None:
        _write_page(given | {"report": report}, fitted, table, beside, notes)
    _tell(given, fitted, scores, notes, {"model": model, "labels": labels, "report": report})


def _read(
    given: dict[str, Any], settings: dict[str, Any]
) -> "tuple[Table, Beside | None, Any]":
    """Return the rows, what is beside them if they are read part by part, and their weights."""
    from taxarbor.cli import _reading as reading

    data, format, weights = given["data"], given["format"], given["weights"]
    is_streamed = reading.is_streamed(data, format=format, whole=_needs_all(given, settings))
    if is_streamed:
        beside = given["id_column"], weights
        table = reading.open_columns(data, given["columns"], beside, format)
    else:
        asked = {name: given[name] for name in ("id_column", "label_column", "format")}
        table = reading.read_columns(data, given["columns"], weights, **asked)
    asked_for = settings.get("n_clusters", DEFAULT_CLUSTERS)
    _check_rows(data, table, None if asked_for == AUTO else asked_for)
    if not is_streamed:
        table, counts = reading.split_weights(table, weights)
        return table, None, counts
    apart = reading.Beside(data, format)
    return table, apart, None if weights is None else apart.weights(weights)


def _write_page(
    given: dict[str, Any],
    fitted: "Fitted",
    table: "Table",
    beside: "Beside | None",
    notes: list[str],
) -> None:
    from taxarbor.cli import _files as files
    from taxarbor.cli._reading import as_features
    from taxarbor.report import report

    names = table.row_names if beside is None else beside.row_names(given["id_column"])
    X: Any = as_features(fitted.tree, table).X if beside is None else table.X
    named: dict[str, Any] = files.heading(given["title"], given["data"])
    named |= {"row_names": names, "classes": table.labels}
    with files.writing(given["report"], force=given["force"]), noted(notes):
        report(fitted.tree, X, given["report"], **named)
    if given["show"] and not files.opened(given["report"]):
        notes.append(f"there is no browser here; open {given['report']} in one")


def _tell(
    given: dict[str, Any],
    fitted: "Fitted",
    scores: dict[str, float] | None,
    notes: list[str],
    written: dict[str, Path | None],
) -> None:
    """Print the result of a fit."""
    data, columns = given["data"], given["columns"]
    if given["as_json"]:
        told = {"data": data, "method": given["method"], **_facts(fitted)}
        say_json(told | {"scores": scores, "notes": notes} | written)
    else:
        # Who names the columns to use need not be told of the others.
        say_notes((_note_on_dropped(fitted.dropped) if columns is None else []) + notes)
        _say(data, fitted, scores, written)


def _needs_all(given: dict[str, Any], settings: dict[str, Any]) -> str | None:
    """Return an option that needs all rows in memory, if there is one."""
    if given["method"] != "taxarbor":
        return f"--method {given['method']}"
    if settings.get("n_clusters") == AUTO:
        return "-k auto"
    return opt.given(given["label_column"], "--label-column")


def _settings(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a method that were given, or refuse those of another one."""
    found = {name: given[name] for name in (*ALL, *ONLY) if given[name] is not None}
    for name in found:
        if method not in (methods := ONLY.get(name, (method,))):
            told = f"is for --method {' or '.join(methods)}, not for {method}"
            raise InputError(told, name)
    if "n_clusters" in found:
        found["n_clusters"] = _number(found["n_clusters"], method)
    elif found.keys() & {"max_leaf_size", "max_depth"}:
        found["n_clusters"] = None
    if "balance" in found:
        found["balance"] = _sizes(found["balance"])
    return found


def _number(text: str, method: str) -> int | str:
    """Return the number of clusters that a text such as ``6`` or ``auto`` stands for."""
    if text == AUTO and method != "taxarbor":
        raise InputError(f"auto is for --method taxarbor, not for {method}", "n_clusters")
    if text != AUTO and not (text.isdecimal() and int(text)):
        raise InputError(f"must be 1 or more, or auto, got {text}", "n_clusters")
    return text if text == AUTO else int(text)


def _sizes(text: str) -> Any:
    """Return the balance that a text such as ``0.5``, ``0.9,1.1`` or ``none`` stands for."""
    from taxarbor.tables._checks import check_balance

    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        value: Any = None if text.lower() == "none" else text
    else:
        value = numbers[0] if len(numbers) == 1 else numbers
    check_balance(value, 2)
    return value


def _check_rows(data: Path, table: "Table", n_clusters: int | None) -> None:
    """Refuse too few rows before the fit, in words that the library does not have."""
    from taxarbor.cli._reading import count_rows
    from taxarbor.metrics._table import encode_labels

    n_rows = count_rows(table)
    if n_rows == 1:
        raise InputError(f"{_name(data)} has one row: there is nothing to divide")
    if (n_clusters or 0) > n_rows:
        told = f"has {n_rows:,} rows, too few for {n_clusters:,} clusters; give a smaller -k"
        raise InputError(f"{_name(data)} {told}")
    if table.labels is not None and (encode_labels(table.labels, n_rows)[0] >= 0).sum() < 2:
        raise InputError(f"{_name(data)} has one row with a label: scores compare two or more")


def _name(data: Path) -> str:
    return "standard input" if str(data) == "-" else printable(str(data))


def _score(fitted: "Fitted", table: "Table", notes: list[str]) -> dict[str, float] | None:
    from taxarbor.metrics import score_hierarchy

    if table.labels is None:
        return None
    with noted(notes):
        return score_hierarchy(fitted.tree, table.labels)


def _facts(fitted: "Fitted") -> dict[str, Any]:
    from taxarbor.cli._render import model_facts

    told = model_facts(fitted.tree)
    if fitted.tree.trust is not None:
        told["verdict"] = fitted.tree.trust.curve.verdict()
    told |= {"seconds": fitted.seconds}
    dropped = [{"column": name, "reason": reason} for name, reason in fitted.dropped]
    return told | {"dropped": dropped}


def _note_on_dropped(dropped: tuple[tuple[str, str], ...]) -> list[str]:
    """Return a note on the columns that were left out, if there are any."""
    told = some([f"{name} ({reason})" for name, reason in dropped], MAX_NAMED)
    return [f"left out: {told}"] if dropped else []


def _say(
    data: Path,
    fitted: "Fitted",
    scores: dict[str, float] | None,
    written: dict[str, Path | None],
) -> None:
    from taxarbor.cli._render import SCALE, say, say_first_levels, say_verdict, score_table

    tree, n_dropped = fitted.tree, len(fitted.dropped)
    n_used = tree.n_features if tree.encoding is None else len(tree.encoding.columns)
    left_out = f" ({n_dropped} left out)" if n_dropped else ""
    clusters = counted(tree.n_leaves, "cluster")
    say_lines(
        f"{_name(data)}: {counted(tree.n_rows, 'row')}, {counted(n_used or 0, 'column')}"
        f"{left_out}\n"
        f"{clusters} in {fitted.seconds:.2f} s -> {written['model']}\n"
    )
    say_first_levels(fitted.tree)
    if fitted.tree.trust is not None and fitted.tree.n_leaves > 1:  # else a note says it
        say_verdict(fitted.tree.trust)
    if scores is not None:
        typer.echo(f"\nAgainst the known classes ({SCALE}):\n")
        say(score_table(scores))
    for what in ("labels", "report"):
        if written[what] is not None:
            say_lines(f"\n{what} -> {written[what]}")
