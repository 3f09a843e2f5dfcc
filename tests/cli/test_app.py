"""All commands together: examples, help, completion, pipes."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import taxarbor
from taxarbor import cli
from taxarbor.cli._app import app
from taxarbor.cli._options import FileFormat
from taxarbor.data._files import READERS

# The examples of bench take a minute or more; they are run in test_bench.py.
COMMANDS = [name for name in typer.main.get_command(app).commands if name != "bench"]
SCRIPT = Path(sys.executable).with_name("taxarbor")


def examples_of(name):
    command = typer.main.get_command(app).commands[name]
    lines = (command.epilog or "").splitlines()
    return [line.removeprefix("Example: ") for line in lines if line.startswith("Example: ")]


def test_there_are_commands():
    named = "fit predict show explain cut export score report demo info"
    assert set(COMMANDS) == set(named.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example(run, name):
    told = run(name, "--help")
    assert told.exit_code == 0
    (example,) = examples_of(name)
    assert example.startswith(f"taxarbor {name} ")
    assert " ".join(told.stdout.split()).endswith(f"Example: {example}")
    assert "--json" in told.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_runs(run, folder, name):
    if name == "fit":
        (folder / "model.taxarbor").unlink()
    (example,) = examples_of(name)
    told = run(*shlex.split(example)[1:])
    assert told.exit_code == 0, told.output
    assert told.stdout


def test_the_example_of_all(run):
    assert "Example: taxarbor demo" in run("--help").stdout


def test_version(run):
    assert run("--version").stdout == f"taxarbor {taxarbor.__version__}\n"


def test_without_arguments_there_is_help(run):
    told = run()
    assert "fit" in told.stdout + told.stderr
    assert "See taxarbor" not in told.output
    assert "See taxarbor" not in run("bench").output


def test_the_formats_are_those_that_can_be_read():
    assert get_args(FileFormat) == tuple(READERS)


@pytest.mark.parametrize("command", [[sys.executable, "-m", "taxarbor"], [SCRIPT]])
def test_as_a_process(folder, command):
    done = subprocess.run(
        [*command, "cut", "model.taxarbor", "-k", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("row,cluster\n0,")


@pytest.mark.parametrize("command", ["predict model.taxarbor large.csv", "show model.taxarbor"])
def test_a_closed_pipe_is_no_error(folder, command):
    X = np.random.default_rng(0).normal(size=(30_000, 4))
    header = "age,spend,visits,items"
    np.savetxt(folder / "large.csv", X, delimiter=",", header=header, comments="")
    line = f"{shlex.quote(str(SCRIPT))} {command} | head -n 1; sleep 0.1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_a_pipe_that_was_closed_before(folder):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        command = [SCRIPT, "show", "model.taxarbor"]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""


def test_a_poor_encoding_is_no_error(folder):
    text = (folder / "customers.csv").read_text(encoding="utf-8")
    (folder / "odd.csv").write_text(text.replace("spend", "身長"), encoding="utf-8")
    done = subprocess.run(
        [SCRIPT, "fit", "odd.csv", "-k", "2", "-o", "m", "--columns", "身長"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert rb"\u8eab\u9577" in done.stdout


def complete(*words):
    """Ask as bash does, but in this process."""
    asked = {"COMP_WORDS": " ".join(["taxarbor", *words]), "COMP_CWORD": str(len(words))}
    env = {"_TAXARBOR_COMPLETE": "complete_bash"} | asked
    told = CliRunner().invoke(app, [], env=env, prog_name="taxarbor")
    assert told.exit_code == 0
    return told.stdout.split()


def test_completion():
    assert set(complete("")) == {*COMMANDS, "bench"}
    assert complete("export", "m", "--to", "new") == ["newick"]
    assert complete("fit", "x", "--format", "p") == ["parquet"]
    assert complete("demo", "--data", "") == ["animals", "digits"]
    assert "--label-column" in complete("fit", "--l")
    # Nothing of our own: bash then completes names of files.
    assert complete("fit", "cust") == complete("fit", "x", "-o", "mod") == []


def test_the_completion_script():
    shell = ["bash", "-c", f"{shlex.quote(str(SCRIPT))} --show-completion; true"]
    shown = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert "complete -o default -F _taxarbor_completion taxarbor" in shown.stdout


def test_what_is_no_bad_input_is_a_traceback(run, monkeypatch):
    monkeypatch.setattr("taxarbor.cli._show.say_tree", None)
    assert isinstance(run("show", "model.taxarbor").exception, TypeError)


def test_a_missing_module_of_our_own_is_a_traceback(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "taxarbor.report", None)
    assert isinstance(run("demo").exception, ModuleNotFoundError)


def test_an_interrupt_is_one_line(run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("taxarbor.cli._show.say_tree", interrupt)
    told = run("show", "model.taxarbor")
    assert (told.exit_code, told.stdout) == (130, "")
    assert told.stderr == "taxarbor: interrupted\n"


def test_an_interrupt_while_importing(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "taxarbor.cli._app")
    monkeypatch.delattr(cli, "_app")
    monkeypatch.setattr("builtins.__import__", interrupt)
    with pytest.raises(SystemExit) as told:
        cli.main()
    assert told.value.code == 130


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["fit", "--colour"], "taxarbor: No such option: --colour"),
        (["fit"], "taxarbor: Missing"),
        (["fit", "a.csv", "-o", "m", "-k", "0"], "taxarbor: Invalid value for"),
        (["grow"], "taxarbor: No such command 'grow'"),
        (["bench", "tabel"], "taxarbor: No such command 'tabel'"),
    ],
)
def test_what_cannot_be_parsed_is_told_in_one_line(typed, told):
    done = subprocess.run(
        [sys.executable, "-m", "taxarbor", *typed], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1
