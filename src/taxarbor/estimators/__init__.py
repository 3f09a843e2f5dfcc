"""scikit-learn facades."""

from taxarbor.estimators._baselines import HierarchicalKMeans, HierarchicalSpectral
from taxarbor.estimators._hmmc import HMMC, MMC
from taxarbor.estimators._taxarbor import Taxarbor

__all__ = ["HMMC", "MMC", "HierarchicalKMeans", "HierarchicalSpectral", "Taxarbor"]
