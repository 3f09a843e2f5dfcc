"""Where rows are: memory, files, Dask. A source draws a sample and routes every row."""

from taxarbor.sources._local_source import Sample, draw_rows
from taxarbor.sources._open import Source, open_source, stored_format

__all__ = ["Sample", "Source", "draw_rows", "open_source", "stored_format"]
