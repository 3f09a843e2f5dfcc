"""What all minimisers share: their result, and the search along a step."""

from dataclasses import dataclass
from typing import final

import numpy as np

from taxarbor._types import Array, Status
from taxarbor.optim._loss import HingeLoss, Labels, Point
from taxarbor.optim._penalty import SparseGroupPenalty, inner

SUFFICIENT = 1e-4
"""Share of the predicted decrease that a step must bring."""

SHORTEST = 1e-6
"""The step length below which a search gives up."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Where a minimiser stopped, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.optim import HingeLoss, ProximalQuasiNewton, SparseGroupPenalty
    >>> from taxarbor.rows import as_rows
    >>> loss = HingeLoss(as_rows(np.array([[-1.0], [1.0]])), n_children=2)
    >>> point = loss.zero(np.array([0, 1], dtype=np.int32))
    >>> penalty = SparseGroupPenalty(9.0, np.zeros(1))
    >>> found = ProximalQuasiNewton().minimise(loss, penalty, point, tol=1e-9, max_iter=5)
    >>> found.n_iter, found.point.W.tolist()  # so strong a penalty leaves no weights
    (0, [[0.0], [0.0]])
    """

    point: Point
    status: Status
    n_iter: int


def search_line(
    loss: HingeLoss, penalty: SparseGroupPenalty, point: Point, gradient: Array, V: Array
) -> Point | None:
    """Return the first point on the way from ``point`` to V that lowers the objective enough.

    None if no step helps. Scores are linear in the weights, so shorter steps are tried without
    another sweep; the one taken is swept again, to leave no round-off behind.
    """
    start = point.value + penalty.value(point.W)
    reached = loss.evaluate(V, point.labels)
    full = penalty.value(reached.W)
    slope = inner(gradient, reached.W - point.W) + full - (start - point.value)
    if reached.value + full <= start + SUFFICIENT * min(slope, 0.0) and slope < 0.0:
        return reached
    step = 0.5
    while step >= SHORTEST:
        W = point.W + step * (V - point.W)
        scores = point.scores + point.scores.dtype.type(step) * (reached.scores - point.scores)
        value = loss.at(W, point.labels, scores).value + penalty.value(W)
        if value < start and value <= start + SUFFICIENT * step * slope:
            exact = loss.evaluate(W, point.labels)
            return exact if exact.value + penalty.value(exact.W) < start else None
        step *= 0.5
    return None


def first_point(loss: HingeLoss, penalty: SparseGroupPenalty, labels: Labels) -> Point:
    """Return where to begin with given labels: a long proximal gradient step from zero.

    Its length would, at best, bring the loss to zero; then the weights are doubled while
    that helps, which is exact in floating point and needs no sweep.
    """
    point = loss.zero(labels)
    gradient = loss.gradient(point)
    step = point.value / max(inner(gradient, gradient), np.finfo(np.float64).tiny)
    moved = search_line(loss, penalty, point, gradient, penalty.prox(-step * gradient, step))
    if moved is None:
        return point
    while True:
        twice = loss.at(2.0 * moved.W, labels, 2 * moved.scores)
        if not twice.value + penalty.value(twice.W) < moved.value + penalty.value(moved.W):
            return moved
        moved = twice
