"""The command, called and as a process."""

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

from taxarbor import cli
from taxarbor.bench import METHODS, PARTS, Progress, Store, _plan, _sweep
from taxarbor.bench._jobs import Job
from taxarbor.cli import _bench
from taxarbor.cli._app import app

mpl.use("Agg")

COMMANDS = (*PARTS, "all")
FEW = {"KM", "Ward", "HKM", "HKM-D", "HMMC", "HMMC-G", "HMMC-E", "HMMC-1"}


@pytest.fixture
def few_methods(monkeypatch):
    for name in set(METHODS) - FEW:
        monkeypatch.delitem(METHODS, name)
    for module in (_plan, _sweep):
        monkeypatch.setattr(module, "SWEPT", ("KM", "HMMC"))


@pytest.fixture
def data(tmp_path):
    """A folder with a small data set, without a tree."""
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    np.savez(folder / "some.npz", X=rng.normal(size=(40, 3)) + 5 * y[:, None], y=y)
    return folder


def invoke(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def start(*arguments, **options):
    command = [sys.executable, "-m", "taxarbor.bench", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


@pytest.mark.usefixtures("few_methods")
def test_results_a_page_and_figures_are_written(tmp_path):
    out = tmp_path / "out"
    told = invoke("tree", "--quick", "--out", out)
    assert told.exit_code == 0
    assert told.stdout == f"wrote {out / 'tree.md'}\n"
    assert told.stderr == ""  # no bar: this is no terminal
    assert "tree/tree.png" in (out / "tree.md").read_text(encoding="utf-8")
    assert len(Store(out / "results.csv").known()) == 9
    page = tmp_path / "else" / "page.md"
    again = invoke("tree", "--quick", "--out", out, "--report", page, "--json")
    assert again.exit_code == 0
    written = json.loads(again.stdout)["written"]
    assert written == [
        str(page),
        *(str(page.parent / f"page/tree.{s}") for s in ("png", "svg")),
    ]
    assert all(Path(path).stat().st_size for path in written)
    assert len(Store(out / "results.csv").known()) == 9


@pytest.mark.usefixtures("few_methods")
def test_the_options_arrive(tmp_path, data):
    out = tmp_path / "out"
    options = ["--data", data, "--scaling", "unit", "--seeds", 2, "--n-jobs", 1]
    told = invoke("sparsity", *options, "--out", out, "--report", tmp_path / "page")
    assert told.exit_code == 0
    assert told.stdout == f"wrote {tmp_path / 'page.md'}\n"  # the bare name is its folder's
    known = Store(out / "results.csv").known()
    assert {(job.dataset, job.scaling, job.max_rows) for job in known} == {("some", "unit", 0)}
    assert {job.seed for job in known} == {0, 1}
    assert "2 seeds" in (tmp_path / "page.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_its_parts(tmp_path, monkeypatch, command):
    """All but the page on the defaults, which has its own command."""
    asked = []

    def run(parts, *_, **__):
        asked.append(parts)
        raise ValueError("enough")

    monkeypatch.setattr(_bench, "run_experiment", run)
    assert invoke(command, "--out", tmp_path).exit_code == 2
    whole = ("table", "scalings", "sweep", "sparsity", "tree")
    assert asked == [whole if command == "all" else (command,)]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_bar_is_for_terminals(monkeypatch, capfd, is_terminal):
    for name in ("TTY_COMPATIBLE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    job = Job("[/b]some", "none", 0, "HMMC", "{}", 2, 2, 0)
    with _bench._bar() as observe:
        observe(Progress(0, 9, 0.0, None, ""))
        observe(Progress(3, 9, 0.5, job, "done"))
    told = capfd.readouterr()
    assert told.out == ""
    assert ("3/9" in told.err) == is_terminal
    assert ("HMMC on [/b]some" in told.err) == is_terminal
    assert is_terminal or told.err == ""


def refused(told, message):
    assert told.exit_code == 2
    assert told.stdout == ""
    assert told.stderr.startswith("taxarbor: ")
    assert told.stderr.count("\n") == 1
    assert message in told.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_data_is_one_line(tmp_path, command):
    out = tmp_path / "out"
    refused(invoke(command, "--data", tmp_path / "nowhere", "--out", out), "is not a folder")
    refused(invoke(command, "--data", tmp_path, "--out", out), "no data in")
    assert not out.exists()


def test_a_damaged_file_is_one_line(tmp_path, data):
    (data / "other.npz").write_bytes(b"hello")
    refused(invoke("table", "--data", data, "--out", tmp_path / "out"), "other.npz")
    (data / "other.npz").unlink()
    (data / "some.nwk").write_text("((a,\nb);", encoding="utf-8")
    refused(invoke("table", "--data", data, "--out", tmp_path / "out"), "some.nwk")


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, data):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    refused(invoke("table", "--data", data, "--out", tmp_path / "file"), "file")
    (tmp_path / "results.csv").write_text("mine", encoding="utf-8")
    refused(invoke("table", "--data", data, "--out", tmp_path), "not a results file")
    assert (tmp_path / "results.csv").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "options",
    [["--seeds", "0"], ["--n-jobs", "0"], ["--scaling", "some"], ["--time-limit", "0"]],
)
def test_options_have_bounds(tmp_path, options):
    told = invoke("table", *options, "--out", tmp_path / "out")
    assert told.exit_code == 2
    assert told.stdout == ""
    assert not (tmp_path / "out").exists()


def test_every_command_has_an_example():
    assert invoke().stderr or invoke().stdout
    for command in COMMANDS:
        told = invoke(command, "--help")
        assert told.exit_code == 0
        assert f"Example: taxarbor bench {command} --quick" in " ".join(told.stdout.split())
        assert "--json" in told.stdout


@pytest.fixture
def not_imported(monkeypatch):
    """As in a new process, the commands are still to be imported."""
    for name in ("_app", "_bench"):
        monkeypatch.delitem(sys.modules, f"taxarbor.cli.{name}")
        monkeypatch.delattr(cli, name)


@pytest.mark.usefixtures("not_imported")
@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_typer_there_is_a_hint(monkeypatch, missing):
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as told:
        cli.main()
    assert told.value.code == (
        "taxarbor's command line needs typer and rich: pip install 'taxarbor[cli]'"
    )


@pytest.mark.usefixtures("not_imported")
def test_another_missing_module_is_no_hint_about_typer(monkeypatch):
    monkeypatch.setitem(sys.modules, "taxarbor.bench", None)
    with pytest.raises(ModuleNotFoundError, match=r"taxarbor\.bench"):
        cli.main()


def test_without_pandas_there_is_a_hint(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    refused(invoke("tree", "--out", tmp_path), "pip install 'taxarbor[bench]'")


def test_help_as_a_process():
    script = Path(sys.executable).with_name("taxarbor")
    run = subprocess.run(
        [script, "bench", "--help"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0
    assert run.stderr == ""
    assert all(command in run.stdout for command in COMMANDS)


def test_as_a_process_on_small_data(tmp_path, data):
    """All methods and real workers; nothing but the result on standard output."""
    process = start("table", "--quick", "--data", data, "--out", tmp_path / "out")
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, "")
    assert stdout == f"wrote {tmp_path / 'out' / 'table.md'}\n"
    with (tmp_path / "out" / "results.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert {row["method"] for row in found} == set(METHODS)
    assert {row["status"] for row in found} == {"done"}


def group_is_running(number):
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("to_all", [True, False], ids=["from the keyboard", "kill -INT"])
def test_an_interrupt_keeps_results_and_leaves_no_process(tmp_path, to_all):
    out = tmp_path / "out"
    process = start("all", "--out", out, "--n-jobs", "2")
    results = out / "results.csv"
    give_up = time.monotonic() + 60.0
    while not results.exists() or results.read_bytes().count(b",zero_weights,") < 3:
        assert time.monotonic() < give_up
        assert process.poll() is None
        time.sleep(0.02)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stdout == ""
    assert stderr == (
        f"taxarbor: interrupted; what is done is kept in {out}: run it again to go on\n"
    )
    assert len(Store(results).known()) >= 3
    give_up = time.monotonic() + 10.0
    while group_is_running(process.pid) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert not group_is_running(process.pid)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_runs(tmp_path, command):
    told = " ".join(invoke(command, "--help").stdout.split())
    (example,) = re.findall(r"Example: taxarbor (bench [\w -]+?)(?= [^\w\s-]|$)", told)
    script = Path(sys.executable).with_name("taxarbor")
    run = subprocess.run(
        [script, *shlex.split(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (run.returncode, run.stderr) == (0, "")
    page = "results.md" if command == "all" else f"{command}.md"
    assert run.stdout == f"wrote results/{page}\n"
    assert (tmp_path / "results" / page).stat().st_size > 1000
