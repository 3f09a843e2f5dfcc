"""What an explanation says about nodes and rows, against brute force."""

import copy
import dataclasses
import pickle
import sys
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import Taxarbor
from taxarbor._format import format_column
from taxarbor.exchange import from_labels, from_linkage, to_json
from taxarbor.explain import explain
from taxarbor.tree import LinearRule

FEATURES = ["node", "name", "parent", "feature", "column", "words", "direction"]
FEATURES += ["share", "weight", "mean", "rest_mean", "missing"]
NODES = ["node", "name", "parent", "depth", "n_rows", "cluster", "decided_by", "n_features"]
NODES += ["note", "missing", "features", "standout", "typical", "extreme", "borderline"]
KINDS = ("typical", "extreme", "borderline")
STEPS = ["row", "row_name", "step", "node", "node_name", "child", "child_name", "margin"]
STEPS += ["surer_than", "why"]


def margins_on_the_path(why, row, node):
    """Return the margins of a row at all splits above a node."""
    taxonomy = why.taxonomy
    return [
        why.margins[above][taxonomy.tree.rows(above).tolist().index(row)]
        for above in taxonomy.tree.path(node)[:-1]
    ]


# Nodes


def test_nodes_as_plain_values(whys, strict):
    for why in whys:
        taxonomy = why.taxonomy
        document = why.to_dict()
        strict(document)
        assert [node["node"] for node in document["nodes"]] == list(
            range(taxonomy.tree.n_nodes)
        )
        for values in document["nodes"]:
            node = values["node"]
            assert values == why.node(node) == why.node(np.int64(node))
            expected = {
                "name": why.names[node], "parent": taxonomy.tree.parent(node), "note": taxonomy.tree.notes[node],
                "depth": taxonomy.tree.depth[node], "n_rows": len(taxonomy.tree.rows(node)),
                "children": [*taxonomy.tree.children(node)], "n_features": taxonomy.n_features_used[node],
            }  # fmt: skip
            assert {name: values[name] for name in expected} == expected
            if taxonomy.tree.is_leaf(node):
                assert taxonomy.tree.leaves[values["cluster"]] == node
                assert (
                    taxonomy.tree.labels[taxonomy.tree.rows(node)] == values["cluster"]
                ).all()
            else:
                assert values["cluster"] is None
            assert "classes" not in values


def test_features_of_nodes(cases):
    for case in cases.values():
        why, taxonomy = case.why, case.why.taxonomy
        tolerance = 1e-4 if taxonomy.means.dtype == np.float32 else 1e-9
        for node in range(taxonomy.tree.n_nodes):
            found, reasons = why.node(node)["features"], taxonomy.reasons(node, None)
            assert [one["feature"] for one in found] == [reason.name for reason in reasons]
            assert why.leading(node) == found
            for one, reason in zip(found, reasons, strict=True):
                rest = np.setdiff1d(
                    taxonomy.tree.rows(taxonomy.tree.parent(node)), taxonomy.tree.rows(node)
                )
                assert one["direction"] == ("higher" if reason.weight > 0 else "lower")
                assert (one["share"], one["weight"]) == (reason.share, reason.weight)
                mean, rest_mean = (
                    case.dense[some, reason.feature].mean()
                    for some in (taxonomy.tree.rows(node), rest)
                )
                assert one["mean"] == pytest.approx(mean, abs=tolerance)
                assert one["rest_mean"] == pytest.approx(rest_mean, abs=tolerance)
            few = why.leading(node, 2)
            most = max((one["share"] for one in found), default=1.0)
            assert few == [one for one in found if round(one["share"] / most, 5) > 0.0][:2]
            assert few == why.node(node, n_top=2)["features"]
        told = why.to_dict(n_top=2, n_examples=1)["nodes"]
        assert told == [
            why.node(n, n_top=2, n_examples=1) for n in range(taxonomy.tree.n_nodes)
        ]


def test_no_more_features_are_sought_than_are_shown(named, monkeypatch):
    asked = []
    leading = type(named).leading
    monkeypatch.setattr(
        type(named), "leading", lambda self, *a: asked.append(a[1]) or leading(self, *a)
    )
    named.nodes()
    named.node(1, n_top=4)
    assert asked == [3] * named.taxonomy.n_nodes + [4]


def test_examples_are_the_deepest_and_the_nearest_to_the_border(whys):
    for why in whys:
        taxonomy = why.taxonomy
        for node in (0, taxonomy.tree.n_nodes - 1):
            assert why.extreme(node, -1) == why.borderline(node, -1) == []
            assert why.typical(node, -1) == why.standout(node, -1) == []
        for node in range(taxonomy.tree.n_nodes):
            rows = taxonomy.tree.rows(node).tolist()
            on_path = {row: margins_on_the_path(why, row, node) for row in rows}
            if not taxonomy.tree.is_leaf(node):
                border = dict(zip(rows, why.margins[node].tolist(), strict=True))
            else:
                border = {row: margins[-1] for row, margins in on_path.items() if margins}
            least = {row: min(margins) for row, margins in on_path.items() if margins}
            for n_examples in (0, 1, 4, 10_000):
                asked = [(why.borderline, border, 1.0)]
                asked += [(why.extreme, least, -1.0)] * (node > 0)
                for ask, margins, side in asked:
                    found = ask(node, n_examples)
                    assert len({one["row"] for one in found}) == len(found)
                    assert all(one["margin"] == margins[one["row"]] for one in found)
                    # All but those with the last margin, as many as asked for.
                    ranked = sorted(round(side * margin, 6) for margin in margins.values())
                    expected = [one for one in ranked if one < ranked[-1]][:n_examples]
                    assert [round(side * one["margin"], 6) for one in found] == expected
                    assert found == why.node(node, n_examples=n_examples)[ask.__name__]


def test_extreme_and_borderline_rows_of_is_boolean_rules_are_not_the_same():
    X = np.random.default_rng(0).integers(2, size=(90, 4)).astype(float)
    n_margins = []
    for own, center in ([1.0, 0.0, 0.0, 0.0], 0.5), ([1.0, 1.0, 0.0, 0.0], 0.25):
        rule = LinearRule(np.array([own, np.zeros(4)]), np.full(4, center))
        labels = ((X - center) @ own <= 0.0).astype(int)
        bare = from_labels(labels)
        why = explain(dataclasses.replace(bare, rules=(rule, None, None)), X)
        for node in (1, 2):
            values, margins = why.node(node), why.margins_within(0, node)
            extreme, borderline = ({one["row"] for one in values[k]} for k in KINDS[1:])
            assert not extreme & borderline
            n_margins.append(len(set(margins.round(6))))
            assert bool(extreme) == bool(borderline) == (n_margins[-1] > 1)
            assert values["typical"]
    assert sorted(set(n_margins)) == [1, 2]


def test_extreme_rows_of_the_root_are_its_children_s_in_turn(whys):
    for why in whys:
        taxonomy = why.taxonomy
        for n_examples in (0, 1, 2, 5, 7):
            found = why.extreme(0, n_examples)
            if taxonomy.tree.n_leaves == 1:
                assert found == []
                continue
            assert len(found) <= n_examples
            assert len({one["row"] for one in found}) == len(found)
            turns = [why.extreme(child, n_examples) for child in taxonomy.tree.children(0)]
            firsts = [turn[0] for turn in turns if turn]
            assert found[: len(firsts)] == firsts[:n_examples]
            assert all(any(one in turn for turn in turns) for one in found)


def test_margins_within_an_ancestor(whys):
    for why in whys:
        taxonomy = why.taxonomy
        for node in range(1, taxonomy.tree.n_nodes):
            for place, above in enumerate(taxonomy.tree.path(node)[:-1]):
                found, rows = why.margins_within(above, node), taxonomy.tree.rows(node)
                assert len(found) == len(rows)
                assert found[0] == margins_on_the_path(why, rows[0], node)[place]
        for node in range(min(taxonomy.tree.n_nodes, 12)):
            for other in set(range(min(taxonomy.tree.n_nodes, 12))) - set(
                taxonomy.tree.path(node)[:-1]
            ):
                with pytest.raises(ValueError, match="is not an ancestor"):
                    why.margins_within(other, node)
        for node in (-taxonomy.tree.n_nodes - 1, -1, taxonomy.tree.n_nodes):
            for pair in ((node, 0), (0, node)):
                with pytest.raises(IndexError, match="there is no node"):
                    why.margins_within(*pair)
            for ask in (why.node, why.typical, why.extreme, why.borderline, why.standout):
                with pytest.raises(IndexError):
                    ask(node)


def test_what_examples_are_called(named, whys, animals):
    for values in named.to_dict()["nodes"]:
        for one in values["typical"] + values["extreme"] + values["borderline"]:
            assert one["name"] == animals.names[one["row"]]
    assert named.row_name(3) == animals.names[3]
    for why in whys:
        assert why.row_names is None
        assert why.row_name(3) == "row 3"
        assert all(one["name"] == f"row {one['row']}" for one in why.typical(0))


def test_classes_are_counted(model, X, animals, strict):
    kinds = [name[0] for name in animals.names]
    why = explain(model, X, row_names=animals.names, classes=kinds)
    sizes = [kinds.count(name) for name in why.classes.names]
    assert sizes == sorted(sizes, reverse=True)
    assert [why.classes.names[code] for code in why.classes.codes] == kinds
    strict(why.to_dict())
    frame = why.nodes()
    for node, values in enumerate(why.to_dict()["nodes"]):
        own = [kinds[row] for row in why.taxonomy.rows(node)]
        assert values["classes"] == {name: own.count(name) for name in set(own)}
        counts = list(values["classes"].values())
        assert counts == sorted(counts, reverse=True)
        told = ", ".join(f"{name} {count}" for name, count in values["classes"].items())
        assert frame["classes"][node] == told
    gaps = [None if name in "abc" else name for name in kinds]  # the largest class among them
    why = explain(model, X, classes=gaps)
    assert set(why.classes.names) == {*kinds} - {*"abc"}
    for node in range(why.taxonomy.n_nodes):
        own, found = [gaps[row] for row in why.taxonomy.rows(node)], why.node(node)["classes"]
        assert found == {name or "(no label)": own.count(name) for name in set(own)}
        assert "(no label)" not in list(found)[:-1]


# Rows


def test_rows_as_plain_values(whys, strict):
    for why in whys:
        taxonomy = why.taxonomy
        for row in range(0, len(taxonomy.tree.order), 5):  # the others: see the frame of rows
            values = why.row(row)
            strict(values)
            assert (values["row"], values["name"]) == (row, None)
            assert values["cluster"] == taxonomy.tree.labels[row]
            assert values["leaf"] == taxonomy.tree.leaves[taxonomy.tree.labels[row]]
            path = list(taxonomy.tree.path(values["leaf"]))
            assert [step["node"] for step in values["steps"]] == path[:-1]
            assert [step["child"] for step in values["steps"]] == path[1:]
            for kind in ("node", "child"):
                told = [step[f"{kind}_name"] for step in values["steps"]]
                assert told == [why.names[step[kind]] for step in values["steps"]]
            margins = [step["margin"] for step in values["steps"]]
            assert margins == margins_on_the_path(why, row, values["leaf"])


def test_rows_by_name_and_by_number(named, animals):
    for row in (0, 7, 205):
        values = named.row(animals.names[row])
        assert values == named.row(row) == named.row(np.int64(row))
        assert values["name"] == animals.names[row]
        assert named.rows(animals.names[row]).equals(named.rows([row]))
        assert named.rows(row).equals(named.rows([row]))
    frame = named.rows(["otter", 3, "otter"])
    otter = animals.names.index("otter")
    assert frame["row"].drop_duplicates().tolist() == [otter, 3]
    assert set(frame["row_name"]) == {"otter", animals.names[3]}
    assert (frame["row"] == otter).sum() == 2 * len(named.row("otter")["steps"])


def test_rows_that_are_not_there(named, whys, model, X, animals):
    for row in (-1, 206, 10**9):
        for ask in (named.row, lambda row: named.rows([row])):
            with pytest.raises(IndexError, match=rf"there is no row {row}: .* 0 to 205"):
                ask(row)
    for name in ("unicorn", "", "Otter", "0"):
        for why in (named, whys[0]):
            with pytest.raises(KeyError, match=f"is no row called '{name}'; give its number"):
                why.row(name)
    with pytest.raises(TypeError):
        named.row(1.5)
    for mask in ([True, False], np.array([True, False]), True, np.True_):
        with pytest.raises(TypeError, match=r"np\.flatnonzero\(mask\)|not iterable"):
            named.rows(mask)
    with pytest.raises(TypeError, match="a row is a number or a name, got True"):
        named.row(True)
    names = list(animals.names)
    names[5] = names[9] = "twin"
    why = explain(model, X, row_names=names)
    for ask in (lambda: why.row("twin"), lambda: why.rows(["twin"])):
        with pytest.raises(KeyError, match=r"there are 2 rows called 'twin'; give its number"):
            ask()
    assert why.row(5)["name"] == why.row(9)["name"] == "twin"
    assert why.row(names[6])["row"] == 6


# Frames


def test_frames_have_their_columns_and_need_pandas(whys, named, monkeypatch):
    for why in whys:
        assert why.nodes().columns.tolist() == NODES
        for frame in (why.rows(), why.rows([]), why.rows([1]), why.rows(iter([0, 1]))):
            assert isinstance(frame, pd.DataFrame)
            assert frame.columns.tolist() == STEPS
        assert len(why.rows([])) == 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    for ask in (named.features, named.nodes, named.rows):
        with pytest.raises(ImportError, match="explanations needs pandas: pip install pandas"):
            ask()


def test_the_frame_of_features(whys):
    for why in whys:
        lines = [
            (node, why.names[node], why.taxonomy.parent(node), *one.values())
            for node in range(1, why.taxonomy.n_nodes)
            for one in why.leading(node)
        ]
        frame = why.features()
        assert frame.columns.tolist() == FEATURES
        assert list(frame.itertuples(index=False, name=None)) == lines


def test_the_frame_of_nodes(named):
    frame = named.nodes(n_examples=2)
    assert frame["node"].tolist() == list(range(named.taxonomy.n_nodes))
    for node, line in frame.iterrows():
        values = named.node(node, n_top=3, n_examples=2)
        assert line["n_rows"] == values["n_rows"]
        for kind in ("typical", "extreme", "borderline"):
            assert line[kind] == ", ".join(one["name"] for one in values[kind])
        for kind in ("features", "standout"):
            assert line[kind] == ", ".join(one["words"] for one in values[kind])
        reasons = named.taxonomy.reasons(node, 3)
        assert line["features"] == ", ".join(map(str, reasons))
    assert frame["parent"].dtype.kind == frame["cluster"].dtype.kind == "i"
    assert frame["parent"][0] == -1


def test_the_frame_of_rows(whys):
    for why in whys:
        taxonomy, frame = why.taxonomy, why.rows()
        assert (
            len(frame) == taxonomy.tree.depth[taxonomy.tree.leaves[taxonomy.tree.labels]].sum()
        )
        for row, lines in frame.groupby("row"):
            leaf = taxonomy.tree.leaves[taxonomy.tree.labels[row]]
            assert lines["node"].tolist() == list(taxonomy.tree.path(leaf)[:-1])
            assert lines["margin"].tolist() == margins_on_the_path(why, row, leaf)
            if row % 5:
                continue
            values = why.row(row)
            assert lines["step"].tolist() == list(range(1, len(lines) + 1))
            assert lines["row_name"].unique().tolist() == [f"row {row}"]
            for column in ("node", "node_name", "child", "child_name", "margin", "why"):
                assert lines[column].tolist() == [step[column] for step in values["steps"]]
            assert lines["child"].iloc[-1] == values["leaf"]


# New rows


def test_training_rows_are_placed_where_they_are(cases):
    for case in cases.values():
        taxonomy = case.why.taxonomy
        own, placed = case.why.rows(), case.why.place(case.X)
        assert placed.columns.tolist() == STEPS
        agree = np.flatnonzero(taxonomy.predict(case.X) == taxonomy.tree.labels)
        same = [f[f["row"].isin(agree)].reset_index(drop=True) for f in (own, placed)]
        pd.testing.assert_frame_equal(*same)


def test_new_rows_go_where_they_are_predicted(cases):
    for case in cases.values():
        taxonomy, dense = case.why.taxonomy, case.dense
        rng = np.random.default_rng(0)
        new = dense[rng.integers(len(dense), size=60)] + rng.normal(size=dense.shape[1]) / 4
        frame = case.why.place(new)
        for row, leaf in enumerate(taxonomy.tree.leaves[taxonomy.predict(new)]):
            lines = frame[frame["row"] == row]
            assert lines["node"].tolist() == list(taxonomy.tree.path(leaf)[:-1])
            assert lines["child"].tolist() == list(taxonomy.tree.path(leaf)[1:])
        if len(frame):
            assert (frame["margin"] >= -1e-5).all()
            assert frame["surer_than"].between(0.0, 1.0).all()


def test_new_rows_of_every_kind_and_name(named, X, animals):
    expected = named.place(X[:9])
    assert expected["row_name"].unique().tolist() == [f"row {n}" for n in range(9)]
    frame = pd.DataFrame(X[:9], columns=animals.feature_names)
    for new in (X[:9].tolist(), frame, np.asfortranarray(X[:9])):
        pd.testing.assert_frame_equal(named.place(new), expected)
    # Margins that are equal but for rounding may be told apart by other kernels.
    lesser = [
        frame.drop(columns="surer_than")
        for frame in (named.place(sparse.csr_array(X[:9])), expected)
    ]
    pd.testing.assert_frame_equal(*lesser)
    called = named.place(X[:2], row_names=["one", 2])
    assert called["row_name"].unique().tolist() == ["one", "2"]
    assert named.place(X[:0]).columns.tolist() == STEPS
    assert len(named.place(sparse.csr_array(X[:0]))) == 0


def test_new_rows_that_cannot_be_placed(named, X):
    for new, message in [
        (X[:, :4], "X has 4 features, but the taxonomy was grown on 85"),
        (X[0], "two dimensions"),
        (np.full_like(X, np.inf), "X (holds|contains)"),
        (X.astype(str), "X must hold numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            named.place(new)
    for n_names in (0, 1, 3):
        with pytest.raises(ValueError, match=f"got {n_names} row names for 2 rows"):
            named.place(X[:2], row_names=["a"] * n_names)
    with pytest.raises(TypeError, match="list of names"):
        named.place(X[:3], "abc")


def test_new_rows_must_have_the_columns_of_the_old(named, X, animals):
    names = [f"f{n}" for n in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names, index=[f"row of {n}" for n in range(len(X))])
    model = Taxarbor(4, random_state=0).fit(frame)
    why = explain(model, frame, feature_names=[name.upper() for name in names])
    placed = why.place(frame[:3])
    assert placed["row_name"].unique().tolist() == ["row of 0", "row of 1", "row of 2"]
    assert "F" in placed["why"][0]
    with pytest.raises(ValueError, match="missing"):
        why.place(pd.DataFrame(X))
    # A tree grown on an array has no names: others than those given are let pass.
    frame = pd.DataFrame(X[:4], columns=animals.feature_names)
    with pytest.raises(ValueError, match="in another order"):
        named.place(frame[frame.columns[::-1]])
    pd.testing.assert_frame_equal(named.place(frame), named.place(X[:4]))
    named.place(frame.rename(columns=str.upper))


# The value itself


def test_it_is_frozen_and_asking_changes_nothing(named, X):
    assert repr(named) == f"Explanation({named.taxonomy!r})"
    with pytest.raises(AttributeError):
        named.names = ()
    again = pickle.loads(pickle.dumps(named))
    assert again.to_dict() == copy.copy(named).to_dict() == named.to_dict()
    assert again.row("otter") == named.row("otter")
    X = X.copy()
    before, taxonomy = X.tobytes(), Taxarbor(4, random_state=0).fit(X).taxonomy_
    text, why = to_json(taxonomy), explain(taxonomy, X)
    first = why.to_dict()
    why.rows()
    why.place(X)
    assert why.to_dict() == first
    assert (X.tobytes(), to_json(taxonomy)) == (before, text)


def test_cells_of_the_rows_in_words(cases):
    rows = np.array([3, 0, 3])
    for case in cases.values():
        is_boolean = case.why.taxonomy.is_boolean
        for column in (2, 0):
            values = case.dense[rows, column]
            told = ["yes" if value else "no" for value in values]
            expected = told if is_boolean[column] else format_column(values)
            assert case.why.cells(rows, column) == expected
            assert case.why.cells(rows[:0], column) == []


def test_deep_trees_take_no_time_by_the_cube_of_their_depth(strict):
    n_rows = 2000
    merges = [[n_rows + i - 1 if i else 0, i + 1, i, i + 2] for i in range(n_rows - 1)]
    taxonomy = from_linkage(merges)
    assert taxonomy.tree.height == n_rows - 1
    X = np.arange(n_rows, dtype=float)[:, None]
    began = time.perf_counter()
    why = explain(taxonomy, X)
    found = [why.extreme(node, 1) for node in range(1, taxonomy.tree.n_nodes)]
    assert time.perf_counter() - began < 20.0
    deepest = int(taxonomy.tree.leaves[taxonomy.tree.labels[0]])
    above = [why.margins_within(node, deepest)[0] for node in taxonomy.tree.path(deepest)[:-1]]
    assert found[deepest - 1] == []  # a single row is not deeper than others
    assert why._least[deepest][0] == min(above)
    strict(why.node(taxonomy.tree.n_nodes - 1))
    strict(why.row(0))
    assert len(why.row(0)["steps"]) == n_rows - 1


def test_means_of_the_rest_lose_no_digits():
    rng = np.random.default_rng(0)
    X = (1000.0 + rng.normal(size=(5000, 2))).astype(np.float32)
    X[0] = 1050.0
    why = explain(from_labels([0] + [1] * 4999), X)
    rest = X[1:].astype(np.float64).mean(axis=0)
    for one in why.leading(1):
        assert one["rest_mean"] == pytest.approx(rest[int(one["feature"][1:])], abs=1e-3)
    assert all(one["rest_mean"] == pytest.approx(1050.0, abs=1e-3) for one in why.leading(2))


def test_half_characters_fit_into_frames(model, X):
    """Arrow has no room for them, and pandas takes its texts where it can."""
    names = [f"{row}\ud800" for row in range(len(X))]
    why = explain(model, X, row_names=names)
    assert set(why.rows().row_name) == set(names)
    assert all("\ud800" in told for told in why.nodes().typical)
    usual = explain(model, X).nodes().dtypes
    others = [name for name in usual.index if name not in ("typical", "extreme", "borderline")]
    assert (why.nodes().dtypes == usual)[others].all()
