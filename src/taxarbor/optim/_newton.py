r"""Proximal Newton on a working set of features.

The squared hinge is piecewise quadratic. Each step minimises its quadratic model plus the
penalty, over the features that are in use or want to be, by block coordinate descent
(:func:`taxarbor.native.descend_blocks`), and goes there, or part of the way.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from taxarbor._types import Array, IndexArray, Status
from taxarbor.native import descend_blocks
from taxarbor.optim._loss import HingeLoss, Point
from taxarbor.optim._minimise import Solution, search_line
from taxarbor.optim._penalty import SparseGroupPenalty

MAX_WORKING = 2048
"""Rows of the largest Hessian that is formed: 32 MB."""

MAX_SMOOTH = 512
"""Weights up to which a model without any l1 or group norm is solved as a linear system (in
``native/src/descent.cpp``); beyond it, coordinate descent on a dense model is slow."""

MAX_DENSE = 16384
"""Weights beyond which all of them are never wanted at once: the working set begins with FEW
features and doubles, the most violated first."""

FEW = 256

MAX_SWEEPS = 200
"""Sweeps of coordinate descent on one quadratic model."""

DAMPING = 1e-6
"""Added to each entry of the Hessian's diagonal, as a share of it, so that no feature suffers
from the scale of another; and again, of its mean, where no row inside the margin has any."""


@final
@dataclass(slots=True)
class ProximalNewton:
    """Minimise a hinge loss plus a penalty by proximal Newton steps.

    An instance serves one node: it remembers the working set from call to call.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.optim import HingeLoss, ProximalNewton, SparseGroupPenalty
    >>> from taxarbor.rows import as_rows
    >>> loss = HingeLoss(as_rows(np.array([[-1.0], [1.0]])), n_children=2)
    >>> point = loss.zero(np.array([0, 1], dtype=np.int32))
    >>> penalty = SparseGroupPenalty(0.0, np.zeros(1), 0.1)
    >>> found = ProximalNewton().minimise(loss, penalty, point, tol=1e-9, max_iter=50)
    >>> found.status.value
    'converged'
    """

    features: IndexArray | None = None

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
        is_full = True
        for n_iter in range(max_iter):
            gradient = loss.gradient(point)
            violations = penalty.violations(point.W, gradient)
            worst = float(violations.max(initial=0.0))
            if worst <= tol:
                return Solution(point, Status.CONVERGED, n_iter)
            self.features = self._working_set(point.W, violations, loss.n_models)
            candidate = self._model_minimum(
                loss, penalty.restrict(self.features), point, gradient, 0.01 * worst
            )
            step = search_line(loss, penalty, point, gradient, candidate)
            if step is None:
                return Solution(point, Status.STALLED, n_iter)
            point, is_full = step
        return Solution(point, Status.ITERATION_LIMIT, max_iter, is_full)

    def _working_set(self, W: Array, violations: Array, n_models: int) -> IndexArray:
        """Features in use or violated, and those of the last step: a set that only grows.

        Where that is too much for one Hessian, those that are furthest from optimal.
        """
        wanted = W.any(axis=0) | (violations > 0.0)
        if self.features is not None:
            kept = np.zeros(len(wanted), dtype=bool)
            kept[self.features] = True
            if not (wanted & ~kept).any():
                return self.features
            wanted |= kept
        most = max(1, MAX_WORKING // n_models)
        if np.count_nonzero(wanted) <= most:
            return np.flatnonzero(wanted)
        in_use = W.any(axis=0)
        n_used = int(np.count_nonzero(in_use))
        # With those in use come as many others; where both do not fit, all take turns.
        if n_models * len(wanted) > MAX_DENSE and 2 * n_used <= most:
            most = min(most, max(FEW, 2 * n_used))
            violations = np.where(in_use, np.inf, violations)
        return np.sort(np.argsort(-violations, kind="stable")[:most])

    def _model_minimum(
        self,
        loss: HingeLoss,
        penalty: SparseGroupPenalty,
        point: Point,
        gradient: Array,
        tol: float,
    ) -> Array:
        """Return the weights that minimise the model over the working set."""
        features = np.empty(0, dtype=np.intp) if self.features is None else self.features
        H = loss.hessian(point, features)
        n_models, size = loss.n_models, len(features)
        diagonal = H[:: n_models + 1].reshape(n_models, -1)[:, :: size + 1]
        mean = float(diagonal.mean()) or loss.curvature / size
        diagonal *= 1.0 + DAMPING
        diagonal[diagonal < DAMPING * DAMPING * mean] = DAMPING * mean
        slope, W = (np.ascontiguousarray(A[:, features]) for A in (gradient, point.W))
        weights = penalty.group, penalty.l1, penalty.ridge
        V = point.W.copy()
        V[:, features] = descend_blocks(H, slope, W, *weights, tol, MAX_SWEEPS)[0]
        return V
