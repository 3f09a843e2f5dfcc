"""What holds for the package as a whole; import-linter checks the layers."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import taxarbor

SOURCE = Path(taxarbor.__file__).parent
SOURCES = sorted(
    path for pattern in ("*.py", "*.pyi", "*.cpp", "*.hpp") for path in SOURCE.rglob(pattern)
)
FOUND = pkgutil.walk_packages([str(SOURCE)], "taxarbor.")
MODULES = ["taxarbor", *sorted(found.name for found in FOUND)]
PACKAGES = [name for name in MODULES if (SOURCE.parent / name.replace(".", "/")).is_dir()]
PRIVATE = {
    "taxarbor.sources._matrices",
    "taxarbor.sources._parquet",
    "taxarbor.split._alternate",
    "taxarbor.taxonomy._phrases",
    "taxarbor.taxonomy._reasons",
    "taxarbor.taxonomy._text",
}
"""Modules with an underscore that other packages import from: no more are added."""
HEAVY = ["dask", "matplotlib", "networkx", "pandas", "polars", "sklearn.cluster", "torch"]


def test_packages_and_modules_list_what_they_have():
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__ or name == "taxarbor.native._kernels", name
        listed = getattr(module, "__all__", ())
        assert len(set(listed)) == len(listed), name
        assert not [public for public in listed if not hasattr(module, public)], name
    for name in PACKAGES:
        listed = importlib.import_module(name).__all__
        assert listed, name
        assert not [public for public in listed if public.startswith("_")], name


def test_packages_import_from_the_faces_of_others():
    """CONTRIBUTING.md has the rule: a module with an underscore is its package's own."""
    private = {name for name in MODULES if re.fullmatch(r"taxarbor\.\w+\._\w+", name)}
    found = set()
    for path in SOURCES:
        package = path.relative_to(SOURCE).parts[0]
        for node in ast.walk(ast.parse(path.read_text())) if path.suffix == ".py" else ():
            if isinstance(node, ast.ImportFrom):
                modules = {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
                found |= {name for name in modules & private if name.split(".")[1] != package}
    assert "taxarbor.taxonomy._reasons" in found
    assert found <= PRIVATE


def test_importing_loads_nothing_heavy():
    """Beyond what scikit-learn loads on its own, which is pandas where there is one."""
    code = (
        "import sys, joblib, sklearn, scipy.sparse; before = set(sys.modules); "
        "import taxarbor.estimators, taxarbor.plot; print(*set(sys.modules) - before)"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert {"taxarbor.estimators", "taxarbor.native._kernels"} <= loaded
    assert not [name for name in HEAVY if name in loaded]


def test_importing_prints_nothing():
    command = [sys.executable, "-W", "error", "-c", "import taxarbor"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_there_are_sources():
    assert {".py", ".cpp"} <= {path.suffix for path in SOURCES}
    assert not [p.name for p in SOURCES if p.stem in {"utils", "misc", "helpers"}]
