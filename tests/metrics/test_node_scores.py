import math

import numpy as np
import pytest

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics import ClassTree, dasgupta_cost, dendrogram_purity

NAMES = list("abcde")


def purity_by_pairs(literal, tree, y):
    shares = []
    for i, j in literal.pairs(len(y)):
        if y[i] == y[j]:
            rows = tree.rows(literal.lowest_common_ancestor(tree, i, j))
            shares.append(sum(y[row] == y[i] for row in rows) / len(rows))
    return sum(shares) / len(shares)


def cost_by_pairs(literal, tree, y, truth):
    """Return the cost, and the sum of similarities."""
    cost = total = 0.0
    true = None if truth is None else ClassTree.read(truth)
    for i, j in literal.pairs(len(y)):
        if true is None:
            similarity = float(y[i] == y[j])
        else:
            one, other = (true.leaves[true.names.index(name)] for name in (y[i], y[j]))
            similarity = literal.shortest_path(true, one, other)
        cost += similarity * len(tree.rows(literal.lowest_common_ancestor(tree, i, j)))
        total += similarity
    return cost, total


@pytest.mark.parametrize("seed", range(10))
def test_purity_pair_by_pair(trees, literal, seed):
    tree = trees.grow(seed, n_leaves=1 + seed)
    y = np.random.default_rng(seed).choice(NAMES, 14)
    found = dendrogram_purity(tree, y)
    assert type(found) is float
    assert found == pytest.approx(purity_by_pairs(literal, tree, y), abs=1e-14)


@pytest.mark.parametrize("block_size", [2**18, 10])
@pytest.mark.parametrize("seed", range(10))
def test_cost_pair_by_pair(trees, literal, seed, block_size, monkeypatch):
    monkeypatch.setattr("taxarbor.metrics._similarity._BLOCK_SIZE", block_size)
    tree = trees.grow(seed, n_leaves=1 + seed)
    y = np.random.default_rng(seed).choice(NAMES, 14)
    for truth in (None, trees.draw_truth(seed, NAMES)):
        cost, total = cost_by_pairs(literal, tree, y, truth)
        found = dasgupta_cost(tree, y, truth, normalize=False)
        assert type(found) is float
        assert found == pytest.approx(cost, rel=1e-13)
        assert dasgupta_cost(tree, y, truth) == pytest.approx(cost / (total * 14), rel=1e-13)


def test_by_hand(known):
    # Leaves {0, 1}, {2}, {3}, {4, 5}; above them {0, 1, 2} and {3, 4, 5}.
    y = ["a", "a", "a", "b", "b", "a"]
    a = [1, 1, 1, 4 / 6, 4 / 6, 4 / 6]  # pairs 01, 02, 12, and each of 0, 1, 2 with 5
    b = [2 / 3]  # pair 34
    assert dendrogram_purity(known, y) == pytest.approx(sum(a + b) / 7)
    assert dasgupta_cost(known, y, normalize=False) == 2 + 3 + 3 + 3 * 6 + 3
    assert dasgupta_cost(known, y) == pytest.approx(29 / (7 * 6))


def test_nodes_that_are_classes_are_pure(trees):
    truth = trees.draw_truth(0, NAMES, chains=False)
    y = np.random.default_rng(0).permutation(NAMES * 3)
    assert dendrogram_purity(trees.split_like(truth, y), y) == pytest.approx(1.0, abs=1e-14)


def test_one_leaf():
    tree, y = Hierarchy.from_labels(np.zeros(6)), ["a", "a", "a", "a", "b", "b"]
    assert dendrogram_purity(tree, y) == pytest.approx((6 * 4 / 6 + 2 / 6) / 7)
    assert dasgupta_cost(tree, y) == 1.0
    assert dasgupta_cost(tree, y, "(a,b);") == 1.0


def test_without_a_pair_to_look_at_there_is_no_value():
    tree = Hierarchy.from_labels([0, 0, 1])
    assert math.isnan(dendrogram_purity(tree, ["a", "b", "c"]))
    assert math.isnan(dasgupta_cost(tree, ["a", "b", "c"]))
    assert math.isnan(dasgupta_cost(tree, ["a", "b", "c"], "(a,b,c);"))
    assert dasgupta_cost(tree, ["a", "b", "c"], normalize=False) == 0.0


def test_a_star_is_the_true_tree_without_one(trees):
    tree, y = trees.grow(0), np.random.default_rng(0).choice(NAMES, 14)
    star = f"({','.join(NAMES)});"
    assert dasgupta_cost(tree, y, star) == pytest.approx(dasgupta_cost(tree, y), rel=1e-14)


def test_order_and_names_do_not_matter(trees):
    rng = np.random.default_rng(0)
    tree, y = trees.grow(0), rng.integers(0, 4, 14)
    for score in (dendrogram_purity, dasgupta_cost):
        assert score(tree, rng.permutation(4)[y]) == pytest.approx(score(tree, y), rel=1e-14)
        flat, order = Hierarchy.from_labels(tree.labels), rng.permutation(14)
        shuffled = Hierarchy.from_labels(tree.labels[order])
        assert score(shuffled, y[order]) == pytest.approx(score(flat, y), rel=1e-14)


def test_a_deep_tree(trees):
    n_rows = 600
    tree = trees.grow(0, n_rows=n_rows, n_leaves=n_rows)
    y = np.arange(n_rows) % 7
    shares = np.bincount(y) / n_rows
    assert shares.max() < dendrogram_purity(tree, y) < 1.0
    assert 0.0 < dasgupta_cost(tree, y) < 1.0


def test_a_class_outside_the_tree_is_refused(trees):
    with pytest.raises(ValueError, match="are no leaves of the true tree"):
        dasgupta_cost(trees.grow(0), ["a", "x"] * 7, "(a,b);")
