"""One division of one node."""

from taxarbor._types import SolveInfo, Status
from taxarbor.split.max_margin_splitter import MaxMarginSplitter, Regularizer
from taxarbor.split.splitter import Refusal, Split, SplitTask, Splitter

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
