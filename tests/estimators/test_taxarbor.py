"""Taxarbor: rules that decide, numbers of features, sizes of leaves."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from taxarbor import GrowthWarning, Taxarbor
from tests.estimators.conftest import as_kind

KINDS = ["float64 dense", "float64 csr", "float32 dense", "float32 csr"]
NAMES = ["planted", "animals", "cloud", "wide"]


def fit(X, n_clusters=7, **parameters):
    return Taxarbor(n_clusters, **{"random_state": 0, **parameters}).fit(X)


@pytest.fixture(scope="module")
def cancer():
    """569 rows with outliers among them."""
    return StandardScaler().fit_transform(load_breast_cancer().data)


def check_decided(model, X):
    """Every row is where the rules send it, also in another order; return the tree."""
    tree, labels = model.taxonomy_.tree, model.labels_
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(model.predict(X[np.arange(len(labels))[::-1]]), labels[::-1])
    np.testing.assert_array_equal(np.bincount(labels), tree.sizes[tree.leaves])
    return tree


def check_rules(taxonomy, max_features=None):
    """Each rule uses some features, and their frontiers reach every leaf once."""
    tree, ends, waiting = taxonomy.tree, [], [0]
    while waiting:
        node = waiting.pop()
        if tree.rules[node] is None:
            ends.append(node)
        else:
            assert 1 <= taxonomy.n_features_used[node] <= (max_features or taxonomy.n_features)
            assert tree.rules[node].n_targets == len(tree.frontier(node))
            waiting += tree.frontier(node)
    assert sorted(ends) == sorted(tree.leaves.tolist())
    assert not any(tree.rules[leaf] for leaf in tree.leaves)


# ---- rules ----


def test_the_tree_is_whole(data):
    for name, kind, branching in product(NAMES, KINDS, (2, 3, 5)):
        X = as_kind(data[name], kind)
        model = fit(X, branching=branching, n_init=2)
        tree = check_decided(model, X)
        assert tree.n_leaves == 7
        assert {rule.dtype.name for rule in tree.rules if rule} == {kind.split()[0]}
        check_rules(model.taxonomy_)


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
def test_rules_have_at_most_max_features(data):
    for name, branching, most in product(NAMES, (2, 3), (1, 2, 5, 20)):
        taxonomy = fit(data[name], branching=branching, max_features=most).taxonomy_
        # One boolean does not make three children, and of noise some clusters are two rows.
        is_hard = (name, branching) == ("animals", 3) and most < 5
        assert taxonomy.tree.n_leaves >= (7 if name != "wide" else 6) or is_hard
        check_rules(taxonomy, most)


def test_scatter_that_is_rounding_is_not_split():
    X = 1e-3 * np.random.default_rng(0).standard_normal((8000, 80))
    X[0] = 1e6
    for dtype in ("float32", "float64"):
        assert fit(X.astype(dtype), 3).taxonomy_.tree.n_leaves == 3


# ---- sizes of leaves ----


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
def test_least_sizes_hold(cancer, planted):
    """Where they must, in fewer leaves; where they need not, nothing changes."""
    smaller = 0
    for n_clusters, seed in product((8, 20, 40), range(3)):
        free = fit(cancer, n_clusters, random_state=seed)
        for least in (3, 7, 12):
            model = fit(cancer, n_clusters, min_leaf_size=least, random_state=seed)
            tree = model.taxonomy_.tree
            assert n_clusters / 2 <= tree.n_leaves <= n_clusters
            assert tree.sizes[tree.leaves].min() >= least
            smaller += int(np.bincount(free.labels_).min() < least)
    assert smaller > 5
    one, other = (fit(planted.X, 8, min_leaf_size=n).labels_ for n in (1, 20))
    np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
def test_least_sizes_hold_among_equal_rows():
    """Rather than in one leaf too small, rows that are equal are in two."""
    rng = np.random.default_rng(0)
    for counts in ((50, 3, 3, 44), (90, 1, 9), (30, 30, 2, 2, 36)):
        X = np.repeat(rng.standard_normal((len(counts), 3)), counts, axis=0)
        for least, Z in product((5, 10), (X, sparse.csr_array(X))):
            sizes = np.bincount(fit(Z, 4, min_leaf_size=least).labels_)
            assert len(sizes) > 1
            assert sizes.min() >= least


def test_a_min_leaf_size_that_prevents_splits(planted):
    X = planted.X  # 600 rows
    assert fit(X, 2, min_leaf_size=300).labels_.tolist().count(0) == 300
    for least in (301, 600, 5000):
        with pytest.warns(GrowthWarning, match=rf"1 leaf .*600 rows .*{least}.* {2 * least}"):
            assert not fit(X, 2, min_leaf_size=least).labels_.any()
    with pytest.warns(GrowthWarning, match="4 leaves where 8 .* too small"):
        assert np.bincount(fit(X, 8, min_leaf_size=90).labels_).min() >= 90
    assert np.bincount(fit(X, None, min_leaf_size=50, max_leaf_size=60).labels_).min() >= 50


def test_sizes_that_contradict_each_other(X):
    with pytest.raises(ValueError, match=r"min_leaf_size is 9.* max_leaf_size=8"):
        Taxarbor(min_leaf_size=9, max_leaf_size=8).fit(X)


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
@pytest.mark.parametrize("settings", [{"noise": 0.05}, {}], ids=str)
def test_clusters_that_rounding_hides(settings):
    """In float32, beside one that is ten thousand times as far: no leaf is left empty."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = 2.0 * rng.standard_normal((12, 1 + seed % 5)) + 4.0 * rng.integers(0, 3, (12, 1))
        X[3] *= 1e4
        weights = rng.integers(1, 4, 12)
        model = Taxarbor(None, max_leaf_size=4, random_state=seed, **settings)
        taxonomy = model.fit(X.astype(np.float32), sample_weight=weights).taxonomy_
        assert np.isfinite(taxonomy.means).all()
        assert set(model.labels_) - {-1} == set(range(taxonomy.tree.n_leaves))


# ---- unusual data ----


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
@pytest.mark.parametrize("seed", [2, 7, 13])
def test_a_child_of_few_rows_costs_few_leaves(seed):
    """Where a rule cannot give a child rows for all its leaves, it gets those that it can."""
    X = (np.random.default_rng(seed).random((150, 300)) < 0.3).astype(np.float64)
    assert 10 <= check_decided(fit(X, 14, max_features=1), X).n_leaves <= 14


def test_columns_of_unlike_scales():
    for exponents in ([60, -60, 0], [-60, -60, -60], [30, 30, -30]):
        X = np.random.default_rng(0).standard_normal((300, 3))
        X += 40.0 * np.eye(3)[[0, 1, 2] * 100]
        X *= 10.0 ** np.array(exponents, dtype=float)
        check_decided(Taxarbor(3, random_state=0).fit(X), X)


def test_fewer_leaves_than_requested_give_a_warning():
    """Also where no leaf has a reason: a small one was merged with another."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 6)) + 6.0 * rng.integers(0, 3, (300, 1))
        for least in (5, 15, 40):
            with warnings.catch_warnings(record=True, action="always") as caught:
                tree = Taxarbor(8, min_leaf_size=least, random_state=0).fit(X).taxonomy_.tree
            names = [warning.category for warning in caught]
            assert (GrowthWarning in names) == (tree.n_leaves < 8)
            assert tree.n_leaves >= 3
