"""One fit of one method on one data set: what is asked for, and what came of it."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, final

import taxarbor
from taxarbor.bench._datasets import Scaling

DONE = "done"
MATTERS = {
    ("bench", name) for name in ("_datasets.py", "_methods.py", "_variants.py", "_work.py")
}
"""Of what runs the experiment, what its results depend on."""
CLOSING = "zero_weights"
"""A measure of every job that is done, written last: where it is, all others are."""


class Job(NamedTuple):
    """What identifies a fit. Settings are JSON text, so that jobs compare and hash.

    Equal jobs have equal results, to the last bit, on one machine.
    """

    dataset: str
    scaling: Scaling
    max_rows: int  # 0 for all
    method: str
    settings: str
    n_clusters: int
    branching: int
    seed: int


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job.

    Attributes
    ----------
    status : str
        "done", "timed out", or why it failed.
    seconds, peak_mb : float
        Time of the fit, and how much memory it took beyond the data.
    measures : mapping of str to float
        The measures, and the shape of the tree, :data:`CLOSING` among them; empty unless done.
    """

    status: str
    seconds: float
    peak_mb: float
    measures: Mapping[str, float]


def write_settings(settings: Mapping[str, Any]) -> str:
    """Return settings as JSON text, the same for the same settings."""
    return json.dumps(dict(settings), sort_keys=True)


@cache
def code_digest() -> str:
    """Return a short digest of the code that results depend on.

    All of the package but what only plans and shows the experiment: results stay valid when
    a caption changes, and go stale when a solver or a method's settings do.
    """
    root = Path(taxarbor.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        shows = parts[0] in {"bench", "cli", "plot"} and parts not in MATTERS
        if path.suffix in {".py", ".cpp", ".hpp"} and not shows:
            digest.update("/".join(parts).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def commit() -> str:
    """Return the commit of the source, marked if there are changes; else the version."""
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(taxarbor.__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return taxarbor.__version__
    return told.stdout.strip()


@cache
def machine() -> str:
    """Return what the machine is, in a few words, without its name."""
    return f"{_processor()}, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else platform.machine()
