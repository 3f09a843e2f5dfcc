"""Weights: integers are repeated rows, zero excludes, a common factor changes nothing."""

import numpy as np
import pytest

from taxarbor import HMMC, TableWarning, Taxarbor, make_planted_tree
from taxarbor.stability import assess
from taxarbor.taxonomy import Taxonomy
from tests.conftest import assert_same_rules

MODELS = [
    Taxarbor(5),
    Taxarbor(6, branching=3),
    Taxarbor(6, min_leaf_size=15, max_leaf_size=90),
    Taxarbor(6, min_leaf_size=25),
    Taxarbor(None, max_depth=3),
    HMMC(5),
    HMMC(None, max_leaf_size=50, balance=0.3),
]
pytestmark = pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")


def planted(seed):
    data = make_planted_tree(120, depth=2, random_state=seed)
    rng = np.random.default_rng(seed)
    return np.asarray(data.X), rng.integers(0, 4, 120), rng


def assert_same(one: Taxonomy, other: Taxonomy) -> None:
    np.testing.assert_array_equal(one.tree.parents, other.tree.parents)
    np.testing.assert_allclose(one.means, other.means, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(one.columns.is_boolean, other.columns.is_boolean)
    assert_same_rules(one.tree, other.tree)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_integer_weights_are_repeated_rows_and_zero_is_absent(model):
    for seed in range(3):
        X, w, _ = planted(seed)
        model.set_params(random_state=seed)
        index = np.repeat(np.arange(len(X)), w)
        taxonomy, labels = model.fit(X, sample_weight=w).taxonomy_, model.labels_
        repeated = model.fit(X[index])
        assert_same(taxonomy, repeated.taxonomy_)
        np.testing.assert_array_equal(taxonomy.tree.weights, w)
        assert taxonomy.tree.n_rows == len(X)
        # Where a bound divided the copies of a row, the row is where most of them are.
        divided = np.unique(index[labels[index] != repeated.labels_])
        for row in divided:
            assert labels[row] == np.bincount(repeated.labels_[index == row]).argmax()
        assert len(divided) < 20
        absent = np.flatnonzero(w == 0)
        np.testing.assert_array_equal(labels[absent], taxonomy.predict(X[absent]))
        only = model.fit(X[w > 0], sample_weight=w[w > 0])
        assert_same(taxonomy, only.taxonomy_)
        np.testing.assert_array_equal(only.labels_, labels[w > 0])


@pytest.mark.parametrize("model", [MODELS[0], MODELS[5]], ids=str)
def test_fractions_are_shares(model):
    for seed in range(2):
        X, _, rng = planted(seed)
        model.set_params(random_state=seed)
        w = rng.uniform(0.0, 3.0, len(X))
        taxonomy = model.fit(X, sample_weight=w).taxonomy_
        for factor in (0.1, 7.0, 1e-200, 1e200):
            other = model.fit(X, sample_weight=factor * w).taxonomy_
            assert_same(taxonomy, other)
            np.testing.assert_array_equal(taxonomy.tree.labels, other.tree.labels)
        expected = np.average(X, axis=0, weights=w)
        np.testing.assert_allclose(taxonomy.means[0], expected, atol=0.02 * X.std())
        assert all(w[taxonomy.tree.rows(leaf)].sum() > 0.0 for leaf in taxonomy.tree.leaves)


def test_equal_weights_change_nothing_but_bounds():
    X, _, _ = planted(0)
    plain = Taxarbor(5, random_state=0).fit(X).taxonomy_
    for weight in (1, 0.25, 1e300):
        taxonomy = Taxarbor(5, random_state=0).fit(X, sample_weight=[weight] * len(X)).taxonomy_
        assert_same(taxonomy, plain)
        np.testing.assert_array_equal(taxonomy.tree.order, plain.tree.order)
        assert (taxonomy.tree.weights is None) == (weight == 1)
    bound = Taxarbor(6, min_leaf_size=5, random_state=0)
    bound.fit(X, sample_weight=np.full(120, 0.25))
    assert bound.taxonomy_.tree.sizes.min() >= 20


def test_a_row_heavier_than_the_bounds_allow():
    X = np.random.default_rng(0).normal(size=(20, 3))
    w = np.ones(20)
    w[7] = 200
    tree = HMMC(8, random_state=0).fit(X, sample_weight=w).taxonomy_.tree
    assert tree.n_leaves == 8  # its copies are in one of them
    assert sorted(tree.order) == list(range(20))


def test_weights_survive_files_and_pruning(tmp_path):
    X, w, _ = planted(0)
    taxonomy = Taxarbor(5, random_state=0).fit(X, sample_weight=w).taxonomy_
    taxonomy.save(tmp_path / "tree")
    np.testing.assert_array_equal(Taxonomy.load(tmp_path / "tree").tree.weights, w)
    np.testing.assert_array_equal(taxonomy.prune(2).tree.weights, w)
    np.testing.assert_allclose(taxonomy.tree.node_weights[0], w.sum())
    assert not taxonomy.tree.weights.flags.writeable


def test_invalid_weights():
    X = np.random.default_rng(0).normal(size=(6, 2))
    for weights in (
        *([1.0, 2.0], np.ones((6, 1)), 2.0, [1, 1, -1, 1, 1, 1], [1, 1, 1, np.nan, 1, 1]),
        *([np.inf, 1, 1, 1, 1, 1], np.zeros(6), [0, 0, 3, 0, 0, 0], list("abcdef")),
        *([None] * 6, [1j] * 6),
    ):
        for model in (Taxarbor(4), HMMC(4)):
            with pytest.raises(ValueError, match="sample_weight"):
                model.fit(X, sample_weight=weights)
            assert not vars(model).keys() & {"taxonomy_", "labels_"}
    with pytest.raises(ValueError, match=r"n_clusters.* n_samples=3"):
        Taxarbor(4).fit(X, sample_weight=[0, 1, 0, 1, 0, 1])


def test_refits_have_weights():
    data = make_planted_tree(80, depth=2, random_state=0)
    X, w = np.asarray(data.X), np.tile([2.0, 0.0, 1.0, 1.0], 20)
    model = Taxarbor("auto", random_state=0).fit(X, sample_weight=w)
    only = Taxarbor("auto", random_state=0).fit(X[w > 0], sample_weight=w[w > 0])
    np.testing.assert_array_equal(model.labels_[w > 0], only.labels_)
    one, other = model.taxonomy_.stability, only.taxonomy_.stability
    np.testing.assert_array_equal(one.curve.stability, other.curve.stability)
    np.testing.assert_array_equal(one.n_recovered, other.n_recovered)
    few = assess(HMMC(4, random_state=0).fit(X, sample_weight=w), X, n_refits=2)
    assert few.stability.n_refits == 2


def test_outliers_and_rows_without_a_value_are_excluded():
    rng = np.random.default_rng(0)
    for seed in range(3):
        X = rng.normal(size=(400, 5)) + 6.0 * rng.integers(0, 2, (400, 1))
        far = np.concatenate([X, 1e5 * rng.normal(size=(4, 5))])
        expected = Taxarbor(4, random_state=seed).fit(X)
        model = Taxarbor(4, random_state=seed).fit(far)
        assert model.taxonomy_.tree.weights.tolist() == [1.0] * 400 + [0.0] * 4
        np.testing.assert_array_equal(model.labels_[:400], expected.labels_)
        np.testing.assert_array_equal(model.predict(far), model.labels_)
        np.testing.assert_allclose(model.taxonomy_.means[0], far.mean(axis=0))
        empty = np.concatenate([X, np.full((3, 5), np.nan)])
        with pytest.warns(TableWarning, match="3 rows"):
            model = Taxarbor(4, random_state=seed).fit(empty)
        np.testing.assert_array_equal(model.labels_[:400], expected.labels_)
        assert set(model.labels_[400:].tolist()) == set(model.predict(X.mean(axis=0)[None]))
