"""Frames, graphs, linkages, Newick and DOT, read back where something reads them."""

import re
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import taxonomy as sch
from sklearn.metrics import adjusted_rand_score

from taxarbor.exchange import to_dot, to_frame, to_linkage, to_networkx, to_newick
from taxarbor.tree import LinearRule, TreeBuilder

HOSTILE = [
    *("it's", 'say "hi"', "two\nlines\r\n", "<img src=x onerror=alert(1)>", "naïve ☃ 木"),
    *("a_b, (c); [d]:{e}", "back\\slash\\", "&lt;&amp;", "nul\0tab\t", "\ud800", ""),
    "</script>",
]


@pytest.fixture(scope="module")
def hostile():
    """A tree with hostile feature names, each of which sends rows to one leaf."""
    P = len(HOSTILE)
    builder = TreeBuilder(P)
    builder.add_split(0, np.arange(P), LinearRule(np.eye(P), np.zeros(P)))
    builder.refuse(1, 'because "\n')
    return builder.freeze(feature_names=HOSTILE)


def test_frame(known, assessed):
    frame = to_frame(known, n_top=1)
    assert frame.columns.tolist() == [
        *("node", "parent", "depth", "birth", "n_rows", "is_leaf", "leaf", "score"),
        *("objective", "n_features_used", "top_features"),
        *("n_recovered", "apart", "n_rule_recovered", "left_out", "is_stable", "note"),
    ]
    assert frame["node"].tolist() == list(range(6))
    assert frame["parent"].tolist() == [-1, 0, 0, 0, 2, 2]
    assert frame["leaf"].tolist() == [-1, 0, -1, 3, 1, 2]
    assert frame["is_leaf"].tolist() == [leaf >= 0 for leaf in frame["leaf"]]
    assert frame["n_rows"].tolist() == [10, 3, 5, 2, 2, 3]
    assert frame["n_features_used"].tolist() == [2, 0, 1, 0, 0, 0]
    words = ["higher a", "higher b", "lower b", "a at most 2", "a above 2"]
    assert frame["top_features"].tolist() == ["", *words]
    assert frame["note"].tolist()[1] == "too few rows"
    for name in ("score", "birth", "depth", "objective"):
        np.testing.assert_array_equal(frame[name], getattr(known, name))
    trust = ["n_recovered", "apart", "n_rule_recovered", "is_stable"]
    assert frame[trust].isna().all().all()
    frame = to_frame(assessed)
    for name in trust:
        assert frame[name].tolist() == getattr(assessed.stability, name).tolist()
    np.testing.assert_array_equal(frame["left_out"], assessed.stability.left_out)
    assert frame["is_stable"].tolist() == [True, True, True, False, False, False]


def test_a_tree_without_rules_in_all_forms(known, bare):
    named = ["n_features_used", "top_features"]
    frame, whole = to_frame(bare), to_frame(known)
    assert set(frame["top_features"]) == {""}
    assert set(frame["n_features_used"]) == {0}
    assert frame.drop(columns=named).equals(whole.drop(columns=named))
    assert to_newick(bare) == to_newick(known)
    assert r'  1 [label="c0\n3 rows"];' in to_dot(bare).splitlines()
    assert nx.utils.edges_equal(to_networkx(bare).edges, to_networkx(known).edges)
    for taxonomy in (bare, known):
        assert to_linkage(taxonomy).tolist() == [[1, 2, 1, 2], [0, 4, 2, 3], [3, 5, 2, 4]]


def test_a_missing_extra_is_named(known, monkeypatch):
    for write, module in ((to_frame, "pandas"), (to_networkx, "networkx")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=f"{write.__name__} needs {module}: pip install"):
            write(known)


@given(data=st.data())
def test_networkx_graphs_are_trees(trees, data):
    taxonomy = data.draw(trees)
    graph = to_networkx(taxonomy)
    assert nx.is_arborescence(graph)
    assert graph.number_of_nodes() == taxonomy.tree.n_nodes
    for node, values in graph.nodes(data=True):
        assert tuple(graph.successors(node)) == taxonomy.tree.children(node)
        assert values["n_rows"] == taxonomy.tree.sizes[node]
        assert values["depth"] == nx.shortest_path_length(graph, 0, node)
        assert all(type(value) in (int, float, str, bool) for value in values.values())


@given(data=st.data())
def test_linkages_cut_as_the_tree_does(trees, data):
    taxonomy = data.draw(trees)
    if taxonomy.tree.n_leaves == 1:
        with pytest.raises(ValueError, match="two leaves"):
            to_linkage(taxonomy)
        return
    Z = to_linkage(taxonomy)
    assert Z.shape == (taxonomy.tree.n_leaves - 1, 4)
    assert sch.is_valid_linkage(Z, throw=True)
    assert sch.is_monotonic(Z)
    assert set(Z[:, 2]) == set(range(1, taxonomy.tree.n_splits + 1))
    assert Z[-1, 3] == taxonomy.tree.n_leaves
    for n in range(1, taxonomy.tree.n_leaves + 1):
        leaf_clusters = sch.fcluster(Z, n, criterion="maxclust")
        assert adjusted_rand_score(taxonomy.cut(n), leaf_clusters[taxonomy.tree.labels]) == 1


def test_deep_trees_in_all_forms(chain):
    assert nx.dag_longest_path_length(to_networkx(chain)) == 3000
    Z = to_linkage(chain)
    assert sch.is_valid_linkage(Z, throw=True)
    assert sch.is_monotonic(Z)
    assert parse_newick(to_newick(chain))[-1] == ("c3000", 3000)
    assert to_dot(chain).count("->") == 6000


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


def test_newick(known, hostile):
    assert to_newick(known) == "(c0,(c1,c2),c3);"
    assert to_newick(known, ["a b", "it's", "ok", "x_y"]) == "('a b',('it''s',ok),'x_y');"
    assert to_newick(TreeBuilder(2).freeze()) == "c0;"
    for write in (to_newick, to_dot):
        with pytest.raises(ValueError, match="got 1 names for 4 leaves"):
            write(known, ["a"])
    text = to_newick(hostile, HOSTILE)
    assert "\n" not in text
    names = [name for name, _ in parse_newick(text)]
    assert [names[i] for i in (0, 2, 4, 9)] == ["it's", "two lines  ", "naïve ☃ 木", "?"]
    assert len(names) == len(HOSTILE)


@given(data=st.data())
def test_newick_gives_each_leaf_its_depth(trees, data):
    taxonomy = data.draw(trees)
    expected = [
        (f"c{label}", taxonomy.tree.depth[leaf])
        for label, leaf in enumerate(taxonomy.tree.leaves)
    ]
    assert parse_newick(to_newick(taxonomy)) == expected


DOT_LINE = re.compile(
    r"digraph taxonomy \{|  node \[shape=box\];|  \d+ -> \d+;|\}|"
    r'  \d+ \[label="(?:[^"\\\n<>]|\\\\|\\"|\\n)*"\];'
)


def test_dot(known, hostile, assessed):
    lines = to_dot(known, ["p", "q", "r", "s"]).splitlines()
    assert r'  1 [label="p\nhigher a\n3 rows"];' in lines
    assert r'  2 [label="higher b\n5 rows"];' in lines
    assert "  2 -> 5;" in lines
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert r'  4 [label="q\na at most 2\n2 rows"];' in lines
    line = r'  1 [label="c0\nhigher a\n3 rows\ncame back in 18 of 20 refits"];'
    assert line in to_dot(assessed).splitlines()
    text = to_dot(hostile, HOSTILE)
    lines = text.splitlines()
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert len(lines) == 3 + hostile.n_nodes + hostile.n_nodes - 1
    text.encode("utf-8")
    assert "&amp;lt;&amp;amp;" in text
