"""How far to trust a tree: refits, what comes back in them, and how many clusters there are."""

from taxarbor.stability._assess import assess

__all__ = ["assess"]
