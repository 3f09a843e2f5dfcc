"""The two halves of an alternation: weights for given labels, and balanced labels for costs.

They know nothing of clusters. README.md and ASSIGNMENT.md derive them.
"""

from taxarbor.optim._assign import assign_balanced, assign_two, size_bounds
from taxarbor.optim._minimise import MAX_JOINT, HingeLoss, Labels, first_point, minimise
from taxarbor.optim.penalty import SparseGroupPenalty

__all__ = [
    "MAX_JOINT",
    "HingeLoss",
    "Labels",
    "SparseGroupPenalty",
    "assign_balanced",
    "assign_two",
    "first_point",
    "minimise",
    "size_bounds",
]
