import dataclasses
import itertools
import json
import pickle

import networkx as nx
import numpy as np
import pytest

from taxarbor.data import load_animals
from taxarbor.metrics import ClassTree

NESTED = {
    "name": "animal",
    "children": [
        {
            "name": "mammal",
            "children": [
                {"name": "felid", "children": [{"name": "cat"}]},
                {"name": "grizzly bear"},
            ],
        },
        {"name": "owl"},
        {"name": "fish", "children": [{"name": "it's_a_carp"}, {"name": "7"}]},
    ],
}
PATHS = [
    ("animal", "mammal", "felid", "cat"),
    ("animal", "mammal", "grizzly bear"),
    ("animal", "owl"),
    ("animal", "fish", "it's_a_carp"),
    ("animal", "fish", "7"),
]
NEWICK = "(((cat)felid,grizzly bear)mammal,owl,('it''s_a_carp',7:2)fish)animal;"
EDGES = [edge for path in PATHS for edge in itertools.pairwise(path)]
PARENTS = [-1, 0, 1, 2, 1, 0, 0, 6, 6]
NAMES = ("cat", "grizzly bear", "owl", "it's_a_carp", "7")


@pytest.mark.parametrize(
    "source",
    [
        NESTED,
        PATHS,
        [list(path) for path in PATHS],
        {path[-1]: path for path in PATHS},
        {path[-1]: path[:-1] for path in PATHS},
        NEWICK,
        json.dumps(NESTED),
        json.dumps({path[-1]: path for path in PATHS}, indent=2),
        nx.DiGraph(EDGES),
        ClassTree.read(NESTED),
    ],
    ids=range(10),
)
def test_all_forms_give_one_tree(source):
    tree = ClassTree.read(source)
    assert tree.parents.tolist() == PARENTS
    assert tree.names == NAMES
    assert tree.node_names == (
        "animal",
        "mammal",
        "felid",
        "cat",
        "grizzly bear",
        "owl",
        "fish",
        "it's_a_carp",
        "7",
    )
    assert tree.leaves.tolist() == [3, 4, 5, 7, 8]
    assert (tree.n_nodes, tree.n_leaves) == (9, 5)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tree.json", json.dumps(NESTED)),
        ("tree.nwk", NEWICK),
        ("tree", "\ufeff" + NEWICK),
        ("tree.txt", f"\n{json.dumps(NESTED)}"),
    ],
)
def test_files(tmp_path, file, text):
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    assert ClassTree.read(path).parents.tolist() == PARENTS
    assert ClassTree.read(path).names == NAMES


def test_a_wrong_file_is_named(tmp_path):
    path = tmp_path / "tree.nwk"
    path.write_text("(a,b", encoding="utf-8")
    with pytest.raises(ValueError, match=r"tree.nwk: not a tree in Newick format.*character 5"):
        ClassTree.read(path)
    path.write_text("(a,a);", encoding="utf-8")
    with pytest.raises(ValueError, match=r"tree.nwk: leaves must have different names"):
        ClassTree.read(path)
    with pytest.raises(FileNotFoundError):
        ClassTree.read(tmp_path / "absent.json")


def test_what_is_bundled():
    animals = load_animals()
    tree = ClassTree.read(animals.tree)
    assert sorted(tree.names) == list(animals.names)
    leaves = tree.leaves_of(animals.names)
    assert [tree.node_names[leaf] for leaf in leaves] == list(animals.names)


def test_nodes_may_come_in_any_order():
    tree = ClassTree(np.array([3, 4, 4, -1, 3]), ("owl", "cat", "dog", "animal", "mammal"))
    assert tree.node_names == ("animal", "owl", "mammal", "cat", "dog")
    assert tree.parents.tolist() == [-1, 0, 0, 2, 2]


def test_a_tree_is_frozen():
    tree = ClassTree.read(NEWICK)
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.names = ()
    for array in (tree.parents, tree.leaves):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert ClassTree.read(tree) is tree
    assert repr(tree) == "ClassTree(n_leaves=5, n_nodes=9)"


def test_a_tree_can_be_pickled():
    tree = ClassTree.read(NEWICK)
    copy = pickle.loads(pickle.dumps(tree))
    assert copy.names == tree.names
    assert copy.parents.tolist() == tree.parents.tolist()


def test_a_deep_tree_in_every_form():
    depth = 5000
    newick = "(" * depth + "a" + "".join(f",b{level})" for level in range(depth)) + ";"
    nested = {"name": "a"}
    for level in range(depth):
        nested = {"name": "", "children": [nested, {"name": f"b{level}"}]}
    text = '{"children":[' * depth + '{"name":"a"}'
    text += "".join(f',{{"name":"b{level}"}}]}}' for level in range(depth))
    chain = nx.DiGraph((level, level + 1) for level in range(depth))
    chain.add_edges_from((level, f"b{depth - 1 - level}") for level in range(depth))
    expected = ClassTree.read(newick)
    assert expected.n_leaves == depth + 1
    for source in (nested, text, chain):
        tree = ClassTree.read(source)
        np.testing.assert_array_equal(tree.parents, expected.parents)
        assert tree.names[1:] == expected.names[1:]
    path = [str(level) for level in range(depth)]
    assert ClassTree.read([[*path, "a"], [*path, "b"]]).n_nodes == depth + 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "the tree is empty"),
        ([], "the tree is empty"),
        ({}, "the tree is empty"),
        (nx.DiGraph(), "the tree is empty"),
        ("(a,b,(a,c),c,d);", "leaves must have different names; more than one is 'a', 'c'$"),
        (
            f"({','.join(f'x{i // 2}' for i in range(16))});",
            "more than one is 'x0', 'x1', 'x2', 'x3', 'x4', ...",
        ),
        ([["r", "s", "a"], ["r", "t", "a"]], "leaves must have different names"),
        (nx.DiGraph([("r", 1), ("r", "1")]), "leaves must have different names"),
        ({"name": "r", "children": [{"name": ""}, {"name": "a"}]}, "a leaf.* has no name"),
        ({"children": [{"children": []}, {"name": "a"}]}, "a leaf.* has no name"),
        ([["r", ""]], "a leaf.* has no name"),
        ([["r", "a"], ["s", "b"]], "there are 2 roots, 'r', 's'; put one node above"),
        (nx.DiGraph([("r", "a"), ("s", "b")]), "there are 2 roots, 'r', 's'"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), "2 nodes cannot be.*a cycle: 'a', 'b'"),
        (nx.DiGraph([("r", "x"), ("a", "b"), ("b", "a")]), "2 nodes cannot.*a cycle: 'a', 'b'"),
        (nx.DiGraph([("a", "a")]), "1 nodes cannot be reached.*a cycle: 'a'"),
    ],
)
def test_what_is_no_tree(source, message):
    with pytest.raises(ValueError, match=message):
        ClassTree.read(source)


def test_fields_that_do_not_fit():
    with pytest.raises(ValueError, match="1 names for 2 nodes"):
        ClassTree(np.array([-1, 0]), ("a",))
    for parents in ([-1, 2], [-1, -2]):
        with pytest.raises(ValueError, match="parents must be -1 or one of the 2 nodes"):
            ClassTree(np.array(parents), ("a", "b"))


def test_leaves_of_classes():
    tree = ClassTree.read(NEWICK)
    found = tree.leaves_of(["owl", 7, np.int64(7), b"cat", np.str_("grizzly bear")])
    assert [tree.node_names[leaf] for leaf in found] == ["owl", "7", "7", "cat", "grizzly bear"]


@pytest.mark.parametrize(
    ("tree", "classes", "message"),
    [
        ("(cat,owl);", ["cat", "ant"], "1 of the 2 .*: 'ant'; its leaves are 'cat', 'owl'$"),
        ("(cat,owl);", list("abcdefg"), "7 of the 7 .*'d', 'e', ...; its leaves"),
        ("(cat,owl);", [0, 1], r"0, 1; its leaves.* If y numbers.*: class_names\[y\]$"),
        ("(cat,owl);", [np.int64(0)], r"pass their names: class_names\[y\]$"),
        ("(0,1,2);", [0, 3], "1 of the 2 .* 3; its leaves are '0', '1', '2'$"),
        ("(cat,owl);", ["0", "1"], "its leaves are 'cat', 'owl'$"),
        ("(0,1);", [0.0, 1.0], r"0.0, 1.0; .* whole numbers.*: y.astype\(int\)$"),
        ("(0,1);", [0.5], "0.5; its leaves are '0', '1'$"),
        ("((cat,owl)animal);", ["cat", "animal"], "Some are inner nodes, but rows must"),
    ],
)
def test_unknown_classes(tree, classes, message):
    with pytest.raises(ValueError, match=message):
        ClassTree.read(tree).leaves_of(classes)


def test_groups_at_a_depth():
    tree = ClassTree.read("(((cat,dog)mammal,owl)vertebrate,ant)animal;")
    classes = ["ant", "cat", "dog", "owl"]
    assert tree.groups_of(classes, 0) == ["animal"] * 4
    assert tree.groups_of(classes, 2) == ["ant", "mammal", "mammal", "owl"]
    with pytest.raises(ValueError, match="'elk'"):
        tree.groups_of(["elk"], 1)
    animals = load_animals()
    assert 5 < len(set(ClassTree.read(animals.tree).groups_of(animals.names, 2))) < 50
