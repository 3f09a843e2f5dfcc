"""Taxonomies to convert, known and random."""

from tests.taxonomy.conftest import assessed, bare, builder, chain, known

__all__ = ["assessed", "bare", "builder", "chain", "known"]
