"""A tree as a whole: what growing one split at a time cannot do."""

from taxarbor.refine._clusters import Clusters, find_clusters
from taxarbor.refine._coordinates import Coordinates, Survey
from taxarbor.refine._leaves import Leafing, compete
from taxarbor.refine._links import gather, link_leaves
from taxarbor.refine._outliers import find_outliers
from taxarbor.refine._rules import Sparsity, Witnesses, decide, describe, find_rules

__all__ = [
    "Clusters",
    "Coordinates",
    "Leafing",
    "Sparsity",
    "Survey",
    "Witnesses",
    "compete",
    "decide",
    "describe",
    "find_clusters",
    "find_outliers",
    "find_rules",
    "gather",
    "link_leaves",
]
