"""Frames, JSON, linkages, Newick and DOT, read back where something reads them."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.cluster import hierarchy as sch
from sklearn.metrics import adjusted_rand_score

from taxarbor import Taxarbor, Taxonomy, exchange
from taxarbor.exchange import from_linkage, to_dot, to_frame, to_json, to_linkage, to_newick
from taxarbor.tables.columns import Columns
from taxarbor.tree import LinearRule, TreeBuilder
from tests.taxonomy.conftest import taxonomies

HOSTILE = [
    *("it's", 'say "hi"', "two\nlines\r\n", "<img src=x onerror=alert(1)>", "naïve ☃ 木"),
    *("a_b, (c); [d]:{e}", "back\\slash\\", "&lt;&amp;", "nul\0tab\t", "\ud800", ""),
    "</script>",
]
STABILITY = ["n_recovered", "n_separated", "left_out", "is_stable"]


@pytest.fixture(scope="module")
def hostile():
    """A tree with hostile feature names, each of which sends rows to one leaf."""
    P = len(HOSTILE)
    builder = TreeBuilder(P)
    builder.add_split(0, np.arange(P), LinearRule(np.eye(P), np.zeros(P)))
    builder.refuse(1, 'because "\n')
    return Taxonomy(builder.freeze(), Columns.plain(P, HOSTILE))


def test_a_fitted_model_is_written_as_its_taxonomy(known):
    model = Taxarbor()
    model.taxonomy_ = known
    for name in exchange.__all__:
        if name.startswith("to_"):
            write = getattr(exchange, name)
            assert str(write(model)) == str(write(known))
            with pytest.raises(TypeError, match="list"):
                write([1, 2])


# Frames


def test_frame(known, assessed):
    frame = to_frame(known)
    assert frame.columns.tolist() == [
        *("node", "parent", "depth", "birth", "n_rows", "is_leaf", "leaf", "score"),
        *("objective", "n_features_used", "top_features", *STABILITY, "note"),
    ]
    assert frame["node"].tolist() == list(range(6))
    assert frame["parent"].tolist() == [-1, 0, 0, 0, 2, 2]
    assert frame["leaf"].tolist() == [-1, 0, -1, 3, 1, 2]
    assert frame["is_leaf"].tolist() == [leaf >= 0 for leaf in frame["leaf"]]
    assert frame["n_rows"].tolist() == [10, 3, 5, 2, 2, 3]
    assert frame["n_features_used"].tolist() == [2, 0, 1, 0, 0, 0]
    words = ["higher a", "higher b", "lower b, lower a", "a at most 2", "a above 2"]
    assert frame["top_features"].tolist() == ["", *words]
    assert frame["note"].tolist()[1] == "too few rows"
    for name in ("score", "birth", "depth", "objective"):
        np.testing.assert_array_equal(frame[name], getattr(known.tree, name))
    assert frame[STABILITY].isna().all().all()
    frame = to_frame(assessed)
    for name in STABILITY:
        np.testing.assert_array_equal(frame[name], getattr(assessed.stability, name))


def test_a_tree_without_rules_in_all_forms(known, bare):
    named = ["n_features_used", "top_features"]
    frame, whole = to_frame(bare), to_frame(known)
    assert set(frame["top_features"]) == {""}
    assert set(frame["n_features_used"]) == {0}
    assert frame.drop(columns=named).equals(whole.drop(columns=named))
    assert to_newick(bare) == to_newick(known)
    assert r'  1 [label="c0\n3 rows"];' in to_dot(bare).splitlines()
    for taxonomy in (bare, known):
        assert to_linkage(taxonomy).tolist() == [[1, 2, 1, 2], [0, 4, 2, 3], [5, 3, 2, 4]]


def test_a_missing_extra_is_named(known, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        to_frame(known)


# JSON


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


@given(taxonomy=taxonomies())
def test_any_taxonomy_is_strict_json(taxonomy):
    tree, document = taxonomy.tree, strict(to_json(taxonomy))
    assert document["order"] == tree.order.tolist()
    for node, values in enumerate(document["nodes"]):
        assert values["id"] == node
        assert values["parent"] == tree.parent(node)
        assert values["children"] == list(tree.children(node))
        rule = tree.rules[node]
        assert (values["rule"] is None) == (rule is None)
        if rule is not None:
            used = values["rule"]["features"]
            assert used == rule.features.tolist()
            np.testing.assert_array_equal(values["rule"]["weights"], rule.weights[:, used])
            np.testing.assert_array_equal(values["rule"]["center"], rule.center)
            np.testing.assert_array_equal(values["rule"]["offsets"], rule.offsets)
            frontier = np.array(tree.frontier(node))
            assert values["rule"]["targets"] == frontier[rule.targets].tolist()
        if taxonomy.means is not None:
            np.testing.assert_array_equal(values["mean"], taxonomy.means[node])


def test_json_has_all_that_is_known(known, bare, assessed):
    document = strict(to_json(known))
    assert (document["format"], document["version"]) == ("taxarbor", 1)
    assert document["feature_names"] == document["columns"]["names"] == ["a", "b"]
    root, leaf = document["nodes"][:2]
    assert root["rule"]["features"] == [0, 1]
    assert root["info"]["status"] == "converged"
    assert (leaf["score"], leaf["note"], leaf["mean"]) == (None, "too few rows", None)
    assert {node["rule"] for node in strict(to_json(bare))["nodes"]} == {None}
    columns = replace(assessed.columns, is_boolean=[True, False])
    document = strict(to_json(replace(assessed, columns=columns)))
    assert document["columns"]["is_boolean"] == [True, False]
    stability = document["stability"]
    assert stability["n_refits"] == 20
    assert stability["n_recovered"] == [20, 18, 20, 16, 3, 2]
    assert stability["left_out"] == [0.83, 0.9, 0.95, 0.75, None, 0.5]
    assert stability["curve"]["stability"] == [1.0, None, 0.2, 0.1]
    assert document["made_by"] == {"estimator": "Taxarbor", "C": "inf"}


def test_json_of_odd_trees(hostile, chain):
    for taxonomy in (hostile, chain, Taxonomy(TreeBuilder(2).freeze())):
        text = to_json(taxonomy)
        assert text.isascii()
        assert len(strict(text)["nodes"]) == taxonomy.tree.n_nodes


# Linkages


@given(taxonomy=taxonomies())
def test_linkages_cut_as_the_tree_does(taxonomy):
    tree = taxonomy.tree
    if tree.n_leaves == 1:
        with pytest.raises(ValueError, match="two leaves"):
            to_linkage(taxonomy)
        return
    Z = to_linkage(taxonomy)
    assert Z.shape == (tree.n_leaves - 1, 4)
    assert sch.is_valid_linkage(Z, throw=True)
    assert sch.is_monotonic(Z)
    assert set(Z[:, 2]) == set(range(1, tree.n_splits + 1))
    assert Z[-1, 3] == tree.n_leaves
    assert sch.leaves_list(Z).tolist() == list(range(tree.n_leaves))
    for n in range(1, tree.n_leaves + 1):
        leaf_clusters = sch.fcluster(Z, n, criterion="maxclust")
        assert adjusted_rand_score(taxonomy.cut(n), leaf_clusters[tree.labels]) == 1
    np.testing.assert_array_equal(to_linkage(from_linkage(Z))[:, :2], Z[:, :2])


def test_deep_trees_in_all_forms(chain):
    assert sch.is_valid_linkage(to_linkage(chain), throw=True)
    assert parse_newick(to_newick(chain))[-1] == ("c3000", 3000)
    assert to_dot(chain).count("->") == 6000


# Newick and DOT


def parse_newick(text):
    """Return the names and, for each, its depth."""
    tokens = re.findall(r"'(?:[^']|'')*'|[(),;]|[^(),;']+", text)
    assert "".join(tokens) == text
    assert tokens[-1] == ";"
    names, depth = [], 0
    for token in tokens[:-1]:
        if token in "()":
            depth += 1 if token == "(" else -1
        elif token != ",":
            quoted = token.startswith("'")
            names.append((token[1:-1].replace("''", "'") if quoted else token, depth))
    assert depth == 0
    return names


def test_newick(known, hostile):
    assert to_newick(known) == "(c0,(c1,c2),c3);"
    assert to_newick(known, ["a b", "it's", "ok", "x_y"]) == "('a b',('it''s',ok),'x_y');"
    assert to_newick(Taxonomy(TreeBuilder(2).freeze())) == "c0;"
    for write in (to_newick, to_dot):
        with pytest.raises(ValueError, match="1 names for 4 leaves"):
            write(known, ["a"])
    text = to_newick(hostile, HOSTILE)
    assert "\n" not in text
    names = [name for name, _ in parse_newick(text)]
    assert [names[i] for i in (0, 2, 4, 9)] == ["it's", "two lines  ", "naïve ☃ 木", "?"]
    assert len(names) == len(HOSTILE)


@given(taxonomy=taxonomies())
def test_newick_gives_each_leaf_its_depth(taxonomy):
    leaves = enumerate(taxonomy.tree.leaves)
    expected = [(f"c{label}", taxonomy.tree.depth[leaf]) for label, leaf in leaves]
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
    line = r'  1 [label="c0\nhigher a\n3 rows\nrecovered in 18 of 20 refits"];'
    assert line in to_dot(assessed).splitlines()
    text = to_dot(hostile, HOSTILE)
    lines = text.splitlines()
    assert all(DOT_LINE.fullmatch(line) for line in lines)
    assert len(lines) == 3 + hostile.tree.n_nodes + hostile.tree.n_nodes - 1
    text.encode("utf-8")
    assert "&amp;lt;&amp;amp;" in text
