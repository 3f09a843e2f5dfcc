"""A tree as a whole: what growing one split at a time cannot do."""

from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import compete
from taxarbor.refine._rules import Sparsity, find_rules

__all__ = ["Coordinates", "Sparsity", "compete", "find_rules"]
