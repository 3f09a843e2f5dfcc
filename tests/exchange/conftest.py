"""Taxonomies to convert, known and random."""

import pytest

from tests.taxonomy import conftest
from tests.taxonomy.conftest import assessed, bare, builder, chain, known

__all__ = ["assessed", "bare", "builder", "chain", "known"]


@pytest.fixture(scope="session")
def taxonomies():
    """Hypothesis strategy of random taxonomies, with and without rules and means."""
    return conftest.taxonomies()
