"""The commands that read a model."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from taxarbor._errors import InputError, counted
from taxarbor.cli import _options as opt
from taxarbor.cli._shell import answer, noted, say_data, say_json, say_lines

if TYPE_CHECKING:
    from taxarbor.explain import Explanation
    from taxarbor.taxonomy import Taxonomy

Kind: TypeAlias = Literal["json", "newick", "dot", "linkage", "csv"]
SUFFIXES: dict[str, Kind] = {
    **{".json": "json", ".csv": "csv"},
    **{".nwk": "newick", ".newick": "newick", ".dot": "dot", ".gv": "dot"},
}
NODE_TRUST = ("n_recovered", "apart", "n_rule_recovered", "left_out", "is_stable")
"""What an assessment says of each node."""


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

    taxonomy = load_model(model, n_clusters)
    if as_json:
        facts = model_facts(taxonomy) | _table_facts(taxonomy)
        say_json({"model": facts, "nodes": _nodes(taxonomy, depth, top)})
    else:
        say_lines(describe_model(taxonomy))
        say_tree(taxonomy, depth, top)


def _table_facts(taxonomy: "Taxonomy") -> dict[str, Any]:
    """Return what made a model, and the columns that it uses and leaves out."""
    facts: dict[str, Any] = {
        "made_by": taxonomy.made_by,
        "feature_names": taxonomy.feature_names,
    }
    if (encoding := taxonomy.encoding) is not None:
        facts["columns"] = [
            {"column": one.label, "missing": one.missing} for one in encoding.columns
        ]
        facts["dropped"] = [
            {"column": name, "reason": reason} for name, reason in encoding.dropped
        ]
        facts["notes"] = list(encoding.notes)
    return facts


def _nodes(taxonomy: "Taxonomy", depth: int | None, n_top: int) -> list[dict[str, Any]]:
    """Return the nodes in a list, parents first: nested JSON would end at some depth."""
    from taxarbor.taxonomy._text import count_leaves

    n_leaves = count_leaves(taxonomy)
    number = {int(leaf): label for label, leaf in enumerate(taxonomy.tree.leaves)}
    return [
        {
            "node": node,
            "parent": taxonomy.tree.parent(node),
            "children": list(taxonomy.tree.children(node)),
            "depth": int(taxonomy.tree.depth[node]),
            "n_rows": int(taxonomy.tree.sizes[node]),
            "n_clusters": n_leaves[node],
            "cluster": number.get(node),
            "reasons": [
                {
                    **{"feature": r.name, "sign": r.sign, "share": r.share, "weight": r.weight},
                    **{"threshold": r.threshold, "words": str(r)},
                }
                for r in taxonomy.reasons(node, n_top)
            ],
        }
        for node in range(taxonomy.tree.n_nodes)
        if depth is None or taxonomy.tree.depth[node] <= depth
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


def _text(taxonomy: "Taxonomy", kind: Kind) -> str:
    from taxarbor.cli._files import CsvText
    from taxarbor.exchange import to_dot, to_frame, to_json, to_linkage, to_newick

    if kind == "json":
        return to_json(taxonomy) + "\n"
    if kind == "newick":
        return to_newick(taxonomy) + "\n"
    if kind == "dot":
        return to_dot(taxonomy)
    if kind == "csv":
        buffer = CsvText()
        to_frame(taxonomy).to_csv(buffer, index=False, lineterminator="\r\n")
        return buffer.getvalue()
    lines = [("a", "b", "height", "size"), *to_linkage(taxonomy).astype(int).tolist()]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def predict(
    model: opt.Model,
    data: opt.Data,
    output: opt.Output = None,
    n_clusters: opt.Clusters = None,
    id_column: opt.IdColumn = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add probabilities, by cluster.")
    ] = False,
    format: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Say which cluster of a model each row of a file belongs to, as csv, npy or parquet.

    Columns are selected by name, others are ignored. Missing values, and categories that the
    model has not seen, count as the column's mean.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._reading import load_model, predict_rows, read_rows

    output = files.as_file(output)
    files.check_labels_name(output, proba=proba)
    files.check_outputs((output,), (model, data), force=force)
    taxonomy = load_model(model, n_clusters)
    if taxonomy.tree.rules[taxonomy.tree.root] is None and taxonomy.tree.n_leaves > 1:
        raise InputError(f"{model} was made from labels alone: it has no rules for new rows")
    table = read_rows(taxonomy, data, id_column=id_column, format=format)
    labels, probabilities, notes = predict_rows(taxonomy, table, proba=proba)
    if output is not None or not as_json:
        files.write_labels(output, labels, table, probabilities, force=force)
    if proba and taxonomy.temperature is None:
        notes.append("probabilities are a rough guess until taxarbor assess measures them")
    document: dict[str, Any] = {
        "output": output,
        "n_clusters": taxonomy.tree.n_leaves,
        "notes": notes,
    }
    if as_json:
        document |= {"rows": table.row_names, "labels": labels.tolist()}
        if probabilities is not None:
            document["probabilities"] = probabilities.tolist()
    line = f"{counted(len(labels), 'row')} -> {output}"
    answer(document, as_json, line if output else None)


def report(
    model: opt.Model,
    data: opt.SameData,
    output: opt.Page,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    title: opt.Title = None,
    truth: opt.Truth = None,
    format: opt.Format = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write one self-contained HTML page: the tree, its reasons, its rows.

    It needs no network and no other file. With --label-column, it also prints scores.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._reading import read_own_rows
    from taxarbor.cli._render import say_scores
    from taxarbor.metrics import ClassTree, tree_scores
    from taxarbor.report import report as write_report
    from taxarbor.taxonomy import Taxonomy

    if truth is not None and label_column is None:
        raise InputError("--truth is a tree of the rows' classes: give --label-column, too")
    files.check_outputs((output,), (model, data, truth), force=force)
    taxonomy = Taxonomy.load(model)
    classes = None if truth is None else ClassTree.read(truth)
    roles = {"id_column": id_column, "label_column": label_column, "format": format}
    table, X = read_own_rows(taxonomy, data, **roles)
    if taxonomy.feature_names is None and table.feature_names is not None:
        taxonomy = taxonomy.rename_features(table.feature_names)
    notes, scores = [*table.notes], None
    files.refuse_late(output, force=force)
    with noted(notes):
        write_report(
            taxonomy,
            X,
            output,
            row_names=table.row_names,
            classes=table.labels,
            truth=classes,
            title=files.heading(title, data),
        )
        if table.labels is not None and taxonomy.tree.has_rows:
            scores = tree_scores(taxonomy, table.labels, classes)
    document = {"report": output, "scores": scores, "notes": notes}
    answer(document, as_json, f"report -> {output}")
    if scores is not None and not as_json:
        say_scores(scores)


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
    from taxarbor.cli._render import describe_new_rows, say_node, say_nodes, say_rows
    from taxarbor.explain import explain as explain_tree
    from taxarbor.taxonomy import Taxonomy

    if sum(choice is not None for choice in (node, row, new)) > 1:
        raise InputError("give one of --node, --row and --new")
    if str(data) == str(new) == "-":
        raise InputError("only one of DATA and --new can be standard input")
    taxonomy = Taxonomy.load(model)
    wanted = None if node is None else _node_id(taxonomy, node)
    roles = {"id_column": id_column, "label_column": label_column, "format": format}
    table, X = reading.read_own_rows(taxonomy, data, **roles)
    fresh = None
    if new is not None:
        fresh = reading.in_memory(reading.read_rows(taxonomy, new, id_column=id_column))
    why = explain_tree(
        taxonomy,
        X,
        feature_names=taxonomy.feature_names or table.feature_names,
        row_names=table.row_names,
        classes=table.labels,
    )
    notes = [*table.notes, *why.notes]
    document: dict[str, Any]
    if wanted is not None:
        document = why.node(wanted, n_top=top, n_examples=top)
        say = partial(say_node, why, document)
    elif row is not None:
        document = why.row(_row_id(why, row))
        say = partial(say_rows, [document])
    elif fresh is not None:
        missing = reading.count_missing(taxonomy, fresh.X)
        notes += [*fresh.notes, *reading.describe_missing(missing)]
        features = reading.as_features(taxonomy, fresh)
        document = {"rows": describe_new_rows(why, features, fresh.row_names)}
        say = partial(say_rows, document["rows"])
    else:
        document = {"nodes": why.to_dict(n_top=top, n_examples=top)["nodes"]}
        say = partial(say_nodes, document["nodes"], top)
    answer(document | {"notes": notes}, as_json)
    if not as_json:
        say()


def _node_id(taxonomy: "Taxonomy", text: str) -> int:
    """Return a node by its number or, as c0, c1, ..., by its cluster's."""
    is_leaf, digits = text[:1] in "cC", text.removeprefix("c").removeprefix("C")
    most = taxonomy.tree.n_leaves if is_leaf else taxonomy.tree.n_nodes
    if not (digits.isascii() and digits.isdigit() and int(digits) < most):
        raise InputError(
            f"there is no node {text!r}: nodes are numbered 0 to {taxonomy.tree.n_nodes - 1}, clusters "
            f"c0 to c{taxonomy.tree.n_leaves - 1}"
        )
    return int(taxonomy.tree.leaves[int(digits)]) if is_leaf else int(digits)


def _row_id(why: "Explanation", text: str) -> int | str:
    """Return the name of a row if it is one, else its number."""
    n_rows = why.whole.tree.n_rows
    n_called = (why.row_names or ()).count(text)
    if n_called == 1:
        return text
    if n_called > 1:
        raise InputError(f"{n_called} rows are called {text!r}; give its number, from 0")
    if text.isascii() and text.isdigit() and int(text) < n_rows:
        return int(text)
    if why.row_names is not None:
        raise InputError(f"no row is called {text!r}, and numbers go from 0 to {n_rows - 1}")
    message = f"there is no row {text!r}: rows are numbered 0 to {n_rows - 1}"
    raise InputError(f"{message}; --id-column says where the names are")


def assess(
    model: opt.Model,
    data: opt.SameData,
    output: Annotated[
        Path | None,
        opt.option(
            "The assessed model to write; default: MODEL, which is replaced.", "--output", "-o"
        ),
    ] = None,
    refits: Annotated[int, opt.option("How many times to fit; default: 20.", min=1)] = 20,
    jobs: Annotated[int, opt.option("Refits side by side; -1 for all processors.")] = 1,
    seed: Annotated[
        int,
        opt.option("The same seed gives the same result; default: 0.", min=0, max=2**32 - 1),
    ] = 0,
    id_column: opt.IdColumn = None,
    label_column: opt.LabelColumn = None,
    format: opt.Format = None,
    embedding: opt.Embedding = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Fit a model again to halves of its rows, and say which clusters came back.

    The model then knows how far to trust it, and says how many clusters to keep.
    Ctrl-C keeps the refits that are done.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._fitting import restore_model
    from taxarbor.cli._reading import find_embedding, in_memory, read_own_rows
    from taxarbor.cli._render import say_tree, say_verdict
    from taxarbor.stability import assess as assess_model
    from taxarbor.taxonomy import Taxonomy

    target = model if output is None else output
    sources = (data,) if output is None else (model, data)
    files.check_outputs((target,), sources, force=force or output is None)
    taxonomy = Taxonomy.load(model)
    roles = {"id_column": id_column, "label_column": label_column, "format": format}
    table, _ = read_own_rows(taxonomy, data, **roles)
    notes = [*table.notes]
    whole = in_memory(table)
    is_verbose = int(sys.stderr.isatty())
    options: dict[str, Any] = {"n_refits": refits, "n_jobs": jobs, "random_state": seed}
    options["embedding"] = find_embedding(data, embedding, format)
    with noted(notes):
        assessed = assess_model(
            restore_model(whole, taxonomy), whole.X, verbose=is_verbose, **options
        )
    trust = assessed.stability
    assert trust is not None
    files.refuse_late(target, force=force or output is None)
    assessed.save(target)
    document = {
        "model": target,
        "n_refits": trust.n_refits,
        "suggested": trust.suggested,
        "verdict": trust.curve.verdict(),
        "left_out": trust.left_out[0].item(),
        "nodes": [
            {"node": node} | {name: getattr(trust, name)[node].item() for name in NODE_TRUST}
            for node in range(assessed.tree.n_nodes)
        ],
        "rows": trust.rows.tolist(),
        "curve": {name: values.tolist() for name, values in trust.curve._asdict().items()},
        "notes": notes,
    }
    answer(document, as_json)
    if not as_json:
        say_tree(assessed, None)
        say_verdict(trust)
        if 1 < trust.suggested < assessed.tree.n_leaves:
            say_lines(f"Show or predict these with --clusters {trust.suggested}.")
        say_lines(f"assessed model -> {target}")
