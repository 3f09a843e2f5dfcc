"""scikit-learn facades."""

from taxarbor.estimators._hmmc import HMMC
from taxarbor.estimators._taxarbor import Taxarbor

__all__ = ["HMMC", "Taxarbor"]
