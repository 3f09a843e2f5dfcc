"""Rules that choose among nodes further down than the children of their node."""

import dataclasses
import json

import numpy as np
import pytest

from taxarbor import Taxarbor
from taxarbor._errors import FileFormatError
from taxarbor.exchange import to_dot, to_json
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit import drop_rows, regroup, resize, round_thresholds
from taxarbor.taxonomy._file import _write_archive
from taxarbor.taxonomy._routing import add_means
from taxarbor.tree import LinearRule, TreeBuilder
from taxarbor.tree._rule import unscale_rule

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
    taxonomy = Taxonomy(builder.freeze())
    taxonomy = regroup(drop_rows(taxonomy), taxonomy.predict(X))
    return add_means(taxonomy, X, taxonomy.tree.labels), X


def walk_down(tree, node, ruled):
    """Return the frontier of a node, by recursion."""
    frontier = []
    for child in tree.children(node):
        is_end = child in ruled or not tree.children(child)
        frontier += [child] if is_end else walk_down(tree, child, ruled)
    return frontier


def with_rules(taxonomy, rules):
    tree = dataclasses.replace(taxonomy.tree, rules=rules)
    return dataclasses.replace(taxonomy, tree=tree)


def ruled_nodes(taxonomy):
    return {node for node, rule in enumerate(taxonomy.tree.rules) if rule is not None}


def route(taxonomy, x):
    """Return the leaf of a row by brute force."""
    node, ruled = taxonomy.tree.root, ruled_nodes(taxonomy)
    while taxonomy.tree.children(node):
        rule = taxonomy.tree.rules[node]
        best = ((x - rule.center) @ rule.weights.T + rule.offsets).argmax()
        node = walk_down(taxonomy.tree, node, ruled)[rule.targets[best]]
    return node


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


def test_targets_that_make_no_rule(refused):
    W, center = np.eye(3), np.zeros(3)
    cases = [
        [0, 1],
        [0.0, 1.0, 2.0],
        [0, 0, 0],
        [1, 2, 3],
        [0, 2, 3],
        [0, 1, 0],
    ]
    refused(lambda targets: LinearRule(W, center, None, targets), cases)
    rule = LinearRule(W, center, targets=[0, 0, 1])
    assert (rule.n_scores, rule.n_targets) == (3, 2)
    assert unscale_rule(rule, center, np.full(3, 2.0)).targets.tolist() == [0, 0, 1]


def test_rules_that_do_not_fit_the_tree(refused, three_nodes):
    taxonomy, _ = three_nodes
    root, _, other = taxonomy.tree.rules[:3]
    none = [None] * 4
    cases = [
        (root, None, None, *none),
        (other, None, other, *none),
        (root, other, other, *none),
        (root, None, root, *none),
        (None, None, other, *none),
        (root, None, other, *none[1:], other),
    ]
    refused(lambda rules: with_rules(taxonomy, rules), cases)


def test_rows_go_where_the_best_scores_lead():
    for seed in SEEDS:
        for dtype in ("float64", "float32"):
            taxonomy, X = grow(seed, dtype=dtype)
            ruled = ruled_nodes(taxonomy)
            for node in ruled:
                expected = walk_down(taxonomy.tree, node, ruled)
                assert list(taxonomy.tree.frontier(node)) == expected
            assert taxonomy.tree.leaves[taxonomy.predict(X)].tolist() == [
                route(taxonomy, x) for x in X
            ]
            assert taxonomy.predict(X).tolist() == taxonomy.tree.labels.tolist()


def test_a_path_has_the_nodes_in_between(four_clusters):
    taxonomy, X = four_clusters
    visits = taxonomy.decision_path(X).toarray()
    assert visits.sum(axis=1).tolist() == [3] * 20
    assert (
        visits.nonzero()[1].reshape(20, 3)[:, 2] == taxonomy.tree.leaves[taxonomy.tree.labels]
    ).all()


def test_a_pruned_tree_sends_rows_to_the_nodes_that_are_left():
    n_merged = 0
    for seed in SEEDS:
        taxonomy, X = grow(seed)
        new = np.random.default_rng(seed).normal(size=(200, N_FEATURES))
        cuts = [{"n_clusters": k} for k in range(1, taxonomy.tree.n_leaves + 1)]
        cuts += [{"depth": depth} for depth in range(taxonomy.tree.height + 1)]
        for cut in cuts:
            pruned = taxonomy.prune(**cut)
            assert (pruned.predict(X) == taxonomy.cut(**cut)).all()
            # New rows: the leaf of the whole tree lies in that of the pruned one.
            begins = taxonomy.tree.start[taxonomy.tree.leaves[taxonomy.predict(new)]]
            ends = pruned.tree.stop[pruned.tree.leaves]
            assert (pruned.predict(new) == np.searchsorted(ends, begins, "right")).all()
            n_merged += any(
                r is not None and r.n_scores > r.n_targets for r in pruned.tree.rules
            )
            if pruned.tree.n_leaves > 1:
                again = pruned.prune(max(pruned.tree.n_leaves - 1, 1))
                assert (again.predict(X) == pruned.cut(max(pruned.tree.n_leaves - 1, 1))).all()
            P = pruned.predict_proba(new)
            assert (P.argmax(axis=1) == pruned.predict(new)).all()
    assert n_merged > 10


def test_probabilities_are_highest_where_rows_go():
    for seed in SEEDS:
        taxonomy, X = grow(seed)
        for one in (taxonomy, dataclasses.replace(taxonomy, means=None)):
            P = one.predict_proba(X)
            assert (P.argmax(axis=1) == one.predict(X)).all()
            np.testing.assert_allclose(P.sum(axis=1), 1.0)
            nodes = one.node_proba(P)
            for node in range(one.tree.n_nodes):
                below = [
                    k
                    for k in range(one.tree.n_leaves)
                    if node in one.tree.path(one.tree.leaves[k])
                ]
                np.testing.assert_allclose(nodes[:, node], P[:, below].sum(axis=1))


def test_probabilities_of_one_rule_are_a_softmax_of_its_margins(four_clusters):
    taxonomy, X = four_clusters
    taxonomy = dataclasses.replace(taxonomy, temperature=1.0)
    P = np.log(taxonomy.predict_proba(X))
    rule = taxonomy.tree.rules[0]
    scores = (X - rule.center) @ rule.weights.T + rule.offsets
    lost = np.sort(scores, axis=1)[:, :-1] - scores.max(axis=1, keepdims=True)
    found = np.sort(P, axis=1)[:, :-1]
    unit = (lost[0, 1] - lost[0, 0]) / (found[0, 1] - found[0, 0])
    np.testing.assert_allclose(np.diff(found), np.diff(lost) / unit, rtol=1e-6)


def test_files_and_json_hold_the_frontier(tmp_path, same):
    for seed in SEEDS:
        taxonomy, _ = grow(seed)
        pruned = taxonomy.prune(max(2, taxonomy.tree.n_leaves // 2))
        for one in (taxonomy, pruned):
            one.save(tmp_path / "tree")
            same(Taxonomy.load(tmp_path / "tree"), one)
            for node in json.loads(to_json(one))["nodes"]:
                frontier, rule = one.tree.frontier(node["id"]), one.tree.rules[node["id"]]
                assert (node["rule"] is None) == (rule is None)
                if rule is not None:
                    expected = [frontier[target] for target in rule.targets]
                    assert node["rule"]["targets"] == expected


def test_damaged_rules_are_refused(tmp_path, refused, three_nodes):
    taxonomy, _ = three_nodes
    state = taxonomy.__getstate__()
    cases = [
        {"rule_nodes": np.array([0, 0])},
        {"rule_nodes": np.array([0, 7])},
        {"rule_nodes": np.array([0])},
        {"targets": state["targets"][1:]},
        {"targets": state["targets"] * 0},
        {"offsets": state["offsets"][:-1]},
        {"rule_nodes": np.array([1, 2])},
    ]

    def damage(change):
        with (tmp_path / "tree").open("wb") as file:
            _write_archive(file, state | change)
        Taxonomy.load(tmp_path / "tree")

    refused(damage, cases, FileFormatError)


def test_leaves_drop_rows_go_and_other_rows_stay_where_they_were():
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
    rule, total, n_rows = taxonomy.tree.rules[decider], np.zeros(N_FEATURES), 0
    for place, below in enumerate(taxonomy.tree.frontier(decider)):
        if node in taxonomy.tree.path(below):
            total += taxonomy.tree.sizes[below] * rule.weights[rule.targets == place].mean(
                axis=0
            )
            n_rows += taxonomy.tree.sizes[below]
    return total / n_rows


def test_reasons_are_the_mean_weights_below_a_node():
    for seed in SEEDS:
        taxonomy, X = grow(seed)
        taxonomy = taxonomy.prune(max(2, taxonomy.tree.n_leaves - seed % 3))
        for node in range(1, taxonomy.tree.n_nodes):
            parent = taxonomy.tree.parent(node)
            decider = taxonomy.tree.decided_by(parent)
            is_plain = taxonomy.tree.rules[decider].n_scores == len(
                taxonomy.tree.children(parent)
            )
            is_plain = is_plain and decider == parent
            if is_plain:
                continue  # as before: tested with other reasons
            contrast = mean_weights(taxonomy, node, decider) - mean_weights(
                taxonomy, parent, decider
            )
            rest = np.setdiff1d(taxonomy.tree.rows(parent), taxonomy.tree.rows(node))
            gap = X[taxonomy.tree.rows(node)].mean(axis=0) - X[rest].mean(axis=0)
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
    builder.explain(0, LinearRule.nearest(np.array([[0.0], [1.0], [5.0], [6.0]])))
    taxonomy = Taxonomy(builder.freeze(feature_names=["age"]))
    taxonomy = add_means(taxonomy, X, taxonomy.tree.labels)
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


def test_words_say_what_a_rule_chooses_among(four_clusters, three_nodes):
    taxonomy, _ = four_clusters
    words = "(its rule chooses among 4 clusters by 2 features)"
    assert taxonomy.to_text().splitlines()[0].endswith(words)
    assert taxonomy.to_text().count("its rule") == 1
    assert words in taxonomy._repr_html_()
    assert words[1:-1] in to_dot(taxonomy)
    assert "lower a" in taxonomy.to_text().splitlines()[1]
    taxonomy, _ = three_nodes
    assert "(its rule chooses among 3 nodes by 2 features)" in taxonomy.to_text()
    assert taxonomy.to_text().count("its rule") == 1
    assert "its rule" not in taxonomy.prune(2).to_text()


def test_a_large_tree_in_a_notebook_speaks_of_the_whole_one():
    builder = TreeBuilder(130)
    for node in [0, *range(2, 257, 2)]:
        builder.cut(node, [builder._nodes[node].start + 1])
    W = np.random.default_rng(0).normal(size=(130, 3))
    builder.explain(0, LinearRule(W, np.zeros(3)))
    taxonomy = Taxonomy(builder.freeze())
    assert "its rule chooses among 130 clusters by 3 features" in taxonomy._repr_html_()


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_words_are_true_of_the_rows_of_tables(make_cars):
    """Of categories and missing values as well: with one rule among all clusters."""
    n_seen = 0
    for seed in range(3):
        table = make_cars(seed, 300)
        taxonomy = Taxarbor(8, random_state=0).fit(table).taxonomy_
        points = taxonomy.means[taxonomy.tree.leaves]
        scale = np.where(points.std(axis=0) > 0, points.std(axis=0), 1.0)
        rule = LinearRule.nearest(points / scale)
        rule = LinearRule(rule.weights / scale, rule.center * scale, rule.offsets)
        taxonomy = with_rules(taxonomy, (rule, *[None] * (taxonomy.tree.n_nodes - 1)))
        taxonomy = taxonomy.prune(6).attach(table)
        for node in range(1, taxonomy.tree.n_nodes):
            rows = taxonomy.tree.rows(node)
            rest = np.setdiff1d(taxonomy.tree.rows(taxonomy.tree.parent(node)), rows)
            for reason in taxonomy.reasons(node):
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
