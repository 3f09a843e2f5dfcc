"""What the parts of the attack share: outcomes, damage to files, processes, commands."""

import io
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
FORBIDDEN = "forbidden"
"""How outcomes that must not happen begin; a description follows."""
CRASHED, HUNG = "crashed", "hung"
MAX_SECONDS = 10.0
"""The longest that a case may take."""
MAX_BYTES = 8 << 30
"""Bytes of memory of a process that reads a file; beyond them it gets a MemoryError."""
NUMBERS = (b"", b"0", b"-1", b"1.5", b"1e308", b"1e-320", b"nan", b"inf", b"2147483648")
NUMBERS += (b"9223372036854775807", b"9" * 23, b"0x10", b"1_000", b"x", b"\xff")


def flip(rng, data):
    """Flip some bits."""
    result = bytearray(data)
    for position in rng.integers(0, len(data), rng.integers(1, 9)):
        result[position] ^= 1 << int(rng.integers(8))
    return bytes(result)


def truncate(rng, data):
    """Remove the end, or the beginning."""
    position = int(rng.integers(0, len(data)))
    return data[:position] if rng.random() < 0.8 else data[position:]


def replace_some(rng, text, pattern, values):
    """Replace some matches of a pattern by random values."""
    places = [match.span() for match in re.finditer(pattern, text)][:200]
    for n in sorted(rng.choice(len(places), min(len(places), 3)).tolist() if places else []):
        first, last = places[-1 - n]  # from the end, so that places stay where they are
        text = text[:first] + values[rng.integers(len(values))] + text[last:]
    return text


def change_numbers(rng, data):
    """Replace numbers, in text or a header, by extreme ones."""
    return replace_some(rng, data, rb"-?\d+(\.\d+)?", NUMBERS)


def damage(rng, data):
    """Damage bytes in one of many ways."""
    changes = (flip, truncate, change_numbers)
    return changes[rng.integers(len(changes))](rng, data or b"\0")


def damage_member(rng, data, change=damage):
    """Damage one member of a zip archive, which stays a valid archive."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w", 8) as new:
        members = {name: old.read(name) for name in old.namelist()}
        chosen = [*members][rng.integers(len(members))]
        members[chosen] = change(rng, members[chosen])
        for name, member in members.items():
            new.writestr(name, member)
    return result.getvalue()


def run_in_process(call):
    """Return the result of a call in a forked process, which may crash or hang."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(call()))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(MAX_SECONDS) else HUNG
    except EOFError:
        return CRASHED
    finally:
        process.kill()
        process.join()
        receiver.close()


def try_to_use(use, path):
    """Return "refused", the outcome of ``use(path)``, or the error that it must not raise."""
    from taxarbor import FileFormatError

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries print as they crash
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return use(path)
    except FileFormatError as error:
        return "refused" if "\n" not in str(error) else f"several lines: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def attack_files(samples, change, use, seed, seconds):
    """Damage valid files and use each in a process of its own; return the outcomes.

    ``samples`` has the contents of the files by the ends of their names. ``use(path)`` returns
    the outcome, such as "read".
    """
    outcomes, number = Counter(), 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        for suffix, data in samples.items():  # which loads the libraries, too
            path = Path(folder) / f"valid{suffix}"
            path.write_bytes(data)
        allowed = {use(path) for path in Path(folder).iterdir()} | {"refused", "used in part"}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rng = np.random.default_rng([seed, number])
            suffix = [*samples][number % len(samples)]
            path = Path(folder) / f"damaged{suffix}"
            path.write_bytes(change(rng, suffix, samples[suffix]))
            outcome = run_in_process(lambda path=path: try_to_use(use, path))
            if outcome in (CRASHED, HUNG) and suffix.endswith("h5ad"):
                outcomes[f"{outcome} in HDF5"] += 1  # which only HDF5 can prevent
            elif outcome in allowed:
                outcomes[outcome] += 1
            else:
                outcomes[f"{FORBIDDEN}: case {number}, {suffix}: {outcome}"] += 1
            number += 1
    return outcomes


class Terminal(io.StringIO):
    """What is printed on a terminal."""

    def isatty(self):
        return True


def run_command(*arguments):
    """Run a command in this process as on a terminal; return its exit code and output."""
    from taxarbor.cli import main

    terminal, sys.argv = Terminal(), ["taxarbor", *arguments]
    with redirect_stdout(terminal), redirect_stderr(terminal):
        try:
            main()
        except SystemExit as end:
            return end.code or 0, terminal.getvalue()
    return 0, terminal.getvalue()
