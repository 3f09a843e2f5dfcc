import numpy as np
import pytest

from taxarbor.metrics import ClassTree, path_sharing_similarity, shortest_path_similarity
from taxarbor.metrics._similarity import LeafPairs, Measure

FUNCTIONS = {
    "shortest_path": shortest_path_similarity,
    "path_sharing": path_sharing_similarity,
}
NAMES = list("abcdefghi")


@pytest.fixture(params=FUNCTIONS)
def measure(request):
    return request.param


def by_pairs(literal, tree, measure):
    similar = literal.similarities[measure]
    return [[similar(tree, i, j) for j in tree.leaves] for i in tree.leaves]


@pytest.mark.parametrize("seed", range(10))
def test_pair_by_pair(trees, literal, measure, seed):
    learned = trees.grow(seed, n_leaves=1 + seed)
    true = ClassTree.read(trees.draw_truth(seed, NAMES))
    for tree in (learned, true):
        found = FUNCTIONS[measure](tree)
        np.testing.assert_allclose(found, by_pairs(literal, tree, measure), atol=1e-15)
        assert found.dtype == np.float64
        assert (found == found.T).all()
        assert (found.diagonal() == 1.0).all()


@pytest.mark.parametrize("block_size", [1, 30, 1000])
def test_blocks_do_not_matter(trees, measure, block_size, monkeypatch):
    tree = trees.grow(0, n_rows=40, n_leaves=13)
    whole = FUNCTIONS[measure](tree)
    monkeypatch.setattr("taxarbor.metrics._similarity._BLOCK_SIZE", block_size)
    np.testing.assert_array_equal(FUNCTIONS[measure](tree), whole)


@pytest.mark.parametrize("seed", range(5))
def test_some_leaves_in_any_order(trees, measure, seed):
    tree = ClassTree.read(trees.draw_truth(seed, NAMES))
    chosen = np.random.default_rng(seed).permutation(tree.n_leaves)[:4]
    pairs = LeafPairs.of(tree.parents, tree.leaves[chosen])
    whole = FUNCTIONS[measure](tree)
    np.testing.assert_array_equal(pairs.matrix(Measure(measure)), whole[np.ix_(chosen, chosen)])


def test_the_root_is_not_counted():
    tree = ClassTree.read("(((cat,dog)carnivore,mouse)mammal,(owl,duck)bird,coral)animal;")
    assert tree.names == ("cat", "dog", "mouse", "owl", "duck", "coral")
    third, half = 1 / 3, 1 / 2
    expected = [
        [1, 2 * third, third, 0, 0, 0],  # cat and dog share mammal, carnivore; cat has 3
        [2 * third, 1, third, 0, 0, 0],
        [third, third, 1, 0, 0, 0],
        [0, 0, 0, 1, half, 0],
        [0, 0, 0, half, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    np.testing.assert_allclose(path_sharing_similarity(tree), expected, atol=1e-15)


def test_edges_by_hand():
    tree = ClassTree.read("(((cat,dog)carnivore,mouse)mammal,(owl,duck)bird,coral)animal;")
    edges = [
        [0, 2, 3, 5, 5, 4],
        [2, 0, 3, 5, 5, 4],
        [3, 3, 0, 4, 4, 3],
        [5, 5, 4, 0, 2, 3],
        [5, 5, 4, 2, 0, 3],
        [4, 4, 3, 3, 3, 0],
    ]
    expected = 1 - np.array(edges) / 5
    np.testing.assert_allclose(shortest_path_similarity(tree), expected, atol=1e-15)


def test_a_single_child_makes_branches_longer():
    tree = ClassTree.read("((((cat)felid,dog)mammal)animal,rock);")
    np.testing.assert_allclose(path_sharing_similarity(tree)[0, 1], 2 / 4)
    np.testing.assert_allclose(shortest_path_similarity(tree)[0, 1], 1 - 3 / 5)


def test_a_flat_clustering_is_together_or_apart(measure):
    star = ClassTree.read("(a,b,c,d);")
    np.testing.assert_array_equal(FUNCTIONS[measure](star), np.eye(4))


@pytest.mark.parametrize("text", ["a;", "(a);", "((a));"])
def test_a_single_leaf_is_similar_to_itself(measure, text):
    assert FUNCTIONS[measure](ClassTree.read(text)) == [[1.0]]


def test_a_deep_tree():
    height = 3000
    # Of each two children, the second is split again.
    parents = np.array([-1, *(2 * (i // 2) for i in range(2 * height))])
    names = [f"n{i}" for i in range(len(parents))]
    tree = ClassTree(parents, tuple(names))
    chosen = tree.leaves[[0, 1, -1]]
    pairs = LeafPairs.of(tree.parents, chosen)
    assert pairs.diameter == height + 1
    assert sorted(pairs.depth) == [1, 2, height]
    assert pairs.matrix(Measure.PATH_SHARING)[1, 2] == 1 / height
