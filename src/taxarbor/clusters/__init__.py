"""The clusters of a sample and the tree above them, before there are rules for them."""

from taxarbor.clusters._coordinates import (
    Coordinates,
    count_coordinates,
    draw_positions,
    find_coordinates,
    find_density,
    reduce_wide,
)
from taxarbor.clusters._find import Clusters, GapSplitter, find_clusters
from taxarbor.clusters._outliers import find_outliers

__all__ = [
    "Clusters",
    "Coordinates",
    "GapSplitter",
    "count_coordinates",
    "draw_positions",
    "find_clusters",
    "find_coordinates",
    "find_density",
    "find_outliers",
    "reduce_wide",
]
