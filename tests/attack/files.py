"""Damaged tables of each format: they are read, or refused with a FileFormatError.

Each is read in a process of its own. What does harm is kept in ``build/attack``.
"""

import gzip
import io
import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from tests.attack.mutations import ROOT, Outcomes, mutate, mutate_member

SECONDS = 20.0
"""The longest that reading a file of a few kilobytes may take."""
ADDRESSES = 6 << 30
"""Bytes of memory at which a reader gets a MemoryError, which counts as refused."""


def make_samples():
    """Return the bytes of small valid files by the ends of their names."""
    import pandas as pd
    from scipy import io as sio
    from scipy import sparse

    def written(write, *values, **options):
        file = io.BytesIO()
        write(file, *values, **options)
        return file.getvalue()

    rng = np.random.default_rng(0)
    X = (rng.normal(size=(24, 5)) * (rng.random((24, 5)) < 0.6)).round(3)
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(city=["Bern", "Graz", "Lüne"] * 8)
    frame["day"] = pd.date_range("2020-01-01", periods=24).astype(str)
    frame.insert(0, "id", [f"C{row:02d}" for row in range(24)])
    csv = frame.to_csv(index=False).encode()
    samples = {
        ".csv": csv,
        ".tsv": frame.to_csv(index=False, sep="\t").encode(),
        ".csv.gz": gzip.compress(csv, mtime=0),
        ".parquet": written(frame.to_parquet),
        ".npy": written(np.save, X),
        "-f4.npy": written(np.save, np.asfortranarray(X, dtype=">f4")),
        ".npz": written(np.savez_compressed, X=X, names=frame["id"].to_numpy("U")),
        "-sparse.npz": written(sparse.save_npz, sparse.csr_array(X)),
        ".mtx": written(sio.mmwrite, sparse.coo_array(X)),
        "-dense.mtx": written(sio.mmwrite, X),
    }
    for path in sorted((ROOT / "tests" / "tables" / "files").glob("*.h5ad")):
        samples[f"-{path.name}"] = path.read_bytes()
    return samples


def damage(rng, suffix, data):
    """Damage a file; what is compressed is often damaged inside and compressed again."""
    is_inside = rng.random() < 0.6
    if suffix.endswith(".gz") and is_inside:
        return gzip.compress(mutate(rng, gzip.decompress(data)), mtime=0)
    return (
        mutate_member(rng, data) if suffix.endswith(".npz") and is_inside else mutate(rng, data)
    )


def describe_reading(path):
    """Read a file; return "read", "refused" or what went wrong."""
    from taxarbor import FileFormatError
    from taxarbor.tables import read_table

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_table(path)
    except FileFormatError as error:
        return "refused" if "\n" not in str(error) else f"several lines: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "read"


def _read_and_send(path, pipe):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libraries print as they crash
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send(describe_reading(path))


def read_apart(path):
    """Read a file in a forked process, which may crash or hang."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_read_and_send, args=(path, there))
    process.start()
    there.close()
    try:
        if here.poll(SECONDS):
            return here.recv()
        return f"no answer in {SECONDS:g} s"
    except EOFError:
        process.join()
        return f"ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()
        here.close()


def attack(seed, seconds):
    """Read damaged files of every format, one after another."""
    rng, outcomes, samples = np.random.default_rng(seed), Outcomes(), make_samples()
    end, number = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        for suffix, data in samples.items():  # which loads the libraries, too
            path = Path(folder) / f"valid{suffix}"
            path.write_bytes(data)
            assert describe_reading(path) == "read", path
        while time.monotonic() < end:
            suffix = [*samples][number % len(samples)]
            path = Path(folder) / f"damaged{suffix}"
            path.write_bytes(damage(rng, suffix, samples[suffix]))
            outcome = read_apart(path)
            if outcome in ("read", "refused"):
                outcomes[outcome] += 1
            elif suffix.endswith("h5ad") and outcome.startswith(("no answer", "ended with")):
                outcomes["crashed or hung in HDF5"] += 1  # which nothing but itself can prevent
            else:
                kept = ROOT / "build" / "attack" / f"{seed}-{number}{suffix}"
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(path.read_bytes())
                outcomes.forbid(f"{kept.relative_to(ROOT)}: {outcome}")
            number += 1
    return outcomes
