"""How well a tree of clusters agrees with known classes, and with a known tree of them."""

from taxarbor.metrics._scores import ClassTree, tree_scores

__all__ = ["ClassTree", "tree_scores"]
