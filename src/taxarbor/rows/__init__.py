"""The data of one node, wherever it lives."""

from taxarbor.rows._rows import Rows, as_rows

__all__ = ["Rows", "as_rows"]
