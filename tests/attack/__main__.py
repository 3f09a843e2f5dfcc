"""All parts of the attack, two at a time, and one table of the outcomes.

``make attack`` runs it: ``python -m tests.attack [--minutes M] [--seed S] [--only PART ...]
[--write PAGE]``. The seed is printed. Damaged files that did harm are in ``build/attack``. Exit
code 1 if anything forbidden happened.
"""

import argparse
import datetime
import multiprocessing
import os
import platform
import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tests.attack.mutations import FORBIDDEN, ROOT, run_part

PARTS = {
    "files": ("damaged csv, tsv, gz, npy, npz, mtx, parquet, h5ad", 0.5),
    "models": ("damaged models", 0.4),
    "signals": ("Ctrl-C at random moments", 0.5),
    "names": ("hostile names in all outputs", 0.3),
    "data": ("bad data and parameters", 0.0),
}
"""What each part does, and its share of the time; those without one take as long as needed."""
MARK = "<!-- table -->"


def run_all(parts, seed, minutes):
    """Run parts, two at a time, in processes that may crash; return the results of each."""
    os.environ["OMP_NUM_THREADS"] = "1"
    results = {}
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        futures = {
            part: pool.submit(run_part, part, seed, 60 * minutes * PARTS[part][1])
            for part in parts
        }
        for part, future in futures.items():
            try:
                results[part] = future.result()
            except BrokenProcessPool:  # this part crashed, or the one beside it
                results[part] = {FORBIDDEN: 1}, ["the process crashed"], 0.0
    return results


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
    """Return the commit, with ``-dirty`` if files were changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


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
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    say = sys.stdout.write
    say(f"seed {seed}\n")
    results = run_all([part for part in PARTS if part in asked.only], seed, asked.minutes)
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
