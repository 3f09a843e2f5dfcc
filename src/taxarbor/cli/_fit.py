"""``taxarbor fit``: from a file of rows to a model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taxarbor._errors import InputError, counted, printable, some
from taxarbor.cli import INTERRUPTED
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import noted, say_json, say_notes

if TYPE_CHECKING:
    from taxarbor.cli._fitting import Fitted
    from taxarbor.tables import Table

AUTO, DEFAULT_CLUSTERS = "auto", 8
MAX_NAMED = 5
"""Columns that a note names before it only counts them."""
ALL = ("n_clusters", "branching", "max_leaf_size", "max_depth", "n_init")
"""Options of the tree that every method has."""
ONLY = {
    **dict.fromkeys(("rules", "max_features", "novelty", "min_leaf_size"), ("taxarbor",)),
    "balance": ("taxarbor", "hmmc"),
    **dict.fromkeys(
        ("penalty", "alpha", "beta", "units", "center", "solver", "tol"), ("hmmc",)
    ),
    "criterion": ("kmeans", "spectral"),
    "n_neighbors": ("spectral",),
}
"""The methods that have an option of some only."""
AVOID = "How strongly a split avoids the features above it"


def _tree(help: str, **more: Any) -> Any:
    return opt.option(help, rich_help_panel="How the tree grows", **more)


def _some(name: str, help: str, **more: Any) -> Any:
    told = f"{help} ({', '.join(ONLY[name])})"
    return opt.option(told, rich_help_panel="Options of some methods", **more)


def fit(
    data: opt.Data,
    output: Annotated[
        Path, opt.option("The model to write, say model.taxarbor.", "--output", "-o")
    ],
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
    columns: Annotated[str | None, opt.option("Use these columns only: a,b,c.")] = None,
    standardize: Annotated[
        bool, opt.option("Scale columns to variance 1 for the fit only.", "--standardize")
    ] = False,
    format: opt.Format = None,
    report: Annotated[Path | None, opt.option("Also write a page to look at.")] = None,
    title: opt.Title = None,
    labels: Annotated[
        Path | None, opt.option("Also write the cluster of each row, as csv.")
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    method: Annotated[
        Literal["taxarbor", "hmmc", "kmeans", "spectral"],
        _tree("Ours, the default; the paper's; top-down k-means or spectral clustering."),
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
    rules: Annotated[
        Literal["decide", "describe"] | None,
        _some("rules", "Rows go where the rules send them, or to the cluster that fits best."),
    ] = None,
    max_features: Annotated[
        int | None, _some("max_features", "Most features per split.", min=1)
    ] = None,
    novelty: Annotated[float | None, _some("novelty", f"{AVOID}.", min=0.0)] = None,
    min_leaf_size: Annotated[
        int | None, _some("min_leaf_size", "Least rows of a cluster.", min=1)
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
    criterion: Annotated[
        Literal["scatter", "compact"] | None,
        _some("criterion", "Split the cluster with most scatter, or the most compact one."),
    ] = None,
    n_neighbors: Annotated[
        int | None, _some("n_neighbors", "Neighbours of a row.", min=1)
    ] = None,
) -> None:
    """Grow a tree of clusters from the rows of a file, and save it as a model.

    Columns of numbers are features; others are left out, and named. Ctrl-C while the tree
    grows saves the tree so far.
    """
    settings = _settings(method, dict(locals()))
    settings |= {"random_state": seed, "n_jobs": jobs, "verbose": int(sys.stderr.isatty())}

    from taxarbor.cli import _files as files
    from taxarbor.cli._fitting import fit_table, make_estimator
    from taxarbor.cli._render import model_facts
    from taxarbor.report import report as write_report

    if n_clusters is not None:
        settings["n_clusters"] = _number(n_clusters, method)
    if balance is not None:
        settings["balance"] = _sizes(balance)
    estimator = make_estimator(method, settings)
    files.check_labels_name(labels)
    files.check_outputs((output, report, labels), (data,), force=force)
    asked = {"id_column": id_column, "label_column": label_column, "format": format}
    table = files.read_columns(data, columns, **asked)
    asked_for = settings.get("n_clusters", DEFAULT_CLUSTERS)
    _check_rows(data, table, None if asked_for == AUTO else asked_for)
    notes = [*table.notes]
    fitted = fit_table(table, estimator, notes, standardize=standardize)
    with files.placed(output, force=force) as path:
        fitted.tree.save(path)
    if labels is not None:
        found = fitted.tree.labels.tolist()
        files.write_labels(labels, found, table.row_names, id_column, force=force)
    if fitted.was_interrupted:
        notes.append(f"saved as {output}" + "; there is no report" * (report is not None))
        report = None
    scores = _score(fitted, table, notes)
    if report is not None:
        X: Any = table.X
        named: dict[str, Any] = files.heading(title, data)
        named |= {"row_names": table.row_names, "classes": table.labels}
        with files.placed(report, force=force) as path, noted(notes):
            write_report(fitted.tree, X, path, **named)
    written = {"model": output, "labels": labels, "report": report}
    if as_json:
        dropped = [{"column": name, "reason": reason} for name, reason in table.dropped]
        told = {"data": data, "method": method, **model_facts(fitted.tree)}
        if fitted.tree.trust is not None:
            told["verdict"] = fitted.tree.trust.curve.verdict()
        told |= {"seconds": fitted.seconds, "interrupted": fitted.was_interrupted}
        told |= {"scores": scores, "dropped": dropped, "notes": notes}
        say_json(told | written)
    else:
        # Who names the columns to use need not be told of the others.
        say_notes((_note_on_dropped(table.dropped) if columns is None else []) + notes)
        _say(data, table, fitted, scores, written)
    if fitted.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _settings(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a method that were given, or refuse those of another one."""
    found = {name: given[name] for name in (*ALL, *ONLY) if given[name] is not None}
    for name in found:
        if method not in (methods := ONLY.get(name, (method,))):
            told = f"is for --method {' or '.join(methods)}, not for {method}"
            raise InputError(told, name)
    if found.keys() & {"max_leaf_size", "max_depth"}:
        found.setdefault("n_clusters", None)
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
    from taxarbor.metrics._table import encode_labels

    n_rows = table.X.shape[0]
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


def _note_on_dropped(dropped: tuple[tuple[str, str], ...]) -> list[str]:
    """Return a note on the columns that were left out, if there are any."""
    told = some([f"{name} ({reason})" for name, reason in dropped], MAX_NAMED)
    return [f"left out: {told}"] if dropped else []


def _say(
    data: Path,
    table: "Table",
    fitted: "Fitted",
    scores: dict[str, float] | None,
    written: dict[str, Path | None],
) -> None:
    from taxarbor.cli._render import SCALE, say, say_first_levels, say_verdict, score_table

    (n_rows, n_features), n_dropped = table.X.shape, len(table.dropped)
    left_out = f" ({counted(n_dropped, 'column')} left out)" if n_dropped else ""
    clusters = counted(fitted.tree.n_leaves, "cluster")
    typer.echo(
        f"{_name(data)}: {counted(n_rows, 'row')}, {counted(n_features, 'feature')}{left_out}\n"
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
            typer.echo(f"\n{what} -> {written[what]}")
