"""The frozen tree: what it holds, moving in it, cuts and prunings."""

import copy
import dataclasses
import io
import itertools
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, Taxarbor
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.tree import LinearRule, TreeBuilder

INDICES = ("order", "start", "stop", "parents", "birth", "depth", "leaves")
ARRAYS = (*INDICES, "score", "objective")
KINDS_OF_MEANS = ("int64", "float16", "complex128", "object")


def put(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def test_the_known_tree(known, bare):
    assert repr(known) == "Taxonomy(n_rows=10, n_leaves=4, height=2)"
    assert (known.root, known.n_nodes, known.n_leaves, known.n_splits) == (0, 6, 4, 2)
    assert (known.n_rows, known.n_features) == (10, 2)
    assert known.parents.tolist() == [-1, 0, 0, 0, 2, 2]
    assert known.birth.tolist() == [0, 1, 1, 1, 2, 2]
    assert known.depth.tolist() == [0, 1, 1, 1, 2, 2]
    assert known.sizes.tolist() == [10, 3, 5, 2, 2, 3]
    assert known.n_features_used.tolist() == [2, 0, 1, 0, 0, 0]
    assert known.leaves.tolist() == [1, 4, 5, 3]
    assert known.labels.tolist() == bare.labels.tolist() == [3, 0, 1, 2, 0, 1, 3, 0, 2, 2]
    assert bare.n_features_used.tolist() == [0] * 6
    assert [known.parent(i) for i in range(6)] == [None, 0, 0, 0, 2, 2]
    assert [known.children(i) for i in range(3)] == [(1, 2, 3), (), (4, 5)]
    assert [known.is_leaf(i) for i in range(6)] == [False, True, False, True, True, True]
    assert known.path(5) == (0, 2, 5)
    assert known.path(np.int32(0)) == (0,)
    assert known.rows(4).tolist() == [2, 5]
    for node in (-1, 6):
        for method in (known.parent, known.children, known.path, known.rows, known.is_leaf):
            with pytest.raises(IndexError, match="ids run from 0 to 5"):
                method(node)


def test_a_root_alone():
    tree = TreeBuilder(3).freeze()
    assert repr(tree) == "Taxonomy(n_rows=3, n_leaves=1, height=0)"
    assert tree.leaves.tolist() == [0]
    assert (tree.children(0), tree.path(0), tree.n_features) == ((), (0,), None)
    assert tree.labels.tolist() == tree.cut(1).tolist() == tree.cut(depth=3).tolist() == [0] * 3


def test_the_number_of_columns_is_known_where_anything_tells(bare, add_means):
    unnamed = dataclasses.replace(bare, feature_names=None)
    assert (bare.n_features, unnamed.n_features) == (2, None)
    assert dataclasses.replace(unnamed, means=np.zeros((6, 7))).n_features == 7
    assert add_means.prune(1).n_features == 2


def test_names_are_a_list_that_frames_take_and_no_one_can_change(known, same):
    frame = pd.DataFrame(np.eye(3), columns=["b", "c", "a"])
    assert frame[known.feature_names].columns.tolist() == ["a", "b"] == known.feature_names
    known.feature_names.append("c")
    assert known.feature_names == ["a", "b"]
    with pytest.raises(AttributeError):
        known.feature_names = ["b", "a"]
    unnamed = dataclasses.replace(known, feature_names=None)
    assert unnamed.feature_names is None
    same(known, dataclasses.replace(unnamed, feature_names=["a", "b"]))


def test_other_names_change_nothing_else(add_means, same, refused):
    renamed = add_means.rename_features(["x", 7])
    assert renamed.feature_names == ["x", "7"]
    assert add_means.feature_names == ["a", "b"]
    same(add_means, renamed.rename_features(np.array(["a", "b"])))
    cases = [(list("abc"[:n]), f"{n} feature names for rules over") for n in (0, 1, 3)]
    refused(add_means.rename_features, cases)
    with pytest.raises(TypeError, match="must be a list of names, got the text 'ab'"):
        add_means.rename_features("ab")


@given(data=st.data())
def test_sizes_add_up(trees, data):
    tree = data.draw(trees)
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


def test_nothing_can_be_changed(known):
    derived = [known.labels, known.sizes, known.n_features_used, known.rows(1)]
    for array in [getattr(known, name) for name in ARRAYS] + derived:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for name in (*ARRAYS, "rules", "notes", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(known, name, None)
    assert isinstance(known.rules, tuple)


def test_the_arrays_given_stay_their_owners(known):
    order, means = known.order.copy(), np.ones((6, 2))
    tree = dataclasses.replace(known, order=order, means=means)
    order[:], means[:] = 0, 7
    np.testing.assert_array_equal(tree.order, known.order)
    assert (tree.means == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        tree.means[0] = 2.0


def by_skops(tree):
    data = skops.io.dumps({"tree": tree})
    return skops.io.loads(data, trusted=["taxarbor.tree._tree.Taxonomy"])["tree"]


def by_joblib(tree):
    file = io.BytesIO()
    joblib.dump(tree, file)
    file.seek(0)
    return joblib.load(file)


def by_pickle(tree, protocol=None):
    return pickle.loads(pickle.dumps(tree, protocol))


def test_copies_are_the_same(known, bare, add_means, chain, same):
    by_columns = dataclasses.replace(add_means, means=np.asfortranarray(add_means.means))
    for again in (copy.copy, copy.deepcopy, by_pickle, by_joblib, by_skops):
        for tree in (known, bare, add_means):
            same(tree, again(tree))
        same(add_means, again(by_columns))
    same(add_means, by_pickle(add_means, 2))
    same(chain, by_pickle(chain))
    same(chain, copy.deepcopy(chain))


@given(data=st.data())
def test_pickles_change_nothing(trees, same, data):
    tree = data.draw(trees)
    same(tree, by_pickle(tree))


def test_a_deep_tree_is_no_trouble(chain):
    assert chain.height == 3000
    assert chain.path(chain.n_nodes - 1)[-2:] == (chain.n_nodes - 3, chain.n_nodes - 1)
    assert len(np.unique(chain.cut(1234))) == chain.prune(1234).n_leaves == 1234
    assert len(np.unique(chain.cut(depth=1234))) == 1235
    assert chain.prune(depth=1234).height == 1234


def faults(t):
    """Return what breaks the known tree, and what is said of it."""
    no_rules, means = (None,) * 6, np.zeros((6, 2))
    other = LinearRule(np.ones((2, 2), "float32"), np.zeros(2, "float32"))
    unruled, a_note = {"rules": no_rules}, ("split", *t.notes[1:])
    smaller = [put(t.parents, 4, parent) for parent in (5, 4, -1, 10**9)]
    births = [put(t.birth, [1, 2, 3], 0), t.birth[[0, 5, 4, 3, 2, 1]], put(t.birth, 5, 4)]
    rules = [(None, *t.rules[1:]), (t.rules[2], *t.rules[1:]), (*t.rules[:-1], t.rules[2])]
    rules += [(t.rules[0], *[None] * 5), (*[None] * 5, t.rules[0])]
    table = [
        ("order", "each of 0 to 9 once", [put(t.order, 0, x) for x in (t.order[1], 10, -1)]),
        ("order", "not empty", [t.order[:0], t.order[None]]),
        ("order", "must hold integers", [t.order.astype(float)]),
        ("birth", "must hold integers", [t.birth.astype(bool)]),
        ("parents", "there must be a root", [t.parents[:0]]),
        ("start", "start has shape", [t.start[1:]]),
        ("score", "score has shape", [t.score[:, None]]),
        ("notes", "notes has 5 entries", [t.notes[1:]]),
        ("info", "info has 5 entries", [t.info[1:]]),
        ("parents", "node 0 must be the root", [put(t.parents, 0, 0)]),
        ("birth", "node 0 must be the root", [put(t.birth, 0, 1)]),
        ("parents", "parent's id must be smaller", smaller),
        ("birth", "birth must count", [t.birth * 2, *births]),
        ("birth", "siblings must have", [put(t.birth, 4, 1), put(t.birth, 5, 3)]),
        ("parents", "siblings must have", [put(t.parents, 5, 1), put(t.parents, [4, 5], 0)]),
        ("start", "the root must own", [put(t.start, 0, 1)]),
        ("stop", "the root must own", [put(t.stop, 0, 9)]),
        ("stop", "start < stop", [put(t.stop, 4, t.start[4])]),
        ("stop", "must tile", [put(t.stop, node, t.stop[node] + 1) for node in (5, 1)]),
        ("start", "must tile", [put(t.start, 4, t.start[4] - 1)]),
        ("rules", "must have (a|no) (rule|target)", rules),
        ("rules", "same dtype", [(*t.rules[:2], other, *t.rules[3:])]),
        ("notes", "notes must be strings", [no_rules]),
        ("notes", "only leaves may have a note", [a_note]),
        ("feature_names", "names must be strings", [(1, 2)]),
        ("feature_names", "3 feature names", [("a", "b", "c")]),
        ("means", r"each of 6 nodes, got float64 of shape \(5, 2\)", [means[:5]]),
        ("means", r"each of 6 nodes, got float64 of shape \(\)", [0.0]),
        ("means", "each of 6 nodes", [means[:, 0], []]),
        *(("means", f"got {kind}", [means.astype(kind)]) for kind in KINDS_OF_MEANS),
        ("means", "means must be floats", [np.full((6, 2), "a")]),
        ("means", "dtype and the number of features of the rules", [means.astype("f4")]),
        ("means", "number of features of the rules", [np.zeros((6, 3))]),
        ("means", "finite", [means + np.nan, means - np.inf]),
    ]
    return [({name: bad}, told) for name, told, values in table for bad in values] + [
        ({"notes": a_note} | unruled, "only leaves may have a note"),
        ({"means": np.zeros((6, 3))} | unruled, "2 feature names for rules over"),
    ]


def test_broken_invariants_are_named(known, refused):
    cases = faults(known)
    assert len(cases) > 50
    refused(lambda change: dataclasses.replace(known, **change), cases)


def test_means_must_fit_the_rules(add_means, refused):
    cases = [(change, told) for change, told in faults(add_means) if list(change) == ["means"]]
    assert len(cases) == 13
    refused(lambda change: dataclasses.replace(add_means, **change), cases)


def test_a_split_needs_two_children(known):
    names = ("parents", "birth", "score", "objective", "rules", "info", "notes")
    parts = {name: getattr(known, name)[:2] for name in names}
    with pytest.raises(ValueError, match="two children"):
        Taxonomy(**parts, order=known.order, start=[0, 0], stop=[10, 10])


def test_the_tree_of_a_model():
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = Taxarbor(3, random_state=0)
    for one in (model, make_pipeline(StandardScaler(), model)):
        with pytest.raises(NotFittedError, match="this Taxarbor is not fitted yet: call fit"):
            taxonomy_of(one)
    pipeline = make_pipeline(StandardScaler(), model).fit(X)
    assert taxonomy_of(model) is taxonomy_of(model.taxonomy_) is model.taxonomy_
    with pytest.raises(TypeError, match=r"got a pipeline.*pass pipeline\[-1\]"):
        taxonomy_of(pipeline)
    for other in (KMeans(), KMeans(2, n_init=1).fit(X), None, X):
        with pytest.raises(TypeError, match=r"expected a fitted model .*taxarbor\.exchange"):
            taxonomy_of(other)


# Cuts and prunings.


def test_cuts_of_the_known_tree(known):
    assert known.cut(1).tolist() == known.cut(2).tolist() == [0] * 10
    assert known.cut(3).tolist() == [2, 0, 1, 1, 0, 1, 2, 0, 1, 1]
    assert known.cut(np.int64(4)).tolist() == known.labels.tolist()
    assert known.cut(depth=0).tolist() == [0] * 10
    assert known.cut(depth=1).tolist() == known.cut(3).tolist()
    for depth in (2, 99):
        assert known.cut(depth=depth).tolist() == known.labels.tolist()


def test_cuts_that_cannot_be(known, refused):
    cases = [({"n_clusters": n}, f"number of leaves, 4, got {n}") for n in (0, -1, 5)]
    cases += [({"depth": -1}, "0 or more"), ({}, "either")]
    cases += [({"n_clusters": 2, "depth": 1}, "either")]
    for method in (known.cut, known.prune):
        refused(lambda limits, method=method: method(**limits), cases)
        with pytest.raises(TypeError):
            method(2.5)


def limits_of(tree):
    """Return all ways to cut a tree."""
    by_number = [{"n_clusters": n} for n in range(1, tree.n_leaves + 1)]
    return by_number + [{"depth": d} for d in range(tree.height + 1)]


@given(data=st.data())
def test_cuts_nest(trees, data):
    tree = data.draw(trees)
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


@given(data=st.data())
def test_pruning_is_cutting(trees, same, data):
    tree = data.draw(trees)
    for limit in limits_of(tree):
        pruned = tree.prune(**limit)
        np.testing.assert_array_equal(pruned.labels, tree.cut(**limit))
        same(pruned, pruned.prune(pruned.n_leaves))
        same(pruned, tree.prune(**limit).prune(depth=pruned.height))
    same(tree, tree.prune(tree.n_leaves))
    same(tree, tree.prune(depth=tree.height))
    many = data.draw(st.integers(1, tree.n_leaves))
    few = data.draw(st.integers(1, tree.prune(many).n_leaves))
    same(tree.prune(few), tree.prune(many).prune(few))


@given(data=st.data())
def test_pruned_nodes_keep_what_is_known_of_them(trees, data):
    tree = data.draw(trees)
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
    assert pruned.feature_names == tree.feature_names
    assert (pruned.means is None) == (tree.means is None)
    if tree.means is not None:
        np.testing.assert_array_equal(pruned.means, tree.means[kept])
    assert (np.argsort(tree.birth[kept], kind="stable") == np.arange(len(kept))).all()


def test_pruning_the_known_tree(known, add_means):
    tree = known.prune(3)
    text = known.to_text(max_depth=1).replace("[2 clusters]", "[c1]").replace("c3", "c2")
    assert tree.to_text() == text
    assert tree.rules == (known.rules[0], None, None, None)
    assert tree.notes == ("", "too few rows", "", "")
    assert known.prune(2).n_nodes == 1
    assert known.prune(np.int64(1)).info == known.info[:1]
    for pruned in (add_means.prune(1), add_means.prune(depth=0)):
        assert pruned.predict(np.ones((2, 2))).tolist() == [0, 0]


@given(data=st.data())
def test_pruned_trees_predict_the_cut_of_what_is_predicted(ruled_trees, data):
    tree = data.draw(ruled_trees)
    X = np.random.default_rng(1).normal(scale=1e8, size=(30, tree.n_features or 1))
    # Of each leaf, the first of its rows: where the cut puts that, it puts the leaf.
    first = tree.order[tree.start[tree.leaves]]
    for limit in limits_of(tree):
        pruned = tree.prune(**limit)
        expected = tree.cut(**limit)[first][tree.predict(X)]
        np.testing.assert_array_equal(pruned.predict(X), expected)


def test_splits_are_counted_anew_when_pruned_by_depth():
    builder = TreeBuilder(5)
    builder.add_split(0, [0, 0, 0, 1, 1])
    builder.add_split(1, [0, 0, 1])
    builder.add_split(3, [0, 1])
    assert builder.freeze().prune(depth=2).birth.tolist() == [0, 1, 1, 2, 2]
    builder.add_split(2, [0, 1])
    tree = builder.freeze().prune(depth=2)
    assert tree.parents.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert tree.birth.tolist() == [0, 1, 1, 2, 2, 3, 3]


def test_growing_less_is_pruning():
    for branching in (2, 3):
        X = np.random.default_rng(branching).normal(size=(90, 5))
        large, *small = (
            HMMC(n, branching=branching, random_state=0).fit(X).taxonomy_ for n in (9, 7, 5, 3)
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
