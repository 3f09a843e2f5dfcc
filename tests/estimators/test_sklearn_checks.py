"""scikit-learn's checks of estimators; two of them are wrong for clusterers."""

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from taxarbor import HMMC, Taxarbor

# Some of scikit-learn's data are ten rows, too few for eight leaves: the warning is right.
pytestmark = pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")

OTHERS = [
    Taxarbor(branching=3, max_features=2),
    Taxarbor(None, max_depth=2),
    Taxarbor(None, min_leaf_size=3, max_leaf_size=7, n_init=1),
    HMMC(branching=3, balance=0.3, center="node", n_init=4),
    HMMC(3, penalty="l2", solver="pqn"),
    HMMC(penalty="exclusive"),
    HMMC(units="raw", alpha=0.01, beta=0.01),
    HMMC(None, max_depth=2, balance=None),
    HMMC(3, branching=3, penalty="l1", solver="newton"),
]
WHY = "taken for a classifier of four classes, as it takes sparse rows and has predict_proba"
WRONG = {f"check_estimator_sparse_{kind}": WHY for kind in ("array", "matrix")}
"""In scikit-learn 1.9, which reads ``tags.classifier_tags``: None, of what is no classifier."""
SHUFFLES = "compares rows in one order with rows in another, which start elsewhere"
MIXED = {
    f"check_sample_weight_equivalence_on_{kind}_data": SHUFFLES for kind in ("dense", "sparse")
}
"""As of scikit-learn's own clusterers. In one order, weights and repeats are equal."""


@parametrize_with_checks([Taxarbor(), HMMC()], expected_failed_checks=lambda _: WRONG | MIXED)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.long
@pytest.mark.parametrize("estimator", OTHERS, ids=str)
def test_all_checks_of_scikit_learn(estimator):
    results = check_estimator(estimator, on_skip=None, expected_failed_checks=WRONG | MIXED)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert {*WRONG} <= failed <= {*WRONG, *MIXED}
    for result in results:  # the other checks raise where they fail
        if result["check_name"] in WRONG:
            assert "has no attribute 'multi_class'" in str(result["exception"].__cause__)


@pytest.mark.parametrize("kind", [Taxarbor, HMMC])
def test_nothing_else_is_wrong_with_sparse_rows(kind, monkeypatch):
    monkeypatch.delattr(kind.__mro__[1], "predict_proba")
    for name in WRONG:
        getattr(estimator_checks, name)(kind.__name__, kind())


@pytest.mark.parametrize("estimator", [Taxarbor(), HMMC(), *OTHERS[:3]], ids=str)
def test_weights_are_repeats_in_the_same_order(estimator, monkeypatch):
    monkeypatch.setattr(estimator_checks, "shuffle", lambda *arrays, **_: arrays)
    if "balance" in estimator.get_params():  # which would divide copies of a row
        estimator = clone(estimator).set_params(balance=None)
    for name in MIXED:
        getattr(estimator_checks, name)(type(estimator).__name__, estimator)
