"""Attack files, models, names and commands, and write a table of the outcomes.

``make attack`` runs it: ``python -m tests.attack [--minutes M] [--seed S] [--only PART ...]
[--write PAGE]``. Exit code 1 if anything forbidden happened.
"""

import argparse
import datetime
import platform
import random
import subprocess
import sys
import time

from tests.attack import files, interrupts, models, names
from tests.attack.damage import FORBIDDEN, ROOT

PARTS = {"files": files, "models": models, "names": names, "interrupts": interrupts}
MARK = "<!-- table -->"


def describe_run(seed):
    """Return when, where and with which commit and seed."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"Python {platform.python_version()}, {platform.system()}"
    return f"{today}, commit {done.stdout.strip() or 'unknown'}, {machine}, seed {seed}."


def main():
    """Run the requested parts, each for the same time."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--write", help="the page whose table is replaced")
    arguments = parser.parse_args()
    lines = ["| part | count | outcomes | forbidden | seconds |", "|---|---:|---|---:|---:|"]
    n_forbidden = 0
    for part in arguments.only:
        begun = time.monotonic()
        seconds = 60 * arguments.minutes / len(arguments.only)
        outcomes = PARTS[part].attack(arguments.seed, seconds)
        problems = [outcome for outcome in outcomes if outcome.startswith(FORBIDDEN)]
        sys.stdout.writelines(f"{part}, {problem}\n" for problem in problems)
        n_forbidden += len(problems)
        allowed = [f"{n:,} {name}" for name, n in outcomes.items() if name not in problems]
        cells = [part, f"{outcomes.total():,}", ", ".join(sorted(allowed)), f"{len(problems)}"]
        lines.append(f"| {' | '.join(cells)} | {time.monotonic() - begun:.0f} |")
    text = "\n".join([describe_run(arguments.seed), "", *lines])
    sys.stdout.write(f"{text}\n")
    if arguments.write:
        page = ROOT / arguments.write
        before, _, after = page.read_text(encoding="utf-8").split(MARK)
        page.write_text(f"{before}{MARK}\n{text}\n{MARK}{after}", encoding="utf-8")
    return int(n_forbidden > 0)


if __name__ == "__main__":
    sys.exit(main())
