"""Rows in memory, and the few passes over them that solvers need."""

from taxarbor.rows._rows import Rows, as_rows

__all__ = ["Rows", "as_rows"]
