"""``taxarbor score``: how well a model agrees with known classes."""

from typing import Annotated

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._input import Asked, read_own
from taxarbor.cli._output import say_json, say_notes
from taxarbor.cli._render import counted, say
from taxarbor.cli._scores import SCALE, count_gaps, score_table
from taxarbor.hierarchy import Hierarchy, printable
from taxarbor.metrics import ClassTree, score_hierarchy


def score(
    model: opt.Model,
    data: opt.SameData,
    label_column: Annotated[
        str, typer.Option(help="Column with the known classes.", show_default=False)
    ],
    truth: opt.Truth = None,
    format: opt.Format = None,
    as_json: opt.Json = False,
) -> None:
    """Compare a model with the known classes of its rows, and with their true tree.

    The classes were not used in the fit. With --truth, the tree as a whole is compared, too.
    """
    tree = Hierarchy.load(model)
    classes = None if truth is None else ClassTree.read(truth)
    notes: list[str] = []
    table = read_own(tree, data, Asked(None, label_column, format), notes)
    if table.labels is None or count_gaps(table.labels):
        n_gaps = 0 if table.labels is None else count_gaps(table.labels)
        raise ValueError(
            f"{data} has {counted(n_gaps, 'row')} without a label in {label_column!r}; every "
            "row needs one"
        )
    scores = score_hierarchy(tree, table.labels, classes)
    n_classes = len(set(table.labels.tolist()))
    if as_json:
        say_json(
            {"n_groups": tree.n_leaves, "n_classes": n_classes, "scores": scores}
            | {"notes": notes}
        )
        return
    say_notes(notes)
    told = f"{counted(tree.n_leaves, 'group')}, {counted(n_classes, 'class', 'classes')}"
    typer.echo(f"{told} in {printable(label_column)}; {SCALE}\n")
    say(score_table(scores))
