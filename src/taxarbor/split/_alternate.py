r"""Labels and weights in turn, to a local optimum (the paper's Section 4.2).

For fixed weights the best balanced labels are found exactly; for fixed labels the weights
minimise a convex function. Neither step raises the objective.
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from taxarbor._types import Array, Status
from taxarbor.assign import size_bounds
from taxarbor.optim import (
    MAX_SMOOTH,
    MAX_WORKING,
    HingeLoss,
    Labels,
    Minimiser,
    Point,
    ProximalNewton,
    ProximalQuasiNewton,
    SparseGroupPenalty,
    first_point,
)
from taxarbor.rows import PairProblem, Rows
from taxarbor.split._forms import Form, PairForm

SolverName = Literal["auto", "newton", "pqn"]

MAX_ALTERNATIONS = 100
"""Where an alternation gives up; it settles long before, as a rule."""

STEPS = {"newton": 1, "pqn": 20}
"""Minimiser steps between two assignments: early on, an exact solution is wasted."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Alternation:
    """Where an alternation ended.

    Attributes
    ----------
    W, labels, scores : arrays
        Weights in the form that was solved, the labels, and the models' scores of the rows.
    status : Status
        How it ended.
    trace : list of float
        The objective at the start and after each round.
    n_passes : float
        Sweeps over the rows.
    """

    W: Array
    labels: Labels
    scores: Array
    status: Status
    trace: list[float]
    n_passes: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """How an alternation goes about it.

    Attributes
    ----------
    loss, penalty, minimiser
        What is lowered, and by what.
    steps : int
        Minimiser steps between two assignments.
    least : int
        Rounds before a small gain may end it.
    hold : int
        Rounds before a row may move.
    """

    loss: HingeLoss
    penalty: SparseGroupPenalty
    minimiser: Minimiser
    steps: int
    least: int
    hold: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The optimisation problem of one node, on all of its rows or a sample of them.

    Parameters
    ----------
    form : Form
        How the split is written down.
    penalty : SparseGroupPenalty
        On the weights of all children.
    balance : tuple of float
        Least and greatest size of a child, as multiples of an equal share.
    n_children : int
        Number of children.
    tol, violation : float
        Stop when a round lowers the objective by less than the share ``tol``, or when no row
        moves and no feature violates optimality by more than ``violation``.
    solver : {"auto", "newton", "pqn"}
        How the weights are found.
    hold : int
        Rounds for which a start's labels stay as they are: where the first step is a poor
        guide, as with an intercept, which it would move first of all.
    """

    form: Form
    penalty: SparseGroupPenalty
    balance: tuple[float, float]
    n_children: int
    tol: float
    violation: float
    solver: SolverName
    hold: int = 0

    def from_centers(self, rows: Rows, centers: Array) -> Alternation:
        """Alternate from the child whose centre is nearest."""
        scores = rows.scores(centers)
        scores -= (0.5 * np.einsum("kp,kp->k", centers, centers)).astype(rows.dtype)
        labels = self.form.start(scores, self._bounds(rows))
        return self._alternate(rows, np.zeros((self.form.n_models, rows.n_features)), labels)

    def from_weights(self, rows: Rows, W: Array) -> Alternation:
        """Alternate from weights that were found on other rows."""
        return self._alternate(rows, W, None)

    def follow(self, rows: Rows, scores: Array) -> Labels:
        """Return the balanced labels of rows by the scores of models found on others."""
        return self.form.assign(scores, self._bounds(rows), None)

    def _alternate(self, rows: Rows, W: Array, labels: Labels | None) -> Alternation:
        solver = self._choose_solver(rows, W, labels)
        if solver == "newton" and isinstance(self.form, PairForm):
            return self._solve_pair(rows, W, labels)
        loss = self.form.loss(rows)
        penalty = self.form.penalty(self.penalty)
        least_rounds, hold = 1, 0
        if labels is None:
            scores = rows.scores(W)
            labels = self.form.assign(scores, self._bounds(rows), None)
            point = loss.at(W, labels, scores)
        else:
            point = first_point(loss, penalty, labels)
            least_rounds, hold = 2, self.hold  # a first step from nowhere says little
        minimiser: Minimiser = ProximalNewton() if solver == "newton" else ProximalQuasiNewton()
        rounds = Rounds(loss, penalty, minimiser, STEPS[solver], least_rounds, hold)
        return self._run(rounds, point)

    def _run(self, rounds: Rounds, point: Point) -> Alternation:
        loss, penalty = rounds.loss, rounds.penalty
        bounds = self._bounds(loss.rows)
        trace = [point.value + penalty.value(point.W)]
        status, hold = Status.ITERATION_LIMIT, rounds.hold
        while status is Status.ITERATION_LIMIT and len(trace) <= MAX_ALTERNATIONS:
            solution = rounds.minimiser.minimise(
                loss, penalty, point, tol=self.violation, max_iter=rounds.steps
            )
            point = solution.point
            if len(trace) < hold:  # the first step was one of them
                trace.append(point.value + penalty.value(point.W))
                if solution.status is not Status.ITERATION_LIMIT:
                    hold = 0  # nothing left to do for these labels
                continue
            labels = self.form.assign(point.scores, bounds, point.labels)
            moved = not np.array_equal(labels, point.labels)
            if moved:
                point = loss.at(point.W, labels, point.scores)
            trace.append(point.value + penalty.value(point.W))
            slow = solution.is_full and trace[-2] - trace[-1] <= self.tol * trace[-1]
            if not moved and solution.status is not Status.ITERATION_LIMIT:
                status = solution.status
            elif slow and len(trace) > rounds.least:
                status = Status.SETTLED
        return Alternation(point.W, point.labels, point.scores, status, trace, loss.n_passes)

    def _solve_pair(self, rows: Rows, W: Array, labels: Labels | None) -> Alternation:
        """Run the same rounds inside the rows: one call instead of a hundred per round."""
        penalty = self.form.penalty(self.penalty)
        low, high = self._bounds(rows)
        found = rows.solve_pair(
            PairProblem(
                start=W[0],
                labels=labels,
                hold=0 if labels is None else self.hold,
                bounds=(max(low, rows.n_rows - high), min(high, rows.n_rows - low)),
                l1=penalty.l1 + penalty.group,
                ridge=penalty.ridge,
                tol=self.tol,
                violation=self.violation,
                max_alternations=MAX_ALTERNATIONS,
                max_working=MAX_WORKING,
            )
        )
        return Alternation(
            found.weights[None],
            found.labels,
            found.scores,
            Status(found.status),
            found.trace,
            found.n_passes,
        )

    def _choose_solver(self, rows: Rows, W: Array, labels: Labels | None) -> SolverName:
        """Newton, unless its Hessian would have to be cut down to a part."""
        penalty = self.form.penalty(self.penalty)
        most = (MAX_SMOOTH if penalty.is_smooth else MAX_WORKING) // self.form.n_models
        if self.solver != "auto" or rows.n_features <= most:
            return "newton" if self.solver == "auto" else self.solver
        wanted = W.any(axis=0)
        if labels is not None:
            loss = self.form.loss(rows)
            wanted = wanted | (penalty.violations(W, loss.gradient(loss.zero(labels))) > 0.0)
        return "newton" if np.count_nonzero(wanted) <= most else "pqn"

    def _bounds(self, rows: Rows) -> tuple[int, int]:
        return size_bounds(rows.n_rows, self.n_children, *self.balance)
