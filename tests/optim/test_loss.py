"""The squared hinge: value, gradient and Hessian."""

import numpy as np

from taxarbor.optim import HingeLoss
from taxarbor.optim._loss import GramCache
from taxarbor.rows import as_rows

CHILDREN = (2, 3, 5)


def draw_weights(K, seed=0, size=0.4):
    return size * np.random.default_rng(seed).normal(size=(K, 7))


def margins(Z, W, labels):
    """Return ``1 - s_y + s_k`` for each row and each other child."""
    S = Z @ W.T
    own = np.take_along_axis(S, labels[:, None].astype(np.intp), axis=1)
    return (1.0 - own + S)[np.arange(S.shape[1]) != labels[:, None]]


def test_value_and_gradient_are_the_papers(problem, paper_loss):
    for K in CHILDREN:
        for seed in (0, 1):  # dense and sparse
            for dtype, close in (("float64", 1e-12), ("float32", 1e-5)):
                given = problem(K, dtype=dtype, seed=seed)
                point = given.loss.evaluate(draw_weights(K), given.labels)
                value, gradient = paper_loss(given.Z, point.W, given.labels)
                np.testing.assert_allclose(point.value, value, rtol=close)
                np.testing.assert_allclose(given.loss.gradient(point), gradient, atol=close)
                assert point.scores.dtype == dtype
                np.testing.assert_array_equal(point.W, point.W.astype(dtype))


def test_no_weights_and_known_scores_need_no_sweep(problem):
    for K in CHILDREN:
        given = problem(K)
        point = given.loss.zero(given.labels)
        assert not point.W.any()
        np.testing.assert_allclose(point.value, (K - 1) / K, rtol=1e-12)
        assert given.loss.n_passes == 0.0

        point = given.loss.evaluate(draw_weights(K), given.labels)
        assert given.loss.n_passes == 1.0
        again = given.loss.at(point.W, given.labels, point.scores)
        assert given.loss.n_passes == 1.0
        assert again.value == point.value
        np.testing.assert_array_equal(again.residual, point.residual)


def test_two_models_that_differ_alike_cost_alike(problem):
    """With two children only ``w_0 - w_1`` counts, which the compiled solver makes use of."""
    given = problem(2)
    W = draw_weights(2)
    halves = 0.5 * np.stack([W[0] - W[1], W[1] - W[0]])
    one, other = (given.loss.evaluate(V, given.labels) for V in (W, halves))
    np.testing.assert_allclose(one.value, other.value, rtol=1e-13)
    gradient = given.loss.gradient(one)
    np.testing.assert_allclose(gradient, given.loss.gradient(other), atol=1e-14)
    np.testing.assert_allclose(gradient[0], -gradient[1], atol=1e-14)
    H = given.loss.hessian(one, np.arange(7))
    np.testing.assert_allclose(H, np.array([1, -1, -1, 1])[:, None, None] * H[0], atol=1e-13)


def test_hessian_against_differences_of_the_gradient(problem):
    features, h = np.array([0, 2, 3, 6]), 1e-6
    F = len(features)
    for K in CHILDREN:
        given = problem(K)
        W = next(
            W
            for W in (draw_weights(K, seed) for seed in range(100))
            if np.abs(margins(given.Z, W, given.labels)).min() > 1e-4  # no kink within reach
        )
        H = given.loss.hessian(given.loss.evaluate(W, given.labels), features)
        assert H.shape == (K * K, F, F)
        for b in range(K):
            for j, feature in enumerate(features):
                step = np.zeros_like(W)
                step[b, feature] = h
                up, down = (
                    given.loss.gradient(given.loss.evaluate(V, given.labels))
                    for V in (W + step, W - step)
                )
                expected = (up - down)[:, features] / (2.0 * h)
                actual = H.reshape(K, K, F, F)[:, b, :, j]
                np.testing.assert_allclose(actual, expected, atol=1e-7)


def test_hessian_follows_weights_and_labels(problem):
    """Kept up to date over many points, it is what it would be from scratch."""
    for K in CHILDREN:
        given = problem(K, n_rows=150)
        rng = np.random.default_rng(1)
        features, labels, W = np.array([1, 2, 5]), given.labels, draw_weights(K)
        for turn in range(40):
            W = W + 0.05 * rng.normal(size=W.shape)
            if turn % 7 == 3:
                labels = labels.copy()
                labels[rng.integers(0, 150, 5)] = rng.integers(0, K, 5)
            if turn % 13 == 5:
                features = np.sort(rng.choice(7, 4, replace=False))
            kept = given.loss.hessian(given.loss.evaluate(W, labels), features)
            fresh = HingeLoss(given.loss.rows, K)
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
