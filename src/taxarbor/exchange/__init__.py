"""Trees to and from other forms: frames, linkages, text formats, scikit-learn."""

from taxarbor.exchange._export import to_dot, to_frame, to_json, to_linkage, to_newick
from taxarbor.exchange._import import from_labels, from_linkage, from_sklearn

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
