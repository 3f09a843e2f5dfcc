"""The means of nodes against those of their rows."""

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from taxarbor import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, load_animals
from taxarbor.hierarchy import Hierarchy, with_means
from taxarbor.rows import as_rows

KINDS = {"dense": np.asarray, "csr": sparse.csr_array}


def exact_means(tree, X):
    X = np.asarray(X, dtype=np.longdouble)
    return np.array([X[tree.rows(node)].mean(axis=0) for node in range(tree.n_nodes)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(data=st.data())
@settings(max_examples=30)
def test_means_of_any_tree(trees, kind, dtype, data):
    bare = data.draw(trees)
    bare = dataclasses.replace(
        bare,
        rules=(None,) * bare.n_nodes,
        placement=None,
        means=None,
        fidelity=None,
        feature_names=None,
    )
    seed = data.draw(st.integers(0, 1000))
    X = np.random.default_rng(seed).normal(size=(len(bare.order), 4)).astype(dtype)
    tree = with_means(bare, as_rows(KINDS[kind](X)))
    assert bare.means is None
    assert tree.means.dtype == dtype
    assert not tree.means.flags.writeable
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(tree.means, exact_means(bare, X), rtol=0, atol=tolerance)


def test_rows_far_from_the_origin_lose_no_digits():
    rng = np.random.default_rng(0)
    X = 1e8 + rng.normal(size=(1000, 3))
    tree = with_means(Hierarchy.from_labels(np.arange(1000) % 7), as_rows(X))
    np.testing.assert_allclose(tree.means, exact_means(tree, X), rtol=4e-16)


def test_leaves_may_be_swept_side_by_side():
    X = np.random.default_rng(0).normal(size=(500, 6))
    tree = Hierarchy.from_labels(np.arange(500) % 40)
    with ThreadPoolExecutor(2) as pool:
        together = with_means(tree, as_rows(X), pool.map)
    np.testing.assert_array_equal(together.means, with_means(tree, as_rows(X)).means)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "model",
    [
        HMMC(5, random_state=0),
        HMMC(5, refine=False, random_state=0),
        MMC(3, random_state=0),
        HierarchicalKMeans(5, branching=3, random_state=0),
        HierarchicalSpectral(4, random_state=0),
        HMMC(1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_fitted_trees_have_the_means_of_their_rows(model, kind, dtype):
    X = load_animals().X.astype(dtype)
    tree = model.fit(KINDS[kind](X)).hierarchy_
    assert tree.means.dtype == dtype
    assert tree.means.shape == (tree.n_nodes, X.shape[1])
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(tree.means, exact_means(tree, X), rtol=0, atol=tolerance)


def test_means_do_not_depend_on_the_number_of_threads():
    X = load_animals().X
    one, two = (HMMC(6, random_state=0, n_jobs=n).fit(X).hierarchy_ for n in (1, 2))
    assert one.means.tobytes() == two.means.tobytes()


@pytest.mark.parametrize(
    ("means", "message"),
    [
        (np.zeros((5, 2)), r"each of 6 nodes, got float64 of shape \(5, 2\)"),
        (np.zeros(6), "each of 6 nodes"),
        (0.0, r"each of 6 nodes, got float64 of shape \(\)"),
        ([], "each of 6 nodes"),
        (np.zeros((6, 2), int), "got int64"),
        (np.zeros((6, 2), "f2"), "got float16"),
        (np.zeros((6, 2), complex), "got complex128"),
        (np.full((6, 2), "a"), "means must be floats"),
        (np.full((6, 2), None), "got object"),
        (np.zeros((6, 2), "f4"), "dtype and the number of features of the rules"),
        (np.zeros((6, 3)), "number of features of the rules"),
        (np.full((6, 2), np.nan), "finite"),
        (np.full((6, 2), -np.inf), "finite"),
    ],
)
def test_what_cannot_be_means(known, placed, means, message):
    for tree in (known, placed):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(tree, means=means)


def test_means_must_fit_the_names_where_there_are_no_rules(bare):
    with pytest.raises(ValueError, match="2 feature names for rules over"):
        dataclasses.replace(bare, means=np.zeros((6, 3)))
    unnamed = dataclasses.replace(bare, feature_names=None)
    assert dataclasses.replace(unnamed, means=np.zeros((6, 3))).means.shape == (6, 3)


def test_means_are_a_copy(bare, same):
    means = np.ones((6, 2))
    tree = dataclasses.replace(bare, means=means)
    means[:] = 7.0
    assert (tree.means == 1.0).all()
    with pytest.raises(ValueError, match="read-only"):
        tree.means[0] = 2.0
    for again in (copy.copy(tree), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        same(tree, again)


def test_columns_in_another_order_of_memory(placed, same, tmp_path):
    tree = dataclasses.replace(placed, means=np.asfortranarray(placed.means))
    tree.save(tmp_path / "tree")
    same(placed, Hierarchy.load(tmp_path / "tree"))
    same(placed, pickle.loads(pickle.dumps(tree)))


def test_pruned_trees_keep_the_means_of_the_nodes_that_stay(placed):
    np.testing.assert_array_equal(placed.prune(3).means, placed.means[:4])
    np.testing.assert_array_equal(placed.prune(1).means, placed.means[:1])
    assert dataclasses.replace(placed, means=None).prune(3).means is None


def test_other_names_change_nothing_else(placed, same):
    renamed = placed.rename_features(["x", 7])
    assert renamed.feature_names == ("x", "7")
    assert placed.feature_names == ("a", "b")
    same(placed, renamed.rename_features(np.array(["a", "b"])))
    for names in ([], ["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match=f"{len(names)} feature names for rules over"):
            placed.rename_features(names)


def test_a_single_leaf_knows_its_features():
    tree = HMMC(1).fit(load_animals().X).hierarchy_
    assert tree.predict(np.zeros((2, 85))).tolist() == [0, 0]
    with pytest.raises(ValueError, match="X has 3 features, but the hierarchy was grown on 85"):
        tree.predict(np.zeros((2, 3)))
