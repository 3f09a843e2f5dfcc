"""``taxarbor info``: a model in a few numbers, or what is installed."""

import importlib.metadata
import json
import platform
import re
from pathlib import Path
from typing import Annotated, Any

import joblib
import numpy as np
import typer

import taxarbor
from taxarbor.cli import _options as opt
from taxarbor.cli._facts import model_facts
from taxarbor.cli._output import say_json
from taxarbor.cli._render import number, percent
from taxarbor.hierarchy import Hierarchy

LIBRARIES = ("numpy", "scipy", "scikit-learn")
EXTRA = re.compile(r"""(?P<name>[\w.-]+).*;.*\bextra\s*==\s*['"](?P<extra>[\w-]+)['"]""")


def info(
    model: Annotated[
        Path | None,
        typer.Argument(help="A model that fit wrote.", metavar="MODEL", show_default=False),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Say what is in a model; without one, what is installed."""
    facts = _installed() if model is None else _model(model)
    if as_json:
        say_json(facts)
        return
    lines = _say_installed(facts) if model is None else _say_model(facts)
    width = max(len(name) for name, _ in lines) + 2
    for name, value in lines:
        typer.echo(f"{name:<{width}}{value}")


def _model(path: Path) -> dict[str, Any]:
    tree = Hierarchy.load(path)
    with np.load(path) as arrays:
        version = json.loads(str(arrays["meta"]))["version"]
    names = tree.feature_names
    return {
        "model": path,
        "format_version": version,
        **model_facts(tree),
        "feature_names": names,
    }


def _say_model(facts: dict[str, Any]) -> list[tuple[str, str]]:
    named = "" if facts["feature_names"] is None else ", with names"
    n_features = facts["n_features"]
    return [
        ("model", str(facts["model"])),
        ("format version", str(facts["format_version"])),
        ("rows", f"{facts['n_rows']:,}"),
        ("features", "not known" if n_features is None else f"{n_features:,}{named}"),
        ("groups", f"{facts['n_groups']:,}"),
        ("height", str(facts["height"])),
        ("features per split", f"{number(facts['median_features_per_split'])} (median)"),
        ("fidelity", f"{percent(facts['mean_fidelity'])} (mean share of rows a rule places)"),
        ("places new rows", "yes" if facts["places_new_rows"] else "no"),
    ]


def _installed() -> dict[str, Any]:
    return {
        "taxarbor": taxarbor.__version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
        "extras": {
            extra: {name: _version(name) for name in names}
            for extra, names in _extras().items()
        },
        "processors": int(joblib.cpu_count()),
    }


def _say_installed(facts: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [(name, str(facts[name])) for name in ("taxarbor", "python", *LIBRARIES)]
    for extra, libraries in facts["extras"].items():
        told = ", ".join(
            f"{name} {version or 'missing'}" for name, version in libraries.items()
        )
        is_there = all(libraries.values())
        hint = "" if is_there else f": pip install 'taxarbor[{extra}]'"
        lines.append((f"extra {extra}", told + hint))
    return [*lines, ("processors", str(facts["processors"]))]


def _extras() -> dict[str, list[str]]:
    """Return the libraries of each extra, as the installed package states them."""
    found: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("taxarbor") or ():
        match = EXTRA.match(line)
        if match and match["name"] != "taxarbor":
            found.setdefault(match["extra"], []).append(match["name"])
    return found


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
