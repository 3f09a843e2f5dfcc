"""Files that are written: odd names, full disks, links, owners, Ctrl-C."""

import csv
import io
import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from taxarbor import Taxonomy
from taxarbor._atomic_write import write_atomically
from tests.cli.conftest import lines_of

ODD = [
    *("a\rb", "\r", "a\nb", "a\r\nb", "\x85x", "\u2028", "\x0b", "\x0c", "\x1b[31mred", "\x00"),
    *("=1+1", "+1", "-1", "@x", "\tx", 'q"q', "a,b", " blank ", "'", "\u202e"),
]
"""Also what a spreadsheet takes for a formula: it is written as it is."""


@pytest.fixture
def odd(folder):
    """Write the customers with odd ids."""
    table = pd.read_csv(folder / "customers.csv")
    table["id"] = [ODD[row % len(ODD)] for row in range(len(table))]
    table.to_parquet(folder / "odd.parquet")
    return table["id"].tolist()


@pytest.mark.parametrize("end", [".csv", ".tsv", ".parquet"])
def test_odd_ids_read_back(run, folder, odd, end):
    name = f"labels{end}"
    run("predict", "model.taxarbor", "odd.parquet", "--id-column", "id", "-o", name)
    if end == ".parquet":
        assert pd.read_parquet(name)["id"].tolist() == odd
        return
    comma = "," if end == ".csv" else "\t"
    assert [line[0] for line in lines_of(folder / name, comma)] == ["id", *odd]
    back = pd.read_csv(name, sep=comma, dtype=str, keep_default_na=False)
    found = [text for text in back["id"] if "\0" not in text and text]
    assert found == [text for text in odd if "\0" not in text]
    assert len(back) == len(odd)


def test_exported_notes_read_back(run, folder):
    taxonomy = Taxonomy.load("model.taxarbor")
    is_leaf = map(taxonomy.tree.is_leaf, range(taxonomy.tree.n_nodes))
    notes = tuple("a\rb" if leaf else "" for leaf in is_leaf)
    replace(taxonomy, tree=replace(taxonomy.tree, notes=notes)).save("m")
    lines = [*csv.reader(io.StringIO(run("export", "m", "--to", "csv").stdout, newline=""))]
    assert [line[-1] for line in lines] == ["note", *notes]


def run_on_terminal(*arguments):
    """Run a command on a terminal, and return what that gets."""
    above, below = pty.openpty()
    command = [sys.executable, "-m", "taxarbor", *arguments]
    with subprocess.Popen(command, stdin=below, stdout=below, stderr=below) as process:
        os.close(below)
        output = b""
        while True:
            try:
                output += (part := os.read(above, 65536))
            except OSError:  # of Linux, once the other end is closed
                break
            if not part:
                break
    os.close(above)
    assert process.returncode == 0, output
    return output


def test_terminals_get_no_control_characters(run, start, odd, edit):
    command = ("predict", "model.taxarbor", "odd.parquet", "--id-column", "id")
    assert b"\x1b" not in run_on_terminal(*command)
    assert "\x1b[31mred" in start(*command).communicate()[0]
    edit("odd.csv", ("spend", "sp\x1b[31mend"))
    result = run("fit", "odd.csv", "-k", "2", "-o", "m\x1b[31m", "--labels", "l\x1b[31m")
    assert "\x1b" not in result.output + run("show", "m\x1b[31m").output
    assert "\x1b" not in run("predict", "m\x1b[31m", "odd.csv", "-o", "c\x1b[31m").output
    assert "\x1b" not in run("export", "m\x1b[31m", "-o", "\x1b[31m.dot").output


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("m", "fit customers.csv -k 6 -o m"),
        ("r.html", "report model.taxarbor customers.csv -o r.html"),
        ("l.parquet", "predict model.taxarbor customers.csv -o l.parquet"),
        ("t.json", "export model.taxarbor -o t.json"),
    ],
)
def test_a_full_disk_leaves_nothing(start, folder, name, command):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    before = {*folder.iterdir()}
    process = start(*command.split(), preexec_fn=limit)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (2, "")
    assert stderr == f"taxarbor: {name}: File too large\n"
    assert {*folder.iterdir()} == before


def test_full_standard_output_is_one_line(start):
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = start("show", "model.taxarbor", stdout=full)
    assert process.communicate()[1] == "taxarbor: No space left on device\n"
    assert process.returncode == 2


INTERRUPTED = """
import os, signal, sys
number = int(sys.argv.pop(1))
# The process of the tests may ignore it.
usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
signal.signal(number, usual)
from taxarbor import cli
os.fsync = lambda file: os.kill(os.getpid(), number)  # once the draft is written
sys.argv[0] = "taxarbor"
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_leave_no_draft(folder, name):
    number = signal.Signals[name]
    before = {*folder.iterdir()}
    report = ["report", "model.taxarbor", "customers.csv", "-o", "r.html"]
    command = [sys.executable, "-c", INTERRUPTED, str(int(number)), *report]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = "taxarbor: interrupted\n" if number == signal.SIGINT else ""
    assert (done.returncode, done.stderr) == (128 + number, words)
    assert {*folder.iterdir()} == before


@pytest.fixture
def target():
    """A file in a folder that all users may write to."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = Path(folder, "target")
        path.write_bytes(b"old")
        yield path


def test_a_read_only_file_is_not_replaced(target):
    target.chmod(0o444)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        with pytest.raises(PermissionError) as caught:
            write_atomically(target, lambda file: file.write(b"new"))
    finally:
        if is_root:
            os.seteuid(0)
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"old"
