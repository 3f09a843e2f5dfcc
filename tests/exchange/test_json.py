"""JSON says all of a tree, strictly."""

import dataclasses
import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from taxarbor.exchange import to_json
from taxarbor.tree import TreeBuilder


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


@given(data=st.data())
def test_any_tree_is_strict_json(trees, data):
    taxonomy = data.draw(trees)
    document = strict(to_json(taxonomy))
    assert document["order"] == taxonomy.tree.order.tolist()
    for node, told in enumerate(document["nodes"]):
        assert told["id"] == node
        assert told["parent"] == taxonomy.tree.parent(node)
        assert told["children"] == list(taxonomy.tree.children(node))
        rule = taxonomy.tree.rules[node]
        assert (told["rule"] is None) == (rule is None)
        if rule is not None:
            used = told["rule"]["features"]
            np.testing.assert_array_equal(told["rule"]["weights"], rule.weights[:, used])
            np.testing.assert_array_equal(told["rule"]["center"], rule.center)
            np.testing.assert_array_equal(told["rule"]["offsets"], rule.offsets)
            assert used == rule.features.tolist()
        if taxonomy.means is not None:
            np.testing.assert_array_equal(told["mean"], taxonomy.means[node])


def test_json_says_what_there_is(known, bare):
    document = strict(to_json(known))
    assert (document["format"], document["version"]) == ("taxarbor-taxonomy", 1)
    assert document["feature_names"] == ["a", "b"]
    root, leaf = document["nodes"][:2]
    assert root["rule"]["features"] == [0, 1]
    assert root["info"]["status"] == "converged"
    assert (leaf["score"], leaf["note"]) == (None, "too few rows")
    assert {node["mean"] for node in document["nodes"]} == {None}
    document = strict(to_json(bare))
    assert document["dtype"] is None
    assert {node["rule"] for node in document["nodes"]} == {None}


def test_json_says_the_dtype_and_the_means(bare):
    for dtype in ("float32", "float64"):
        means = np.linspace(-1.0, 1 / 3, 12).reshape(6, 2).astype(dtype)
        document = strict(to_json(dataclasses.replace(bare, means=means)))
        assert document["dtype"] == dtype
        assert [node["mean"] for node in document["nodes"]] == means.tolist()


def test_json_says_what_came_back(assessed):
    document = strict(to_json(assessed))
    trust = document["trust"]
    assert trust["n_refits"] == 20
    assert trust["n_recovered"] == [20, 18, 20, 16, 3, 2]
    assert trust["n_feature_recovered"] == [[20, 20], [], [20], [], [], []]
    assert trust["left_out"] == [0.83, 0.9, 0.95, 0.75, None, 0.5]
    assert trust["curve"]["stability"] == [1.0, None, 0.2, 0.1]
    assert document["made_by"] == {"estimator": "Taxarbor"}


def test_json_files(known, bare, add_means, chain, tmp_path):
    path = tmp_path / "tree.json"
    hostile = known.rename_features(["\ud800\0", '"\n</script>☃'])
    for taxonomy in (known, bare, add_means, hostile, chain, TreeBuilder(2).freeze()):
        text = to_json(taxonomy, path)
        assert path.read_text("ascii") == text
    assert list(tmp_path.iterdir()) == [path]
