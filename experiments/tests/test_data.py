import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.data import (
    Dataset,
    draw_clusters,
    list_datasets,
    load_dataset,
    open_dataset,
)
from taxarbor import FileFormatError, load_animals
from taxarbor.metrics import ClassTree

LABELS = np.array(list("abc"))
TREE = ClassTree.read({"name": "all", "children": [{"name": "a"}, {"name": "b"}]})


def test_npz_numbers_its_class_names(tmp_path, made):
    made.data(tmp_path, "some", feature_names=np.array(list("vwxyz")))
    X, y = made.blobs()
    data = load_dataset("some", tmp_path)
    assert np.array_equal(data.X, X)
    assert data.y.tolist() == [made.classes[number] for number in y]
    assert (data.n_classes, data.truth.names) == (4, made.classes)
    assert data.feature_names == ("v", "w", "x", "y", "z")
    made.data(tmp_path, "half", X=np.asfortranarray(X, dtype=np.float16))
    half = load_dataset("half", tmp_path)
    assert half.X.flags.c_contiguous
    assert half.X.dtype == data.X.dtype == np.float32
    assert half.digest() != data.digest()


def test_npz_without_class_names_has_the_labels_themselves(tmp_path, made):
    X = made.blobs()[0][:3]
    for name, y in (("words", LABELS), ("numbers", np.array([3, 1, 3]))):
        labels = y.astype(str).tolist()
        tree = [*sorted(set(labels)), "z"]
        made.data(tmp_path, name, X=X, y=y, class_names=None, of_tree=tree)
        assert load_dataset(name, tmp_path).y.tolist() == labels
        assert load_dataset(name, tmp_path).feature_names is None


def test_further_kinds_of_rows_are_data_sets(tmp_path, made):
    X = made.blobs()[0]
    names = np.array(list("vwxyz"))
    kinds = {"X_less": X[:, :2], "X_short": X[:7], "X_flat": X[:, 0], "extra": X}
    made.data(tmp_path, "some", feature_names=names, **kinds)
    np.savez(tmp_path / "weights.npz", W=np.eye(2))
    (tmp_path / "README.md").write_text("hello", encoding="utf-8")
    made.data(tmp_path, "one")
    assert list_datasets(tmp_path) == ["one", "some", "some/X_less"]
    data = load_dataset("some/X_less", tmp_path)
    assert data.name == "some/X_less"
    assert np.array_equal(data.X, X[:, :2])
    assert data.feature_names is None  # these are the other rows'
    assert data.truth.names == made.classes


def test_what_is_not_there(tmp_path, made):
    with pytest.raises(ValueError, match="is not a folder"):
        list_datasets(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no data in"):
        list_datasets(tmp_path)  # what raises is not remembered
    with pytest.raises(FileFormatError, match=r"no some\.npz"):
        load_dataset("some", tmp_path)
    for arrays, message in (
        ({"X": np.full((24, 2), np.nan)}, "missing or infinite"),
        (
            {"of_tree": ("ape", "bat", "cod", "dog")},
            r"some\.hierarchy\.json: 1 of the 4 .*'eel'",
        ),
    ):
        made.data(tmp_path, "some", **arrays)
        with pytest.raises(FileFormatError, match=message):
            load_dataset("some", tmp_path)
    (tmp_path / "some.hierarchy.json").unlink()
    with pytest.raises(FileFormatError, match=r"no some\.hierarchy\.json"):
        load_dataset("some", tmp_path)


def paths_to(node, above=()):
    """Yield the names from the root to each leaf."""
    here = (*above, node["name"])
    children = node.get("children", ())
    if not children:
        yield here
    for child in children:
        yield from paths_to(child, here)


def test_bundled_animals_have_classes():
    assert list_datasets(None) == ["animals"]
    animals, data = load_animals(), load_dataset("animals", None)
    path_to = {path[-1]: path for path in paths_to(animals.tree)}
    classes = {path[:3][-1] for path in path_to.values()}
    assert set(data.truth.names) == classes == set(data.y)
    for name, own in zip(animals.names, data.y, strict=True):
        assert own in path_to[name]
    cut = {path[:3] for path in path_to.values()}
    again = ClassTree.read({path[-1]: path[:-1] for path in cut})
    assert {*again.node_names} == {*data.truth.node_names}
    assert data.feature_names == animals.feature_names
    assert data.X.shape == animals.X.shape
    assert np.array_equal(data.X.max(axis=0), np.ones(animals.X.shape[1]))
    assert data.X.min() >= 0.0


@given(n_rows=st.integers(1, 60), max_rows=st.integers(0, 80))
def test_thinning_draws_rows_at_random(n_rows, max_rows):
    X = np.arange(n_rows, dtype=np.float32)[:, None]
    data = Dataset("some", X, X[:, 0].astype(str), TREE, None)
    thin = data.thin(max_rows)
    kept = thin.X[:, 0].astype(int)
    assert len(kept) == (min(max_rows, n_rows) if max_rows else n_rows)
    assert thin.y.tolist() == data.y[kept].tolist()
    assert (np.diff(kept) >= 1).all()
    assert np.array_equal(data.thin(max_rows).X, thin.X)


def test_drawn_clusters():
    X, labels = draw_clusters(4000, 30, 5, 2.0, seed=1)
    assert (X.shape, X.dtype) == ((4000, 30), np.float32)
    centers = np.array([X[labels == one].mean(axis=0) for one in range(5)])
    assert centers.std() == pytest.approx(2.0, rel=0.3)
    assert (X - centers[labels]).std() == pytest.approx(1.0, rel=0.02)
    data = load_dataset("planted/30/5/2", None)
    assert data.X.shape == (40_000, 30)
    assert data.n_classes == len(set(data.truth.leaves_of(list("01234")).tolist())) == 5


def test_scaling(made):
    """Rows of zeros and constant columns are left at zero, and the data as it was."""
    X = made.blobs()[0]
    X[3], X[:, 2] = 0.0, 0.0
    before = X.copy()
    data = Dataset("some", X, np.array(["a"] * len(X)), TREE, None)
    unit, standard = (data.scale(scaling).X for scaling in ("unit", "standard"))
    lengths = np.linalg.norm(unit, axis=1)
    assert lengths[3] == 0.0
    assert np.allclose(np.delete(lengths, 3), 1.0, atol=1e-6)
    assert np.allclose(unit * np.linalg.norm(X, axis=1)[:, None], X, atol=1e-5)
    assert np.allclose(standard.mean(axis=0), 0.0, atol=1e-6)
    assert np.allclose(standard.std(axis=0), [1, 1, 0, 1, 1], atol=1e-6)
    assert unit.dtype == standard.dtype == np.float32
    assert np.array_equal(X, before)
    assert data.scale("none") is data


def test_data_is_thinned_then_scaled(tmp_path, made):
    made.data(tmp_path, "some")
    data = open_dataset("some", "standard", 10, tmp_path)
    expected = load_dataset("some", tmp_path).thin(10).scale("standard")
    assert np.array_equal(data.X, expected.X)
    assert data.X.shape == (10, 5)
    assert open_dataset("some", "standard", 10, tmp_path) is data
