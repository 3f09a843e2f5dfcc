"""The data of one node, wherever it lives."""

from taxarbor.rows._base import Rows
from taxarbor.rows._memory import as_rows

__all__ = ["Rows", "as_rows"]
