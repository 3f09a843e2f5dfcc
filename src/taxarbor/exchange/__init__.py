"""Trees to and from other forms: frames, linkages, text formats, scikit-learn."""

from taxarbor.exchange._read import from_labels, from_linkage, from_sklearn
from taxarbor.exchange._write import to_dot, to_frame, to_json, to_linkage, to_newick

__all__ = [
    "from_labels",
    "from_linkage",
    "from_sklearn",
    "to_dot",
    "to_frame",
    "to_json",
    "to_linkage",
    "to_newick",
]
