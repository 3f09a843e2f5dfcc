"""The paper's method: balanced sizes, centers, penalties, units, equal rows."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from taxarbor import HMMC, GrowthWarning
from taxarbor.exchange import to_json
from taxarbor.split import max_margin_splitter
from tests.estimators.conftest import as_kind, assert_balanced, bounds, inner

PENALTIES = ["group+exclusive", "group", "exclusive", "l1", "l2"]
NODE = {"balance": 0.3, "center": "node"}
RAW = {"units": "raw", "alpha": 1e-2, "beta": 1e-2}
NAMES = ("planted", "animals", "cloud")


def content(taxonomy):
    """All of a taxonomy but the parameters of its estimator."""
    return to_json(replace(taxonomy, made_by=None))


def fit(X, n_clusters=8, **parameters):
    return HMMC(n_clusters, **{"random_state": 0, **parameters}).fit(X)


# ---- sizes and predictions ----


def test_sizes_of_children(data):
    for name, branching in product(NAMES, (2, 3, 4)):
        for balance in ((0.9, 1.1), (1.0, 1.0), (0.5, 1.2)):
            model = fit(data[name], 13, branching=branching, balance=balance, **RAW)
            tree = model.taxonomy_.tree
            assert tree.n_leaves == 13
            assert_balanced(tree, branching, balance)


def test_one_number_is_a_symmetric_balance(X):
    one, pair = (fit(X, balance=balance).taxonomy_ for balance in (0.8, (0.8, 1.2)))
    assert content(one) == content(pair)


def find_divergences(model, X):
    """The nodes at which the prediction of a training row leaves the path of its label."""
    tree, predicted = model.taxonomy_.tree, model.predict(X)
    nodes = set()
    for row in np.flatnonzero(predicted != model.labels_):
        leaves = tree.leaves[[model.labels_[row], predicted[row]]]
        nodes.add(max(set(tree.path(leaves[0])) & set(tree.path(leaves[1]))))
    return nodes


def test_predict_differs_only_where_a_size_binds(data):
    balances = {None: (0.0, 4.0), 0.3: (0.3, 1.7), (0.9, 1.1): (0.9, 1.1), 1.0: (1.0, 1.0)}
    n_moved = 0
    cases = product(NAMES, ("float64 dense", "float32 csr"), (2, 3), balances, ("node", "data"))
    for name, kind, branching, balance, center in cases:
        X = as_kind(data[name], kind)
        model = fit(X, 7, center=center, branching=branching, balance=balance)
        tree, moved = model.taxonomy_.tree, find_divergences(model, X)
        n_moved += len(moved)
        for node in moved:
            sizes = {*tree.sizes[list(tree.children(node))].tolist()}
            assert sizes & set(bounds(int(tree.sizes[node]), branching, balances[balance]))
    assert n_moved > 10


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_large_column_makes_no_rows_equal(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(dtype)
    X[:, 0] = np.where(rng.random(400) < 0.2, 3e7, 0.0)
    for rows in (X, sparse.csr_array(X)):
        sizes = np.bincount(HMMC(2, random_state=0).fit(rows).labels_)  # without a warning
        assert 180 <= sizes.min() <= sizes.max() <= 220


# ---- one center, or each node's own ----


def test_where_boundaries_pass_through(X):
    for branching in (2, 3):
        fits = (fit(X, 7, branching=branching, center=center) for center in ("data", "node"))
        by_data, by_node = (model.taxonomy_.tree for model in fits)
        for tree in (by_data, by_node):
            for node in inner(tree):
                rows = X if tree is by_data else X[tree.rows(node)]
                center = tree.rules[node].center
                np.testing.assert_allclose(center, rows.mean(axis=0), atol=1e-12)
        np.testing.assert_array_equal(by_data.rules[0].weights, by_node.rules[0].weights)


# ---- penalties and solvers ----


def test_stronger_penalties_use_fewer_features(data):
    models = [fit(data["cloud"], alpha=alpha, **NODE) for alpha in (0, 0.1, 0.3)]
    used = [model.taxonomy_.n_features_used[0] for model in models]
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


def test_more_starts_are_never_worse(data):
    for name, branching in product(("animals", "cloud", "binary", "wide"), (2, 3)):
        setting = {"branching": branching, **NODE}
        fits = [fit(data[name], branching, n_init=n, **setting) for n in (1, 2, 5, 9)]
        roots = [model.taxonomy_.tree.objective[0] for model in fits]
        assert roots == sorted(roots, reverse=True)


def test_splits_that_do_not_converge(data, monkeypatch):
    few_rounds = partial(max_margin_splitter.NodeProblem, max_rounds=1)
    monkeypatch.setattr(max_margin_splitter, "NodeProblem", few_rounds)
    with pytest.warns(ConvergenceWarning, match=r"of 7 splits .* tol") as record:
        fit(data["cloud"], tol=1e-9, **NODE)
    assert record[0].filename == __file__


def test_a_loose_tolerance_does_not_blame_the_penalty(X):
    assert fit(X, tol=2.0).taxonomy_.tree.n_leaves == 8  # without a warning


# ---- equal rows ----


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_rows_have_one_label_where_sizes_bind(weighted):
    X = np.append(np.zeros((63, 3)), np.ones((1, 3)), axis=0)
    weights = np.arange(64) % 3 + 1 if weighted else None
    for balance in (0.9, 0.3):
        model = HMMC(2, balance=balance, random_state=0)
        with pytest.warns(GrowthWarning, match=f"equal rows.*balance.*{balance}") as record:
            labels = model.fit(X, sample_weight=weights).labels_
        assert [warning.filename for warning in record] == [__file__]
        assert len(set(labels[:63])) == 1
        assert labels[63] != labels[0]
        np.testing.assert_array_equal(model.predict(X), labels)
        model.set_params(balance=None).fit(X, sample_weight=weights)  # without a warning


def test_equal_rows_move_together_to_keep_sizes():
    """There is no warning, as there is no need for other sizes."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, copies = rng.standard_normal((200, 3)), rng.integers(1, 4, 200)
        for K in (2, 3):
            model = HMMC(K + 2 * (K - 1), branching=K, random_state=seed)
            for rows, weights in ((np.repeat(X, copies, axis=0), None), (X, copies)):
                tree = model.fit(rows, sample_weight=weights).taxonomy_.tree
                assert_balanced(tree, K, (0.9, 1.1))


@pytest.mark.parametrize(("penalty", "K"), [("l2", 2), ("l2", 3), ("exclusive", 2)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_few_rows_of_many_features_are_solved_along_the_rows(penalty, K, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 600)) + 2.0 * (np.arange(30) % K)[:, None] * (np.arange(600) < 9)
    X[:, -1] = 5.0
    X = sparse.csr_array(X) if kind == "sparse" else X
    settings = {"branching": K, "penalty": penalty, "tol": 1e-3}
    newton, paper = fit(X, K, **settings), fit(X, K, **settings, solver="pqn")
    np.testing.assert_array_equal(newton.labels_, paper.labels_)
    np.testing.assert_array_equal(newton.predict(X), newton.labels_)
    least = paper.taxonomy_.tree.objective[0]
    assert 0.97 * least <= newton.taxonomy_.tree.objective[0] <= 1.01 * least
    weights, expected = (model.taxonomy_.tree.rules[0].weights for model in (newton, paper))
    cosine = np.vdot(weights, expected) / np.linalg.norm(weights) / np.linalg.norm(expected)
    assert cosine > 0.99
    assert not weights[:, -1].any()
