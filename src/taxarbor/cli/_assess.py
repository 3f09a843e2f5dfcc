"""``taxarbor assess``: how far a model can be trusted."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from taxarbor.cli import _options as opt
from taxarbor.cli import interrupted_code
from taxarbor.cli._shell import answer, say_lines


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
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Fit a model again to halves of its rows, and say which clusters came back.

    The model then knows how far to trust it, and cut --suggest how many clusters to keep.
    Ctrl-C keeps the refits that are done.
    """
    from taxarbor.cli import _files as files
    from taxarbor.cli._fitting import assess_table
    from taxarbor.cli._reading import read_both
    from taxarbor.cli._render import say_assessed
    from taxarbor.hierarchy import Hierarchy

    target = model if output is None else output
    sources = (data,) if output is None else (model, data)
    files.check_outputs((target,), sources, force=force or output is None)
    tree = Hierarchy.load(model)
    asked = {"id_column": id_column, "label_column": label_column, "format": format}
    table = read_both(tree, data, **asked)[0]
    notes = [*table.notes]
    settings: dict[str, Any] = {"n_refits": refits, "n_jobs": jobs, "random_state": seed}
    settings["verbose"] = int(sys.stderr.isatty())
    assessed, was_interrupted = assess_table(table, tree, notes, **settings)
    trust = assessed.trust
    assert trust is not None
    with files.placed(target, force=force or output is None) as path:
        assessed.save(path)
    told = {
        "model": target,
        "n_refits": trust.n_refits,
        "interrupted": was_interrupted,
        "suggested": trust.suggested,
        "verdict": trust.curve.verdict(),
        "nodes": [
            {
                "node": node,
                "came_back": int(trust.came_back[node]),
                "apart": int(trust.apart[node]),
                "rule_came_back": int(trust.rule_came_back[node]),
                "is_stable": bool(trust.is_stable[node]),
            }
            for node in range(assessed.n_nodes)
        ],
        "rows": trust.rows.tolist(),
        "curve": {name: values.tolist() for name, values in trust.curve._asdict().items()},
        "notes": notes,
    }
    answer(told, as_json)
    if not as_json:
        say_assessed(assessed, trust)
        say_lines(f"assessed model -> {target}")
    if was_interrupted:
        raise typer.Exit(interrupted_code())
