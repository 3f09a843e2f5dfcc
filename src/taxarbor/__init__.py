"""Readable taxonomies from unlabelled rows."""

from taxarbor._errors import (
    FileFormatError,
    GrowthWarning,
    InterruptedFitWarning,
    TaxarborError,
)
from taxarbor.data import load_animals, make_planted_tree
from taxarbor.estimators import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral, Taxarbor
from taxarbor.hierarchy import Hierarchy, LinearRule

__version__ = "0.1.0.dev0"

__all__ = [
    "HMMC",
    "MMC",
    "FileFormatError",
    "GrowthWarning",
    "HierarchicalKMeans",
    "HierarchicalSpectral",
    "Hierarchy",
    "InterruptedFitWarning",
    "LinearRule",
    "Taxarbor",
    "TaxarborError",
    "load_animals",
    "make_planted_tree",
]
