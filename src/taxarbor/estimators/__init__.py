"""scikit-learn facades."""

from taxarbor.estimators._hierarchical_kmeans import HierarchicalKMeans
from taxarbor.estimators._hierarchical_spectral import HierarchicalSpectral
from taxarbor.estimators._hmmc import HMMC
from taxarbor.estimators._mmc import MMC

__all__ = ["HMMC", "MMC", "HierarchicalKMeans", "HierarchicalSpectral"]
