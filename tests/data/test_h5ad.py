"""Files that would read other files."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from taxarbor._errors import FileFormatError
from taxarbor.data import read_table

WHOLE = Path(__file__).parent / "files" / "dense.h5ad"


def external_storage(file, secret):
    del file["X"]
    file.create_dataset("X", (6, 4), np.uint8, external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def virtual_dataset(file, secret):
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["X"] = np.ones((6, 4))
    layout = h5py.VirtualLayout(shape=(6, 4), dtype=float)
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "X", shape=(6, 4))
    del file["X"]
    file.create_virtual_dataset("X", layout)


def external_link(file, secret):
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["X"] = np.ones((6, 4))
    del file["X"]
    file["X"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "X")


def soft_link(file, secret):
    external_link(file, secret)
    file.move("X", "deep/inside")
    file["X"] = h5py.SoftLink("/deep/inside")


def names_of_rows(file, secret):
    del file["obs/_index"]
    external = [(str(secret), 0, h5py.h5f.UNLIMITED)]
    file.create_dataset("obs/_index", (6,), "S4", external=external)


@pytest.mark.parametrize(
    "change", [external_storage, virtual_dataset, external_link, soft_link, names_of_rows]
)
def test_no_other_file_is_read(tmp_path, change):
    secret = tmp_path / "secret"
    secret.write_bytes(b"password" * 10)
    path = tmp_path / "data.h5ad"
    path.write_bytes(WHOLE.read_bytes())
    with h5py.File(path, "r+") as file:
        change(file, secret)
    with pytest.raises(FileFormatError, match=r"another file; that is not read, for safety"):
        read_table(path)


def test_links_within_the_file_are_followed(tmp_path):
    path = tmp_path / "data.h5ad"
    path.write_bytes(WHOLE.read_bytes())
    with h5py.File(path, "r+") as file:
        file.move("X", "elsewhere")
        file["X"] = h5py.SoftLink("/elsewhere")
    assert read_table(path).X.shape == (6, 4)
