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
    assert (document["format"], document["version"]) == ("taxarbor-hierarchy", 3)
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
            tree = builder.freeze(Placement(rule, [3, 1, 2]))
            if has_rules:
                tree = dataclasses.replace(tree, fidelity=[2 / 3, *[np.nan] * 3])
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


def test_json_says_what_came_back(known, assessed, same):
    document = strict(to_json(assessed))
    trust = document["trust"]
    assert trust["n_refits"] == 20
    assert trust["came_back"] == [20, 18, 20, 16, 3, 2]
    assert trust["feature_came_back"] == [[20, 20], [], [20], [], [], []]
    assert trust["curve"]["stability"] == [1.0, None, 0.2, 0.1]
    assert document["made_by"] == {"estimator": "Taxarbor"}
    del document["trust"], document["made_by"]  # as in older files
    same(from_json(json.dumps(document)), known)


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
    ("version", "newer taxarbor", [5]),
    ("missing", "damaged", [[[2.0]], 1.0, "a"]),
    ("encoding", "damaged|lacks", [{}, [], "a", {"columns": [{}]}]),
    ("format", "not a taxarbor hierarchy", ["other"]),
    ("order", "lacks 'order'", [KeyError]),
    ("order 0", "once", [2]),
    ("order 0", "integers", [1.5, "a", 10**30]),
    ("order 0", "damaged", [[1]]),
    ("dtype", "float32", ["float16"]),
    ("dtype", "damaged", ["nonsense"]),
    ("feature_names", "strings", [[1, 2]]),
    ("nodes", "damaged", [[], "abc"]),
    ("nodes 0", "damaged", [None]),
    ("nodes 0 id", "listed by id", [3]),
    ("nodes 0 parent", "root", [3]),
    ("nodes 0 score", "damaged", [[], "high"]),
    ("nodes 0 rule", "must have a rule", [None]),
    ("nodes 0 rule features 0", "damaged", [2]),
    ("nodes 0 rule features 0", "column numbers", [-1, 1]),
    ("nodes 0 rule weights 0", "damaged", [[1.0]]),
    ("nodes 0 rule weights", "one weight per child", [[1.0, 2.0]]),
    ("nodes 0 rule center", "damaged", [1.0]),
    ("nodes 0 rule offsets", "lacks 'offsets'", [KeyError]),
    ("nodes 0 rule offsets", "one weight per child", [[0.0, 0.0]]),
    ("nodes 0 info status", "odd", ["odd"]),
    ("nodes 0 info trace", "lacks 'trace'", [KeyError]),
    ("nodes 1 note", "strings", [None]),
    ("nodes 0 fidelity", "lacks 'fidelity'", [KeyError]),
    ("nodes 0 fidelity", "from 0 to 1", [1.5, "inf"]),
    ("nodes 0 fidelity", "damaged", ["high", [0.5]]),
    ("nodes 1 fidelity", "only a node with a rule", [0.5]),
    ("nodes 5 mean", "lacks 'mean'", [KeyError]),
    ("nodes 5 mean", "damaged", [None]),
    ("nodes 0 mean", "damaged", [[1.0], 1.0, "none"]),
    ("nodes 0 mean 0", "means must be finite", ["inf"]),
    ("placement", "lacks 'placement'", [KeyError]),
    ("placement", "damaged", [[], "none"]),
    ("placement", "lacks 'weights'", [{}]),
    ("placement leaves", "lacks 'leaves'", [KeyError]),
    ("placement leaves", "must be 5 integers", [[]]),
    ("placement leaves 0", "must be 5 integers", [None, 1.0, 10**30]),
    ("placement leaves 0", "must send rows to leaves", [10**15]),
    ("placement leaves 0", "from 0 on", [-1]),
    ("placement leaves 1", "every leaf must have a cell", [3]),
    ("placement weights", "shape", [1.0, [], [[1.0], [2.0]]]),
    ("placement weights 0", "damaged", [[1.0]]),
    ("placement features", "column numbers", [[0, 0]]),
    ("placement center", "damaged", [[0.0]]),
    ("placement center", "the placement's too", [[0.0] * 3]),
    ("placement offsets", "one weight per child", [[0.0]]),
    ("placement offsets", "lacks 'offsets'", [KeyError]),
    ("made_by", "made_by must be None or a dict", [["Taxarbor"], "Taxarbor"]),
    ("trust", "damaged", [[], "none"]),
    ("trust", "lacks 'curve'", [{}]),
    ("trust n_refits", "there must be a refit", [0, 20.0, "20", 10**400]),
    ("trust came_back", "count of refits", [[20, 18], 3]),
    ("trust came_back 1", "count of refits", [21, -1]),
    ("trust apart 1", "must hold integers", [0.5, None, "18"]),
    ("trust feature_came_back", "for each feature of each rule", [[], [[1]] * 6]),
    ("trust rows", "share for each of 10 rows", [[1.0], [2.0] * 10]),
    ("trust rows 0", "finite numbers", [None, "1", True]),
    ("trust curve n_clusters", "must have one length", [[], [1, 2]]),
    ("trust curve stability 0", "damaged", ["high", []]),
]
PARTS = ("center", "offsets", "weights 0")
NUMBERS = [f"{where} {part} 0" for where in ("placement", "nodes 0 rule") for part in PARTS]


def test_forged_json_is_refused(placed, assessed, refused):
    trusted = dataclasses.replace(placed, trust=assessed.trust, made_by=assessed.made_by)
    good = strict(to_json(trusted))
    no_numbers = ["1.0", True, None, [1.0], "a"]
    wrong = [(place, "damaged", no_numbers) for place in (*NUMBERS, "nodes 0 mean 0")]

    def load(change):
        path, value = change
        keys = [int(key) if key.isdigit() else key for key in path.split()]
        place = document = copy.deepcopy(good)
        for key in keys[:-1]:
            place = place[key]
        if value is KeyError:
            del place[keys[-1]]
        else:
            place[keys[-1]] = value
        from_json(json.dumps(document))

    cases = [((path, x), told) for path, told, values in FORGED + wrong for x in values]
    assert len(cases) == 97 + 35
    refused(load, cases, FileFormatError)
    for node in good["nodes"]:
        node["mean"] = [0.0] * 3
    with pytest.raises(FileFormatError, match="number of features of the rules"):
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
