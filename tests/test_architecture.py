"""What holds for the package as a whole; import-linter checks the layers."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import taxarbor

SOURCE = Path(taxarbor.__file__).parent
SOURCES = sorted(
    path for pattern in ("*.py", "*.pyi", "*.cpp", "*.hpp") for path in SOURCE.rglob(pattern)
)
MODULES = [
    "taxarbor",
    *sorted(found.name for found in pkgutil.walk_packages([str(SOURCE)], "taxarbor.")),
]
PACKAGES = [name for name in MODULES if (SOURCE.parent / name.replace(".", "/")).is_dir()]
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


def test_importing_loads_nothing_heavy():
    """Beyond what scikit-learn loads on its own, which is pandas where there is one."""
    code = (
        "import sys, joblib, sklearn, scipy.sparse; before = set(sys.modules); "
        "import taxarbor; print(*set(sys.modules) - before)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert "taxarbor" in loaded
    assert not [name for name in HEAVY if name in loaded]


def test_importing_prints_nothing():
    command = [sys.executable, "-W", "error", "-c", "import taxarbor"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_there_are_sources():
    suffixes = {path.suffix for path in SOURCES}
    assert {".py", ".cpp"} <= suffixes
    assert not [p.name for p in SOURCES if p.stem in {"utils", "misc", "helpers"}]
