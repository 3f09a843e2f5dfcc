"""Penalties, data and losses that all tests of the package share."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from taxarbor.optim import MultiHinge, PairHinge, SparseGroupPenalty
from taxarbor.rows import as_rows

PENALTIES = ("sparse group", "group", "weighted l1", "l1", "ridge")


@pytest.fixture(scope="session", params=PENALTIES)
def make_penalty(request):
    """Return a function from a number of features and a strength to a penalty."""

    def make(n_features, strength=0.3):
        weights = strength * (np.arange(n_features) % 4) / 3.0  # some of them zero
        nothing = np.zeros(n_features)
        return {
            "sparse group": SparseGroupPenalty(strength, 0.5 * weights),
            "group": SparseGroupPenalty(strength, nothing),
            # The smallest ridge, as without it weights that cost nothing need not be unique.
            "weighted l1": SparseGroupPenalty(0.0, weights, 0.01 * strength),
            "l1": SparseGroupPenalty(0.0, np.full(n_features, strength)),
            "ridge": SparseGroupPenalty(0.0, nothing, strength),
        }[request.param]

    return make


def _draw(n_rows, n_features, n_children, seed):
    """Return rows about zero and labels that they tell apart, more or less."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_children, n_rows)
    middles = 1.5 * rng.normal(size=(n_children, n_features)) * (np.arange(n_features) < 4)
    return rng.normal(size=(n_rows, n_features)) + middles[labels], labels


@pytest.fixture(scope="session")
def problem():
    """Return a function that draws a loss, with its data in plain NumPy beside it."""

    def make(n_children, form="multi", *, n_rows=90, n_features=7, dtype="float64", seed=0):
        X, labels = _draw(n_rows, n_features, n_children, seed)
        X = np.ascontiguousarray(X, dtype=dtype)
        rows = as_rows(X if seed % 2 == 0 else sparse.csr_array(X))
        pair = form == "pair"
        return SimpleNamespace(
            loss=PairHinge(rows) if pair else MultiHinge(rows, n_children),
            labels=labels.astype(np.int8 if pair else np.int32),
            Z=X.astype(np.float64) - rows.center,
            K=n_children,
            models=1 if pair else n_children,
        )

    return make


@pytest.fixture(scope="session", params=["pair", "multi-2", "multi-3", "multi-5"])
def form(request):
    """Return the number of children and the form of the loss."""
    name = request.param
    return (2, "pair") if name == "pair" else (int(name[-1]), "multi")


@pytest.fixture(scope="session")
def as_pair():
    """Return how the penalty of ``(d / 2, -d / 2)`` reads in d, from the plain formula."""

    def make(penalty):
        return SparseGroupPenalty(penalty.group * 0.5**0.5, penalty.l1, 0.5 * penalty.ridge)

    return make


@pytest.fixture(scope="session")
def paper_loss():
    """Return the last term of the paper's Eq. 1, in plain NumPy, for weights (K, P)."""

    def value(Z, W, labels):
        n, K = len(Z), len(W)
        S = Z @ W.T
        total = 0.0
        for i, y in enumerate(labels):
            total += sum(max(0.0, 1.0 - S[i, y] + S[i, k]) ** 2 for k in range(K) if k != y)
        return total / (n * K)

    return value
