"""The frozen tree: what it holds, moving in it, cuts and prunings."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taxarbor import HMMC
from taxarbor.tree import LinearRule, Tree, TreeBuilder
from tests.conftest import assert_same_rules
from tests.tree.conftest import assert_refused, assert_same, frontier, random_trees

INDICES = ("order", "start", "stop", "parents", "sizes", "birth", "depth", "leaves")
ARRAYS = (*INDICES, "score", "objective")


def put(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def test_the_known_tree(known, bare):
    assert repr(known) == "Tree(n_rows=10, n_leaves=4, height=2)"
    assert (known.root, known.n_nodes, known.n_leaves, known.n_splits) == (0, 6, 4, 2)
    assert (known.n_rows, known.n_features) == (10, 2)
    assert known.parents.tolist() == [-1, 0, 0, 0, 2, 2]
    assert known.birth.tolist() == [0, 1, 1, 1, 2, 2]
    assert known.depth.tolist() == [0, 1, 1, 1, 2, 2]
    assert known.sizes.tolist() == [10, 3, 5, 2, 2, 3]
    assert known.leaves.tolist() == [1, 4, 5, 3]
    assert known.labels.tolist() == bare.labels.tolist() == [3, 0, 1, 2, 0, 1, 3, 0, 2, 2]
    assert [known.parent(i) for i in range(6)] == [None, 0, 0, 0, 2, 2]
    assert [known.children(i) for i in range(3)] == [(1, 2, 3), (), (4, 5)]
    assert [known.is_leaf(i) for i in range(6)] == [False, True, False, True, True, True]
    assert known.path(5) == (0, 2, 5)
    assert known.path(np.int32(0)) == (0,)
    assert known.rows(4).tolist() == [2, 5]
    for node in (-1, 6):
        for method in (known.parent, known.children, known.path, known.rows, known.is_leaf):
            with pytest.raises(IndexError):
                method(node)


def test_a_root_alone():
    tree = TreeBuilder(3).freeze()
    assert repr(tree) == "Tree(n_rows=3, n_leaves=1, height=0)"
    assert tree.leaves.tolist() == [0]
    assert (tree.children(0), tree.path(0), tree.n_features) == ((), (0,), None)
    assert tree.labels.tolist() == tree.cut(1).tolist() == tree.cut(depth=3).tolist() == [0] * 3


@given(tree=random_trees())
def test_sizes_add_up(tree):
    assert tree.sizes[0] == tree.n_rows == len(tree.order) == tree.sizes[tree.leaves].sum()
    for node in range(tree.n_nodes):
        children = tree.children(node)
        assert tree.is_leaf(node) == (not children)
        assert tree.depth[node] == len(tree.path(node)) - 1
        if children:
            assert tree.sizes[list(children)].sum() == tree.sizes[node]
            together = np.concatenate([tree.rows(child) for child in children])
            np.testing.assert_array_equal(together, tree.rows(node))
            assert {tree.parent(child) for child in children} == {node}
    for label, leaf in enumerate(tree.leaves):
        rows = np.flatnonzero(tree.labels == label)
        np.testing.assert_array_equal(rows, np.sort(tree.rows(leaf)))
    ruled = {node for node, rule in enumerate(tree.rules) if rule is not None}
    for node in ruled:
        assert list(tree.frontier(node)) == frontier(tree, node, ruled)


def test_nothing_can_be_changed(known):
    for array in [getattr(known, name) for name in ARRAYS] + [known.labels, known.rows(1)]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for name in (*ARRAYS, "rules", "notes", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(known, name, None)
    order = known.order.copy()
    tree = dataclasses.replace(known, order=order)
    order[:] = 0
    np.testing.assert_array_equal(tree.order, known.order)


def test_a_deep_tree_is_no_trouble(chain):
    assert chain.height == 3000
    assert chain.path(chain.n_nodes - 1)[-2:] == (chain.n_nodes - 3, chain.n_nodes - 1)
    assert len(np.unique(chain.cut(1234))) == chain.prune(1234).n_leaves == 1234
    assert len(np.unique(chain.cut(depth=1234))) == 1235
    assert chain.prune(depth=1234).height == 1234


def faults(t):
    """Return what breaks the known tree."""
    no_rules = (None,) * 6
    other = LinearRule(np.ones((2, 2), "float32"), np.zeros(2, "float32"))
    a_note = ("split", *t.notes[1:])
    parents = [t.parents[:0], put(t.parents, [4, 5], 0), put(t.parents, 0, 0)]
    parents += [put(t.parents, 4, parent) for parent in (5, 4, -1, 10**9)]
    orders = [t.order[:0], t.order[None], t.order.astype(float)]
    orders += [put(t.order, 0, row) for row in (t.order[1], 10, -1)]
    sizes = [(0, 9), (4, 0), (5, t.sizes[5] + 1), (1, t.sizes[1] - 1), (3, -2), (0, 2**62)]
    rules = [(None, *t.rules[1:]), (t.rules[2], *t.rules[1:]), (*t.rules[:-1], t.rules[2])]
    rules += [(t.rules[0], *[None] * 5), (*[None] * 5, t.rules[0])]
    table = {
        "order": orders,
        "parents": [put(t.parents, 5, 1), *parents],
        "sizes": [t.sizes[1:], t.sizes.astype(bool), *(put(t.sizes, *one) for one in sizes)],
        "score": [t.score[:, None]],
        "info": [t.info[1:]],
        "notes": [t.notes[1:], no_rules, a_note],
        "rules": [*rules, (*t.rules[:2], other, *t.rules[3:])],
        "weights": [np.ones(9), np.zeros(10), -np.ones(10), np.full(10, np.nan)],
        "totals": [np.ones(6)],
        "noise": [np.array([3])],
    }
    faults = [{name: bad} for name, values in table.items() for bad in values]
    return [*faults, {"notes": a_note, "rules": no_rules}]


def test_broken_invariants_are_refused(known):
    cases = faults(known)
    assert len(cases) > 35
    assert_refused(lambda change: dataclasses.replace(known, **change), cases)


def test_a_split_needs_two_children(known):
    names = ("parents", "score", "objective", "rules", "info", "notes")
    parts = {name: getattr(known, name)[:2] for name in names}
    with pytest.raises(ValueError, match="two children"):
        Tree(**parts, order=known.order, sizes=[10, 10])


# Cuts and prunings.


def test_cuts_of_the_known_tree(known):
    assert known.cut(1).tolist() == known.cut(2).tolist() == [0] * 10
    assert known.cut(3).tolist() == [2, 0, 1, 1, 0, 1, 2, 0, 1, 1]
    assert known.cut(np.int64(4)).tolist() == known.labels.tolist()
    assert known.cut(depth=0).tolist() == [0] * 10
    assert known.cut(depth=1).tolist() == known.cut(3).tolist()
    for depth in (2, 99):
        assert known.cut(depth=depth).tolist() == known.labels.tolist()


def test_cuts_that_cannot_be(known):
    cases = [*({"n_clusters": n} for n in (0, -1, 5)), {"depth": -1}, {}]
    cases += [{"n_clusters": 2, "depth": 1}]
    for method in (known.cut, known.prune):
        assert_refused(lambda limits, method=method: method(**limits), cases)
        with pytest.raises(TypeError):
            method(2.5)


def limits_of(tree):
    """Return all ways to cut a tree."""
    by_number = [{"n_clusters": n} for n in range(1, tree.n_leaves + 1)]
    return by_number + [{"depth": d} for d in range(tree.height + 1)]


@given(tree=random_trees())
def test_cuts_nest(tree):
    cuts = [tree.cut(n) for n in range(1, tree.n_leaves + 1)]
    sizes = [len(np.unique(cut)) for cut in cuts]
    assert all(size <= n for n, size in enumerate(sizes, start=1))
    assert (sizes[0], sizes[-1]) == (1, tree.n_leaves)
    for by in (cuts, [tree.cut(depth=d) for d in range(tree.height + 1)]):
        for coarse, fine in itertools.pairwise(by):  # a fine cluster lies within a coarse one
            pairs = np.unique(np.stack([coarse, fine]), axis=1)
            assert len(np.unique(pairs[1])) == pairs.shape[1]
        np.testing.assert_array_equal(by[-1], tree.labels)
        for labels in by:
            assert (np.diff(labels[tree.order]) >= 0).all()  # numbered from left to right
            assert set(labels) == set(range(labels.max() + 1))


@given(tree=random_trees(), data=st.data())
def test_pruning_is_cutting(data, tree):
    for limit in limits_of(tree):
        pruned = tree.prune(**limit)
        np.testing.assert_array_equal(pruned.labels, tree.cut(**limit))
        assert_same(pruned, pruned.prune(pruned.n_leaves))
        assert_same(pruned, tree.prune(**limit).prune(depth=pruned.height))
    assert_same(tree, tree.prune(tree.n_leaves))
    assert_same(tree, tree.prune(depth=tree.height))
    many = data.draw(st.integers(1, tree.n_leaves))
    few = data.draw(st.integers(1, tree.prune(many).n_leaves))
    assert_same(tree.prune(few), tree.prune(many).prune(few))


@given(tree=random_trees(), data=st.data())
def test_pruned_nodes_keep_what_is_known_of_them(data, tree):
    pruned = tree.prune(depth=data.draw(st.integers(0, tree.height)))
    kept = np.flatnonzero(tree.depth <= pruned.height)
    assert pruned.n_nodes == len(kept)
    for new, old in enumerate(kept):
        assert pruned.rows(new).tolist() == tree.rows(old).tolist()
        assert [kept[i] for i in pruned.path(new)] == list(tree.path(old))
        rule, before = pruned.rules[new], tree.rules[old]
        assert (rule is None) == (pruned.is_leaf(new) or before is None)
        if rule is not None and len(pruned.frontier(new)) == len(tree.frontier(old)):
            assert rule is before
        elif rule is not None:
            np.testing.assert_array_equal(rule.weights, before.weights)
        assert pruned.info[new] is tree.info[old]
        assert pruned.notes[new] == tree.notes[old]
    for name in ("score", "objective"):
        np.testing.assert_array_equal(getattr(pruned, name), getattr(tree, name)[kept])
    assert (np.argsort(tree.birth[kept], kind="stable") == np.arange(len(kept))).all()


def test_growing_less_is_pruning():
    for branching in (2, 3):
        X = np.random.default_rng(branching).normal(size=(90, 5))
        large, *small = (
            HMMC(n, branching=branching, random_state=0).fit(X).taxonomy_.tree
            for n in (9, 7, 5, 3)
        )
        for grown in small:
            pruned = large.prune(grown.n_leaves)
            for name in ("labels", "parents", "start", "stop", "birth"):
                np.testing.assert_array_equal(getattr(pruned, name), getattr(grown, name))
            assert_same_rules(pruned, grown, ("weights", "center", "offsets"))
            inner = [not grown.is_leaf(node) for node in range(grown.n_nodes)]
            np.testing.assert_array_equal(pruned.score[inner], grown.score[inner])
