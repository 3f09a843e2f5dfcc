"""Damaged tables of each format: they are read, or refused with a FileFormatError."""

import gzip
import io

import numpy as np

from tests.attack.damage import ROOT, attack_files, damage, damage_member


def make_samples():
    """Return the bytes of small valid files by the ends of their names."""
    import pandas as pd
    from scipy import sparse

    def write(method, *values, **options):
        file = io.BytesIO()
        method(file, *values, **options)
        return file.getvalue()

    rng = np.random.default_rng(0)
    X = (rng.normal(size=(24, 5)) * (rng.random((24, 5)) < 0.6)).round(3)
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(city=["Bern", "Graz", "Lüne"] * 8)
    frame["day"] = pd.date_range("2020-01-01", periods=24).astype(str)
    csv = frame.to_csv(index=False).encode()
    samples = {
        ".csv": csv,
        ".csv.gz": gzip.compress(csv, mtime=0),
        ".parquet": write(frame.to_parquet),
        ".npy": write(np.save, np.asfortranarray(X, dtype=">f4")),
        ".npz": write(np.savez_compressed, X=X, names=frame["city"].to_numpy("U")),
        "-sparse.npz": write(sparse.save_npz, sparse.csr_array(X)),
    }
    for path in sorted((ROOT / "tests" / "tables" / "files").glob("*.h5ad")):
        samples[f"-{path.name}"] = path.read_bytes()
    return samples


def damage_file(rng, suffix, data):
    """Damage a file; compressed ones are often damaged inside and compressed again."""
    is_inside = rng.random() < 0.6
    if suffix.endswith(".gz") and is_inside:
        return gzip.compress(damage(rng, gzip.decompress(data)), mtime=0)
    if suffix.endswith(".npz") and is_inside:
        return damage_member(rng, data)
    return damage(rng, data)


def read(path):
    """Read a table."""
    from taxarbor.tables import read_table

    read_table(path)
    return "read"


def attack(seed, seconds):
    """Read damaged files of every format, one after another."""
    return attack_files(make_samples(), damage_file, read, seed, seconds)
