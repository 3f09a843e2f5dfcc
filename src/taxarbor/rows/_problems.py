"""The problems that the compiled solvers take, and their solutions."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array


@final
@dataclass(frozen=True, slots=True, eq=False)
class SplitProblem:
    """A split: its loss, a penalty, and where to start.

    Of two children the problem is one in ``d = w_0 - w_1``; of more, in the weights of all of
    them. Rounds end when one lowers the objective by less than the share ``tol``, or when no
    row moves and no feature violates optimality by more than ``violation``.
    """

    start: Array  #: (n_features,) or (n_children, n_features), weights to start from
    labels: NDArray[np.signedinteger] | None  #: to start from; None for those of the weights
    bounds: tuple[int, int]  #: least and greatest number of rows of a child; of two, child 0
    group: float  #: weight of the norm of a feature's weights; of two children, not used
    l1: Array  #: (n_features,), weight of their absolute values
    ridge: float  #: weight of their squares
    tol: float
    violation: float
    max_alternations: int  #: most rounds
    max_working: int  #: most features that one Newton step may change


@final
@dataclass(frozen=True, slots=True, eq=False)
class SplitSolution:
    """Weights (d, of two children), labels and scores of a split, and its rounds."""

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

    The plane is found as in :class:`SplitProblem`, with no penalty but a ridge. ``ridge`` is a
    share of the rows' variance, ``violation`` of its root.
    """

    seed: int  #: of the starts
    starts: list[str]  #: each "principal", "ward" or "far_rows"
    bounds: tuple[int, int]  #: least and greatest number of rows of child 0
    ridge: float
    tol: float
    violation: float
    max_rounds: int
    start_rows: int  #: rows that starts read, except Ward's
    ward_rows: int  #: rows that Ward's starts read
    lloyd_steps: int
    power_steps: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """Labels and scores (child 1 below zero) of a division in two, and its rounds."""

    labels: NDArray[np.int8]
    scores: Array
    gap: float  #: the scatter between the children for the root of the objective
    trace: list[float]
    status: str
    n_passes: float
    weights: Array  #: (n_features,), of the scores: about the centre, but for the last feature
