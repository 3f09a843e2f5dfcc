"""Pictures of a tree, on matplotlib's axes; coordinates first, without matplotlib."""

from taxarbor.plot._dendrogram import (
    DendrogramArtists,
    DendrogramLayout,
    lay_out_dendrogram,
    plot_dendrogram,
)
from taxarbor.plot._describe import StyledLine
from taxarbor.plot._draw import TreeArtists
from taxarbor.plot._icicle import IcicleArtists, IcicleLayout, lay_out_icicle, plot_icicle
from taxarbor.plot._layout import TreeLayout, lay_out
from taxarbor.plot._levels import (
    FeatureLevels,
    LevelArtists,
    measure_levels,
    plot_feature_levels,
)
from taxarbor.plot._mpl import plot_tree
from taxarbor.plot._trace import TraceArtists, TraceLines, find_traces, plot_trace

__all__ = [
    "DendrogramArtists",
    "DendrogramLayout",
    "FeatureLevels",
    "IcicleArtists",
    "IcicleLayout",
    "LevelArtists",
    "StyledLine",
    "TraceArtists",
    "TraceLines",
    "TreeArtists",
    "TreeLayout",
    "find_traces",
    "lay_out",
    "lay_out_dendrogram",
    "lay_out_icicle",
    "measure_levels",
    "plot_dendrogram",
    "plot_feature_levels",
    "plot_icicle",
    "plot_trace",
    "plot_tree",
]
