"""Which of some linear scores is the highest: how rows are told where they belong."""

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.rows._base import Rows

MAX_SCORES = 4_000_000
"""Scores, rows times models, that are held at a time: 32 MB in float64."""


def best_scores(rows: Rows, weights: Array, offsets: Array | None = None) -> IndexArray:
    """Return the position of the highest score of each row, the first of ties.

    Parameters
    ----------
    rows : Rows
        The rows, about the centre that the scores are of.
    weights : array of shape (n_models, n_features)
        A score is ``weights @ (x - center) + offsets``.
    offsets : array of shape (n_models,), optional
        Zeros by default.
    """
    best: IndexArray = np.empty(rows.n_rows, dtype=np.intp)
    step = max(MAX_SCORES // len(weights), 1)
    for first in range(0, rows.n_rows, step):
        some = np.arange(first, min(first + step, rows.n_rows))
        scores = rows.take(some, center=rows.center).scores(weights)
        if offsets is not None and offsets.any():  # often there are none
            scores = scores + offsets
        best[some] = scores.argmax(axis=1)
    return best
