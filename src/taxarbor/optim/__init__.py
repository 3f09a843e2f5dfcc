"""Minimising a hinge loss plus a penalty; knows nothing of clusters."""

from taxarbor.optim._loss import HingeLoss, Labels, MultiHinge, PairHinge, Point
from taxarbor.optim._minimise import Minimiser, Solution, first_point
from taxarbor.optim._penalty import SparseGroupPenalty
from taxarbor.optim._prox_newton import MAX_SMOOTH, MAX_WORKING, ProximalNewton
from taxarbor.optim._prox_quasi_newton import ProximalQuasiNewton

__all__ = [
    "MAX_SMOOTH",
    "MAX_WORKING",
    "HingeLoss",
    "Labels",
    "Minimiser",
    "MultiHinge",
    "PairHinge",
    "Point",
    "ProximalNewton",
    "ProximalQuasiNewton",
    "Solution",
    "SparseGroupPenalty",
    "first_point",
]
