"""Where rows are: memory, files, Dask. A source draws a sample and routes every row."""

from taxarbor.sources._dask_source import DaskSource
from taxarbor.sources._matrices import RAW
from taxarbor.sources._open import LocalSource, Source, has_layers, open_source, stored_format
from taxarbor.sources._sample import Sample, draw_rows

__all__ = [
    "RAW",
    "DaskSource",
    "LocalSource",
    "Sample",
    "Source",
    "draw_rows",
    "has_layers",
    "open_source",
    "stored_format",
]
