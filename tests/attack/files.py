"""Damaged tables: each is read, or refused in our own words, soon and in little memory.

``python -m tests.attack.files FILE ...`` reads files that were kept, and says what comes of it.
"""

import gzip
import io
import json
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from tests.attack.tally import MEMORY, ROOT, Tally, keep, limit_addresses, most_memory, ran_out

TIME = 20.0
"""Most seconds for a file of a few kilobytes."""
STREAMED = (".npy", ".parquet", ".h5ad")
EXTREMES = (b"0", b"-1", b"1e308", b"nan", b"inf", b"-0", b"2147483648", b"9223372036854775807")
EXTREMES += (b"99999999999999999999999", b"1e-320", b"", b"1.5", b"0x10", b"1_000", b"x")
EXTREMES += (b"\xff",)
BOMBS = (b"1,", b"\n", b"1,2,3,4\n")
"""Texts of which gigabytes take little when they are packed."""
PLAIN = (OSError, ImportError)
"""What the documentation of ``read_table`` names, beside our own errors."""


def samples():
    """Return the bytes of small sound files, by what their names end in."""
    import pandas as pd
    from scipy import io as sio
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = (rng.normal(size=(24, 5)) * (rng.random((24, 5)) < 0.6)).round(3)
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(city=["Bern", "Graz", "Lüne"] * 8)
    frame["day"] = pd.date_range("2020-01-01", periods=24).astype(str)
    frame.insert(0, "id", [f"C{row:02d}" for row in range(24)])
    made = {".csv": frame.to_csv(index=False).encode()}
    made[".tsv"] = frame.to_csv(index=False, sep="\t").encode()
    made[".csv.gz"] = gzip.compress(made[".csv"], mtime=0)
    made[".parquet"], made[".npy"], made[".npz"], made[".mtx"] = (
        written(frame.to_parquet),
        written(lambda file: np.save(file, X)),
        written(lambda file: np.savez_compressed(file, X=X, names=frame["id"].to_numpy("U"))),
        written(lambda file: sio.mmwrite(file, sparse.coo_array(X))),
    )
    made["-sparse.npz"] = written(lambda file: sparse.save_npz(file, sparse.csr_array(X)))
    made["-dense.mtx"] = written(lambda file: sio.mmwrite(file, X))
    made["-f4.npy"] = written(lambda file: np.save(file, np.asfortranarray(X, dtype=">f4")))
    for path in sorted((ROOT / "tests" / "tables" / "files").glob("*.h5ad")):
        made[f"-{path.name}"] = path.read_bytes()
    return made


def written(write):
    """Return the bytes that a function writes to a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def flip(rng, data, others):
    """Flip some bits."""
    found = bytearray(data)
    for at in rng.integers(0, len(data), rng.integers(1, 9)):
        found[at] ^= 1 << int(rng.integers(8))
    return bytes(found)


def truncate(rng, data, others):
    """Leave out the end, or the beginning."""
    at = int(rng.integers(0, len(data)))
    return data[:at] if rng.random() < 0.8 else data[at:]


def duplicate(rng, data, others):
    """Put a part in again, or leave it out, or overwrite another."""
    a, b = np.sort(rng.integers(0, len(data) + 1, 2))
    at = int(rng.integers(0, len(data)))
    rest = (data[at:], data[at + b - a :], b"")
    return (
        (data[:at] + data[a:b] + rest[rng.integers(2)])
        if rng.random() < 0.7
        else (data[:a] + data[b:])
    )


def splice(rng, data, others):
    """Go on as another file does."""
    other = others[rng.integers(len(others))]
    return data[: rng.integers(0, len(data))] + other[rng.integers(0, len(other)) :]


def renumber(rng, data, others):
    """Replace a number, in text or a header, by an extreme one."""
    places = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", data)]
    if not places:
        return flip(rng, data, others)
    for at in sorted(rng.integers(0, min(len(places), 200), rng.integers(1, 4)), reverse=True):
        start, stop = places[at]
        new = EXTREMES[rng.integers(len(EXTREMES))]
        if rng.random() < 0.4:
            new = b"9" * (stop - start)  # as long as before: what counts bytes still does
        data = data[:start] + new + data[stop:]
    return data


def edit_head(rng, data, others):
    """Change words of four or eight bytes, or a few characters, at one of the ends."""
    found, size = bytearray(data), int(rng.choice([1, 2, 4, 8]))
    at = int(rng.integers(0, max(min(len(data), 200) - size, 1)))
    at = at if rng.random() < 0.6 else max(len(data) - at - size, 0)
    word = int(rng.choice([0, 1, 127, 255])) if size == 1 else int(2 ** rng.integers(8 * size))
    order = ("little", "big")[rng.integers(2)]
    found[at : at + size] = (word % 2 ** (8 * size)).to_bytes(size, order)
    return bytes(found)


def nothing(rng, data, others):
    """Write bytes at random, or none, in place of it."""
    return rng.bytes(int(rng.choice([0, 1, 7, 300])))


MUTATIONS = (flip, flip, truncate, duplicate, splice, renumber, renumber, edit_head, nothing)


def mutate(rng, suffix, data, others):
    """Return a damaged file; what is packed is often damaged within, and packed again."""
    change = MUTATIONS[rng.integers(len(MUTATIONS))]
    is_within = rng.random() < 0.6
    if suffix.endswith(".gz") and rng.random() < 0.05:
        piece = BOMBS[rng.integers(len(BOMBS))]
        return data + gzip.compress(piece * (2**24 // len(piece)), mtime=0) * 500
    if suffix.endswith(".gz") and is_within:
        return gzip.compress(change(rng, gzip.decompress(data), others), mtime=0)
    if suffix.endswith(".npz") and is_within:
        return _within(rng, data, lambda member: change(rng, member, others))
    return change(rng, data, others)


def _within(rng, data, change):
    """Return a zip file with one member changed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(packed, "w", 8) as new:
        names = old.namelist()
        which = names[rng.integers(len(names))]
        for name in names:
            member = old.read(name)
            new.writestr(name, change(member) if name == which else member)
    return packed.getvalue()


def read(path, before):
    """Read a file as the command line does; return what came of it in one word or more.

    ``before`` is the most memory that the process had with sound files.
    """
    from taxarbor import TaxarborError
    from taxarbor.cli._reading import read_columns
    from taxarbor.tables._stream import open_stream

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.suffix in STREAMED and path.name.startswith("parts"):
                for part in open_stream(path).parts:
                    part.load() if hasattr(part, "load") else part
            else:
                read_columns(path, None)
        told = "read"
    except (TaxarborError, *PLAIN) as error:
        told = "refused" if str(error) else f"{type(error).__name__} without a message"
        told = f"out of memory, then: {told}" if ran_out(error) else told
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    more = most_memory() - before
    return told if more <= MEMORY else f"took {more >> 20:,} MB of memory, then: {told}"


def work():
    """Read files named on standard input, within limits, and answer with a line for each."""
    import h5py  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from taxarbor.tables import read_table

    answer, sys.stdout = sys.stdout, sys.stderr
    read_table(io.BytesIO(b"a,b\n1,2\n3,4"))  # so that all is loaded
    limit_addresses()
    before = most_memory()
    for line in sys.stdin:
        answer.write(json.dumps(read(Path(json.loads(line)), before)) + "\n")
        answer.flush()
        before = max(before, most_memory() - MEMORY)  # what was told is not told again


class Reader:
    """A process that reads files until it dies; the next file gets a new one."""

    def __init__(self):
        self._process = None

    def read(self, path):
        """Return what came of a file; crashes and hangs are told as such."""
        if self._process is None:
            command = [sys.executable, "-m", "tests.attack.files", "--work"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._process = subprocess.Popen(
                command, **pipes, stderr=subprocess.DEVNULL, cwd=ROOT, start_new_session=True
            )
        out = self._process.stdout
        self._process.stdin.write(json.dumps(str(path)).encode() + b"\n")
        self._process.stdin.flush()
        if not select.select([out], [], [], TIME)[0]:
            self.close()
            return f"no answer in {TIME:g} s"
        line = out.readline()
        if line:
            return json.loads(line)
        code = self._process.wait()
        self.close()
        return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"

    def close(self):
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._process = None


def attack(seed, seconds):
    """Read damaged files of every format, one after another."""
    rng, tally, reader = np.random.default_rng(seed), Tally(), Reader()
    made = samples()
    others, end = [*made.values()], time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for suffix, data in made.items():
            path = Path(folder) / f"sound{suffix}"
            path.write_bytes(data)
            assert (told := reader.read(path)) == "read", f"{path.name}: {told}"
        number = 0
        while time.monotonic() < end:
            suffix = [*made][number % len(made)]
            start = "parts" if number // len(made) % 3 == 2 else "whole"
            path = Path(folder) / f"{start}{suffix}"
            path.write_bytes(mutate(rng, suffix, made[suffix], others))
            told = reader.read(path)
            if told in ("read", "refused"):
                tally[told] += 1
            else:
                name = keep(path, f"{start}-{seed}-{number}{suffix}")
                tally.forbid(f"{name}: {told}", f"python -m tests.attack.files {name}")
            path.unlink()
            number += 1
    reader.close()
    return tally


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        one = Reader()
        for name in sys.argv[1:]:
            print(f"{name}: {one.read(Path(name).resolve())}")  # noqa: T201
        one.close()
