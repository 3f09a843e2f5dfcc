"""All commands together: examples, help, completion, pipes."""

import math
import os
import platform
import shlex
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import taxarbor
from taxarbor._errors import counted
from taxarbor._format import format_number
from taxarbor.cli._app import app
from taxarbor.cli._options import FileFormat
from taxarbor.tables._files import READERS

COMMANDS = list(typer.main.get_command(app).commands)
RUN = [sys.executable, "-m", "taxarbor"]
SHELL = shlex.join(RUN)


def examples_of(name):
    command = typer.main.get_command(app).commands[name]
    lines = (command.epilog or "").splitlines()
    return [line.removeprefix("Example: ") for line in lines if line.startswith("Example: ")]


def test_help_ends_with_an_example(run):
    named = "fit show predict explain report export assess demo"
    assert set(COMMANDS) == set(named.split())
    assert "Example: taxarbor demo" in run("--help").stdout
    for name in COMMANDS:
        told = run(name, "--help")
        assert told.exit_code == 0
        (example,) = examples_of(name)
        assert example.startswith(f"taxarbor {name} ")
        assert " ".join(told.stdout.split()).endswith(f"Example: {example}")
        assert "--json" in told.stdout
        assert "group" not in told.stdout.replace("group+exclusive|group|", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_runs(run, folder, name):
    if name == "fit":
        (folder / "model.taxarbor").unlink()
    (example,) = examples_of(name)
    told = run(*shlex.split(example)[1:])
    assert told.exit_code == 0, told.output
    assert told.stdout


def test_version_formats_and_help_without_arguments(run):
    versions = f"taxarbor {taxarbor.__version__}, Python {platform.python_version()}"
    assert run("--version").stdout == f"{versions}\n"
    assert get_args(FileFormat) == tuple(READERS)
    told = run()
    assert "fit" in told.stdout + told.stderr
    assert "See taxarbor" not in told.output


def test_as_a_process(start):
    stdout, stderr = (
        process := start("predict", "model.taxarbor", "customers.csv")
    ).communicate()
    assert (process.returncode, stderr) == (0, "")
    assert stdout.startswith("id,cluster\nC000,")


def test_a_closed_pipe_is_no_error(folder):
    X = np.random.default_rng(0).normal(size=(30_000, 4))
    header = "age,spend,visits,items"
    np.savetxt(folder / "large.csv", X, delimiter=",", header=header, comments="")
    for command in ("predict model.taxarbor large.csv", "show model.taxarbor"):
        line = f"{SHELL} {command} | head -n 1; sleep 0.1"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        command = [*RUN, "show", "model.taxarbor"]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""


def test_a_poor_encoding_is_no_error(edited):
    edited("odd.csv", ("spend", "身長"))
    command = [*RUN, "fit", "odd.csv", "-k", "2", "-o", "m", "--columns", "身長"]
    env = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, capture_output=True, env=env, check=False)
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
    assert set(complete("")) == set(COMMANDS)
    assert complete("export", "m", "--to", "new") == ["newick"]
    assert complete("fit", "x", "--format", "p") == ["parquet"]
    assert complete("fit", "x", "--method", "h") == ["hmmc"]
    assert complete("demo", "--data", "") == ["animals", "digits"]
    assert "--label-column" in complete("fit", "--l")
    # Nothing of our own: bash then completes names of files.
    assert complete("fit", "cust") == complete("fit", "x", "-o", "mod") == []
    # Typer asks which shell it is in by the process above it.
    shell = ["bash", "-c", f"{SHELL} --show-completion; true"]
    shown = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert "complete -o default -F " in shown.stdout


HEAVY = ("numpy", "scipy", "sklearn", "pandas", "taxarbor.taxonomy")
LOADED = """
import atexit, sys
from taxarbor.cli import main
atexit.register(lambda: print(*sys.modules, sep="\\n", file=sys.stderr))
sys.argv = ["taxarbor", *sys.argv[1:]]
main()
"""


def test_help_and_completion_load_nothing_heavy(folder):
    """They answer within half a second; most of one went into loading scikit-learn."""
    asked = {"COMP_WORDS": "taxarbor fit --m", "COMP_CWORD": "2"}
    completing = os.environ | {"_TAXARBOR_COMPLETE": "complete_bash"} | asked
    cases = [(["--version"], None), (["--help"], None), ([], completing)]
    cases += [([name, "--help"], None) for name in ("fit", "show")]
    for arguments, env in cases:
        command = [sys.executable, "-c", LOADED, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
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
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in (*HEAVY, "typer", "rich") if name in loaded]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        taxarbor.nothing  # noqa: B018


def test_without_typer_there_is_one_line():
    for library in ("typer", "rich"):
        code = f"import sys; sys.modules[{library!r}] = None; "
        code += "sys.argv = ['taxarbor', 'show', 'm']; "
        code += "from taxarbor.cli import main; main()"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.endswith(("pip install typer rich\n", "pip install rich\n"))


def test_our_own_mistakes_are_tracebacks_and_an_interrupt_is_one_line(run, monkeypatch):
    """Also mistakes that look like bad input."""
    for error in (TypeError, ValueError, KeyError, KeyboardInterrupt):

        def fail(*_, error=error, **__):
            raise error("ours")

        monkeypatch.setattr("taxarbor.cli._reading.load_model", fail)
        told = run("show", "model.taxarbor")
        if error is KeyboardInterrupt:
            assert (told.exit_code, told.stdout) == (130, "")
            assert told.stderr == "taxarbor: interrupted\n"
        else:
            assert (type(told.exception), told.exit_code) == (error, 1)
    monkeypatch.setitem(sys.modules, "taxarbor.report", None)
    assert isinstance(run("demo").exception, ModuleNotFoundError)


def test_an_interrupt_while_arguments_are_parsed_is_one_line(run, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("taxarbor.cli._shell.Commands.parse_args", fail)
    result = run("show", "model.taxarbor")
    assert (result.exit_code, result.stderr.strip()) == (130, "taxarbor: interrupted")


def test_what_cannot_be_parsed_is_told_in_one_line():
    for typed, told in (
        (["fit", "--colour"], "taxarbor: No such option"),
        (["fit"], "taxarbor: Missing"),
        (["fit", "a.csv", "-o", "m", "--seed", "x"], "taxarbor: Invalid value for"),
        (["fit", "a.csv", "-o", "m", "--method", "x"], "taxarbor: Invalid value for"),
        (["bench"], "taxarbor: No such command 'bench'"),
    ):
        done = subprocess.run([*RUN, *typed], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(told)
        assert done.stderr.count("\n") == 1


def test_demo_of_animals(run, folder):
    told = run("demo")
    assert (told.exit_code, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[0].startswith("206 animals, 85 attributes, no labels: 12 clusters in ")
    assert any("not gives_milk" in line for line in lines)
    assert any("blue whale, dolphin" in line for line in lines)
    for measure in ("adjusted shortest path", "adjusted path sharing", "dendrogram purity"):
        assert any(line.startswith(measure) for line in lines)
    assert lines[-1] == "The same to look at: demo.html"
    assert (folder / "demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_demo_of_digits_in_json(run_json, folder):
    told = run_json("demo", "--data", "digits", "-o", "digits.html")
    assert (told["n_rows"], told["n_clusters"], told["report"]) == (1797, 12, "digits.html")
    assert told["scores"]["adjusted_rand"] > 0.5
    assert "data:image/png" in (folder / "digits.html").read_text(encoding="utf-8")


def test_a_demo_overwrites_nothing(refused, run, folder):
    (folder / "demo.html").write_text("mine", encoding="utf-8")
    refused("demo.html is there already", "demo")
    assert run("demo", "--force").exit_code == 0
    assert (folder / "demo.html").read_text(encoding="utf-8") != "mine"


def test_numbers_as_people_write_them():
    for value, told in (
        *((17592.3, "17,590"), (-17592.3, "-17,590"), (123456789.0, "123.5 million")),
        *((999_960.0, "1 million"), (9.9996, "10"), (3.14159, "3.142"), (0.5, "0.5")),
        *((0.00012345, "0.0001234"), (0.0, "0"), (1200.0, "1200"), (2.5e9, "2.5 billion")),
        *((0.00002, "2e-05"), (math.nan, "-"), (math.inf, "inf")),
    ):
        assert format_number(value) == told
    assert counted(1, "row") == "1 row"
    assert counted(1200, "row") == "1,200 rows"
    assert counted(1, "class", "classes") == "1 class"
    assert counted(2, "class", "classes") == "2 classes"
