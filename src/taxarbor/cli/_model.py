"""``taxarbor show``, ``cut``, ``export`` and ``info``: what a model alone can tell."""

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from taxarbor._errors import InputError, counted, printable
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import answer, say_data, say_json, say_lines

if TYPE_CHECKING:
    from taxarbor.hierarchy import Hierarchy

Kind: TypeAlias = Literal["json", "newick", "dot", "linkage", "csv"]
SUFFIXES: dict[str, Kind] = {
    **{".json": "json", ".csv": "csv"},
    **{".nwk": "newick", ".newick": "newick", ".dot": "dot", ".gv": "dot"},
}
LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "joblib", "typer", "rich"),
    *("pandas", "pyarrow", "h5py", "networkx", "matplotlib"),
)
MAX_NAMED = 10
"""Features that are named before there are only dots."""


def show(
    model: opt.Model,
    depth: Annotated[int | None, opt.option("Number of levels to show.", min=0)] = None,
    top: Annotated[int, typer.Option(min=0, help="Features named per node.")] = 3,
    as_json: opt.Json = False,
) -> None:
    """Show the tree of a model: what leads into a branch, in words.

    The features that do most come first. In a pipe, it is plain text.
    """
    from taxarbor.cli._render import say_tree
    from taxarbor.hierarchy import Hierarchy

    tree = Hierarchy.load(model)
    if as_json:
        say_json({"nodes": _nodes(tree, depth, top)})
    else:
        say_tree(tree, depth, top)


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


def cut(
    model: opt.Model,
    n_clusters: Annotated[
        int | None, opt.option("Number of clusters to keep.", "--n-clusters", "-k", min=1)
    ] = None,
    depth: Annotated[int | None, opt.option("Number of levels to keep.", min=0)] = None,
    suggest: Annotated[
        bool, opt.option("Keep as many clusters as assess found stable.", "--suggest")
    ] = False,
    output: Annotated[
        Path | None,
        opt.option(
            "A name that ends in .taxarbor gets the smaller model, any other the clusters of "
            "the rows, as csv. Default: those, on standard output.",
            *("--output", "-o"),
        ),
    ] = None,
    data: Annotated[
        Path | None, opt.option("The rows that the model was fitted on, for their names.")
    ] = None,
    id_column: opt.IdColumn = None,
    format: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Undo the last splits of a model, without fitting it again.

    Give -k, --depth or --suggest.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._reading import read_own_rows
    from taxarbor.hierarchy import Hierarchy

    if [n_clusters is None, depth is None, not suggest].count(False) != 1:
        raise InputError("give one of -k, --depth and --suggest")
    if id_column is not None and data is None:
        raise InputError("--id-column names a column of --data; give both")
    output = files.as_file(output)
    is_model = output is not None and output.suffix.lower() == ".taxarbor"
    files.check_labels_name(None if is_model else output)
    files.check_outputs((output,), (model, data), force=force)
    tree = Hierarchy.load(model)
    notes: list[str] = []
    if suggest:
        if tree.trust is None:
            raise InputError(f"{model} was not assessed yet: run taxarbor assess first")
        n_clusters, notes = tree.trust.suggested, [tree.trust.curve.verdict()]
    if n_clusters is not None and n_clusters > tree.n_leaves:
        most = f"at most {tree.n_leaves:,}, as many as the model has"
        raise InputError(f"must be {most}; got {n_clusters:,}", "n_clusters")
    smaller = tree.prune(n_clusters, depth=depth)
    roles = {"id_column": id_column, "format": format}
    table = None if data is None else read_own_rows(tree, data, **roles)[0]
    notes += () if table is None else table.notes
    if not (is_model or tree.has_rows):
        problem = f"{model} holds counts, not the clusters of rows"
        hint = "cut it to a smaller .taxarbor, and run taxarbor predict with that"
        raise InputError(f"{problem}: {hint}")
    if is_model and output is not None:
        files.refuse_late(output, force=force)
        smaller.save(output)
    elif output is not None or not as_json:
        files.write_labels(output, smaller.labels, table, force=force)
    document = {
        "output": output,
        "n_clusters": smaller.n_leaves,
        "rows": None if table is None else table.row_names,
        "labels": smaller.labels.tolist() if as_json and tree.has_rows else None,
        "notes": notes,
    }
    line = f"{counted(smaller.n_leaves, 'cluster')} -> {output}"
    answer(document, as_json, line if output else None)


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
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write the tree of a model in a format that other programs read."""
    from taxarbor.cli import _files as files
    from taxarbor.hierarchy import Hierarchy

    output = files.as_file(output)
    kind = to or SUFFIXES.get("" if output is None else output.suffix.lower())
    if kind is None:
        raise InputError(
            "say what to write with --to: json, newick, dot, linkage or csv"
            + ("" if output is None else f"; the name {output} does not tell")
        )
    files.check_outputs((output,), (model,), force=force)
    text = _text(Hierarchy.load(model), kind)
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


def info(
    model: Annotated[Path | None, opt.argument("A model that fit wrote.", "MODEL")] = None,
    as_json: opt.Json = False,
) -> None:
    """Say what is in a model; without one, what is installed."""
    facts = _installed() if model is None else _facts(model)
    if as_json:
        say_json(facts)
        return
    lines = {name.replace("_", " "): _as_text(value) for name, value in facts.items()}
    for name, version in facts.get("libraries", {}).items():
        lines[name] = version or f"missing: pip install {name}"
    width = max(map(len, lines)) + 2
    for name, text in lines.items():
        if text:
            say_lines(f"{name:<{width}}{printable(text)}")


def _as_text(value: Any) -> str:
    from taxarbor.cli._render import number

    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        comma = "; " if any(", " in one for one in value) else ", "
        return comma.join([*value[:MAX_NAMED], *["..."] * (len(value) > MAX_NAMED)])
    if isinstance(value, dict):
        return ""
    is_text = isinstance(value, str | Path)
    return str(value) if is_text else "not known" if value is None else number(value)


def _facts(path: Path) -> dict[str, Any]:
    from taxarbor.cli._render import model_facts
    from taxarbor.hierarchy import Hierarchy
    from taxarbor.hierarchy._file import VERSION

    tree = Hierarchy.load(path)
    facts = {"model": path, "format_version": VERSION, **model_facts(tree)}
    facts["feature_names"] = tree.feature_names
    if tree.encoding is not None:
        columns, dropped = tree.encoding.columns, tree.encoding.dropped
        facts["columns"] = [one.label for one in columns]
        facts["gaps"] = [f"{one.label} {one.missing:.0%}" for one in columns if one.missing]
        facts["left_out"] = [f"{name} ({reason})" for name, reason in dropped]
        facts["notes"] = list(tree.encoding.notes)
    return facts


def _installed() -> dict[str, Any]:
    import joblib

    from taxarbor import __version__

    facts = {"taxarbor": __version__, "python": platform.python_version()}
    versions = {name: _version(name) for name in LIBRARIES}
    return facts | {"processors": int(joblib.cpu_count()), "libraries": versions}


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
