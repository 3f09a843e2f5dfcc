"""Penalties, data and losses that all tests of the package share."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from taxarbor.optim import HingeLoss, SparseGroupPenalty
from taxarbor.rows import as_rows

KINDS = ("sparse group", "group", "weighted l1", "l1", "ridge")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def penalty_of(kind, n_features, strength=0.3):
    """Return a penalty of some kind and strength."""
    weights = strength * (np.arange(n_features) % 4) / 3.0  # some of them zero
    nothing = np.zeros(n_features)
    return {
        "sparse group": SparseGroupPenalty(strength, 0.5 * weights),
        "group": SparseGroupPenalty(strength, nothing),
        # The smallest ridge, as without it weights that cost nothing need not be unique.
        "weighted l1": SparseGroupPenalty(0.0, weights, 0.01 * strength),
        "l1": SparseGroupPenalty(0.0, np.full(n_features, strength)),
        "ridge": SparseGroupPenalty(0.0, nothing, strength),
    }[kind]


def problem(K, *, n_rows=90, n_features=7, dtype="float64", seed=0):
    """Draw a loss, with its data in plain NumPy beside it."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n_rows).astype(np.int32)
    middles = 1.5 * rng.normal(size=(K, n_features)) * (np.arange(n_features) < 4)
    X = (rng.normal(size=(n_rows, n_features)) + middles[labels]).astype(dtype)
    rows = as_rows(X if seed % 2 == 0 else sparse.csr_array(X))
    Z = X.astype(np.float64) - rows.center
    return SimpleNamespace(loss=HingeLoss(rows, K), labels=labels, Z=Z, K=K)


def paper_loss(Z, W, labels):
    """Return the last term of the paper's Eq. 1 and its gradient, in plain NumPy."""
    n, K = len(Z), len(W)
    S, rows, y = Z @ W.T, np.arange(n), labels.astype(np.intp)
    slack = np.maximum(0.0, 1.0 - S[rows, y][:, None] + S)
    slack[rows, y] = 0.0
    value = float((slack**2).sum()) / (n * K)
    slack[rows, y] = -slack.sum(axis=1)
    return value, 2.0 / (n * K) * slack.T @ Z
