"""The squared hinge: value and gradient."""

import numpy as np

CHILDREN = (2, 3, 5)


def draw_weights(K, seed=0, size=0.4):
    return size * np.random.default_rng(seed).normal(size=(K, 7))


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
