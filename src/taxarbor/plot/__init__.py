"""Pictures of a tree, on matplotlib's axes; coordinates first, without matplotlib."""

from taxarbor.plot._describe import StyledLine
from taxarbor.plot._layout import TreeLayout, lay_out
from taxarbor.plot._mpl import TreeArtists, plot_tree

__all__ = ["StyledLine", "TreeArtists", "TreeLayout", "lay_out", "plot_tree"]
