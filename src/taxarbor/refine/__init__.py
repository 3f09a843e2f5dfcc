"""A tree as a whole: what growing one split at a time cannot do."""

from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import LeafModel, fit_leaves
from taxarbor.refine._rules import Sparsity, find_rule
from taxarbor.refine._whole import group_rows, grow_refined, move_rows, place

__all__ = [
    "Coordinates",
    "LeafModel",
    "Sparsity",
    "find_rule",
    "fit_leaves",
    "group_rows",
    "grow_refined",
    "move_rows",
    "place",
]
