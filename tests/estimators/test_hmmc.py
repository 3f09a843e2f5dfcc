import warnings
from contextlib import suppress

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC, GrowthWarning, Hierarchy
from taxarbor._types import Status

KINDS = ["float64 dense", "float64 csr", "float32 dense", "float32 csr"]
PENALTIES = ["group+exclusive", "group", "exclusive", "l1", "l2"]
GREEDY = {"refine": False, "n_init": 1, "balance": 0.3}
PAPER = {**GREEDY, "units": "raw", "alpha": 1e-2, "beta": 1e-2, "balance": (0.9, 1.1)}


def fit(X, n_clusters=8, **parameters):
    return HMMC(n_clusters, **{"random_state": 0, **parameters}).fit(X)


# Stopping


def test_number_of_leaves_alone(X, way):
    assert fit(X, 5, **way).hierarchy_.n_leaves == 5


def test_one_cluster_is_one_leaf(X, way):
    model = fit(X, 1, **way)
    assert model.hierarchy_.n_nodes == 1
    assert not model.labels_.any()
    assert not model.predict(X).any()
    assert model.decision_path(X).toarray().tolist() == [[1]] * len(X)


def test_leaf_size_alone(X, inner, way):
    tree = fit(X, None, max_leaf_size=100, **way).hierarchy_
    assert tree.n_rows[tree.leaves].max() <= 100
    assert tree.n_rows[inner(tree)].min() > 100


def test_depth_alone(X, way):
    tree = fit(X, None, max_depth=3, **way).hierarchy_
    assert tree.n_leaves == 8
    assert set(tree.depth[tree.leaves]) == {3}


@pytest.mark.parametrize(
    ("n_clusters", "max_leaf_size", "max_depth"),
    [(6, 100, None), (30, 100, None), (6, None, 2), (30, None, 3), (30, 60, 4), (None, 90, 3)],
)
def test_rules_combined(X, inner, way, n_clusters, max_leaf_size, max_depth):
    limits = {"max_leaf_size": max_leaf_size, "max_depth": max_depth}
    tree = fit(X, n_clusters, **limits, **way).hierarchy_
    size, depth, most = max_leaf_size or 0, max_depth or 99, n_clusters or 999
    spared = (tree.n_rows <= size) | (tree.depth >= depth)
    assert tree.n_leaves <= most
    assert not spared[inner(tree)].any()
    assert tree.n_leaves == most or spared[tree.leaves].all()


@pytest.mark.parametrize("branching", [2, 3, 4, 5])
@pytest.mark.parametrize("n_clusters", range(1, 10))
def test_leaves_come_in_steps(X, way, branching, n_clusters):
    step = branching - 1
    reachable = 1 + (n_clusters - 1) // step * step
    if reachable == n_clusters:
        tree = fit(X, n_clusters, branching=branching, **way).hierarchy_
    else:
        told = (
            f"{reachable} lea(f|ves) where {n_clusters} .* into {branching} adds {step} leaves"
        )
        with pytest.warns(GrowthWarning, match=told):
            tree = fit(X, n_clusters, branching=branching, **way).hierarchy_
    assert tree.n_leaves == reachable
    assert all(len(tree.children(node)) in {0, branching} for node in range(tree.n_nodes))


def test_fewer_leaves_for_another_limit_is_no_surprise(X, way):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(X, 20, max_depth=2, **way).hierarchy_.n_leaves == 4


# Too few leaves


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_rows_are_never_told_apart(as_kind, way, kind):
    rows = np.random.default_rng(3).standard_normal((5, 6))
    X = as_kind(np.repeat(rows, 11, axis=0), kind)
    with pytest.warns(GrowthWarning, match="5 leaves where 20 .* all of its 11 rows are equal"):
        model = fit(X, 20, **way)
    assert model.hierarchy_.n_leaves == 5
    assert (model.labels_.reshape(5, 11) == model.labels_[::11, None]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
def test_equal_rows_are_one_leaf(as_kind, way, kind, value):
    X = as_kind(np.full((37, 3), value), kind)
    told = r"1 leaf where 4 were asked for: leaf node 0 \(37 rows\) was refused: all of its"
    with pytest.warns(GrowthWarning, match=told):
        model = fit(X, 4, **way)
    assert not model.labels_.any()


def test_refusals_are_counted(X, way):
    with pytest.warns(
        GrowthWarning, match=r"leaf node \d+ .*; leaf node .*; and \d+ more"
    ) as record:
        fit(X[:40], 40, **way)
    assert str(record[0].message).count("leaf node") == 3


def test_too_strong_a_penalty_is_named(X):
    with pytest.warns(GrowthWarning, match="lower alpha or beta"):
        assert fit(X, alpha=1.0, **GREEDY).hierarchy_.n_leaves == 1


def test_loose_tolerance_does_not_blame_the_penalty(X, way):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        with suppress(ValueError):
            fit(X, tol=2.0, **way)
    assert not [w for w in record if "alpha" in str(w.message)]


def test_warning_points_at_the_caller(X, way):
    with pytest.warns(GrowthWarning) as record:
        HMMC(40, random_state=0, **way).fit(X[:40])
    assert record[0].filename == __file__


# Sizes and predictions


def divergences(model, X):
    """The nodes at which the prediction of a training row leaves the path of its label."""
    tree, predicted = model.hierarchy_, model.predict(X)
    found = set()
    for row in np.flatnonzero(predicted != model.labels_):
        ours, theirs = (
            tree.path(tree.leaves[labels[row]]) for labels in (model.labels_, predicted)
        )
        found.add(max(set(ours) & set(theirs)))
    return found


@pytest.mark.parametrize("branching", [2, 3, 4])
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
@pytest.mark.parametrize("balance", [(0.9, 1.1), (1.0, 1.0), (0.5, 1.2)])
def test_sizes_of_children(data, inner, bounds, name, branching, balance):
    model = fit(data[name], 13, branching=branching, **{**PAPER, "balance": balance})
    tree = model.hierarchy_
    assert tree.n_leaves == 13
    for node in inner(tree):
        least, most = bounds(int(tree.n_rows[node]), branching, balance)
        sizes = tree.n_rows[list(tree.children(node))]
        assert least <= sizes.min() <= sizes.max() <= most


def test_one_number_is_a_symmetric_balance(X, way):
    one, pair = (fit(X, **{**way, "balance": balance}) for balance in (0.9, (0.9, 1.1)))
    assert one.hierarchy_.to_json() == pair.hierarchy_.to_json()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["planted", "animals", "cloud", "wide", "binary", "line"])
def test_predict_repeats_the_labels_where_sizes_are_free(data, as_kind, way, name, kind):
    X = as_kind(data[name], kind)
    model = fit(X, 9, **{**way, "balance": None})
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kind", KINDS)
def test_predict_repeats_the_labels_far_from_the_origin(data, as_kind, way, kind):
    X = as_kind(data["cloud"] + 1000.0, kind)
    model = fit(X, 9, **{**way, "balance": None})
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("balance", [None, 0.3, (0.9, 1.1), (1.0, 1.0)])
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_predict_differs_only_where_a_size_binds(
    data, as_kind, bounds, name, kind, branching, balance
):
    X = as_kind(data[name], kind)
    model = fit(X, 7, branching=branching, **{**GREEDY, "balance": balance})
    tree = model.hierarchy_
    pair = {None: (0.0, branching), 0.3: (0.3, 1.7)}.get(balance, balance)
    for node in divergences(model, X):
        sizes = {int(tree.n_rows[child]) for child in tree.children(node)}
        assert sizes & set(bounds(int(tree.n_rows[node]), branching, pair))


def test_binding_sizes_move_rows(data):
    X = data["cloud"]
    assert divergences(fit(X, 8, **{**GREEDY, "balance": 1.0}), X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("balance", [None, 0.3, 0.5, (0.9, 1.1), (1.0, 1.0)])
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_refined_labels_are_predicted_whatever_the_sizes(
    data, as_kind, name, balance, branching, kind
):
    X = as_kind(data[name], kind)
    model = fit(X, 7, branching=branching, balance=balance)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.hierarchy_.n_rows.min() >= 1


def test_rows_at_the_mean_are_predicted_as_labelled(way):
    X = np.repeat([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]], 5, axis=0)
    model = fit(X, 2, **{**way, "balance": (0.3, 1.7)})
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kind", KINDS)
def test_decision_path_leads_to_the_predicted_leaf(X, as_kind, way, kind):
    model = fit(as_kind(X, kind), 7, **{**way, "balance": 1.0})
    tree, new = model.hierarchy_, as_kind(X[::7] + 0.3, kind)
    visited = model.decision_path(new)
    assert sparse.issparse(visited)
    assert visited.format == "csr"
    assert visited.shape == (new.shape[0], tree.n_nodes)
    for row, leaf in enumerate(model.predict(new)):
        nodes = visited.indices[visited.indptr[row] : visited.indptr[row + 1]]
        assert tuple(nodes) == tree.path(tree.leaves[leaf])
    assert (visited.data == 1).all()


# What a fit leaves behind


def test_fitted_attributes(X, way):
    model = HMMC(6, random_state=0, **way)
    assert model.fit(X) is model
    assert isinstance(model.hierarchy_, Hierarchy)
    assert model.n_features_in_ == X.shape[1]
    assert "feature_names_in_" not in vars(model)
    assert model.hierarchy_.feature_names is None
    np.testing.assert_array_equal(model.labels_, model.hierarchy_.labels)
    assert set(model.labels_) == set(range(6))
    again = HMMC(6, random_state=0, **way).fit_predict(X)
    np.testing.assert_array_equal(model.labels_, again)


def test_planted_leaves_are_found(planted, way):
    labels = fit(planted.X, 8, **way).labels_
    assert len(set(zip(labels, planted.labels, strict=True))) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_float_type_is_kept(X, as_kind, way, kind):
    tree = fit(as_kind(X, kind), 4, **way).hierarchy_
    dtypes = {(rule.weights.dtype, rule.center.dtype) for rule in tree.rules if rule}
    assert dtypes == {(np.dtype(kind.split()[0]),) * 2}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["newton", "pqn"])
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_objective_never_rises(data, as_kind, name, penalty, branching, solver, kind):
    X = as_kind(data[name], kind)
    tol = 1e-4 if solver == "newton" else 1e-2
    setting = {**GREEDY, "branching": branching, "penalty": penalty}
    tree = fit(X, 5, solver=solver, tol=tol, **setting).hierarchy_
    assert_never_rises(tree)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_objective_never_rises_before_refinement(data, as_kind, name, branching, kind):
    assert_never_rises(fit(as_kind(data[name], kind), 5, branching=branching).hierarchy_)


def assert_never_rises(tree):
    assert all(tree.info[node] is not None for node in range(tree.n_nodes) if tree.rules[node])
    for node, info in enumerate(tree.info):
        if info is not None:
            assert np.all(np.diff(info.trace) <= 0.0)
            assert info.status in set(Status)
            assert info.n_iter == len(info.trace) - 1 >= 1
            assert info.n_passes > 0
            assert tree.objective[node] == info.trace[-1]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns_get_no_weight(data, as_kind, way, kind, penalty):
    X = as_kind(np.insert(data["cloud"], [0, 4], [0.1, 1e4 / 3], axis=1), kind)
    tree = fit(X, 6, penalty=penalty, **way).hierarchy_
    for rule in tree.rules:
        assert rule is None or not rule.weights[:, [0, 5]].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["newton", "pqn", "auto"])
@pytest.mark.parametrize("balance", [None, (0.9, 1.1)])
@pytest.mark.parametrize("branching", [2, 3])
def test_a_grid_of_ties(data, as_kind, branching, balance, solver, kind):
    X = as_kind(data["grid"], kind)
    setting = {"branching": branching, "balance": balance}
    tree = fit(X, 7, refine=solver == "auto", solver=solver, **setting).hierarchy_
    assert tree.n_leaves == 7
    assert tree.n_rows.min() >= 1


def test_refit_overwrites(X, way):
    model = fit(X, 6, **way)
    again = model.set_params(n_clusters=3).fit(X[:200, :7])
    assert again.hierarchy_.n_leaves == 3
    assert len(again.labels_) == 200
    assert again.n_features_in_ == 7
    assert again.hierarchy_.to_json() == fit(X[:200, :7], 3, **way).hierarchy_.to_json()


# Parameters


def test_stronger_penalty_uses_fewer_features(data, way):
    used = [
        fit(data["cloud"], alpha=a, **way).hierarchy_.n_features[0] for a in (0.0, 0.1, 0.3)
    ]
    assert used == sorted(used, reverse=True)
    assert used[0] > used[-1]


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("name", ["animals", "cloud", "binary", "wide"])
def test_more_starts_are_never_worse(data, name, branching):
    setting = {"branching": branching, "refine": False, "balance": 0.3}
    roots = [
        fit(data[name], branching, n_init=n, **setting).hierarchy_.objective[0]
        for n in (1, 2, 5, 9)
    ]
    assert roots == sorted(roots, reverse=True)


def test_random_state(data, way):
    X = data["cloud"]
    by_int = fit(X, random_state=3, **way).hierarchy_.to_json()
    by_state = fit(X, random_state=np.random.RandomState(3), **way).hierarchy_.to_json()
    assert by_int == by_state
    assert fit(X, random_state=None, **way).hierarchy_.n_leaves == 8


@pytest.mark.parametrize(
    ("parameters", "error", "told"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": -1}, ValueError, "n_clusters must be at least 1, got -1"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer, got 2.5"),
        ({"n_clusters": "a"}, TypeError, "n_clusters must be an integer, got 'a'"),
        ({"n_clusters": True}, TypeError, "n_clusters must be an integer, got True"),
        ({"n_clusters": 601}, ValueError, "n_clusters=601 .* n_samples=600 rows; lower"),
        ({"n_clusters": None}, ValueError, "give n_clusters, .*: nothing ends the growth"),
        ({"branching": 1}, ValueError, "branching must be at least 2, got 1"),
        ({"branching": None}, TypeError, "branching must be an integer, got None"),
        ({"alpha": -1}, ValueError, "alpha must be finite and not negative, got -1"),
        ({"alpha": float("nan")}, ValueError, "alpha must be finite .* got nan"),
        ({"alpha": "x"}, TypeError, "alpha must be a number, got 'x'"),
        ({"beta": float("inf")}, ValueError, "beta must be finite .* got inf"),
        ({"beta": "x"}, TypeError, "beta must be a number, got 'x'"),
        ({"tol": -0.1}, ValueError, "tol must be .* got -0.1"),
        ({"balance": (1.2, 1.5)}, ValueError, r"low <= 1 <= high.* got \(1.2, 1.5\)"),
        ({"penalty": "l3"}, ValueError, "penalty must be one of 'group.*'l2'; got 'l3'"),
        ({"solver": "sgd"}, ValueError, "solver must be one of 'auto', .*; got 'sgd'"),
        ({"units": "cm"}, ValueError, "units must be one of 'relative', 'raw'; got 'cm'"),
        ({"max_leaf_size": 0}, ValueError, "max_leaf_size must be at least 1, got 0"),
        ({"max_depth": 1.0}, TypeError, "max_depth must be an integer, got 1.0"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1, got 0"),
        ({"random_state": "x"}, ValueError, "'x' cannot be used to seed"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"n_jobs": "x"}, TypeError, "n_jobs must be an integer.* got 'x'"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer.* got 1.5"),
        ({"units": "raw"}, ValueError, "units='raw' takes a number for alpha, got None"),
        ({"center": "origin"}, ValueError, "center must be one of 'node', 'data'"),
    ],
)
def test_bad_parameters(X, way, parameters, error, told):
    refused(X, {**way, **parameters}, error, told)


@pytest.mark.parametrize(
    ("parameters", "error", "told"),
    [
        ({"refine": 1}, TypeError, "refine must be True or False, got 1"),
        ({"refine": "yes"}, TypeError, "refine must be True or False, got 'yes'"),
        ({"refine": None}, TypeError, "refine must be True or False, got None"),
        ({"center": "data"}, ValueError, "center='data' takes refine=False"),
        ({"solver": "newton"}, ValueError, "solver='newton' takes refine=False"),
        ({"solver": "pqn"}, ValueError, "solver='pqn' takes refine=False"),
        ({"max_features": 0}, ValueError, "max_features must be at least 1, got 0"),
        ({"max_features": 2.0}, TypeError, "max_features must be an integer, got 2.0"),
        ({"max_features": 3, "refine": False}, ValueError, "max_features=3 .* refine=False"),
        ({"max_features": 3, "alpha": 0.1}, ValueError, "max_features=3 .* alpha=0.1"),
        ({"max_features": 3, "penalty": "l2"}, ValueError, "max_features=3 .*penalty='l2'"),
        (
            {"max_features": 3, "penalty": "exclusive"},
            ValueError,
            "max_features=3 .*penalty='exclusive'",
        ),
    ],
)
def test_contradictions(X, parameters, error, told):
    refused(X, parameters, error, told)


def refused(X, parameters, error, told):
    model = HMMC(**parameters)
    with pytest.raises(error, match=told):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


# Failures


@pytest.mark.parametrize("method", ["predict", "decision_path"])
def test_unfitted(X, method):
    with pytest.raises(NotFittedError, match="This HMMC instance is not fitted yet"):
        getattr(HMMC(), method)(X)


@pytest.mark.parametrize("method", ["predict", "decision_path"])
def test_other_number_of_features(X, way, method):
    with pytest.raises(
        ValueError, match="X has 19 features, but HMMC is expecting 20 features"
    ):
        getattr(fit(X, 3, **way), method)(X[:, :19])


@pytest.mark.parametrize(
    ("change", "bad"),
    [
        ({}, np.full((9, 20), np.nan)),
        ({}, np.ones((9, 7)) * np.arange(9)[:, None] * 1e300),
        ({"n_clusters": 10}, np.arange(27.0).reshape(9, 3)),
        ({"random_state": "x"}, np.arange(27.0).reshape(9, 3)),
        ({"alpha": -1.0}, np.arange(27.0).reshape(9, 3)),
    ],
    ids=["nan", "range", "too few rows", "random_state", "alpha"],
)
def test_failed_fit_leaves_the_fitted_one_usable(X, way, change, bad):
    model = fit(X, 3, **way)
    before, tree = model.predict(X), model.hierarchy_
    with pytest.raises(ValueError, match=r"X|n_clusters|seed|alpha"):
        model.set_params(**change).fit(bad)
    assert model.hierarchy_ is tree
    assert model.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(model.predict(X), before)
