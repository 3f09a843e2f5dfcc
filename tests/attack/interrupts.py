"""Ctrl-C at random moments of a command: each output is the old one or a complete new one."""

import signal
import tempfile
import time
import zipfile
from collections import Counter
from contextlib import chdir
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np

from tests.attack.damage import FORBIDDEN, HUNG, run_command, run_in_process

N_ROWS = 3000
COMMAND = "fit data.csv -k 4 -o out.taxarbor --labels out.csv --report out.html --force"
IS_COMPLETE = {
    "out.taxarbor": zipfile.is_zipfile,
    "out.csv": lambda path: path.read_bytes().count(b"\n") == N_ROWS + 1,
    "out.html": lambda path: path.read_bytes().endswith(b"</html>\n"),
}


def run_interrupted(delay=0.0):
    """Run the command with Ctrl-C after a delay, or without it; return its exit code."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, delay)
    return run_command(*COMMAND.split())[0]


def attack(seed, seconds):
    """Interrupt the command again and again."""
    rng, outcomes = np.random.default_rng(seed), Counter()
    for name in ("cli", "explain", "report"):  # before processes are forked
        import_module(f"taxarbor.{name}")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        X = rng.normal(size=(N_ROWS, 4)) + 5 * rng.integers(0, 2, (N_ROWS, 4))
        np.savetxt("data.csv", X, "%.2f", ",", header="a,b,c,d", comments="")
        begun = time.monotonic()
        assert run_in_process(run_interrupted) == 0
        duration, end = time.monotonic() - begun, time.monotonic() + seconds
        while time.monotonic() < end:
            for name in IS_COMPLETE:
                Path(name).write_bytes(b"old")
            code = run_in_process(partial(run_interrupted, rng.uniform(0.001, duration)))
            bad = [str(path) for path in Path().glob(".taxarbor-*")]  # drafts that are left
            bad += ["it hung"] if code == HUNG else []
            for name, is_complete in IS_COMPLETE.items():
                if Path(name).read_bytes() != b"old" and not is_complete(Path(name)):
                    bad.append(name)
            if bad:
                outcomes[f"{FORBIDDEN}: {', '.join(bad)} after Ctrl-C"] += 1
            else:
                outcomes["finished" if code == 0 else "interrupted"] += 1
    return outcomes
