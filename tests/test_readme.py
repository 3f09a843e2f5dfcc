"""The code of the README and the messages of the Makefile."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from taxarbor import HMMC, Taxarbor, Taxonomy, load_animals

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_blocks_of_python(elsewhere, capsys):
    """The printed tree equals the one in the README."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 110
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    shown = re.findall(r"```text\n(.*?)```", text, re.S)
    assert len(shown) == 1
    assert printed.startswith(shown[0])
    assert len(set(names["coarse"])) == 4
    assert Taxonomy.load(elsewhere / "animals.taxarbor").tree.n_leaves == 8
    page = (elsewhere / "animals.html").read_text("utf-8")
    assert "<title>Animals" in page
    assert "gives_milk" in page


def test_pictures_are_there():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages += sorted((ROOT / "docs" / "how_to").glob("*.md"))
    for page in pages:
        for name in re.findall(r"!\[.*?\]\((.*?)\)", page.read_text("utf-8")):
            assert (page.parent / name).is_file(), (page, name)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_missing_tools_are_named(elsewhere):
    shutil.copy(ROOT / "Makefile", elsewhere)
    for name in ("CMakeLists.txt", "pyproject.toml", "constraints.txt"):
        (elsewhere / name).touch()
    (elsewhere / "src" / "taxarbor").mkdir(parents=True)
    for setting, message in (
        ("PYTHON=no-such-python", "needs Python 3.11 or newer; 'no-such-python' was not found"),
        ("CXX=no-such-compiler", "needs a C++17 compiler; 'no-such-compiler' was not found"),
    ):
        done = subprocess.run(
            ["make", "demo", setting],
            capture_output=True,
            text=True,
            cwd=elsewhere,
            check=False,
        )
        assert done.returncode != 0
        assert message in done.stdout + done.stderr


def test_few_features_per_split():
    """For Taxarbor by default, and for HMMC with a larger alpha."""
    animals = load_animals()
    X = animals.X / animals.X.max(axis=0)
    for model in (Taxarbor(12, random_state=0), HMMC(12, alpha=0.1, random_state=0)):
        used = model.fit(X).taxonomy_.n_features_used
        assert np.median(used[used > 0]) <= 5
