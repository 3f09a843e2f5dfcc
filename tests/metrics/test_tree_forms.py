"""What each form is read as; that they agree is in test_class_tree."""

import networkx as nx
import numpy as np
import pytest

from taxarbor.metrics._tree_forms import (
    paths_of,
    read_form,
    read_graph,
    read_nested,
    read_paths,
    read_text,
)

LEAF = {"name": "a"}
STAR = ([-1, 0, 0], ["", "a", "b"])


def test_nested():
    tree = {"children": [{"name": "a", "wnid": "n1"}, {"name": "b", "children": []}]}
    assert read_nested(tree) == STAR
    assert read_nested({"name": None, "children": ({"name": 1}, {"name": "b"})})[1] == [
        "",
        "1",
        "b",
    ]
    assert read_nested({"name": "a", "children": None}) == ([-1], ["a"])


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"name": "r", "children": ["a"]}, r"must be a mapping.*found 'a' below 'r'"),
        ({"name": "r", "children": [["a"]]}, r"must be a mapping.*found \['a'\] below 'r'"),
        (
            {"name": "r", "children": "ab"},
            r"children\" of 'r' must be a list of nodes, got str",
        ),
        ({"name": "r", "children": {"a": 1}}, "must be a list of nodes, got dict"),
        ({"name": "r", "children": 7}, "must be a list of nodes, got int"),
        (
            {"name": "r", "children": [{"name": "s", "children": [LEAF]}, LEAF]},
            "the node 'a' occurs twice, the second time below 'r'; in a tree",
        ),
    ],
)
def test_what_is_not_nested(tree, message):
    with pytest.raises(ValueError, match=message):
        read_nested(tree)


def test_nested_in_itself():
    tree = {"name": "r", "children": [{"name": "s", "children": []}]}
    tree["children"][0]["children"].append(tree)
    with pytest.raises(ValueError, match="'r' occurs twice, the second time below 'r' > 's'"):
        read_nested(tree)


def test_a_long_way_down_is_not_told_in_full():
    tree = bad = {"name": "0", "children": []}
    for level in range(1, 2000):
        bad["children"].append({"name": str(level), "children": []})
        (bad,) = bad["children"]
    bad["children"].append(None)
    with pytest.raises(
        ValueError, match=r"found None below '1996' > '1997' > '1998' > '1999'$"
    ):
        read_nested(tree)


def test_paths():
    expected = ([-1, 0, 1, 1, 0], ["r", "s", "a", "b", "c"])
    paths = [["r", "s", "a"], ("r", "s", "b"), np.array(["r", "c"])]
    assert read_paths(paths) == expected
    assert read_paths(np.array([["r", "a"], ["r", "b"]])) == ([-1, 0, 0], ["r", "a", "b"])


def test_nodes_of_paths_are_told_apart_by_all_names_above():
    parents, names = read_paths([["r", "x", "other", "a"], ["r", "y", "other", "b"]])
    assert names == ["r", "x", "other", "a", "y", "other", "b"]
    assert parents == [-1, 0, 1, 2, 0, 4, 5]


def test_a_mapping_may_leave_the_class_out():
    whole = {"a": ["r", "s", "a"], "b": ["r", "b"], 1: ["r", "1"]}
    above = {"a": ["r", "s"], "b": ["r"], 1: ("r",)}
    assert list(paths_of(whole)) == list(paths_of(above)) == [*map(list, whole.values())]
    assert list(paths_of({"a": []})) == [["a"]]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["abc"], "a path must be a sequence of names from the root to the class, got 'abc'"),
        ([7], "a path must be a sequence of names.*got 7"),
        ([[]], "a path is empty"),
        ([["r", "a"], ["r", "a"]], "two paths lead to the class 'a'"),
        ([["r", "a"], ["r", "a", "b"]], r"class 'a' has others below it.*'a \(other\)'"),
        ([["r", "a", "b"], ["r", "a"]], "the class 'a' has others below it"),
    ],
)
def test_what_is_no_path(paths, message):
    with pytest.raises(ValueError, match=message):
        read_paths(paths)


def test_a_mapping_to_text_is_refused():
    with pytest.raises(ValueError, match=r"a path must be a sequence of names.*got 'r/a'"):
        read_form({"a": "r/a"})


def test_classes_may_be_called_name_and_children():
    mapping = {"name": ["r", "s"], "children": ["r"]}
    assert read_form(mapping)[1] == ["r", "s", "name", "children"]


def test_graph():
    graph = nx.DiGraph([("r", 1), ("r", "b")])
    assert read_graph(graph) == ([-1, 0, 0], ["r", "1", "b"])
    upward = nx.DiGraph([("s", "a"), ("r", "s")])
    parents, names = read_graph(upward)
    assert {
        names[node]: names[parent] for node, parent in enumerate(parents) if parent >= 0
    } == {
        "a": "s",
        "s": "r",
    }


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.Graph([(0, 1)]), "must be directed, with edges from parent to child"),
        (nx.DiGraph([(0, 2), (1, 2)]), "node 2 has two parents, 0 and 1"),
        (nx.MultiDiGraph([(0, 1), (0, 1)]), "node 1 has two parents, 0 and 0"),
    ],
)
def test_what_is_no_tree(graph, message):
    with pytest.raises(ValueError, match=message):
        read_graph(graph)


def test_text():
    assert (
        read_text("(a,b);") == read_text('{"children": [{"name": "a"}, {"name": "b"}]}') == STAR
    )
    assert read_text(' {"a": [""], "b": [""]} ') == STAR
    assert read_text(" \n") == ([], [])


@pytest.mark.parametrize("text", ["tree.json", "data/tree.nwk", "[1]", "cat"])
def test_text_that_may_be_a_file_name(text):
    with pytest.raises(
        ValueError, match=r"neither Newick.* nor JSON.*pass pathlib.Path\(...\)"
    ):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "a",}', "not a tree in JSON: .*line 1 column"),
        ('{"name": "a", "children": ["b"]}', "not a tree in JSON: a node must be a mapping"),
    ],
)
def test_wrong_json(text, message):
    with pytest.raises(ValueError, match=message):
        read_text(text)


@pytest.mark.parametrize("source", [7, None, {1, 2}, object()], ids=lambda s: type(s).__name__)
def test_other_types(source):
    with pytest.raises(TypeError, match=f"networkx.DiGraph; got {type(source).__name__}"):
        read_form(source)
