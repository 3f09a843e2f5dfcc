"""What scikit-learn asks of its estimators. No failure is expected."""

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from taxarbor import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, Taxarbor

# Some of scikit-learn's data are ten rows, too few for eight leaves: the warning is right.
pytestmark = pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")

OTHERS = [
    Taxarbor(branching=3, max_features=2),
    Taxarbor(None, max_depth=2, balance=None, n_init=2),
    Taxarbor(None, min_leaf_size=3, max_leaf_size=7, novelty=0.0),
    HMMC(branching=3, balance=0.3, center="node", n_init=4),
    HMMC(3, penalty="l2", solver="pqn"),
    HMMC(penalty="exclusive"),
    HMMC(units="raw", alpha=0.01, beta=0.01),
    HMMC(None, max_depth=2, balance=None),
    MMC(),
    MMC(n_clusters=3, penalty="l1", solver="newton"),
    HierarchicalKMeans(),
    HierarchicalKMeans(7, branching=3, criterion="compact", n_init=3),
    HierarchicalKMeans(None, max_leaf_size=5),
    HierarchicalSpectral(),
    HierarchicalSpectral(7, branching=3, criterion="compact", n_neighbors=3),
    HierarchicalSpectral(3, branching=3, n_init=1),
]


@parametrize_with_checks([Taxarbor(), HMMC()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda one: type(one).__name__)
def test_all_checks_of_scikit_learn(estimator):
    results = check_estimator(estimator, on_skip=None)
    statuses = {result["status"] for result in results}
    assert "passed" in statuses
    assert statuses <= {"passed", "skipped"}
