"""Stability of a taxonomy: refits, the clusters recovered in them, a number of clusters."""

from taxarbor.stability.refits import assess

__all__ = ["assess"]
