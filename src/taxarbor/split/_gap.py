r"""Division of one node in two where the gap is: a dense plane with an intercept.

This is how ours finds its clusters; rules on few features are sought later, when the tree is
whole. The plane is found on a sample, with a light ridge in place of the sparse penalties,
which would cost a point or two of agreement with true classes. The last feature of the rows is
a constant, so its weight is the intercept: boundaries need not pass through the node's mean,
and small clusters are cut off where the gap is. What keeps them from being slivers is the lower
bound on a child's size and the choice among starts, by their gap: the scatter between the
children for the root of the objective. The objective alone would reward cutting off a few rows,
the scatter alone cutting through the middle of a cloud.

All starts of a node run compiled, in one call (``native/src/halve.cpp``).
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from taxarbor._run import node_seed
from taxarbor._types import Array, SolveInfo, Status
from taxarbor.assign import size_bounds
from taxarbor.optim._loss import Labels
from taxarbor.rows._base import HalveProblem
from taxarbor.split._alternate import MAX_ALTERNATIONS
from taxarbor.split._starts import POWER_STEPS, START_ROWS
from taxarbor.split._task import Refusal, Split, SplitTask, refuse_few

RIDGE = 3e-3
"""Weight of the squared weights, as a share of the rows' variance."""

SAMPLE = 1000
"""Rows on which the plane is sought."""

TOL = 0.02
"""A split is settled when a round lowers its objective by less than this share."""

VIOLATION = 1e-3
"""What counts as optimal weights, as a share of TOL and of the rows' spread."""

WARD_ROWS = 200
"""Rows that Ward's start looks at: all pairs of them."""

LLOYD_STEPS = 3
"""Steps of k-means in a start: six are no better."""

STARTS = ("principal", "ward", "far_rows", "ward", "ward", "ward")
"""Taken in turn, again and again, until there are as many as asked for. Ward's clusters of
other rows are other starts; the others hardly change."""


@final
@dataclass(frozen=True, slots=True)
class GapSplitter:
    """Splits a node of lifted rows, whose last feature is constant, in two where the gap is.

    Parameters
    ----------
    balance : tuple of float
        Least and greatest size of a child, as multiples of half of the rows.
    n_init : int
        Number of starts.
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
    n_init: int = 1
    min_size: int = 1

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division found, without a rule, or why there is none."""
        few = refuse_few(task, self.min_size)
        if few is not None:
            return few
        rows, n_rows = task.rows, task.rows.n_rows
        low, high = self.balance
        shares = max(low, min(2 * self.min_size / n_rows, 1.0)), high
        found = rows.halve(
            HalveProblem(
                seed=node_seed(task.seed, task.path),
                sample=SAMPLE,
                starts=[STARTS[turn % len(STARTS)] for turn in range(self.n_init)],
                bounds=_bounds(n_rows, shares),
                sample_bounds=_bounds(min(n_rows, SAMPLE), shares),
                ridge=RIDGE / 2.0,
                tol=TOL,
                violation=VIOLATION * TOL,
                max_rounds=MAX_ALTERNATIONS,
                start_rows=2 * START_ROWS,
                ward_rows=WARD_ROWS,
                lloyd_steps=LLOYD_STEPS,
                power_steps=POWER_STEPS,
            )
        )
        if found is None:
            return Refusal(f"all of its {n_rows} rows are equal, or nearly so")
        labels = keep_ties(found.scores, found.labels, self.min_size)
        labels ^= labels[0]  # by their first rows: whichever way the plane points, one tree
        trace, status = tuple(found.trace), Status(found.status)
        info = SolveInfo(status, len(trace) - 1, found.n_passes, trace)
        return Split(labels, None, n_rows * found.gap, trace[-1], info)


def _bounds(n_rows: int, shares: tuple[float, float]) -> tuple[int, int]:
    """Return how many rows the first child may have, so that both keep to their shares."""
    low, high = size_bounds(n_rows, 2, *shares)
    return max(low, n_rows - high), min(high, n_rows - low)


def keep_ties(scores: Array, labels: Labels, min_size: int = 1) -> Labels:
    """Return the labels with rows of equal scores together, where most of them are.

    A bound on sizes may cut between them, and equal rows would go different ways. Only rows
    that score like the last that the bound moved can be torn apart. They stay torn where a
    child would have fewer than ``min_size`` rows.
    """
    moved = scores[(scores < 0.0) != labels]
    if not len(moved):
        return labels
    near = scores == (moved.min() if moved[0] < 0.0 else moved.max())
    together = labels.copy()
    together[near] = 2 * np.count_nonzero(labels[near]) > np.count_nonzero(near)
    n_ones = np.count_nonzero(together)
    return together if min(n_ones, len(labels) - n_ones) >= min_size else labels
