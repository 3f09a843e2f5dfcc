"""Rules that choose among nodes further down than the children of their node."""

import dataclasses
import json

import numpy as np
import pytest

from taxarbor.exchange import to_dot, to_json
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.edit_taxonomy import regroup, resize, round_thresholds
from taxarbor.tree import LinearRule, TreeBuilder
from taxarbor.tree.rule import unscale_rule
from tests.conftest import describe_tree
from tests.taxonomy.conftest import drop_rows
from tests.tree.conftest import assert_refused, frontier

SEEDS = range(12)
N_FEATURES = 4


def grow(seed, n_leaves=None, n_rows=400, dtype="float64"):
    """Return a random tree of rows that its rules place, with frontiers of all kinds, and X."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES)).astype(dtype)
    builder, leaves = TreeBuilder(64), [0]
    n_leaves = int(rng.integers(2, 14)) if n_leaves is None else n_leaves
    while builder.n_leaves < n_leaves:
        node = leaves.pop(int(rng.integers(len(leaves))))
        size = builder.size(node)
        if size >= 3:
            K = 2 if rng.random() < 0.7 else 3
            leaves += builder.add_split(node, np.arange(size) % K)
    ruled = {0, *(node for node in builder.inner if rng.random() < 0.4)}
    for node in ruled:
        n_targets = len(frontier(builder, node, ruled))
        W = rng.normal(size=(n_targets, N_FEATURES)) * (rng.random(N_FEATURES) < 0.8)
        parts = (W, np.zeros(N_FEATURES), rng.normal(size=n_targets) / 4)
        builder.set_rule(node, LinearRule(*(part.astype(dtype) for part in parts)))
    taxonomy = Taxonomy(builder.freeze())
    taxonomy = regroup(drop_rows(taxonomy), taxonomy.predict(X))
    return describe_tree(taxonomy.tree, X), X


def with_rules(taxonomy, rules):
    return dataclasses.replace(taxonomy, tree=dataclasses.replace(taxonomy.tree, rules=rules))


def test_who_decides_and_among_what(four_clusters, three_nodes):
    taxonomy, _ = four_clusters
    assert taxonomy.tree.frontier(0) == (3, 4, 5, 6) == tuple(taxonomy.tree.leaves)
    assert [taxonomy.tree.decided_by(node) for node in range(7)] == [0] * 3 + [None] * 4
    assert taxonomy.n_features_used.tolist() == [2, 0, 0, 0, 0, 0, 0]
    taxonomy, _ = three_nodes
    assert [taxonomy.tree.frontier(node) for node in range(4)] == [(3, 4, 2), (), (5, 6), ()]
    assert [taxonomy.tree.decided_by(node) for node in range(4)] == [0, 0, 2, None]
    bare = with_rules(taxonomy, (None,) * 7)
    assert [bare.tree.decided_by(0), bare.tree.frontier(0)] == [None, ()]
    for method in (taxonomy.tree.decided_by, taxonomy.tree.frontier):
        with pytest.raises(IndexError):
            method(7)


def test_targets_that_make_no_rule():
    W, center = np.eye(3), np.zeros(3)
    cases = [[0, 1], [0.0, 1.0, 2.0], [0, 0, 0], [1, 2, 3], [0, 2, 3], [0, 1, 0]]
    assert_refused(lambda targets: LinearRule(W, center, None, targets), cases)
    rule = LinearRule(W, center, targets=[0, 0, 1])
    assert (rule.n_scores, rule.n_targets) == (3, 2)
    assert unscale_rule(rule, center, np.full(3, 2.0)).targets.tolist() == [0, 0, 1]


def test_rules_that_do_not_fit_the_tree(three_nodes):
    taxonomy, _ = three_nodes
    root, _, other = taxonomy.tree.rules[:3]
    none = [None] * 4
    starts = (root, None, None), (other, None, other), (root, other, other), (root, None, root)
    cases = [(*start, *none) for start in (*starts, (None, None, other))]
    cases.append((root, None, other, *none[1:], other))
    assert_refused(lambda rules: with_rules(taxonomy, rules), cases)


def test_leaves_without_rows_go_and_others_stay_where_they_were():
    for seed in SEEDS:
        taxonomy, X = grow(seed)
        rng = np.random.default_rng(seed)
        for _ in range(8):
            left = rng.random(taxonomy.tree.n_leaves) < rng.random()
            left[rng.integers(taxonomy.tree.n_leaves)] = True
            smaller = resize(taxonomy, np.where(left, 3, 0))
            assert smaller.tree.n_leaves == left.sum()
            new_label = np.cumsum(left) - 1
            rows = left[taxonomy.tree.labels]
            assert (smaller.predict(X[rows]) == new_label[taxonomy.tree.labels[rows]]).all()
            again = regroup(drop_rows(taxonomy), taxonomy.tree.labels[rows])
            assert again.tree.labels.tolist() == again.predict(X[rows]).tolist()


def mean_weights(taxonomy, node, decider):
    """Return the mean of the weights of a rule that lead below a node, by rows."""
    tree, rule = taxonomy.tree, taxonomy.tree.rules[decider]
    below = [one for one in tree.frontier(decider) if node in tree.path(one)]
    places = [tree.frontier(decider).index(one) for one in below]
    means = [rule.weights[rule.targets == place].mean(axis=0) for place in places]
    return np.average(means, axis=0, weights=tree.sizes[below])


def test_reasons_are_the_mean_weights_below_a_node():
    for seed in SEEDS:
        taxonomy, X = grow(seed)
        taxonomy = taxonomy.prune(max(2, taxonomy.tree.n_leaves - seed % 3))
        tree = taxonomy.tree
        for node in range(1, tree.n_nodes):
            parent = tree.parent(node)
            decider = tree.decided_by(parent)
            if decider == parent and tree.rules[decider].n_scores == len(tree.children(parent)):
                continue  # as before: tested with other reasons
            own, above = (mean_weights(taxonomy, one, decider) for one in (node, parent))
            contrast, rest = own - above, np.setdiff1d(tree.rows(parent), tree.rows(node))
            gap = X[tree.rows(node)].mean(axis=0) - X[rest].mean(axis=0)
            gains = contrast * gap
            for reason in taxonomy.reasons(node, None):
                at = reason.feature
                assert reason.weight == pytest.approx(contrast[at], rel=1e-9)
                assert reason.share == pytest.approx(gains[at] / gains[gains > 0].sum())
                assert (reason.threshold, reason.takes_threshold) == (None, False)
            for reason in taxonomy.reasons(node):
                assert np.sign(gap[reason.feature]) == reason.sign


def test_one_feature_has_no_threshold_where_the_rule_looks_further():
    """Four clusters on a line: one score each, and one feature for all."""
    X = np.array([0.0, 1.0, 5.0, 6.0]).repeat(4)[:, None]
    builder = TreeBuilder(16)
    builder.add_split(0, np.arange(16) // 8)
    for node in (1, 2):
        builder.add_split(node, np.arange(8) // 4)
    builder.set_rule(0, LinearRule.nearest(np.array([[0.0], [1.0], [5.0], [6.0]])))
    taxonomy = describe_tree(builder.freeze(), X, ["age"])
    for one in (taxonomy, taxonomy.prune(3), taxonomy.prune(2)):
        for node in range(1, one.tree.n_nodes):
            (reason,) = one.reasons(node)
            assert str(reason) in ("lower age", "higher age")
        assert round_thresholds(one, X).tree.rules == one.tree.rules


def test_rows_of_no_weight_have_reasons_as_well(four_clusters):
    taxonomy, _ = four_clusters
    weights = np.where(np.arange(20) < 5, 0.0, 1.0)
    for node in (1, 3, 4):
        tree = dataclasses.replace(taxonomy.tree, weights=weights)
        (first, *_) = dataclasses.replace(taxonomy, tree=tree).reasons(node, None)
        assert np.isfinite([first.weight, first.share]).all()


def test_json_has_the_targets(three_nodes):
    nodes = json.loads(to_json(three_nodes[0]))["nodes"]
    targets = [node["rule"] and node["rule"]["targets"] for node in nodes]
    assert targets == [[3, 4, 2], None, [5, 6], None, None, None, None]


def test_words_say_what_a_rule_chooses_among(four_clusters, three_nodes):
    taxonomy, _ = four_clusters
    words = "(its rule chooses among 4 clusters by 2 features)"
    assert taxonomy.to_text().splitlines()[0].endswith(words)
    assert words in taxonomy._repr_html_()
    assert words[1:-1] in to_dot(taxonomy)
    taxonomy, _ = three_nodes
    assert taxonomy.to_text().count("its rule chooses among 3 nodes by 2 features") == 1
    assert "its rule" not in taxonomy.prune(2).to_text()
