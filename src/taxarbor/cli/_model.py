"""``taxarbor show`` and ``export``: commands that need a model only."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from taxarbor._errors import InputError
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import say_data, say_json, say_lines

if TYPE_CHECKING:
    from taxarbor.hierarchy import Hierarchy

Kind: TypeAlias = Literal["json", "newick", "dot", "linkage", "csv"]
SUFFIXES: dict[str, Kind] = {
    **{".json": "json", ".csv": "csv"},
    **{".nwk": "newick", ".newick": "newick", ".dot": "dot", ".gv": "dot"},
}


def show(
    model: opt.Model,
    n_clusters: opt.Clusters = None,
    depth: Annotated[int | None, opt.option("Number of levels to show.", min=0)] = None,
    top: Annotated[int, typer.Option(min=0, help="Features named per node.")] = 3,
    as_json: opt.Json = False,
) -> None:
    """Show the tree of a model: what leads into a branch, in words.

    The first line is about the whole model. The features that do most come first.
    """
    from taxarbor.cli._reading import load_model
    from taxarbor.cli._render import describe_model, model_facts, say_tree

    tree = load_model(model, n_clusters)
    if as_json:
        facts = model_facts(tree) | _table_facts(tree)
        say_json({"model": facts, "nodes": _nodes(tree, depth, top)})
    else:
        say_lines(describe_model(tree))
        say_tree(tree, depth, top)


def _table_facts(tree: "Hierarchy") -> dict[str, Any]:
    """Return what made a model, and the columns that it uses and leaves out."""
    facts: dict[str, Any] = {"made_by": tree.made_by, "feature_names": tree.feature_names}
    if (encoding := tree.encoding) is not None:
        facts["columns"] = [
            {"column": one.label, "missing": one.missing} for one in encoding.columns
        ]
        facts["dropped"] = [
            {"column": name, "reason": reason} for name, reason in encoding.dropped
        ]
        facts["notes"] = list(encoding.notes)
    return facts


def _nodes(tree: "Hierarchy", depth: int | None, n_top: int) -> list[dict[str, Any]]:
    """Return the nodes in a list, parents first: nested JSON would end at some depth."""
    from taxarbor.hierarchy._words import count_leaves

    n_leaves = count_leaves(tree)
    number = {int(leaf): label for label, leaf in enumerate(tree.leaves)}
    return [
        {
            "node": node,
            "parent": tree.parent(node),
            "children": list(tree.children(node)),
            "depth": int(tree.depth[node]),
            "n_rows": int(tree.sizes[node]),
            "n_clusters": n_leaves[node],
            "cluster": number.get(node),
            "reasons": [
                {
                    **{"feature": r.name, "sign": r.sign, "share": r.share, "weight": r.weight},
                    **{"threshold": r.threshold, "words": str(r)},
                }
                for r in tree.reasons(node, n_top)
            ],
        }
        for node in range(tree.n_nodes)
        if depth is None or tree.depth[node] <= depth
    ]


def export(
    model: opt.Model,
    to: Annotated[
        Kind | None,
        opt.option(
            "The whole model as JSON, the tree as Newick or for Graphviz, SciPy's linkage as "
            "csv, or a line per node as csv. Default: what the output's name ends in."
        ),
    ] = None,
    output: opt.Output = None,
    n_clusters: opt.Clusters = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write the tree of a model in a format that other programs read."""
    from taxarbor.cli import _files as files
    from taxarbor.cli._reading import load_model

    output = files.as_file(output)
    kind = to or SUFFIXES.get("" if output is None else output.suffix.lower())
    if kind is None:
        raise InputError(
            "say what to write with --to: json, newick, dot, linkage or csv"
            + ("" if output is None else f"; the name {output} does not tell")
        )
    files.check_outputs((output,), (model,), force=force)
    text = _text(load_model(model, n_clusters), kind)
    if output is not None:
        files.write_text(output, text, force=force)
    if as_json:
        document = {"format": kind, "output": output}
        say_json(document | ({"text": text} if output is None else {}))
    elif output is None:
        say_data(text)
    else:
        say_lines(f"{kind} -> {output}")


def _text(tree: "Hierarchy", kind: Kind) -> str:
    from taxarbor.cli._files import CsvText
    from taxarbor.exchange import to_dot, to_frame, to_json, to_linkage, to_newick

    if kind == "json":
        return to_json(tree) + "\n"
    if kind == "newick":
        return to_newick(tree) + "\n"
    if kind == "dot":
        return to_dot(tree)
    if kind == "csv":
        buffer = CsvText()
        to_frame(tree).to_csv(buffer, index=False, lineterminator="\r\n")
        return buffer.getvalue()
    lines = [("a", "b", "height", "size"), *to_linkage(tree).astype(int).tolist()]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)
