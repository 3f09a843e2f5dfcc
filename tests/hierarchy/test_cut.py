import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor import HMMC
from taxarbor.hierarchy import HierarchyBuilder


def test_cuts_of_the_known_tree(known):
    assert known.cut(1).tolist() == [0] * 10
    assert known.cut(2).tolist() == [0] * 10
    assert known.cut(3).tolist() == [2, 0, 1, 1, 0, 1, 2, 0, 1, 1]
    assert known.cut(np.int64(4)).tolist() == known.labels.tolist()
    assert known.cut(depth=0).tolist() == [0] * 10
    assert known.cut(depth=1).tolist() == known.cut(3).tolist()
    for depth in (2, 99):
        assert known.cut(depth=depth).tolist() == known.labels.tolist()


def test_cuts_that_cannot_be(known):
    for n_clusters in (0, -1, 5):
        with pytest.raises(ValueError, match=f"number of leaves, 4, got {n_clusters}"):
            known.cut(n_clusters)
    with pytest.raises(ValueError, match="0 or more"):
        known.cut(depth=-1)
    with pytest.raises(ValueError, match="either"):
        known.cut()
    with pytest.raises(ValueError, match="either"):
        known.cut(2, depth=1)
    with pytest.raises(TypeError):
        known.cut(2.5)


def assert_nested(coarse, fine):
    """Assert that each cluster of the fine labels lies within one of the coarse."""
    pairs = np.unique(np.stack([coarse, fine]), axis=1)
    assert len(np.unique(pairs[1])) == pairs.shape[1]


@settings(deadline=None)
@given(data=st.data())
def test_cuts_nest(trees, data):
    tree = data.draw(trees)
    cuts = [tree.cut(n) for n in range(1, tree.n_leaves + 1)]
    sizes = [len(np.unique(cut)) for cut in cuts]
    assert all(size <= n for n, size in enumerate(sizes, start=1))
    assert sizes[0] == 1
    assert sizes[-1] == tree.n_leaves
    for by in (cuts, [tree.cut(depth=d) for d in range(tree.height + 1)]):
        for coarse, fine in itertools.pairwise(by):
            assert_nested(coarse, fine)
        np.testing.assert_array_equal(by[-1], tree.labels)
        for labels in by:
            first_seen = labels[tree.order]
            assert (np.diff(first_seen) >= 0).all()  # numbered from left to right
            assert set(labels) == set(range(labels.max() + 1))


@settings(deadline=None)
@given(data=st.data())
def test_pruning_is_cutting(trees, same, data):
    tree = data.draw(trees)
    by_number = [{"n_clusters": n} for n in range(1, tree.n_leaves + 1)]
    for limit in by_number + [{"depth": d} for d in range(tree.height + 1)]:
        pruned = tree.prune(**limit)
        np.testing.assert_array_equal(pruned.labels, tree.cut(**limit))
        same(pruned, pruned.prune(pruned.n_leaves))
        same(pruned, tree.prune(**limit).prune(depth=pruned.height))
    same(tree, tree.prune(tree.n_leaves))
    same(tree, tree.prune(depth=tree.height))


@settings(deadline=None)
@given(data=st.data())
def test_pruned_nodes_keep_what_is_known_of_them(trees, data):
    tree = data.draw(trees)
    pruned = tree.prune(depth=data.draw(st.integers(0, tree.height)))
    kept = np.flatnonzero(tree.depth <= pruned.height)
    assert pruned.n_nodes == len(kept)
    for new, old in enumerate(kept):
        assert pruned.rows(new).tolist() == tree.rows(old).tolist()
        assert [kept[i] for i in pruned.path(new)] == list(tree.path(old))
        assert pruned.rules[new] is (None if pruned.is_leaf(new) else tree.rules[old])
        assert pruned.info[new] is tree.info[old]
        assert pruned.notes[new] == tree.notes[old]
    for name in ("score", "objective"):
        np.testing.assert_array_equal(getattr(pruned, name), getattr(tree, name)[kept])
    inner = [not pruned.is_leaf(node) for node in range(pruned.n_nodes)]
    expected = np.where(inner, tree.fidelity[kept], np.nan)
    np.testing.assert_array_equal(pruned.fidelity, expected)
    assert pruned.feature_names == tree.feature_names
    assert (pruned.means is None) == (tree.means is None)
    if tree.means is not None:
        np.testing.assert_array_equal(pruned.means, tree.means[kept])
    assert (np.argsort(tree.birth[kept], kind="stable") == np.arange(len(kept))).all()


@settings(deadline=None)
@given(data=st.data())
def test_prunings_nest(trees, same, data):
    tree = data.draw(trees)
    many = data.draw(st.integers(1, tree.n_leaves))
    few = data.draw(st.integers(1, tree.prune(many).n_leaves))
    same(tree.prune(few), tree.prune(many).prune(few))


def test_pruning_the_known_tree(known):
    tree = known.prune(3)
    assert tree.to_text() == known.to_text(max_depth=1).replace("[2 clusters]", "[c1]").replace(
        "c3", "c2"
    )
    assert tree.rules == (known.rules[0], None, None, None)
    assert tree.notes == ("", "too few rows", "", "")
    assert known.prune(2).n_nodes == 1
    assert known.prune(np.int64(1)).info == known.info[:1]


def test_pruning_moves_cells_to_the_leaves_that_stay(placed):
    np.testing.assert_array_equal(placed.prune(4).placement.leaves, [4, 1, 3, 5, 4])
    for pruned in (placed.prune(3), placed.prune(depth=1)):
        assert pruned.placement.leaves.tolist() == [2, 1, 3, 2, 2]
        assert pruned.placement.rule is placed.placement.rule
        np.testing.assert_array_equal(pruned.fidelity, [0.9, np.nan, np.nan, np.nan])
    for pruned in (placed.prune(1), placed.prune(depth=0)):
        assert pruned.placement is None
        np.testing.assert_array_equal(pruned.fidelity, [np.nan])
        assert pruned.predict(np.ones((2, 2))).tolist() == [0, 0]
    assert placed.placement.leaves.tolist() == [4, 1, 3, 5, 4]


@settings(deadline=None)
@given(data=st.data())
def test_pruned_trees_predict_the_cut_of_what_is_predicted(placed_trees, data):
    tree = data.draw(placed_trees)
    if tree.placement is not None:
        width = len(tree.placement.rule.center)
    else:
        width = 1 if tree.means is None else tree.means.shape[1]
    X = np.random.default_rng(1).normal(scale=1e8, size=(30, width))
    # Of each leaf, the first of its rows: where the cut puts that, it puts the leaf.
    first = tree.order[tree.start[tree.leaves]]
    by_number = [{"n_clusters": n} for n in range(1, tree.n_leaves + 1)]
    for limit in by_number + [{"depth": d} for d in range(tree.height + 1)]:
        pruned = tree.prune(**limit)
        expected = tree.cut(**limit)[first][tree.predict(X)]
        np.testing.assert_array_equal(pruned.predict(X), expected)
        if pruned.placement is not None:
            assert pruned.placement.n_cells == tree.placement.n_cells


def test_splits_are_counted_anew_when_pruned_by_depth():
    builder = HierarchyBuilder(4)
    builder.add_split(0, [0, 0, 0, 1])
    builder.add_split(1, [0, 0, 1])
    builder.add_split(3, [0, 1])
    tree = builder.freeze().prune(depth=2)
    assert tree.birth.tolist() == [0, 1, 1, 2, 2]
    builder = HierarchyBuilder(5)
    builder.add_split(0, [0, 0, 0, 1, 1])
    builder.add_split(1, [0, 0, 1])
    builder.add_split(3, [0, 1])
    builder.add_split(2, [0, 1])
    tree = builder.freeze().prune(depth=2)
    assert tree.parents.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert tree.birth.tolist() == [0, 1, 1, 2, 2, 3, 3]


def test_prunings_that_cannot_be(known):
    for n_clusters in (0, 5):
        with pytest.raises(ValueError, match=f"number of leaves, 4, got {n_clusters}"):
            known.prune(n_clusters)
    with pytest.raises(ValueError, match="0 or more"):
        known.prune(depth=-1)
    with pytest.raises(ValueError, match="either"):
        known.prune()


def test_a_deep_tree_is_pruned(chain):
    assert chain.prune(1234).n_leaves == 1234
    assert chain.prune(depth=1234).height == 1234


@pytest.mark.parametrize("branching", [2, 3])
def test_growing_less_is_pruning(branching):
    X = np.random.default_rng(branching).normal(size=(90, 5))
    large, *small = (
        HMMC(n, branching=branching, refine=False, random_state=0).fit(X).hierarchy_
        for n in (9, 7, 5, 3)
    )
    for grown in small:
        pruned = large.prune(grown.n_leaves)
        for name in ("labels", "parents", "start", "stop", "birth"):
            np.testing.assert_array_equal(getattr(pruned, name), getattr(grown, name))
        for ours, theirs in zip(pruned.rules, grown.rules, strict=True):
            assert (ours is None) == (theirs is None)
            for name in ("weights", "center", "offsets") if ours else ():
                assert getattr(ours, name).tobytes() == getattr(theirs, name).tobytes()
        inner = [not grown.is_leaf(node) for node in range(grown.n_nodes)]
        np.testing.assert_array_equal(pruned.score[inner], grown.score[inner])
        np.testing.assert_array_equal(pruned.predict(X), grown.predict(X))
