"""Sparse rules that send rows to the clusters of a tree."""

from taxarbor.rules._discriminant import Sparsity
from taxarbor.rules._rules import find_rules

__all__ = ["Sparsity", "find_rules"]
