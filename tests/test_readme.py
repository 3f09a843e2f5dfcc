"""The code of the README and the messages of the Makefile."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from taxarbor import HMMC, Taxarbor, load_animals

ROOT = Path(__file__).resolve().parents[1]


def test_blocks_of_python(tmp_path, monkeypatch, capsys):
    """The printed tree equals the one in the README."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 110
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, "README.md", "exec"), names)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.S)
    assert capsys.readouterr().out.startswith(shown)


def test_pictures_are_there():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages += sorted((ROOT / "docs" / "how_to").glob("*.md"))
    for page in pages:
        for name in re.findall(r"!\[.*?\]\((.*?)\)", page.read_text("utf-8")):
            assert (page.parent / name).is_file(), (page, name)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_missing_tools_are_named(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("CMakeLists.txt", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    (tmp_path / "src" / "taxarbor").mkdir(parents=True)
    for setting, message in (
        ("PYTHON=no-such-python", "needs Python 3.11 or newer; 'no-such-python' was not found"),
        ("CXX=no-such-compiler", "needs a C++17 compiler; 'no-such-compiler' was not found"),
    ):
        make = ["make", "demo", setting]
        done = subprocess.run(make, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode != 0
        assert message in done.stdout + done.stderr


def test_few_features_per_split():
    """For Taxarbor by default, and for HMMC with a larger alpha."""
    animals = load_animals()
    X = animals.X / animals.X.max(axis=0)
    for model in (Taxarbor(12, random_state=0), HMMC(12, alpha=0.1, random_state=0)):
        used = model.fit(X).taxonomy_.n_features_used
        assert np.median(used[used > 0]) <= 5
