"""Readable taxonomies from unlabelled rows."""

from importlib import import_module

from taxarbor._errors import FileFormatError, GrowthWarning, TableWarning, TaxarborError

TYPE_CHECKING = False  # loading typing would be most of the time that this takes
if TYPE_CHECKING:
    from typing import Any

    from taxarbor.data import load_animals, make_planted_tree
    from taxarbor.estimators import HMMC, Taxarbor
    from taxarbor.tables import TableEncoder, TextColumn
    from taxarbor.taxonomy import Taxonomy
    from taxarbor.tree import LinearRule

__version__ = "0.1.0.dev0"

__all__ = [
    "HMMC",
    "FileFormatError",
    "GrowthWarning",
    "LinearRule",
    "TableEncoder",
    "TableWarning",
    "Taxarbor",
    "TaxarborError",
    "Taxonomy",
    "TextColumn",
    "load_animals",
    "make_planted_tree",
]

_LATE = {
    **dict.fromkeys(("HMMC", "Taxarbor"), "estimators"),
    "LinearRule": "tree",
    **dict.fromkeys(("TableEncoder", "TextColumn"), "tables"),
    "Taxonomy": "taxonomy",
    **dict.fromkeys(("load_animals", "make_planted_tree"), "data"),
}
"""Where names are that are loaded on first use: scikit-learn takes a second to import."""
_PACKAGES = (
    *("data", "estimators", "exchange", "explain", "grow", "metrics"),
    *("plot", "report", "rows", "split", "stability", "tables", "taxonomy", "tree"),
)


def __getattr__(name: str) -> "Any":
    if name in _PACKAGES:
        return import_module(f"taxarbor.{name}")
    if name not in _LATE:
        raise AttributeError(f"module 'taxarbor' has no attribute {name!r}")
    value = getattr(import_module(f"taxarbor.{_LATE[name]}"), name)
    globals()[name] = value  # so that this is asked once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
