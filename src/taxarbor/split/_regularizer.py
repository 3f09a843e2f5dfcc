r"""From a user's alpha and beta to the penalty of one node (the paper's Eqs. 2 to 4).

In raw mode the weights are the paper's: ``group = alpha / (P K)`` and
``l1[p] = beta * mean_a |w_a[p]| / (K P)``, which act on the scale of the features.

In relative mode they are shares of the critical value. For rows about their mean, the
gradient of the loss at ``W = 0`` is, whatever the labels and the number of children, at most
``max_p mean_i |x_ip - c_p|`` in each entry and sqrt(2) times that in each column; so with an
alpha of 1 every weight is zero for every labelling, and multiplying the data by a constant
changes nothing. Ancestors count by the share of each one's largest weight.
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from taxarbor._types import Array
from taxarbor.hierarchy import LinearRule
from taxarbor.optim import SparseGroupPenalty

Kind = Literal["group+exclusive", "group", "exclusive", "l1", "l2"]
KINDS: tuple[Kind, ...] = ("group+exclusive", "group", "exclusive", "l1", "l2")

ROOT_RIDGE = 1e-3
"""Ridge where nothing else is penalised: the root of ``"exclusive"``, which has no ancestors.
A share of the squared critical value, so that it too has no unit."""


@final
@dataclass(frozen=True, slots=True)
class Regularizer:
    """The penalty that a tree puts on each of its nodes.

    Attributes
    ----------
    kind : str
        Which norms take part.
    alpha, beta : float
        Strength of sparsity and of the competition with ancestors.
    relative : bool
        Whether they are shares of the critical value or the paper's raw numbers.
    """

    kind: Kind
    alpha: float
    beta: float
    relative: bool

    def at(self, usage: Array, critical: float, n_children: int) -> SparseGroupPenalty:
        """Return the penalty of a node.

        Parameters
        ----------
        usage : array of shape (n_features,)
            How much the ancestors use each feature.
        critical : float
            The largest mean absolute deviation of a feature on the node's rows.
        n_children : int
            Number of models.
        """
        P, K = len(usage), n_children
        unit = critical if self.relative else 1.0 / (P * K)
        group = self.alpha * unit * (np.sqrt(2.0) if self.relative else 1.0)
        nothing = np.zeros(P)
        match self.kind:
            case "group+exclusive":
                return SparseGroupPenalty(group, self.beta * unit * usage)
            case "group":
                return SparseGroupPenalty(group, nothing)
            case "exclusive":
                ridge = 0.0 if usage.any() else ROOT_RIDGE * critical**2
                return SparseGroupPenalty(0.0, self.beta * unit * usage, ridge)
            case "l1":
                return SparseGroupPenalty(0.0, np.full(P, self.alpha * unit))
            case "l2":
                ridge = self.alpha * (critical**2 if self.relative else unit)
                return SparseGroupPenalty(0.0, nothing, ridge)

    def usage(self, path: tuple[int, ...], lineage: tuple[LinearRule, ...], size: int) -> Array:
        """Return how much the models on the way to a node use each feature, on average."""
        total = np.zeros(size)
        for child, rule in zip(path, lineage, strict=True):
            weights = np.abs(rule.weights[child].astype(np.float64))
            largest = float(weights.max()) if self.relative else 1.0
            if largest > 0.0:
                total += weights / largest
        return total / max(len(lineage), 1)

    def complexity(self, W: Array, usage: Array) -> float:
        """Return the denominator of the paper's splitting score (Eq. 4) for weights W."""
        K, P = W.shape
        norms = np.sqrt(np.einsum("kp,kp->p", W, W)).sum()
        shared = (np.abs(W).sum(axis=0) * usage).sum()
        squares = np.square(W).sum()
        total = {
            "group+exclusive": norms + shared,
            "group": norms,
            "exclusive": shared if usage.any() else squares,
            "l1": np.abs(W).sum(),
            "l2": squares,
        }[self.kind]
        return float(total / (P * K))
