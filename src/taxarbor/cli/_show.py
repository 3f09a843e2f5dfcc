"""``taxarbor show``: the tree of a model."""

from typing import Annotated, Any

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._output import say_json
from taxarbor.cli._render import say_tree
from taxarbor.hierarchy import Hierarchy, count_leaves


def show(
    model: opt.Model,
    depth: Annotated[
        int | None, typer.Option(min=0, help="Show so many levels.", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Features named per node.")] = 3,
    as_json: opt.Json = False,
) -> None:
    """Show the tree of a model: + and - say which values lead into a branch.

    The features that do most come first. In a pipe, it is plain text.
    """
    tree = Hierarchy.load(model)
    if as_json:
        say_json({"nodes": _nodes(tree, depth, top)})
    else:
        say_tree(tree, max_depth=depth, n_top=top)


def _nodes(tree: Hierarchy, depth: int | None, n_top: int) -> list[dict[str, Any]]:
    """Return the nodes in a list, parents first: nested JSON would end at some depth."""
    n_groups = count_leaves(tree)
    number = {int(leaf): label for label, leaf in enumerate(tree.leaves)}
    return [
        {
            "node": node,
            "parent": tree.parent(node),
            "children": list(tree.children(node)),
            "depth": int(tree.depth[node]),
            "n_rows": len(tree.rows(node)),
            "n_groups": n_groups[node],
            "cluster": number.get(node),
            "fidelity": float(tree.fidelity[node]),
            "reasons": [
                {"feature": reason.name, "sign": reason.sign}
                | {"share": reason.share, "weight": reason.weight}
                for reason in tree.reasons(node, n_top)
            ],
        }
        for node in range(tree.n_nodes)
        if depth is None or tree.depth[node] <= depth
    ]
