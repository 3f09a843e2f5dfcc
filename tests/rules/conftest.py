"""Rows, as the tests of clusters have them."""

from tests.clusters.conftest import _one_thread, data

__all__ = ["_one_thread", "data"]
