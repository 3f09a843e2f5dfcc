r"""The paper's proximal quasi-Newton method (its Eq. 6).

Each step minimises, by spectral proximal gradient,

.. math:: g \cdot (V - W) + \tfrac12 (V - W)^\top B (V - W) + \mathrm{penalty}(V)

where B is the L-BFGS matrix of the last few steps in its compact form (Byrd, Nocedal and
Schnabel, 1994), and goes there, or part of the way. Nothing of the size of a Hessian is
formed, so any number of features will do.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from taxarbor._types import Array, Status
from taxarbor.optim._loss import HingeLoss, Point
from taxarbor.optim._minimise import Solution, search_line
from taxarbor.optim._penalty import SparseGroupPenalty

MEMORY = 10
"""Steps that the metric remembers."""

MAX_INNER = 50
"""Spectral proximal gradient steps on one model."""


@final
@dataclass(slots=True)
class ProximalQuasiNewton:
    """Minimise a hinge loss plus a penalty with an L-BFGS metric."""

    def minimise(
        self,
        loss: HingeLoss,
        penalty: SparseGroupPenalty,
        point: Point,
        *,
        tol: float,
        max_iter: int,
    ) -> Solution:
        """Take up to ``max_iter`` steps from a point, until its violation is within ``tol``."""
        gradient = loss.gradient(point)
        metric = Metric(_first_scale(point, gradient))
        for n_iter in range(max_iter):
            worst = penalty.optimality(point.W, gradient)
            if worst <= tol:
                return Solution(point, Status.CONVERGED, n_iter)
            candidate = minimise_model(metric, penalty, point.W, gradient, 0.1 * worst)
            moved = search_line(loss, penalty, point, gradient, candidate)
            if moved is None:
                if not metric.steps:
                    return Solution(point, Status.STALLED, n_iter)
                metric = Metric(metric.scale)  # a stale metric: begin again from its scale
                continue
            before, gradient = gradient, loss.gradient(moved)
            metric.remember(moved.W - point.W, gradient - before)
            point = moved
        return Solution(point, Status.ITERATION_LIMIT, max_iter)


def _first_scale(point: Point, gradient: Array) -> float:
    """Curvature at which a gradient step would bring the loss, at best, to zero."""
    return float(np.vdot(gradient, gradient)) / max(point.value, np.finfo(np.float64).tiny)


class Metric:
    """The L-BFGS matrix ``B = scale I - N M^{-1} N'`` of the last steps."""

    def __init__(self, scale: float) -> None:
        self.scale = max(scale, np.finfo(np.float64).tiny)
        self.steps: list[Array] = []
        self._changes: list[Array] = []
        self._basis: Array | None = None
        self._middle: Array | None = None

    def remember(self, step: Array, change: Array) -> None:
        """Learn from a step and the change of the gradient along it."""
        s, y = step.ravel(), change.ravel()
        curvature = float(s @ y)
        if curvature <= 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return
        self.steps = [*self.steps, s][-MEMORY:]
        self._changes = [*self._changes, y][-MEMORY:]
        self.scale = float(y @ y) / curvature
        S, Y = np.array(self.steps), np.array(self._changes)
        SY = S @ Y.T
        lower = np.tril(SY, -1)
        self._basis = np.concatenate([self.scale * S, Y])
        self._middle = np.linalg.pinv(
            np.block([[self.scale * (S @ S.T), lower], [lower.T, -np.diag(np.diag(SY))]])
        )

    def times(self, D: Array) -> Array:
        """Return ``B D``."""
        product: Array = self.scale * D
        if self._basis is not None and self._middle is not None:
            inside = self._middle @ (self._basis @ D.ravel())
            product = product - (inside @ self._basis).reshape(D.shape)
        return product


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
        if float(np.abs(D).max(initial=0.0)) <= tol * step:
            break
        BD = metric.times(D)
        curvature = float(np.vdot(D, BD))
        linear, along = float(np.vdot(slope, D)), 1.0
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
            step = float(np.vdot(D, D)) / curvature
    return V
