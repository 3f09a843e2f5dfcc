"""Pictures of a tree, on matplotlib's axes; coordinates first, without matplotlib."""

from taxarbor.plot._axes import StyledLine as StyledLine
from taxarbor.plot._dendrogram import plot_dendrogram
from taxarbor.plot._stability import plot_stability
from taxarbor.plot._tree import plot_tree

__all__ = [
    "plot_dendrogram",
    "plot_stability",
    "plot_tree",
]
