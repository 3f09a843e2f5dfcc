"""From users' tables to numbers: files are read here, and what is passed in is checked."""

from taxarbor.tables._encoder import TableEncoder
from taxarbor.tables._files import read_table
from taxarbor.tables._table import Table

__all__ = ["Table", "TableEncoder", "read_table"]
