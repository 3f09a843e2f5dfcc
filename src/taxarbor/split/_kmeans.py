"""K-means division of one node: the paper's baselines HKM and HKM-D."""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from taxarbor._types import Array, SolveInfo, Status
from taxarbor.optim import Labels
from taxarbor.rows import Rows
from taxarbor.split._base import Refusal, Split, SplitTask, refuse_few
from taxarbor.split._means import Criterion, Division, conclude, follow, nearest_rule
from taxarbor.split._starts import far_rows

MAX_STEPS = 300
TOLERANCE = 1e-4
"""Settled when the centres move by less than this share of the variance, as in scikit-learn."""


@final
@dataclass(frozen=True, slots=True)
class KMeansSplitter:
    """Splits a node by k-means.

    Parameters
    ----------
    criterion : {"scatter", "compact"}
        Which leaf is worth splitting next.
    n_init : int
        Number of starts; the one with the least squared distances is kept.
    """

    criterion: Criterion = "scatter"
    n_init: int = 1

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division found, or why there is none."""
        few = refuse_few(task)
        if few is not None:
            return few
        found = cluster_rows(task.rows, task.n_children, self.n_init, task.rng())
        # Labels by the rule, for predict to repeat them: centres that have settled may still
        # have moved past some rows.
        rule = nearest_rule(task.rows, found.centers)
        labels = follow(task.rows, rule)
        empty = refuse_empty(task, labels)
        if empty is not None:
            return empty
        division = Division(labels, found.objective, found.info)
        return conclude(task.rows, division, rule, self.criterion)


class Clusters(NamedTuple):
    """What k-means found: labels, and their means seen from the rows' centre."""

    labels: Labels
    centers: Array
    objective: float
    info: SolveInfo


def refuse_empty(task: SplitTask, labels: Labels) -> Refusal | None:
    """Refuse a node of which the nearest of K centres leave a child empty."""
    if np.bincount(labels, minlength=task.n_children).all():
        return None
    return Refusal(f"its {task.rows.n_rows} rows are in fewer than {task.n_children} places")


def cluster_rows(
    rows: Rows, n_clusters: int, n_init: int, rng: np.random.Generator
) -> Clusters:
    """Return the best of some runs of k-means, each begun from rows far from each other.

    The objective is the mean squared distance from the centres. A cluster may end up empty
    where there are fewer different rows than clusters.
    """
    total = float(rows.norms().sum())
    tried = [_descend(rows, far_rows(rows, n_clusters, rng), total) for _ in range(n_init)]
    return min(tried, key=lambda found: found.objective)


def _descend(rows: Rows, centers: Array, total: float) -> Clusters:
    """Move centres to the means of their rows until they hardly move."""
    least_shift = TOLERANCE * total / rows.n_rows / rows.n_features
    labels: Labels | None = None
    trace: list[float] = []
    status = Status.ITERATION_LIMIT
    while status is Status.ITERATION_LIMIT and len(trace) < MAX_STEPS:
        before, known = centers, labels
        labels, centers = rows.lloyd(centers, 1)
        counts = np.bincount(labels, minlength=len(centers))
        # The rows' squares split into those about the means and those of the means.
        between = float(counts @ np.einsum("kp,kp->k", centers, centers))
        trace.append(max(total - between, 0.0) / rows.n_rows)
        if known is not None and np.array_equal(labels, known):
            status = Status.CONVERGED
        elif float(np.square(centers - before).sum()) <= least_shift:
            status = Status.SETTLED
    assert labels is not None  # for the type checker; there is one step at least
    info = SolveInfo(status, len(trace) - 1, float(len(trace)), tuple(trace))
    return Clusters(labels, centers, trace[-1], info)
