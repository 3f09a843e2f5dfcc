"""``taxarbor export``: the tree for other programs."""

import io
from typing import Annotated, Literal, TypeAlias

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli._output import as_file, check_outputs, say_json, write_text
from taxarbor.hierarchy import Hierarchy

Kind: TypeAlias = Literal["json", "newick", "dot", "linkage", "csv"]
SUFFIXES: dict[str, Kind] = {
    ".json": "json",
    ".nwk": "newick",
    ".newick": "newick",
    ".dot": "dot",
    ".gv": "dot",
    ".csv": "csv",
}


def export(
    model: opt.Model,
    to: Annotated[
        Kind | None,
        typer.Option(
            help="All of it as JSON; Newick; Graphviz; SciPy's linkage as csv; or a line per "
            "node as csv. Default: what the name of the output ends in.",
            show_default=False,
        ),
    ] = None,
    output: opt.Output = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write the tree of a model in a format that other programs read."""
    output = as_file(output)
    kind = to or SUFFIXES.get("" if output is None else output.suffix.lower())
    if kind is None:
        raise ValueError(
            "say what to write with --to: json, newick, dot, linkage or csv"
            + ("" if output is None else f"; the name {output} does not tell")
        )
    check_outputs((output,), (model,), force=force)
    text = _text(Hierarchy.load(model), kind)
    if output is not None:
        write_text(output, text, force=force)
    if as_json:
        told = {"text": text} if output is None else {}
        say_json({"format": kind, "output": output} | told)
    else:
        typer.echo(text if output is None else f"{kind} -> {output}\n", nl=False)


def _text(tree: Hierarchy, kind: Kind) -> str:
    if kind == "json":
        return tree.to_json() + "\n"
    if kind == "newick":
        return tree.to_newick() + "\n"
    if kind == "dot":
        return tree.to_dot()
    if kind == "csv":
        buffer = io.StringIO()
        tree.to_frame().to_csv(buffer, index=False, lineterminator="\n")
        return buffer.getvalue()
    merges = tree.to_linkage().astype(int).tolist()
    return "".join(
        f"{a},{b},{h},{n}\n" for a, b, h, n in [("a", "b", "height", "size"), *merges]
    )
