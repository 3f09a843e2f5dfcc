"""One division of one node."""

from taxarbor._types import SolveInfo, Status
from taxarbor.split._splitter import Refusal, Split, SplitTask, Splitter
from taxarbor.split.max_margin_splitter import MaxMarginSplitter, Regularizer

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
