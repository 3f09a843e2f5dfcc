"""Where new rows go, what is refused as data, and the means of fitted trees."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from taxarbor import Taxarbor, load_animals
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import LinearRule, TreeBuilder
from tests.taxonomy.conftest import taxonomies
from tests.tree.conftest import assert_refused

DTYPES = ("float32", "float64")
KINDS = (np.asarray, sparse.csr_array)


def one_split(n_children, rule):
    """Return a tree of a row per leaf, which go there by the rule."""
    builder = TreeBuilder(n_children)
    builder.add_split(0, np.arange(n_children), rule)
    return Taxonomy(builder.freeze())


def exact_rule(rng, n_children, dtype):
    """Return a rule of integers, for which all sums are exact."""
    parts = [rng.integers(-3, 4, size) for size in ((n_children, 3), 3, n_children)]
    return LinearRule(*(part.astype(dtype) for part in parts))


@pytest.fixture(params=DTYPES)
def taxonomy(request):
    """A tree over three features that routes by its rules."""
    rng = np.random.default_rng(5)
    builder = TreeBuilder(60)
    leaves = [0]
    for K in (2, 3, 2, 4):
        node = max(leaves, key=lambda leaf: len(builder.rows(leaf)))
        leaves.remove(node)
        labels = np.arange(len(builder.rows(node))) % K
        leaves += builder.add_split(node, labels, exact_rule(rng, K, request.param))
    return Taxonomy(builder.freeze(), Columns.plain(3, "abc", imputes=False))


@pytest.fixture(name="X")
def data():
    return np.random.default_rng(6).integers(-5, 6, (200, 3)).astype(float)


@given(taxonomy=taxonomies(st.just(True)))
def test_any_tree_routes(taxonomy):
    X = np.random.default_rng(0).normal(size=(7, taxonomy.n_features or 1))
    if taxonomy.tree.rules[0] is not None:
        X = X.astype(taxonomy.tree.rules[0].dtype)
    for x, leaf in zip(X, taxonomy.tree.leaves[taxonomy.predict(X)], strict=True):
        path = taxonomy.tree.path(leaf)
        for node in path:
            if (rule := taxonomy.tree.rules[node]) is not None:
                z, W = x.astype(float) - rule.center, rule.weights.astype(float)
                scores, sizes = W @ z + rule.offsets, np.abs(W) @ np.abs(z)
                on = np.isin(taxonomy.tree.frontier(node), path)[rule.targets]
                # Some are nearly tied: rounding may choose.
                assert scores[on].max() >= scores.max() - 1e-12 * sizes.max()


def test_ties_go_to_the_first():
    rule = LinearRule(np.zeros((3, 1)), np.zeros(1))
    assert one_split(3, rule).predict([[1.0], [-1.0]]).tolist() == [0, 0]


def test_many_children_and_deep_trees_route(chain):
    rng = np.random.default_rng(0)
    centers, X = rng.normal(size=(1000, 2)), rng.normal(size=(4001, 2))
    taxonomy = one_split(1000, LinearRule.nearest(centers))
    np.testing.assert_array_equal(taxonomy.predict(X), cdist(X, centers).argmin(axis=1))
    assert chain.predict([[1.0], [-1.0], [0.0]]).tolist() == [3000, 0, 0]


def test_without_rules_new_rows_have_no_place(bare):
    for X in (np.zeros((3, 2)), np.zeros((0, 2))):
        with pytest.raises(ValueError, match=r"made from labels or merges alone.*Taxarbor"):
            bare.predict(X)
    assert bare.prune(1).predict(np.zeros((3, 2))).tolist() == [0, 0, 0]


class HasArray:
    def __init__(self, X):
        self.X = X

    def __array__(self, dtype=None, copy=None):
        return np.array(self.X, dtype=dtype)


CASTS = [
    *(lambda X, name=name: X.astype(name) for name in ("f2", "f4", ">f8", "longdouble")),
    *(lambda X, name=name: X.astype(name) for name in (int, "int8", object)),
    *(np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2], np.ndarray.tolist),
    *(lambda X: pd.DataFrame(X, columns=["a", "b", "c"]), HasArray),
    *(sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array),
    *(sparse.lil_array, sparse.dok_array, sparse.bsr_array),
    *(lambda X, name=name: sparse.csr_array(X.astype(name)) for name in (int, "float32")),
]


def test_all_kinds_of_data_give_the_same(taxonomy, X):
    expected = taxonomy.predict(X)
    for cast in CASTS:
        data, before = cast(X), repr(cast(X))
        np.testing.assert_array_equal(taxonomy.predict(data), expected)
        assert isinstance(data, HasArray) or repr(data) == before
    X.setflags(write=False)
    np.testing.assert_array_equal(taxonomy.predict(X), expected)


def test_bad_data_is_refused(taxonomy):
    zeros, huge = np.zeros((2, 3)), 10**400
    shapes = [np.zeros(3), np.zeros((1, 1, 3)), 3.5, np.zeros((2, 4)), sparse.csr_array((2, 4))]
    shapes += [[[1, 2, 3], [1]]]
    values = [zeros + np.nan, [[0, -np.inf, np.inf]], sparse.csr_array([[np.nan, 0, 0]])]
    values += [[["a", "b", "c"]], np.array([["a", 1.5, None]], dtype=object)]
    values += [zeros.astype(complex), [[huge, 0, 0]], [[0.5, -huge, 0]]]
    assert_refused(taxonomy.predict, [*shapes, *values, pd.DataFrame(zeros, columns=[*"bad"])])
    frame = pd.DataFrame(np.eye(3), columns=[*"abc"])
    for names in ("cab", "bcade"):  # found by name, beside others
        found = taxonomy.predict(frame.reindex(columns=[*names]))
        np.testing.assert_array_equal(found, taxonomy.predict(np.eye(3)))


DAMAGES = [("indices", 5, value) for value in (2 * 10**9, -1, 200)]
DAMAGES += [("indptr", 3, 10**9), ("indptr", 3, 0), ("indptr", 0, 1), ("indptr", -1, 2 * 10**9)]
"""Entries of sparse matrices that point outside them, or have no beginning or end."""


def test_damaged_sparse_matrices_are_refused(taxonomy, X):
    kinds = sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.bsr_array
    cases = [(kind, *damage) for kind in kinds for damage in DAMAGES]
    cases += [(sparse.coo_array, name, 5, bad) for name in ("row", "col") for bad in (-1, 200)]
    for kind, name, place, value in cases:
        matrix = kind(X)
        getattr(matrix, name)[place] = value
        with pytest.raises(ValueError, match="X"):
            taxonomy.predict(matrix)
    for name in ("indices", "data"):
        matrix = sparse.csr_array(X)
        setattr(matrix, name, getattr(matrix, name)[:-1])
        with pytest.raises(ValueError, match="X"):
            taxonomy.predict(matrix)


def test_values_too_large_for_the_rules():
    taxonomy = one_split(2, LinearRule(np.eye(2, dtype="f4"), np.zeros(2, dtype="f4")))
    with pytest.raises(ValueError, match="too large for float32"):
        taxonomy.predict(np.array([[1e300, 0]]))
    # Sums may be infinite where no value is.
    taxonomy = one_split(2, LinearRule(np.array([[-1.0], [1.0]]), np.zeros(1)))
    assert taxonomy.predict([[1e308], [1e308], [-1.0]]).tolist() == [1, 1, 0]


def test_no_rows_no_labels(taxonomy):
    for empty in (np.zeros((0, 3)), sparse.csr_array((0, 3))):
        assert (taxonomy.predict(empty).shape, taxonomy.predict(empty).dtype) == ((0,), np.intp)
    with pytest.raises(ValueError, match="features"):
        taxonomy.predict(np.zeros((0, 2)))


def test_a_root_alone_takes_all():
    taxonomy = Taxonomy(TreeBuilder(3).freeze())
    assert taxonomy.predict(np.ones((2, 5))).tolist() == [0, 0]
    with pytest.raises(ValueError, match="NaN"):
        taxonomy.predict([[np.nan]])
    taxonomy = Taxarbor(1).fit(load_animals().X).taxonomy_
    assert taxonomy.predict(np.zeros((2, 85))).tolist() == [0, 0]
    with pytest.raises(ValueError, match="X has 3 features"):
        taxonomy.predict(np.zeros((2, 3)))
