"""One division of one node."""

from taxarbor.split._alternate import SolverName
from taxarbor.split._base import Refusal, Split, SplitTask, Splitter
from taxarbor.split._max_margin import MaxMarginSplitter
from taxarbor.split._regularizer import KINDS, Kind, Regularizer

__all__ = [
    "KINDS",
    "Kind",
    "MaxMarginSplitter",
    "Refusal",
    "Regularizer",
    "SolverName",
    "Split",
    "SplitTask",
    "Splitter",
]
