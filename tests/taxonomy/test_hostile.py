"""Files that are damaged or made to do harm, and large ones that are sound."""

import dataclasses
import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from taxarbor._errors import FileFormatError, InputError
from taxarbor.exchange import from_labels
from taxarbor.explain import explain
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._file import _write_archive
from taxarbor.tree import LinearRule


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.taxarbor"


def load(path):
    """Load; what is said of the file is one line, and not long."""
    try:
        return Taxonomy.load(path)
    except FileFormatError as error:
        is_short = len(str(error)) < 1000 and "\n" not in str(error)
        if not is_short:
            pytest.fail(f"told at length: {error}")
        raise


def write(path, arrays):
    with path.open("wb") as file:
        _write_archive(file, arrays)


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members:
            made.writestr(name, content)
    return file.getvalue()


def test_trees_of_many_alike_nodes_are_read(path):
    taxonomy = from_labels(np.arange(30_000))
    taxonomy.save(path)
    again = load(path)
    assert again.n_nodes == taxonomy.tree.n_nodes


def test_a_tree_takes_little_more_memory_to_read_than_to_hold(path):
    order = np.random.default_rng(0).permutation(500_000)
    n = len(order)
    taxonomy = Taxonomy(
        order=order,
        start=[0, 0, 9],
        stop=[n, 9, n],
        parents=[-1, 0, 0],
        birth=[0, 1, 1],
        score=np.zeros(3),
        objective=np.zeros(3),
        rules=(None,) * 3,
        info=(None,) * 3,
        notes=("",) * 3,
        weights=np.ones(n),
    )
    taxonomy.save(path)
    tracemalloc.start()
    again = load(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(again.order, order)
    assert held < 2.2 * 8 * n
    assert peak < 7 * 8 * n


def with_field(data, field, value, width=4):
    """Return an archive with a field of the first entry of its directory changed."""
    data, at = bytearray(data), data.index(b"PK\1\2")
    data[at + field : at + field + width] = value.to_bytes(width, "little")
    return bytes(data)


def test_strange_archives(known, path):
    known.save(path)
    whole, members = path.read_bytes(), members_of(path)
    order = members["order.npy"]
    for content in (
        with_field(whole, 8, 1, 2),  # encrypted
        with_field(whole, 16, 7),  # another checksum
        with_field(whole, 24, 2**32 - 1),  # larger than it is
        with_field(whole, 20, 2**32 - 2),
        with_field(whole, 42, 2**31),
        *(
            archive_of((members | {"order.npy": order.replace(old, new)}).items())
            for old, new in ((b"(10,)", b"(10"), (b"<i8", b"<i9"), (b"<i8", b"<U9"))
        ),
    ):
        path.write_bytes(content)
        with pytest.raises(FileFormatError):
            load(path)


def test_a_size_that_the_file_does_not_have_is_not_allocated(known, path):
    known.save(path)
    members = members_of(path)
    stated = members["order.npy"].replace(b"(10,)", b"(4000000000,)")
    path.write_bytes(archive_of((members | {"order.npy": stated}).items()))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_rows_must_fit_what_is_known_of_columns(bare):
    known = dataclasses.replace(bare, feature_names=None, two_values=[[0.0, 1.0]])
    with pytest.raises(InputError, match="X has 2 features, but the taxonomy was grown on 1"):
        explain(known, np.eye(10)[:, :2])


def test_points_too_far_apart_for_a_rule():
    with pytest.raises(InputError, match="must be finite"):
        LinearRule.nearest(np.array([[1.7e308], [-1.7e308]]))


def test_nodes_whose_rows_count_for_nothing(known):
    weights = np.zeros(10)
    weights[known.rows(1)] = 1.0  # the children of node 2 have none
    odd = dataclasses.replace(known, weights=weights)
    shares = odd.predict_proba(np.eye(2))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
