"""The result of a fit: a tree with its words, its routing of new rows and its file format."""

from taxarbor.taxonomy._phrases import Reason
from taxarbor.taxonomy.stability_result import Stability
from taxarbor.taxonomy.statistics import NodeStatistics
from taxarbor.taxonomy.taxonomy import Taxonomy

__all__ = ["NodeStatistics", "Reason", "Stability", "Taxonomy"]
