"""Trees to and from other forms: frames, labels, linkages, text formats."""

from taxarbor.exchange._forms import (
    from_labels,
    from_linkage,
    to_dot,
    to_frame,
    to_json,
    to_linkage,
    to_newick,
)

__all__ = [
    "from_labels",
    "from_linkage",
    "to_dot",
    "to_frame",
    "to_json",
    "to_linkage",
    "to_newick",
]
