"""Two ways to write the same K-way problem.

:class:`MultiForm` has one model per child. :class:`PairForm` serves K = 2, where loss and
penalty are smallest at ``w_0 = d / 2 = -w_1``: one model, ``d``, and a threshold instead of a
flow. Both give the same objective.
"""

from typing import Protocol, final

import numpy as np

from taxarbor._types import Array
from taxarbor.assign import assign_balanced, assign_two
from taxarbor.native import hinge_costs
from taxarbor.optim import HingeLoss, Labels, MultiHinge, PairHinge, SparseGroupPenalty
from taxarbor.rows import Rows

Bounds = tuple[int, int]


class Form(Protocol):
    """How a split is written down."""

    @property
    def n_models(self) -> int: ...

    def loss(self, rows: Rows) -> HingeLoss:
        """Return the loss in this form."""
        ...

    def penalty(self, penalty: SparseGroupPenalty) -> SparseGroupPenalty:
        """Return the penalty in this form."""
        ...

    def start(self, scores: Array, bounds: Bounds) -> Labels:
        """Return balanced labels from a start's scores, of shape (n_rows, n_children)."""
        ...

    def assign(self, scores: Array, bounds: Bounds, labels: Labels | None) -> Labels:
        """Return the labels that cost least for the models' scores; those known, if they do."""
        ...

    def weights(self, W: Array) -> Array:
        """Return the weights of each child, of shape (n_children, n_features)."""
        ...

    def own_scores(self, scores: Array, labels: Labels) -> float:
        """Return the sum over rows of the score of the child that each is in."""
        ...


@final
class PairForm:
    """Two children, one model: the difference of theirs."""

    n_models = 1

    def loss(self, rows: Rows) -> PairHinge:
        """Return the loss in d."""
        return PairHinge(rows)

    def penalty(self, penalty: SparseGroupPenalty) -> SparseGroupPenalty:
        """Return the penalty of ``(d / 2, -d / 2)`` as one in d."""
        group = penalty.group / np.sqrt(2.0)
        return SparseGroupPenalty(group, penalty.l1, penalty.ridge / 2.0)

    def start(self, scores: Array, bounds: Bounds) -> Labels:
        """Return the balanced threshold on the difference of the scores."""
        return assign_two(scores[:, 0] - scores[:, 1], *bounds)

    def assign(self, scores: Array, bounds: Bounds, labels: Labels | None) -> Labels:
        """Return the balanced threshold on d's scores."""
        return assign_two(scores.reshape(-1), *bounds)

    def weights(self, W: Array) -> Array:
        """Return ``(d / 2, -d / 2)``."""
        return np.concatenate([0.5 * W, -0.5 * W])

    def own_scores(self, scores: Array, labels: Labels) -> float:
        """Return half the sum of d's scores, with a minus for child 1."""
        f = scores.reshape(-1)
        return 0.5 * float(np.where(labels == 0, f, -f).sum(dtype=np.float64))


@final
class MultiForm:
    """Any number of children, a model each."""

    def __init__(self, n_children: int) -> None:
        self.n_models = n_children

    def loss(self, rows: Rows) -> MultiHinge:
        """Return the loss in all models."""
        return MultiHinge(rows, self.n_models)

    def penalty(self, penalty: SparseGroupPenalty) -> SparseGroupPenalty:
        """Return the penalty as it is."""
        return penalty

    def start(self, scores: Array, bounds: Bounds) -> Labels:
        """Return the balanced labels of the highest total score."""
        return assign_balanced(-scores, *bounds)

    def assign(self, scores: Array, bounds: Bounds, labels: Labels | None) -> Labels:
        """Return the balanced labels of the least total cost.

        A row costs least where its score is highest; no flow is needed if that is balanced.
        """
        highest: Labels = scores.argmax(axis=1).astype(np.int32)
        counts = np.bincount(highest, minlength=self.n_models)
        if counts.min() >= bounds[0] and counts.max() <= bounds[1]:
            return highest
        return assign_balanced(hinge_costs(scores), *bounds, warm=labels)

    def weights(self, W: Array) -> Array:
        """Return W."""
        return W

    def own_scores(self, scores: Array, labels: Labels) -> float:
        """Return the sum of the scores of the rows' own models."""
        own = np.take_along_axis(scores, labels[:, None].astype(np.intp), axis=1)
        return float(own.sum(dtype=np.float64))
