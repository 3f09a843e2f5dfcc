r"""Maximum-margin division of one node by dense planes with an intercept.

This is how a tree finds its groups when their rules are sought later: on a sample, in few
coordinates, with a light ridge in place of the sparse penalties, which would cost a point or
two of agreement with true classes. The last feature of the rows is a constant, so its weight
is the intercept: boundaries need not pass through the node's mean, and small groups are cut
off where the gap is. What keeps them from being slivers is the lower bound on a child's size
and the choice among starts.
"""

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from taxarbor._types import Array, SolveInfo
from taxarbor.optim import Labels, SparseGroupPenalty
from taxarbor.rows import Rows
from taxarbor.split._alternate import Alternation, Problem
from taxarbor.split._base import Refusal, Split, SplitTask, refuse_few
from taxarbor.split._forms import MultiForm, PairForm
from taxarbor.split._means import child_means
from taxarbor.split._starts import (
    START_ROWS,
    Start,
    draw_sample,
    far_rows_start,
    principal_start,
    thin_out,
    ward_start,
)

RIDGE = 3e-3
"""Weight of the squared weights, as a share of the rows' variance."""

SAMPLE = 2000
"""Rows on which the plane is sought, or 200 per child if that is more."""

VIOLATION = 1e-3
"""What counts as optimal weights, as a share of ``tol`` and of the rows' spread."""

TOP = 8
"""Starts that the root gets in addition, for each beyond the first; half as many at each level
below, so that levels get about as many each until nodes have no more than others. What goes
wrong up there cannot be mended below, and costs little to get right: nodes are few there, and
seen by samples."""

HOLD = 3
"""Rounds for which the labels of a start are held."""

TINY = 1e-300

STARTS: tuple[Start, ...] = (
    principal_start,
    ward_start,
    far_rows_start,
    ward_start,
    ward_start,
    ward_start,
)
"""Taken in turn, again and again, until there are as many as asked for. Ward's clusters of
other rows are other starts; the others hardly change."""

Worth = Literal["gap", "scatter", "objective"]
"""What a division is ranked by: the scatter between its children for the root of the objective,
that scatter as it is, or how small the objective is."""


@final
@dataclass(frozen=True, slots=True)
class LiftedSplitter:
    """Splits a node of lifted rows, whose last feature is constant, by margins.

    Parameters
    ----------
    balance : tuple of float
        Least and greatest size of a child, as multiples of ``n_rows / n_children``.
    n_init : int
        Number of starts; near the root there are more, unless it is one.
    tol : float
        Stop when a round of labels and weights lowers the objective by less than this share.
    starts, top, ridge, has_intercept
        What is tried in turn, how much more of it at the root, the weight of the squares,
        and whether boundaries may leave the node's mean.
    choose_by : {"gap", "scatter", "objective"}
        Which start is kept.
    grow_by : {"gap", "scatter", "objective", "variance", "size"}
        Which leaf is split next: by its division, times its rows; or by how far its rows
        vary, or how many they are. A gap is the scatter between the
        children for the root of the objective: the objective alone would reward cutting off
        a few rows, the scatter alone cutting through the middle of a cloud.
    """

    balance: tuple[float, float]
    n_init: int
    tol: float
    starts: tuple[Start, ...] = STARTS
    top: int = TOP
    ridge: float = RIDGE
    has_intercept: bool = True
    choose_by: Worth = "gap"
    grow_by: Worth | Literal["variance", "size"] = "gap"

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division found, without a rule, or why there is none."""
        few = refuse_few(task)
        if few is not None:
            return few
        rows, K, rng = task.rows, task.n_children, task.rng()
        positions = draw_sample(rows.n_rows, max(SAMPLE, 200 * K), rng)
        sample = rows if positions is None else rows.take(positions, center=rows.center)
        if positions is not None and not sample.norms().any():
            sample, positions = rows, None  # what differs was not drawn
        variance = float(sample.norms().mean())
        if variance == 0.0:
            return Refusal(f"all of its {rows.n_rows} rows are equal, or nearly so")
        problem = self._problem(K, rows.n_features, variance)
        n_starts = self.n_init + (self.n_init - 1) * (self.top >> len(task.path))
        tried = [self._try(problem, sample, turn, rng) for turn in range(n_starts)]
        # Starts that end alike differ by rounding, which must not choose among them.
        best, between = max(tried, key=lambda one: _digits(self._worth(self.choose_by, *one)))
        labels, scores = best.labels, best.scores
        if positions is not None:
            scores = self._seen(rows).scores(best.W)
            labels = problem.follow(rows, scores)
        labels = keep_ties(scores, labels, K)
        match self.grow_by:
            case "size":
                share = 1.0
            case "variance":
                share = variance
            case worth:
                share = self._worth(worth, best, between)
        return Split(
            labels=number_by_first(labels, K),
            rule=None,
            score=rows.n_rows * share,
            objective=best.trace[-1],
            info=SolveInfo(best.status, len(best.trace) - 1, best.n_passes, tuple(best.trace)),
        )

    def _worth(self, by: Worth, found: Alternation, between: float) -> float:
        objective = max(found.trace[-1], TINY)
        if by == "gap":
            return between / math.sqrt(objective)
        return between if by == "scatter" else 1.0 / objective

    def _seen(self, rows: Rows) -> Rows:
        return lift(rows) if self.has_intercept else rows

    def _problem(self, n_children: int, n_features: int, variance: float) -> Problem:
        return Problem(
            PairForm() if n_children == 2 else MultiForm(n_children),
            SparseGroupPenalty(0.0, np.zeros(n_features), self.ridge * variance),
            self.balance,
            n_children,
            self.tol,
            VIOLATION * self.tol * float(np.sqrt(variance)),
            "auto",
            HOLD,
        )

    def _try(
        self, problem: Problem, sample: Rows, turn: int, rng: np.random.Generator
    ) -> tuple[Alternation, float]:
        """Return where one start ends, and the scatter between the children then."""
        K = problem.n_children
        start = self.starts[turn % len(self.starts)]
        few = sample if start is ward_start else thin_out(sample, START_ROWS * K)
        found = problem.from_centers(self._seen(sample), start(few, K, rng))
        return found, scatter_between(sample, found.labels, K)


def lift(rows: Rows) -> Rows:
    """Return the same rows about their centre but for the last feature, kept as it is."""
    center = rows.center.copy()
    center[-1] = 0.0
    return rows.take(np.arange(rows.n_rows), center=center)


def scatter_between(rows: Rows, labels: Labels, n_children: int) -> float:
    """Return the mean squared distance of the rows' own child's mean from the centre."""
    means: Array = child_means(rows, labels, n_children)
    shares = np.bincount(labels, minlength=n_children) / rows.n_rows
    return float(shares @ np.einsum("kp,kp->k", means, means))


def keep_ties(scores: Array, labels: Labels, n_children: int) -> Labels:
    """Return the labels with rows of equal scores together, where most of them are.

    A bound on sizes may cut between them, and equal rows would go different ways.
    """
    free = scores[:, 0] < 0.0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    if (free == labels).all():
        return labels
    same = np.unique(scores, axis=0, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(same * n_children + labels, minlength=(same.max() + 1) * n_children)
    together = counts.reshape(-1, n_children).argmax(axis=1)[same].astype(labels.dtype)
    is_whole = np.bincount(together, minlength=n_children).all()
    return together if is_whole else labels


def _digits(worth: float) -> float:
    return round(math.log(max(worth, TINY)), 5)


def number_by_first(labels: Labels, n_children: int) -> Labels:
    """Return labels by the order of first rows: whichever way the plane points, one tree."""
    first = [int(np.argmax(labels == child)) for child in range(n_children)]
    new = np.empty(n_children, dtype=labels.dtype)
    new[np.argsort(first)] = np.arange(n_children)
    return new[labels]
