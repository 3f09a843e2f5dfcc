"""Plots of a tree on matplotlib axes; coordinates first, without matplotlib."""

from taxarbor.plot._dendrogram import plot_dendrogram
from taxarbor.plot._stability import plot_stability
from taxarbor.plot._tree import plot_tree

__all__ = [
    "plot_dendrogram",
    "plot_stability",
    "plot_tree",
]
