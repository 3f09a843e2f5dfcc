import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor._errors import FileFormatError
from taxarbor.bench import Dataset, list_datasets, load_dataset
from taxarbor.data import load_animals
from taxarbor.metrics import ClassTree

LABELS = np.array(list("abc"))


def csv(folder, text, name="some"):
    (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def test_npz_numbers_its_class_names(tmp_path, made):
    made.data(tmp_path, "some", feature_names=np.array(list("vwxyz")))
    X, y = made.blobs()
    found = load_dataset("some", tmp_path)
    assert np.array_equal(found.X, X)
    assert found.X.dtype == np.float32
    assert found.y.tolist() == [made.classes[number] for number in y]
    assert found.n_classes == 4
    assert found.feature_names == ("v", "w", "x", "y", "z")
    assert found.truth.names == made.classes


def test_npz_without_class_names_has_the_labels_themselves(tmp_path, made):
    X = made.blobs()[0][:3]
    made.data(tmp_path, "words", X=X, y=LABELS, class_names=None, truth=False)
    made.data(tmp_path, "numbers", X=X, y=np.array([3, 1, 3]), class_names=None, truth=False)
    assert load_dataset("words", tmp_path).y.tolist() == ["a", "b", "c"]
    assert load_dataset("numbers", tmp_path).y.tolist() == ["3", "1", "3"]
    assert load_dataset("words", tmp_path).truth is None
    assert load_dataset("words", tmp_path).feature_names is None


def test_further_kinds_of_rows_are_data_sets(tmp_path, made):
    X = made.blobs()[0]
    names = np.array(list("vwxyz"))
    kinds = {"X_less": X[:, :2], "X_short": X[:7], "X_flat": X[:, 0], "extra": X}
    made.data(tmp_path, "some", feature_names=names, **kinds)
    assert list_datasets(tmp_path) == ["some", "some/X_less"]
    found = load_dataset("some/X_less", tmp_path)
    assert found.name == "some/X_less"
    assert np.array_equal(found.X, X[:, :2])
    assert found.feature_names is None  # these are the other rows'
    assert found.truth.names == made.classes


def test_half_precision_and_whole_numbers_become_float32(tmp_path, made):
    X = np.arange(48).reshape(24, 2)
    made.data(tmp_path, "whole", X=X)
    made.data(tmp_path, "half", X=np.asfortranarray(X, dtype=np.float16))
    for name in ("whole", "half"):
        found = load_dataset(name, tmp_path).X
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        assert np.array_equal(found, X)


@pytest.mark.parametrize("column", ["class", "label", "y"])
def test_csv(tmp_path, column):
    csv(tmp_path, f"length,{column},weight,note\n1,ape,2.5,x\n3,cod,4,y\n")
    found = load_dataset("some", tmp_path)
    assert list_datasets(tmp_path) == ["some"]
    assert np.array_equal(found.X, np.array([[1.0, 2.5], [3.0, 4.0]], np.float32))
    assert found.y.tolist() == ["ape", "cod"]
    assert found.feature_names == ("length", "weight")


def test_csv_with_numbered_classes_finds_their_tree(tmp_path):
    csv(tmp_path, "length,y\n1,7\n3,8\n")
    (tmp_path / "some.nwk").write_text("(7,8);", encoding="utf-8")
    found = load_dataset("some", tmp_path)
    assert found.y.tolist() == ["7", "8"]
    assert found.truth.names == ("7", "8")


@pytest.mark.parametrize("suffix", ["nwk", "newick"])
def test_newick_tree(tmp_path, made, suffix):
    made.data(tmp_path, "some", truth=False)
    (tmp_path / f"some.{suffix}").write_text("((ape,bat),(cod,eel));", encoding="utf-8")
    assert load_dataset("some", tmp_path).truth.names == made.classes


def test_npz_and_csv_of_one_name_are_one(tmp_path, made):
    csv(made.data(tmp_path, "some"), "length,y\n1,7\n")
    assert list_datasets(tmp_path) == ["some"]
    assert load_dataset("some", tmp_path).X.shape == (24, 5)


def test_a_folder_is_read_in_order_and_other_files_do_not_matter(tmp_path, made):
    for name in ("b", "a"):
        made.data(tmp_path, name)
    np.savez(tmp_path / "weights.npz", W=np.eye(2))
    csv(tmp_path, "length,weight\n1,2\n", name="results")
    (tmp_path / "README.md").write_text("hello", encoding="utf-8")
    assert list_datasets(tmp_path) == ["a", "b"]


def test_no_folder(tmp_path):
    with pytest.raises(ValueError, match="is not a folder"):
        list_datasets(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no data in"):
        list_datasets(tmp_path)
    with pytest.raises(FileFormatError, match=r"no some\.npz or some\.csv"):
        load_dataset("some", tmp_path)


WRONG = {
    "no y": ({"y": None}, r"some\.npz lacks the arrays \['y'\]"),
    "no X": ({"X": None}, r"some\.npz lacks the arrays \['X'\]"),
    "flat X": ({"X": np.arange(24.0)}, r"X has shape \(24,\)"),
    "short y": ({"y": np.arange(3)}, r"y has \(3,\)"),
    "y beyond the names": ({"y": np.full(24, 4)}, "number them from 0 to 3"),
    "y before the names": ({"y": np.full(24, -1)}, "number them from 0 to 3"),
    "y in words": ({"y": np.array(["ape"] * 24)}, "number them from 0 to 3"),
    "X in words": ({"X": np.full((24, 2), "a")}, r"some\.npz cannot be read"),
    "pickled X": ({"X": np.full((24, 2), None)}, r"some\.npz cannot be read"),
    "missing cells": ({"X": np.full((24, 2), np.nan)}, "missing, infinite or beyond"),
    "too large": ({"X": np.full((24, 2), 1e300)}, "missing, infinite or beyond"),
    "no columns": ({"X": np.ones((24, 0))}, "has no numbers"),
    "no rows": ({"X": np.ones((0, 3)), "y": np.arange(0)}, "has no numbers"),
    "classes that the tree lacks": (
        {"classes": ("ape", "bat", "cod", "dog")},
        r"some\.hierarchy\.json: 1 of the 4 classes.*'dog'",
    ),
    "classes inside the tree": ({"classes": ("ape", "bat", "cod", "fish")}, "inner nodes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arrays(tmp_path, made, case):
    arrays, message = WRONG[case]
    made.data(tmp_path, "some", **arrays)
    with pytest.raises(FileFormatError, match=message):
        load_dataset("some", tmp_path)


@pytest.mark.parametrize("damage", ["text", "npy", "cut", "empty", "flipped"])
def test_damaged_npz(tmp_path, made, damage):
    path = made.data(tmp_path, "some") / "some.npz"
    whole = path.read_bytes()
    if damage == "npy":
        with path.open("wb") as file:
            np.save(file, np.eye(2))
    else:
        flipped = whole[:300] + bytes(100) + whole[400:]
        kinds = {"text": b"hello", "cut": whole[:400], "empty": b"", "flipped": flipped}
        path.write_bytes(kinds[damage])
    with pytest.raises(FileFormatError, match=r"some\.npz"):
        load_dataset("some", tmp_path)
    if damage != "flipped":  # which only those notice who read it all
        with pytest.raises(FileFormatError, match=r"some\.npz"):
            list_datasets(tmp_path)


def test_a_zip_file_of_something_else(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.npz", "w") as file:
        file.writestr("X.npy", b"hello")
    with pytest.raises(FileFormatError, match=r"some\.npz"):
        list_datasets(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("length,weight\n1,2\n", "no column called class or label or y"),
        ("", r"some\.csv cannot be read"),
        ('a,class\n1,"x\n', r"some\.csv cannot be read"),
        ("class\nape\n", "has no column of numbers"),
        ("length,class\n", "has no rows"),
        ("length,class\n1,ape\n,cod\n", "missing or infinite, in column 'length'"),
    ],
)
def test_wrong_csv(tmp_path, text, message):
    csv(tmp_path, text)
    with pytest.raises(FileFormatError, match=message):
        load_dataset("some", tmp_path)


def test_wrong_tree(tmp_path, made):
    made.data(tmp_path, "some")
    (tmp_path / "some.hierarchy.json").write_text('{"name": "all', encoding="utf-8")
    with pytest.raises(ValueError, match=r"some\.hierarchy\.json"):
        load_dataset("some", tmp_path)


def paths_to(node, above=()):
    """Yield the names from the root to each leaf."""
    here = (*above, node["name"])
    children = node.get("children", ())
    if not children:
        yield here
    for child in children:
        yield from paths_to(child, here)


def test_bundled_animals_are_in_groups():
    assert list_datasets(None) == ["animals"]
    animals, found = load_animals(), load_dataset("animals", None)
    path_to = {path[-1]: path for path in paths_to(animals.tree)}
    groups = {path[:3][-1] for path in path_to.values()}
    assert set(found.truth.names) == groups == set(found.y)
    for name, group in zip(animals.names, found.y, strict=True):
        assert group in path_to[name]
    cut = {path[:3] for path in path_to.values()}
    again = ClassTree.read([list(path) for path in cut])
    assert {*again.node_names} == {*found.truth.node_names}
    assert found.feature_names == animals.feature_names
    assert found.X.shape == animals.X.shape
    assert np.array_equal(found.X.max(axis=0), np.ones(animals.X.shape[1]))
    assert found.X.min() >= 0.0


@given(n_rows=st.integers(1, 60), max_rows=st.integers(0, 80))
def test_thinning_keeps_evenly_spaced_rows(n_rows, max_rows):
    X = np.arange(n_rows, dtype=np.float32)[:, None]
    data = Dataset("some", X, X[:, 0].astype(str), None, None)
    thin = data.thinned(max_rows)
    kept = thin.X[:, 0].astype(int)
    assert len(kept) == (min(max_rows, n_rows) if max_rows else n_rows)
    assert thin.y.tolist() == data.y[kept].tolist()
    assert kept[0] == 0
    steps = np.diff(kept)
    assert (steps >= 1).all()
    assert not len(steps) or steps.max() - steps.min() <= 1


def test_scaling_to_unit_length_leaves_zero_rows(made):
    X = made.blobs()[0]
    X[3] = 0.0
    data = Dataset("some", X, np.array(["a"] * len(X)), None, None)
    scaled = data.scaled("unit").X
    lengths = np.linalg.norm(scaled, axis=1)
    assert lengths[3] == 0.0
    assert np.allclose(np.delete(lengths, 3), 1.0, atol=1e-6)
    assert np.allclose(scaled * np.linalg.norm(X, axis=1)[:, None], X, atol=1e-5)
    assert scaled.dtype == np.float32


def test_scaling_to_unit_variance_leaves_constant_columns_zero(made):
    X = made.blobs()[0]
    X[:, 2] = 0.1
    before = X.copy()
    data = Dataset("some", X, np.array(["a"] * len(X)), None, None)
    scaled = data.scaled("standard").X
    assert np.allclose(scaled.mean(axis=0), 0.0, atol=1e-6)
    assert np.allclose(scaled.std(axis=0), [1, 1, 0, 1, 1], atol=1e-6)
    assert not scaled[:, 2].any()
    assert scaled.dtype == np.float32
    assert np.array_equal(X, before)
    assert data.scaled("none") is data


def test_tree_files_are_tried_in_order(tmp_path, made):
    made.data(tmp_path, "some")
    (tmp_path / "some.nwk").write_text("(ape,bat,cod,eel);", encoding="utf-8")
    assert load_dataset("some", tmp_path).truth.n_nodes == 7
    plain = {"children": [{"name": name} for name in made.classes]}
    (tmp_path / "some.hierarchy.json").rename(tmp_path / "other.hierarchy.json")
    (tmp_path / "some.tree.json").write_text(json.dumps(plain), encoding="utf-8")
    assert load_dataset("some", tmp_path).truth.n_nodes == 5


def test_a_text_among_numbers_is_named(tmp_path):
    text = "f0,f1,name,class\n1,2,x,a\n3,red,y,b\n5,6,z,a\n"
    (tmp_path / "some.csv").write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"column 'f1' but for 'red' in line 3"):
        load_dataset("some", tmp_path)
    (tmp_path / "some.csv").write_text(text.replace("red", "4"), encoding="utf-8")
    assert load_dataset("some", tmp_path).feature_names == ("f0", "f1")
