import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC, MMC, GrowthWarning, make_planted_tree

PENALTIES = ["group", "l1", "l2"]


def fit(X, n_clusters=4, **parameters):
    return MMC(n_clusters, **{"random_state": 0, **parameters}).fit(X)


@pytest.fixture(scope="module")
def flat():
    """Four groups of equal size."""
    return make_planted_tree(400, depth=1, branching=4, random_state=2)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 8])
def test_a_root_with_one_child_per_cluster(X, n_clusters):
    model = fit(X, n_clusters)
    tree = model.hierarchy_
    assert tree.n_leaves == n_clusters
    assert tree.height == min(n_clusters - 1, 1)
    assert set(model.labels_) == set(range(n_clusters))
    np.testing.assert_array_equal(model.labels_, tree.labels)
    np.testing.assert_array_equal(model.labels_, MMC(n_clusters, random_state=0).fit_predict(X))


@pytest.mark.parametrize("penalty", PENALTIES)
def test_planted_groups_are_found(flat, penalty):
    labels = fit(flat.X, penalty=penalty).labels_
    assert len(set(zip(labels, flat.labels, strict=True))) == 4


@pytest.mark.parametrize("n_clusters", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_one_split_of_hmmc(X, penalty, n_clusters):
    setting = {"refine": False, "n_init": 1, "balance": 0.3, "random_state": 0}
    tree = HMMC(n_clusters, branching=n_clusters, penalty=penalty, **setting).fit(X)
    assert fit(X, n_clusters, penalty=penalty).hierarchy_.to_json() == tree.hierarchy_.to_json()


@pytest.mark.parametrize("n_clusters", [2, 4, 7])
@pytest.mark.parametrize("balance", [0.3, 1.0, (0.9, 1.1)])
def test_sizes(data, bounds, n_clusters, balance):
    X = data["cloud"]
    sizes = np.bincount(fit(X, n_clusters, balance=balance).labels_)
    pair = balance if isinstance(balance, tuple) else (balance, 2 - balance)
    least, most = bounds(len(X), n_clusters, pair)
    assert least <= sizes.min() <= sizes.max() <= most


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("solver", ["newton", "pqn"])
def test_kinds_of_rows_agree(flat, dtype, penalty, solver):
    X = flat.X.astype(dtype)
    dense, csr = (fit(Z, penalty=penalty, solver=solver) for Z in (X, sparse.csr_array(X)))
    np.testing.assert_array_equal(dense.labels_, csr.labels_)
    np.testing.assert_array_equal(dense.predict(X), dense.labels_)
    assert dense.hierarchy_.rules[0].dtype == csr.hierarchy_.rules[0].dtype == dtype


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("solver", ["newton", "pqn"])
def test_objective_never_rises(data, penalty, solver):
    info = fit(data["cloud"], 5, penalty=penalty, solver=solver).hierarchy_.info[0]
    assert np.all(np.diff(info.trace) <= 0.0)
    assert info.n_iter >= 1
    assert info.n_passes > 0


def test_paper_setting(data, bounds):
    X = data["animals"]
    tree = fit(X, 5, units="raw", alpha=1e-2, balance=(0.9, 1.1)).hierarchy_
    least, most = bounds(len(X), 5, (0.9, 1.1))
    assert all(least <= size <= most for size in tree.n_rows[tree.leaves])


def test_more_starts_are_never_worse(data):
    roots = [fit(data["cloud"], n_init=n).hierarchy_.objective[0] for n in (1, 3, 6)]
    assert roots == sorted(roots, reverse=True)


def test_too_few_rows_for_so_many_clusters(X):
    with pytest.warns(GrowthWarning, match="1 leaf where 8 .* 10 rows are too few for 8"):
        assert not fit(X[:10], 8).labels_.any()


@pytest.mark.parametrize(
    ("parameters", "error", "told"),
    [
        ({"n_clusters": None}, TypeError, "n_clusters must be an integer, got None"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": 601}, ValueError, "n_clusters=601 .* n_samples=600 rows; lower"),
        ({"penalty": "exclusive"}, ValueError, "penalty must be one of .*; got 'exclusive'"),
        ({"alpha": -1}, ValueError, "alpha must be finite and not negative, got -1"),
        ({"balance": (0.5, 0.8)}, ValueError, r"low <= 1 <= high.* got \(0.5, 0.8\)"),
        ({"units": "cm"}, ValueError, "units must be one of 'relative', 'raw'; got 'cm'"),
        ({"solver": "sgd"}, ValueError, "solver must be one of 'auto', .*; got 'sgd'"),
        ({"n_init": 2.0}, TypeError, "n_init must be an integer, got 2.0"),
        ({"tol": None}, TypeError, "tol must be a number, got None"),
    ],
)
def test_bad_parameters(X, parameters, error, told):
    with pytest.raises(error, match=told):
        MMC(**parameters).fit(X)


def test_unfitted(X):
    with pytest.raises(NotFittedError, match="This MMC instance is not fitted yet"):
        MMC().predict(X)
