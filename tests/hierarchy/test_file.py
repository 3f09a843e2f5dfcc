"""The file format: what was saved comes back, and nothing else is let in; atomic writing."""

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
from taxarbor.exchange import to_json
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder
from taxarbor.hierarchy._file import _write_archive, pack
from taxarbor.hierarchy._whole import write_whole

PLACEMENT = ("weights", "offsets", "center", "leaves")
DAMAGED = ("weights", "fidelity", "placement_weights", "means")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.taxarbor"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_loading_what_was_saved_changes_nothing(trees, same, path, data):
    tree = data.draw(trees)
    tree.save(path)
    same(tree, Hierarchy.load(path))


def test_trees_of_all_kinds(chain, bare, placed, known, same, path):
    changes = [{"rules": (None,) * 6, "fidelity": None}, {"means": None}]
    others = [dataclasses.replace(placed, **change) for change in changes]
    single = dataclasses.replace(bare, means=placed.means.astype("float32"))
    by_columns = dataclasses.replace(placed, means=np.asfortranarray(placed.means))
    others += [HierarchyBuilder(2).freeze(), by_columns]
    for tree in (chain, bare, placed, *others, single, known):
        tree.save(path)
        same(tree, Hierarchy.load(path))


def test_numpy_reads_the_file_without_pickles(known, bare, placed, path):
    known.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["order"], known.order)
        shapes = [arrays[name].shape for name in ("weights", "centers", "offsets", "means")]
        assert shapes == [(5, 2), (2, 2), (5,), (0, 0)]
        assert json.loads(str(arrays["meta"]))["version"] == 3
        assert not any(arrays[f"placement_{name}"].size for name in PLACEMENT)
        assert np.isnan(arrays["fidelity"]).all()
    bare.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        assert not any(arrays[name].size for name in ("weights", "centers", "offsets"))
    placed.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        shapes = [arrays[f"placement_{name}"].shape for name in PLACEMENT]
        assert shapes == [(5, 2), (5,), (2,), (5,)]
        np.testing.assert_array_equal(arrays["placement_leaves"], [4, 1, 3, 5, 4])
        np.testing.assert_array_equal(arrays["fidelity"], placed.fidelity)
        np.testing.assert_array_equal(arrays["means"], placed.means)


def test_one_file_of_exactly_this_name(known, same, tmp_path):
    contents = set()
    for name in ("tree", "tree.npz", "tree.tree", "ünï cödé", "x" * 255):
        known.save(str(tmp_path / name))
        same(known, Hierarchy.load(str(tmp_path / name)))
        assert [p.name for p in tmp_path.iterdir()] == [name]
        contents.add((tmp_path / name).read_bytes())
        (tmp_path / name).unlink()
    assert len(contents) == 1  # the same tree gives the same bytes


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


def test_a_failed_write_leaves_the_old_file_alone(known, path, monkeypatch):
    path.write_bytes(b"old")
    places = ("os.replace", "os.fsync", "numpy.lib.format.write_array")
    for fail in (no_space, interrupt):
        for save, wheres in ((Hierarchy.save, places), (to_json, places[:2])):
            for where in wheres:
                with monkeypatch.context() as patch:
                    patch.setattr(where, fail)
                    with pytest.raises((OSError, KeyboardInterrupt)):
                        save(known, path)
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


def test_places_that_cannot_be_written_or_read(known, path, tmp_path):
    with pytest.raises(FileNotFoundError):
        known.save(tmp_path / "nowhere" / "tree")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        known.save(tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(FileNotFoundError):
        Hierarchy.load(path)
    with pytest.raises(IsADirectoryError):
        Hierarchy.load(tmp_path)


def test_files_of_others_are_refused(path):
    document, arrays = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(document, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    np.savez_compressed(arrays, X=np.zeros(3))
    for content in (b"", b"PK", b"a,b\n1,2\n", document.getvalue(), arrays.getvalue()):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"tree\.taxarbor.* not a taxarbor hierarchy"):
            Hierarchy.load(path)


def test_no_flipped_bit_goes_unnoticed_or_untamed(placed, same, path):
    """A flip is refused, or it is where it does not matter, as in a date."""
    placed.save(path)
    whole = path.read_bytes()
    for length in [4, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="damaged or incomplete"):
            Hierarchy.load(path)
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
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        entries = [archive.getinfo(f"{name}.npy") for name in DAMAGED]
    for entry in entries:
        damaged = bytearray(whole)
        damaged[entry.header_offset + 60 + entry.compress_size // 2] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="damaged"):
            Hierarchy.load(path)


META = [
    ({"version": 5}, "newer taxarbor: format version 5.*Upgrade"),
    *(({"version": version}, "valid version") for version in ("1", True, 0)),
    ({"format": "other"}, "not a taxarbor hierarchy"),
    ({"info": []}, "info has 0 entries"),
    ({"info": [{"status": "odd"}] * 6}, "odd"),
    ({"info": [{}] * 6}, "status"),
    ({"notes": [1] * 6}, "strings"),
    ({"feature_names": ["a"]}, "feature names"),
    ({"feature_names": 7}, "damaged"),
]
TEXTS = [
    (np.array("[]"), "not a taxarbor hierarchy"),
    (np.array("{"), "damaged"),
    (np.array('{"a": NaN}'), "NaN is not JSON"),
    (np.array("[" * 100_000), "damaged"),
    (np.zeros(3), "not a taxarbor hierarchy"),
]


def forged_arrays(t):
    """Return arrays to put in place of the good ones, and what is said of them."""
    means, cells, single = np.zeros((6, 2)), np.zeros((5, 2)), np.zeros(5, "f4")
    odd = [np.zeros(shape) for shape in [(0, 3), (3, 0), (0,), (1, 2)]]
    table = [
        ("virus", r"foreign: \['virus'\]", [np.zeros(3)]),
        ("order", "each of 0 to 9 once", [t.order[::-1] * 2]),
        ("order", "integers", [t.order.astype(float)]),
        ("parents", "must be ids of nodes", [-t.parents, t.parents + 10**9]),
        ("parents", "does not fit the others", [np.array(3), np.zeros(7, int)]),
        ("score", "score must hold floats", [np.full(6, "a")]),
        ("weights", "shape", [np.zeros((5, 3))]),
        ("weights", "do not fit the tree", [np.zeros((4, 2))]),
        ("weights", "finite", [np.full((5, 2), np.nan)]),
        ("weights", "float32", [cells.astype("float16")]),
        ("centers", "do not fit the tree", [np.zeros((3, 2)), np.zeros((0, 2))]),
        ("offsets", "do not fit the tree", [np.zeros(0), np.zeros(4)]),
        ("offsets", "shape", [np.zeros((5, 1))]),
        ("offsets", "offsets must hold floats", [np.zeros(5, int)]),
        ("offsets", "must be float64", [single]),
        ("means", "means must hold floats", [means.astype(int)]),
        ("means", "float16 of shape", [means.astype("f2")]),
        ("means", "means (must be|has shape)", [means.astype(">f8"), *odd]),
        ("means", "does not fit the others", [np.zeros((6, 3)), np.array(1.0)]),
        ("means", r"each of 6 nodes.*\(5, 2\)", [cells]),
        ("means", "means must be finite", [means + np.nan]),
        ("fidelity", "fidelity must hold floats", [np.zeros(6, int)]),
        ("fidelity", "fidelity has shape", [np.zeros(0)]),
        ("fidelity", "only a node with a rule", [np.zeros(6)]),
        ("leaves", "must be 5 integers", [np.zeros(0, int), np.array([4, 1, 3, 5])]),
        ("leaves", "placement_leaves must hold integers", [np.zeros(0), np.ones(5)]),
        ("leaves", "must hold integers", [np.ones(5, bool)]),
        ("leaves", "does not fit the others", [np.array(1)]),
        ("leaves", "must send rows to leaves", [np.array([4, 1, 3, 5, 2])]),
        ("leaves", "from 0 on", [np.array([4, 1, 3, 5, -1]), np.full(5, 2**63, "uint64")]),
        ("leaves", "every leaf must have a cell", [np.array([4, 1, 3, 3, 4])]),
        ("placement_weights", "shape", [np.zeros((0, 0)), np.zeros(5)]),
        ("placement_weights", "placement_offsets has shape", [np.zeros((4, 2))]),
        ("placement_weights", "finite", [cells + np.nan]),
        ("placement_weights", "must hold floats", [cells.astype(int)]),
        ("placement_weights", "both be float32", [cells.astype("f4")]),
        ("placement_offsets", "must be float64", [single]),
        ("placement_offsets", "offsets must have shape", [np.zeros(0)]),
        ("placement_center", "both be float32", [np.zeros(2, "f4")]),
    ]
    full = {"leaves": "placement_leaves"}
    wide = {"weights": np.zeros((5, 3)), "center": np.zeros(3)}
    narrow = {"weights": cells.astype("f4"), "center": np.zeros(2, "f4"), "offsets": single}
    return [({full.get(name, name): x}, told) for name, told, xs in table for x in xs] + [
        ({f"placement_{name}": array for name, array in rule.items()}, told)
        for rule, told in ((wide, "does not fit the others"), (narrow, "placement's too"))
    ]


def test_forged_contents_are_refused(placed, path, refused):
    good = pack(placed)
    meta = json.loads(str(good["meta"]))
    cases = [({"meta": np.array(json.dumps(meta | change))}, told) for change, told in META]
    cases += [({"meta": text}, told) for text, told in TEXTS] + forged_arrays(placed)
    cases = [(good | change, told) for change, told in cases]
    for name in good:
        left = {key: array for key, array in good.items() if key != name}
        told = "not a taxarbor hierarchy" if name == "meta" else rf"missing: \['{name}'\]"
        cases.append((left, told))
        if name != "meta":  # whatever is missing, the version is looked at first
            cases.append((left | {"meta": cases[0][0]["meta"]}, "newer taxarbor"))

    def load(arrays):
        with path.open("wb") as file:
            _write_archive(file, arrays)
        Hierarchy.load(path)

    assert len(cases) > 90
    refused(load, cases, FileFormatError)


class Bomb:
    """Unpickling it would be noticed."""

    def __reduce__(self):
        return (pytest.exit, ("unpickled",))


def npy_bytes(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def rewrite(path, name, content, compression=zipfile.ZIP_DEFLATED):
    """Replace one member of the archive, checksum and all."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for member, old in members.items():
            archive.writestr(member, content if member == name else old)


def test_forged_arrays_are_refused(known, path, refused):
    three, thirty = npy_bytes(np.zeros(3)), npy_bytes(np.zeros(30))
    cases = [
        (npy_bytes(np.array([Bomb()] * 10), allow_pickle=True), "Python objects"),
        (npy_bytes(np.zeros(3), version=(3, 0)), "unknown version"),
        (three[:-1], "not of the size"),
        (three.replace(b"(3,)", b"(3" + b"0" * 15 + b",)"), "header of an array is damaged"),
        (thirty.replace(b"(30,)", b"(99,)"), "not of the size"),
        (thirty.replace(b"(30,)", b"(-1,)"), "header of an array is damaged"),
        (b"not an array", "unknown version"),
        (b"", "unknown version"),
    ]

    def load(content):
        known.save(path)
        rewrite(path, "order.npy", content)
        Hierarchy.load(path)

    refused(load, cases, FileFormatError)
    known.save(path)
    rewrite(path, "", b"", zipfile.ZIP_LZMA)
    with pytest.raises(FileFormatError, match="compressed in an unknown way"):
        Hierarchy.load(path)


# Files that are written whole or not at all.


def new(file):
    file.write(b"new")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=[True, False], ids=["links", "no links"])
def target(request, tmp_path, monkeypatch):
    """A place to write to, where files can have a second name, or not."""

    def refuse_links(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), "draft")

    if not request.param:
        monkeypatch.setattr(os, "link", refuse_links)
    return tmp_path / "target"


def test_a_new_file(target):
    for replace in (False, True):
        write_whole(target, new, replace=replace)
        assert target.read_bytes() == b"new"
        assert names(target.parent) == ["target"]
        assert target.stat().st_nlink == 1
        target.unlink()


def test_a_file_that_came_meanwhile_stays(target):
    def write_late(file):
        file.write(b"new")
        target.write_bytes(b"theirs")

    with pytest.raises(FileExistsError) as caught:
        write_whole(target, write_late, replace=False)
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"theirs"
    assert names(target.parent) == ["target"]
    write_whole(target, write_late)
    assert target.read_bytes() == b"new"


def test_other_troubles_with_links_are_told(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, "broken", "draft")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="broken"):
        write_whole(path, new, replace=False)
    assert names(path.parent) == []


def test_only_files_are_replaced(path):
    os.mkfifo(path)
    for replace in (False, True):
        with pytest.raises(OSError, match=r"is no regular file.*tree"):
            write_whole(path, new, replace=replace)
        assert path.is_fifo()
        with pytest.raises(OSError, match="is no regular file"):
            write_whole("/dev/null", new, replace=replace)


def test_errors_name_the_path_that_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    troubles = [("nowhere/target", FileNotFoundError), ("folder", IsADirectoryError)]
    for replace in (False, True):
        for name, error in [*troubles, ("m" * 300, OSError)]:
            with pytest.raises(error) as caught:
                write_whole(name, new, replace=replace)
            assert caught.value.filename == name
    assert caught.value.errno == errno.ENAMETOOLONG


def test_what_the_writer_raises_passes(path):
    def fail(file):
        raise OSError(errno.ENOENT, "no such template", "template")

    with pytest.raises(FileNotFoundError) as caught:
        write_whole(path, fail)
    assert caught.value.filename == "template"
    assert names(path.parent) == []
