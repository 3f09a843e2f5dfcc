"""JSON holds all of a tree, strictly, and what is damaged or forged is refused."""

import copy
import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor._errors import FileFormatError
from taxarbor.exchange import from_json, to_json
from taxarbor.hierarchy import HierarchyBuilder, LinearRule, Placement


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


@given(data=st.data())
def test_json_changes_nothing(trees, same, data):
    tree = data.draw(trees)
    text = to_json(tree)
    same(tree, from_json(text))
    assert to_json(from_json(text)) == text


def test_json_is_strict_and_says_what_there_is(known, bare):
    document = strict(to_json(known))
    assert (document["format"], document["version"]) == ("taxarbor-hierarchy", 1)
    assert document["feature_names"] == ["a", "b"]
    root, leaf = document["nodes"][:2]
    assert root["rule"]["features"] == [0, 1]
    assert root["rule"]["offsets"] == [0, 0, 0]
    assert root["children"] == [1, 2, 3]
    assert root["info"]["status"] == "converged"
    assert (leaf["score"], leaf["note"]) == (None, "too few rows")
    assert document["placement"] is None
    for name in ("fidelity", "mean"):
        assert {node[name] for node in document["nodes"]} == {None}
    document = strict(to_json(bare))
    assert document["dtype"] is None
    assert {node["rule"] for node in document["nodes"]} == {None}


def test_json_says_how_rows_are_placed_and_the_means(bare, same):
    for dtype in ("float32", "float64"):
        W = np.array([[0.1, -0.0, 0.0], [0.0, 1 / 3, 0.0], [2.0, 0.0, 0.0]]).astype(dtype)
        rule = LinearRule(W, W[0], W[:, 1])
        for has_rules in (True, False):
            builder = HierarchyBuilder(3)
            builder.add_split(0, [0, 1, 2], rule if has_rules else None)
            if has_rules:
                builder.explain(0, rule, fidelity=2 / 3)
            tree = builder.freeze(Placement(rule, [3, 1, 2]))
            document = strict(to_json(tree))
            assert document["dtype"] == dtype
            assert document["placement"] == {
                "center": W[0].tolist(),
                "offsets": W[:, 1].tolist(),
                "features": [0, 1],
                "weights": W[:, :2].tolist(),
                "leaves": [3, 1, 2],
            }
            shares = [node["fidelity"] for node in document["nodes"]]
            assert shares == [2 / 3 if has_rules else None, None, None, None]
            same(tree, from_json(to_json(tree)))
        means = np.linspace(-1.0, 1 / 3, 12).reshape(6, 2).astype(dtype)
        tree = dataclasses.replace(bare, means=means)
        document = strict(to_json(tree))
        assert document["dtype"] == dtype
        assert [node["mean"] for node in document["nodes"]] == means.tolist()
        same(tree, from_json(to_json(tree)))


def test_json_files(known, bare, placed, chain, same, tmp_path):
    path = tmp_path / "tree.json"
    hostile = known.rename_features(["\ud800\0", '"\n</script>☃'])
    for tree in (known, bare, placed, hostile, chain, HierarchyBuilder(2).freeze()):
        text = to_json(tree, path)
        assert path.read_text("ascii") == text
        same(tree, from_json(path))
        same(tree, from_json(text))
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        from_json(tmp_path / "nowhere")


FORGED = [
    (["version"], 2, "newer taxarbor"),
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
    (["nodes", 0, "info", "status"], "odd", "odd"),
    (["nodes", 0, "info", "trace"], KeyError, "lacks 'trace'"),
    (["nodes", 1, "note"], None, "strings"),
    (["nodes", 0, "fidelity"], KeyError, "lacks 'fidelity'"),
    (["nodes", 0, "fidelity"], 1.5, "from 0 to 1"),
    (["nodes", 0, "fidelity"], "inf", "from 0 to 1"),
    (["nodes", 0, "fidelity"], "high", "damaged"),
    (["nodes", 0, "fidelity"], [0.5], "damaged"),
    (["nodes", 1, "fidelity"], 0.5, "only a node with a rule"),
    (["nodes", 5, "mean"], KeyError, "lacks 'mean'"),
    (["nodes", 5, "mean"], None, "damaged"),
    (["nodes", 0, "mean"], [1.0], "damaged"),
    (["nodes", 0, "mean"], 1.0, "damaged"),
    (["nodes", 0, "mean"], "none", "damaged"),
    (["nodes", 0, "mean", 0], "inf", "means must be finite"),
    (["placement"], KeyError, "lacks 'placement'"),
    (["placement"], [], "damaged"),
    (["placement"], {}, "lacks 'weights'"),
    (["placement"], "none", "damaged"),
    (["placement", "leaves"], KeyError, "lacks 'leaves'"),
    (["placement", "leaves"], [], "must be 5 integers"),
    (["placement", "leaves", 0], None, "must be 5 integers"),
    (["placement", "leaves", 0], 1.0, "must be 5 integers"),
    (["placement", "leaves", 0], 10**30, "must be 5 integers"),
    (["placement", "leaves", 0], 10**15, "must send rows to leaves"),
    (["placement", "leaves", 0], -1, "from 0 on"),
    (["placement", "leaves", 1], 3, "every leaf must have a cell"),
    (["placement", "weights"], 1.0, "shape"),
    (["placement", "weights"], [], "shape"),
    (["placement", "weights", 0], [1.0], "damaged"),
    (["placement", "weights"], [[1.0], [2.0]], "shape"),
    (["placement", "features"], [0, 0], "column numbers"),
    (["placement", "center"], [0.0], "damaged"),
    (["placement", "offsets"], [0.0], "offsets must have shape"),
    (["placement", "offsets"], KeyError, "lacks 'offsets'"),
]


def test_forged_json_is_refused(placed, refused):
    good = strict(to_json(placed))
    numbers = [("mean",), ("rule", "center"), ("rule", "offsets")]
    places = [["nodes", 0, *name, 0] for name in numbers]
    places += [["placement", name, 0] for name in ("center", "offsets")]
    places += [["placement", "weights", 0, 0], ["nodes", 0, "rule", "weights", 0, 0]]
    wrong = [
        (place, value, "damaged")
        for place in places
        for value in ("1.0", True, None, [1.0], "a")
    ]

    def load(change):
        keys, value = change
        place = document = copy.deepcopy(good)
        for key in keys[:-1]:
            place = place[key]
        if value is KeyError:
            del place[keys[-1]]
        else:
            place[keys[-1]] = value
        from_json(json.dumps(document))

    cases = [((keys, value), message) for keys, value, message in FORGED + wrong]
    refused(load, cases, FileFormatError)
    for node in good["nodes"]:
        node["mean"] = [0.0] * 3
    with pytest.raises(FileFormatError, match="number of features of the rules"):
        from_json(json.dumps(good))
    good = strict(to_json(placed))
    good["placement"] |= {"center": [0.0] * 3}
    with pytest.raises(FileFormatError, match="the placement's too"):
        from_json(json.dumps(good))


def test_what_is_no_json_of_ours_is_refused(known, tmp_path):
    for text in ("", "{", "[]", "null", "NaN", "[" * 100_000, "nowhere.json"):
        with pytest.raises(FileFormatError, match="not a"):
            from_json(text)
    path = tmp_path / "tree.json"
    for content in (to_json(known).encode()[:500], b"\xff\xfe\x00"):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="damaged"):
            from_json(path)
