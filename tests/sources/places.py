"""The same rows in many places, and simple works."""

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from tests.sources.works import NAMES


class AnnData:
    """A stand-in for anndata's class, which need not be installed."""

    isbacked = False

    def __init__(self, X, names, obsm=None, layers=None, raw=None):
        self.X, self.var_names, self.obsm = X, pd.Index(names), obsm or {}
        self.layers, self.raw = layers or {}, raw
        self.shape = self.n_obs, self.n_vars = X.shape


AnnData.__module__ = "anndata"


def write_h5ad(path, X, names=NAMES, layers=None, raw=None, obs=None):
    """Write X, and layers and ``raw``, a pair of a matrix and its names, as anndata does."""
    with h5py.File(path, "w") as file:
        _write_matrix(file, "X", X)
        _write_names(file, "var", names)
        if obs is not None:
            _write_names(file, "obs", obs)
        for layer, matrix in (layers or {}).items():
            _write_matrix(file, f"layers/{layer}", matrix)
        if raw is not None:
            _write_matrix(file, "raw/X", raw[0])
            _write_names(file, "raw/var", raw[1])
    return path


def _write_names(file, key, names):
    var = file.create_group(key)
    var.attrs["_index"] = "_index"
    var["_index"] = np.array(names, dtype=object)


def _write_matrix(file, key, X):
    if not sparse.issparse(X):
        file[key] = X
        return
    group = file.create_group(key)
    group.attrs["encoding-type"] = f"{X.format}_matrix"
    group.attrs["shape"] = X.shape
    for part in ("data", "indices", "indptr"):
        group[part] = getattr(X, part)


def local_places(folder, X):
    """Return the rows in memory and in files, by a name."""
    frame = pd.DataFrame(X, columns=NAMES)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    np.save(folder / "c.npy", X)
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    np.save(folder / "swapped.npy", X.astype(">f4"))
    pq.write_table(table, folder / "one.parquet", row_group_size=700)
    parts = folder / "parts"
    (parts / "deep").mkdir(parents=True)
    pq.write_table(table.slice(0, 1000), parts / "a.parquet")
    pq.write_table(table.slice(0, 0), parts / "b.pq")
    pq.write_table(table.slice(1000), parts / "deep" / "c.parq", row_group_size=100)
    (parts / "_hidden.parquet").write_bytes(b"nothing")
    csr = sparse.csr_array(X)
    write_h5ad(folder / "dense.h5ad", X)
    write_h5ad(folder / "csr.h5ad", csr)
    return {
        "array": X,
        "csr": csr,
        "coo": csr.tocoo(),
        "lists": X.tolist(),
        "pandas": frame,
        "pyarrow": table,
        "npy": folder / "c.npy",
        "fortran": str(folder / "fortran.npy"),
        "swapped": folder / "swapped.npy",
        "memmap": np.load(folder / "c.npy", mmap_mode="r"),
        "memmap of Fortran": np.load(folder / "fortran.npy", mmap_mode="r"),
        "copy on write": np.load(folder / "c.npy", mmap_mode="c"),
        "parquet": folder / "one.parquet",
        "folder": parts,
        "dense h5ad": folder / "dense.h5ad",
        "CSR h5ad": folder / "csr.h5ad",
    }
