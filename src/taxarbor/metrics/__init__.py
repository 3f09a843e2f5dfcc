"""How well a tree of clusters agrees with known classes, and with a known tree of them."""

from taxarbor.metrics._class_tree import ClassTree
from taxarbor.metrics._table import adjusted_mutual_info_score, adjusted_rand_score, rand_score
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
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "dasgupta_cost",
    "dendrogram_purity",
    "path_sharing_score",
    "path_sharing_similarity",
    "rand_score",
    "score_hierarchy",
    "shortest_path_score",
    "shortest_path_similarity",
]
