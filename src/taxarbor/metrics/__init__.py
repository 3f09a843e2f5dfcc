"""How well a tree of clusters agrees with known classes, and with a known tree of them."""

from taxarbor.metrics._class_tree import ClassTree
from taxarbor.metrics._tree_scores import (
    dasgupta_cost,
    dendrogram_purity,
    path_sharing_score,
    path_sharing_similarity,
    score_hierarchy,
    shortest_path_score,
    shortest_path_similarity,
)

__all__ = [
    "ClassTree",
    "dasgupta_cost",
    "dendrogram_purity",
    "path_sharing_score",
    "path_sharing_similarity",
    "score_hierarchy",
    "shortest_path_score",
    "shortest_path_similarity",
]
