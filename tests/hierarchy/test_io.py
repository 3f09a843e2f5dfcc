import dataclasses
import errno
import io
import json
import os
import stat
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taxarbor._errors import FileFormatError
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder
from taxarbor.hierarchy._io import _write_archive, pack


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.taxarbor"


def write(path, arrays):
    """Write arrays as save does, whatever they are."""
    with path.open("wb") as file:
        _write_archive(file, arrays)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_loading_what_was_saved_changes_nothing(trees, same, path, data):
    tree = data.draw(trees)
    tree.save(path)
    same(tree, Hierarchy.load(path))


def test_a_root_alone_and_a_deep_tree(chain, same, path):
    for tree in (HierarchyBuilder(2).freeze(), chain):
        tree.save(path)
        same(tree, Hierarchy.load(path))


def test_a_tree_without_rules(bare, same, path):
    bare.save(path)
    same(bare, Hierarchy.load(path))
    with np.load(path) as arrays:
        assert not any(arrays[name].size for name in ("weights", "centers", "offsets"))


PLACEMENT = ("weights", "offsets", "center", "leaves")


def test_a_placement_and_its_absence(placed, known, same, path):
    for rules in (placed.rules, (None,) * 6):
        fidelity = placed.fidelity if rules[0] else None
        tree = dataclasses.replace(placed, rules=rules, fidelity=fidelity)
        tree.save(path)
        same(tree, Hierarchy.load(path))
        with np.load(path) as arrays:
            shapes = [arrays[f"placement_{name}"].shape for name in PLACEMENT]
            assert shapes == [(5, 2), (5,), (2,), (5,)]
            np.testing.assert_array_equal(arrays["placement_leaves"], [4, 1, 3, 5, 4])
            np.testing.assert_array_equal(arrays["fidelity"], tree.fidelity)
    known.save(path)
    with np.load(path) as arrays:
        assert not any(arrays[f"placement_{name}"].size for name in PLACEMENT)
        assert np.isnan(arrays["fidelity"]).all()


def test_one_file_of_exactly_this_name(known, same, tmp_path):
    for name in ("tree", "tree.npz", "tree.tree", "ünï cödé", "x" * 255):
        known.save(str(tmp_path / name))
        same(known, Hierarchy.load(str(tmp_path / name)))
        assert [p.name for p in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


def test_the_same_tree_gives_the_same_bytes(known, tmp_path):
    known.save(tmp_path / "a")
    known.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_reads_the_file_without_pickles(known, path):
    known.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["order"], known.order)
        assert arrays["weights"].shape == (5, 2)
        assert arrays["centers"].shape == (2, 2)
        assert arrays["offsets"].shape == (5,)
        assert json.loads(str(arrays["meta"]))["version"] == 3


def test_modes_and_links_are_kept(known, same, path, tmp_path):
    known.save(path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    known.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    same(known, Hierarchy.load(path))


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("fail", [no_space, interrupt])
@pytest.mark.parametrize(
    ("write", "where"),
    [
        (Hierarchy.save, "os.replace"),
        (Hierarchy.save, "os.fsync"),
        (Hierarchy.save, "numpy.lib.format.write_array"),
        (Hierarchy.to_json, "os.replace"),
        (Hierarchy.to_json, "os.fsync"),
    ],
)
def test_a_failed_write_leaves_the_old_file_alone(known, path, monkeypatch, fail, write, where):
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises((OSError, KeyboardInterrupt)):
            write(known, path)
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_a_disk_that_fills_up_midway(known, path, monkeypatch):
    real, calls = np.lib.format.write_array, []

    def write_array(*args, **kwargs):
        calls.append(args)
        return real(*args, **kwargs) if len(calls) < 4 else no_space()

    monkeypatch.setattr("numpy.lib.format.write_array", write_array)
    with pytest.raises(OSError, match="No space left"):
        known.save(path)
    assert len(calls) == 4
    assert list(path.parent.iterdir()) == []


def test_places_that_cannot_be_written(known, tmp_path):
    with pytest.raises(FileNotFoundError):
        known.save(tmp_path / "nowhere" / "tree")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        known.save(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_what_is_not_there_passes_through(path):
    with pytest.raises(FileNotFoundError):
        Hierarchy.load(path)
    with pytest.raises(IsADirectoryError):
        Hierarchy.load(path.parent)


def foreign_zip():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    return file.getvalue()


def foreign_npz():
    file = io.BytesIO()
    np.savez_compressed(file, X=np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"a,b\n1,2\n", foreign_zip(), foreign_npz()],
    ids=["empty", "two bytes", "csv", "zip", "npz"],
)
def test_files_of_others_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"tree\.taxarbor.* not a taxarbor hierarchy"):
        Hierarchy.load(path)


def test_truncated_files_are_refused(known, path):
    known.save(path)
    whole = path.read_bytes()
    for length in [4, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="damaged or incomplete"):
            Hierarchy.load(path)


def test_no_flipped_bit_goes_unnoticed_or_untamed(placed, same, path):
    """A flip is refused, or it is where it does not matter, as in a date."""
    placed.save(path)
    whole = path.read_bytes()
    n_refused = 0
    flips = range(0, 8 * len(whole), 11)  # all bytes, and all bits of a byte in turn
    for flip in flips:
        damaged = bytearray(whole)
        damaged[flip // 8] ^= 1 << flip % 8
        path.write_bytes(damaged)
        try:
            loaded = Hierarchy.load(path)
        except FileFormatError:
            n_refused += 1
        else:
            same(placed, loaded)
    assert n_refused > len(flips) // 2


@pytest.mark.parametrize("name", ["weights", "fidelity", "placement_weights", "means"])
def test_a_flipped_bit_in_the_data_is_refused(placed, path, name):
    placed.save(path)
    damaged = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo(f"{name}.npy")
    damaged[entry.header_offset + 60 + entry.compress_size // 2] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(FileFormatError, match="damaged"):
        Hierarchy.load(path)


def with_meta(tree, **changes):
    arrays = pack(tree)
    meta = json.loads(str(arrays["meta"])) | changes
    return arrays | {"meta": np.array(json.dumps(meta))}


def forged(tree, *, fidelity=None, **parts):
    """Return the packed arrays with other parts of the placement, or another fidelity."""
    arrays = pack(tree) | {f"placement_{name}": array for name, array in parts.items()}
    return arrays if fidelity is None else arrays | {"fidelity": fidelity}


def without(arrays, *names):
    return {name: array for name, array in arrays.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: with_meta(t, version=4), "newer taxarbor: format version 4.*Upgrade"),
        (lambda t: without(with_meta(t, version=4), "order"), "newer taxarbor"),
        (lambda t: with_meta(t, version="1"), "valid version"),
        (lambda t: with_meta(t, version=True), "valid version"),
        (lambda t: with_meta(t, version=0), "valid version"),
        (lambda t: with_meta(t, format="other"), "not a taxarbor hierarchy"),
        (lambda t: with_meta(t, info=[]), "info has 0 entries"),
        (lambda t: with_meta(t, info=[{"status": "odd"}] * 6), "odd"),
        (lambda t: with_meta(t, info=[{}] * 6), "status"),
        (lambda t: with_meta(t, notes=[1] * 6), "strings"),
        (lambda t: with_meta(t, feature_names=["a"]), "feature names"),
        (lambda t: with_meta(t, feature_names=7), "damaged"),
        (lambda t: pack(t) | {"meta": np.array("[]")}, "not a taxarbor hierarchy"),
        (lambda t: pack(t) | {"meta": np.array("{")}, "damaged"),
        (lambda t: pack(t) | {"meta": np.array('{"a": NaN}')}, "NaN is not JSON"),
        (lambda t: pack(t) | {"meta": np.array("[" * 100_000)}, "damaged"),
        (lambda t: pack(t) | {"meta": np.zeros(3)}, "not a taxarbor hierarchy"),
        (lambda t: without(pack(t), "meta"), "not a taxarbor hierarchy"),
        (lambda t: without(pack(t), "order", "birth"), r"missing: \['birth', 'order'\]"),
        (lambda t: pack(t) | {"virus": np.zeros(3)}, r"foreign: \['virus'\]"),
        (lambda t: pack(t) | {"order": t.order[::-1] * 2}, "each of 0 to 9 once"),
        (lambda t: pack(t) | {"order": t.order.astype(float)}, "integers"),
        (lambda t: pack(t) | {"parents": -t.parents}, "damaged"),
        (lambda t: pack(t) | {"parents": np.array(3)}, "damaged"),
        (lambda t: pack(t) | {"score": np.full(6, "a")}, "score must hold floats"),
        (lambda t: pack(t) | {"weights": np.zeros((5, 3))}, "shape"),
        (lambda t: pack(t) | {"weights": np.zeros((4, 2))}, "do not fit the tree"),
        (lambda t: pack(t) | {"centers": np.zeros((3, 2))}, "do not fit the tree"),
        (lambda t: pack(t) | {"weights": np.full((5, 2), np.nan)}, "finite"),
        (lambda t: pack(t) | {"weights": np.zeros((0, 2))}, "do not fit the tree"),
        (lambda t: pack(t) | {"centers": np.zeros((0, 2))}, "do not fit the tree"),
        (lambda t: without(pack(t), "offsets"), r"missing: \['offsets'\]"),
        (lambda t: pack(t) | {"offsets": np.zeros(0)}, "do not fit the tree"),
        (lambda t: pack(t) | {"offsets": np.zeros(4)}, "do not fit the tree"),
        (lambda t: pack(t) | {"offsets": np.zeros((5, 1))}, "shape"),
        (lambda t: pack(t) | {"offsets": np.zeros(5, int)}, "offsets must hold floats"),
        (lambda t: pack(t) | {"offsets": np.zeros(5, "float32")}, "must be float64"),
        (lambda t: pack(t) | {"offsets": np.full(5, np.inf)}, "finite"),
        (lambda t: pack(t) | {"weights": np.zeros((5, 2), "float16")}, "float32"),
        (lambda t: with_meta(t, version=1), r"foreign: \['fidelity', 'means', 'placement_cen"),
        (lambda t: with_meta(t, version=2), r"foreign: \['means'\]"),
        (lambda t: without(pack(t), "means"), r"missing: \['means'\]"),
        (lambda t: pack(t) | {"means": np.zeros((6, 2), int)}, "means must hold floats"),
        (lambda t: pack(t) | {"means": np.zeros((6, 2), "f2")}, "float16 of shape"),
        (lambda t: pack(t) | {"means": np.zeros((6, 2), "f4")}, "dtype and the number"),
        (lambda t: pack(t) | {"means": np.zeros((6, 2), ">f8")}, "means must be floats"),
        (lambda t: pack(t) | {"means": np.zeros((6, 3))}, "number of features of the rules"),
        (lambda t: pack(t) | {"means": np.zeros((6, 1))}, "number of features of the rules"),
        (lambda t: pack(t) | {"means": np.zeros((6, 0))}, "number of features of the rules"),
        (lambda t: pack(t) | {"means": np.zeros((5, 2))}, r"each of 6 nodes.*\(5, 2\)"),
        (lambda t: pack(t) | {"means": np.zeros((7, 2))}, r"each of 6 nodes.*\(7, 2\)"),
        (lambda t: pack(t) | {"means": np.zeros(6)}, r"each of 6 nodes.*\(6,\)"),
        (lambda t: pack(t) | {"means": np.zeros((6, 2, 1))}, r"each of 6 nodes"),
        (lambda t: pack(t) | {"means": np.array(1.0)}, "damaged"),
        (lambda t: pack(t) | {"means": np.full((6, 2), np.nan)}, "means must be finite"),
        (lambda t: pack(t) | {"means": np.diag([np.inf] * 6)[:, :2]}, "means must be finite"),
        (lambda t: without(pack(t), "fidelity"), r"missing: \['fidelity'\]"),
        (lambda t: forged(t, fidelity=np.zeros(6, int)), "fidelity must hold floats"),
        (lambda t: forged(t, fidelity=np.zeros(0)), "fidelity has shape"),
        (lambda t: forged(t, fidelity=np.full(6, 2.0)), "fidelity must be from 0 to 1"),
        (lambda t: forged(t, fidelity=np.zeros(6)), "only a node with a rule"),
        (lambda t: without(pack(t), "placement_leaves"), r"missing: \['placement_leaves'\]"),
        (lambda t: forged(t, leaves=np.zeros(0, int)), "must be 5 integers"),
        (lambda t: forged(t, leaves=np.zeros(0)), "placement_leaves must hold integers"),
        (lambda t: forged(t, leaves=np.ones(5)), "placement_leaves must hold integers"),
        (lambda t: forged(t, leaves=np.ones(5, bool)), "must hold integers"),
        (lambda t: forged(t, leaves=np.array(1)), "damaged"),
        (lambda t: forged(t, leaves=np.array([4, 1, 3, 5])), "must be 5 integers"),
        (lambda t: forged(t, leaves=np.array([4, 1, 3, 5, 2])), "must send rows to leaves"),
        (lambda t: forged(t, leaves=np.array([4, 1, 3, 5, 6])), "must send rows to leaves"),
        (lambda t: forged(t, leaves=np.array([4, 1, 3, 5, 2**62])), "must send rows"),
        (lambda t: forged(t, leaves=np.array([4, 1, 3, 5, -1])), "from 0 on"),
        (lambda t: forged(t, leaves=np.full(5, 2**63, "uint64")), "from 0 on"),
        (lambda t: forged(t, leaves=np.array([4, 1, 3, 3, 4])), "every leaf must have a cell"),
        (lambda t: forged(t, weights=np.zeros((0, 0))), "shape"),
        (lambda t: forged(t, weights=np.zeros(5)), "shape"),
        (lambda t: forged(t, weights=np.zeros((4, 2))), "offsets must have shape"),
        (lambda t: forged(t, weights=np.full((5, 2), np.nan)), "finite"),
        (lambda t: forged(t, weights=np.zeros((5, 2), int)), "must hold floats"),
        (lambda t: forged(t, weights=np.zeros((5, 2), "f4")), "both be float32"),
        (lambda t: forged(t, offsets=np.zeros(5, "f4")), "must be float64"),
        (lambda t: forged(t, offsets=np.zeros(0)), "offsets must have shape"),
        (lambda t: forged(t, center=np.zeros(2, "f4")), "both be float32"),
        (lambda t: forged(t, center=np.full(2, np.inf)), "finite"),
        (lambda t: forged(t, center=np.zeros(3), weights=np.zeros((5, 3))), "placement's too"),
        (
            lambda t: forged(
                t,
                center=np.zeros(2, "f4"),
                weights=np.zeros((5, 2), "f4"),
                offsets=np.zeros(5, "f4"),
            ),
            "placement's too",
        ),
    ],
)
def test_forged_contents_are_refused(placed, path, change, message):
    write(path, change(placed))
    with pytest.raises(FileFormatError, match=message):
        Hierarchy.load(path)


ADDED = {1: ("fidelity", "means", *(f"placement_{name}" for name in PLACEMENT)), 2: ("means",)}
"""What each version had not, and the present one has."""


def old(tree, version):
    """Return the arrays as an old version packed them."""
    return without(with_meta(tree, version=version), *ADDED[version])


@pytest.mark.parametrize("version", [1, 2])
def test_files_and_pickles_of_old_versions_are_read(known, bare, placed, same, path, version):
    left = {1: known, 2: dataclasses.replace(placed, means=None)}[version]
    for tree, expected in ((known, known), (bare, bare), (placed, left)):
        write(path, old(tree, version))
        same(expected, Hierarchy.load(path))
        again = Hierarchy.__new__(Hierarchy)
        again.__setstate__(old(tree, version))
        same(expected, again)


@pytest.mark.parametrize(
    ("version", "message"),
    [(1, r"missing: \['fidelity', 'means', 'placement_center'"), (2, r"missing: \['means'\]")],
)
def test_files_must_have_what_their_version_has(known, path, version, message):
    write(path, old(known, version) | {"meta": pack(known)["meta"]})
    with pytest.raises(FileFormatError, match=message):
        Hierarchy.load(path)


def test_files_of_version_2_must_have_what_version_1_had_not(known, path):
    write(path, old(known, 1) | {"meta": old(known, 2)["meta"]})
    with pytest.raises(FileFormatError, match=r"missing: \['fidelity', 'placement_center'"):
        Hierarchy.load(path)


def test_means_and_their_absence(placed, known, bare, same, path):
    for tree in (placed, dataclasses.replace(bare, means=placed.means.astype("float32"))):
        tree.save(path)
        same(tree, Hierarchy.load(path))
        with np.load(path) as arrays:
            np.testing.assert_array_equal(arrays["means"], tree.means)
            assert arrays["means"].dtype == tree.means.dtype
    known.save(path)
    assert Hierarchy.load(path).means is None
    with np.load(path) as arrays:
        assert arrays["means"].shape == (0, 0)


def rewrite(path, name, content, compression=zipfile.ZIP_DEFLATED):
    """Replace one member of the archive, checksum and all."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for member, old in members.items():
            archive.writestr(member, content if member == name else old)


def npy_bytes(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


class Bomb:
    """Unpickling it would be noticed."""

    def __reduce__(self):
        return (pytest.exit, ("unpickled",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy_bytes(np.array([Bomb()] * 10), allow_pickle=True), "Python objects"),
        (npy_bytes(np.zeros(3), version=(3, 0)), "unknown version"),
        (npy_bytes(np.zeros(3))[:-1], "not of the size"),
        (npy_bytes(np.zeros(3)).replace(b"(3,)", b"(3" + b"0" * 15 + b",)"), "not of the size"),
        (npy_bytes(np.zeros(30)).replace(b"(30,)", b"(99,)"), "not of the size"),
        (npy_bytes(np.zeros(30)).replace(b"(30,)", b"(-1,)"), "not of the size"),
        (b"not an array", "damaged"),
        (b"", "damaged"),
    ],
)
def test_forged_arrays_are_refused(known, path, content, message):
    known.save(path)
    rewrite(path, "order.npy", content)
    with pytest.raises(FileFormatError, match=message):
        Hierarchy.load(path)


def test_unknown_compressions_are_refused(known, path):
    known.save(path)
    rewrite(path, "", b"", zipfile.ZIP_LZMA)
    with pytest.raises(FileFormatError, match="compressed in an unknown way"):
        Hierarchy.load(path)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (1, 2)])
def test_means_of_another_shape_are_no_absence(known, path, shape):
    write(path, pack(known) | {"means": np.zeros(shape)})
    with pytest.raises(FileFormatError, match="means must be"):
        Hierarchy.load(path)
