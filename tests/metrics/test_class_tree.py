"""The true tree, and every form that it is read from."""

import dataclasses
import json
import pickle

import numpy as np
import pytest

from taxarbor._errors import FileFormatError
from taxarbor.data import load_animals
from taxarbor.metrics import ClassTree

FELID = {"name": "felid", "children": [{"name": "cat"}]}
MAMMAL = {"name": "mammal", "children": [FELID, {"name": "grizzly bear"}]}
FISH = {"name": "fish", "children": [{"name": "it's_a_carp"}, {"name": "7"}]}
NESTED = {"name": "animal", "children": [MAMMAL, {"name": "owl"}, FISH]}
PATHS = [
    ("animal", "mammal", "felid", "cat"),
    ("animal", "mammal", "grizzly bear"),
    ("animal", "owl"),
    ("animal", "fish", "it's_a_carp"),
    ("animal", "fish", "7"),
]
PARENTS = [-1, 0, 1, 2, 1, 0, 0, 6, 6]
NODES = ["animal", "mammal", "felid", "cat", "grizzly bear", "owl", "fish", "it's_a_carp", "7"]
NAMES = ("cat", "grizzly bear", "owl", "it's_a_carp", "7")
STAR = ([-1, 0, 0], ["", "a", "b"])
LEAF = {"name": "a"}


def read(source):
    """Return the parents and names of all nodes."""
    taxonomy = ClassTree.read(source)
    return taxonomy.tree.parents.tolist(), list(taxonomy.node_names)


def refused(cases, error=ValueError):
    for source, message in cases:
        with pytest.raises(error, match=message):
            ClassTree.read(source)


def test_all_forms_give_one_tree_and_a_wrong_file_is_named(tmp_path):
    whole = {path[-1]: path for path in PATHS}
    sources = [
        NESTED, PATHS, [list(path) for path in PATHS], whole,
        {path[-1]: path[:-1] for path in PATHS}, json.dumps(NESTED), json.dumps(PATHS),
        json.dumps(whole, indent=2), ClassTree.read(NESTED),
    ]  # fmt: skip
    text = json.dumps(NESTED)
    texts = (text, "\ufeff" + text, f"\n{text}")
    for name, text in zip(("tree.json", "tree", "tree.txt"), texts, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
        sources.append(tmp_path / name)
    for source in sources:
        taxonomy = ClassTree.read(source)
        assert read(source) == (PARENTS, NODES)
        assert taxonomy.names == NAMES
        assert taxonomy.tree.leaves.tolist() == [3, 4, 5, 7, 8]
        assert (taxonomy.tree.n_nodes, taxonomy.tree.n_leaves) == (9, 5)
    path = tmp_path / "tree.json"
    for text, message in (
        ('["a", "b"', r"tree.json: .* is not a tree in JSON"),
        ('[["r", "s", "a"], ["r", "a"]]', r"tree.json: leaves must have different names"),
    ):
        path.write_text(text, encoding="utf-8")
        refused([(path, message)])
    with pytest.raises(FileNotFoundError):
        ClassTree.read(tmp_path / "absent.json")
    path.write_bytes(b'["cat", "\xff\xfe"]')
    with pytest.raises(FileFormatError, match=r"tree\.json is not text in UTF-8"):
        ClassTree.read(path)
    animals = load_animals()
    taxonomy = ClassTree.read(animals.tree)
    assert sorted(taxonomy.names) == list(animals.names)
    leaves = taxonomy.leaves_of(animals.names)
    assert [taxonomy.node_names[leaf] for leaf in leaves] == list(animals.names)


def test_nodes_may_come_in_any_order_and_the_tree_is_frozen():
    taxonomy = ClassTree(np.array([3, 4, 4, -1, 3]), ("owl", "cat", "dog", "animal", "mammal"))
    assert taxonomy.node_names == ("animal", "owl", "mammal", "cat", "dog")
    assert taxonomy.tree.parents.tolist() == [-1, 0, 0, 2, 2]
    taxonomy = ClassTree.read(NESTED)
    with pytest.raises(dataclasses.FrozenInstanceError):
        taxonomy.names = ()
    for array in (taxonomy.tree.parents, taxonomy.tree.leaves):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert ClassTree.read(taxonomy) is taxonomy
    assert repr(taxonomy) == "ClassTree(n_leaves=5, n_nodes=9)"
    assert read(pickle.loads(pickle.dumps(taxonomy))) == read(taxonomy)


def test_a_deep_tree_in_every_form():
    depth = 5000
    nested = {"name": "a"}
    for level in range(depth):
        nested = {"name": "", "children": [nested, {"name": f"b{level}"}]}
    assert ClassTree.read(nested).n_leaves == depth + 1
    path = [str(level) for level in range(depth)]
    assert ClassTree.read([[*path, "a"], [*path, "b"]]).n_nodes == depth + 2
    # JSON is read up to a moderate depth.
    for depth in (1, 20, 300, 50_000, 200_000):
        text = '{"children":[' * depth + '{"name":"a"}' + "]}" * depth
        if depth <= 300:
            assert ClassTree.read(text).n_nodes == depth + 1
        else:
            refused([(text, "nested too deeply")])


def test_what_is_no_tree():
    refused([
        ("", "the tree is empty"),
        (" \n", "the tree is empty"),
        ([], "the tree is empty"),
        ({}, "the tree is empty"),
        (
            {"children": [{"name": f"x{i // 2}"} for i in range(16)]},
            "more than one is 'x0', 'x1', 'x2', 'x3', 'x4', ...",
        ),
        ([["r", "s", "a"], ["r", "t", "a"]], "leaves must have different names"),
        ({"name": "r", "children": [{"name": ""}, {"name": "a"}]}, "a leaf.* has no name"),
        ({"children": [{"children": []}, {"name": "a"}]}, "a leaf.* has no name"),
        ([["r", ""]], "a leaf.* has no name"),
        ([["r", "a"], ["s", "b"]], "there are 2 roots, 'r', 's'; put one node above"),
    ])  # fmt: skip
    with pytest.raises(ValueError, match="1 names for 2 nodes"):
        ClassTree(np.array([-1, 0]), ("a",))
    with pytest.raises(ValueError, match=r"2 nodes cannot be reached.*a cycle: 'a', 'b'"):
        ClassTree(np.array([-1, 2, 1]), ("r", "a", "b"))
    for parents in ([-1, 2], [-1, -2]):
        with pytest.raises(ValueError, match="parents must be -1 or one of the 2 nodes"):
            ClassTree(np.array(parents), ("a", "b"))
    for source in (7, None, {1, 2}, object()):
        refused([(source, f"pathlib.Path; got {type(source).__name__}")], TypeError)


# Classes and leaves


def test_leaves_of_classes():
    taxonomy = ClassTree.read(NESTED)
    found = taxonomy.leaves_of(["owl", 7, np.int64(7), b"cat", np.str_("grizzly bear")])
    assert [taxonomy.node_names[leaf] for leaf in found] == [
        "owl",
        "7",
        "7",
        "cat",
        "grizzly bear",
    ]
    for names, classes, message in [
        (["cat", "owl"], ["cat", "ant"], "1 of the 2 .*: 'ant'; its leaves are 'cat', 'owl'$"),
        (["cat", "owl"], list("abcdefg"), "7 of the 7 .*'d', 'e', ...; its leaves"),
        (["cat", "owl"], [0, 1], r"0, 1; its leaves.* If y numbers.*: class_names\[y\]$"),
        (["cat", "owl"], [np.int64(0)], r"pass their names: class_names\[y\]$"),
        (["0", "1", "2"], [0, 3], "1 of the 2 .* 3; its leaves are '0', '1', '2'$"),
        (["cat", "owl"], ["0", "1"], "its leaves are 'cat', 'owl'$"),
        (["0", "1"], [0.0, 1.0], r"0.0, 1.0; .* whole numbers.*: y.astype\(int\)$"),
        (["0", "1"], [0.5], "0.5; its leaves are '0', '1'$"),
        (["cat", "owl"], ["cat", "animal"], "Some are inner nodes, but rows must"),
    ]:
        flat = ClassTree.read([["animal", name] for name in names])
        with pytest.raises(ValueError, match=message):
            flat.leaves_of(classes)


def test_ancestors_at_a_depth():
    mammal = ["animal", "vertebrate", "mammal"]
    above = {"cat": mammal, "dog": mammal, "owl": mammal[:2], "ant": mammal[:1]}
    taxonomy = ClassTree.read(above)
    classes = ["ant", "cat", "dog", "owl"]
    assert taxonomy.ancestors_of(classes, 0) == ["animal"] * 4
    assert taxonomy.ancestors_of(classes, 2) == ["ant", "mammal", "mammal", "owl"]
    with pytest.raises(ValueError, match="'elk'"):
        taxonomy.ancestors_of(["elk"], 1)
    animals = load_animals()
    assert 5 < len(set(ClassTree.read(animals.tree).ancestors_of(animals.names, 2))) < 50


# Nested mappings


def test_nested_mappings():
    taxonomy = {"children": [{"name": "a", "wnid": "n1"}, {"name": "b", "children": []}]}
    assert read(taxonomy) == STAR
    taxonomy = {"name": None, "children": ({"name": 1}, {"name": "b"})}
    assert read(taxonomy)[1] == ["", "1", "b"]
    assert read({"name": "a", "children": None}) == ([-1], ["a"])
    itself = {"name": "r", "children": [{"name": "s", "children": []}]}
    itself["children"][0]["children"].append(itself)
    long = bad = {"name": "0", "children": []}
    for level in range(1, 2000):
        bad["children"].append({"name": str(level), "children": []})
        (bad,) = bad["children"]
    bad["children"].append(None)
    twice = {"name": "r", "children": [{"name": "s", "children": [LEAF]}, LEAF]}
    refused([
        ({"name": "r", "children": ["a"]}, r"must be a mapping.*found 'a' below 'r'"),
        ({"name": "r", "children": [["a"]]}, r"must be a mapping.*found \['a'\] below 'r'"),
        ({"name": "r", "children": "ab"}, r"of 'r' must be a list of nodes, got str"),
        ({"name": "r", "children": {"a": 1}}, "must be a list of nodes, got dict"),
        ({"name": "r", "children": 7}, "must be a list of nodes, got int"),
        (twice, "the node 'a' occurs twice, the second time below 'r'; in a tree"),
        (itself, "'r' occurs twice, the second time below 's'"),
        (long, r"found None below '1999'$"),
    ])  # fmt: skip


# Paths


def test_paths():
    expected = ([-1, 0, 1, 1, 0], ["r", "s", "a", "b", "c"])
    paths = [["r", "s", "a"], ("r", "s", "b"), np.array(["r", "c"])]
    assert read(paths) == expected
    assert read(np.array([["r", "a"], ["r", "b"]])) == ([-1, 0, 0], ["r", "a", "b"])
    # Nodes are told apart by all the names above them.
    assert read([["r", "x", "other", "a"], ["r", "y", "other", "b"]]) == (
        [-1, 0, 1, 2, 0, 4, 5],
        ["r", "x", "other", "a", "y", "other", "b"],
    )
    # A mapping may leave the class out.
    whole = {"a": ["r", "s", "a"], "b": ["r", "b"], 1: ["r", "1"]}
    above = {"a": ["r", "s"], "b": ["r"], 1: ("r",)}
    assert read(whole) == read(above) == ([-1, 0, 1, 0, 0], ["r", "s", "a", "b", "1"])
    assert read({"a": []}) == ([-1], ["a"])
    # Classes may be called "name" and "children".
    assert read({"name": ["r", "s"], "children": ["r"]})[1] == ["r", "s", "name", "children"]
    refused([
        (["abc"], "a path must be a sequence of names from the root to the class, got 'abc'"),
        ([7], "a path must be a sequence of names.*got 7"),
        ({"a": "r/a"}, "a path must be a sequence of names.*got 'r/a'"),
        ([[]], "a path is empty"),
        ([["r", "a"], ["r", "a"]], "two paths lead to the class 'a'"),
        ([["r", "a"], ["r", "a", "b"]], r"class 'a' has others below it.*'a \(other\)'"),
        ([["r", "a", "b"], ["r", "a"]], "the class 'a' has others below it"),
    ])  # fmt: skip


# Text


def test_text():
    assert read('{"children": [{"name": "a"}, {"name": "b"}]}') == STAR
    assert read(' {"a": [""], "b": [""]} ') == read('[["", "a"], ["", "b"]]') == STAR
    for name in ("tree.json", "data/tree.json", "cat", "((cat,dog),owl);"):
        refused([(name, r"not a tree in JSON.*pass pathlib.Path\(...\)")])
    refused([
        ('{"name": "a",}', "not a tree in JSON: .*line 1 column"),
        ('{"name": "a"', "not a tree in JSON: .*line 1 column"),
        ('{"name": "a"} {}', "not a tree in JSON: .*line 1 column"),
        ('{"name": "a", "children": ["b"]}', "a node must be a mapping"),
        ("7", "an object or a list"),
    ])  # fmt: skip
