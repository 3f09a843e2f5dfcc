"""What scikit-learn asks of its estimators; of clusterers, it asks one thing wrongly."""

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from taxarbor import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, Taxarbor
from taxarbor.estimators._base import HierarchyEstimator

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
WHY = "taken for a classifier of four classes, as it takes sparse rows and has predict_proba"
WRONG = {f"check_estimator_sparse_{kind}": WHY for kind in ("array", "matrix")}
"""In scikit-learn 1.9, which reads ``tags.classifier_tags``: None, of what is no classifier."""


@parametrize_with_checks([Taxarbor(), HMMC()], expected_failed_checks=lambda _: WRONG)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda one: type(one).__name__)
def test_all_checks_of_scikit_learn(estimator):
    results = check_estimator(estimator, on_skip=None, expected_failed_checks=WRONG)
    assert "passed" in {result["status"] for result in results}
    failed = [result for result in results if result["status"] not in ("passed", "skipped")]
    assert {result["check_name"]: result["status"] for result in failed} == dict.fromkeys(
        WRONG, "xfail"
    )
    for result in failed:
        assert "has no attribute 'multi_class'" in str(result["exception"].__cause__)


@pytest.mark.parametrize(
    "kind", [Taxarbor, HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral]
)
def test_nothing_else_is_wrong_with_sparse_rows(kind, monkeypatch):
    monkeypatch.delattr(HierarchyEstimator, "predict_proba")
    for name in WRONG:
        getattr(estimator_checks, name)(kind.__name__, kind())
