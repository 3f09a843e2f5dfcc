"""Files that are made to do harm: refused by what they state, before they are read."""

import dataclasses
import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from taxarbor._errors import FileFormatError, InputError
from taxarbor.exchange import from_labels
from taxarbor.explain import explain
from taxarbor.hierarchy import Hierarchy, LinearRule, _file
from taxarbor.hierarchy._file import _write_archive, pack

MANY = 4_000_000
DAMAGED = "header of an array is damaged"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.taxarbor"


def load(path):
    """Load; what is said of the file is one line, and not long."""
    try:
        return Hierarchy.load(path)
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


HEADERS = [
    (b"(", b"((((", DAMAGED),
    (b"'descr'", b"'des\n\xffr'", DAMAGED),
    (b"'shape'", b"'sh'ape'", DAMAGED),
    (b"}", b"", DAMAGED),
    (b"False", b"Folse", DAMAGED),
    (b"(10,)", b"(1, 5, 2)", DAMAGED),
    (b"(10,)", b"(" + b"9" * 30 + b",)", DAMAGED),
    (b"<i8", b"<i9", "damaged or incomplete"),
    (b"<i8", b"<U9", "not of the size"),
]


@pytest.mark.parametrize(("old", "new", "told"), HEADERS)
def test_damaged_headers(known, path, old, new, told):
    known.save(path)
    members = members_of(path)
    whole = members["order.npy"]
    length = int.from_bytes(whole[8:10], "little")
    header = whole[10 : 10 + length].replace(old, new)
    size = len(header).to_bytes(2, "little")
    members["order.npy"] = whole[:8] + size + header + whole[10 + length :]
    path.write_bytes(archive_of(members.items()))
    with pytest.raises(FileFormatError, match=told):
        load(path)


BOMBS = [
    ("order", (MANY,), "<i8", "order states more than its bytes can hold"),
    ("start", (MANY,), "<i8", "start states more than its bytes can hold"),
    ("parents", (MANY,), "<i8", "parents has shape"),
    ("score", (MANY,), "<f8", "score has shape"),
    ("score", (0, MANY), "<f8", "score has shape"),
    ("weights", (5, MANY // 5), "<f8", "weights has shape"),
    ("weights", (MANY, 2), "<f8", "weights has shape"),
    ("offsets", (MANY,), "<f8", "offsets has shape"),
    ("follows_gap", (MANY, 2), "<f8", "follows_gap has shape"),
    ("trust_rows", (MANY,), "<f8", "foreign"),
    ("virus", (MANY,), "<f8", "foreign"),
    ("meta", (), f"<U{MANY}", "the text states more"),
]


def refused_at_once(path, told):
    """Check that a file is refused in these words, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=told) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert not isinstance(caught.value.__cause__, MemoryError)


@pytest.mark.parametrize(("name", "shape", "dtype", "told"), BOMBS)
def test_what_cannot_be_of_a_tree_is_not_read(placed, path, name, shape, dtype, told):
    write(path, pack(placed) | {name: np.zeros(shape, dtype=dtype)})
    assert path.stat().st_size < 100_000
    refused_at_once(path, told)


def test_a_long_text_is_not_read_for_bytes_that_are_not_its_own(placed, path):
    arrays = pack(placed)
    meta = json.loads(str(arrays["meta"])) | {"notes": [[]] * 500_000}
    write(path, arrays | {"meta": np.array(json.dumps(meta))})
    refused_at_once(path, "the text states more")
    archive = io.BytesIO()
    with (
        zipfile.ZipFile(path) as old,
        zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.fp.write(np.random.default_rng(0).bytes(300_000))
        new.start_dir = new.fp.tell()
    path.write_bytes(archive.getvalue())
    assert path.stat().st_size > 300_000
    refused_at_once(path, "the text states more")


def widened(tree, n_columns):
    """Return the arrays of a tree whose other columns are all zero, and of long names."""
    names = [f"{'the same words before every number ' * 12}{at}" for at in range(n_columns)]
    arrays = pack(tree)
    meta = json.loads(str(arrays["meta"])) | {
        "feature_names": names if n_columns < 10**6 else None
    }
    for name in ("weights", "centers", "means", "placement_weights"):
        zeros = np.zeros((len(arrays[name]), n_columns))
        zeros[:, : arrays[name].shape[1]] = arrays[name]
        arrays[name] = zeros
    center = np.zeros(n_columns)
    center[: len(arrays["placement_center"])] = arrays["placement_center"]
    return arrays | {"meta": np.array(json.dumps(meta)), "placement_center": center}


def test_a_tree_that_memory_cannot_hold_is_not_read(placed, path, monkeypatch):
    arrays = widened(placed, 2_000_000)
    write(path, {name: array for name, array in arrays.items() if name != "two_values"})
    assert path.stat().st_size < 500_000
    monkeypatch.setattr(_file, "available", lambda: 10**8)
    refused_at_once(path, r"may take \d+\.\d GB of memory to load, and 0\.1 GB are left")


def test_wide_trees_of_zeros_are_small_files_and_read(placed, path, monkeypatch):
    arrays = widened(placed, 2_000)
    write(path, arrays)
    assert path.stat().st_size < arrays["meta"].nbytes / 20
    monkeypatch.setattr(_file, "available", lambda: 0)  # as it may seem; it takes little
    again = load(path)
    assert len(again.feature_names) == again.n_features == 2_000
    np.testing.assert_array_equal(again.means, arrays["means"])


def test_trees_of_many_alike_nodes_are_read(path):
    tree = from_labels(np.arange(30_000))
    tree.save(path)
    again = load(path)
    assert again.n_nodes == tree.n_nodes


def test_parents_that_are_no_ids_take_no_memory(placed, path):
    arrays = pack(placed)
    arrays["parents"] = np.where(np.arange(6) == 5, 10**12, arrays["parents"])
    write(path, arrays)
    with pytest.raises(FileFormatError, match="parents must be ids of nodes"):
        load(path)


def test_a_tree_takes_little_more_memory_to_read_than_to_hold(path):
    order = np.random.default_rng(0).permutation(500_000)
    n = len(order)
    tree = Hierarchy(
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
    tree.save(path)
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


def test_strange_archives(known, path, refused):
    known.save(path)
    whole, members = path.read_bytes(), [*members_of(path).items()]
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = archive_of([*members, ("start.npy", b"")])
    cases = [
        (with_field(whole, 8, 1, 2), "encrypted"),
        (with_field(whole, 16, 7), "CRC"),
        (with_field(whole, 24, 2**32 - 1), "the text states more"),
        (with_field(whole, 20, 2**32 - 2), "more bytes than the file has|damaged"),
        (with_field(whole, 42, 2**31), "damaged"),
        (twice, "not a taxarbor hierarchy"),
        (archive_of([*members, ("../start.npy", b"")]), r"foreign: \['\.\./start'\]"),
        (archive_of([*members, ("x" * 60_000 + "\n.npy", b"")]), "foreign"),
        (archive_of([*members, ("start.npy/", b"")]), "foreign"),
    ]

    def load_bytes(content):
        path.write_bytes(content)
        load(path)

    refused(load_bytes, cases, FileFormatError)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


STRANGE = [
    ({"made_by": {"a": float("inf")}}, "made_by must hold finite numbers"),
    ({"made_by": {"a": nested(60)}}, "20 levels"),
    ({"temperature": float("inf")}, "temperature must be"),
    ({"version": ["x" * 10_000]}, "valid version"),
    ({"feature_names": ["\n" * 10_000]}, "feature names"),
]


def test_strange_texts(known, path, refused):
    good = pack(known)
    meta = json.loads(str(good["meta"]))
    texts = [
        (json.dumps(meta | change).replace("Infinity", "1e999"), told)
        for change, told in STRANGE
    ]
    texts.append((json.dumps(meta)[:-1] + ', "notes": []}', "a name stands twice"))

    def load_text(text):
        write(path, good | {"meta": np.array(text)})
        load(path)

    refused(load_text, texts, FileFormatError)


def test_follows_names_nodes_above(doubted, path, refused):
    """Else pruning would give a tree that is none."""
    good = pack(doubted)
    inside = good["follows_broken"].copy()
    inside[good["order"][0]] = 2  # a row of node 1
    below = good["follows_worst"].copy()
    below[2] = 2
    cases = [({"follows_broken": inside}, "nodes above"), ({"follows_worst": below}, "above")]
    gap = np.full((6, 2), np.inf)
    cases.append(({"follows_gap": gap}, "gaps of follows must be finite"))

    def load_arrays(change):
        write(path, good | change)
        load(path)

    refused(load_arrays, cases, FileFormatError)


def test_rows_must_fit_what_is_known_of_columns(bare):
    known = dataclasses.replace(bare, feature_names=None, two_values=[[0.0, 1.0]])
    with pytest.raises(InputError, match="X has 2 features, but the hierarchy was grown on 1"):
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
