"""Leaves that compete for rows: the objective falls, and no leaf is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor import HMMC
from taxarbor.refine import Coordinates, fit_leaves, place
from taxarbor.rows import _base as rows_base
from taxarbor.rows import as_rows
from taxarbor.rows._base import best_scores


def divide(n_rows, n_leaves, rng):
    """Return random labels of which none is missing."""
    labels = rng.integers(0, n_leaves, n_rows)
    labels[rng.permutation(n_rows)[:n_leaves]] = np.arange(n_leaves)
    return labels


def scatter_within(Z, labels, n_leaves):
    means = np.stack([Z[labels == k].mean(axis=0) for k in range(n_leaves)])
    apart = Z - means[labels]
    return apart.T @ apart / len(Z), means


@given(
    n_rows=st.integers(6, 120),
    n_features=st.integers(1, 12),
    n_leaves=st.integers(2, 6),
    shrinkage=st.sampled_from([0.0, 1e-3, 1.0, 10.0]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_the_objective_never_rises(n_rows, n_features, n_leaves, shrinkage, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * rng.uniform(0.1, 3.0, n_features)
    X += rng.integers(0, 3, (n_rows, 1)) * rng.normal(0.0, 3.0, n_features)
    coordinates = Coordinates.of(as_rows(X), rng)
    labels = divide(n_rows, n_leaves, rng)
    model = fit_leaves(coordinates, labels, n_leaves, n_steps=12, shrinkage=shrinkage)
    assert np.isfinite(model.trace).all()
    assert (np.diff(model.trace) <= 1e-7 * (1.0 + np.abs(model.trace[:-1]))).all()
    sent = place(as_rows(X), coordinates.rule(model.weights, model.offsets))
    assert np.bincount(sent, minlength=n_leaves).min() >= 1


@pytest.mark.parametrize("name", ["planted", "animals", "cloud", "middle", "wide"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_on_data(coordinates_of, data, name, dtype):
    X = data[name].astype(dtype)
    labels = divide(len(X), 6, np.random.default_rng(2))
    model = fit_leaves(coordinates_of(X), labels, 6, n_steps=10)
    trace = np.array(model.trace)
    assert len(trace) > 1
    slack = 1e-8 if dtype == "float64" else 1e-4
    assert (np.diff(trace) <= slack * np.abs(trace).max()).all()
    assert trace[-1] < trace[0]


def test_the_first_round_by_hand(coordinates_of, data):
    X = data["cloud"]
    coordinates = coordinates_of(X)
    labels = divide(len(X), 4, np.random.default_rng(0))
    model = fit_leaves(coordinates, labels, 4, n_steps=1, shrinkage=0.5)
    Z = coordinates.values[:, :-1]
    within, means = scatter_within(Z, labels, 4)
    S = within + 0.5 * np.trace(within) / Z.shape[1] * np.eye(Z.shape[1])
    np.testing.assert_allclose(model.trace, [np.linalg.slogdet(S)[1]], rtol=1e-10)
    apart = Z[:, None] - means
    distances = np.einsum("nkp,pq,nkq->nk", apart, np.linalg.inv(S), apart)
    sent = (Z @ model.weights.T + model.offsets).argmax(axis=1)
    np.testing.assert_array_equal(sent, distances.argmin(axis=1))


def test_rows_on_the_wrong_side_come_home(coordinates_of):
    rng = np.random.default_rng(5)
    truth = np.repeat(np.arange(4), 50)
    X = (
        rng.standard_normal((200, 3))
        + 12.0 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])[truth]
    )
    labels = truth.copy()
    labels[::9] = rng.integers(0, 4, len(labels[::9]))
    coordinates = coordinates_of(X)
    model = fit_leaves(coordinates, labels, 4)
    sent = (coordinates.values[:, :-1] @ model.weights.T + model.offsets).argmax(axis=1)
    np.testing.assert_array_equal(sent, truth)


def test_settled_labels_end_it(coordinates_of):
    truth = np.repeat([0, 1], 30)
    X = np.random.default_rng(0).standard_normal((60, 2)) + 20.0 * truth[:, None]
    assert len(fit_leaves(coordinates_of(X), truth, 2, n_steps=9).trace) == 1


def test_a_leaf_that_would_be_lost_ends_it(coordinates_of):
    """Of two leaves with the same mean the first would get all rows of both."""
    X = np.repeat([[0.0, 0.0], [4.0, 1.0]], 10, axis=0)
    labels = np.array([0] * 5 + [1] * 5 + [2] * 10)
    coordinates = coordinates_of(X)
    model = fit_leaves(coordinates, labels, 3, n_steps=5)
    assert len(model.trace) == 1
    assert model.weights.shape == (3, 2)
    sent = place(as_rows(X), coordinates.rule(model.weights, model.offsets))
    assert sorted(np.bincount(sent, minlength=3)) == [1, 9, 10]
    assert (sent[10:] == 2).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_leaves_of_single_points(coordinates_of, dtype):
    X = np.repeat(np.random.default_rng(1).standard_normal((5, 4)), 6, axis=0).astype(dtype)
    labels = np.repeat(np.arange(5), 6)
    coordinates = coordinates_of(X)
    model = fit_leaves(coordinates, labels, 5)
    assert np.isfinite(model.trace).all()
    sent = best_scores(as_rows(X), *_rule_parts(coordinates, model))
    np.testing.assert_array_equal(sent, labels)


def _rule_parts(coordinates, model):
    rule = coordinates.rule(model.weights, model.offsets)
    return rule.weights.astype(np.float64), rule.offsets


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_scores_come_in_blocks(rows_of, data, monkeypatch, block):
    rows = rows_of(data["cloud"])
    rng = np.random.default_rng(0)
    W, offsets = rng.normal(size=(3, 8)), rng.normal(size=3)
    expected = ((data["cloud"] - rows.center) @ W.T + offsets).argmax(axis=1)
    monkeypatch.setattr(rows_base, "MAX_SCORES", block)
    np.testing.assert_array_equal(best_scores(rows, W, offsets), expected)
    tied = best_scores(rows, np.zeros((3, 8)), None)
    assert not tied.any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["points", "wide points", "one row apart"])
def test_leaves_without_scatter(kind, dtype):
    """What is left within leaves is rounding, and grows with the number of rows."""
    rng = np.random.default_rng(0)
    if kind == "one row apart":
        X = 1e-3 * rng.standard_normal((8000, 80))
        X[0] = 1e6
    else:
        points = rng.standard_normal((3, 10 if kind == "points" else 70))
        X = np.repeat(points, 5000 if kind == "points" else 500, axis=0)
    model = HMMC(3, n_init=1, random_state=0).fit(X.astype(dtype))
    assert model.hierarchy_.n_leaves == 3
    assert np.isfinite(model.hierarchy_.placement.rule.weights).all()
    if kind != "one row apart":
        assert len(np.unique(model.labels_[:: len(X) // 3][:3])) == 3
