"""Signals at random moments: outputs are absent, or whole, old or new; nothing stays behind.

Only SIGKILL may leave a draft, beside an old file that is whole.
"""

import json
import os
import re
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from tests.attack import commands
from tests.attack.tally import Tally, one_line

N_ROWS = 3000
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGKILL: 137}
FIT = "data.csv -k 4 -o out.taxarbor --labels out.csv --report out.html"
COMMANDS = {
    "fit": tuple(FIT.split()),
    "predict": ("m.taxarbor", "data.csv", "-o", "out.csv"),
    "report": ("m.taxarbor", "data.csv", "-o", "out.html"),
    "export": ("m.taxarbor", "-o", "out.json"),
    "cut": ("m.taxarbor", "-k", 3, "-o", "out.taxarbor"),
}
OUTPUTS = ("out.taxarbor", "out.csv", "out.html", "out.json")


def prepare(folder):
    """Write a table and its model, and return what sound outputs look like."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4)) + 5 * rng.integers(0, 2, (N_ROWS, 4))
    lines = [
        ",".join(f"c{at}" for at in range(4)),
        *(",".join(map(str, row)) for row in X.round(2)),
    ]
    (folder / "data.csv").write_text("\n".join(lines), encoding="utf-8")
    told = commands.run(("fit", "data.csv", "-k", 8, "-o", "m.taxarbor"), folder)
    assert told[0] == 0, told


def is_whole(path):
    """Say whether an output has its end."""
    from taxarbor import Hierarchy, TaxarborError

    data = path.read_bytes()
    if path.suffix == ".csv":
        return data.endswith(b"\n") and data.count(b"\n") == N_ROWS + 1
    if path.suffix == ".html":
        return data.rstrip().endswith(b"</html>")
    try:
        Hierarchy.load(path) if path.suffix == ".taxarbor" else json.loads(data)
    except (TaxarborError, ValueError):
        return False
    return True


def wait_for_draft(process, folder, end):
    """Wait until a draft of an output is there; False if the command ended first."""
    while time.monotonic() < end:
        if any(name.startswith(".taxarbor-") for name in os.listdir(folder)):
            return True
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return False
    return False


def strike(rng, name, number, folder, duration):
    """Send a signal to a command at a random moment; return a problem, and what came of it."""
    is_kept = rng.random() < 0.5
    for output in OUTPUTS:
        (folder / output).unlink(missing_ok=True)
        if is_kept:
            (folder / output).write_bytes(b"old")
    begin = (commands.start, commands.fork, commands.fork)[rng.integers(3)]
    process, terminal = begin((name, *COMMANDS[name], "--force"), folder)
    if number == signal.SIGKILL and rng.random() < 0.8:
        for _ in range(rng.integers(1, 4)):  # the first draft only tries the folder
            wait_for_draft(process, folder, time.monotonic() + commands.ENDS)
            time.sleep(rng.uniform(0, 0.02))
    else:
        time.sleep(rng.uniform(0, duration[begin]))
    with suppress(ProcessLookupError):
        os.kill(process, number)
    code, said = commands.finish(process, terminal)
    problem = _problem(number, code, said, folder, is_kept)
    for path in folder.glob(".taxarbor-*"):
        _remove(path)
    for path in (folder / "tmp").iterdir():
        _remove(path)
    return problem, "finished" if code == 0 else "ended"


def _problem(number, code, said, folder, is_kept):
    """Return what is wrong with what a signal left, if something is."""
    if code is None:
        return f"did not end within {commands.ENDS:g} s"
    began = re.search(
        r"taxarbor.(cli|hierarchy|tables|__\w+__.py)", said
    )  # else Python itself had not
    if "Traceback" in said and began:
        return f"a traceback: {one_line(said)}"
    if code not in (0, CODES[number]) and (began or "Traceback" not in said):
        return f"exit code {code}: {one_line(said)}"
    for name in OUTPUTS:
        path = folder / name
        is_old = is_kept and path.is_file() and path.read_bytes() == b"old"
        if is_kept and not path.is_file():
            return f"{name} is lost"
        if path.is_file() and not is_old and not is_whole(path):
            return f"{name} is torn"
    left = commands.litter(folder)
    return f"{', '.join(left)} stayed" if left and number != signal.SIGKILL else None


def _remove(path):
    import shutil

    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def attack(seed, seconds):
    """Strike commands, one after another."""
    commands.load()
    rng, tally = np.random.default_rng(seed), Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        duration, end = {}, time.monotonic() + seconds
        for begin in (commands.start, commands.fork):
            begun = time.monotonic()
            code, said = commands.finish(*begin(("fit", *COMMANDS["fit"]), folder), 60.0)
            assert code == 0, said
            for output in OUTPUTS:
                (folder / output).unlink(missing_ok=True)
            duration[begin] = time.monotonic() - begun
        while time.monotonic() < end:
            command = [*COMMANDS][rng.integers(len(COMMANDS))]
            number = [*CODES][rng.integers(len(CODES))]
            problem, told = strike(rng, command, number, folder, duration)
            what = f"{command}, {number.name}"
            repeat = f"python -m tests.attack --only signals --seed {seed}"
            tally.check(problem and f"{what}: {problem}", told, repeat)
    return tally
