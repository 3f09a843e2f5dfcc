"""Sparse rules that send rows to the clusters of a tree."""

from taxarbor.rules._rules import find_rules
from taxarbor.rules._sample import Sparsity

__all__ = ["Sparsity", "find_rules"]
