"""A page to look at: the tree with its reasons, in one HTML file that opens offline."""

from taxarbor.report._report import report

__all__ = ["report"]
