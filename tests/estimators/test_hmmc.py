"""The paper's method and its flat form: sizes, origins, penalties, units."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from taxarbor import HMMC, GrowthWarning
from taxarbor.exchange import to_json

PENALTIES = ["group+exclusive", "group", "exclusive", "l1", "l2"]
NODE = {"balance": 0.3, "center": "node"}
RAW = {"units": "raw", "alpha": 1e-2, "beta": 1e-2}
NAMES = ("planted", "animals", "cloud")


def content(taxonomy):
    """All of a tree but who made it."""
    return to_json(replace(taxonomy, made_by=None))


def fit(X, n_clusters=8, **parameters):
    return HMMC(n_clusters, **{"random_state": 0, **parameters}).fit(X)


# ---- sizes and predictions ----


def test_sizes_of_children(data, inner, bounds):
    for name in NAMES:
        for branching in (2, 3, 4):
            for balance in ((0.9, 1.1), (1.0, 1.0), (0.5, 1.2)):
                taxonomy = fit(data[name], 13, branching=branching, balance=balance, **RAW)
                taxonomy = taxonomy.taxonomy_
                assert taxonomy.tree.n_leaves == 13
                for node in inner(taxonomy):
                    least, most = bounds(int(taxonomy.tree.sizes[node]), branching, balance)
                    sizes = taxonomy.tree.sizes[list(taxonomy.tree.children(node))]
                    assert least <= sizes.min() <= sizes.max() <= most


def test_one_number_is_a_symmetric_balance(X):
    one, pair = (fit(X, balance=balance).taxonomy_ for balance in (0.8, (0.8, 1.2)))
    assert content(one) == content(pair)


def divergences(model, X):
    """The nodes at which the prediction of a training row leaves the path of its label."""
    taxonomy, predicted = model.taxonomy_, model.predict(X)
    found = set()
    for row in np.flatnonzero(predicted != model.labels_):
        ours, theirs = (
            taxonomy.tree.path(taxonomy.tree.leaves[labels[row]])
            for labels in (model.labels_, predicted)
        )
        found.add(max(set(ours) & set(theirs)))
    return found


def test_predict_differs_only_where_a_size_binds(data, as_kind, bounds):
    balances = {None: (0.0, 4.0), 0.3: (0.3, 1.7), (0.9, 1.1): (0.9, 1.1), 1.0: (1.0, 1.0)}
    n_moved = 0
    for name in NAMES:
        for kind in ("float64 dense", "float32 csr"):
            X = as_kind(data[name], kind)
            for branching in (2, 3):
                for balance, pair in balances.items():
                    for center in ("node", "data"):
                        setting = {"branching": branching, "balance": balance}
                        model = fit(X, 7, center=center, **setting)
                        taxonomy, moved = model.taxonomy_, divergences(model, X)
                        n_moved += len(moved)
                        for node in moved:
                            sizes = {
                                int(taxonomy.tree.sizes[child])
                                for child in taxonomy.tree.children(node)
                            }
                            n_rows = int(taxonomy.tree.sizes[node])
                            assert sizes & set(bounds(n_rows, branching, pair))
    assert n_moved > 10


def test_rows_at_the_mean_are_predicted_as_labelled():
    X = np.repeat([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]], 5, axis=0)
    for center in ("node", "data"):
        model = fit(X, 2, balance=(0.3, 1.7), center=center)
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_large_column_makes_no_rows_equal(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(dtype)
    X[:, 0] = np.where(rng.random(400) < 0.2, 3e7, 0.0)
    for own in (X, sparse.csr_array(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sizes = np.bincount(HMMC(2, random_state=0).fit(own).labels_)
        assert 180 <= sizes.min() <= sizes.max() <= 220


def test_a_grid_of_ties(data, as_kind):
    for kind in ("float64 dense", "float32 csr"):
        X = as_kind(data["grid"], kind)
        for branching in (2, 3):
            for balance in (None, (0.9, 1.1)):
                for solver in ("newton", "pqn"):
                    setting = {"branching": branching, "balance": balance, "solver": solver}
                    tree = fit(X, 7, **setting).taxonomy_.tree
                    assert tree.n_leaves == 7
                    assert tree.sizes.min() >= 1


# ---- one origin, or each node's own ----


def test_where_boundaries_pass_through(X, inner):
    for branching in (2, 3):
        taxonomy = fit(X, 7, branching=branching).taxonomy_
        own = fit(X, 7, branching=branching, center="node").taxonomy_
        for node in inner(taxonomy):
            np.testing.assert_allclose(
                taxonomy.tree.rules[node].center, X.mean(axis=0), atol=1e-12
            )
        for node in inner(own):
            mean = X[own.rows(node)].mean(axis=0)
            np.testing.assert_allclose(own.rules[node].center, mean, atol=1e-12)
        np.testing.assert_array_equal(own.rules[0].weights, taxonomy.tree.rules[0].weights)


def test_with_one_origin_equal_rows_are_still_refused():
    X = np.repeat(np.array([[0.0, 0.0], [9.0, 9.0]]), 6, axis=0)
    with pytest.warns(GrowthWarning, match="equal"):
        assert fit(X, 4).taxonomy_.tree.n_leaves == 2


# ---- penalties and solvers ----


@pytest.mark.long
def test_no_variant_raises_the_objective(data, as_kind):
    for penalty in PENALTIES:
        for name, kind in (("animals", "float64 csr"), ("cloud", "float32 dense")):
            X = as_kind(data[name], kind)
            for solver, tol in (("newton", 1e-4), ("pqn", 1e-2)):
                for center in ("node", "data"):
                    setting = {"solver": solver, "tol": tol, "center": center}
                    tree = fit(X, 5, penalty=penalty, **setting).taxonomy_.tree
                    assert tree.n_leaves == 5
                    for info in filter(None, tree.info):
                        assert np.all(np.diff(info.trace) <= 0.0)


def test_stronger_penalties_use_fewer_features(data):
    used = [
        fit(data["cloud"], alpha=a, **NODE).taxonomy_.n_features_used[0] for a in (0, 0.1, 0.3)
    ]
    assert used == sorted(used, reverse=True)
    assert used[0] > used[-1]
    with pytest.warns(GrowthWarning, match="lower alpha or beta"):
        assert fit(data["cloud"], alpha=1.0).taxonomy_.tree.n_leaves == 1


def test_raw_units_see_the_scale(data):
    X = data["cloud"]
    setting = {**RAW, **NODE, "alpha": 1.0}
    small, large = (fit(X * factor, **setting) for factor in (1.0, 1000.0))
    assert small.taxonomy_.n_features_used[0] < large.taxonomy_.n_features_used[0]
    assert (small.labels_ != large.labels_).any()


def test_no_variant_sees_the_scale_in_relative_units(data):
    for name in ("animals", "cloud"):
        X = data[name]
        for penalty in PENALTIES:
            one, other = (fit(X * f, penalty=penalty, **NODE) for f in (1.0, 2.0**-20))
            np.testing.assert_array_equal(other.labels_, one.labels_)
            used = other.taxonomy_.n_features_used, one.taxonomy_.n_features_used
            np.testing.assert_array_equal(*used)


def test_weights_go_with_their_columns(data):
    for name in ("planted", "cloud"):
        X = data[name]
        order = np.random.default_rng(0).permutation(X.shape[1])
        for solver in ("newton", "pqn"):
            setting = {"solver": solver, "tol": 1e-9, **NODE}
            one, other = (fit(Z, 6, **setting) for Z in (X, X[:, order]))
            np.testing.assert_array_equal(one.labels_, other.labels_)
            for ours, theirs in zip(
                one.taxonomy_.tree.rules, other.taxonomy_.tree.rules, strict=True
            ):
                if ours is not None:
                    close = 1e-3 * np.abs(ours.weights).max()
                    moved = ours.weights[:, order]
                    np.testing.assert_allclose(moved, theirs.weights, atol=close)


def test_more_starts_are_never_worse(data):
    for name in ("animals", "cloud", "binary", "wide"):
        for branching in (2, 3):
            setting = {"branching": branching, **NODE}
            fits = [fit(data[name], branching, n_init=n, **setting) for n in (1, 2, 5, 9)]
            roots = [model.taxonomy_.tree.objective[0] for model in fits]
            assert roots == sorted(roots, reverse=True)


def test_rounds_that_run_out_are_told_of(data, monkeypatch):
    monkeypatch.setattr("taxarbor.split._alternate.MAX_ALTERNATIONS", 1)
    told = r"\d of 7 splits did not settle in .*; scale the columns, raise tol, or try solver"
    with pytest.warns(ConvergenceWarning, match=told) as record:
        fit(data["cloud"], tol=1e-9, **NODE)
    assert record[0].filename == __file__


def test_a_loose_tolerance_does_not_blame_the_penalty(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(X, tol=2.0).taxonomy_.tree.n_leaves == 8


@pytest.mark.parametrize(
    ("parameters", "error", "told"),
    [
        ({"alpha": -1}, ValueError, "alpha must be finite and not negative, got -1"),
        ({"alpha": float("nan")}, ValueError, "alpha must be finite .* got nan"),
        ({"alpha": "x"}, TypeError, "alpha must be a number, got 'x'"),
        ({"beta": float("inf")}, ValueError, "beta must be finite .* got inf"),
        ({"beta": None}, TypeError, "beta must be a number, got None"),
        ({"tol": -0.1}, ValueError, "tol must be .* got -0.1"),
        ({"balance": (1.2, 1.5)}, ValueError, r"low <= 1 <= high.* got \(1.2, 1.5\)"),
        ({"penalty": "l3"}, ValueError, "penalty must be one of 'group.*'l2'; got 'l3'"),
        ({"solver": "sgd"}, ValueError, "solver must be one of 'auto', .*; got 'sgd'"),
        ({"units": "cm"}, ValueError, "units must be one of 'relative', 'raw'; got 'cm'"),
        (
            {"center": "origin"},
            ValueError,
            "center must be one of 'node', 'data'; got 'origin'",
        ),
    ],
)
def test_bad_parameters(X, parameters, error, told):
    with pytest.raises(error, match=told):
        HMMC(**parameters).fit(X)


# ---- equal rows ----


def test_equal_rows_are_not_torn_apart_to_make_as_many_clusters():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    model = HMMC(9, branching=3, random_state=0)
    with pytest.warns(GrowthWarning, match="rows are equal for"):
        model.fit(X)
    assert model.taxonomy_.tree.n_leaves == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_rows_have_one_label_where_sizes_bind(weighted):
    X = np.append(np.zeros((63, 3)), np.ones((1, 3)), axis=0)
    weights = np.arange(64) % 3 + 1 if weighted else None
    what = "equal rows, and what one row weighs, stay" if weighted else "equal rows stay"
    for model, asked in ((HMMC(2), "0.9 to 1.1"), (HMMC(2, balance=0.3), "0.3 to 1.7")):
        model.set_params(random_state=0)
        with pytest.warns(GrowthWarning, match=f"1 of 1 split .* {what} .* {asked}; ") as told:
            labels = model.fit(X, sample_weight=weights).labels_
        assert len(told) == 1
        assert told[0].filename == __file__
        assert len(set(labels[:63])) == 1
        assert labels[63] != labels[0]
        np.testing.assert_array_equal(model.predict(X), labels)
        model.set_params(balance=None).fit(X, sample_weight=weights)  # and nothing is told


def test_sizes_are_kept_to_by_moving_equal_rows_together(inner, bounds):
    """There is no warning, as there is no need for other sizes."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, copies = rng.standard_normal((200, 3)), rng.integers(1, 4, 200)
        for K in (2, 3):
            model = HMMC(K + 2 * (K - 1), branching=K, random_state=seed)
            for told in (
                {"X": np.repeat(X, copies, axis=0)},
                {"X": X, "sample_weight": copies},
            ):
                taxonomy = model.fit(**told).taxonomy_
                sizes = taxonomy.tree.node_weights
                for node in inner(taxonomy):
                    least, most = bounds(sizes[node], K, (0.9, 1.1))
                    children = sizes[list(taxonomy.tree.children(node))]
                    assert least <= children.min() <= children.max() <= most


@pytest.mark.parametrize(("penalty", "K"), [("l2", 2), ("l2", 3), ("exclusive", 2)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_few_rows_of_many_features_are_solved_along_the_rows(penalty, K, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 600)) + 2.0 * (np.arange(30) % K)[:, None] * (np.arange(600) < 9)
    X[:, -1] = 5.0
    X = sparse.csr_array(X) if kind == "sparse" else X
    how = {"branching": K, "penalty": penalty, "tol": 1e-3}
    own, paper = fit(X, K, **how), fit(X, K, **how, solver="pqn")
    np.testing.assert_array_equal(own.labels_, paper.labels_)
    np.testing.assert_array_equal(own.predict(X), own.labels_)
    least = paper.taxonomy_.tree.objective[0]
    assert 0.97 * least <= own.taxonomy_.tree.objective[0] <= 1.01 * least
    found, expected = (one.taxonomy_.tree.rules[0].weights for one in (own, paper))
    alike = np.vdot(found, expected) / np.linalg.norm(found) / np.linalg.norm(expected)
    assert alike > 0.99
    assert not found[:, -1].any()
