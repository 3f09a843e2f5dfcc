"""What every part of the attack shares: counts of outcomes, and folders for what went wrong."""

import re
import shutil
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "attack"
"""Where files stay that gave a forbidden outcome, and nothing else."""
FORBIDDEN = "forbidden"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Tally(Counter):
    """Counts by outcome; ``found`` has what each forbidden one was, and how to repeat it."""

    def __init__(self):
        super().__init__()
        self.found = []

    def forbid(self, what, repeat):
        """Count a forbidden outcome."""
        self[FORBIDDEN] += 1
        self.found.append(f"{what}\n    {repeat}")

    def check(self, problem, outcome, repeat):
        """Count what came of a case: an outcome, unless there is a problem."""
        if problem:
            self.forbid(problem, repeat)
        else:
            self[outcome] += 1


def keep(path, name):
    """Keep a file that went wrong; return what to call it in a command."""
    KEPT.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, KEPT / name)
    return str((KEPT / name).relative_to(ROOT))


def one_line(text):
    """Return the last line of a text, which in a traceback is the error."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing"
