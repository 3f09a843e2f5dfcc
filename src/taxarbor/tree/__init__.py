"""The frozen tree of clusters: structure, rules, cuts, routing."""

from taxarbor.tree._build import TreeBuilder
from taxarbor.tree.rule import LinearRule
from taxarbor.tree.tree import Tree

__all__ = ["LinearRule", "Tree", "TreeBuilder"]
