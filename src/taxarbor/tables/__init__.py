"""From users' tables to features: reads files, checks input, encodes columns."""

from taxarbor.tables._encoder import TableEncoder
from taxarbor.tables._read_table import read_table
from taxarbor.tables._request import Table

__all__ = ["Table", "TableEncoder", "read_table"]
