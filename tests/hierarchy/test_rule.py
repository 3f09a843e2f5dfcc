import copy
import pickle

import numpy as np
import pytest

from taxarbor.hierarchy import LinearRule


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_a_rule_says_of_itself(dtype):
    W = np.array([[0, 1, 0, -0.0], [0, -1, 2, 0]], dtype=dtype)
    rule = LinearRule(W, np.arange(4, dtype=dtype))
    assert rule.n_children == 2
    assert rule.features.tolist() == [1, 2]
    assert rule.n_features_used == 2
    assert rule.dtype == rule.weights.dtype == rule.center.dtype == dtype
    assert repr(rule) == f"LinearRule(n_children=2, n_features=4, dtype={dtype})"


def test_a_rule_is_frozen_and_owns_its_arrays():
    W, center = np.eye(2), np.zeros(2)
    rule = LinearRule(W, center)
    W[0, 0] = 5
    assert rule.weights[0, 0] == 1
    for again in (rule, copy.copy(rule), copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
        np.testing.assert_array_equal(again.weights, np.eye(2))
        with pytest.raises(ValueError, match="read-only"):
            again.weights[0, 0] = 5
        with pytest.raises(ValueError, match="read-only"):
            again.center[0] = 5
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
