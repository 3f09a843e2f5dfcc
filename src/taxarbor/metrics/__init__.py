"""How well a tree of clusters agrees with known classes, and with a known tree of them."""

from taxarbor.metrics._classes import ClassTree
from taxarbor.metrics._scores import (
    dasgupta_cost,
    dendrogram_purity,
    path_sharing_score,
    shortest_path_score,
    tree_scores,
)

__all__ = [
    "ClassTree",
    "dasgupta_cost",
    "dendrogram_purity",
    "path_sharing_score",
    "shortest_path_score",
    "tree_scores",
]
