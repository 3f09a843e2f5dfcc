"""``taxarbor explain``: why rows are where they are."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taxarbor._errors import InputError
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import answer

if TYPE_CHECKING:
    from taxarbor.explain import Explanation
    from taxarbor.hierarchy import Hierarchy


def explain(
    model: opt.Model,
    data: opt.SameData,
    node: Annotated[
        str | None, opt.option("One node: its number, or the cluster c0, c1, ...")
    ] = None,
    row: Annotated[str | None, opt.option("One row: its name, or its number from 0.")] = None,
    new: Annotated[
        Path | None, opt.option("A file of new rows: where they go, and why.")
    ] = None,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    top: Annotated[int, typer.Option(min=1, help="Features and rows named, at most.")] = 5,
    format: opt.Format = None,
    as_json: opt.Json = False,
) -> None:
    """Say what stands out in the clusters, and which rows are typical or at the border.

    Without --node, --row or --new: all nodes. The margin of a row is 1 where it is usual, 0 at
    the border, and negative beyond it.
    """
    from taxarbor.cli import _reading as reading
    from taxarbor.cli._explaining import place_rows, say_node, say_nodes, say_rows
    from taxarbor.explain import explain as explain_tree
    from taxarbor.hierarchy import Hierarchy

    if sum(choice is not None for choice in (node, row, new)) > 1:
        raise InputError("give one of --node, --row and --new")
    if str(data) == str(new) == "-":
        raise InputError("only one of DATA and --new can be standard input")
    tree = Hierarchy.load(model)
    wanted = None if node is None else _node_id(tree, node)
    asked = {"id_column": id_column, "label_column": label_column, "format": format}
    table = reading.read_rows(tree, data, **asked)
    fresh = None if new is None else reading.read_for(tree, new, id_column=id_column)
    named: dict[str, Any] = {"feature_names": tree.feature_names or table.feature_names}
    named |= {"row_names": table.row_names, "classes": table.labels}
    X: Any = table.X
    why = explain_tree(tree, X, **named)
    notes = [*table.notes, *why.notes, *(() if fresh is None else fresh.notes)]
    if wanted is not None:
        told: dict[str, Any] = why.node(wanted, n_top=top, n_examples=top)
        say = partial(say_node, why, told)
    elif row is not None:
        told = why.row(_row_id(why, row))
        say = partial(say_rows, [told])
    elif fresh is not None:
        told = {"rows": place_rows(why, reading.as_features(tree, fresh).X, fresh.row_names)}
        say = partial(say_rows, told["rows"])
    else:
        told = {"nodes": why.to_dict(n_top=top, n_examples=top)["nodes"]}
        say = partial(say_nodes, told["nodes"], top)
    answer(told | {"notes": notes}, as_json)
    if not as_json:
        say()


def _node_id(tree: "Hierarchy", text: str) -> int:
    """Return a node by its number or, as c0, c1, ..., by its cluster's."""
    is_leaf, digits = text[:1] in "cC", text.removeprefix("c").removeprefix("C")
    most = tree.n_leaves if is_leaf else tree.n_nodes
    if not (digits.isascii() and digits.isdigit() and int(digits) < most):
        raise InputError(
            f"there is no node {text!r}: nodes are numbered 0 to {tree.n_nodes - 1}, clusters "
            f"c0 to c{tree.n_leaves - 1}"
        )
    return int(tree.leaves[int(digits)]) if is_leaf else int(digits)


def _row_id(why: "Explanation", text: str) -> int | str:
    """Return the name of a row if it is one, else its number."""
    n_rows = why.whole.n_rows
    n_called = (why.row_names or ()).count(text)
    if n_called == 1:
        return text
    if n_called > 1:
        raise InputError(f"{n_called} rows are called {text!r}; give its number, from 0")
    if text.isascii() and text.isdigit() and int(text) < n_rows:
        return int(text)
    if why.row_names is not None:
        raise InputError(f"no row is called {text!r}, and numbers go from 0 to {n_rows - 1}")
    told = f"there is no row {text!r}: rows are numbered 0 to {n_rows - 1}"
    raise InputError(f"{told}; --id-column says where the names are")
