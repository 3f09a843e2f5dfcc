"""Plots of a tree on matplotlib axes; coordinates first, without matplotlib."""

from taxarbor.plot._dendrogram_plot import plot_dendrogram
from taxarbor.plot._stability_plot import plot_stability
from taxarbor.plot._tree_plot import plot_tree

__all__ = ["plot_dendrogram", "plot_stability", "plot_tree"]
