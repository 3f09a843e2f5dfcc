"""The tree on its way: splits, moves, rules and means against what they should be by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from taxarbor._types import SolveInfo, Status
from taxarbor.tree import LinearRule, TreeBuilder
from tests.conftest import describe_tree
from tests.tree.conftest import assert_refused, random_trees

TWO = LinearRule(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2))
INFO = SolveInfo(Status.CONVERGED, 1, 2.0, ())


@settings(deadline=None)
@given(labels=st.permutations([0, 0, 0, 1, 1, 2, 2]))
def test_a_split_is_a_stable_partition(labels):
    for rule in (LinearRule(np.ones((3, 2)), np.zeros(2)), None):  # or of labels alone
        builder = TreeBuilder(7)
        children = builder.add_split(0, labels, rule)
        assert children == (1, 2, 3)
        for label, child in enumerate(children):
            assert builder.rows(child).tolist() == [i for i in range(7) if labels[i] == label]
        assert builder.n_leaves == 3
        assert builder.add_split(1, [1, 0, 1], rule and TWO) == (4, 5)
        tree = builder.freeze()
        assert tree.rules == (rule, rule and TWO, *[None] * 4)
        assert tree.cut(3).tolist() == labels
        for node in (0, 1):
            with pytest.raises(ValueError, match="split before"):
                builder.add_split(node, [0] * 7, rule)
            with pytest.raises(ValueError, match="split before"):
                builder.refuse(node, "why not")


def test_bad_labels_change_nothing():
    builder, alone = TreeBuilder(3), TreeBuilder(1)
    cases = [[0, 1], [[0, 1, 1]], [0.0, 1.0, 1.0], [True, False, True], [0, 0, 0], [1, 1, 1]]
    cases += [[0, 1, 300], [-1, 0, 1]]
    assert_refused(lambda labels: builder.add_split(0, labels, TWO), [*cases, [0, 1, 2]])
    cases += [[0, 2, 2], [0, 1, 3], [0, 1, 10**12]]
    assert_refused(lambda labels: builder.add_split(0, labels), cases)
    assert_refused(lambda labels: alone.add_split(0, labels), [[0], [1], [2]])
    assert builder.n_nodes == builder.n_leaves == builder.freeze().n_leaves == 1


def test_bad_rules_and_nodes_are_refused():
    single = LinearRule(TWO.weights.astype("f4"), np.zeros(2, "f4"))
    for first, bad in ((TWO, single), (TWO, None), (None, TWO)):  # for all splits or none
        builder = TreeBuilder(3)
        builder.add_split(0, [0, 1, 1], first)
        builder.add_split(2, [0, 1], bad)
        with pytest.raises(ValueError, match="rule"):
            builder.freeze()
    for node in (-1, 5):
        with pytest.raises(IndexError):
            builder.rows(node)
    with pytest.raises(ValueError, match="one row"):
        TreeBuilder(0)


def test_what_is_recorded_is_frozen():
    builder = TreeBuilder(3)
    builder.record(0, score=1.5, objective=2.5, info=INFO)
    builder.refuse(0, "not yet")
    builder.add_split(0, [0, 1, 1], TWO)
    builder.record(2, score=0.5, objective=0.25, info=None)
    builder.refuse(2, "too small")
    tree = builder.freeze()
    np.testing.assert_array_equal(tree.score, [1.5, np.nan, 0.5])
    np.testing.assert_array_equal(tree.objective, [2.5, np.nan, 0.25])
    assert tree.info == (INFO, None, None)
    assert tree.notes == ("", "", "too small")
    assert tree.birth.tolist() == [0, 1, 1]


def test_rules_come_later():
    """To nodes that were split."""
    builder = TreeBuilder(4)
    builder.add_split(0, [0, 1, 1, 1])
    builder.add_split(2, [0, 1, 1])
    assert_refused(lambda node: builder.set_rule(node, TWO), [1, 7])
    builder.set_rule(0, TWO)
    builder.set_rule(2, TWO)
    assert builder.path(4) == (1, 1)
    assert builder.freeze().rules == (TWO, None, TWO, None, None)
    builder.set_rule(0, LinearRule(np.ones((3, 2)), np.zeros(2)))
    with pytest.raises(ValueError, match="node 0"):
        builder.freeze()


# ---- any tree ----


@given(tree=random_trees(), seed=st.integers(0, 2**31), far=st.sampled_from([0.0, 1e8]))
def test_means_by_hand(seed, far, tree):
    """Over leaves, and no digit lost far from the origin."""
    Z = far + np.random.default_rng(seed).normal(size=(len(tree.order), 2))
    for dtype in ("float64", "float32") if far == 0.0 else ("float64",):
        X = Z.astype(dtype)
        parts = [X[tree.rows(node)].astype(np.longdouble) for node in range(tree.n_nodes)]
        exact = np.array([part.mean(axis=0) for part in parts])
        for rows in (X, sparse.csr_array(X)):
            means = describe_tree(tree, rows).means
            close = 1e-6 if dtype == "float32" else 1e-14
            np.testing.assert_allclose(means, exact, rtol=1e-15 if far else 0, atol=close)


# ---- cuts and counts, without rows ----


def test_cuts_need_no_array_of_all_rows():
    n_rows = 10**15  # more than any memory holds
    builder = TreeBuilder(n_rows)
    a, b = builder.divide(0, [n_rows // 4, 3 * n_rows // 4])
    builder.refuse(a, "too few rows")
    builder.divide(b, [n_rows // 4, 1, n_rows // 2 - 1])
    tree = builder.freeze(with_rows=False)
    assert tree.sizes[1:3].tolist() == [n_rows // 4, n_rows - n_rows // 4]
    assert tree.sizes[3:].tolist() == [n_rows // 4, 1, n_rows // 2 - 1]
    assert (tree.has_rows, tree.n_rows) == (False, n_rows)
    builder.resize(np.array([1, 2, 3, 4]))
    tree = builder.freeze(with_rows=False)
    assert tree.sizes.tolist() == [10, 1, 9, 2, 3, 4]
    assert tree.notes[a] == "too few rows"
    for ask in (lambda: builder.labels, lambda: builder.rows(0), builder.freeze):
        with pytest.raises(ValueError, match="rows"):
            ask()
    for sizes in ([1, 2, 3], [0, 2, 3, 5]):
        with pytest.raises(ValueError, match="sizes"):
            builder.resize(np.array(sizes))


def test_a_divided_tree_has_rows_as_they_come():
    builder = TreeBuilder(5)
    builder.divide(0, [2, 3])
    assert builder.freeze().labels.tolist() == [0, 0, 1, 1, 1]
    builder.add_split(2, [1, 0, 1])
    assert builder.freeze().rows(3).tolist() == [3]
