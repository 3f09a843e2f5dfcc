"""The frozen tree of clusters: structure, rules, cuts, routing."""

from taxarbor.tree._build import TreeBuilder
from taxarbor.tree._rule import LinearRule
from taxarbor.tree._tree import Tree

__all__ = ["LinearRule", "Tree", "TreeBuilder"]
