"""Rules of few features: one node's, and those that describe a tree or decide it."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from taxarbor.hierarchy._follows import measured_rows

from taxarbor import GrowthWarning, Taxarbor
from taxarbor._errors import InputError
from taxarbor.exchange import to_json
from taxarbor.grow import Run, StoppingRule
from taxarbor.hierarchy import HierarchyBuilder, LinearRule, Placement
from taxarbor.hierarchy._route import place
from taxarbor.refine import (
    Clusters,
    Leafing,
    Sparsity,
    _rules,
    compete,
    decide,
    describe,
    gather,
)
from taxarbor.refine._rules import (
    OF_LEAF,
    RIDGE,
    SAMPLE,
    _heard,
    _Search,
    _thresholds,
    find_rule,
)
from taxarbor.rows import as_rows

KINDS = ("dense", "csr")
SIZES = "ignore::taxarbor.GrowthWarning"


def find(rows, labels, *, weights=None, reluctance=None, price=0.5, most=None, owner=None):
    labels = np.asarray(labels, dtype=np.int32)
    return find_rule(
        rows,
        labels,
        np.ones(rows.n_rows) if weights is None else np.asarray(weights, dtype=np.float64),
        np.ones(rows.n_features) if reluctance is None else np.asarray(reluctance, float),
        n_children=int(labels.max()) + 1,
        price=price,
        sparsity=Sparsity(max_features=most, owner=owner),
    )


def blobs(n_children=2, n_rows=200, n_features=12, n_telling=3, distance=4.0, seed=0):
    """Return rows of which the first features tell the children apart, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % n_children
    X = rng.standard_normal((n_rows, n_features)) + 7.0
    middles = np.zeros((n_children, n_features))
    middles[:, :n_telling] = rng.standard_normal((n_children, n_telling))
    return X + distance * middles[labels], labels


def used(rule):
    return set(rule.features.tolist())


def sent(X, rule):
    return ((X - rule.center) @ rule.weights.T + rule.offsets).argmax(axis=1)


def share(X, labels, rule):
    return float(np.mean(sent(X, rule) == labels))


# ---- one node ----


def test_a_clear_division_is_reproduced(rows_of):
    for kind in KINDS:
        for K in (2, 3, 5):
            X, labels = blobs(K, distance=8.0)
            rule = find(rows_of(X, kind), labels, price=2.0)
            assert rule.weights.shape == (K, X.shape[1])
            assert used(rule) <= {0, 1, 2}
            assert share(X, labels, rule) >= 0.95


def test_the_budget_is_kept(rows_of):
    for K in (2, 3, 5):
        for distance in (0.0, 1.0, 4.0):
            X, labels = blobs(K, n_features=20, n_telling=8, distance=distance, seed=3)
            for most in (1, 2, 5):
                rule = find(rows_of(X), labels, price=0.0, most=most)
                assert len(used(rule)) == most


def test_more_features_hardly_tell_less(rows_of):
    for K in (2, 3):
        X, labels = blobs(K, n_features=20, n_telling=8, distance=0.8, seed=4)
        rules = [find(rows_of(X), labels, price=0.0, most=most) for most in (1, 2, 5, 12)]
        shares = [share(X, labels, rule) for rule in rules]
        assert shares[-1] > shares[0]
        assert min(np.diff(shares)) >= -0.02


def test_a_higher_price_uses_no_more_features(rows_of):
    for K in (2, 3):
        for seed in range(5):
            X, labels = blobs(K, n_telling=6, distance=1.0, seed=seed)
            prices = (0.0, 0.1, 0.5, 2.0, 10.0, 1e6)
            numbers = [len(used(find(rows_of(X), labels, price=price))) for price in prices]
            assert numbers == sorted(numbers, reverse=True)
            # A child needs one, whatever it costs; of two they are the same.
            assert numbers[0] > numbers[-1]
            assert numbers[-1] <= (1 if K == 2 else K)


def test_features_of_ancestors_are_avoided(rows_of):
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 6))
    X[:, 0] += 9.0 * labels
    X[:, 1] += 7.0 * labels
    assert used(find(rows_of(X), labels)) == {0}
    for reluctance in (20.0, 0.0):  # dear, or barred
        rule = find(rows_of(X), labels, reluctance=[reluctance, 1, 1, 1, 1, 1])
        assert 0 not in used(rule)
        assert share(X, labels, rule) >= 0.95


def mixed(seed, n_rows=400, n_categories=8):
    """Return three numbers and three categories of 0/1 features, their columns and codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, (n_rows, 3))
    flags = (codes[:, :, None] == np.arange(n_categories)).reshape(n_rows, -1)
    X = np.hstack([rng.standard_normal((n_rows, 3)), flags])
    return X, np.append(range(3), np.repeat([3, 4, 5], n_categories)), codes


def test_a_category_counts_as_one_feature(rows_of):
    for seed in range(4):
        X, owner, codes = mixed(seed)
        for n_values in (1, 2, 4):
            labels = (codes[:, 0] < n_values).astype(int)
            X[:, 0] += labels  # a number that tells less, but more than one value does
            for kind in KINDS:
                rules = {
                    most: find(rows_of(X, kind), labels, most=most, owner=owner)
                    for most in (None, 1)
                }
                # These values, and no others, or as many that are on the other side.
                for rule in rules.values():
                    assert share(X, labels, rule) == 1.0
                    assert set(owner[rule.features]) == {3}
                    assert len(rule.features) == n_values
        # Alone, one value may tell less than the number.
        assert used(find(rows_of(X), labels, most=1)) == {0}


def test_columns_are_counted_for_all_children(rows_of):
    for seed in range(4):
        X, owner, codes = mixed(seed)
        labels = codes[:, 1] // 3  # values 0 to 2, 3 to 5, and the two others
        for most in (1, 2, None):
            rule = find(rows_of(X), labels, most=most, owner=owner)
            assert set(owner[rule.features]) == {4}
            assert share(X, labels, rule) == 1.0
        noise = np.random.default_rng(seed).integers(0, 3, len(X))
        for most in (1, 2):
            rule = find(rows_of(X), noise, price=0.0, most=most, owner=owner)
            assert len(set(owner[rule.features])) == most


def test_columns_of_one_feature_change_nothing(rows_of):
    for K in (2, 3):
        for seed in range(3):
            X, labels = blobs(K, n_telling=6, distance=1.0, seed=seed)
            for most in (None, 3):
                one = find(rows_of(X), labels, price=0.2, most=most)
                other = find(rows_of(X), labels, price=0.2, most=most, owner=np.arange(12))
                np.testing.assert_array_equal(one.weights, other.weights)
                np.testing.assert_array_equal(one.offsets, other.offsets)


def test_a_column_that_is_known_makes_all_its_features_dear():
    X, owner, codes = mixed(0)
    sparsity = Sparsity(owner=owner)
    rule = find(as_rows(X), codes[:, 2] == 5, owner=owner)
    assert used(rule) == {3 + 2 * 8 + 5}
    known = sparsity.known(owner == 0, rule)
    np.testing.assert_array_equal(known, np.isin(owner, [0, 5]))
    assert used(rule) == set(np.flatnonzero(Sparsity().known(owner < 0, rule)))


def test_constant_columns_get_no_weight(rows_of):
    for dtype in ("float32", "float64"):
        for K in (2, 3):
            X, labels = blobs(K, distance=1.0)
            X = np.insert(X, [0, 5], [0.0, 1e4], axis=1).astype(dtype)
            for kind in KINDS:
                rule = find(rows_of(X, kind), labels, price=0.0)
                assert used(rule) == set(range(14)) - {0, 6}
                parts = rule.weights, rule.center, rule.offsets
                assert {part.dtype for part in parts} == {np.dtype(dtype)}
    nothing = find(rows_of(np.ones((6, 3))), [0, 1] * 3)
    assert not nothing.weights.any()


def test_the_scale_of_a_column_is_not_seen(rows_of):
    for K in (2, 3):
        X, labels = blobs(K, distance=1.0)
        one = find(rows_of(X), labels)
        factors = 10.0 ** np.random.default_rng(0).integers(-30, 30, X.shape[1])
        for kind in KINDS:
            other = find(rows_of(X * factors, kind), labels)
            assert used(one) == used(other)
            np.testing.assert_allclose(other.weights * factors, one.weights, rtol=1e-6)


def test_dense_and_sparse_rows_have_the_same_rule(rows_of):
    for dtype, close in (("float32", 1e-3), ("float64", 1e-9)):
        for K in (2, 3):
            X, labels = blobs(K, distance=1.5, seed=K)
            X = np.where(X > 7.0, X, 0.0)
            exact = find(rows_of(X), labels)
            for kind in KINDS:
                rule = find(rows_of(X.astype(dtype), kind), labels)
                assert used(rule) == used(exact)
                np.testing.assert_allclose(rule.weights, exact.weights, atol=close)


def test_rows_that_are_wide(rows_of):
    """Of more columns than are looked at closely, those that tell the children apart."""
    rng = np.random.default_rng(0)
    X = (rng.random((300, 3000)) < 0.05).astype(np.float64)
    labels = np.arange(300) % 3
    X[:, 2500], X[:, 17] = labels == 1, 3.0 * (labels == 2)
    for kind in KINDS:
        rule = find(rows_of(X, kind), labels)
        assert used(rule) == {17, 2500}
        assert share(X, labels, rule) == 1.0


def test_a_small_child_is_seen(rows_of):
    """Of a thousand rows five are another cluster: the threshold lies in the gap."""
    X = np.random.default_rng(0).standard_normal((1000, 4))
    labels = (np.arange(1000) < 5).astype(np.intp)
    X[:5, 2] += 30.0
    rule = find(rows_of(X), labels)
    assert share(X, labels, rule) == 1.0
    assert used(rule) == {2}


def test_weights_of_zero_count_for_nothing(rows_of):
    rng = np.random.default_rng(2)
    for K in (2, 3):
        X, labels = blobs(K, distance=2.0)
        weights = (np.arange(200) < 150).astype(float)
        noise = np.where(weights > 0.0, labels, rng.integers(0, K, 200))
        one, other = (find(rows_of(X), given, weights=weights) for given in (labels, noise))
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.offsets, other.offsets)
        none = find(rows_of(X), labels, weights=np.zeros(200))
        assert np.isfinite(none.offsets).all()


def test_rows_of_great_weight_win(rows_of):
    """Half of the rows are divided by one column, half by another: the heavier half decides."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    first = np.arange(400) < 200
    labels = np.where(first, X[:, 0] > 0.0, X[:, 1] > 0.0).astype(np.intp)
    for feature, heavy in enumerate((first, ~first)):
        weights = np.where(heavy, 100.0, 1.0)
        rule = find(rows_of(X), labels, weights=weights, most=1)
        assert used(rule) == {feature}
        assert share(X[heavy], labels[heavy], rule) >= 0.98


def test_the_threshold_is_the_best_one(rows_of):
    """On one feature all cuts can be tried: no other costs less."""
    for kind in KINDS:
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = np.round(rng.standard_normal((60, 1)), 1)  # with ties
            labels = (rng.standard_normal(60) > 1.5 * X[:, 0]).astype(np.intp)
            weights = rng.random(60)
            rule = find(rows_of(X, kind), labels, weights=weights)
            values = np.unique(X)
            cuts = (values[1:] + values[:-1]) / 2
            falls = rule.weights[0, 0] < 0.0
            right = [((X[:, 0] > cut) == falls) == labels for cut in cuts]
            best = max(weights[one].sum() for one in right)
            assert weights[sent(X, rule) == labels].sum() == pytest.approx(best)
            scores = (X - rule.center) @ rule.weights.T + rule.offsets
            assert np.abs(scores[:, 0] - scores[:, 1]).min() > 0.0  # in a gap, not on a row


def test_one_feature_is_enough_where_one_tells_all(rows_of):
    labels = np.repeat([0, 1], 100)
    for noise in (0.0, 1.0):
        X = np.where(labels[:, None] == 0, -4.0, 4.0) * np.ones((200, 30))
        X += noise * np.random.default_rng(0).standard_normal(X.shape)
        rule = find(rows_of(X), labels)
        assert len(used(rule)) == 1
        assert share(X, labels, rule) == 1.0


def test_children_of_equal_means_have_a_rule(rows_of):
    """No slope tells the first feature to take: none is used, or one that varies."""
    X = np.array([[0.0, 0.0, 1.0], [2.0, 2.0, 1.0], [0.0, 2.0, 1.0], [2.0, 0.0, 1.0]] * 3)
    rule = find(rows_of(X), [0, 0, 1, 1] * 3, most=1)
    assert used(rule) <= {0, 1}
    assert np.isfinite(rule.offsets).all()


def test_a_child_between_others_is_seen(rows_of):
    """On a line none but the first and the last can be told from the rest by one weight."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    labels = np.arange(200) % 5
    X[:, 1] = 10.0 * labels + X[:, 1]
    for kind in KINDS:
        rule = find(rows_of(X, kind), labels, most=1)
        assert used(rule) == {1}
        assert share(X, labels, rule) == 1.0


def test_each_of_several_children_has_features_of_its_own(rows_of):
    for K in (3, 5, 10):
        labels = np.arange(400) % K
        X = np.random.default_rng(K).standard_normal((400, 20))
        X[:, :K] += 8.0 * np.eye(K)[labels]
        for kind in KINDS:
            rule = find(rows_of(X, kind), labels, price=2.0)
            np.testing.assert_array_equal(rule.weights != 0.0, np.eye(K, 20, dtype=bool))
            assert share(X, labels, rule) >= 0.99


def test_weights_minimise_the_loss(rows_of):
    """Against SciPy, for features that are given; of two children the second scores zero."""
    for K in (2, 3, 5):
        X, labels = blobs(K, n_rows=150, n_features=6, distance=0.7, seed=K)
        X *= 10.0 ** np.arange(-2, 4)
        weights = np.random.default_rng(K).random(150)
        kept = [0, 2, 5]
        rule = find(
            rows_of(X), labels, weights=weights, reluctance=np.isin(range(6), kept), price=0.0
        )
        assert used(rule) == set(kept)
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


def test_thresholds_give_the_sizes_asked_for():
    rng = np.random.default_rng(0)
    for K in (2, 3, 5):
        for turn in range(20):
            scores = rng.standard_normal((90, K)) + 2.0 * rng.standard_normal(K)
            counts = np.ones(90) if turn % 2 else rng.uniform(0.5, 1.5, 90)
            size = counts.sum() / K
            least, most = np.full(K, int(size) - 3), np.full(K, int(size) + 4)
            sides = scores.argmax(axis=1)
            moved = [
                np.bincount((scores + added).argmax(axis=1), weights=counts, minlength=K)
                for added in _thresholds(scores, counts, sides, least, most)
            ]
            assert any(((least <= sizes) & (sizes <= most)).all() for sizes in moved)


# ---- the rows that rules are sought on ----


def three_leaves(coordinates_of, column_of, counts=None, **how):
    """Return clusters of 20,000 rows: nearly all of them, 40 and 10."""
    X = np.random.default_rng(0).standard_normal((20_000, 3))
    labels = np.zeros(20_000, dtype=np.int32)
    labels[:40], labels[40:50] = 1, 2
    coordinates = coordinates_of(X, counts=counts, **how)
    if counts is not None:
        labels[counts == 0] = -1
    there = labels >= 0
    own = None if counts is None else counts[there]
    sizes = np.bincount(labels[there], weights=own).astype(int).tolist()
    tree = HierarchyBuilder(sum(sizes))
    tree.divide(tree.divide(0, [sizes[0], sizes[1] + sizes[2]])[1], sizes[1:])
    leafing = Leafing.of(tree, column_of(labels, coordinates), coordinates)
    rule = LinearRule(np.eye(3), np.zeros(3))
    return X, labels, Clusters(leafing, rule), coordinates


def witnesses_of(clusters, coordinates, seed):
    """Return rows that were drawn of all leaves."""
    return _heard(clusters, coordinates, seed, lambda found, run: found)


def seen(rows):
    """Return the values of rows."""
    return rows.scores(np.eye(rows.n_features)) + rows.center


def test_a_sample_has_rows_of_each_part(coordinates_of, column_of):
    X, labels, clusters, coordinates = three_leaves(coordinates_of, column_of)
    found = witnesses_of(clusters, coordinates, 5)
    n_first, *others = np.bincount(found.places).tolist()
    assert others == [40, 10]
    assert n_first == pytest.approx(OF_LEAF, rel=0.1)
    order = np.argsort(X[:, 0])
    at = order[np.searchsorted(X[order, 0], seen(found.rows)[:, 0] - 1e-9)]
    np.testing.assert_allclose(X[at], seen(found.rows), atol=1e-12)
    np.testing.assert_array_equal(labels[at], found.places)
    assert len(set(at.tolist())) == n_first + 50
    totals = np.bincount(found.places, weights=found.weights)
    np.testing.assert_allclose(totals, [19_950, 40, 10])
    own = found.chances[found.places == 0]
    assert (np.diff(own) > 0.0).all()
    assert own[-1] == pytest.approx(OF_LEAF / 19_950, rel=0.1)  # the lowest ones
    assert 0.3 < found.chances[found.places > 0].mean() < 0.7
    assert np.mean(at < 10_000) == pytest.approx(0.5, abs=0.05)

    search = _Search.of(clusters.tree, found, clusters.placement, Sparsity())
    everyone = np.arange(found.rows.n_rows)
    children = clusters.tree.children(0)
    drawn, counts = search._draw(children, everyone)
    assert (np.diff(drawn) > 0).all()
    sides = np.bincount(found.places[drawn] > 0)
    assert sides[1] == 50  # all, as there are no more than that
    assert len(drawn) == n_first + 50  # all there are; the first count for several
    assert counts.sum() == pytest.approx(SAMPLE, rel=0.02)
    few = np.flatnonzero(found.places > 0)
    drawn, counts = search._draw(clusters.tree.children(children[1]), few)
    np.testing.assert_array_equal(drawn, few)
    assert (counts == 1.0).all()


def test_witnesses_are_the_same_however_rows_lie(coordinates_of, column_of):
    _, _, clusters, coordinates = three_leaves(coordinates_of, column_of)
    one = witnesses_of(clusters, coordinates, 5)
    for how in ({"sizes": [7000, 1, 12_999]}, {"whole": False}, {"kind": "csr"}):
        _, _, clusters, coordinates = three_leaves(coordinates_of, column_of, **how)
        other = witnesses_of(clusters, coordinates, 5)
        for name in ("places", "chances", "weights"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_allclose(seen(one.rows), seen(other.rows), atol=1e-12)


def test_of_wide_rows_there_are_fewer_witnesses(coordinates_of, column_of, monkeypatch):
    _, _, clusters, coordinates = three_leaves(coordinates_of, column_of)
    for cells, wanted in ((3 * 3 * 700, 700), (1, 250)):
        monkeypatch.setattr(_rules, "CELLS", cells)
        sizes = np.bincount(witnesses_of(clusters, coordinates, 5).places)
        assert sizes[0] == pytest.approx(wanted, rel=0.2)
        assert sizes[1:].tolist() == [40, 10]


def test_copies_of_a_row_are_as_many_witnesses(coordinates_of, column_of):
    counts = np.random.default_rng(1).integers(0, 3, 20_000)
    counts[:50] = 1
    X, labels, clusters, coordinates = three_leaves(coordinates_of, column_of, counts)
    found = witnesses_of(clusters, coordinates, 5)
    index = np.repeat(np.arange(20_000), counts)
    again = coordinates_of(X[index])
    leafing = Leafing.of(clusters.tree, column_of(labels[index], again), again)
    other = witnesses_of(Clusters(leafing, clusters.placement), again, 5)
    for name in ("places", "chances", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(other, name))
    np.testing.assert_array_equal(seen(found.rows), seen(other.rows))


# ---- a tree ----


@pytest.fixture
def planned(coordinates_of, grown_on):
    """Return how to grow clusters of data, and find their witnesses."""

    def make(X, kind="dense", run=None, n_leaves=9, **how):
        run = run or Run()
        coordinates = coordinates_of(X, kind, pool=run.pool, **how)
        leafing, model = compete(grown_on(coordinates, n_leaves, run=run), coordinates)
        clusters = Clusters(leafing, coordinates.rule(model.weights, model.offsets))
        return clusters, witnesses_of(clusters, coordinates, run.seed), coordinates

    return make


def whole(tree, labels, X, kind, placement=None):
    """Return the tree with all rows, given their leaves, and what they tell of its rules."""
    tree.resize(np.bincount(labels, minlength=tree.n_leaves), [True] * tree.n_leaves)
    order = np.argsort(labels, kind="stable")
    rule = placement and Placement(placement, np.array(tree.leaves))
    rows = as_rows(sparse.csr_array(X) if kind == "csr" else X)
    return measured_rows(tree.freeze(rule, order=order), rows)


@pytest.fixture
def described(planned, values_of):
    def make(X, sparsity, run=None, kind="dense", branching=2, **how):
        run = run or Run()
        clusters, witnesses, coordinates = planned(X, kind, run, **how)
        tree = gather(clusters.tree, branching)
        describe(tree, witnesses, clusters.placement, sparsity, run)
        labels = values_of(clusters.leafing.labels, coordinates)
        return whole(tree, labels, X, kind, clusters.placement)

    return make


@pytest.fixture
def decided(planned):
    def make(X, sparsity, run=None, kind="dense", branching=2, **how):
        run = run or Run()
        clusters, witnesses, _ = planned(X, kind, run, **how)
        told = clusters.tree, witnesses, clusters.placement, sparsity, run
        tree, _ = decide(*told, stop=StoppingRule(), branching=branching)
        sizes = [tree.size(leaf) for leaf in tree.leaves]
        labels = place(tree.freeze(order=False), as_rows(X))
        np.testing.assert_array_equal(np.bincount(labels), sizes)  # all rows were witnesses
        return whole(tree, labels, X, kind)

    return make


def test_every_split_has_a_rule_and_its_fidelity_by_hand(described, data):
    sparsity = Sparsity(2.0, 4)
    for X in (data["animals"], data["cloud"]):
        for kind in KINDS:
            for branching in (2, 3):
                tree = described(X, sparsity, kind=kind, branching=branching)
                assert max(len(tree.children(node)) for node in [0]) == branching
                inner = [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]
                assert [node for node in range(tree.n_nodes) if tree.rules[node]] == inner
                for node in inner:
                    rule, right = tree.rules[node], 0
                    assert 1 <= len(used(rule)) <= 4
                    for position, child in enumerate(tree.children(node)):
                        right += int(np.sum(sent(X[tree.rows(child)], rule) == position))
                    expected = right / tree.sizes[node]
                    assert tree.fidelity[node] == pytest.approx(expected, abs=1e-12)
                assert np.isnan(np.delete(tree.fidelity, inner)).all()


def test_describing_moves_no_row_and_deciding_keeps_the_shape(planned, values_of, data):
    for name in ("planted", "animals", "wide"):
        X = data[name]
        clusters, witnesses, coordinates = planned(X)
        before = values_of(clusters.leafing.labels, coordinates)
        plan = clusters.tree
        sizes = [plan.size(node) for node in range(plan.n_nodes)]
        told = plan, witnesses, clusters.placement, Sparsity(), Run()
        tree, stands_for = decide(*told, stop=StoppingRule())
        assert stands_for == {leaf: leaf for leaf in tree.leaves}
        assert tree.parents == plan.parents
        inner = sorted(plan.inner)
        for node in inner:
            assert tree.recorded(node) == plan.recorded(node)
        after = place(tree.freeze(order=False), as_rows(X))
        assert np.mean(after == before) > 0.7
        assert [plan.size(node) for node in range(plan.n_nodes)] == sizes
        describe(*told)
        assert [plan.size(node) for node in range(plan.n_nodes)] == sizes
        np.testing.assert_array_equal(values_of(clusters.leafing.labels, coordinates), before)
        frozen = plan.freeze(order=False)
        assert [node for node in range(plan.n_nodes) if frozen.rules[node]] == inner


def overlap(tree):
    """Return how many features rules share with the ones above them."""
    total = 0
    for node in range(1, tree.n_nodes):
        if tree.rules[node]:
            above = set().union(*(used(tree.rules[a]) for a in tree.path(node)[:-1]))
            total += len(above & used(tree.rules[node]))
    return total


def test_novelty_avoids_the_features_above(described, decided, data):
    for make in (described, decided):
        totals = []
        for name in ("animals", "cloud", "middle"):
            totals.append([overlap(make(data[name], Sparsity(n))) for n in (0.0, 30.0)])
        assert all(high <= low for low, high in totals)
        assert sum(high < low for low, high in totals) >= 2


def test_rules_do_not_depend_on_how_they_are_sought(described, decided, data):
    for make in (described, decided):
        for name in ("animals", "wide"):
            plain = to_json(make(data[name], Sparsity()))
            with ThreadPoolExecutor(3) as pool:
                for sizes in (None, [50, len(data[name]) - 50]):
                    found = make(data[name], Sparsity(), Run(pool=pool), sizes=sizes)
                    assert to_json(found) == plain


# ---- rules that decide ----


def check_decided(model, X):
    """Every row is where the rules send it, and that is all that decides."""
    tree = model.hierarchy_
    assert tree.placement is None
    assert tree.follows.rows.all()
    assert (tree.follows.share == 1.0).all()
    again = measured_rows(tree, as_rows(X))  # the fit knew it
    np.testing.assert_array_equal(again.fidelity, tree.fidelity)
    np.testing.assert_array_equal(again.follows.gap, tree.follows.gap)
    assert (tree.fidelity[[rule is not None for rule in tree.rules]] == 1.0).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    backwards = np.arange(len(model.labels_))[::-1]
    np.testing.assert_array_equal(model.predict(X[backwards]), model.labels_[::-1])
    return tree


def test_every_row_follows_every_rule(data):
    for name, X in data.items():
        for branching in (2, 3, 5):
            for dtype in ("float32", "float64"):
                for kind in (np.asarray, sparse.csr_array):
                    Z = kind(X.astype(dtype))
                    model = Taxarbor(9, branching=branching, n_init=1, random_state=0).fit(Z)
                    tree = check_decided(model, Z)
                    assert tree.n_leaves == 9, name


def test_the_order_of_rows_is_not_seen(data):
    """Rows are met in another order, and end in the same clusters."""
    for name in ("planted", "animals"):
        X = data[name]
        one = Taxarbor(6, random_state=0).fit(X)
        moved = np.random.default_rng(0).permutation(len(X))
        np.testing.assert_array_equal(one.predict(X[moved]), one.labels_[moved])


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


@pytest.mark.filterwarnings(SIZES)
def test_sizes_and_depth_hold(data):
    for name, X in odd_sets().items():
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
                sizes = tree.sizes[tree.leaves]
                assert tree.n_leaves > 1
                assert sizes.min() >= least
                assert depth is None or tree.height <= depth
                if most and not depth and name == "ordinary":
                    assert sizes.max() <= most


@pytest.mark.filterwarnings(SIZES)
def test_fewer_children_are_neither_deeper_nor_fewer_leaves():
    """Where rows are too much alike for a wide rule, pairs are not gathered."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, (rng.integers(12, 200), rng.integers(1, 5))).astype(float)
        n_leaves = []
        for branching in (2, 3, 5):
            settings = {"branching": branching, "min_leaf_size": 5, "random_state": 0}
            for depth in (1, 2):
                tree = Taxarbor(8, max_depth=depth, **settings).fit(X).hierarchy_
                assert tree.height <= depth
            n_leaves.append(Taxarbor(6, **settings).fit(X).hierarchy_.n_leaves)
        assert min(n_leaves) == n_leaves[0]


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
                with pytest.warns(GrowthWarning, match=f"where {n_clusters} were asked for"):
                    model.fit(Z)
                tree = check_decided(model, Z)
                assert tree.n_leaves <= n_distinct
                assert branching == 3 or tree.n_leaves == n_distinct
    two = Taxarbor(2, random_state=0).fit([[0.0, 5.0], [1.0, 5.0]] * 2)
    assert two.labels_.tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])
    assert used(two.hierarchy_.rules[0]) == {0}


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


def test_what_rules_may_be():
    for rules in ("dense", None, True, "Decide"):
        with pytest.raises(InputError, match='rules must be "decide" or "describe", got') as e:
            Taxarbor(2, rules=rules).fit(np.eye(4))
        assert repr(rules) in str(e.value)
