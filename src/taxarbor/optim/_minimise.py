r"""The hinge loss, and the paper's proximal quasi-Newton method for it (its Eq. 6).

Each step minimises, by spectral proximal gradient,

.. math:: g \cdot (V - W) + \tfrac12 (V - W)^\top B (V - W) + \mathrm{penalty}(V)

where B is the L-BFGS matrix of the last few steps in its compact form (Byrd, Nocedal and
Schnabel, 1994), and goes there, or part of the way. Nothing of the size of a Hessian is
formed, so any number of features will do. Of very many only some move at a time: those in use
and those furthest from optimal.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray, Status
from taxarbor.native import hinge_multi
from taxarbor.optim.penalty import SparseGroupPenalty, inner
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
        self._factor = 2.0 / (rows.n_rows * n_children)

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


SUFFICIENT = 1e-4  # share of the predicted decrease that a step must bring
SHORTEST = 1e-6  # the step length below which a search gives up
MEMORY = 10  # steps that the metric remembers
MAX_JOINT = 512  # features up to which all move together
CLOSE = 0.1  # share of the largest violation at which those that move are left for others
MAX_INNER = 50  # spectral proximal gradient steps on one model


def minimise(
    loss: HingeLoss, penalty: SparseGroupPenalty, point: Point, *, tol: float, max_iter: int
) -> tuple[Point, Status]:
    """Take up to ``max_iter`` steps from a point, until its violation is within ``tol``.

    Also return why they ended. At most ``MAX_JOINT`` features, or twice as many as are in use,
    move together.
    """
    gradient, metric = loss.gradient(point), None
    for _ in range(max_iter):
        if metric is None:
            violations = penalty.violations(point.W, gradient)
            if float(violations.max(initial=0.0)) <= tol:
                return point, Status.CONVERGED
            features = _working_set(point.W, violations)
            inside = penalty.restrict(features)
            metric = Metric(_scale(loss, point, gradient))
            is_part = len(features) < len(violations)
            close = max(CLOSE * float(violations.max()), tol) if is_part else tol
        W, slope = point.W[:, features], gradient[:, features]
        worst = inside.optimality(W, slope)
        if worst <= close:
            metric = None  # now the others
            continue
        candidate = point.W.copy()
        candidate[:, features] = minimise_model(metric, inside, W, slope, 0.1 * worst)
        reached = search_line(loss, penalty, point, gradient, candidate)
        if reached is None or np.array_equal(reached.W, point.W):  # rounded away
            if metric.is_fresh and metric.scale >= loss.curvature:
                return point, Status.STALLED
            metric = Metric(loss.curvature)  # too bold: begin again with short steps
            continue
        before, point = gradient, reached
        gradient = loss.gradient(point)
        change = gradient[:, features] - before[:, features]
        metric = metric.after(point.W[:, features] - W, change)
    return point, Status.ITERATION_LIMIT


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


def _working_set(W: Array, violations: Array) -> IndexArray:
    """Features in use, and as many that are furthest from optimal; all, where they are few."""
    in_use = W.any(axis=0)
    size = max(MAX_JOINT, 2 * int(np.count_nonzero(in_use)))
    if size >= len(violations):
        return np.arange(len(violations))
    urgency = np.where(in_use, np.inf, violations)
    return np.sort(np.argsort(-urgency, kind="stable")[:size])


def _scale(loss: HingeLoss, point: Point, gradient: Array) -> float:
    """Return the curvature at which a gradient step would bring the loss, at best, to zero.

    Few rows inside the margin say little of the others, so it is kept near the bound.
    """
    steep = inner(gradient, gradient) / max(point.value, np.finfo(np.float64).tiny)
    return float(np.clip(steep, 1e-3 * loss.curvature, loss.curvature))


def inner_rows(A: Array, v: Array) -> Array:
    """Return the inner product of each row of A with v, as ``inner`` does."""
    return np.asarray(np.einsum("ij,j->i", A, v))


class Metric:
    """The L-BFGS matrix ``B = scale I - N M^{-1} N'`` of the last steps.

    N holds ``scale * S`` and Y, the steps and the changes of the gradient along them.
    """

    def __init__(self, scale: float) -> None:
        self.scale = max(scale, np.finfo(np.float64).tiny)
        self._S: Array | None = None
        self._Y: Array | None = None
        self._middle: Array = np.empty((0, 0))

    @property
    def is_fresh(self) -> bool:
        """Whether it holds no steps yet."""
        return self._S is None

    def after(self, step: Array, change: Array) -> "Metric":
        """Return what is known after a step and the change of the gradient along it.

        Where the loss is flat there is nothing to learn but that steps may be longer.
        """
        s, y = step.reshape(1, -1), change.reshape(1, -1)
        curvature = inner(s, y)
        if curvature <= 1e-8 * self.scale * inner(s, s):
            return Metric(0.1 * self.scale)
        S = s if self._S is None else np.concatenate([self._S, s])[-MEMORY:]
        Y = y if self._Y is None else np.concatenate([self._Y, y])[-MEMORY:]
        self.scale = inner(y, y) / curvature
        SY = np.array([inner_rows(Y, s) for s in S])
        SS = np.array([inner_rows(S, s) for s in S])
        lower = np.tril(SY, -1)
        whole = np.block([[self.scale * SS, lower], [lower.T, -np.diag(np.diag(SY))]])
        self._S, self._Y, self._middle = S, Y, np.linalg.pinv(whole)
        return self

    def times(self, D: Array) -> Array:
        """Return ``B D``."""
        product: Array = self.scale * D
        if self._S is None or self._Y is None:
            return product
        d = D.reshape(-1)
        known = len(self._S)
        ends = np.concatenate([self.scale * inner_rows(self._S, d), inner_rows(self._Y, d)])
        inside = inner_rows(self._middle, ends)
        change: Array = self.scale * np.einsum("i,ij->j", inside[:known], self._S)
        change += np.einsum("i,ij->j", inside[known:], self._Y)
        return product - change.reshape(D.shape)


def minimise_model(
    metric: Metric, penalty: SparseGroupPenalty, W: Array, gradient: Array, tol: float
) -> Array:
    """Lower the model of one step by spectral proximal gradient, from W."""
    V = W
    image = np.zeros_like(W)  # B (V - W)
    step = 1.0 / metric.scale
    value = penalty.value(W)
    for _ in range(MAX_INNER):
        slope = gradient + image
        D = penalty.prox(V - step * slope, step) - V
        # A long step ends where weights vanish, however steep the way: the first always counts.
        if V is not W and float(np.abs(D).max(initial=0.0)) <= tol * step:
            break
        BD = metric.times(D)
        curvature = inner(D, BD)
        linear, along = inner(slope, D), 1.0
        while True:
            lower = penalty.value(V + along * D)
            change = along * linear + 0.5 * along * along * curvature + lower - value
            if change <= 0.0 or along < 1e-6:
                break
            along *= 0.5
        if change > 0.0:
            break
        V, image, value = V + along * D, image + along * BD, lower
        if curvature > 0.0:
            step = inner(D, D) / curvature
    return V
