r"""Penalties on a weight matrix, feature by feature.

All variants of the paper (its Eqs. 2 and 3, and the plain l1 and squared l2 norms) are one
function with other numbers, so there is one class. Inner products here have one order: BLAS may
divide a long sum among its threads, so that its last digits change with their number.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from taxarbor._types import Array, IndexArray, Mask

TINY = np.finfo(np.float64).tiny


def inner(A: Array, B: Array) -> float:
    """Return the sum of the products of the entries of two arrays of one shape."""
    return float(np.einsum("i,i->", A.reshape(-1), B.reshape(-1)))


def group_norms(W: Array, owner: IndexArray | None = None) -> Array:
    """Return the length of each feature's weights or, with owners, of all of its group's."""
    squares = np.einsum("mp,mp->p", W, W)
    return np.sqrt(squares if owner is None else np.bincount(owner, squares)[owner])


def group_shares(owner: IndexArray | None) -> Array | float:
    """Return which part of its group each feature is, so that a sum counts groups once."""
    return 1.0 if owner is None else 1.0 / np.bincount(owner)[owner]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparseGroupPenalty:
    r"""Sum over features p of ``group |W_p|_2 + l1[p] |W_p|_1 + ridge |W_p|_2^2``.

    ``W_p`` is column p of W: the weights of feature p in all models. With owners, the group
    norm is one of all features that are owned alike.
    """

    group: float
    l1: Array  # (n_features,), larger where an ancestor already uses the feature
    ridge: float = 0.0
    owner: IndexArray | None = None  # (n_features,), the group of each; None: one of its own

    @property
    def is_smooth(self) -> bool:
        """Whether only the ridge counts, up to features that are held at zero."""
        return self.group == 0.0 and self.ridge > 0.0

    def value(self, W: Array) -> float:
        """Return the penalty of W, of shape (n_models, n_features)."""
        norms = group_norms(W, self.owner) * group_shares(self.owner)
        sizes = self.group * norms + self.l1 * np.abs(W).sum(axis=0)
        return float(sizes.sum()) + self.ridge * inner(W, W)

    def prox(self, W: Array, step: float) -> Array:
        """Return the minimiser over V of ``|V - W|^2 / (2 step) + value(V)``.

        Soft-threshold the entries, shrink the groups, then scale: exact, since the groups
        nest and the ridge only rescales.
        """
        V = np.sign(W) * np.maximum(np.abs(W) - step * self.l1, 0.0)
        norms = group_norms(V, self.owner)
        keep = np.maximum(norms - step * self.group, 0.0) / np.maximum(norms, TINY)
        return np.asarray(V * (keep / (1.0 + 2.0 * step * self.ridge)))

    def violations(self, W: Array, gradient: Array) -> Array:
        """Return, per feature, the distance of ``-gradient`` from the subdifferential at W.

        Of a group without weights, that of the whole group.
        All zero exactly where W minimises a loss of this gradient plus the penalty.
        """
        G = gradient + 2.0 * self.ridge * W
        norms = group_norms(W, self.owner)
        pull = G + self.group * W / np.maximum(norms, TINY)
        at_zero = np.maximum(np.abs(pull) - self.l1, 0.0)
        elsewhere = np.abs(pull + self.l1 * np.sign(W))
        rest = np.where(W == 0.0, at_zero, elsewhere)
        distance = group_norms(rest)
        whole = distance if self.owner is None else group_norms(rest, self.owner)
        return np.where(norms == 0.0, np.maximum(whole - self.group, 0.0), distance)

    def optimality(self, W: Array, gradient: Array) -> float:
        """Return the largest violation over the features; 0 at a minimum."""
        return float(self.violations(W, gradient).max(initial=0.0))

    def exclude(self, features: Mask, strength: float) -> "SparseGroupPenalty":
        """Return the penalty with some features held at zero by a strong l1 weight."""
        if not features.any():
            return self
        return replace(self, l1=np.where(features, self.l1 + strength, self.l1))

    def restrict(self, features: IndexArray) -> "SparseGroupPenalty":
        """Return the same penalty on some of the features."""
        owner = None if self.owner is None else self.owner[features]
        return replace(self, l1=self.l1[features], owner=owner)
