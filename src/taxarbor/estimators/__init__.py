"""scikit-learn facades."""

from taxarbor.estimators._hmmc import HMMC
from taxarbor.estimators._mmc import MMC

__all__ = ["HMMC", "MMC"]
