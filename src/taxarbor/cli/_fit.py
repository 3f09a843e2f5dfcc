"""``taxarbor fit``: from a file of rows to a model."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._facts import model_facts
from taxarbor.cli._fitting import Fitted, fit_table
from taxarbor.cli._guard import INTERRUPTED
from taxarbor.cli._input import Asked, heading
from taxarbor.cli._output import (
    STDIN,
    check_labels_name,
    check_outputs,
    note_on_dropped,
    placed,
    plain_dropped,
    say_json,
    say_notes,
    write_labels,
)
from taxarbor.cli._render import counted, say, say_first_levels
from taxarbor.cli._scores import SCALE, count_gaps, score_table, without_gaps
from taxarbor.data import Table
from taxarbor.hierarchy import printable
from taxarbor.metrics import score_hierarchy

DEFAULT_GROUPS = 8
TREE = "How the tree grows"

Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="The model to write, say model.taxarbor."),
]
Groups = Annotated[
    int | None,
    typer.Option(
        "--n-clusters",
        "-k",
        min=1,
        help="Number of groups; 8 unless --max-leaf-size or --max-depth is given.",
        show_default=False,
    ),
]
Columns = Annotated[
    str | None, typer.Option(help="Use these columns only: a,b,c.", show_default=False)
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Let all columns vary alike. The model takes rows as they are, all the same.",
    ),
]
Branching = Annotated[
    int, typer.Option(min=2, help="Children per split.", rich_help_panel=TREE)
]
MaxFeatures = Annotated[
    int | None,
    typer.Option(
        min=1, help="Features per split, at most.", show_default=False, rich_help_panel=TREE
    ),
]
MaxLeafSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Groups of so many rows are not divided.",
        show_default=False,
        rich_help_panel=TREE,
    ),
]
MaxDepth = Annotated[
    int | None,
    typer.Option(min=1, help="Levels, at most.", show_default=False, rich_help_panel=TREE),
]
NInit = Annotated[
    int, typer.Option(min=1, help="Starts per split; 1 is fastest.", rich_help_panel=TREE)
]
Balance = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        help="How even splits are: 1 is even, 0 sets no sizes.",
        rich_help_panel=TREE,
    ),
]
NoRefine = Annotated[
    bool, typer.Option("--no-refine", help="The paper's greedy tree.", rich_help_panel=TREE)
]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same tree.", rich_help_panel=TREE)]
Jobs = Annotated[
    int,
    typer.Option(
        help="Threads; -1 is all processors. The tree is the same.", rich_help_panel=TREE
    ),
]
Report = Annotated[
    Path | None, typer.Option(help="Write a page to look at, too.", show_default=False)
]
Labels = Annotated[
    Path | None,
    typer.Option(help="Write the group of each row, too, as csv.", show_default=False),
]


def fit(
    data: opt.Data,
    output: Output,
    n_clusters: Groups = None,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    columns: Columns = None,
    standardize: Standardize = False,
    format: opt.Format = None,
    branching: Branching = 2,
    max_features: MaxFeatures = None,
    max_leaf_size: MaxLeafSize = None,
    max_depth: MaxDepth = None,
    n_init: NInit = 4,
    balance: Balance = 0.5,
    no_refine: NoRefine = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    report: Report = None,
    title: opt.Title = None,
    labels: Labels = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Grow a tree of groups from the rows of a file, and save it as a model.

    Columns of numbers are features; others are left out, and named. Ctrl-C while the tree
    grows saves what there is.
    """
    if no_refine and max_features is not None:
        raise ValueError("--max-features does not go with --no-refine")
    if jobs == 0:
        raise ValueError("--jobs must not be 0; give 1 or more, or -1 for all processors")
    check_labels_name(labels)
    check_outputs((output, report, labels), (data,), force=force)
    write_report = None if report is None else _report_writer()
    table = Asked(id_column, label_column, format).read_columns(data, columns)
    if n_clusters is None and max_leaf_size is None and max_depth is None:
        n_clusters = DEFAULT_GROUPS
    _check_rows(data, table.X.shape[0], n_clusters)
    settings = {
        "n_clusters": n_clusters,
        "branching": branching,
        "max_features": max_features,
        "max_leaf_size": max_leaf_size,
        "max_depth": max_depth,
        "n_init": n_init,
        "balance": balance,
        "refine": not no_refine,
        "random_state": seed,
        "n_jobs": jobs,
        "verbose": int(sys.stderr.isatty()),
    }
    notes = [*table.notes]
    fitted = fit_table(table, settings, notes, standardize=standardize)
    with placed(output, force=force) as path:
        fitted.tree.save(path)
    if labels is not None:
        groups = fitted.tree.labels.tolist()
        write_labels(labels, groups, table.row_names, id_column, force=force)
    if fitted.was_interrupted:
        notes.append(f"saved as {output}" + "; there is no report" * (report is not None))
        report = None
    scores = _score(fitted, table, notes)
    if report is not None and write_report is not None:
        named: dict[str, Any] = heading(title, data)
        named["classes"] = None if table.labels is None else without_gaps(table.labels)
        with placed(report, force=force) as path:
            write_report(fitted.tree, table.X, path, row_names=table.row_names, **named)
    written = {"model": output, "labels": labels, "report": report}
    if as_json:
        dropped = plain_dropped(table.dropped)
        told = {"scores": scores, "dropped": dropped, "notes": notes}
        say_json({"data": data, **_facts(fitted), **told, **written})
    else:
        # Who names the columns to use need not be told of the others.
        say_notes((note_on_dropped(table.dropped) if columns is None else []) + notes)
        _say(data, table, fitted, scores, written)
    if fitted.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _check_rows(data: Path, n_rows: int, n_clusters: int | None) -> None:
    """Refuse too few rows, in words that the library does not have."""
    if n_rows == 1:
        raise ValueError(f"{_name(data)} has one row: there is nothing to divide")
    if n_clusters is not None and n_clusters > n_rows:
        raise ValueError(
            f"{_name(data)} has {n_rows:,} rows, too few for {n_clusters:,} groups; give a "
            "smaller -k"
        )


def _name(data: Path) -> str:
    return "standard input" if str(data) == STDIN else printable(str(data))


def _report_writer() -> Any:
    """Return what writes a report; what is missing for it is said before the fit."""
    from taxarbor.report import report

    return report


def _score(fitted: Fitted, table: Table, notes: list[str]) -> dict[str, float] | None:
    if table.labels is None:
        return None
    n_gaps = count_gaps(table.labels)
    if n_gaps:
        notes.append(f"not scored: {counted(n_gaps, 'row')} without a label")
        return None
    return score_hierarchy(fitted.tree, table.labels)


def _facts(fitted: Fitted) -> dict[str, Any]:
    taken = {"seconds": fitted.seconds, "interrupted": fitted.was_interrupted}
    return model_facts(fitted.tree) | taken


def _say(
    data: Path,
    table: Table,
    fitted: Fitted,
    scores: dict[str, float] | None,
    written: dict[str, Path | None],
) -> None:
    (n_rows, n_features), n_dropped = table.X.shape, len(table.dropped)
    left_out = f" ({counted(n_dropped, 'column')} left out)" if n_dropped else ""
    groups = counted(fitted.tree.n_leaves, "group")
    typer.echo(
        f"{_name(data)}: {counted(n_rows, 'row')}, {counted(n_features, 'feature')}{left_out}\n"
        f"{groups} in {fitted.seconds:.2f} s -> {written['model']}\n"
    )
    say_first_levels(fitted.tree)
    if scores is not None:
        typer.echo(f"\nAgainst the known classes ({SCALE}):\n")
        say(score_table(scores))
    for what in ("labels", "report"):
        if written[what] is not None:
            typer.echo(f"\n{what} -> {written[what]}")
