"""Minimising a hinge loss plus a penalty; knows nothing of clusters."""

from taxarbor.optim._loss import HingeLoss
from taxarbor.optim._minimise import Solution
from taxarbor.optim._penalty import SparseGroupPenalty
from taxarbor.optim._quasi_newton import ProximalQuasiNewton

__all__ = [
    "HingeLoss",
    "ProximalQuasiNewton",
    "Solution",
    "SparseGroupPenalty",
]
