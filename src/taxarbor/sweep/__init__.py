"""Sweeps over blocks of rows, wherever the blocks are: in memory, on disk, on a cluster."""

from taxarbor.sweep._blocks import Blocks, blocks_of
from taxarbor.sweep._dask import DaskEngine
from taxarbor.sweep._engine import Column, Engine, LocalEngine, merged

__all__ = ["Blocks", "Column", "DaskEngine", "Engine", "LocalEngine", "blocks_of", "merged"]
