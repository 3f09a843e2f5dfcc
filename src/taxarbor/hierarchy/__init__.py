"""The result of a fit: a frozen tree of clusters, and what builds, routes and writes it."""

from taxarbor.hierarchy._adapters import expect_hierarchy
from taxarbor.hierarchy._build import HierarchyBuilder
from taxarbor.hierarchy._placement import Placement
from taxarbor.hierarchy._route import route
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.hierarchy._tree import Hierarchy

__all__ = [
    "Hierarchy",
    "HierarchyBuilder",
    "LinearRule",
    "Placement",
    "expect_hierarchy",
    "route",
]
