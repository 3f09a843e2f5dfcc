"""The squared hinge: value, gradient and Hessian, in both of its forms."""

import numpy as np
import pytest

from taxarbor.optim import MultiHinge, PairHinge
from taxarbor.optim._loss import GramCache
from taxarbor.rows import as_rows


def draw_weights(models, n_features, seed=0, size=0.4):
    return size * np.random.default_rng(seed).normal(size=(models, n_features))


def children(W):
    """Return the weights of all children: ``(d / 2, -d / 2)`` for a pair's d."""
    return np.concatenate([W / 2, -W / 2]) if len(W) == 1 else W


def margins(Z, W, labels):
    """Return ``1 - s_y + s_k`` for each row and each other child."""
    S = Z @ children(W).T
    own = np.take_along_axis(S, labels[:, None].astype(np.intp), axis=1)
    return (1.0 - own + S)[np.arange(S.shape[1]) != labels[:, None]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", [0, 1], ids=["dense", "sparse"])
def test_value_is_the_papers(problem, form, paper_loss, dtype, seed):
    given = problem(*form, dtype=dtype, seed=seed)
    point = given.loss.evaluate(draw_weights(given.models, 7), given.labels)
    expected = paper_loss(given.Z, children(point.W), given.labels)
    np.testing.assert_allclose(
        point.value, expected, rtol=1e-5 if dtype == "float32" else 1e-12
    )
    assert point.scores.dtype == dtype
    np.testing.assert_array_equal(point.W, point.W.astype(dtype))


def test_without_weights_each_other_child_costs_one(problem, form):
    given = problem(*form)
    K = given.K
    point = given.loss.zero(given.labels)
    assert not point.W.any()
    np.testing.assert_allclose(point.value, (K - 1) / K, rtol=1e-12)
    assert given.loss.n_passes == 0.0


def test_known_scores_need_no_sweep(problem, form):
    given = problem(*form)
    point = given.loss.evaluate(draw_weights(given.models, 7), given.labels)
    assert given.loss.n_passes == 1.0
    again = given.loss.at(point.W, given.labels, point.scores)
    assert given.loss.n_passes == 1.0
    assert again.value == point.value
    np.testing.assert_array_equal(again.residual, point.residual)


@pytest.mark.parametrize("seed", [0, 1], ids=["dense", "sparse"])
def test_gradient_against_finite_differences(problem, form, paper_loss, seed):
    given = problem(*form, seed=seed)
    W, h = draw_weights(given.models, 7), 1e-5
    gradient = given.loss.gradient(given.loss.evaluate(W, given.labels))
    assert gradient.shape == W.shape
    expected = np.empty_like(W)
    for at in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[at] = h
        up = paper_loss(given.Z, children(W + step), given.labels)
        down = paper_loss(given.Z, children(W - step), given.labels)
        expected[at] = (up - down) / (2.0 * h)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_gradient_against_the_plain_formula(problem, form):
    given = problem(*form)
    W = draw_weights(given.models, 7)
    A = children(W)
    S = given.Z @ A.T
    expected = np.zeros_like(A)
    for x, s, y in zip(given.Z, S, given.labels, strict=True):
        for k in range(given.K):
            slack = max(0.0, 1.0 - s[y] + s[k]) if k != y else 0.0
            expected[k] += 2.0 * slack * x / (len(S) * given.K)
            expected[y] -= 2.0 * slack * x / (len(S) * given.K)
    if given.models == 1:  # the derivative in d of (d / 2, -d / 2)
        expected = (expected[:1] - expected[1:]) / 2
    gradient = given.loss.gradient(given.loss.evaluate(W, given.labels))
    np.testing.assert_allclose(gradient, expected, atol=1e-13)


def test_hessian_against_differences_of_the_gradient(problem, form):
    given = problem(*form)
    h = 1e-6
    W = next(
        W
        for W in (draw_weights(given.models, 7, seed) for seed in range(100))
        if np.abs(margins(given.Z, W, given.labels)).min() > 1e-4  # no kink within reach
    )
    features = np.array([0, 2, 3, 6])
    H = given.loss.hessian(given.loss.evaluate(W, given.labels), features)
    M, F = given.models, len(features)
    assert H.shape == (M * M, F, F)
    for b in range(M):
        for j, feature in enumerate(features):
            step = np.zeros_like(W)
            step[b, feature] = h
            up = given.loss.gradient(given.loss.evaluate(W + step, given.labels))
            down = given.loss.gradient(given.loss.evaluate(W - step, given.labels))
            expected = (up - down)[:, features] / (2.0 * h)
            actual = H.reshape(M, M, F, F)[:, b, :, j]
            np.testing.assert_allclose(actual, expected, atol=1e-7)


def test_hessian_follows_weights_and_labels(problem, form):
    """Kept up to date over many points, it is what it would be from scratch."""
    given = problem(*form, n_rows=150)
    rng = np.random.default_rng(1)
    features, labels, W = np.array([1, 2, 5]), given.labels, draw_weights(given.models, 7)
    for turn in range(40):
        W = W + 0.05 * rng.normal(size=W.shape)
        if turn % 7 == 3:
            labels = labels.copy()
            labels[rng.integers(0, 150, 5)] = rng.integers(0, given.K, 5)
        if turn % 13 == 5:
            features = np.sort(rng.choice(7, 4, replace=False))
        kept = given.loss.hessian(given.loss.evaluate(W, labels), features)
        fresh = PairHinge(given.loss.rows)
        if given.models > 1:
            fresh = MultiHinge(given.loss.rows, given.K)
        scratch = fresh.hessian(fresh.evaluate(W, labels), features)
        np.testing.assert_allclose(kept, scratch, rtol=1e-10, atol=1e-12)


def test_gram_cache():
    X = np.random.default_rng(2).normal(size=(200, 6))
    rows = as_rows(X)
    Z = X - rows.center
    cache, features = GramCache(rows), np.array([0, 3, 4])
    rng = np.random.default_rng(3)
    mask = np.zeros(200, dtype=np.uint8)
    for turn in range(60):
        before, mask = mask, mask.copy()
        mask[rng.integers(0, 200, 1 + turn % 20)] ^= 1
        gram, touched = cache.of(mask, features)
        inside = Z[mask == 1][:, features]
        np.testing.assert_allclose(gram, inside.T @ inside, rtol=1e-10, atol=1e-10)
        assert touched == min(np.count_nonzero(mask != before), np.count_nonzero(mask))
    gram, touched = cache.of(np.zeros(200, dtype=np.uint8), features)
    assert touched == 0
    np.testing.assert_array_equal(gram, np.zeros((3, 3)))
    again, touched = cache.of(mask, np.array([5]))
    assert touched == np.count_nonzero(mask)
    np.testing.assert_allclose(again, [[(Z[mask == 1, 5] ** 2).sum()]])


def test_a_pair_is_two_of_many(problem):
    pair, multi = problem(2, "pair"), problem(2, "multi")
    d = draw_weights(1, 7)
    a = pair.loss.evaluate(d, pair.labels)
    b = multi.loss.evaluate(children(d), multi.labels)
    np.testing.assert_allclose(a.value, b.value, rtol=1e-13)
    in_pair, in_multi = pair.loss.gradient(a), multi.loss.gradient(b)
    np.testing.assert_allclose(in_pair, (in_multi[:1] - in_multi[1:]) / 2, atol=1e-14)
    np.testing.assert_allclose(in_multi[0], -in_multi[1], atol=1e-14)
    features = np.arange(7)
    H, blocks = pair.loss.hessian(a, features), multi.loss.hessian(b, features)
    np.testing.assert_allclose(blocks, np.array([1, -1, -1, 1])[:, None, None] * H, atol=1e-13)
