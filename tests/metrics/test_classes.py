"""Labels of every kind, and the true tree in both forms that it is read from."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from taxarbor.data import load_animals
from taxarbor.exchange import from_labels
from taxarbor.metrics import ClassTree, tree_scores

FELID = {"name": "felid", "children": [{"name": "cat"}]}
MAMMAL = {"name": "mammal", "children": [FELID, {"name": "grizzly bear"}]}
FISH = {"name": "fish", "children": ({"name": "it's_a_carp", "wnid": "n1"}, {"name": 7})}
NESTED = {"name": "animal", "children": [MAMMAL, {"name": "owl", "children": None}, FISH]}
PATHS = {
    "cat": ("animal", "mammal", "felid"),
    "grizzly bear": ["animal", "mammal"],
    "owl": np.array(["animal"]),
    "it's_a_carp": ["animal", "fish"],
    7: ["animal", "fish"],
}
PARENTS = [-1, 0, 1, 2, 1, 0, 0, 6, 6]
NODES = ["animal", "mammal", "felid", "cat", "grizzly bear", "owl", "fish", "it's_a_carp", "7"]
NAMES = ("cat", "grizzly bear", "owl", "it's_a_carp", "7")


def read(source):
    """Return the parents and names of all nodes."""
    tree = ClassTree.read(source)
    return tree.parents.tolist(), list(tree.node_names)


# Labels


def assert_same_classes(y, partition):
    assert tree_scores(from_labels(partition), y)["adjusted_rand"] == 1.0


def test_labels_of_every_kind():
    rows, partition = ["b", "a", "b", "c", "a"], [0, 1, 0, 2, 1]
    for y in (
        rows, tuple(rows), np.array(rows), np.array(rows, dtype=object), np.ma.array(rows),
        pd.Series(rows, index=[5, 4, 3, 2, 1]), pd.Series(rows, dtype=object), pd.Index(rows),
        pd.Series(rows, dtype="category"),
        pd.Categorical(rows, categories=["z", "c", "b", "a"]),
        pl.Series(rows), pl.Series(rows, dtype=pl.Categorical),
    ):  # fmt: skip
        assert_same_classes(y, partition)
    for dtype in ("int8", "int64", "float32", "float64", "object"):
        numbers = np.array([3, -2, 3, 100, -2], dtype=dtype)
        assert_same_classes(numbers, partition)
        assert_same_classes(pd.Series(numbers), partition)
    for dtype in ("int64", "uint64", "int8", "uint8"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        assert_same_classes(np.array([high, low, high, high - 1, low], dtype), partition)
    for unit in ("D", "s", "ns"):
        days = [f"2020-01-0{1 + part}" for part in partition]
        assert_same_classes(np.array(days, dtype=f"datetime64[{unit}]"), partition)
    assert_same_classes(np.array([True, False, True]), [0, 1, 0])
    assert_same_classes(pd.Series([(1, 2), "x", (1, 2)]), [0, 1, 0])
    assert_same_classes(np.array([b"b", b"a", b"b"]), [0, 1, 0])
    # Labels that read the same are one class.
    assert_same_classes([1, "1", 2, "2"], [0, 0, 1, 1])


def test_rows_without_a_class_are_excluded():
    tree = from_labels([0, 0, 0, 1])
    for y in (
        ["a", None, "a", math.nan], [1, math.nan, 1, math.nan], ["a", "", "a", " "],
        np.array([1.0, math.nan, 1.0, math.nan]), np.array([1, math.nan, 1, 1j * math.nan]),
        np.array(["a", np.float32("nan"), "a", None], dtype=object),
        np.array(["a", pd.NA, "a", pd.NaT], dtype=object),
        np.array(["2020-01-01", "NaT", "2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array(["2020-01-01", "NaT", "2020-01-01", "NaT"], dtype="datetime64[ns]"),
        np.ma.array([1, 2, 1, 4], mask=[0, 1, 0, 1]),
        pd.Series(["a", None, "a", None]), pd.Series([1, None, 1, None], dtype="Int64"),
        pd.Categorical(["a", None, "a", None]),
        pl.Series(["a", None, "a", None]), pl.Series([1, None, 1, None]),
        np.array([b"a", b"", b"a", b""]), pd.Series(["a", "", "a", None], dtype="category"),
    ):  # fmt: skip
        with pytest.warns(UserWarning, match="^2 rows are excluded"):
            assert tree_scores(tree, y)["adjusted_rand"] == 1.0
    for y in ([None] * 4, [math.nan] * 4, ["", None, " ", ""], pd.Series([None] * 4)):
        with pytest.raises(ValueError, match="none of the 4 rows has a label"):
            tree_scores(tree, y)


def test_what_cannot_be_classes_is_refused():
    tree = from_labels([0, 1, 1])
    square, frame = np.zeros((3, 1), dtype=int), pd.DataFrame({"y": [1, 2, 3]})
    for y in ("abc", ["a", "b"], square, frame, 7, []):
        with pytest.raises(ValueError, match=r"shape \(3,\)"):
            tree_scores(tree, y)
    with pytest.raises(ValueError, match="unhashable"):
        tree_scores(tree, np.array([["a"], {"b": 1}, None], dtype=object))


# The tree of the classes


def test_both_forms_give_one_tree():
    for source in (NESTED, PATHS, ClassTree.read(NESTED)):
        assert read(source) == (PARENTS, NODES)
        tree = ClassTree.read(source)
        assert tree.names == NAMES
        assert tree.leaves.tolist() == [3, 4, 5, 7, 8]
    animals = load_animals()
    tree = ClassTree.read(animals.tree)
    assert sorted(tree.names) == list(animals.names)
    leaves = tree.leaves_of(animals.names)
    assert [tree.node_names[leaf] for leaf in leaves] == list(animals.names)


def test_the_tree_is_frozen():
    tree = ClassTree.read(NESTED)
    for array in (tree.parents, tree.leaves):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert ClassTree.read(tree) is tree
    assert repr(tree) == "ClassTree(n_leaves=5, n_nodes=9)"
    assert read(pickle.loads(pickle.dumps(tree))) == read(tree)


def test_deep_trees():
    depth = 5000
    nested = {"name": "a"}
    for level in range(depth):
        nested = {"name": "", "children": [nested, {"name": f"b{level}"}]}
    assert len(ClassTree.read(nested).names) == depth + 1
    path = [str(level) for level in range(depth)]
    assert len(ClassTree.read({"a": path, "b": path}).parents) == depth + 2


def test_names_of_nodes():
    assert read({"children": [{"name": "a"}, {"name": "b"}]}) == ([-1, 0, 0], ["", "a", "b"])
    assert read({"name": "a", "children": None}) == read({"a": []}) == ([-1], ["a"])
    # Nodes differ where any name above them does.
    assert read({"a": ["r", "x", "other"], "b": ["r", "y", "other"]}) == (
        [-1, 0, 1, 2, 0, 4, 5],
        ["r", "x", "other", "a", "y", "other", "b"],
    )
    # Classes may be called "name" and "children", and like the node above them.
    assert read({"name": ["r", "s"], "children": ["r"]})[1] == ["r", "s", "name", "children"]
    assert read({"bison": ["ox", "bison"], "yak": ["ox"]})[1] == ["ox", "bison", "bison", "yak"]


def test_what_is_no_tree():
    leaf = {"name": "a"}
    for source, named in [
        ({}, "begin with the same name"),
        ({"": ["r"]}, "no name"),
        ({"name": "r", "children": [{"name": ""}, leaf]}, "no name"),
        ({"name": "r", "children": [{"name": "s", "children": [leaf]}, leaf]}, "repeated: 'a'"),
        ({"name": "r", "children": ["a"]}, "'a' below 'r'"),
        *(({"name": "r", "children": wrong}, "'r'") for wrong in ("ab", {"a": 1}, 7)),
        *(({"a": "r/a"}, "'r/a'"), ({"a": 7}, "7")),
        ({"a": ["r"], "b": ["s"]}, "root; got 'r', 's'"),
        *(({"a": ["r"], "b": ["r", "a"]}, "'a'"), ({"b": ["r", "a"], "a": ["r"]}, "'a'")),
    ]:
        with pytest.raises(ValueError, match=named):
            ClassTree.read(source)
    for source in (7, None, {1, 2}, object(), "tree.json", [["r", "a"]]):
        with pytest.raises(TypeError, match=type(source).__name__):
            ClassTree.read(source)


def test_leaves_of_classes():
    tree = ClassTree.read(NESTED)
    leaves = tree.leaves_of(["owl", 7, np.int64(7), np.str_("grizzly bear")])
    assert [tree.node_names[leaf] for leaf in leaves] == ["owl", "7", "7", "grizzly bear"]
    for classes, named in [
        (["cat", "ant"], "1 of the 2 .*: 'ant'; its leaves are 'cat', "),
        (list("abcdefg"), "7 of the 7 .*'d', 'e' and 2 more"),
        ([0, 1], r"class_names\[y\]"),
        (["cat", "animal"], "'animal'"),
    ]:
        with pytest.raises(ValueError, match=named):
            tree.leaves_of(classes)


def test_ancestors_at_a_depth():
    mammal = ["animal", "vertebrate", "mammal"]
    above = {"cat": mammal, "dog": mammal, "owl": mammal[:2], "ant": mammal[:1]}
    tree, classes = ClassTree.read(above), ["ant", "cat", "dog", "owl"]
    assert tree.ancestors_of(classes, 0) == ["animal"] * 4
    assert tree.ancestors_of(classes, 2) == ["ant", "mammal", "mammal", "owl"]
    with pytest.raises(ValueError, match="'elk'"):
        tree.ancestors_of(["elk"], 1)
