"""Data in: files, checks, what ships with the package, generators."""

from taxarbor.data._bundled import Bundle, load_animals
from taxarbor.data._files import read_table
from taxarbor.data._synthetic import PlantedTree, make_planted_tree
from taxarbor.data._table import Table
from taxarbor.data._validate import (
    check_balance,
    check_choice,
    check_count,
    check_jobs,
    check_new_rows,
    check_strength,
    check_training_rows,
)

__all__ = [
    "Bundle",
    "PlantedTree",
    "Table",
    "check_balance",
    "check_choice",
    "check_count",
    "check_jobs",
    "check_new_rows",
    "check_strength",
    "check_training_rows",
    "load_animals",
    "make_planted_tree",
    "read_table",
]
