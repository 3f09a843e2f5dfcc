"""The file format: what was saved comes back, and nothing else is let in; atomic writing."""

import errno
import io
import json
import os
import stat
import tracemalloc
import zipfile
from itertools import product
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from taxarbor._atomic_write import write_atomically
from taxarbor._errors import FileFormatError
from taxarbor.exchange import from_labels
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.model_file import _write_archive, pack
from taxarbor.taxonomy.noise import NoiseModel
from tests.taxonomy.conftest import taxonomies
from tests.tree.conftest import assert_same


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.taxarbor"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(taxonomy=taxonomies())
def test_loading_what_was_saved_changes_nothing(path, taxonomy):
    taxonomy.save(path)
    assert_same(taxonomy, Taxonomy.load(path))


def test_one_file_of_exactly_this_name(known, tmp_path):
    contents = set()
    for name in ("tree", "tree.npz", "tree.tree", "ünï cödé", "x" * 255):
        known.save(str(tmp_path / name))
        assert_same(known, Taxonomy.load(str(tmp_path / name)))
        assert [p.name for p in tmp_path.iterdir()] == [name]
        contents.add((tmp_path / name).read_bytes())
        (tmp_path / name).unlink()
    assert len(contents) == 1  # the same tree gives the same bytes


def test_modes_and_links_are_kept(known, path, tmp_path):
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
    assert_same(known, Taxonomy.load(path))


def test_a_failed_write_leaves_the_old_file_alone(known, path, monkeypatch):
    path.write_bytes(b"old")
    errors = OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()
    places = ("os.replace", "os.fsync", "numpy.lib.format.write_array")
    for error, where in product(errors, places):
        with monkeypatch.context() as patch:
            patch.setattr(where, Mock(side_effect=error))
            with pytest.raises((OSError, KeyboardInterrupt)):
                known.save(path)
        assert path.read_bytes() == b"old"
        assert list(path.parent.iterdir()) == [path]


def test_places_that_cannot_be_written_or_read(known, tmp_path, monkeypatch):
    """Errors name the path that was given, and nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    places = [("nowhere/tree", FileNotFoundError), ("folder", IsADirectoryError)]
    for name, error in [*places, ("m" * 300, OSError)]:
        for use in (known.save, Taxonomy.load):
            with pytest.raises(error) as caught:
                use(name)
            assert caught.value.filename == name
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_files_of_others_are_refused(path):
    document, arrays = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(document, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    np.savez_compressed(arrays, X=np.zeros(3))
    for content in (b"", b"PK", b"a,b\n1,2\n", document.getvalue(), arrays.getvalue()):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"tree\.taxarbor"):
            Taxonomy.load(path)


def test_no_flipped_bit_goes_unnoticed_or_untamed(with_means, path):
    """A flip is refused, or it is where it does not matter, as in a date."""
    with_means.save(path)
    whole = path.read_bytes()
    for length in [4, 30, len(whole) // 2, len(whole) - 30, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="damaged"):
            Taxonomy.load(path)
    n_refused = 0
    flips = range(0, 8 * len(whole), 11)  # all bytes, and all bits of a byte in turn
    for flip in flips:
        damaged = bytearray(whole)
        damaged[flip // 8] ^= 1 << flip % 8
        path.write_bytes(damaged)
        try:
            loaded = Taxonomy.load(path)
        except FileFormatError:
            n_refused += 1
        else:
            assert_same(with_means, loaded)
    assert n_refused > len(flips) // 2


META = [
    *({"version": version} for version in (0, 2, "1", None)),
    {"format": "other"},
    {"info": []},
    {"info": {"0": {"status": "odd"}}},
    {"info": {"0": {}}},
    {"notes": {"0": 1}},
    {"columns": 7},
    {"temperature": "hot"},
]
READING = {"kind": "category", "categories": ["u", "v"], "rare": []}
COLUMNS = [
    *({"names": names} for names in (["a"], 7)),
    *({"n_columns_in": width} for width in (1, "many")),
    *({"readings": {place: READING}} for place in ("2", "-1", "b")),
    *({"readings": {"0": READING | {"kind": kind}}} for kind in ("odd", "number", "year")),
    *({"readings": {"0": READING | {"categories": names}}} for names in ([], ["u", "u"])),
]
TEXTS = ["[]", "{", "[" * 100_000, "null"]


def forged_arrays(t):
    """Return arrays to put in place of the good ones."""
    sums, single = np.zeros((4, 2)), np.zeros(5, "f4")
    return [
        *({"order": x} for x in (t.order[::-1] * 2, t.order.astype(float), t.order[:0])),
        *({"parents": x} for x in (-t.parents, t.parents + 10**9, np.array(3), np.zeros(7))),
        *({"score": x} for x in (np.full(6, "a"), np.zeros(5))),
        *({"weights": np.zeros(shape)} for shape in ((5, 3), (4, 2), (5,))),
        {"weights": np.full((5, 2), np.nan)},
        {"weights": np.zeros((5, 2), "float16")},
        *({"centers": x} for x in (np.zeros((3, 2)), np.zeros((0, 2)))),
        *({"offsets": x} for x in (np.zeros(0), np.zeros((5, 1)), np.zeros(5, int), single)),
        *(
            {"sums": x}
            for x in (sums + np.nan, sums[:3], sums[0], sums[:, :1], np.full((4, 2), "a"))
        ),
        *({"counts": x} for x in (np.zeros(4), np.ones(3), np.ones((4, 1)))),
        *({"columns_positions": np.array(x)} for x in ([0, 2], [-1, 0], [0])),
        *({"columns_fills": x} for x in (np.zeros(3), np.full(2, np.nan))),
        {"columns_is_boolean": np.zeros(3, bool)},
        {"columns_scale": np.zeros(2)},
        *({"rule_nodes": np.array(x)} for x in ([0, 0], [0, 7], [0], [1, 2])),
        *({"targets": np.array(x)} for x in ([0, 1, 2, 0], [0] * 5)),
    ]


def test_forged_contents_are_refused(with_means, path):
    good = pack(with_means)
    meta = json.loads(good["meta"])
    changes = [*META, *({"columns": meta["columns"] | change} for change in COLUMNS)]
    texts = [*TEXTS, *(json.dumps(meta | change) for change in changes)]
    cases = [{"meta": text} for text in texts]
    cases = [good | change for change in (*cases, *forged_arrays(with_means.tree))]
    cases.append(good | {"foreign": np.zeros(3)})
    for name in good:
        cases.append({key: array for key, array in good.items() if key != name})
    for arrays in cases:
        with path.open("wb") as file:
            _write_archive(file, arrays)
        with pytest.raises(FileFormatError, match=r"tree\.taxarbor"):
            Taxonomy.load(path)


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


def test_forged_arrays_are_refused(known, path):
    three, thirty = npy_bytes(np.zeros(3)), npy_bytes(np.zeros(30))
    for content in (
        npy_bytes(np.array([Bomb()] * 10), allow_pickle=True),
        npy_bytes(np.zeros(3), version=(3, 0)),
        three[:-1],
        three.replace(b"(3,)", b"(3" + b"0" * 15 + b",)"),
        thirty.replace(b"(30,)", b"(99,)"),
        thirty.replace(b"(30,)", b"(-1,)"),
        b"not an array",
        b"",
    ):
        known.save(path)
        rewrite(path, "order.npy", content)
        with pytest.raises(FileFormatError):
            Taxonomy.load(path)


def test_numpy_reads_the_file_without_pickles(with_means, bare, path):
    with_means.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["order"], with_means.tree.order)
        sums = with_means.statistics.sums[with_means.tree.leaves]
        np.testing.assert_array_equal(arrays["sums"], sums)
        assert json.loads(arrays["meta.json"])["columns"]["names"] == ["a", "b"]
        shapes = [arrays[name].shape for name in ("weights", "centers", "offsets")]
        assert shapes == [(5, 2), (2, 2), (5,)]
        assert json.loads(arrays["meta.json"])["version"] == 1
    bare.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        assert not {"weights", "centers", "offsets", "sums", "counts"} & set(arrays)


def refuse_in_little_memory(path, words=None):
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=words):
            Taxonomy.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_size_that_the_file_does_not_have_is_not_allocated(known, path):
    known.save(path)
    rewrite(path, "order.npy", npy_bytes(known.tree.order).replace(b"(10,)", b"(4000000000,)"))
    refuse_in_little_memory(path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *[("sums", (3_000_000, 1)), ("sums", (4, 700_000)), ("counts", (4_000_000,))],
        *[("parents", (30_000_000,)), ("columns_fills", (30_000_000,))],
    ],
)
def test_arrays_beyond_the_tree_are_not_read(with_means, path, name, shape):
    with_means.save(path)
    rewrite(path, f"{name}.npy", npy_bytes(np.zeros(shape)))
    assert path.stat().st_size < 300_000
    refuse_in_little_memory(path, "too many")


@pytest.mark.parametrize("filling", ['"{}"', "[{}0]"])
def test_metadata_out_of_proportion_are_not_read(known, path, filling):
    """A file of 200 kB may not take gigabytes."""
    known.save(path)
    n_bytes = 40_000_000
    text = "a" * n_bytes if "0" not in filling else "[]," * (n_bytes // 3)
    rewrite(path, "meta.json", f'{{"x": {filling.format(text)}}}')
    assert path.stat().st_size < 200_000
    refuse_in_little_memory(path, "bytes")


def test_a_large_tree_without_notes_is_small(path):
    labels = np.arange(20_000)
    from_labels(labels).save(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("meta.json").file_size < 10_000
    assert Taxonomy.load(path).tree.n_leaves == len(labels)


def test_a_lack_of_memory_is_no_damage(known, path, monkeypatch):
    known.save(path)
    fail = Mock(side_effect=MemoryError)
    monkeypatch.setattr("numpy.lib.format.read_array_header_1_0", fail)
    with pytest.raises(MemoryError):
        Taxonomy.load(path)


def test_a_draft_is_as_private_as_its_target(tmp_path):
    target, modes = tmp_path / "target", []

    def write(file):
        (draft,) = (one for one in tmp_path.iterdir() if one != target)
        modes.append(stat.S_IMODE(draft.stat().st_mode))
        file.write(b"new")

    for mode in (0o600, 0o640, 0o4755):
        target.write_bytes(b"old")
        target.chmod(mode)
        write_atomically(target, write)
        assert (stat.S_IMODE(target.stat().st_mode), target.read_bytes()) == (mode, b"new")
    assert modes == [0o600, 0o600, 0o600]


def test_a_scale_that_has_no_finite_inverse_is_refused():
    with pytest.raises(ValueError, match="scale"):
        NoiseModel(np.zeros((1, 2)), np.ones(1), scale=np.full(2, 1e-320))
