"""The problems that the compiled solvers take, and what comes back."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairProblem:
    """A two-way split: the loss in ``d = w_0 - w_1``, a penalty, and where to start.

    Rounds end when one lowers the objective by less than the share ``tol``, or when no row
    moves and no feature violates optimality by more than ``violation``.
    """

    start: Array  #: (n_features,), weights to start from
    labels: NDArray[np.int8] | None  #: to start from; None for those of the weights
    bounds: tuple[int, int]  #: least and greatest number of rows of child 0
    l1: Array  #: (n_features,), weight of ``|d_p|`` in the penalty
    ridge: float  #: weight of ``d_p ** 2``
    tol: float
    violation: float
    max_alternations: int  #: most rounds
    max_working: int  #: most features that one Newton step may change


@final
@dataclass(frozen=True, slots=True, eq=False)
class KwayProblem:
    """A split into several children: as a PairProblem, in the weights of all of them."""

    start: Array  #: (n_children, n_features), weights to start from
    labels: NDArray[np.int32] | None  #: to start from; None for those of the weights
    bounds: tuple[int, int]  #: least and greatest number of rows of a child
    group: float  #: weight of the norm of a feature's weights
    l1: Array  #: (n_features,), weight of their absolute values
    ridge: float  #: weight of their squares
    tol: float
    violation: float
    max_alternations: int  #: most rounds
    max_working: int  #: most features that one Newton step may change


@final
@dataclass(frozen=True, slots=True, eq=False)
class SplitSolution:
    """What came of a split: weights (d, of two children), labels, scores, and how it went."""

    weights: Array
    labels: NDArray[np.signedinteger]
    scores: Array
    trace: list[float]
    status: str
    n_passes: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class HalveProblem:
    """A division in two of lifted rows, whose last feature is constant, by the best of starts.

    The plane is sought as in :class:`PairProblem`, with no penalty but a ridge. ``ridge`` is a
    share of the rows' variance, ``violation`` of its root.
    """

    seed: int  #: of the starts
    starts: list[str]  #: each "principal", "ward" or "far_rows"
    bounds: tuple[int, int]  #: least and greatest number of rows of child 0
    ridge: float
    tol: float
    violation: float
    max_rounds: int
    start_rows: int  #: rows that starts look at, but for Ward's
    ward_rows: int  #: rows that Ward's starts look at
    lloyd_steps: int
    power_steps: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """What came of a division in two: labels, scores (child 1 below zero), and how it went."""

    labels: NDArray[np.int8]
    scores: Array
    gap: float  #: the scatter between the children for the root of the objective
    trace: list[float]
    status: str
    n_passes: float
    weights: Array  #: (n_features,), of the scores: about the centre, but for the last feature
