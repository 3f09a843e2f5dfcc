from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from taxarbor.hierarchy import HierarchyBuilder, LinearRule, route


@dataclass
class NumpyRows:
    """As much of Rows as routing needs."""

    X: np.ndarray
    center: np.ndarray | None = None

    @property
    def n_rows(self):
        return len(self.X)

    def take(self, positions, center=None):
        return NumpyRows(self.X[positions], center)

    def scores(self, W):
        return (self.X - self.center) @ W.T


def walk(tree, x):
    """Route one row the slow way."""
    node = tree.root
    while not tree.is_leaf(node):
        rule = tree.rules[node]
        scores = NumpyRows(x[None], rule.center).scores(rule.weights)[0]
        node = tree.children(node)[(scores + rule.offsets).argmax()]
    return tree.leaves.tolist().index(node)


@pytest.fixture(params=["float32", "float64"])
def tree(request):
    """A tree over three features with integer weights, for which all sums are exact."""
    rng = np.random.default_rng(5)
    builder = HierarchyBuilder(60)
    leaves = [0]
    for K in (2, 3, 2, 4):
        node = max(leaves, key=lambda leaf: len(builder.rows(leaf)))
        W = rng.integers(-3, 4, (K, 3)).astype(request.param)
        center = rng.integers(-2, 3, 3).astype(request.param)
        offsets = rng.integers(-4, 5, K).astype(request.param) if K > 2 else None
        rule = LinearRule(W, center, offsets)
        leaves.remove(node)
        leaves += builder.add_split(node, np.arange(len(builder.rows(node))) % K, rule)
    return builder.freeze()


@pytest.fixture(name="X")
def data():
    return np.random.default_rng(6).integers(-5, 6, (200, 3)).astype(float)


def test_rows_go_where_one_by_one_they_would(tree, X):
    expected = [walk(tree, x) for x in X]
    assert len(set(expected)) > 3
    routed = route(tree, NumpyRows(X))
    assert routed.dtype == np.intp
    assert routed.tolist() == expected
    assert tree.predict(X).tolist() == expected


@settings(deadline=None)
@given(data=st.data())
def test_any_tree_routes(ruled_trees, data):
    tree = data.draw(ruled_trees)
    widths = {len(rule.center) for rule in tree.rules if rule is not None}
    X = np.random.default_rng(0).normal(size=(7, *(widths or {1})))
    with np.errstate(all="ignore"):
        routed = route(tree, NumpyRows(X))
        assert routed.tolist() == [walk(tree, x) for x in X]


def test_ties_go_to_the_first_child():
    builder = HierarchyBuilder(3)
    builder.add_split(0, [0, 1, 2], LinearRule(np.zeros((3, 2)), np.zeros(2)))
    assert builder.freeze().predict(np.ones((2, 2))).tolist() == [0, 0]


def test_offsets_move_the_boundary():
    W = np.array([[-1.0], [1.0]])
    for offsets, expected in ((None, [0, 1, 1]), (np.array([0.0, -4.0]), [0, 0, 1])):
        builder = HierarchyBuilder(2)
        builder.add_split(0, [0, 1], LinearRule(W, np.zeros(1), offsets))
        assert builder.freeze().predict([[-1.0], [1.0], [3.0]]).tolist() == expected


def test_many_children_route():
    centers = np.random.default_rng(0).normal(size=(300, 2))
    builder = HierarchyBuilder(300)
    builder.add_split(0, np.arange(300), LinearRule.nearest(centers))
    assert builder.freeze().predict(centers).tolist() == list(range(300))


def test_without_rules_new_rows_have_no_place(bare):
    for X in (np.zeros((3, 2)), np.zeros((0, 2)), "no data"):
        for method in (bare.predict, bare.decision_path):
            with pytest.raises(ValueError, match=r"made from labels or merges alone.*HMMC"):
                method(X)
    with pytest.raises(ValueError, match="has no rules"):
        route(bare, NumpyRows(np.zeros((3, 2))))
    assert bare.prune(1).predict(np.zeros((3, 2))).tolist() == [0, 0, 0]


def test_a_deep_tree_routes(chain):
    X = np.array([[1.0], [-1.0], [0.0]])
    assert route(chain, NumpyRows(X)).tolist() == [3000, 0, 0]
    assert chain.predict(X).tolist() == [3000, 0, 0]


class HasArray:
    def __init__(self, X):
        self.X = X

    def __array__(self, dtype=None, copy=None):
        return np.array(self.X, dtype=dtype)


@pytest.mark.parametrize(
    "cast",
    [
        lambda X: X.astype("float16"),
        lambda X: X.astype("float32"),
        lambda X: X.astype(">f8"),
        lambda X: X.astype("longdouble"),
        lambda X: X.astype(int),
        lambda X: X.astype("int8"),
        lambda X: X.astype(object),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.tolist(),
        pd.DataFrame,
        HasArray,
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_array,
        lambda X: sparse.csr_array(X.astype(int)),
        lambda X: sparse.csr_array(X.astype("float32")),
    ],
)
def test_all_kinds_of_data_give_the_same(tree, X, cast):
    before = repr(cast(X))
    data = cast(X)
    np.testing.assert_array_equal(tree.predict(data), tree.predict(X))
    assert isinstance(data, HasArray) or repr(data) == before


def test_read_only_data(tree, X):
    expected = tree.predict(X)
    X.setflags(write=False)
    np.testing.assert_array_equal(tree.predict(X), expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros(3), "two dimensions"),
        (np.zeros((1, 1, 3)), "two dimensions"),
        (3.5, "two dimensions"),
        (np.zeros((2, 4)), "X has 4 features, but the hierarchy was grown on 3"),
        (sparse.csr_array((2, 4)), "X has 4 features"),
        (np.full((2, 3), np.nan), "NaN"),
        (np.array([[0, -np.inf, np.inf]]), "infinity"),
        (sparse.csr_array([[np.nan, 0, 0]]), "NaN"),
        ([["a", "b", "c"]], "numbers"),
        (np.array([["a", 1.5, None]], dtype=object), "numbers"),
        (np.zeros((2, 3), complex), "numbers"),
        ([[1, 2, 3], [1]], "inhomogeneous"),
    ],
)
def test_bad_data_is_refused(tree, data, message):
    for method in (tree.predict, tree.decision_path):
        with pytest.raises(ValueError, match=message):
            method(data)


def test_values_too_large_for_the_rules():
    builder = HierarchyBuilder(2)
    rule = LinearRule(np.eye(2, dtype="float32"), np.zeros(2, dtype="float32"))
    builder.add_split(0, [0, 1], rule)
    with pytest.raises(ValueError, match="too large for float32"):
        builder.freeze().predict(np.array([[1e300, 0]]))


def test_large_sums_of_finite_values_are_fine():
    builder = HierarchyBuilder(2)
    builder.add_split(0, [0, 1], LinearRule(np.array([[-1.0], [1.0]]), np.zeros(1)))
    assert builder.freeze().predict([[1e308], [1e308], [-1.0]]).tolist() == [1, 1, 0]


@pytest.mark.parametrize("empty", [np.zeros((0, 3)), sparse.csr_array((0, 3))])
def test_no_rows_no_labels(tree, empty):
    assert tree.predict(empty).shape == (0,)
    assert tree.predict(empty).dtype == np.intp
    assert tree.decision_path(empty).shape == (0, tree.n_nodes)
    with pytest.raises(ValueError, match="features"):
        tree.predict(np.zeros((0, 2)))


def test_a_root_alone_takes_all():
    tree = HierarchyBuilder(3).freeze()
    assert tree.predict(np.ones((2, 5))).tolist() == [0, 0]
    assert tree.decision_path(np.ones((2, 5))).toarray().tolist() == [[1], [1]]
    with pytest.raises(ValueError, match="NaN"):
        tree.predict([[np.nan]])


def test_decision_paths(tree, X):
    visited = tree.decision_path(X)
    assert sparse.issparse(visited)
    assert visited.format == "csr"
    assert visited.shape == (len(X), tree.n_nodes)
    for i, label in enumerate(tree.predict(X)):
        indices = visited.indices[visited.indptr[i] : visited.indptr[i + 1]]
        assert tuple(indices) == tree.path(tree.leaves[label])
    assert (visited.data == 1).all()
