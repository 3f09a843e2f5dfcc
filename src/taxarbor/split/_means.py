"""Splits that are told by the means of their children: the baselines' common part."""

from typing import Literal, NamedTuple

import numpy as np

from taxarbor._types import Array, SolveInfo
from taxarbor.hierarchy import LinearRule
from taxarbor.optim import Labels
from taxarbor.rows import Rows
from taxarbor.split._base import Split

Criterion = Literal["scatter", "compact"]
CRITERIA: tuple[Criterion, ...] = ("scatter", "compact")
"""Which leaf to grow: the one whose rows are farthest from their centre, all together, or
the one whose children would have the least average distance from theirs."""


BLOCK = 64
"""Children whose means are taken at once."""


class Division(NamedTuple):
    """Labels of a node's rows, and how they were found."""

    labels: Labels
    objective: float
    info: SolveInfo


def child_means(rows: Rows, labels: Labels, n_children: int) -> Array:
    """Return the mean of each child's rows, seen from the rows' centre."""
    sums = []
    for first in range(0, n_children, BLOCK):  # some at a time: there may be many
        some = np.arange(first, min(first + BLOCK, n_children))
        sums.append(rows.adjoint((labels[:, None] == some).astype(rows.dtype)))
    counts = np.bincount(labels, minlength=n_children)
    means: Array = np.concatenate(sums) / counts[:, None]
    return means


def nearest_rule(rows: Rows, points: Array) -> LinearRule:
    """Return the rule that sends a row to the nearest of some points.

    These are seen from the rows' centre, and so they are in the rule: added to it, they would
    lose digits where the data are far from the origin.
    """
    lengths = np.einsum("kp,kp->k", points, points)
    parts = points, rows.center, -0.5 * lengths
    return LinearRule(*(part.astype(rows.dtype) for part in parts))


def follow(rows: Rows, rule: LinearRule) -> Labels:
    """Return the child that a rule about the rows' centre sends each row to: one sweep."""
    scores = rows.scores(rule.weights) + rule.offsets
    labels: Labels = scores.argmax(axis=1).astype(np.int32)
    return labels


def conclude(rows: Rows, found: Division, rule: LinearRule, criterion: Criterion) -> Split:
    """Return a split with its score."""
    if criterion == "scatter":
        score = _scatter(rows)
    else:
        score = _compactness(rows, found, child_means(rows, found.labels, rule.n_children))
    return Split(found.labels, rule, score, found.objective, found.info)


def _scatter(rows: Rows) -> float:
    """Return the total distance of the rows from their centre."""
    return float(np.sqrt(rows.norms()).sum())


def _compactness(rows: Rows, found: Division, means: Array) -> float:
    """Return minus the average distance of the rows from the mean of their child."""
    own = np.take_along_axis(rows.scores(means), found.labels[:, None].astype(np.intp), axis=1)
    lengths = np.einsum("kp,kp->k", means, means)[found.labels]
    squares = rows.norms() - 2.0 * own[:, 0].astype(np.float64) + lengths
    return -float(np.sqrt(np.maximum(squares, 0.0)).mean())
