"""Every block of code in the pages and every example is run, page by page."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("matplotlib")
import matplotlib as mpl
from typer.testing import CliRunner

from taxarbor.cli._app import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WRITTEN_BY_PROGRAMS = {"calibration", "defaults", "results", "rules", "scale", "speed"}
BUILT = {"_build", "auto_examples", "results"}
SKIPPED = {"cd", "git", "make", "pip"}
"""Commands of shell blocks that set up an environment, which the tests have."""
RUN = {"cat", "gzip", "head", "python", "sort", "taxarbor", "zcat"}
"""Commands that are run, alone or joined by pipes."""

FENCE = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.M | re.S)
ANY_FENCE = re.compile(r"^\s*```+\s*\{?(?:code-block\}\s*)?(?:python|sh|text)\b", re.M)

PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted(DOCS.rglob("*.md"))
        if path.stem not in WRITTEN_BY_PROGRAMS
        and not BUILT & set(path.relative_to(DOCS).parts)
    ),
]
LONG = {"command_line.md": pytest.mark.long}
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


class Block(NamedTuple):
    """A fenced block of a page, and the line where its code begins."""

    language: str
    code: str
    line: int


def blocks_of(text: str) -> list[Block]:
    """Return the blocks that are to be run, in order."""
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in FENCE.finditer(text)
    ]


def commands_of(block: str) -> list[str]:
    """Return the command lines of a shell block; a backslash at its end continues a line."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def run_command(line: str, folder: Path) -> None:
    words = shlex.split(line, comments=True)
    if words[0] in SKIPPED:
        return
    names = {name for before, name in pairwise(["|", *words]) if before == "|"}
    assert names <= RUN, f"neither in RUN nor in SKIPPED: {line}"
    if names == {"taxarbor"} and not set(words) & {"|", "<", ">"}:
        # In this process: a new one would take seconds to start.
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
        return
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    options = {"cwd": folder, "env": {**os.environ, "PATH": path, "NO_COLOR": "1"}}
    bash = ["bash", "-o", "pipefail", "-c", line]
    done = subprocess.run(bash, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder, draw nothing on a screen, and leave no figure open."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    mpl.use("Agg")
    yield tmp_path
    from matplotlib import pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=LONG.get(page.name, ()))
        for page in PAGES
    ],
)
def test_page(page, elsewhere, capsys):
    """Blocks of one page share their names and their folder.

    A block of text after one of Python is its output.
    """
    names: dict[str, object] = {"__name__": "page"}
    sys.modules["page"] = type(sys)("page")  # where dataclasses look up their own module
    output = None
    try:
        for block in blocks_of(page.read_text("utf-8")):
            if block.language == "python":
                # Line numbers of errors are those of the page.
                code = "\n" * (block.line - 1) + block.code
                capsys.readouterr()
                exec(compile(code, str(page), "exec"), names)
                output = capsys.readouterr().out
            elif block.language == "text":
                assert output is None or block.code == output
            else:
                output = None
                for line in commands_of(block.code):
                    run_command(line, elsewhere)
    finally:
        del sys.modules["page"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, elsewhere):
    from matplotlib import pyplot as plt

    runpy.run_path(str(example))
    assert plt.get_fignums(), "an example has a picture"
    assert not list(elsewhere.iterdir()), "an example leaves no files"


def test_there_are_pages_and_examples():
    """And none of the blocks is missed, for a fence that is indented or has other marks."""
    assert len(PAGES) > 10
    assert len(EXAMPLES) >= 5
    for page in PAGES:
        text = page.read_text("utf-8")
        assert len(ANY_FENCE.findall(text)) == len(blocks_of(text)), page


def test_commands():
    block = "# a comment\ntaxarbor fit data.csv \\\n  -k 8\n\npip install x  # later\n"
    assert commands_of(block) == ["taxarbor fit data.csv    -k 8", "pip install x  # later"]
    run_command("pip install x  # later", Path())
    for line in ("rm -rf x", "taxarbor show x | rm -rf x"):
        with pytest.raises(AssertionError, match="neither in RUN nor"):
            run_command(line, Path())
