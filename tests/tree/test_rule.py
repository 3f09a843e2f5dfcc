"""Rules of nodes: what they hold and what they refuse."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from taxarbor.tree import LinearRule
from taxarbor.tree.rule import threshold_of, unscale_rule
from tests.tree.conftest import assert_refused

DTYPES = ("float32", "float64")


def test_what_a_rule_says_of_itself():
    for dtype in DTYPES:
        W = np.array([[0, 1, 0, -0.0], [0, -1, 2, 0]], dtype=dtype)
        rule = LinearRule(W, np.arange(4, dtype=dtype))
        assert (rule.n_targets, rule.n_features_used) == (2, 2)
        assert rule.features.tolist() == [1, 2]
        assert rule.dtype == rule.weights.dtype == rule.center.dtype == dtype
        assert rule.offsets.tolist() == [0, 0]
        assert rule.offsets.dtype == dtype
        assert repr(rule) == f"LinearRule(n_targets=2, n_features=4, dtype={dtype})"


def test_a_rule_is_frozen_and_owns_its_arrays():
    W, center, offsets = np.eye(2), np.zeros(2), np.array([-0.0, 1.0])
    rule = LinearRule(W, center, offsets)
    W[0, 0] = offsets[1] = 5
    np.testing.assert_array_equal(rule.weights, np.eye(2))
    assert str(rule.offsets) == "[0. 1.]"
    for array in (rule.weights, rule.center, rule.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(AttributeError):
        rule.weights = W


def test_what_is_no_rule_is_refused():
    W, two = np.ones((2, 2)), np.ones(2)
    cases = [(two, two), (np.ones((2, 3)), two), (np.ones((1, 2)), two)]
    cases += [(np.ones((2, 0)), np.ones(0)), (W.astype("float32"), two)]
    cases += [(W.astype(kind), two.astype(kind)) for kind in (int, str)]
    cases += [(W * np.nan, two), (W, two * np.inf)]
    offsets = np.zeros(3), np.zeros((2, 1)), 0.0, np.zeros(2, "float32"), [1, 2], two * np.inf
    cases += [(W, two, wrong) for wrong in offsets]
    assert_refused(lambda parts: LinearRule(*parts), cases)


def test_the_nearest_point():
    for dtype in DTYPES:
        for far in (0, 100):
            rng = np.random.default_rng(3)
            centers = (far + rng.normal(size=(7, 4))).astype(dtype)
            X = (far + 2 * rng.normal(size=(500, 4))).astype(dtype)
            rule = LinearRule.nearest(centers)
            assert rule.weights.dtype == rule.center.dtype == rule.offsets.dtype == dtype
            scores = (X - rule.center) @ rule.weights.T + rule.offsets
            nearest = cdist(X, centers).argmin(axis=1)
            np.testing.assert_array_equal(scores.argmax(axis=1), nearest)

    # Of equal points the first.
    rule = LinearRule.nearest(np.array([[0.0], [3.0], [3.0]]))
    assert rule.weights.ravel().tolist() == [-2, 1, 1]
    assert rule.offsets.tolist() == [-2, -0.5, -0.5]


def test_points_that_make_no_rule():
    shapes = [np.zeros(3), np.zeros((0, 3)), np.zeros((2, 3), int), np.zeros((1, 3))]
    too_far = np.array([[1e200], [-1e200]]), np.array([[3e38], [-3e38]], dtype="float32")
    assert_refused(LinearRule.nearest, [*shapes, np.full((2, 3), np.nan), *too_far])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_threshold_beyond_all_numbers_warns_of_nothing(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    weights, offsets = np.array([[0.0], [tiny]], dtype), np.array([1, 0], dtype)
    rule = LinearRule(weights, np.zeros(1, dtype), offsets)
    assert threshold_of(rule, 0) >= np.finfo(dtype).max


def test_float32_far_from_zero():
    """There, a centre rounded to float32 is off by a good part of a column's deviation."""
    rng = np.random.default_rng(1)
    shift, factor = np.array([1e5, 1e6, 3e6, 1.0]), np.array([1.0, 2.0, 3.0, 1.0])
    X = (shift + rng.normal(size=(2000, 4)) * factor).astype("float32")
    scaled = ((X - shift) / factor).astype("float32")
    for _ in range(9):  # whichever way the centre is rounded
        center = rng.normal(size=4).astype("float32")
        rule = LinearRule(rng.normal(size=(3, 4)).astype("float32"), center)
        other = unscale_rule(rule, shift, factor)
        expected = (scaled - rule.center) @ rule.weights.T + rule.offsets
        scores = (X - other.center) @ other.weights.T + other.offsets
        assert other.dtype == np.float32
        np.testing.assert_allclose(scores, expected, atol=1e-4)
