"""Stability of a taxonomy: refits, the clusters recovered in them, a number of clusters."""

from taxarbor.stability._assess import assess

__all__ = ["assess"]
