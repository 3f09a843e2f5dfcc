"""Rules that choose among nodes further down than the children of their node."""

import dataclasses
import json
from io import BytesIO

import numpy as np
import pytest

from taxarbor import Taxarbor
from taxarbor._errors import FileFormatError
from taxarbor.exchange import to_dot, to_json
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit import drop_rows, regroup, resize
from taxarbor.taxonomy._routing import add_means
from taxarbor.taxonomy._thresholds import round_thresholds
from taxarbor.tree import LinearRule, TreeBuilder
from taxarbor.tree._rule import unscaled

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
        frontier = walk_down(builder, node, ruled)
        W = rng.normal(size=(len(frontier), N_FEATURES)) * (rng.random(N_FEATURES) < 0.8)
        offsets = rng.normal(size=len(frontier)) / 4
        parts = (W, np.zeros(N_FEATURES), offsets)
        builder.explain(node, LinearRule(*(part.astype(dtype) for part in parts)))
    tree = builder.freeze()
    tree = regroup(drop_rows(tree), tree.predict(X))
    return add_means(tree, X, tree.labels), X


def walk_down(tree, node, ruled):
    """Return the frontier of a node, by recursion."""
    found = []
    for child in tree.children(node):
        is_end = child in ruled or not tree.children(child)
        found += [child] if is_end else walk_down(tree, child, ruled)
    return found


def ruled_nodes(tree):
    return {node for node, rule in enumerate(tree.rules) if rule is not None}


def route(tree, x):
    """Return the leaf of a row by brute force."""
    node, ruled = tree.root, ruled_nodes(tree)
    while tree.children(node):
        rule = tree.rules[node]
        best = ((x - rule.center) @ rule.weights.T + rule.offsets).argmax()
        node = walk_down(tree, node, ruled)[rule.targets[best]]
    return node


def test_who_decides_and_among_what(four_clusters, three_nodes):
    tree, _ = four_clusters
    assert tree.frontier(0) == (3, 4, 5, 6) == tuple(tree.leaves)
    assert [tree.decided_by(node) for node in range(7)] == [0, 0, 0, None, None, None, None]
    assert tree.n_features_used.tolist() == [2, 0, 0, 0, 0, 0, 0]
    tree, _ = three_nodes
    assert [tree.frontier(node) for node in range(4)] == [(3, 4, 2), (), (5, 6), ()]
    assert [tree.decided_by(node) for node in range(4)] == [0, 0, 2, None]
    bare = dataclasses.replace(tree, rules=(None,) * 7)
    assert [bare.decided_by(0), bare.frontier(0)] == [None, ()]
    for method in (tree.decided_by, tree.frontier):
        with pytest.raises(IndexError, match="there is no node 7"):
            method(7)


def test_targets_that_make_no_rule(refused):
    W, center = np.eye(3), np.zeros(3)
    cases = [
        ([0, 1], "shape"),
        ([0.0, 1.0, 2.0], "integers"),
        ([0, 0, 0], "two targets"),
        ([1, 2, 3], "start at 0"),
        ([0, 2, 3], "grow by 1"),
        ([0, 1, 0], "grow by 1"),
    ]
    refused(lambda targets: LinearRule(W, center, None, targets), cases)
    rule = LinearRule(W, center, targets=[0, 0, 1])
    assert (rule.n_scores, rule.n_targets) == (3, 2)
    assert unscaled(rule, center, np.full(3, 2.0)).targets.tolist() == [0, 0, 1]


def test_rules_that_do_not_fit_the_tree(refused, three_nodes):
    tree, _ = three_nodes
    root, _, other = tree.rules[:3]
    none = [None] * 4
    cases = [
        ((root, None, None, *none), "that of node 0"),
        ((other, None, other, *none), "that of node 0"),
        ((root, other, other, *none), "that of node 0"),
        ((root, None, root, *none), "that of node 2"),
        ((None, None, other, *none), "the root must have a rule"),
        ((root, None, other, *none[1:], other), "a leaf must have no rule"),
    ]
    refused(lambda rules: dataclasses.replace(tree, rules=rules), cases)


def test_rows_go_where_the_best_scores_lead():
    for seed in SEEDS:
        for dtype in ("float64", "float32"):
            tree, X = grow(seed, dtype=dtype)
            ruled = ruled_nodes(tree)
            for node in ruled:
                assert list(tree.frontier(node)) == walk_down(tree, node, ruled)
            assert tree.leaves[tree.predict(X)].tolist() == [route(tree, x) for x in X]
            assert tree.predict(X).tolist() == tree.labels.tolist()


def test_a_path_has_the_nodes_in_between(four_clusters):
    tree, X = four_clusters
    visits = tree.decision_path(X).toarray()
    assert visits.sum(axis=1).tolist() == [3] * 20
    assert (visits.nonzero()[1].reshape(20, 3)[:, 2] == tree.leaves[tree.labels]).all()


def test_a_pruned_tree_sends_rows_to_the_nodes_that_are_left():
    n_merged = 0
    for seed in SEEDS:
        tree, X = grow(seed)
        new = np.random.default_rng(seed).normal(size=(200, N_FEATURES))
        cuts = [{"n_clusters": k} for k in range(1, tree.n_leaves + 1)]
        cuts += [{"depth": depth} for depth in range(tree.height + 1)]
        for cut in cuts:
            pruned = tree.prune(**cut)
            assert (pruned.predict(X) == tree.cut(**cut)).all()
            # New rows: the leaf of the whole tree lies in that of the pruned one.
            begins = tree.start[tree.leaves[tree.predict(new)]]
            ends = pruned.stop[pruned.leaves]
            assert (pruned.predict(new) == np.searchsorted(ends, begins, "right")).all()
            n_merged += any(r is not None and r.n_scores > r.n_targets for r in pruned.rules)
            if pruned.n_leaves > 1:
                again = pruned.prune(max(pruned.n_leaves - 1, 1))
                assert (again.predict(X) == pruned.cut(max(pruned.n_leaves - 1, 1))).all()
            P = pruned.predict_proba(new)
            assert (P.argmax(axis=1) == pruned.predict(new)).all()
    assert n_merged > 10


def test_probabilities_are_highest_where_rows_go():
    for seed in SEEDS:
        tree, X = grow(seed)
        for one in (tree, dataclasses.replace(tree, means=None)):
            P = one.predict_proba(X)
            assert (P.argmax(axis=1) == one.predict(X)).all()
            np.testing.assert_allclose(P.sum(axis=1), 1.0)
            nodes = one.node_proba(P)
            for node in range(one.n_nodes):
                below = [k for k in range(one.n_leaves) if node in one.path(one.leaves[k])]
                np.testing.assert_allclose(nodes[:, node], P[:, below].sum(axis=1))


def test_probabilities_of_one_rule_are_a_softmax_of_its_margins(four_clusters):
    tree, X = four_clusters
    tree = dataclasses.replace(tree, temperature=1.0)
    P = np.log(tree.predict_proba(X))
    rule = tree.rules[0]
    scores = (X - rule.center) @ rule.weights.T + rule.offsets
    lost = np.sort(scores, axis=1)[:, :-1] - scores.max(axis=1, keepdims=True)
    found = np.sort(P, axis=1)[:, :-1]
    unit = (lost[0, 1] - lost[0, 0]) / (found[0, 1] - found[0, 0])
    np.testing.assert_allclose(np.diff(found), np.diff(lost) / unit, rtol=1e-6)


def test_files_and_json_hold_the_frontier(tmp_path, same):
    for seed in SEEDS:
        tree, _ = grow(seed)
        pruned = tree.prune(max(2, tree.n_leaves // 2))
        for one in (tree, pruned):
            one.save(tmp_path / "tree")
            same(Taxonomy.load(tmp_path / "tree"), one)
            for node in json.loads(to_json(one))["nodes"]:
                frontier, rule = one.frontier(node["id"]), one.rules[node["id"]]
                assert (node["rule"] is None) == (rule is None)
                if rule is not None:
                    expected = [frontier[target] for target in rule.targets]
                    assert node["rule"]["targets"] == expected


def test_damaged_rules_are_refused(tmp_path, refused, three_nodes):
    tree, _ = three_nodes
    state = tree.__getstate__()
    cases = [
        ({"rule_nodes": np.array([0, 0])}, "rule_nodes"),
        ({"rule_nodes": np.array([0, 7])}, "rule_nodes"),
        ({"rule_nodes": np.array([0])}, "cannot load"),
        ({"targets": state["targets"][1:]}, "fit together"),
        ({"targets": state["targets"] * 0}, "cannot load"),
        ({"offsets": state["offsets"][:-1]}, "fit together"),
        ({"rule_nodes": np.array([1, 2])}, "the root must have a rule"),
    ]

    def damage(change):
        np.savez(path := BytesIO(), **(state | change))
        (tmp_path / "tree").write_bytes(path.getvalue())
        Taxonomy.load(tmp_path / "tree")

    refused(damage, cases, FileFormatError)


def test_leaves_drop_rows_go_and_other_rows_stay_where_they_were():
    for seed in SEEDS:
        tree, X = grow(seed)
        rng = np.random.default_rng(seed)
        for _ in range(8):
            left = rng.random(tree.n_leaves) < rng.random()
            left[rng.integers(tree.n_leaves)] = True
            smaller = resize(tree, np.where(left, 3, 0))
            assert smaller.n_leaves == left.sum()
            new_label = np.cumsum(left) - 1
            rows = left[tree.labels]
            assert (smaller.predict(X[rows]) == new_label[tree.labels[rows]]).all()
            again = regroup(drop_rows(tree), tree.labels[rows])
            assert again.labels.tolist() == again.predict(X[rows]).tolist()


def mean_weights(tree, node, decider):
    """Return the mean of the weights of a rule that lead below a node, by rows."""
    rule, total, n_rows = tree.rules[decider], np.zeros(N_FEATURES), 0
    for place, below in enumerate(tree.frontier(decider)):
        if node in tree.path(below):
            total += tree.sizes[below] * rule.weights[rule.targets == place].mean(axis=0)
            n_rows += tree.sizes[below]
    return total / n_rows


def test_reasons_are_the_mean_weights_below_a_node():
    for seed in SEEDS:
        tree, X = grow(seed)
        tree = tree.prune(max(2, tree.n_leaves - seed % 3))
        for node in range(1, tree.n_nodes):
            parent = tree.parent(node)
            decider = tree.decided_by(parent)
            is_plain = tree.rules[decider].n_scores == len(tree.children(parent))
            is_plain = is_plain and decider == parent
            if is_plain:
                continue  # as before: tested with other reasons
            contrast = mean_weights(tree, node, decider) - mean_weights(tree, parent, decider)
            rest = np.setdiff1d(tree.rows(parent), tree.rows(node))
            gap = X[tree.rows(node)].mean(axis=0) - X[rest].mean(axis=0)
            gains = contrast * gap
            for reason in tree.reasons(node, None):
                at = reason.feature
                assert reason.weight == pytest.approx(contrast[at], rel=1e-9)
                assert reason.share == pytest.approx(gains[at] / gains[gains > 0].sum())
                assert (reason.threshold, reason.takes_threshold) == (None, False)
            for reason in tree.reasons(node):
                assert np.sign(gap[reason.feature]) == reason.sign


def test_one_feature_has_no_threshold_where_the_rule_looks_further():
    """Four clusters on a line: one score each, and one feature for all."""
    X = np.array([0.0, 1.0, 5.0, 6.0]).repeat(4)[:, None]
    builder = TreeBuilder(16)
    builder.add_split(0, np.arange(16) // 8)
    for node in (1, 2):
        builder.add_split(node, np.arange(8) // 4)
    builder.explain(0, LinearRule.nearest(np.array([[0.0], [1.0], [5.0], [6.0]])))
    tree = builder.freeze(feature_names=["age"])
    tree = add_means(tree, X, tree.labels)
    for one in (tree, tree.prune(3), tree.prune(2)):
        for node in range(1, one.n_nodes):
            (reason,) = one.reasons(node)
            assert str(reason) in ("lower age", "higher age")
        assert round_thresholds(one, X).rules == one.rules


def test_rows_of_no_weight_have_reasons_as_well(four_clusters):
    tree, _ = four_clusters
    weights = np.where(np.arange(20) < 5, 0.0, 1.0)
    for node in (1, 3, 4):
        (first, *_) = dataclasses.replace(tree, weights=weights).reasons(node, None)
        assert np.isfinite([first.weight, first.share]).all()


def test_words_say_what_a_rule_chooses_among(four_clusters, three_nodes):
    tree, _ = four_clusters
    words = "(its rule chooses among 4 clusters by 2 features)"
    assert tree.to_text().splitlines()[0].endswith(words)
    assert tree.to_text().count("its rule") == 1
    assert words in tree._repr_html_()
    assert words[1:-1] in to_dot(tree)
    assert "lower a" in tree.to_text().splitlines()[1]
    tree, _ = three_nodes
    assert "(its rule chooses among 3 nodes by 2 features)" in tree.to_text()
    assert tree.to_text().count("its rule") == 1
    assert "its rule" not in tree.prune(2).to_text()


def test_a_large_tree_in_a_notebook_speaks_of_the_whole_one():
    builder = TreeBuilder(130)
    for node in [0, *range(2, 257, 2)]:
        builder.cut(node, [builder._nodes[node].start + 1])
    W = np.random.default_rng(0).normal(size=(130, 3))
    builder.explain(0, LinearRule(W, np.zeros(3)))
    tree = builder.freeze()
    assert "its rule chooses among 130 clusters by 3 features" in tree._repr_html_()


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_words_are_true_of_the_rows_of_tables(make_cars):
    """Of categories and missing values as well: with one rule among all clusters."""
    n_seen = 0
    for seed in range(3):
        table = make_cars(seed, 300)
        tree = Taxarbor(8, random_state=0).fit(table).taxonomy_
        points = tree.means[tree.leaves]
        scale = np.where(points.std(axis=0) > 0, points.std(axis=0), 1.0)
        rule = LinearRule.nearest(points / scale)
        rule = LinearRule(rule.weights / scale, rule.center * scale, rule.offsets)
        tree = dataclasses.replace(tree, rules=(rule, *[None] * (tree.n_nodes - 1)))
        tree = tree.prune(6).attach(table)
        for node in range(1, tree.n_nodes):
            rows = tree.rows(node)
            rest = np.setdiff1d(tree.rows(tree.parent(node)), rows)
            for reason in tree.reasons(node):
                column, words = table[reason.name], reason.categories
                assert reason.threshold is None
                if words in (("known",), ("unknown",)):
                    is_so = column.isna() == (words == ("unknown",))
                elif words:
                    is_so = column.where(column.isna(), column.isin(words)).astype(float)
                else:
                    is_so = column.astype(float)
                here, beside = is_so.iloc[rows].mean(), is_so.iloc[rest].mean()
                assert np.isnan(here) or (here - beside) * reason.sign >= 0.0
                if reason.have is not None and not np.isnan(here):
                    assert reason.have == pytest.approx(here)
                n_seen += 1
    assert n_seen > 50
