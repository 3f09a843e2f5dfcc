"""Rules of few features: one node's, and those that decide a tree."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from taxarbor import GrowthWarning, Taxarbor
from taxarbor._run import Run
from taxarbor.clusters import find_clusters, find_coordinates
from taxarbor.exchange import to_json
from taxarbor.grow import StoppingRule
from taxarbor.hierarchy._route import place_rows
from taxarbor.rows import as_rows
from taxarbor.rules import Sparsity, find_rules
from taxarbor.rules._rules import RIDGE, find_rule
from taxarbor.split import GapSplitter

KINDS = {"dense": np.asarray, "csr": sparse.csr_array}


def make_rows(X, kind="dense"):
    return as_rows(KINDS[kind](X))


def find(
    rows, labels, *, weights=None, penalty_factor=None, price=0.5, max_features=None, owner=None
):
    labels = np.asarray(labels, dtype=np.int32)
    return find_rule(
        rows,
        labels,
        np.ones(rows.n_rows) if weights is None else np.asarray(weights, dtype=np.float64),
        np.ones(rows.n_features)
        if penalty_factor is None
        else np.asarray(penalty_factor, float),
        n_children=int(labels.max()) + 1,
        price=price,
        sparsity=Sparsity(max_features=max_features, owner=owner),
    )


def blobs(n_children=2, n_rows=200, n_features=12, n_telling=3, distance=4.0, seed=0):
    """Return rows of which the first features tell the children apart, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_children
    X = rng.standard_normal((n_rows, n_features)) + 7.0
    middles = np.zeros((n_children, n_features))
    middles[:, :n_telling] = rng.standard_normal((n_children, n_telling))
    return X + distance * middles[labels], labels


def features(rule):
    return set(rule.features.tolist())


def place(X, rule):
    return ((X - rule.center) @ rule.weights.T + rule.offsets).argmax(axis=1)


def accuracy(X, labels, rule):
    return float(np.mean(place(X, rule) == labels))


def test_a_clear_division_is_reproduced():
    for kind in KINDS:
        for K in (2, 3, 5):
            X, labels = blobs(K, distance=8.0)
            rule = find(make_rows(X, kind), labels, price=2.0)
            assert rule.weights.shape == (K, X.shape[1])
            assert features(rule) <= {0, 1, 2}
            assert accuracy(X, labels, rule) >= 0.95


def test_max_features_holds():
    for K in (2, 3, 5):
        for distance in (0.0, 1.0, 4.0):
            X, labels = blobs(K, n_features=20, n_telling=8, distance=distance, seed=3)
            for max_features in (1, 2, 5):
                rule = find(make_rows(X), labels, price=0.0, max_features=max_features)
                assert len(features(rule)) == max_features


def test_more_features_hardly_tell_less():
    for K in (2, 3):
        X, labels = blobs(K, n_features=20, n_telling=8, distance=0.8, seed=4)
        rules = [
            find(make_rows(X), labels, price=0.0, max_features=max_features)
            for max_features in (1, 2, 5, 12)
        ]
        shares = [accuracy(X, labels, rule) for rule in rules]
        assert shares[-1] > shares[0]
        assert min(np.diff(shares)) >= -0.02


def test_a_higher_price_uses_no_more_features():
    for K in (2, 3):
        for seed in range(5):
            X, labels = blobs(K, n_telling=6, distance=1.0, seed=seed)
            prices = (0.0, 0.1, 0.5, 2.0, 10.0, 1e6)
            numbers = [
                len(features(find(make_rows(X), labels, price=price))) for price in prices
            ]
            assert numbers == sorted(numbers, reverse=True)
            # A child needs one, whatever it costs; of two they are the same.
            assert numbers[0] > numbers[-1]
            assert numbers[-1] <= (1 if K == 2 else K)


def test_features_of_ancestors_are_avoided():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 6))
    X[:, 0] += 9.0 * labels
    X[:, 1] += 7.0 * labels
    assert features(find(make_rows(X), labels)) == {0}
    for penalty_factor in (20.0, 0.0):  # dear, or barred
        rule = find(make_rows(X), labels, penalty_factor=[penalty_factor, 1, 1, 1, 1, 1])
        assert 0 not in features(rule)
        assert accuracy(X, labels, rule) >= 0.95


def mixed(seed, n_rows=400, n_categories=8):
    """Return three numbers and three categories of 0/1 features, their columns and codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, (n_rows, 3))
    flags = (codes[:, :, None] == np.arange(n_categories)).reshape(n_rows, -1)
    X = np.hstack([rng.standard_normal((n_rows, 3)), flags])
    return X, np.append(range(3), np.repeat([3, 4, 5], n_categories)), codes


def test_a_category_counts_as_one_feature():
    for seed in range(4):
        X, owner, codes = mixed(seed)
        for n_values in (1, 2, 4):
            labels = (codes[:, 0] < n_values).astype(int)
            X[:, 0] += labels  # a number that tells less, but more than one value does
            for kind in KINDS:
                rules = {
                    max_features: find(
                        make_rows(X, kind), labels, max_features=max_features, owner=owner
                    )
                    for max_features in (None, 1)
                }
                # These values, and no others, or as many that are on the other side.
                for rule in rules.values():
                    assert accuracy(X, labels, rule) == 1.0
                    assert set(owner[rule.features]) == {3}
                    assert len(rule.features) == n_values
        # Alone, one value may tell less than the number.
        assert features(find(make_rows(X), labels, max_features=1)) == {0}


def test_columns_are_counted_for_all_children():
    for seed in range(4):
        X, owner, codes = mixed(seed)
        labels = codes[:, 1] // 3  # values 0 to 2, 3 to 5, and the two others
        for max_features in (1, 2, None):
            rule = find(make_rows(X), labels, max_features=max_features, owner=owner)
            assert set(owner[rule.features]) == {4}
            assert accuracy(X, labels, rule) == 1.0
        noise = np.random.default_rng(seed).integers(0, 3, len(X))
        for max_features in (1, 2):
            rule = find(make_rows(X), noise, price=0.0, max_features=max_features, owner=owner)
            assert len(set(owner[rule.features])) == max_features


def test_columns_of_one_feature_change_nothing():
    for K in (2, 3):
        for seed in range(3):
            X, labels = blobs(K, n_telling=6, distance=1.0, seed=seed)
            for max_features in (None, 3):
                one = find(make_rows(X), labels, price=0.2, max_features=max_features)
                other = find(
                    make_rows(X),
                    labels,
                    price=0.2,
                    max_features=max_features,
                    owner=np.arange(12),
                )
                np.testing.assert_array_equal(one.weights, other.weights)
                np.testing.assert_array_equal(one.offsets, other.offsets)


def test_all_features_of_a_column_in_use_cost_more():
    X, owner, codes = mixed(0)
    sparsity = Sparsity(owner=owner)
    rule = find(as_rows(X), codes[:, 2] == 5, owner=owner)
    assert features(rule) == {3 + 2 * 8 + 5}
    known = sparsity.known(owner == 0, rule)
    np.testing.assert_array_equal(known, np.isin(owner, [0, 5]))
    assert features(rule) == set(np.flatnonzero(Sparsity().known(owner < 0, rule)))


def test_constant_columns_get_no_weight():
    for dtype in ("float32", "float64"):
        for K in (2, 3):
            X, labels = blobs(K, distance=1.0)
            X = np.insert(X, [0, 5], [0.0, 1e4], axis=1).astype(dtype)
            for kind in KINDS:
                rule = find(make_rows(X, kind), labels, price=0.0)
                assert features(rule) == set(range(14)) - {0, 6}
                parts = rule.weights, rule.center, rule.offsets
                assert {part.dtype for part in parts} == {np.dtype(dtype)}
    nothing = find(make_rows(np.ones((6, 3))), [0, 1] * 3)
    assert not nothing.weights.any()


def test_the_scale_of_a_column_is_not_seen():
    for K in (2, 3):
        X, labels = blobs(K, distance=1.0)
        one = find(make_rows(X), labels)
        factors = 10.0 ** np.random.default_rng(0).integers(-30, 30, X.shape[1])
        for kind in KINDS:
            other = find(make_rows(X * factors, kind), labels)
            assert features(one) == features(other)
            np.testing.assert_allclose(other.weights * factors, one.weights, rtol=1e-6)


def test_dense_and_sparse_rows_have_the_same_rule():
    for dtype, close in (("float32", 1e-3), ("float64", 1e-9)):
        for K in (2, 3):
            X, labels = blobs(K, distance=1.5, seed=K)
            X = np.where(X > 7.0, X, 0.0)
            exact = find(make_rows(X), labels)
            for kind in KINDS:
                rule = find(make_rows(X.astype(dtype), kind), labels)
                assert features(rule) == features(exact)
                np.testing.assert_allclose(rule.weights, exact.weights, atol=close)


def test_rows_that_are_wide():
    """Of more columns than are looked at closely, those that tell the children apart."""
    rng = np.random.default_rng(0)
    X = (rng.random((300, 3000)) < 0.05).astype(np.float64)
    labels = np.arange(300) % 3
    X[:, 2500], X[:, 17] = labels == 1, 3.0 * (labels == 2)
    for kind in KINDS:
        rule = find(make_rows(X, kind), labels)
        assert features(rule) == {17, 2500}
        assert accuracy(X, labels, rule) == 1.0


def test_a_small_child_is_seen():
    """Of a thousand rows five are another cluster: the threshold lies in the gap."""
    X = np.random.default_rng(0).standard_normal((1000, 4))
    labels = (np.arange(1000) < 5).astype(np.intp)
    X[:5, 2] += 30.0
    rule = find(make_rows(X), labels)
    assert accuracy(X, labels, rule) == 1.0
    assert features(rule) == {2}


def test_weights_of_zero_count_for_nothing():
    rng = np.random.default_rng(2)
    for K in (2, 3):
        X, labels = blobs(K, distance=2.0)
        weights = (np.arange(200) < 150).astype(float)
        noise = np.where(weights > 0.0, labels, rng.integers(0, K, 200))
        one, other = (find(make_rows(X), given, weights=weights) for given in (labels, noise))
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.offsets, other.offsets)
        none = find(make_rows(X), labels, weights=np.zeros(200))
        assert np.isfinite(none.offsets).all()


def test_rows_of_great_weight_win():
    """Half of the rows are divided by one column, half by another: the heavier half decides."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    first = np.arange(400) < 200
    labels = np.where(first, X[:, 0] > 0.0, X[:, 1] > 0.0).astype(np.intp)
    for feature, heavy in enumerate((first, ~first)):
        weights = np.where(heavy, 100.0, 1.0)
        rule = find(make_rows(X), labels, weights=weights, max_features=1)
        assert features(rule) == {feature}
        assert accuracy(X[heavy], labels[heavy], rule) >= 0.98


def test_the_threshold_is_the_best_one():
    """On one feature all cuts can be tried: no other costs less."""
    for kind in KINDS:
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = np.round(rng.standard_normal((60, 1)), 1)  # with ties
            labels = (rng.standard_normal(60) > 1.5 * X[:, 0]).astype(np.intp)
            weights = rng.random(60)
            rule = find(make_rows(X, kind), labels, weights=weights)
            values = np.unique(X)
            cuts = (values[1:] + values[:-1]) / 2
            falls = rule.weights[0, 0] < 0.0
            right = [((X[:, 0] > cut) == falls) == labels for cut in cuts]
            best = max(weights[one].sum() for one in right)
            assert weights[place(X, rule) == labels].sum() == pytest.approx(best)
            scores = (X - rule.center) @ rule.weights.T + rule.offsets
            assert np.abs(scores[:, 0] - scores[:, 1]).min() > 0.0  # in a gap, not on a row


def test_one_feature_is_enough_where_one_tells_all():
    labels = np.repeat([0, 1], 100)
    for noise in (0.0, 1.0):
        X = np.where(labels[:, None] == 0, -4.0, 4.0) * np.ones((200, 30))
        X += noise * np.random.default_rng(0).standard_normal(X.shape)
        rule = find(make_rows(X), labels)
        assert len(features(rule)) == 1
        assert accuracy(X, labels, rule) == 1.0


def test_children_of_equal_means_have_a_rule():
    """No slope tells the first feature to take: none is used, or one that varies."""
    X = np.array([[0.0, 0.0, 1.0], [2.0, 2.0, 1.0], [0.0, 2.0, 1.0], [2.0, 0.0, 1.0]] * 3)
    rule = find(make_rows(X), [0, 0, 1, 1] * 3, max_features=1)
    assert features(rule) <= {0, 1}
    assert np.isfinite(rule.offsets).all()


def test_a_child_between_others_is_seen():
    """On a line none but the first and the last can be told from the rest by one weight."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    labels = np.arange(200) % 5
    X[:, 1] = 10.0 * labels + X[:, 1]
    for kind in KINDS:
        rule = find(make_rows(X, kind), labels, max_features=1)
        assert features(rule) == {1}
        assert accuracy(X, labels, rule) == 1.0


def test_each_of_several_children_has_features_of_its_own():
    for K in (3, 5, 10):
        labels = np.arange(400) % K
        X = np.random.default_rng(K).standard_normal((400, 20))
        X[:, :K] += 8.0 * np.eye(K)[labels]
        for kind in KINDS:
            rule = find(make_rows(X, kind), labels, price=2.0)
            np.testing.assert_array_equal(rule.weights != 0.0, np.eye(K, 20, dtype=bool))
            assert accuracy(X, labels, rule) >= 0.99


def test_weights_minimise_the_loss():
    """Against SciPy, for features that are given; of two children the second scores zero."""
    for K in (2, 3, 5):
        X, labels = blobs(K, n_rows=150, n_features=6, distance=0.7, seed=K)
        X *= 10.0 ** np.arange(-2, 4)
        weights = np.random.default_rng(K).random(150)
        kept = [0, 2, 5]
        rule = find(
            make_rows(X),
            labels,
            weights=weights,
            penalty_factor=np.isin(range(6), kept),
            price=0.0,
        )
        assert features(rule) == set(kept)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        Z = np.column_stack([np.ones(150), Z[:, kept]])
        rows, ridge = np.arange(150), RIDGE * weights.sum()

        def loss(
            beta, fixed=None, K=K, labels=labels, weights=weights, Z=Z, rows=rows, r=ridge
        ):
            B = np.zeros((K, 4))
            B[: K if K > 2 else 1] = beta.reshape(-1, 4 if fixed is None else 1)
            B[:, 1:] = B[:, 1:] if fixed is None else fixed
            f = Z @ B.T
            lack = np.maximum(1.0 + f - f[rows, labels][:, None], 0.0)
            lack[rows, labels] = 0.0
            return 0.5 * (weights @ (lack**2).sum(axis=1) + r * (B[:, 1:] ** 2).sum())

        n_models = K if K > 2 else 1
        best = minimize(loss, np.zeros(4 * n_models), tol=1e-10)
        found = rule.weights[:, kept] * X.std(axis=0)[kept]
        found = found if K > 2 else [2.0 * found[0], np.zeros(3)]  # each has half
        again = minimize(loss, np.zeros(n_models), args=(found,), tol=1e-10)
        assert best.fun <= again.fun * (1 + 1e-9) <= 1.005 * best.fun


# ---- a tree ----


def decide(X, sparsity=None, *, run=None, n_leaves=9, branching=2, **limits):
    """Return clusters of some rows, and the tree of rules for them."""
    run, stop = run or Run(), StoppingRule(n_leaves)
    coordinates = find_coordinates(X, run.seed)
    clusters = find_clusters(
        coordinates, GapSplitter(), branching=branching, stop=stop, run=run
    )
    rules = find_rules(clusters, X, sparsity or Sparsity(), run, branching=branching, **limits)
    return clusters, rules


def sizes(tree):
    return [tree.size(leaf) for leaf in tree.leaves]


def test_rules_decide_where_rows_go(data):
    for name, X in data.items():
        for kind in KINDS.values():
            for branching in (2, 3):
                _, tree = decide(kind(X), Sparsity(2.0, 4), branching=branching)
                frozen = tree.freeze(order=False)
                labels = place_rows(frozen, kind(X))
                assert np.bincount(labels).tolist() == sizes(tree), name
                for node in tree.inner:
                    rule = frozen.rules[node]
                    assert 1 <= len(features(rule)) <= 4
                    assert rule.n_children == len(tree.children(node)) <= branching
                assert [n for n, rule in enumerate(frozen.rules) if rule] == sorted(tree.inner)


def test_the_shape_is_that_of_the_clusters(data):
    for name in ("planted", "animals", "wide"):
        clusters, tree = decide(data[name])
        plan = clusters.tree
        assert tree.parents == plan.parents
        for node in plan.inner:
            assert tree.recorded(node) == plan.recorded(node)
        labels = place_rows(tree.freeze(order=False), data[name])
        assert np.mean(labels == clusters.labels) > 0.7


def overlap(tree):
    """Return how many features rules share with the ones above them."""
    total = 0
    for node in range(1, tree.n_nodes):
        if tree.rules[node]:
            above = set().union(*(features(tree.rules[a]) for a in tree.path(node)[:-1]))
            total += len(above & features(tree.rules[node]))
    return total


def test_novelty_avoids_the_features_above(data):
    totals = []
    for name in ("animals", "cloud", "middle"):
        trees = (decide(data[name], Sparsity(novelty))[1] for novelty in (0.0, 30.0))
        totals.append([overlap(tree.freeze(order=False)) for tree in trees])
    assert all(high <= low for low, high in totals)
    assert sum(high < low for low, high in totals) >= 2


def test_rules_do_not_depend_on_where_they_are_sought(data):
    for name in ("animals", "wide"):
        plain = decide(data[name])[1].freeze(order=False)
        with ThreadPoolExecutor(3) as pool:
            other = decide(data[name], run=Run(pool=pool, width=3))[1].freeze(order=False)
        for one, two in zip(plain.rules, other.rules, strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                np.testing.assert_array_equal(one.weights, two.weights)
                np.testing.assert_array_equal(one.offsets, two.offsets)


def test_pairs_are_gathered(data):
    """Of a wide tree only the last splits may have fewer children."""
    for name in ("planted", "cloud"):
        for branching in (3, 5):
            _, tree = decide(data[name], n_leaves=11, branching=branching)
            widths = {node: len(tree.children(node)) for node in tree.inner}
            assert tree.n_leaves == 11
            assert max(widths.values()) == branching
            assert all(widths[tree.parents[node]] == branching for node in widths if node)


def test_limits_hold(data):
    for X in data.values():
        for least in (5, 20):
            _, tree = decide(X, min_leaf_size=least)
            assert min(sizes(tree)) >= least
            labels = place_rows(tree.freeze(order=False), X)
            assert np.bincount(labels, minlength=tree.n_leaves).tolist() == sizes(tree)
        _, tree = decide(X, max_depth=2)
        assert max(tree.depth(leaf) for leaf in tree.leaves) <= 2


def test_of_large_leaves_some_rows_stand_for_all():
    """Rules are sought on a part of the rows, and nothing is lost where clusters are far."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.r_[np.zeros(19_950, int), np.ones(40, int), np.full(10, 2)])
    X = rng.standard_normal((20_000, 3)) + 40.0 * np.eye(3)[truth]
    for kind in KINDS.values():
        clusters, tree = decide(kind(X), n_leaves=3)
        labels = place_rows(tree.freeze(order=False), kind(X))
        assert sorted(sizes(tree)) == [10, 40, 19_950]
        np.testing.assert_array_equal(labels, clusters.labels)


# ---- rules that decide ----


def check_decided(model, X):
    """Every row is where the rules send it, one by one and in any order."""
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    backwards = np.arange(len(model.labels_))[::-1]
    np.testing.assert_array_equal(model.predict(X[backwards]), model.labels_[::-1])
    tree = model.hierarchy_
    np.testing.assert_array_equal(np.bincount(model.labels_), tree.sizes[tree.leaves])
    return tree


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_row_follows_every_rule(data, dtype, kind):
    for name, X in data.items():
        for branching in (2, 3, 5):
            Z = kind(X.astype(dtype))
            model = Taxarbor(9, branching=branching, n_init=1, random_state=0).fit(Z)
            assert check_decided(model, Z).n_leaves == 9, name


def test_one_tree_whatever_the_threads(data):
    for name in ("animals", "cloud"):
        for branching in (2, 3):
            settings = {"branching": branching, "random_state": 0}
            one, two = (Taxarbor(9, n_jobs=n, **settings).fit(data[name]) for n in (1, 2))
            assert to_json(one.hierarchy_) == to_json(two.hierarchy_)


def odd_sets():
    """Return data on which many scores are equal."""
    rng = np.random.default_rng(0)
    few = rng.standard_normal((25, 4))
    return {
        "whole": rng.integers(0, 4, (150, 5)).astype(np.float64),
        "binary": (rng.random((150, 12)) < 0.3).astype(np.float64),
        "repeated": few[rng.integers(0, 25, 150)],
        "one column": np.round(rng.standard_normal((150, 1)), 1),
        "ordinary": rng.standard_normal((150, 6)),
    }


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
@pytest.mark.parametrize("X", odd_sets().values(), ids=odd_sets())
def test_sizes_and_depth_hold(X):
    for branching in (2, 3, 5):
        for least, most, depth in ((1, 40, None), (6, None, None), (5, 30, 3)):
            model = Taxarbor(
                None if most else 9,
                branching=branching,
                min_leaf_size=least,
                max_leaf_size=most,
                max_depth=depth,
                n_init=1,
                random_state=0,
            ).fit(X)
            tree = check_decided(model, X)
            assert tree.n_leaves > 1
            assert tree.sizes[tree.leaves].min() >= least
            assert depth is None or tree.height <= depth


def test_rows_that_no_rule_tells_apart():
    rng = np.random.default_rng(0)
    five = np.repeat(rng.standard_normal((5, 3)), 8, axis=0)
    for X, n_clusters, n_distinct in (
        (five, 9, 5),
        (np.repeat([[0.0, 1.0], [1.0, 1.0]], 4, axis=0), 3, 2),
        (np.ones((7, 3)), 2, 1),
        (np.array([[3.0], [3.0]]), 2, 1),
    ):
        for branching in (2, 3):
            for Z in (X, sparse.csr_array(X), X.astype(np.float32)):
                model = Taxarbor(n_clusters, branching=branching, random_state=0)
                with pytest.warns(GrowthWarning):
                    model.fit(Z)
                tree = check_decided(model, Z)
                assert tree.n_leaves <= n_distinct
                assert branching == 3 or tree.n_leaves == n_distinct
    two = Taxarbor(2, random_state=0).fit([[0.0, 5.0], [1.0, 5.0]] * 2)
    assert two.labels_.tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])
    assert features(two.hierarchy_.rules[0]) == {0}


def test_a_child_of_few_rows_costs_few_leaves():
    """Where a rule cannot give a child rows for all its leaves, it gets those that it can."""
    for seed in (2, 7, 13):
        X = (np.random.default_rng(seed).random((150, 300)) < 0.3).astype(np.float64)
        model = Taxarbor(14, balance=None, max_features=1, n_init=1, random_state=0)
        with warnings.catch_warnings(action="ignore", category=GrowthWarning):
            model.fit(X)
        assert 10 <= check_decided(model, X).n_leaves <= 14


def test_columns_of_unlike_scales():
    for exponents in ([60, -60, 0], [-60, -60, -60], [30, 30, -30]):
        X = blobs(3, n_features=3, distance=8.0)[0] * 10.0 ** np.array(exponents, dtype=float)
        check_decided(Taxarbor(3, random_state=0).fit(X), X)


def test_fewer_leaves_than_asked_for_are_never_silent():
    """Also where no leaf says why: what was too small was merged with another."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 6)) + 6.0 * rng.integers(0, 3, (300, 1))
        for least in (5, 15, 40):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                tree = Taxarbor(8, min_leaf_size=least, random_state=0).fit(X).hierarchy_
            names = [one.category for one in caught]
            assert (GrowthWarning in names) == (tree.n_leaves < 8)
            assert tree.n_leaves >= 3


def test_a_small_child_of_the_root_costs_one_leaf():
    """Its rows go to its sibling, and what is below that stays."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), [60, 60, 60, 60, 12])
    X = rng.standard_normal((252, 4)) + 9.0 * np.eye(5, 4)[truth]
    X[truth == 4] = 60.0 + rng.standard_normal((12, 4))
    _, tree = decide(X, n_leaves=5)
    assert sorted(sizes(tree)) == [12, 60, 60, 60, 60]
    _, tree = decide(X, n_leaves=5, min_leaf_size=20)
    assert sorted(sizes(tree)) == [60, 60, 60, 72]
