"""The paper's baselines, and a plot that only its experiment needs."""

from experiments.baselines._estimators import MMC, HierarchicalKMeans, HierarchicalSpectral
from experiments.baselines._kmeans_trees import read_bisecting_kmeans, read_kmeans
from experiments.baselines._levels import plot_feature_levels
from experiments.baselines._splitters import KMeansSplitter, SpectralSplitter

__all__ = [
    "MMC",
    "HierarchicalKMeans",
    "HierarchicalSpectral",
    "KMeansSplitter",
    "SpectralSplitter",
    "plot_feature_levels",
    "read_bisecting_kmeans",
    "read_kmeans",
]
