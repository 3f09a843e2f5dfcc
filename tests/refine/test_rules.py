"""Rules that reproduce a division by few features."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from taxarbor.exchange import to_json
from taxarbor.grow import Run, StoppingRule, grow
from taxarbor.hierarchy._follows import measured
from taxarbor.refine import Coordinates, Sparsity, find_rules
from taxarbor.refine._rules import LEAST, SAMPLE, _sample, find_rule
from taxarbor.split import GapSplitter

KINDS = ("dense", "csr")


def find(rows, labels, novelty=1.0, most=None, usage=None):
    usage = np.zeros(rows.n_features) if usage is None else usage
    return find_rule(rows, labels, Sparsity(novelty, most), usage, np.random.default_rng(0))


def blobs(n_children=2, n_rows=200, n_features=12, n_telling=3, distance=4.0, seed=0):
    """Return rows of which the first features tell the children apart, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_children
    X = rng.standard_normal((n_rows, n_features)) + 7.0
    middles = np.zeros((n_children, n_features))
    middles[:, :n_telling] = rng.standard_normal((n_children, n_telling))
    return X + distance * middles[labels], labels


def used(rule):
    return set(np.flatnonzero(rule.weights.any(axis=0)).tolist())


def share(X, labels, rule):
    sent = ((X - rule.center) @ rule.weights.T + rule.offsets).argmax(axis=1)
    return float(np.mean(sent == labels))


# ---- one node ----


def test_a_clear_division_is_reproduced(rows_of):
    for kind in KINDS:
        for K in (2, 3, 4):
            X, labels = blobs(K, distance=8.0)
            rows = rows_of(X, kind)
            rule = find(rows, labels)
            assert rule.weights.shape == (K, X.shape[1])
            assert used(rule) <= {0, 1, 2}
            assert share(X, labels, rule) >= 0.95


def test_the_budget_is_kept(rows_of):
    for K in (2, 3, 5):
        for distance in (0.0, 1.0, 4.0):
            X, labels = blobs(K, n_features=20, n_telling=8, distance=distance, seed=3)
            for most in (1, 2, 5):
                assert 1 <= len(used(find(rows_of(X), labels, most=most))) <= most


def test_more_features_hardly_tell_less(rows_of):
    for K in (2, 3):
        X, labels = blobs(K, n_features=20, n_telling=8, distance=0.8, seed=4)
        rules = [find(rows_of(X), labels, most=most) for most in (1, 2, 5, 12)]
        shares = [share(X, labels, rule) for rule in rules]
        assert shares[-1] > shares[0]
        assert min(np.diff(shares)) >= -0.02
    for seed in range(5):  # nor are more used where they do not help
        X, labels = blobs(n_telling=2, distance=1.5, seed=seed)
        few, many = (find(rows_of(X), labels, most=most) for most in (4, 12))
        assert len(used(few)) <= 4
        assert share(X, labels, many) >= share(X, labels, few) - 0.02


def test_features_of_ancestors_are_avoided(rows_of):
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 6))
    X[:, 0] += 9.0 * labels
    X[:, 1] += 7.0 * labels
    usage = np.eye(6)[0]
    assert 0 in used(find(rows_of(X), labels, novelty=0.0, usage=usage))
    rule = find(rows_of(X), labels, novelty=20.0, usage=usage)
    assert 0 not in used(rule)
    assert share(X, labels, rule) >= 0.95


def test_constant_columns_get_no_weight(rows_of):
    for dtype in ("float32", "float64"):
        for K in (2, 3):
            X, labels = blobs(K, distance=1.0)
            X = np.insert(X, [0, 5], [0.1, 1e4 / 3], axis=1).astype(dtype)
            for kind in KINDS:
                rule = find(rows_of(X, kind), labels, usage=np.ones(X.shape[1]))
                assert not used(rule) & {0, 6}
                assert used(rule)
                parts = rule.weights, rule.center, rule.offsets
                assert {part.dtype for part in parts} == {np.dtype(dtype)}


def test_the_scale_is_not_seen(rows_of):
    for K in (2, 3):
        X, labels = blobs(K, distance=1.0)
        one = find(rows_of(X), labels)
        close = 1e-4 * np.abs(one.weights).max()
        for factor in (1e-3, 1000.0):
            other = find(rows_of(X * factor), labels)
            assert used(one) == used(other)
            np.testing.assert_allclose(other.weights * factor, one.weights, atol=close)


def test_a_small_child_is_seen(rows_of):
    """Of a thousand rows five are another cluster: the threshold lies in the gap."""
    X = np.random.default_rng(0).standard_normal((1000, 4))
    labels = (np.arange(1000) < 5).astype(np.intp)
    X[:5, 2] += 30.0
    rule = find(rows_of(X), labels)
    assert share(X, labels, rule) == 1.0
    assert used(rule) == {2}


def test_a_sample_has_rows_of_each_child():
    labels = np.zeros(20_000, dtype=np.intp)
    labels[:40], labels[40:50] = 1, 2
    chosen = _sample(labels, np.random.default_rng(0))
    assert (np.diff(chosen) > 0).all()
    counts = np.bincount(labels[chosen], minlength=3)
    assert LEAST <= counts[1] <= 40
    assert counts[2] == 10
    assert SAMPLE <= len(chosen) <= SAMPLE + 2 * LEAST
    few = np.zeros(SAMPLE, dtype=np.intp)
    np.testing.assert_array_equal(_sample(few, np.random.default_rng(0)), np.arange(SAMPLE))


def test_the_threshold_is_the_best_one(rows_of):
    """On one feature all cuts can be tried: no other sends more rows the right way."""
    for kind in KINDS:
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = np.round(rng.standard_normal((60, 1)), 1)  # with ties
            labels = (rng.standard_normal(60) > 1.5 * X[:, 0]).astype(np.intp)
            rule = find(rows_of(X, kind), labels)
            values = np.unique(X)
            inside = (values[1:] + values[:-1]) / 2
            cuts = np.concatenate(([values[0] - 1], inside, [values[-1] + 1]))
            falls = rule.weights[0, 0] < 0.0
            best = max(np.mean(((X[:, 0] > cut) == falls) == labels) for cut in cuts)
            assert share(X, labels, rule) == pytest.approx(best)
            scores = (X - rule.center) @ rule.weights.T + rule.offsets
            assert np.abs(scores[:, 0] - scores[:, 1]).min() > 0.0  # in a gap, not on a row


def test_one_feature_is_enough_where_one_tells_all(rows_of):
    """Thirty features say the same: along a path they would all come in at once."""
    labels = np.repeat([0, 1], 100)
    for noise in (0.0, 1.0):
        X = np.where(labels[:, None] == 0, -4.0, 4.0) * np.ones((200, 30))
        X += noise * np.random.default_rng(0).standard_normal(X.shape)
        rule = find(rows_of(X), labels)
        assert len(used(rule)) == 1
        assert share(X, labels, rule) == 1.0


def test_children_of_equal_means_have_a_rule(rows_of):
    X = np.array([[0.0, 0.0, 1.0], [2.0, 2.0, 1.0], [0.0, 2.0, 1.0], [2.0, 0.0, 1.0]] * 3)
    rule = find(rows_of(X), np.array([0, 0, 1, 1] * 3), most=1)
    assert len(used(rule)) == 1
    assert used(rule) <= {0, 1}


# ---- a tree ----


def explained(rows, sparsity, run, branching=2):
    coordinates, stop = Coordinates.of(rows, 0), StoppingRule(n_leaves=9)
    splitter = GapSplitter(n_init=1)
    tree = grow(coordinates.rows, splitter, branching=branching, stop=stop, run=run)
    find_rules(tree, rows, sparsity, run)
    return measured(tree.freeze(), rows)


def test_every_split_has_a_rule_and_its_fidelity_by_hand(rows_of, data):
    sparsity = Sparsity(2.0, 4)
    for X in (data["animals"], data["cloud"]):
        for kind in KINDS:
            for branching in (2, 3):
                rows = rows_of(X, kind)
                tree = explained(rows, sparsity, Run(), branching)
                inner = [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]
                assert [node for node in range(tree.n_nodes) if tree.rules[node]] == inner
                for node in inner:
                    rule, right = tree.rules[node], 0
                    assert 1 <= len(used(rule)) <= 4
                    for position, child in enumerate(tree.children(node)):
                        own = X[tree.rows(child)]
                        scores = (own - rule.center) @ rule.weights.T + rule.offsets
                        right += int(np.sum(scores.argmax(axis=1) == position))
                    expected = right / tree.sizes[node]
                    assert tree.fidelity[node] == pytest.approx(expected, abs=1e-12)
                assert np.isnan(np.delete(tree.fidelity, inner)).all()


def overlap(tree):
    """Return how many features rules share with the ones above them."""
    total = 0
    for node in range(1, tree.n_nodes):
        if tree.rules[node]:
            above = set().union(*(used(tree.rules[a]) for a in tree.path(node)[:-1]))
            total += len(above & used(tree.rules[node]))
    return total


def test_novelty_avoids_the_features_above(rows_of, data):
    for name in ("animals", "cloud", "middle"):
        rows = rows_of(data[name])
        low, high = (overlap(explained(rows, Sparsity(n), Run())) for n in (0.0, 30.0))
        assert high < low


def test_rules_do_not_depend_on_how_they_are_sought(rows_of, data):
    for name in ("animals", "wide"):
        plain = to_json(explained(rows_of(data[name]), Sparsity(), Run()))
        with ThreadPoolExecutor(3) as pool:
            for n_threads in (1, 2):
                rows = rows_of(data[name], n_threads=n_threads)
                assert to_json(explained(rows, Sparsity(), Run(pool=pool))) == plain
