"""``taxarbor demo``: the main job on data that are there already."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, final

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._facts import model_facts
from taxarbor.cli._output import check_outputs, placed, say_json
from taxarbor.cli._render import draw_tree, say, some
from taxarbor.cli._scores import SCALE, score_table
from taxarbor.data import load_animals
from taxarbor.estimators import HMMC
from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics import ClassTree, score_hierarchy

GROUPS = 12
MEMBERS = 6
DEPTH = 2
"""Level of the biological classification whose groups colour the page."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Show:
    """Rows to show, and what is known of them."""

    told: str
    title: str
    against: str
    X: Any
    feature_names: tuple[str, ...]
    row_names: tuple[str, ...] | None
    classes: list[str]
    images: Any
    truth: tuple[list[str], ClassTree] | None


def demo(
    data: Annotated[
        Literal["animals", "digits"],
        typer.Option(help="Animals by attributes, or handwritten digits."),
    ] = "animals",
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "demo.html"
    ),
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Fit data that are bundled, show the tree, and write a page to look at."""
    from taxarbor.report import report

    check_outputs((output,), (), force=force)
    shown = _animals() if data == "animals" else _digits()
    begun = time.perf_counter()
    tree = HMMC(GROUPS, random_state=0).fit(shown.X).hierarchy_
    seconds = time.perf_counter() - begun
    tree = tree.rename_features(shown.feature_names)
    scores = _score(tree, shown)
    with placed(output, force=force) as path:
        report(
            tree,
            shown.X,
            path,
            row_names=shown.row_names,
            classes=shown.classes,
            images=shown.images,
            title=shown.title,
        )
    if as_json:
        say_json(
            {"data": data, **model_facts(tree), "seconds": seconds, "scores": scores}
            | {"report": output, "notes": []}
        )
        return
    typer.echo(f"{shown.told}, no labels: {tree.n_leaves} groups in {seconds:.2f} s.")
    typer.echo("+ and - say which values lead into a branch.\n")
    say(draw_tree(tree, max_nodes=tree.n_nodes, below=_members(tree, shown)))
    typer.echo(f"\nAgainst {shown.against}, which it has not seen ({SCALE}):\n")
    say(score_table(scores))
    typer.echo(f"\nThe same to look at: {output}")


def _animals() -> Show:
    animals = load_animals()
    tree = ClassTree.read(animals.tree)
    return Show(
        told=f"{len(animals.names)} animals, {len(animals.feature_names)} attributes",
        title="Animals, divided by their attributes",
        against="the biological classification",
        X=animals.X / animals.X.max(axis=0),
        feature_names=animals.feature_names,
        row_names=animals.names,
        classes=tree.ancestors_of(animals.names, DEPTH),
        images=None,
        truth=(list(animals.names), tree),
    )


def _digits() -> Show:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Show(
        told=f"{len(digits.data):,} handwritten digits of 8 x 8 pixels",
        title="Handwritten digits, divided by their pixels",
        against="what the digits were meant to be",
        X=digits.data,
        feature_names=tuple(map(str, digits.feature_names)),
        row_names=None,
        classes=[str(digit) for digit in digits.target],
        images=1.0 - digits.images / 16.0,  # ink on paper
        truth=None,
    )


def _score(tree: Hierarchy, shown: Show) -> dict[str, float]:
    """Compare the groups with the classes and, where there is one, the tree with the true one.

    Each animal is a leaf of its own there, so that only the trees as such can be compared.
    """
    scores = score_hierarchy(tree, shown.classes)
    if shown.truth is not None:
        whole = score_hierarchy(tree, *shown.truth)
        scores |= {name: value for name, value in whole.items() if name not in scores}
    return scores


def _members(tree: Hierarchy, shown: Show) -> dict[int, str]:
    """Name some rows of each group; of those without names, the classes and how many."""
    told = {}
    for leaf in tree.leaves.tolist():
        rows = tree.rows(leaf)
        if shown.row_names is not None:
            told[leaf] = some(sorted(shown.row_names[row] for row in rows), MEMBERS)
            continue
        classes = [shown.classes[row] for row in rows]
        counts = sorted(((classes.count(one), one) for one in set(classes)), reverse=True)
        told[leaf] = some([f"{count} of {one}" for count, one in counts], 4)
    return told
