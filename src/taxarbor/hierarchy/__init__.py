"""The result of a fit: a frozen tree of clusters, its navigation and its file format."""

from taxarbor.hierarchy._build import HierarchyBuilder
from taxarbor.hierarchy._reasons import Reason
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.hierarchy._tree import Hierarchy
from taxarbor.hierarchy._trust import Trust

__all__ = [
    "Hierarchy",
    "HierarchyBuilder",
    "LinearRule",
    "Reason",
    "Trust",
]
