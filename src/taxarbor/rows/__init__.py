"""The data of one node, wherever it lives."""

from typing import Any

from scipy.sparse import issparse

from taxarbor.rows._base import PairProblem, PairSolution, Rows, RuleProblem
from taxarbor.rows._choice import best_scores
from taxarbor.rows._dense import DenseRows
from taxarbor.rows._sparse import SparseRows

__all__ = [
    "DenseRows",
    "PairProblem",
    "PairSolution",
    "Rows",
    "RuleProblem",
    "SparseRows",
    "as_rows",
    "best_scores",
]


def as_rows(X: Any, *, n_threads: int = 1) -> Rows:
    """Return checked data as rows about their mean.

    Parameters
    ----------
    X : C-contiguous ndarray or CSR matrix of shape (n_rows, n_features)
        Finite, float32 or float64.
    n_threads : int
        Threads for one sweep.
    """
    return SparseRows.of(X, n_threads) if issparse(X) else DenseRows.of(X, n_threads)
