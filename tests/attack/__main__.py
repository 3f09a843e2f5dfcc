"""All parts of the attack, two at a time, and one table of the outcomes.

``make attack`` runs it: ``python -m tests.attack [--minutes M] [--seed S] [--only PART ...]
[--write PAGE]``. The seed is printed. Damaged files that did harm are in ``build/attack``. Exit
code 1 if anything forbidden happened.
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
from importlib import import_module
from pathlib import Path

from tests.attack.mutations import FORBIDDEN, ROOT

PARTS = {
    "files": ("damaged csv, tsv, gz, npy, npz, mtx, parquet, h5ad", 0.5),
    "models": ("damaged models", 0.4),
    "signals": ("Ctrl-C at random moments", 0.5),
    "names": ("hostile names in all outputs", 0.3),
    "data": ("bad data and parameters", 0.0),
}
"""What each part does, and its share of the time; those without one take as long as needed."""
MARK = "<!-- table -->"
CAPTURE = {"capture_output": True, "text": True}


def run_here(part, seed, seconds):
    """Run a part in this process, and print the outcomes as JSON."""
    outcomes = import_module(f"tests.attack.{part}").attack(seed, seconds)
    sys.stdout.write("\n" + json.dumps([outcomes, outcomes.forbidden]) + "\n")


def run_apart(part, seed, minutes):
    """Run a part in a process of its own, which may crash; return counts, problems, seconds."""
    seconds = 60 * minutes * PARTS[part][1]
    command = [sys.executable, "-m", "tests.attack", "--here", part]
    command += ["--seed", str(seed), "--seconds", str(seconds)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=env, timeout=seconds + 300, **CAPTURE
        )
        counts, problems = json.loads(done.stdout.strip().rpartition("\n")[2])
    except subprocess.TimeoutExpired:
        counts, problems = {FORBIDDEN: 1}, ["did not end"]
    except ValueError:
        printed = (done.stdout + done.stderr)[-2000:]
        counts, problems = {FORBIDDEN: 1}, [f"ended with {done.returncode}: {printed}"]
    return counts, problems, time.monotonic() - begun


def make_row(part, counts, seconds, seed, commit):
    """Return a line of the table."""
    allowed = sorted((name, n) for name, n in counts.items() if name != FORBIDDEN and n)
    outcomes = ", ".join(f"{n:,} {name}" for name, n in allowed)
    cells = [part, PARTS[part][0], f"{sum(counts.values()):,}", outcomes]
    cells += [f"{counts.get(FORBIDDEN, 0):,}", f"{seconds:.0f}", str(seed), commit]
    return "| " + " | ".join(cells) + " |"


def make_table(results, seed):
    """Return the table as Markdown."""
    commit = current_commit()
    head = ["part", "what", "count", "outcomes", "forbidden", "seconds", "seed", "commit"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---:|---|---:|---:|---:|---|"]
    lines += [make_row(part, one[0], one[2], seed, commit) for part, one in results.items()]
    return "\n".join(lines)


def current_commit():
    """Return the commit, with a plus if files were changed since."""

    def git(*arguments):
        done = subprocess.run(["git", *arguments], check=False, cwd=ROOT, **CAPTURE)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "tests")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + "+" * bool(changed)


def write(page, text):
    """Replace the table of a page, which is between two marks."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{os.cpu_count()} processors, {platform.system()}"
    setting = f"{today}, Python {platform.python_version()}, {machine}."
    before, _, after = page.read_text(encoding="utf-8").split(MARK)
    page.write_text(f"{before}{MARK}\n{setting}\n\n{text}\n{MARK}{after}", encoding="utf-8")


def main():
    """Run the requested parts."""
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
    parts = [part for part in PARTS if part in asked.only]
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda part: run_apart(part, seed, asked.minutes), parts)
        results = dict(zip(parts, done, strict=True))
    for part, (_, problems, _) in results.items():
        for problem in problems:
            say(f"forbidden, {part}: {problem}\n")
    text = make_table(results, seed)
    say(f"\n{text}\n")
    if asked.write is not None:
        write(asked.write, text)
    return int(any(problems for _, problems, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main())
