"""One division of one node."""

from taxarbor._types import SolveInfo, Status
from taxarbor.split._alternate import SolverName
from taxarbor.split._base import Refusal, Split, SplitTask, Splitter
from taxarbor.split._kmeans import KMeansSplitter
from taxarbor.split._lifted import LiftedSplitter
from taxarbor.split._max_margin import Center, MaxMarginSplitter
from taxarbor.split._means import CRITERIA, Criterion, child_means
from taxarbor.split._regularizer import KINDS, Kind, Regularizer
from taxarbor.split._spectral import SpectralSplitter
from taxarbor.split._spread import true_spread

__all__ = [
    "CRITERIA",
    "KINDS",
    "Center",
    "Criterion",
    "KMeansSplitter",
    "Kind",
    "LiftedSplitter",
    "MaxMarginSplitter",
    "Refusal",
    "Regularizer",
    "SolveInfo",
    "SolverName",
    "SpectralSplitter",
    "Split",
    "SplitTask",
    "Splitter",
    "Status",
    "child_means",
    "true_spread",
]
