"""Data, ancestors, and the paper's objective in plain NumPy."""

from typing import get_args

import numpy as np
import pytest
from scipy import sparse

from taxarbor.rows import as_rows
from taxarbor.split import SplitTask
from taxarbor.split.max_margin_splitter import Kind
from taxarbor.tree import LinearRule
from tests.clusters.conftest import _one_thread
from tests.optim.conftest import paper_loss

__all__ = ["_one_thread"]


@pytest.fixture(params=get_args(Kind))
def kind(request):
    """Each penalty of the paper."""
    return request.param


def draw(n_children, *, n_rows=150, n_features=6, distance=3.0, dtype="float64", seed=0):
    """Draw K clouds of rows, some of their features noise."""
    rng = np.random.default_rng(seed)
    middles = np.zeros((n_children, n_features))
    middles[:, : n_features - 2] = rng.normal(size=(n_children, n_features - 2))
    X = rng.normal(size=(n_rows, n_features))
    X += distance * middles[rng.integers(0, n_children, n_rows)] + 5.0
    return np.ascontiguousarray(X, dtype=dtype)


def rows_of(X, kind="dense", n_threads=1):
    """Return data as rows: dense, or by way of CSR."""
    return as_rows(sparse.csr_array(X) if kind == "sparse" else X, n_threads=n_threads)


def task_of(rows, n_children, *, deep=False, seed=0):
    """Return a task, at the root or two splits below it.

    There the mean of all the data is another than that of the node's rows.
    """
    if not deep:
        return SplitTask(rows, (), (), n_children, seed, rows.center)
    rng, p, rules = np.random.default_rng(5), rows.n_features, []
    for _ in range(2):
        W = rng.normal(size=(n_children, p)) * (rng.random(p) < 0.6)
        rules.append(LinearRule(W.astype(rows.dtype), np.zeros(p, dtype=rows.dtype)))
    origin = rows.center + 0.2 * rows.spread()
    return SplitTask(rows, (n_children - 1, 0), tuple(rules), n_children, seed, origin)


def same_partition(one, other):
    """Return whether two labellings divide the rows alike."""
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


def hinge(Z, W, labels):
    """Return the loss: 1 / (n K) times the sum of [1 - (w_y - w_k) . x]_+^2 over k != y."""
    return paper_loss(Z, W, labels)[0]


def combine(kind, alpha, beta, terms, small):
    """Add the terms of a variant: groups, overlap, l1 and l2."""
    G, E, l1, l2 = terms
    return {
        "group+exclusive": alpha * G + beta * E,
        "group": alpha * G,
        "exclusive": beta * E if small is None else small,
        "l1": alpha * l1,
        "l2": alpha * l2,
    }[kind]


def raw(kind, alpha, beta, W, ancestors, spread):
    overlap = sum((np.abs(W) * np.abs(a)).sum() for a in ancestors) / max(len(ancestors), 1)
    terms = np.linalg.norm(W, axis=0).sum(), overlap, np.abs(W).sum(), (W**2).sum()
    small = None if ancestors else 1e-3 * spread**2 * (W**2).sum()
    return combine(kind, alpha, beta, [term / W.size for term in terms], small)


def relative(kind, alpha, beta, W, ancestors, spread):
    """Weights as shares of those at which nothing is left; ancestors as shares of 1."""
    usage = sum(np.abs(a) / np.abs(a).max() / len(ancestors) for a in ancestors)
    G = np.sqrt(2.0) * spread * np.linalg.norm(W, axis=0).sum()
    E = spread * (np.abs(W) * usage).sum()
    l1, l2 = spread * np.abs(W).sum(), spread**2 * (W**2).sum()
    small = None if ancestors else 1e-3 * l2  # where nothing else is penalised
    return combine(kind, alpha, beta, (G, E, l1, l2), small)


PENALTY_TERMS = {"raw": raw, "relative": relative}
"""alpha G + beta E and its variants, as written down in the paper."""
