"""What scikit-learn asks of its estimators. No failure is expected."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxarbor import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral

ESTIMATORS = [
    HMMC(),
    HMMC(branching=3),
    HMMC(penalty="l2"),
    HMMC(penalty="exclusive"),
    HMMC(max_features=2),
    HMMC(alpha=0.1),
    HMMC(units="raw", alpha=0.01, balance=0.9),
    HMMC(None, max_depth=2, balance=None, n_init=2),
    HMMC(refine=False, n_init=1, balance=0.3),
    HMMC(refine=False, branching=3),
    HMMC(refine=False, penalty="l2"),
    HMMC(refine=False, penalty="exclusive"),
    HMMC(refine=False, solver="pqn"),
    HMMC(refine=False, units="raw", alpha=0.003, balance=0.9, center="data"),
    HMMC(None, refine=False, max_depth=2, balance=None, n_init=2),
    MMC(),
    MMC(n_clusters=3, penalty="l1", solver="newton"),
    HierarchicalKMeans(),
    HierarchicalKMeans(7, branching=3, criterion="compact", n_init=3),
    HierarchicalKMeans(None, max_leaf_size=5),
    HierarchicalSpectral(),
    HierarchicalSpectral(7, branching=3, criterion="compact", n_neighbors=3),
    HierarchicalSpectral(3, branching=3, n_init=1),
]


# Some of scikit-learn's data are ten rows, too few for eight leaves: the warning is right.
@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator, check):
    check(estimator)
