import numpy as np
import pytest
from sklearn import metrics as sk

from taxarbor import metrics
from taxarbor.hierarchy import Hierarchy

SCORES = ["rand_score", "adjusted_rand_score", "adjusted_mutual_info_score"]


@pytest.fixture(params=SCORES)
def score(request):
    return request.param


@pytest.mark.parametrize("seed", range(20))
def test_as_in_sklearn(trees, score, seed):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(8, 200))
    tree = trees.grow(seed, n_rows, n_leaves=1 + seed % 7)
    noise = rng.random(n_rows) < rng.random()
    y = np.where(noise, rng.integers(0, 1 + seed % 5, n_rows), tree.labels)
    found = getattr(metrics, score)(tree, y)
    assert type(found) is float
    assert found == pytest.approx(getattr(sk, score)(y, tree.labels), abs=1e-10)


def test_pair_by_pair(trees, literal):
    tree = trees.grow(3)
    y = np.random.default_rng(3).integers(0, 3, 14)
    labels = tree.labels
    agree = [(y[i] == y[j]) == (labels[i] == labels[j]) for i, j in literal.pairs(14)]
    assert metrics.rand_score(tree, y) == pytest.approx(np.mean(agree), abs=1e-15)


def test_perfect_agreement_is_exactly_one(trees, score):
    function = getattr(metrics, score)
    tree = trees.grow(0)
    assert function(tree, tree.labels) == 1.0
    assert function(tree, [f"name {label}" for label in tree.labels]) == 1.0
    assert function(Hierarchy.from_labels(np.arange(9)), np.arange(9)) == 1.0
    assert function(trees.grow(0, n_leaves=1), np.zeros(14)) == 1.0


def test_order_does_not_matter(trees, score):
    function = getattr(metrics, score)
    rng = np.random.default_rng(1)
    tree, y = trees.grow(1), rng.integers(0, 4, 14)
    found, order = function(tree, y), rng.permutation(14)
    assert function(Hierarchy.from_labels(tree.labels[order]), y[order]) == pytest.approx(found)
    assert function(tree, rng.permutation(4)[y]) == pytest.approx(found, abs=1e-14)


def test_large_counts_do_not_overflow():
    # Products of the numbers of pairs are near 1e23, far beyond 64 bits.
    n_rows = 1_000_000
    labels = np.arange(n_rows) % 2
    y = np.where(np.arange(n_rows) < n_rows // 10, 1 - labels, labels)
    tree = Hierarchy.from_labels(labels)
    assert metrics.rand_score(tree, y) == pytest.approx(0.82, abs=1e-6)
    assert metrics.adjusted_rand_score(tree, y) == pytest.approx(0.64, abs=1e-6)


def test_wrong_input_is_refused(trees, score):
    with pytest.raises(ValueError, match="each of the 14 rows"):
        getattr(metrics, score)(trees.grow(0), [1, 2, 3])
