import numpy as np
import pytest

from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.metrics._table import pairs, tabulate


@pytest.mark.parametrize("seed", range(5))
def test_counts(trees, seed):
    tree = trees.grow(seed, n_rows=30, n_leaves=6)
    y = np.random.default_rng(seed).choice(list("abcd"), 30)
    table = tabulate(tree, y)
    labels = tree.labels
    for leaf in range(tree.n_leaves):
        for column, name in enumerate(table.classes):
            assert table.counts[leaf, column] == np.sum((labels == leaf) & (y == name))
    assert table.counts.dtype == np.int64
    np.testing.assert_array_equal(table.leaf_sizes, tree.n_rows[tree.leaves])
    np.testing.assert_array_equal(table.class_sizes, [sum(y == c) for c in table.classes])
    assert (table.n_rows, table.n_pairs) == (30, 435)


@pytest.mark.parametrize("seed", range(5))
def test_counts_by_node(trees, seed):
    tree = trees.grow(seed, n_rows=30, n_leaves=9)
    y = np.random.default_rng(seed).choice(list("abcd"), 30)
    table = tabulate(tree, y)
    for node, counts in enumerate(table.node_counts()):
        assert counts.tolist() == [sum(y[tree.rows(node)] == c) for c in table.classes]


def test_pairs():
    assert pairs(np.array([0, 1, 2, 5, 10**6])).tolist() == [0, 0, 1, 10, 499_999_500_000]


def test_one_row_makes_no_pair():
    with pytest.raises(ValueError, match="two at least, got 1"):
        tabulate(HierarchyBuilder(1).freeze(), ["a"])
