"""The command, called and as a process."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments import __main__ as command
from experiments.methods import METHODS
from experiments.plan import plan_sparsity
from experiments.run import Progress, Store

ROOT = Path(__file__).parents[2]
HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
CALL = HEARS + "import sys; from experiments.__main__ import main; sys.exit(main())"
"""Where whoever runs the tests ignores Ctrl-C, so would the process."""


@pytest.fixture
def data(tmp_path, made):
    folder = tmp_path / "data"
    folder.mkdir()
    return made.data(folder, "some")


def call(*arguments):
    return command.main([str(one) for one in arguments])


def start(*arguments):
    path = os.pathsep.join(one for one in [str(ROOT), *sys.path] if one)
    return subprocess.Popen(
        [sys.executable, "-c", CALL, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg"},
    )


def test_the_options_arrive(tmp_path, data, capsys, monkeypatch):
    def write(store, setup, page):
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"{len(store.known())} of {setup.n_seeds} seeds", encoding="utf-8")
        return [page]

    monkeypatch.setitem(command.PAGES, "results", (plan_sparsity, write))
    out = tmp_path / "out"
    options = ["--data", data, "--seeds", 2, "--n-jobs", 2, "--out", out, "--quick"]
    assert call("results", *options) == 0
    told = capsys.readouterr()
    assert told.out == f"wrote {out / 'results.md'}\n"
    assert told.err == ""  # no progress: this is no terminal
    known = Store(out / "results.jsonl").known()
    assert {(job.dataset, job.max_rows) for job in known} == {("some", 1000)}
    assert {job.seed for job in known} == {0, 1}
    assert (out / "results.md").read_text(encoding="utf-8") == "8 of 2 seeds"
    page = tmp_path / "else" / "page"
    assert call("results", *options, "--report", page) == 0
    assert capsys.readouterr().out == f"wrote {page}.md\n"  # the bare name is its folder's
    assert Store(out / "results.jsonl").known() == known


def test_bad_places_are_one_line(tmp_path, data, capsys):
    out = tmp_path / "out"
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "results.jsonl").write_text("mine\n", encoding="utf-8")
    for page in ("results", "defaults"):
        for options, message in (
            (["--data", tmp_path / "nowhere", "--out", out], "is not a folder"),
            (["--data", tmp_path, "--out", out], "no data in"),
            (["--data", data, "--out", tmp_path / "file"], "is a file"),
            (["--data", data, "--out", tmp_path], "not a results file"),
        ):
            assert call(page, *options) == 2
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err.startswith("experiments: ")
            assert told.err.count("\n") == 1
            assert message in told.err
    assert not out.exists()
    assert (tmp_path / "results.jsonl").read_text(encoding="utf-8") == "mine\n"


def test_options_have_bounds(capsys):
    for wrong in (
        ["results", "--seeds", "0"],
        ["results", "--n-jobs", "0"],
        ["results", "--time-limit", "x"],
        ["tabel"],
        [],
    ):
        with pytest.raises(SystemExit) as ended:
            call(*wrong)
        assert ended.value.code == 2
        assert capsys.readouterr().out == ""


def test_progress_is_for_terminals(monkeypatch, made):
    for is_terminal in (True, False):
        told = io.StringIO()
        told.isatty = lambda is_terminal=is_terminal: is_terminal
        monkeypatch.setattr(sys, "stderr", told)
        command._show(Progress(0, 9, 0.0))
        command._show(Progress(3, 9, 0.5, made.job(dataset="some"), "done"))
        assert ("3/9 fits, 50 %  HMMC on some" in told.getvalue()) == is_terminal
        assert is_terminal or told.getvalue() == ""


@pytest.mark.long
def test_as_a_process_on_small_data(tmp_path, data):
    """All methods and real workers; nothing but the result on standard output."""
    process = start("results", "--quick", "--data", data, "--out", tmp_path / "out")
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stderr) == (0, "")
    assert stdout == f"wrote {tmp_path / 'out' / 'results.md'}\n"
    lines = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["method"] for line in lines} == set(METHODS)
    assert {json.loads(line)["status"] for line in lines} == {"done"}


def group_is_running(number):
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize(
    "to_all",
    [True, False],
    ids=["from the keyboard", "kill -INT"],
)
def test_an_interrupt_keeps_results_and_leaves_no_process(tmp_path, to_all):
    out = tmp_path / "out"
    process = start("results", "--out", out, "--n-jobs", "2")
    results = out / "results.jsonl"
    give_up = time.monotonic() + 60.0
    while not results.exists() or results.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < give_up
        assert process.poll() is None
        time.sleep(0.02)
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stdout == ""
    hint = f"interrupted; finished fits are kept in {out}: run it again to continue"
    assert stderr == f"experiments: {hint}\n"
    assert len(Store(results).known()) >= 3
    give_up = time.monotonic() + 10.0
    while group_is_running(process.pid) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert not group_is_running(process.pid)
