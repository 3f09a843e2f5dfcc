"""Names of nodes, and which columns are questions of yes or no."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from taxarbor.explain import _words, explain
from taxarbor.explain._words import LONGEST, are_yes_no, name_nodes, phrase
from taxarbor.hierarchy import HierarchyBuilder, LinearRule, Reason

VALUES = st.sampled_from([0.0, -0.0, 1.0, 1.0, 0.0, 0.5, -1.0, 2.0])


@given(
    X=hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=VALUES)
)
def test_yes_no_columns_hold_both_and_no_more(X):
    expected = [set(column.tolist()) == {0.0, 1.0} for column in X.T]
    np.testing.assert_array_equal(are_yes_no(X), expected)
    np.testing.assert_array_equal(are_yes_no(sparse.csr_array(X)), expected)
    np.testing.assert_array_equal(are_yes_no(sparse.csr_matrix(X.astype("f4"))), expected)
    assert are_yes_no(X).dtype == bool


def test_zeros_that_are_stored_are_zeros():
    stored = sparse.csr_array((np.array([1.0, 0.0, 1.0]), ([0, 1, 2], [0, 0, 0])), shape=(3, 1))
    assert stored.nnz == 3
    assert are_yes_no(stored).tolist() == are_yes_no(stored.toarray()).tolist() == [True]


def test_columns_are_looked_at_in_blocks(monkeypatch):
    monkeypatch.setattr(_words, "BLOCK", 3)
    X = np.zeros((10, 5))
    X[::2, 0] = 1.0
    X[9, 1] = 1.0
    X[9, 2] = 2.0
    X[:, 3] = 1.0
    X[0, 4], X[9, 4] = 1.0, 0.5
    assert are_yes_no(X).tolist() == [True, True, False, False, False]
    assert are_yes_no(X[:, 2:3]).tolist() == [False]


@pytest.mark.parametrize(
    ("name", "weight", "is_yes_no", "expected"),
    [
        ("age", 2.0, False, "higher age"),
        ("age", -2.0, False, "lower age"),
        ("has_fur", 0.1, True, "has_fur"),
        ("has_fur", -0.1, True, "not has_fur"),
        ("", 1.0, False, "higher unnamed"),
        (" \n\t", 1.0, True, "unnamed"),
        ("___", -1.0, True, "not ___"),
        ("a\nb\x1b[31m", 1.0, True, "a b [31m"),
        ("x" * LONGEST, 1.0, True, "x" * LONGEST),
        ("x" * (LONGEST + 1), 1.0, True, "x" * (LONGEST - 1) + "…"),
        ("x" * 38 + " yyyyyyy", 1.0, False, "higher " + "x" * 38 + "…"),
    ],
)
def test_phrases(name, weight, is_yes_no, expected):
    assert phrase(Reason(0, name, weight, 0.5), is_yes_no) == expected


def made(gaps, names=None):
    """Return a tree of one split into halves whose means differ by such gaps."""
    gaps = np.array(gaps, dtype=float)
    builder = HierarchyBuilder(4, names)
    W = np.ones_like(gaps)
    builder.add_split(0, [0, 0, 1, 1], LinearRule(np.stack([W, -W]), np.zeros(len(gaps))))
    return dataclasses.replace(builder.freeze(), means=np.stack([0 * gaps, gaps, -gaps]))


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([1.0, 0.0], ("higher x0", "lower x0")),
        ([1.0, 0.5], ("higher x0, higher x1", "lower x0, lower x1")),
        ([0.5, 1.0], ("higher x1, higher x0", "lower x1, lower x0")),
        ([1.0, 0.29], ("higher x0", "lower x0")),
        ([1.0, 0.31], ("higher x0, higher x1", "lower x0, lower x1")),
        ([1.0, 1.0, 1.0], ("higher x0, higher x1", "lower x0, lower x1")),
        ([1.0, -1.0], ("higher x0", "lower x0")),
        ([-1.0, -1.0], ("node 1", "node 2")),
    ],
)
def test_names_say_what_leads_there(gaps, expected):
    assert name_nodes(made(gaps), [False] * len(gaps)) == ("all rows", *expected)


def test_names_of_yes_no_columns():
    tree = made([1.0, 0.9, 0.8], ["has_fur", "size", "other"])
    expected = ("all rows", "has_fur, higher size", "not has_fur, lower size")
    assert name_nodes(tree, [True, False, True]) == expected


def test_names_of_the_animals(named, animals):
    assert named.names[0] == "all rows"
    assert len(named.names) == named.hierarchy.n_nodes
    for name in named.names[1:]:
        for part in name.split(", "):
            words = part.removeprefix("not ").removeprefix("higher ").removeprefix("lower ")
            assert words in animals.feature_names


def test_names_are_the_same_for_dense_and_sparse_rows(model, X):
    one, other = explain(model, X), explain(model, sparse.csr_array(X))
    assert one.names == other.names
    np.testing.assert_array_equal(one.is_yes_no, other.is_yes_no)


def test_every_node_has_a_name(why):
    assert len(why.names) == why.hierarchy.n_nodes
    assert all(isinstance(name, str) and name.strip() for name in why.names)
    assert why.names[0] == "all rows"
