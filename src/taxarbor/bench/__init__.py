"""The comparison: data sets, methods, measures; tables and figures from one command."""

from taxarbor.bench._datasets import SCALINGS, Dataset, Scaling, list_datasets, load_dataset
from taxarbor.bench._experiment import PARTS, Part, Progress, run_experiment
from taxarbor.bench._methods import METHODS, Method
from taxarbor.bench._pages import write_pages
from taxarbor.bench._plan import Setup
from taxarbor.bench._store import Store

__all__ = [
    "METHODS",
    "PARTS",
    "SCALINGS",
    "Dataset",
    "Method",
    "Part",
    "Progress",
    "Scaling",
    "Setup",
    "Store",
    "list_datasets",
    "load_dataset",
    "run_experiment",
    "write_pages",
]
