"""All commands together: examples, help, completion, pipes, exit codes."""

import os
import platform
import re
import shlex
import subprocess
import sys
from typing import get_args
from unittest.mock import Mock

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import taxarbor
from taxarbor.cli._app import app
from taxarbor.cli._shell import FileFormat
from taxarbor.tables import read_table

COMMANDS = list(typer.main.get_command(app).commands)
RUN = [sys.executable, "-m", "taxarbor"]
SHELL = shlex.join(RUN)


def run_process(*command, check=False, env=None):
    return subprocess.run(command, capture_output=True, text=True, check=check, env=env)


def example_of(name):
    epilog = typer.main.get_command(app).commands[name].epilog
    assert epilog.startswith(f"Example: taxarbor {name} ")
    return epilog.removeprefix("Example: ")


def test_help_ends_with_an_example(run):
    assert " ".join(COMMANDS) == "fit show predict explain report export assess demo"
    assert "Example: taxarbor demo" in run("--help").stdout
    for name in COMMANDS:
        result = run(name, "--help")
        assert " ".join(result.stdout.split()).endswith(f"Example: {example_of(name)}")
        assert "--json" in result.stdout
        assert re.search(r"--(json|force|open|proba)\s+<", result.stdout) is None


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_run(run, folder, name):
    if name == "fit":
        (folder / "model.taxarbor").unlink()
    assert run(*shlex.split(example_of(name))[1:]).stdout


def test_version_formats_and_help_without_arguments(run, folder):
    versions = f"taxarbor {taxarbor.__version__}, Python {platform.python_version()}"
    assert run("--version").stdout == f"{versions}\n"
    with pytest.raises(ValueError, match="csv") as caught:
        read_table(folder / "customers.csv", format="xls")
    assert all(format in str(caught.value) for format in get_args(FileFormat))
    result = CliRunner().invoke(app, [])
    assert "fit" in result.stdout + result.stderr
    assert "See taxarbor" not in result.output


def test_closed_pipes_are_no_errors(folder):
    X = np.random.default_rng(0).normal(size=(30_000, 4))
    header = "age,spend,visits,items"
    np.savetxt(folder / "large.csv", X, delimiter=",", header=header, comments="")
    for command in ("predict model.taxarbor large.csv", "show model.taxarbor"):
        done = run_process("bash", "-c", f"{SHELL} {command} | head -n 1; sleep 0.1")
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1
    done = run_process("bash", "-c", f"{SHELL} predict model.taxarbor customers.csv >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_encodings_without_letters_are_no_errors(edit):
    edit("odd.csv", ("spend", "身長"))
    command = [*RUN, "fit", "odd.csv", "-k", "2", "-o", "m", "--columns", "身長"]
    env = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert rb"\u8eab\u9577" in done.stdout


def complete(*words):
    """Ask for completion as bash does, but in this process."""
    env = {"COMP_WORDS": " ".join(["taxarbor", *words]), "COMP_CWORD": str(len(words))}
    env["_TAXARBOR_COMPLETE"] = "complete_bash"
    result = CliRunner().invoke(app, [], env=env, prog_name="taxarbor")
    assert result.exit_code == 0
    return result.stdout.split()


def test_completion():
    assert set(complete("")) == set(COMMANDS)
    assert complete("export", "m", "--to", "new") == ["newick"]
    assert complete("fit", "x", "--format", "p") == ["parquet"]
    assert "--label-column" in complete("fit", "--l")
    # Nothing: bash then completes names of files.
    assert complete("fit", "cust") == complete("fit", "x", "-o", "mod") == []


HEAVY = ("numpy", "scipy", "sklearn", "pandas", "taxarbor.taxonomy")
LOADED = """
import atexit, sys
from taxarbor.cli import main
atexit.register(lambda: print(*sys.modules, sep="\\n", file=sys.stderr))
sys.argv = ["taxarbor", *sys.argv[1:]]
main()
"""


def test_help_and_completion_load_nothing_heavy(folder):
    """They take less than half a second; scikit-learn takes most of one to load."""
    words = {"COMP_WORDS": "taxarbor fit --m", "COMP_CWORD": "2"}
    completing = os.environ | {"_TAXARBOR_COMPLETE": "complete_bash"} | words
    for arguments, env in [(["--version"], None), (["fit", "--help"], None), ([], completing)]:
        done = run_process(sys.executable, "-c", LOADED, *arguments, env=env)
        assert done.returncode == 0
        assert done.stdout
        loaded = set(done.stderr.splitlines())
        assert "taxarbor.cli._app" in loaded
        assert not [name for name in HEAVY if name in loaded], arguments


def test_the_library_is_loaded_late_and_whole():
    code = "import sys, taxarbor; print(*sys.modules); "
    code += "assert set(taxarbor.__all__) <= set(dir(taxarbor)); "
    code += "assert taxarbor.taxonomy.Taxonomy is taxarbor.Taxonomy; "
    code += "from taxarbor import *; assert HMMC.__name__ == 'HMMC' and load_animals"
    loaded = run_process(sys.executable, "-c", code, check=True).stdout.split()
    assert not [name for name in (*HEAVY, "typer", "rich") if name in loaded]
    with pytest.raises(AttributeError, match="nothing"):
        taxarbor.nothing  # noqa: B018


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_missing_libraries_are_one_line(library):
    code = f"import sys; sys.modules[{library!r}] = None; "
    code += "sys.argv = ['taxarbor', 'show', 'm']; from taxarbor.cli import main; main()"
    done = run_process(sys.executable, "-c", code)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install" in done.stderr


LOAD, PARSE = "taxarbor.Taxonomy.load", "taxarbor.cli._shell.Commands.parse_args"


@pytest.mark.parametrize(
    ("place", "error", "code", "line"),
    [
        (LOAD, ValueError, 1, ""),  # a bug, with its traceback
        (LOAD, KeyError, 1, ""),
        (LOAD, MemoryError, 2, "taxarbor: not enough memory"),
        (LOAD, KeyboardInterrupt, 130, "taxarbor: interrupted"),
        (PARSE, KeyboardInterrupt, 130, "taxarbor: interrupted"),
    ],
)
def test_only_bugs_are_tracebacks(run, monkeypatch, place, error, code, line):
    monkeypatch.setattr(place, Mock(side_effect=error))
    result = run("show", "model.taxarbor", code=code)
    assert result.stdout == ""
    assert (type(result.exception) is error) == (code == 1)
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == bool(line)


def test_arguments_that_cannot_be_parsed_are_one_line(refuse):
    for words, arguments in (
        ("--colour", ["fit", "--colour"]),
        ("DATA", ["fit"]),
        *(("--seed", ["fit", "a.csv", "-o", "m", "--seed", x]) for x in ("x", -1, 2**32)),
        ("--metric", ["fit", "a.csv", "-o", "m", "--metric", "x"]),
        ("--format", ["fit", "a.csv", "-o", "m", "--format", "xls"]),
        ("--clusters", ["show", "model.taxarbor", "--clusters", 0]),
        ("'bench'", ["bench"]),
    ):
        refuse(words, *arguments)


def test_demo(run, run_json, refuse, folder):
    result = run("demo")
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Animals: 206 rows, 85 columns")
    assert any("not gives_milk" in line for line in lines)
    assert any("blue whale, dolphin" in line for line in lines)
    assert any(line.startswith("dendrogram purity") for line in lines)
    assert (folder / "demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    refuse("demo.html", "demo")
    document = run_json("demo", "--force")
    assert (document["n_rows"], document["report"]) == (206, "demo.html")
