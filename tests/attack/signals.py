"""Ctrl-C at random moments of commands: outputs are absent, old or complete."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.attack.mutations import Outcomes

N_ROWS = 3000
COMMANDS = (
    "fit data.csv -k 4 -o out.taxarbor --labels out.csv --report out.html --force",
    "predict m.taxarbor data.csv -o out.csv --force",
    "report m.taxarbor data.csv -o out.html --force",
    "predict m.taxarbor data.csv --clusters 3 -o out.csv --force",
)
OUTPUTS = ("out.taxarbor", "out.csv", "out.html")


def start(command, folder):
    """Start a command that Ctrl-C interrupts, whoever runs this."""
    return subprocess.Popen(
        [sys.executable, "-m", "taxarbor", *command.split()],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def is_complete(path):
    """Return whether an output has its end."""
    from taxarbor import TaxarborError, Taxonomy

    data = path.read_bytes()
    if path.suffix == ".csv":
        return data.endswith(b"\n") and data.count(b"\n") == N_ROWS + 1
    if path.suffix == ".html":
        return data.rstrip().endswith(b"</html>")
    try:
        return Taxonomy.load(path).n_leaves > 1
    except TaxarborError:
        return False


def find_problem(code, printed, folder, is_old):
    """Return what is wrong after Ctrl-C, None if nothing is."""
    # -2 is how Python ends itself after some interrupts: a shell shows 130, too.
    if code not in (0, 130, -2) and "taxarbor" in printed:  # else Python was still starting
        return f"exit code {code}: {printed[-1000:]}"
    if code == 130 and printed.count("\n") != 1:
        return f"not one line: {printed[-1000:]}"
    for path in map(folder.joinpath, OUTPUTS):
        if is_old and not path.is_file():
            return f"{path.name} is lost"
        if path.is_file() and path.read_bytes() != b"old" and not is_complete(path):
            return f"{path.name} is incomplete"
    rest = [path.name for path in folder.glob(".taxarbor-*")]
    return f"{rest[0]} is left" if rest else None


def attack(seed, seconds):
    """Interrupt commands, one after another."""
    rng, outcomes = np.random.default_rng(seed), Outcomes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X = rng.normal(size=(N_ROWS, 4)) + 5 * rng.integers(0, 2, (N_ROWS, 4))
        np.savetxt(folder / "data.csv", X, "%.2f", ",", header="a,b,c,d", comments="")
        begun = time.monotonic()
        fit = start("fit data.csv -k 8 -o m.taxarbor", folder)
        assert fit.wait() == 0, fit.stderr.read()
        fit.stderr.close()
        duration, end = time.monotonic() - begun, time.monotonic() + seconds
        while time.monotonic() < end:
            is_old = rng.random() < 0.5
            for path in map(folder.joinpath, OUTPUTS):
                path.unlink(missing_ok=True)
                if is_old:
                    path.write_bytes(b"old")
            command = COMMANDS[rng.integers(len(COMMANDS))]
            with start(command, folder) as process:
                time.sleep(rng.uniform(0, duration))
                process.send_signal(signal.SIGINT)
                try:
                    _, printed = process.communicate(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    printed = "it did not end"
            problem = find_problem(process.returncode, printed, folder, is_old)
            if problem is None:
                outcomes["finished" if process.returncode == 0 else "ended"] += 1
            else:
                outcomes.forbid(f"{command}: {problem}")
            for path in folder.glob(".taxarbor-*"):
                subprocess.run(["rm", "-r", str(path)], check=True)
    return outcomes
