"""Example data: a bundled table, and generated rows with a known tree."""

from taxarbor.data._examples import Bundle, PlantedTree, load_animals, make_planted_tree

__all__ = ["Bundle", "PlantedTree", "load_animals", "make_planted_tree"]
