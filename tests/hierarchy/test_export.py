import dataclasses
import json
import re
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy as sch
from sklearn.metrics import adjusted_rand_score

from taxarbor._errors import FileFormatError
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, LinearRule, Placement

HOSTILE = [
    "it's",
    'say "hi"',
    "two\nlines\r\n",
    "<img src=x onerror=alert(1)>",
    "naïve ☃ 木",
    "a_b, (c); [d]:{e}",
    "back\\slash\\",
    "&lt;&amp;",
    "nul\0tab\t",
    "\ud800",
    "",
    "</script>",
]


@pytest.fixture(scope="module")
def hostile():
    """A tree with hostile feature names, each of which sends rows to one leaf."""
    P = len(HOSTILE)
    builder = HierarchyBuilder(P, HOSTILE)
    builder.add_split(0, np.arange(P), LinearRule(np.eye(P), np.zeros(P)))
    builder.refuse(1, 'because "\n')
    return builder.freeze()


def test_text(known):
    assert (
        str(known)
        == known.to_text()
        == (
            "node 0: 10 rows\n"
            "  node 1: 3 rows, +a [c0]\n"
            "  node 2: 5 rows, +b\n"
            "    node 4: 2 rows, -a [c1]\n"
            "    node 5: 3 rows, +a [c2]\n"
            "  node 3: 2 rows, -b, -a [c3]"
        )
    )
    assert known.to_text(max_depth=1, n_top=1) == (
        "node 0: 10 rows\n"
        "  node 1: 3 rows, +a [c0]\n"
        "  node 2: 5 rows, +b [2 clusters]\n"
        "  node 3: 2 rows, -b [c3]"
    )
    assert known.to_text(max_nodes=3, n_top=0).splitlines()[-2:] == [
        "  node 2: 5 rows",
        "... and 3 more clusters",
    ]


def test_text_without_names_and_of_equal_weights():
    builder = HierarchyBuilder(3)
    W = np.array([[0.1, 1.0], [0.1, -1.0], [0.1, 0.0]])
    builder.add_split(0, [0, 1, 2], LinearRule(W, np.zeros(2)))
    lines = builder.freeze().to_text().splitlines()
    assert lines[1:] == [
        "  node 1: 1 row, +x1 [c0]",
        "  node 2: 1 row, -x1 [c1]",
        "  node 3: 1 row [c2]",
    ]


def test_a_tree_without_rules_in_all_forms(known, bare, same, tmp_path):
    assert bare.to_text().splitlines()[:3] == [
        "node 0: 10 rows",
        "  node 1: 3 rows [c0]",
        "  node 2: 5 rows",
    ]
    named = {"n_features", "top_features"}
    frame, whole = bare.to_frame(), known.to_frame()
    assert set(frame["top_features"]) == {""}
    assert set(frame["n_features"]) == {0}
    assert frame.drop(columns=named).equals(whole.drop(columns=named))
    assert bare.to_newick() == known.to_newick()
    assert r'  1 [label="c0\n3 rows"];' in bare.to_dot().splitlines()
    assert nx.utils.edges_equal(bare.to_networkx().edges, known.to_networkx().edges)
    np.testing.assert_array_equal(bare.to_linkage(), known.to_linkage())
    document = strict(bare.to_json(tmp_path / "tree.json"))
    assert document["dtype"] is None
    assert {node["rule"] for node in document["nodes"]} == {None}
    same(bare, Hierarchy.from_json(tmp_path / "tree.json"))


def test_text_has_a_line_per_node(hostile, chain):
    text = hostile.to_text()
    assert len(text.splitlines()) == hostile.n_nodes
    text.encode("utf-8")
    assert chain.to_text().endswith("and 2901 more clusters")
    assert len(chain.to_text(max_nodes=10**9, n_top=0).splitlines()) == chain.n_nodes


def test_frame(known):
    frame = known.to_frame(n_top=1)
    assert frame["node"].tolist() == list(range(6))
    assert frame["parent"].tolist() == [-1, 0, 0, 0, 2, 2]
    assert frame["leaf"].tolist() == [-1, 0, -1, 3, 1, 2]
    assert frame["is_leaf"].tolist() == [leaf >= 0 for leaf in frame["leaf"]]
    assert frame["n_rows"].tolist() == [10, 3, 5, 2, 2, 3]
    assert frame["n_features"].tolist() == [2, 0, 1, 0, 0, 0]
    assert frame["top_features"].tolist() == ["", "+a", "+b", "-b", "-a", "+a"]
    assert frame["note"].tolist()[1] == "too few rows"
    np.testing.assert_array_equal(frame["score"], known.score)
    np.testing.assert_array_equal(frame["birth"], known.birth)
    np.testing.assert_array_equal(frame["depth"], known.depth)
    np.testing.assert_array_equal(frame["objective"], known.objective)
    assert frame["fidelity"].isna().all()


def test_fidelity_in_frames_and_graphs(placed):
    frame, graph = placed.to_frame(), placed.to_networkx()
    columns = frame.columns.tolist()
    assert columns[columns.index("n_features") + 1] == "fidelity"
    np.testing.assert_array_equal(frame["fidelity"], placed.fidelity)
    shares = [graph.nodes[node]["fidelity"] for node in range(6)]
    np.testing.assert_array_equal(shares, placed.fidelity)


@pytest.mark.parametrize(
    ("method", "module"), [("to_frame", "pandas"), ("to_networkx", "networkx")]
)
def test_a_missing_extra_is_named(known, monkeypatch, method, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{method} needs {module}.*taxarbor\[io\]"):
        getattr(known, method)()


@settings(deadline=None)
@given(data=st.data())
def test_networkx_graphs_are_trees(trees, data):
    tree = data.draw(trees)
    graph = tree.to_networkx()
    assert nx.is_arborescence(graph)
    assert graph.number_of_nodes() == tree.n_nodes
    for node, values in graph.nodes(data=True):
        assert tuple(graph.successors(node)) == tree.children(node)
        assert values["n_rows"] == tree.n_rows[node]
        assert values["depth"] == nx.shortest_path_length(graph, 0, node)
        assert all(type(value) in (int, float, str, bool) for value in values.values())


def test_a_deep_networkx_graph(chain):
    assert nx.dag_longest_path_length(chain.to_networkx()) == 3000


def test_linkage_of_the_known_tree(known):
    assert known.to_linkage().tolist() == [[1, 2, 1, 2], [0, 4, 2, 3], [3, 5, 2, 4]]


@settings(deadline=None)
@given(data=st.data())
def test_linkages_cut_as_the_tree_does(trees, data):
    tree = data.draw(trees)
    if tree.n_leaves == 1:
        with pytest.raises(ValueError, match="two leaves"):
            tree.to_linkage()
        return
    Z = tree.to_linkage()
    assert Z.shape == (tree.n_leaves - 1, 4)
    assert sch.is_valid_linkage(Z, throw=True)
    assert sch.is_monotonic(Z)
    assert set(Z[:, 2]) == set(range(1, tree.n_splits + 1))
    assert Z[-1, 3] == tree.n_leaves
    for n in range(1, tree.n_leaves + 1):
        leaf_clusters = sch.fcluster(Z, n, criterion="maxclust")
        expected = tree.cut(n)
        assert adjusted_rand_score(expected, leaf_clusters[tree.labels]) == 1


def test_a_deep_linkage(chain):
    Z = chain.to_linkage()
    assert sch.is_valid_linkage(Z, throw=True)
    assert sch.is_monotonic(Z)


def parse_newick(text):
    """Return the names and, for each, its depth."""
    tokens = re.findall(r"'(?:[^']|'')*'|[(),;]|[^(),;']+", text)
    assert "".join(tokens) == text
    assert tokens[-1] == ";"
    found, depth = [], 0
    for token in tokens[:-1]:
        if token in "()":
            depth += 1 if token == "(" else -1
        elif token != ",":
            quoted = token.startswith("'")
            found.append((token[1:-1].replace("''", "'") if quoted else token, depth))
    assert depth == 0
    return found


def test_newick(known):
    assert known.to_newick() == "(c0,(c1,c2),c3);"
    assert known.to_newick(["a b", "it's", "ok", "x_y"]) == "('a b',('it''s',ok),'x_y');"
    assert HierarchyBuilder(2).freeze().to_newick() == "c0;"
    with pytest.raises(ValueError, match="got 1 names for 4 leaves"):
        known.to_newick(["a"])


@settings(deadline=None)
@given(data=st.data())
def test_newick_gives_each_leaf_its_depth(trees, data):
    tree = data.draw(trees)
    expected = [(f"c{label}", tree.depth[leaf]) for label, leaf in enumerate(tree.leaves)]
    assert parse_newick(tree.to_newick()) == expected


def test_hostile_names_in_newick(hostile):
    text = hostile.to_newick(HOSTILE)
    assert "\n" not in text
    names = [name for name, _ in parse_newick(text)]
    assert names[0] == "it's"
    assert names[2] == "two lines  "
    assert names[4] == "naïve ☃ 木"
    assert names[9] == "?"
    assert len(names) == len(HOSTILE)


def test_a_deep_newick(chain):
    assert parse_newick(chain.to_newick())[-1] == ("c3000", 3000)


DOT_LINE = re.compile(
    r"digraph hierarchy \{|  node \[shape=box\];|  \d+ -> \d+;|\}|"
    r'  \d+ \[label="(?:[^"\\\n<>]|\\\\|\\"|\\n)*"\];'
)


def test_dot(known, chain):
    lines = known.to_dot(["p", "q", "r", "s"]).splitlines()
    assert r'  1 [label="p\n+a\n3 rows"];' in lines
    assert r'  2 [label="+b\n5 rows"];' in lines
    assert "  2 -> 5;" in lines
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert chain.to_dot().count("->") == 6000


def test_hostile_names_in_dot(hostile):
    text = hostile.to_dot(HOSTILE)
    lines = text.splitlines()
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert len(lines) == 3 + hostile.n_nodes + hostile.n_nodes - 1
    text.encode("utf-8")
    assert "&amp;lt;&amp;amp;" in text


@settings(deadline=None)
@given(data=st.data())
def test_json_changes_nothing(trees, same, data):
    tree = data.draw(trees)
    text = tree.to_json()
    same(tree, Hierarchy.from_json(text))
    assert Hierarchy.from_json(text).to_json() == text


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_json_is_strict_and_says_what_there_is(known):
    document = strict(known.to_json())
    assert document["format"] == "taxarbor-hierarchy"
    assert document["feature_names"] == ["a", "b"]
    root, leaf = document["nodes"][:2]
    assert root["rule"]["features"] == [0, 1]
    assert root["rule"]["offsets"] == [0, 0, 0]
    assert root["children"] == [1, 2, 3]
    assert root["info"]["status"] == "converged"
    assert leaf["score"] is None
    assert leaf["note"] == "too few rows"
    assert document["version"] == 3
    assert document["placement"] is None
    assert {node["fidelity"] for node in document["nodes"]} == {None}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("has_rules", [True, False])
def test_json_says_how_rows_are_placed(same, dtype, has_rules):
    builder = HierarchyBuilder(3)
    W = np.array([[0.1, -0.0], [0.0, 1 / 3], [2.0, 0.0]]).astype(dtype)
    rule = LinearRule(W, W[0], W[:, 1])
    if has_rules:
        builder.add_split(0, [0, 1, 2], rule, fidelity=2 / 3)
    else:
        builder.add_split(0, [0, 1, 2])
    tree = builder.freeze(Placement(rule, [3, 1, 2]))
    document = strict(tree.to_json())
    assert document["dtype"] == dtype
    assert document["placement"] == {
        "center": W[0].tolist(),
        "offsets": W[:, 1].tolist(),
        "weights": W.tolist(),
        "leaves": [3, 1, 2],
    }
    shares = [node["fidelity"] for node in document["nodes"]]
    assert shares == [2 / 3 if has_rules else None, None, None, None]
    same(tree, Hierarchy.from_json(tree.to_json()))


def old(tree, version):
    """Return a tree's document as an old version wrote it."""
    document = strict(tree.to_json())
    for node in document["nodes"]:
        del node["mean"]
        if version == 1:
            del node["fidelity"]
    if version == 1:
        del document["placement"]
    return document | {"version": version}


@pytest.mark.parametrize("version", [1, 2])
def test_json_of_old_versions_is_read(known, bare, placed, same, version):
    left = {1: known, 2: dataclasses.replace(placed, means=None)}[version]
    for tree, expected in ((known, known), (bare, bare), (placed, left)):
        same(expected, Hierarchy.from_json(json.dumps(old(tree, version))))


@pytest.mark.parametrize(("version", "lacks"), [(1, "fidelity"), (2, "mean")])
def test_json_must_have_what_the_next_version_added(placed, version, lacks):
    document = old(placed, version) | {"version": version + 1}
    with pytest.raises(FileFormatError, match=f"lacks '{lacks}'"):
        Hierarchy.from_json(json.dumps(document))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_json_says_the_means(known, bare, same, dtype):
    means = np.linspace(-1.0, 1 / 3, 12).reshape(6, 2).astype(dtype)
    tree = dataclasses.replace(bare, means=means)
    document = strict(tree.to_json())
    assert document["dtype"] == dtype
    assert [node["mean"] for node in document["nodes"]] == means.tolist()
    same(tree, Hierarchy.from_json(tree.to_json()))
    assert {node["mean"] for node in strict(known.to_json())["nodes"]} == {None}


def test_means_of_other_features_than_the_rules_are_refused(placed):
    document = strict(placed.to_json())
    for node in document["nodes"]:
        node["mean"] = [0.0] * 3
    with pytest.raises(FileFormatError, match="number of features of the rules"):
        Hierarchy.from_json(json.dumps(document))


def test_json_files(known, placed, hostile, chain, same, tmp_path):
    path = tmp_path / "tree.json"
    for tree in (known, placed, hostile, chain, HierarchyBuilder(2).freeze()):
        text = tree.to_json(path)
        assert path.read_text("ascii") == text
        same(tree, Hierarchy.from_json(path))
        same(tree, Hierarchy.from_json(text))
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        Hierarchy.from_json(tmp_path / "nowhere")


def changed(document, *keys, value):
    """Return the document as text, with one value replaced, or left out if KeyError."""
    place = document
    for key in keys[:-1]:
        place = place[key]
    if value is KeyError:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["version"], 4, "newer taxarbor"),
        (["format"], "other", "not a taxarbor hierarchy"),
        (["order"], KeyError, "lacks 'order'"),
        (["order", 0], 2, "once"),
        (["order", 0], 1.5, "integers"),
        (["order", 0], "a", "integers"),
        (["order", 0], 10**30, "integers"),
        (["order", 0], [1], "damaged"),
        (["dtype"], "float16", "float32"),
        (["dtype"], "nonsense", "damaged"),
        (["feature_names"], [1, 2], "strings"),
        (["nodes"], [], "damaged"),
        (["nodes"], "abc", "damaged"),
        (["nodes", 0], None, "damaged"),
        (["nodes", 0, "id"], 3, "listed by id"),
        (["nodes", 0, "parent"], 3, "root"),
        (["nodes", 0, "score"], [], "damaged"),
        (["nodes", 0, "score"], "high", "damaged"),
        (["nodes", 0, "rule"], None, "must have a rule"),
        (["nodes", 0, "rule", "features", 0], 2, "damaged"),
        (["nodes", 0, "rule", "features", 0], -1, "column numbers"),
        (["nodes", 0, "rule", "features", 0], 1, "column numbers"),
        (["nodes", 0, "rule", "weights", 0], [1.0], "damaged"),
        (["nodes", 0, "rule", "weights"], [1.0, 2.0], "one weight per child"),
        (["nodes", 0, "rule", "center"], 1.0, "damaged"),
        (["nodes", 0, "rule", "offsets"], KeyError, "lacks 'offsets'"),
        (["nodes", 0, "rule", "offsets"], [0.0, 0.0], "offsets must have shape"),
        (["nodes", 0, "rule", "offsets", 0], "a", "damaged"),
        (["nodes", 0, "rule", "offsets", 0], None, "finite"),
        (["nodes", 0, "info", "status"], "odd", "odd"),
        (["nodes", 0, "info", "trace"], KeyError, "lacks 'trace'"),
        (["nodes", 1, "note"], None, "strings"),
        (["nodes", 0, "fidelity"], KeyError, "lacks 'fidelity'"),
        (["nodes", 0, "fidelity"], 1.5, "from 0 to 1"),
        (["nodes", 0, "fidelity"], "inf", "from 0 to 1"),
        (["nodes", 0, "fidelity"], "high", "damaged"),
        (["nodes", 0, "fidelity"], [0.5], "damaged"),
        (["nodes", 1, "fidelity"], 0.5, "only a node with a rule"),
        (["nodes", 0, "mean"], KeyError, "lacks 'mean'"),
        (["nodes", 5, "mean"], KeyError, "lacks 'mean'"),
        (["nodes", 5, "mean"], None, "damaged"),
        (["nodes", 0, "mean"], [1.0], "damaged"),
        (["nodes", 0, "mean"], 1.0, "damaged"),
        (["nodes", 0, "mean"], "none", "damaged"),
        (["nodes", 0, "mean", 0], None, "means must be finite"),
        (["nodes", 0, "mean", 0], "inf", "means must be finite"),
        (["nodes", 0, "mean", 0], "a", "damaged"),
        (["nodes", 0, "mean", 0], [1.0], "damaged"),
        (["placement"], KeyError, "lacks 'placement'"),
        (["placement"], [], "damaged"),
        (["placement"], {}, "lacks 'weights'"),
        (["placement"], "none", "damaged"),
        (["placement", "leaves"], KeyError, "lacks 'leaves'"),
        (["placement", "leaves"], [], "must be 5 integers"),
        (["placement", "leaves"], [1, 3, 4, 5], "must be 5 integers"),
        (["placement", "leaves", 0], None, "must be 5 integers"),
        (["placement", "leaves", 0], 1.0, "must be 5 integers"),
        (["placement", "leaves", 0], 10**30, "must be 5 integers"),
        (["placement", "leaves", 0], 10**15, "must send rows to leaves"),
        (["placement", "leaves", 0], 2, "must send rows to leaves"),
        (["placement", "leaves", 0], -1, "from 0 on"),
        (["placement", "leaves", 1], 3, "every leaf must have a cell"),
        (["placement", "weights"], 1.0, "shape"),
        (["placement", "weights"], [], "shape"),
        (["placement", "weights", 0], [1.0], "damaged"),
        (["placement", "weights", 0, 0], None, "finite"),
        (["placement", "weights", 0, 0], "a", "damaged"),
        (["placement", "weights"], [[1.0], [2.0]], "shape"),
        (["placement", "center"], [0.0], "shape"),
        (["placement", "center", 0], "inf", "finite"),
        (["placement", "offsets"], [0.0], "offsets must have shape"),
        (["placement", "offsets"], KeyError, "lacks 'offsets'"),
    ],
)
def test_forged_json_is_refused(placed, keys, value, message):
    with pytest.raises(FileFormatError, match=message):
        Hierarchy.from_json(changed(strict(placed.to_json()), *keys, value=value))


def test_a_placement_over_other_features_than_the_rules_is_refused(placed):
    document = strict(placed.to_json())
    document["placement"] |= {"center": [0.0] * 3, "weights": [[0.0] * 3] * 5}
    with pytest.raises(FileFormatError, match="the placement's too"):
        Hierarchy.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "NaN", "[" * 100_000, "nowhere.json"])
def test_what_is_no_json_of_ours_is_refused(text):
    with pytest.raises(FileFormatError, match="not a"):
        Hierarchy.from_json(text)


def test_half_a_json_file_is_refused(known, tmp_path):
    path = tmp_path / "tree.json"
    path.write_bytes(known.to_json().encode()[:500])
    with pytest.raises(FileFormatError, match="damaged"):
        Hierarchy.from_json(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="damaged"):
        Hierarchy.from_json(path)


@pytest.mark.parametrize("wrong", ["1.0", True, None, [1.0], "a"])
@pytest.mark.parametrize("where", ["mean", "center", "offsets"])
def test_what_is_no_number_is_refused(placed, where, wrong):
    document = json.loads(placed.to_json())
    node = document["nodes"][0]
    values = node["mean"] if where == "mean" else node["rule"][where]
    values[0] = wrong
    with pytest.raises(FileFormatError):
        Hierarchy.from_json(json.dumps(document))
