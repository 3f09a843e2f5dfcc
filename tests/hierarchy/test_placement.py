import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from taxarbor.hierarchy import (
    Hierarchy,
    HierarchyBuilder,
    LinearRule,
    Placement,
    deciding_rule,
    route,
)
from taxarbor.rows import _base as rows_base
from taxarbor.rows import as_rows

THREE = LinearRule(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.zeros(2))


def test_what_a_placement_says_of_itself():
    placement = Placement(THREE, np.array([4, 2, 4], dtype="uint8"))
    assert placement.n_cells == 3
    assert placement.leaves.tolist() == [4, 2, 4]
    assert placement.leaves.dtype == np.intp
    assert repr(placement) == "Placement(n_cells=3, n_leaves=2, n_features=2, dtype=float64)"


def test_a_placement_is_frozen_and_owns_its_array():
    leaves = np.array([1, 2, 1])
    placement = Placement(THREE, leaves)
    leaves[0] = 5
    for again in (
        placement,
        copy.copy(placement),
        copy.deepcopy(placement),
        pickle.loads(pickle.dumps(placement)),
    ):
        assert again.leaves.tolist() == [1, 2, 1]
        assert again.rule.weights.tobytes() == THREE.weights.tobytes()
        for array in (again.leaves, again.rule.weights, again.rule.center, again.rule.offsets):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 5
        with pytest.raises(AttributeError):
            again.leaves = leaves


@pytest.mark.parametrize(
    ("leaves", "message"),
    [
        ([1, 2], r"3 integers, one per cell of the placement, got int64 of shape \(2,\)"),
        ([[1, 2, 3]], "3 integers"),
        (1, "3 integers"),
        ([], "3 integers"),
        ([1.0, 2.0, 3.0], "got float64"),
        ([True, False, True], "got bool"),
        (["1", "2", "3"], "3 integers"),
        ([1, 2, 10**30], "got object"),
        ([1, -1, 2], "from 0 on, got -1 to 2"),
        (np.array([1, 2, 2**63], dtype="uint64"), "from 0 on, got 1 to 9223372036854775808"),
    ],
)
def test_what_are_no_leaves_is_refused(leaves, message):
    with pytest.raises(ValueError, match=message):
        Placement(THREE, leaves)


@pytest.fixture(name="grown", params=["float32", "float64"])
def grown_tree(request):
    """A tree with integer weights, for which all sums are exact, and cells in any order."""
    rng = np.random.default_rng(8)

    def rule(n_children):
        W = rng.integers(-3, 4, (n_children, 3)).astype(request.param)
        center = rng.integers(-2, 3, 3).astype(request.param)
        return LinearRule(W, center, rng.integers(-4, 5, n_children).astype(request.param))

    builder = HierarchyBuilder(12, ["a", "b", "c"])
    builder.add_split(0, np.arange(12) % 3, rule(3), fidelity=0.5)
    builder.add_split(2, [0, 1, 1, 0], rule(2))
    return builder.freeze(Placement(rule(7), [5, 3, 1, 4, 1, 4, 5]))


@pytest.fixture(name="X")
def data():
    return np.random.default_rng(9).integers(-5, 6, (300, 3)).astype(float)


def expected_leaves(placement, X):
    """Place the rows by the formula, in float64."""
    rule = placement.rule
    W, center, offsets = (
        array.astype(float) for array in (rule.weights, rule.center, rule.offsets)
    )
    return placement.leaves[((X - center) @ W.T + offsets).argmax(axis=1)]


@pytest.mark.parametrize(
    "cast",
    [
        lambda X: X,
        lambda X: X.astype("float32"),
        lambda X: X.astype(int),
        lambda X: X.tolist(),
        np.asfortranarray,
        lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        lambda X: sparse.csr_array(X.astype("float32")),
    ],
)
def test_the_placement_decides_and_not_the_rules(grown, X, cast):
    leaves = expected_leaves(grown.placement, X)
    assert set(leaves) == set(grown.leaves)
    by_rules = dataclasses.replace(grown, placement=None).predict(X)
    predicted = grown.predict(cast(X))
    assert predicted.dtype == np.intp
    np.testing.assert_array_equal(grown.leaves[predicted], leaves)
    assert (predicted != by_rules).any()


def test_rules_are_not_needed(grown, X):
    none = (None,) * grown.n_nodes
    bare = dataclasses.replace(grown, rules=none, fidelity=None)
    for given_X in (X, sparse.csr_array(X)):
        np.testing.assert_array_equal(bare.predict(given_X), grown.predict(X))
    with pytest.raises(ValueError, match="made from labels or merges alone"):
        dataclasses.replace(bare, placement=None).predict(X)


def test_decision_paths_lead_where_rows_are_placed(grown, X):
    leaves = expected_leaves(grown.placement, X)
    for given_X in (X, sparse.csr_array(X)):
        visited = grown.decision_path(given_X)
        assert visited.shape == (len(X), grown.n_nodes)
        for i, leaf in enumerate(leaves):
            indices = visited.indices[visited.indptr[i] : visited.indptr[i + 1]]
            assert tuple(indices) == grown.path(leaf)
        assert (visited.data == 1).all()


@pytest.mark.parametrize("most", [1, 7, 20, 700, 2099, 2100, 10**6])
def test_blocks_of_rows_change_nothing(grown, X, monkeypatch, most):
    leaves = expected_leaves(grown.placement, X)
    monkeypatch.setattr(rows_base, "MAX_SCORES", most)
    for given_X in (X, sparse.csr_array(X)):
        np.testing.assert_array_equal(grown.leaves[grown.predict(given_X)], leaves)


class CountingRows:
    """Rows that remember which of them were scored together."""

    def __init__(self, X, center=None, index=None, scored=None):
        self.X = X
        self.center = np.zeros(X.shape[1]) if center is None else center
        self.index = np.arange(len(X)) if index is None else index
        self.scored = [] if scored is None else scored

    @property
    def n_rows(self):
        return len(self.index)

    def take(self, positions, center):
        return CountingRows(self.X, center, self.index[positions], self.scored)

    def scores(self, W):
        self.scored.append(self.index)
        return (self.X[self.index] - self.center) @ W.T


@pytest.mark.parametrize(("n_rows", "n_blocks"), [(4000, 1), (4001, 2), (9000, 3), (0, 0)])
def test_scores_are_four_million_at_a_time(n_rows, n_blocks):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(1000, 2))
    builder = HierarchyBuilder(2)
    builder.add_split(0, [0, 1])
    tree = builder.freeze(Placement(LinearRule.nearest(centers), 1 + np.arange(1000) % 2))
    rows = CountingRows(rng.normal(size=(n_rows, 2)))
    routed = route(tree, rows)
    assert [len(together) <= 4000 for together in rows.scored] == [True] * n_blocks
    assert [i for together in rows.scored for i in together] == list(range(n_rows))
    nearest = cdist(rows.X, centers).argmin(axis=1)
    np.testing.assert_array_equal(routed, nearest % 2)


@settings(deadline=None)
@given(data=st.data())
def test_any_placed_tree_routes(placed_trees, data):
    tree = data.draw(placed_trees)
    if tree.placement is None:
        assert tree.n_nodes == 1
        return
    rule = tree.placement.rule
    X = np.random.default_rng(0).normal(size=(7, len(rule.center))).astype(rule.dtype)
    scores = as_rows(X).take(np.arange(7), center=rule.center).scores(rule.weights)
    chosen = tree.placement.leaves[(scores + rule.offsets).argmax(axis=1)]
    np.testing.assert_array_equal(tree.leaves[route(tree, as_rows(X))], chosen)
    np.testing.assert_array_equal(tree.leaves[tree.predict(X)], chosen)


def test_ties_go_to_the_first_cell():
    builder = HierarchyBuilder(2)
    builder.add_split(0, [0, 1])
    rule = LinearRule(np.zeros((3, 1)), np.zeros(1))
    for leaves, label in (([2, 1, 1], 1), ([1, 2, 2], 0)):
        tree = builder.freeze(Placement(rule, leaves))
        assert tree.predict([[1.0], [-1.0]]).tolist() == [label, label]


def test_offsets_move_the_cells():
    builder = HierarchyBuilder(2)
    builder.add_split(0, [0, 1])
    W = np.array([[-1.0], [1.0]])
    for offsets, expected in ((None, [0, 1, 1]), (np.array([0.0, -4.0]), [0, 0, 1])):
        tree = builder.freeze(Placement(LinearRule(W, np.zeros(1), offsets), [1, 2]))
        assert tree.predict([[-1.0], [1.0], [3.0]]).tolist() == expected


def test_a_root_alone_may_have_a_placement(same):
    tree = HierarchyBuilder(2).freeze(Placement(THREE, [0, 0, 0]))
    assert tree.predict(np.ones((4, 2))).tolist() == [0] * 4
    with pytest.raises(ValueError, match="X has 3 features"):
        tree.predict(np.ones((4, 3)))
    same(tree, Hierarchy.from_json(tree.to_json()))
    assert tree.prune(1).placement is None


@pytest.mark.parametrize("has_rules", [True, False])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), "two dimensions"),
        (np.zeros((2, 4)), "X has 4 features, but the hierarchy was grown on 3"),
        (sparse.csr_array((2, 4)), "X has 4 features"),
        (np.full((2, 3), np.nan), "NaN"),
        ([["a", "b", "c"]], "numbers"),
        (pd.DataFrame(np.zeros((2, 3)), columns=["b", "a", "c"]), "another order"),
    ],
)
def test_bad_data_is_refused(grown, has_rules, data, message):
    none = {"rules": (None,) * grown.n_nodes, "fidelity": None}
    tree = grown if has_rules else dataclasses.replace(grown, **none)
    for method in (tree.predict, tree.decision_path):
        with pytest.raises(ValueError, match=message):
            method(data)


@pytest.mark.parametrize("empty", [np.zeros((0, 3)), sparse.csr_array((0, 3))])
def test_no_rows_no_labels(grown, empty):
    assert grown.predict(empty).shape == (0,)
    assert grown.decision_path(empty).shape == (0, grown.n_nodes)
    assert route(grown, as_rows(np.zeros((1, 3)))).shape == (1,)


def test_what_is_written_places_rows_as_before(grown, same, X, tmp_path):
    grown.save(tmp_path / "tree")
    grown.to_json(tmp_path / "tree.json")
    for again in (
        Hierarchy.load(tmp_path / "tree"),
        Hierarchy.from_json(tmp_path / "tree.json"),
        pickle.loads(pickle.dumps(grown)),
    ):
        same(grown, again)
        np.testing.assert_array_equal(again.predict(X), grown.predict(X))


def test_the_rule_that_new_rows_meet_first(known, placed, bare):
    assert deciding_rule(known) is known.rules[0]
    assert deciding_rule(placed) is placed.placement.rule
    assert deciding_rule(bare) is None
