r"""The squared hinge over rows, for fixed labels (the last term of the paper's Eq. 1).

With scores ``s = W (x - c)``, K children and n rows the loss is

.. math:: \frac{1}{nK} \sum_i \sum_{k \ne y_i} [1 - s_{i y_i} + s_{ik}]_+^2 .

For K = 2 it depends on ``d = w_0 - w_1`` alone, which the compiled two-way solver uses.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array
from taxarbor.native import hinge_multi
from taxarbor.rows import Rows

Labels = NDArray[np.signedinteger]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Weights, with the results of one sweep over the rows."""

    W: Array  # (n_models, n_features), float64, as the data's type holds them
    labels: Labels  # (n_rows,), the child of each row
    scores: Array  # (n_rows, n_models)
    value: float  # the loss
    residual: Array  # (n_rows, n_models), minus its derivative in the scores, up to a factor


@final
class HingeLoss:
    """The loss of a K-way split, in the weights of all K children."""

    def __init__(self, rows: Rows, n_children: int) -> None:
        self.rows = rows
        self.n_models = n_children
        self.n_passes = 0.0

    @property
    def _factor(self) -> float:
        return 2.0 / (self.rows.n_rows * self.n_models)

    def evaluate(self, W: Array, labels: Labels) -> Point:
        """Sweep the rows once for new weights."""
        # Rounded to the data's type, so that stored weights are those that were solved for.
        W = W.astype(self.rows.dtype).astype(np.float64)
        self.n_passes += 1.0
        return self.at(W, labels, self.rows.scores(W))

    def zero(self, labels: Labels) -> Point:
        """Return the point of no weights at all: no sweep."""
        scores = np.zeros((self.rows.n_rows, self.n_models), dtype=self.rows.dtype)
        return self.at(np.zeros((self.n_models, self.rows.n_features)), labels, scores)

    def at(self, W: Array, labels: Labels, scores: Array) -> Point:
        """Return the point for scores that are already known: no sweep."""
        total, residual = hinge_multi(scores, labels)
        return Point(W, labels, scores, 0.5 * self._factor * total, residual)

    def gradient(self, point: Point) -> Array:
        """Return the gradient, of shape (n_children, n_features)."""
        self.n_passes += float(np.count_nonzero(point.residual.any(axis=1))) / self.rows.n_rows
        return self.rows.adjoint(point.residual) * -self._factor

    @cached_property
    def curvature(self) -> float:
        """Twice the mean squared length of a row: the pairs of one row add up to K times it."""
        self.n_passes += 1.0
        return 2.0 * float(self.rows.norms().mean())
