"""All parts of the attack, two at a time, and one table of what came of it.

``make attack`` runs it: ``python -m tests.attack [--minutes M] [--seed S] [--only PART ...]
[--write PAGE]``. The seed is printed, and what is forbidden is told with a command that repeats
it; damaged files that did harm are in ``build/attack``. Exit code 1 if anything was forbidden.
"""

import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from tests.attack.tally import FORBIDDEN, ROOT

PARTS = {
    "sanitizer": ("spoilt calls of the kernels, under ASan and UBSan", 0.1),
    "files": ("damaged csv, tsv, gz, npy, npz, mtx, parquet, h5ad", 0.3),
    "models": ("damaged models", 0.2),
    "signals": ("SIGINT, SIGTERM, SIGHUP and SIGKILL, some during a save", 0.3),
    "names": ("hostile names through all outputs", 0.25),
    "disk": ("outputs to a full disk", 0.0),
    "data": ("bad data and parameters, as decided", 0.0),
}
"""What each part does, and its share of the time; those without one take what they take.

The sanitizers are built first: that takes a minute or two of one processor, once.
"""
MOST = 1.5
"""A part that takes this many times the time of all has hung."""
MARK = "<!-- table -->"


@dataclass
class Done:
    """What came of a part."""

    part: str
    counts: dict
    found: list = field(default_factory=list)
    seconds: float = 0.0

    @property
    def n_forbidden(self):
        return self.counts.get(FORBIDDEN, 0)


def run_here(part, seed, seconds):
    """Run a part in this process, and print what came of it as JSON."""
    try:
        counts = import_module(f"tests.attack.{part}").attack(seed, seconds)
        told = {"counts": dict(counts), "found": getattr(counts, "found", [])}
    except AssertionError as error:  # which may be how a part tells of what is forbidden
        told = {"counts": {FORBIDDEN: 1}, "found": [str(error)]}
    sys.stdout.write("\n" + json.dumps(told) + "\n")


def run_apart(part, seed, minutes):
    """Run a part in a process of its own: it may die."""
    seconds = 60 * minutes * PARTS[part][1]
    command = [sys.executable, "-m", "tests.attack", "--here", part]
    command += ["--seed", str(seed), "--seconds", str(seconds)]
    begun = time.monotonic()
    env = os.environ | {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")]).rstrip(
        os.pathsep
    )
    how = {"capture_output": True, "text": True, "errors": "replace", "cwd": ROOT, "env": env}
    try:
        done = subprocess.run(
            command, check=False, timeout=max(60 * minutes * MOST, 300), **how
        )
        told = json.loads(done.stdout.strip().rpartition("\n")[2])
        found = Done(part, told["counts"], told["found"])
    except subprocess.TimeoutExpired:
        found = Done(part, {FORBIDDEN: 1}, [f"{part} did not end"])
    except ValueError:
        said = (done.stdout + done.stderr)[-2000:]
        found = Done(part, {FORBIDDEN: 1}, [f"{part} ended with {done.returncode}: {said}"])
    found.seconds = time.monotonic() - begun
    return found


def row(done, seed, commit):
    """Return a line of the table."""
    counts = {name: n for name, n in done.counts.items() if name != FORBIDDEN and n}
    outcomes = ", ".join(f"{n:,} {name}" for name, n in sorted(counts.items()))
    total = sum(counts.values()) + done.n_forbidden
    cells = [done.part, PARTS[done.part][0], f"{total:,}", outcomes, f"{done.n_forbidden:,}"]
    return "| " + " | ".join([*cells, f"{done.seconds:.0f}", str(seed), commit]) + " |"


def table(all_done, seed):
    """Return the table as Markdown."""
    commit = current_commit()
    head = ["part", "what", "count", "outcomes", "forbidden", "seconds", "seed", "commit"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---:|---|---:|---:|---:|---|"]
    return "\n".join([*lines, *(row(done, seed, commit) for done in all_done)])


def current_commit():
    """Return the commit, with a plus where files were changed since."""

    def git(*arguments):
        how = {"capture_output": True, "text": True, "cwd": ROOT}
        return subprocess.run(["git", *arguments], check=False, **how).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "tests")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + "+" * bool(changed)


def write(page, text):
    """Replace the table of a page, which stands between two marks."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{os.cpu_count()} processors, {platform.system()}"
    told = f"{today}, Python {platform.python_version()}, {machine}."
    before, _, after = page.read_text(encoding="utf-8").split(MARK)
    page.write_text(f"{before}{MARK}\n{told}\n\n{text}\n{MARK}{after}", encoding="utf-8")


def main():
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("--minutes", type=float, default=3.5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--here", choices=[*PARTS], help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=30.0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    if asked.here:
        run_here(asked.here, seed, asked.seconds)
        return 0
    say = sys.stdout.write
    say(f"seed {seed}\n")
    parts = [name for name in PARTS if name in asked.only]
    with ThreadPoolExecutor(2) as pool:
        all_done = [*pool.map(lambda part: run_apart(part, seed, asked.minutes), parts)]
    for done in all_done:
        for found in done.found:
            say(f"forbidden, {done.part}: {found}\n")
    text = table(all_done, seed)
    say(f"\n{text}\n")
    if asked.write is not None:
        write(asked.write, text)
    n_forbidden = sum(done.n_forbidden for done in all_done)
    if n_forbidden:
        again = f"python -m tests.attack --seed {seed} --minutes {asked.minutes:g} --only"
        wrong = " ".join(done.part for done in all_done if done.n_forbidden)
        say(f"\n{n_forbidden} forbidden; again: {again} {wrong}\n")
    return int(bool(n_forbidden))


if __name__ == "__main__":
    sys.exit(main())
