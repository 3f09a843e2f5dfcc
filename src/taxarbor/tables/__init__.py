"""From users' tables to features: reads files, checks input, encodes columns."""

from taxarbor.tables._kinds import TextColumn
from taxarbor.tables._read_table import Table, read_table
from taxarbor.tables.encoder import TableEncoder

__all__ = ["Table", "TableEncoder", "TextColumn", "read_table"]
