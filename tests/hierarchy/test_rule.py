import copy
import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from taxarbor.hierarchy import LinearRule


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_a_rule_says_of_itself(dtype):
    W = np.array([[0, 1, 0, -0.0], [0, -1, 2, 0]], dtype=dtype)
    rule = LinearRule(W, np.arange(4, dtype=dtype))
    assert rule.n_children == 2
    assert rule.features.tolist() == [1, 2]
    assert rule.n_features_used == 2
    assert rule.dtype == rule.weights.dtype == rule.center.dtype == dtype
    assert rule.offsets.tolist() == [0, 0]
    assert rule.offsets.dtype == dtype
    assert repr(rule) == f"LinearRule(n_children=2, n_features=4, dtype={dtype})"


def test_a_rule_is_frozen_and_owns_its_arrays():
    W, center, offsets = np.eye(2), np.zeros(2), np.array([-0.0, 1.0])
    rule = LinearRule(W, center, offsets)
    W[0, 0] = offsets[1] = 5
    assert rule.weights[0, 0] == 1
    for again in (rule, copy.copy(rule), copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
        np.testing.assert_array_equal(again.weights, np.eye(2))
        with pytest.raises(ValueError, match="read-only"):
            again.weights[0, 0] = 5
        assert str(again.offsets) == "[0. 1.]"
        with pytest.raises(ValueError, match="read-only"):
            again.center[0] = 5
        with pytest.raises(ValueError, match="read-only"):
            again.offsets[0] = 5
        with pytest.raises(AttributeError):
            again.weights = W


@pytest.mark.parametrize(
    ("weights", "center", "message"),
    [
        (np.ones(2), np.ones(2), "shape"),
        (np.ones((2, 3)), np.ones(2), "shape"),
        (np.ones((1, 2)), np.ones(2), "two children"),
        (np.ones((2, 0)), np.ones(0), "one feature"),
        (np.ones((2, 2), "float32"), np.ones(2), "both"),
        (np.ones((2, 2), int), np.ones(2, int), "float32"),
        (np.full((2, 2), "a"), np.full(2, "a"), "float32"),
        (np.full((2, 2), np.nan), np.ones(2), "finite"),
        (np.ones((2, 2)), np.full(2, np.inf), "finite"),
    ],
)
def test_what_is_no_rule_is_refused(weights, center, message):
    with pytest.raises(ValueError, match=message):
        LinearRule(weights, center)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (np.zeros(3), r"shape \(n_children,\), \(2,\) for these weights, got \(3,\)"),
        (np.zeros((2, 1)), "shape"),
        (0.0, "shape"),
        (np.zeros(2, "float32"), "must be float64, as weights, got float32"),
        ([1, 2], "must be float64"),
        (np.array([0, np.inf]), "finite"),
    ],
)
def test_bad_offsets_are_refused(offsets, message):
    with pytest.raises(ValueError, match=message):
        LinearRule(np.ones((2, 3)), np.ones(3), offsets)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [0, 100])
def test_the_nearest_point(dtype, far):
    rng = np.random.default_rng(3)
    centers = (far + rng.normal(size=(7, 4))).astype(dtype)
    X = (far + 2 * rng.normal(size=(500, 4))).astype(dtype)
    rule = LinearRule.nearest(centers)
    assert {array.dtype for array in (rule.weights, rule.center, rule.offsets)} == {
        np.dtype(dtype)
    }
    scores = (X - rule.center) @ rule.weights.T + rule.offsets
    np.testing.assert_array_equal(scores.argmax(axis=1), cdist(X, centers).argmin(axis=1))


def test_of_equal_points_the_first():
    rule = LinearRule.nearest(np.array([[0.0], [3.0], [3.0]]))
    assert rule.weights.ravel().tolist() == [-2, 1, 1]
    assert rule.offsets.tolist() == [-2, -0.5, -0.5]


@pytest.mark.parametrize(
    ("centers", "message"),
    [
        (np.zeros(3), "shape"),
        (np.zeros((0, 3)), "shape"),
        (np.zeros((2, 3), int), "float32 or float64"),
        (np.zeros((1, 3)), "two children"),
        (np.full((2, 3), np.nan), "finite"),
        (np.array([[1e200], [-1e200]]), "finite"),
        (np.array([[3e38], [-3e38]], dtype="float32"), "finite"),
    ],
)
def test_points_that_make_no_rule(centers, message):
    with pytest.raises(ValueError, match=message):
        LinearRule.nearest(centers)
