"""Balanced assignment: every row to one cluster, every cluster within its size bounds.

Knows nothing of margins: costs come in, labels of least total cost go out. The derivation
stands in the README beside this file.
"""

from taxarbor.assign._balanced import assign_balanced, assign_two, size_bounds

__all__ = ["assign_balanced", "assign_two", "size_bounds"]
