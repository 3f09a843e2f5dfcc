"""The few passes over the data that a splitter needs.

A solver never touches ``X``. It asks a :class:`Rows` object, which knows where the data
lives, and keeps what comes back: small arrays over features (always NumPy, float64) and
arrays over rows (of whatever kind the rows are), which it hands back unread.
"""

from dataclasses import dataclass
from typing import Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class PairProblem:
    """A two-way split: the loss in ``d = w_0 - w_1``, a penalty, and where to start.

    Rounds end when one lowers the objective by less than the share ``tol``, or when no row
    moves and no feature violates optimality by more than ``violation``.
    """

    start: Array  #: (n_features,), weights to start from
    labels: NDArray[np.int8] | None  #: to start from; None for those of the weights
    is_fixed: bool  #: whether labels stay, and only weights are sought
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
    is_fixed: bool  #: whether labels stay, and only weights are sought
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


@final
@dataclass(frozen=True, slots=True, eq=False)
class RuleProblem:
    """A division of the rows, and what a feature that helps to reproduce it may cost."""

    labels: NDArray[np.int32]  #: the child of each row
    n_children: int
    weights: Array  #: (n_rows,), what a row in another child costs
    reluctance: (
        Array  #: (n_features,), by which a feature's price is multiplied; 0 keeps it out
    )
    owner: IndexArray | None  #: (n_features,), the column that each is of; None: its own
    rounding: float  #: beside a feature's own: what deviates by no more is not used
    price: float  #: by which a child's column must lower the loss: half the squared hinges
    ridge: float  #: weight of squared weights, per unit of ``weights`` and of variance
    max_features: int  #: the most columns that may be in use; 0 for any number


class Rows(Protocol):
    """The rows of one node, seen from their centre.

    Attributes
    ----------
    n_rows, n_features : int
        Shape of the node's data.
    dtype : numpy dtype
        float32 or float64; scores have the same.
    center : array of shape (n_features,), float64
        What is subtracted from each row before anything else. The node's mean, unless
        another was given.
    n_threads : int
        Threads for one sweep; no result depends on it.
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def dtype(self) -> np.dtype[np.floating]: ...

    @property
    def center(self) -> Array: ...

    @property
    def n_threads(self) -> int: ...

    def scores(self, W: Array) -> Array:
        """Return ``(X - center) @ W.T``, of shape (n_rows, len(W)): one sweep.

        A row's score depends on that row, the centre and ``W`` alone, to the last bit.
        """
        ...

    def best(self, W: Array, offsets: Array) -> IndexArray:
        """Return the position of each row's highest score plus offset, the first of ties."""
        ...

    def adjoint(self, R: Array) -> Array:
        """Return ``R.T @ (X - center)``, of shape (R.shape[1], n_features), float64.

        Rows where ``R`` is zero are not touched.
        """
        ...

    def gram(self, positions: IndexArray, features: IndexArray) -> Array:
        """Return ``Z.T @ Z`` for ``Z = (X - center)[positions][:, features]``, float64."""
        ...

    def lloyd(self, centers: Array, n_steps: int) -> tuple[NDArray[np.int32], Array]:
        """Return the nearest centre of each row and the centres after steps of k-means.

        Centres, of shape (n_centers, n_features), are seen from ``center``; the labels are
        those that the last centres are the means of. One sweep per step.
        """
        ...

    def principal(self, start: Array, n_steps: int) -> Array:
        """Return the direction of greatest variance, of unit length and shape (n_features,).

        Approached from another one by the power method: two sweeps per step.
        """
        ...

    def norms(self) -> Array:
        """Return the squared length of each row of ``X - center``, float64: one sweep."""
        ...

    def exact_sums(
        self,
        labels: NDArray[np.int32] | None,
        counts: NDArray[np.int32] | None,
        n_labels: int,
    ) -> NDArray[np.int64]:
        """Return exact sums of ``X``, without the centre, of the rows of each label.

        Of shape (n_labels, n_features, n_limbs): those of other rows can be added to them, and
        ``native.exact_values`` makes numbers of them. Each row counts as often as ``counts``
        says; NaN, and rows of a negative label, add nothing. One sweep.
        """
        ...

    def spread(self) -> Array:
        """Return the mean of ``|X - center|`` per feature, float64: one sweep."""
        ...

    def few_values(self) -> Array:
        """Return the values of each column that has at most two, (n_features, 2), float64.

        The smaller one first, a single one twice; NaN for all other columns. One sweep, mostly
        over few columns.
        """
        ...

    def neighbors(self, n_neighbors: int) -> tuple[Array, IndexArray]:
        """Return distances and positions of each row's nearest other rows, nearest first.

        Both of shape (n_rows, n_neighbors), for fewer neighbours than there are rows. As
        many sweeps as there are rows, in blocks.
        """
        ...

    def marks(self, positions: IndexArray) -> NDArray[np.uint64]:
        """Return a number for each of some rows: the same for those whose cells are equal.

        Of whatever array or matrix they are, if its type is the same. Others have another
        number, but for a chance of one in 2**64.
        """
        ...

    def solve_pair(self, problem: PairProblem) -> SplitSolution:
        """Alternate labels and weights of a two-way split, by proximal Newton steps."""
        ...

    def solve_kway(self, problem: KwayProblem) -> SplitSolution:
        """Alternate labels and weights of a split into several children, likewise."""
        ...

    def halve(self, problem: HalveProblem) -> Half | None:
        """Divide lifted rows in two, where the gap is; None if all are equal."""
        ...

    def find_rule(self, problem: RuleProblem) -> tuple[Array, Array]:
        """Return weights and offsets of a sparse rule, a model per child or one for two.

        A row is sent to the child of the highest score, or, of two, to the first if the
        score is not negative.
        """
        ...

    def take(self, positions: IndexArray, center: Array | None = None) -> Self:
        """Return the rows at these positions, about their own mean or a given centre."""
        ...


def best_scores(rows: Rows, weights: Array, offsets: Array | None = None) -> IndexArray:
    """Return the position of each row's highest score, the first of ties.

    The scores of a row are ``weights @ (x - center) + offsets``.
    """
    return rows.best(weights, np.zeros(len(weights)) if offsets is None else offsets)
