"""A table of customers, a model of it, and ways to run the command."""

import csv
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from taxarbor import Taxarbor, Taxonomy
from taxarbor.cli._app import app
from taxarbor.tables import read_table

COLUMNS = ("age", "spend", "visits", "items")
CLASSES = ("student", "family", "senior", "business")


def write_customers(path, n_rows=120):
    rng = np.random.default_rng(0)
    kind = np.arange(n_rows) % 4
    means = np.array([[22, 15, 9, 2], [41, 52, 4, 9], [70, 33, 1, 4], [45, 95, 21, 30]])
    X = means[kind] + rng.normal(size=(n_rows, 4))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *COLUMNS, "city", "class"])
        for row, values in enumerate(X.round(3).tolist()):
            city = ("Bern", "Graz", "Lund")[row % 3]
            writer.writerow([f"C{row:03d}", *values, city, CLASSES[kind[row]]])


def are_kinds(labels):
    """Return whether clusters are the four kinds of rows, which come in turn."""
    return len({(label, row % 4) for row, label in enumerate(labels)}) == 4


def lines_of(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file, delimiter=delimiter)]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Make the files once."""
    folder = tmp_path_factory.mktemp("made")
    write_customers(folder / "customers.csv")
    X = read_table(folder / "customers.csv", columns=COLUMNS).X
    taxonomy = Taxarbor(6, encoder=None, random_state=0).fit(X).taxonomy_
    made_by = taxonomy.made_by | {"id_column": "id"}  # as the command knows it
    replace(taxonomy, made_by=made_by).save(folder / "model.taxarbor")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A folder with customers.csv and model.taxarbor, in which the command is run."""
    for path in made.iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def labels(folder):
    """The clusters of the customers in the model."""
    return Taxonomy.load(folder / "model.taxarbor").tree.labels.tolist()


@pytest.fixture
def edit(folder):
    """Write a copy of the customers, with some texts replaced by others."""

    def edit(name, *changes):
        text = (folder / "customers.csv").read_text(encoding="utf-8")
        for old, new in changes:
            text = text.replace(old, new)
        (folder / name).write_text(text, encoding="utf-8")

    return edit


@pytest.fixture
def run(folder):
    """Run the command in this process; it must end with such a code."""

    def run(*arguments, stdin=None, code=0):
        result = CliRunner().invoke(app, [str(part) for part in arguments], input=stdin)
        assert result.exit_code == code, (arguments, result.output)
        return result

    return run


@pytest.fixture
def run_json(run):
    """Run the command, which must succeed, and return the one document that it prints."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    def run_json(*arguments, stdin=None):
        result = run(*arguments, "--json", stdin=stdin)
        assert result.stderr == "", result.output
        assert result.stdout.count("\n") == 1
        return json.loads(result.stdout, parse_constant=refuse)

    return run_json


@pytest.fixture
def refuse(run, folder):
    """Run the command, which must refuse in one line with some words, and change no file."""

    def contents():
        return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def refuse(words, *arguments, stdin=None):
        before = contents()
        result = run(*arguments, stdin=stdin, code=2)
        assert result.stdout == "", result.output
        assert result.stderr.startswith("taxarbor: ")
        assert result.stderr.count("\n") == 1
        assert words in result.stderr
        assert before == contents()

    return refuse


@pytest.fixture
def terminal(monkeypatch):
    """Let rich take standard output for a terminal."""

    def terminal(width=100):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm-256color")

    return terminal


@pytest.fixture
def start(folder):
    """Start the command as a process."""

    def start(*arguments, **options):
        command = [sys.executable, "-m", "taxarbor", *map(str, arguments)]
        usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        # The process that runs the tests may ignore interrupts, which children inherit.
        usual["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        return subprocess.Popen(command, **(usual | options))

    return start
