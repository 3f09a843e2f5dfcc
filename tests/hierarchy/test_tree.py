import copy
import dataclasses
import io
import pickle

import joblib
import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, LinearRule, Placement

ARRAYS = (
    "order",
    "start",
    "stop",
    "parents",
    "birth",
    "score",
    "objective",
    "fidelity",
    "depth",
    "leaves",
)


def with_changes(tree, **changes):
    return dataclasses.replace(tree, **changes)


def put(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def test_the_known_tree(known):
    assert repr(known) == "Hierarchy(n_rows=10, n_leaves=4, height=2)"
    assert (known.root, known.n_nodes, known.n_leaves, known.n_splits) == (0, 6, 4, 2)
    assert known.parents.tolist() == [-1, 0, 0, 0, 2, 2]
    assert known.birth.tolist() == [0, 1, 1, 1, 2, 2]
    assert known.depth.tolist() == [0, 1, 1, 1, 2, 2]
    assert known.n_rows.tolist() == [10, 3, 5, 2, 2, 3]
    assert known.n_features.tolist() == [2, 0, 1, 0, 0, 0]
    assert known.leaves.tolist() == [1, 4, 5, 3]
    assert known.labels.tolist() == [3, 0, 1, 2, 0, 1, 3, 0, 2, 2]


def test_moving_in_the_known_tree(known):
    assert [known.parent(i) for i in range(6)] == [None, 0, 0, 0, 2, 2]
    assert [known.children(i) for i in range(3)] == [(1, 2, 3), (), (4, 5)]
    assert [known.is_leaf(i) for i in range(6)] == [False, True, False, True, True, True]
    assert known.path(5) == (0, 2, 5)
    assert known.path(np.int32(0)) == (0,)
    assert known.rows(4).tolist() == [2, 5]
    for node in (-1, 6):
        for method in (known.parent, known.children, known.path, known.rows, known.is_leaf):
            with pytest.raises(IndexError, match="ids run from 0 to 5"):
                method(node)


def test_a_root_alone():
    tree = HierarchyBuilder(3).freeze()
    assert repr(tree) == "Hierarchy(n_rows=3, n_leaves=1, height=0)"
    assert tree.leaves.tolist() == [0]
    assert tree.children(0) == ()
    assert tree.path(0) == (0,)
    assert tree.labels.tolist() == tree.cut(1).tolist() == tree.cut(depth=3).tolist() == [0] * 3


@settings(deadline=None)
@given(data=st.data())
def test_sizes_add_up(trees, data):
    tree = data.draw(trees)
    assert tree.n_rows[0] == len(tree.order) == tree.n_rows[tree.leaves].sum()
    for node in range(tree.n_nodes):
        children = tree.children(node)
        assert tree.is_leaf(node) == (not children)
        assert tree.depth[node] == len(tree.path(node)) - 1
        if children:
            assert tree.n_rows[list(children)].sum() == tree.n_rows[node]
            together = np.concatenate([tree.rows(child) for child in children])
            np.testing.assert_array_equal(together, tree.rows(node))
            assert {tree.parent(child) for child in children} == {node}
    for label, leaf in enumerate(tree.leaves):
        np.testing.assert_array_equal(
            np.flatnonzero(tree.labels == label), np.sort(tree.rows(leaf))
        )


def test_nothing_can_be_changed(known):
    derived = [known.labels, known.n_rows, known.n_features, known.rows(1)]
    for array in [getattr(known, name) for name in ARRAYS] + derived:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for name in (*ARRAYS, "rules", "notes", "placement", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(known, name, None)
    assert isinstance(known.rules, tuple)


def test_the_arrays_given_stay_their_owners(known):
    order = known.order.copy()
    tree = with_changes(known, order=order)
    order[:] = 0
    np.testing.assert_array_equal(tree.order, known.order)
    fidelity = np.array([0.5, *[np.nan] * 5])
    tree = with_changes(known, fidelity=fidelity)
    fidelity[0] = 7
    assert tree.fidelity[0] == 0.5
    assert fidelity.flags.writeable


def test_by_default_fidelity_is_unknown_and_there_is_no_placement(known):
    made = Hierarchy(
        **{
            field.name: getattr(known, field.name)
            for field in dataclasses.fields(Hierarchy)
            if field.init and field.name not in ("fidelity", "placement")
        }
    )
    for tree in (known, made, Hierarchy.from_labels([0, 1]), HierarchyBuilder(1).freeze()):
        assert tree.fidelity.shape == (tree.n_nodes,)
        assert tree.fidelity.dtype == np.float64
        assert np.isnan(tree.fidelity).all()
        assert not tree.fidelity.flags.writeable
        assert tree.placement is None


def by_skops(tree):
    data = skops.io.dumps({"tree": tree})
    return skops.io.loads(data, trusted=["taxarbor.hierarchy._tree.Hierarchy"])["tree"]


def by_joblib(tree):
    file = io.BytesIO()
    joblib.dump(tree, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda tree: pickle.loads(pickle.dumps(tree, protocol=2)),
        lambda tree: pickle.loads(pickle.dumps(tree)),
        by_joblib,
        by_skops,
    ],
    ids=["copy", "deepcopy", "pickle2", "pickle", "joblib", "skops"],
)
def test_copies_are_the_same(known, bare, placed, same, again):
    same(known, again(known))
    same(bare, again(bare))
    same(placed, again(placed))


def test_without_rules_all_else_is_the_same(known, bare):
    assert [bare.is_leaf(i) for i in range(6)] == [known.is_leaf(i) for i in range(6)]
    assert bare.n_features.tolist() == [0] * 6
    assert bare.notes == known.notes
    np.testing.assert_array_equal(bare.labels, known.labels)
    with pytest.raises(ValueError, match="only leaves may have a note"):
        with_changes(bare, notes=("split", *bare.notes[1:]))


@settings(deadline=None)
@given(data=st.data())
def test_pickles_change_nothing(trees, same, data):
    tree = data.draw(trees)
    same(tree, pickle.loads(pickle.dumps(tree)))


def test_a_deep_tree_is_no_trouble(chain, same):
    assert chain.height == 3000
    assert chain.path(chain.n_nodes - 1)[-2:] == (chain.n_nodes - 3, chain.n_nodes - 1)
    assert len(np.unique(chain.cut(1234))) == 1234
    assert len(np.unique(chain.cut(depth=1234))) == 1235
    same(chain, pickle.loads(pickle.dumps(chain)))
    same(chain, copy.deepcopy(chain))


def place(leaves, n_features=2, dtype="float64"):
    n_cells = len(leaves)
    rule = LinearRule(np.ones((n_cells, n_features), dtype), np.zeros(n_features, dtype))
    return {"placement": Placement(rule, leaves)}


FAULTS = {
    "each of 0 to 9 once": [
        lambda t: {"order": put(t.order, 0, t.order[1])},
        lambda t: {"order": put(t.order, 0, 10)},
        lambda t: {"order": put(t.order, 0, -1)},
    ],
    "not empty": [lambda t: {"order": t.order[:0]}, lambda t: {"order": t.order[None]}],
    "there must be a root": [lambda t: {"parents": t.parents[:0]}],
    "must hold integers": [
        lambda t: {"order": t.order.astype(float)},
        lambda t: {"birth": t.birth.astype(bool)},
    ],
    "start has shape": [lambda t: {"start": t.start[1:]}],
    "score has shape": [lambda t: {"score": t.score[:, None]}],
    "notes has 5 entries": [lambda t: {"notes": t.notes[1:]}],
    "info has 5 entries": [lambda t: {"info": t.info[1:]}],
    "node 0 must be the root": [
        lambda t: {"parents": put(t.parents, 0, 0)},
        lambda t: {"birth": put(t.birth, 0, 1)},
    ],
    "parent's id must be smaller": [
        lambda t: {"parents": put(t.parents, 4, 5)},
        lambda t: {"parents": put(t.parents, 4, 4)},
        lambda t: {"parents": put(t.parents, 4, -1)},
        lambda t: {"parents": put(t.parents, 4, 10**9)},
    ],
    "birth must count": [
        lambda t: {"birth": t.birth * 2},
        lambda t: {"birth": put(t.birth, [1, 2, 3], 0)},
        lambda t: {"birth": t.birth[[0, 5, 4, 3, 2, 1]]},
        lambda t: {"birth": put(t.birth, 5, 4)},
    ],
    "siblings must have": [
        lambda t: {"birth": put(t.birth, 4, 1)},
        lambda t: {"birth": put(t.birth, 5, 3)},
        lambda t: {"parents": put(t.parents, 5, 1)},
        lambda t: {"parents": put(t.parents, [4, 5], 0)},
    ],
    "the root must own": [
        lambda t: {"start": put(t.start, 0, 1)},
        lambda t: {"stop": put(t.stop, 0, 9)},
    ],
    "start < stop": [lambda t: {"stop": put(t.stop, 4, t.start[4])}],
    "must tile": [
        lambda t: {"stop": put(t.stop, 5, t.stop[5] + 1)},
        lambda t: {"start": put(t.start, 4, t.start[4] - 1)},
        lambda t: {"stop": put(t.stop, 1, t.stop[1] + 1)},
    ],
    "must have a rule": [
        lambda t: {"rules": (None, *t.rules[1:])},
        lambda t: {"rules": (t.rules[2], *t.rules[1:])},
        lambda t: {"rules": (*t.rules[:-1], t.rules[2])},
        lambda t: {"rules": (t.rules[0], *[None] * 5)},
        lambda t: {"rules": (*[None] * 5, t.rules[0])},
    ],
    "same dtype": [
        lambda t: {
            "rules": put(
                np.array(t.rules, dtype=object),
                2,
                LinearRule(np.ones((2, 2), "float32"), np.zeros(2, "float32")),
            )
        }
    ],
    "notes must be strings": [lambda t: {"notes": (None,) * 6}],
    "only leaves may have a note": [lambda t: {"notes": ("split", *t.notes[1:])}],
    "names must be strings": [lambda t: {"feature_names": (1, 2)}],
    "3 feature names": [lambda t: {"feature_names": ("a", "b", "c")}],
    "fidelity has shape": [
        lambda t: {"fidelity": np.full(5, np.nan)},
        lambda t: {"fidelity": np.full((6, 1), np.nan)},
        lambda t: {"fidelity": np.nan},
    ],
    "fidelity must be from 0 to 1": [
        lambda t: {"fidelity": put(t.fidelity, 0, 1.001)},
        lambda t: {"fidelity": put(t.fidelity, 0, -0.001)},
        lambda t: {"fidelity": put(t.fidelity, 0, np.inf)},
        lambda t: {"fidelity": put(t.fidelity, 0, -np.inf)},
    ],
    "only a node with a rule may have a fidelity": [
        lambda t: {"fidelity": put(t.fidelity, 1, 1.0)},
        lambda t: {"fidelity": put(t.fidelity, 0, 1.0), "rules": (None,) * 6},
    ],
    "must send rows to leaves": [
        lambda t: place([1, 4, 5, 3, 2]),
        lambda t: place([1, 4, 5, 3, 0]),
        lambda t: place([1, 4, 5, 3, 6]),
        lambda t: place([1, 4, 5, 3, 10**15]),
    ],
    "every leaf must have a cell": [lambda t: place([1, 4, 5]), lambda t: place([1, 4, 5, 1])],
    "the placement's too": [
        lambda t: place([1, 4, 5, 3], 3),
        lambda t: place([1, 4, 5, 3], dtype="float32"),
    ],
    r"2 feature names for rules over \{3\}": [
        lambda t: place([1, 4, 5, 3], 3) | {"rules": (None,) * 6}
    ],
}


@pytest.mark.parametrize(
    ("message", "fault"), [(message, fault) for message in FAULTS for fault in FAULTS[message]]
)
def test_broken_invariants_are_named(known, message, fault):
    with pytest.raises(ValueError, match=message):
        with_changes(known, **fault(known))


def test_a_split_needs_two_children(known):
    with pytest.raises(ValueError, match="two children"):
        Hierarchy(
            **{
                name: getattr(known, name)[:2]
                for name in ("parents", "birth", "score", "objective", "rules", "info", "notes")
            },
            order=known.order,
            start=[0, 0],
            stop=[10, 10],
        )


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, np.nan])
def test_shares_are_fidelities(known, share):
    tree = with_changes(known, fidelity=put(known.fidelity, 2, share))
    np.testing.assert_array_equal(tree.fidelity, put(known.fidelity, 2, share))


def test_a_placement_needs_no_rules_and_no_names(known):
    changes = place([3, 5, 4, 1, 1], 3, "float32") | {"rules": (None,) * 6}
    tree = with_changes(known, feature_names=None, **changes)
    assert tree.placement is changes["placement"]
    assert tree.rules == (None,) * 6
    np.testing.assert_array_equal(tree.labels, known.labels)
