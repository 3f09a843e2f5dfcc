"""What an explanation says about nodes and rows, against brute force."""

import copy
import sys
import time
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import Taxarbor
from taxarbor.exchange import from_labels, from_linkage
from taxarbor.explain import explain
from tests.explain.conftest import check_json, describe, steps_of, steps_of_row

NODES = ["node", "name", "parent", "depth", "n_rows", "cluster", "decided_by", "n_features"]
NODES += ["note", "missing", "features", "distinctive_features"]
EXAMPLES = ["typical", "extreme", "borderline"]
STEPS = ["row", "row_name", "step", "node", "node_name", "child", "child_name", "margin"]
STEPS += ["margin_percentile", "why"]


def margins_on_path(why, row, node):
    """Return the margins of a row at all rules above a node, or at it."""
    tree = why.taxonomy.tree
    leaf = tree.leaves[tree.labels[row]]
    place = tree.rows(0).tolist().index(row)
    deciders = {tree.decided_by(above) for above in tree.path(node)[:-1]}
    ruled = [above for above, _ in steps_of(tree, leaf) if above in deciders]
    return [why.margins.values[above][place - tree.start[above]] for above in ruled]


# Nodes


def test_nodes_as_plain_values(cases):
    for case in cases.values():
        why, tree = case.why, case.tree
        nodes = describe(why)
        check_json(nodes)
        for node, values in enumerate(nodes):
            assert values == why.node(np.int64(node))
            expected = {
                "node": node,
                "name": why.names[node], "parent": tree.parent(node), "note": tree.notes[node],
                "depth": tree.depth[node], "n_rows": len(tree.rows(node)),
                "children": [*tree.children(node)], "decided_by": tree.decided_by(node),
                "n_features": why.taxonomy.n_features_used[node],
            }  # fmt: skip
            assert {name: values[name] for name in expected} == expected
            assert (values["cluster"] is None) == (not tree.is_leaf(node))
            if tree.is_leaf(node):
                assert (tree.labels[tree.rows(node)] == values["cluster"]).all()
            assert "classes" not in values


def test_deciding_features(cases):
    for case in cases.values():
        why, tree = case.why, case.tree
        for node in range(tree.n_nodes):
            reasons, found = why.taxonomy.reasons(node, None), why.deciding_features(node)
            assert found == why.node(node)["features"]
            assert [feature["feature"] for feature in found] == [r.name for r in reasons]
            for feature, reason in zip(found, reasons, strict=True):
                rest = np.setdiff1d(tree.rows(tree.parent(node)), tree.rows(node))
                assert feature["direction"] == ("higher" if reason.weight > 0 else "lower")
                assert (feature["share"], feature["weight"]) == (reason.share, reason.weight)
                for key, rows in (("mean", tree.rows(node)), ("rest_mean", rest)):
                    mean = case.dense[rows, reason.feature].mean()
                    assert feature[key] == pytest.approx(mean, abs=case.tolerance)
            largest = max((feature["share"] for feature in found), default=1.0)
            positive = [f for f in found if round(f["share"] / largest, 5) > 0.0]
            for n_top in (0, 2, 10, 50):
                assert why.deciding_features(node, n_top) == positive[:n_top]
            assert why.node(node, n_top=2)["features"] == positive[:2]


def test_examples_are_the_deepest_and_the_nearest_to_the_border(cases):
    for case in cases.values():
        why, tree = case.why, case.tree
        for node in range(tree.n_nodes):
            assert why.examples(node, -1) == {kind: [] for kind in EXAMPLES}
            rows = tree.rows(node).tolist()
            on_path = {row: margins_on_path(why, row, node) for row in rows}
            least = {row: min(margins) for row, margins in on_path.items() if margins}
            if why.margins.values[node] is not None:
                border = dict(zip(rows, why.margins.values[node].tolist(), strict=True))
            else:
                border = {row: margins[-1] for row, margins in on_path.items() if margins}
            for n_examples in (0, 1, 4, 10_000):
                examples = why.examples(node, n_examples)
                assert examples.items() <= why.node(node, n_examples=n_examples).items()
                asked = [("borderline", border, 1.0), ("extreme", least, -1.0)]
                for kind, margins, side in asked[: 1 + (node > 0)]:
                    found = examples[kind]
                    assert len({example["row"] for example in found}) == len(found)
                    assert all(e["margin"] == margins[e["row"]] for e in found)
                    # All but those with the last margin, as many as asked for.
                    ranked = sorted(round(side * margin, 6) for margin in margins.values())
                    expected = [margin for margin in ranked if margin < ranked[-1]]
                    sides = [round(side * example["margin"], 6) for example in found]
                    assert sides == expected[:n_examples]


def test_extreme_rows_of_the_root_are_its_children_s_in_turn(cases):
    for case, n_examples in product(cases.values(), (0, 1, 2, 5, 7)):
        found = case.why.examples(0, n_examples)["extreme"]
        assert len({example["row"] for example in found}) == len(found) <= n_examples
        turns = [case.why.examples(c, n_examples)["extreme"] for c in case.tree.children(0)]
        firsts = [turn[0] for turn in turns if turn]
        assert found[: len(firsts)] == firsts[:n_examples]
        assert all(any(example in turn for turn in turns) for example in found)


def test_margins_within_an_ancestor(cases):
    for case in cases.values():
        why, tree = case.why, case.tree
        some = range(min(tree.n_nodes, 12))
        for node in some:
            path = tree.path(node)
            for above in path[:-1]:
                decider = tree.decided_by(above)
                first = tree.start[decider]
                own = slice(tree.start[node] - first, tree.stop[node] - first)
                found = why.margins_within(above, node)
                np.testing.assert_array_equal(found, why.margins.values[decider][own])
            for other in set(some) - set(path[:-1]):
                with pytest.raises(ValueError, match="not an ancestor"):
                    why.margins_within(other, node)
        for node in (-tree.n_nodes - 1, -1, tree.n_nodes):
            for pair in ((node, 0), (0, node)):
                with pytest.raises(IndexError):
                    why.margins_within(*pair)
            features = why.deciding_features, why.distinctive_features
            for ask in (why.node, why.examples, *features):
                with pytest.raises(IndexError):
                    ask(node)


def test_classes_are_counted(model, X, animals):
    kinds = [name[0] for name in animals.names]
    why = explain(model, X, classes=kinds)
    sizes = [kinds.count(name) for name in why.classes.names]
    assert sizes == sorted(sizes, reverse=True)
    assert [why.classes.names[code] for code in why.classes.codes] == kinds
    nodes, frame, tree = describe(why), why.nodes(), why.taxonomy.tree
    check_json(nodes)
    for node, values in enumerate(nodes):
        inside = [kinds[row] for row in tree.rows(node)]
        assert values["classes"] == {name: inside.count(name) for name in set(inside)}
        counts = list(values["classes"].values())
        assert counts == sorted(counts, reverse=True)
        text = ", ".join(f"{name} {count}" for name, count in values["classes"].items())
        assert frame["classes"][node] == text
    gaps = [None if name in "abc" else name for name in kinds]  # the largest class among them
    why = explain(model, X, classes=gaps)
    assert set(why.classes.names) == {*kinds} - {*"abc"}
    for node in range(tree.n_nodes):
        inside, found = [gaps[row] for row in tree.rows(node)], why.node(node)["classes"]
        assert found == {name or "(no label)": inside.count(name) for name in set(inside)}
        assert "(no label)" not in list(found)[:-1]


# Rows


def test_the_frame_of_rows(cases):
    for case in cases.values():
        why, tree = case.why, case.tree
        frame = why.rows()
        assert set(frame["row"]) == (set(range(tree.n_rows)) if tree.n_leaves > 1 else set())
        for row in range(0, tree.n_rows, 5):
            lines = frame[frame["row"] == row]
            assert steps_of_row(why, row) == lines.to_dict("records")
            leaf = int(tree.leaves[tree.labels[row]])
            assert lines["margin"].tolist() == margins_on_path(why, row, leaf)
            for kind in ("node", "child"):
                names = [why.names[node] for node in lines[kind]]
                assert names == lines[f"{kind}_name"].tolist()
            assert lines["step"].tolist() == list(range(1, len(lines) + 1))
            assert lines["row_name"].tolist() == [f"row {row}"] * len(lines)


def test_rows_by_name_and_by_number(named, animals):
    for row in (0, 7, 205):
        found = [named.find_row(one) for one in (row, np.int64(row), animals.names[row])]
        assert found == [row] * 3
        assert named.rows(animals.names[row]).equals(named.rows([row]))
        assert named.rows(row).equals(named.rows([row]))
    frame = named.rows(["otter", 3, "otter", "otter"])
    otter = animals.names.index("otter")
    assert frame["row"].drop_duplicates().tolist() == [otter, 3]
    assert set(frame["row_name"]) == {"otter", animals.names[3]}
    steps = [step["step"] for step in steps_of_row(named, "otter")]
    assert frame["step"][frame["row"] == otter].tolist() == 3 * steps


def test_rows_that_are_not_there(named, cases, model, X, animals):
    for ask in (named.find_row, lambda row: named.rows([row])):
        for row in (-1, 206, 10**9):
            with pytest.raises(IndexError):
                ask(row)
        for row in (1.5, True, np.True_):
            with pytest.raises(TypeError):
                ask(row)
    for name, why in product(("unicorn", "", "Otter", "0"), (named, cases["model"].why)):
        with pytest.raises(KeyError):
            why.find_row(name)
    for mask in ([True, False], np.array([True, False]), True, np.True_):
        with pytest.raises(TypeError):
            named.rows(mask)
    names = list(animals.names)
    names[5] = names[9] = "twin"
    why = explain(model, X, row_names=names)
    for ask in (lambda: why.find_row("twin"), lambda: why.rows(["twin"])):
        with pytest.raises(KeyError, match="2 rows"):
            ask()
    assert why.row_name(5) == why.row_name(9) == "twin"
    assert why.find_row(names[6]) == 6


# Frames


def test_frames_have_their_columns_and_need_pandas(cases, named, monkeypatch):
    for case in cases.values():
        why = case.why
        assert why.nodes().columns.tolist() == NODES + EXAMPLES
        for frame in (why.rows([]), why.rows([1]), why.rows(iter([0, 1]))):
            assert frame.columns.tolist() == STEPS
        assert len(why.rows([])) == 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    for ask in (named.nodes, named.rows):
        with pytest.raises(ImportError, match="pandas"):
            ask()


def test_the_frame_of_nodes(named):
    frame = named.nodes(n_examples=2)
    assert frame["node"].tolist() == list(range(named.taxonomy.tree.n_nodes))
    for node, line in frame.iterrows():
        values = named.node(node, n_top=3, n_examples=2)
        assert line["n_rows"] == values["n_rows"]
        for kind in EXAMPLES:
            assert line[kind] == ", ".join(example["name"] for example in values[kind])
        for kind in ("features", "distinctive_features"):
            assert line[kind] == ", ".join(feature["words"] for feature in values[kind])
    assert frame["parent"].dtype.kind == frame["cluster"].dtype.kind == "i"
    assert frame["parent"][0] == -1


# New rows


def test_training_rows_are_placed_where_they_are(cases):
    for case in cases.values():
        frames = case.why.rows(), case.why.place(case.X)
        same = np.flatnonzero(case.why.taxonomy.predict(case.X) == case.tree.labels)
        frames = [frame[frame["row"].isin(same)].reset_index(drop=True) for frame in frames]
        pd.testing.assert_frame_equal(*frames)


def test_new_rows_go_where_they_are_predicted(cases):
    for case in cases.values():
        rng = np.random.default_rng(0)
        shift = rng.normal(size=case.dense.shape[1]) / 4
        new = case.dense[rng.integers(len(case.dense), size=60)] + shift
        frame = case.why.place(new)
        for row, leaf in enumerate(case.tree.leaves[case.why.taxonomy.predict(new)]):
            lines = frame[frame["row"] == row]
            pairs = list(zip(lines["node"], lines["child"], strict=True))
            assert pairs == steps_of(case.tree, leaf)
        assert (frame["margin"] >= -1e-5).all()
        assert frame["margin_percentile"].between(0.0, 1.0).all()


def test_new_rows_of_every_kind_and_name(named, X, animals):
    expected = named.place(X[:9])
    assert expected["row_name"].unique().tolist() == [f"row {n}" for n in range(9)]
    frame = pd.DataFrame(X[:9], columns=animals.feature_names)
    for new in (X[:9].tolist(), frame, np.asfortranarray(X[:9])):
        pd.testing.assert_frame_equal(named.place(new), expected)
    # Margins that differ by rounding may have another percentile.
    placed = named.place(sparse.csr_array(X[:9]))
    frames = [frame.drop(columns="margin_percentile") for frame in (placed, expected)]
    pd.testing.assert_frame_equal(*frames)
    called = named.place(X[:2], row_names=["one", 2])
    assert called["row_name"].unique().tolist() == ["one", "2"]
    for none in (X[:0], sparse.csr_array(X[:0])):
        placed = named.place(none)
        assert (len(placed), placed.columns.tolist()) == (0, STEPS)


def test_new_rows_that_cannot_be_placed(named, X):
    for new in (X[:, :4], X[0], np.full_like(X, np.inf), X.astype(complex)):
        with pytest.raises(ValueError, match=r"\bX\b"):
            named.place(new)
    for n_names in (0, 1, 3):
        with pytest.raises(ValueError, match=f"{n_names} row names for 2 rows"):
            named.place(X[:2], row_names=["a"] * n_names)
    with pytest.raises(TypeError, match="row_names"):
        named.place(X[:3], "abc")


def test_new_rows_must_have_the_columns_of_the_old(named, X, animals):
    names = [f"f{n}" for n in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names, index=[f"row of {n}" for n in range(len(X))])
    why = explain(Taxarbor(4, random_state=0).fit(frame), frame)
    placed = why.place(frame[:3])
    assert placed["row_name"].unique().tolist() == ["row of 0", "row of 1", "row of 2"]
    assert "f" in placed["why"][0]
    assert why.place(pd.DataFrame(X[:3]))["why"].tolist() == placed["why"].tolist()
    # A tree grown on an array has the names that it was given since.
    frame = pd.DataFrame(X[:4], columns=animals.feature_names)
    pd.testing.assert_frame_equal(named.place(frame), named.place(X[:4]))
    pd.testing.assert_frame_equal(named.place(frame[frame.columns[::-1]]), named.place(frame))
    with pytest.raises(ValueError, match="X lacks columns"):
        named.place(frame.rename(columns=str.upper))


# The value itself


def test_it_is_frozen_and_asking_changes_nothing(named, X):
    assert repr(named) == f"Explanation({named.taxonomy!r})"
    with pytest.raises(AttributeError):
        named.names = ()
    assert describe(copy.copy(named)) == describe(named)
    X = X.copy()
    before, taxonomy = X.tobytes(), Taxarbor(4, random_state=0).fit(X).taxonomy_
    text, why = str(taxonomy), explain(taxonomy, X)
    first = describe(why)
    why.rows()
    why.place(X)
    assert describe(why) == first
    assert (X.tobytes(), str(taxonomy)) == (before, text)


def test_deep_trees_take_no_time_by_the_cube_of_their_depth():
    n_rows = 2000
    merges = [[n_rows + i - 1 if i else 0, i + 1, i, i + 2] for i in range(n_rows - 1)]
    tree = from_linkage(merges).tree
    assert tree.height == n_rows - 1
    began = time.perf_counter()
    why = explain(from_linkage(merges), np.arange(n_rows, dtype=float)[:, None])
    found = [why.examples(node, 1)["extreme"] for node in range(1, tree.n_nodes)]
    assert time.perf_counter() - began < 20.0
    deepest = int(tree.leaves[tree.labels[0]])
    above = [why.margins_within(node, deepest)[0] for node in tree.path(deepest)[:-1]]
    assert found[deepest - 1] == []  # a single row is not deeper than others
    assert why.least_margins[tree.rows(0).tolist().index(0)] == min(above)
    check_json(why.node(tree.n_nodes - 1))
    assert len(why.rows(0)) == n_rows - 1


def test_means_of_the_rest_lose_no_digits():
    X = (1000.0 + np.random.default_rng(0).normal(size=(5000, 2))).astype(np.float32)
    X[0] = 1050.0
    why = explain(from_labels([0] + [1] * 4999), X)
    rest = X[1:].astype(np.float64).mean(axis=0)
    for feature in why.deciding_features(1):
        assert feature["rest_mean"] == pytest.approx(rest[feature["column"]], abs=1e-3)
    for feature in why.deciding_features(2):
        assert feature["rest_mean"] == pytest.approx(1050.0, abs=1e-3)


def test_half_characters_fit_into_frames(model, X):
    """Arrow has no room for them, and pandas takes its texts where it can."""
    names = [f"{row}\ud800" for row in range(len(X))]
    why = explain(model, X, row_names=names)
    assert set(why.rows().row_name) == set(names)
    assert all("\ud800" in text for text in why.nodes().typical)
    usual = explain(model, X).nodes().dtypes
    others = [name for name in usual.index if name not in EXAMPLES]
    assert (why.nodes().dtypes == usual)[others].all()
