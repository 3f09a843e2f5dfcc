"""The same rows in many places, and simple works."""

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from tests.sources.works import NAMES


def write_h5ad(path, X, names=NAMES):
    with h5py.File(path, "w") as file:
        var = file.create_group("var")
        var.attrs["_index"] = "_index"
        var["_index"] = np.array(names, dtype=object)
        if sparse.issparse(X):
            group = file.create_group("X")
            group.attrs["encoding-type"] = f"{X.format}_matrix"
            group.attrs["shape"] = X.shape
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(X, part)
        else:
            file["X"] = X
    return path


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
