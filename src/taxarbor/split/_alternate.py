r"""Starts, then labels and weights in turn, to a local optimum (the paper's Section 4.2).

For fixed weights the best balanced labels are found exactly; for fixed labels the weights
minimise a convex function. Neither step raises the objective.

Two children have one model between them: loss and penalty are smallest at
``w_0 = d / 2 = -w_1``, so the problem is written in ``d`` and a threshold takes the place of
the flow. Newton's rounds run compiled, in one call (``native/src/pair.cpp``, ``kway.cpp``).
Those below are of the paper's own solver, which the compiled ones are tested against.
"""

from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from taxarbor._types import Array, SolveInfo, Status
from taxarbor.native import hinge_costs, hinge_multi
from taxarbor.optim import (
    MAX_JOINT,
    HingeLoss,
    Labels,
    assign_balanced,
    assign_two,
    first_point,
    minimise,
    size_bounds,
)
from taxarbor.optim.penalty import SparseGroupPenalty
from taxarbor.rows import Rows, SplitProblem, as_rows

START_ROWS = 250  # rows per child that a start looks at: on eight sets as good as 1,000
LLOYD_STEPS = 6  # steps of k-means in a start: it need not settle: margins see to that
POWER_STEPS = 3  # steps towards the principal direction: it need not be exact


def draw_sample(rows: Rows, size: int, rng: np.random.Generator) -> Rows:
    """Return at most ``size`` of the rows, drawn at random, about the same centre."""
    if rows.n_rows <= size:
        return rows
    drawn = rng.choice(rows.n_rows, size, replace=False, shuffle=False)
    return rows.take(np.sort(drawn), center=rows.center)


def thin_out(rows: Rows, size: int) -> Rows:
    """Return at most ``size`` of the rows, evenly spaced, about the same centre."""
    if rows.n_rows <= size:
        return rows
    return rows.take(np.arange(size) * rows.n_rows // size, center=rows.center)


def true_spread(rows: Rows) -> Array:
    """Return the mean absolute deviation of each feature, zero where it is only rounding.

    That is, within the last digits of the centre or of the largest deviation.
    """
    spread = rows.spread()
    eps = float(np.finfo(rows.dtype).eps)
    noise = eps * (4.0 * np.abs(rows.center) + 16.0 * spread.max(initial=0.0))
    return np.where(spread > noise, spread, 0.0)


def far_rows(rows: Rows, n_children: int, rng: np.random.Generator) -> Array:
    """Return rows far from each other, drawn as in k-means++."""
    norms = rows.norms()
    nearest = norms
    centers = np.empty((0, rows.n_features))
    for _ in range(n_children):
        mass = np.cumsum(np.maximum(nearest, 0.0))
        chosen = min(int(np.searchsorted(mass, rng.random() * mass[-1])), rows.n_rows - 1)
        pick = np.zeros((rows.n_rows, 1), dtype=rows.dtype)
        pick[chosen] = 1.0
        center = rows.adjoint(pick)
        distance = norms - 2.0 * rows.scores(center)[:, 0] + norms[chosen]
        nearest = np.minimum(nearest, distance) if len(centers) else distance
        centers = np.concatenate([centers, center])
    return centers


Start = Literal["principal", "far_rows", "random"]
STARTS: tuple[Start, ...] = ("principal", "far_rows", "random")
"""Taken in turn, again and again, until there are as many as requested."""


def find_start(rows: Rows, n_children: int, start: Start, rng: np.random.Generator) -> Array:
    """Return k-means centres, begun from rows far from each other or from slices of them.

    The slices are along the principal direction, or along a random one.
    """
    if start == "far_rows":
        centers = far_rows(rows, n_children, rng)
    else:
        # The rows are mixed at random: directions in which they vary more are likelier.
        mixture = rng.standard_normal((rows.n_rows, 1), dtype=np.float32)
        direction = rows.adjoint(mixture.astype(rows.dtype, copy=False))[0]
        direction = rows.principal(direction, POWER_STEPS if start == "principal" else 0)
        along = rows.scores(direction[None])[:, 0]
        # Each is in the middle of an equal share of the rows.
        middles = (2 * np.arange(n_children) + 1) * rows.n_rows // (2 * n_children)
        centers = np.partition(along, middles)[middles].astype(np.float64)[:, None] * direction
    return rows.lloyd(centers, LLOYD_STEPS)[1]


SolverName = Literal["auto", "newton", "pqn"]
Method = Literal["newton", "pqn", "span"]  # the solver of a node; "span" is along the rows

MAX_ALTERNATIONS = 100  # rounds after which an alternation stops; most settle long before
MAX_WORKING = 2048  # features of a Newton step, over the root of its models: Hessians of 32 MB

MAX_SMOOTH = 512
"""The same for a model without any l1 or group norm, which is solved as a linear system (in
``native/src/descent.cpp``); beyond it, coordinate descent on a dense model is slow."""

MAX_SPAN = 1 << 26
"""Cells of rows that are written out, in float64, where these are few and only a ridge counts:
512 MB, and hardly anything beside them."""

SPAN_ROWS = 16  # rows that are written out at a time

MAX_STEPS = 6
"""Quasi-Newton steps between two assignments. More take longer and end higher: weights that
fit the labels of a start exactly leave no row a reason to move."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Alternation:
    """Where an alternation ended."""

    W: Array  # (n_children, n_features) or, for two children, their difference
    labels: Labels  # (n_rows,), the child of each row
    scores: Array  # (n_rows, len(W)), the rows' scores by these weights
    status: Status
    trace: list[float]  # the objective at the start and after each round
    n_passes: float

    @property
    def info(self) -> SolveInfo:
        """Status, rounds and objectives."""
        return SolveInfo(self.status, len(self.trace) - 1, self.n_passes, tuple(self.trace))

    @property
    def weights(self) -> Array:
        """The weights of each child, of shape (n_children, n_features)."""
        return self.W if len(self.W) > 1 else np.concatenate([0.5 * self.W, -0.5 * self.W])

    @property
    def rule_labels(self) -> Labels:
        """The child of each row's highest score, the first of ties, whatever the bounds."""
        is_pair = self.scores.shape[1] == 1
        child = self.scores[:, 0] < 0 if is_pair else self.scores.argmax(axis=1)
        return child.astype(self.labels.dtype)

    @property
    def label_scores(self) -> float:
        """The sum over rows of the score of the child that each is in."""
        if self.scores.shape[1] == 1:
            f = self.scores[:, 0]
            return 0.5 * float(np.where(self.labels == 0, f, -f).sum(dtype=np.float64))
        labels = self.labels[:, None].astype(np.intp)
        scores = np.take_along_axis(self.scores, labels, axis=1)
        return float(scores.sum(dtype=np.float64))


@final
@dataclass(frozen=True, slots=True, eq=False)
class NodeProblem:
    """The optimisation of one node, on all its rows or a sample; it ends as a SplitProblem."""

    penalty: SparseGroupPenalty  # on the weights of all children
    balance: tuple[float, float]  # least and greatest size of a child, in equal shares
    n_children: int
    tol: float
    violation: float
    solver: SolverName
    max_rounds: int = MAX_ALTERNATIONS
    max_working: int = MAX_WORKING

    def from_centers(self, rows: Rows, centers: Array) -> Alternation:
        """Alternate from the child whose centre is nearest."""
        scores = rows.scores(centers)
        scores -= (0.5 * np.einsum("kp,kp->k", centers, centers)).astype(rows.dtype)
        bounds, n_models = self._bounds(rows), self.n_children
        if n_models == 2:
            labels: Labels = assign_two(scores[:, 0] - scores[:, 1], *bounds)
            n_models = 1
        else:
            labels = assign_balanced(-scores, *bounds)
        return self._alternate(rows, np.zeros((n_models, rows.n_features)), labels)

    def from_weights(self, rows: Rows, W: Array) -> Alternation:
        """Alternate from weights that were found on other rows."""
        return self._alternate(rows, W, None)

    def assign(self, scores: Array, labels: Labels | None = None) -> Labels:
        """Return the balanced labels that cost least, by an alternation's kind of scores.

        A row costs least where its score is highest; no flow is needed if that is balanced.
        """
        bounds = size_bounds(len(scores), self.n_children, *self.balance)
        if scores.shape[1] == 1:
            return assign_two(scores[:, 0], *bounds)
        if self.n_children == 2:
            return assign_two(scores[:, 0] - scores[:, 1], *bounds).astype(np.int32)
        highest: Labels = scores.argmax(axis=1).astype(np.int32)
        counts = np.bincount(highest, minlength=self.n_children)
        if counts.min() >= bounds[0] and counts.max() <= bounds[1]:
            return highest
        return assign_balanced(hinge_costs(scores), *bounds, warm=labels)

    def objective(self, end: Alternation) -> float:
        """Return the objective of an alternation's weights and labels."""
        f = end.scores
        scores = f if f.shape[1] > 1 else np.concatenate([0.5 * f, -0.5 * f], axis=1)
        total, _ = hinge_multi(np.ascontiguousarray(scores), end.labels.astype(np.int32))
        return total / (len(f) * self.n_children) + self.penalty.value(end.weights)

    def _alternate(self, rows: Rows, W: Array, labels: Labels | None) -> Alternation:
        method = self.choose_method(rows)
        if method == "newton":
            return self._solve(rows, W, labels)
        if method == "span":
            return self._solve_in_span(rows, W, labels)
        if self.n_children > 2:
            return self._run(rows, W, labels)
        whole = None if labels is None else labels.astype(np.int32)
        both = self._run(rows, np.concatenate([0.5 * W, -0.5 * W]), whole)
        d = (both.W[:1] - both.W[1:]).astype(rows.dtype).astype(np.float64)
        scores = rows.scores(d)
        labels = self.assign(scores)
        return Alternation(d, labels, scores, both.status, both.trace, both.n_passes + 1.0)

    def _run(self, rows: Rows, W: Array, labels: Labels | None) -> Alternation:
        """Alternate by quasi-Newton steps, with a model per child."""
        loss, penalty = HingeLoss(rows, self.n_children), self.penalty
        if labels is None:
            scores = rows.scores(W)
            point = loss.at(W, self.assign(scores), scores)
            least_rounds = 1
        else:
            # A gradient step would bring all of very many features into use.
            is_wide = rows.n_features > MAX_JOINT
            point = loss.zero(labels) if is_wide else first_point(loss, penalty, labels)
            least_rounds = 2  # a first step from nowhere says little
        trace = [point.value + penalty.value(point.W)]
        status = Status.ITERATION_LIMIT
        while status is Status.ITERATION_LIMIT and len(trace) <= self.max_rounds:
            point, end = minimise(loss, penalty, point, tol=self.violation, max_iter=MAX_STEPS)
            labels = self.assign(point.scores, point.labels)
            moved = not np.array_equal(labels, point.labels)
            if moved:
                point = loss.at(point.W, labels, point.scores)
            trace.append(point.value + penalty.value(point.W))
            slow = trace[-2] - trace[-1] <= self.tol * trace[-1]
            if not moved and end is not Status.ITERATION_LIMIT:
                status = end
            elif slow and len(trace) > least_rounds:
                status = Status.SETTLED
        return Alternation(point.W, point.labels, point.scores, status, trace, loss.n_passes)

    def _solve(self, rows: Rows, W: Array, labels: Labels | None) -> Alternation:
        """Run the same rounds inside the rows, by Newton steps; two children in d."""
        (low, high), n = self._bounds(rows), rows.n_rows
        penalty = self.penalty
        group, l1, ridge = penalty.group, penalty.l1, penalty.ridge
        if is_pair := self.n_children == 2:
            low, high = max(low, n - high), min(high, n - low)
            group, l1, ridge = 0.0, l1 + group / np.sqrt(2.0), ridge / 2.0
        problem = SplitProblem(
            start=W[0] if is_pair else W,
            labels=labels,
            bounds=(low, high),
            group=group,
            l1=l1,
            ridge=ridge,
            tol=self.tol,
            violation=self.violation,
            max_alternations=self.max_rounds,
            max_working=self._max_features(self.max_working),
        )
        solve = rows.solve_pair if is_pair else rows.solve_kway
        W, labels, scores, trace, status, n_passes = solve(problem)
        return Alternation(np.atleast_2d(W), labels, scores, Status(status), trace, n_passes)

    def _solve_in_span(self, rows: Rows, W: Array, labels: Labels | None) -> Alternation:
        """Solve for few rows of many features, where only a ridge counts.

        The weights are sums of the rows then, so that the rows' coordinates along their own
        principal axes, ``X = Z @ axes`` with ``axes = back.T @ X``, give the same weights. Axes
        along which rows are a ten millionth as long as elsewhere are left out: no ridge that
        counts would let them matter.
        """
        X = self._write_out(rows)
        size = max(X.max(), -X.min())
        X /= size  # so that no square is too small or too large
        squares, vectors = np.linalg.eigh(X @ X.T)
        kept = squares > len(X) * np.finfo(np.float64).eps * squares[-1]
        lengths, vectors = np.sqrt(squares[kept]), vectors[:, kept]
        back, Z = vectors / lengths, vectors * (size * lengths)
        within = as_rows(np.ascontiguousarray(Z), center=np.zeros(len(lengths)))
        penalty = replace(self.penalty, l1=np.zeros(len(lengths)))
        # Newton's Hessian has a block per model, which says too little of more than two.
        solver: SolverName = "newton" if self.n_children == 2 else "pqn"
        inside = replace(self, penalty=penalty, solver=solver)
        end = inside._alternate(within, W @ X.T @ back, labels)
        W = (end.W @ back.T @ X).astype(rows.dtype).astype(np.float64)
        scores = rows.scores(W)
        labels = self.assign(scores, end.labels)
        return Alternation(W, labels, scores, end.status, end.trace, end.n_passes + 2.0)

    def _write_out(self, rows: Rows) -> Array:
        """Return the rows about their centre, without features that are held at zero."""
        X = np.empty((rows.n_rows, rows.n_features))
        for first in range(0, len(X), SPAN_ROWS):
            some = np.arange(first, min(first + SPAN_ROWS, len(X)))
            each = np.eye(len(some), dtype=rows.dtype)
            X[some] = rows.take(some, center=rows.center).adjoint(each)
        X[:, self.penalty.l1 > 0.0] = 0.0
        return X

    def _max_features(self, most: int) -> int:
        """Return the most features of a Hessian, so that all models' together are no larger."""
        return max(1, int(most / np.sqrt(self.n_children))) if self.n_children > 2 else most

    def choose_method(self, rows: Rows) -> Method:
        """Newton, unless the features in use would be too many for its Hessian.

        Then along the rows, if these are few and only a ridge counts.
        """
        if self.solver != "auto":
            return self.solver
        penalty = self.penalty
        if penalty.owner is not None:
            return "pqn"  # Newton's descent takes features one by one
        most = self._max_features(MAX_SMOOTH if penalty.is_smooth else self.max_working)
        n_free = np.count_nonzero(penalty.l1 == 0.0) if penalty.group == 0.0 else 0
        # Where few features come into use, its working set follows them.
        if rows.n_features <= most or n_free <= most:
            return "newton"
        n_cells = rows.n_rows * rows.n_features
        is_few = penalty.is_smooth and rows.n_rows <= most and n_cells <= MAX_SPAN
        return "span" if is_few else "pqn"

    def _bounds(self, rows: Rows) -> tuple[int, int]:
        return size_bounds(rows.n_rows, self.n_children, *self.balance)
