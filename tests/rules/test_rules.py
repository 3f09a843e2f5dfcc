"""Rules of few features that send rows to the clusters of a tree."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score

from taxarbor import Taxarbor, Taxonomy, make_planted_tree
from taxarbor._fit_context import Run
from taxarbor.clusters import Clusters, find_clusters, find_coordinates
from taxarbor.clusters._find import GapSplitter
from taxarbor.clusters.leaves import link_leaves
from taxarbor.exchange import to_json
from taxarbor.grow import StoppingRule
from taxarbor.rules import Sparsity, find_rules
from taxarbor.rules._discriminant import MAX_CANDIDATES, Moments, remove_columns
from taxarbor.tree.route_rows import place_rows

KINDS = {"dense": np.asarray, "csr": sparse.csr_array}


def know(X, truth):
    """Return given clusters, and Ward's tree above them."""
    counts = np.bincount(truth)
    means = np.stack([X[truth == label].mean(axis=0) for label in range(len(counts))])
    tree, place = link_leaves(means, counts, StoppingRule())
    return Clusters(tree, place[truth].astype(np.int32))


def find(X, n_leaves=9, *, branching=2):
    """Return the clusters of some rows."""
    settings = {"branching": branching, "stop": StoppingRule(n_leaves), "run": Run()}
    return find_clusters(find_coordinates(X, 0), GapSplitter(), **settings)


def choose(X, truth, sparsity=None, kind="dense", **settings):
    """Return one rule that chooses among given clusters, and the clusters as it numbers them.

    As many children are merged as there are clusters.
    """
    clusters = know(X, truth)
    many = {"branching": clusters.tree.n_leaves, **settings}
    tree = find_rules(clusters, KINDS[kind](X), sparsity or Sparsity(), Run(), **many)
    assert [node for node, rule in enumerate(tree.rules) if rule] == [0]
    return tree.rules[0], clusters.labels


def features(rule):
    return set(rule.features.tolist())


def used(tree):
    """Return the columns of each rule, by node."""
    return {node: features(rule) for node, rule in enumerate(tree.rules) if rule}


def score(X, rule):
    return (X - rule.center) @ rule.weights.T + rule.offsets


def accuracy(X, labels, rule):
    return float(np.mean(score(X, rule).argmax(axis=1) == labels))


def blobs(n_clusters=8, n_features=12, n_telling=6, distance=4.0, n_rows=600, seed=0):
    """Return rows of clusters that the first features tell apart, and their labels."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_rows) % n_clusters)
    X = rng.standard_normal((n_rows, n_features)) + 7.0
    X[:, :n_telling] += distance * rng.standard_normal((n_clusters, n_telling))[truth]
    return X, truth


# ---- rules that choose among many ----


class HalfShrunk(BaseEstimator):
    """The covariance of some rows, and their mean variance as a ridge."""

    def fit(self, X):
        own = np.cov(X.T, bias=True)
        self.covariance_ = own + np.trace(own) / len(own) * np.eye(len(own))
        return self


def test_free_rules_are_those_of_discriminant_analysis():
    """Of scikit-learn, but for the logarithms of its priors."""
    for n_clusters, distance in product((3, 8), (0.5, 4.0)):
        X, truth = blobs(n_clusters, distance=distance, seed=n_clusters)
        X, truth = X[(truth > 0) | (X[:, 0] > 7.0)], truth[(truth > 0) | (X[:, 0] > 7.0)]
        for kind in KINDS:
            rule, labels = choose(X, truth, Sparsity(is_free=True), kind)
            theirs = LinearDiscriminantAnalysis("lsqr", covariance_estimator=HalfShrunk())
            theirs.fit(X, labels)
            scores = theirs.decision_function(X) - np.log(theirs.priors_)
            ours = score(X, rule)
            expected = scores - scores[:, :1]
            np.testing.assert_allclose(ours - ours[:, :1], expected, rtol=1e-6, atol=1e-6)


def test_many_weak_features_work_together():
    """Thirty clusters without an order: one rule chooses among all of them."""
    rng = np.random.default_rng(0)
    truth = np.arange(3000) % 30
    X = rng.standard_normal((30, 64))[truth] + 0.6 * rng.standard_normal((3000, 64))
    by_clusters = adjusted_rand_score(truth, find(X, 30).labels)
    model = Taxarbor(30, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) >= 0.95 * by_clusters >= 0.9
    assert list(used(model.taxonomy_.tree)) == [0]
    assert model.taxonomy_.tree.rules[0].n_targets == 30
    assert 5 < len(used(model.taxonomy_.tree)[0]) < 40


def test_noise_features_are_left_out():
    for kind, n_clusters in product(KINDS, (3, 5, 10)):
        X, truth = blobs(n_clusters, n_features=30, distance=8.0, n_rows=1000)
        rule, labels = choose(X, truth, kind=kind)
        assert features(rule) <= set(range(6))
        assert accuracy(X, labels, rule) >= 0.97


@pytest.mark.parametrize("most", [None, 30, 20])
def test_copies_do_not_go_in_one_step(most):
    """Halves are so far apart that each of four copies seems worth less than any other."""
    rng = np.random.default_rng(0)
    truth = np.arange(3200) % 32
    X = rng.standard_normal((3200, 40))
    X[:, :4] = X[:, :1] + 30.0 * (truth[:, None] % 2) + 0.05 * X[:, :4]
    X[:, 4:] += 1.2 * rng.standard_normal((16, 36))[truth // 2]
    rule, labels = choose(X, truth, Sparsity(max_features=most))
    assert accuracy(X, labels, rule) >= 0.97  # as with one of them
    assert 1 <= len(features(rule) & {0, 1, 2, 3}) <= len(features(rule)) <= 35


def measure(moments, own):
    """Return the squared distances of the clusters in some features."""
    apart = moments.means[:, None, own] - moments.means[None, :, own]
    inverse = np.linalg.inv(moments.scatter[np.ix_(own, own)])
    return np.einsum("klp,pq,klq->kl", apart, inverse, apart)


def test_the_least_worthy_columns_are_removed():
    """Against distances that are computed anew without each column."""
    n_removed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        columns = np.sort(rng.integers(0, 6, 9))
        columns = np.unique(columns, return_inverse=True)[1]
        n_columns = int(columns.max()) + 1
        truth = np.arange(200) % 5
        X = rng.standard_normal((200, 9)) @ rng.standard_normal((9, 9))
        X += 2.0 * rng.standard_normal((5, 9))[truth]
        moments = Moments.of(X - X.mean(axis=0), truth, 5)
        sizes = list(range(n_columns, 0, -1))
        kept = remove_columns(moments, slice(None), columns, sizes)
        left = list(range(n_columns))
        for size in sizes:
            own = np.flatnonzero(np.isin(columns, left))
            np.testing.assert_array_equal(kept[size], own)
            before = measure(moments, own)
            least = 1e-3 * before.max()
            near = np.outer(moments.counts, moments.counts) / np.maximum(before, least) ** 2
            if size == 1:
                break
            lost = [
                near * (before - measure(moments, own[columns[own] != one])) for one in left
            ]
            left.pop(int(np.argmin([pairs.sum() for pairs in lost])))
            n_removed += 1
    assert n_removed > 60


# ---- thresholds ----


def test_planted_levels_have_thresholds_of_their_own():
    """One column divides each split, and it is one of those that were planted there."""
    for seed in range(4):
        planted = make_planted_tree(800, random_state=seed)
        for kind in KINDS.values():
            clusters = know(planted.X, planted.labels)
            tree = find_rules(clusters, kind(planted.X), Sparsity(), Run())
            assert list(used(tree)) == list(range(7))
            for node, own in used(tree).items():
                assert tree.rules[node].n_targets == 2
                assert len(own) == 1
                assert own <= set(planted.features[tree.depth[node]].tolist())
            assert np.mean(place_rows(tree, planted.X) == clusters.labels) > 0.95


def test_of_columns_that_divide_alike_the_one_of_the_greatest_distance_is_used():
    """Also where the rule above it uses it."""
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 4
    X = rng.standard_normal((400, 5))
    X[:, 1] += np.array([-30.0, -10.0, 10.0, 30.0])[truth]
    for distance, below in ((8.0, {1}), (12.0, {3})):
        Z = X.copy()
        Z[:, 3] += distance * np.array([-1.0, 1.0, -1.0, 1.0])[truth]
        tree = find_rules(know(Z, truth), Z, Sparsity(), Run())
        assert used(tree) == {0: {1}, 1: below, 2: below}


def test_a_threshold_is_the_best_one():
    """On one column all cuts can be tried: none has more rows on their side."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.round(rng.standard_normal((300, 1)), 1)  # with ties
        rule, labels = choose(X, (rng.standard_normal(300) < 3.0 * X[:, 0]).astype(np.intp))
        values = np.unique(X)
        sides = [X[:, 0] > cut for cut in (values[1:] + values[:-1]) / 2]
        best = max(max(np.mean(side == labels), np.mean(side != labels)) for side in sides)
        assert accuracy(X, labels, rule) == pytest.approx(best)
        scores = score(X, rule)
        assert np.abs(scores[:, 0] - scores[:, 1]).min() > 0.0  # in a gap, not on a row


def test_two_columns_are_not_used_where_all_lose_nothing():
    """Groups along the diagonal of 16 columns: two of them would divide nine rows of ten."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 2048)
        X = rng.standard_normal((2048, 16)) + 8.0 / np.sqrt(16) * truth[:, None]
        labels = Taxarbor(2, random_state=seed).fit(X).labels_
        assert adjusted_rand_score(truth, labels) >= 0.99


# ---- which columns ----


def mixed(seed, n_rows=600, n_values=6):
    """Return three numbers and three categories of 0/1 features, their columns and codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_values, (n_rows, 3))
    flags = (codes[:, :, None] == np.arange(n_values)).reshape(n_rows, -1)
    X = np.hstack([rng.standard_normal((n_rows, 3)), flags])
    return X, np.append(range(3), np.repeat([3, 4, 5], n_values)), codes


def test_the_values_of_a_category_stay_or_go_together():
    for seed in range(4):
        X, owner, codes = mixed(seed)
        by_value = codes[:, 1] // 2  # of the second category two values each
        for truth, columns in ((by_value, {4}), (3 * (X[:, 0] > 0.0) + by_value, {0, 4})):
            for most, kind in product((None, len(columns)), KINDS):
                rule, labels = choose(X, truth, Sparsity(most, owner), kind)
                assert columns <= set(owner[rule.features])
                assert len(set(owner[rule.features])) <= (most or 4)
                own = np.isin(owner, owner[rule.features])
                assert features(rule) == set(np.flatnonzero(own))
                assert accuracy(X, labels, rule) >= 0.8
        X, owner, codes = mixed(seed)
        tree = find_rules(know(X, codes[:, 0] // 3), X, Sparsity(owner=owner), Run())
        assert used(tree) == {0: set(range(3, 9))}  # two children, one column


def test_constant_columns_are_never_used():
    for dtype, n_clusters in product(("float32", "float64"), (2, 5)):
        X, truth = blobs(n_clusters, distance=2.0)
        X = np.insert(X, [0, 5], [0.0, 1e4 / 3], axis=1).astype(dtype)
        for kind in KINDS:
            for sparsity in (Sparsity(), Sparsity(is_free=True)):
                rule, _ = choose(X, truth, sparsity, kind)
                assert not features(rule) & {0, 6}
                parts = rule.weights, rule.center, rule.offsets
                assert {part.dtype for part in parts} == {np.dtype(dtype)}
            assert features(rule) == set(range(14)) - {0, 6}


def test_max_features_is_kept_and_no_clear_cluster_is_lost():
    X, truth = blobs(12, n_features=40, n_telling=10, distance=12.0, n_rows=900, seed=1)
    for branching, most in product((2, 3, 12), (2, 3, 6, 40)):
        tree = find_rules(know(X, truth), X, Sparsity(most), Run(), branching=branching)
        assert tree.n_leaves == 12
        assert max(len(own) for own in used(tree).values()) <= most
        least = 0.95 if most > 2 else 0.75
        assert adjusted_rand_score(truth, place_rows(tree, X)) >= least


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
def test_clear_clusters_are_not_given_up_for_a_small_budget():
    """The corners of a cube, each side of which is told by one column."""
    for seed in (6, 8):
        rng = np.random.default_rng(seed)
        bits = rng.integers(0, 2, (800, 3))
        X = rng.standard_normal((800, 3)) + 8.0 * bits
        model = Taxarbor(8, max_features=1, random_state=0).fit(X)
        assert adjusted_rand_score(bits @ [1, 2, 4], model.labels_) >= 0.7


def test_of_very_many_columns_those_that_separate_are_used():
    rng = np.random.default_rng(0)
    n_features = 3 * MAX_CANDIDATES
    X = (rng.random((600, n_features)) < 0.05).astype(np.float64)
    truth = np.arange(600) % 6
    telling = rng.choice(n_features, 5, replace=False)
    X[:, telling] = 3.0 * (truth[:, None] == np.arange(5))
    rules = [choose(X, truth, kind=kind)[0] for kind in KINDS]
    assert features(rules[0]) == features(rules[1]) == set(telling.tolist())
    np.testing.assert_allclose(rules[0].weights, rules[1].weights, atol=1e-9)
    free, labels = choose(X, truth, Sparsity(is_free=True))
    assert set(telling.tolist()) < features(free)
    assert free.n_features_used == MAX_CANDIDATES
    assert accuracy(X, labels, free) == 1.0


def test_units_do_not_matter_beside_an_embedding():
    rng = np.random.default_rng(0)
    truth = np.arange(900) % 9
    E = 6.0 * rng.standard_normal((9, 5))[truth] + rng.standard_normal((900, 5))
    X = rng.standard_normal((9, 14))[truth] + 0.3 * rng.standard_normal((900, 14))
    model = Taxarbor(9, random_state=0).fit(X, embedding=E)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    for seed in range(3):
        factors = 10.0 ** np.random.default_rng(seed).integers(-6, 6, 14)
        other = Taxarbor(9, random_state=0).fit(X * factors, embedding=E)
        np.testing.assert_array_equal(other.labels_, model.labels_)
        assert used(other.taxonomy_.tree) == used(model.taxonomy_.tree)
    # A wide column does not hide a narrow one.
    X = np.column_stack([truth + 0.1 * rng.standard_normal(900), 1e6 * rng.random(900)])
    for dtype in ("float32", "float64"):
        model = Taxarbor(9, random_state=0).fit(X.astype(dtype), embedding=E)
        assert adjusted_rand_score(truth, model.labels_) > 0.9


# ---- trees ----


def test_rules_decide_where_rows_go(data):
    for name, X in data.items():
        for kind, branching in product(KINDS.values(), (2, 3)):
            clusters = find(X, branching=branching)
            tree = find_rules(clusters, kind(X), Sparsity(4), Run(), branching=branching)
            sizes = np.bincount(place_rows(tree, kind(X)), minlength=tree.n_leaves)
            np.testing.assert_array_equal(tree.sizes[tree.leaves], sizes, name)
            assert sizes.min() > 0
            assert max(len(tree.children(node)) for node in range(tree.n_nodes)) <= branching
            for node, own in used(tree).items():
                assert 1 <= len(own) <= 4
                assert tree.rules[node].n_targets == len(tree.frontier(node))


def test_the_shape_is_that_of_the_clusters(data):
    for name in ("planted", "animals", "wide"):
        clusters = find(data[name])
        plan, tree = clusters.tree, find_rules(clusters, data[name], Sparsity(), Run())
        before, inner = plan.freeze(with_rows=False), list(plan.inner)
        np.testing.assert_array_equal(tree.parents, before.parents)
        np.testing.assert_array_equal(tree.score[inner], before.score[inner])
        assert np.mean(place_rows(tree, data[name]) == clusters.labels) > 0.7


def test_pairs_are_merged(data):
    """Of a wide tree only the last splits may have fewer children."""
    for name, branching in product(("planted", "cloud"), (3, 5)):
        clusters = find(data[name], 11, branching=branching)
        tree = find_rules(clusters, data[name], Sparsity(), Run(), branching=branching)
        widths = {n: len(tree.children(n)) for n in range(tree.n_nodes)}
        inner = {node for node, width in widths.items() if width}
        assert tree.n_leaves == 11
        assert max(widths.values()) == branching
        assert all(widths[int(tree.parents[node])] == branching for node in inner - {0})


def test_columns_do_not_depend_on_how_rows_are_kept(data):
    for name, X in data.items():
        clusters = find(X)
        expected = find_rules(clusters, X, Sparsity(), Run())
        with ThreadPoolExecutor(2) as pool:
            other = find_rules(clusters, X, Sparsity(), Run(pool=pool, width=2))
        assert to_json(Taxonomy(other)) == to_json(Taxonomy(expected))
        for dtype, kind in product(("float32", "float64"), KINDS.values()):
            tree = find_rules(clusters, kind(X.astype(dtype)), Sparsity(), Run())
            assert used(tree) == used(expected), (name, dtype)


def test_small_leaves_are_removed():
    """Their rows go to a sibling, and what is below that stays."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), [60, 60, 60, 60, 12])
    X = rng.standard_normal((252, 4)) + 9.0 * np.eye(5, 4)[truth]
    X[truth == 4] = 60.0 + rng.standard_normal((12, 4))
    equal = np.repeat(rng.standard_normal((4, 3)), [60, 60, 60, 72], axis=0)
    for rows, least, widths, expected in (
        (X, 1, (2, 3), [12, 60, 60, 60, 60]),
        (X, 20, (2, 3), [60, 60, 60, 72]),
        (equal, 1, (2, 3, 5), [60, 60, 60, 72]),  # nothing separates the last two
    ):
        for branching in widths:
            settings = {"branching": branching, "min_leaf_size": least}
            tree = find_rules(know(rows, truth), rows, Sparsity(), Run(), **settings)
            assert sorted(tree.sizes[tree.leaves].tolist()) == expected
            sizes = np.bincount(place_rows(tree, rows))
            np.testing.assert_array_equal(sizes, tree.sizes[tree.leaves])


def test_of_large_leaves_some_rows_stand_for_all():
    """Rules are sought on a part of the rows, and nothing is lost where clusters are far."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(3), [39_950, 40, 10]))
    X = rng.standard_normal((40_000, 3)) + 40.0 * np.eye(3)[truth]
    clusters = know(X, truth)
    for kind in KINDS.values():
        tree = find_rules(clusters, kind(X), Sparsity(), Run())
        np.testing.assert_array_equal(place_rows(tree, kind(X)), clusters.labels)
