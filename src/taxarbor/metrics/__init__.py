"""How well a tree of clusters agrees with known classes, and with a known tree of them."""

from taxarbor.metrics._scores import tree_scores
from taxarbor.metrics.classes import ClassTree

__all__ = ["ClassTree", "tree_scores"]
