"""What every part of the attack shares: counts of outcomes, and folders for what went wrong."""

import os
import re
import resource
import shutil
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEMORY, ADDRESSES = 1 << 29, 6 << 30
"""Bytes that a case may take beside those of the libraries, and those at which it is stopped.

What is refused by what it states is told by the first; the second is only there so that the
machine survives.
"""
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


def limit_addresses():
    """Let this process take but so many more addresses, and leave no core behind."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def most_memory():
    """Return the most bytes of memory that this process ever had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def ran_out(error):
    """Return whether memory ran out before something was refused: that is no refusal."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def keep(path, name):
    """Keep a file that went wrong; return what to call it in a command."""
    KEPT.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, KEPT / name)
    return str((KEPT / name).relative_to(ROOT))


def one_line(text):
    """Return the last line of a text, which in a traceback is the error."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing"
