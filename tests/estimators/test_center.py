"""One origin for all nodes, as in the paper."""

import numpy as np
import pytest
from scipy import sparse

from taxarbor import HMMC, GrowthWarning, make_planted_tree

GREEDY = {"refine": False, "n_init": 1, "balance": 0.3, "random_state": 0}


@pytest.mark.parametrize("branching", [2, 3])
def test_with_the_datas_center_all_splits_are_seen_from_one_point(branching):
    X = make_planted_tree(300).X
    tree = HMMC(7, branching=branching, center="data", **GREEDY).fit(X).hierarchy_
    centers = [rule.center for rule in tree.rules if rule is not None]
    assert len(centers) > 1
    for center in centers:
        np.testing.assert_allclose(center, X.mean(axis=0), atol=1e-12)
    own = HMMC(7, branching=branching, **GREEDY).fit(X).hierarchy_
    np.testing.assert_array_equal(own.rules[0].weights, tree.rules[0].weights)
    assert not np.allclose(own.rules[1].center, X.mean(axis=0))


def test_with_the_datas_center_predict_routes_as_fit_did():
    free = {**GREEDY, "balance": None}
    X = make_planted_tree(300).X
    model = HMMC(8, center="data", **free).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    thin = HMMC(8, center="data", **free).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(thin.labels_, model.labels_)


def test_with_the_datas_center_equal_rows_are_still_refused():
    X = np.repeat(np.array([[0.0, 0.0], [9.0, 9.0]]), 6, axis=0)
    with pytest.warns(GrowthWarning, match="equal"):
        tree = HMMC(4, center="data", **GREEDY).fit(X).hierarchy_
    assert tree.n_leaves == 2


def test_an_unknown_center_is_refused(way):
    with pytest.raises(ValueError, match="center must be one of 'node', 'data'"):
        HMMC(2, center="origin", **way).fit(np.arange(8.0).reshape(4, 2))
