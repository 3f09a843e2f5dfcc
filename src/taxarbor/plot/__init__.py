"""Plots of a tree on matplotlib axes; coordinates first, without matplotlib."""

from taxarbor.plot._tree_plot import plot_dendrogram, plot_stability, plot_tree

__all__ = ["plot_dendrogram", "plot_stability", "plot_tree"]
