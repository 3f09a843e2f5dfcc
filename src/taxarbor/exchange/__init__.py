"""Trees to and from other forms: frames, labels, linkages, text formats."""

from taxarbor.exchange._export import to_dot, to_frame, to_json, to_linkage, to_newick
from taxarbor.exchange._import import from_labels, from_linkage

__all__ = [
    "from_labels",
    "from_linkage",
    "to_dot",
    "to_frame",
    "to_json",
    "to_linkage",
    "to_newick",
]
