"""Minimising a hinge loss plus a penalty; knows nothing of clusters."""

from taxarbor.optim._minimise import HingeLoss, Solution, first_point, minimise
from taxarbor.optim._penalty import SparseGroupPenalty

__all__ = ["HingeLoss", "Solution", "SparseGroupPenalty", "first_point", "minimise"]
