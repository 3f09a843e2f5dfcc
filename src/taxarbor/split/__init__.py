"""One division of one node."""

from taxarbor._types import SolveInfo, Status
from taxarbor.split._margins import MaxMarginSplitter, Regularizer
from taxarbor.split._task import Refusal, Split, SplitTask, Splitter

__all__ = [
    "MaxMarginSplitter",
    "Refusal",
    "Regularizer",
    "SolveInfo",
    "Split",
    "SplitTask",
    "Splitter",
    "Status",
]
