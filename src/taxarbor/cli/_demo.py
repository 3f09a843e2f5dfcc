"""``taxarbor demo``: the main job on data that come with the package."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taxarbor._errors import some
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import say_json, say_lines

if TYPE_CHECKING:
    from taxarbor.taxonomy import Taxonomy

PAGE = Path("demo.html")
CLUSTERS = 12
DEPTH = 2
"""Level of the biological classification whose classes colour the page."""


def demo(
    data: Annotated[
        Literal["animals", "digits"],
        typer.Option(help="Animals by attributes, or handwritten digits."),
    ] = "animals",
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write.")] = PAGE,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Fit data that come with the package, show the tree, and write a page to look at."""
    from taxarbor.cli._files import check_outputs, refuse_late
    from taxarbor.cli._render import draw_tree, model_facts, say, say_scores
    from taxarbor.estimators import Taxarbor
    from taxarbor.metrics import tree_scores
    from taxarbor.report import report

    check_outputs((output,), (), force=force)
    rows, reference, X, names, page, truth = _animals() if data == "animals" else _digits()
    begun = time.perf_counter()
    taxonomy = Taxarbor(CLUSTERS, random_state=0).fit(X).taxonomy_.rename_features(names)
    seconds = time.perf_counter() - begun
    scores = tree_scores(taxonomy, page["classes"])
    if truth is not None:  # each row is a leaf of it: only the trees as such can be compared
        scores = tree_scores(taxonomy, page["row_names"], truth) | scores
    refuse_late(output, force=force)
    report(taxonomy, X, output, **page)
    if as_json:
        facts = {"data": data, **model_facts(taxonomy), "seconds": seconds, "scores": scores}
        say_json(facts | {"report": output, "notes": []})
        return
    typer.echo(f"{rows}, no labels: {taxonomy.tree.n_leaves} clusters in {seconds:.2f} s.")
    typer.echo("Each line says what leads into its branch.\n")
    below = _members(taxonomy, page["row_names"], page["classes"])
    say(draw_tree(taxonomy, max_nodes=taxonomy.tree.n_nodes, below=below))
    say_scores(scores, f"{reference}, which it has not seen")
    say_lines(f"\nThe same to look at: {output}")


def _animals() -> tuple[str, str, Any, tuple[str, ...], dict[str, Any], Any]:
    """Return a description of the rows and of the reference, the data and their true tree."""
    from taxarbor.data import load_animals
    from taxarbor.metrics import ClassTree

    animals = load_animals()
    taxonomy = ClassTree.read(animals.tree)
    classes = taxonomy.ancestors_of(animals.names, DEPTH)
    page = {"title": "Animals, divided by their attributes", "classes": classes}
    page |= {"row_names": animals.names}
    rows = f"{len(animals.names)} animals, {len(animals.feature_names)} attributes"
    X = animals.X / animals.X.max(axis=0)
    return rows, "the biological classification", X, animals.feature_names, page, taxonomy


def _digits() -> tuple[str, str, Any, tuple[str, ...], dict[str, Any], Any]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    page = {
        "title": "Handwritten digits, divided by their pixels",
        "row_names": None,
        "classes": [str(digit) for digit in digits.target],
        "images": 1.0 - digits.images / 16.0,  # ink on paper
    }
    rows = f"{len(digits.data):,} handwritten digits of 8 x 8 pixels"
    names = tuple(map(str, digits.feature_names))
    return rows, "what the digits were meant to be", digits.data, names, page, None


def _members(taxonomy: "Taxonomy", row_names: Any, classes: list[str]) -> dict[int, str]:
    """Name some rows of each cluster; of those without names, the classes and how many."""
    members = {}
    for leaf in taxonomy.tree.leaves.tolist():
        rows = taxonomy.tree.rows(leaf)
        if row_names is not None:
            members[leaf] = some(sorted(row_names[row] for row in rows), 6)
        else:
            counts = Counter(classes[row] for row in rows).most_common()
            members[leaf] = some([f"{count} of {one}" for one, count in counts], 4)
    return members
