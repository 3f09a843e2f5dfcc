"""The result of a fit: a frozen tree of clusters, and what builds, routes and writes it."""

from taxarbor.hierarchy._adapters import expect_hierarchy, hierarchy_of
from taxarbor.hierarchy._arrays import all_finite
from taxarbor.hierarchy._atomic import write_whole
from taxarbor.hierarchy._build import HierarchyBuilder
from taxarbor.hierarchy._means import with_means
from taxarbor.hierarchy._placement import Placement, deciding_rule
from taxarbor.hierarchy._reasons import Reason, rest_mean
from taxarbor.hierarchy._route import check_columns, check_data, route
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.hierarchy._text import count_leaves, in_digits, printable
from taxarbor.hierarchy._tree import Hierarchy

__all__ = [
    "Hierarchy",
    "HierarchyBuilder",
    "LinearRule",
    "Placement",
    "Reason",
    "all_finite",
    "check_columns",
    "check_data",
    "count_leaves",
    "deciding_rule",
    "expect_hierarchy",
    "hierarchy_of",
    "in_digits",
    "printable",
    "rest_mean",
    "route",
    "with_means",
    "write_whole",
]
