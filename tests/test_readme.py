"""What the README and the demo say, done."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from taxarbor import Hierarchy, Taxarbor, load_animals

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_eight_lines(elsewhere, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    assert len(blocks[0].splitlines()) == 8
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert "gives_milk" in capsys.readouterr().out
    assert len(set(names["coarse"])) == 4
    assert Hierarchy.load(elsewhere / "animals.taxarbor").n_leaves == 12
    assert "platypus" in (elsewhere / "animals.html").read_text("utf-8")
    assert names["tree"].n_leaves == 12


def test_pictures_are_there():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        for name in re.findall(r"!\[.*?\]\((.*?)\)", page.read_text("utf-8")):
            assert (page.parent / name).is_file(), (page, name)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("PYTHON=no-such-python", "needs Python 3.11 or newer; 'no-such-python' was not found"),
        ("CXX=no-such-compiler", "needs a C++17 compiler; 'no-such-compiler' was not found"),
    ],
)
def test_what_is_missing_is_said(elsewhere, setting, told):
    shutil.copy(ROOT / "Makefile", elsewhere)
    for name in ("CMakeLists.txt", "pyproject.toml", "constraints.txt"):
        (elsewhere / name).touch()
    (elsewhere / "src" / "taxarbor").mkdir(parents=True)
    done = subprocess.run(
        ["make", "demo", setting], capture_output=True, text=True, cwd=elsewhere, check=False
    )
    assert done.returncode != 0
    assert told in done.stdout + done.stderr


@pytest.mark.parametrize("refine", [True, False])
def test_a_larger_alpha_leaves_a_handful_of_features(refine):
    animals = load_animals()
    X = animals.X / animals.X.max(axis=0)
    used = (
        Taxarbor(12, refine=refine, alpha=0.1, random_state=0).fit(X).hierarchy_.n_features_used
    )
    assert np.median(used[used > 0]) <= 5
