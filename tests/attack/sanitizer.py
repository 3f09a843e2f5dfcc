"""Spoilt arguments of the kernels under AddressSanitizer and UBSan; see ``make sanitize``."""

import os
import re
import subprocess
import sys

from tests.attack.tally import ROOT, Tally, one_line
from tests.native import sanitize


def attack(seed, seconds):
    """Build the kernels with sanitizers, which takes a minute the first time, and fuzz them."""
    tally = Tally()
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", "1")
    folder = sanitize.build("sanitize", "TAXARBOR_SANITIZE", quiet=True)
    fuzz = sanitize.RUN_FUZZ.format(seconds=str(seconds), seed=str(seed))
    code = sanitize.START.format(folder=str(folder)) + fuzz
    env = {**os.environ, "PYTHONPATH": str(folder), **sanitize.strict()}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, check=False, env=env, cwd=ROOT, capture_output=True, text=True
    )
    last = one_line(done.stdout)
    if done.returncode or "runtime error" in done.stderr:
        tally.forbid(f"{last}\n{done.stderr[-3000:]}", "make sanitize")
    if counts := re.search(r"(\d+) spoilt calls, (\d+) refused", last):
        calls, refused = map(int, counts.groups())
        tally["refused"], tally["finished"] = refused, calls - refused
    return tally
