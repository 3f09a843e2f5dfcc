r"""Division of one node where the gap is: dense planes with an intercept, in few coordinates.

This is how ours finds its clusters; rules on few features are sought later, when the tree is
whole. The plane is found on a sample, with a light ridge in place of the sparse penalties,
which would cost a point or two of agreement with true classes. The last feature of the rows is
a constant, so its weight is the intercept: boundaries need not pass through the node's mean,
and small clusters are cut off where the gap is. What keeps them from being slivers is the lower
bound on a child's size and the choice among starts.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from taxarbor._types import Array
from taxarbor.optim import SparseGroupPenalty
from taxarbor.optim._loss import Labels
from taxarbor.rows import Rows
from taxarbor.split._alternate import Alternation, Problem
from taxarbor.split._starts import (
    START_ROWS,
    Start,
    child_means,
    draw_sample,
    far_rows_start,
    principal_start,
    thin_out,
    ward_start,
)
from taxarbor.split._task import Refusal, Split, SplitTask, refuse_few

RIDGE = 3e-3
"""Weight of the squared weights, as a share of the rows' variance."""

SAMPLE = 2000
"""Rows on which the plane is sought, or 200 per child if that is more."""

TOL = 0.02
"""A split is settled when a round lowers its objective by less than this share."""

VIOLATION = 1e-3
"""What counts as optimal weights, as a share of TOL and of the rows' spread."""

TOP = 8
"""Starts that the root gets in addition, for each beyond the first; half as many at each level
below, so that levels get about as many each until nodes have no more than others. What goes
wrong up there cannot be mended below, and costs little to get right: nodes are few there, and
seen by samples."""

HOLD = 3
"""Rounds for which the labels of a start are held."""

TINY = 1e-300

STARTS: tuple[Start, ...] = (principal_start, ward_start, far_rows_start, *[ward_start] * 3)
"""Taken in turn, again and again, until there are as many as asked for. Ward's clusters of
other rows are other starts; the others hardly change."""


@final
@dataclass(frozen=True, slots=True)
class GapSplitter:
    """Splits a node of lifted rows, whose last feature is constant, where the gap is.

    Parameters
    ----------
    balance : tuple of float
        Least and greatest size of a child, as multiples of ``n_rows / n_children``.
    n_init : int
        Number of starts. With more than one there are more near the root.
    min_size : int
        Least number of rows of a child.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.rows import as_rows
    >>> from taxarbor.split import GapSplitter, SplitTask
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 1.0], [5.1, 1.0], [5.2, 1.0]])
    >>> task = SplitTask(as_rows(X), (), (), n_children=2, seed=0)
    >>> sorted(np.bincount(GapSplitter().split(task).labels).tolist())
    [2, 3]
    """

    balance: tuple[float, float] = (0.5, 1.5)
    n_init: int = 4
    min_size: int = 1

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division found, without a rule, or why there is none."""
        few = refuse_few(task, self.min_size)
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
        problem = self._problem(task, variance)
        n_starts = self.n_init + (self.n_init - 1) * (TOP >> len(task.path))
        tried = [_try(problem, sample, turn, rng) for turn in range(n_starts)]
        # Starts that end alike differ by rounding, which must not choose among them.
        best, between = max(tried, key=lambda one: _digits(gap(*one)))
        labels, scores = best.labels, best.scores
        if positions is not None:
            scores = lift(rows).scores(best.W)
            labels = problem.assign(scores)
        labels = number_by_first(keep_ties(scores, labels, K, self.min_size), K)
        score = rows.n_rows * gap(best, between)
        return Split(labels, None, score, best.trace[-1], best.info)

    def _problem(self, task: SplitTask, variance: float) -> Problem:
        n_rows, K = task.rows.n_rows, task.n_children
        low, high = self.balance
        balance = max(low, min(self.min_size * K / n_rows, 1.0)), high
        penalty = SparseGroupPenalty(0.0, np.zeros(task.rows.n_features), RIDGE * variance)
        violation = VIOLATION * TOL * float(np.sqrt(variance))
        return Problem(penalty, balance, K, TOL, violation, "auto", HOLD)


def gap(found: Alternation, between: float) -> float:
    """Return the gap: the scatter between the children for the root of the objective.

    The objective alone would reward cutting off a few rows, the scatter alone cutting through
    the middle of a cloud.
    """
    return between / math.sqrt(max(found.trace[-1], TINY))


def lift(rows: Rows) -> Rows:
    """Return the same rows about their centre but for the last feature, kept as it is."""
    center = rows.center.copy()
    center[-1] = 0.0
    return rows.take(np.arange(rows.n_rows), center=center)


def keep_ties(scores: Array, labels: Labels, n_children: int, min_size: int = 1) -> Labels:
    """Return the labels with rows of equal scores together, where most of them are.

    A bound on sizes may cut between them, and equal rows would go different ways. Only rows
    that score like one that the bound moved can be torn apart; of two children, like the last.
    They stay torn where a child would have fewer than ``min_size`` rows.
    """
    first = scores[:, 0]
    free = first < 0.0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    moved = first[free != labels]
    if not len(moved):
        return labels
    if scores.shape[1] == 1:
        near = np.flatnonzero(first == (moved.min() if moved[0] < 0.0 else moved.max()))
    else:
        near = np.flatnonzero(np.isin(first, moved))
    same = np.unique(scores[near], axis=0, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(same * n_children + labels[near], minlength=len(near) * n_children)
    together = labels.copy()
    together[near] = counts.reshape(-1, n_children).argmax(axis=1)[same]
    smallest = int(np.bincount(together, minlength=n_children).min())
    return together if smallest >= min_size else labels


def number_by_first(labels: Labels, n_children: int) -> Labels:
    """Return labels by the order of first rows: whichever way the plane points, one tree."""
    first = [int(np.argmax(labels == child)) for child in range(n_children)]
    new = np.empty(n_children, dtype=labels.dtype)
    new[np.argsort(first)] = np.arange(n_children)
    return new[labels]


def _try(
    problem: Problem, sample: Rows, turn: int, rng: np.random.Generator
) -> tuple[Alternation, float]:
    """Return where one start ends, and the scatter between the children then."""
    K = problem.n_children
    start = STARTS[turn % len(STARTS)]
    few = sample if start is ward_start else thin_out(sample, START_ROWS * K)
    found = problem.from_centers(lift(sample), start(few, K, rng))
    means = child_means(sample, found.labels, K)
    shares = np.bincount(found.labels, minlength=K) / sample.n_rows
    return found, float(shares @ np.einsum("kp,kp->k", means, means))


def _digits(worth: float) -> float:
    return round(math.log(max(worth, TINY)), 5)
