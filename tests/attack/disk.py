"""A full disk: a line that names the file, the old file whole, and nothing left behind."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests.attack import commands, signals
from tests.attack.tally import Tally, one_line

OLD = b"old"
ROOM = 8192
"""Bytes that still fit; all outputs are larger."""
LABELS = (".csv", ".tsv", ".npy", ".parquet")
OUTPUTS = (
    "fit data.csv -k 8 -o full/out.taxarbor",
    *(f"fit data.csv -k 8 -o m2.taxarbor --labels full/out{end}" for end in LABELS),
    "fit data.csv -k 8 -o m2.taxarbor --report full/out.html",
    *(f"predict m.taxarbor data.csv -o full/out{end}" for end in LABELS),
    "predict m.taxarbor data.csv --proba -o full/out.csv",
    "report m.taxarbor data.csv -o full/out.html",
    *(f"cut m.taxarbor -k 4 -o full/out{end}" for end in (".csv", ".taxarbor")),
    "export m.taxarbor -o full/out.json",
    "assess m.taxarbor data.csv --refits 2 -o full/out.taxarbor",
    "demo -o full/out.html",
)
SHOWN = ("show m.taxarbor", "predict m.taxarbor data.csv", "cut m.taxarbor -k 2")
SHOWN += ("export m.taxarbor --to json", "info m.taxarbor --json")
"""Commands whose output goes to a device that is full."""


@contextmanager
def small_disk(folder):
    """Mount a disk with little room; yields whether that may be done here."""
    size = f"size={4 * ROOM}"
    mount = ["mount", "-t", "tmpfs", "-o", size, "none", str(folder)]
    try:
        done = subprocess.run(mount, check=False, capture_output=True)
        is_mounted = done.returncode == 0
    except OSError:
        is_mounted = False
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder):
    """Write to a disk until little room is left."""
    free = os.statvfs(folder)
    (folder / "filler").write_bytes(b"x" * max(free.f_bavail * free.f_frsize - ROOM, 0))


def write(line, folder, how, file_size=None):
    """Run a command whose output does not fit; return a problem, if there is one."""
    arguments = line.split()
    name = next(one for one in arguments if one.startswith("full/"))
    target, is_old = folder / name, how == "replaces"
    target.unlink(missing_ok=True)
    if is_old:
        target.write_bytes(OLD)
    code, said = commands.run((*arguments, "--force"), folder, file_size=file_size)
    found = target.read_bytes() if target.is_file() else None
    target.unlink(missing_ok=True)
    lines = [line for line in said.splitlines() if line.startswith("taxarbor: ")]
    told = [line for line in lines if not line.startswith("taxarbor: note: ")]
    if code != 2 or len(told) != 1 or "Traceback" in said:
        return f"ended with {code}: {one_line(said)}"
    if Path(name).name not in told[0]:
        return f"names no file: {told[0]}"
    if found != (OLD if is_old else None):
        return "the old file is lost, or a new one is torn"
    left = [*commands.litter(folder), *commands.litter(folder / "full")]
    return f"{left} stayed" if left else None


def show(line, folder):
    """Run a command whose terminal is a full device; return a problem, if there is one."""
    code, said = commands.run(line.split(), folder, stdout="/dev/full")
    lines = said.strip().splitlines()
    is_told = code == 2 and len(lines) == 1 and lines[0].startswith("taxarbor: ")
    return None if is_told else f"ended with {code}: {one_line(said)}"


def attack(seed, seconds):
    """Write all outputs to a full disk, and beyond a limit on the size of files."""
    commands.load()
    tally, repeat = Tally(), "python -m tests.attack --only disk"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        signals.prepare(folder)
        (folder / "full").mkdir()
        for line in SHOWN:
            problem = show(line, folder)
            tally.check(problem and f"{line} > /dev/full: {problem}", "told", repeat)
        with small_disk(folder / "full") as is_mounted:
            if is_mounted:
                fill(folder / "full")
            size = None if is_mounted else ROOM
            for line in OUTPUTS:
                for how in ("is new", "replaces"):
                    if not is_mounted and "m2.taxarbor" in line:
                        continue  # the model itself would not fit, which is another case
                    problem = write(line, folder, how, size)
                    tally.check(problem and f"{line}, {how}: {problem}", "told", repeat)
    return tally
