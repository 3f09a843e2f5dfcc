"""Rules that reproduce a division by few features."""

import numpy as np
import pytest

from taxarbor.refine import Sparsity, find_rule
from taxarbor.refine._rules import LEAST, SAMPLE, _sample, agreement
from taxarbor.split import Regularizer

PENALTIES = ["group+exclusive", "group", "l1"]


def free(kind="group+exclusive", beta=1.0, most=None):
    return Sparsity(Regularizer(kind, 1.0, beta, True), False, most)


def given(alpha, beta=0.0, kind="group+exclusive", *, relative=True):
    return Sparsity(Regularizer(kind, alpha, beta, relative), True, None)


def find(rows, labels, sparsity, usage=None, seed=0):
    usage = np.zeros(rows.n_features) if usage is None else usage
    return find_rule(rows, labels, sparsity, usage, np.random.default_rng(seed))


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


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("K", [2, 3, 4])
def test_a_clear_division_is_reproduced(rows_of, kind, penalty, K):
    X, labels = blobs(K, distance=8.0)
    rows = rows_of(X, kind)
    rule = find(rows, labels, free(penalty))
    assert rule.weights.shape == (K, X.shape[1])
    assert used(rule) <= {0, 1, 2}
    assert share(X, labels, rule) >= 0.95
    np.testing.assert_allclose(agreement(rows, labels, rule), share(X, labels, rule))


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("distance", [0.0, 1.0, 4.0])
def test_the_budget_is_kept(rows_of, most, penalty, K, distance):
    X, labels = blobs(K, n_features=20, n_telling=8, distance=distance, seed=3)
    rule = find(rows_of(X), labels, free(penalty, most=most))
    assert 1 <= len(used(rule)) <= most


@pytest.mark.parametrize("K", [2, 3])
def test_more_features_hardly_tell_less(rows_of, K):
    X, labels = blobs(K, n_features=20, n_telling=8, distance=0.8, seed=4)
    shares = [share(X, labels, find(rows_of(X), labels, free(most=m))) for m in (1, 2, 5, 12)]
    assert shares[-1] > shares[0]
    assert min(np.diff(shares)) >= -0.02


@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("K", [2, 3])
def test_a_stronger_alpha_uses_fewer_features(rows_of, data, kind, K):
    X = data["cloud"]
    labels = np.argsort(np.argsort(X @ np.linspace(1.0, 0.1, 8))) * K // len(X)
    counts = [
        len(used(find(rows_of(X), labels, given(a, kind=kind)))) for a in (0.0, 0.1, 0.3, 0.9)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 8
    assert counts[-1] < 8


def test_beyond_the_critical_strength_one_feature_is_left(rows_of):
    X, labels = blobs()
    rule = find(rows_of(X), labels, given(5.0))
    means = np.abs(X[labels == 0].mean(axis=0) - X[labels == 1].mean(axis=0))
    assert used(rule) == {int(means.argmax())}


@pytest.mark.parametrize("sparsity", [free(beta=20.0), given(0.1, 20.0)])
def test_features_of_ancestors_are_avoided(rows_of, sparsity):
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 6))
    X[:, 0] += 9.0 * labels
    X[:, 1] += 7.0 * labels
    usage = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    heedless = free(beta=0.0) if not sparsity.is_fixed else given(0.1, 0.0)
    assert 0 in used(find(rows_of(X), labels, heedless, usage))
    rule = find(rows_of(X), labels, sparsity, usage)
    assert 0 not in used(rule)
    assert share(X, labels, rule) >= 0.95


@pytest.mark.parametrize("kind", ["group+exclusive", "group", "exclusive", "l1", "l2"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("K", [2, 3])
def test_constant_columns_get_no_weight(rows_of, kind, dtype, K):
    X, labels = blobs(K, distance=1.0)
    X = np.insert(X, [0, 5], [0.1, 1e4 / 3], axis=1).astype(dtype)
    is_fixed = kind in {"exclusive", "l2"}
    sparsity = Sparsity(Regularizer(kind, 0.01, 0.01, True), is_fixed, None)
    rule = find(rows_of(X), labels, sparsity, np.ones(X.shape[1]))
    assert not used(rule) & {0, 6}
    assert used(rule)
    assert rule.weights.dtype == rule.center.dtype == rule.offsets.dtype == dtype


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("factor", [1e-3, 1000.0])
def test_the_scale_is_not_seen(rows_of, K, factor):
    X, labels = blobs(K, distance=1.0)
    one, other = (find(rows_of(Z), labels, free()) for Z in (X, X * factor))
    assert used(one) == used(other)
    np.testing.assert_allclose(
        other.weights * factor, one.weights, atol=1e-4 * np.abs(one.weights).max()
    )


def test_a_small_child_is_seen(rows_of):
    """Of a thousand rows five are another group: the threshold lies in the gap."""
    X = np.random.default_rng(0).standard_normal((1000, 4))
    labels = (np.arange(1000) < 5).astype(np.intp)
    X[:5, 2] += 30.0
    rule = find(rows_of(X), labels, free())
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


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_best_one(rows_of, kind, seed):
    """On one feature all cuts can be tried: no other sends more rows the right way."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((60, 1)), 1)  # with ties
    labels = (rng.standard_normal(60) > 1.5 * X[:, 0]).astype(np.intp)
    rule = find(rows_of(X, kind), labels, free())
    values = np.unique(X)
    cuts = np.concatenate(([values[0] - 1], (values[1:] + values[:-1]) / 2, [values[-1] + 1]))
    falls = rule.weights[0, 0] < 0.0
    best = max(np.mean(((X[:, 0] > cut) == falls) == labels) for cut in cuts)
    assert share(X, labels, rule) == pytest.approx(best)
    scores = (X - rule.center) @ rule.weights.T + rule.offsets
    assert np.abs(scores[:, 0] - scores[:, 1]).min() > 0.0  # in a gap, not on a row


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_one_feature_is_enough_where_one_tells_all(rows_of, noise):
    """Thirty features say the same: along a path they would all come in at once."""
    labels = np.repeat([0, 1], 100)
    X = np.where(labels[:, None] == 0, -4.0, 4.0) * np.ones((200, 30))
    X += noise * np.random.default_rng(0).standard_normal(X.shape)
    rule = find(rows_of(X), labels, free())
    assert len(used(rule)) == 1
    assert share(X, labels, rule) == 1.0


def test_children_of_equal_means_have_a_rule(rows_of):
    X = np.array([[0.0, 0.0, 1.0], [2.0, 2.0, 1.0], [0.0, 2.0, 1.0], [2.0, 0.0, 1.0]] * 3)
    rule = find(rows_of(X), np.array([0, 0, 1, 1] * 3), free(most=1))
    assert len(used(rule)) == 1
    assert used(rule) <= {0, 1}


@pytest.mark.parametrize("seed", range(5))
def test_a_larger_budget_is_left_alone_where_it_does_not_help(rows_of, seed):
    X, labels = blobs(n_telling=2, distance=1.5, seed=seed)
    few, many = (find(rows_of(X), labels, free(most=most)) for most in (4, 12))
    assert len(used(few)) <= 4
    assert share(X, labels, many) >= share(X, labels, few) - 0.02
