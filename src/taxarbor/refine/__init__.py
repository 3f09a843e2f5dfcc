"""A tree as a whole: what growing one split at a time cannot do."""

from taxarbor.refine._clusters import find_clusters
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import compete
from taxarbor.refine._links import at_leaves, gather, link_leaves
from taxarbor.refine._outliers import find_outliers
from taxarbor.refine._rules import Sparsity, decide, describe

__all__ = [
    "Coordinates",
    "Sparsity",
    "at_leaves",
    "compete",
    "decide",
    "describe",
    "find_clusters",
    "find_outliers",
    "gather",
    "link_leaves",
]
